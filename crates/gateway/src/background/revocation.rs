//! Judges again what goes on behind its request ([`crate::identify::revocation`]): by what its client has brought, and by
//! the policies that it needs. What is equal is judged once, and whoever judges it is asked in passes of its own.

use std::{
    cell::OnceCell,
    collections::BTreeMap,
    convert::Infallible,
    rc::Rc,
    sync::{Arc, Mutex, OnceLock, Weak},
    time::Instant,
};

use ogive_edge::error::{RequestError, unauthenticated};
use ogive_identity::Caller;
use ogive_plan::Plan;
use ogive_telemetry::codes;
use tokio::{sync::Semaphore, task::JoinSet};

use crate::{
    gateway::{Gateway, Serving},
    identify::{
        credential::{Credential, Provider},
        revocation::{Demands, Revocable, RevocableOperation, RevocationGuard, Revoked, lock},
    },
    operation::OperationRun,
    policies::unanswered,
    shared::telling::Telling,
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
        let authentication = serving.services.authentication.as_ref();
        // What counted as nothing says nothing of who asks, whoever else says it.
        let known_as = identity.caller().ok().flatten();
        let credential = authentication
            .filter(|_| known_as.is_some() && identity.is_proved)
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
            credential_unanswered: Mutex::default(),
            policies_unanswered: Mutex::default(),
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
    serving.services.policies.as_ref()?;
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
            .hooks()
            .map_or_else(Vec::new, |told| told.policies()),
        plan: Arc::clone(plan),
    })
}

/// Judges what goes on, again and again. Each who can say whether something goes on is asked in passes of its own, so that one
/// that is slow holds up nobody else. Runs in a [`LocalSet`](tokio::task::LocalSet).
pub(crate) async fn keep_judging(gateway: Arc<Gateway>) -> Infallible {
    let gateway = &gateway;
    let providers = [Provider::Local, Provider::Keys, Provider::Introspection];
    let keep = async |provider| loop {
        tokio::time::sleep(gateway.options().revocation.check_interval).await;
        judge_credentials(gateway, provider).await;
    };
    let policies = async {
        loop {
            tokio::time::sleep(gateway.options().revocation.check_interval).await;
            judge_policies(gateway).await;
        }
    };
    let [local, keys, introspection] = providers.map(keep);
    let (never, ..) = tokio::join!(keep_time(gateway), local, keys, introspection, policies);
    never
}

/// Ends what nobody has said anything of for too long, whoever is being waited for.
async fn keep_time(gateway: &Arc<Gateway>) -> Infallible {
    loop {
        let options = gateway.options().revocation;
        tokio::time::sleep(options.check_interval).await;
        // A pass takes as long as it takes; what it has not come to is not yet overdue.
        let most = options.unanswered_max + options.check_interval;
        for watched in gateway.revocations.all() {
            let (since, code) = [
                (
                    &watched.credential_unanswered,
                    codes::AUTHENTICATION_UNAVAILABLE,
                ),
                (&watched.policies_unanswered, codes::POLICIES_UNAVAILABLE),
            ]
            .into_iter()
            .filter_map(|(since, code)| Some(((*lock(since))?, code)))
            .min_by_key(|(since, _)| *since)
            .unzip();
            if let (Some(since), Some(code)) = (since, code)
                && since.elapsed() >= most
            {
                let what = "nobody can say now whether this may go on";
                watched.end_with(&RequestError::http(code, what));
            }
        }
    }
}

/// Judges the credentials of one provider, once.
async fn judge_credentials(gateway: &Arc<Gateway>, provider: Provider) {
    let serving = gateway.serving.load_full();
    // Nobody judges any more, and a reload ends what was judged before.
    let Some(authentication) = &serving.services.authentication else {
        return;
    };
    let mut groups: BTreeMap<[u8; 32], CredentialGroup> = BTreeMap::new();
    for watched in gateway.revocations.all() {
        let Some(credential) = lock(&watched.credential).clone() else {
            continue;
        };
        if authentication.provider_of(&credential) != provider {
            continue;
        }
        let digest = *credential.digest();
        let group = groups.entry(digest).or_insert_with(|| CredentialGroup {
            credential,
            watched: Vec::new(),
        });
        group.watched.push(watched);
    }
    let silence = Rc::new(OnceCell::new());
    each(groups.into_values(), |group| {
        let (gateway, serving) = (Arc::clone(gateway), Arc::clone(&serving));
        let silence = Rc::clone(&silence);
        async move { group.judge(&gateway, &serving, (provider, &silence)).await }
    })
    .await;
}

/// Decides policies again, once.
async fn judge_policies(gateway: &Arc<Gateway>) {
    let serving = gateway.serving.load_full();
    if serving.services.policies.is_none() {
        return;
    }
    let mut groups: BTreeMap<_, PolicyGroup> = BTreeMap::new();
    for watched in gateway.revocations.all() {
        let Some(demands) = &watched.demands else {
            continue;
        };
        let caller = &demands.caller;
        let plan = std::ptr::from_ref(&*demands.plan) as usize;
        let key = (*caller.digest(), caller.granted.policies.clone(), plan);
        groups.entry(key).or_default().0.push(watched);
    }
    let silence = Rc::new(OnceCell::new());
    each(groups.into_values(), |group| {
        let (gateway, serving) = (Arc::clone(gateway), Arc::clone(&serving));
        let silence = Rc::clone(&silence);
        async move { group.judge(&gateway, &serving, &silence).await }
    })
    .await;
}

/// Does work for each, so many at a time.
async fn each<T, F: Future<Output = ()> + 'static>(
    all: impl Iterator<Item = T>,
    work: impl Fn(T) -> F,
) {
    let slots = Arc::new(Semaphore::new(JUDGED_MAX));
    let mut judging = JoinSet::new();
    for one in all {
        // It is never closed.
        let slot = Arc::clone(&slots).acquire_owned().await;
        let working = work(one);
        judging.spawn_local(async move {
            working.await;
            drop(slot);
        });
        while judging.try_join_next().is_some() {}
    }
    while judging.join_next().await.is_some() {}
}

/// That nobody answers, as it was found out in a pass: whoever is next is not asked about.
type Silence = OnceCell<RequestError>;

/// Operations that go on by one credential.
struct CredentialGroup {
    credential: Arc<Credential>,
    watched: Vec<Arc<RevocableOperation>>,
}

impl CredentialGroup {
    async fn judge(
        &self,
        gateway: &Gateway,
        serving: &Serving,
        (provider, silence): (Provider, &Silence),
    ) {
        let Some(authentication) = &serving.services.authentication else {
            return;
        };
        for watched in &self.watched {
            watched.asked(&watched.credential_unanswered);
        }
        let telling = Telling::of(&gateway.telemetry);
        let by_component = authentication.ask_about(&self.credential, telling).await;
        let verdict = match (by_component, silence.get()) {
            (Some((verdict, _)), _) => verdict,
            (None, Some(error)) => Err(error.clone()),
            (None, None) => {
                let judged = authentication.judge_kept(&self.credential, &gateway.offload);
                let judged = judged.await;
                let verdict =
                    judged.unwrap_or_else(|| Err(unauthenticated(serving.options.challenge)));
                // One endpoint answers for all; key sets are several.
                if let Err(error) = &verdict
                    && provider == Provider::Introspection
                    && is_passing(error)
                {
                    let _ = silence.set(error.clone());
                }
                verdict
            }
        };
        for watched in &self.watched {
            // It may go on by a fresh one by now.
            let credential = lock(&watched.credential).clone();
            if credential.is_none_or(|now| now.digest() != self.credential.digest()) {
                continue;
            }
            match &verdict {
                Ok(caller) => {
                    *lock(&watched.credential_unanswered) = None;
                    if !watched.is_of(caller) {
                        watched.end_as_changed();
                    }
                }
                Err(error) => watched.refused(error, &watched.credential_unanswered, serving),
            }
        }
    }
}

/// Operations of equal callers by one plan.
#[derive(Default)]
struct PolicyGroup(Vec<Arc<RevocableOperation>>);

impl PolicyGroup {
    async fn judge(&self, gateway: &Gateway, serving: &Serving, silence: &Silence) {
        let first = self.0.first().and_then(|watched| watched.demands.as_ref());
        let (Some(policies), Some(demands)) = (&serving.services.policies, first) else {
            return;
        };
        for watched in &self.0 {
            watched.asked(&watched.policies_unanswered);
        }
        let (caller, plan) = (&demands.caller, &demands.plan);
        let telling = Telling::of(&gateway.telemetry);
        let decided = match silence.get() {
            Some(error) => Err(error.clone()),
            None => {
                let with = (gateway.offload(), telling);
                let asked = policies.decide(&plan.requirements, plan.kind, caller, with);
                asked.await
            }
        };
        if let Err(error) = &decided
            && is_passing(error)
        {
            unanswered(telling, error);
            // One service answers for all; a component may fail at what one caller claims.
            if policies.asks_service() {
                let _ = silence.set(error.clone());
            }
        }
        for watched in &self.0 {
            let Some(demands) = &watched.demands else {
                continue;
            };
            match &decided {
                Ok(claims) => {
                    *lock(&watched.policies_unanswered) = None;
                    let known = || demands.caller.granted.clone();
                    let mut claims = claims.clone().unwrap_or_else(known);
                    claims.policies.extend(demands.told.iter().cloned());
                    if demands.plan.granted_to(&claims) != demands.granted {
                        watched.end_as_changed();
                    }
                }
                Err(error) => watched.refused(error, &watched.policies_unanswered, serving),
            }
        }
    }
}

/// Whether an error says that nobody can say anything now.
fn is_passing(error: &RequestError) -> bool {
    [
        codes::AUTHENTICATION_UNAVAILABLE,
        codes::POLICIES_UNAVAILABLE,
    ]
    .contains(&error.code())
}

impl RevocableOperation {
    /// Whether a caller is who it was.
    fn is_of(&self, caller: &Arc<Caller>) -> bool {
        let known = self.known.get_or_init(|| Arc::clone(caller));
        Arc::ptr_eq(known, caller) || Owner::of(Some(known)) == Owner::of(Some(caller))
    }

    /// Somebody is asked whether it may go on; how long that has been so counts from the first time without an answer.
    fn asked(&self, unanswered: &Mutex<Option<Instant>>) {
        lock(unanswered).get_or_insert_with(Instant::now);
    }

    /// Ends it, unless nobody can say now whether it may go on.
    fn refused(
        &self,
        error: &RequestError,
        unanswered: &Mutex<Option<Instant>>,
        serving: &Serving,
    ) {
        if is_passing(error) {
            let since = *lock(unanswered).get_or_insert_with(Instant::now);
            if since.elapsed() < serving.options.revocation.unanswered_max {
                return;
            }
        }
        self.end_with(error);
    }

    fn end_with(&self, error: &RequestError) {
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
