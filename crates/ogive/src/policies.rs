//! Policies in Rust: who decides what `@policy` asks for.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use ogive_gateway::LoadedPolicies;
use ogive_identity::{
    digest::digest_of,
    policy_engine::{self, PolicyAnswer, PolicyQuestion},
};
use serde_json::{Map, Value};

/// Who asks; known, by a credential that was checked.
#[derive(Clone, Copy, Debug)]
pub struct Caller<'a> {
    claims: &'a Map<String, Value>,
    scopes: &'a [Box<str>],
}

impl Caller<'_> {
    /// Everything that is claimed.
    pub fn claims(&self) -> &Map<String, Value> {
        self.claims
    }
    /// Whether a scope was granted.
    pub fn has_scope(&self, scope: &str) -> bool {
        self.scopes.iter().any(|known| **known == *scope)
    }
}

/// Decides policies that neither a token nor `authorization.policies.rules` decide. What it says of a caller is remembered, so it must
/// depend on nothing but its arguments. Never called on a worker, so it may take its time.
pub trait PolicyEngine: Send + Sync + 'static {
    /// Whether a policy holds for a caller who asks for an operation of a kind: `query`, `mutation` or `subscription`.
    fn holds(&self, policy: &str, caller: Caller<'_>, operation: &str) -> bool;
}

struct EmbeddedPolicies(Arc<dyn PolicyEngine>);

impl fmt::Debug for EmbeddedPolicies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EmbeddedPolicies")
    }
}

impl policy_engine::PolicyEngine for EmbeddedPolicies {
    fn decide(&self, question: &PolicyQuestion<'_>) -> Vec<PolicyAnswer> {
        let caller = Caller {
            claims: &question.caller.claims,
            scopes: &question.caller.granted.scopes,
        };
        let decide = |policy: &str| PolicyAnswer {
            holds: self.0.holds(policy, caller, question.operation),
            failures: Vec::new(),
        };
        question
            .policies
            .iter()
            .map(|policy| decide(policy))
            .collect()
    }
}

/// Most bytes of decisions that are remembered.
const REMEMBERED_BYTES_MAX: usize = 8 << 20;

/// Policies as the gateway asks for them.
pub(crate) fn loaded(decider: &Arc<dyn PolicyEngine>) -> LoadedPolicies {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    // Two deciders never decide the same, as far as anybody knows.
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    LoadedPolicies {
        engine: Arc::new(EmbeddedPolicies(Arc::clone(decider))),
        digest: digest_of(&number.to_le_bytes()),
        cache_bytes_max: REMEMBERED_BYTES_MAX,
    }
}
