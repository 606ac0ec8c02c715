//! What a subgraph answers may be small and yet ask for much: every such thing ends at a limit.

use ogive_execute::{ExecuteLimits, ExecuteOptions, Reuse};
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

/// So many different users, and what is answered about all of them.
fn ask_of_each(n: usize, answer: &str) -> ogive_execute::ExecuteOutput {
    let users_of: Vec<String> = (0..n).map(|at| format!(r#"{{"id":"{at}"}}"#)).collect();
    let script = Script::new(vec![
        vec![ok(&format!(
            r#"{{"data":{{"users":[{}]}}}}"#,
            users_of.join(",")
        ))],
        vec![ok(answer)],
    ]);
    run_with(&users(), &Setup::default(), &script)
}

#[test]
fn many_errors_without_a_place_do_not_look_at_all_objects_each() {
    let (n, n_errors) = (1_000, 900);
    let entities = vec![r#"{"name":"n"}"#; n].join(",");
    let all = (n + ExecuteLimits::default().errors_max) as u64;
    // Without a path, with an index that nobody asked for, and with no index.
    for path in ["null", r#"["_entities",5000]"#, r#"["_entities"]"#, "7"] {
        let errors = vec![format!(r#"{{"message":"m","path":{path}}}"#); n_errors].join(",");
        let answer = format!(r#"{{"data":{{"_entities":[{entities}]}},"errors":[{errors}]}}"#);
        let output = ask_of_each(n, &answer);
        let looked_at = output.stats.looked_at;
        assert!(looked_at <= 16 * all, "{path}: {looked_at}");
        let response: Value = serde_json::from_str(&text(output)).unwrap();
        let told = response["errors"].as_array().unwrap();
        assert_eq!(told.len(), n_errors, "each is told all the same");
        assert!(told.iter().all(|error| error.get("path").is_none()));
        assert_eq!(response["data"]["users"][n - 1]["name"], "n");
    }
}

#[test]
fn the_places_of_errors_that_name_none_are_found_once() {
    let (n, n_errors) = (1_000, 900);
    let entities = vec![r#"{"name":null}"#; n].join(",");
    for path in ["null", r#"["_entities",5000]"#] {
        let errors = vec![format!(r#"{{"message":"m","path":{path}}}"#); n_errors].join(",");
        let answer = format!(r#"{{"data":{{"_entities":[{entities}]}},"errors":[{errors}]}}"#);
        let output = ask_of_each(n, &answer);
        assert_eq!(output.stats.looked_at, n as u64, "{path}");
        let response: Value = serde_json::from_str(&text(output)).unwrap();
        let told = response["errors"].as_array().unwrap();
        assert_eq!(told[n_errors - 1]["path"], json!(["users", 0, "name"]));
    }
}

#[test]
fn names_of_types_behind_all_else_are_looked_for_so_far_at_most() {
    // Every object's name of its type stands behind the objects in it.
    let mut b = Builder::new(&["a"], &["Query", "Book", "Film"]);
    let mut owner = Plan::ROOT;
    let mut objects = Vec::new();
    for _ in 0..20 {
        owner = b.object(owner, "of", "Media", &["Book", "Film"]);
        objects.push(owner);
    }
    b.leaf(owner, "name", "String");
    let mut shape = b.typed_shape(owner, &[("name", None)]);
    for owner in objects.iter().rev().skip(1) {
        shape = b.typed_shape(*owner, &[("of", Some(shape))]);
    }
    b.root(0, "{}", &[("of", Some(shape))]);
    let plan = b.build();
    let mut value = format!(r#"{{"name":"{}","__typename":"Book"}}"#, "x".repeat(1_000));
    for _ in 1..20 {
        value = format!(r#"{{"of":{value},"__typename":"Book"}}"#);
    }
    for (rescanned_bytes_max, n_errors) in [(100_000, 0), (20_000, 1)] {
        let setup = Setup {
            limits: ExecuteLimits {
                rescanned_bytes_max,
                ..ExecuteLimits::default()
            },
            ..Setup::default()
        };
        let script = Script::new(vec![vec![ok(&format!(r#"{{"data":{{"of":{value}}}}}"#))]]);
        let output = run_with(&plan, &setup, &script);
        assert_eq!(output.errors, n_errors, "{rescanned_bytes_max}");
    }
}

#[test]
fn keys_in_an_order_of_their_own_are_compared_so_often_at_most() {
    let names: Vec<String> = (0..1_000).map(|at| format!("f{at}")).collect();
    let mut b = Builder::new(&["a"], &["Query", "User"]);
    let me = b.object(Plan::ROOT, "me", "User", &["User"]);
    let mut fields = Vec::new();
    for name in &names {
        b.leaf(me, name, "String");
        fields.push((&**name, None));
    }
    let shape = b.shape(me, &fields);
    b.root(0, "{}", &[("me", Some(shape))]);
    let plan = b.build();
    // What follows what is never the same.
    let mut members = String::from(r#""f0":"a""#);
    let mut at = 1_u64;
    for _ in 0..1_000 {
        at = at.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        members += &format!(r#","f{}":"a""#, (at >> 33) % 1_000);
    }
    for (key_comparisons_max, n_errors) in [(1 << 28, 0), (10_000, 1)] {
        let setup = Setup {
            limits: ExecuteLimits {
                key_comparisons_max,
                ..ExecuteLimits::default()
            },
            ..Setup::default()
        };
        let answer = format!(r#"{{"data":{{"me":{{{members}}}}}}}"#);
        let script = Script::new(vec![vec![ok(&answer)]]);
        let output = run_with(&plan, &setup, &script);
        assert_eq!(output.errors, n_errors, "{key_comparisons_max}");
    }
}

#[test]
fn entities_that_a_subgraph_does_not_know_are_told_once_with_their_number() {
    let users_of: Vec<String> = (0..1_000).map(|at| format!(r#"{{"id":"{at}"}}"#)).collect();
    let answer = format!(
        r#"{{"data":{{"_entities":[{}]}}}}"#,
        vec!["null"; 1_000].join(",")
    );
    let script = Script::new(vec![
        vec![ok(&format!(
            r#"{{"data":{{"users":[{}]}}}}"#,
            users_of.join(",")
        ))],
        vec![ok(&answer)],
    ]);
    let output = run_with(&users(), &Setup::default(), &script);
    assert_eq!(output.errors, 0);
    let told = script.failures.borrow();
    assert_eq!(*told, [("SUBREQUEST_MISSING_ENTITY".to_owned(), 1_000)]);
}

#[test]
fn representations_that_turn_out_to_be_known_are_written_so_often_at_most() {
    let mut b = Builder::new(&["a", "b"], &["Query", "User", "Org"]);
    let users = b.object(Plan::ROOT, "users", "[User]", &["User"]);
    let org = b.hidden_object(users, "org", 0, &["Org"]);
    b.hidden(org, "id");
    b.leaf(users, "name", "String");
    let org_shape = b.shape(org, &[("id", None)]);
    let key = b.shape(users, &[("org", Some(org_shape))]);
    let first = b.root(0, "{}", &[("users", Some(key))]);
    let shape = b.shape(users, &[("name", None)]);
    let mut target = b.target(users, &[], shape);
    let id = b.member(org, "id", true, Vec::new());
    let org = b.member(users, "org", true, vec![id]);
    target.representations[0].members.push(org);
    b.fetch(1, "{}", &[first], vec![lookup(vec![target])]);
    let plan = b.build();
    let answers = || {
        let users_of = vec![r#"{"org":{"id":"1"}}"#; 100].join(",");
        let users_of = format!(r#"{{"data":{{"users":[{users_of}]}}}}"#);
        ok(&users_of)
    };
    for (rescanned_bytes_max, is_asked) in [(10_000, true), (1_000, false)] {
        let setup = Setup {
            limits: ExecuteLimits {
                rescanned_bytes_max,
                ..ExecuteLimits::default()
            },
            ..Setup::default()
        };
        let entities = ok(r#"{"data":{"_entities":[{"name":"n"}]}}"#);
        let entities = if is_asked { vec![entities] } else { vec![] };
        let script = Script::new(vec![vec![answers()], entities]);
        let output = run_with(&plan, &setup, &script);
        assert_eq!(output.errors == 0, is_asked, "{rescanned_bytes_max}");
    }
}

/// `{ a { id name } b { name } }`: the names of `b` are asked of the subgraph that has brought those of `a`.
fn offering() -> Plan {
    let mut b = Builder::new(&["users", "keys"], &["Query", "User"]);
    let user = |b: &mut Builder, place| {
        let user = b.object(Plan::ROOT, place, "[User]", &["User"]);
        b.hidden(user, "id");
        b.leaf(user, "name", "String");
        for (slot, value) in b.plan.layouts[user].slots.iter_mut().zip([1, 2]) {
            slot.value = value;
        }
        user
    };
    let (of_a, of_b) = (user(&mut b, "a"), user(&mut b, "b"));
    let all = b.shape(of_a, &[("id", None), ("name", None)]);
    let key = b.shape(of_b, &[("id", None)]);
    let first = b.root(0, "{}", &[("a", Some(all))]);
    let second = b.root(1, "{}", &[("b", Some(key))]);
    let shape = b.shape(of_b, &[("name", None)]);
    let mut target = b.target(of_b, &["id"], shape);
    target.selection = 7;
    b.fetch(0, "{}", &[first, second], vec![lookup(vec![target])]);
    b.build()
}

#[test]
fn objects_of_other_places_are_offered_so_often_at_most_and_asked_otherwise() {
    let users: Vec<String> = (0..100)
        .map(|n| format!(r#"{{"id":"{n}","name":"n"}}"#))
        .collect();
    let a = format!(r#"{{"data":{{"a":[{}]}}}}"#, users.join(","));
    // The last one of them.
    let b = r#"{"data":{"b":[{"id":"99"}]}}"#;
    for (rescanned_bytes_max, is_reused) in [(10_000, true), (1_000, false)] {
        let setup = Setup {
            limits: ExecuteLimits {
                rescanned_bytes_max,
                ..ExecuteLimits::default()
            },
            options: ExecuteOptions {
                reuse: Reuse::All,
                ..ExecuteOptions::default()
            },
            ..Setup::default()
        };
        let mut answers = vec![ok(&a)];
        if !is_reused {
            answers.push(ok(r#"{"data":{"_entities":[{"name":"n"}]}}"#));
        }
        let script = Script::new(vec![answers, vec![ok(b)]]);
        let output = run_with(&offering(), &setup, &script);
        assert_eq!(output.errors, 0);
        assert_eq!(
            output.stats.reused,
            u64::from(is_reused),
            "{rescanned_bytes_max}"
        );
    }
}

#[test]
fn representations_whose_answers_are_known_are_counted_where_there_are_many() {
    let mut b = Builder::new(&["keys", "names"], &["Query", "User"]);
    let places = ["a", "b"].map(|place| {
        let user = b.object(Plan::ROOT, place, "[User]", &["User"]);
        b.hidden(user, "id");
        b.leaf(user, "name", "String");
        let key = b.shape(user, &[("id", None)]);
        (user, place, key)
    });
    let keys = places.map(|(_, place, key)| (place, Some(key)));
    let mut dependencies = vec![b.root(0, "{}", &keys)];
    for (user, ..) in places {
        let shape = b.shape(user, &[("name", None)]);
        let mut target = b.target(user, &["id"], shape);
        target.selection = 7;
        let fetch = b.fetch(1, "{}", &dependencies, vec![lookup(vec![target])]);
        dependencies.push(fetch);
    }
    let plan = b.build();
    let ids: Vec<String> = (0..100).map(|n| format!(r#"{{"id":"{n}"}}"#)).collect();
    let (ids, names) = (ids.join(","), vec![r#"{"name":"n"}"#; 100].join(","));
    for (rescanned_bytes_max, is_reused) in [(10_000, true), (1_000, false)] {
        let setup = Setup {
            limits: ExecuteLimits {
                rescanned_bytes_max,
                ..ExecuteLimits::default()
            },
            ..Setup::default()
        };
        let script = Script::new(vec![
            vec![ok(&format!(r#"{{"data":{{"a":[{ids}],"b":[{ids}]}}}}"#))],
            vec![ok(&format!(r#"{{"data":{{"_entities":[{names}]}}}}"#))],
        ]);
        let output = run_with(&plan, &setup, &script);
        let (reused, is_told) = (output.stats.reused == 100, output.errors > 0);
        assert_eq!(
            (reused, !is_told),
            (is_reused, is_reused),
            "{rescanned_bytes_max}"
        );
    }
}
