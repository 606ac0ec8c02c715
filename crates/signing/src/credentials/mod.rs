//! Credentials for AWS: given, or found where AWS puts them.
//!
//! Looked for, in this order: a profile, if one is named; the environment (`AWS_ACCESS_KEY_ID`); a web identity
//! (`AWS_WEB_IDENTITY_TOKEN_FILE`), as Kubernetes gives to service accounts; the container's endpoint
//! (`AWS_CONTAINER_CREDENTIALS_*`), as ECS and EKS have it; the metadata service of an EC2 instance. Files are read anew for every fetch, since they are replaced.

mod container;
mod instance;
mod profile;
mod sts;

use std::{
    fmt,
    sync::Arc,
    time::{Duration, SystemTime},
};

use bytes::Bytes;
use http::HeaderMap;
use ogive_files::Pipes;
use ogive_transport::{SignError, Unsigned};

use crate::{
    Secret,
    renewal::{Fetch, FetchFuture, Fresh, Renewal, Shared},
    sigv4::{self, Credentials, Target},
};

/// How long before their end credentials are renewed; at most half of their life.
const RENEW_BEFORE: Duration = Duration::from_secs(300);
/// How long one request for credentials may take. Who answers in a test may have to wait for its turn.
const TIMEOUT: Duration = Duration::from_secs(if cfg!(test) { 60 } else { 10 });
/// Largest file with a token or a profile.
const FILE_BYTES_MAX: u64 = 256 << 10;

/// Where credentials come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CredentialSource {
    /// They are given.
    Given(Credentials),
    /// They are found.
    Found {
        /// In this profile of the shared credentials file, or anywhere else.
        profile: Option<String>,
    },
}

/// A role to take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssumeRole {
    /// Its ARN.
    pub role_arn: String,
    /// What the session is called.
    pub session_name: String,
    /// What the owner of the role asks for besides.
    pub external_id: Option<String>,
}

/// How requests are signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AwsOptions {
    /// For whom.
    pub target: Target,
    /// With what.
    pub source: CredentialSource,
    /// In which role; `None` is that of the credentials.
    pub assume_role: Option<AssumeRole>,
}

/// What the environment says.
pub(crate) type Environment = dyn Fn(&str) -> Option<String> + Send + Sync;

/// Signs as AWS wants it.
#[derive(Clone)]
pub struct Aws {
    target: Target,
    held: Held,
}

#[derive(Clone)]
enum Held {
    Given(Credentials),
    Renewed(Arc<Renewal<Chain>>),
}

impl fmt::Debug for Aws {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Aws({}, {})", self.target.service, self.target.region)
    }
}

static CREDENTIALS: Shared<AwsOptions, Chain> = Shared::new();

impl Aws {
    /// Whoever has the same options has the same credentials. Nothing is fetched before it is needed.
    pub fn new(options: AwsOptions) -> Self {
        let target = options.target.clone();
        let held = match &options {
            AwsOptions {
                source: CredentialSource::Given(given),
                assume_role: None,
                ..
            } => Held::Given(given.clone()),
            _ => {
                let env: Box<Environment> = Box::new(|name| std::env::var(name).ok());
                let chain = Chain {
                    options: options.clone(),
                    env,
                };
                let make = || Renewal::new(chain, RENEW_BEFORE);
                // Services do not matter here.
                let mut key = options;
                key.target.service = String::new();
                Held::Renewed(CREDENTIALS.get(key, make))
            }
        };
        Aws { target, held }
    }

    /// Waits until there are credentials.
    pub(crate) async fn ready(&self) -> Result<(), SignError> {
        match &self.held {
            Held::Given(_) => Ok(()),
            Held::Renewed(renewal) => renewal.get().await.map(|_| ()),
        }
    }

    pub(crate) fn sign(
        &self,
        request: Unsigned<'_>,
        now: SystemTime,
    ) -> Result<HeaderMap, SignError> {
        let none = Bytes::new();
        let unsigned = (!self.target.signs_bodies()).then_some(&none);
        let body = request.body.or(unsigned).ok_or_else(|| {
            SignError("requests with files cannot be signed by `aws_sig_v4`: the hash of a body is signed".into())
        })?;
        let renewed;
        let credentials = match &self.held {
            Held::Given(given) => given,
            Held::Renewed(renewal) => {
                renewed = renewal.held()?;
                &*renewed
            }
        };
        let target = request.target.as_str();
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let method = request.method.as_str();
        let place = (method, request.authority, path, query);
        Ok(sigv4::sign(
            &self.target,
            credentials,
            now,
            place,
            (request.headers, body),
        ))
    }
}

/// Credentials with the time at which they end.
pub(crate) struct Temporary {
    pub(crate) credentials: Credentials,
    pub(crate) ends: Option<SystemTime>,
}

/// Where credentials are looked for.
struct Chain {
    options: AwsOptions,
    env: Box<Environment>,
}

impl Chain {
    async fn find(&self) -> Result<Temporary, String> {
        let region = &self.options.target.region;
        let first = match &self.options.source {
            CredentialSource::Given(given) => Temporary {
                credentials: given.clone(),
                ends: None,
            },
            CredentialSource::Found { profile } => self.found(profile.as_deref()).await?,
        };
        match &self.options.assume_role {
            None => Ok(first),
            Some(role) => sts::assume(role, &first.credentials, region, &self.env).await,
        }
    }

    async fn found(&self, profile: Option<&str>) -> Result<Temporary, String> {
        let env = |name: &str| (self.env)(name).filter(|value| !value.is_empty());
        if let Some(name) = profile {
            return profile::read(name, &env).await;
        }
        if let (Some(id), Some(secret)) = (env("AWS_ACCESS_KEY_ID"), env("AWS_SECRET_ACCESS_KEY")) {
            return Ok(Temporary {
                credentials: Credentials {
                    access_key_id: id,
                    secret_access_key: Secret::new(secret),
                    session_token: env("AWS_SESSION_TOKEN").map(Secret::new),
                },
                ends: None,
            });
        }
        if let (Some(file), Some(role)) = (env("AWS_WEB_IDENTITY_TOKEN_FILE"), env("AWS_ROLE_ARN"))
        {
            let session = env("AWS_ROLE_SESSION_NAME").unwrap_or_else(|| "ogive".into());
            let region = &self.options.target.region;
            return sts::web_identity(&file, (&role, &session), region, &self.env).await;
        }
        if let Some(place) = container::Place::of(&env)? {
            return place.fetch(&env).await;
        }
        let off =
            env("AWS_EC2_METADATA_DISABLED").is_some_and(|off| off.eq_ignore_ascii_case("true"));
        let why = if off {
            "AWS_EC2_METADATA_DISABLED is set".to_owned()
        } else {
            match instance::fetch(&env).await {
                Ok(found) => return Ok(found),
                Err(why) => why,
            }
        };
        Err(format!(
            "there are none: neither AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, nor AWS_WEB_IDENTITY_TOKEN_FILE and \
             AWS_ROLE_ARN, nor AWS_CONTAINER_CREDENTIALS_RELATIVE_URI or _FULL_URI are set, and {why}"
        ))
    }
}

impl Fetch for Chain {
    type Value = Credentials;

    fn fetch(&self) -> FetchFuture<'_, Credentials> {
        Box::pin(async {
            let Temporary { credentials, ends } = self.find().await?;
            let lives = match ends {
                None => None,
                Some(ends) => {
                    let left = ends.duration_since(SystemTime::now());
                    Some(left.map_err(|_| "they have ended already".to_owned())?)
                }
            };
            Ok(Fresh {
                value: credentials,
                lives,
            })
        })
    }

    fn name(&self) -> String {
        "AWS credentials".into()
    }
}

/// A file that somebody else writes, read beside the worker: its disk may be slow, or behind a network.
async fn read_file(path: &str) -> Result<String, String> {
    let place = std::path::PathBuf::from(path);
    let read = move || ogive_files::read_text(&place, FILE_BYTES_MAX, Pipes::Refused);
    let read = tokio::task::spawn_blocking(read).await;
    let read = read.map_err(|_| format!("the file `{path}` was not read to its end"))?;
    read.map_err(|error| format!("the file `{path}`: {error}"))
}

#[cfg(test)]
mod tests;
