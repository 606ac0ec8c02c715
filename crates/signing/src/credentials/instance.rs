//! The metadata service of an EC2 instance, version 2: a token first, then the name of the role, then its credentials.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use ogive_base::is_loopback_url;

use super::{Temporary, container};
use crate::ask::ask;

/// Where it is.
const ENDPOINT: &str = "http://169.254.169.254";
/// Where it answers over plain HTTP, and nobody else can.
const KNOWN: [&str; 2] = [ENDPOINT, "http://[fd00:ec2::254]"];
/// Where there is no such service nobody answers, so it is not waited for long. That of a test may have to wait for its turn.
const TIMEOUT: Duration = Duration::from_secs(if cfg!(test) { 60 } else { 2 });
const ROLES: &str = "/latest/meta-data/iam/security-credentials/";

/// Credentials of the instance's role.
pub(super) async fn fetch(env: &dyn Fn(&str) -> Option<String>) -> Result<Temporary, String> {
    let endpoint = env("AWS_EC2_METADATA_SERVICE_ENDPOINT");
    let endpoint = endpoint.unwrap_or_else(|| ENDPOINT.into());
    let endpoint = endpoint.trim_end_matches('/');
    let is_near = is_loopback_url(endpoint) || KNOWN.contains(&endpoint);
    if !is_near && !endpoint.starts_with("https://") {
        return Err(
            "AWS_EC2_METADATA_SERVICE_ENDPOINT is an `http://` URL of another machine".into(),
        );
    }
    let seconds = HeaderName::from_static("x-aws-ec2-metadata-token-ttl-seconds");
    let headers = HeaderMap::from_iter([(seconds, HeaderValue::from_static("300"))]);
    let token = get(Method::PUT, format!("{endpoint}/latest/api/token"), headers).await?;
    let mut token = HeaderValue::from_bytes(token.trim_ascii())
        .map_err(|_| "its token is none that a header can carry".to_owned())?;
    token.set_sensitive(true);
    let name = HeaderName::from_static("x-aws-ec2-metadata-token");
    let headers = HeaderMap::from_iter([(name, token)]);
    let role = get(Method::GET, format!("{endpoint}{ROLES}"), headers.clone()).await?;
    let role = String::from_utf8_lossy(&role);
    let role = role.lines().next().unwrap_or_default().trim();
    let fits = |c: char| c.is_ascii_alphanumeric() || "+=,.@_-".contains(c);
    if role.is_empty() || !role.chars().all(fits) {
        return Err("the instance has no role".into());
    }
    let answer = get(Method::GET, format!("{endpoint}{ROLES}{role}"), headers).await?;
    container::read(&answer)
}

async fn get(method: Method, url: String, headers: HeaderMap) -> Result<Bytes, String> {
    let answer = ask(&url, TIMEOUT, method, headers, Bytes::new()).await;
    answer.map_err(|why| format!("the instance's metadata service: {why}"))
}
