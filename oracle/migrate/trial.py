"""One configuration: migrated, validated, served, and probed.

A probe states what the migrated gateway must do. Without `said`, that is what the peer documents. With `said`, the gateway
differs from the peer, and the report must have an entry whose key or note matches that pattern.
"""

import base64, concurrent.futures, http.client, json, os, re, shutil, signal, socket, ssl, subprocess, threading, time, urllib.parse

import lab
from lab import Frames

HERE = os.path.dirname(os.path.abspath(__file__))
Q1 = "{ me { id } }"
PRODUCTS = "{ topProducts { upc } }"
REVIEWS = "{ topProducts { reviews { id } } }"
INVENTORY = "{ topProducts { inStock } }"
MUTATION = 'mutation { addReview(upc: "1", body: "b") { id } }'
EVENTS = "subscription { reviewAdded { id } }"
INTROSPECTION = "{ __schema { queryType { name } } }"
COSTLY = "{ topProducts { reviews { product { reviews { id } } } } }"


def depth(n):
    return "{ me " + "{ manager " * (n - 2) + "{ id }" + " }" * (n - 1)


def aliases(n):
    return "{ me { " + " ".join(f"a{i}: id" for i in range(n)) + " } }"


def roots(n):
    return "{ " + " ".join(f"r{i}: me {{ id }}" for i in range(n)) + " }"


def tokens(n):
    return "{ me { " + "id " * (n - 5) + "} }"


def directives(n):
    return "{ me { " + " ".join("id @include(if: true)" for _ in range(n)) + " } }"


def manifest_id(name):
    operations = json.load(open(f"{HERE}/files/pq/apollo-manifest.json"))["operations"]
    return next(operation["id"] for operation in operations if operation["name"] == name)


def by_hash(name):
    return {"extensions": {"persistedQuery": {"version": 1, "sha256Hash": manifest_id(name)}}}


class Answer:
    def __init__(self, status, headers, body, seconds):
        self.status, self.headers, self.body, self.seconds = status, headers, body, seconds
        try:
            self.json = json.loads(body)
        except ValueError:
            self.json = None

    @property
    def data(self):
        return self.json.get("data") if isinstance(self.json, dict) else None

    @property
    def errors(self):
        return self.json.get("errors", []) if isinstance(self.json, dict) else []

    @property
    def ok(self):
        return self.status == 200 and bool(self.data) and not self.errors

    @property
    def refused(self):
        return not self.data and (self.status >= 400 or bool(self.errors))

    def __repr__(self):
        return f"{self.status} in {self.seconds:.2f} s: {self.body[:300]!r}"


class Lost(Exception):
    """A probe did not find what it expects."""


def expect(condition, what):
    if not condition:
        raise Lost(str(what))


class Trial:
    """One configuration under test. `file` is its name, `port` the port it is written to listen on."""

    def __init__(self, ogive, file, scratch):
        self.ogive, self.file, self.peer = ogive, file, file.split("-")[1]
        self.folder = f"{scratch}/{file.rsplit('.', 1)[0]}"
        self.ports, self.process = lab.Ports(), None
        self.results, self.entries = [], []
        self.port, self.path, self.tls, self.certificate = None, "/graphql", False, None
        self.headers, self.env, self.plain_env = {}, {}, {}
        self.subgraphs, self.coprocessor_answer = {}, lambda path, body: (200, json.loads(body) | {"control": "continue"})
        self.said_patterns = []

    # Set-up.

    def prepare(self, secure=(), protected=False):
        """The folder that the gateway is served from, and what is around it.

        `secure`: subgraphs with TLS; `protected`: the schema has `@authenticated` and `@requiresScopes`.
        """
        os.makedirs(self.folder)
        shutil.copytree(f"{HERE}/files", self.folder, dirs_exist_ok=True)
        self.keys = lab.Keys(self.folder)
        for index, name in enumerate(lab.SUBGRAPHS):
            context = None
            if name in secure:
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                context.load_cert_chain(f"{self.folder}/certs/subgraph.crt", f"{self.folder}/certs/subgraph.key")
                context.load_verify_locations(f"{self.folder}/certs/ca.crt")
                context.verify_mode = ssl.CERT_OPTIONAL
            port = self.ports.of[(5101 if name in secure else 4101) + index]
            self.subgraphs[name] = lab.Subgraph(name, port, context)
        lab.folder_server(self.ports.of[9100], f"{self.folder}/keys")
        self.asked = lab.recorder(self.ports.of[8081], lambda path, body: self.coprocessor_answer(path, body))
        self.collected = lab.recorder(self.ports.of[4318], lambda path, body: (200, {}))
        self.compose(protected)

    def compose(self, protected):
        for index, name in enumerate(lab.SUBGRAPHS):
            with open(f"{self.folder}/{name}.graphql", "w") as file:
                file.write(lab.sdl(name, protected))
        lines = ["federation_version: 2", "subgraphs:"]
        for index, name in enumerate(lab.SUBGRAPHS):
            lines += [f"  {name}:", f"    routing_url: http://127.0.0.1:{self.ports.of[4101 + index]}/graphql",
                      f"    schema: {{ file: ./{name}.graphql }}"]
        with open(f"{self.folder}/subgraphs.yaml", "w") as file:
            file.write("\n".join(lines) + "\n")
        self.tool("compose", "subgraphs.yaml", "--output", "supergraph.graphql")

    def tool(self, *arguments, status=0):
        done = subprocess.run([self.ogive, *arguments], cwd=self.folder, capture_output=True, text=True,
                              env={**os.environ, **self.environment()})
        if done.returncode != status:
            raise RuntimeError(f"ogive {' '.join(arguments)}: status {done.returncode}, not {status}\n{done.stdout}{done.stderr}")
        return done

    def environment(self):
        return {"CONFIG_DIR": self.folder, **self.plain_env,
                **{name: self.ports.apply(value) for name, value in self.env.items()}}

    def migrate(self, lost):
        """Migrates, and expects that the report counts `lost` protections; then validates the result."""
        shutil.copy(f"{HERE}/configs/{self.file}", self.folder)
        arguments = ["config", "migrate", "--from", self.peer, self.file, "--report", "json"]
        done = subprocess.run([self.ogive, *arguments], cwd=self.folder, capture_output=True, text=True,
                              env={**os.environ, **self.environment()})
        report = json.loads(done.stderr)
        self.entries = report["keys"]
        found = sum(entry["protection"] for entry in self.entries)
        self.record("report", f"{lost} protections are lost", lambda: expect(
            (found, done.returncode != 0) == (lost, lost > 0) or (found == lost and self.refuses_subscriptions()),
            f"{found} are, status {done.returncode}"))
        with open(f"{self.folder}/ogive.yaml", "w") as file:
            file.write(self.ports.apply(done.stdout))
        self.written = done.stdout
        self.record("report", "the result is valid", lambda: self.validate())

    def refuses_subscriptions(self):
        return any("every subscription is refused" in (entry.get("note") or "") for entry in self.entries)

    def validate(self):
        done = subprocess.run([self.ogive, "config", "validate", "ogive.yaml"], cwd=self.folder, capture_output=True,
                              text=True, env={**os.environ, **self.environment()})
        expect(done.returncode == 0, done.stderr[-600:])

    # Serving.

    def start(self):
        self.stop()
        arguments = [self.ogive, "serve", "--config", "ogive.yaml", "--supergraph", "supergraph.graphql", "--log", "info"]
        self.log = open(f"{self.folder}/serve.log", "a+")
        self.process = subprocess.Popen(arguments, cwd=self.folder, stdout=self.log, stderr=self.log,
                                        env={**os.environ, **self.environment()})
        until = time.monotonic() + 30
        while time.monotonic() < until:
            if self.process.poll() is not None:
                break
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.ports.of[self.port])) == 0:
                    return
            time.sleep(0.03)
        self.log.seek(0)
        raise RuntimeError(f"{self.file}: the gateway did not start\n{self.log.read()[-2000:]}")

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process = None

    def restart(self, **env):
        """Forgets all rates, breakers and answers; `env` holds from now on."""
        self.env |= env
        self.calm()
        self.start()

    def calm(self):
        for subgraph in self.subgraphs.values():
            subgraph.reset()

    def close(self):
        self.stop()
        for subgraph in self.subgraphs.values():
            subgraph.stop()

    # Requests.

    def connection(self, port=None, tls=None, certificate="", timeout=40):
        port = self.ports.of[port or self.port]
        if not (self.tls if tls is None else tls):
            return http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
        context = ssl.create_default_context(cafile=f"{self.folder}/certs/ca.crt")
        name = self.certificate if certificate == "" else certificate
        if name:
            context.load_cert_chain(f"{self.folder}/certs/{name}.crt", f"{self.folder}/certs/{name}.key")
        return http.client.HTTPSConnection("localhost", port, timeout=timeout, context=context)

    def ask(self, query=None, headers=None, body=None, method="POST", path=None, raw=None, port=None, bare=False, **how):
        """Sends an operation, or `body` (JSON), or `raw` bytes; a header of None is not sent, even where it is usual."""
        if body is None and query is not None:
            body = {"query": query}
        data = raw if raw is not None else (json.dumps(body).encode() if body is not None else None)
        sent = {} if bare else {"content-type": "application/json", **self.headers}
        sent |= headers or {}
        connection = self.connection(port, **how)
        start = time.monotonic()
        try:
            connection.putrequest(method, path or self.path, skip_accept_encoding=True)
            for name, value in sent.items():
                for one in value if isinstance(value, list) else [value]:
                    if one is not None:
                        connection.putheader(name, one)
            if data is not None:
                connection.putheader("content-length", str(len(data)))
            try:
                connection.endheaders(data)
            except (BrokenPipeError, ConnectionResetError):
                pass  # Refused before the body was sent; the answer may be there.
            response = connection.getresponse()
            return Answer(response.status, response.headers, response.read().decode("utf-8", "replace"), time.monotonic() - start)
        finally:
            connection.close()

    def many(self, n, query=Q1, each=None, threads=None, **how):
        """Sends an operation `n` times at once; `each(i)` are the headers of one."""
        with concurrent.futures.ThreadPoolExecutor(threads or min(n, 60)) as pool:
            futures = [pool.submit(self.ask, query, (each(i) if each else None), **how) for i in range(n)]
            return [future.result() for future in futures]

    # Probes.

    def record(self, label, what, probe, said=None):
        try:
            if said:
                self.said_patterns.append(said)
                expect(any(re.search(said, f"{entry.get('from')} {entry.get('to')} ({entry.get('note')}) {entry['verdict']}")
                           for entry in self.entries), f"the report has nothing like /{said}/")
            probe()
            self.results.append((label, what, "reported" if said else "as before", ""))
        except (Lost, OSError, http.client.HTTPException) as error:
            self.results.append((label, what, "FAILED", f"{type(error).__name__}: {error}"))

    def runs(self, label, query, headers=None, said=None, what=None, status=200, **how):
        def probe():
            answer = self.ask(query, headers, **how)
            expect(answer.ok and answer.status == status, answer)
        self.record(label, what or f"answered: {shorten(query or how)} {shorten(headers)}", probe, said)

    def refuses(self, label, query, headers=None, said=None, status=None, code=None, what=None, untouched=False, **how):
        def probe():
            seen = sum(len(subgraph.seen) for subgraph in self.subgraphs.values())
            answer = self.ask(query, headers, **how)
            expect(answer.refused, answer)
            expect(status is None or answer.status in (status if isinstance(status, tuple) else (status,)), answer)
            expect(code is None or code in answer.body, answer)
            expect(not untouched or seen == sum(len(subgraph.seen) for subgraph in self.subgraphs.values()), "a subgraph was called")
        self.record(label, what or f"refused: {shorten(query or how)} {shorten(headers)}", probe, said)

    def partial(self, label, query, code=None, said=None, **how):
        """A part of the data is null, with an error."""
        def probe():
            answer = self.ask(query, **how)
            expect(answer.status == 200 and answer.errors, answer)
            expect(code is None or code in answer.body, answer)
        self.record(label, f"null with an error: {shorten(query)}", probe, said)

    def sends(self, label, headers, to="accounts", query=Q1, has=None, lacks=(), said=None, what=None):
        """What a subgraph gets when a client sends `headers`."""
        def probe():
            self.subgraphs[to].seen.clear()
            answer = self.ask(query, headers)
            expect(self.subgraphs[to].seen, f"{to} was not called: {answer}")
            got = self.subgraphs[to].seen[-1]["headers"]
            for name, value in (has or {}).items():
                expect(got.get(name) == value, f"{name}: {got.get(name)!r} at {to}, not {value!r}")
            for name in lacks:
                expect(name not in got, f"{name}: {got.get(name)!r} at {to}")
        self.record(label, what or f"{shorten(headers)} at {to}: {shorten(has)}{' without ' + ', '.join(lacks) if lacks else ''}", probe, said)

    def preflight(self, label, origin, allowed=True, credentials=None, max_age=None, methods=None, allow_headers=None, said=None):
        def probe():
            answer = self.ask(None, {"origin": origin, "access-control-request-method": "POST",
                                     "access-control-request-headers": "content-type"}, method="OPTIONS", bare=True)
            got = answer.headers.get("access-control-allow-origin")
            expect((got in (origin, "*")) == allowed, f"{answer.status} {dict(answer.headers)}")
            for name, wanted in (("credentials", "true" if credentials else None), ("methods", methods), ("headers", allow_headers)):
                found = answer.headers.get(f"access-control-allow-{name}")
                expect(wanted is None or (found or "").replace(" ", "").lower() == wanted.lower(), f"{name}: {found}")
            expect(credentials is not False or answer.headers.get("access-control-allow-credentials") is None, "credentials")
            found = answer.headers.get("access-control-max-age")
            expect(max_age is None or found == str(max_age), f"max-age: {found}")
        self.record(label, f"preflight from {origin}: {'allowed' if allowed else 'not allowed'}", probe, said)

    def exposes(self, label, origin, names, query=Q1, body=None, said=None):
        def probe():
            answer = self.ask(query, {"origin": origin}, body=body)
            expect((answer.headers.get("access-control-expose-headers") or "").lower() == names, dict(answer.headers))
        self.record(label, f"headers exposed to {origin}: {names}", probe, said)

    def slow(self, label, subgraphs, seconds, at, query=Q1, said=None, headers=None, status=None):
        """With slow subgraphs, an operation ends with an error after about `at` seconds; None: it is answered."""
        def probe():
            self.calm()
            for name in [subgraphs] if isinstance(subgraphs, str) else subgraphs:
                self.subgraphs[name].delay = seconds
            try:
                answer = self.ask(query, headers)
            finally:
                self.calm()
            if at is None:
                return expect(answer.ok, answer)
            expect(answer.errors or answer.status >= 400, answer)
            expect(at * 0.85 <= answer.seconds <= at + 1.2, answer)
            expect(status is None or answer.status == status, answer)
        self.record(label, f"{subgraphs} takes {seconds} s: {'answered' if at is None else f'error after {at} s'}", probe, said)

    def rate(self, label, capacity, seconds, query="{ __typename }", status=(429, 503), each=None, said=None):
        """`capacity` operations pass in `seconds`, and those beyond are refused. No subgraph takes part, so that a busy
        machine is fast enough.
        """
        def probe():
            start, passed, refused = time.monotonic(), [], []

            def client(_):
                connection = self.connection()
                while not refused and time.monotonic() - start < 15:
                    headers = {"content-type": "application/json", **self.headers, **(each(len(passed)) if each else {})}
                    connection.request("POST", self.path, json.dumps({"query": query}), headers)
                    response = connection.getresponse()
                    answer = Answer(response.status, response.headers, response.read().decode(), 0)
                    (passed if answer.ok else refused).append(answer)
                connection.close()
            with concurrent.futures.ThreadPoolExecutor(4) as pool:
                list(pool.map(client, range(4)))
            bound = capacity * (1 + (time.monotonic() - start) / seconds) + 4
            expect(refused, f"{len(passed)} pass, none is refused")
            expect(all(answer.status in status for answer in refused), refused)
            expect(capacity <= len(passed) <= bound, f"{len(passed)} pass, not {capacity} to {bound:.0f}")
        self.record(label, f"{capacity} × {shorten(query)} pass in {seconds} s", probe, said)

    def reaches(self, label, n, subgraph, low, high=None, query=Q1, each=None, at_once=True, said=None, delay=0.4, error=False):
        """Of `n` operations, `low` to `high` reach a subgraph."""
        def probe():
            self.calm()
            self.subgraphs[subgraph].delay = delay if at_once else 0
            answers = self.many(n, query, each) if at_once else [self.ask(query, each(i) if each else None) for i in range(n)]
            found = len(self.subgraphs[subgraph].seen)
            self.calm()
            expect(low <= found <= (low if high is None else high), f"{found} reach it: {answers[-1]}")
            expect(not error or answers[-1].errors, answers[-1])
        self.record(label, f"of {n} × {shorten(query)}, {low}{'' if high is None else f' to {high}'} reach {subgraph}", probe, said)

    def retries(self, label, subgraph, statuses, calls, query=Q1, ok=True, said=None):
        """A subgraph answers these statuses first; then it has been called `calls` times."""
        def probe():
            self.calm()
            self.subgraphs[subgraph].fail = list(statuses)
            answer = self.ask(query)
            found = len(self.subgraphs[subgraph].seen)
            self.calm()
            expect(found == calls, f"{found} calls: {answer}")
            expect(answer.ok == ok, answer)
        self.record(label, f"{subgraph} answers {statuses} first: {calls} calls", probe, said)

    def breaks(self, label, subgraph, status, n, opens=True, query=Q1, said=None):
        """After `n` failures a subgraph is not called any more, or still is. `status` of None: connections are refused."""
        def probe():
            self.calm()
            target = self.subgraphs[subgraph]
            if status is None:
                target.stop()
            target.fail = [status] * 200
            for _ in range(n):
                self.ask(query)
            if status is None:
                target.start()
            self.calm()
            answer = self.ask(query)
            expect(bool(target.seen) != opens, f"called {len(target.seen)} times: {answer}")
        self.record(label, f"{subgraph} fails {n} times ({status or 'no connection'}): {'opens' if opens else 'does not open'}", probe, said)

    def errors(self, label, subgraph, error, shown, hidden, query=Q1, body=None, headers=None, said=None):
        """A subgraph's error: texts that the client sees and does not see."""
        def probe():
            self.calm()
            self.subgraphs[subgraph].errors = [error]
            answer = self.ask(query, headers, body=body)
            self.calm()
            expect(answer.errors, answer)
            for text in shown:
                expect(text in answer.body, f"{text} is not in {answer}")
            for text in hidden:
                expect(text not in answer.body, f"{text} is in {answer}")
        self.record(label, f"an error of {subgraph}: shows {shown}, hides {hidden}", probe, said)

    def only_tls(self):
        def probe():
            try:
                answer = self.ask(Q1, tls=False)
            except (OSError, http.client.HTTPException):
                return
            expect(not answer.ok, answer)
        self.record("TLS (clients)", "no answer over plain HTTP", probe)

    def certificate_refused(self, name):
        def probe():
            try:
                answer = self.ask(Q1, certificate=name)
            except (OSError, http.client.HTTPException):
                return
            raise Lost(answer)
        self.record("mTLS (clients)", f"refused with the certificate: {name}", probe)

    def presents(self, subgraph, name, query=Q1, label="mTLS (subgraphs)", said=None):
        """Which client certificate a subgraph sees."""
        def probe():
            self.subgraphs[subgraph].seen.clear()
            answer = self.ask(query)
            expect(self.subgraphs[subgraph].seen, f"{subgraph} was not called: {answer}")
            expect(self.subgraphs[subgraph].seen[-1]["cn"] == name, self.subgraphs[subgraph].seen[-1]["cn"])
        self.record(label, f"{subgraph} sees the certificate {name}", probe, said)

    def distrusts(self, subgraph, query, authority="other-ca", said=None):
        """A subgraph whose certificate another authority has signed is not asked."""
        def probe():
            target = self.subgraphs[subgraph]
            context, before = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), target.tls
            certificate = "other-subgraph" if authority == "other-ca" else "subgraph"
            context.load_cert_chain(f"{self.folder}/certs/{certificate}.crt", f"{self.folder}/certs/{certificate}.key")
            target.stop()
            target.tls = context
            target.start()
            self.restart()
            answer = self.ask(query)
            target.stop()
            seen, target.tls = len(target.seen), before
            target.start()
            self.restart()
            expect(answer.errors and not seen, f"{answer}, {seen} calls")
        self.record("TLS (subgraphs)", f"{subgraph} with a certificate of {authority} is not called", probe, said)

    def health(self, port, path, status=200, tls=False, said=None):
        def probe():
            answer = self.ask(method="GET", path=path, port=port, bare=True, tls=tls)
            expect(answer.status == status, answer)
        self.record("Health check", f"GET {path} at {port}: {status}", probe, said)

    def metrics(self, port, path="/metrics"):
        def probe():
            self.ask(Q1)
            answer = self.ask(method="GET", path=path, port=port, bare=True, tls=False)
            expect(answer.status == 200 and "http_server_request_duration" in answer.body, answer)
        self.record("Telemetry", f"metrics at {port}{path}", probe)

    def no_page(self, label="IDE off"):
        def probe():
            answer = self.ask(None, {"accept": "text/html"}, method="GET", path="/", bare=True)
            expect("<html" not in answer.body.lower(), answer)
        self.record(label, "no page at /", probe)

    def streams(self, label, accept, path=None, headers=None, said=None, query=EVENTS, subgraph="reviews", protocol="graphql-transport-ws"):
        """A subscription over HTTP brings events; the socket to the subgraph goes to `path`."""
        def probe():
            self.calm()
            answer = self.ask(query, {"accept": accept, **(headers or {})})
            expect(answer.status == 200 and '"reviewAdded":{"id":"1"}' in answer.body.replace(" ", ""), answer)
            if path:
                expect(self.subgraphs[subgraph].sockets, "no socket")
                socket_ = self.subgraphs[subgraph].sockets[-1]
                expect((socket_["path"], socket_["protocol"]) == (path, protocol), socket_)
        self.record(label, f"events with {accept}" + (f" over a socket at {path}" if path else ""), probe, said)

    def socket_events(self, label, path, payload=None, headers=None, events=True, said=None, has=None, lacks=()):
        """A subscription over WebSocket brings events, or none; what the subgraph's socket is sent."""
        def probe():
            self.calm()
            got = self.over_socket(path, payload, headers)
            found = any('"reviewAdded"' in message and '"errors"' not in message for message in got)
            expect(found == events, got)
            if has or lacks:
                record = self.subgraphs["reviews"].sockets[-1]
                for name, value in (has or {}).items():
                    expect(record["headers"].get(name) == value, record)
                for name in lacks:
                    expect(name not in record["headers"] and name not in json.dumps(record["init"]), record)
        self.record(label, f"{'events' if events else 'none'} over WebSocket at {path}, payload {shorten(payload)}", probe, said)

    def over_socket(self, path, payload=None, headers=None, query=EVENTS, n=3):
        """What a client gets over WebSocket until it is complete."""
        connection = self.connection(timeout=5)
        connection.connect()
        sock = connection.sock
        key = base64.b64encode(os.urandom(16)).decode()
        lines = [f"GET {path} HTTP/1.1", "host: localhost", "upgrade: websocket", "connection: Upgrade", f"sec-websocket-key: {key}",
                 "sec-websocket-version: 13", "sec-websocket-protocol: graphql-transport-ws"]
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        sock.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        reader = sock.makefile("rb")
        status = reader.readline().decode()
        while reader.readline() not in (b"\r\n", b""):
            pass
        if " 101 " not in status:
            connection.close()
            return [status]
        frames, got = Frames(reader.read, sock.sendall, mask=True), []
        frames.send(json.dumps({"type": "connection_init", "payload": payload or {}}))
        try:
            while (message := frames.receive()) is not None:
                kind = json.loads(message)["type"]
                if kind == "connection_ack":
                    frames.send(json.dumps({"id": "1", "type": "subscribe", "payload": {"query": query}}))
                else:
                    got.append(message)
                if kind in ("complete", "error"):
                    break
        except (TimeoutError, ConnectionError, ValueError) as error:
            got.append(f"{type(error).__name__}")
        connection.close()
        return got

    def true(self, label, what, probe, said=None):
        """`probe()` returns whether something holds, or the pair of that and what was found."""
        def run():
            found = probe()
            holds, detail = found if isinstance(found, tuple) else (found, found)
            expect(holds, detail)
        self.record(label, what, run, said)


def shorten(value):
    if value is None:
        return ""
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    text = re.sub(r"ey[\w-]+\.[\w-]+\.[\w-]*", "TOKEN", text)
    return text if len(text) <= 70 else text[:67] + "…"


def big(n):
    """The plain operation in a body of at least `n` bytes."""
    return {"query": Q1, "extensions": {"pad": "x" * n}}


#: The configurations, in order: file name, and what `config` was given.
CONFIGS = {}


def config(file, port, lost=0, path="/graphql", secure=(), protected=False, tls=False, certificate=None, redis=None, env=(), **plain):
    """Registers the probes of a configuration.

    `port` and `path` are where GraphQL is served, `lost` how many protections the report says are lost, `redis` the
    password of a Redis that it needs (an empty one for none), `env` variables whose ports are replaced, `plain` others.
    """

    def register(probes):
        def run(ogive, scratch):
            trial = Trial(ogive, file, scratch)
            trial.port, trial.path, trial.tls, trial.certificate = port, path, tls, certificate
            trial.env, trial.plain_env = dict(env), plain
            server = None
            try:
                trial.prepare(secure, protected)
                if redis is not None:
                    server = start_redis(trial, redis)
                trial.migrate(lost)
                trial.start()
                probes(trial)
            except Exception as error:  # A configuration that stops must not stop the others.
                trial.results.append(("run", "the probes run to their end", "FAILED", f"{type(error).__name__}: {error}"))
            finally:
                trial.close()
                if server:
                    server.terminate()
                    server.wait()
            return trial

        CONFIGS[file] = run
        return probes

    return register


def start_redis(trial, password):
    arguments = ["redis-server", "--port", str(trial.ports.of[6379]), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
    process = subprocess.Popen(arguments + (["--requirepass", password] if password else []), cwd=trial.folder,
                               stdout=subprocess.DEVNULL)
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", trial.ports.of[6379])) == 0:
                return process
        time.sleep(0.02)
