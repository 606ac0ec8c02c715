//! What coprocessors, scripts and components end, at every stage, with 200, 401 and 500. `docs/faults.md` has the table.

use serde_json::json;

use super::{Coprocessed, EVERYTHING, ME, STAGES, all_of, is_of_subgraph, playing};
use crate::{faults::telling, http_client::Answer};

/// The statuses that requests are ended with.
pub(crate) const STATUSES: [u16; 3] = [200, 401, 500];

/// A stage, whether a subgraph is asked if something ends there, and the stages that see what it ends with.
pub(crate) const ENDINGS: [(&str, bool, &[&str]); 8] = [
    ("RouterRequest", false, &[]),
    ("SupergraphRequest", false, &["RouterResponse"]),
    (
        "ExecutionRequest",
        false,
        &["SupergraphResponse", "RouterResponse"],
    ),
    (
        "SubgraphRequest",
        false,
        &["ExecutionResponse", "SupergraphResponse", "RouterResponse"],
    ),
    (
        "SubgraphResponse",
        true,
        &["ExecutionResponse", "SupergraphResponse", "RouterResponse"],
    ),
    (
        "ExecutionResponse",
        true,
        &["SupergraphResponse", "RouterResponse"],
    ),
    ("SupergraphResponse", true, &["RouterResponse"]),
    ("RouterResponse", true, &[]),
];

/// What the client's response is, if something is ended with a status at a stage.
pub(crate) fn status_of(stage: &str, status: u16) -> u16 {
    if is_of_subgraph(stage) { 200 } else { status }
}

/// No cache stores what a hook ended without a word of caches; at a stage of a subgraph the rest is answered as ever.
fn assert_not_stored(stage: &str, answer: &Answer) {
    if !is_of_subgraph(stage) {
        assert_eq!(answer.header("cache-control"), Some("no-store"), "{stage}");
    }
}

#[test]
fn requests_end_at_every_stage_with_every_status() {
    telling::listen();
    for on_error in ["fail", "continue"] {
        for (stage, asks, _) in ENDINGS {
            for status in STATUSES {
                let coprocessor = playing(move |_| {
                    json!({
                        "control": { "break": status },
                        "headers": { "x-ended": ["1"] },
                        "body": { "errors": [{ "message": "no", "extensions": { "code": "ENDED" } }] },
                    })
                });
                let more = format!("on_error: {on_error}\n  {}", all_of(stage));
                let shown = "include_subgraph_errors: { all: true }\ntelemetry: { request_id: { enabled: true } }\n";
                let with = Coprocessed::with(coprocessor, &more, shown);
                with.graph
                    .service
                    .configure("accounts", |settings| settings.record = true);
                let id = format!("told-end-{on_error}-{stage}-{status}");
                let answer = with.ask(ME, &[("x-request-id", &id)]);
                // At a stage of a subgraph it is told as an error of the subgraph would be.
                let lines = telling::told(&id);
                assert_eq!(
                    lines.len(),
                    usize::from(is_of_subgraph(stage)),
                    "{lines:#?}"
                );
                assert_eq!(answer.codes(), ["ENDED"], "{stage} {status}");
                assert_eq!(answer.status, status_of(stage, status), "{stage} {status}");
                let said = (!is_of_subgraph(stage)).then_some("1");
                assert_eq!(answer.header("x-ended"), said, "{stage}");
                assert_not_stored(stage, &answer);
                let asked = with.graph.service.recorded().len();
                assert_eq!(asked, usize::from(asks), "{stage} {status}");
                assert_eq!(with.stages(), [stage]);
            }
        }
    }
}

#[test]
fn stages_further_out_see_what_a_request_ends_with() {
    for (at, (stage, _, after)) in ENDINGS.into_iter().enumerate() {
        for status in STATUSES {
            let coprocessor = playing(move |told| {
                if told["stage"] == stage {
                    let body = json!({ "errors": [{ "message": "no" }] });
                    json!({ "control": { "break": status }, "body": body })
                } else {
                    json!({})
                }
            });
            let with = Coprocessed::with(coprocessor, EVERYTHING, "");
            assert_eq!(with.ask(ME, &[]).status, status_of(stage, status));
            let expected = STAGES[..=at].iter().chain(after);
            let expected: Vec<&str> = expected.copied().collect();
            assert_eq!(with.stages(), expected, "{stage} {status}");
            for told in &with.told()[at + 1..] {
                assert_eq!(told["statusCode"], status_of(stage, status), "{stage}");
            }
        }
    }
}

#[test]
fn scripts_end_requests_at_every_stage_with_every_status() {
    for (stage, asks, _) in ENDINGS {
        for status in STATUSES {
            let (service, way) =
                stage.split_at(stage.len() - if stage.ends_with("Request") { 7 } else { 8 });
            let way = format!("map_{}", way.to_lowercase());
            let service = service.to_lowercase();
            let parameters = if service == "subgraph" {
                "service, subgraph"
            } else {
                "service"
            };
            let script = format!(
                "fn {service}_service({parameters}) {{ service.{way}(|message| {{ \
                 message.headers[\"x-internal\"] = \"1\"; throw #{{ status: {status}, message: \"not you\" }}; }}); }}"
            );
            let script = script.replace(
                "message.headers",
                if stage == "SubgraphRequest" {
                    "message.subgraph.headers"
                } else {
                    "message.headers"
                },
            );
            let graph = crate::scripts::with(&script, "include_subgraph_errors: { all: true }\n");
            graph
                .service
                .configure("accounts", |settings| settings.record = true);
            let answer = crate::http_client::post_with(graph.address(), ME, &[]);
            assert_eq!(answer.codes(), ["SCRIPT_BREAK"], "{stage} {status}");
            assert_eq!(answer.status, status_of(stage, status), "{stage} {status}");
            assert_eq!(answer.json()["errors"][0]["message"], "not you", "{stage}");
            assert_eq!(answer.header("x-internal"), None, "{stage}");
            assert_not_stored(stage, &answer);
            let asked = graph.service.recorded().len();
            assert_eq!(asked, usize::from(asks), "{stage} {status}");
        }
    }
}
