//! Policies that a coprocessor decides.

use serde_json::{Value, json};

use super::playing;
use crate::identity::Known;

const REQUIRED: &str = "apollo::authorization::required_policies";
const STOCK: &str = "{ topProducts(first: 1) { warehouse { city } } }";

/// Whether a caller sees what a policy asks for, if a coprocessor says this of the policies that it is told.
fn shows(say: fn(&Value) -> Value, is_known: bool, stages: &str) -> bool {
    let coprocessor = playing(move |told| {
        let asked = &told["context"]["entries"][REQUIRED];
        json!({ "context": { "entries": { REQUIRED: say(asked) } } })
    });
    let yaml = format!(
        "authorization: {{ directives: enforce }}\ncoprocessor: {{ url: '{}', timeout: 20s, {stages} }}\n",
        coprocessor.url()
    );
    let known = Known::with("", &yaml);
    let answer = if is_known {
        known.bear(STOCK, &known.token(json!({})))
    } else {
        known.ask(STOCK, &[])
    };
    assert_eq!(coprocessor.asked(), 1);
    answer.json()["data"]["topProducts"][0]["warehouse"].is_object()
}

#[test]
fn policies_are_told_undecided_and_hold_if_they_are_said_to() {
    for stages in [
        "supergraph: { request: { context: all } }",
        "supergraph: { request: { context: { selective: ['apollo::authorization::required_policies'] } } }",
    ] {
        let yes = |asked: &Value| {
            assert_eq!(asked, &json!({ "stock": null }));
            json!({ "stock": true })
        };
        assert!(shows(yes, true, stages), "{stages}");
        assert!(shows(yes, false, stages), "{stages}");
        for no in [
            (|_| json!({ "stock": false })) as fn(&Value) -> Value,
            |_| json!({ "stock": null }),
            |_| json!({ "stock": "true" }),
            |_| json!({ "other": true }),
            |_| Value::Null,
            |_| json!([]),
            |asked| asked.clone(),
        ] {
            assert!(!shows(no, true, stages), "{stages}");
        }
    }
}
