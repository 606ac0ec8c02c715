//! Why there is no gateway.

use std::fmt;

/// Why a gateway cannot be made or does not serve. Each has a sentence for the operator.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The configuration cannot be used.
    Configuration(String),
    /// The supergraph cannot be used.
    Supergraph(String),
    /// It cannot listen, or threads cannot be started.
    Serve(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Configuration(why) => write!(f, "the configuration cannot be used: {why}"),
            Error::Supergraph(why) => write!(f, "the supergraph cannot be used: {why}"),
            Error::Serve(why) => write!(f, "the gateway cannot serve: {why}"),
        }
    }
}

impl std::error::Error for Error {}
