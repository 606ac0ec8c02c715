//! The options of `coprocessor`: a service that is told of requests at their stages, and may change or end them. Apollo
//! Router's words.
//!
//! A stage at which nothing is selected is not there: the service is not asked.

use std::num::NonZeroUsize;

use ogive_base::Span;

use crate::{
    ByteSize, CircuitBreakerOptions, Config, Duration, Http2Word, Url,
    decode::{Decode, Errors, section},
    scalars::nonzero,
    tree::{Node, Value},
    words::words,
};

section! {
    /// `coprocessor`
    pub struct CoprocessorOptions {
        /// Where it is asked, by POST: an `http://` or `https://` URL, or `unix:///run/coprocessor.sock`. Without it, and without
        /// `url` at a stage, nobody is asked.
        pub url: Option<Url> = None,
        /// How long it may take at one stage, waiting for `max_in_flight` included.
        pub timeout: Duration = Duration::seconds(1),
        /// How it is spoken to.
        pub client: CoprocessorClientOptions = CoprocessorClientOptions::default(),
        /// What becomes of a request if it fails: `fail` ends it with status 500 and the code `COPROCESSOR_FAILED`, `continue` goes
        /// on as if it had not been asked. The operator is told either way. Where it keeps somebody out, leave `fail`.
        pub on_error: OnErrorWord = OnErrorWord::Fail,
        /// Most messages to it at a time, of all workers.
        pub max_in_flight: NonZeroUsize = nonzero(1_000),
        /// Largest answer of it.
        pub max_response_size: ByteSize = ByteSize(16 << 20),
        /// Leaves it alone when it fails too often; meanwhile it counts as failing.
        pub circuit_breaker: Option<CircuitBreakerOptions> = None,
        /// HTTP requests and responses.
        pub router: RouterHooks = RouterHooks::default(),
        /// GraphQL requests and responses.
        pub supergraph: SupergraphHooks = SupergraphHooks::default(),
        /// Plans, before and after they are executed.
        pub execution: ExecutionHooks = ExecutionHooks::default(),
        /// Requests to subgraphs, and their answers.
        pub subgraph: CoprocessorSubgraphs = CoprocessorSubgraphs::default(),
    }

    /// `coprocessor.client`
    pub struct CoprocessorClientOptions {
        /// HTTP/2: `enable` where both sides agree on it during the TLS handshake, `disable` never, `http2only` always, without
        /// TLS from the first byte on.
        pub experimental_http2: Http2Word = Http2Word::Enable,
    }

    /// `coprocessor.subgraph`
    pub struct CoprocessorSubgraphs {
        /// Every subgraph.
        pub all: SubgraphHooks = SubgraphHooks::default(),
    }

    /// `coprocessor.router`
    pub struct RouterHooks {
        /// On the way in.
        pub request: RouterRequestHook = RouterRequestHook::default(),
        /// On the way out.
        pub response: RouterResponseHook = RouterResponseHook::default(),
    }

    /// `coprocessor.supergraph`
    pub struct SupergraphHooks {
        /// On the way in.
        pub request: SupergraphRequestHook = SupergraphRequestHook::default(),
        /// On the way out.
        pub response: SupergraphResponseHook = SupergraphResponseHook::default(),
    }

    /// `coprocessor.execution`
    pub struct ExecutionHooks {
        /// On the way in.
        pub request: ExecutionRequestHook = ExecutionRequestHook::default(),
        /// On the way out.
        pub response: ExecutionResponseHook = ExecutionResponseHook::default(),
    }

    /// `coprocessor.subgraph.all`
    pub struct SubgraphHooks {
        /// On the way in.
        pub request: SubgraphRequestHook = SubgraphRequestHook::default(),
        /// On the way out.
        pub response: SubgraphResponseHook = SubgraphResponseHook::default(),
    }

    /// `coprocessor.router.request`
    pub struct RouterRequestHook {
        /// Whether it is told the headers. It may then answer with all that there are to be from now on.
        pub headers: bool = false,
        /// Which entries of the context it is told: `true` and `deprecated` are all of them under their names from before version
        /// 2.0 of Apollo Router, `all` all under their names of today, `{ selective: [NAME] }` those that are named.
        pub context: ContextWord = ContextWord::Nothing,
        /// Whether it is told the body. Where it is not, the body passes as if there were no coprocessor.
        pub body: bool = false,
        /// Whether it is told the schema that clients see.
        pub sdl: bool = false,
        /// Whether it is told the path, with the query string.
        pub path: bool = false,
        /// Whether it is told the method.
        pub method: bool = false,
        /// Where it is asked at this stage; default `coprocessor.url`.
        pub url: Option<Url> = None,
    }

    /// `coprocessor.router.response`
    pub struct RouterResponseHook {
        /// Whether it is told the headers. It may then answer with all that there are to be from now on.
        pub headers: bool = false,
        /// Which entries of the context it is told: `true` and `deprecated` are all of them under their names from before version
        /// 2.0 of Apollo Router, `all` all under their names of today, `{ selective: [NAME] }` those that are named.
        pub context: ContextWord = ContextWord::Nothing,
        /// Whether it is told the body. Where it is not, the body passes as if there were no coprocessor.
        pub body: bool = false,
        /// Whether it is told the schema that clients see.
        pub sdl: bool = false,
        /// Whether it is told the status.
        pub status_code: bool = false,
        /// Where it is asked at this stage; default `coprocessor.url`.
        pub url: Option<Url> = None,
    }

    /// `coprocessor.supergraph.request`
    pub struct SupergraphRequestHook {
        /// Whether it is told the headers. It may then answer with all that there are to be from now on.
        pub headers: bool = false,
        /// Which entries of the context it is told: `true` and `deprecated` are all of them under their names from before version
        /// 2.0 of Apollo Router, `all` all under their names of today, `{ selective: [NAME] }` those that are named.
        pub context: ContextWord = ContextWord::Nothing,
        /// Whether it is told the body. Where it is not, the body passes as if there were no coprocessor.
        pub body: bool = false,
        /// Whether it is told the schema that clients see.
        pub sdl: bool = false,
        /// Whether it is told the method.
        pub method: bool = false,
        /// Where it is asked at this stage; default `coprocessor.url`.
        pub url: Option<Url> = None,
    }

    /// `coprocessor.supergraph.response`
    pub struct SupergraphResponseHook {
        /// Whether it is told the headers. It may then answer with all that there are to be from now on.
        pub headers: bool = false,
        /// Which entries of the context it is told: `true` and `deprecated` are all of them under their names from before version
        /// 2.0 of Apollo Router, `all` all under their names of today, `{ selective: [NAME] }` those that are named.
        pub context: ContextWord = ContextWord::Nothing,
        /// Whether it is told the body. Where it is not, the body passes as if there were no coprocessor.
        pub body: bool = false,
        /// Whether it is told the schema that clients see.
        pub sdl: bool = false,
        /// Whether it is told the status.
        pub status_code: bool = false,
        /// Where it is asked at this stage; default `coprocessor.url`.
        pub url: Option<Url> = None,
    }

    /// `coprocessor.execution.request`
    pub struct ExecutionRequestHook {
        /// Whether it is told the headers. It may then answer with all that there are to be from now on.
        pub headers: bool = false,
        /// Which entries of the context it is told: `true` and `deprecated` are all of them under their names from before version
        /// 2.0 of Apollo Router, `all` all under their names of today, `{ selective: [NAME] }` those that are named.
        pub context: ContextWord = ContextWord::Nothing,
        /// Whether it is told the body. Where it is not, the body passes as if there were no coprocessor.
        pub body: bool = false,
        /// Whether it is told the schema that clients see.
        pub sdl: bool = false,
        /// Whether it is told the method.
        pub method: bool = false,
        /// Whether it is told the plan, in the form of Apollo Router's plans.
        pub query_plan: bool = false,
        /// Where it is asked at this stage; default `coprocessor.url`.
        pub url: Option<Url> = None,
    }

    /// `coprocessor.execution.response`
    pub struct ExecutionResponseHook {
        /// Whether it is told the headers. It may then answer with all that there are to be from now on.
        pub headers: bool = false,
        /// Which entries of the context it is told: `true` and `deprecated` are all of them under their names from before version
        /// 2.0 of Apollo Router, `all` all under their names of today, `{ selective: [NAME] }` those that are named.
        pub context: ContextWord = ContextWord::Nothing,
        /// Whether it is told the body. Where it is not, the body passes as if there were no coprocessor.
        pub body: bool = false,
        /// Whether it is told the schema that clients see.
        pub sdl: bool = false,
        /// Whether it is told the status.
        pub status_code: bool = false,
        /// Where it is asked at this stage; default `coprocessor.url`.
        pub url: Option<Url> = None,
    }

    /// `coprocessor.subgraph.all.request`
    pub struct SubgraphRequestHook {
        /// Whether it is told the headers. It may then answer with all that there are to be from now on.
        pub headers: bool = false,
        /// Which entries of the context it is told: `true` and `deprecated` are all of them under their names from before version
        /// 2.0 of Apollo Router, `all` all under their names of today, `{ selective: [NAME] }` those that are named.
        pub context: ContextWord = ContextWord::Nothing,
        /// Whether it is told the body. Where it is not, the body passes as if there were no coprocessor.
        pub body: bool = false,
        /// Whether it is told the URL of the subgraph.
        pub uri: bool = false,
        /// Whether it is told the method.
        pub method: bool = false,
        /// Whether it is told the name of the subgraph.
        pub service_name: bool = false,
        /// Whether it is told an id of this request to a subgraph, the same for its answer.
        pub subgraph_request_id: bool = false,
        /// Where it is asked at this stage; default `coprocessor.url`.
        pub url: Option<Url> = None,
    }

    /// `coprocessor.subgraph.all.response`
    pub struct SubgraphResponseHook {
        /// Whether it is told the headers. It may then answer with all that there are to be from now on.
        pub headers: bool = false,
        /// Which entries of the context it is told: `true` and `deprecated` are all of them under their names from before version
        /// 2.0 of Apollo Router, `all` all under their names of today, `{ selective: [NAME] }` those that are named.
        pub context: ContextWord = ContextWord::Nothing,
        /// Whether it is told the body. Where it is not, the body passes as if there were no coprocessor.
        pub body: bool = false,
        /// Whether it is told the name of the subgraph.
        pub service_name: bool = false,
        /// Whether it is told an id of this request to a subgraph, the same for its answer.
        pub subgraph_request_id: bool = false,
        /// Whether it is told the status.
        pub status_code: bool = false,
        /// Where it is asked at this stage; default `coprocessor.url`.
        pub url: Option<Url> = None,
    }
}

words! {
    /// What becomes of a request whose coprocessor fails.
    pub enum OnErrorWord {
        /// It ends.
        Fail = "fail",
        /// It goes on.
        Continue = "continue",
    }
}

/// Which entries of the context are told.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum ContextWord {
    /// None.
    #[default]
    Nothing,
    /// All.
    All,
    /// All, under their old names.
    Deprecated,
    /// Those of these names.
    Selective(Vec<String>),
}

impl Decode for ContextWord {
    fn decode(node: &Node, errors: &mut Errors) -> Option<Self> {
        if matches!(node.value, Value::Map(_)) {
            let [names] = crate::decode::fields(node, ["selective"], errors)?;
            let Some(names) = names else {
                errors.invalid(node.span, "`selective` needs a list of names", "");
                return None;
            };
            return Vec::decode(names, errors).map(ContextWord::Selective);
        }
        let what = "`true`, `false`, `all`, `deprecated` or `{ selective: [NAME] }`";
        match errors.scalar(node, what)? {
            "false" => Some(ContextWord::Nothing),
            "all" => Some(ContextWord::All),
            "true" | "deprecated" => Some(ContextWord::Deprecated),
            other => {
                let message = format!("expected {what}, found `{other}`");
                errors.invalid(node.span, message, "");
                None
            }
        }
    }
}

/// What is told at one stage, whatever the stage.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StageSelection {
    /// The headers.
    pub headers: bool,
    /// The context.
    pub context: ContextWord,
    /// The body.
    pub body: bool,
    /// The schema.
    pub sdl: bool,
    /// The path.
    pub path: bool,
    /// The method.
    pub method: bool,
    /// The status.
    pub status_code: bool,
    /// The plan.
    pub query_plan: bool,
    /// The URL of the subgraph.
    pub uri: bool,
    /// The name of the subgraph.
    pub service_name: bool,
    /// The id of the request to the subgraph.
    pub subgraph_request_id: bool,
    /// Where it is asked, if not where it is otherwise.
    pub url: Option<Url>,
}

macro_rules! selection {
    ($options:expr, $name:literal, $($key:ident)*) => {
        (
            $name,
            StageSelection {
                headers: $options.headers,
                context: $options.context.clone(),
                body: $options.body,
                url: $options.url.clone(),
                $( $key: $options.$key, )*
                ..StageSelection::default()
            },
        )
    };
}

impl CoprocessorOptions {
    /// The stages at which something is told, by their names in the protocol.
    pub fn stages(&self) -> Vec<(&'static str, StageSelection)> {
        let all = &self.subgraph.all;
        let stages = [
            selection!(self.router.request, "RouterRequest", sdl path method),
            selection!(self.router.response, "RouterResponse", sdl status_code),
            selection!(self.supergraph.request, "SupergraphRequest", sdl method),
            selection!(self.supergraph.response, "SupergraphResponse", sdl status_code),
            selection!(self.execution.request, "ExecutionRequest", sdl method query_plan),
            selection!(self.execution.response, "ExecutionResponse", sdl status_code),
            selection!(all.request, "SubgraphRequest", uri method service_name subgraph_request_id),
            selection!(all.response, "SubgraphResponse", service_name subgraph_request_id status_code),
        ];
        let is_on = |stage: &StageSelection| {
            let nothing = StageSelection {
                url: stage.url.clone(),
                ..StageSelection::default()
            };
            *stage != nothing
        };
        stages
            .into_iter()
            .filter(|(_, stage)| is_on(stage))
            .collect()
    }
}

/// Checks that there is somebody to ask.
pub(crate) fn check(span: Span, config: &Config, errors: &mut Errors) {
    let options = &config.coprocessor;
    if options.url.is_none()
        && options
            .stages()
            .iter()
            .any(|(_, stage)| stage.url.is_none())
    {
        let help = "where it is asked, such as `http://127.0.0.1:8081/`";
        errors.invalid(span, "a coprocessor needs `url`", help);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ogive_base::SourceId;

    fn load(text: &str) -> Result<CoprocessorOptions, String> {
        let text = format!("coprocessor: {{ {text} }}\n");
        let config = crate::load(SourceId(0), &text, &|_| None);
        config
            .map(|config| config.coprocessor)
            .map_err(|e| e[0].message.clone())
    }

    #[test]
    fn contexts_are_selected_in_the_words_of_apollo_router() {
        let of = |word: &str| {
            load(&format!(
                "url: 'http://localhost:1/', router: {{ request: {{ context: {word} }} }}"
            ))
            .map(|options| options.router.request.context)
        };
        assert_eq!(of("false"), Ok(ContextWord::Nothing));
        assert_eq!(of("true"), Ok(ContextWord::Deprecated));
        assert_eq!(of("deprecated"), Ok(ContextWord::Deprecated));
        assert_eq!(of("all"), Ok(ContextWord::All));
        let names = vec!["a".to_owned(), "b::c".to_owned()];
        assert_eq!(
            of("{ selective: [a, 'b::c'] }"),
            Ok(ContextWord::Selective(names))
        );
        for bad in ["some", "{ selected: [a] }", "[a]", "{ }"] {
            assert!(of(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn stages_need_somebody_to_ask_and_have_keys_of_their_own() {
        let bodies = "{ request: { body: true } }";
        assert_eq!(
            load(&format!("supergraph: {bodies}")).unwrap_err(),
            "a coprocessor needs `url`"
        );
        assert!(
            load("supergraph: { request: { body: true, url: 'http://localhost:1/' } }").is_ok()
        );
        assert!(load(&format!("url: 'unix:///run/a.sock', execution: {bodies}")).is_ok());
        for unknown in [
            "router: { request: { status_code: true } }",
            "supergraph: { request: { path: true } }",
            "subgraph: { request: { body: true } }",
            "subgraph: { all: { response: { uri: true } } }",
            "execution: { response: { query_plan: true } }",
        ] {
            let found = load(&format!("url: 'http://localhost:1/', {unknown}")).unwrap_err();
            assert!(found.starts_with("unknown key"), "{unknown}: {found}");
        }
        assert!(load("url: 'http://localhost:1/', timeout: 0s").is_err());
    }
}
