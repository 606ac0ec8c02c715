//! Every null that neither the schema nor the data explains has an error at its place, or below it.

use ogive_execute::{ExecuteLimits, RequestLimits};
use ogive_plan::{FetchId, Plan};
use serde_json::Value;

use crate::{
    fixture::{Builder, lookup},
    script::{Answer, Script, Setup, ok, run_with, text, unreachable},
};

/// Data, and the paths and messages of errors in the order in which they are sent.
fn answered(plan: &Plan, setup: &Setup, answers: Vec<Vec<Answer>>) -> (String, Vec<String>) {
    let mut script = Script::new(answers);
    script.limits = RequestLimits {
        split_retry: false,
        ..RequestLimits::default()
    };
    let response = text(run_with(plan, setup, &script));
    let json: Value = serde_json::from_str(&response).unwrap();
    let errors = json["errors"].as_array().cloned().unwrap_or_default();
    let told = errors.iter().map(|error| {
        let path = error.get("path").map_or_else(String::new, dotted);
        format!("{path}: {}", error["message"].as_str().unwrap())
    });
    (json["data"].to_string(), told.collect())
}

fn dotted(path: &Value) -> String {
    let steps = path.as_array().unwrap().iter();
    let steps = steps.map(|step| {
        step.as_str()
            .map_or_else(|| step.to_string(), str::to_owned)
    });
    steps.collect::<Vec<_>>().join(".")
}

#[track_caller]
fn check(plan: &Plan, answers: Vec<Vec<Answer>>, data: &str, errors: &[&str]) {
    let (actual, told) = answered(plan, &Setup::default(), answers);
    assert_eq!(actual, data);
    assert_eq!(told, errors);
}

/// `{ user { name age } }`: ids of a, names and ranks of b by id, ages of c by rank.
fn chain() -> Plan {
    let mut b = Builder::new(&["a", "b", "c"], &["Query", "User"]);
    let user = b.object(Plan::ROOT, "user", "User", &["User"]);
    b.hidden(user, "id");
    b.hidden(user, "rank");
    b.leaf(user, "name", "String");
    b.leaf(user, "age", "Int");
    let key = b.shape(user, &[("id", None)]);
    let first = b.root(0, "{}", &[("user", Some(key))]);
    let shape = b.shape(user, &[("name", None), ("rank", None)]);
    let target = b.target(user, &["id"], shape);
    let second = b.fetch(1, "", &[first], vec![lookup(vec![target])]);
    let shape = b.shape(user, &[("age", None)]);
    let target = b.target(user, &["rank"], shape);
    b.fetch(2, "", &[second], vec![lookup(vec![target])]);
    b.build()
}

const USER: &str = r#"{"data":{"user":{"id":1}}}"#;
const LOST: &str = "The subgraph could not be reached.";

#[test]
fn what_waits_for_a_request_that_failed() {
    let ages_fail = |second: Answer, errors: &[&str]| {
        let answers = vec![vec![ok(USER)], vec![second], vec![]];
        check(
            &chain(),
            answers,
            r#"{"user":{"name":null,"age":null}}"#,
            errors,
        );
    };
    let at_both = |message: &str| {
        [
            format!("user.name: {message}"),
            format!("user.age: {message}"),
        ]
    };
    let both = at_both(LOST);
    ages_fail(unreachable(), &[&both[0], &both[1]]);
    let both = at_both("m");
    for body in [
        r#"{"data":null,"errors":[{"message":"m"}]}"#,
        r#"{"data":{"_entities":[null]},"errors":[{"message":"m"}]}"#,
        r#"{"data":{"_entities":[null]},"errors":[{"message":"m","path":["_entities",0]}]}"#,
        r#"{"data":{"_entities":[null]},"errors":[{"message":"m","path":["nowhere"]}]}"#,
    ] {
        ages_fail(ok(body), &[&both[0], &both[1]]);
    }
    // A key that is null because of an error, which clients do not see.
    let body = r#"{"data":{"_entities":[{"name":"n","rank":null}]},
        "errors":[{"message":"m","path":["_entities",0,"rank"]}]}"#;
    check(
        &chain(),
        vec![vec![ok(USER)], vec![ok(body)], vec![]],
        r#"{"user":{"name":"n","age":null}}"#,
        &["user.age: m"],
    );
    // The data explains it.
    for entity in ["null", r#"{"name":null,"rank":null}"#] {
        let body = format!(r#"{{"data":{{"_entities":[{entity}]}}}}"#);
        ages_fail(ok(&body), &[]);
    }
}

#[test]
fn an_error_of_one_object_is_not_told_of_others() {
    let mut b = Builder::new(&["a", "b", "c"], &["Query", "User"]);
    let users = b.object(Plan::ROOT, "users", "[User]", &["User"]);
    b.hidden(users, "id");
    b.hidden(users, "rank");
    b.leaf(users, "name", "String");
    b.leaf(users, "age", "Int");
    let key = b.shape(users, &[("id", None)]);
    let first = b.root(0, "{}", &[("users", Some(key))]);
    let shape = b.shape(users, &[("name", None), ("rank", None)]);
    let target = b.target(users, &["id"], shape);
    let second = b.fetch(1, "", &[first], vec![lookup(vec![target])]);
    let shape = b.shape(users, &[("age", None)]);
    let target = b.target(users, &["rank"], shape);
    b.fetch(2, "", &[second], vec![lookup(vec![target])]);
    let names = r#"{"data":{"_entities":[null,null,null,{"name":"n","rank":4}]},"errors":[
        {"message":"one","path":["_entities",0]},{"message":"two","path":["_entities",2]}]}"#;
    check(
        &b.build(),
        vec![
            vec![ok(
                r#"{"data":{"users":[{"id":1},{"id":2},{"id":3},{"id":4}]}}"#,
            )],
            vec![ok(names)],
            vec![ok(r#"{"data":{"_entities":[{"age":null}]}}"#)],
        ],
        concat!(
            r#"{"users":[{"name":null,"age":null},{"name":null,"age":null},"#,
            r#"{"name":null,"age":null},{"name":"n","age":null}]}"#
        ),
        &[
            "users.0.name: one",
            "users.2.name: two",
            "users.0.age: one",
            "users.2.age: two",
        ],
    );
}

/// `{ box { a b } n }`: a knows the box and its a, b the box and its b, and n.
fn shared() -> Plan {
    let mut b = Builder::new(&["a", "b"], &["Query", "Box"]);
    let of = b.object(Plan::ROOT, "box", "Box", &["Box"]);
    b.leaf(of, "a", "Int");
    b.leaf(of, "b", "Int");
    b.leaf(Plan::ROOT, "n", "Int");
    let ours = b.shape(of, &[("a", None)]);
    b.root(0, "{box{a}}", &[("box", Some(ours))]);
    let theirs = b.shape(of, &[("b", None)]);
    b.root(1, "{box{b} n}", &[("box", Some(theirs)), ("n", None)]);
    b.build()
}

#[test]
fn what_a_request_was_to_bring_of_an_object_of_others() {
    // Whoever answers first.
    for (box_of_a, lost) in [(0, 3), (3, 0)] {
        let answers = vec![
            vec![ok(r#"{"data":{"box":{"a":1}}}"#).after(box_of_a)],
            vec![unreachable().after(lost)],
        ];
        let (data, mut told) = answered(&shared(), &Setup::default(), answers);
        assert_eq!(data, r#"{"box":{"a":1,"b":null},"n":null}"#);
        told.sort();
        assert_eq!(told, [format!("box.b: {LOST}"), format!("n: {LOST}")]);
    }
}

#[test]
fn what_a_root_field_that_failed_took_with_it() {
    let body = r#"{"data":null,"errors":[{"message":"m","path":["n"]}]}"#;
    check(
        &shared(),
        vec![vec![ok(r#"{"data":{"box":{"a":1}}}"#)], vec![ok(body)]],
        r#"{"box":{"a":1,"b":null},"n":null}"#,
        &["n: m", "box.b: m"],
    );
}

#[test]
fn errors_without_a_usable_path() {
    for path in [
        "",
        r#","path":null"#,
        r#","path":"n""#,
        r#","path":[]"#,
        r#","path":["?"]"#,
        r#","path":[3]"#,
    ] {
        let body = |data: &str| format!(r#"{{"data":{data},"errors":[{{"message":"m"{path}}}]}}"#);
        let box_of_a = || ok(r#"{"data":{"box":{"a":null}}}"#);
        check(
            &shared(),
            vec![
                vec![box_of_a()],
                vec![ok(&body(r#"{"box":{"b":null},"n":null}"#))],
            ],
            // The other subgraph has no error.
            r#"{"box":{"a":null,"b":null},"n":null}"#,
            &["n: m", "box.b: m"],
        );
        check(
            &shared(),
            vec![
                vec![box_of_a()],
                vec![ok(&body(r#"{"box":{"b":2},"n":3}"#))],
            ],
            r#"{"box":{"a":null,"b":2},"n":3}"#,
            &[": m"],
        );
    }
}

#[test]
fn nulls_that_another_error_explains_are_left_to_it() {
    let body = r#"{"data":{"box":{"b":null},"n":null},
        "errors":[{"message":"m"},{"message":"k","path":["n"]},{"message":"l"}]}"#;
    check(
        &shared(),
        vec![vec![ok(r#"{"data":{"box":{"a":1}}}"#)], vec![ok(body)]],
        r#"{"box":{"a":1,"b":null},"n":null}"#,
        &["n: k", "box.b: m", "box.b: l"],
    );
}

#[test]
fn an_error_without_a_path_may_mean_any_null_of_its_answer() {
    let mut b = Builder::new(&["a"], &["Query", "User", "Pet"]);
    let users = b.object(Plan::ROOT, "users", "[[User]]", &["User"]);
    b.leaf(users, "name", "String");
    b.leaf(users, "marks", "[[Int]]");
    let pet = b.object(users, "pet", "Pet", &["Pet"]);
    b.leaf(pet, "any", "JSON");
    let of_pet = b.shape(pet, &[("any", None)]);
    let user = b.shape(
        users,
        &[("name", None), ("marks", None), ("pet", Some(of_pet))],
    );
    b.root(0, "{}", &[("users", Some(user))]);
    let data = concat!(
        r#"{"users":[[{"name":null,"marks":[[1,null],null],"pet":{"any":{"x":null}}},null],"#,
        r#"null,[{"name":"n","marks":null,"pet":{"any":null}}]]}"#
    );
    let body = format!(r#"{{"data":{data},"errors":[{{"message":"m"}}]}}"#);
    let (actual, mut told) = answered(&b.build(), &Setup::default(), vec![vec![ok(&body)]]);
    assert_eq!(actual, data);
    told.sort();
    let places = [
        "0.0.marks.0.1",
        "0.0.marks.1",
        "0.0.name",
        "0.1",
        "1",
        "2.0.marks",
        "2.0.pet.any",
    ];
    assert_eq!(told, places.map(|place| format!("users.{place}: m")));
}

#[test]
fn what_cannot_be_asked_for_a_limit() {
    let setup = Setup {
        limits: ExecuteLimits {
            request_bytes_max: 60,
            ..ExecuteLimits::default()
        },
        ..Setup::default()
    };
    let user = format!(r#"{{"data":{{"user":{{"id":"{}"}}}}}}"#, "x".repeat(60));
    let answers = vec![vec![ok(&user)], vec![], vec![]];
    let (data, told) = answered(&chain(), &setup, answers);
    assert_eq!(data, r#"{"user":{"name":null,"age":null}}"#);
    let limit = "The limit request_bytes_max was reached.";
    assert_eq!(
        told,
        [format!("user.name: {limit}"), format!("user.age: {limit}")]
    );
}

#[test]
fn each_failure_is_told_at_so_many_places_and_then_it_is_said_that_some_are_left_out() {
    let mut b = Builder::new(&["a", "b", "c"], &["Query", "User"]);
    let users = b.object(Plan::ROOT, "users", "[User]", &["User"]);
    b.hidden(users, "id");
    b.leaf(users, "name", "String");
    b.hidden(users, "rank");
    b.leaf(users, "age", "Int");
    let key = b.shape(users, &[("id", None)]);
    let first = b.root(0, "{}", &[("users", Some(key))]);
    let shape = b.shape(users, &[("rank", None)]);
    let target = b.target(users, &["id"], shape);
    let second = b.fetch(1, "", &[first], vec![lookup(vec![target])]);
    let shape = b.shape(users, &[("age", None), ("name", None)]);
    let target = b.target(users, &["rank"], shape);
    b.fetch(2, "", &[second, FetchId(0)], vec![lookup(vec![target])]);
    let all = vec![r#"{"id":1}"#; 300].join(",");
    let body = format!(r#"{{"data":{{"users":[{all}]}}}}"#);
    let answers = vec![vec![ok(&body)], vec![unreachable()], vec![]];
    let (_, told) = answered(&b.build(), &Setup::default(), answers);
    let places = told
        .iter()
        .filter(|line| line.starts_with("users."))
        .count();
    assert_eq!(places, ExecuteLimits::default().failure_paths_max);
    assert!(told.last().unwrap().contains("left out"), "{told:?}");
}
