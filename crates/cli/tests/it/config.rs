//! `ogive config`.

use crate::process::{file, run};

#[test]
fn a_configuration_is_checked() {
    let good = file("good.yaml", "limits: { max_depth: 5 }\n");
    let (code, out, _) = run(&["config", "validate", &good]);
    assert_eq!(code, Some(0));
    assert!(out.contains("is fine"), "{out}");
    let bad = file("bad.yaml", "limits:\n  max_dept: 5\n");
    let (code, _, err) = run(&["config", "validate", &bad]);
    assert_eq!(code, Some(1));
    assert!(
        err.contains("did you mean `max_depth`?") && err.contains("bad.yaml:2:3"),
        "{err}"
    );
    assert_eq!(run(&["config", "validate", "no-such.yaml"]).0, Some(1));
}

#[test]
fn the_defaults_can_be_started_from_and_the_schema_is_json() {
    let (code, defaults, _) = run(&["config", "defaults"]);
    assert_eq!(code, Some(0));
    let path = file("defaults.yaml", &defaults);
    assert_eq!(run(&["config", "validate", &path]).0, Some(0), "{defaults}");
    let (code, schema, _) = run(&["config", "schema"]);
    assert_eq!(code, Some(0));
    let schema: serde_json::Value = serde_json::from_str(&schema).unwrap();
    let limits = &schema["properties"]["limits"];
    assert_eq!(limits["additionalProperties"], false);
    assert_eq!(limits["properties"]["parser_max_tokens"]["default"], 15_000);
    let policy = &schema["properties"]["cors"]["properties"]["policies"]["items"];
    assert!(policy["properties"]["origins"].is_object(), "{policy}");
}
