//! What clients are told of errors in place of what happened (`error_rules`).
//!
//! ```yaml
//! error_rules:
//!   - codes: [DOWNSTREAM_SERVICE_ERROR, "SUBREQUEST_*"]
//!     subgraphs: [inventory]
//!     set_code: STOCK_UNKNOWN
//!     set_message: The stock is not known at the moment.
//!     set_extensions: { retryable: true }
//!     remove_extensions: [service, stacktrace]
//! ```

use std::collections::BTreeMap;

use ogive_base::Span;

use crate::{
    Config,
    decode::{Errors, section},
};

section! {
    /// `error_rules[]`
    pub struct ErrorRule {
        /// Codes of errors that it is for, with `*` at the end all that begin so; default every code. Of what is masked
        /// (`include_subgraph_errors`) it is that of the mask.
        pub codes: Vec<String> = Vec::new(),
        /// Subgraphs that are to blame; default every one, and errors that no subgraph is to blame for.
        pub subgraphs: Vec<String> = Vec::new(),
        /// Response keys with dots between them, without indexes of lists: errors there and below; default everywhere.
        pub path: Option<String> = None,
        /// The code that clients see instead.
        pub set_code: Option<String> = None,
        /// The message that they see instead.
        pub set_message: Option<String> = None,
        /// Members of `extensions` that are added or replaced: `true`, `false`, `null` and numbers as they are, all others as texts.
        pub set_extensions: BTreeMap<String, String> = BTreeMap::new(),
        /// Members of `extensions` that are taken away; `service` is the name of the subgraph.
        pub remove_extensions: Vec<String> = Vec::new(),
    }
}

/// Most rules.
const RULES_MAX: usize = 64;

/// Checks that every rule does something that can be done.
pub(crate) fn check(span: Span, config: &Config, errors: &mut Errors) {
    let rules = &config.error_rules;
    if rules.len() > RULES_MAX {
        let message = format!("{} rules for errors, {RULES_MAX} at the most", rules.len());
        errors.invalid(span, message, "");
    }
    for rule in rules {
        let does_nothing = rule.set_code.is_none()
            && rule.set_message.is_none()
            && rule.set_extensions.is_empty()
            && rule.remove_extensions.is_empty();
        if does_nothing {
            let help = "write `set_code`, `set_message`, `set_extensions` or `remove_extensions`";
            errors.invalid(span, "a rule for errors changes nothing of them", help);
        }
        let names = rule
            .remove_extensions
            .iter()
            .chain(rule.set_extensions.keys());
        for name in names {
            if name == "code" {
                errors.invalid(span, "`code` is always there", "write `set_code`");
            }
        }
        if rule.set_extensions.contains_key("service") {
            let help = "it can be taken away with `remove_extensions: [service]`";
            errors.invalid(span, "`service` is what the gateway says", help);
        }
        if rule.set_code.as_deref() == Some("") {
            errors.invalid(span, "a code has a name", "");
        }
        for code in &rule.codes {
            if code.trim_end_matches('*').contains('*') || code.ends_with("**") || code.is_empty() {
                let message = format!("`{code}` is no code");
                errors.invalid(span, message, "`*` stands at its end only");
            }
        }
        let path = rule.path.as_deref();
        if path.is_some_and(|path| path.split('.').any(str::is_empty)) {
            let help = "such as `product.price`; indexes of lists are left out";
            errors.invalid(span, "a path is made of response keys", help);
        }
    }
}

#[cfg(test)]
mod tests {
    use ogive_base::SourceId;

    fn load(rule: &str) -> Result<(), String> {
        let text = format!("error_rules: [{{ {rule} }}]\n");
        let config = crate::load(SourceId(0), &text, &|_| None);
        config
            .map(|_| ())
            .map_err(|errors| errors[0].message.clone())
    }

    #[test]
    fn rules_that_do_nothing_or_cannot_hold_are_refused() {
        assert_eq!(load("codes: ['SUBREQUEST_*'], set_code: A"), Ok(()));
        assert_eq!(
            load("path: a.b, set_extensions: { retryable: true }"),
            Ok(())
        );
        for bad in [
            "codes: [A]",
            "set_code: ''",
            "codes: ['A*B'], set_code: A",
            "codes: [''], set_code: A",
            "path: a..b, set_code: A",
            "remove_extensions: [code]",
            "set_extensions: { code: A }",
            "set_extensions: { service: A }",
            "set_codes: A",
        ] {
            assert!(load(bad).is_err(), "{bad}");
        }
    }
}
