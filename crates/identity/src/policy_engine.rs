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
    digest::digest_of,
    inflight::{AnswerCache, ENTRY_BYTES},
};

/// How long a decision is remembered, which is for as long as there is room.
const REMEMBERED: Duration = Duration::from_secs(24 * 3_600);

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub struct PolicyQuestion<'q> {
    /// The policy.
    pub policy: &'q str,
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
    /// Decides one.
    fn decide(&self, question: &PolicyQuestion<'_>) -> PolicyAnswer;
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
    /// Whether a policy holds.
    pub fn holds(&self, question: &PolicyQuestion<'_>) -> bool {
        let mut key = question.caller.digest().to_vec();
        for text in [question.operation, question.policy] {
            key.extend_from_slice(&(text.len() as u64).to_le_bytes());
            key.extend_from_slice(text.as_bytes());
        }
        let (key, now) = (digest_of(&key), Instant::now());
        if let Some(holds) = self.decided.get(&key, now) {
            return holds;
        }
        let answer = self.engine.decide(question);
        if let Some(failure) = answer.failures.first()
            && !self.is_told.swap(true, Ordering::Relaxed)
        {
            let policy = question.policy;
            tracing::error!(
                policy,
                "a policy cannot be evaluated, and does not hold: {failure}"
            );
        }
        self.decided
            .insert(key, answer.holds, now + REMEMBERED, ENTRY_BYTES);
        answer.holds
    }
}
