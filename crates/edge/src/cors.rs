//! Cross-origin rules: which pages of other origins a browser lets talk to the gateway (Fetch standard, section 3.2),
//! and the guard against requests that a browser sends without asking.
//!
//! Without policies no header is ever sent, so browsers keep other origins out. An origin that no policy is about gets
//! the same answer as one that does not exist: none of the headers. Answers vary by `origin` as soon as there is a
//! policy, so that a cache cannot hand one origin's permission to another.

use http::{HeaderMap, HeaderName, HeaderValue, Method, header, request::Parts};
use ogive_config::{Config, Duration};
use ogive_telemetry::codes;
use regex_lite::Regex;

use crate::{error::RequestError, receive::uploads::is_multipart};

/// All rules.
#[derive(Clone, Debug, Default)]
pub struct Cors {
    policies: Vec<Policy>,
    methods: Option<HeaderValue>,
}

#[derive(Clone, Debug)]
struct Policy {
    origins: Origins,
    credentials: bool,
    headers: Asked,
    exposed: Option<HeaderValue>,
    max_age: HeaderValue,
}

/// Whom a policy is about.
#[derive(Clone, Debug)]
enum Origins {
    /// Every page.
    Every,
    /// Those with one of these origins.
    Some {
        names: Vec<String>,
        patterns: Vec<Regex>,
    },
}

/// Headers that a page may send.
#[derive(Clone, Debug)]
enum Asked {
    /// Whatever it asks for.
    Whatever,
    /// These; none if there are none.
    Only(Option<HeaderValue>),
}

impl Asked {
    /// What a list of the configuration says, in which none means whatever is asked for.
    fn of(names: &[String]) -> Self {
        match names {
            [] => Asked::Whatever,
            // One that is no header cannot be sent, and opens nothing.
            names => Asked::Only(HeaderValue::from_str(&names.join(", ")).ok()),
        }
    }
}

impl Cors {
    /// The rules that a configuration asks for.
    pub fn new(config: &Config) -> Self {
        let cors = &config.cors;
        let list = |items: &[String]| {
            (!items.is_empty())
                .then(|| HeaderValue::from_str(&items.join(", ")).ok())
                .flatten()
        };
        let seconds = |d: Duration| HeaderValue::from(d.0.as_secs());
        let mut policies: Vec<Policy> = cors
            .policies
            .iter()
            .map(|policy| Policy {
                origins: Origins::Some {
                    names: policy.origins.clone(),
                    patterns: policy
                        .match_origins
                        .iter()
                        // Half a match would let `https://app.example.com.evil.org` in.
                        .filter_map(|p| Regex::new(&format!("^(?:{})$", p.0)).ok())
                        .collect(),
                },
                credentials: policy.allow_credentials.unwrap_or(cors.allow_credentials),
                headers: Asked::of(policy.allow_headers.as_ref().unwrap_or(&cors.allow_headers)),
                exposed: list(
                    policy
                        .expose_headers
                        .as_ref()
                        .unwrap_or(&cors.expose_headers),
                ),
                max_age: seconds(policy.max_age.unwrap_or(cors.max_age)),
            })
            .collect();
        if cors.allow_any_origin {
            policies.push(Policy {
                origins: Origins::Every,
                // Every origin with credentials would hand every user's session to every page.
                credentials: false,
                headers: Asked::of(&cors.allow_headers),
                exposed: list(&cors.expose_headers),
                max_age: seconds(cors.max_age),
            });
        }
        Cors {
            policies,
            methods: list(&cors.methods),
        }
    }

    /// Whether any origin is let in.
    pub fn is_on(&self) -> bool {
        !self.policies.is_empty()
    }

    /// Whether pages of this origin may use the gateway with the credentials that browsers add by themselves; `None` if they
    /// may not use it at all.
    pub fn lets_credentials(&self, origin: &HeaderValue) -> Option<bool> {
        self.policy(origin).map(|policy| policy.credentials)
    }

    fn policy(&self, origin: &HeaderValue) -> Option<&Policy> {
        let origin = origin.to_str().ok()?;
        self.policies.iter().find(|policy| match &policy.origins {
            Origins::Every => true,
            Origins::Some { names, patterns } => {
                names.iter().any(|name| name == origin)
                    || patterns.iter().any(|pattern| pattern.is_match(origin))
            }
        })
    }

    /// Whether a request asks for permission.
    pub fn is_preflight(parts: &Parts) -> bool {
        parts.method == Method::OPTIONS
            && parts.headers.contains_key(header::ORIGIN)
            && parts
                .headers
                .contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
    }

    /// The headers of the answer to `request`, where any origin is let in.
    pub fn write(&self, request: &HeaderMap, preflight: bool, out: &mut HeaderMap) {
        out.append(header::VARY, HeaderValue::from_static("origin"));
        let Some(origin) = request.get(header::ORIGIN) else {
            return;
        };
        let Some(policy) = self.policy(origin) else {
            return;
        };
        let any = matches!(policy.origins, Origins::Every);
        let allowed = if any {
            HeaderValue::from_static("*")
        } else {
            origin.clone()
        };
        out.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, allowed);
        if policy.credentials {
            out.insert(
                header::ACCESS_CONTROL_ALLOW_CREDENTIALS,
                HeaderValue::from_static("true"),
            );
        }
        if !preflight {
            if let Some(exposed) = &policy.exposed {
                out.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, exposed.clone());
            }
            return;
        }
        let allowed = match &policy.headers {
            Asked::Whatever => request.get(header::ACCESS_CONTROL_REQUEST_HEADERS),
            Asked::Only(headers) => headers.as_ref(),
        };
        if let Some(headers) = allowed {
            out.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, headers.clone());
        }
        out.append(
            header::VARY,
            HeaderValue::from_static("access-control-request-headers"),
        );
        if let Some(methods) = &self.methods {
            out.insert(header::ACCESS_CONTROL_ALLOW_METHODS, methods.clone());
        }
        out.insert(header::ACCESS_CONTROL_MAX_AGE, policy.max_age.clone());
    }
}

/// The guard against requests that any page can make a browser send: those need no permission, so the gateway must
/// not act on them. A header that is not on the browser's short list of harmless ones proves there was permission.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Csrf {
    guard: Guard,
    /// Whether bodies with files are read, which forms can send.
    files: bool,
}

/// Whether there is a guard.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
enum Guard {
    #[default]
    Off,
    /// One of these is needed.
    On(Vec<HeaderName>),
}

impl Csrf {
    /// The guard that a configuration asks for.
    pub fn new(config: &Config) -> Self {
        let names = config.csrf.required_headers.iter();
        Csrf {
            guard: if config.csrf.enabled {
                Guard::On(
                    names
                        .filter_map(|name| HeaderName::from_bytes(name.as_bytes()).ok())
                        .collect(),
                )
            } else {
                Guard::Off
            },
            files: config.file_uploads.enabled,
        }
    }

    /// Refuses a request that may come from anywhere. Bodies of other media types than JSON are refused later on.
    pub fn check(&self, parts: &Parts) -> Result<(), RequestError> {
        // A POST is only read if its media type is one that pages need permission for, or if it may hold files; other
        // methods are refused.
        let reads = match parts.method {
            Method::GET => true,
            Method::POST => self.files && is_multipart(&parts.headers),
            _ => false,
        };
        self.check_read(parts, reads)
    }

    /// The same before somebody may change the head: what is read later on is not known yet, so every request that may be
    /// read has to show that it was let.
    pub fn check_changeable(&self, parts: &Parts) -> Result<(), RequestError> {
        self.check_read(parts, matches!(parts.method, Method::GET | Method::POST))
    }

    fn check_read(&self, parts: &Parts, reads: bool) -> Result<(), RequestError> {
        let required = match &self.guard {
            Guard::On(required) if reads => required,
            Guard::On(_) | Guard::Off => return Ok(()),
        };
        if is_guarded_content(&parts.headers)
            || required.iter().any(|name| parts.headers.contains_key(name))
        {
            return Ok(());
        }
        let names: Vec<&str> = required.iter().map(HeaderName::as_str).collect();
        if parts.method == Method::POST {
            return Err(RequestError::http(
                codes::CSRF_ERROR,
                format!(
                    "a page of another origin could have sent this body: send one of the headers {} along",
                    names.join(", ")
                ),
            ));
        }
        Err(RequestError::http(
            codes::CSRF_ERROR,
            format!(
                "a page of another origin could have sent this request: send `content-type: application/json` or one \
                 of the headers {}",
                names.join(", ")
            ),
        ))
    }
}

/// Whether there is a media type that pages cannot send without permission (Fetch standard, section 2.2.2).
fn is_guarded_content(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(header::CONTENT_TYPE).iter().peekable();
    values.peek().is_some()
        && values.all(|value| {
            let text = value.to_str().unwrap_or_default();
            let name = text.split(';').next().unwrap_or_default().trim();
            ![
                "",
                "application/x-www-form-urlencoded",
                "multipart/form-data",
                "text/plain",
            ]
            .iter()
            .any(|simple| name.eq_ignore_ascii_case(simple))
        })
}

#[cfg(test)]
mod tests {
    use ogive_base::SourceId;

    use super::*;

    #[test]
    fn a_header_that_nobody_can_send_opens_nothing() {
        for (listed, allowed) in [
            ("[]", Some("x-evil")),
            ("[x-a, x-b]", Some("x-a, x-b")),
            (r#"["x-a\x01"]"#, None),
        ] {
            let yaml = format!(
                "cors: {{ policies: [{{ origins: ['https://a.example'], allow_headers: {listed} }}] }}"
            );
            let config = ogive_config::load(SourceId(0), &yaml, &|_| None).unwrap();
            let mut request = HeaderMap::new();
            for (name, value) in [
                (header::ORIGIN, "https://a.example"),
                (header::ACCESS_CONTROL_REQUEST_HEADERS, "x-evil"),
            ] {
                request.insert(name, HeaderValue::from_static(value));
            }
            let mut answer = HeaderMap::new();
            Cors::new(&config).write(&request, true, &mut answer);
            let found = answer.get(header::ACCESS_CONTROL_ALLOW_HEADERS);
            assert_eq!(
                found.map(|value| value.to_str().unwrap()),
                allowed,
                "{listed}"
            );
        }
    }
}
