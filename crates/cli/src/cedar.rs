//! Policies in the language Cedar: there in a build with the feature `cedar`, as released ones are.

use ogive_config::CedarOptions;
use ogive_gateway::LoadedPolicies;

/// Reads the policies that a configuration names. The error is for the operator.
#[cfg(not(feature = "cedar"))]
pub(crate) fn read(_: &CedarOptions) -> Result<LoadedPolicies, String> {
    Err("this build has no engine for Cedar: take a released one, or build it with `--features cedar`".into())
}

#[cfg(feature = "cedar")]
pub(crate) use engine::read;

#[cfg(feature = "cedar")]
mod engine {
    use std::sync::Arc;

    use ogive_cedar::{CallerFacts, CedarPolicies, CedarTexts, PrincipalOptions};
    use ogive_files::Pipes;
    use ogive_identity::{
        Caller,
        digest::digest_of,
        policy_engine::{PolicyAnswer, PolicyEngine, PolicyQuestion},
    };

    use super::{CedarOptions, LoadedPolicies};

    /// Largest file, in bytes.
    const FILE_BYTES_MAX: u64 = 16 << 20;

    /// Reads the policies that a configuration names. The error is for the operator.
    pub(crate) fn read(options: &CedarOptions) -> Result<LoadedPolicies, String> {
        let text = |path: &String| -> Result<String, String> {
            let bytes = ogive_files::read(path.as_ref(), FILE_BYTES_MAX, Pipes::Refused);
            let bytes = bytes.map_err(|error| format!("`{path}`: {error}"))?;
            String::from_utf8(bytes).map_err(|_| format!("`{path}` is no UTF-8"))
        };
        let policies: Result<Vec<(String, String)>, String> = options
            .policies
            .iter()
            .map(|path| Ok((path.clone(), text(path)?)))
            .collect();
        let policies = policies?;
        let entities = options.entities.as_ref().map(text).transpose()?;
        let schema = options.schema.as_ref().map(text).transpose()?;
        let mut all = format!("{options:?}").into_bytes();
        let texts = policies.iter().map(|(_, text)| text);
        for text in texts.chain(&entities).chain(&schema) {
            all.extend_from_slice(&(text.len() as u64).to_le_bytes());
            all.extend_from_slice(text.as_bytes());
        }
        let texts = CedarTexts {
            policies: &policies,
            entities: entities.as_deref(),
            schema: schema.as_deref(),
        };
        let principal = PrincipalOptions {
            principal_type: options.principal_type.clone(),
            group_type: options.group_type.clone(),
        };
        let read = CedarPolicies::parse(texts, &principal)?;
        tracing::info!(policies = read.len(), "policies of Cedar");
        for remark in &read.remarks {
            tracing::warn!("policies of Cedar: {remark}");
        }
        Ok(LoadedPolicies {
            engine: Arc::new(Engine {
                policies: read,
                options: options.clone(),
            }),
            digest: digest_of(&all),
            cache_bytes_max: options.cache_memory.0,
        })
    }

    #[derive(Debug)]
    struct Engine {
        policies: CedarPolicies,
        options: CedarOptions,
    }

    impl PolicyEngine for Engine {
        fn decide(&self, question: &PolicyQuestion<'_>) -> Vec<PolicyAnswer> {
            let (caller, options) = (question.caller, &self.options);
            // Nobody is decided about who has no name.
            let Some(id) = principal_id(caller, &options.principal_claim.0) else {
                let nothing = question.policies.iter().map(|_| PolicyAnswer::default());
                return nothing.collect();
            };
            let groups = options.groups_claim.as_ref();
            let groups = groups.map_or_else(Vec::new, |claim| caller.items(claim));
            let facts = CallerFacts {
                id: &id,
                groups: &groups,
                scopes: &caller.granted.scopes,
                claims: &caller.claims,
            };
            let policies = question.policies.iter().map(|policy| &**policy);
            let decided = self.policies.decide(&facts, question.operation, policies);
            let decided = decided.into_iter().map(|decided| PolicyAnswer {
                holds: decided.holds,
                failures: decided.failures,
            });
            decided.collect()
        }
    }

    /// Who a caller is: what its claims say, with `|` between several. One of them that is not there makes nobody of it, and so
    /// does a `|` in any but the last, by which two callers could be taken for one.
    fn principal_id(caller: &Caller, claims: &[String]) -> Option<String> {
        let parts: Option<Vec<_>> = claims.iter().map(|claim| caller.scalar(claim)).collect();
        let parts = parts?;
        let (_, firsts) = parts.split_last()?;
        if firsts.iter().any(|part| part.contains('|')) {
            return None;
        }
        Some(parts.join("|"))
    }

    #[cfg(test)]
    mod tests {
        use ogive_identity::CallerOptions;
        use serde_json::json;

        use super::*;

        #[test]
        fn callers_of_several_issuers_are_told_apart() {
            let id = |claims: serde_json::Value, names: &[&str]| {
                let claims = claims.as_object().unwrap().clone();
                let caller = Caller::proved(claims, &CallerOptions::default());
                let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
                principal_id(&caller, &names)
            };
            let both = ["iss", "sub"];
            let found = id(json!({ "iss": "https://a", "sub": "ida" }), &both);
            assert_eq!(found.as_deref(), Some("https://a|ida"));
            assert_eq!(
                id(json!({ "sub": "ida" }), &["sub"]).as_deref(),
                Some("ida")
            );
            assert_eq!(id(json!({ "sub": "ida" }), &both), None);
            assert_eq!(id(json!({ "iss": "a|b", "sub": "c" }), &both), None);
            let last = id(json!({ "iss": "a", "sub": "b|c" }), &both);
            assert_eq!(last.as_deref(), Some("a|b|c"));
        }
    }
}
