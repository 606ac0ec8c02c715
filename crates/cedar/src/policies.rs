//! What is asked of policies, and how it is decided.
//!
//! - The principal is the caller: of the type and with the id that are configured, with its claims as attributes, and `scopes`
//!   beside them; in the groups that it claims. What the file of entities says of it counts before what it claims.
//! - The action is the kind of the operation: `Action::"query"`, `Action::"mutation"` or `Action::"subscription"`.
//! - The resource is the policy that a field asks for, as `Policy::"stock"`.
//!
//! Invariants: nothing holds unless a policy permits it and none forbids it. A policy that permits and cannot be evaluated
//! permits nothing, as in Cedar; one that forbids and cannot be evaluated forbids, unlike there: what it would have kept
//! from the caller is not shown by mistake.

use std::{collections::HashMap, fmt, str::FromStr};

use cedar_policy::{
    AuthorizationError, Authorizer, Context, Decision, Effect, Entities, EntityTypeName, EntityUid,
    PolicySet, Request, Schema, ValidationMode, Validator,
};
use serde_json::{Map, Value};

use crate::values::{EntityParts, attributes, entities, entity, texts, uid};

/// The texts that policies are made of.
#[derive(Clone, Copy, Debug)]
pub struct CedarTexts<'t> {
    /// Policies, each text with its name.
    pub policies: &'t [(String, String)],
    /// Entities, as JSON in Cedar's format.
    pub entities: Option<&'t str>,
    /// A schema, by which policies are validated.
    pub schema: Option<&'t str>,
}

/// What callers are.
#[derive(Clone, Debug)]
pub struct PrincipalOptions {
    /// The type of callers, such as `User`.
    pub principal_type: String,
    /// The type of the groups that they claim to be in, such as `Group`.
    pub group_type: String,
}

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub struct Question<'q> {
    /// The policy.
    pub policy: &'q str,
    /// The kind of the operation, such as `query`.
    pub operation: &'q str,
    /// Who the caller is.
    pub id: &'q str,
    /// The groups that it claims.
    pub groups: &'q [&'q str],
    /// Its scopes.
    pub scopes: &'q [Box<str>],
    /// Everything that it claims.
    pub claims: &'q Map<String, Value>,
}

/// What was decided.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CedarDecision {
    /// Whether the policy holds.
    pub holds: bool,
    /// What of the policies could not be evaluated.
    pub failures: Vec<String>,
}

/// Policies that were read.
pub struct CedarPolicies {
    /// What the schema makes doubtful of them, for the operator: such as a policy that can never apply.
    pub remarks: Vec<String>,
    policies: PolicySet,
    known: HashMap<EntityUid, EntityParts>,
    /// The same, linked.
    entities: Entities,
    principal_type: EntityTypeName,
    group_type: EntityTypeName,
    action_type: EntityTypeName,
    policy_type: EntityTypeName,
}

impl fmt::Debug for CedarPolicies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CedarPolicies")
            .field("policies", &self.len())
            .field("entities", &self.known.len())
            .finish_non_exhaustive()
    }
}

fn type_name(name: &str) -> Result<EntityTypeName, String> {
    EntityTypeName::from_str(name).map_err(|error| format!("`{name}` is no type: {error}"))
}

impl CedarPolicies {
    /// Reads policies. The error is for the operator.
    pub fn parse(texts: CedarTexts<'_>, options: &PrincipalOptions) -> Result<Self, String> {
        let mut policies = PolicySet::new();
        for (name, text) in texts.policies {
            let read = PolicySet::from_str(text).map_err(|error| format!("`{name}`: {error}"))?;
            if read.num_of_templates() > 0 {
                return Err(format!("`{name}`: templates are not linked here"));
            }
            let merged = policies.merge(&read, true);
            merged.map_err(|error| format!("`{name}`: {error}"))?;
        }
        let remarks = match texts.schema {
            Some(schema) => validate(&policies, schema)?,
            None => Vec::new(),
        };
        let known = match texts.entities {
            Some(json) => entities(json)?,
            None => HashMap::new(),
        };
        let all: Result<Vec<_>, String> = known
            .iter()
            .map(|(uid, parts)| entity(uid, parts))
            .collect();
        Ok(CedarPolicies {
            entities: Entities::from_entities(all?, None).map_err(|error| error.to_string())?,
            principal_type: type_name(&options.principal_type)?,
            group_type: type_name(&options.group_type)?,
            action_type: type_name("Action")?,
            policy_type: type_name("Policy")?,
            policies,
            known,
            remarks,
        })
    }

    /// How many policies there are.
    pub fn len(&self) -> usize {
        self.policies.num_of_policies()
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Decides whether a policy holds.
    pub fn decide(&self, question: &Question<'_>) -> CedarDecision {
        // The error may have claims in it, which are for nobody's log.
        self.asked(question).unwrap_or_else(|_| CedarDecision {
            holds: false,
            failures: vec!["the caller cannot be made an entity".into()],
        })
    }

    fn asked(&self, question: &Question<'_>) -> Result<CedarDecision, String> {
        let principal = uid(&self.principal_type, question.id);
        let mut parts = EntityParts {
            attributes: attributes(question.claims),
            ..EntityParts::default()
        };
        let scopes = question.scopes.iter().map(|scope| &**scope);
        parts.attributes.insert("scopes".into(), texts(scopes));
        let groups = question.groups.iter();
        parts.parents = groups.map(|group| uid(&self.group_type, group)).collect();
        if let Some(known) = self.known.get(&principal) {
            parts.attributes.extend(known.attributes.clone());
            parts.parents.extend(known.parents.iter().cloned());
        }
        let caller = entity(&principal, &parts)?;
        let entities = self.entities.clone().upsert_entities([caller], None);
        let entities = entities.map_err(|error| error.to_string())?;
        let request = Request::new(
            principal,
            uid(&self.action_type, question.operation),
            uid(&self.policy_type, question.policy),
            Context::empty(),
            None,
        );
        let request = request.map_err(|error| error.to_string())?;
        let response = Authorizer::new().is_authorized(&request, &self.policies, &entities);
        let mut decided = CedarDecision {
            holds: response.decision() == Decision::Allow,
            failures: Vec::new(),
        };
        for error in response.diagnostics().errors() {
            let AuthorizationError::PolicyEvaluationError(failed) = error;
            let policy = self.policies.policy(failed.policy_id());
            if policy.is_none_or(|policy| policy.effect() == Effect::Forbid) {
                decided.holds = false;
                let id = failed.policy_id();
                decided.failures.push(format!("`{id}` cannot be evaluated"));
            }
        }
        Ok(decided)
    }
}

/// Checks policies against a schema; says what is doubtful.
fn validate(policies: &PolicySet, schema: &str) -> Result<Vec<String>, String> {
    let read = Schema::from_cedarschema_str(schema);
    let (schema, _) = read.map_err(|error| format!("the schema: {error}"))?;
    let result = Validator::new(schema).validate(policies, ValidationMode::Strict);
    let errors: Vec<String> = result
        .validation_errors()
        .map(ToString::to_string)
        .collect();
    if errors.is_empty() {
        let remarks = result.validation_warnings().map(ToString::to_string);
        Ok(remarks.collect())
    } else {
        Err(errors.join("; "))
    }
}
