"""Probes of Cosmo Router's configurations; see `trial.py` for what a probe is."""

from probes_apollo import batch, bearer, inventory_of_another_authority
from probes_hive import spans
from trial import (COSTLY, EVENTS, INTROSPECTION, INVENTORY, MUTATION, PRODUCTS, Q1, REVIEWS, aliases, big, by_hash, config, depth,
                   expect, roots)

SUPERGRAPH = "execution_config"


@config("21-cosmo-minimal.yaml", 3002)
def minimal(t):
    t.true("Schema", "a supergraph has to be composed", lambda: True, said=SUPERGRAPH)
    t.refuses("Introspection off", INTROSPECTION)
    t.no_page()
    t.true("Tracing off", "no trace in the response", lambda: "extensions" not in (t.ask(Q1, {"x-wg-trace": "true"}).json or {}))
    t.sends("Header propagate", {"authorization": "t"}, lacks=["authorization"])
    t.health(3002, "/health/ready")
    t.health(3002, "/health/live")


@config("22-cosmo-auth.yaml", 3002, lost=2, protected=True, HS256_SECRET="test-hs256-secret-of-32-bytes-min")
def auth(t):
    t.refuses("JWT", Q1, status=401)
    for wrong in ({"key": "rogue"}, {"expires": -600}, {"aud": "other"}, {"alg": "none"}, {"alg": "ES256"}):
        t.refuses("JWT", Q1, bearer(t, **wrong), status=401, what=f"refused: a token with {wrong}")
    t.refuses("JWT", Q1, bearer(t), status=401, said="authentication.jwt", what="valid tokens are refused, too")
    t.refuses("JWT", Q1, {"x-caller-claims": '{"sub":"u1"}'}, status=401, what="claims in a header of the client's are not believed")
    t.refuses("Authorization directives", "{ me { grade } }", bearer(t))
    t.refuses("Introspection off", INTROSPECTION, bearer(t))


@config("23-cosmo-headers.yaml", 3002, lost=4)
def headers(t):
    t.sends("Header propagate", {"x-test-header": "1", "x-other": "2"}, to="products", query=PRODUCTS, has={"x-test-header": "1"}, lacks=["x-other"])
    t.sends("Header regex", {"x-custom-a": "1", "X-CUSTOM-B": "2"}, to="products", query=PRODUCTS, has={"x-custom-a": "1", "x-custom-b": "2"})
    t.sends("Header default", {}, to="products", query=PRODUCTS, has={"x-tenant": "public"})
    t.sends("Header default", {"x-tenant": "t"}, to="products", query=PRODUCTS, has={"x-tenant": "t"})
    t.sends("Header rename", {"x-old-name": "v"}, to="products", query=PRODUCTS, has={"x-new-name": "v"}, lacks=["x-old-name"])
    t.sends("Cookies", {"cookie": "session=1; tracking=2"}, to="products", query=PRODUCTS, lacks=["cookie"], said="headers.cookie_whitelist")
    t.sends("Header insert", {}, to="reviews", query=REVIEWS, has={"x-router": "cosmo"}, lacks=["x-catalogue"])
    t.sends("Header insert", {}, to="products", query=PRODUCTS, lacks=["x-catalogue"], said="headers.groups")
    t.sends("Header remove", {"x-internal": "1", "x-secret": "2", "x-foo": "3"}, lacks=["x-internal", "x-secret"])
    t.sends("Header remove", {"x-foo": "3"}, lacks=["x-foo"], said="negate_match")
    t.sends("Header insert", {"x-operation-name": "N"}, to="reviews", query=REVIEWS, lacks=["x"], said="headers.subgraphs.reviews.request.0")

    def response():
        t.calm()
        t.subgraphs["products"].headers = [("x-custom-header", "a")]
        t.subgraphs["inventory"].headers = [("x-custom-header", "b")]
        answer = t.ask(INVENTORY, {"x-get-status": "demo"})
        t.calm()
        found = dict(answer.headers)
        expect(sorted(found.get("x-custom-header", "").replace(" ", "").split(",")) == ["a", "b"] and found.get("x-stamped") == "yes", found)
        expect("x-demo-header" not in found, found)
    t.record("Header (response)", "values are appended, a header is set", response)
    t.record("Header (response)", "no header from an expression", response, said="headers.router.response")


@config("24-cosmo-limits.yaml", 3002, lost=2)
def limits(t):
    t.runs("Depth", depth(5))
    t.refuses("Depth", depth(7), untouched=True)
    t.refuses("Depth", depth(12), untouched=True)
    t.refuses("Total fields", "{ me { " + " ".join(f"id name a{i}: id" for i in range(31)) + " } }", untouched=True)
    t.refuses("Root fields", roots(7), untouched=True)
    t.runs("Aliases", roots(3))
    t.refuses("Aliases", roots(4), untouched=True)
    t.refuses("Aliases", aliases(20), said="root_field_aliases.*aliases of all fields count", untouched=True)
    t.refuses("Tokens", aliases(300), untouched=True)
    t.runs("Operation name", f"query {'a' * 65} {{ me {{ id }} }}", said="security.operation_name_length_limit")
    t.runs("Body size", None, body=big(60000), what="answered: a body of 60,000 bytes")
    t.refuses("Body size", None, body=big(70000), status=413, what="refused: a body of 70,000 bytes")
    t.refuses("Header size", Q1, {"x-long": "a" * 20000}, status=431, what="refused: a header of 20,000 bytes")
    t.refuses("Cost", COSTLY, untouched=True)
    t.true("Cost", "headers tell what an operation costs", lambda: "x-cost-estimated" in t.ask(Q1).headers)
    batch(t, 3, 4)
    t.refuses("File upload", None, raw=b"--b\r\ncontent-disposition: form-data; name=\"operations\"\r\n\r\n{}\r\n--b--\r\n",
              headers={"content-type": "multipart/form-data; boundary=b"}, what="refused: a multipart request")


@config("25-cosmo-ratelimit.yaml", 3002, lost=2, redis="")
def ratelimit(t):
    def limited(key, passes):
        answers = [t.ask(Q1, {"x-api-key": key}) for _ in range(8)]
        found = sum(answer.ok for answer in answers)
        return found == passes and not answers[-1].data.get("me") if passes < 8 else found == 8, [a.body for a in answers]
    t.true("Rate limit", "5 of 8 with one key pass; the others have an error", lambda: limited("k1", 5))
    t.true("Rate limit", "another key has a rate of its own", lambda: limited("k2", 5))
    t.true("Rate limit", "a premium key has the rate of all", lambda: limited("premium-1", 5), said="simple_strategy.overrides")
    t.true("Rate limit", "the answer is 200 with an error for the fields", lambda: t.ask(Q1, {"x-api-key": "k1"}).status == 200, said="reject_status_code")
    t.runs("Block mutations", MUTATION, {"x-block-mutation": "yes", "x-api-key": "m"}, said="security.block_mutations")
    t.preflight("CORS", "https://a.example.com", credentials=False, max_age=30)
    t.preflight("CORS", "https://partner.example.org:8443", credentials=False, max_age=30)
    for origin in ("https://evil.example", "https://a.example.com.evil.example", "https://example.com", "http://a.example.com",
                   "https://a.example.com:81.evil.example", "https://evil.example/https://a.example.com"):
        t.preflight("CORS", origin, allowed=False)
    foreign_page(t, "https://evil.example")


def foreign_page(t, origin):
    """What a page of an origin that is not listed can send without a preflight is refused."""
    t.refuses("CORS", None, {"origin": origin}, method="GET", bare=True, path="/graphql?query=%7Bme%7Bid%7D%7D", untouched=True)
    form = b'--b\r\ncontent-disposition: form-data; name="operations"\r\n\r\n{"query":"{ me { id } }"}\r\n' + \
           b'--b\r\ncontent-disposition: form-data; name="map"\r\n\r\n{}\r\n--b--\r\n'
    headers = {"origin": origin, "content-type": "multipart/form-data; boundary=b"}
    t.refuses("CORS", None, headers, raw=form, bare=True, untouched=True, what=f"refused: a form of {origin}")


@config("26-cosmo-tls.yaml", 3443, secure=("accounts", "products", "reviews", "inventory"), tls=True, certificate="app-client")
def tls(t):
    t.only_tls()
    t.certificate_refused(None)
    t.certificate_refused("rogue-client")
    t.runs("mTLS (clients)", Q1, what="answered with the certificate app-client")
    t.presents("accounts", "router-client")
    t.partial("TLS (subgraphs)", INVENTORY)
    t.distrusts("products", PRODUCTS)
    inventory_of_another_authority(t, "router-client", said="tls.client.subgraphs.inventory.cert_file")


@config("27-cosmo-traffic.yaml", 3002, env={"REVIEWS_URL": "http://127.0.0.1:4103/graphql"}, INVENTORY_HOST="127.0.0.1")
def traffic(t):
    t.slow("Timeout (subgraph)", "accounts", 5, 2)
    t.restart()
    t.slow("Timeout (subgraph)", "products", 3, 0.5, PRODUCTS)
    t.restart()
    t.retries("Retries", "accounts", [503, 503], 3)
    t.restart()
    t.retries("Retries", "accounts", [400], 1, ok=False)
    t.retries("Retries", "reviews", [503], 1, MUTATION, ok=False)
    t.restart()
    t.breaks("Circuit breaker", "accounts", None, 6)
    def closes():
        import time
        time.sleep(3.2)
        expect(t.ask(Q1).ok or t.ask(Q1).ok, "it stays open")
    t.record("Circuit breaker", "closes 3 s later", closes)
    t.restart()
    t.breaks("Circuit breaker", "products", None, 8, opens=False, query=PRODUCTS)
    t.restart()
    t.reaches("Dedup", 8, "accounts", 1, 4)
    t.refuses("Body size", None, body=big(6_000_000), status=413, what="refused: a body of 6,000,000 bytes")
    t.sends("Subgraph URL", {})
    t.health(3002, "/healthz/ready")
    t.health(3002, "/healthz/live")
    t.health(3002, "/healthz", 404, said="health_check_path")
    t.plain_env["INVENTORY_HOST"] = "localhost"
    t.subgraphs["moved"] = type(t.subgraphs["reviews"])("moved", t.ports.of[4303])
    t.restart(REVIEWS_URL="http://127.0.0.1:4303/graphql")
    t.sends("Env expansion", {}, to="moved", query=REVIEWS)
    t.sends("Env expansion", {}, to="inventory", query=INVENTORY, has={"host": f"localhost:{t.ports.of[4104]}"})


@config("28-cosmo-persisted.yaml", 3002, lost=1)
def persisted(t):
    t.refuses("Persisted documents", None, body=by_hash("Me"), said="persisted_operations.storage", what="every document is unknown")
    t.refuses("Persisted documents", "query Me { me { id } }", {"x-strict": "1"})
    t.refuses("Persisted documents", Q1)
    import hashlib
    own = {"query": Q1, "extensions": {"persistedQuery": {"version": 1, "sha256Hash": hashlib.sha256(Q1.encode()).hexdigest()}}}
    t.refuses("Persisted documents", None, body=own)
    t.refuses("Introspection off", INTROSPECTION)


@config("29-cosmo-realtime.yaml", 3002, lost=1)
def realtime(t):
    t.refuses("JWT", Q1, status=401)
    t.runs("JWT", Q1, bearer(t))
    t.refuses("JWT", Q1, bearer(t, key="rogue"), status=401)
    t.socket_events("Subscriptions", "/graphql", {"Authorization": bearer(t)["authorization"]})
    t.socket_events("Subscriptions", "/graphql", events=False)
    t.socket_events("Subscriptions", "/graphql", {"Authorization": bearer(t, key="rogue")["authorization"]}, events=False)
    t.socket_events("Subscriptions", "/graphql", headers=bearer(t) | {"x-tenant": "t", "x-other": "o"}, lacks=["x-other"])
    t.socket_events("Subscriptions", "/graphql", headers=bearer(t) | {"x-tenant": "t"}, lacks=["x-tenant"], said="websocket.forward_upgrade_headers")
    t.socket_events("Subscriptions", "/absinthe/socket", headers=bearer(t), events=False)
    t.true("Subscriptions", "the socket goes to the URL of the subgraph", lambda: (lambda s: (s["path"] == "/graphql" and s["protocol"] == "graphql-transport-ws", s))(t.subgraphs["reviews"].sockets[-1] if t.subgraphs["reviews"].sockets else last_socket(t)), said="subscription_url")
    t.sends("Subgraph URL", bearer(t), to="reviews", query=REVIEWS)
    t.true("Custom module", "no module is called", lambda: not t.asked, said="modules")
    t.headers = bearer(t)
    t.metrics(8088)


def last_socket(t):
    t.over_socket("/graphql", {"Authorization": bearer(t)["authorization"]})
    return t.subgraphs["reviews"].sockets[-1]


@config("30-cosmo-platform-full.yaml", 3002, lost=4, secure=("accounts",), tls=True, protected=True, redis="r", LOG_LEVEL="info",
        INTROSPECTION_SECRET="s3cr3t", POD_NAME="p0", PRODUCTS_API_KEY="k", REDIS_PASSWORD="r", OTLP_KEY="o", INVENTORY_HOST="127.0.0.1")
def platform_full(t):
    t.only_tls()
    t.certificate_refused("rogue-client")
    t.refuses("JWT", Q1, status=401)
    t.refuses("JWT", Q1, bearer(t), status=401)
    valid = {"x-authorization": bearer(t)["authorization"]}
    t.refuses("JWT", Q1, {"x-authorization": bearer(t, alg="ES256")["authorization"]}, status=401)
    t.refuses("JWT", Q1, {"x-authorization": bearer(t, aud="other")["authorization"]}, status=401)
    t.refuses("JWT", Q1, {"x-authorization": bearer(t, key="rogue")["authorization"]}, status=401)
    t.preflight("CORS", "https://example.com", credentials=True, max_age=300)
    t.preflight("CORS", "https://a.b.example.com", credentials=True, max_age=300)
    for origin in ("https://example.com.evil.example", "http://example.com", "https://studio.apollographql.com", "null"):
        t.preflight("CORS", origin, allowed=False)
    foreign_page(t, "https://evil.example")
    t.runs("JWT", Q1, valid)
    t.headers = valid
    t.refuses("Introspection", INTROSPECTION, {"authorization": "s3cr3t"}, said="introspection.secret")
    t.presents("accounts", "router-client")
    t.distrusts("accounts", Q1)
    t.sends("Header regex", {"x-tenant-a": "1", "X-Tenant-B": "2", "x-foo": "3"}, has={"x-tenant-a": "1", "x-tenant-b": "2"}, lacks=["x-foo"])
    t.sends("Header default", {}, has={"x-request-id": "none"})
    t.sends("Header insert", {"x-user-id": "root"}, lacks=["x-user-id"], said="headers.all.request.2")
    t.sends("Header rename", {"x-old": "v"}, to="products", query=PRODUCTS, has={"x-new": "v", "x-api-key": "k"}, lacks=["x-old"])
    t.sends("Header rename", {}, lacks=["x-api-key"])
    t.true("Header (response)", "`X-Upstream-Version` has its default", lambda: t.ask(Q1).headers.get("x-upstream-version") == "unknown")
    t.runs("Depth", depth(8))
    t.refuses("Depth", depth(12), untouched=True)
    t.runs("Aliases", roots(2))
    t.refuses("Aliases", roots(3), untouched=True)
    t.refuses("Tokens", aliases(600), untouched=True)
    t.true("Cost", "a costly operation is answered and its cost told", lambda: (lambda a: (a.ok and a.headers.get("x-cost-estimated"), a))(t.ask(COSTLY)))
    batch(t, 5, 6)
    t.refuses("Body size", None, body=big(1_100_000), status=413, what="refused: a body of 1,100,000 bytes")
    t.refuses("Block subscriptions", EVENTS, {"accept": "text/event-stream"})
    own = by_hash("TopProducts")["extensions"]
    t.refuses("Persisted documents", None, body={"extensions": own})
    text = "query TopProducts($first: Int) { topProducts(first: $first) { upc name } }"
    t.runs("Persisted documents", None, body={"query": text, "extensions": own})
    t.runs("Persisted documents", None, body={"extensions": own})
    t.restart()
    t.retries("Retries", "products", [503], 2, PRODUCTS)
    t.slow("Timeout (subgraph)", "inventory", 4, 0.75, INVENTORY)
    t.restart()
    t.breaks("Circuit breaker", "inventory", None, 12, query=INVENTORY)
    t.restart()
    t.reaches("Dedup", 8, "products", 1, 4, query=PRODUCTS)
    t.true("Rate limit", "all callers share 60 requests a minute", lambda: (lambda answers: (not answers[-1].ok and "RATE_LIMITED" in answers[-1].body, answers[-1]))([t.ask(Q1) for _ in range(70)]), said="rate_limit.key_suffix_expression")
    error = {"message": "shown", "extensions": {"code": "C1", "stack": "S1"}}
    t.errors("Error masking", "products", error, ["shown"], ["S1"], PRODUCTS)
    t.true("Telemetry", "spans come with `x-otlp-key: o`", lambda: spans(t, {"x-otlp-key": "o"}))
    t.health(3002, "/health/ready", tls=True)
    t.health(3002, "/health/live", tls=True)
    t.plain_env["PRODUCTS_API_KEY"] = "other"
    t.restart()
    t.sends("Env expansion", {}, to="products", query="{ product(upc: 1) { upc } }", has={"x-api-key": "other"})
