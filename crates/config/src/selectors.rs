//! Selectors: how rules name a value of a request. One language for header rules, rates, policies, labels, hooks, log fields
//! and whatever else decides by who asks what, or tells of it.
//!
//! ```yaml
//! { jwt_claim: org.plan }
//! ```
//!
//! One table ([`SELECTORS`]) says how each is written, in our word and in those of Apollo Router, and at which [`Place`] it says
//! something. Where it never could it is refused. The page `docs/selectors.md` is made from it.

use std::fmt::Write;

use ogive_selectors::Selector;
use ogive_yaml::{Node, Value};

use crate::decode::{Decode, Errors};

/// Where selectors are written: a place knows some of what there is to know of a request.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Place {
    /// `authorization.policies.rules`: decided by who asks, whatever is asked.
    Policy,
    /// `headers…request.insert.from`.
    Header,
    /// Conditions and templates of header rules, and conditions of `override_subgraph_urls`.
    SubgraphRule,
    /// `traffic_shaping.…request_extensions`.
    Extension,
    /// `override_labels.sticky_by`.
    Label,
    /// `traffic_shaping.router.overload.classes`: before it is known what is asked.
    Overload,
    /// Conditions of rates, and rules of operations.
    Operation,
    /// Keys of rates.
    RateKey,
    /// `coprocessor.router.request`.
    RouterRequest,
    /// `coprocessor.router.response`.
    RouterResponse,
    /// `coprocessor.supergraph.request`.
    SupergraphRequest,
    /// `coprocessor.supergraph.response`.
    SupergraphResponse,
    /// `coprocessor.execution.request`.
    ExecutionRequest,
    /// `coprocessor.execution.response`.
    ExecutionResponse,
    /// `coprocessor.subgraph.all.request`.
    SubgraphRequest,
    /// `coprocessor.subgraph.all.response`.
    SubgraphResponse,
    /// Attributes of a request: access log, `spans.router`, `instruments.router`.
    RequestAttribute,
    /// Attributes of an operation: `spans.supergraph`, `instruments.supergraph`.
    OperationAttribute,
    /// Attributes of a request to a subgraph: `spans.subgraph`, `instruments.subgraph`.
    SubgraphAttribute,
}

use Place as P;

impl Place {
    /// All of them.
    pub const ALL: [Place; 19] = [
        P::Policy,
        P::Header,
        P::SubgraphRule,
        P::Extension,
        P::Label,
        P::Overload,
        P::Operation,
        P::RateKey,
        P::RouterRequest,
        P::RouterResponse,
        P::SupergraphRequest,
        P::SupergraphResponse,
        P::ExecutionRequest,
        P::ExecutionResponse,
        P::SubgraphRequest,
        P::SubgraphResponse,
        P::RequestAttribute,
        P::OperationAttribute,
        P::SubgraphAttribute,
    ];
    /// What it is called for people.
    pub fn shown(self) -> &'static str {
        match self {
            P::Policy => "policies",
            P::Header => "header rules",
            P::SubgraphRule => "conditions and templates of header rules and URLs",
            P::Extension => "request extensions",
            P::Label => "override labels",
            P::Overload => "overload classes",
            P::Operation => "conditions of rates and operation rules",
            P::RateKey => "keys of rates",
            P::RouterRequest => "`coprocessor.router.request` and `receive` of components",
            P::RouterResponse => "`coprocessor.router.response` and `respond` of components",
            P::SupergraphRequest => {
                "`coprocessor.supergraph.request` and `operation` of components"
            }
            P::SupergraphResponse => "`coprocessor.supergraph.response` and `answer` of components",
            P::ExecutionRequest => "`coprocessor.execution.request` and `plan` of components",
            P::ExecutionResponse => "`coprocessor.execution.response` and `executed` of components",
            P::SubgraphRequest => {
                "`coprocessor.subgraph.all.request` and `subgraph_request` of components"
            }
            P::SubgraphResponse => {
                "`coprocessor.subgraph.all.response` and `subgraph_response` of components"
            }
            P::RequestAttribute => "attributes of requests",
            P::OperationAttribute => "attributes of operations",
            P::SubgraphAttribute => "attributes of requests to subgraphs",
        }
    }
    /// Why a selector says nothing there.
    fn knows(self) -> &'static str {
        match self {
            P::Policy => "policies are decided by claims alone, whatever is asked",
            P::Header => {
                "headers of the client are propagated, and nothing of a response is known yet"
            }
            P::Overload => "classes are decided on before it is known what is asked",
            P::RouterRequest => "nobody has read the body at this stage",
            P::SubgraphResponse | P::SubgraphAttribute => {
                "it is about one request to a subgraph and its answer"
            }
            P::RequestAttribute | P::OperationAttribute => {
                "requests to subgraphs have attributes of their own (`subgraph`)"
            }
            P::SubgraphRequest => "there is no answer yet",
            P::SupergraphRequest | P::ExecutionRequest => "there is no response yet",
            P::Operation | P::RateKey | P::Label | P::Extension | P::SubgraphRule => {
                "it is decided before a subgraph is asked, and without a coprocessor's context"
            }
            P::RouterResponse | P::SupergraphResponse | P::ExecutionResponse => {
                "it is about the client's request and its response"
            }
        }
    }
}

/// Places as bits.
const fn bits(places: &[Place]) -> u32 {
    let (mut out, mut at) = (0, 0);
    while at < places.len() {
        out |= 1 << places[at] as u32;
        at += 1;
    }
    out
}

const ALL: u32 = bits(&Place::ALL);
const HOOK_REQUESTS: u32 = bits(&[
    P::RouterRequest,
    P::SupergraphRequest,
    P::ExecutionRequest,
    P::SubgraphRequest,
]);
const HOOK_RESPONSES: u32 = bits(&[
    P::RouterResponse,
    P::SupergraphResponse,
    P::ExecutionResponse,
    P::SubgraphResponse,
]);
const HOOKS: u32 = HOOK_REQUESTS | HOOK_RESPONSES;
const OF_SUBGRAPH: u32 = bits(&[
    P::SubgraphRequest,
    P::SubgraphResponse,
    P::SubgraphAttribute,
]);
const ATTRIBUTES: u32 = bits(&[
    P::RequestAttribute,
    P::OperationAttribute,
    P::SubgraphAttribute,
]);
const EARLY: u32 = bits(&[P::Policy, P::Overload, P::RouterRequest]);

/// What is written behind the word of a selector.
enum Argument {
    /// `true`, or this word of Apollo Router.
    Flag(&'static str, Selector),
    /// A name.
    Name(fn(String) -> Selector),
    /// The name of a header.
    Header(fn(String) -> Selector),
}

use Argument::{Flag, Header, Name};

/// One selector: its words with the places where each says something, ours first, and what is written behind them.
struct Row {
    words: &'static [(&'static str, u32)],
    argument: Argument,
    doc: &'static str,
}

const HEADERS: u32 = ALL & !bits(&[P::Policy, P::Header]);
const CLIENT: u32 = ALL & !bits(&[P::Policy]);
const OPERATION: u32 = ALL & !EARLY;
const CONTEXT: u32 = HOOKS | ATTRIBUTES;
const ANSWER: u32 = HOOK_RESPONSES | bits(&[P::RequestAttribute]);
const SUBGRAPH_ANSWER: u32 = bits(&[P::SubgraphResponse, P::SubgraphAttribute]);

/// Every selector.
static SELECTORS: [Row; 16] = [
    Row {
        words: &[("jwt_claim", ALL)],
        argument: Name(Selector::JwtClaim),
        doc: "what the caller claims; a dot leads into an object",
    },
    Row {
        words: &[
            ("request_header", HEADERS),
            ("supergraph_request_header", HEADERS),
        ],
        argument: Header(Selector::RequestHeader),
        doc: "the first header of that name of the client's request",
    },
    Row {
        words: &[("client_name", CLIENT)],
        argument: Flag("string", Selector::ClientName),
        doc: "what the client says it is called (`telemetry.clients`)",
    },
    Row {
        words: &[("client_version", CLIENT)],
        argument: Flag("string", Selector::ClientVersion),
        doc: "the version that it says it has",
    },
    Row {
        words: &[("client_address", CLIENT)],
        argument: Flag("string", Selector::ClientAddress),
        doc: "its address, or that which a trusted proxy names",
    },
    Row {
        words: &[
            ("operation_name", OPERATION),
            ("supergraph_operation_name", OPERATION),
        ],
        argument: Flag("string", Selector::OperationName),
        doc: "the name of the operation",
    },
    Row {
        words: &[
            ("operation_kind", OPERATION),
            ("supergraph_operation_kind", OPERATION),
        ],
        argument: Flag("string", Selector::OperationKind),
        doc: "`query`, `mutation` or `subscription`",
    },
    Row {
        words: &[("request_method", CONTEXT)],
        argument: Flag("true", Selector::RequestMethod),
        doc: "the method of the HTTP request",
    },
    Row {
        words: &[
            ("request_context", CONTEXT),
            (
                "response_context",
                HOOK_RESPONSES | bits(&[P::RequestAttribute]),
            ),
        ],
        argument: Name(Selector::RequestContext),
        doc: "an entry of the context, which coprocessors and scripts write",
    },
    Row {
        words: &[("subgraph_name", OF_SUBGRAPH)],
        argument: Flag("true", Selector::SubgraphName),
        doc: "the name of the subgraph",
    },
    Row {
        words: &[(
            "subgraph_request_header",
            bits(&[P::SubgraphRequest, P::SubgraphAttribute]),
        )],
        argument: Header(Selector::SubgraphRequestHeader),
        doc: "the first header of that name towards the subgraph",
    },
    Row {
        words: &[
            ("response_header", ANSWER),
            ("subgraph_response_header", SUBGRAPH_ANSWER),
        ],
        argument: Header(Selector::ResponseHeader),
        doc: "the first header of that name of the response",
    },
    Row {
        words: &[
            ("response_status", ANSWER),
            ("subgraph_response_status", SUBGRAPH_ANSWER),
        ],
        argument: Flag("code", Selector::ResponseStatus),
        doc: "its HTTP status",
    },
    Row {
        words: &[(
            "on_graphql_error",
            HOOK_RESPONSES | bits(&[P::RequestAttribute, P::OperationAttribute]),
        )],
        argument: Flag("true", Selector::OnGraphqlError),
        doc: "`true` if the response has errors, else `false`",
    },
    Row {
        words: &[(
            "is_primary_response",
            bits(&[
                P::RouterResponse,
                P::SupergraphResponse,
                P::ExecutionResponse,
            ]),
        )],
        argument: Flag("true", Selector::IsPrimaryResponse),
        doc: "`true` for a whole response or the first part of one, `false` for later parts and for events",
    },
    Row {
        words: &[("component", bits(&[P::RateKey]))],
        argument: Name(Selector::Component),
        doc: "what a component of `plugins` says an operation is counted by",
    },
];

impl Row {
    fn is_of(&self, selector: &Selector) -> bool {
        match &self.argument {
            Flag(_, flag) => flag == selector,
            Name(make) | Header(make) => {
                std::mem::discriminant(&make(String::new())) == std::mem::discriminant(selector)
            }
        }
    }
    /// Whether one of its words says something at a place.
    fn is_known_at(&self, place: Place) -> bool {
        self.words
            .iter()
            .any(|(_, places)| places & bits(&[place]) != 0)
    }
    /// Why it says nothing there.
    fn unknown_at(&self, place: Place) -> &'static str {
        let is_request = HOOK_REQUESTS & bits(&[place]) != 0;
        if !is_request || (place == P::RouterRequest && self.is_known_at(P::SupergraphRequest)) {
            return place.knows();
        }
        let is_of_response = Place::ALL
            .iter()
            .any(|one| HOOK_RESPONSES & bits(&[*one]) != 0 && self.is_known_at(*one));
        match place {
            _ if !is_of_response && !self.is_known_at(P::SubgraphRequest) => {
                "only keys of rates look at it"
            }
            P::SubgraphRequest => place.knows(),
            _ if self.is_known_at(P::SubgraphRequest) => "no subgraph is asked yet at this stage",
            _ => "there is no response yet",
        }
    }
    fn example(&self, word: &str) -> String {
        match self.argument {
            Flag(..) => format!("{word}: true"),
            Name(_) => format!("{word}: NAME"),
            Header(_) => format!("{word}: x-name"),
        }
    }
}

/// The words that say something at a place.
fn words(place: Place) -> impl Iterator<Item = &'static str> + Clone {
    let words = SELECTORS.iter().flat_map(|row| row.words);
    let here = move |(_, places): &&(&str, u32)| places & bits(&[place]) != 0;
    words.filter(here).map(|(word, _)| *word)
}

/// How a selector is written.
pub(crate) fn word_of(selector: &Selector) -> &'static str {
    let row = SELECTORS.iter().find(|row| row.is_of(selector));
    row.and_then(|row| row.words.first())
        .map_or("", |(word, _)| word)
}

/// Whether a selector can say something at a place.
pub(crate) fn is_known_at(selector: &Selector, place: Place) -> bool {
    let mut rows = SELECTORS.iter().filter(|row| row.is_of(selector));
    let here = |(_, places): &(&str, u32)| places & bits(&[place]) != 0;
    rows.any(|row| row.words.iter().any(here))
}

/// What is read in another way at each place.
pub(crate) trait DecodeIn: Sized {
    /// Reads one that is written at a place. `None` if it says nothing there, which is reported.
    fn decode_at(node: &Node, place: Place, errors: &mut Errors) -> Option<Self>;
}

impl DecodeIn for Selector {
    fn decode_at(node: &Node, place: Place, errors: &mut Errors) -> Option<Self> {
        let entries = errors.entries(node)?;
        let [(key, body)] = entries else {
            let message = "a selector names one value of a request";
            errors.invalid(node.span, message, "such as `{ jwt_claim: sub }`");
            return None;
        };
        let all = SELECTORS.iter();
        let mut all = all.flat_map(|row| row.words.iter().map(move |word| (row, word)));
        let Some((row, (word, places))) = all.find(|(_, (word, _))| *word == key.text) else {
            errors.unknown_key(key, words(place));
            return None;
        };
        if places & bits(&[place]) == 0 {
            let message = format!("`{word}` says nothing in {}", place.shown());
            let known: Vec<&str> = words(place).collect();
            let help = format!(
                "{}; there are `{}`",
                row.unknown_at(place),
                known.join("`, `")
            );
            errors.invalid(key.span, message, &help);
            return None;
        }
        match &row.argument {
            Header(make) => crate::decode::header_name(body, errors).map(make),
            Name(make) => {
                let text = errors.scalar(body, "a text")?;
                if text.trim_start_matches('.').is_empty() {
                    errors.invalid(node.span, format!("`{word}` needs a name"), "");
                    return None;
                }
                Some(make(text.to_owned()))
            }
            Flag(also, selector) => {
                let text = errors.scalar(body, "a text")?;
                if text != "true" && text != *also {
                    errors.invalid(body.span, format!("write `{word}: true`"), "");
                    return None;
                }
                Some(selector.clone())
            }
        }
    }
}

/// What labels are sticky by: a selector, or the name of a header alone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LabelSelector(pub Selector);

impl Decode for LabelSelector {
    fn decode(node: &Node, errors: &mut Errors) -> Option<Self> {
        let selector = match &node.value {
            Value::Map(_) => Selector::decode_at(node, Place::Label, errors)?,
            _ => Selector::RequestHeader(crate::decode::header_name(node, errors)?),
        };
        Some(LabelSelector(selector))
    }
}

/// Keys of rates.
impl Decode for Selector {
    fn decode(node: &Node, errors: &mut Errors) -> Option<Self> {
        Selector::decode_at(node, Place::RateKey, errors)
    }
}

/// Selectors as a table in Markdown: each with its words and what it says; then by place what says something there.
pub fn page() -> String {
    let mut out = String::from(
        "# Selectors\n\nWhatever decides by who asks what, or tells of it, names a value in the same words: \
         a mapping with one key, such as `{ jwt_claim: sub }`.\n\
         This page is made from the table in `crates/config/src/selectors.rs`.\n\n\
         | selector | also | what it says |\n|---|---|---|\n",
    );
    for row in &SELECTORS {
        let mut words = row.words.iter().map(|(word, _)| *word);
        let first = words.next().unwrap_or_default();
        let others: Vec<String> = words.map(|word| format!("`{word}`")).collect();
        let _ = writeln!(
            out,
            "| `{{ {} }}` | {} | {} |",
            row.example(first),
            others.join(", "),
            row.doc
        );
    }
    out.push_str(
        "\nA selector that can never say anything where it stands is refused when the configuration is read.\n\n\
         | place | what says something there |\n|---|---|\n",
    );
    for place in Place::ALL {
        let here = |(_, places): &&(&str, u32)| places & bits(&[place]) != 0;
        let known = SELECTORS
            .iter()
            .filter_map(|row| row.words.iter().find(here));
        let known: Vec<String> = known.map(|(word, _)| format!("`{word}`")).collect();
        let _ = writeln!(out, "| {} | {} |", place.shown(), known.join(", "));
    }
    out
}

#[cfg(test)]
mod tests {
    use ogive_base::SourceId;

    use super::*;

    /// A configuration in which `SELECTOR` stands at a place, with all that it needs.
    fn text(place: Place) -> String {
        let hook = |stage: &str, way: &str| {
            format!(
                "coprocessor: {{ url: 'http://localhost:1/', {stage}: {{ {way}: {{ headers: true, \
                 condition: {{ exists: SELECTOR }} }} }} }}"
            )
        };
        let of_subgraphs = |way: &str| {
            format!(
                "coprocessor: {{ url: 'http://localhost:1/', subgraph: {{ all: {{ {way}: {{ headers: true, \
                 condition: {{ exists: SELECTOR }} }} }} }} }}"
            )
        };
        match place {
            P::Policy => "POLICY".to_owned(),
            P::Header => {
                "headers: { all: { request: [ { insert: { name: x-a, from: SELECTOR } } ] } }"
                    .to_owned()
            }
            P::SubgraphRule => "headers: { all: { request: [ { insert: { name: x-a, value: b }, \
                                when: { exists: SELECTOR } } ] } }"
                .to_owned(),
            P::Extension => {
                "traffic_shaping: { all: { request_extensions: { a: SELECTOR } } }".to_owned()
            }
            P::Label => "override_labels: { sticky_by: SELECTOR }".to_owned(),
            P::Overload => "traffic_shaping: { router: { overload: { classes: [ { name: a, \
                            when: { exists: SELECTOR } } ] } } }"
                .to_owned(),
            P::Operation => {
                "limits: { operation_rules: [ { refuse: mutations, when: { exists: SELECTOR } } ] }"
                    .to_owned()
            }
            P::RateKey => "plugins: [ { name: NAME, path: a.wasm } ]\n\
                           traffic_shaping: { router: { rate_limits: [ { name: a, key: [ SELECTOR ] } ] } }"
                .to_owned(),
            P::RouterRequest => hook("router", "request"),
            P::RouterResponse => hook("router", "response"),
            P::SupergraphRequest => hook("supergraph", "request"),
            P::SupergraphResponse => hook("supergraph", "response"),
            P::ExecutionRequest => hook("execution", "request"),
            P::ExecutionResponse => hook("execution", "response"),
            P::SubgraphRequest => of_subgraphs("request"),
            P::SubgraphResponse => of_subgraphs("response"),
            P::RequestAttribute => {
                "rhai: { scripts: s }\ntelemetry: { access_log: { attributes: { a: SELECTOR } } }"
                    .to_owned()
            }
            P::OperationAttribute => "rhai: { scripts: s }\ntelemetry: { instrumentation: { spans: { supergraph: { attributes: \
                                      { a: SELECTOR } } } } }"
                .to_owned(),
            P::SubgraphAttribute => "rhai: { scripts: s }\ntelemetry: { instrumentation: { instruments: { subgraph: { \
                                     http.client.request.duration: { attributes: { a: SELECTOR } } } } } }"
                .to_owned(),
        }
    }

    /// What is said of a selector at a place; `None`: nothing, it is taken.
    fn refusal(place: Place, row: &Row, word: &str) -> Option<String> {
        const ALL: &str =
            "authorization: { claims: { header: x-claims, trusted: [unix] }POLICIES }\n";
        let selector = format!("{{ {} }}", row.example(word));
        let text = text(place).replace("SELECTOR", &selector);
        let text = match place {
            P::Policy => {
                let policies = format!(
                    ", directives: enforce, policies: {{ rules: {{ p: {{ exists: {selector} }} }} }}"
                );
                ALL.replace("POLICIES", &policies)
            }
            _ => format!("{}{text}\n", ALL.replace("POLICIES", "")),
        };
        let errors = crate::load(SourceId(0), &text, &|_| None).err()?;
        let first = &errors[0];
        Some(format!(
            "{}: {}",
            first.message,
            first.help.clone().unwrap_or_default()
        ))
    }

    /// Places × selectors: what the table says is taken is taken, and all else is refused with the reason.
    #[test]
    fn every_place_takes_what_says_something_there_and_says_why_it_refuses_the_rest() {
        let mut pairs = 0;
        for place in Place::ALL {
            for row in &SELECTORS {
                for (word, _) in row.words {
                    let known = words(place).any(|known| known == *word);
                    let found = refusal(place, row, word);
                    pairs += 1;
                    match found {
                        None => assert!(known, "{place:?} takes `{word}`"),
                        Some(why) => {
                            assert!(!known, "{place:?} refuses `{word}`: {why}");
                            // Classes are read as conditions of operations, and judged once more.
                            let is_late =
                                place == P::Overload && !words(P::Operation).any(|w| w == *word);
                            let refuser = if is_late { P::Operation } else { place };
                            let says = format!("` says nothing in {}", refuser.shown());
                            let copies = "headers of the client are propagated: write";
                            assert!(
                                why.contains(&says) || why.starts_with(copies),
                                "{place:?} `{word}`: {why}"
                            );
                        }
                    }
                }
            }
        }
        println!("{pairs} pairs of places and selectors");
        assert!(pairs > 300);
    }

    #[test]
    fn reasons_are_those_of_the_place_and_the_selector() {
        let why = |place, word: &str| {
            let mut rows = SELECTORS.iter();
            let row = rows.find(|row| row.words.iter().any(|(w, _)| *w == word));
            refusal(place, row.unwrap(), word).unwrap()
        };
        for (place, word, says) in [
            (
                P::RouterRequest,
                "operation_name",
                "nobody has read the body",
            ),
            (
                P::RouterRequest,
                "response_header",
                "there is no response yet",
            ),
            (
                P::RouterRequest,
                "subgraph_name",
                "no subgraph is asked yet",
            ),
            (
                P::SupergraphRequest,
                "subgraph_name",
                "no subgraph is asked yet",
            ),
            (
                P::SupergraphRequest,
                "response_status",
                "there is no response yet",
            ),
            (
                P::SubgraphRequest,
                "response_header",
                "there is no answer yet",
            ),
            (P::RouterRequest, "component", "only keys of rates"),
        ] {
            let why = why(place, word);
            assert!(why.contains(says), "{place:?} {word}: {why}");
        }
    }

    #[test]
    fn the_page_is_the_table() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/selectors.md");
        ogive_testbase::assert_recorded(path, &page());
    }

    #[test]
    fn labels_are_sticky_by_a_header_as_ever_or_by_a_selector() {
        let of = |by: &str| {
            let text = format!(
                "authorization: {{ claims: {{ header: x-claims, trusted: [unix] }} }}\noverride_labels: {{ sticky_by: {by} }}\n"
            );
            let config = crate::load(SourceId(0), &text, &|_| None).unwrap();
            config.override_labels.sticky_by.unwrap().0
        };
        assert_eq!(of("x-user"), Selector::RequestHeader("x-user".into()));
        assert_eq!(of("{ jwt_claim: sub }"), Selector::JwtClaim("sub".into()));
    }
}
