//! AWS Signature Version 4, in headers.
//!
//! Signed are `host`, `content-type`, and all headers whose names begin with `x-amz-`, as AWS asks for; no others, because
//! what is between gateway and subgraph may change them. The hash of the body is signed whether it is sent or not, except for
//! VPC Lattice, which takes none.
//! <https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html>

use std::time::SystemTime;

use http::{HeaderMap, HeaderName, HeaderValue, header};
use ogive_base::encode::{hex, percent_decode, percent_encode};
use ring::{digest, hmac};

use crate::{Secret, clock};

const ALGORITHM: &str = "AWS4-HMAC-SHA256";
const DATE: HeaderName = HeaderName::from_static("x-amz-date");
const TOKEN: HeaderName = HeaderName::from_static("x-amz-security-token");
const BODY_HASH: HeaderName = HeaderName::from_static("x-amz-content-sha256");

/// Which service of which region a request is for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// Such as `eu-central-1`.
    pub region: String,
    /// Such as `execute-api`, `lambda` or `vpc-lattice-svcs`.
    pub service: String,
}

impl Target {
    /// VPC Lattice takes bodies that are not signed, and no others.
    pub(crate) fn signs_bodies(&self) -> bool {
        self.service != "vpc-lattice-svcs"
    }

    /// S3 takes paths as they are, and wants the hash of the body in a header.
    fn is_s3(&self) -> bool {
        matches!(
            &*self.service,
            "s3" | "s3-outposts" | "s3-object-lambda" | "s3express"
        )
    }
}

/// Who signs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// Goes with every request.
    pub access_key_id: String,
    /// Signs it.
    pub secret_access_key: Secret,
    /// Goes with every request, too, if the credentials are temporary.
    pub session_token: Option<Secret>,
}

/// What is signed.
pub(crate) struct Request<'a> {
    pub(crate) method: &'a str,
    /// As it is sent.
    pub(crate) path: &'a str,
    pub(crate) query: &'a str,
    /// Those to sign, `host` included.
    pub(crate) headers: &'a HeaderMap,
    /// SHA-256 of the body, in hexadecimal.
    pub(crate) body_hash: &'a str,
}

/// How a path becomes canonical.
#[derive(Clone, Copy)]
pub(crate) struct Paths {
    /// Whether `.`, `..` and empty segments are resolved.
    pub(crate) normalise: bool,
    /// Whether what is encoded already is encoded once more.
    pub(crate) twice: bool,
}

/// The headers that prove who asks. `host` is the one that is sent; `headers` are all others.
pub(crate) fn sign(
    target: &Target,
    credentials: &Credentials,
    now: SystemTime,
    (method, host, path, query): (&str, &HeaderValue, &str, &str),
    (headers, body): (&HeaderMap, &[u8]),
) -> HeaderMap {
    let body_hash = if target.signs_bodies() {
        hex(digest::digest(&digest::SHA256, body).as_ref())
    } else {
        "UNSIGNED-PAYLOAD".into()
    };
    let mut added = HeaderMap::new();
    let date = clock::compact(now);
    insert(&mut added, DATE, &date);
    if let Some(token) = &credentials.session_token {
        insert(&mut added, TOKEN, token.expose());
    }
    if target.is_s3() || !target.signs_bodies() {
        insert(&mut added, BODY_HASH, &body_hash);
    }
    let mut signed = HeaderMap::new();
    signed.insert(header::HOST, host.clone());
    for (name, value) in headers {
        let counts = *name == header::CONTENT_TYPE || name.as_str().starts_with("x-amz-");
        // The client's own are replaced.
        if counts && !added.contains_key(name) {
            signed.append(name.clone(), value.clone());
        }
    }
    signed.extend(added.clone());
    let paths = Paths {
        normalise: !target.is_s3(),
        twice: !target.is_s3(),
    };
    let request = Request {
        method,
        path,
        query,
        headers: &signed,
        body_hash: &body_hash,
    };
    let authorization = authorization(target, credentials, &date, &request, paths);
    insert(&mut added, header::AUTHORIZATION, &authorization);
    added
}

/// Everything that is written here is visible ASCII, except for secrets that are none.
fn insert(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(mut value) = HeaderValue::from_str(value) {
        value.set_sensitive(true);
        headers.insert(name, value);
    }
}

/// The `authorization` header of a request.
pub(crate) fn authorization(
    target: &Target,
    credentials: &Credentials,
    date: &str,
    request: &Request<'_>,
    paths: Paths,
) -> String {
    let day = &date[..8];
    let (region, service) = (&target.region, &target.service);
    let scope = format!("{day}/{region}/{service}/aws4_request");
    let (canonical, names) = canonical(request, paths);
    let hash = hex(digest::digest(&digest::SHA256, canonical.as_bytes()).as_ref());
    let text = format!("{ALGORITHM}\n{date}\n{scope}\n{hash}");
    let first = format!("AWS4{}", credentials.secret_access_key.expose());
    let mut key = hmac::Key::new(hmac::HMAC_SHA256, first.as_bytes());
    for part in [day, region, service, "aws4_request"] {
        let tag = hmac::sign(&key, part.as_bytes());
        key = hmac::Key::new(hmac::HMAC_SHA256, tag.as_ref());
    }
    let signature = hex(hmac::sign(&key, text.as_bytes()).as_ref());
    let id = &credentials.access_key_id;
    format!("{ALGORITHM} Credential={id}/{scope}, SignedHeaders={names}, Signature={signature}")
}

/// The canonical request, and the names of its headers.
pub(crate) fn canonical(request: &Request<'_>, paths: Paths) -> (String, String) {
    let mut names: Vec<&HeaderName> = request.headers.keys().collect();
    names.sort_by_key(|name| name.as_str());
    let mut out = format!("{}\n", request.method);
    canonical_path(&mut out, request.path, paths);
    out.push('\n');
    canonical_query(&mut out, request.query);
    out.push('\n');
    let mut list = String::new();
    for name in names {
        out.push_str(name.as_str());
        out.push(':');
        for (i, value) in request.headers.get_all(name).iter().enumerate() {
            if i > 0 {
                out.push(',');
            }
            let text = String::from_utf8_lossy(value.as_bytes());
            let words: Vec<&str> = text.split(' ').filter(|word| !word.is_empty()).collect();
            out.push_str(&words.join(" "));
        }
        out.push('\n');
        if !list.is_empty() {
            list.push(';');
        }
        list.push_str(name.as_str());
    }
    out.push('\n');
    out.push_str(&list);
    out.push('\n');
    out.push_str(request.body_hash);
    (out, list)
}

fn canonical_path(out: &mut String, path: &str, paths: Paths) {
    let path = if path.is_empty() { "/" } else { path };
    let normal = if paths.normalise {
        normal_path(path)
    } else {
        path.to_owned()
    };
    if paths.twice {
        percent_encode(out, normal.as_bytes(), b"/")
    } else {
        out.push_str(&normal)
    }
}

/// A path without `.`, `..` and empty segments (RFC 3986, section 5.2.4).
fn normal_path(path: &str) -> String {
    let mut segments: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => {
                segments.pop();
            }
            _ => segments.push(segment),
        }
    }
    let mut normal = String::with_capacity(path.len());
    for segment in &segments {
        normal.push('/');
        normal.push_str(segment);
    }
    let is_folder = ["/", "/.", "/.."].iter().any(|end| path.ends_with(end));
    if normal.is_empty() || is_folder {
        normal.push('/');
    }
    normal
}

fn canonical_query(out: &mut String, query: &str) {
    let mut pairs: Vec<(String, String)> = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        pairs.push((encoded(name), encoded(value)));
    }
    pairs.sort();
    for (i, (name, value)) in pairs.iter().enumerate() {
        if i > 0 {
            out.push('&');
        }
        out.push_str(name);
        out.push('=');
        out.push_str(value);
    }
}

/// A part of a query string, encoded as AWS does, whatever of it was encoded before.
fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    percent_encode(&mut out, &percent_decode(text), b"");
    out
}

#[cfg(test)]
mod tests;
