//! What Cedar's policies decide of callers.

use ogive_cedar::{CallerFacts, CedarDecision, CedarPolicies, CedarTexts, PrincipalOptions};
use serde_json::{Map, Value, json};

/// The same as the condition of the static rule that is compared with it.
const STOCK: &str = r#"
    permit(principal in Group::"staff", action, resource == Policy::"stock");
    permit(principal, action, resource == Policy::"stock")
      when { principal has plan && principal.plan == "gold" };
    forbid(principal, action, resource)
      when { principal has suspended && principal.suspended };
"#;

fn read(
    policies: &str,
    entities: Option<&str>,
    schema: Option<&str>,
) -> Result<CedarPolicies, String> {
    let texts = CedarTexts {
        policies: &[("a.cedar".to_owned(), policies.to_owned())],
        entities,
        schema,
    };
    let options = PrincipalOptions {
        principal_type: "User".into(),
        group_type: "Group".into(),
    };
    CedarPolicies::parse(texts, &options)
}

fn ask(policies: &CedarPolicies, policy: &str, operation: &str, claims: &Value) -> CedarDecision {
    let claims: &Map<String, Value> = claims.as_object().expect("an object");
    let groups: Vec<&str> = match claims.get("groups") {
        Some(Value::String(text)) => text.split(' ').collect(),
        Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let caller = CallerFacts {
        id: claims.get("sub").and_then(Value::as_str).unwrap_or(""),
        groups: &groups,
        scopes: &["read".into()],
        claims,
    };
    let mut decided = policies.decide(&caller, operation, [policy].into_iter());
    decided.pop().expect("one decision for one policy")
}

fn holds(policies: &str, claims: Value) -> bool {
    let policies = read(policies, None, None).expect("policies");
    ask(&policies, "stock", "query", &claims).holds
}

#[test]
fn callers_are_judged_as_by_every_other_evaluator() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("callers.json")).unwrap();
    let policies = read(STOCK, None, None).unwrap();
    for case in &cases {
        let decided = ask(&policies, "stock", "query", &case["claims"]);
        assert_eq!(decided.holds, case["holds"] == true, "{case}");
        assert!(!ask(&policies, "other", "query", &case["claims"]).holds);
    }
}

#[test]
fn the_kind_of_the_operation_is_the_action() {
    let policies = read(
        r#"permit(principal, action in [Action::"query", Action::"subscription"], resource);"#,
        None,
        None,
    );
    let policies = policies.unwrap();
    for (operation, expected) in [("query", true), ("mutation", false), ("subscription", true)] {
        let decided = ask(&policies, "stock", operation, &json!({"sub": "a"}));
        assert_eq!(decided.holds, expected, "{operation}");
    }
}

#[test]
fn scopes_and_claims_of_every_kind_are_attributes() {
    for (condition, claims) in [
        (r#"principal.scopes.contains("read")"#, json!({})),
        ("principal.level > 2", json!({"level": 3})),
        ("principal.realm.admin", json!({"realm": {"admin": true}})),
        (r#"principal.score == "1.5""#, json!({"score": 1.5})),
        (
            r#"principal.tags.containsAll(["a", 1])"#,
            json!({"tags": [1, "a", null]}),
        ),
        ("!(principal has gone)", json!({"gone": null})),
        // A claim names no entity, whatever it looks like.
        (
            r#"principal.x.__entity.id == "a""#,
            json!({"x": {"__entity": {"type": "User", "id": "a"}}}),
        ),
        // Nobody has more scopes by a claim of the name.
        (
            r#"!principal.scopes.contains("write")"#,
            json!({"scopes": ["write"]}),
        ),
    ] {
        let policy = format!("permit(principal, action, resource) when {{ {condition} }};");
        assert!(holds(&policy, claims), "{condition}");
    }
}

#[test]
fn what_cannot_be_evaluated_permits_nothing_and_forbids_what_it_would_have() {
    let permit = "permit(principal, action, resource) when { principal.plan == \"gold\" };";
    let policies = read(permit, None, None).unwrap();
    let decided = ask(&policies, "stock", "query", &json!({"sub": "a"}));
    assert_eq!((decided.holds, decided.failures.len()), (false, 0));
    let forbid = "permit(principal, action, resource); \
                  forbid(principal, action, resource) when { principal.age < 18 };";
    let policies = read(forbid, None, None).unwrap();
    assert!(ask(&policies, "stock", "query", &json!({"age": 20})).holds);
    for claims in [json!({"age": "20"}), json!({})] {
        let decided = ask(&policies, "stock", "query", &claims);
        assert!(!decided.holds, "{claims}");
        assert_eq!(decided.failures, ["`a.cedar:2` cannot be evaluated"]);
    }
    // By its own name, if it has one.
    let named = forbid.replace("forbid(", "@id(\"grown-ups\") forbid(");
    let policies = read(&named, None, None).unwrap();
    let decided = ask(&policies, "stock", "query", &json!({}));
    assert_eq!(decided.failures, ["`grown-ups` cannot be evaluated"]);
    let twice = format!("{named} {}", named.replace("18", "21"));
    assert!(read(&twice, None, None).unwrap_err().contains("a.cedar"));
    assert!(!holds("", json!({"sub": "a"})), "nothing permits");
}

#[test]
fn entities_say_more_of_callers_than_they_claim() {
    let entities = json!([
        { "uid": { "type": "Group", "id": "leads" }, "parents": [{ "type": "Group", "id": "staff" }] },
        { "uid": { "type": "User", "id": "ida" }, "attrs": { "clearance": 3, "desk": { "__entity": { "type": "Desk", "id": "7" } },
          "from": { "__extn": { "fn": "ip", "arg": "10.0.0.1" } } }, "parents": [{ "type": "Group", "id": "leads" }] }
    ]);
    let policies = r#"
        permit(principal in Group::"staff", action, resource)
          when { principal.clearance > 2 && principal.desk == Desk::"7" && principal.from.isInRange(ip("10.0.0.0/8")) };
    "#;
    let read = |entities: &Value| read(policies, Some(&entities.to_string()), None);
    let known = read(&entities).unwrap();
    assert!(
        ask(
            &known,
            "stock",
            "query",
            &json!({"sub": "ida", "clearance": 0})
        )
        .holds
    );
    assert!(
        !ask(
            &known,
            "stock",
            "query",
            &json!({"sub": "eve", "clearance": 9})
        )
        .holds
    );
    for (bad, why) in [
        (json!({}), "no JSON list"),
        (json!([1]), "no JSON object"),
        (json!([{ "attrs": {} }]), "no `uid`"),
        (json!([{ "uid": { "type": "User" } }]), "`type` and `id`"),
        (
            json!([{ "uid": { "type": "a b", "id": "1" } }]),
            "is no type",
        ),
        (
            json!([{ "uid": { "type": "U", "id": "1" }, "tags": {} }]),
            "not `tags`",
        ),
        (
            json!([{ "uid": { "type": "U", "id": "1" }, "attrs": { "a": 1.5 } }]),
            "a whole one",
        ),
        (
            json!([{ "uid": { "type": "U", "id": "1" }, "attrs": { "a": null } }]),
            "no null",
        ),
        (
            json!([{ "uid": { "type": "U", "id": "1" } }, { "uid": { "type": "U", "id": "1" } }]),
            "there twice",
        ),
    ] {
        let error = read(&bad).unwrap_err();
        assert!(error.contains(why), "{bad}: {error}");
    }
}

#[test]
fn what_is_no_policy_or_does_not_fit_the_schema_is_refused_when_it_is_read() {
    assert!(
        read("permit(principal);", None, None)
            .unwrap_err()
            .contains("a.cedar")
    );
    let template = "permit(principal == ?principal, action, resource);";
    assert!(
        read(template, None, None)
            .unwrap_err()
            .contains("templates")
    );
    let schema = r#"
        entity Group; entity Policy;
        entity User in [Group] { plan?: String, scopes: Set<String> };
        action query, mutation, subscription appliesTo { principal: User, resource: Policy };
    "#;
    let good = "permit(principal, action, resource) when { principal has plan && principal.plan == \"gold\" };";
    assert_eq!(read(good, None, Some(schema)).unwrap().len(), 1);
    let misspelt = good.replace("plan", "plam");
    let remarks = read(&misspelt, None, Some(schema)).unwrap().remarks;
    assert!(remarks[0].contains("impossible"), "{remarks:?}");
    let unknown = "permit(principal, action, resource) when { principal.plam == \"gold\" };";
    assert!(
        read(unknown, None, Some(schema))
            .unwrap_err()
            .contains("plam")
    );
    assert!(
        read(good, None, Some("entity"))
            .unwrap_err()
            .contains("schema")
    );
}
