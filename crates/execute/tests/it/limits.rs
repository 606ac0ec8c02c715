//! Every limit: reaching it costs the fetch concerned and one error.

use ogive_execute::ExecuteLimits;
use ogive_plan::Plan;

use crate::{
    fixture::{Builder, lookup, me},
    script::{Script, Setup, ok, run_with, status, text},
};

fn check(limits: ExecuteLimits, expected_data: &str, expected_message: &str) {
    let mut plan = me(["User", "String", "[Review]", "String"]);
    // Reviews of a second shape: now they cannot pass as they stand, and are objects to the executor.
    let review = plan.shapes.ids().nth(2).unwrap();
    assert_eq!(plan.layouts[plan.shapes[review].layout].output.len(), 1);
    plan.shapes.push(plan.shapes[review].clone());
    let script = Script::new(vec![
        vec![ok(r#"{"data":{"me":{"__k0":"1","name":"Ada"}}}"#)],
        vec![ok(
            r#"{"data":{"_entities":[{"reviews":[{"body":"a"},{"body":"b"}]}]}}"#,
        )],
    ]);
    let setup = Setup {
        limits,
        ..Setup::default()
    };
    let text = text(run_with(&plan, &setup, &script));
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["data"].to_string(), expected_data);
    let errors = json["errors"].as_array().unwrap();
    assert_eq!(errors.len(), 1, "{text}");
    assert!(
        errors[0]["message"]
            .as_str()
            .unwrap()
            .contains(expected_message),
        "{text}"
    );
}

const PARTIAL: &str = r#"{"me":{"name":"Ada","reviews":null}}"#;

#[test]
fn objects_and_values_are_counted() {
    let limits = ExecuteLimits::default();
    for records_max in [2, 3] {
        check(
            ExecuteLimits {
                records_max,
                ..limits
            },
            PARTIAL,
            "The limit records_max was reached.",
        );
    }
    // One slot of the root, three of `me`, one each of two reviews, two list items.
    for values_max in [4, 5, 7] {
        check(
            ExecuteLimits {
                values_max,
                ..limits
            },
            PARTIAL,
            "The limit values_max was reached.",
        );
    }
}

#[test]
fn bytes_are_counted() {
    let limits = ExecuteLimits::default();
    check(
        ExecuteLimits {
            answer_bytes_max: 50,
            ..limits
        },
        PARTIAL,
        "The limit answer_bytes_max was reached.",
    );
    check(
        ExecuteLimits {
            answers_bytes_max: 100,
            ..limits
        },
        PARTIAL,
        "The limit answers_bytes_max was reached.",
    );
    check(
        ExecuteLimits {
            depth_max: 4,
            ..limits
        },
        PARTIAL,
        "nested too deeply",
    );
}

#[test]
fn reading_an_entity_for_many_objects_is_limited() {
    let mut b = Builder::new(&["a", "b"], &["Query", "User"]);
    let users = b.object(Plan::ROOT, "users", "[User]", &["User"]);
    b.hidden(users, "id");
    b.leaf(users, "name", "String!");
    let key = b.shape(users, &[("id", None)]);
    let first = b.root(0, "{}", &[("users", Some(key))]);
    let shape = b.shape(users, &[("name", None)]);
    // What depends on the type is read for every object.
    b.only_for(shape, "name", &["User"]);
    let target = b.target(users, &["id"], shape);
    b.fetch(1, "{}", &[first], vec![lookup(vec![target])]);
    let plan = b.build();
    // The entity has 12 bytes and is read three times, twice more than once.
    for (rescanned_bytes_max, expected) in [
        (
            24,
            r#"{"data":{"users":[{"name":"n"},{"name":"n"},{"name":"n"}]}}"#,
        ),
        (
            23,
            concat!(
                r#"{"data":{"users":[{"name":"n"},{"name":"n"},null]},"errors":[{"message":"The limit rescanned_bytes_max was reached.","#,
                r#""path":["users",2,"name"],"extensions":{"code":"EXECUTION_LIMIT_EXCEEDED"}}]}"#
            ),
        ),
    ] {
        let setup = Setup {
            limits: ExecuteLimits {
                rescanned_bytes_max,
                ..ExecuteLimits::default()
            },
            ..Setup::default()
        };
        let script = Script::new(vec![
            vec![ok(r#"{"data":{"users":[{"id":1},{"id":1},{"id":1}]}}"#)],
            vec![ok(r#"{"data":{"_entities":[{"name":"n"}]}}"#)],
        ]);
        assert_eq!(text(run_with(&plan, &setup, &script)), expected);
    }
}

#[test]
fn requests_are_limited() {
    let plan = me(["User", "String", "[Review]", "String"]);
    for request_bytes_max in [10, 100] {
        let setup = Setup {
            limits: ExecuteLimits {
                request_bytes_max,
                ..ExecuteLimits::default()
            },
            ..Setup::default()
        };
        let first =
            (request_bytes_max == 100).then(|| ok(r#"{"data":{"me":{"__k0":"1","name":"Ada"}}}"#));
        let script = Script::new(vec![first.into_iter().collect(), vec![]]);
        let text = text(run_with(&plan, &setup, &script));
        let (data, path) = match request_bytes_max {
            100 => (PARTIAL, r#"["me","reviews"]"#),
            _ => (r#"{"me":null}"#, r#"["me"]"#),
        };
        assert_eq!(
            text,
            format!(
                r#"{{"data":{data},"errors":[{{"message":"The limit request_bytes_max was reached.","path":{path},"extensions":{{"code":"EXECUTION_LIMIT_EXCEEDED"}}}}]}}"#
            )
        );
    }
}

#[test]
fn errors_are_limited() {
    let mut b = Builder::new(&["s"], &["Query", "Item"]);
    let items = b.object(Plan::ROOT, "items", "[Item]", &["Item"]);
    b.leaf(items, "x", "Int!");
    let shape = b.shape(items, &[("x", None)]);
    b.root(0, "{}", &[("items", Some(shape))]);
    let plan = b.build();
    let setup = Setup {
        limits: ExecuteLimits {
            errors_max: 3,
            error_message_bytes_max: 5,
            ..ExecuteLimits::default()
        },
        ..Setup::default()
    };
    let run = |errors: &str| {
        let script = Script::new(vec![vec![ok(&format!(
            r#"{{"errors":[{errors}],"data":{{"items":[{{}},{{}},{{}},{{}},{{}}]}}}}"#
        ))]]);
        let text = text(run_with(&plan, &setup, &script));
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            json["data"]["items"],
            serde_json::json!([null, null, null, null, null])
        );
        json["errors"]
            .as_array()
            .unwrap()
            .iter()
            .map(|error| error["message"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let null = "Cannot return null for non-nullable field Item.x.";
    assert_eq!(
        run(""),
        [null, null, null, "2 further errors are left out."]
    );
    // Messages are cut between characters.
    assert_eq!(
        run(r#"{"message":"abcdé"}"#),
        // The places for which there is no room are counted as nulls without an error, too.
        ["abcd", "abcd", "abcd", "4 further errors are left out."]
    );
    let many = [r#"{"message":"m","path":["items",0,"x"]}"#; 5].join(",");
    let messages = run(&many);
    assert_eq!(messages[..3], ["m", "m", "m"]);
    assert!(messages[3].ends_with("further errors are left out."));
    // Those that nobody looks at are counted, too: all of the subgraph's, and the nulls of the four other items.
    let many = [r#"{"message":"m","path":["items",0,"x"]}"#; 50].join(",");
    assert_eq!(run(&many)[3], "51 further errors are left out.");
    let failed = format!(r#"{{"errors":[{many}]}}"#);
    for answer in [ok(&failed), status(500, &failed)] {
        let output = run_with(&plan, &setup, &Script::new(vec![vec![answer]]));
        assert_eq!((output.errors, output.errors_total), (4, 50));
    }
}
