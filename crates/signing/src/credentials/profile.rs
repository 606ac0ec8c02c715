//! A profile of the shared credentials file, with keys of its own.

use std::time::{Duration, SystemTime};

use super::{Temporary, read_file};
use crate::{Secret, sigv4::Credentials};

/// How long keys of a file are used before it is read again.
const PROFILE_LIFE: Duration = Duration::from_secs(600);

pub(super) async fn read(
    name: &str,
    env: &dyn Fn(&str) -> Option<String>,
) -> Result<Temporary, String> {
    let path = env("AWS_SHARED_CREDENTIALS_FILE")
        .or_else(|| env("HOME").map(|home| format!("{home}/.aws/credentials")))
        .ok_or("neither AWS_SHARED_CREDENTIALS_FILE nor HOME is set")?;
    let text = read_file(&path).await?;
    let value = |key: &str| find(&text, name, key);
    let (Some(id), Some(secret)) = (value("aws_access_key_id"), value("aws_secret_access_key"))
    else {
        return Err(format!(
            "the profile `{name}` in `{path}` has no aws_access_key_id and aws_secret_access_key; others are not read"
        ));
    };
    Ok(Temporary {
        credentials: Credentials {
            access_key_id: id.to_owned(),
            secret_access_key: Secret::new(secret),
            session_token: value("aws_session_token").map(Secret::new),
        },
        // Who replaces keys in a file restarts nothing.
        ends: Some(SystemTime::now() + PROFILE_LIFE),
    })
}

fn find<'t>(text: &'t str, profile: &str, key: &str) -> Option<&'t str> {
    let mut inside = false;
    for line in text.lines() {
        let line = line.trim();
        if let Some(name) = line
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
        {
            inside = name.trim() == profile;
        } else if inside
            && let Some((name, value)) = line.split_once('=')
            && name.trim() == key
        {
            return Some(value.trim());
        }
    }
    None
}
