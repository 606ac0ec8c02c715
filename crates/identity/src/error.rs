//! Why a token does not count. Says nothing of the token itself, so that it may be logged and sent to the client.

use std::fmt;

use ogive_failure::{ErrorCode, codes};

/// Why a token does not count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TokenError {
    /// The request brings tokens in a way that leaves open which one is meant, or in another form than asked for.
    Request(&'static str),
    /// It is no token that can be read.
    Malformed(&'static str),
    /// It is signed with an algorithm that its key, or the configuration, does not allow.
    Algorithm,
    /// Its issuer has no such key.
    UnknownKey,
    /// The signature is not that of the key.
    Signature,
    /// Nobody knows its issuer.
    UnknownIssuer,
    /// It is for somebody else.
    Audience,
    /// It has expired.
    Expired,
    /// It does not hold yet.
    NotYetValid,
    /// There are no keys that could prove it: they have not come yet.
    NoKeys,
    /// Whoever could say whether it is good does not answer.
    Unanswered,
    /// Its issuer says that it does not hold, or that it is none to ask with.
    Inactive,
    /// The client certificate names nobody.
    Certificate(&'static str),
    /// There is no such API key.
    ApiKey,
}

impl TokenError {
    /// The code that clients see.
    pub fn code(self) -> ErrorCode {
        match self {
            TokenError::Request(_) => codes::INVALID_CREDENTIALS,
            TokenError::Malformed(_)
            | TokenError::Algorithm
            | TokenError::UnknownKey
            | TokenError::Signature
            | TokenError::Inactive => codes::INVALID_TOKEN,
            TokenError::UnknownIssuer => codes::UNKNOWN_ISSUER,
            TokenError::Audience => codes::WRONG_AUDIENCE,
            TokenError::Expired => codes::TOKEN_EXPIRED,
            TokenError::NotYetValid => codes::TOKEN_NOT_YET_VALID,
            TokenError::NoKeys | TokenError::Unanswered => codes::AUTHENTICATION_UNAVAILABLE,
            TokenError::ApiKey => codes::INVALID_API_KEY,
            TokenError::Certificate(_) => codes::INVALID_CLIENT_CERTIFICATE,
        }
    }

    /// What it is, for people. Fit for a quoted string of HTTP.
    pub fn description(self) -> &'static str {
        match self {
            TokenError::Request(why)
            | TokenError::Malformed(why)
            | TokenError::Certificate(why) => why,
            TokenError::Algorithm => "the token is signed with an algorithm that is not allowed",
            TokenError::UnknownKey => {
                "the token is signed with a key that its issuer does not have"
            }
            TokenError::Signature => "the signature of the token is not good",
            TokenError::UnknownIssuer => "the token is of an unknown issuer",
            TokenError::Audience => "the token is for another audience",
            TokenError::Expired => "the token has expired",
            TokenError::NotYetValid => "the token is not valid yet",
            TokenError::NoKeys => "the keys of the issuer are not known yet",
            TokenError::Unanswered => "the token cannot be checked now",
            TokenError::Inactive => "the token does not hold, or does not any more",
            TokenError::ApiKey => "the API key is not known",
        }
    }

    /// The word of RFC 6750, section 3.1; `None` where the client is not at fault.
    pub fn bearer_error(self) -> Option<&'static str> {
        match self {
            TokenError::Request(_) => Some("invalid_request"),
            TokenError::NoKeys
            | TokenError::Unanswered
            | TokenError::ApiKey
            | TokenError::Certificate(_) => None,
            _ => Some("invalid_token"),
        }
    }
}

impl fmt::Display for TokenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.description())
    }
}
impl std::error::Error for TokenError {}
