//! What both sides of the network use, towards clients and towards subgraphs: byte streams ([`stream`]), TLS ([`tls`]) and
//! content encodings ([`encoding`]).
//!
//! Invariants:
//! - Nothing here knows what a request is.
//! - Whatever takes long gives others their turn.

pub mod encoding;
pub mod growth;
pub mod stream;
pub mod tls;

pub use encoding::Encoding;
pub use stream::{Socket, Stream};
pub use tls::{
    ClientTls, ClientTlsOptions, Http2, Identity, Pem, ServerTls, ServerTlsOptions, TlsError,
    Validity,
};
