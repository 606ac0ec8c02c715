//! Credentials that are withdrawn end what goes on by them (RFC 7009 calls it revocation): subscriptions, and answers in
//! parts.
//!
//! A request is judged when it comes. What goes on behind it is judged again every `authorization.revocation.check_interval`,
//! by what the client has brought ([`Credential`]), so that all ways in which a credential may end are one: an API key
//! that its file does not have any more, a token that its issuer does not call active, a key that is gone from its set.
//! Policies are decided again, too. Who does not hold any more is told so by the code that a request would get now.
//!
//! Nothing is kept of operations whose callers brought nothing and need no policy. Who judges is
//! [`crate::background::revocation`].

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use ogive_base::FastMap;
use ogive_edge::error::RequestError;
use ogive_identity::Caller;
use ogive_plan::{Granted, Plan};

use super::credential::Credential;

/// Something that goes on behind its request, and can be ended.
pub(crate) trait Revocable: Send + Sync {
    /// Ends it with this error.
    fn revoke(&self, how: Revoked);
}

/// How something ends.
#[derive(Clone, Debug)]
pub(crate) enum Revoked {
    /// The credential does not hold any more.
    Credential(RequestError),
    /// It does, and the caller may see something else than before.
    Authorization(RequestError),
}

/// All that goes on by a credential, or by a policy.
#[derive(Default)]
pub(crate) struct Revocations {
    watched: Mutex<FastMap<u64, Arc<RevocableOperation>>>,
    next: AtomicU64,
}

impl fmt::Debug for Revocations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Revocations").finish_non_exhaustive()
    }
}

/// One operation.
pub(crate) struct RevocableOperation {
    pub(crate) operation: Weak<dyn Revocable>,
    pub(crate) credential: Mutex<Option<Arc<Credential>>>,
    /// Who the credential said that the caller is; not set where the first judgement says it.
    pub(crate) known: OnceLock<Arc<Caller>>,
    /// What was decided of policies, if any were.
    pub(crate) demands: Option<Demands>,
    /// Since when it is asked in vain whether the credential still holds.
    pub(crate) credential_unanswered: Mutex<Option<Instant>>,
    /// Likewise what is decided of the policies.
    pub(crate) policies_unanswered: Mutex<Option<Instant>>,
}

/// What was decided of policies.
pub(crate) struct Demands {
    /// Who asks.
    pub(crate) caller: Arc<Caller>,
    /// Policies that a coprocessor has decided, which is not asked again.
    pub(crate) told: Vec<Box<str>>,
    pub(crate) plan: Arc<Plan>,
    /// What was granted because of it.
    pub(crate) granted: Granted,
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps an operation watched until it is dropped.
pub(crate) struct RevocationGuard {
    all: Arc<Revocations>,
    number: u64,
}

impl fmt::Debug for RevocationGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RevocationGuard")
            .field(&self.number)
            .finish()
    }
}

impl RevocationGuard {
    /// It goes on by another credential of the same caller.
    pub(crate) fn renew(&self, credential: Option<Arc<Credential>>) {
        let watched = lock(&self.all.watched).get(&self.number).map(Arc::clone);
        if let Some(watched) = watched {
            *lock(&watched.credential) = credential;
        }
    }
}

impl Drop for RevocationGuard {
    fn drop(&mut self) {
        let watched = lock(&self.all.watched).remove(&self.number);
        drop(watched);
    }
}

impl Revocations {
    /// Watches an operation that goes on.
    pub(crate) fn watch(self: &Arc<Self>, watched: RevocableOperation) -> RevocationGuard {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        lock(&self.watched).insert(number, Arc::new(watched));
        RevocationGuard {
            all: Arc::clone(self),
            number,
        }
    }
    /// All of them, in the order in which they came.
    pub(crate) fn all(&self) -> Vec<Arc<RevocableOperation>> {
        let watched = lock(&self.watched);
        let all: BTreeMap<u64, Arc<RevocableOperation>> = watched
            .iter()
            .map(|(number, watched)| (*number, Arc::clone(watched)))
            .collect();
        drop(watched);
        all.into_values().collect()
    }
}
