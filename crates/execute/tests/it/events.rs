//! Subscriptions: one source, and what follows from each event.

use bytes::Bytes;
use ogive_execute::{
    ErrorCode, Event, ExecuteInput, ExecuteLimits, Failure, SubgraphResponse, Transport, execute,
    execute_event, source_request,
};
use ogive_plan::{OperationKind, Plan};

use crate::{
    fixture::{Builder, lookup},
    script::{Script, Setup, block_on, ok, text},
};

/// Reviews come from a; the name of who wrote them from b.
fn reviews() -> Plan {
    let mut b = Builder::new(&["a", "b"], &["Subscription", "User"]);
    b.plan.kind = OperationKind::Subscription;
    let user = b.object(Plan::ROOT, "reviewed", "User", &["User"]);
    b.hidden(user, "id");
    b.leaf(user, "name", "String");
    let key = b.shape(user, &[("id", None)]);
    let source = b.root(0, "subscription{reviewed{id}}", &[("reviewed", Some(key))]);
    b.plan.fetches[source].kind = OperationKind::Subscription;
    let shape = b.shape(user, &[("name", None)]);
    let target = b.target(user, &["id"], shape);
    let follow = b.fetch(1, "{}", &[source], vec![lookup(vec![target])]);
    b.plan.fetches[follow].kind = OperationKind::Query;
    b.build()
}

fn input(setup: &Setup) -> ExecuteInput<'_> {
    ExecuteInput {
        costs: None,
        operation_names: None,
        error_extensions: &[],
        variables: &setup.variables,
        granted: &setup.granted,
        locals: &setup.locals,
        limits: setup.limits,
        options: setup.options,
    }
}

fn event(body: &'static str) -> Event {
    Ok(SubgraphResponse {
        status: 200,
        body: Bytes::from_static(body.as_bytes()),
    })
}

#[test]
fn the_source_is_asked_once_and_the_rest_for_each_event() {
    let (plan, setup) = (reviews(), Setup::default());
    let request = source_request(&plan, &input(&setup)).unwrap();
    assert_eq!((request.subgraph, request.idempotent), (0, false));
    assert_eq!(request.body, r#"{"query":"subscription{reviewed{id}}"}"#);
    let script = Script::new(vec![
        vec![],
        vec![
            ok(r#"{"data":{"_entities":[{"name":"n"}]}}"#),
            ok(r#"{"data":{"_entities":[{"name":"m"}]}}"#),
        ],
    ]);
    let run = |body| {
        let output = execute_event(&plan, input(&setup), &script, event(body));
        text(block_on(output))
    };
    let first = run(r#"{"data":{"reviewed":{"id":1}}}"#);
    assert_eq!(first, r#"{"data":{"reviewed":{"name":"n"}}}"#);
    let second = run(r#"{"data":{"reviewed":{"id":2}}}"#);
    assert_eq!(second, r#"{"data":{"reviewed":{"name":"m"}}}"#);
    let asked: Vec<u32> = script.sent().into_iter().map(|(to, _)| to).collect();
    assert_eq!(asked, [1, 1]);
}

#[test]
fn an_event_that_is_an_error_is_answered_like_a_request_that_failed() {
    let (plan, setup) = (reviews(), Setup::default());
    let broken = Err(Failure::new(
        ErrorCode::SUBREQUEST_HTTP_ERROR,
        "The subgraph could not be reached.",
        "reset",
    ));
    let script = Script::new(vec![vec![], vec![]]);
    let output = block_on(execute_event(&plan, input(&setup), &script, broken));
    assert!(text(output).contains("SUBREQUEST_HTTP_ERROR"));
    assert_eq!(script.failures.borrow()[0].0, "SUBREQUEST_HTTP_ERROR");
}

#[test]
fn a_transport_without_events_says_so() {
    let (plan, setup) = (reviews(), Setup::default());
    let script = Script::new(vec![vec![], vec![]]);
    let request = source_request(&plan, &input(&setup)).unwrap();
    let refused = block_on(script.subscribe(request)).err().unwrap();
    assert_eq!(refused.code, "SUBREQUEST_NO_EVENTS");
}

#[test]
fn a_source_beyond_the_limits_is_not_asked_and_the_response_says_why() {
    let plan = reviews();
    let setup = Setup {
        limits: ExecuteLimits {
            request_bytes_max: 10,
            ..ExecuteLimits::default()
        },
        ..Setup::default()
    };
    assert!(source_request(&plan, &input(&setup)).is_none());
    let script = Script::new(vec![vec![], vec![]]);
    let output = block_on(execute(&plan, input(&setup), &script));
    assert!(text(output).contains("request_bytes_max"));
}
