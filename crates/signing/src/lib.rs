//! Proof towards subgraphs of who asks.
//!
//! | way | what a request gets | where |
//! |---|---|---|
//! | AWS Signature Version 4 | `authorization`, `x-amz-date`, `x-amz-security-token` | [`sigv4`], credentials in [`credentials`] |
//! | HMAC of query and variables | `extensions["hmac-signature"]` | [`hmac`], its text in `canonical` |
//! | HTTP message signatures (RFC 9421) | `signature`, `signature-input`, `content-digest` (RFC 9530) | [`message`], keys in [`key`] |
//! | bearer token by client credentials (RFC 6749, section 4.4) | `authorization` | [`bearer`] |
//!
//! [`Proof`] holds the ways of one subgraph and is the [`Signer`](ogive_transport::Signer) that the transport asks for
//! every try. What has to be fetched, tokens and credentials, is fetched once for the whole process and renewed before
//! it ends (`renewal`), from bounded answers within a bounded time (`ask`).
//!
//! Invariants:
//! - Without proof no request: whatever cannot be had makes the request fail, never go out unsigned.
//! - No key, secret or token is in any message, and none is in what `Debug` writes.
//! - What is signed are the bytes that are sent: after all header rules, and after the body was encoded.

mod ask;
pub mod bearer;
mod canonical;
mod clock;
pub mod credentials;
mod encode;
pub mod hmac;
pub mod key;
pub mod message;
mod proof;
mod renewal;
pub mod secret;
pub mod sigv4;

pub use bearer::{Bearer, BearerOptions, ClientAuthentication};
pub use credentials::{AssumeRole, Aws, AwsOptions, CredentialSource};
pub use hmac::Hmac;
pub use key::{Algorithm, SigningKey};
pub use message::{Component, MessageSignature, MessageSignatureOptions};
pub use proof::Proof;
pub use secret::Secret;
