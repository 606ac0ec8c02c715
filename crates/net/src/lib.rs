//! What both sides of the network use, towards clients and towards subgraphs: byte streams ([`stream`]) and what is
//! written to them ([`output`]), TLS ([`tls`]), content encodings ([`encoding`]), and tasks that wait for several things
//! ([`waker`]).
//!
//! Invariants:
//! - Nothing here knows what a request is.
//! - Whatever takes long gives others their turn.

pub mod encoding;
pub mod growth;
pub mod output;
pub mod stream;
pub mod tls;
pub mod waker;

pub use encoding::Encoding;
pub use output::Output;
pub use stream::{Socket, Stream};
pub use tls::{
    ClientTls, ClientTlsOptions, Http2, Identity, Pem, ServerTls, ServerTlsOptions, TlsError,
    Validity,
};
pub use waker::Rest;
