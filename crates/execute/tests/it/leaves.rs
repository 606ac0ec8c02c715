//! Result coercion of leaves, and lists of leaves.

use ogive_plan::{LeafKind, Plan, Wrapping};

use crate::{
    fixture::{Builder, wrapping},
    script::{ok, run},
};

/// The response for one root field `x` of a type whose answer is `value`.
fn respond(ty: &str, value: &str) -> String {
    let mut b = Builder::new(&["s"], &["Query"]);
    b.leaf(Plan::ROOT, "x", ty);
    respond_with(b, value)
}
fn respond_with(mut b: Builder, value: &str) -> String {
    b.root(0, "{x}", &[("x", None)]);
    run(
        &b.build(),
        vec![vec![ok(&format!(r#"{{"data":{{"x":{value}}}}}"#))]],
    )
}
fn good(value: &str) -> String {
    format!(r#"{{"data":{{"x":{value}}}}}"#)
}
fn bad(ty: &str) -> String {
    format!(
        r#"{{"data":{{"x":null}},"errors":[{{"message":"The subgraph's value is not of type {ty}.","path":["x"],"extensions":{{"code":"SUBREQUEST_INVALID_VALUE"}}}}]}}"#
    )
}

#[test]
fn values_of_the_type_pass_byte_exact() {
    for (ty, values) in [
        ("Int", &["0", "-0", "2147483647", "-2147483648"][..]),
        (
            "Float",
            &["0", "1.50", "-1e400", "123456789012345678901234567890"],
        ),
        ("String", &[r#""""#, r#""a\u0062\/é""#]),
        ("Boolean", &["true", "false"]),
        ("ID", &[r#""x""#, "7", "12345678901234567890"]),
        (
            "JSON",
            &["1.0", r#"{"a": [1,  {"b":null}]}"#, r#""s""#, "[]"],
        ),
    ] {
        for value in values {
            assert_eq!(respond(ty, value), good(value), "{ty}");
        }
        assert_eq!(respond(ty, "null"), good("null"), "{ty}");
    }
}

#[test]
fn other_values_are_null_and_an_error() {
    for (ty, values) in [
        (
            "Int",
            &[
                "2147483648",
                "-2147483649",
                "1.5",
                "1e10",
                "1e999",
                r#""1""#,
                "true",
                "{}",
                "[1]",
            ][..],
        ),
        ("Float", &[r#""1.5""#, "false", "[]"]),
        ("String", &["1", "true", "{}", r#"["a"]"#]),
        ("Boolean", &["0", r#""true""#, "[]"]),
        ("ID", &["1.5", "1e3", "true", "{}"]),
    ] {
        for value in values {
            assert_eq!(respond(ty, value), bad(ty), "{value}");
        }
    }
}

#[test]
fn whole_numbers_written_otherwise_are_ints() {
    assert_eq!(respond("Int", "1.0"), good("1"));
    assert_eq!(respond("Int", "-2e3"), good("-2000"));
    assert_eq!(respond("Int", "2147483648.0"), bad("Int"));
}

#[test]
fn hidden_enum_values_are_not_told() {
    let respond = |value| {
        let mut b = Builder::new(&["s"], &["Query"]);
        let values = b.plan.enums.push(vec!["BLUE".into(), "RED".into()]);
        b.leaf_of(Plan::ROOT, "x", Wrapping::NULLABLE, LeafKind::Enum(values));
        respond_with(b, value)
    };
    assert_eq!(respond(r#""RED""#), good(r#""RED""#));
    assert_eq!(respond(r#""\u0052ED""#), good(r#""\u0052ED""#));
    for value in [r#""SECRET""#, r#""red""#, r#""""#, "1", "null_"] {
        let value = value.trim_end_matches('_');
        if value == "null" {
            continue;
        }
        assert_eq!(respond(value), bad("the field's enum"), "{value}");
    }
}

/// The reference: the same rules, written as the recursion they are in the specification.
fn reference(value: &serde_json::Value, ty: Wrapping) -> Option<serde_json::Value> {
    use serde_json::Value;
    let completed = match (value, ty.item()) {
        (Value::Null, _) => None,
        (Value::Array(items), Some(item)) => items
            .iter()
            .map(|value| reference(value, item))
            .collect::<Option<Vec<_>>>()
            .map(Value::Array),
        (_, Some(_)) => None,
        (Value::Number(_), None) => Some(value.clone()),
        (_, None) => None,
    };
    match completed {
        Some(value) => Some(value),
        None if ty.is_non_null() => None,
        None => Some(Value::Null),
    }
}

#[test]
fn nulls_in_nested_lists_propagate_like_the_specification_says() {
    let values = [
        "[]",
        "[[]]",
        "[[1,2],[3]]",
        "[[1,null],[3]]",
        "[null,[1]]",
        "[[1],null,[2]]",
        r#"[["x"],[2]]"#,
        "[1,[2]]",
        "[[[1]],[2]]",
        "[ [ 1 , null ] , [ ] , [ null ] ]",
        "3",
        "null",
        r#"[[1],{"a":[2]}]"#,
    ];
    for ty in [
        "[[Int]]",
        "[[Int!]]",
        "[[Int]!]",
        "[[Int!]!]",
        "[[Int]]!",
        "[[Int!]]!",
        "[[Int]!]!",
        "[[Int!]!]!",
    ] {
        for value in values {
            let expected = reference(&serde_json::from_str(value).unwrap(), wrapping(ty).0);
            let expected = match expected {
                Some(value) => serde_json::json!({ "x": value }),
                None => serde_json::Value::Null,
            };
            let got: serde_json::Value = serde_json::from_str(&respond(ty, value)).unwrap();
            assert_eq!(got["data"], expected, "{ty} {value}");
            // Something is wrong exactly if the value changed.
            let changed =
                got["data"]["x"] != serde_json::from_str::<serde_json::Value>(value).unwrap();
            assert_eq!(
                got.get("errors").is_some(),
                changed || got["data"].is_null(),
                "{ty} {value}"
            );
        }
    }
}

#[test]
fn errors_in_lists_name_the_item() {
    assert_eq!(
        respond("[[Int!]!]", r#"[[1],[2,"x",null],[null]]"#),
        concat!(
            r#"{"data":{"x":null},"errors":[{"message":"The subgraph's value is not of type Int.","#,
            r#""path":["x",1,1],"extensions":{"code":"SUBREQUEST_INVALID_VALUE"}}]}"#
        )
    );
    assert_eq!(
        respond("[[Int!]]", r#"[[1],[2,null],["y",null]]"#),
        concat!(
            r#"{"data":{"x":[[1],null,null]},"errors":["#,
            r#"{"message":"Cannot return null for non-nullable field Query.x.","path":["x",1,1],"extensions":{"code":"NON_NULL_VIOLATION"}},"#,
            r#"{"message":"The subgraph's value is not of type Int.","path":["x",2,0],"extensions":{"code":"SUBREQUEST_INVALID_VALUE"}}]}"#
        )
    );
    assert_eq!(
        respond("[Int]", "3"),
        concat!(
            r#"{"data":{"x":null},"errors":[{"message":"The subgraph did not answer a list.","#,
            r#""path":["x"],"extensions":{"code":"SUBREQUEST_INVALID_VALUE"}}]}"#
        )
    );
}
