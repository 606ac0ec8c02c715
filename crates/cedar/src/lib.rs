//! Policies in the language Cedar (<https://www.cedarpolicy.com>), asked whether a caller may what a field asks for.
//!
//! Nothing here reads files, and nothing knows of requests: texts come in, and what is decided goes out. The whole crate is
//! there with the feature `engine` only.
//!
//! Reading order: `policies` (what is asked, and how it is decided), `values` (claims and entities as values of Cedar).

#[cfg(feature = "engine")]
mod policies;
#[cfg(feature = "engine")]
mod values;

#[cfg(feature = "engine")]
pub use policies::{CallerFacts, CedarDecision, CedarPolicies, CedarTexts, PrincipalOptions};
