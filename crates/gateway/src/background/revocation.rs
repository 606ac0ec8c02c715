//! Judges again what goes on behind its request ([`crate::identify::revocation`]): by what its client has brought, and by
//! the policies that it needs. What is equal is judged once.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    sync::{Arc, Mutex, OnceLock, Weak},
    time::Instant,
};

use ogive_identity::Caller;
use ogive_plan::Plan;
use ogive_telemetry::codes;
use tokio::{sync::Semaphore, task::JoinSet};

use crate::{
    gateway::{Gateway, Serving},
    identify::credential::Credential,
    identify::revocation::{
        Demands, Revocable, RevocableOperation, RevocationGuard, Revoked, lock,
    },
    operation::OperationRun,
    shared::error::{RequestError, unauthenticated},
    subscribe::owner::Owner,
};

/// Most credentials that are judged at a time.
const JUDGED_MAX: usize = 32;

impl Gateway {
    /// Watches an operation that goes on; `None` if nothing of it can be withdrawn.
    pub(crate) fn watch(
        &self,
        run: &OperationRun<'_>,
        plan: &Arc<Plan>,
        operation: Weak<dyn Revocable>,
    ) -> Option<RevocationGuard> {
        let (serving, context) = (run.serving, run.context);
        let (parts, identity) = context.origin()?;
        let authentication = serving.authentication.as_ref();
        // What counted as nothing says nothing of who asks.
        let known_as = identity.caller().ok().flatten();
        let credential = authentication
            .filter(|_| known_as.is_some())
            .and_then(|all| all.credential(parts, identity));
        let demands = demands(run, plan);
        if credential.is_none() && demands.is_none() {
            return None;
        }
        let known = OnceLock::new();
        // As it was found out by what was brought, whatever a coprocessor makes of it.
        if let Some(caller) = known_as {
            let _ = known.set(caller);
        }
        let watched = RevocableOperation {
            credential: Mutex::new(credential.map(Arc::new)),
            unanswered_since: Mutex::default(),
            operation,
            known,
            demands,
        };
        Some(self.revocations.watch(watched))
    }
}

/// What was decided of policies for an operation, if any were.
fn demands(run: &OperationRun<'_>, plan: &Arc<Plan>) -> Option<Demands> {
    let (serving, context) = (run.serving, run.context);
    serving.policies.as_ref()?;
    // Everything is shown anyway.
    if serving.state.options.authorization.dry_run {
        return None;
    }
    let mut requirements = plan.requirements.iter();
    if !requirements.any(|requirement| requirement.policies.is_some()) {
        return None;
    }
    Some(Demands {
        caller: Arc::clone(context.shared_caller()?),
        granted: plan.granted_to(context.claims()),
        told: context
            .coprocessor()
            .map_or_else(Vec::new, |told| told.policies()),
        plan: Arc::clone(plan),
    })
}

/// Judges what goes on, again and again. Runs in a [`LocalSet`](tokio::task::LocalSet).
pub(crate) async fn keep_judging(gateway: Arc<Gateway>) -> Infallible {
    loop {
        let interval = gateway.options().revocation.check_interval;
        tokio::time::sleep(interval).await;
        judge_all(&gateway).await;
    }
}

/// Judges all that goes on, once.
async fn judge_all(gateway: &Arc<Gateway>) {
    let mut groups: BTreeMap<Option<[u8; 32]>, Group> = BTreeMap::new();
    for watched in gateway.revocations.all() {
        let credential = lock(&watched.credential).clone();
        let digest = credential.as_ref().map(|kept| *kept.digest());
        let group = groups.entry(digest).or_insert_with(|| Group {
            credential,
            watched: Vec::new(),
        });
        group.watched.push(watched);
    }
    let slots = Arc::new(Semaphore::new(JUDGED_MAX));
    let mut judging = JoinSet::new();
    for group in groups.into_values() {
        // It is never closed.
        let slot = Arc::clone(&slots).acquire_owned().await;
        let gateway = Arc::clone(gateway);
        judging.spawn_local(async move {
            group.judge(&gateway).await;
            drop(slot);
        });
        while judging.try_join_next().is_some() {}
    }
    while judging.join_next().await.is_some() {}
}

/// Operations that go on by one credential.
struct Group {
    credential: Option<Arc<Credential>>,
    watched: Vec<Arc<RevocableOperation>>,
}

impl Group {
    async fn judge(&self, gateway: &Gateway) {
        let serving = gateway.serving.load_full();
        let verdict = match (&self.credential, &serving.authentication) {
            (Some(kept), Some(authentication)) => {
                let judged = authentication.judge_kept(kept, &gateway.offload).await;
                judged.unwrap_or_else(|| Err(unauthenticated(serving.options.challenge)))
            }
            // Nothing was brought; or nobody judges any more, and a reload ends what was judged before.
            _ => {
                for watched in &self.watched {
                    watched.judge_policies(&serving).await;
                }
                return;
            }
        };
        for watched in &self.watched {
            // It may go on by a fresh one by now.
            let credential = lock(&watched.credential).clone();
            if credential.map(|now| *now.digest())
                != self.credential.as_ref().map(|judged| *judged.digest())
            {
                continue;
            }
            match &verdict {
                Ok(caller) if watched.is_of(caller) => watched.judge_policies(&serving).await,
                Ok(_) => watched.end_as_changed(),
                Err(error) => watched.refused(error, &serving),
            }
        }
    }
}

impl RevocableOperation {
    /// Whether a caller is who it was.
    fn is_of(&self, caller: &Arc<Caller>) -> bool {
        let known = self.known.get_or_init(|| Arc::clone(caller));
        Arc::ptr_eq(known, caller) || Owner::of(Some(known)) == Owner::of(Some(caller))
    }

    async fn judge_policies(&self, serving: &Serving) {
        let (Some(policies), Some(demands)) = (&serving.policies, &self.demands) else {
            return self.answered();
        };
        let Demands {
            caller,
            told,
            plan,
            granted,
        } = demands;
        match policies.decide(&plan.requirements, plan.kind, caller).await {
            Ok(claims) => {
                self.answered();
                let mut claims = claims.unwrap_or_else(|| caller.granted.clone());
                claims.policies.extend(told.iter().cloned());
                if plan.granted_to(&claims) != *granted {
                    self.end_as_changed();
                }
            }
            Err(error) => self.refused(&error, serving),
        }
    }

    fn answered(&self) {
        *lock(&self.unanswered_since) = None;
    }

    /// Ends it, unless nobody can say now whether it may go on.
    fn refused(&self, error: &RequestError, serving: &Serving) {
        let passing = [
            codes::AUTHENTICATION_UNAVAILABLE,
            codes::POLICIES_UNAVAILABLE,
        ];
        if passing.contains(&error.code()) {
            let since = *lock(&self.unanswered_since).get_or_insert_with(Instant::now);
            if since.elapsed() < serving.options.revocation.unanswered_max {
                return;
            }
        }
        let code = error.code();
        let error = error.clone();
        let how = if code == codes::POLICIES_UNAVAILABLE {
            Revoked::Authorization(error)
        } else {
            Revoked::Credential(error)
        };
        self.end(how, code.as_str());
    }

    fn end_as_changed(&self) {
        let code = codes::AUTHORIZATION_CHANGED;
        let error = RequestError::graphql(
            code,
            "what the caller may see is not what it was when this began: ask again",
        );
        self.end(Revoked::Authorization(error), code.as_str());
    }

    fn end(&self, how: Revoked, code: &'static str) {
        if let Some(operation) = self.operation.upgrade() {
            tracing::info!(
                code,
                "an operation ends: what its caller was let in by has changed"
            );
            operation.revoke(how);
        }
    }
}
