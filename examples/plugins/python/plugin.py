"""Who brings no token is refused early; requests to subgraphs say which tenant asks."""

import json

from wit_world import exports
from wit_world.imports import context, exchange

CLAIMS = "apollo::authentication::jwt_claims"


class Receive(exports.Receive):
    def handle(self) -> None:
        if exchange.header("authorization") is None:
            exchange.end(401, "a token is needed")


class SubgraphRequest(exports.SubgraphRequest):
    def handle(self) -> None:
        claims = json.loads(context.get(CLAIMS) or "{}")
        tenant = claims.get("tenant") if isinstance(claims, dict) else None
        if isinstance(tenant, str):
            exchange.set_header("x-tenant", tenant)
