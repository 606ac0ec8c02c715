//! Errors of a whole request, and the one function that turns them into GraphQL errors.
//!
//! Everything that is wrong with a request before it is executed ends here; errors of single fields are the
//! executor's. Messages are safe for clients: whatever only operators may see is logged, never carried.

use std::borrow::Cow;

use bytes::Bytes;
use ogive_base::{
    Diagnostic, OutOfMemory, SourceId, bounded, bounded_string, diagnostic::line_column,
    foreign::MESSAGE_BYTES_MAX,
};
use ogive_config::Config;
use ogive_execute::{ErrorRules, ShownError};
use ogive_failure::{ErrorCode, codes};
use ogive_json::write_string;

use crate::{error_rules::ErrorRewrites, rate_state::RateState};

/// What a client is asked for that brings nothing (RFC 6750, section 3).
pub const CHALLENGE: &str = "Bearer realm=\"graphql\"";
/// The same where API keys are what callers are known by. No standard names a scheme for them, and that of bearer tokens is
/// for these alone.
pub const CHALLENGE_API_KEY: &str = "ApiKey realm=\"graphql\"";
/// The same where either will do.
pub(crate) const CHALLENGE_EITHER: &str = "Bearer realm=\"graphql\", ApiKey realm=\"graphql\"";
/// The same where only certificates are; it has to be something, and no standard names a scheme for them either.
pub const CHALLENGE_CERTIFICATE: &str = "ClientCertificate realm=\"graphql\"";

/// The same where only what a trusted proxy says of callers counts: the client has nothing to send here.
pub(crate) const CHALLENGE_PROXY: &str = "TrustedProxy realm=\"graphql\"";

/// The challenge for clients without an accepted credential, as `www-authenticate` has it.
pub fn challenge(config: &Config) -> &'static str {
    let router = &config.authentication.router;
    let has_tokens = !router.jwt.jwks.is_empty() || router.introspection.is_some();
    match (!has_tokens, router.api_keys.is_some()) {
        (false, true) => CHALLENGE_EITHER,
        (true, true) => CHALLENGE_API_KEY,
        (true, false) if router.client_certificate.is_some() => CHALLENGE_CERTIFICATE,
        // RFC 9110, section 11.6.1: a challenge that applies to what is asked; a token would not.
        (true, false) if config.authorization.claims.header.is_some() => CHALLENGE_PROXY,
        _ => CHALLENGE,
    }
}

/// Why a request was refused.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestError {
    /// HTTP status.
    pub status: u16,
    /// Whether the HTTP request held a well-formed GraphQL request, so that a client of the older media type
    /// `application/json` expects 200 (GraphQL over HTTP, section 6.4.1).
    pub well_formed: bool,
    /// Value of the `allow` header, for 405.
    pub allow: Option<&'static str>,
    /// Seconds after which to come back.
    pub retry_after: Option<u64>,
    /// What is told of the rate that is exceeded; in a box, because most errors have none.
    pub rate: Option<Box<RateState>>,
    /// Value of the `www-authenticate` header, for 401, and 403 where a token does not suffice.
    pub challenge: Option<Box<str>>,
    /// At least one.
    pub errors: Vec<GraphqlError>,
    /// What only operators are told of why.
    pub cause: Option<Box<str>>,
}

/// One entry of `errors`.
#[derive(Clone, Debug, PartialEq)]
pub struct GraphqlError {
    /// For people.
    pub message: String,
    /// Lines and columns in the document, both from 1.
    pub locations: Vec<(u32, u32)>,
    /// `extensions.code`.
    pub code: ErrorCode,
    /// Further members of `extensions`.
    pub numbers: Vec<(&'static str, u64)>,
}

impl RequestError {
    /// The code of the first error.
    pub fn code(&self) -> ErrorCode {
        self.errors
            .first()
            .map_or(codes::INTERNAL_SERVER_ERROR, |error| error.code)
    }
    /// An error of the HTTP request itself, with the status of its code.
    pub fn http(code: ErrorCode, message: impl Into<String>) -> Self {
        RequestError {
            status: code.status(),
            well_formed: false,
            allow: None,
            retry_after: (code.is_transient() && code.status() >= 429).then_some(RETRY_SECONDS),
            rate: None,
            challenge: None,
            errors: vec![GraphqlError {
                // Names in it are as long as clients write them.
                message: bounded_string(message.into(), MESSAGE_BYTES_MAX),
                locations: Vec::new(),
                code,
                numbers: Vec::new(),
            }],
            cause: None,
        }
    }
    /// An error of a well-formed GraphQL request, with the status of its code.
    pub fn graphql(code: ErrorCode, message: impl Into<String>) -> Self {
        RequestError {
            well_formed: true,
            ..Self::http(code, message)
        }
    }
    /// Errors that the front end found in the client's document.
    pub fn diagnostics(found: &[Diagnostic], source_id: SourceId, text: &str) -> Self {
        let mut errors: Vec<GraphqlError> = found
            .iter()
            .map(|diagnostic| GraphqlError {
                message: bounded(&diagnostic.message, MESSAGE_BYTES_MAX).into_owned(),
                locations: Vec::new(),
                code: ErrorCode::find(diagnostic.code).unwrap_or(codes::INTERNAL_SERVER_ERROR),
                numbers: Vec::new(),
            })
            .collect();
        locate(found, source_id, text, &mut errors);
        if errors.is_empty() {
            return internal();
        }
        RequestError {
            status: errors[0].code.status(),
            well_formed: true,
            allow: None,
            retry_after: None,
            rate: None,
            challenge: None,
            errors,
            cause: None,
        }
    }

    /// The response body.
    pub fn to_json(&self) -> Vec<u8> {
        self.to_json_by(None)
    }
    /// The same by rules for what clients are told.
    pub fn to_json_by(&self, rules: Option<&ErrorRewrites>) -> Vec<u8> {
        let mut out = Vec::with_capacity(128 * self.errors.len());
        out.extend_from_slice(b"{\"errors\":[");
        for (i, error) in self.errors.iter().enumerate() {
            if i > 0 {
                out.push(b',');
            }
            error.write(rules, &mut out);
        }
        out.extend_from_slice(b"]}");
        out
    }
}

/// The error a client sees when the process has no memory for its request.
pub fn no_memory() -> RequestError {
    RequestError::http(
        codes::GATEWAY_MEMORY_LIMIT,
        "the gateway has no memory for another request now",
    )
}

/// The error a client sees where there are no subscriptions.
pub fn no_subscriptions() -> RequestError {
    RequestError::graphql(
        codes::SUBSCRIPTIONS_NOT_SUPPORTED,
        "subscriptions are not served here: send a query or a mutation",
    )
}

/// The error a client sees when too many others wait for what it asks for.
pub fn queue_full() -> RequestError {
    RequestError::http(
        codes::PLANNING_QUEUE_FULL,
        "too many operations wait to be planned now",
    )
}

/// After how many seconds a client comes back that was refused because others were served.
const RETRY_SECONDS: u64 = 1;

impl From<OutOfMemory> for RequestError {
    fn from(_: OutOfMemory) -> Self {
        no_memory()
    }
}

/// What a client is told of whom nothing is known.
pub fn unauthenticated(challenge: &str) -> RequestError {
    let what = match challenge {
        CHALLENGE => "nobody is known to ask: send a token",
        CHALLENGE_API_KEY => "nobody is known to ask: send an API key",
        CHALLENGE_CERTIFICATE => "nobody is known to ask: connect with a client certificate",
        CHALLENGE_PROXY => "nobody is known to ask: no trusted proxy says who it is",
        _ => "nobody is known to ask: send a token or an API key",
    };
    RequestError {
        challenge: Some(challenge.into()),
        ..RequestError::http(codes::UNAUTHENTICATED, what)
    }
}

/// What a client is told whose credential has ended.
pub fn expired() -> RequestError {
    RequestError::http(codes::TOKEN_EXPIRED, "the token has expired: get a new one")
}

/// The error a client sees when the gateway is at fault.
pub fn internal() -> RequestError {
    RequestError::graphql(codes::INTERNAL_SERVER_ERROR, "internal server error")
}

impl GraphqlError {
    fn write(&self, rules: Option<&ErrorRewrites>, out: &mut Vec<u8>) {
        let members = self.numbers.iter();
        let members = members.map(|(name, number)| format!("\"{name}\":{number},"));
        let mut extensions = Bytes::from(members.collect::<String>());
        let mut code = Cow::Borrowed(self.code.as_str());
        let mut message = Cow::Owned(String::new());
        if let Some(rules) = rules {
            message = Cow::Owned(self.message.clone());
            rules.rewrite(&mut ShownError {
                subgraph: None,
                path: &[],
                code: &mut code,
                message: &mut message,
                extensions: &mut extensions,
                names_service: false,
            });
        }
        out.extend_from_slice(b"{\"message\":");
        let shown = if rules.is_some() {
            &*message
        } else {
            &*self.message
        };
        write_string(out, shown);
        if !self.locations.is_empty() {
            out.extend_from_slice(b",\"locations\":[");
            for (i, (line, column)) in self.locations.iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                out.extend_from_slice(
                    format!("{{\"line\":{line},\"column\":{column}}}").as_bytes(),
                );
            }
            out.push(b']');
        }
        out.extend_from_slice(b",\"extensions\":{\"code\":");
        write_string(out, &code);
        if let Some(members) = extensions.strip_suffix(b",") {
            out.push(b',');
            out.extend_from_slice(members);
        }
        out.extend_from_slice(b"}}");
    }
}

/// Lines and columns of all labels in one walk through the text: a hundred errors late in a long document must not
/// cost a hundred walks.
fn locate(found: &[Diagnostic], source_id: SourceId, text: &str, errors: &mut [GraphqlError]) {
    let mut wanted: Vec<(u32, usize, usize)> = Vec::new();
    for (at, (diagnostic, error)) in found.iter().zip(errors.iter_mut()).enumerate() {
        // A syntax error is in one place; its further labels only explain it.
        let count = if diagnostic.code == codes::GRAPHQL_PARSE_FAILED.as_str() {
            1
        } else {
            usize::MAX
        };
        let labels = diagnostic.labels.iter().take(count);
        for label in labels.filter(|l| l.source == source_id) {
            wanted.push((label.span.start, at, error.locations.len()));
            error.locations.push((0, 0));
        }
    }
    wanted.sort_unstable();
    // Start of the piece that is still to be read, and the place it starts at.
    let (mut from, mut line, mut column) = (0, 1, 1);
    for (offset, error, location) in wanted {
        let mut to = (offset as usize).clamp(from, text.len());
        while !text.is_char_boundary(to) {
            to -= 1;
        }
        let (lines, columns) = line_column(&text[from..to], (to - from) as u32);
        // A lone CR before LF that lies beyond the piece cannot occur: offsets are starts of tokens.
        if lines > 1 {
            line += lines - 1;
            column = columns;
        } else {
            column += columns - 1;
        }
        from = to;
        errors[error].locations[location] = (line, column);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ogive_base::Span;

    #[test]
    fn locations_count_from_one_across_lines_and_wide_characters() {
        let text = "{\n  ä(b: \"é\") c\r\n  d }";
        let at = |needle| text.find(needle).unwrap() as u32;
        let found: Vec<Diagnostic> = [("d", 2), ("c", 1), ("{", 3)]
            .iter()
            .map(|(needle, _)| {
                let start = at(needle);
                Diagnostic::error("GRAPHQL_VALIDATION_FAILED", "x").label(
                    SourceId(0),
                    Span::new(start, start + 1),
                    "",
                )
            })
            .collect();
        let error = RequestError::diagnostics(&found, SourceId(0), text);
        let places: Vec<_> = error.errors.iter().map(|e| e.locations[0]).collect();
        assert_eq!(places, [(3, 3), (2, 13), (1, 1)]);
    }

    #[test]
    fn bodies_are_json_with_code_and_locations() {
        let error = RequestError {
            errors: vec![GraphqlError {
                message: "say \"hi\"\n".into(),
                locations: vec![(1, 2), (3, 4)],
                code: codes::COST_ESTIMATED_TOO_EXPENSIVE,
                numbers: vec![("cost.max", 7)],
            }],
            ..internal()
        };
        assert_eq!(
            String::from_utf8(error.to_json()).unwrap(),
            r#"{"errors":[{"message":"say \"hi\"\n","locations":[{"line":1,"column":2},{"line":3,"column":4}],"extensions":{"code":"COST_ESTIMATED_TOO_EXPENSIVE","cost.max":7}}]}"#
        );
    }
}
