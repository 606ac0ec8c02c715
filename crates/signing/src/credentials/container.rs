//! The endpoint that ECS and EKS give containers.

use http::{HeaderMap, HeaderValue, Method, header};
use ogive_base::is_loopback_host;
use ogive_json::Node;
use ogive_transport::address::{Address, Target};

use super::{TIMEOUT, Temporary, read_file};
use crate::{
    Secret,
    ask::{ask, json},
    clock,
    sigv4::Credentials,
};

/// Where ECS has it.
const ECS: &str = "http://169.254.170.2";
/// Addresses that answer over plain HTTP: those of ECS and EKS. Everybody else could be anybody.
const KNOWN: [&str; 3] = ["169.254.170.2", "169.254.170.23", "fd00:ec2::23"];

/// Where to ask.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Place(String);

impl Place {
    /// What the environment says.
    pub(super) fn of(env: &dyn Fn(&str) -> Option<String>) -> Result<Option<Self>, String> {
        if let Some(path) = env("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") {
            if !path.starts_with('/') {
                return Err("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI is no path".into());
            }
            return Ok(Some(Place(format!("{ECS}{path}"))));
        }
        let Some(url) = env("AWS_CONTAINER_CREDENTIALS_FULL_URI") else {
            return Ok(None);
        };
        let address = Address::parse(&url);
        let address =
            address.map_err(|error| format!("AWS_CONTAINER_CREDENTIALS_FULL_URI: {error}"))?;
        let Target::Tcp(host, _) = &address.target else {
            return Err("AWS_CONTAINER_CREDENTIALS_FULL_URI is no URL of a host".into());
        };
        if address.https || is_loopback_host(host) || KNOWN.contains(&&**host) {
            return Ok(Some(Place(url)));
        }
        Err("AWS_CONTAINER_CREDENTIALS_FULL_URI is an `http://` URL of another machine".into())
    }

    pub(super) async fn fetch(
        &self,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Temporary, String> {
        let mut headers = HeaderMap::new();
        let token = match env("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE") {
            Some(path) => Some(read_file(&path).await?),
            None => env("AWS_CONTAINER_AUTHORIZATION_TOKEN"),
        };
        if let Some(token) = token {
            let value = HeaderValue::from_str(token.trim());
            let mut value =
                value.map_err(|_| "the authorization token is none that a header can carry")?;
            value.set_sensitive(true);
            headers.insert(header::AUTHORIZATION, value);
        }
        let answer = ask(&self.0, TIMEOUT, Method::GET, headers, Default::default()).await;
        let answer = answer.map_err(|why| format!("the container's endpoint: {why}"))?;
        read(&answer)
    }
}

pub(super) fn read(answer: &[u8]) -> Result<Temporary, String> {
    let answer = json(answer).ok_or("the container's endpoint: its answer is no JSON")?;
    let text = |name: &str| {
        let text = answer.root().get(name).and_then(Node::string);
        let text = text.filter(|text| !text.is_empty());
        text.ok_or_else(|| format!("the container's endpoint: its answer has no `{name}`"))
    };
    let ends = text("Expiration")?;
    let ends = clock::parse(&ends);
    Ok(Temporary {
        credentials: Credentials {
            access_key_id: text("AccessKeyId")?.into_owned(),
            secret_access_key: Secret::new(text("SecretAccessKey")?),
            session_token: Some(Secret::new(text("Token")?)),
        },
        ends: Some(ends.ok_or("the container's endpoint: its `Expiration` is no time")?),
    })
}
