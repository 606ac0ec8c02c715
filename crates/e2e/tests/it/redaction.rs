//! Fields that are null for all callers but some.

use serde_json::{Value, json};

use crate::{
    graph::Graph,
    http_client::{Answer, post_with},
};

const REDACT: &str = r#"
authorization:
  directives: enforce
  claims: { header: x-claims, trusted: [127.0.0.1] }
  redact:
    - fields: [Person.city, Account.joinedOn]
      unless: { contains: [{ jwt_claim: roles }, support] }
    - fields: [Company.website]
"#;
const SUPPORT: &str = r#"{"claims":{"roles":["user","support"]}}"#;
const USER: &str = r#"{"claims":{"roles":["user"]}}"#;

fn ask(graph: &Graph, query: &str, claims: Option<&str>) -> Answer {
    let claims = claims.map(|claims| ("x-claims", claims));
    post_with(graph.address(), query, claims.as_slice())
}

#[test]
fn a_field_is_null_unless_claims_say_otherwise() {
    let graph = Graph::with(REDACT);
    let query = "{ me { name city } }";
    let seen = ask(&graph, query, Some(SUPPORT));
    assert_eq!(seen.codes(), Vec::<String>::new());
    assert!(seen.json()["data"]["me"]["city"].is_string());
    // A policy of that name is nobody's to have.
    let forged = r#"{"policies":["ogive:redact:0"],"claims":{"roles":["user"]}}"#;
    let nobody = r#"{"authenticated":false,"policies":["ogive:redact:0"]}"#;
    for claims in [None, Some(USER), Some("{}"), Some(forged), Some(nobody)] {
        let kept = ask(&graph, query, claims);
        assert_eq!(kept.codes(), ["UNAUTHORIZED_FIELD_OR_TYPE"]);
        let json = kept.json();
        assert_eq!(json["data"]["me"]["city"], Value::Null, "{claims:?}");
        assert!(json["data"]["me"]["name"].is_string());
        assert_eq!(json["errors"][0]["path"], json!(["me", "city"]));
    }
}

#[test]
fn a_subgraph_is_not_asked_for_what_is_redacted() {
    let graph = Graph::with(REDACT);
    graph
        .service
        .configure("accounts", |settings| settings.record = true);
    assert_eq!(
        ask(&graph, "{ me { city } }", Some(USER)).json()["data"],
        json!({"me": {"city": null}})
    );
    let asked = graph.service.recorded();
    let bodies = asked
        .iter()
        .map(|request| String::from_utf8_lossy(&request.body));
    let bodies: Vec<_> = bodies.collect();
    assert!(
        bodies.iter().all(|body| !body.contains("city")),
        "{bodies:?}"
    );
}

#[test]
fn a_field_of_an_interface_is_redacted_wherever_it_is() {
    let graph = Graph::with(REDACT);
    for query in [
        "{ me { joinedOn } }",
        "{ accounts { joinedOn } }",
        "{ accounts { ... on Company { joinedOn } } }",
    ] {
        let kept = ask(&graph, query, Some(USER));
        assert!(!kept.text().contains("20"), "{query}: {}", kept.text());
        assert!(!kept.codes().is_empty(), "{query}");
        let seen = ask(&graph, query, Some(SUPPORT));
        assert_eq!(seen.codes(), Vec::<String>::new(), "{query}");
    }
    let website = ask(
        &graph,
        "{ accounts { ... on Company { website } } }",
        Some(SUPPORT),
    );
    assert!(
        website
            .codes()
            .contains(&"UNAUTHORIZED_FIELD_OR_TYPE".to_owned())
    );
    assert!(!website.text().contains("http"), "{}", website.text());
}
