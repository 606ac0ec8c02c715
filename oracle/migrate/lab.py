"""Everything around a gateway under test: keys, certificates, subgraphs, key sets, a coprocessor, a collector.

All servers listen on loopback. The configurations name fixed ports; `Ports` gives each of them a free one.
"""

import base64, hashlib, hmac, http.server, json, os, random, re, socket, ssl, struct, subprocess, threading, time

SUBGRAPHS = ("accounts", "products", "reviews", "inventory")
#: Ports that the configurations name, as written there.
WRITTEN = (4000, 4001, 4443, 3002, 3443, 5000, 5443, 4101, 4102, 4103, 4104, 4202, 4204, 4303, 5101, 5102, 5103, 5104,
           9100, 8081, 8088, 9090, 9464, 9668, 4317, 4318, 6379, 4555, 4999, 10000)

SDL = {
    "accounts": """
type Query { me: User user(id: ID!): User }
type User @key(fields: "id") { id: ID! name: String manager: User salary: Int @authenticated
  grade: Int @requiresScopes(scopes: [["admin"]]) }""",
    "products": """
type Query { topProducts(first: Int = 5): [Product] product(upc: ID!): Product }
type Product @key(fields: "upc") { upc: ID! name: String price: Int }""",
    "reviews": """
type Mutation { addReview(upc: ID!, body: String!): Review }
type Subscription { reviewAdded: Review }
type User @key(fields: "id") { id: ID! reviews: [Review] }
type Product @key(fields: "upc") { upc: ID! reviews: [Review] }
type Review @key(fields: "id") { id: ID! body: String author: User product: Product }""",
    "inventory": """
type Product @key(fields: "upc") { upc: ID! inStock: Boolean }
type Subscription { stockChanged: Int }""",
}
#: What an object field leads to; a list has two entries.
OBJECTS = {"me": "User", "user": "User", "manager": "User", "author": "User", "topProducts": ["Product"],
           "product": "Product", "reviews": ["Review"], "addReview": "Review", "reviewAdded": "Review"}
SCALARS = {"id": "1", "upc": "1", "name": "n", "price": 5, "body": "b", "inStock": True, "salary": 1, "grade": 2,
           "stockChanged": 3}


def sdl(name, protected):
    """The schema of a subgraph, with what protects fields or without it."""
    text, names = SDL[name], '["@key"]'
    if protected:
        names = '["@key", "@authenticated", "@requiresScopes"]'
    else:
        text = re.sub(r"@(authenticated|requiresScopes\(.*?\]\]\))", "", text)
    return f'extend schema @link(url: "https://specs.apollo.dev/federation/v2.5", import: {names})\n{text}'


class Ports:
    """A free port for each port that is written in a configuration."""

    def __init__(self):
        self.of = {written: free_port() for written in WRITTEN}

    def apply(self, text):
        """The text with its ports replaced, and every listener on loopback."""
        text = re.sub(r"(?<=[:\-])(\d{4,5})\b", lambda m: str(self.of.get(int(m[1]), m[1])), text)
        return text.replace("0.0.0.0", "127.0.0.1").replace("accounts.test", "localhost")


#: Ports that were given out: one whose server is away for a moment must not be given to another configuration.
GIVEN = set()


def free_port():
    while True:
        port = random.randrange(18_000, 32_000)  # Below the ports that outgoing connections take.
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        if port not in GIVEN:
            GIVEN.add(port)
            return port


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Keys:
    """Keys, key sets and certificates, made in `folder` by `openssl`."""

    def __init__(self, folder):
        self.folder = folder
        os.makedirs(f"{folder}/keys")
        os.makedirs(f"{folder}/certs")
        self.cache = {}
        for name in ("rs256", "rogue"):
            self.openssl("genrsa", "-out", f"keys/{name}.key", "2048")
        self.openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", "keys/es256.key")
        self.key_sets()
        self.certificates()

    def openssl(self, *arguments, data=None):
        done = subprocess.run(["openssl", *arguments], cwd=self.folder, input=data, capture_output=True)
        if done.returncode:
            raise RuntimeError(f"openssl {arguments}: {done.stderr.decode()}")
        return done.stdout

    def key_sets(self):
        modulus = self.openssl("rsa", "-in", "keys/rs256.key", "-noout", "-modulus").decode().strip().split("=")[1]
        point = self.openssl("ec", "-in", "keys/es256.key", "-pubout", "-outform", "DER")[-64:]
        rsa = {"kty": "RSA", "kid": "test-rs256", "use": "sig", "alg": "RS256", "e": "AQAB", "n": b64(bytes.fromhex(modulus))}
        ec = {"kty": "EC", "kid": "test-es256", "use": "sig", "alg": "ES256", "crv": "P-256", "x": b64(point[:32]), "y": b64(point[32:])}
        for name, keys in (("jwks", [rsa, ec]), ("jwks.rs256-only", [rsa]), ("none", [])):
            self.write(f"keys/{name}.json", json.dumps({"keys": keys}))
        self.write("keys/sign.jwk.json", json.dumps({"kty": "oct", "kid": "sign", "k": b64(b"0123456789abcdef0123456789abcdef")}))

    def write(self, name, text):
        with open(f"{self.folder}/{name}", "w") as file:
            file.write(text)

    def certificates(self):
        for ca in ("ca", "other-ca"):
            self.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout",
                         f"certs/{ca}.key", "-out", f"certs/{ca}.crt", "-days", "2", "-subj", f"/CN={ca}")
        self.write("certs/names.cnf", "subjectAltName=DNS:localhost,IP:127.0.0.1\n")
        for name, ca in (("server", "ca"), ("subgraph", "ca"), ("router-client", "ca"), ("app-client", "ca"),
                         ("rogue-client", "other-ca"), ("other-subgraph", "other-ca")):
            self.openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout",
                         f"certs/{name}.key", "-out", f"certs/{name}.csr", "-subj", f"/CN={name}")
            self.openssl("x509", "-req", "-in", f"certs/{name}.csr", "-CA", f"certs/{ca}.crt", "-CAkey", f"certs/{ca}.key",
                         "-CAcreateserial", "-out", f"certs/{name}.crt", "-days", "2", "-extfile", "certs/names.cnf")
        with open(f"{self.folder}/certs/router-client-identity.pem", "w") as both:
            for end in ("crt", "key"):
                both.write(open(f"{self.folder}/certs/router-client.{end}").read())

    def token(self, alg="RS256", key="rs256", kid=None, expires=3600, secret="test-hs256-secret-of-32-bytes-min", **claims):
        """A token; by default one that every configuration accepts. A claim of None is left out."""
        cached = json.dumps([alg, key, kid, expires, secret, claims], sort_keys=True)
        if cached not in self.cache:
            body = {"iss": "https://issuer.test/", "aud": "graph", "sub": "u1", "exp": int(time.time()) + expires, **claims}
            body = {name: value for name, value in body.items() if value is not None}
            header = {"alg": alg, "typ": "JWT", "kid": kid or f"test-{alg.lower()}"}
            text = b64(json.dumps(header).encode()) + "." + b64(json.dumps(body).encode())
            self.cache[cached] = text + "." + b64(self.sign(alg, key, secret, text.encode()))
        return self.cache[cached]

    def sign(self, alg, key, secret, text):
        if alg == "none":
            return b""
        if alg == "HS256":
            return hmac.new(secret.encode(), text, hashlib.sha256).digest()
        key = "es256" if alg == "ES256" else key
        signature = self.openssl("dgst", "-sha256", "-sign", f"keys/{key}.key", data=text)
        if alg == "RS256":
            return signature
        length = signature[3]
        parts = (signature[4:4 + length], signature[6 + length:])
        return b"".join(int.from_bytes(part, "big").to_bytes(32, "big") for part in parts)


class Quiet(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request, client_address):
        pass  # Clients that leave and handshakes that fail are part of the probes.


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def body(self):
        if self.headers.get("transfer-encoding") == "chunked":
            data = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                data += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return data
        return self.rfile.read(int(self.headers.get("content-length") or 0))

    def reply(self, status, body, headers=()):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in (("content-type", "application/json"), ("content-length", str(len(data))), *headers):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)


def serve(port, handler, tls=None):
    """A server on a port of loopback; `tls` is a context for it."""
    server = Quiet(("127.0.0.1", port), handler)
    if tls:
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    return server


class Subgraph:
    """A subgraph that records what it is sent, and is slow or fails on demand."""

    def __init__(self, name, port, tls=None):
        self.name, self.port, self.tls = name, port, tls
        self.lock = threading.Lock()
        self.server = None
        self.reset()
        self.start()

    def reset(self):
        #: Seconds before an answer; statuses of the next answers; errors and headers of every answer.
        self.delay, self.fail, self.errors, self.headers = 0, [], [], []
        #: What came: dictionaries with `path`, `headers` (lower case, joined by `, `), `body`, `cn`.
        self.seen, self.sockets = [], []

    def start(self):
        handler = type("SubgraphHandler", (SubgraphHandler,), {"subgraph": self})
        self.server = serve(self.port, handler, self.tls)

    def stop(self):
        if self.server:
            self.server.shutdown()
            self.server.server_close()
            self.server = None


class SubgraphHandler(Handler):
    subgraph = None

    def joined(self):
        headers = {}
        for name, value in self.headers.items():
            name = name.lower()
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        return headers

    def common_name(self):
        if not isinstance(self.connection, ssl.SSLSocket):
            return None
        subject = dict(pair[0] for pair in (self.connection.getpeercert() or {}).get("subject", ()))
        return subject.get("commonName")

    def do_GET(self):
        if "websocket" in self.headers.get("upgrade", "").lower():
            return self.socket()
        self.reply(405, {})

    def do_POST(self):
        subgraph = self.subgraph
        body = json.loads(self.body() or b"{}")
        with subgraph.lock:
            subgraph.seen.append({"path": self.path, "headers": self.joined(), "body": body, "cn": self.common_name()})
            status = subgraph.fail.pop(0) if subgraph.fail else 200
            headers, errors, delay = list(subgraph.headers), list(subgraph.errors), subgraph.delay
        if delay:
            time.sleep(delay)
        if status != 200:
            return self.reply(status, {"errors": [{"message": "failed on demand"}]})
        callback = (body.get("extensions") or {}).get("subscription")
        if callback:
            return self.reply(200, {"data": None}, headers)
        result = {"data": None if errors else run(body)}
        if errors:
            result["errors"] = errors
        if "text/event-stream" in self.headers.get("accept", "") and body["query"].lstrip().startswith("subscription"):
            events = f"event: next\ndata: {json.dumps(result)}\n\nevent: complete\ndata:\n\n".encode()
            return self.reply(200, events, [("content-type", "text/event-stream")])
        self.reply(200, result, headers)

    def socket(self):
        accept = hashlib.sha1((self.headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()
        protocol = self.headers.get("sec-websocket-protocol", "").split(",")[0].strip()
        self.wfile.write((f"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\n"
                          f"sec-websocket-accept: {base64.b64encode(accept).decode()}\r\n"
                          f"sec-websocket-protocol: {protocol}\r\n\r\n").encode())
        record = {"path": self.path, "headers": self.joined(), "protocol": protocol, "init": None, "cn": self.common_name()}
        self.subgraph.sockets.append(record)
        frames = Frames(self.rfile.read, self.wfile.write, mask=False)
        self.close_connection = True
        while (message := frames.receive()) is not None:
            message = json.loads(message)
            if message["type"] == "connection_init":
                record["init"] = message.get("payload")
                frames.send(json.dumps({"type": "connection_ack"}))
            elif message["type"] == "subscribe":
                payload = {"data": run(message["payload"])}
                for _ in range(2):
                    frames.send(json.dumps({"id": message["id"], "type": "next", "payload": payload}))
                if not self.subgraph.delay:
                    frames.send(json.dumps({"id": message["id"], "type": "complete"}))


class Frames:
    """Text frames of WebSocket over two functions."""

    def __init__(self, read, write, mask):
        self.read, self.write, self.mask = read, write, mask

    def send(self, text, code=1):
        data = text.encode()
        bit = 0x80 if self.mask else 0
        head = bytes([0x80 | code])
        head += bytes([bit | len(data)]) if len(data) < 126 else bytes([bit | 126]) + struct.pack(">H", len(data))
        self.write(head + (b"\0\0\0\0" if self.mask else b"") + data)

    def receive(self):
        """The next text; None when the other side ends."""
        while True:
            head = self.read(2)
            if len(head) < 2:
                return None
            size = head[1] & 127
            if size > 125:
                size = int.from_bytes(self.read(2 if size == 126 else 8), "big")
            key = self.read(4) if head[1] & 128 else b"\0\0\0\0"
            data = bytes(byte ^ key[i % 4] for i, byte in enumerate(self.read(size)))
            code = head[0] & 15
            if code == 1:
                return data.decode()
            if code == 8:
                return None
            if code == 9:
                self.send(data.decode(), code=10)


TOKEN = re.compile(r'"""(?:.|\n)*?"""|"(?:\\.|[^"\\])*"|\.\.\.|[{}()\[\]:!=$@|&]|[_A-Za-z]\w*|-?\d[\d.eE+-]*')


def run(body):
    """What a subgraph answers to an operation, with one value for every scalar."""
    tokens = TOKEN.findall(re.sub(r"#.*", "", body["query"]))
    selections, fragments, at = None, {}, 0
    while at < len(tokens):
        name = tokens[at + 1] if tokens[at] == "fragment" else None
        while tokens[at] != "{":
            at = skip_parens(tokens, at) if tokens[at] == "(" else at + 1
        found, at = selection(tokens, at)
        if name:
            fragments[name] = found
        else:
            selections = selections or found
    return resolve(selections, fragments, "Query", body.get("variables") or {})


def skip_parens(tokens, at):
    depth = 0
    while True:
        depth += {"(": 1, ")": -1}.get(tokens[at], 0)
        at += 1
        if not depth:
            return at


def selection(tokens, at):
    """The entries of a selection set as (key, name, selections), and where it ends."""
    found, at = [], at + 1
    while tokens[at] != "}":
        key = name = tokens[at]
        at += 1
        if name == "...":
            if tokens[at] == "on":
                key, at = tokens[at + 1], at + 2
            elif tokens[at] not in "{@":
                found.append((tokens[at], "spread", None))
                at += 1
                continue
            else:
                key = None
        elif tokens[at] == ":":
            name, at = tokens[at + 1], at + 2
        if tokens[at] == "(":
            at = skip_parens(tokens, at)
        while tokens[at] == "@":
            at += 2
            at = skip_parens(tokens, at) if tokens[at] == "(" else at
        inner = None
        if tokens[at] == "{":
            inner, at = selection(tokens, at)
        found.append((key, name, inner))
    return found, at + 1


def resolve(selections, fragments, kind, variables):
    result = {}
    for key, name, inner in selections:
        if name == "spread":
            result.update(resolve(fragments[key], fragments, kind, variables))
        elif name == "...":
            if key in (None, kind, "Query", "Mutation", "Subscription"):
                result.update(resolve(inner, fragments, kind, variables))
        elif name == "__typename":
            result[key] = kind
        elif name == "_entities":
            representations = variables.get("representations") or next(iter(variables.values()))
            result[key] = [resolve(inner, fragments, one["__typename"], variables) for one in representations]
        elif name in OBJECTS:
            to = OBJECTS[name]
            one = resolve(inner, fragments, to[0] if isinstance(to, list) else to, variables)
            result[key] = [one, one] if isinstance(to, list) else one
        else:
            result[key] = SCALARS[name]
    return result


class Recorder(Handler):
    """Answers every POST with what `answer(path, headers, body)` says, and keeps the requests in `seen`."""

    seen, answer = None, None

    def do_POST(self):
        body = self.body()
        self.seen.append((self.path, {name.lower(): value for name, value in self.headers.items()}, body))
        self.reply(*type(self).answer(self.path, body))


def recorder(port, answer):
    seen = []
    serve(port, type("Recording", (Recorder,), {"seen": seen, "answer": staticmethod(answer)}))
    return seen


def folder_server(port, folder):
    """Serves the files of a folder, as an issuer its key sets."""

    class Files(Handler):
        def do_GET(self):
            path = os.path.join(folder, os.path.basename(self.path))
            if not os.path.isfile(path):
                return self.reply(404, {})
            self.reply(200, open(path, "rb").read())

    return serve(port, Files)
