//! Bearer tokens (RFC 6750) that the gateway gets for itself by client credentials (RFC 6749, section 4.4).

use std::{fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, header};
use ogive_base::encode::percent_encode;
use ogive_json::{Kind, Node};
use ogive_transport::SignError;
use tokio::time::Instant;

use crate::{
    Secret,
    ask::{ask, json},
    encode::{base64, form},
    renewal::{Fetch, FetchFuture, Fresh, Renewal, Shared},
};

/// How long a token is taken to last that does not say so.
const LIFE_UNTOLD: Duration = Duration::from_secs(300);
/// The longest life that is believed.
const LIFE_MAX: Duration = Duration::from_secs(86_400);
/// Largest token: it has to fit into the head of every request.
const TOKEN_BYTES_MAX: usize = 16 << 10;

/// How the gateway proves to the authorization server who it is (RFC 6749, section 2.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientAuthentication {
    /// `client_secret_basic`: in the header `authorization`.
    Basic,
    /// `client_secret_post`: in the body.
    Post,
}

/// Where tokens come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BearerOptions {
    /// URL of the authorization server's token endpoint.
    pub token_endpoint: String,
    /// Who the gateway is there.
    pub client_id: String,
    /// And its secret.
    pub client_secret: Secret,
    /// How both are sent.
    pub authentication: ClientAuthentication,
    /// Scopes to ask for.
    pub scopes: Vec<String>,
    /// `audience` to ask for.
    pub audience: Option<String>,
    /// How long before its end a token is renewed; at most half of its life.
    pub renew_before: Duration,
    /// How long the token endpoint may take to answer.
    pub timeout: Duration,
}

/// Adds the gateway's token to requests.
#[derive(Clone)]
pub struct Bearer(Arc<Renewal<Tokens>>);

impl fmt::Debug for Bearer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Bearer")
    }
}

static TOKENS: Shared<BearerOptions, Tokens> = Shared::new();

impl Bearer {
    /// Whoever has the same options has the same token. Nothing is fetched before it is needed.
    pub fn new(options: BearerOptions) -> Self {
        let before = options.renew_before;
        let make = || Renewal::new(Tokens(options.clone()), before);
        Bearer(TOKENS.get(options.clone(), make))
    }

    /// Waits until there is a token.
    pub(crate) async fn ready(&self) -> Result<(), SignError> {
        self.0.get().await.map(|_| ())
    }

    pub(crate) fn sign(&self) -> Result<HeaderMap, SignError> {
        let value = self.0.held()?;
        Ok(HeaderMap::from_iter([(
            header::AUTHORIZATION,
            HeaderValue::clone(&value),
        )]))
    }

    pub(crate) async fn refused(&self, began: Instant) -> bool {
        self.0.refused(began).await
    }
}

struct Tokens(BearerOptions);

impl Fetch for Tokens {
    /// The header.
    type Value = HeaderValue;

    fn fetch(&self) -> FetchFuture<'_, HeaderValue> {
        Box::pin(async {
            let (headers, body) = request(&self.0);
            let options = &self.0;
            let asked = ask(
                &options.token_endpoint,
                options.timeout,
                Method::POST,
                headers,
                body,
            );
            read(&asked.await?)
        })
    }

    fn name(&self) -> String {
        let url = &self.0.token_endpoint;
        // A query string may hold what nobody should see.
        format!(
            "the token endpoint `{}`",
            url.split(['?', '#']).next().unwrap_or(url)
        )
    }
}

fn request(options: &BearerOptions) -> (HeaderMap, Bytes) {
    let mut headers = HeaderMap::new();
    let content = HeaderValue::from_static("application/x-www-form-urlencoded");
    headers.insert(header::CONTENT_TYPE, content);
    headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    let scope = options.scopes.join(" ");
    let mut fields = vec![("grant_type", "client_credentials")];
    if !scope.is_empty() {
        fields.push(("scope", &scope));
    }
    if let Some(audience) = &options.audience {
        fields.push(("audience", audience));
    }
    match options.authentication {
        ClientAuthentication::Basic => {
            let mut both = String::new();
            percent_encode(&mut both, options.client_id.as_bytes(), b"");
            both.push(':');
            percent_encode(&mut both, options.client_secret.expose().as_bytes(), b"");
            let value = format!("Basic {}", base64(both.as_bytes()));
            if let Ok(mut value) = HeaderValue::from_str(&value) {
                value.set_sensitive(true);
                headers.insert(header::AUTHORIZATION, value);
            }
        }
        ClientAuthentication::Post => {
            fields.push(("client_id", &options.client_id));
            fields.push(("client_secret", options.client_secret.expose()));
        }
    }
    (headers, form(&fields).into())
}

/// An answer of a token endpoint (RFC 6749, section 5.1).
fn read(answer: &[u8]) -> Result<Fresh<HeaderValue>, String> {
    let answer = json(answer).ok_or("its answer is no JSON")?;
    let answer = answer.root();
    let token = answer.get("access_token").and_then(Node::string);
    let token = token.ok_or("its answer has no `access_token`")?;
    let kind = answer.get("token_type").and_then(Node::string);
    if !kind.is_some_and(|kind| kind.eq_ignore_ascii_case("bearer")) {
        return Err("its `token_type` is not `Bearer`".into());
    }
    // RFC 6749, appendix A.12. Some use more than the `b64token` of RFC 6750; a space would end it.
    if token.is_empty()
        || token.len() > TOKEN_BYTES_MAX
        || !token.as_bytes().iter().all(u8::is_ascii_graphic)
    {
        return Err("its `access_token` is none that a header can carry".into());
    }
    let lives = match answer.get("expires_in") {
        None => LIFE_UNTOLD,
        Some(value) if value.kind() == Kind::Null => LIFE_UNTOLD,
        Some(value) => {
            // Some write the number as text.
            let digits = || value.number().unwrap_or_default().into();
            let text = value.string().unwrap_or_else(digits);
            let seconds: f64 = text.parse().unwrap_or(-1.0);
            // Nor one that is no number.
            if !seconds.is_finite() || seconds < 1.0 {
                return Err("its `expires_in` is no time to come".into());
            }
            Duration::from_secs_f64(seconds.min(LIFE_MAX.as_secs_f64()))
        }
    };
    let mut value = HeaderValue::from_str(&format!("Bearer {token}"))
        .map_err(|_| "its `access_token` is none that a header can carry".to_owned())?;
    value.set_sensitive(true);
    Ok(Fresh {
        value,
        lives: Some(lives),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(authentication: ClientAuthentication) -> BearerOptions {
        BearerOptions {
            token_endpoint: "https://idp.example/token?tenant=hidden".into(),
            client_id: "gate:way".into(),
            client_secret: Secret::new("s3c ret"),
            authentication,
            scopes: vec!["read".into(), "write".into()],
            audience: Some("https://reviews.example".into()),
            renew_before: Duration::from_secs(60),
            timeout: Duration::from_secs(10),
        }
    }

    #[test]
    fn clients_authenticate_in_the_header_or_in_the_body() {
        let (headers, body) = request(&options(ClientAuthentication::Basic));
        // RFC 6749, section 2.3.1: both are encoded before they are joined.
        let expected = format!("Basic {}", base64(b"gate%3Away:s3c%20ret"));
        assert_eq!(headers[header::AUTHORIZATION], expected);
        let grant = "grant_type=client_credentials&scope=read%20write&audience=https%3A%2F%2Freviews.example";
        assert_eq!(body, grant);
        let (headers, body) = request(&options(ClientAuthentication::Post));
        assert!(!headers.contains_key(header::AUTHORIZATION));
        assert_eq!(
            body,
            format!("{grant}&client_id=gate%3Away&client_secret=s3c%20ret")
        );
    }

    #[test]
    fn answers_are_read_or_say_what_is_wrong() {
        let good = |text: &str| read(text.as_bytes()).map(|fresh| (fresh.value, fresh.lives));
        let (value, lives) =
            good(r#"{"access_token":"a.b-c","token_type":"bearer","expires_in":3600}"#).unwrap();
        assert_eq!(
            (value.to_str().unwrap(), lives),
            ("Bearer a.b-c", Some(Duration::from_secs(3_600)))
        );
        assert!(value.is_sensitive());
        for (expires, seconds) in [
            ("\"60\"", 60),
            ("null", 300),
            ("1e99", 86_400),
            ("59.5", 59),
        ] {
            let text =
                format!(r#"{{"access_token":"a","token_type":"Bearer","expires_in":{expires}}}"#);
            assert_eq!(
                good(&text).unwrap().1.unwrap().as_secs(),
                seconds,
                "{expires}"
            );
        }
        for (text, why) in [
            ("<html>", "its answer is no JSON"),
            ("{}", "its answer has no `access_token`"),
            (
                r#"{"access_token":"a"}"#,
                "its `token_type` is not `Bearer`",
            ),
            (
                r#"{"access_token":"a","token_type":"DPoP"}"#,
                "its `token_type` is not `Bearer`",
            ),
            (
                r#"{"access_token":"a\r\nx: y","token_type":"Bearer"}"#,
                "its `access_token` is none that a header can carry",
            ),
            (
                r#"{"access_token":"a","token_type":"Bearer","expires_in":0}"#,
                "its `expires_in` is no time to come",
            ),
            (
                r#"{"access_token":"a","token_type":"Bearer","expires_in":"soon"}"#,
                "its `expires_in` is no time to come",
            ),
        ] {
            assert_eq!(good(text).unwrap_err(), why, "{text}");
        }
    }

    #[test]
    fn neither_secret_nor_query_string_is_shown() {
        let options = options(ClientAuthentication::Post);
        assert!(!format!("{options:?}").contains("s3c"));
        assert_eq!(
            Tokens(options).name(),
            "the token endpoint `https://idp.example/token`"
        );
    }
}
