//! One fetch as several requests.

use std::num::NonZeroU32;

use ogive_execute::RequestLimits;
use ogive_plan::{Cond, FetchId, Gate, LayoutId, Plan, RootPart, Segment};

use crate::{
    fixture::{Builder, lookup, lookup_as},
    script::{Answer, Script, Setup, ok, run_with, status, text, unreachable},
};

/// `{ users { name } shop { title } }`: names are looked up by users, titles by the same subgraph.
fn users_and_shop() -> Plan {
    let mut b = Builder::new(&["ids", "names"], &["Query", "User", "Shop"]);
    let users = b.object(Plan::ROOT, "users", "[User]", &["User"]);
    b.hidden(users, "id");
    b.leaf(users, "name", "String");
    let shop = b.object(Plan::ROOT, "shop", "Shop", &["Shop"]);
    b.hidden(shop, "id");
    b.leaf(shop, "title", "String");
    let user = b.shape(users, &[("id", None)]);
    let of_shop = b.shape(shop, &[("id", None)]);
    let keys = [("users", Some(user)), ("shop", Some(of_shop))];
    b.root(0, "{users{id} shop{id}}", &keys);
    let target = |b: &mut Builder, layout: LayoutId, value: &str| {
        let shape = b.shape(layout, &[(value, None)]);
        b.target(layout, &["id"], shape)
    };
    let names = target(&mut b, users, "name");
    let titles = target(&mut b, shop, "title");
    let id = b.fetch(
        1,
        "",
        &[FetchId(0)],
        vec![
            lookup(vec![names]),
            lookup_as("_e1", "representations1", vec![titles]),
        ],
    );
    let gated = |text: &str, lookup: u16| Segment {
        text: text.into(),
        gates: vec![Gate {
            lookup: Some(lookup),
            cond: Cond::TRUE,
        }],
    };
    b.plan.fetches[id].segments = vec![gated("users ", 0), gated("shop ", 1)];
    b.build()
}

const IDS: &str = r#"{"data":{"users":[{"id":1},{"id":2},{"id":3},{"id":1}],"shop":{"id":7}}}"#;

fn limited(most: Option<u32>, split_retry: bool, answers: Vec<Answer>) -> Script {
    limited_with(IDS, most, split_retry, answers)
}

fn limited_with(ids: &str, most: Option<u32>, split_retry: bool, answers: Vec<Answer>) -> Script {
    let mut script = Script::new(vec![vec![ok(ids)], answers]);
    script.limits = RequestLimits {
        representations_max: most.and_then(NonZeroU32::new),
        split_retry,
        ..RequestLimits::default()
    };
    script
}

/// What each request to the second subgraph asks: text and number of representations.
fn asked(script: &Script) -> Vec<String> {
    let of_second = script.sent().into_iter().filter(|(s, _)| *s == 1);
    of_second
        .map(|(_, body)| {
            let json: serde_json::Value = serde_json::from_str(&body).unwrap();
            let n = |name: &str| json["variables"][name].as_array().map_or(0, Vec::len);
            let text = json["query"].as_str().unwrap();
            format!("{text}{} {}", n("representations"), n("representations1"))
        })
        .collect()
}

const WHOLE: &str = r#"{"data":{"users":[{"name":"a"},{"name":"b"},{"name":"c"},{"name":"a"}],"shop":{"title":"t"}}}"#;

#[test]
fn more_representations_than_a_subgraph_takes_are_sent_in_parts() {
    let script = limited(
        Some(2),
        true,
        vec![
            ok(r#"{"data":{"_entities":[{"name":"a"},{"name":"b"}]}}"#).after(3),
            ok(r#"{"data":{"_entities":[{"name":"c"}],"_e1":[{"title":"t"}]}}"#),
        ],
    );
    let output = run_with(&users_and_shop(), &Setup::default(), &script);
    assert_eq!(asked(&script), ["users 2 0", "users shop 1 1"]);
    assert_eq!(output.stats.fetches_sent, 3);
    assert_eq!(text(output), WHOLE);
    assert_eq!(script.in_flight_max.get(), 2, "at the same time");
}

#[test]
fn parts_are_about_equal() {
    let script = limited(
        Some(3),
        true,
        vec![
            ok(r#"{"data":{"_entities":[{"name":"a"},{"name":"b"}]}}"#),
            ok(r#"{"data":{"_entities":[{"name":"c"}],"_e1":[{"title":"t"}]}}"#),
        ],
    );
    run_with(&users_and_shop(), &Setup::default(), &script);
    assert_eq!(
        asked(&script),
        ["users 2 0", "users shop 1 1"],
        "not three and one"
    );
}

#[test]
fn a_part_that_fails_leaves_the_others_alone() {
    let script = limited(
        Some(2),
        true,
        vec![
            unreachable(),
            ok(r#"{"data":{"_entities":[{"name":"c"}],"_e1":[{"title":"t"}]}}"#),
        ],
    );
    let response = text(run_with(&users_and_shop(), &Setup::default(), &script));
    assert!(
        response.contains(r#""users":[{"name":null},{"name":null},{"name":"c"},{"name":null}],"shop":{"title":"t"}"#),
        "{response}"
    );
}

const FAILED: &str = r#"{"data":null,"errors":[{"message":"poison"}]}"#;

#[test]
fn a_request_that_fails_as_a_whole_is_sent_again_in_pieces() {
    for failure in [ok(FAILED), status(500, FAILED)] {
        let script = limited(
            None,
            true,
            vec![
                failure,
                ok(FAILED),
                ok(r#"{"data":{"_e1":[{"title":"t"}]}}"#),
            ],
        );
        let response = text(run_with(&users_and_shop(), &Setup::default(), &script));
        assert_eq!(asked(&script), ["users shop 3 1", "users 3 0", "shop 0 1"]);
        assert!(response.contains(r#""shop":{"title":"t"}"#), "{response}");
        assert_eq!(response.matches("message").count(), 4, "{response}");
        for at in 0..4 {
            let path = format!(r#""path":["users",{at},"name"]"#);
            assert!(response.contains(&path), "{response}");
        }
    }
}

#[test]
fn other_failures_are_final() {
    // No GraphQL response, a refused request, no answer, part of the data, or the subgraph does not want it.
    let partial = r#"{"data":{"_entities":null,"_e1":[{"title":"t"}]},"errors":[{"message":"x"}]}"#;
    for (failure, split) in [
        (status(502, "bad gateway"), true),
        (ok(r#"{"errors":[{"message":"who are you"}]}"#), true),
        (unreachable(), true),
        (ok(partial), true),
        (ok(FAILED), false),
    ] {
        let script = limited(None, split, vec![failure]);
        let output = run_with(&users_and_shop(), &Setup::default(), &script);
        assert_eq!(output.stats.fetches_sent, 2);
        assert!(output.errors > 0);
    }
}

/// `{ users { name } count }`: the subgraph that knows names counts, too, in the same request.
fn users_and_count() -> Plan {
    let mut b = Builder::new(&["ids", "names"], &["Query", "User"]);
    let users = b.object(Plan::ROOT, "users", "[User]", &["User"]);
    b.hidden(users, "id");
    b.leaf(users, "name", "String");
    b.leaf(Plan::ROOT, "count", "Int");
    let user = b.shape(users, &[("id", None)]);
    b.root(0, "{users{id}}", &[("users", Some(user))]);
    let shape = b.shape(users, &[("name", None)]);
    let names = b.target(users, &["id"], shape);
    let id = b.fetch(1, "", &[FetchId(0)], vec![lookup(vec![names])]);
    let count = b.shape(Plan::ROOT, &[("count", None)]);
    let fetch = &mut b.plan.fetches[id];
    fetch.root = Some(RootPart {
        cond: Cond::TRUE,
        shape: count,
    });
    let gated = |text: &str, lookup: u16| Segment {
        text: text.into(),
        gates: vec![Gate {
            lookup: Some(lookup),
            cond: Cond::TRUE,
        }],
    };
    fetch.segments = vec![gated("count ", Gate::ROOT), gated("users ", 0)];
    b.build()
}

const TWO_USERS: &str = r#"{"data":{"users":[{"id":1},{"id":2}]}}"#;

#[test]
fn root_fields_are_asked_by_one_part() {
    let parts = vec![
        ok(r#"{"data":{"count":4,"_entities":[{"name":"a"}]}}"#),
        ok(r#"{"data":{"_entities":[{"name":"b"}]}}"#),
    ];
    let script = limited_with(TWO_USERS, Some(1), true, parts);
    let output = run_with(&users_and_count(), &Setup::default(), &script);
    assert_eq!(asked(&script), ["count users 1 0", "users 1 0"]);
    assert_eq!(
        text(output),
        r#"{"data":{"users":[{"name":"a"},{"name":"b"}],"count":4}}"#
    );
}

#[test]
fn root_fields_that_fail_take_nothing_with_them() {
    let failed = r#"{"data":null,"errors":[{"message":"no count","path":["count"]}]}"#;
    let answers = vec![
        ok(failed),
        ok(failed),
        ok(r#"{"data":{"_entities":[{"name":"a"},{"name":"b"}]}}"#),
    ];
    let script = limited_with(TWO_USERS, None, true, answers);
    let response = text(run_with(&users_and_count(), &Setup::default(), &script));
    assert_eq!(
        asked(&script),
        ["count users 2 0", "count 0 0", "users 2 0"]
    );
    let expected = r#"{"data":{"users":[{"name":"a"},{"name":"b"}],"count":null},"errors":[{"message":"no count","path":["count"],"#;
    assert!(response.starts_with(expected), "{response}");
    assert_eq!(response.matches("message").count(), 1, "{response}");
}
