"""A coprocessor in Python, without any package: API keys become tenants.

    PORT=8081 python3 python.py
"""

import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TENANTS = {"tenant-7": "7"}


def router_request(message):
    """Ends requests without a key that is known; all others are told to subgraphs as a tenant."""
    key = message["headers"].pop("x-api-key", [None])[0]
    tenant = TENANTS.get(key)
    if tenant is None:
        error = {"message": "who asks?", "extensions": {"code": "UNAUTHENTICATED"}}
        message["control"] = {"break": 401}
        message["headers"] = {}
        message["body"] = json.dumps({"errors": [error]})
        return message
    message["headers"]["x-tenant"] = [tenant]
    message["context"]["entries"]["example::tenant"] = tenant
    return message


def router_response(message):
    """Says in the response whose it is."""
    message["headers"]["x-tenant"] = [message["context"]["entries"]["example::tenant"]]
    return message


STAGES = {"RouterRequest": router_request, "RouterResponse": router_response}


class Coprocessor(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # The head and the body are written one after the other; without this the body waits for the head to be acknowledged.
    disable_nagle_algorithm = True

    def do_POST(self):
        length = int(self.headers["content-length"])
        message = json.loads(self.rfile.read(length))
        answer = STAGES.get(message["stage"], lambda same: same)(message)
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "8081"))), Coprocessor)
print(f"http://127.0.0.1:{server.server_port}/", flush=True)
server.serve_forever()
