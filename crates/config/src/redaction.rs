//! Fields that are null, or a mask, for all callers but some (`authorization.redact`), without a directive in the supergraph.
//!
//! ```yaml
//! authorization:
//!   directives: enforce
//!   redact:
//!     - fields: [User.email, User.phone]
//!       unless: { contains: [{ jwt_claim: roles }, support] }
//!       mask: "***"
//! ```

use ogive_base::Span;

use crate::{
    AuthorizationDirectives, Config, PolicyCondition,
    decode::{Errors, section},
};

section! {
    /// `authorization.redact[]`
    pub struct RedactionRule {
        /// Fields with their types, such as `User.email`; of an interface those of everything that implements it.
        pub fields: Vec<String> = Vec::new(),
        /// What has to hold of the claims of a caller who sees them all the same; default nobody does.
        pub unless: Option<PolicyCondition> = None,
        /// What everybody else sees instead of them, such as `"***"`; default null. Only of fields whose type is `String` or `ID`,
        /// be it `String!` or `ID!`.
        pub mask: Option<String> = None,
    }
}

/// Longest mask, in bytes.
const MASK_BYTES_MAX: usize = 256;

/// Most rules.
const RULES_MAX: usize = 64;

impl RedactionRule {
    /// The policy by which callers see the fields of a rule. Nobody who says who a caller is can name such ([`Self::is_policy`]).
    pub fn policy(index: usize) -> String {
        format!("{POLICIES}{index}")
    }
    /// Whether a policy is one of these.
    pub fn is_policy(name: &str) -> bool {
        name.starts_with(POLICIES)
    }
}

/// What their names begin with.
const POLICIES: &str = "ogive:redact:";

/// Checks that every rule names fields, and that it is kept to.
pub(crate) fn check(span: Span, config: &Config, errors: &mut Errors) {
    let options = &config.authorization;
    if options.redact.is_empty() {
        return;
    }
    if options.directives != AuthorizationDirectives::Enforce {
        let help = "set `authorization.directives: enforce`";
        errors.invalid(
            span,
            "fields are redacted only if restrictions are enforced",
            help,
        );
    }
    if options.redact.len() > RULES_MAX {
        let message = format!("{} rules, {RULES_MAX} at the most", options.redact.len());
        errors.invalid(span, message, "");
    }
    for rule in &options.redact {
        if rule
            .mask
            .as_ref()
            .is_some_and(|mask| mask.len() > MASK_BYTES_MAX)
        {
            let message = format!("a mask has {MASK_BYTES_MAX} bytes at the most");
            errors.invalid(span, message, "");
        }
        if rule.fields.is_empty() {
            errors.invalid(
                span,
                "a rule names no field",
                "write `fields: [User.email]`",
            );
        }
        for field in &rule.fields {
            let names = field.split_once('.');
            let is_one = names.is_some_and(|(ty, name)| {
                !ty.is_empty() && !name.is_empty() && !name.contains('.')
            });
            if !is_one {
                let message = format!("`{field}` is no field with its type");
                errors.invalid(span, message, "such as `User.email`");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ogive_base::SourceId;

    fn load(directives: &str, rule: &str) -> Result<(), String> {
        let text = format!(
            "authorization: {{ directives: {directives}, claims: {{ header: x-claims, trusted: [unix] }}, redact: [{{ {rule} }}] }}\n"
        );
        let config = crate::load(SourceId(0), &text, &|_| None);
        config
            .map(|_| ())
            .map_err(|errors| errors[0].message.clone())
    }

    #[test]
    fn a_rule_names_fields_and_is_kept_to() {
        let good = "fields: [User.email], unless: { exists: { jwt_claim: admin } }";
        assert_eq!(load("enforce", good), Ok(()));
        assert_eq!(load("enforce", "fields: [User.email]"), Ok(()));
        assert_eq!(load("enforce", "fields: [User.email], mask: '***'"), Ok(()));
        let long = format!("fields: [User.email], mask: '{}'", "x".repeat(257));
        for bad in [
            "unless: { exists: { jwt_claim: admin } }",
            "fields: [email]",
            "fields: [User.address.street]",
            "fields: [User.email], unless: { exists: { request_header: x-a } }",
            "fields: [User.email], mask: [a]",
            &long,
        ] {
            assert!(load("enforce", bad).is_err(), "{bad}");
        }
        assert!(load("ignore", good).is_err() && load("refuse", good).is_err());
    }
}
