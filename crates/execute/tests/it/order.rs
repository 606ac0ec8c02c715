//! When fetches start, and that the answer does not depend on who is first.

use ogive_plan::{OperationKind, Plan};

use crate::{
    fixture::{Builder, lookup},
    script::{Script, Setup, ok, run_with, text, unreachable},
};

/// slow and fast root fetches from a and b; the fast one is followed by a look-up in c.
fn two_speeds() -> Plan {
    let mut b = Builder::new(&["a", "b", "c"], &["Query", "User"]);
    b.leaf(Plan::ROOT, "slow", "Int");
    let user = b.object(Plan::ROOT, "user", "User", &["User"]);
    b.hidden(user, "id");
    b.leaf(user, "name", "String");
    b.root(0, "{slow}", &[("slow", None)]);
    let key = b.shape(user, &[("id", None)]);
    let fast = b.root(1, "{user{id}}", &[("user", Some(key))]);
    let shape = b.shape(user, &[("name", None)]);
    let target = b.target(user, &["id"], shape);
    b.fetch(2, "{}", &[fast], vec![lookup(vec![target])]);
    b.build()
}

#[test]
fn a_fetch_waits_for_its_own_dependencies_only() {
    let script = Script::new(vec![
        vec![ok(r#"{"data":{"slow":1}}"#).after(20)],
        vec![ok(r#"{"data":{"user":{"id":1}}}"#).after(2)],
        vec![ok(r#"{"data":{"_entities":[{"name":"n"}]}}"#).after(2)],
    ]);
    let output = run_with(&two_speeds(), &Setup::default(), &script);
    assert_eq!(*script.done.borrow(), [1, 2, 0]);
    assert_eq!(script.in_flight_max.get(), 2);
    assert_eq!(text(output), r#"{"data":{"slow":1,"user":{"name":"n"}}}"#);
}

#[test]
fn errors_come_in_plan_order_whoever_failed_first() {
    let responses = [(0, 9), (9, 0)].map(|(first, second)| {
        let script = Script::new(vec![
            vec![unreachable().after(first)],
            vec![ok(r#"{"errors":[{"message":"e"}]}"#).after(second)],
            vec![],
        ]);
        text(run_with(&two_speeds(), &Setup::default(), &script))
    });
    assert_eq!(responses[0], responses[1]);
    let json: serde_json::Value = serde_json::from_str(&responses[0]).unwrap();
    assert_eq!(json["errors"][0]["path"], serde_json::json!(["slow"]));
    assert_eq!(json["errors"][1]["path"], serde_json::json!(["user"]));
}

#[test]
fn mutations_run_one_after_another() {
    let mut b = Builder::new(&["a", "b"], &["Mutation"]);
    b.plan.kind = OperationKind::Mutation;
    b.leaf(Plan::ROOT, "one", "Int");
    b.leaf(Plan::ROOT, "two", "Int");
    b.leaf(Plan::ROOT, "three", "Int");
    let mut last = None;
    for (subgraph, name) in [(0, "one"), (1, "two"), (0, "three")] {
        let shape = b.shape(Plan::ROOT, &[(name, None)]);
        let dependencies: Vec<_> = last.into_iter().collect();
        let id = b.fetch(subgraph, name, &dependencies, Vec::new());
        b.plan.fetches[id].root = Some(ogive_plan::RootPart {
            cond: ogive_plan::Cond::TRUE,
            shape,
        });
        last = Some(id);
    }
    let plan = b.build();
    let script = Script::new(vec![
        vec![
            ok(r#"{"data":{"one":1}}"#).after(5),
            ok(r#"{"data":{"three":3}}"#).after(5),
        ],
        vec![unreachable()],
    ]);
    let output = run_with(&plan, &Setup::default(), &script);
    assert_eq!(script.in_flight_max.get(), 1);
    assert_eq!(*script.idempotent.borrow(), [false; 3]);
    assert_eq!(
        script
            .sent()
            .iter()
            .map(|sent| sent.1.as_str())
            .collect::<Vec<_>>(),
        [
            r#"{"query":"one"}"#,
            r#"{"query":"two"}"#,
            r#"{"query":"three"}"#
        ]
    );
    assert_eq!(
        text(output),
        concat!(
            r#"{"data":{"one":1,"two":null,"three":3},"errors":[{"message":"The subgraph could not be reached.","#,
            r#""path":["two"],"extensions":{"code":"SUBREQUEST_HTTP_ERROR"}}]}"#
        )
    );
}
