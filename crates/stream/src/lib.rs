//! Protocols that carry answers in many parts: their messages and framing, and what either side may say when.
//!
//! | protocol | messages | who may say what when | framing |
//! |---|---|---|---|
//! | WebSocket, `graphql-transport-ws` and the older `graphql-ws` | [`client_message`], [`server_message`] | towards clients [`session`], towards subgraphs [`upstream`] | [`websocket`], its upgrade [`handshake`] |
//! | server-sent events, distinct connections | `next`, `complete` | | [`sse`] |
//! | multipart, `subscriptionSpec=1.0` | `{"payload":…}`, heartbeats, fatal errors | | [`multipart`] |
//!
//! Sessions are state machines without clock and socket: they are told what came and which time is over, and say what to
//! send, what to start and stop, and with which code to close. So whatever drives them decides about queues and time.
//!
//! Invariants:
//! - Whatever a peer sends ends in a message, an action or a named refusal, and every buffer has a limit.
//! - Payloads pass as the bytes they are; nobody here looks into them.
//! - Close codes are those of the specification, because the retry logic of clients goes by them.

pub mod callback;
pub mod client_message;
pub mod close;
pub mod handshake;
pub mod multipart;
pub mod server_message;
pub mod session;
pub mod sse;
pub mod upstream;
pub mod websocket;

mod assembly;
mod envelope;
mod frame;
mod protocol;
mod text;

pub use close::Close;
pub use frame::SharedFrame;
pub use protocol::Protocol;
pub use session::{Action, Session, SessionLimits};
pub use text::Utf8Bytes;
pub use websocket::{Received, WebSocket, WebSocketLimits};
