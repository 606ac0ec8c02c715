//! What is asked of policies, and how it is decided.
//!
//! - The principal is the caller: of the type and with the id that are configured, with its claims as attributes, and `scopes`
//!   beside them; in the groups that it claims. What the file of entities says of it counts before what it claims.
//! - The action is the kind of the operation: `Action::"query"`, `Action::"mutation"` or `Action::"subscription"`.
//! - The resource is the policy that a field asks for, as `Policy::"stock"`.
//!
//! Of the file of entities a decision looks at those that can be come to from the caller and from what policies name, by groups
//! and by attributes: Cedar has no other way to an entity. So what a decision costs does not grow with the file.
//!
//! Invariants: nothing holds unless a policy permits it and none forbids it. A policy that permits and cannot be evaluated
//! permits nothing, as in Cedar; one that forbids and cannot be evaluated forbids, unlike there: what it would have kept
//! from the caller is not shown by mistake.

use std::{
    collections::{HashMap, HashSet},
    fmt,
    str::FromStr,
};

use cedar_policy::{
    AuthorizationError, Authorizer, Context, Decision, Effect, Entities, Entity, EntityTypeName,
    EntityUid, Policy, PolicyId, PolicySet, Request, Schema, ValidationMode, Validator,
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

/// A caller.
#[derive(Clone, Copy, Debug)]
pub struct CallerFacts<'q> {
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
    /// What policies name, with all that can be come to from there.
    named: Entities,
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
            for policy in read.policies() {
                let named = policy.new_id(policy_id(name, policy));
                let added = policies.add(named);
                added.map_err(|error| format!("`{name}`: {error}"))?;
            }
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
        // Whether they fit together: nothing is within itself.
        Entities::from_entities(all?, None).map_err(|error| error.to_string())?;
        let literals = policies.policies().flat_map(Policy::entity_literals);
        let named = reached(&known, literals.collect())?;
        Ok(CedarPolicies {
            named: Entities::from_entities(named, None).map_err(|error| error.to_string())?,
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

    /// Decides for a caller whether each of some policies holds, in their order. `operation` is the kind of the operation, such
    /// as `query`.
    pub fn decide<'p>(
        &self,
        caller: &CallerFacts<'_>,
        operation: &str,
        policies: impl Iterator<Item = &'p str>,
    ) -> Vec<CedarDecision> {
        // Errors may have claims in them, which are for nobody's log.
        let nobody = |_: String| CedarDecision {
            holds: false,
            failures: vec!["the caller cannot be made an entity".into()],
        };
        let made = self.entities_of(caller);
        let decide = |policy| {
            let (principal, entities) = made.as_ref().map_err(Clone::clone)?;
            self.asked((principal, entities), operation, policy)
        };
        policies
            .map(|policy| decide(policy).unwrap_or_else(nobody))
            .collect()
    }

    /// A caller as an entity, with all that can be come to from it and from the policies.
    fn entities_of(&self, caller: &CallerFacts<'_>) -> Result<(EntityUid, Entities), String> {
        let principal = uid(&self.principal_type, caller.id);
        let mut parts = EntityParts {
            attributes: attributes(caller.claims),
            ..EntityParts::default()
        };
        let scopes = caller.scopes.iter().map(|scope| &**scope);
        parts.attributes.insert("scopes".into(), texts(scopes));
        let groups = caller.groups.iter();
        parts.parents = groups.map(|group| uid(&self.group_type, group)).collect();
        if let Some(known) = self.known.get(&principal) {
            parts.attributes.extend(known.attributes.clone());
            parts.parents.extend(known.parents.iter().cloned());
            parts.named.extend(known.named.iter().cloned());
        }
        let mut all = reached(&self.known, parts.next().cloned().collect())?;
        all.retain(|entity| entity.uid() != principal);
        all.push(entity(&principal, &parts)?);
        let entities = self.named.clone().upsert_entities(all, None);
        let entities = entities.map_err(|error| error.to_string())?;
        Ok((principal, entities))
    }

    fn asked(
        &self,
        (principal, entities): (&EntityUid, &Entities),
        operation: &str,
        policy: &str,
    ) -> Result<CedarDecision, String> {
        let request = Request::new(
            principal.clone(),
            uid(&self.action_type, operation),
            uid(&self.policy_type, policy),
            Context::empty(),
            None,
        );
        let request = request.map_err(|error| error.to_string())?;
        let response = Authorizer::new().is_authorized(&request, &self.policies, entities);
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

/// What a policy is called in the log: by its `@id`, or else by its file and its number there, from 1.
fn policy_id(file: &str, policy: &Policy) -> PolicyId {
    if let Some(id) = policy.annotation("id").filter(|id| !id.is_empty()) {
        return PolicyId::new(id);
    }
    // They are numbered when they are read.
    let given = policy.id().to_string();
    let number = given.strip_prefix("policy").unwrap_or(&given);
    let number = number.parse::<u64>().map_or(0, |number| number + 1);
    PolicyId::new(format!("{file}:{number}"))
}

/// The entities that can be come to from some, those included, as far as they are known.
fn reached(
    known: &HashMap<EntityUid, EntityParts>,
    mut open: Vec<EntityUid>,
) -> Result<Vec<Entity>, String> {
    let mut seen: HashSet<EntityUid> = open.iter().cloned().collect();
    let mut out = Vec::new();
    while let Some(uid) = open.pop() {
        let Some(parts) = known.get(&uid) else {
            continue;
        };
        for next in parts.next() {
            if seen.insert(next.clone()) {
                open.push(next.clone());
            }
        }
        out.push(entity(&uid, parts)?);
    }
    Ok(out)
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// What can be come to by a group, an attribute of a group, or a name in a policy is looked at, and nothing else, however
    /// large the file is.
    #[test]
    fn a_decision_looks_at_what_can_be_come_to_and_not_at_the_whole_file() {
        let group = |id: &str| json!({ "type": "Group", "id": id });
        let mut all = vec![
            json!({ "uid": group("staff"), "attrs": { "lead": { "__entity": { "type": "User", "id": "eve" } } },
                    "parents": [group("all")] }),
            json!({ "uid": { "type": "User", "id": "eve" }, "attrs": { "level": 3 } }),
            json!({ "uid": group("paid"), "attrs": { "open": true } }),
        ];
        all.extend((0..5_000).map(|n| json!({ "uid": { "type": "User", "id": format!("u{n}") } })));
        let policy = "permit(principal in Group::\"all\", action, resource) \
                      when { Group::\"paid\".open && Group::\"staff\".lead.level > 2 };";
        let texts = CedarTexts {
            policies: &[("a".to_owned(), policy.to_owned())],
            entities: Some(&json!(all).to_string()),
            schema: None,
        };
        let options = PrincipalOptions {
            principal_type: "User".into(),
            group_type: "Group".into(),
        };
        let policies = CedarPolicies::parse(texts, &options).unwrap();
        let claims = Map::new();
        let caller = CallerFacts {
            id: "ida",
            groups: &["staff"],
            scopes: &[],
            claims: &claims,
        };
        let (_, entities) = policies.entities_of(&caller).unwrap();
        // Ida, the three of the file that count, and none of the five thousand.
        assert_eq!(entities.iter().count(), 4);
        let decided = policies.decide(&caller, "query", ["a", "b"].into_iter());
        assert!(decided.iter().all(|decided| decided.holds), "{decided:?}");
        let stranger = CallerFacts {
            groups: &[],
            ..caller
        };
        let decided = policies.decide(&stranger, "query", ["a"].into_iter());
        assert!(!decided[0].holds);
    }
}
