//! The options of `authentication.router`: how the gateway learns who a client is.

use std::num::NonZeroUsize;

use ogive_yaml::{Key, Node, Value};

use crate::{
    ByteSize, ClientAuthenticationWord, Duration, HeaderName, SecretText, Url,
    decode::{Decode, Errors, section},
    scalars::{nonzero, without_secrets},
    words::words,
};

words! {
    /// What becomes of a request whose token is bad.
    pub enum OnTokenError {
        /// It is refused.
        Error = "error",
        /// It goes on as if it had none.
        Continue = "continue",
    }

    /// What becomes of a start without keys.
    pub enum WhenKeysMissing {
        /// Tokens are refused until there are keys.
        RefuseTokens = "refuse_tokens",
        /// The start waits for them.
        Wait = "wait",
        /// It fails.
        Fail = "fail",
    }

    /// Names of certificates.
    pub enum CertificateNameWord {
        /// The whole subject.
        Subject = "subject",
        /// The common name in it.
        CommonName = "common_name",
        /// The alternative name that is a host.
        Dns = "dns",
        /// The alternative name that is a URI.
        Uri = "uri",
        /// The alternative name that is an address of mail.
        Email = "email",
    }

    /// How a token may be signed.
    pub enum TokenAlgorithm {
        /// RSASSA-PKCS1-v1_5 with SHA-256.
        Rs256 = "RS256",
        /// RSASSA-PKCS1-v1_5 with SHA-384.
        Rs384 = "RS384",
        /// RSASSA-PKCS1-v1_5 with SHA-512.
        Rs512 = "RS512",
        /// RSASSA-PSS with SHA-256.
        Ps256 = "PS256",
        /// RSASSA-PSS with SHA-384.
        Ps384 = "PS384",
        /// RSASSA-PSS with SHA-512.
        Ps512 = "PS512",
        /// ECDSA with P-256.
        Es256 = "ES256",
        /// ECDSA with P-384.
        Es384 = "ES384",
        /// Ed25519.
        EdDsa = "EdDSA",
        /// HMAC with SHA-256.
        Hs256 = "HS256",
        /// HMAC with SHA-384.
        Hs384 = "HS384",
        /// HMAC with SHA-512.
        Hs512 = "HS512",
    }
}

section! {
    /// `authentication.router`
    pub struct RouterAuthentication {
        /// By JSON Web Tokens; without a key set they mean nothing.
        pub jwt: JwtOptions = JwtOptions::default(),
        /// By keys that the gateway knows the digests of; not set: they mean nothing. A request with a token, too, is judged by
        /// its token.
        pub api_keys: Option<ApiKeyOptions> = None,
        /// By tokens that only their issuer can read, which is asked about each (RFC 7662); not set: they mean nothing. They are
        /// looked for where `jwt` says; with key sets, too, tokens that are JSON Web Tokens are judged by these.
        pub introspection: Option<IntrospectionOptions> = None,
        /// By the certificate that a client has shown when it connected (`tls.supergraph.client_authentication`); not set: that
        /// says only that it may connect. Whoever brings a token or a key, or is spoken for by a trusted proxy, is known by that.
        pub client_certificate: Option<ClientCertificateOptions> = None,
        /// By WebAssembly components, by the names that they have in `plugins`: each may say who asks, refuse that, or leave it to
        /// the next and then to tokens, keys and certificates. Whoever is named here decides who the caller is.
        pub components: Vec<String> = Vec::new(),
    }

    /// `authentication.router.client_certificate`
    pub struct ClientCertificateOptions {
        /// Which of its names is `sub`: `subject`, as RFC 4514 writes it, `common_name`, or the alternative name `dns`, `uri` or
        /// `email`. One that has none of the kind, or several, is refused. Default `subject`.
        pub sub_from: CertificateNameWord = CertificateNameWord::Subject,
    }

    /// `authentication.router.jwt`
    pub struct JwtOptions {
        /// The header that a token is looked for in first.
        pub header_name: HeaderName = HeaderName("authorization".into()),
        /// What stands before the token in it, in any case; empty: nothing.
        pub header_value_prefix: String = "Bearer".into(),
        /// Whether a header with another prefix, such as `Basic`, counts as if it was not there. Else the request is refused with
        /// `INVALID_CREDENTIALS`.
        pub ignore_other_prefixes: bool = false,
        /// What becomes of a request whose token is bad: `error` refuses it, with `WWW-Authenticate`; `continue` goes on as
        /// if it had none, so that it sees what everybody sees. A bad API key is always refused.
        pub on_error: OnTokenError = OnTokenError::Error,
        /// Where else a token is looked for, in order: `{ type: header, name: x-token, value_prefix: Bearer }` or
        /// `{ type: cookie, name: session }`. The first that is there counts, whether it is good or not. Cookies are sent by
        /// browsers for any page, so keep `csrf` on.
        pub sources: Vec<TokenSourceRule> = Vec::new(),
        /// The key sets. A token's issuer chooses among them.
        pub jwks: Vec<JwksOptions> = Vec::new(),
        /// How far the clocks of issuers and this one may differ.
        pub clock_skew: Duration = Duration::seconds(5),
        /// Claims that hold a caller's scopes, each as a text with spaces between them or as a list; all that are there count.
        /// A dot leads into an object, as in `realm_access.roles`.
        pub scopes_claim: ClaimNames = ClaimNames(vec!["scope".into(), "scp".into()]),
        /// Claims that hold the policies (`@policy`) that hold for a caller, likewise.
        pub policies_claim: ClaimNames = ClaimNames(Vec::new()),
        /// Largest token, in bytes.
        pub max_token_size: ByteSize = ByteSize(16 << 10),
        /// Most memory for tokens that were found to be good, which are remembered until they end or their key is gone.
        pub cache_memory: ByteSize = ByteSize(16 << 20),
        /// In so much time a key set is fetched twice at the most because tokens name keys that are not in it. Requests that
        /// come meanwhile share one fetch.
        pub refetch_interval: Duration = Duration::seconds(10),
        /// How long a key that its set does not have any more is still good. An empty set takes all keys back.
        pub removed_keys_grace: Duration = Duration::seconds(300),
        /// How long keys are good while their set cannot be fetched; then requests with its tokens are answered with 503.
        /// Default: as long as the gateway runs.
        pub max_stale: Option<Duration> = None,
        /// What becomes of a start when a key set cannot be fetched and none is kept: `refuse_tokens` serves, and answers
        /// requests with its tokens with 503; `wait` does not serve before it is there; `fail` ends the process. A file that is
        /// missing is a mistake in any case but `wait`: it ends the start, and refuses a reload.
        pub when_missing: WhenKeysMissing = WhenKeysMissing::RefuseTokens,
        /// Folder that the last good key sets of URLs are kept in, and taken from if a URL does not answer at the start.
        /// Empty: nowhere.
        pub last_known_good: String = ".ogive/keys".into(),
    }

    /// `authentication.router.jwt.jwks[]`
    pub struct JwksOptions {
        /// Where the set is: an `https://` URL, or a file as `file:///etc/ogive/jwks.json`, which is watched.
        pub url: Option<KeySetUrl> = None,
        /// Instead of `url`: the issuer, an `https://` URL, that says where its set is (OpenID Connect Discovery). Its
        /// document has to name the same issuer.
        pub discovery: Option<Url> = None,
        /// Whose tokens the keys prove, as in `iss`. Empty: with `discovery` that issuer, else those that no other set is for.
        pub issuers: Vec<String> = Vec::new(),
        /// One of them has to be in `aud` of a token. Empty: any, so tokens for other services count, too.
        pub audiences: Vec<String> = Vec::new(),
        /// What the keys may be used for. Default: what each key is good for, secrets (`HS256`) only if they are in a file.
        pub algorithms: Option<Vec<TokenAlgorithm>> = None,
        /// How often the set is fetched. Default: as long as the answer is fresh (`cache-control`), 30 s at the least and an
        /// hour at the most; 60 s if it does not say.
        pub poll_interval: Option<Duration> = None,
        /// How long a fetch may take; default `5s`.
        pub request_timeout: Duration = Duration::seconds(5),
        /// Headers to send along, as `{ name: x-key, value: "${env.KEY}" }`. With `discovery` they are sent to the issuer's
        /// origin only.
        pub headers: Vec<NamedHeader> = Vec::new(),
        /// Whether a token without an end (`exp`) counts; default no.
        pub allow_missing_exp: bool = false,
        /// Whether the URL may be an `http://` one of another machine. Whoever is on the way can then be anybody.
        /// Default no.
        pub allow_plain_http: bool = false,
    }

    /// `authentication.router.api_keys`
    pub struct ApiKeyOptions {
        /// File with the keys, as JSON: by name the SHA-256 of each key in hex, and what is claimed of whoever has it. It is
        /// watched.
        pub file: String = String::new(),
        /// The header that a key is looked for in.
        pub header_name: HeaderName = HeaderName("x-api-key".into()),
    }
}

section! {
    /// `authentication.router.introspection`
    pub struct IntrospectionOptions {
        /// Where the issuer is asked: an `https://` URL.
        pub endpoint: Url = Url(String::new()),
        /// Who the gateway is to it.
        pub client_id: String = String::new(),
        /// Its secret.
        pub client_secret: SecretText = SecretText::default(),
        /// Where both are: `basic`, in the header `authorization`, or `post`, in the body. Default `basic`.
        pub client_authentication: ClientAuthenticationWord = ClientAuthenticationWord::Basic,
        /// Headers to send along, such as `{ name: authorization, value: "Bearer ${env.KEY}" }` instead of a client.
        pub headers: Vec<NamedHeader> = Vec::new(),
        /// One of them has to be in `aud` of an answer. Empty: any, so tokens for other services count, too.
        pub audiences: Vec<String> = Vec::new(),
        /// How long it may take; after that requests are answered with 503. Default `5s`.
        pub request_timeout: Duration = Duration::seconds(5),
        /// Most requests to it at a time; default 64. Requests wait for one of them no longer than `request_timeout`.
        pub max_in_flight: NonZeroUsize = nonzero(64),
        /// How long a good token is believed without asking again, at most until it ends: as long as one that was taken back
        /// may still count. `0s`: every request asks. Default `60s`.
        pub cache_ttl: Duration = Duration::seconds(60),
        /// How long a token that does not hold is refused without asking again; default `5s`.
        pub inactive_cache_ttl: Duration = Duration::seconds(5),
        /// Most memory for answers; default `16 MiB`.
        pub cache_memory: ByteSize = ByteSize(16 << 20),
        /// Whether `endpoint` may be an `http://` URL of another machine; whoever is on the way can then be anybody. Default no.
        pub allow_plain_http: bool = false,
    }
}

/// Names of the algorithms that tokens may be signed with.
pub fn words_of_tokens() -> &'static [&'static str] {
    TokenAlgorithm::WORDS
}

/// Names of claims: one, or a list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClaimNames(pub Vec<String>);

impl Decode for ClaimNames {
    fn decode(node: &Node, errors: &mut Errors) -> Option<Self> {
        match &node.value {
            Value::Scalar { .. } if !node.is_null() => {
                String::decode(node, errors).map(|name| ClaimNames(vec![name]))
            }
            _ => Vec::decode(node, errors).map(ClaimNames),
        }
    }
}

/// Where a key set is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum KeySetUrl {
    /// On another machine.
    Http(Url),
    /// In a file.
    File(String),
}

impl Decode for KeySetUrl {
    fn decode(node: &Node, errors: &mut Errors) -> Option<Self> {
        let text = errors.scalar(node, "a URL")?;
        if let Some(path) = text.strip_prefix("file://") {
            if path.is_empty() {
                errors.invalid(node.span, "the URL names no file", "write `file:///PATH`");
                return None;
            }
            return Some(KeySetUrl::File(path.to_owned()));
        }
        let url = Url::decode(node, errors)?;
        if !url.0.starts_with("http") {
            errors.invalid(
                node.span,
                format!("`{}` is no URL of a key set", without_secrets(text)),
                "write an `https://` URL, or `file:///PATH`",
            );
            return None;
        }
        Some(KeySetUrl::Http(url))
    }
}

/// A header to send; `Debug` does not show its value.
#[derive(Clone, PartialEq, Eq)]
pub struct NamedHeader {
    /// Its name, in lower case.
    pub name: String,
    /// Its value.
    pub value: String,
}

impl std::fmt::Debug for NamedHeader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NamedHeader")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Decode for NamedHeader {
    fn decode(node: &Node, errors: &mut Errors) -> Option<Self> {
        let [name, value] = crate::decode::fields(node, ["name", "value"], errors)?;
        let (Some(name), Some(value)) = (name, value) else {
            errors.invalid(node.span, "a header needs `name` and `value`", "");
            return None;
        };
        Some(NamedHeader {
            name: crate::decode::header_name(name, errors)?,
            value: crate::decode::header_value(value, errors)?,
        })
    }
}

/// Where a token is looked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TokenSourceRule {
    /// In a header.
    Header {
        /// Its name, in lower case.
        name: String,
        /// What stands before the token.
        value_prefix: String,
    },
    /// In a cookie.
    Cookie {
        /// Its name.
        name: String,
    },
}

impl Decode for TokenSourceRule {
    fn decode(node: &Node, errors: &mut Errors) -> Option<Self> {
        let names = ["type", "name", "value_prefix"];
        let [kind, name, prefix] = crate::decode::fields(node, names, errors)?;
        let (Some(kind), Some(name)) = (kind, name) else {
            errors.invalid(node.span, "a source needs `type` and `name`", "");
            return None;
        };
        match errors.scalar(kind, "`header` or `cookie`")? {
            "header" => Some(TokenSourceRule::Header {
                name: crate::decode::header_name(name, errors)?,
                value_prefix: match prefix {
                    Some(prefix) => errors.scalar(prefix, "a prefix")?.to_owned(),
                    None => "Bearer".to_owned(),
                },
            }),
            "cookie" => {
                if let Some(prefix) = prefix {
                    errors.invalid(prefix.span, "a cookie has no prefix", "");
                    return None;
                }
                Some(TokenSourceRule::Cookie {
                    name: errors.scalar(name, "the name of a cookie")?.to_owned(),
                })
            }
            other => {
                let message = format!("expected `header` or `cookie`, found `{other}`");
                errors.invalid(kind.span, message, "");
                None
            }
        }
    }
}

/// Brings Apollo Router's forms into ours: `authorization.directives` as a mapping, and words with a capital.
pub(crate) fn flatten(root: &mut Node, errors: &mut Errors) {
    if let Some(jwt) = below(root, &["authentication", "router", "jwt"]) {
        for (key, value) in jwt {
            if let ("on_error", Value::Scalar { text, .. }) = (key.text.as_str(), &mut value.value)
                && matches!(text.as_str(), "Error" | "Continue")
            {
                text.make_ascii_lowercase();
            }
        }
    }
    let Some(authorization) = below(root, &["authorization"]) else {
        return;
    };
    let directives = authorization
        .iter_mut()
        .find(|(key, _)| key.text == "directives");
    let Some((_, node)) = directives else { return };
    let Value::Map(entries) = &mut node.value else {
        return;
    };
    let mut enabled = "enforce";
    let mut moved: Vec<(Key, Node)> = Vec::new();
    for (key, value) in std::mem::take(entries) {
        match key.text.as_str() {
            "enabled" => match bool::decode(&value, errors) {
                Some(true) | None => {}
                Some(false) => enabled = "ignore",
            },
            "reject_unauthorized" | "dry_run" => moved.push((key, value)),
            _ => errors.unknown_key(
                &key,
                ["enabled", "reject_unauthorized", "dry_run"].into_iter(),
            ),
        }
    }
    node.value = Value::Scalar {
        text: enabled.to_owned(),
        plain: true,
    };
    for (key, value) in moved {
        if authorization
            .iter()
            .any(|(known, _)| known.text == key.text)
        {
            errors.push(
                crate::codes::DUPLICATE_KEY,
                key.span,
                format!("`{}` is set beside `directives`, too", key.text),
                None,
            );
        } else {
            authorization.push((key, value));
        }
    }
}

/// The entries of the mapping at a path.
fn below<'n>(root: &'n mut Node, path: &[&str]) -> Option<&'n mut Vec<(Key, Node)>> {
    let mut node = root;
    for step in path {
        let Value::Map(entries) = &mut node.value else {
            return None;
        };
        node = entries
            .iter_mut()
            .find(|(key, _)| key.text == *step)
            .map(|(_, node)| node)?;
    }
    match &mut node.value {
        Value::Map(entries) => Some(entries),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use ogive_base::SourceId;

    #[test]
    fn issuers_that_are_asked_know_who_asks_and_are_on_a_way_that_nobody_else_can_use() {
        let load = |options: &str| {
            let text =
                format!("authentication: {{ router: {{ introspection: {{ {options} }} }} }}\n");
            let loaded = crate::load(SourceId(0), &text, &|_| None);
            loaded.map_err(|errors| errors[0].message.clone())
        };
        let client = "client_id: a, client_secret: b";
        for (options, message) in [
            (client.to_owned(), "`introspection` needs `endpoint`"),
            (
                "endpoint: 'https://a.example/'".into(),
                "issuers answer only those they know",
            ),
            (
                "endpoint: 'https://a.example/', client_id: a".into(),
                "`client_id` and `client_secret` go together",
            ),
            (
                format!("endpoint: 'http://a.example/', {client}"),
                "whoever is on the way to the issuer could be anybody, and read tokens",
            ),
        ] {
            assert_eq!(load(&options).unwrap_err(), message, "{options}");
        }
        for options in [
            format!("endpoint: 'https://a.example/', {client}"),
            format!("endpoint: 'http://localhost:1/', {client}"),
            format!("endpoint: 'http://a.example/', {client}, allow_plain_http: true"),
            "endpoint: 'https://a.example/', headers: [{ name: authorization, value: Bearer x }]"
                .into(),
        ] {
            load(&options).unwrap_or_else(|why| panic!("{options}: {why}"));
        }
    }
}
