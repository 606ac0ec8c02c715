//! What a token claims, checked after its signature: when it holds, and for whom (RFC 7519, section 4.1).

use serde_json::{Map, Value};

use crate::error::TokenError;

/// The last second of the year 9999, with which dates end (RFC 3339).
pub const END_MAX: u64 = 253_402_300_799;

/// What tokens of a key set have to claim.
#[derive(Clone, Copy, Debug)]
pub struct ClaimRules<'a> {
    /// One of these has to be in `aud`; none listed: whatever it says.
    pub audiences: &'a [Box<str>],
    /// Whether a token may be without an end.
    pub allow_missing_exp: bool,
    /// How far clocks may differ, in seconds.
    pub skew: u64,
}

/// The issuer that a token names. Not proved by itself.
pub fn issuer(claims: &Map<String, Value>) -> Result<Option<&str>, TokenError> {
    match claims.get("iss") {
        None => Ok(None),
        Some(Value::String(issuer)) => Ok(Some(issuer)),
        Some(_) => Err(TokenError::Malformed("`iss` of the token is no text")),
    }
}

/// Checks claims at a time in seconds since 1970. Gives the second from which on they do not hold any more.
pub fn check(
    claims: &Map<String, Value>,
    rules: ClaimRules<'_>,
    now: u64,
) -> Result<u64, TokenError> {
    if !matches!(claims.get("sub"), None | Some(Value::String(_))) {
        return Err(TokenError::Malformed("`sub` of the token is no text"));
    }
    // RFC 7800: it holds only for whoever has a key, and nobody checks here who has it.
    if claims.contains_key("cnf") {
        return Err(TokenError::Malformed(
            "the token is bound to a key, which is not checked here",
        ));
    }
    let audiences = audiences(claims)?;
    let (now, skew) = (now as f64, rules.skew as f64);
    let end = match date(claims, "exp")? {
        Some(end) if now >= end + skew => return Err(TokenError::Expired),
        Some(end) => (end + skew).max(0.0).ceil() as u64,
        None if rules.allow_missing_exp => u64::MAX,
        None => return Err(TokenError::Malformed("the token has no end (`exp`)")),
    };
    for name in ["nbf", "iat"] {
        if date(claims, name)?.is_some_and(|begin| begin > now + skew) {
            return Err(TokenError::NotYetValid);
        }
    }
    let is_ours = |audience: &&str| rules.audiences.iter().any(|ours| **ours == **audience);
    if !rules.audiences.is_empty() && !audiences.iter().any(is_ours) {
        return Err(TokenError::Audience);
    }
    Ok(end)
}

/// When claims that are no token's end, in seconds since 1970, if they say so (`exp`). The error says what is wrong.
pub fn end(claims: &Map<String, Value>) -> Result<Option<f64>, &'static str> {
    date(claims, "exp").map_err(|_| "`exp` is no number of seconds from 1970 to the year 9999")
}

/// Whom a token is for: a text or a list of texts.
fn audiences(claims: &Map<String, Value>) -> Result<Vec<&str>, TokenError> {
    const WRONG: TokenError =
        TokenError::Malformed("`aud` of the token is no text or list of texts");
    match claims.get("aud") {
        None => Ok(Vec::new()),
        Some(Value::String(audience)) => Ok(vec![audience]),
        Some(Value::Array(items)) => {
            let text = |item: &'_ Value| item.as_str().is_some();
            if !items.iter().all(text) {
                return Err(WRONG);
            }
            Ok(items.iter().filter_map(Value::as_str).collect())
        }
        Some(_) => Err(WRONG),
    }
}

/// A numeric date: seconds since 1970, maybe with a fraction.
fn date(claims: &Map<String, Value>, name: &str) -> Result<Option<f64>, TokenError> {
    match claims.get(name) {
        None => Ok(None),
        Some(Value::Number(number)) => match number.as_f64() {
            Some(date) if (0.0..=END_MAX as f64).contains(&date) => Ok(Some(date)),
            _ => Err(TokenError::Malformed("a date of the token is out of range")),
        },
        Some(_) => Err(TokenError::Malformed("a date of the token is no number")),
    }
}
