//! Policies that are decided in this process by rules in a language of their own. What such an engine is asked and says is
//! here; engines are elsewhere, so that nobody builds one who does not want it.
//!
//! What is decided depends on the caller, on the policy and on the kind of the operation alone, so it is remembered until the
//! rules change, which make another [`EnginePolicies`].

use std::{
    fmt::Debug,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use crate::{
    caller::Caller,
    digest::{Digest, digest_of},
    inflight::{AnswerCache, ENTRY_BYTES},
};

/// How long a decision is remembered, which is for as long as there is room.
const REMEMBERED: Duration = Duration::from_secs(24 * 3_600);

/// What is asked: policies of one caller.
#[derive(Clone, Copy, Debug)]
pub struct PolicyQuestion<'q> {
    /// The policies.
    pub policies: &'q [Box<str>],
    /// The kind of the operation.
    pub operation: &'q str,
    /// Who asks; known.
    pub caller: &'q Caller,
}

/// What is said.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PolicyAnswer {
    /// Whether the policy holds.
    pub holds: bool,
    /// What could not be evaluated, for the operator.
    pub failures: Vec<String>,
}

/// Decides policies.
pub trait PolicyEngine: Debug + Send + Sync {
    /// Decides each of them, in their order. May take long: it is never called on a worker.
    fn decide(&self, question: &PolicyQuestion<'_>) -> Vec<PolicyAnswer>;
}

/// An engine, and what it has decided.
#[derive(Debug)]
pub struct EnginePolicies {
    engine: Arc<dyn PolicyEngine>,
    decided: AnswerCache<bool>,
    /// Whether the operator was told that something cannot be evaluated.
    is_told: AtomicBool,
}

impl EnginePolicies {
    /// Remembers at most so many bytes.
    pub fn new(engine: Arc<dyn PolicyEngine>, cache_bytes_max: usize) -> Self {
        EnginePolicies {
            engine,
            decided: AnswerCache::new(cache_bytes_max),
            is_told: AtomicBool::new(false),
        }
    }
    /// Whether a policy holds, if that was decided before.
    pub fn recall(&self, policy: &str, operation: &str, caller: &Caller) -> Option<bool> {
        self.decided
            .get(&key(policy, operation, caller), Instant::now())
    }
    /// Whether each of some policies holds, in their order.
    pub fn decide(&self, policies: &[Box<str>], operation: &str, caller: &Caller) -> Vec<bool> {
        let answers = self.engine.decide(&PolicyQuestion {
            policies,
            operation,
            caller,
        });
        let mut holds = vec![false; policies.len()];
        for ((policy, answer), holds) in policies.iter().zip(answers).zip(&mut holds) {
            if let Some(failure) = answer.failures.first()
                && !self.is_told.swap(true, Ordering::Relaxed)
            {
                tracing::error!(
                    policy = &**policy,
                    "a policy cannot be evaluated, and does not hold: {failure}"
                );
            }
            let (key, end) = (key(policy, operation, caller), Instant::now() + REMEMBERED);
            self.decided.insert(key, answer.holds, end, ENTRY_BYTES);
            *holds = answer.holds;
        }
        holds
    }
}

/// What a decision is remembered by.
fn key(policy: &str, operation: &str, caller: &Caller) -> Digest {
    let mut key = caller.digest().to_vec();
    for text in [operation, policy] {
        key.extend_from_slice(&(text.len() as u64).to_le_bytes());
        key.extend_from_slice(text.as_bytes());
    }
    digest_of(&key)
}
