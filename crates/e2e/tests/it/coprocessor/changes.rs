//! What a coprocessor changes.

use ogive_testbase::subgraph::StubSubgraph;
use serde_json::{Value, json};

use super::{Coprocessed, EVERYTHING, ME, all_of, playing};
use crate::{
    http_client::{post_with, send},
    identity::Known,
};

/// Says something at one stage, and nothing at all others.
fn saying(
    stage: &'static str,
    say: impl Fn(&Value) -> Value + Send + Sync + 'static,
) -> Coprocessed {
    let coprocessor = playing(move |told| {
        if told["stage"] == stage {
            say(&told)
        } else {
            json!({})
        }
    });
    Coprocessed::with(
        coprocessor,
        EVERYTHING,
        "headers: { all: { request: [{ propagate: { matching: 'x-.*' } }] } }\n",
    )
}

fn record(with: &Coprocessed) {
    with.graph
        .service
        .configure("accounts", |settings| settings.record = true);
}

/// A header of the only request that a subgraph got.
fn sent(with: &Coprocessed, name: &str) -> Option<String> {
    let recorded = with.graph.service.recorded();
    assert_eq!(recorded.len(), 1);
    let mut all = recorded[0].headers.iter();
    all.find(|(n, _)| n == name).map(|(_, value)| value.clone())
}

#[test]
fn headers_of_every_request_stage_reach_subgraphs() {
    for stage in [
        "RouterRequest",
        "SupergraphRequest",
        "ExecutionRequest",
        "SubgraphRequest",
    ] {
        let with = saying(stage, |told| {
            let mut headers = told["headers"].clone();
            headers["x-new"] = json!(["1"]);
            headers.as_object_mut().unwrap().remove("x-old");
            json!({ "headers": headers })
        });
        record(&with);
        let answer = with.ask(ME, &[("x-old", "1"), ("x-kept", "2")]);
        assert_eq!(answer.codes(), [""; 0], "{stage}");
        assert_eq!(sent(&with, "x-new").as_deref(), Some("1"), "{stage}");
        assert_eq!(sent(&with, "x-old"), None, "{stage}");
        assert_eq!(sent(&with, "x-kept").as_deref(), Some("2"), "{stage}");
    }
}

#[test]
fn headers_and_status_of_every_response_stage_reach_the_client() {
    for stage in ["ExecutionResponse", "SupergraphResponse", "RouterResponse"] {
        let with = saying(stage, |told| {
            let mut headers = told["headers"].clone();
            headers["x-new"] = json!(["1", "2"]);
            json!({ "headers": headers, "statusCode": 207 })
        });
        let answer = with.ask(ME, &[]);
        assert_eq!(answer.status, 207, "{stage}");
        let values = answer.headers.iter().filter(|(name, _)| name == "x-new");
        assert_eq!(values.count(), 2, "{stage}");
        assert!(answer.json()["data"]["me"]["name"].is_string());
    }
}

#[test]
fn bodies_are_replaced_at_every_stage() {
    let me = |answer: crate::http_client::Answer| answer.json()["data"]["me"].clone();
    let with = saying(
        "RouterRequest",
        |_| json!({ "body": "{\"query\":\"{ me { id } }\"}" }),
    );
    assert!(me(with.ask(ME, &[]))["id"].is_string());
    let with = saying(
        "SupergraphRequest",
        |_| json!({ "body": { "query": "{ me { id } }" } }),
    );
    assert!(me(with.ask(ME, &[]))["id"].is_string());
    let with = saying("SubgraphRequest", |told| {
        let mut body = told["body"].clone();
        body["query"] = "{ me { name: id } }".into();
        json!({ "body": body })
    });
    assert_eq!(
        me(with.ask(ME, &[]))["name"],
        me(with.ask("{ me { name: id } }", &[]))["name"]
    );
    for stage in [
        "SubgraphResponse",
        "ExecutionResponse",
        "SupergraphResponse",
    ] {
        let with = saying(
            stage,
            |_| json!({ "body": { "data": { "me": { "name": "x" } } } }),
        );
        assert_eq!(me(with.ask(ME, &[]))["name"], "x", "{stage}");
    }
    let with = saying("RouterResponse", |_| json!({ "body": "{\"data\":null}" }));
    assert_eq!(with.ask(ME, &[]).text(), "{\"data\":null}");
}

#[test]
fn numbers_and_the_order_of_members_pass_unless_they_are_changed() {
    let body = r#"{"query":"query($a: ID!) { product(id: $a) { name } }","variables":{"z":1,"a":"1","n":1.10e400}}"#;
    let with = saying("RouterRequest", |_| json!({}));
    let json = [("content-type", "application/json")];
    let _ = send(
        with.graph.address(),
        "POST",
        "/graphql",
        &json,
        body.as_bytes(),
    );
    let requests = with.coprocessor.requests();
    let supergraph = requests
        .iter()
        .find(|request| request.contains("\"SupergraphRequest\""));
    assert!(
        supergraph
            .unwrap()
            .contains(r#""variables":{"z":1,"a":"1","n":1.10e400}"#)
    );
}

#[test]
fn a_subgraph_is_asked_at_another_url() {
    let elsewhere = StubSubgraph::answering(200, "", r#"{"data":{"me":{"name":"elsewhere"}}}"#);
    let url = elsewhere.url();
    let with = saying("SubgraphRequest", move |_| json!({ "uri": url }));
    let answer = with.ask(ME, &[]);
    assert_eq!(answer.json()["data"]["me"]["name"], "elsewhere");
    assert_eq!(elsewhere.asked(), 1);
    let with = saying("SubgraphRequest", |_| json!({ "uri": "ftp://a/" }));
    assert_eq!(with.ask(ME, &[]).codes(), ["SUBREQUEST_HTTP_ERROR"]);
}

#[test]
fn claims_may_be_augmented_and_taken_away() {
    const STOCK: &str = "{ topProducts(first: 1) { warehouse { city } } }";
    const CLAIMS: &str = "apollo::authentication::jwt_claims";
    let stage = all_of("RouterRequest");
    let enforce = "authorization: { directives: enforce, policies: { rules: { stock: { eq: [{ jwt_claim: stock }, yes] } } } }\n";
    let with = |make: fn(&mut Value)| {
        let coprocessor = playing(move |told| {
            let mut entries = told["context"]["entries"].clone();
            make(&mut entries);
            json!({ "context": { "entries": entries } })
        });
        let yaml = format!(
            "{enforce}coprocessor:\n  url: '{}'\n  timeout: 20s\n  {stage}\n",
            coprocessor.url()
        );
        (Known::with("", &yaml), coprocessor)
    };
    let shows = |known: &Known, token: &str| {
        let answer = known.bear(STOCK, token).json();
        answer["data"]["topProducts"][0]["warehouse"].is_object()
    };
    let (known, _coprocessor) = with(|_| {});
    assert!(!shows(&known, &known.token(json!({}))));
    assert!(shows(&known, &known.token(json!({ "stock": "yes" }))));
    let (known, _coprocessor) = with(|entries| entries[CLAIMS]["stock"] = "yes".into());
    assert!(shows(&known, &known.token(json!({}))));
    let taken_away: [fn(&mut Value); 2] = [
        |entries| entries[CLAIMS] = Value::Null,
        |entries| drop(entries.as_object_mut().unwrap().remove(CLAIMS)),
    ];
    for make in taken_away {
        let (known, _coprocessor) = with(make);
        assert!(!shows(&known, &known.token(json!({ "stock": "yes" }))));
    }
}

#[test]
fn nobody_shares_an_answer_that_was_made_for_somebody_else() {
    let coprocessor = playing(|told| match told["stage"].as_str() {
        Some("SubgraphRequest") => json!({ "headers": { "x-made": ["1"] } }),
        _ => json!({}),
    });
    let with = Coprocessed::with(coprocessor, EVERYTHING, "");
    let answers: Vec<_> = std::thread::scope(|scope| {
        let ask = || post_with(with.graph.address(), ME, &[]).text();
        let all: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert!(answers.iter().all(|answer| *answer == answers[0]));
    let stages = with.stages();
    for stage in super::STAGES {
        let count = stages.iter().filter(|known| *known == stage).count();
        assert_eq!(count, 8, "{stage}");
    }
}

#[test]
fn what_any_page_could_have_sent_is_refused_before_a_coprocessor_makes_it_something_else() {
    let coprocessor = playing(|told| match told["stage"].as_str() {
        Some("RouterRequest") => {
            json!({ "headers": { "content-type": ["application/json"], "accept": ["*/*"] } })
        }
        _ => json!({}),
    });
    let with = Coprocessed::with(coprocessor, EVERYTHING, "");
    let body = json!({ "query": ME }).to_string();
    let send = |headers: &[(&str, &str)]| {
        send(
            with.graph.address(),
            "POST",
            "/graphql",
            headers,
            body.as_bytes(),
        )
    };
    let refused = send(&[("content-type", "text/plain")]);
    assert_eq!(
        (refused.status, refused.codes()),
        (400, vec!["CSRF_ERROR".to_owned()])
    );
    assert!(with.told().is_empty());
    let preflighted = [
        ("content-type", "text/plain"),
        ("x-apollo-operation-name", "Me"),
    ];
    assert_eq!(send(&preflighted).codes(), [""; 0]);
}
