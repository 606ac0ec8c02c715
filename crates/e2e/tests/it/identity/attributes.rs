//! Values by selector where they are shown and told: log lines, spans, metrics, headers, extensions of requests to subgraphs,
//! labels.

use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest, trace::v1::Span,
};
use serde_json::{Value, json};

use super::{Known, made::Folder};
use crate::{
    graph::Graph,
    http_client::{Connection, post_with, request},
    telemetry::{Collector, lines, record, scrape, text, value},
};

const QUERY: &str = "query Marked { me { name } }";

/// All selectors of requests but those of the context, which needs who writes it.
const ALL: &str = "user: { jwt_claim: sub, default: nobody }, tenant: { jwt_claim: org.tenant }, shop: { request_header: X-Shop }, \
                   app: { client_name: true }, build: { client_version: true }, address: { client_address: true }, \
                   name: { operation_name: string }, kind: { operation_kind: string }, verb: { request_method: true }, \
                   type: { response_header: content-type }, http: { response_status: code }, failed: { on_graphql_error: true }, \
                   place: { static: eu }, absent: { request_header: x-absent }, level: { jwt_claim: level }";

fn logged(folder: &Folder, fields: &str, attributes: &str) -> (std::path::PathBuf, String) {
    let path = folder.write("access.log", "");
    let yaml = format!(
        "telemetry: {{ access_log: {{ enabled: true, format: text, path: '{}', fields: [{fields}], \
         attributes: {{ {attributes} }} }} }}\n",
        path.display()
    );
    (path, yaml)
}

#[test]
fn a_line_of_the_access_log_says_what_selectors_say() {
    let folder = Folder::new();
    let (path, yaml) = logged(&folder, "status", ALL);
    let known = Known::with("", &yaml);
    let token = known.token(json!({ "sub": "ida", "org": { "tenant": "acme" }, "level": 3 }));
    let headers = [
        ("authorization", &*format!("Bearer {token}")),
        ("x-shop", "Berlin 1"),
        ("apollographql-client-name", "web"),
        ("apollographql-client-version", "1.2"),
    ];
    assert_eq!(known.ask(QUERY, &headers).status, 200);
    // Nobody is known, and what is asked is wrong.
    assert_eq!(
        known.ask("query Wrong { nothing }", &headers[1..2]).status,
        400
    );
    // Refused before it is known who asks: what the head says is there all the same.
    let bad = [("authorization", "Bearer no.token.this"), headers[1]];
    assert_eq!(known.ask(QUERY, &bad).status, 401);
    let found = lines(&path, 3);
    assert_eq!(
        found,
        [
            "status=200 address=127.0.0.1 app=web build=1.2 failed=false http=200 kind=query level=3 name=Marked \
             place=eu shop=\"Berlin 1\" tenant=acme type=\"application/json; charset=utf-8\" user=ida verb=POST",
            "status=400 address=127.0.0.1 failed=true http=400 place=eu shop=\"Berlin 1\" \
             type=\"application/json; charset=utf-8\" user=nobody verb=POST",
            "status=401 address=127.0.0.1 failed=true http=401 place=eu shop=\"Berlin 1\" \
             type=\"application/json; charset=utf-8\" user=nobody verb=POST",
        ]
    );
    let all: String = found.concat();
    assert!(!all.contains(&token) && !all.contains("no.token.this"));
}

/// Refused when the configuration is read, so a reload takes nothing that a start refuses.
#[test]
fn a_name_of_a_field_is_no_name_of_an_attribute() {
    let known = ogive_telemetry::access::Field::ALL.iter();
    let known: Vec<&str> = known.map(|field| field.word()).collect();
    assert_eq!(known, ogive_config::ACCESS_LOG_FIELDS);
    for (wrong, why) in [
        (
            "attributes: { status: { client_name: true } }",
            "the name of a field",
        ),
        ("fields: [status, stutus]", "no field `stutus`"),
    ] {
        let yaml = format!("telemetry: {{ access_log: {{ {wrong} }} }}\n");
        let error = ogive_config::load(ogive_base::SourceId(0), &yaml, &|_| None).unwrap_err();
        assert!(error[0].message.contains(why), "{}", error[0].message);
    }
}

/// What is refused when the configuration is read: whatever could show a token or a key.
#[test]
fn no_attribute_shows_a_credential() {
    let base = "authentication: { router: { jwt: { header_name: x-token, jwks: [ { url: 'file:///k', issuers: [a] } ], \
                sources: [ { type: header, name: x-second } ] }, api_keys: { file: k, header_name: x-our-key } } }\n\
                headers: { all: { request: [ { propagate: { named: authorization, rename: x-hidden } }, \
                { insert: { name: x-inserted, value: s3cret } } ], response: [ { propagate: { named: set-cookie, rename: x-set } } ] } }\n";
    let load = |more: &str| {
        let text = format!("{base}{more}\n");
        ogive_config::load(ogive_base::SourceId(0), &text, &|_| None)
    };
    let log = |selector: &str| {
        format!("telemetry: {{ access_log: {{ attributes: {{ a: {selector} }} }} }}")
    };
    let at = |place: &str, selector: &str| {
        format!(
            "telemetry: {{ instrumentation: {{ {place}: {{ attributes: {{ a: {selector} }} }} }} }} }}"
        )
    };
    let instrument = |place: &str, metric: &str, selector: &str| {
        format!(
            "telemetry: {{ instrumentation: {{ instruments: {{ {place}: {{ {metric}: {{ attributes: {{ a: {selector} }} }} }} }} }} }}"
        )
    };
    for header in [
        "authorization",
        "Cookie",
        "x-token",
        "x-second",
        "x-our-key",
        "X_Our_Key",
        "proxy-authorization",
        "x-hidden",
        "x-ogive-trace",
    ] {
        let selector = format!("{{ request_header: {header} }}");
        for text in [
            log(&selector),
            at("spans: { router", &selector),
            at("spans: { supergraph", &selector),
            at("spans: { subgraph", &selector),
            instrument("router", "http.server.request.duration", &selector),
            instrument("supergraph", "graphql.operation.duration", &selector),
            instrument("subgraph", "http.client.request.duration", &selector),
        ] {
            let error = load(&text).expect_err(&text);
            let message = &error[0].message;
            assert!(
                message.contains("would show a credential"),
                "{text}: {message}"
            );
        }
        let clients = format!("telemetry: {{ clients: {{ name_headers: [{header}] }} }}");
        assert!(load(&clients).is_err(), "{clients}");
    }
    for header in [
        "x-amzn-oidc-data",
        "X-Goog-IAP-JWT-Assertion",
        "cf-access-jwt-assertion",
        "private-token",
        "sec-websocket-protocol",
    ] {
        let text = log(&format!("{{ request_header: {header} }}"));
        assert!(load(&text).is_err(), "{text}");
    }
    for selector in ["x-inserted", "x-hidden", "authorization"] {
        let text = at(
            "spans: { subgraph",
            &format!("{{ subgraph_request_header: {selector} }}"),
        );
        assert!(load(&text).is_err(), "{text}");
    }
    // What Prometheus takes for its own.
    let label = instrument(
        "router",
        "http.server.request.duration",
        "{ client_name: true }",
    );
    assert!(load(&label.replace("{ a:", "{ __name__:")).is_err());
    assert!(load(&label.replace("{ a:", "{ a__b:")).is_ok());
    for selector in ["set-cookie", "x-set"] {
        assert!(load(&log(&format!("{{ response_header: {selector} }}"))).is_err());
    }
    // What is no credential is fine, and so is a claim.
    for fine in ["{ request_header: x-shop }", "{ jwt_claim: sub }"] {
        assert!(load(&log(fine)).is_ok(), "{fine}");
    }
    let nobody = "telemetry: { access_log: { attributes: { a: { jwt_claim: sub } } } }\n";
    let error = ogive_config::load(ogive_base::SourceId(0), nobody, &|_| None).unwrap_err();
    assert!(error[0].message.contains("nobody is known"));
}

/// In a batch one error is enough; of an answer whose parts are still to come nobody knows whether it has any.
#[test]
fn whether_there_are_errors_is_said_when_it_is_known() {
    let folder = Folder::new();
    let (path, yaml) = logged(&folder, "status", "failed: { on_graphql_error: true }");
    let graph = Graph::with(&format!(
        "batching: {{ enabled: true }}\nsupergraph: {{ defer_support: true }}\n{yaml}"
    ));
    let ask = |accept: &str, body: &str| {
        let mut connection = Connection::open(graph.address());
        let headers = [("content-type", "application/json"), ("accept", accept)];
        connection.write(&request("POST", "/graphql", &headers, body.as_bytes()));
        connection.read()
    };
    let good = r#"{"query":"{ me { name } }"}"#;
    ask("application/json", &format!("[{good},{good}]"));
    ask(
        "application/json",
        &format!(r#"[{good},{{"query":"{{ nothing }}"}}]"#),
    );
    let deferred = r#"{"query":"{ me { id ... @defer { name } } }"}"#;
    ask("multipart/mixed;deferSpec=20220824", deferred);
    let found = lines(&path, 3);
    assert_eq!(
        found[..2],
        ["status=200 failed=false", "status=200 failed=true"]
    );
    assert_eq!(found[2].trim_end(), "status=200");
}

#[test]
fn what_a_script_leaves_in_the_context_is_shown() {
    let folder = Folder::new();
    let script = "fn router_service(service) { service.map_request(|request| { request.context[\"shop::plan\"] = \"gold\"; \
                  if request.headers.contains(\"x-end\") { throw #{ status: 403, body: #{ errors: [] } }; } }); \
                  service.map_response(|response| { response.context[\"shop::plan\"] = \"paid\"; }); }";
    let path = folder.write("entry.rhai", script);
    let (log, yaml) = logged(
        &folder,
        "status",
        "plan: { request_context: 'shop::plan' }, later: { response_context: 'shop::plan' }",
    );
    let graph = Graph::with(&format!(
        "rhai: {{ scripts: '{}', main: entry.rhai, limits: {{ timeout: 60s }} }}\n{yaml}",
        path.parent().unwrap().display()
    ));
    assert_eq!(post_with(graph.address(), QUERY, &[]).status, 200);
    // What is ended at the first stage says what was written until then.
    let ended = post_with(graph.address(), QUERY, &[("x-end", "1")]);
    assert_eq!(ended.status, 403);
    // What was written last counts.
    assert_eq!(
        lines(&log, 2),
        [
            "status=200 later=paid plan=paid",
            "status=403 later=gold plan=gold"
        ]
    );
}

#[test]
fn metrics_have_the_attributes_that_are_asked_for_and_only_so_many_values() {
    let known = Known::with(
        "",
        "telemetry: { exporters: { metrics: { prometheus: { enabled: true, listen: '127.0.0.1:0' }, \
         common: { attribute_values_max: 2 } } }, instrumentation: { instruments: { \
         router: { http.server.request.duration: { attributes: { tenant.id: { jwt_claim: tenant, default: none } } } }, \
         supergraph: { graphql.operation.duration: { attributes: { app: { client_name: true } } } }, \
         subgraph: { http.client.request.duration: { attributes: { for: { supergraph_operation_name: string }, \
         code: { subgraph_response_status: code }, type: { subgraph_response_header: content-type } } } } } } }\n",
    );
    for tenant in ["a", "b", "c", "d", "a"] {
        let token = known.token(json!({ "tenant": tenant }));
        assert_eq!(known.bear(QUERY, &token).status, 200);
    }
    assert_eq!(
        known.ask(QUERY, &[("graphql-client-name", "web")]).status,
        200
    );
    let found = scrape(&known.graph);
    let requests = |tenant: &str| {
        value(
            &found,
            &format!(
                "http_server_request_duration_seconds_count{{http_request_method=\"POST\",\
                 http_response_status_code=\"200\",tenant_id=\"{tenant}\"}}"
            ),
        )
    };
    assert_eq!(requests("a"), 2.0);
    assert_eq!(requests("b"), 1.0);
    // Two are told apart, and what the configuration says; whatever else there is is counted together.
    assert_eq!(requests("other"), 2.0);
    assert_eq!(requests("none"), 1.0);
    let operations = "graphql_operation_duration_seconds_count{graphql_operation_name=\"Marked\",\
                      graphql_operation_type=\"query\",graphql_response_has_errors=\"false\"";
    assert_eq!(value(&found, &format!("{operations},app=\"web\"}}")), 1.0);
    assert_eq!(value(&found, &format!("{operations}}}")), 5.0);
    let subgraphs = "http_client_request_duration_seconds_count{subgraph_name=\"accounts\",\
                     http_response_status_code=\"200\",code=\"200\",for=\"Marked\",type=\"application/graphql-response+json\"}";
    assert_eq!(value(&found, subgraphs), 6.0);
}

fn spans(message: &ExportTraceServiceRequest) -> Vec<Span> {
    let resources = message.resource_spans.iter();
    let scopes = resources.flat_map(|resource| &resource.scope_spans);
    scopes.flat_map(|scope| scope.spans.clone()).collect()
}

#[test]
fn spans_have_the_attributes_that_are_asked_for() {
    let collector = Collector::start(false);
    let yaml = format!(
        "headers: {{ all: {{ request: [ {{ insert: {{ name: x-user, from: {{ jwt_claim: sub }} }} }} ] }} }}\n\
         query_planning: {{ feedback: {{ enabled: true }} }}\n\
         telemetry: {{ exporters: {{ tracing: {{ otlp: {{ enabled: true, endpoint: 'http://{}', \
         batch_processor: {{ scheduled_delay: 10ms }} }} }} }}, instrumentation: {{ spans: {{ \
         router: {{ attributes: {{ enduser.id: {{ jwt_claim: sub }}, url.scheme: {{ static: https }} }} }}, \
         supergraph: {{ attributes: {{ shop: {{ request_header: x-shop }} }} }}, \
         subgraph: {{ attributes: {{ where: {{ subgraph_name: true }}, who: {{ subgraph_request_header: x-user }}, \
         kind: {{ supergraph_operation_kind: string }} }} }} }} }} }}\n",
        collector.address
    );
    let known = Known::with("", &yaml);
    let token = known.token(json!({ "sub": "ida" }));
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", &*bearer), ("x-shop", "Berlin")];
    assert_eq!(known.ask(QUERY, &headers).status, 200);
    let (_, message) = collector.next(|m: &ExportTraceServiceRequest| !spans(m).is_empty());
    let all = spans(&message);
    let named = |name: &str| all.iter().find(|span| span.name == name).unwrap();
    let root = named("POST /graphql");
    assert_eq!(text(&root.attributes, "enduser.id"), "ida");
    // One of the same name stands for what would be there.
    let schemes = root.attributes.iter().filter(|a| a.key == "url.scheme");
    assert_eq!(schemes.count(), 1);
    assert_eq!(text(&root.attributes, "url.scheme"), "https");
    assert_eq!(text(&named("request.execute").attributes, "shop"), "Berlin");
    let call = named("POST accounts");
    let of = |name: &str| text(&call.attributes, name);
    assert_eq!(
        [of("where"), of("who"), of("kind")],
        ["accounts", "ida", "query"]
    );
}

/// What the only request to a subgraph said, and its body.
fn told(graph: &Graph) -> (Vec<(String, String)>, Value) {
    let recorded = graph.service.recorded();
    let last = recorded.last().unwrap();
    let body = serde_json::from_slice(&last.body).unwrap();
    (last.headers.clone(), body)
}

#[test]
fn subgraphs_are_told_what_is_asked_and_by_whom() {
    let insert = |name: &str, from: &str| format!("{{ insert: {{ name: {name}, from: {from} }} }}");
    let rules = [
        insert("x-name", "{ operation_name: string }"),
        insert("x-kind", "{ operation_kind: string }"),
        insert("x-address", "{ client_address: true }"),
        insert("x-user", "{ jwt_claim: sub }"),
        insert("x-app", "{ client_name: true }"),
        insert("x-build", "{ client_version: true }"),
        "{ insert: { name: x-apollo, from_context: 'apollo::supergraph::operation_name' } }".into(),
        // What the client says of the same name is never copied, nor to another name.
        "{ propagate: { matching: '^x-' } }".into(),
        "{ propagate: { named: x-user, rename: x-account, default: nobody } }".into(),
    ];
    let yaml = format!(
        "headers: {{ all: {{ request: [ {} ] }} }}\n\
         traffic_shaping: {{ all: {{ request_extensions: {{ user: {{ jwt_claim: sub }}, org: {{ jwt_claim: org }}, \
         name: {{ operation_name: string }}, kind: {{ operation_kind: string }}, address: {{ client_address: true }}, \
         app: {{ client_name: true }}, build: {{ client_version: true }}, shop: {{ request_header: x-shop, default: none }}, from: {{ static: ogive }}, \
         account: {{ request_header: x-user }} }} }} }}\n",
        rules.join(", ")
    );
    let known = Known::with("", &yaml);
    record(&known.graph);
    let token = known.token(json!({ "sub": "ida", "org": { "id": 7 } }));
    let bearer = format!("Bearer {token}");
    let headers = [
        ("authorization", &*bearer),
        ("graphql-client-name", "web"),
        ("graphql-client-version", "2"),
        ("x-name", "forged"),
        ("x_kind", "forged"),
        ("x-user", "root"),
        ("x-address", "1.1.1.1"),
    ];
    assert_eq!(known.ask(QUERY, &headers).status, 200);
    let (sent, body) = told(&known.graph);
    let all = |name: &str| -> Vec<&str> {
        let found = sent.iter().filter(|(n, _)| n == name);
        found.map(|(_, value)| value.as_str()).collect()
    };
    assert_eq!(all("x-name"), ["Marked"]);
    assert_eq!(all("x-kind"), ["query"]);
    assert_eq!(all("x_kind"), [] as [&str; 0]);
    assert_eq!(all("x-address"), ["127.0.0.1"]);
    assert_eq!(all("x-user"), ["ida"]);
    assert_eq!(all("x-account"), ["nobody"]);
    assert_eq!(all("x-app"), ["web"]);
    assert_eq!(all("x-build"), ["2"]);
    assert_eq!(all("x-apollo"), ["Marked"]);
    assert_eq!(
        body["extensions"],
        json!({ "user": "ida", "org": { "id": 7 }, "name": "Marked", "kind": "query", "address": "127.0.0.1",
                "app": "web", "build": "2", "shop": "none", "from": "ogive" })
    );
    let input = ogive_gateway::ExplainInput {
        request: ogive_gateway::GraphqlRequest {
            query: QUERY.to_owned(),
            ..Default::default()
        },
        headers: http::HeaderMap::new(),
        token: None,
        peer: ogive_base::Peer::Unix,
        is_executed: true,
        has_timings: false,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let gateway = &known.graph.served.gateway;
    let text = runtime.unwrap().block_on(gateway.explain(input)).text;
    let unseen = "(requests without the `extensions` that rules add)";
    assert!(text.contains(unseen), "{text}");
    // Without a name and a caller there is no such header and no such member.
    assert_eq!(
        known.ask("{ me { name } }", &[("x-name", "forged")]).status,
        200
    );
    let (sent, body) = told(&known.graph);
    assert!(
        !sent
            .iter()
            .any(|(name, _)| name == "x-name" || name == "x-user"),
        "{sent:?}"
    );
    assert_eq!(
        body["extensions"],
        json!({ "kind": "query", "address": "127.0.0.1", "shop": "none", "from": "ogive" })
    );
    // A name goes on with at most 256 bytes: a client must not make a head that subgraphs refuse.
    for (length, is_told) in [(256, true), (257, false), (10_000, false)] {
        let name = "N".repeat(length);
        let query = format!("query {name} {{ me {{ name }} }}");
        assert_eq!(known.ask(&query, &[]).status, 200);
        let (sent, body) = told(&known.graph);
        let header = sent.iter().find(|(sent, _)| sent == "x-name");
        assert_eq!(header.map(|(_, value)| value.len()), is_told.then_some(256));
        assert_eq!(body["extensions"].get("name").is_some(), is_told);
    }
}

#[test]
fn answers_that_rest_on_extensions_are_no_caches_to_keep() {
    let known = Known::with(
        "",
        "traffic_shaping: { all: { request_extensions: { user: { jwt_claim: sub } } } }\n\
         headers: { all: { response: [ { propagate: { named: cache-control } } ] } }\n",
    );
    let token = known.token(json!({ "sub": "ida" }));
    let answer = known.bear(QUERY, &token);
    assert_eq!(answer.header("cache-control"), Some("no-store"));
}
