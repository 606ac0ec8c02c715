//! Everything that subgraphs and clients can do wrong, each with its status, its code and what survives. `docs/faults.md`
//! is made from the same tables, so the page says what the tests have seen.

mod clients;
#[path = "../../../../transport/tests/it/event_faults.rs"]
mod event_faults;
#[cfg(target_os = "linux")]
mod floods;
// They say which core each thread may run on.
#[cfg(target_os = "linux")]
mod machine;
#[cfg(target_os = "linux")]
mod memory;
#[cfg(target_os = "linux")]
mod neighbours;
mod smuggling;
mod subgraphs;
pub(crate) mod telling;

use std::fmt::Write;

use crate::components::{CLAIM_FAULTS, COMPONENT_FAULTS, DECISION_FAULTS};
use crate::coprocessor::{
    endings::{ENDINGS, STATUSES, status_of},
    failing::{COPROCESSOR_FAULTS, FAILED, FAILED_FETCH},
};
use crate::identity::{opaque::UNKNOWN, policies::UNDECIDED, services::FAULTS};
use crate::scripts::SCRIPT_FAULTS;
use crate::{http_client::Answer, subgraph_authentication};

/// What an answer looks like: `200 SUBREQUEST_HTTP_ERROR`, `431` without a body.
pub(crate) fn seen(answer: &Answer) -> String {
    let mut text = answer.status.to_string();
    if !answer.body.is_empty() && answer.header("content-type").is_some() {
        let mut codes = answer.codes();
        codes.dedup();
        if !codes.is_empty() {
            let _ = write!(text, " {}", codes.join(" "));
        }
    }
    text
}

/// Compares what was seen with a table; every difference is told.
pub(crate) fn compare(seen: &[(&str, String, &str)]) {
    let different: Vec<String> = seen
        .iter()
        .filter(|(_, found, expected)| found != expected)
        .map(|(name, found, expected)| format!("{name}\n  expected {expected}\n  found    {found}"))
        .collect();
    assert!(different.is_empty(), "\n{}", different.join("\n"));
}

/// `200 CODE` in two columns.
fn columns(seen: &str) -> String {
    let (status, codes) = seen.split_once(' ').unwrap_or((seen, ""));
    let codes: Vec<String> = codes
        .split(' ')
        .filter(|c| !c.is_empty())
        .map(|c| format!("`{c}`"))
        .collect();
    format!("{status} | {}", codes.join(", "))
}

/// The page of the documentation; `BLESS=1` rewrites it.
#[test]
fn the_page_of_faults_is_up_to_date() {
    let mut page = include_str!("page.md").to_owned();
    page.push_str(
        "\n## Subgraphs\n\n| fault | status | code | what survives |\n|---|---|---|---|\n",
    );
    for case in subgraphs::CASES {
        let _ = writeln!(
            page,
            "| {} | {} | {} |",
            case.fault,
            columns(case.seen),
            case.survives
        );
    }
    page.push_str(
        "\n## Events of subgraphs\n\nWhat becomes of a subscription whose source, a subgraph, has the fault; each row is played in \
         `crates/transport/tests/it/events.rs`, those of callbacks in `crates/e2e/tests/it/subscriptions/callback.rs`.\n\n| fault | code | what becomes of it |\n|---|---|---|\n",
    );
    let called = crate::subscriptions::callback::CALLBACK_FAULTS;
    for (fault, code, what) in event_faults::EVENT_FAULTS.iter().chain(called) {
        let code = if code.is_empty() {
            String::new()
        } else {
            format!("`{code}`")
        };
        let _ = writeln!(page, "| {fault} | {code} | {what} |");
    }
    page.push_str(
        "\n## Message brokers\n\nWhat becomes of a subscription to an event subgraph ([events.md](events.md)); each row is played in \
         `crates/e2e/tests/it/subscriptions/brokers.rs` or `crates/brokers/src/queue.rs`.\n\n| fault | code | what becomes of it |\n|---|---|---|\n",
    );
    for (fault, code, what) in crate::subscriptions::brokers::BROKER_FAULTS {
        let code = if code.is_empty() {
            String::new()
        } else {
            format!("`{code}`")
        };
        let _ = writeln!(page, "| {fault} | {code} | {what} |");
    }
    page.push_str(
        "\n## Token servers\n\nA subgraph that needs a bearer token of the gateway ([subgraph-authentication.md](subgraph-authentication.md)), \
         and a token endpoint with the fault. It is left alone for a second, then two, up to a minute.\n\n\
         | fault | status | code | what survives |\n|---|---|---|---|\n",
    );
    for case in subgraph_authentication::CASES {
        let _ = writeln!(
            page,
            "| {} | {} | {} |",
            case.fault,
            columns(case.seen),
            case.survives
        );
    }
    page.push_str(
        "\n## Identity providers\n\n\
         What a client is answered with a good token of a key that is known, with one of a key that is not, and while no keys \
         have come since the start and none are kept.\n\n\
         | fault | known key | unknown key | no keys yet |\n|---|---|---|---|\n",
    );
    for case in crate::identity::providers::CASES {
        let _ = writeln!(
            page,
            "| {} | {} | {} | {} |",
            case.fault, case.known, case.unknown, case.never
        );
    }
    page.push_str(
        "\n## Issuers that are asked about tokens\n\n\
         What a client is answered with a token that its issuer was asked about before, and with another \
         ([authentication.md](authentication.md#opaque-tokens)).\n\n\
         | fault | known token | other token |\n|---|---|---|\n",
    );
    for case in FAULTS {
        let _ = writeln!(page, "| {} | 200 | {UNKNOWN} |", case.fault);
    }
    page.push_str(
        "\n## Services that decide policies\n\n\
         What a client is answered that asks for what a policy decides about ([authorization.md](authorization.md#policies)), and one \
         that does not.\n\n\
         | fault | asks for it | does not |\n|---|---|---|\n",
    );
    for case in FAULTS {
        let _ = writeln!(page, "| {} | {UNDECIDED} | 200 |", case.fault);
    }
    page.push_str(
        "\n## Hooks that end a request\n\n\
         What the client gets of what a coprocessor ([coprocessors.md](coprocessors.md)), a script ([rhai.md](rhai.md)) or a component \
         ([components.md](components.md)) ends at a stage. The body and the headers are those that it says; if it says a text alone, an \
         error with the code `COPROCESSOR_BREAK`, `SCRIPT_BREAK` or `PLUGIN_BREAK`. Nothing that was made of the request before goes \
         with it, and no cache keeps it unless it says so. At a stage of a subgraph the fields of that request are null, and the \
         others are answered. An end is no fault: the log says no more of it than of an error that a \
         subgraph answers, and nothing at the other stages; `ogive.hook.duration` counts it as `break`.\n\n\
         | ended at | with | the client gets | subgraphs are asked | stages that see it |\n|---|---|---|---|---|\n",
    );
    for (stage, asks, after) in ENDINGS {
        for status in STATUSES {
            let asks = if asks { "yes" } else { "no" };
            let after: Vec<String> = after.iter().map(|stage| format!("`{stage}`")).collect();
            let (got, after) = (status_of(stage, status), after.join(", "));
            let _ = writeln!(page, "| `{stage}` | {status} | {got} | {asks} | {after} |");
        }
    }
    page.push_str(
        "\n## Coprocessors\n\n\
         A coprocessor ([coprocessors.md](coprocessors.md)) with the fault, at every stage, with `on_error: fail`. At the stages of \
         subgraphs the fields of that request are null, and the others are answered; elsewhere the answer has no data, no header of \
         the coprocessor, and `cache-control: no-store`. With `continue` the answer is as if it were not there, unless it is known not \
         to have said that the request goes on: then it ends as with `fail`. One line of the log has the code, the stage and the \
         reason.\n\n\
         | fault | at a stage of a subgraph | at another stage | with `continue` |\n|---|---|---|---|\n",
    );
    for (fault, goes_on) in COPROCESSOR_FAULTS {
        let goes_on = if goes_on {
            "goes on"
        } else {
            "ends all the same"
        };
        let _ = writeln!(page, "| {fault} | {FAILED_FETCH} | {FAILED} | {goes_on} |");
    }
    let _ = writeln!(
        page,
        "| says a body of another kind, where it is read as GraphQL | {FAILED_FETCH} | {FAILED} | goes on |"
    );
    page.push_str(
        "\n## Scripts\n\n\
         A script ([rhai.md](rhai.md)) that does this, at every stage. At the stages of subgraphs the fields of that request are null, and \
         the others are answered; other requests are served as ever.\n\n\
         | fault | at a stage of a subgraph | at another stage |\n|---|---|---|\n",
    );
    for (fault, _, of_request, of_fetch) in SCRIPT_FAULTS {
        let _ = writeln!(page, "| {fault} | {of_fetch} | {of_request} |");
    }
    page.push_str(
        "\n## Components\n\n\
         A WebAssembly component ([components.md](components.md)) that does this. At the stages of subgraphs the fields of that request \
         are null, and the others are answered; other requests are served as ever. With `on_error: continue` what it fails at goes on \
         as if it had not been called, unless it had asked for an end.\n\n\
         | fault | at a stage of a subgraph | at another stage |\n|---|---|---|\n",
    );
    for (fault, _, of_request, of_fetch) in COMPONENT_FAULTS {
        let _ = writeln!(page, "| {fault} | {of_fetch} | {of_request} |");
    }
    page.push_str(
        "\nOne that does it where it decides something, with `on_error: fail`. With `continue` it has said nothing: nobody is known, no \
         policy holds, and rates count by the client's address.\n\n\
         | fault | says who asks | decides policies | says what is counted together |\n|---|---|---|---|\n",
    );
    for (fault, [_, of_caller, of_policies, of_key]) in DECISION_FAULTS {
        let _ = writeln!(page, "| {fault} | {of_caller} | {of_policies} | {of_key} |");
    }
    page.push_str("\nOne that says who asks and gives:\n\n| what | answer |\n|---|---|\n");
    for (fault, _, of_caller) in CLAIM_FAULTS {
        let _ = writeln!(page, "| {fault} | {of_caller} |");
    }
    page.push_str(
        "\n## Clients\n\n| attack | status | code | what survives |\n|---|---|---|---|\n",
    );
    for case in clients::CASES {
        let _ = writeln!(
            page,
            "| {} | {} | {} |",
            case.attack,
            columns(case.seen),
            case.survives
        );
    }
    page.push_str(
        "\n## Clients of subscriptions\n\nWhat clients do wrong over WebSockets (`graphql-transport-ws`), and what they hear: the code of the \
         close frame, or of an error. After each of them other clients are served as ever \
         (`crates/e2e/tests/it/subscriptions`).\n\n| fault | heard | what becomes of it |\n|---|---|---|\n",
    );
    for case in crate::subscriptions::violations::CASES {
        let heard = match case.heard {
            "" => String::new(),
            heard => format!("`{heard}`"),
        };
        let _ = writeln!(page, "| {} | {heard} | {} |", case.fault, case.survives);
    }
    page.push_str(
        "\n## Framing of requests\n\n| request | answers | connection |\n|---|---|---|\n",
    );
    for case in smuggling::CASES {
        let (answers, connection) = case.seen.split_once(", ").unwrap_or((case.seen, ""));
        let _ = writeln!(page, "| {} | {answers} | {connection} |", case.request);
    }
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/faults.md");
    ogive_testbase::assert_recorded(path, &page);
}
