//! GraphiQL and health endpoints.

use crate::setup::{gateway_with, get};

const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

#[tokio::test(flavor = "current_thread")]
async fn graphiql_needs_nothing_from_elsewhere() {
    let gateway = gateway_with("http: { graphql_endpoint: /api/graphql }");
    for path in ["/", "/api/graphql", "/api/graphql?query={me{id}}"] {
        let answer = get(&gateway, path, BROWSER).await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("content-type"), "text/html; charset=utf-8");
        let page = String::from_utf8_lossy(&answer.body).into_owned();
        assert!(page.contains("data-endpoint=\"/api/graphql\""), "{page}");
        assert!(
            !page.contains("http://") && !page.contains("https://"),
            "{page}"
        );
        let assets: Vec<&str> = page
            .split(['"'])
            .filter(|part| part.starts_with("/__graphiql/"))
            .collect();
        assert_eq!(assets.len(), 5, "{page}");
        for asset in assets {
            let answer = get(&gateway, asset, "*/*").await;
            assert_eq!(answer.status, 200, "{asset}");
            assert!(answer.header("cache-control").contains("immutable"));
            assert!(answer.body.len() > 500, "{asset}");
        }
    }
}

#[tokio::test(flavor = "current_thread")]
async fn graphiql_can_be_switched_off() {
    let gateway = gateway_with("homepage: { enabled: false }");
    assert_eq!(get(&gateway, "/", BROWSER).await.status, 404);
    // A browser takes anything if it must, so it is told what is wrong with its request.
    let answer = get(&gateway, "/graphql", BROWSER).await;
    assert_eq!(answer.status, 400);
    let body = String::from_utf8_lossy(&answer.body);
    assert!(body.contains("the request has no `query`"), "{body}");
    assert_eq!(get(&gateway, "/graphql", "text/html").await.status, 406);
    for path in ["/__graphiql/3.9.0-3/start.js", "/__ogive/graphiql"] {
        assert_eq!(get(&gateway, path, "*/*").await.status, 404);
    }
}

/// The page learns from it whether there is a schema to fetch, whether it is another one, and what else can be shown.
#[tokio::test(flavor = "current_thread")]
async fn graphiql_learns_what_is_offered() {
    let gateway = gateway_with("");
    let state = |gateway: std::sync::Arc<ogive_gateway::Gateway>| async move {
        get(&gateway, "/__ogive/graphiql", "*/*").await.json()
    };
    let first = state(gateway.clone()).await;
    assert_eq!(first["introspection"], false);
    assert!(
        first["plan"].is_null() && first["trace"].is_null(),
        "{first}"
    );
    assert_eq!(state(gateway.clone()).await, first);
    gateway.replace(crate::setup::state(&ogive_config::Config::default()));
    assert_ne!(state(gateway).await["schema"], first["schema"]);
    let open = gateway_with(
        "supergraph: { introspection: true }\nquery_planning: { expose: { enabled: true } }\n\
         telemetry: { execution_trace: { enabled: true } }\n",
    );
    let offered = state(open).await;
    assert_eq!(offered["introspection"], true);
    assert_eq!(offered["plan"], "apollo-expose-query-plan");
    assert_eq!(offered["trace"], "x-ogive-trace");
    let secret = "telemetry: { execution_trace: { enabled: true, secret: s } }";
    assert!(state(gateway_with(secret)).await["trace"].is_null());
}

#[tokio::test(flavor = "current_thread")]
async fn health_and_readiness() {
    let gateway = gateway_with("health_check: { readiness_path: /ready }");
    assert_eq!(
        get(&gateway, "/health", "").await.body,
        r#"{"status":"UP"}"#
    );
    for path in [
        "/ready",
        "/health?ready",
        "/health?live",
        "/health?READY=",
        "/health?x",
    ] {
        assert_eq!(get(&gateway, path, "").await.status, 200, "{path}");
    }
    ogive_server::Service::start_draining(&*gateway);
    for (path, status) in [
        ("/health", 200),
        ("/health?live", 200),
        ("/health?ready", 503),
        ("/health?a=b&ready", 503),
    ] {
        assert_eq!(get(&gateway, path, "").await.status, status, "{path}");
    }
    let answer = get(&gateway, "/ready", "").await;
    assert_eq!(
        (answer.status.as_u16(), &answer.body[..]),
        (503, &br#"{"status":"DOWN"}"#[..])
    );
    let gateway = gateway_with("health_check: { enabled: false }");
    assert_eq!(get(&gateway, "/health", "").await.status, 404);
}
