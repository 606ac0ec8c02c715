//! HTTP message signatures (RFC 9421) of requests, with the digest of their bodies (RFC 9530).

use std::{
    fmt,
    fmt::Write,
    time::{Duration, SystemTime},
};

use http::{HeaderMap, HeaderName, HeaderValue, header};
use ogive_transport::{SignError, Unsigned};
use ring::digest;

use crate::{clock, encode::base64, key::SigningKey};

const SIGNATURE: HeaderName = HeaderName::from_static("signature");
const SIGNATURE_INPUT: HeaderName = HeaderName::from_static("signature-input");
const CONTENT_DIGEST: HeaderName = HeaderName::from_static("content-digest");

/// What a signature covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Component {
    /// `@method`
    Method,
    /// `@target-uri`
    TargetUri,
    /// `@authority`
    Authority,
    /// `@scheme`
    Scheme,
    /// `@request-target`
    RequestTarget,
    /// `@path`
    Path,
    /// `@query`
    Query,
    /// A header, `content-digest` for the body.
    Field(HeaderName),
}

impl Component {
    /// What is covered if nothing else is said.
    pub const DEFAULT: [&'static str; 5] = [
        "@method",
        "@authority",
        "@path",
        "content-digest",
        "content-type",
    ];

    /// Reads a name such as `@method` or `content-type`. The error is for the operator.
    pub fn parse(text: &str) -> Result<Self, String> {
        Ok(match text {
            "@method" => Component::Method,
            "@target-uri" => Component::TargetUri,
            "@authority" => Component::Authority,
            "@scheme" => Component::Scheme,
            "@request-target" => Component::RequestTarget,
            "@path" => Component::Path,
            "@query" => Component::Query,
            _ => {
                let name = HeaderName::from_bytes(text.as_bytes());
                if let Some(name) = name.as_ref().ok().filter(|name| is_never_there(name)) {
                    let instead = if *name == header::HOST {
                        ": `@authority` stands for it"
                    } else {
                        ""
                    };
                    return Err(format!(
                        "no request has a header `{name}` that could be signed{instead}"
                    ));
                }
                let own = [SIGNATURE, SIGNATURE_INPUT];
                let name = name.ok().filter(|name| !own.contains(name));
                Component::Field(name.ok_or_else(|| {
                    format!(
                        "`{text}` is no component of a request; there are @method, @target-uri, @authority, @scheme, \
                         @request-target, @path, @query, and names of headers"
                    )
                })?)
            }
        })
    }

    fn name(&self) -> &str {
        match self {
            Component::Method => "@method",
            Component::TargetUri => "@target-uri",
            Component::Authority => "@authority",
            Component::Scheme => "@scheme",
            Component::RequestTarget => "@request-target",
            Component::Path => "@path",
            Component::Query => "@query",
            Component::Field(name) => name.as_str(),
        }
    }
}

/// Whether no request to a subgraph has a header that a signature could cover: nobody but the connection writes those of
/// one hop, besides what says how the body is written and what may be answered.
fn is_never_there(name: &HeaderName) -> bool {
    let written = [
        header::ACCEPT,
        header::ACCEPT_ENCODING,
        header::CONTENT_ENCODING,
        header::CONTENT_LENGTH,
        header::CONTENT_TYPE,
    ];
    ogive_base::is_of_one_hop(name.as_str()) && !written.contains(name)
}

/// How bodies are digested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Digest {
    /// `sha-256`
    Sha256,
    /// `sha-512`
    Sha512,
}

/// How messages are signed.
#[derive(Clone, Debug)]
pub struct MessageSignatureOptions {
    /// What with.
    pub key: SigningKey,
    /// What the subgraph knows the key by.
    pub key_id: Option<String>,
    /// What is covered, in order.
    pub components: Vec<Component>,
    /// Name of the signature among others.
    pub label: String,
    /// How long a signature holds; `None` says nothing about it.
    pub expires: Option<Duration>,
    /// Whether the algorithm is named.
    pub names_algorithm: bool,
    /// `tag`, by which a subgraph knows what the signature is for.
    pub tag: Option<String>,
    /// For `content-digest`.
    pub digest: Digest,
}

/// Signs messages.
pub struct MessageSignature(MessageSignatureOptions);

impl fmt::Debug for MessageSignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MessageSignature({:?})", self.0.key)
    }
}

impl MessageSignature {
    /// Checks what structured fields (RFC 8941) cannot carry. The error is for the operator.
    pub fn new(options: MessageSignatureOptions) -> Result<Self, String> {
        let texts = [("key_id", &options.key_id), ("tag", &options.tag)];
        for (name, text) in texts {
            let visible = |c: char| c == ' ' || c.is_ascii_graphic();
            if text.as_ref().is_some_and(|text| !text.chars().all(visible)) {
                return Err(format!("`{name}` has characters other than visible ASCII"));
            }
        }
        let first = |c: char| c.is_ascii_lowercase() || c == '*';
        let rest = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-.*".contains(c);
        if !options.label.starts_with(first) || !options.label.chars().all(rest) {
            return Err(format!(
                "`{}` is no label: lower case, digits, `_`, `-`, `.`, `*`",
                options.label
            ));
        }
        if options.components.is_empty() {
            return Err("a signature that covers nothing proves nothing".into());
        }
        for (i, component) in options.components.iter().enumerate() {
            if options.components[..i].contains(component) {
                return Err(format!("`{}` is covered twice", component.name()));
            }
        }
        Ok(MessageSignature(options))
    }

    /// Reads the key's file again; tells whether there is another key.
    pub(crate) fn refresh(&self) -> Result<bool, SignError> {
        let refreshed = self.0.key.refresh();
        refreshed.map_err(|why| SignError(format!("`message_signature.key`: {why}")))
    }

    /// The headers that sign a request.
    pub(crate) async fn sign(
        &self,
        request: Unsigned<'_>,
        now: SystemTime,
    ) -> Result<HeaderMap, SignError> {
        let options = &self.0;
        let mut added = HeaderMap::new();
        if options
            .components
            .contains(&Component::Field(CONTENT_DIGEST))
        {
            let body = request.body.ok_or_else(|| {
                SignError(
                    "the digest of a body with files is not known before it is sent: leave `content-digest` out of \
                     `components`, or do not send files to this subgraph"
                        .into(),
                )
            })?;
            insert(
                &mut added,
                CONTENT_DIGEST,
                &content_digest(options.digest, body),
            )?;
        }
        let params = self.params(clock::seconds(now));
        let base = base(&options.components, &params, request, &added)?;
        let key = options.key.clone();
        let signature = if key.is_heavy() {
            tokio::task::spawn_blocking(move || key.sign(base.as_bytes()))
                .await
                .map_err(|_| SignError("the signature was given up".into()))?
        } else {
            key.sign(base.as_bytes())
        };
        let signature = signature.map_err(SignError)?;
        let label = &options.label;
        insert(&mut added, SIGNATURE_INPUT, &format!("{label}={params}"))?;
        insert(
            &mut added,
            SIGNATURE,
            &format!("{label}=:{}:", base64(&signature)),
        )?;
        Ok(added)
    }

    /// The signature's parameters (section 2.3).
    fn params(&self, created: u64) -> String {
        let options = &self.0;
        let mut out = String::from("(");
        for (i, component) in options.components.iter().enumerate() {
            if i > 0 {
                out.push(' ');
            }
            quote(&mut out, component.name());
        }
        let _ = write!(out, ");created={created}");
        if let Some(expires) = options.expires {
            let _ = write!(out, ";expires={}", created + expires.as_secs());
        }
        let algorithm = options.key.algorithm().name().to_owned();
        let algorithm = options.names_algorithm.then_some(algorithm);
        for (name, value) in [
            ("keyid", &options.key_id),
            ("alg", &algorithm),
            ("tag", &options.tag),
        ] {
            if let Some(value) = value {
                let _ = write!(out, ";{name}=");
                quote(&mut out, value);
            }
        }
        out
    }
}

/// A string of RFC 8941, section 4.1.6. What it is made of was checked.
fn quote(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        if c == '"' || c == '\\' {
            out.push('\\');
        }
        out.push(c);
    }
    out.push('"');
}

fn insert(headers: &mut HeaderMap, name: HeaderName, value: &str) -> Result<(), SignError> {
    let value = HeaderValue::from_str(value);
    let value = value.map_err(|_| SignError(format!("`{name}` cannot be written")))?;
    headers.insert(name, value);
    Ok(())
}

/// RFC 9530, section 2.
fn content_digest(digest: Digest, body: &[u8]) -> String {
    let (name, algorithm) = match digest {
        Digest::Sha256 => ("sha-256", &digest::SHA256),
        Digest::Sha512 => ("sha-512", &digest::SHA512),
    };
    format!(
        "{name}=:{}:",
        base64(digest::digest(algorithm, body).as_ref())
    )
}

/// What is signed (section 2.5). `added` wins over the request's own headers.
fn base(
    components: &[Component],
    params: &str,
    request: Unsigned<'_>,
    added: &HeaderMap,
) -> Result<String, SignError> {
    let authority = authority(request);
    let scheme = if request.https { "https" } else { "http" };
    let target = request.target.as_str();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let path = if path.is_empty() { "/" } else { path };
    let mut out = String::new();
    for component in components {
        quote(&mut out, component.name());
        out.push_str(": ");
        match component {
            Component::Method => out.push_str(request.method.as_str()),
            Component::TargetUri => {
                let _ = write!(out, "{scheme}://{authority}{target}");
            }
            Component::Authority => out.push_str(&authority),
            Component::Scheme => out.push_str(scheme),
            Component::RequestTarget => out.push_str(target),
            Component::Path => out.push_str(path),
            Component::Query => {
                let _ = write!(out, "?{query}");
            }
            Component::Field(name) => field(&mut out, name, request.headers, added)?,
        }
        out.push('\n');
    }
    let _ = write!(out, "\"@signature-params\": {params}");
    Ok(out)
}

/// The values of a header (section 2.1).
fn field(
    out: &mut String,
    name: &HeaderName,
    headers: &HeaderMap,
    added: &HeaderMap,
) -> Result<(), SignError> {
    let headers = if added.contains_key(name) {
        added
    } else {
        headers
    };
    let mut values = headers.get_all(name).iter().peekable();
    if values.peek().is_none() {
        let why =
            format!("the signature covers the header `{name}`, which the request does not have");
        return Err(SignError(why));
    }
    for (i, value) in values.enumerate() {
        let text = value.to_str();
        let text = text.map_err(|_| {
            SignError(format!(
                "the signature covers the header `{name}`, which is not ASCII"
            ))
        })?;
        if i > 0 {
            out.push_str(", ");
        }
        out.push_str(text.trim());
    }
    Ok(())
}

/// In lower case, and without the port that the scheme has anyway (section 2.2.3).
fn authority(request: Unsigned<'_>) -> String {
    let text = String::from_utf8_lossy(request.authority.as_bytes()).to_ascii_lowercase();
    let usual = if request.https { ":443" } else { ":80" };
    match text.strip_suffix(usual) {
        Some(host) => host.to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests;
