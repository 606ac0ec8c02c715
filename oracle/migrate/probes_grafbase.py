"""Probes of Grafbase Gateway's configurations; see `trial.py` for what a probe is."""

from probes_apollo import batch, bearer, forbidden
from trial import (COSTLY, INTROSPECTION, INVENTORY, MUTATION, PRODUCTS, Q1, REVIEWS, aliases, by_hash, config, depth, expect, roots)

GUARD = {"x-grafbase-csrf-protection": "1"}


@config("31-grafbase-minimal.toml", 5000)
def minimal(t):
    t.refuses("Introspection off", INTROSPECTION)
    t.runs("Depth", depth(8))
    t.refuses("Depth", depth(9), untouched=True)
    t.refuses("Depth", depth(12), untouched=True)
    t.sends("Subgraph URL", {"authorization": "t"}, lacks=["authorization"])
    t.health(5000, "/health")


@config("32-grafbase-jwt.toml", 5000, lost=1, protected=True, env={"JWKS_URL": "http://127.0.0.1:9100/jwks.json"})
def jwt(t):
    t.refuses("JWT", Q1, status=401)
    t.runs("JWT", Q1, bearer(t, aud="graph.partner"))
    t.runs("JWT", Q1, bearer(t, aud=["x", "graph"]))
    for wrong in ({"key": "rogue"}, {"expires": -600}, {"iss": "https://other/"}, {"aud": "other"}, {"alg": "none"}):
        t.refuses("JWT", Q1, bearer(t, **wrong), status=401, what=f"refused: a token with {wrong}")
    t.refuses("JWT", Q1, bearer(t, expires=-30), status=401, what="refused: a token that ended 30 s ago", said="extensions.jwt .*no time after their end")
    t.refuses("JWT", Q1, {"authorization": t.keys.token()}, status=(400, 401))
    t.refuses("Introspection off", INTROSPECTION, bearer(t))
    t.true("Authorization directives", "a field without its scope is null", lambda: forbidden(t))
    t.restart(JWKS_URL="http://127.0.0.1:9100/none.json")
    t.refuses("Env expansion", Q1, bearer(t))


@config("33-grafbase-browser.toml", 5000, lost=1)
def browser(t):
    token = t.keys.token()
    t.runs("CSRF", Q1, said="csrf.enabled .*JSON body need no header")
    t.runs("CSRF", Q1, GUARD)
    t.refuses("CSRF", None, method="GET", bare=True, path="/graphql?query=%7Bme%7Bid%7D%7D")
    t.runs("CSRF", None, GUARD, method="GET", bare=True, path="/graphql?query=%7Bme%7Bid%7D%7D")
    t.preflight("CORS", "https://app.example.com", credentials=True, max_age=120)
    t.preflight("CORS", "https://x.preview.example.com", credentials=True, max_age=120)
    for origin in ("https://evil.example", "https://x.preview.example.com.evil.example", "https://preview.example.com",
                   "https://x.previewXexample.com"):
        t.preflight("CORS", origin, allowed=False)
    t.exposes("CORS", "https://app.example.com", "x-trace-id")
    t.runs("JWT", Q1)
    t.runs("JWT", Q1, {"cookie": f"shop.session={token}"})


@config("34-grafbase-limits.toml", 5000, lost=1)
def limits(t):
    t.runs("Depth", depth(6))
    t.refuses("Depth", depth(7), untouched=True)
    t.refuses("Height", "{ me { " + " ".join(f"id name a{i}: id" for i in range(31)) + " } }", untouched=True)
    t.runs("Aliases", aliases(3))
    t.refuses("Aliases", aliases(4), untouched=True)
    t.refuses("Root fields", roots(5), untouched=True)
    t.refuses("Cost", COSTLY, untouched=True)
    batch(t, 3, 4)
    t.restart()
    t.rate("Rate limit", 20, 10)
    t.restart()
    t.rate("Rate limit", 20, 10, each=lambda i: {"x-forwarded-for": f"10.0.0.{i}"})
    t.restart()
    t.reaches("Rate limit (subgraph)", 6, "inventory", 4, query=INVENTORY, at_once=False, error=True)
    t.restart()
    t.slow("Timeout (router)", "accounts", 12, 10)


@config("35-grafbase-headers.toml", 5000, UPSTREAM_KEY="up")
def headers(t):
    t.sends("Header propagate", {"authorization": "t", "x-internal": "1"}, has={"authorization": "t"}, lacks=["x-internal"])
    t.sends("Header rename", {"x-old-name": "v"}, has={"x-new-name": "v"}, lacks=["x-old-name"])
    t.sends("Header default", {}, has={"x-tenant": "public"})
    t.sends("Header default", {"x-tenant": "t"}, has={"x-tenant": "t"})
    t.sends("Header regex", {"X-Custom-A": "1", "x-custom-secret": "2", "x-custom-internal-b": "3"}, has={"x-custom-a": "1"}, lacks=["x-custom-secret", "x-custom-internal-b"])
    t.sends("Header insert", {}, has={"x-gateway": "grafbase", "x-upstream-key": "Bearer up"})
    t.sends("Header rename (copy)", {"x": "5"}, has={"x": "5", "x-copy": "5"})
    t.sends("Header rename (copy)", {}, has={"x-copy": "none"})
    both = "{ me { id } topProducts { upc } }"
    t.sends("Header propagate", {"x-trace.id": "1"}, query=both, has={"x-trace.id": "1"})
    t.sends("Header propagate", {"x-trace.id": "1"}, to="products", query=both, lacks=["x-trace.id"])
    t.sends("Header remove", {"authorization": "t"}, to="inventory", query=INVENTORY, lacks=["authorization"])
    t.sends("Header remove", {"authorization": "t"}, to="products", query=INVENTORY, has={"authorization": "t", "x-env": "prod"})
    t.plain_env["UPSTREAM_KEY"] = "other"
    t.restart()
    t.sends("Env expansion", {}, has={"x-upstream-key": "Bearer other"})


@config("36-grafbase-tls.toml", 5443, secure=("accounts", "products", "reviews", "inventory"), tls=True)
def tls(t):
    t.only_tls()
    t.runs("TLS (clients)", Q1)
    t.presents("accounts", "router-client")
    t.true("TLS (subgraphs)", "products: an authority that the system does not know", lambda: (lambda a: (a.errors and not t.subgraphs["products"].seen, a))(t.ask(PRODUCTS)))
    t.distrusts("accounts", Q1)
    t.health(9668, "/healthz", said="health.listen .*without TLS")


@config("37-grafbase-traffic.toml", 5000, env={"REVIEWS_URL": "http://127.0.0.1:4103/graphql"})
def traffic(t):
    t.slow("Timeout (subgraph)", "accounts", 3, 0.75)
    t.slow("Timeout (subgraph)", "products", 4, 2, PRODUCTS)
    t.slow("Timeout (router)", "inventory", 8, 5, INVENTORY)
    t.restart()
    t.retries("Retries", "accounts", [503], 2)
    t.retries("Retries", "inventory", [503], 1, INVENTORY, ok=False)
    t.retries("Retries", "reviews", [503], 1, MUTATION, ok=False, said="subgraphs.reviews.retry.retry_mutations")
    t.restart()
    t.reaches("Rate limit (subgraph)", 12, "inventory", 10, query=INVENTORY, at_once=False, error=True)
    t.sends("Subgraph URL", {})
    t.reaches("Entity cache", 2, "reviews", 2, query=REVIEWS, at_once=False, said="entity_caching .*unsupported")
    t.subgraphs["moved"] = type(t.subgraphs["reviews"])("moved", t.ports.of[4303])
    t.restart(REVIEWS_URL="http://127.0.0.1:4303/graphql")
    t.sends("Env expansion", {}, to="moved", query=REVIEWS)


@config("38-grafbase-trusted.toml", 5000, lost=1, BYPASS_SECRET="b")
def trusted(t):
    t.headers = GUARD | {"x-grafbase-client-name": "web"}
    t.refuses("Persisted documents", None, body=by_hash("Me"), said="trusted_documents .*publish a manifest", what="every document is unknown")
    t.refuses("Persisted documents", Q1)
    t.refuses("Persisted documents", Q1, {"x-oncall-bypass": "my-secret-is-b"}, said="bypass_header_name")
    t.refuses("Persisted documents", Q1, {"x-oncall-bypass": "wrong"})
    t.refuses("CSRF", None, {"x-grafbase-csrf-protection": None}, method="GET", path="/graphql?query=%7Bme%7Bid%7D%7D", bare=True)
    t.refuses("Introspection off", INTROSPECTION, {"x-oncall-bypass": "my-secret-is-b"})
    t.true("Error codes", "codes are not mapped", lambda: True, said="graph.error_code_mapping")
    t.health(5000, "/up")


@config("39-grafbase-realtime-hooks.toml", 5000, lost=1, redis="")
def realtime(t):
    t.headers = bearer(t)
    t.streams("Subscriptions", "text/event-stream")
    t.socket_events("Subscriptions", "/graphql", headers=bearer(t))
    t.true("Subscriptions", "the socket goes to the URL of the subgraph", lambda: (lambda s: (s["path"] == "/graphql", s))(t.subgraphs["reviews"].sockets[-1]), said="subgraphs.reviews.websocket_url")
    t.true("Subscriptions", "inventory is asked for a stream", lambda: streamed(t))
    t.headers = {}
    t.refuses("JWT", Q1, status=401)
    t.refuses("JWT", Q1, bearer(t, alg="ES256"), status=401)
    t.refuses("JWT", Q1, bearer(t, key="rogue"), status=401)
    t.runs("JWT", Q1, bearer(t))
    t.runs("Hooks", Q1, bearer(t) | {"x-client-version": "0.9.0"}, said="extensions.storefront-hooks")
    t.restart()
    t.headers = bearer(t)
    def limited():
        answers = [t.ask(Q1) for _ in range(70)]
        t.start()
        answers += [t.ask(Q1) for _ in range(10)]
        found = sum(answer.ok for answer in answers)
        expect(found <= 50 and answers[-1].status == 429, (found, answers[-1]))
    t.record("Rate limit", "at most 50 pass in a minute, over two processes", limited)


def streamed(t):
    t.calm()
    answer = t.ask("subscription { stockChanged }", {"accept": "text/event-stream"})
    got = t.subgraphs["inventory"].seen
    return bool(got) and "text/event-stream" in got[-1]["headers"]["accept"] and "stockChanged" in answer.body, answer


@config("40-grafbase-platform-full.toml", 5000, path="/api/graphql", lost=3, secure=("accounts",), tls=True, protected=True,
        env={"JWKS_URL": "http://127.0.0.1:9100/jwks.json", "PRODUCTS_URL": "http://127.0.0.1:4102/graphql"}, PLATFORM_NAME="prod", PRODUCTS_API_KEY="k")
def platform_full(t):
    t.only_tls()
    t.headers = GUARD
    token = t.keys.token()
    t.refuses("JWT", Q1, status=401)
    t.refuses("JWT", Q1, bearer(t), status=401)
    t.refuses("JWT", Q1, {"x-auth.token": f"Token {t.keys.token(key='rogue')}"}, status=401)
    t.headers = GUARD | {"x-auth.token": f"Token {token}"}
    t.runs("JWT", Q1)
    t.presents("accounts", "router-client")
    t.distrusts("accounts", Q1)
    t.refuses("Endpoint", Q1, status=404, path="/graphql")
    t.preflight("CORS", "https://qa.example.com", credentials=False, max_age=3600)
    t.preflight("CORS", "http://localhost:3007", credentials=False, max_age=3600)
    for origin in ("https://prod.example.com", "http://localhost:3010", "https://qaXexample.com", "http://localhost:3007.evil.example"):
        t.preflight("CORS", origin, allowed=False)
    t.refuses("CSRF", None, {"x-grafbase-csrf-protection": None, "x-auth.token": f"Token {token}"}, method="GET", path="/api/graphql?query=%7Bme%7Bid%7D%7D", bare=True)
    t.runs("Depth", depth(10))
    t.refuses("Depth", depth(11), untouched=True)
    t.runs("Aliases", aliases(15))
    t.refuses("Aliases", aliases(16), untouched=True)
    t.refuses("Root fields", roots(9), untouched=True)
    t.runs("Cost", COSTLY)
    batch(t, 5, 6)
    t.restart()
    t.retries("Retries", "products", [503], 2, PRODUCTS)
    t.retries("Retries", "reviews", [503], 1, REVIEWS, ok=False)
    t.slow("Timeout (subgraph)", "reviews", 3, 0.75, REVIEWS)
    t.slow("Timeout (subgraph)", "products", 7, 4, PRODUCTS)
    t.restart()
    t.rate("Rate limit", 100, 10)
    t.restart()
    t.reaches("Rate limit (subgraph)", 7, "reviews", 5, query=REVIEWS, at_once=False, error=True)
    t.restart()
    t.runs("Persisted documents", Q1)
    t.sends("Header regex", {"x-tenant-a": "1", "X-Trace-B": "2", "x-tenant.secret": "3"}, has={"x-tenant-a": "1", "x-trace-b": "2"}, lacks=["x-tenant.secret"])
    t.sends("Header remove", {"authorization": "t"}, to="inventory", query=INVENTORY, lacks=["authorization"])
    t.sends("Header insert", {}, has={"x-platform": "prod"}, lacks=["x-api-key"])
    t.sends("Header insert", {}, to="products", query=PRODUCTS, has={"x-api-key": "k", "x-new": "absent"})
    t.sends("Header rename", {"x-old": "v"}, to="products", query=PRODUCTS, has={"x-new": "v"})
    t.sends("Header rename (copy)", {"x-request-id": "r"}, has={"x-request-id": "r", "x-correlation-id": "r"})
    t.sends("Message signatures", {}, lacks=["signature"], said="gateway.message_signatures")
    t.runs("Hooks", Q1, {"x-client-version": "0.9.0"}, said="extensions.storefront-hooks")
    t.true("Error codes", "codes are not mapped", lambda: True, said="graph.error_code_mapping")
    t.refuses("Introspection off", INTROSPECTION)
    t.health(9668, "/health", said="health.listen .*without TLS")
    t.plain_env["PLATFORM_NAME"] = "qa"
    t.restart()
    t.sends("Env expansion", {}, has={"x-platform": "qa"})
