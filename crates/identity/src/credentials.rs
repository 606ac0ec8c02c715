//! Where a request has its token: headers and cookies, in an order. The first of them that is there counts; if its token is
//! bad, no other is looked at.

use std::fmt;

use http::{HeaderMap, HeaderName, HeaderValue, header};

use crate::error::TokenError;

/// One place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TokenSource {
    /// A header.
    Header {
        /// Its name.
        name: HeaderName,
        /// What stands before the token, such as `Bearer`; empty: nothing.
        prefix: Box<str>,
    },
    /// A cookie.
    Cookie {
        /// Its name.
        name: Box<str>,
    },
}

/// All places, in order.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Credentials {
    /// They.
    pub sources: Vec<TokenSource>,
    /// Whether a header with another prefix counts as if it was not there.
    pub ignore_other_prefixes: bool,
}

/// For people.
impl fmt::Display for TokenSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TokenSource::Header { name, prefix } if prefix.is_empty() => {
                write!(f, "the header `{name}`")
            }
            TokenSource::Header { name, prefix } => write!(f, "the header `{name}` (`{prefix} …`)"),
            TokenSource::Cookie { name } => write!(f, "the cookie `{name}`"),
        }
    }
}

impl Credentials {
    /// Puts a token where it is looked for first.
    pub fn put(&self, token: &str, headers: &mut HeaderMap) {
        let (name, text) = match self.sources.first() {
            None => return,
            Some(TokenSource::Header { name, prefix }) => {
                (name.clone(), format!("{prefix} {token}"))
            }
            Some(TokenSource::Cookie { name }) => (header::COOKIE, format!("{name}={token}")),
        };
        // What no header can hold is no token either.
        if let Ok(mut value) = HeaderValue::from_str(text.trim()) {
            value.set_sensitive(true);
            if name == header::COOKIE {
                // Beside others.
                headers.append(name, value);
            } else {
                headers.insert(name, value);
            }
        }
    }

    /// The token of a request; `None` if it brings none.
    pub fn find<'h>(&self, headers: &'h HeaderMap) -> Result<Option<&'h str>, TokenError> {
        for source in &self.sources {
            let found = match source {
                TokenSource::Header { name, prefix } => self.in_header(headers, name, prefix)?,
                TokenSource::Cookie { name } => in_cookie(headers, name)?,
            };
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    fn in_header<'h>(
        &self,
        headers: &'h HeaderMap,
        name: &HeaderName,
        prefix: &str,
    ) -> Result<Option<&'h str>, TokenError> {
        let mut values = headers.get_all(name).iter();
        let Some(value) = values.next() else {
            return Ok(None);
        };
        if values.next().is_some() {
            return Err(TokenError::Request(
                "the header with the token is there more than once",
            ));
        }
        let Ok(value) = value.to_str() else {
            return Err(TokenError::Request("the header with the token is no text"));
        };
        let value = value.trim();
        let token = match prefix {
            "" => Some(value),
            // Names of schemes are read in any case (RFC 9110, section 11.1).
            _ => match value.get(..prefix.len()) {
                Some(found) if found.eq_ignore_ascii_case(prefix) => {
                    let rest = &value[prefix.len()..];
                    if rest.starts_with('\t') {
                        return Err(TokenError::Request(
                            "between the prefix and the token is a tab, not a space",
                        ));
                    }
                    (rest.is_empty() || rest.starts_with(' ')).then(|| rest.trim_start())
                }
                _ => None,
            },
        };
        match token {
            Some("") => Err(TokenError::Request("the header has no token")),
            Some(token) => Ok(Some(token)),
            None if self.ignore_other_prefixes => Ok(None),
            None => Err(TokenError::Request(
                "the header with the token has another prefix",
            )),
        }
    }
}

fn in_cookie<'h>(headers: &'h HeaderMap, name: &str) -> Result<Option<&'h str>, TokenError> {
    let mut found = None;
    for line in headers.get_all(header::COOKIE) {
        // As bytes: one that is no ASCII must not hide the cookies beside it.
        for pair in line.as_bytes().split(|byte| *byte == b';') {
            let mut parts = pair.splitn(2, |byte| *byte == b'=');
            let (Some(found_name), Some(value)) = (parts.next(), parts.next()) else {
                continue;
            };
            if found_name.trim_ascii() != name.as_bytes() {
                continue;
            }
            let Ok(value) = std::str::from_utf8(value) else {
                return Err(TokenError::Request("the cookie with the token is no text"));
            };
            // Whoever owns a neighbouring domain can set a second one.
            if found.is_some() {
                return Err(TokenError::Request(
                    "the cookie with the token is there more than once",
                ));
            }
            let value = value.trim();
            let quoted = value.strip_prefix('"').and_then(|v| v.strip_suffix('"'));
            found = Some(quoted.unwrap_or(value));
        }
    }
    Ok(found.filter(|token| !token.is_empty()))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn find(source: TokenSource, name: HeaderName, value: &[u8]) -> Result<bool, TokenError> {
        let credentials = Credentials {
            sources: vec![source],
            ignore_other_prefixes: false,
        };
        let mut headers = HeaderMap::new();
        headers.insert(name, HeaderValue::from_bytes(value).unwrap());
        credentials.find(&headers).map(|token| token == Some("t"))
    }

    #[test]
    fn a_cookie_beside_it_that_is_no_ascii_hides_no_token() {
        for (line, expected) in [
            (&b"city=K\xf6ln; session=t"[..], Ok(true)),
            (b"session=t; city=K\xc3\xb6ln", Ok(true)),
            (
                b"session=\xf6",
                Err(TokenError::Request("the cookie with the token is no text")),
            ),
        ] {
            let source = TokenSource::Cookie {
                name: "session".into(),
            };
            assert_eq!(find(source, header::COOKIE, line), expected, "{line:?}");
        }
    }

    #[test]
    fn a_tab_behind_the_prefix_is_told_by_name() {
        let source = TokenSource::Header {
            name: header::AUTHORIZATION,
            prefix: "Bearer".into(),
        };
        let error = find(source, header::AUTHORIZATION, b"Bearer\tt").unwrap_err();
        assert!(error.description().contains("tab"), "{error}");
    }
}
