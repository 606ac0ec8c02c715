//! Judges tokens: which key set, which key, which claims.
//!
//! The issuer that a token names chooses key sets, before anything is proved: those that are for this issuer; else, if no
//! set is, those that are for any. Of these the keys of its `kid` are tried, and no others. So whoever holds a key of one
//! issuer cannot make tokens of another, even if both keys have one name.

use std::{sync::Arc, time::Duration};

use crate::{
    algorithm::Algorithm,
    caller::{Caller, CallerOptions},
    claims::{self, ClaimRules},
    credentials::Credentials,
    digest::{Digest, digest_of},
    error::TokenError,
    jwk::Key,
    key_origin::{KeyOrigin, KeySourceOptions},
    key_source::{KeySource, Refetch},
    token::{TOKEN_BYTES_MAX, Token},
    token_cache::{TokenCache, Verified, size_of},
};

/// What holds for the tokens of one key set.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeySetOptions {
    /// Where the keys are.
    pub source: KeySourceOptions,
    /// Issuers whose tokens they prove; none listed: those that no other set is for.
    pub issuers: Vec<Box<str>>,
    /// One of these has to be in `aud`; none listed: whatever it says.
    pub audiences: Vec<Box<str>>,
    /// Whether a token may be without an end.
    pub allow_missing_exp: bool,
}

impl KeySetOptions {
    /// A set with defaults.
    pub fn new(origin: KeyOrigin) -> Self {
        let issuers = match &origin {
            KeyOrigin::Discovery(issuer) => vec![issuer.as_str().into()],
            _ => Vec::new(),
        };
        KeySetOptions {
            source: KeySourceOptions::new(origin),
            issuers,
            audiences: Vec::new(),
            allow_missing_exp: false,
        }
    }
}

/// How tokens are judged.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AuthenticatorOptions {
    /// Where requests have their token.
    pub credentials: Credentials,
    /// The key sets.
    pub sets: Vec<KeySetOptions>,
    /// How claims are read.
    pub caller: CallerOptions,
    /// How far clocks may differ.
    pub clock_skew: Duration,
    /// Largest token, in bytes.
    pub token_bytes_max: usize,
    /// Most bytes of tokens that are remembered.
    pub cache_bytes_max: usize,
}

impl Default for AuthenticatorOptions {
    fn default() -> Self {
        AuthenticatorOptions {
            credentials: Credentials::default(),
            sets: Vec::new(),
            caller: CallerOptions::default(),
            clock_skew: Duration::from_secs(5),
            token_bytes_max: TOKEN_BYTES_MAX,
            cache_bytes_max: 16 << 20,
        }
    }
}

/// Judges tokens.
#[derive(Debug)]
pub struct Authenticator {
    options: AuthenticatorOptions,
    /// Those of the options, in order.
    sources: Box<[Arc<KeySource>]>,
    verified: TokenCache,
}

/// Checks signatures, one key after the other; gives the place of the key that made it. Made to be sent to another thread.
pub type SignatureCheck = Box<dyn FnOnce() -> Option<usize> + Send>;

/// What judged a token, for people who want to know.
#[derive(Clone, Debug)]
pub struct Judged {
    /// Who asks.
    pub caller: Arc<Caller>,
    /// The place of the key set in the configuration.
    pub set: usize,
    /// The name of the key.
    pub kid: Option<String>,
    /// How the token is signed.
    pub algorithm: Algorithm,
    /// The second since 1970 from which on it does not hold.
    pub end: u64,
}

impl Authenticator {
    /// Begins to keep the key sets up. Those that `before` has, too, go on.
    pub fn start(options: AuthenticatorOptions, before: Option<&Authenticator>) -> Self {
        let mut sources: Vec<Arc<KeySource>> = Vec::with_capacity(options.sets.len());
        for set in &options.sets {
            let known = before.into_iter().flat_map(|before| &before.sources);
            let found = known
                .chain(&sources)
                .find(|source| *source.options() == set.source);
            let source = match found {
                Some(source) => Arc::clone(source),
                None => Arc::new(KeySource::start(set.source.clone())),
            };
            sources.push(source);
        }
        Authenticator {
            verified: TokenCache::new(options.cache_bytes_max),
            sources: sources.into(),
            options,
        }
    }

    /// How tokens are judged.
    pub fn options(&self) -> &AuthenticatorOptions {
        &self.options
    }
    /// The key sets, in the order of the configuration.
    pub fn sources(&self) -> &[Arc<KeySource>] {
        &self.sources
    }
    /// Tokens that are remembered.
    pub fn remembered(&self) -> &TokenCache {
        &self.verified
    }

    /// The caller of a token that was proved before, and its digest.
    pub fn recall(&self, token: &str, now: u64) -> Result<Arc<Caller>, Digest> {
        let digest = digest_of(token.as_bytes());
        self.verified.get(&digest, now).ok_or(digest)
    }

    /// Judges a token that was not proved before, and remembers it. `check` runs what takes long, on another thread if that
    /// is wanted.
    pub async fn prove(
        &self,
        token: &str,
        digest: Digest,
        now: u64,
        check: impl AsyncFn(SignatureCheck) -> Option<usize>,
    ) -> Result<Arc<Caller>, TokenError> {
        let (judged, key) = self.judge(token, now, &check).await?;
        let proved = Verified {
            caller: Arc::clone(&judged.caller),
            end: judged.end,
            key,
            size: size_of(token.len()),
        };
        self.verified.insert(digest, proved);
        Ok(judged.caller)
    }

    /// Judges a token at a time in seconds since 1970.
    pub async fn judge(
        &self,
        token: &str,
        now: u64,
        check: &impl AsyncFn(SignatureCheck) -> Option<usize>,
    ) -> Result<(Judged, Arc<Key>), TokenError> {
        let token = Token::parse(token.as_bytes(), self.options.token_bytes_max)?;
        let sets = self.sets_for(claims::issuer(&token.claims)?)?;
        let mut found = self.signers(&sets, &token, now, &check).await?;
        // Who names no key may have signed with one that is new.
        if found.is_empty() && token.kid.is_none() {
            match self.fetch_again(&sets).await {
                Refetch::Fresh => found = self.signers(&sets, &token, now, &check).await?,
                Refetch::Failed => return Err(TokenError::Unanswered),
            }
        }
        let (set, key, end) = self.accepting(found, &token, now)?;
        let judged = Judged {
            caller: Arc::new(Caller::proved(token.claims, &self.options.caller)),
            set,
            kid: key.kid().map(str::to_owned),
            algorithm: token.algorithm,
            end,
        };
        Ok((judged, key))
    }

    /// The first of the sets that has the key of a token and accepts its claims, and when they end.
    fn accepting(
        &self,
        signers: Vec<(usize, Arc<Key>)>,
        token: &Token<'_>,
        now: u64,
    ) -> Result<(usize, Arc<Key>, u64), TokenError> {
        let mut first = None;
        for (set, key) in signers {
            let options = &self.options.sets[set];
            let rules = ClaimRules {
                audiences: &options.audiences,
                allow_missing_exp: options.allow_missing_exp,
                skew: self.options.clock_skew.as_secs(),
            };
            match claims::check(&token.claims, rules, now) {
                Ok(end) => return Ok((set, key, end)),
                Err(error) => first = first.or(Some(error)),
            }
        }
        Err(first.unwrap_or(TokenError::Signature))
    }

    /// The key that made the signature of a token, as often as it is there, each time with the place of its set; nothing if
    /// no key that may have did.
    async fn signers(
        &self,
        sets: &[usize],
        token: &Token<'_>,
        now: u64,
        check: &impl AsyncFn(SignatureCheck) -> Option<usize>,
    ) -> Result<Vec<(usize, Arc<Key>)>, TokenError> {
        let candidates = self.candidates(sets, token, now).await?;
        let keys: Vec<Arc<Key>> = candidates.iter().map(|(_, key)| Arc::clone(key)).collect();
        let (algorithm, is_slow) = (token.algorithm, keys.iter().any(|key| key.is_slow()));
        let (signed, signature) = (token.signed.to_vec(), token.signature.clone());
        let work = move || {
            let mut keys = keys.iter();
            keys.position(|key| key.verifies(algorithm, &signed, &signature))
        };
        let found = if is_slow {
            check(Box::new(work)).await
        } else {
            work()
        };
        let Some(signer) = found.and_then(|found| candidates.get(found)) else {
            return Ok(Vec::new());
        };
        let signer = Arc::clone(&signer.1);
        let is_signer = |(_, key): &(usize, Arc<Key>)| signer.is_made_like(key);
        Ok(candidates.into_iter().filter(is_signer).collect())
    }

    /// The places of the key sets for an issuer.
    fn sets_for(&self, issuer: Option<&str>) -> Result<Vec<usize>, TokenError> {
        let sets = || self.options.sets.iter().enumerate();
        let is_named = |set: &KeySetOptions| {
            let mut issuers = set.issuers.iter();
            issuer.is_some_and(|issuer| issuers.any(|known| **known == *issuer))
        };
        let named: Vec<usize> = sets()
            .filter(|(_, set)| is_named(set))
            .map(|(at, _)| at)
            .collect();
        if !named.is_empty() {
            return Ok(named);
        }
        let any: Vec<usize> = sets()
            .filter(|(_, set)| set.issuers.is_empty())
            .map(|(at, _)| at)
            .collect();
        if any.is_empty() {
            Err(TokenError::UnknownIssuer)
        } else {
            Ok(any)
        }
    }

    /// The keys that a token may be signed with; fetched again if there is none of that name.
    async fn candidates(
        &self,
        sets: &[usize],
        token: &Token<'_>,
        now: u64,
    ) -> Result<Vec<(usize, Arc<Key>)>, TokenError> {
        match self.look_up(sets, token, now) {
            // A key of the name is there: fetching would not make it one of another kind.
            Err(TokenError::UnknownKey | TokenError::NoKeys) => {}
            found => return found,
        }
        let fetched = self.fetch_again(sets).await;
        match self.look_up(sets, token, now) {
            // Only a set that was fetched shows that a key is not there.
            Err(TokenError::UnknownKey) if fetched != Refetch::Fresh => Err(TokenError::Unanswered),
            found => found,
        }
    }

    /// Has key sets fetched again, or waits for the first fetch. Tells the worst that came of it.
    async fn fetch_again(&self, sets: &[usize]) -> Refetch {
        let mut worst = Refetch::Fresh;
        for source in sets.iter().map(|set| &self.sources[*set]) {
            let came = match source.keys().is_none() && source.failure().is_none() {
                // What was kept on disk is not what there is now.
                true if source.tried().await && source.failure().is_none() => Refetch::Fresh,
                true => Refetch::Failed,
                false => source.refetch().await,
            };
            worst = worst.max(came);
        }
        worst
    }

    fn look_up(
        &self,
        sets: &[usize],
        token: &Token<'_>,
        now: u64,
    ) -> Result<Vec<(usize, Arc<Key>)>, TokenError> {
        let kid = token.kid.as_deref();
        let (mut out, mut is_named, mut is_missing) = (Vec::new(), false, false);
        for set in sets {
            let Some(keys) = self.sources[*set].keys() else {
                is_missing = true;
                continue;
            };
            is_named |= keys.named(kid, now).next().is_some();
            let found = keys.find(kid, token.algorithm, now);
            out.extend(found.map(|key| (*set, Arc::clone(key))));
        }
        match (out.is_empty(), is_missing, is_named) {
            (false, ..) => Ok(out),
            (true, true, _) => Err(TokenError::NoKeys),
            (true, false, true) => Err(TokenError::Algorithm),
            (true, false, false) => Err(TokenError::UnknownKey),
        }
    }
}
