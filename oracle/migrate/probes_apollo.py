"""Probes of Apollo Router's configurations; see `trial.py` for what a probe is."""

import json

from trial import (COSTLY, EVENTS, INTROSPECTION, INVENTORY, MUTATION, PRODUCTS, Q1, REVIEWS, aliases, big, by_hash, config, depth,
                   expect, roots, tokens)


def bearer(t, **token):
    return {"authorization": f"Bearer {t.keys.token(**token)}"}


@config("01-apollo-minimal.yaml", 4000, path="/")
def minimal(t):
    t.preflight("CORS", "https://shop.example.com")
    t.preflight("CORS", "https://evil.example", allowed=False)
    t.refuses("Introspection off", INTROSPECTION)
    t.sends("Header propagate", {"authorization": "Bearer abc", "x-internal": "1"}, has={"authorization": "Bearer abc"}, lacks=["x-internal"])
    t.health(8088, "/health")


@config("02-apollo-jwt-cookie.yaml", 4000, path="/api/graphql", protected=True)
def jwt_cookie(t):
    t.refuses("JWT", Q1, status=401)
    t.runs("JWT", Q1, bearer(t))
    for wrong in ({"key": "rogue"}, {"expires": -600}, {"alg": "none"}, {"iss": "https://other/"}, {"aud": "other"}, {"iss": None},
                  {"aud": None}, {"alg": "ES256"}, {"alg": "HS256", "kid": "test-rs256"}):
        t.refuses("JWT", Q1, bearer(t, **wrong), status=401, what=f"refused: a token with {wrong}")
    t.runs("JWT", Q1, bearer(t, aud="graph.mobile"))
    token = t.keys.token()
    t.runs("JWT", Q1, {"x-mobile-token": f"Token {token}"})
    t.runs("JWT", Q1, {"cookie": f"a=b; shop.session={token}"})
    t.runs("JWT", Q1, {"authorization": "Basic dTpw", "cookie": f"shop.session={token}"})
    t.refuses("JWT", Q1, {"authorization": "Basic dTpw"}, status=401)
    t.refuses("CSRF", Q1, bearer(t) | {"content-type": "text/plain"}, status=(400, 415))
    t.runs("CSRF", None, bearer(t) | {"x-shop-csrf": "1"}, method="GET", path="/api/graphql?query=%7Bme%7Bid%7D%7D", bare=True)
    t.refuses("CSRF", None, bearer(t), method="GET", path="/api/graphql?query=%7Bme%7Bid%7D%7D", bare=True, status=400)
    t.sends("Header regex", bearer(t) | {"x-a": "1", "y-b": "2"}, has={"x-a": "1"}, lacks=["y-b"])
    t.sends("Header remove", {"x-mobile-token": f"Token {token}"}, lacks=["x-mobile-token"])
    both = "{ me { id } topProducts { upc } }"
    t.sends("Header propagate", bearer(t), query=both, has={"authorization": f"Bearer {token}"})
    t.sends("Header propagate", bearer(t), to="products", query=both, lacks=["authorization"])
    t.sends("Header insert", bearer(t), query="query Named { me { id } }", has={"x-operation-name": "Named"})
    t.sends("Header insert", bearer(t), has={"x-operation-name": "anonymous"})
    t.true("Authorization directives", "a field without its scope is null", lambda: forbidden(t))
    t.runs("Authorization directives", "{ me { grade } }", bearer(t, scope="admin"))
    move(t, 4999)
    t.restart(ROUTER_LISTEN="127.0.0.1:4999")
    t.runs("Env expansion", Q1, bearer(t), what="listens where ROUTER_LISTEN says")


def forbidden(t):
    answer = t.ask("{ me { id grade } }", bearer(t))
    return answer.data["me"]["grade"] is None and bool(answer.errors) and answer.data["me"]["id"], answer


def move(t, port):
    t.port = port


@config("03-apollo-limits.yaml", 4000, path="/")
def limits(t):
    t.runs("Depth", depth(7))
    t.refuses("Depth", depth(8), status=400, code="MAX_DEPTH_LIMIT", untouched=True)
    t.refuses("Depth", depth(12), status=400)
    t.runs("Aliases", aliases(5))
    t.refuses("Aliases", aliases(6), status=400, code="MAX_ALIASES_LIMIT", untouched=True)
    t.runs("Root fields", roots(4))
    t.refuses("Root fields", roots(5), status=400, code="MAX_ROOT_FIELDS_LIMIT")
    t.refuses("Tokens", tokens(1000), status=400)
    t.restart()
    t.runs("Body size", None, body=big(60000), what="answered: a body of 60,000 bytes")
    t.refuses("Body size", None, body=big(70000), status=413, what="refused: a body of 70,000 bytes")
    t.refuses("Header size", Q1, {f"x-{i}": "1" for i in range(70)}, status=431, what="refused: 70 headers")
    t.refuses("Header size", Q1, {"x-long": "a" * 70000}, status=431, what="refused: a header of 70,000 bytes")
    t.runs("Cost", Q1)
    t.refuses("Cost", COSTLY, status=400, code="COST_ESTIMATED_TOO_EXPENSIVE", untouched=True)
    batch(t, 3, 4)
    t.refuses("Introspection off", INTROSPECTION)
    t.restart()
    t.rate("Rate limit", 20, 1)
    t.restart()
    t.rate("Rate limit", 20, 1, each=lambda i: {"x-forwarded-for": f"10.0.0.{i}"})
    t.restart()
    t.slow("Timeout (router)", "accounts", 12, 10)


def batch(t, good, bad, **how):
    def answered():
        answer = t.ask(body=[{"query": Q1}] * good, **how)
        expect(answer.status == 200 and isinstance(answer.json, list) and len(answer.json) == good, answer)
        expect(all(one.get("data") for one in answer.json), answer)
    t.record("Batching", f"an array of {good} is answered", answered)
    if bad:
        t.refuses("Batching", None, body=[{"query": Q1}] * bad, what=f"refused: an array of {bad}", untouched=True, **how)


@config("04-apollo-rate-and-shape.yaml", 4000, path="/")
def rate_and_shape(t):
    t.rate("Rate limit", 10, 5)
    t.restart()
    t.reaches("Rate limit (subgraph)", 6, "inventory", 4, query=INVENTORY, at_once=False, error=True)
    t.restart()
    t.slow("Timeout (subgraph)", "inventory", 2, 0.5, INVENTORY)
    t.slow("Timeout (subgraph)", "reviews", 2, 0.5, REVIEWS)
    t.slow("Timeout (subgraph)", "accounts", 1.2, None)
    t.slow("Timeout (subgraph)", "accounts", 4, 1.5)
    t.restart()
    t.reaches("Dedup", 8, "products", 1, 4, query=PRODUCTS)
    t.restart()
    t.sends("Subgraph URL", {})
    t.health(8088, "/healthz")
    t.health(8088, "/healthz?ready")
    t.health(8088, "/healthz?live")
    t.health(8088, "/health", 404)
    t.ports.of[4102], other = t.ports.of[4202], t.subgraphs["products"]
    t.subgraphs["products"] = type(other)("products", t.ports.of[4202])
    t.restart(PRODUCTS_URL="http://127.0.0.1:4202/graphql", REVIEWS_HOST="localhost")
    t.sends("Env expansion", {}, to="products", query=PRODUCTS)
    t.sends("Env expansion", {}, to="reviews", query=REVIEWS, has={"host": f"localhost:{t.ports.of[4103]}"})
    other.stop()


@config("05-apollo-safelist.yaml", 4000)
def safelist(t):
    t.refuses("Persisted documents", Q1, status=400)
    t.refuses("Persisted documents", "query Me { me { id } }", status=400, code="PERSISTED_QUERY_ID_REQUIRED")
    t.runs("Persisted documents", None, body=by_hash("Me"))
    unknown = {"extensions": {"persistedQuery": {"version": 1, "sha256Hash": "0" * 64}}}
    t.refuses("Persisted documents", None, body=unknown, code="PERSISTED_QUERY_NOT_IN_LIST")
    import hashlib
    own = {"query": Q1, "extensions": {"persistedQuery": {"version": 1, "sha256Hash": hashlib.sha256(Q1.encode()).hexdigest()}}}
    t.refuses("Persisted documents", None, body=own)
    t.refuses("Persisted documents", None, body={"extensions": own["extensions"]})
    error = {"message": "secret-1", "extensions": {"code": "C1", "stack": "trace-1"}}
    t.errors("Error masking", "accounts", error, [], ["secret-1", "trace-1", "C1"], None, by_hash("Me"))
    t.errors("Error masking", "products", {"message": "secret-2"}, ["secret-2"], [], None, by_hash("TopProducts"))
    t.preflight("CORS", "https://app.example.com:8443", credentials=True, max_age=7200)
    t.preflight("CORS", "https://x1.preview.example.com", credentials=False, max_age=7200)
    for origin in ("https://a.b.preview.example.com", "https://x1.preview.example.com.evil.example", "http://app.example.com", "null"):
        t.preflight("CORS", origin, allowed=False)
    t.exposes("CORS", "https://app.example.com:8443", "x-trace-id", None, by_hash("Me"))
    t.refuses("Introspection off", INTROSPECTION)


@config("06-apollo-tls-mtls.yaml", 4443, path="/", secure=("accounts", "products", "reviews", "inventory"), tls=True)
def tls_mtls(t):
    t.only_tls()
    t.runs("TLS (clients)", Q1)
    t.runs("TLS (subgraphs)", PRODUCTS)
    t.partial("TLS (subgraphs)", INVENTORY)
    t.presents("accounts", "router-client")
    t.distrusts("products", PRODUCTS)
    t.sends("Header default", {}, has={"x": "none"})
    t.sends("Header default", {"x": "7"}, has={"x": "7"})
    t.sends("Header rename", {"x.tenant-id": "t1"}, has={"x-tenant": "t1"}, lacks=["x.tenant-id"])
    t.health(9090, "/health")


def inventory_of_another_authority(t, certificate, said=None):
    """Which client certificate `inventory` sees when it is signed by the authority that its own section names."""
    import ssl
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{t.folder}/certs/other-subgraph.crt", f"{t.folder}/certs/other-subgraph.key")
    context.load_verify_locations(f"{t.folder}/certs/ca.crt")
    context.verify_mode = ssl.CERT_OPTIONAL
    target = t.subgraphs["inventory"]
    target.stop()
    target.tls = context
    target.start()
    t.presents("inventory", certificate, INVENTORY, said=said)


@config("07-apollo-subscriptions.yaml", 4000, lost=1, path="/")
def subscriptions(t):
    multipart = "multipart/mixed;subscriptionSpec=1.0, application/json"
    t.streams("Subscriptions", multipart, "/ws", protocol="graphql-transport-ws")
    t.subgraphs["reviews"].delay = 5
    import threading
    open_ = [threading.Thread(target=quiet, args=(t, multipart, EVENTS, f"t{i}"), daemon=True) for i in range(3)]
    for thread in open_:
        thread.start()
    wait_for(lambda: len(t.subgraphs["reviews"].sockets) >= 3)
    t.refuses("Subscriptions", EVENTS, {"accept": multipart}, what="refused: the fourth subscription")
    t.restart()
    t.refuses("Subscriptions", EVENTS, {"accept": "application/json"})
    t.true("Subscriptions", "an unknown callback id is refused", lambda: (lambda a: (a.status >= 400, a))(
        t.ask(body={"kind": "subscription", "action": "next", "id": "1", "verifier": "x", "payload": {}}, path="/callback/unknown")))
    t.true("Subscriptions", "inventory gets a callback URL", lambda: callback(t))
    t.true("Subscriptions", "callbacks come to the address of the gateway", lambda: True, said="subscription.mode.callback.listen")
    t.sends("Header remove", {"x-internal-x": "1", "authorization": "t"}, has={"authorization": "t"}, lacks=["x-internal-x"])
    t.sends("Header insert", {}, to="reviews", query=REVIEWS, has={"x-subscriber": "router"})
    t.sends("Header insert", {}, lacks=["x-subscriber"])
    t.metrics(9464)
    t.true("Timeout (subgraph)", "30s is written", lambda: "timeout: 30s" in t.written)


def callback(t):
    import threading
    t.calm()
    thread = threading.Thread(target=lambda: quiet(t, "multipart/mixed;subscriptionSpec=1.0", "subscription { stockChanged }"), daemon=True)
    thread.start()
    wait_for(lambda: t.subgraphs["inventory"].seen)
    body = t.subgraphs["inventory"].seen[-1]["body"]
    return "/callback" in json.dumps(body["extensions"]["subscription"]["callbackUrl"]), body


def quiet(t, accept, query=EVENTS, authorization=None):
    try:
        t.ask(query, {"accept": accept, "authorization": authorization}, timeout=8)
    except OSError:
        pass


def wait_for(condition, seconds=5):
    import time
    until = time.monotonic() + seconds
    while not condition():
        expect(time.monotonic() < until, "it did not happen in time")
        time.sleep(0.02)


def break_on_header(stages=None):
    """A coprocessor that refuses requests with the header `x-deny`."""
    def answer(path, body):
        message = json.loads(body)
        headers = {name.lower(): value for name, value in (message.get("headers") or {}).items()}
        if "x-deny" in headers and (stages is None or message["stage"] in stages):
            return 200, message | {"control": {"break": 403}, "body": {"errors": [{"message": "denied"}]}}
        return 200, message | {"control": "continue"}
    return answer


@config("08-apollo-coprocessor-rhai.yaml", 4000, lost=2, path="/")
def coprocessor_rhai(t):
    t.coprocessor_answer = break_on_header()
    t.runs("Coprocessor", Q1)
    t.refuses("Coprocessor", Q1, {"x-deny": "1"}, status=403, untouched=True)
    t.coprocessor_answer = break_on_header(["RouterRequest"])
    t.runs("Coprocessor", Q1, {"x-deny": "1", "x-skip-policy": "yes"})
    t.coprocessor_answer = break_on_header(["SupergraphRequest"])
    t.refuses("Coprocessor", Q1, {"x-deny": "1", "x-skip-policy": "yes"}, status=403)
    t.coprocessor_answer = lambda path, body: (503, {})
    t.refuses("Coprocessor", Q1, status=500, what="refused: the coprocessor fails", untouched=True)
    import time
    t.coprocessor_answer = lambda path, body: (time.sleep(5), (200, json.loads(body)))[1]
    t.true("Coprocessor", "a slow coprocessor refuses after 2 s", lambda: (lambda a: (a.refused and 1.7 < a.seconds < 3.5, a))(t.ask(Q1)))
    t.coprocessor_answer = break_on_header()
    t.refuses("Rhai", Q1, {"x-client-version": "0.9.0"}, status=403)
    t.true("Rhai", "responses have `x-gateway`", lambda: (lambda a: (a.headers.get("x-gateway") == "storefront", dict(a.headers)))(t.ask(Q1)))
    t.sends("Rhai", {}, has={"x-from-rhai": "1"})
    t.sends("Rhai", {}, to="products", query=PRODUCTS, lacks=["x-from-rhai"])
    error = {"message": "secret", "extensions": {"code": "C1", "trace-id": "T1", "stack": "S1"}}
    t.errors("Error masking", "accounts", error, [], ["secret", "S1"], said="code and extensions are shown")
    error = {"message": "visible", "extensions": {"code": "C1", "trace-id": "T1", "reason": "R1"}}
    t.errors("Error masking", "products", error, ["visible", "C1"], ["R1"], PRODUCTS, said="exclude_global_keys")
    t.refuses("CSRF", Q1, {"content-type": "text/plain"}, status=400)
    t.runs("CSRF", None, {"x-requested-with": "1"}, method="GET", path="/?query=%7Bme%7Bid%7D%7D", bare=True)
    t.refuses("Introspection off", INTROSPECTION)


@config("09-apollo-v1-legacy.yaml", 4000, path="/")
def v1_legacy(t):
    t.preflight("CORS", "https://legacy.example.com", credentials=True)
    t.preflight("CORS", "https://a.legacy.example.com", credentials=True)
    t.preflight("CORS", "https://evil.example", allowed=False)
    t.headers = {"x-legacy-csrf": "1"}
    me = "query Me { me { id } }"
    t.refuses("CSRF", None, {"x-legacy-csrf": None}, method="GET", path="/?query=query%20Me%20%7B%20me%20%7B%20id%20%7D%20%7D", bare=True, status=400)
    t.runs("CSRF", None, method="GET", path="/?query=query%20Me%20%7B%20me%20%7B%20id%20%7D%20%7D", headers=t.headers, bare=True)
    t.runs("JWT", me)
    t.refuses("JWT", me, bearer(t, key="rogue"), status=401)
    t.runs("JWT", me, bearer(t))
    t.refuses("JWT", me, bearer(t, iss="https://other/"), status=401)
    for query in (depth(11), aliases(31), tokens(20000)):
        t.refuses("Depth", query, status=400)
    t.refuses("Body size", None, body=big(2_100_000), status=413, what="refused: a body of 2,100,000 bytes")
    t.coprocessor_answer = lambda path, body: (200, json.loads(body) | {"control": {"break": 401}})
    t.refuses("Coprocessor", me, status=401)
    t.coprocessor_answer = lambda path, body: (200, json.loads(body) | {"control": "continue"})
    t.runs("Persisted documents", me)
    t.refuses("Persisted documents", Q1)
    def two():
        answer = t.ask(body=[{"query": me}] * 2)
        expect(answer.status == 200 and isinstance(answer.json, list) and len(answer.json) == 2, answer)
    t.record("Batching", "an array of 2 is answered", two)
    t.refuses("Introspection off", INTROSPECTION)
    top = by_hash("TopProducts")
    def again():
        t.calm()
        t.subgraphs["products"].fail = [503]
        answer = t.ask(body=top)
        expect(answer.ok and len(t.subgraphs["products"].seen) == 2, (answer, len(t.subgraphs["products"].seen)))
    t.record("Retries", "products answers 503 first: 2 calls", again)
    def slow():
        t.calm()
        t.subgraphs["products"].delay = 3
        answer = t.ask(body=top)
        t.calm()
        expect(answer.errors and 0.6 < answer.seconds < 2, answer)
    t.record("Timeout (subgraph)", "products takes 3 s: error after 0.8 s", slow)


@config("10-apollo-platform-full.yaml", 4000, secure=("accounts",), tls=True, protected=True)
def platform_full(t):
    t.only_tls()
    t.runs("TLS (clients)", Q1)
    t.presents("accounts", "router-client")
    t.distrusts("accounts", Q1)
    t.preflight("CORS", "https://admin.example.com", credentials=True, max_age=600)
    t.preflight("CORS", "https://qa.example.com:3000", credentials=True, max_age=30)
    t.preflight("CORS", "https://stage.example.com", allowed=False)
    t.refuses("CSRF", Q1, {"content-type": "text/plain"}, status=400)
    t.runs("CSRF", None, {"x-platform-csrf": "1"}, method="GET", path="/graphql?query=%7Bme%7Bid%7D%7D", bare=True)
    t.runs("JWT", Q1)
    t.refuses("JWT", Q1, bearer(t, key="rogue"), status=401)
    t.refuses("Authorization directives", "{ me { id salary } }")
    t.runs("Authorization directives", "{ me { id salary } }", bearer(t))
    t.refuses("Authorization directives", "{ me { id grade } }", bearer(t))
    t.runs("JWT", Q1, bearer(t, iss="https://partner.test/", aud="any"))
    t.refuses("JWT", Q1, bearer(t, alg="ES256", iss="https://partner.test/"), status=401)
    t.runs("Depth", depth(11))
    t.refuses("Depth", depth(12), status=400)
    t.runs("Aliases", aliases(20))
    t.refuses("Aliases", aliases(21), status=400)
    t.refuses("Root fields", roots(13), status=400)
    t.refuses("Tokens", tokens(12000), status=400)
    t.refuses("Body size", None, body=big(1_100_000), status=413, what="refused: a body of 1,100,000 bytes")
    t.runs("Cost", COSTLY)
    t.sends("Header regex", {"x-tenant-a": "1", "x-tenant.secret": "2", "x-other": "3"}, has={"x-tenant-a": "1"}, lacks=["x-tenant.secret", "x-other"])
    t.sends("Header default", {}, has={"x-request-id": "00000000-0000-0000-0000-000000000000"})
    t.sends("Header rename", {"x-old-name": "v"}, has={"x-new-name": "v"}, lacks=["x-old-name"])
    t.sends("Header insert", {}, to="products", query=PRODUCTS, has={"x-api-key": "not-a-secret", "x-platform": "prod"})
    t.sends("Header insert", {}, lacks=["x-api-key"])
    t.sends("Header remove", {"x-tenant.id": "9"}, to="products", query=PRODUCTS, lacks=["x-tenant.id"])
    t.sends("Header remove", {"x-tenant.id": "9"}, has={"x-tenant.id": "9"})
    t.sends("Header rename", bearer(t), to="inventory", query=INVENTORY, has={"x-upstream-authorization": bearer(t)["authorization"]}, lacks=["authorization"])
    t.errors("Error masking", "accounts", {"message": "secret"}, [], ["secret"])
    t.refuses("Rhai", Q1, {"x-client-version": "0.9.0"}, status=403)
    t.refuses("Introspection off", INTROSPECTION)
    t.refuses("Subscriptions", EVENTS, {"accept": "multipart/mixed;subscriptionSpec=1.0"}, said="subscription.enabled .*every subscription is refused")
    t.health(8088, "/health")
    t.metrics(9090)
    t.slow("Timeout (subgraph)", "reviews", 3, 0.75, REVIEWS)
    t.restart()
    t.reaches("Rate limit (subgraph)", 7, "reviews", 5, query=REVIEWS, at_once=False, error=True)
    t.restart()
    t.rate("Rate limit", 100, 1)
    t.plain_env["PORT"] = str(t.ports.of[4555])
    move(t, 4555)
    t.restart(PLATFORM_NAME="qa")
    t.reaches("Dedup", 10, "products", 1, 5, query=PRODUCTS)
    t.sends("Env expansion", {}, has={"x-platform": "qa"})
