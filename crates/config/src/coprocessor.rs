//! The options of `coprocessor`: a service that is told of requests at their stages, and may change or end them. Apollo
//! Router's words.
//!
//! A stage at which nothing is selected is not there: the service is not asked. What each stage may select is one table
//! ([`STAGES`]), and what each key means another ([`MEMBERS`]).

use std::num::NonZeroUsize;

use ogive_base::Span;
use ogive_yaml::{Node, Value};

use crate::{
    ByteSize, CircuitBreakerOptions, Config, Duration, HookCondition, Http2Word, Place, Url,
    decode::{Decode, Errors, section},
    reference::{Describe, OptionRow, join},
    scalars::nonzero,
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
        pub router: StageHooks<0, 1> = StageHooks::default(),
        /// GraphQL requests and responses.
        pub supergraph: StageHooks<2, 3> = StageHooks::default(),
        /// Plans, before and after they are executed.
        pub execution: StageHooks<4, 5> = StageHooks::default(),
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
        pub all: StageHooks<6, 7> = StageHooks::default(),
    }
}

/// What is told on the way in and on the way out: the stages of these places in [`STAGES`].
#[derive(Clone, PartialEq, Debug, Default)]
pub struct StageHooks<const REQUEST: usize, const RESPONSE: usize> {
    /// On the way in.
    pub request: StageHook<REQUEST>,
    /// On the way out.
    pub response: StageHook<RESPONSE>,
}

/// What is told at the stage of this place in [`STAGES`].
#[derive(Clone, PartialEq, Debug, Default)]
pub struct StageHook<const AT: usize>(pub StageSelection);

/// What is told at one stage, whatever the stage.
#[derive(Clone, PartialEq, Debug, Default)]
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
    /// Whether those that begin together are told in one message.
    pub batch: bool,
    /// Of which requests it is told.
    pub condition: Option<HookCondition>,
    /// Where it is asked, if not where it is otherwise.
    pub url: Option<Url>,
}

/// The stages by their names in the protocol, each with what it may select besides [`EVERYWHERE`].
const STAGES: [(&str, &[&str]); 8] = [
    ("RouterRequest", &["sdl", "path", "method"]),
    ("RouterResponse", &["sdl", "status_code"]),
    ("SupergraphRequest", &["sdl", "method"]),
    ("SupergraphResponse", &["sdl", "status_code"]),
    ("ExecutionRequest", &["sdl", "method", "query_plan"]),
    ("ExecutionResponse", &["sdl", "status_code"]),
    (
        "SubgraphRequest",
        &[
            "uri",
            "method",
            "service_name",
            "subgraph_request_id",
            "batch",
        ],
    ),
    (
        "SubgraphResponse",
        &["service_name", "subgraph_request_id", "status_code"],
    ),
];

/// The same stages as places of selectors.
pub const HOOK_PLACES: [Place; 8] = [
    Place::RouterRequest,
    Place::RouterResponse,
    Place::SupergraphRequest,
    Place::SupergraphResponse,
    Place::ExecutionRequest,
    Place::ExecutionResponse,
    Place::SubgraphRequest,
    Place::SubgraphResponse,
];

/// What every stage may select.
const EVERYWHERE: [&str; 5] = ["headers", "context", "body", "condition", "url"];

/// One member of a selection.
enum Member {
    /// Told or not.
    Told(fn(&mut StageSelection) -> &mut bool),
    Context,
    Condition,
    Url,
}

/// Every key with what it is and what it means.
const MEMBERS: [(&str, Member, &str); 14] = [
    (
        "headers",
        Member::Told(|stage| &mut stage.headers),
        "Whether it is told the headers. It may then answer with all that there are to be from now on.",
    ),
    (
        "context",
        Member::Context,
        "Which entries of the context it is told: `true` and `deprecated` are all of them under their names from before version \
         2.0 of Apollo Router, `all` all under their names of today, `{ selective: [NAME] }` those that are named.",
    ),
    (
        "body",
        Member::Told(|stage| &mut stage.body),
        "Whether it is told the body. Where it is not, the body passes as if there were no coprocessor.",
    ),
    (
        "sdl",
        Member::Told(|stage| &mut stage.sdl),
        "Whether it is told the schema that clients see.",
    ),
    (
        "path",
        Member::Told(|stage| &mut stage.path),
        "Whether it is told the path, with the query string.",
    ),
    (
        "method",
        Member::Told(|stage| &mut stage.method),
        "Whether it is told the method.",
    ),
    (
        "query_plan",
        Member::Told(|stage| &mut stage.query_plan),
        "Whether it is told the plan, in the form of Apollo Router's plans.",
    ),
    (
        "uri",
        Member::Told(|stage| &mut stage.uri),
        "Whether it is told the URL of the subgraph.",
    ),
    (
        "service_name",
        Member::Told(|stage| &mut stage.service_name),
        "Whether it is told the name of the subgraph.",
    ),
    (
        "subgraph_request_id",
        Member::Told(|stage| &mut stage.subgraph_request_id),
        "Whether it is told an id of this request to a subgraph, the same for its answer.",
    ),
    (
        "batch",
        Member::Told(|stage| &mut stage.batch),
        "Whether requests of one operation that begin together are told in one message: a list of what each would be told, to be \
         answered by a list of as many in the same order, each with its `subgraphRequestId`. Not of Apollo Router.",
    ),
    (
        "status_code",
        Member::Told(|stage| &mut stage.status_code),
        "Whether it is told the status.",
    ),
    (
        "condition",
        Member::Condition,
        "Of which requests it is told, judged before anything is written for it: Apollo Router's conditions (`eq`, `gt`, `lt`, `exists`, \
         `not`, `all`, `any`) and `contains` on its selectors, such as `{ exists: { request_header: x-key } }`. Default all.",
    ),
    (
        "url",
        Member::Url,
        "Where it is asked at this stage; default `coprocessor.url`.",
    ),
];

/// The keys of a stage, in the order of [`MEMBERS`].
fn members(at: usize) -> impl Iterator<Item = &'static (&'static str, Member, &'static str)> {
    let own = STAGES[at].1;
    MEMBERS
        .iter()
        .filter(move |(name, ..)| own.contains(name) || EVERYWHERE.contains(name))
}

impl<const AT: usize> Decode for StageHook<AT> {
    fn decode(node: &Node, errors: &mut Errors) -> Option<Self> {
        let mut out = StageSelection::default();
        let (stage, own) = (HOOK_PLACES[AT], STAGES[AT].1);
        let mut condition = None;
        for (key, value) in errors.entries(node)? {
            let mut known = members(AT);
            let Some((_, member, _)) = known.find(|(name, ..)| *name == key.text) else {
                errors.unknown_key(key, own.iter().chain(&EVERYWHERE).copied());
                continue;
            };
            match member {
                Member::Told(of) => *of(&mut out) = bool::decode(value, errors).unwrap_or_default(),
                Member::Context => {
                    out.context = ContextWord::decode(value, errors).unwrap_or_default();
                }
                Member::Condition => condition = Some(value),
                Member::Url => out.url = Option::decode(value, errors).flatten(),
            }
        }
        // Entries of the context are called there as they are told.
        let has_old_names = out.context == ContextWord::Deprecated;
        if let Some(node) = condition {
            out.condition = HookCondition::decode_at(node, stage, has_old_names, errors);
        }
        Some(StageHook(out))
    }
}

impl<const AT: usize> Describe for StageHook<AT> {
    fn describe(&self, path: &str, _: &[&str], rows: &mut Vec<OptionRow>) {
        for (name, member, doc) in members(AT) {
            let (at, doc) = (join(path, name), [*doc]);
            match member {
                Member::Told(_) => false.describe(&at, &doc, rows),
                Member::Context => ContextWord::Nothing.describe(&at, &doc, rows),
                Member::Condition => None::<HookCondition>.describe(&at, &doc, rows),
                Member::Url => None::<Url>.describe(&at, &doc, rows),
            }
        }
    }
}

impl<const REQUEST: usize, const RESPONSE: usize> Decode for StageHooks<REQUEST, RESPONSE> {
    fn decode(node: &Node, errors: &mut Errors) -> Option<Self> {
        let [request, response] = crate::decode::fields(node, ["request", "response"], errors)?;
        let mut hooks = StageHooks::default();
        if let Some(node) = request {
            hooks.request = StageHook::decode(node, errors)?;
        }
        if let Some(node) = response {
            hooks.response = StageHook::decode(node, errors)?;
        }
        Some(hooks)
    }
}

impl<const REQUEST: usize, const RESPONSE: usize> Describe for StageHooks<REQUEST, RESPONSE> {
    fn describe(&self, path: &str, doc: &[&str], rows: &mut Vec<OptionRow>) {
        self.request.describe(&join(path, "request"), doc, rows);
        self.response.describe(&join(path, "response"), doc, rows);
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

impl StageSelection {
    /// Whether anything is told. When, and where it is asked, is no telling.
    pub fn is_on(&self) -> bool {
        let nothing = StageSelection {
            condition: self.condition.clone(),
            url: self.url.clone(),
            ..StageSelection::default()
        };
        *self != nothing
    }
}

impl CoprocessorOptions {
    /// The stages at which something is told, by their names in the protocol.
    pub fn stages(&self) -> Vec<(&'static str, StageSelection)> {
        let all = &self.subgraph.all;
        let selections = [
            &self.router.request.0,
            &self.router.response.0,
            &self.supergraph.request.0,
            &self.supergraph.response.0,
            &self.execution.request.0,
            &self.execution.response.0,
            &all.request.0,
            &all.response.0,
        ];
        let stages = STAGES.iter().zip(selections);
        stages
            .filter(|(_, selection)| selection.is_on())
            .map(|((name, _), selection)| (*name, selection.clone()))
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
            .map(|options| options.router.request.0.context)
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

    /// Of each stage the page has a row with what it can select, but for `batch`, which has a section.
    #[test]
    fn the_page_says_what_stages_can_select() {
        let page = include_str!("../../../docs/coprocessors.md");
        let (_, table) = page.split_once("a stage can select").unwrap();
        let table = table.split("\n\n").nth(1).unwrap();
        for (stage, own) in STAGES {
            let (service, way) = stage.split_at(stage.find("Re").unwrap());
            let service = service.to_lowercase().replace("subgraph", "subgraph.all");
            let name = format!("`{service}.{}`", way.to_lowercase());
            let row = table.lines().find(|row| row.contains(&name)).unwrap();
            let mut shown: Vec<&str> = row.rsplit('|').nth(1).unwrap().split(',').collect();
            shown
                .iter_mut()
                .for_each(|key| *key = key.trim().trim_matches('`'));
            shown.sort_unstable();
            let mut own: Vec<&str> = own.iter().copied().filter(|key| *key != "batch").collect();
            own.sort_unstable();
            assert_eq!(shown, own, "{stage}");
        }
    }

    #[test]
    fn conditions_look_at_what_there_is_at_their_stage() {
        let at = |stage: &str, condition: &str| {
            let ends = "}".repeat(stage.matches('{').count());
            load(&format!(
                "url: 'http://localhost:1/', {stage}: {{ condition: {condition}, headers: true }} {ends}"
            ))
        };
        let stages = [
            "router: { request",
            "router: { response",
            "supergraph: { request",
            "supergraph: { response",
            "execution: { request",
            "execution: { response",
            "subgraph: { all: { request",
            "subgraph: { all: { response",
        ];
        let text = |selector: &str| format!("{{ exists: {{ {selector} }} }}");
        for (selector, expected) in [
            ("request_header: X-Key", "++++++++"),
            ("supergraph_request_header: X-Key", "++++++++"),
            ("request_method: true", "++++++++"),
            ("request_context: 'a::b'", "++++++++"),
            ("jwt_claim: sub", "++++++++"),
            ("client_name: true", "++++++++"),
            ("operation_name: string", "-+++++++"),
            ("operation_kind: true", "-+++++++"),
            ("supergraph_operation_name: true", "-+++++++"),
            ("supergraph_operation_kind: string", "-+++++++"),
            (
                "request_context: 'apollo::supergraph::operation_name'",
                "-+++++++",
            ),
            (
                "request_context: 'apollo::supergraph::operation_kind'",
                "-+++++++",
            ),
            (
                "request_context: 'apollo::authorization::required_policies'",
                "-+++++++",
            ),
            ("request_context: operation_name", "++++++++"),
            ("response_context: a", "-+-+-+-+"),
            ("response_header: a", "-+-+-+-+"),
            ("response_status: code", "-+-+-+-+"),
            ("on_graphql_error: true", "-+-+-+-+"),
            ("subgraph_name: true", "------++"),
            ("subgraph_request_header: a", "------+-"),
            ("subgraph_response_header: a", "-------+"),
            ("subgraph_response_status: code", "-------+"),
        ] {
            let is_good = |stage: &&str| at(stage, &text(selector)).is_ok();
            let found = stages
                .iter()
                .map(|stage| if is_good(stage) { '+' } else { '-' });
            assert_eq!(found.collect::<String>(), expected, "{selector}");
        }
        let old = "{ exists: { request_context: operation_name } }, context: true";
        assert!(at("router: { request", old).is_err());
        assert!(at("supergraph: { request", old).is_ok());
        let late = at("router: { request", &text("operation_name: true")).unwrap_err();
        assert_eq!(
            late,
            "`operation_name` says nothing in `coprocessor.router.request` and `receive` of components"
        );
    }

    #[test]
    fn conditions_are_written_in_the_words_of_apollo_router() {
        let at = |condition: &str| {
            load(&format!(
                "url: 'http://localhost:1/', router: {{ request: {{ condition: {condition}, headers: true }} }}"
            ))
        };
        for good in [
            "{ eq: [{ request_context: 'a::b' }, 1] }",
            "{ any: [{ gt: [{ request_header: n }, 5] }, { not: { lt: [1, { request_header: n }] } }] }",
        ] {
            assert!(at(good).is_ok(), "{good}");
        }
        for bad in [
            "{ exists: { baggage: a } }",
            "{ eq: [1, 1] }",
            "{ eq: [{ request_context: '' }, 1] }",
            "true",
        ] {
            assert!(at(bad).is_err(), "{bad}");
        }
        let rule = "limits: { operation_rules: [{ refuse: mutations, when: { exists: { request_context: a } } }] }\n";
        assert!(crate::load(SourceId(0), rule, &|_| None).is_err());
    }
}
