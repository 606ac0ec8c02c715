//! Roles, from AWS's Security Token Service.

use std::time::SystemTime;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, header};
use ogive_base::is_loopback_url;
use ogive_transport::address::Address;

use super::{AssumeRole, Environment, TIMEOUT, Temporary, read_file};
use crate::{
    Secret,
    ask::ask,
    clock,
    encode::form,
    sigv4::{self, Credentials, Target},
};

const VERSION: (&str, &str) = ("Version", "2011-06-15");

/// Takes a role by a token that somebody else signed for this process.
pub(super) async fn web_identity(
    file: &str,
    (role, session): (&str, &str),
    region: &str,
    env: &Environment,
) -> Result<Temporary, String> {
    let token = read_file(file).await?;
    let fields = [
        ("Action", "AssumeRoleWithWebIdentity"),
        VERSION,
        ("RoleArn", role),
        ("RoleSessionName", session),
        ("WebIdentityToken", token.trim()),
    ];
    let url = url(region, env)?;
    call(&url, headers(), form(&fields).into()).await
}

/// Takes a role by other credentials.
pub(super) async fn assume(
    role: &AssumeRole,
    credentials: &Credentials,
    region: &str,
    env: &Environment,
) -> Result<Temporary, String> {
    let mut fields = vec![
        ("Action", "AssumeRole"),
        VERSION,
        ("RoleArn", &*role.role_arn),
        ("RoleSessionName", &*role.session_name),
    ];
    if let Some(id) = &role.external_id {
        fields.push(("ExternalId", id));
    }
    let body: Bytes = form(&fields).into();
    let url = url(region, env)?;
    let address = Address::parse(&url).map_err(|error| format!("the endpoint of STS: {error}"))?;
    let target = Target {
        region: region.to_owned(),
        service: "sts".into(),
    };
    let mut headers = headers();
    let path = address.path.path().to_owned();
    let place = ("POST", &address.host, &*path, "");
    let proof = sigv4::sign(
        &target,
        credentials,
        SystemTime::now(),
        place,
        (&headers, &body),
    );
    headers.extend(proof);
    call(&url, headers, body).await
}

/// The region's own, unless the environment says otherwise, as it may to all programs of AWS. Tokens are sent there, and
/// keys come back.
fn url(region: &str, env: &Environment) -> Result<String, String> {
    if let Some(url) = env("AWS_ENDPOINT_URL_STS").filter(|url| !url.is_empty()) {
        return if url.starts_with("https://") || is_loopback_url(&url) {
            Ok(url)
        } else {
            Err("AWS_ENDPOINT_URL_STS is no `https://` URL, and not of this machine".into())
        };
    }
    let end = if region.starts_with("cn-") { ".cn" } else { "" };
    Ok(format!("https://sts.{region}.amazonaws.com{end}/"))
}

fn headers() -> HeaderMap {
    let content = HeaderValue::from_static("application/x-www-form-urlencoded");
    HeaderMap::from_iter([(header::CONTENT_TYPE, content)])
}

async fn call(url: &str, headers: HeaderMap, body: Bytes) -> Result<Temporary, String> {
    let answer = ask(url, TIMEOUT, Method::POST, headers, body).await;
    let answer = answer.map_err(|why| format!("STS: {why}"))?;
    read(&String::from_utf8_lossy(&answer))
}

/// An answer, of which four texts count.
pub(super) fn read(answer: &str) -> Result<Temporary, String> {
    let text = |name: &str| {
        let (_, rest) = answer.split_once(&format!("<{name}>"))?;
        let (text, _) = rest.split_once(&format!("</{name}>"))?;
        let text = text.trim();
        (!text.is_empty() && !text.contains('<')).then(|| plain(text))
    };
    let wanted = |name: &str| text(name).ok_or_else(|| format!("STS: its answer has no `{name}`"));
    let ends = clock::parse(&wanted("Expiration")?);
    Ok(Temporary {
        credentials: Credentials {
            access_key_id: wanted("AccessKeyId")?,
            secret_access_key: Secret::new(wanted("SecretAccessKey")?),
            session_token: Some(Secret::new(wanted("SessionToken")?)),
        },
        ends: Some(ends.ok_or("STS: its `Expiration` is no time")?),
    })
}

/// The text that XML stands for.
fn plain(text: &str) -> String {
    let references = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&apos;", "'"),
        ("&amp;", "&"),
    ];
    references
        .iter()
        .fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}
