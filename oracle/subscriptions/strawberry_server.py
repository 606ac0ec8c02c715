"""A subgraph of Strawberry that sends events: prints its URL as one line of JSON, and serves until its input ends."""

import asyncio
import json
import socket
import sys
from collections.abc import AsyncGenerator

import strawberry
import uvicorn
from strawberry.asgi import GraphQL
from strawberry.subscriptions import (
    GRAPHQL_SSE_PROTOCOL,
    GRAPHQL_TRANSPORT_WS_PROTOCOL,
    GRAPHQL_WS_PROTOCOL,
    MULTIPART_SUBSCRIPTION_PROTOCOL,
)

PROTOCOLS = [
    GRAPHQL_TRANSPORT_WS_PROTOCOL,
    GRAPHQL_WS_PROTOCOL,
    GRAPHQL_SSE_PROTOCOL,
    MULTIPART_SUBSCRIPTION_PROTOCOL,
]


@strawberry.type
class Query:
    a: int = 1


@strawberry.type
class Subscription:
    @strawberry.subscription
    async def count(self, to: int) -> AsyncGenerator[int, None]:
        for number in range(1, to + 1):
            yield number

    @strawberry.subscription
    async def who_am_i(self, info: strawberry.Info) -> AsyncGenerator[str | None, None]:
        parameters = info.context.get("connection_params") or {}
        request = info.context["request"]
        yield parameters.get("authorization") or request.headers.get("authorization") or "nobody"

    @strawberry.subscription
    async def forever(self) -> AsyncGenerator[int | None, None]:
        yield 1
        await asyncio.Event().wait()


async def main() -> None:
    schema = strawberry.Schema(query=Query, subscription=Subscription)
    application = GraphQL(schema, subscription_protocols=PROTOCOLS)
    listening = socket.create_server(("127.0.0.1", 0))
    print(json.dumps({"strawberry": f"http://127.0.0.1:{listening.getsockname()[1]}/"}, separators=(",", ":")), flush=True)
    config = uvicorn.Config(application, log_level="error", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)

    async def stop() -> None:
        await asyncio.to_thread(sys.stdin.read)
        server.should_exit = True

    stopping = asyncio.create_task(stop())
    await server.serve(sockets=[listening])
    stopping.cancel()


asyncio.run(main())
