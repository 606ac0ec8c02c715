//! Who asks, by what the client brings: a token, or an API key. Components that say who asks come before
//! (`components.rs`).
//!
//! What was proved before is looked up at once. Signatures are checked beside the worker ([`Offload`]), because they take as
//! long as many requests. A request that brings nothing goes on without a caller, or with what a trusted proxy says of it;
//! whether that is enough is decided later.

use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue, request::Parts};
use ogive_base::PeerRange;
use ogive_config::{
    CertificateNameWord, ClientAuthenticationWord, ClientCertificateOptions, Config,
    IntrospectionOptions as IntrospectionSection, JwksOptions, JwtOptions, KeySetUrl, OnTokenError,
    TokenAlgorithm, TokenSourceRule, WhenKeysMissing,
};
use ogive_edge::error::{
    CHALLENGE, CHALLENGE_API_KEY, CHALLENGE_CERTIFICATE, RequestError, challenge,
};
use ogive_identity::{
    Algorithm, AlgorithmSet, Authenticator, AuthenticatorOptions, Caller, CallerOptions,
    Credentials, KeyOrigin, KeySetOptions, KeySourceOptions, TokenError, TokenSource,
    api_keys::ApiKeys,
    authenticator::SignatureCheck,
    certificates::{CertificateName, Certificates},
    key_source::now,
    token_introspection::{IntrospectionOptions, TokenIntrospection, is_jwt},
};

use ogive_server::{ClientCertificate, offload::Offload};

use super::caller_options::caller_options;
use crate::{hooks::components::LoadedComponent, policies::headers, shared::context::Identity};

/// After how many seconds clients come back whose token could not be judged.
const RETRY_SECONDS: u64 = 1;

/// How callers are known by what they bring.
#[derive(Clone, PartialEq, Debug)]
pub struct AuthenticationOptions {
    /// Where tokens are looked for.
    credentials: Credentials,
    jwt: Option<AuthenticatorOptions>,
    introspection: Option<IntrospectionOptions>,
    certificate: Option<CertificateName>,
    /// Peers that speak for others, whose certificates say nothing of these.
    proxies: Vec<PeerRange>,
    api_keys: Option<(HeaderName, std::path::PathBuf)>,
    goes_on: bool,
    when_missing: WhenKeysMissing,
    /// Read from files, so they come later.
    pub(crate) components: Vec<LoadedComponent>,
    /// How claims are read that are no token's.
    caller: CallerOptions,
    /// What clients are asked for that are refused.
    pub(crate) challenge: &'static str,
}

impl AuthenticationOptions {
    /// The options that a configuration asks for; `None` if nobody is known by what they bring.
    pub fn new(config: &Config) -> Option<Self> {
        let router = &config.authentication.router;
        if !config.knows_callers() {
            return None;
        }
        let jwt = Some(&router.jwt).filter(|jwt| !jwt.jwks.is_empty());
        let introspection = router.introspection.as_ref();
        let has_tokens = jwt.is_some() || introspection.is_some();
        Some(AuthenticationOptions {
            credentials: if has_tokens {
                credentials(&router.jwt)
            } else {
                Credentials::default()
            },
            jwt: jwt.map(authenticator_options),
            introspection: introspection.map(|options| introspection_options(options, &router.jwt)),
            proxies: {
                let claims = &config.authorization.claims.trusted;
                [claims.as_slice(), &config.http.trusted_proxies].concat()
            },
            certificate: router.client_certificate.as_ref().map(certificate_name),
            api_keys: router.api_keys.as_ref().and_then(|keys| {
                let name = HeaderName::from_bytes(keys.header_name.0.as_bytes()).ok()?;
                Some((name, keys.file.clone().into()))
            }),
            goes_on: has_tokens && router.jwt.on_error == OnTokenError::Continue,
            when_missing: jwt.map_or(WhenKeysMissing::RefuseTokens, |jwt| jwt.when_missing),
            components: Vec::new(),
            caller: caller_options(&router.jwt),
            challenge: challenge(config),
        })
    }
}

impl AuthenticationOptions {
    /// Components that are asked first, in order.
    pub(crate) fn components(&self) -> &[LoadedComponent] {
        &self.components
    }
    /// How claims are read that are no token's.
    pub(crate) fn caller_options(&self) -> &CallerOptions {
        &self.caller
    }
    /// Where tokens are looked for.
    pub(crate) fn credentials(&self) -> &Credentials {
        &self.credentials
    }
    /// Where it is looked for what says who asks, for people.
    pub(crate) fn places(&self) -> String {
        let mut places: Vec<String> = self
            .credentials
            .sources
            .iter()
            .map(ToString::to_string)
            .collect();
        if let Some((name, _)) = &self.api_keys {
            places.push(format!("the header `{name}` (API keys)"));
        }
        if self.certificate.is_some() {
            places.push("the client certificate".to_owned());
        }
        let components = self.components.iter();
        places.extend(components.map(|of| of.hook.word().to_owned()));
        places.join(", ")
    }
    /// The header that API keys are in, if there are any.
    pub(crate) fn api_key_header(&self) -> Option<&HeaderName> {
        self.api_keys.as_ref().map(|(name, _)| name)
    }
}

fn introspection_options(options: &IntrospectionSection, jwt: &JwtOptions) -> IntrospectionOptions {
    let audiences = options.audiences.iter();
    IntrospectionOptions {
        endpoint: options.endpoint.0.clone(),
        client_id: options.client_id.clone(),
        client_secret: options.client_secret.0.clone(),
        in_body: options.client_authentication == ClientAuthenticationWord::Post,
        headers: headers(&options.headers),
        audiences: audiences.map(|audience| audience.as_str().into()).collect(),
        caller: caller_options(jwt),
        clock_skew: jwt.clock_skew.0,
        timeout: options.request_timeout.0,
        in_flight_max: options.max_in_flight.get(),
        ttl: options.cache_ttl.0,
        inactive_ttl: options.inactive_cache_ttl.0,
        cache_bytes_max: options.cache_memory.0,
        token_bytes_max: jwt.max_token_size.0,
    }
}

fn certificate_name(options: &ClientCertificateOptions) -> CertificateName {
    match options.sub_from {
        CertificateNameWord::Subject => CertificateName::Subject,
        CertificateNameWord::CommonName => CertificateName::CommonName,
        CertificateNameWord::Dns => CertificateName::Dns,
        CertificateNameWord::Uri => CertificateName::Uri,
        CertificateNameWord::Email => CertificateName::Email,
    }
}

fn credentials(jwt: &JwtOptions) -> Credentials {
    let header = |name: &str, prefix: &str| {
        let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
        let prefix = prefix.trim().into();
        Some(TokenSource::Header { name, prefix })
    };
    let first = header(&jwt.header_name.0, &jwt.header_value_prefix);
    let others = jwt.sources.iter().filter_map(|source| match source {
        TokenSourceRule::Header { name, value_prefix } => header(name, value_prefix),
        TokenSourceRule::Cookie { name } => Some(TokenSource::Cookie {
            name: name.as_str().into(),
        }),
    });
    Credentials {
        sources: first.into_iter().chain(others).collect(),
        ignore_other_prefixes: jwt.ignore_other_prefixes,
    }
}

fn authenticator_options(jwt: &JwtOptions) -> AuthenticatorOptions {
    AuthenticatorOptions {
        credentials: credentials(jwt),
        sets: jwt
            .jwks
            .iter()
            .filter_map(|set| key_set(set, jwt))
            .collect(),
        caller: caller_options(jwt),
        clock_skew: jwt.clock_skew.0,
        token_bytes_max: jwt.max_token_size.0,
        cache_bytes_max: jwt.cache_memory.0,
    }
}

/// The configuration was checked when it was read, so no set is lost here.
fn key_set(set: &JwksOptions, jwt: &JwtOptions) -> Option<KeySetOptions> {
    let origin = match (&set.url, &set.discovery) {
        (Some(KeySetUrl::File(path)), _) => KeyOrigin::File(path.into()),
        (Some(KeySetUrl::Http(url)), _) => KeyOrigin::Url(url.0.clone()),
        (None, Some(issuer)) => KeyOrigin::Discovery(issuer.0.clone()),
        (None, None) => return None,
    };
    let defaults = KeySetOptions::new(origin);
    let texts = |texts: &[String]| texts.iter().map(|text| text.as_str().into()).collect();
    let allowed = set.algorithms.as_ref().map(|words| {
        let all: Vec<Algorithm> = words.iter().filter_map(algorithm).collect();
        AlgorithmSet::of(&all)
    });
    let mut headers = HeaderMap::new();
    for header in &set.headers {
        let name = HeaderName::from_bytes(header.name.as_bytes()).ok()?;
        let mut value = HeaderValue::from_str(&header.value).ok()?;
        value.set_sensitive(true);
        headers.append(name, value);
    }
    Some(KeySetOptions {
        source: KeySourceOptions {
            algorithms: allowed.unwrap_or(defaults.source.algorithms),
            headers,
            poll_interval: set.poll_interval.map(|interval| interval.0),
            timeout: set.request_timeout.0,
            refetch_interval: jwt.refetch_interval.0,
            grace: jwt.removed_keys_grace.0,
            max_stale: jwt.max_stale.map(|limit| limit.0),
            kept: (!jwt.last_known_good.is_empty()).then(|| jwt.last_known_good.clone().into()),
            allow_plain_http: set.allow_plain_http,
            ..defaults.source
        },
        issuers: match set.issuers.as_slice() {
            [] => defaults.issuers,
            named => texts(named),
        },
        audiences: texts(&set.audiences),
        allow_missing_exp: set.allow_missing_exp,
    })
}

fn algorithm(word: &TokenAlgorithm) -> Option<Algorithm> {
    Algorithm::parse(word.word())
}

/// What keeps the key sets up, and knows who was known before.
#[derive(Debug)]
pub struct Authentication {
    options: AuthenticationOptions,
    jwt: Option<Authenticator>,
    introspection: Option<TokenIntrospection>,
    certificates: Option<Certificates>,
    api_keys: Option<ApiKeys>,
}

/// Who asks, or why that is refused.
pub(crate) type CallerVerdict = Result<Arc<Caller>, RequestError>;

/// What a token says, as far as it can be said at once.
enum Found {
    /// Known by it, or refused.
    Settled(Result<Arc<Caller>, TokenError>),
    /// To be proved.
    Token(String, ogive_identity::digest::Digest),
    /// To be asked about.
    Opaque(String),
}

impl Authentication {
    /// Begins to keep up what the options ask for; what `before` keeps up goes on.
    pub(crate) fn start(options: AuthenticationOptions, before: Option<&Authentication>) -> Self {
        let known = before.and_then(|before| before.jwt.as_ref());
        let jwt = options.jwt.clone();
        Authentication {
            jwt: jwt.map(|jwt| Authenticator::start(jwt, known)),
            introspection: options.introspection.clone().map(TokenIntrospection::new),
            certificates: options.certificate.map(Certificates::new),
            api_keys: options
                .api_keys
                .clone()
                .map(|(_, path)| ApiKeys::start(path)),
            options,
        }
    }
    /// Whether it is what these options ask for.
    pub(crate) fn is_for(&self, options: &AuthenticationOptions) -> bool {
        self.options == *options
    }
    /// What it was asked for.
    pub(crate) fn options(&self) -> &AuthenticationOptions {
        &self.options
    }
    /// Waits until each key set was asked for once, whatever came of that.
    pub(crate) async fn tried(&self) {
        for source in self.jwt.iter().flat_map(Authenticator::sources) {
            source.tried().await;
        }
    }
    /// What judges tokens.
    pub fn jwt(&self) -> Option<&Authenticator> {
        self.jwt.as_ref()
    }

    /// What is asked about tokens that only their issuer can read.
    pub fn introspection(&self) -> Option<&TokenIntrospection> {
        self.introspection.as_ref()
    }

    /// Waits for keys, if the configuration asks for it. The error says what does not come, and why.
    pub async fn ready(&self) -> Result<(), String> {
        let wait = self.options.when_missing;
        if wait == WhenKeysMissing::RefuseTokens {
            return Ok(());
        }
        for source in self.jwt.iter().flat_map(Authenticator::sources) {
            while !source.tried().await {
                if wait == WhenKeysMissing::Fail {
                    let why = source
                        .failure()
                        .unwrap_or_else(|| "it takes too long".into());
                    return Err(format!(
                        "there is no key set from `{}`: {why}",
                        source.options().shown()
                    ));
                }
                // It is asked for again and again.
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            }
        }
        Ok(())
    }

    /// Who asks, by what a request brings; `None` if it brings nothing, or nothing that counts.
    pub(crate) async fn identify(
        &self,
        parts: &Parts,
        identity: &Identity,
        offload: &Offload,
    ) -> Option<Result<Arc<Caller>, RequestError>> {
        let without =
            || self.without_token(&identity.api_key, || self.certificate(parts, identity));
        self.judge(self.token(&parts.headers), without, offload)
            .await
    }

    /// The token of a request.
    pub(crate) fn token<'h>(&self, headers: &'h HeaderMap) -> Result<Option<&'h str>, TokenError> {
        self.options.credentials.find(headers)
    }

    /// Who asks, by a token, or `without` one.
    pub(crate) async fn judge(
        &self,
        token: Result<Option<&str>, TokenError>,
        without: impl Fn() -> Option<Result<Arc<Caller>, RequestError>>,
        offload: &Offload,
    ) -> Option<Result<Arc<Caller>, RequestError>> {
        let found = match token {
            Ok(None) => return without(),
            Ok(Some(token)) => self.found(token),
            Err(error) => Found::Settled(Err(error)),
        };
        let found = match found {
            Found::Settled(found) => found,
            Found::Token(token, digest) => Box::pin(self.prove(&token, digest, offload)).await,
            Found::Opaque(token) => match &self.introspection {
                Some(endpoint) => {
                    let asked = Box::pin(endpoint.caller(&token)).await;
                    asked.map(|(caller, _)| caller)
                }
                None => Err(TokenError::NoKeys),
            },
        };
        Some(match found {
            Ok(caller) => Ok(caller),
            Err(error) if self.options.goes_on && error.bearer_error().is_some() => {
                tracing::debug!(%error, "a token is bad; its request goes on as if it had none");
                return without();
            }
            Err(error) => Err(refusal(error)),
        })
    }

    /// Who asks, by what else there is than a token.
    pub(crate) fn without_token<'c>(
        &self,
        api_key: &[HeaderValue],
        certificate: impl FnOnce() -> Option<&'c ClientCertificate>,
    ) -> Option<Result<Arc<Caller>, RequestError>> {
        if let Some(keys) = self.api_keys.as_ref().filter(|_| !api_key.is_empty()) {
            return Some(keys.caller(api_key, now()).map_err(refused_key));
        }
        let (shown, certificates) = (certificate()?, self.certificates.as_ref()?);
        Some(
            certificates
                .caller(&shown.0, now())
                .map_err(refused_certificate),
        )
    }

    /// Whether callers are known by API keys.
    pub(crate) fn knows_api_keys(&self) -> bool {
        self.api_keys.is_some()
    }

    /// The certificate that says who asks.
    pub(crate) fn certificate<'r>(
        &self,
        parts: &'r Parts,
        identity: &Identity,
    ) -> Option<&'r ClientCertificate> {
        self.certificates.as_ref()?;
        // The certificate of a proxy is its own, not that of whom it speaks for, also if it says nothing of that one.
        let (peer, mut proxies) = (identity.peer.client(), self.options.proxies.iter());
        let is_spoken_for = proxies.any(|range| range.contains(peer));
        let shown = parts.extensions.get::<ClientCertificate>();
        shown.filter(|_| !is_spoken_for)
    }

    /// Whether only its issuer can read a token.
    pub(crate) fn is_opaque(&self, token: &str) -> bool {
        match (&self.jwt, &self.introspection) {
            (Some(_), other) => other.is_some() && !is_jwt(token),
            (None, _) => true,
        }
    }

    /// Who judges a token.
    fn found(&self, token: &str) -> Found {
        match &self.jwt {
            Some(jwt) if !self.is_opaque(token) => match jwt.recall(token, now()) {
                Ok(caller) => Found::Settled(Ok(caller)),
                Err(digest) => Found::Token(token.to_owned(), digest),
            },
            _ => Found::Opaque(token.to_owned()),
        }
    }

    async fn prove(
        &self,
        token: &str,
        digest: ogive_identity::digest::Digest,
        offload: &Offload,
    ) -> Result<Arc<Caller>, TokenError> {
        let Some(jwt) = &self.jwt else {
            return Err(TokenError::NoKeys);
        };
        let check = async |check: SignatureCheck| offload.run(check).await;
        jwt.prove(token, digest, now(), check).await
    }
}

/// What a client with an API key is told.
fn refused_key(error: TokenError) -> RequestError {
    let challenge = (error == TokenError::ApiKey).then(|| CHALLENGE_API_KEY.into());
    RequestError {
        challenge,
        ..RequestError::http(error.code(), error.description())
    }
}

/// What a client is told whose certificate names nobody.
fn refused_certificate(error: TokenError) -> RequestError {
    RequestError {
        challenge: Some(CHALLENGE_CERTIFICATE.into()),
        ..RequestError::http(error.code(), error.description())
    }
}

/// What a client with a token is told (RFC 6750, section 3.1).
pub(crate) fn refusal(error: TokenError) -> RequestError {
    let unavailable = matches!(error, TokenError::NoKeys | TokenError::Unanswered);
    let challenge = error.bearer_error().map(|word| {
        let description = error.description();
        format!("{CHALLENGE}, error=\"{word}\", error_description=\"{description}\"")
    });
    RequestError {
        retry_after: unavailable.then_some(RETRY_SECONDS),
        challenge: challenge
            .or_else(|| (!unavailable).then(|| CHALLENGE.to_owned()))
            .map(Into::into),
        ..RequestError::http(error.code(), error.description())
    }
}
