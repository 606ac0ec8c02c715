//! Fetching a key set once: from a file, a URL, or where an issuer says that it has it (OpenID Connect Discovery 1.0,
//! RFC 8414).
//!
//! Whoever answers is not trusted with more than keys: answers have a largest size and a longest time, redirects are not
//! followed, certificates are checked, and plain http is for this machine unless the configuration says otherwise.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, header};
use ogive_base::without_secrets;
use ogive_files::Pipes;
use ogive_sources::{FileLook, Validators};
use ogive_transport::{Http2, Source};
use serde_json::Value;

use crate::{
    json,
    key_origin::{KeyOrigin, KeySourceOptions, check_way, has_one_origin},
};

/// Largest answer, in bytes.
pub(crate) const ANSWER_BYTES_MAX: usize = 1 << 20;
/// How long what an issuer said of where its keys are is believed.
const DISCOVERY_AGE_MAX: Duration = Duration::from_secs(3_600);

/// What came.
pub(crate) enum Answer {
    /// The same as before.
    Same,
    /// A set.
    Text {
        text: Bytes,
        /// How long it is fresh, as the answer says.
        max_age: Option<Duration>,
    },
}

/// Fetches a set again and again.
pub(crate) struct KeyReader<'o> {
    options: &'o KeySourceOptions,
    /// What the last answer is known by, and the URL that it came from.
    validators: (String, Validators),
    stamp: Option<FileLook>,
    /// Where the issuer has its keys, and since when that is known.
    discovered: Option<(String, Instant)>,
}

impl<'o> KeyReader<'o> {
    pub(crate) fn new(options: &'o KeySourceOptions) -> Self {
        KeyReader {
            options,
            validators: Default::default(),
            stamp: None,
            discovered: None,
        }
    }

    /// What was fetched last could not be used: it is asked for as a whole the next time.
    pub(crate) fn forget(&mut self) {
        self.validators = Default::default();
        self.stamp = None;
        self.discovered = None;
    }

    /// The error is for the operator.
    pub(crate) async fn fetch(&mut self) -> Result<Answer, String> {
        match &self.options.origin {
            KeyOrigin::File(path) => self.read(path),
            KeyOrigin::Url(url) => self.ask(url).await,
            KeyOrigin::Discovery(issuer) => {
                let known = self.discovered.take();
                let known = known.filter(|(_, since)| since.elapsed() < DISCOVERY_AGE_MAX);
                let (url, since) = match known {
                    Some(known) => known,
                    None => (self.discover(issuer).await?, Instant::now()),
                };
                // Where it was is not believed any more if it does not answer.
                let answer = self.ask(&url).await?;
                self.discovered = Some((url, since));
                Ok(answer)
            }
        }
    }

    fn read(&mut self, path: &Path) -> Result<Answer, String> {
        // Looked at first: a change while it is read is found the next time.
        let stamp = FileLook::of(path);
        if stamp.is_some() && stamp == self.stamp {
            return Ok(Answer::Same);
        }
        let text = ogive_files::read(path, ANSWER_BYTES_MAX as u64, Pipes::Refused);
        let text = text.map_err(|error| error.to_string())?.into();
        self.stamp = stamp;
        let max_age = None;
        Ok(Answer::Text { text, max_age })
    }

    async fn discover(&self, issuer: &str) -> Result<String, String> {
        let base = issuer.strip_suffix('/').unwrap_or(issuer);
        let url = format!("{base}/.well-known/openid-configuration");
        let (status, _, body) = self.get(&url, self.options.headers.clone()).await?;
        let what = format!("`{}`", without_secrets(&url));
        if status != 200 {
            return Err(format!("{what} answers {status}"));
        }
        let Some(members) = json::object(&body) else {
            return Err(format!("{what} answers with no JSON object"));
        };
        // OpenID Connect Discovery 1.0, section 4.3: exactly the same.
        if members.get("issuer").and_then(Value::as_str) != Some(issuer) {
            return Err(format!("{what} is about another issuer"));
        }
        match members.get("jwks_uri").and_then(Value::as_str) {
            Some(found) => {
                let way = check_way(found, self.options.allow_plain_http);
                way.map_err(|why| format!("{what} names a `jwks_uri` that is not asked: {why}"))?;
                Ok(found.to_owned())
            }
            None => Err(format!("{what} names no `jwks_uri`")),
        }
    }

    async fn ask(&mut self, url: &str) -> Result<Answer, String> {
        // They may be secrets, and are for whoever is configured, not for whoever that one names.
        let mut headers = match &self.options.origin {
            KeyOrigin::Discovery(issuer) if !has_one_origin(issuer, url) => HeaderMap::new(),
            _ => self.options.headers.clone(),
        };
        let (of, known) = &self.validators;
        if of == url {
            known.ask(&mut headers);
        }
        let (status, headers, text) = self.get(url, headers).await?;
        match status {
            200 => {}
            304 => return Ok(Answer::Same),
            300..=399 => return Err(format!("it answers {status}; redirects are not followed")),
            status => return Err(format!("it answers {status}")),
        }
        self.validators = (url.to_owned(), Validators::of(&headers));
        let max_age = max_age(&headers);
        Ok(Answer::Text { text, max_age })
    }

    async fn get(
        &self,
        url: &str,
        mut headers: HeaderMap,
    ) -> Result<(u16, HeaderMap, Bytes), String> {
        let mut source = Source::new(url, Http2::Disable)?;
        source.timeout = self.options.timeout;
        source.body_bytes_max = ANSWER_BYTES_MAX;
        let json = HeaderValue::from_static("application/json");
        headers.entry(header::ACCEPT).or_insert(json);
        let answer = source.send(Method::GET, headers, Bytes::new()).await?;
        Ok((answer.status, answer.headers, answer.body))
    }
}

/// How long an answer is fresh (RFC 9111, section 5.2.2), whatever the order of its directives; not at all if it must not be
/// kept, or if what it says cannot be read. Of several ages the least counts.
pub(crate) fn max_age(headers: &HeaderMap) -> Option<Duration> {
    let lines = headers.get_all(header::CACHE_CONTROL).iter();
    let ages = lines.flat_map(|line| match line.to_str() {
        Ok(text) => text.split(',').filter_map(directive_age).min(),
        Err(_) => Some(Duration::ZERO),
    });
    ages.min()
}

/// What one directive says of it. `no-cache` that names fields is taken for one that names none.
fn directive_age(directive: &str) -> Option<Duration> {
    let (name, value) = directive.split_once('=').unwrap_or((directive, ""));
    match name.trim().to_ascii_lowercase().as_str() {
        "no-store" | "no-cache" => Some(Duration::ZERO),
        "max-age" => {
            let value = value.trim();
            let quoted = value
                .strip_prefix('"')
                .and_then(|rest| rest.strip_suffix('"'));
            let seconds = quoted.unwrap_or(value).parse();
            Some(Duration::from_secs(seconds.unwrap_or(0)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn age(lines: &[&str]) -> Option<u64> {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(header::CACHE_CONTROL, line.parse().unwrap());
        }
        max_age(&headers).map(|age| age.as_secs())
    }

    #[test]
    fn the_order_of_directives_does_not_matter() {
        for forbidden in ["no-store", "no-cache", "No-Store", "no-cache=\"x\""] {
            assert_eq!(age(&[&format!("max-age=60, {forbidden}")]), Some(0));
            assert_eq!(age(&[&format!("{forbidden}, max-age=60")]), Some(0));
            assert_eq!(age(&["max-age=60", forbidden]), Some(0));
        }
        assert_eq!(
            age(&["private, Max-Age = \"60\", must-revalidate"]),
            Some(60)
        );
        assert_eq!(age(&["max-age=60, max-age=30"]), Some(30));
        for unreadable in ["x", "-1", "1.5", "", "\"60", "60s", "99999999999999999999"] {
            assert_eq!(
                age(&[&format!("max-age={unreadable}")]),
                Some(0),
                "{unreadable}"
            );
        }
        assert_eq!(age(&["max-age"]), Some(0));
        assert_eq!(age(&["public"]), None);
        assert_eq!(age(&[]), None);
    }
}
