//! Decides whether an answer is stored, for which callers, and how long (RFC 9111, sections 3 and 3.5).
//!
//! The rules are stricter than RFC 9111 where that protects one caller's data from another:
//!
//! - An answer without `public` and `s-maxage` is stored for the credentials of its request only, even if the request had
//!   none: a caller with a token never gets the answer to an anonymous caller. `must-revalidate` does not permit sharing,
//!   because most servers that send it do not mean that.
//! - `cookie` counts as a credential.
//! - Only answers with status 200 and without errors are stored.

use http::{HeaderMap, HeaderName, header};

use crate::{
    Directives, Exchange, Lifetime, LifetimePolicy, Scope, Validators, Vary, VaryRecord,
    directives::joined,
};

/// Headers that identify the caller. A key contains a digest of their values.
pub const CREDENTIALS: [HeaderName; 2] = [header::AUTHORIZATION, header::COOKIE];

/// Response headers that are for one client only.
const OF_ONE_CLIENT: [&str; 4] = [
    "set-cookie",
    "set-cookie2",
    "www-authenticate",
    "authentication-info",
];

/// Which answers are stored, as the operator configures it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StoringPolicy {
    /// How long answers are stored.
    pub lifetime: LifetimePolicy,
    /// Whether callers with different credentials share answers that do not say `public`. Default no.
    pub shared_with_credentials: bool,
    /// Whether the caller of this crate can send conditional requests, so that answers that must be validated before each
    /// use are stored. Default no.
    pub revalidates: bool,
    /// Largest entry, in bytes. Default 1 MiB.
    pub entry_bytes_max: usize,
}

impl Default for StoringPolicy {
    fn default() -> Self {
        StoringPolicy {
            lifetime: LifetimePolicy::default(),
            shared_with_credentials: false,
            revalidates: false,
            entry_bytes_max: 1 << 20,
        }
    }
}

/// An answer about which [`decide`] decides.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// HTTP status code.
    pub status: u16,
    /// Headers.
    pub headers: &'a HeaderMap,
    /// Bytes of the body.
    pub bytes: usize,
    /// Whether the body has errors.
    pub has_errors: bool,
    /// When the request was sent, and when the answer arrived.
    pub exchange: Exchange,
}

/// Why an answer is not stored. The names of this closed list are values in metrics.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum StoringRefusal {
    /// Neither the answer nor the operator states a lifetime, or the lifetime has passed.
    NoLifetime,
    /// The answer says `no-store`.
    NoStore,
    /// The answer says `private`, and the caller has no private id.
    PrivateWithoutId,
    /// The answer sets a cookie, or has another header for one client only.
    SetCookie,
    /// The answer says `Vary: *`.
    VaryStar,
    /// The status is not 200, or the body has errors.
    Error,
    /// The body is not complete.
    Partial,
    /// A hook answered, or may have changed the answer.
    Hook,
    /// The answer is larger than an entry may be.
    TooBig,
    /// The request was a mutation.
    Mutation,
    /// A tag of the answer was invalidated while the request was in flight.
    InvalidatedMeanwhile,
    /// The client has used its share of the memory.
    ClientShare,
    /// The memory of the process is needed for requests.
    OutOfMemory,
}

impl StoringRefusal {
    /// All of them.
    pub const ALL: [StoringRefusal; 13] = [
        StoringRefusal::NoLifetime,
        StoringRefusal::NoStore,
        StoringRefusal::PrivateWithoutId,
        StoringRefusal::SetCookie,
        StoringRefusal::VaryStar,
        StoringRefusal::Error,
        StoringRefusal::Partial,
        StoringRefusal::Hook,
        StoringRefusal::TooBig,
        StoringRefusal::Mutation,
        StoringRefusal::InvalidatedMeanwhile,
        StoringRefusal::ClientShare,
        StoringRefusal::OutOfMemory,
    ];

    /// Its name in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            StoringRefusal::NoLifetime => "no_lifetime",
            StoringRefusal::NoStore => "no_store",
            StoringRefusal::PrivateWithoutId => "private_without_id",
            StoringRefusal::SetCookie => "set_cookie",
            StoringRefusal::VaryStar => "vary_star",
            StoringRefusal::Error => "error",
            StoringRefusal::Partial => "partial",
            StoringRefusal::Hook => "hook",
            StoringRefusal::TooBig => "too_big",
            StoringRefusal::Mutation => "mutation",
            StoringRefusal::InvalidatedMeanwhile => "invalidated_meanwhile",
            StoringRefusal::ClientShare => "client_share",
            StoringRefusal::OutOfMemory => "out_of_memory",
        }
    }
}

/// How an answer is stored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Storable {
    /// How long it may be used.
    pub lifetime: Lifetime,
    /// The headers and callers on which it depends.
    pub vary: VaryRecord,
    /// Validators by which the subgraph confirms later that the answer has not changed.
    pub validators: Validators,
}

/// Decides whether an answer is stored. `has_private_id`: whether the caller has an id of the operator's choice.
pub fn decide(
    answer: Answer<'_>,
    has_private_id: bool,
    policy: &StoringPolicy,
) -> Result<Storable, StoringRefusal> {
    let headers = answer.headers;
    if answer.status != 200 || answer.has_errors {
        return Err(StoringRefusal::Error);
    }
    let directives = Directives::of(headers);
    // The cache understands status 200, so `must-understand` overrides `no-store`.
    if directives.no_store && !directives.must_understand {
        return Err(StoringRefusal::NoStore);
    }
    if OF_ONE_CLIENT.iter().any(|name| headers.contains_key(*name)) {
        return Err(StoringRefusal::SetCookie);
    }
    if directives.private && !has_private_id {
        return Err(StoringRefusal::PrivateWithoutId);
    }
    if answer.bytes > policy.entry_bytes_max {
        return Err(StoringRefusal::TooBig);
    }
    let vary = vary_record(headers, &directives, policy)?;
    let lifetime = Lifetime::of(headers, &directives, answer.exchange, &policy.lifetime);
    let lifetime = lifetime.ok_or(StoringRefusal::NoLifetime)?;
    let validators = if policy.revalidates {
        Validators::of(headers)
    } else {
        Validators::default()
    };
    let is_over = lifetime.ends_at() <= answer.exchange.answered_at;
    if is_over && validators.is_empty() {
        return Err(StoringRefusal::NoLifetime);
    }
    Ok(Storable {
        lifetime,
        vary,
        validators,
    })
}

fn vary_record(
    headers: &HeaderMap,
    directives: &Directives,
    policy: &StoringPolicy,
) -> Result<VaryRecord, StoringRefusal> {
    let says_everyone = directives.public || directives.s_maxage.is_some();
    let is_shared = says_everyone || policy.shared_with_credentials;
    let mut scope = Scope {
        by_credentials: !is_shared && !directives.private,
        by_private_id: directives.private,
    };
    if !headers.contains_key(header::VARY) {
        return Ok(VaryRecord::new(Vary::AllHeaders, scope));
    }
    // Names that cannot be read could be any names.
    let text = joined(headers, &header::VARY).ok_or(StoringRefusal::VaryStar)?;
    let mut names = Vec::new();
    for name in text
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty())
    {
        if name == "*" {
            return Err(StoringRefusal::VaryStar);
        }
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| StoringRefusal::VaryStar)?;
        if CREDENTIALS.contains(&name) {
            scope.by_credentials = true;
        }
        names.push(name);
    }
    Ok(VaryRecord::new(Vary::naming(names), scope))
}
