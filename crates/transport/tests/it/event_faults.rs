//! What subgraphs do wrong with subscriptions, and the code that it has. The tests beside it play every row;
//! `docs/faults.md` is made from them, too.

/// A fault, its code, and what becomes of the subscription.
pub(crate) const EVENT_FAULTS: &[(&str, &str, &str)] = &[
    (
        "WebSocket: answers the upgrade with 401",
        "SUBREQUEST_STREAM_REFUSED",
        ENDS,
    ),
    (
        "WebSocket: answers the upgrade with 503",
        "SUBREQUEST_STREAM_LOST",
        AGAIN,
    ),
    (
        "WebSocket: answers the upgrade with HTML",
        "SUBREQUEST_STREAM_MALFORMED",
        ENDS,
    ),
    (
        "WebSocket: answers the upgrade for another key",
        "SUBREQUEST_STREAM_MALFORMED",
        ENDS,
    ),
    (
        "WebSocket: redirects the upgrade",
        "SUBREQUEST_REDIRECT",
        ENDS,
    ),
    (
        "WebSocket: agrees on another sub-protocol",
        "SUBREQUEST_STREAM_MALFORMED",
        ENDS,
    ),
    (
        "WebSocket: sends an event before the acknowledgement",
        "SUBREQUEST_STREAM_MALFORMED",
        ENDS,
    ),
    (
        "WebSocket: never acknowledges the connection",
        "GATEWAY_TIMEOUT",
        AGAIN,
    ),
    (
        "WebSocket: refuses the connection (`connection_error`)",
        "SUBREQUEST_STREAM_REFUSED",
        ENDS,
    ),
    (
        "WebSocket: closes without a word",
        "SUBREQUEST_STREAM_LOST",
        AGAIN,
    ),
    (
        "WebSocket: closes because it stops (1001)",
        "SUBREQUEST_STREAM_LOST",
        AGAIN,
    ),
    (
        "WebSocket: closes because we may not (4403)",
        "SUBREQUEST_STREAM_REFUSED",
        ENDS,
    ),
    (
        "WebSocket: sends garbage",
        "SUBREQUEST_STREAM_MALFORMED",
        ENDS,
    ),
    (
        "WebSocket: masks its frames",
        "SUBREQUEST_STREAM_MALFORMED",
        ENDS,
    ),
    (
        "WebSocket: continues a message that it never began",
        "SUBREQUEST_STREAM_MALFORMED",
        ENDS,
    ),
    (
        "WebSocket: sends text that is no UTF-8",
        "SUBREQUEST_STREAM_MALFORMED",
        ENDS,
    ),
    (
        "WebSocket: sends binary messages",
        "SUBREQUEST_STREAM_MALFORMED",
        ENDS,
    ),
    (
        "WebSocket: sends a message larger than `response_max_bytes`",
        "SUBREQUEST_STREAM_MALFORMED",
        ENDS,
    ),
    (
        "WebSocket: sends a message that is no JSON",
        "SUBREQUEST_STREAM_MALFORMED",
        ENDS,
    ),
    (
        "WebSocket: sends a message that is not part of the sub-protocol",
        "SUBREQUEST_STREAM_MALFORMED",
        ENDS,
    ),
    (
        "WebSocket: acknowledges twice",
        "SUBREQUEST_STREAM_MALFORMED",
        ENDS,
    ),
    (
        "WebSocket: floods with pings",
        "SUBREQUEST_STREAM_MALFORMED",
        ENDS,
    ),
    (
        "WebSocket: does not answer a heartbeat, as when the network is gone (half-open)",
        "SUBREQUEST_STREAM_LOST",
        AGAIN,
    ),
    (
        "WebSocket: ends a subscription twice, or sends events after its end",
        "",
        "nobody is harmed; the connection gets no further subscriptions",
    ),
    (
        "SSE: answers with HTML",
        "SUBREQUEST_STREAM_MALFORMED",
        ENDS,
    ),
    ("SSE: answers 401", "SUBREQUEST_STREAM_REFUSED", ENDS),
    ("SSE: answers 502", "SUBREQUEST_STREAM_LOST", AGAIN),
    ("SSE: redirects", "SUBREQUEST_REDIRECT", ENDS),
    (
        "SSE: encodes the stream, though nobody asked for it",
        "SUBREQUEST_STREAM_MALFORMED",
        ENDS,
    ),
    (
        "SSE: stops in the middle of an event",
        "SUBREQUEST_STREAM_LOST",
        AGAIN,
    ),
    (
        "SSE: stops without `complete`",
        "SUBREQUEST_STREAM_LOST",
        AGAIN,
    ),
    (
        "SSE: sends an event larger than `response_max_bytes`",
        "SUBREQUEST_STREAM_MALFORMED",
        ENDS,
    ),
    (
        "SSE: sends data that is no UTF-8",
        "SUBREQUEST_STREAM_MALFORMED",
        ENDS,
    ),
    (
        "multipart: stops without a last delimiter",
        "SUBREQUEST_STREAM_LOST",
        AGAIN,
    ),
    (
        "multipart: sends HTML as a part",
        "SUBREQUEST_STREAM_MALFORMED",
        ENDS,
    ),
    (
        "multipart: sends a part that is no event",
        "SUBREQUEST_STREAM_MALFORMED",
        ENDS,
    ),
    (
        "multipart: sends a part larger than `response_max_bytes`",
        "SUBREQUEST_STREAM_MALFORMED",
        ENDS,
    ),
    (
        "multipart: writes something else behind a delimiter",
        "SUBREQUEST_STREAM_MALFORMED",
        ENDS,
    ),
    (
        "multipart: never writes a delimiter",
        "SUBREQUEST_STREAM_MALFORMED",
        ENDS,
    ),
    (
        "sends more events than are taken, on a connection of its own",
        "",
        "the subgraph waits; all events arrive",
    ),
    (
        "sends more events than are taken, beside others",
        "SUBREQUEST_STREAM_OVERFLOW",
        "the slow one ends after five seconds; the others go on",
    ),
];

const ENDS: &str = "the subscription ends";
const AGAIN: &str = "opened again by `max_reconnect_attempts`";
