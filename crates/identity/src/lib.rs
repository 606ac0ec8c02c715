//! Who asks: tokens, the keys that prove them, API keys, and what is known of a caller.
//!
//! A token is read ([`token`]), the key sets of its issuer are found ([`authenticator`]), one of their keys proves it
//! ([`jwk`]), and what it claims is checked ([`claims`]). Key sets are kept up beside requests ([`key_source`]); what was
//! proved once is remembered by digest ([`token_cache`]).
//!
//! Invariants:
//! - A key set is chosen by issuer first, then by `kid`, then by algorithm. A signature that fails is never tried with the
//!   keys of another issuer.
//! - What algorithms a key is good for follows from its type. A secret is never made of a public key, and there is no
//!   algorithm `none`, so nothing that a token says can confuse them.
//! - Nothing of a token is in an error, in the log, or in a `Debug` text.
//! - Of keys that are gone nothing is remembered.
//!
//! Reading order: [`error`], [`digest`], [`algorithm`], [`base64url`], [`json`], [`token`], [`jwk`], [`claims`], [`credentials`] (where a
//! token is found), [`caller`], [`key_origin`], [`key_source`] and `key_fetch`, [`token_cache`], [`authenticator`],
//! [`api_keys`], [`inflight`], [`policy_service`], [`policy_engine`], [`token_introspection`],
//! [`certificates`].

pub mod algorithm;
pub mod api_keys;
pub mod authenticator;
pub mod base64url;
pub mod caller;
pub mod certificates;
pub mod claims;
pub mod credentials;
pub mod digest;
pub mod error;
pub mod inflight;
pub mod json;
pub mod jwk;
mod key_fetch;
pub mod key_origin;
pub mod key_source;
pub mod policy_engine;
pub mod policy_service;
pub mod token;
pub mod token_cache;
pub mod token_introspection;

pub use algorithm::{Algorithm, AlgorithmSet};
pub use authenticator::{Authenticator, AuthenticatorOptions, KeySetOptions};
pub use caller::{Caller, CallerOptions};
pub use credentials::{Credentials, TokenSource};
pub use error::TokenError;
pub use key_origin::{KeyOrigin, KeySourceOptions};
pub use key_source::KeySource;
