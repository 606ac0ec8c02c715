//! Fields that are null for all callers but some.

use serde_json::{Value, json};

use crate::{
    graph::{Graph, config, demo_file},
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

#[tokio::test(flavor = "current_thread")]
async fn explaining_names_the_section_that_redacts() {
    let graph = Graph::with(REDACT);
    let mut headers = http::HeaderMap::new();
    headers.insert("x-claims", http::HeaderValue::from_static(USER));
    let input = ogive_gateway::ExplainInput {
        request: ogive_gateway::GraphqlRequest {
            query: "{ me { city } }".to_owned(),
            ..Default::default()
        },
        headers,
        token: None,
        peer: ogive_base::Peer::Tcp(([127, 0, 0, 1], 0).into()),
        is_executed: false,
        has_timings: false,
    };
    let text = graph.served.gateway.explain(input).await.text;
    let line = "policy ogive:redact:0: does not hold, decided by `authorization.redact`";
    assert!(text.contains(line), "{text}");
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

const MASKS: &str = r#"
authorization:
  directives: enforce
  introspection: authorized
  claims: { header: x-claims, trusted: [127.0.0.1] }
  redact:
    - fields: [Person.city]
      unless: { contains: [{ jwt_claim: roles }, support] }
      mask: "***"
    - fields: [Account.id]
      mask: hidden
"#;

#[test]
fn others_see_a_mask_where_one_is_set() {
    let graph = Graph::with(&format!("supergraph: {{ introspection: true }}\n{MASKS}"));
    graph
        .service
        .configure("accounts", |settings| settings.record = true);
    let query = "{ me { id name city } }";
    for claims in [None, Some(USER)] {
        let kept = ask(&graph, query, claims);
        // A mask is what such a caller is to see: no error says that there is more.
        assert_eq!((kept.status, kept.codes()), (200, vec![]), "{claims:?}");
        let me = &kept.json()["data"]["me"];
        assert_eq!((&me["city"], &me["id"]), (&json!("***"), &json!("hidden")));
        assert!(me["name"].is_string());
    }
    let asked = graph.service.recorded();
    let mut bodies = asked
        .iter()
        .map(|request| String::from_utf8_lossy(&request.body));
    assert!(bodies.all(|body| !body.contains("city")));
    let seen = ask(&graph, query, Some(SUPPORT)).json();
    assert_ne!(seen["data"]["me"]["city"], "***");
    assert_eq!(seen["data"]["me"]["id"], "hidden", "there is no `unless`");
    // Whoever sees a mask may ask for it, and knows that the field is there.
    let fields = ask(
        &graph,
        "{ __type(name: \"Person\") { fields { name } } }",
        None,
    );
    assert!(fields.text().contains("\"city\""), "{}", fields.text());
}

#[test]
fn a_mask_refuses_no_operation_and_a_dry_run_shows_what_is_behind_it() {
    let more = |more: &str| MASKS.replace("introspection: authorized", more);
    let rejecting = Graph::with(&more("reject_unauthorized: true"));
    let kept = ask(&rejecting, "{ me { city } }", None);
    assert_eq!((kept.status, kept.codes()), (200, vec![]));
    assert_eq!(kept.json()["data"]["me"]["city"], "***");
    let dry = Graph::with(&more("dry_run: true"));
    let shown = ask(&dry, "{ me { city } }", None).json();
    assert!(shown["data"]["me"]["city"].is_string());
    assert_ne!(shown["data"]["me"]["city"], "***");
}

#[test]
fn rules_that_do_not_fit_the_supergraph_are_refused() {
    let read = |sdl: &str| {
        ogive_federation::read_supergraph(
            sdl,
            ogive_base::SourceId(0),
            &ogive_federation::ReadOptions::default(),
        )
        .unwrap()
    };
    let supergraph = read(&demo_file("supergraph.graphql"));
    let checked = |rule: &str| {
        let text = format!("authorization: {{ directives: enforce, redact: [{{ {rule} }}] }}\n");
        ogive_gateway::redaction::check(&supergraph, &config(&text))
    };
    for good in [
        "fields: [Person.city, Account.id]",
        "fields: [Person.city, Account.id], mask: '***'",
        "fields: [Product.price]",
    ] {
        assert_eq!(checked(good), Ok(()), "{good}");
    }
    for (bad, why) in [
        ("fields: [Person.citty]", "did you mean `Person.city`?"),
        ("fields: [Persn.city]", "did you mean `Person.city`?"),
        ("fields: [Person.city, Nobody.zzzzzzz]", "`Nobody.zzzzzzz`"),
        ("fields: [Product.price], mask: '***'", "`Product.price`"),
        ("fields: [Review.stars], mask: '***'", "whose type is `Int"),
    ] {
        let error = checked(bad).unwrap_err();
        assert!(error.contains(why), "{bad}: {error}");
    }
}
