//! What a subgraph answers may be small and yet ask for much: every such thing ends at a limit.

use ogive_execute::{ExecuteLimits, ExecuteOptions};
use ogive_plan::Plan;
use serde_json::{Value, json};

use crate::{
    fixture::{Builder, lookup},
    script::{Script, Setup, ok, run_with, text},
};

/// `{ users { name } }`: users of one subgraph, their names of another.
fn users() -> Plan {
    let mut b = Builder::new(&["a", "b"], &["Query", "User"]);
    let users = b.object(Plan::ROOT, "users", "[User]", &["User"]);
    b.hidden(users, "id");
    b.leaf(users, "name", "String");
    let key = b.shape(users, &[("id", None)]);
    let first = b.root(0, "{}", &[("users", Some(key))]);
    let shape = b.shape(users, &[("name", None)]);
    let target = b.target(users, &["id"], shape);
    b.fetch(1, "{}", &[first], vec![lookup(vec![target])]);
    b.build()
}

/// So many users, all of them the same, and the answer about that one.
fn ask(limits: ExecuteLimits, n: usize, answer: &str) -> Value {
    let users_of = vec![r#"{"id":"1"}"#; n].join(",");
    let script = Script::new(vec![
        vec![ok(&format!(r#"{{"data":{{"users":[{users_of}]}}}}"#))],
        vec![ok(answer)],
    ]);
    let setup = Setup {
        limits,
        options: ExecuteOptions {
            subgraph_error_extensions: true,
            ..ExecuteOptions::default()
        },
        ..Setup::default()
    };
    serde_json::from_str(&text(run_with(&users(), &setup, &script))).unwrap()
}

#[test]
fn a_value_that_many_objects_have_in_common_does_not_fill_the_memory() {
    let limits = ExecuteLimits {
        response_bytes_max: 100_000,
        ..ExecuteLimits::default()
    };
    // Copied one by one, from a twin, and shared.
    for (n, len) in [(9_000, 3), (200, 1_000), (12, 15_000), (6, 20_000)] {
        let answer = format!(
            r#"{{"data":{{"_entities":[{{"name":"{}"}}]}}}}"#,
            "x".repeat(len)
        );
        assert_eq!(
            ask(limits, n, &answer),
            json!({ "data": null, "errors": [{
                "message": "The limit response_bytes_max was reached.",
                "extensions": { "code": "EXECUTION_LIMIT_EXCEEDED" },
            }] }),
            "{n} times {len}"
        );
        let fits = ask(limits, 4, &answer);
        assert_eq!(fits.get("errors"), None);
        assert_eq!(
            fits["data"]["users"][3]["name"].as_str().unwrap().len(),
            len
        );
    }
}

#[test]
fn a_list_that_many_objects_have_in_common_does_not_either() {
    let mut b = Builder::new(&["a", "b"], &["Query", "User"]);
    let users = b.object(Plan::ROOT, "users", "[User]", &["User"]);
    b.hidden(users, "id");
    b.leaf(users, "marks", "[Int]");
    let key = b.shape(users, &[("id", None)]);
    let first = b.root(0, "{}", &[("users", Some(key))]);
    let shape = b.shape(users, &[("marks", None)]);
    let target = b.target(users, &["id"], shape);
    b.fetch(1, "{}", &[first], vec![lookup(vec![target])]);
    let plan = b.build();
    let setup = Setup {
        limits: ExecuteLimits {
            response_bytes_max: 100_000,
            ..ExecuteLimits::default()
        },
        ..Setup::default()
    };
    // Such numbers are written anew: as they stand they are no `Int`s.
    let marks = vec!["1.0"; 10_000].join(",");
    for (n, fits) in [(4, true), (60, false)] {
        let users_of = vec![r#"{"id":"1"}"#; n].join(",");
        let script = Script::new(vec![
            vec![ok(&format!(r#"{{"data":{{"users":[{users_of}]}}}}"#))],
            vec![ok(&format!(
                r#"{{"data":{{"_entities":[{{"marks":[{marks}]}}]}}}}"#
            ))],
        ]);
        let response: Value =
            serde_json::from_str(&text(run_with(&plan, &setup, &script))).unwrap();
        assert_eq!(response.get("errors").is_none(), fits);
        assert_eq!(response["data"].is_null(), !fits);
    }
}

#[test]
fn codes_and_extensions_are_cut_and_written_for_as_many_places_as_there_is_room_for() {
    let limits = ExecuteLimits {
        errors_max: 3,
        error_code_bytes_max: 5,
        error_extension_bytes_max: 30,
        ..ExecuteLimits::default()
    };
    let answer = json!({
        "data": { "_entities": [{ "name": null }] },
        "errors": [{
            "message": "m",
            "path": ["_entities", 0, "name"],
            "extensions": { "a": 1, "b": "y".repeat(100), "code": "CODEé".repeat(100), "d": 2 },
        }],
    });
    let response = ask(limits, 1_000, &answer.to_string());
    let errors = response["errors"].as_array().unwrap();
    assert_eq!(errors.len(), 4);
    for (at, error) in errors[..3].iter().enumerate() {
        assert_eq!(error["path"], json!(["users", at, "name"]));
        // The fifth byte is the first one of a letter that has two.
        let extensions = json!({ "a": 1, "d": 2, "code": "CODE" });
        assert_eq!(error["extensions"], extensions);
    }
    assert_eq!(errors[3]["message"], "997 further errors are left out.");
}

#[test]
fn longer_paths_than_any_operation_has_are_none() {
    let error = |steps: usize| {
        let path: Vec<u32> = vec![0; steps];
        json!({
            "data": { "_entities": [{ "name": "n" }] },
            "errors": [{ "message": "m", "path": path }],
        })
        .to_string()
    };
    for steps in [256, 257, 100_000] {
        let response = ask(ExecuteLimits::default(), 1, &error(steps));
        assert_eq!(response["errors"][0]["message"], "m");
        assert_eq!(response["errors"][0].get("path"), None);
        assert_eq!(response["data"]["users"][0]["name"], "n");
    }
}

#[test]
fn keys_that_nobody_asked_for_are_compared_so_often_at_most() {
    let limits = |key_comparisons_max| ExecuteLimits {
        key_comparisons_max,
        ..ExecuteLimits::default()
    };
    let unknown: String = (0..20).map(|at| format!(r#""u{at}":1,"#)).collect();
    // Beside the look-up, and in an entity.
    for answer in [
        format!(r#"{{"data":{{{unknown}"_entities":[{{"name":"n"}}]}}}}"#),
        format!(r#"{{"data":{{"_entities":[{{{unknown}"name":"n"}}]}}}}"#),
    ] {
        let response = ask(limits(20), 1, &answer);
        assert_eq!(response, json!({ "data": { "users": [{ "name": "n" }] } }));
        let response = ask(limits(19), 1, &answer);
        assert_eq!(response["data"], json!({ "users": [{ "name": null }] }));
        let message = "The limit key_comparisons_max was reached.";
        assert_eq!(response["errors"][0]["message"], message);
    }
}

#[test]
fn items_beyond_those_asked_for_leave_nothing_behind() {
    for item in ["1", "null", r#"{"name":"n"}"#] {
        let items = vec![item; 10_000].join(",");
        let answer = format!(r#"{{"data":{{"_entities":[{items}]}}}}"#);
        let response = ask(ExecuteLimits::default(), 2, &answer);
        assert_eq!(
            response["data"],
            json!({ "users": [{ "name": null }, { "name": null }] })
        );
        let errors = response["errors"].as_array().unwrap();
        assert_eq!(errors.len(), 2, "one for each entity that is asked");
        for (at, error) in errors.iter().enumerate() {
            let message = error["message"].as_str().unwrap();
            assert!(message.contains("another length than asked"), "{message}");
            assert_eq!(error["path"], json!(["users", at, "name"]));
        }
    }
}

#[test]
fn errors_for_which_there_is_no_room_are_counted() {
    let mut b = Builder::new(&["s"], &["Query"]);
    b.leaf(Plan::ROOT, "numbers", "[Int]");
    b.leaf(Plan::ROOT, "lists", "[[Int!]]");
    b.root(0, "{}", &[("numbers", None), ("lists", None)]);
    let plan = b.build();
    let setup = Setup {
        limits: ExecuteLimits {
            errors_max: 2,
            ..ExecuteLimits::default()
        },
        ..Setup::default()
    };
    let script = Script::new(vec![vec![ok(
        r#"{"data":{"numbers":["a",1,"b","c"],"lists":[1,[2,null],[3]]}}"#,
    )]]);
    let response: Value = serde_json::from_str(&text(run_with(&plan, &setup, &script))).unwrap();
    assert_eq!(
        response["data"],
        json!({ "numbers": [null, 1, null, null], "lists": [null, null, [3]] })
    );
    let errors = response["errors"].as_array().unwrap();
    assert_eq!(errors[0]["path"], json!(["numbers", 0]));
    assert_eq!(errors[1]["path"], json!(["numbers", 2]));
    assert_eq!(errors[2]["message"], "3 further errors are left out.");
}

#[test]
fn bytes_that_are_read_again_are_counted_over_all_answers() {
    let mut b = Builder::new(&["a", "b"], &["Query", "User"]);
    let users = b.object(Plan::ROOT, "users", "[User]", &["User"]);
    b.hidden(users, "id");
    b.leaf(users, "name", "String");
    b.leaf(users, "nick", "String");
    let key = b.shape(users, &[("id", None)]);
    let mut last = b.root(0, "{}", &[("users", Some(key))]);
    for field in ["name", "nick"] {
        let shape = b.shape(users, &[(field, None)]);
        // What depends on the type is read for every object.
        b.only_for(shape, field, &["User"]);
        let target = b.target(users, &["id"], shape);
        last = b.fetch(1, "{}", &[last], vec![lookup(vec![target])]);
    }
    let plan = b.build();
    // Both entities have 12 bytes and are read three times, twice more than once.
    for (rescanned_bytes_max, n_errors) in [(48, 0), (47, 1)] {
        let setup = Setup {
            limits: ExecuteLimits {
                rescanned_bytes_max,
                ..ExecuteLimits::default()
            },
            ..Setup::default()
        };
        let script = Script::new(vec![
            vec![ok(r#"{"data":{"users":[{"id":1},{"id":1},{"id":1}]}}"#)],
            vec![
                ok(r#"{"data":{"_entities":[{"name":"n"}]}}"#),
                ok(r#"{"data":{"_entities":[{"nick":"n"}]}}"#),
            ],
        ]);
        let output = run_with(&plan, &setup, &script);
        assert_eq!(output.errors, n_errors);
    }
}
