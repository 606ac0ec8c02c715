//! The artefact of each of the five stops, as `ogive explain` shows it. `BLESS=1` rewrites the snapshot.

use std::path::PathBuf;

use http::{HeaderName, HeaderValue};
use ogive_base::Peer;
use ogive_gateway::{ExplainInput, GraphqlRequest, JsonObject};
use ogive_testbase::assert_recorded;

use crate::graph::Graph;

const QUERY: &str = "query Top($n: Int, $withStock: Boolean = true) {
  topProducts(first: $n) {
    name
    inStock @include(if: $withStock)
    ...Opinions
  }
}
fragment Opinions on Product {
  reviews(first: 1) { stars author { username } }
}
query Other { me { name } }";

async fn explained(graph: &Graph, request: GraphqlRequest, is_executed: bool) -> String {
    explained_with(graph, request, is_executed, &[]).await.0
}

/// What is told, and whether it is refused.
async fn explained_with(
    graph: &Graph,
    request: GraphqlRequest,
    is_executed: bool,
    headers: &[(&'static str, &str)],
) -> (String, bool) {
    let headers = headers.iter().map(|(name, value)| {
        let value = HeaderValue::from_str(value).unwrap();
        (HeaderName::from_static(name), value)
    });
    let input = ExplainInput {
        request,
        headers: headers.collect(),
        token: None,
        peer: Peer::Unix,
        is_executed,
        has_timings: false,
    };
    let explained = graph.served.gateway.explain(input).await;
    (explained.text, explained.is_refused)
}

#[tokio::test(flavor = "current_thread")]
async fn five_stops() {
    let graph = Graph::start();
    let request = GraphqlRequest {
        query: QUERY.into(),
        operation_name: Some("Top".into()),
        variables: JsonObject::read(r#"{"n":2}"#.into()).unwrap().unwrap(),
        ..GraphqlRequest::default()
    };
    let found = explained(&graph, request, true).await;
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/it/five_stops.txt");
    assert_recorded(path, &found);
}

#[tokio::test(flavor = "current_thread")]
async fn a_refused_request_shows_how_far_it_came() {
    let graph = Graph::start();
    let request = GraphqlRequest {
        query: "{ nope }".into(),
        ..GraphqlRequest::default()
    };
    let text = explained(&graph, request, false).await;
    assert!(text.contains("== 3. plan ==\n(not reached)"), "{text}");
    assert!(text.contains("GRAPHQL_VALIDATION_FAILED"), "{text}");
}

/// It is the gateway's own run: a stage that the configuration asks for is in it, where it happens, and refuses as it does
/// for clients.
#[tokio::test(flavor = "current_thread")]
async fn stages_that_are_switched_on_are_shown_in_their_place() {
    let control = "demand_control: { enabled: true, mode: enforce, strategy: { static_estimated: { list_size: 10, max: ";
    let request = || GraphqlRequest {
        query: "{ topProducts(first: 5) { name reviews { stars } } }".into(),
        ..GraphqlRequest::default()
    };
    let names = |text: &str| {
        let lines = text.lines().filter(|line| line.starts_with("== "));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let graph = Graph::with(&format!("{control}1000 }} }} }}\n"));
    let text = explained(&graph, request(), true).await;
    let charged = [
        "== 1. receive ==",
        "== 2. prepare ==",
        "== charge ==",
        "== 3. plan ==",
        "== 4. execute ==",
        "== 5. respond ==",
    ];
    assert_eq!(names(&text), charged, "{text}");
    let graph = Graph::with(&format!("{control}1 }} }} }}\n"));
    let text = explained(&graph, request(), true).await;
    assert_eq!(names(&text), charged, "{text}");
    assert!(text.contains("== 3. plan ==\n(not reached)"), "{text}");
    assert!(text.contains("COST_ESTIMATED_TOO_EXPENSIVE"), "{text}");
    // What is only measured passes, and is told.
    let graph = Graph::with("limits: { max_depth: 1, warn_only: [max_depth] }\n");
    let text = explained(&graph, request(), false).await;
    assert!(
        text.contains("== limits ==\nexceeded, which is only measured: MAX_DEPTH_LIMIT\n"),
        "{text}"
    );
}

fn asked(query: &str) -> GraphqlRequest {
    GraphqlRequest {
        query: query.into(),
        ..GraphqlRequest::default()
    }
}

/// The stages of HTTP are those of a request on the network: who asks, the rate of whoever asks, rates of operations, rules.
#[tokio::test(flavor = "current_thread")]
async fn the_stages_of_http_are_shown_as_they_pass() {
    let folder = std::env::temp_dir().join(format!("ogive-explain-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let keys = folder.join("keys.json");
    // The digest of `secret`.
    let digest = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";
    let text =
        format!("{{\"keys\":{{\"reporting\":{{\"sha256\":\"{digest}\",\"scopes\":[\"read\"]}}}}}}");
    std::fs::write(&keys, text).unwrap();
    let graph = Graph::with(&format!(
        "authentication: {{ router: {{ api_keys: {{ file: '{}' }} }} }}\n\
         authorization: {{ require_authentication: true }}\n\
         traffic_shaping: {{ router: {{ rate_limit: {{ capacity: 7, interval: 1m }} }} }}\n\
         limits: {{ operation_rules: [{{ refuse: mutations }}] }}\n",
        keys.display()
    ));
    let request = || asked("{ me { name } }");
    let (text, is_refused) =
        explained_with(&graph, request(), false, &[("x-api-key", "secret")]).await;
    for line in [
        "== who asks ==\nAPI key: known\nscopes: read\n",
        "claim sub: \"reporting\"",
        "== admit ==\nrate \"default\": 6 left of 7 in 60 s",
        "== rules ==\n1 in all",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert!(!is_refused, "{text}");
    let refused = [
        (
            &[][..],
            "nobody is known to ask; looked for in the header `x-api-key` (API keys)",
            "UNAUTHENTICATED",
        ),
        (
            &[("x-api-key", "guess")],
            "refused: the API key is not known (INVALID_API_KEY)",
            "INVALID_API_KEY",
        ),
    ];
    for (headers, line, code) in refused {
        let (text, is_refused) = explained_with(&graph, request(), false, headers).await;
        assert!(text.contains(line) && is_refused, "{line}: {text}");
        assert!(text.contains("== 1. receive ==\n(not reached)"), "{text}");
        assert!(
            text.contains("HTTP 401 Unauthorized\nwww-authenticate: ") && text.contains(code),
            "{text}"
        );
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// Groups that come later are in the plan, and every payload is shown as it leaves.
#[tokio::test(flavor = "current_thread")]
async fn an_answer_in_parts_is_shown_part_by_part() {
    let graph = Graph::with("supergraph: { defer_support: true }\n");
    let request = || {
        asked(
            "{ topProducts(first: 1) { name ... @defer(label: \"late\") { reviews { stars } } } }",
        )
    };
    let planned = |text: &str| text.split_once("== 3. plan ==\n").unwrap().1.to_owned();
    let text = explained(&graph, request(), false).await;
    assert!(planned(&text).contains("\"late\""), "{text}");
    let text = explained(&graph, request(), true).await;
    let (_, parts) = text.split_once("== 5. respond ==\n").unwrap();
    let parts: Vec<&str> = parts.trim().split("\n\n").collect();
    assert_eq!(parts.len(), 2, "{text}");
    assert!(
        parts[0].contains("\"hasNext\": true") && parts[1].contains("\"late\""),
        "{text}"
    );
    assert_eq!(
        text.matches("\n  > ").count(),
        text.matches("\n  < 200 ").count(),
        "{text}"
    );
    assert!(text.matches("\n  > ").count() >= 2, "{text}");
    // Whoever reads no parts is answered at once.
    let whole = [("accept", "application/json")];
    let (text, _) = explained_with(&graph, request(), false, &whole).await;
    assert!(!planned(&text).contains("late"), "{text}");
}
