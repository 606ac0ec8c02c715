//! Which policies (`@policy`) hold for a caller: decided once per operation, before it is executed.
//!
//! Whoever says who a caller is may name policies, too. Others are decided by conditions of the configuration, and those
//! that it does not name by an engine of this process ([`ogive_identity::policy_engine`]), by a service
//! ([`ogive_identity::policy_service`]) or by a component. What nobody decides does not hold, and for a
//! caller who is not authenticated nothing is decided. If the service does not answer, the operation is refused: that
//! nobody knows is not that something does not hold.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    sync::Arc,
    time::Instant,
};

use http::{HeaderMap, HeaderName, HeaderValue};
use ogive_config::{
    AuthorizationDirectives, Config, NamedHeader, PolicyCondition,
    PolicyServiceOptions as ServiceSection, RedactionRule,
};
use ogive_edge::error::RequestError;
use ogive_hooks::CallMode;
use ogive_hooks::components::{Component, Decision, PolicyQuestion};
use ogive_identity::{
    Caller,
    digest::Digest,
    policy_engine::{EnginePolicies, PolicyEngine},
    policy_service::{PolicyService, PolicyServiceOptions},
};
use ogive_plan::{Claims, OperationKind, Plan, Requirement};
use ogive_server::offload::Offload;
use ogive_telemetry::{Hook, HookOutcome, codes};

use crate::{
    hooks::{components::LoadedComponent, decide::Question},
    shared::{context::OperationContext, selectors::is_met, telling::Telling},
};

/// After how many seconds clients come back for whom nothing could be decided.
const RETRY_SECONDS: u64 = 1;

/// How policies are decided.
#[derive(Clone, PartialEq, Debug)]
pub struct PolicyOptions {
    rules: BTreeMap<String, PolicyCondition>,
    service: Option<PolicyServiceOptions>,
    /// Read from files, so it comes later.
    pub(crate) engine: Option<LoadedPolicies>,
    /// Likewise.
    pub(crate) component: Option<LoadedComponent>,
    dry_run: bool,
}

/// Policies that an engine has read.
#[derive(Clone, Debug)]
pub struct LoadedPolicies {
    /// What decides.
    pub engine: Arc<dyn PolicyEngine>,
    /// Of all texts that were read: what is equal decides the same.
    pub digest: Digest,
    /// Most bytes of decisions that are remembered.
    pub cache_bytes_max: usize,
}

impl PartialEq for LoadedPolicies {
    fn eq(&self, other: &Self) -> bool {
        (self.digest, self.cache_bytes_max) == (other.digest, other.cache_bytes_max)
    }
}

impl PolicyOptions {
    /// The options that a configuration asks for; `None` if nobody decides.
    pub fn new(config: &Config) -> Option<Self> {
        let policies = &config.authorization.policies;
        let is_enforced = config.authorization.directives == AuthorizationDirectives::Enforce;
        let redacted = config.authorization.redact.iter().enumerate();
        let redacted = redacted.filter_map(|(index, rule)| {
            let unless = rule.unless.clone()?;
            Some((RedactionRule::policy(index), unless))
        });
        let rules = policies.rules.clone().into_iter().chain(redacted);
        let rules: BTreeMap<String, PolicyCondition> = rules.collect();
        if !is_enforced || policies.decides_nothing() && rules.is_empty() {
            return None;
        }
        Some(PolicyOptions {
            rules,
            service: policies.http.as_ref().map(service_options),
            engine: None,
            component: None,
            dry_run: config.authorization.dry_run,
        })
    }
}

/// Who decides policies besides a configuration.
impl PolicyOptions {
    /// The options that a configuration asks for, with an engine; `None` if nothing is enforced.
    pub(crate) fn decided_by(config: &Config, engine: LoadedPolicies) -> Option<Self> {
        if config.authorization.directives != AuthorizationDirectives::Enforce {
            return None;
        }
        let options = Self::new(config).unwrap_or_else(|| PolicyOptions {
            rules: BTreeMap::new(),
            service: None,
            engine: None,
            component: None,
            dry_run: config.authorization.dry_run,
        });
        Some(PolicyOptions {
            engine: Some(engine),
            ..options
        })
    }
}

fn service_options(service: &ServiceSection) -> PolicyServiceOptions {
    PolicyServiceOptions {
        url: service.url.0.clone(),
        headers: headers(&service.headers),
        timeout: service.timeout.0,
        in_flight_max: service.max_in_flight.get(),
        ttl: service.cache_ttl.0,
        cache_bytes_max: service.cache_memory.0,
    }
}

/// The configuration was checked when it was read, so no header is lost here.
pub(crate) fn headers(named: &[NamedHeader]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for header in named {
        let name = HeaderName::from_bytes(header.name.as_bytes());
        if let (Ok(name), Ok(mut value)) = (name, HeaderValue::from_str(&header.value)) {
            value.set_sensitive(true);
            headers.append(name, value);
        }
    }
    headers
}

/// Who decides.
#[derive(Debug)]
pub struct Policies {
    options: PolicyOptions,
    service: Option<PolicyService>,
    engine: Option<Arc<EnginePolicies>>,
}

impl Policies {
    /// Begins to decide.
    pub fn start(options: PolicyOptions) -> Self {
        Policies {
            service: options.service.clone().map(PolicyService::new),
            engine: options.engine.as_ref().map(|loaded| {
                let engine = Arc::clone(&loaded.engine);
                Arc::new(EnginePolicies::new(engine, loaded.cache_bytes_max))
            }),
            options,
        }
    }
    /// Whether it is what these options ask for.
    pub(crate) fn is_for(&self, options: &PolicyOptions) -> bool {
        self.options == *options
    }

    /// Whether a service decides, of which all are told alike that it does not answer.
    pub(crate) fn asks_service(&self) -> bool {
        self.service.is_some()
    }

    /// What the caller of an operation has with the policies that hold; `None` if that is what is known anyway.
    pub(crate) async fn decide_for(
        &self,
        requirements: &[Requirement],
        kind: OperationKind,
        context: &OperationContext<'_>,
        offload: &Offload,
    ) -> Result<Option<Claims>, RequestError> {
        let Some(caller) = context.shared_caller() else {
            return Ok(None);
        };
        let telling = Telling::of_operation(context);
        match self
            .decide(requirements, kind, caller, (offload, telling))
            .await
        {
            // Everything is shown anyway.
            Err(error) if self.options.dry_run => {
                unanswered(telling, &error);
                Ok(None)
            }
            decided => decided,
        }
    }

    /// What a caller has, with the policies that requirements ask for and that hold; `None` if that is what is known
    /// anyway. What an engine has not decided before it decides beside the worker.
    pub async fn decide(
        &self,
        requirements: &[Requirement],
        kind: OperationKind,
        caller: &Arc<Caller>,
        (offload, telling): (&Offload, Telling<'_>),
    ) -> Result<Option<Claims>, RequestError> {
        let named = &caller.granted.policies;
        // Only rules of redaction decide theirs, whatever a caller is said to have.
        let is_forged = named.iter().any(|p| RedactionRule::is_policy(p));
        let own = || {
            let mut claims = caller.granted.clone();
            claims.policies.retain(|p| !RedactionRule::is_policy(p));
            claims
        };
        if !caller.granted.authenticated {
            return Ok(is_forged.then(own));
        }
        let is_open = |policy: &&str| {
            RedactionRule::is_policy(policy) || !named.iter().any(|p| **p == **policy)
        };
        let (mut holding, mut asked) = (Vec::<Box<str>>::new(), Vec::new());
        for policy in asked_for(requirements).into_iter().filter(is_open) {
            let holds = match (self.options.rules.get(policy), &self.engine) {
                (Some(rule), _) => is_met(&rule.0, &**caller),
                (None, Some(engine)) => {
                    let known = engine.recall(policy, kind.as_str(), caller);
                    if known.is_none() {
                        asked.push(policy);
                    }
                    known.unwrap_or_default()
                }
                (None, None) => {
                    asked.push(policy);
                    false
                }
            };
            if holds {
                holding.push(policy.into());
            }
        }
        if let Some(engine) = self.engine.as_ref().filter(|_| !asked.is_empty()) {
            let (engine, caller) = (Arc::clone(engine), Arc::clone(caller));
            let policies: Vec<Box<str>> = asked.drain(..).map(Into::into).collect();
            let deciding = offload.run(move || {
                let holds = engine.decide(&policies, kind.as_str(), &caller);
                policies.into_iter().zip(holds)
            });
            let decided = deciding.await.filter(|(_, holds)| *holds);
            holding.extend(decided.map(|(policy, _)| policy));
        }
        if let Some(service) = self.service.as_ref().filter(|_| !asked.is_empty()) {
            let since = Instant::now();
            let decided = service.decide(&asked, caller).await;
            let outcome = match &decided {
                Ok(_) => HookOutcome::Continue,
                Err(_) => HookOutcome::Failed,
            };
            telling.called((Hook::Policies, "decide"), outcome, since);
            let decided = decided.map_err(|why| unavailable(&service.shown(), &why))?;
            let holds = asked.iter().zip(decided).filter(|(_, holds)| *holds);
            holding.extend(holds.map(|(policy, _)| Box::from(*policy)));
        }
        if let Some(component) = self
            .options
            .component
            .as_ref()
            .filter(|_| !asked.is_empty())
        {
            let holds = decided_by(component, &asked, (kind, &**caller), telling).await?;
            holding.extend(holds);
        }
        if holding.is_empty() && !is_forged {
            return Ok(None);
        }
        let mut claims = own();
        claims.policies.append(&mut holding);
        Ok(Some(claims))
    }

    /// Who decides each of the policies that requirements ask for, for people.
    fn explain(&self, requirements: &[Requirement], caller: &Caller, decided: &Claims) -> String {
        let mut out = String::new();
        for policy in asked_for(requirements) {
            let is_named = !RedactionRule::is_policy(policy)
                && caller.granted.policies.iter().any(|p| **p == *policy);
            let by = match (&self.service, self.options.rules.get(policy)) {
                _ if is_named => "named by whoever says who the caller is".to_owned(),
                _ if !caller.granted.authenticated => "nobody is known to ask".to_owned(),
                _ if RedactionRule::is_policy(policy) => {
                    "decided by `authorization.redact`".to_owned()
                }
                (_, Some(_)) => "decided by `authorization.policies.rules`".to_owned(),
                (None, None) if self.engine.is_some() => {
                    "decided by `authorization.policies.cedar`".to_owned()
                }
                (Some(service), None) => format!("decided by {}", service.shown()),
                (None, None) if self.options.component.is_some() => {
                    "decided by `authorization.policies.component`".to_owned()
                }
                (None, None) => "nobody decides it".to_owned(),
            };
            let holds = if decided.policies.iter().any(|p| **p == *policy) {
                "holds"
            } else {
                "does not hold"
            };
            let _ = writeln!(out, "policy {policy}: {holds}, {by}");
        }
        out
    }
}

/// Those of some policies that a component says hold. What it says beside them nobody asked for; one that failed and has said
/// nothing lets none hold.
async fn decided_by(
    component: &LoadedComponent,
    asked: &[&str],
    (kind, caller): (OperationKind, &Caller),
    telling: Telling<'_>,
) -> Result<Vec<Box<str>>, RequestError> {
    let question = PolicyQuestion {
        policies: asked.iter().map(|policy| (*policy).to_owned()).collect(),
        kind: kind.as_str().to_owned(),
        scopes: caller
            .granted
            .scopes
            .iter()
            .map(|s| (**s).to_owned())
            .collect(),
        claims: serde_json::Value::from(caller.claims.clone()).to_string(),
    };
    let said = component.ask(
        Question {
            decision: Decision::Policies,
            call: move |component: &Component, mode: CallMode| component.policies(&question, mode),
            ends: |_: &Vec<String>| false,
            code: codes::POLICIES_UNAVAILABLE,
        },
        telling,
    );
    let said = said.await;
    let said = said.map_err(|why| unavailable(component.hook.word(), &why))?;
    let said: BTreeSet<String> = said.unwrap_or_default().into_iter().collect();
    let holds = asked.iter().filter(|policy| said.contains(**policy));
    Ok(holds.map(|policy| Box::from(*policy)).collect())
}

/// What decides policies; what was there before goes on if the options ask for the same.
pub(crate) fn policies(
    options: Option<&PolicyOptions>,
    before: Option<Arc<Policies>>,
) -> Option<Arc<Policies>> {
    let asked = options?;
    Some(match before {
        Some(before) if before.is_for(asked) => before,
        _ => Arc::new(Policies::start(asked.clone())),
    })
}

/// What is decided of a caller for a plan, for people; nothing if it asks for nothing.
pub(crate) fn decisions(
    plan: &Plan,
    policies: Option<&Policies>,
    context: &OperationContext<'_>,
) -> String {
    let (requirements, claims) = (&plan.requirements, context.claims());
    let nobody = Caller::default();
    let caller = context.caller().unwrap_or(&nobody);
    let mut out = policies.map_or_else(String::new, |policies| {
        policies.explain(requirements, caller, claims)
    });
    for requirement in requirements {
        let met = if requirement.is_met_by(claims) {
            "met"
        } else {
            "not met"
        };
        let _ = writeln!(out, "restriction {requirement}: {met}");
    }
    out
}

/// The policies of some requirements, each once.
pub(crate) fn asked_for(requirements: &[Requirement]) -> BTreeSet<&str> {
    let alternatives = requirements.iter().filter_map(|r| r.policies.as_ref());
    alternatives
        .flatten()
        .flatten()
        .map(|policy| &**policy)
        .collect()
}

/// Nobody is refused for it, so nobody else tells.
pub(crate) fn unanswered(telling: Telling<'_>, error: &RequestError) {
    if let Some(cause) = &error.cause {
        let message = "policies are not decided, and the request goes on";
        telling.failed(cause, message, codes::POLICIES_UNAVAILABLE);
    }
}

fn unavailable(by: &str, why: &str) -> RequestError {
    RequestError {
        cause: Some(format!("policies are not decided by {by}: {why}").into()),
        retry_after: Some(RETRY_SECONDS),
        ..RequestError::graphql(
            codes::POLICIES_UNAVAILABLE,
            "it cannot be decided now what the caller may see",
        )
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn holds(rule: &str, claims: Value) -> bool {
        let text = format!(
            "authorization: {{ directives: enforce, policies: {{ rules: {{ p: {rule} }} }} }}\n"
        );
        let config = ogive_config::load(ogive_base::SourceId(0), &text, &|_| None).unwrap();
        let Value::Object(claims) = claims else {
            panic!()
        };
        let caller = Caller::proved(claims, &ogive_identity::CallerOptions::default());
        is_met(&config.authorization.policies.rules["p"].0, &caller)
    }

    #[test]
    fn conditions_hold_for_what_is_claimed_and_never_for_what_is_not_there() {
        let gold = "{ eq: [{ jwt_claim: org.plan }, gold] }";
        assert!(holds(gold, json!({ "org": { "plan": "gold" } })));
        assert!(!holds(gold, json!({ "org": { "plan": "Gold" } })));
        assert!(!holds(gold, json!({ "org": { "plan": ["gold"] } })));
        assert!(!holds(gold, json!({})));
        assert!(holds(
            "{ eq: [{ jwt_claim: level }, 3] }",
            json!({ "level": 3 })
        ));
        let same = "{ eq: [{ jwt_claim: a }, { jwt_claim: b }] }";
        assert!(holds(same, json!({ "a": "x", "b": "x" })));
        assert!(!holds(same, json!({})), "nothing equals nothing");
        assert!(!holds(same, json!({ "a": {}, "b": {} })));
        let staff = "{ contains: [{ jwt_claim: groups }, staff] }";
        assert!(holds(staff, json!({ "groups": ["a", "staff"] })));
        assert!(holds(staff, json!({ "groups": "a staff" })));
        assert!(!holds(staff, json!({ "groups": ["staffing"] })));
        assert!(!holds(staff, json!({ "groups": { "staff": true } })));
        assert!(!holds(staff, json!({})));
        assert!(holds("{ exists: { jwt_claim: a } }", json!({ "a": 0 })));
        assert!(!holds("{ exists: { jwt_claim: a } }", json!({ "a": null })));
        let both = "{ all: [{ exists: { jwt_claim: a } }, { not: { exists: { jwt_claim: b } } }] }";
        assert!(holds(both, json!({ "a": 1 })));
        assert!(!holds(both, json!({ "a": 1, "b": 1 })));
        assert!(holds(
            "{ any: [{ exists: { jwt_claim: a } }, { exists: { jwt_claim: b } }] }",
            json!({ "b": 1 })
        ));
    }
}
