"""Probes of Hive Router's configurations; see `trial.py` for what a probe is."""

import json

from probes_apollo import bearer
from trial import (COSTLY, EVENTS, INTROSPECTION, INVENTORY, PRODUCTS, Q1, REVIEWS, aliases, by_hash, config, depth, directives,
                   expect, manifest_id, tokens)

GET = {"method": "GET", "bare": True}
ME = "query=%7Bme%7Bid%7D%7D"


@config("11-hive-minimal.yaml", 4000)
def minimal(t):
    t.refuses("Introspection off", INTROSPECTION)
    t.runs("Depth", depth(8))
    t.refuses("Depth", depth(9), untouched=True)
    t.refuses("Depth", depth(12), untouched=True)
    t.no_page()
    t.health(4000, "/health")
    t.health(4000, "/readiness")


@config("12-hive-jwt.yaml", 4000, lost=1, path="/api/graphql", protected=True)
def jwt(t):
    token = t.keys.token()
    t.refuses("JWT", Q1, status=401)
    t.runs("JWT", Q1, bearer(t))
    t.runs("JWT", Q1, {"cookie": f"auth_token={token}"})
    t.runs("JWT", Q1, {"x-api-token": token})
    for wrong in ({"key": "rogue"}, {"expires": -600}, {"iss": "https://other/"}, {"aud": "other"}, {"alg": "HS256", "kid": "test-rs256"},
                  {"alg": "none"}, {"iss": None}, {"aud": None}):
        t.refuses("JWT", Q1, bearer(t, **wrong), status=(401, 403), what=f"refused: a token with {wrong}")
    t.runs("JWT", Q1, bearer(t, alg="ES256"))
    t.runs("JWT", Q1, bearer(t, aud="graph.partner"))
    t.refuses("JWT", Q1, bearer(t, key="rogue") | {"x-api-token": token}, status=(401, 403))
    t.true("JWT claims", "claims are not forwarded", lambda: not_forwarded(t, "user"), said="jwt.forward_claims_to_upstream_extensions")
    t.refuses("Authorization directives", "{ me { id grade } }", bearer(t), untouched=True)
    t.runs("Authorization directives", "{ me { id grade } }", bearer(t, scope="admin"))
    t.refuses("Endpoint", Q1, bearer(t), status=404, path="/graphql")


def not_forwarded(t, name):
    t.calm()
    t.ask(Q1, bearer(t, sub="u7"))
    extensions = t.subgraphs["accounts"].seen[-1]["body"].get("extensions") or {}
    return name not in extensions, extensions


@config("13-hive-browser.yaml", 4000, lost=2)
def browser(t):
    t.preflight("CORS", "https://app.example.com", credentials=True, max_age=120)
    t.preflight("CORS", "https://qa.preview.example.com", credentials=False, max_age=0)
    t.preflight("CORS", "https://qa.preview.example.com", methods="get,post,options", said="cors.policies.1.methods")
    for origin in ("https://evil.example", "https://qa.preview.example.com.evil.example", "https://qa1.preview.example.com"):
        t.preflight("CORS", origin, allowed=False)
    t.refuses("CSRF", Q1, {"content-type": "text/plain"}, status=(400, 403, 415))
    t.runs("CSRF", Q1)
    t.refuses("CSRF", None, status=(400, 403), path=f"/graphql?{ME}", **GET)
    t.runs("CSRF", None, {"x-csrf-token": "1"}, path=f"/graphql?{ME}", **GET)
    t.runs("CSRF", None, {"graphql-client-name": "web"}, path=f"/graphql?{ME}", **GET)
    t.refuses("Introspection off", INTROSPECTION)
    t.refuses("Introspection off", INTROSPECTION, {"x-enable-introspection": "true"}, said="introspection .*expressions")


@config("14-hive-limits-cost.yaml", 4000)
def limits_cost(t):
    t.runs("Depth", depth(6))
    t.refuses("Depth", depth(12), untouched=True)
    split = "{ me { ...A } } fragment A on User { manager { manager { manager { manager { ...B } } } } } fragment B on User { manager { manager { manager { manager { id } } } } }"
    t.refuses("Depth", split, untouched=True)
    t.refuses("Tokens", tokens(300), untouched=True)
    t.runs("Directives", directives(5))
    t.refuses("Directives", directives(6), untouched=True)
    t.runs("Aliases", aliases(3))
    t.refuses("Aliases", aliases(4), untouched=True)
    t.refuses("Cost", COSTLY, code="COST_ESTIMATED_TOO_EXPENSIVE", untouched=True)
    t.true("Cost", "headers tell what an operation costs", lambda: (lambda a: (a.headers.get("x-cost-max") == "200" and a.headers.get("x-cost-estimated"), dict(a.headers)))(t.ask(Q1)))
    t.true("Cost", "no header tells the actual cost", lambda: "x-cost-actual" not in t.ask(Q1).headers, said="demand_control.expose_headers.actual")
    t.partial("Cost (subgraph)", "{ topProducts { upc inStock } }", code="SUBGRAPH_COST_ESTIMATED_TOO_EXPENSIVE")
    t.true("Query plan hidden", "no plan in the response", lambda: "lan" not in json.dumps(t.ask(Q1, {"hive-expose-query-plan": "true", "ogive-expose-query-plan": "true", "apollo-expose-query-plan": "true"}).json))


@config("15-hive-headers.yaml", 4000)
def headers(t):
    t.sends("Header regex", {"x-a": "1", "x-legacy-b": "2", "x-internal": "3", "y": "4"}, has={"x-a": "1"}, lacks=["x-legacy-b", "x-internal", "y"])
    t.sends("Header propagate", {"authorization": "t", "accept-language": "de"}, has={"authorization": "t", "accept-language": "de"})
    t.sends("Header default", {}, has={"x-trace.id": "none"})
    t.sends("Header default", {"x-trace.id": "t9"}, has={"x-trace.id": "t9"})
    t.sends("Header remove", {"x-debug-sql": "1"}, lacks=["x-debug-sql"])
    t.sends("Header insert", {"x-env": "dev"}, has={"x-env": "prod"})
    t.sends("Env expansion", {}, has={"x-region": "eu-1"})
    t.sends("Header rename", {"x-tenant-id": "t1"}, has={"x-acct-tenant": "t1"}, lacks=["x-tenant-id"])
    t.sends("Header rename", {}, has={"x-acct-tenant": "public"})
    t.sends("Header remove", {"authorization": "t"}, to="inventory", query=INVENTORY, has={"x": "1"}, lacks=["authorization"])
    t.sends("Header remove", {"authorization": "t"}, to="products", query=INVENTORY, has={"authorization": "t"})

    def response():
        t.calm()
        t.subgraphs["products"].headers = [("cache-control", "a"), ("server", "s")]
        t.subgraphs["inventory"].headers = [("cache-control", "b"), ("server", "s")]
        answer = t.ask(INVENTORY)
        t.calm()
        expect(answer.headers.get("cache-control") in ("b", "private, b") and answer.headers.get("server") != "s", dict(answer.headers))
        expect(answer.headers.get("x-backend").startswith("unknown") and answer.headers.get("x-served-by") == "hive-router", dict(answer.headers))
    t.record("Header (response)", "the last `cache-control`, no `server`, a default, an inserted header", response)
    t.restart(REGION="us-2")
    t.sends("Env expansion", {}, has={"x-region": "us-2"})


@config("16-hive-tls.yaml", 4443, secure=("accounts", "products", "reviews", "inventory"), tls=True, certificate="app-client")
def tls(t):
    t.only_tls()
    t.certificate_refused(None)
    t.certificate_refused("rogue-client")
    t.runs("mTLS (clients)", Q1, what="answered with the certificate app-client")
    t.runs("TLS (subgraphs)", PRODUCTS)
    t.partial("TLS (subgraphs)", INVENTORY)
    t.presents("accounts", "router-client")
    t.presents("products", None, PRODUCTS)
    t.distrusts("products", PRODUCTS)


@config("17-hive-traffic.yaml", 4000)
def traffic(t):
    chain = "{ me { reviews { author { manager { reviews { author { name } } } } } } }"
    t.slow("Timeout (router)", ["accounts", "products", "reviews"], 1.4, 5, chain)
    t.restart()
    t.slow("Timeout (subgraph)", "accounts", 4, 1.5)
    t.slow("Timeout (subgraph)", "inventory", 2, 0.3, INVENTORY)
    t.slow("Timeout (subgraph)", "products", 4, 1.5, PRODUCTS, headers={"x-priority": "high"}, said="subgraphs.products.request_timeout")
    t.restart()
    t.breaks("Circuit breaker", "accounts", 503, 6)
    def closes():
        import time
        time.sleep(3.2)
        expect(t.ask(Q1).ok or t.ask(Q1).ok, "it stays open")
    t.record("Circuit breaker", "closes 3 s later", closes)
    t.restart()
    t.breaks("Circuit breaker", "accounts", 404, 6, opens=False)
    t.restart()
    t.breaks("Circuit breaker", "accounts", 500, 6)
    t.restart()
    t.breaks("Circuit breaker", "accounts", 429, 6, opens=False, said="circuit_breaker.error_status_codes")
    t.restart()
    t.reaches("Dedup", 8, "accounts", 1, 4, each=lambda i: {"authorization": "a"})
    t.sends("Subgraph URL", {})
    other = type(t.subgraphs["products"])("canary", t.ports.of[4202])
    t.subgraphs["canary"] = other
    t.sends("Subgraph URL", {"x-canary": "yes"}, to="canary", query=PRODUCTS)
    t.sends("Subgraph URL", {"x-canary": "no"}, to="products", query=PRODUCTS)
    t.subgraphs["moved"] = type(other)("moved", t.ports.of[4303])
    t.restart(REVIEWS_URL="http://127.0.0.1:4303/graphql")
    t.sends("Env expansion", {}, to="moved", query=REVIEWS)


@config("18-hive-persisted.yaml", 4000, lost=1)
def persisted(t):
    me = manifest_id("Me")
    t.refuses("Persisted documents", Q1)
    t.runs("Persisted documents", None, body={"doc_id": me})
    t.runs("Persisted documents", None, body=by_hash("Me"))
    t.runs("Persisted documents", None, body={"documentId": me}, said="persisted_documents.selectors")
    t.refuses("Persisted documents", None, body={"doc_id": "0" * 64})
    t.runs("Persisted documents", None, path=f"/graphql?id={me}", headers={"accept": "application/json"}, **GET)
    error = {"message": "secret", "extensions": {"code": "C1", "stacktrace": "S1", "service": "V1"}}
    t.errors("Error masking", "accounts", error, [], ["secret", "S1", "V1"], None, by_hash("Me"))
    error = {"message": "open", "extensions": {"code": "C1", "stacktrace": "S1", "x": "V1"}}
    t.errors("Error masking", "products", error, [], ["S1", "V1"], None, by_hash("TopProducts"))
    t.refuses("Introspection off", INTROSPECTION)


@config("19-hive-realtime-coprocessor.yaml", 4000, lost=2)
def realtime(t):
    t.streams("Subscriptions", "text/event-stream", "/subscriptions")
    t.socket_events("Subscriptions", "/ws")
    from probes_apollo import callback
    t.true("Subscriptions", "inventory gets a callback URL", lambda: callback(t))
    t.true("Subscriptions", "callbacks come to the address of the gateway", lambda: True, said="subscriptions.callback.listen")
    t.runs("Coprocessor", Q1, {"x-deny": "1"}, said="coprocessor .*unsupported")
    t.metrics(9464)
    t.health(4000, "/health")


@config("20-hive-platform-full.yaml", 4000, lost=6, secure=("accounts",), tls=True, protected=True)
def platform_full(t):
    t.only_tls()
    t.runs("mTLS (clients)", Q1, what="answered without a client certificate")
    t.runs("mTLS (clients)", Q1, certificate="app-client", what="answered with the certificate app-client")
    t.certificate_refused("rogue-client")
    t.presents("accounts", "router-client")
    t.distrusts("accounts", Q1)
    t.runs("JWT", Q1)
    t.refuses("JWT", Q1, bearer(t, key="rogue"), status=(401, 403))
    t.refuses("JWT", Q1, bearer(t, alg="ES256"), status=(401, 403))
    t.runs("JWT", Q1, bearer(t))
    t.true("JWT", "claims are not forwarded", lambda: not_forwarded(t, "jwt"), said="jwt.forward_claims_to_upstream_extensions")
    t.true("Authorization directives", "a protected field is null with an error, the rest is answered",
           lambda: (lambda a: (a.data and a.data["me"]["id"] and a.data["me"]["salary"] is None and a.errors, a))(t.ask("{ me { id salary } }")))
    t.preflight("CORS", "https://www.example.com", credentials=True, max_age=86400)
    t.preflight("CORS", "https://a.partners.example.com", credentials=False, allow_headers="content-type")
    t.preflight("CORS", "https://evil.example", allowed=False)
    t.refuses("CSRF", Q1, {"content-type": "text/plain"}, status=(400, 403, 415))
    t.runs("CSRF", None, {"x-csrf-token": "1"}, path=f"/graphql?{ME}", **GET)
    t.runs("Depth", depth(9))
    t.refuses("Depth", depth(14), untouched=True)
    t.refuses("Tokens", tokens(1100), untouched=True)
    t.runs("Aliases", aliases(15))
    t.refuses("Aliases", aliases(16), untouched=True)
    t.refuses("Directives", directives(21), untouched=True)
    t.true("Cost", "a costly operation is answered and its cost told", lambda: (lambda a: (a.ok and a.headers.get("x-cost-estimated"), a))(t.ask(COSTLY)))
    t.runs("Persisted documents", None, body=by_hash("Me"))
    t.refuses("Persisted documents", None, body={"extensions": {"persistedQuery": {"version": 1, "sha256Hash": "0" * 64}}})
    t.sends("Header regex", {"x-tenant-a": "1", "x-tenant-secret": "2", "cookie": "c=1"}, has={"x-tenant-a": "1"}, lacks=["x-tenant-secret", "cookie"])
    t.sends("Header insert", bearer(t), has={"x-router": "hive", "authorization": bearer(t)["authorization"]})
    t.sends("Header insert", bearer(t), lacks=["x-auth-scheme"], said="headers.all.request.3.insert")
    t.sends("Header rename", {"x-old": "1"}, to="products", query=PRODUCTS, has={"x-new": "1"}, lacks=["x-old"])
    t.sends("Header default", {}, to="products", query=PRODUCTS, has={"x-new": "absent"})
    t.sends("Header remove", {"x-tenant.id": "1"}, to="products", query=PRODUCTS, lacks=["x-tenant.id"])
    t.sends("Header remove", {"x-tenant.id": "1"}, has={"x-tenant.id": "1"})
    def response():
        t.calm()
        t.subgraphs["products"].headers = [("x-rate.remaining", "5")]
        answer = t.ask(PRODUCTS)
        t.calm()
        expect(answer.headers.get("x-rate-remaining") == "5", dict(answer.headers))
    t.record("Header (response)", "`x-rate.remaining` becomes `x-rate-remaining`", response)
    t.slow("Timeout (subgraph)", "reviews", 3, 1, REVIEWS)
    t.restart()
    t.breaks("Circuit breaker", "inventory", 503, 14, query=INVENTORY)
    t.breaks("Circuit breaker", "reviews", 503, 14, query=REVIEWS, opens=False)
    t.restart()
    t.reaches("Dedup", 8, "accounts", 1, 4)
    t.refuses("Introspection off", INTROSPECTION)
    error = {"message": "secret", "extensions": {"code": "C1", "stacktrace": "S1", "debug": "D1"}}
    t.errors("Error masking", "accounts", error, [], ["secret", "S1", "D1"])
    t.streams("Subscriptions", "text/event-stream")
    t.socket_events("Subscriptions", "/graphql")
    t.runs("Coprocessor", Q1, {"x-deny": "1"}, said="coprocessor .*unsupported")
    t.true("Telemetry", "spans come with `x-otlp-key: none`", lambda: spans(t, {"x-otlp-key": "none"}))
    t.health(4000, "/health", tls=True)
    t.health(4000, "/readiness", tls=True)
    t.restart(INVENTORY_URL="http://localhost:4104/graphql", ALLOW_INTROSPECTION="true")
    t.sends("Env expansion", {}, to="inventory", query=INVENTORY, has={"host": f"localhost:{t.ports.of[4104]}"})
    t.refuses("Introspection off", INTROSPECTION, said="introspection .*expressions")


def spans(t, headers):
    from probes_apollo import wait_for
    for _ in range(40):
        t.ask(Q1)
    wait_for(lambda: any(path == "/v1/traces" for path, _, _ in t.collected), 12)
    got = next(sent for path, sent, _ in t.collected if path == "/v1/traces")
    return all(got.get(name) == value for name, value in headers.items()), got
