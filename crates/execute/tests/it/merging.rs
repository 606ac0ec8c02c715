//! Two providers of one object, in whichever order they answer.

use ogive_plan::Plan;

use crate::{
    fixture::Builder,
    script::{ok, run},
};

/// `{ items { a b sub { c d } } }` from two subgraphs: a, sub.c, both sub.d from the first; b, sub.d from the second.
fn shared(items: &str) -> Plan {
    let mut b = Builder::new(&["one", "two"], &["Query", "Item", "Sub"]);
    let item = b.object(Plan::ROOT, "items", items, &["Item"]);
    b.leaf(item, "a", "Int");
    b.leaf(item, "b", "Int!");
    let sub = b.object(item, "sub", "Sub", &["Sub"]);
    b.leaf(sub, "c", "Int");
    b.leaf(sub, "d", "Int");
    let sub1 = b.shape(sub, &[("c", None), ("d", None)]);
    let sub2 = b.shape(sub, &[("d", None)]);
    let item1 = b.shape(item, &[("a", None), ("sub", Some(sub1))]);
    let item2 = b.shape(item, &[("b", None), ("sub", Some(sub2))]);
    b.root(0, "{}", &[("items", Some(item1))]);
    b.root(1, "{}", &[("items", Some(item2))]);
    b.build()
}

/// Runs with both orders of arrival, which must give the same.
#[track_caller]
fn check(plan: &Plan, first: &str, second: &str, expected: &str) {
    for (delay1, delay2) in [(0, 3), (3, 0)] {
        let answer = |items: &str| ok(&format!(r#"{{"data":{{"items":{items}}}}}"#));
        let answers = vec![
            vec![answer(first).after(delay1)],
            vec![answer(second).after(delay2)],
        ];
        assert_eq!(run(plan, answers), expected, "delays {delay1} {delay2}");
    }
}

#[test]
fn objects_are_merged_and_the_earlier_fetch_wins() {
    check(
        &shared("Item"),
        r#"{"a":1,"sub":{"c":2,"d":3}}"#,
        r#"{"b":4,"sub":{"d":5}}"#,
        r#"{"data":{"items":{"a":1,"b":4,"sub":{"c":2,"d":3}}}}"#,
    );
    // Null never overwrites a value, and a value always overwrites null.
    check(
        &shared("Item"),
        r#"{"a":1,"sub":{"c":2,"d":null}}"#,
        r#"{"b":4,"sub":{"d":5}}"#,
        r#"{"data":{"items":{"a":1,"b":4,"sub":{"c":2,"d":5}}}}"#,
    );
    check(
        &shared("Item"),
        r#"{"a":1,"sub":{"c":2,"d":3}}"#,
        r#"{"b":4,"sub":null}"#,
        r#"{"data":{"items":{"a":1,"b":4,"sub":{"c":2,"d":3}}}}"#,
    );
    check(
        &shared("Item"),
        r#"{"a":1,"sub":null}"#,
        r#"{"b":4,"sub":{"d":5}}"#,
        r#"{"data":{"items":{"a":1,"b":4,"sub":{"c":null,"d":5}}}}"#,
    );
    check(
        &shared("Item"),
        "null",
        r#"{"b":4,"sub":{"d":5}}"#,
        r#"{"data":{"items":{"a":null,"b":4,"sub":{"c":null,"d":5}}}}"#,
    );
}

#[test]
fn lists_are_merged_by_index() {
    check(
        &shared("[[Item]]"),
        r#"[[{"a":1,"sub":null},null],[],null]"#,
        r#"[[{"b":2,"sub":{"d":3}},{"b":4}],[],[{"b":5}]]"#,
        concat!(
            r#"{"data":{"items":[[{"a":1,"b":2,"sub":{"c":null,"d":3}},{"a":null,"b":4,"sub":null}],[],"#,
            r#"[{"a":null,"b":5,"sub":null}]]}}"#
        ),
    );
}

#[test]
fn lists_of_different_length_are_not_merged() {
    for (first, second) in [
        (r#"[{"a":1}]"#, r#"[{"b":1},{"b":2}]"#),
        (r#"[{"a":1},{"a":2}]"#, r#"[{"b":1}]"#),
    ] {
        for (delay1, delay2) in [(0, 3), (3, 0)] {
            let answer = |items: &str| ok(&format!(r#"{{"data":{{"items":{items}}}}}"#));
            let text = run(
                &shared("[Item]"),
                vec![
                    vec![answer(first).after(delay1)],
                    vec![answer(second).after(delay2)],
                ],
            );
            let json: serde_json::Value = serde_json::from_str(&text).unwrap();
            let errors = json["errors"].as_array().unwrap();
            assert_eq!(errors[0]["extensions"]["code"], "SUBREQUEST_LIST_MISMATCH");
            assert_eq!(errors[0]["path"], serde_json::json!(["items"]));
            // Whatever is there was not mixed; what is missing needs no further error if the second list was refused.
            for item in json["data"]["items"].as_array().unwrap() {
                assert!(item.is_null() || item["a"].is_null(), "{text}");
            }
            if delay1 == 0 {
                assert_eq!(errors.len(), 1, "{text}");
            }
        }
    }
}

#[test]
fn a_list_behind_an_empty_one_fails_on_its_own() {
    let answer = |items: &str| ok(&format!(r#"{{"data":{{"items":{items}}}}}"#));
    let first = r#"[[],[{"a":1}]]"#;
    let second = r#"[[{"b":1}],[{"b":1},{"b":2}]]"#;
    let answers = vec![vec![answer(first)], vec![answer(second).after(3)]];
    let text = run(&shared("[[Item]]"), answers);
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["data"], serde_json::json!({"items": [[], [null]]}));
    let errors = json["errors"].as_array().unwrap();
    let paths: Vec<_> = errors.iter().map(|e| e["path"].to_string()).collect();
    assert_eq!(paths, [r#"["items",0]"#, r#"["items",1]"#], "{text}");
}
