//! Other URLs for a subgraph (`override_subgraph_urls`), taken for requests of which something holds.
//!
//! ```yaml
//! override_subgraph_urls:
//!   products:
//!     - { when: { eq: [{ request_header: x-stage }, canary] }, url: "https://canary.products.internal/graphql" }
//!     - { when: { eq: [{ jwt_claim: region }, eu] }, url: "https://eu.products.internal/graphql" }
//! ```
//!
//! Every URL is written in the configuration: nothing that a client says becomes a part of one.

use ogive_selectors::Condition;
use ogive_yaml::{Node, Value};

use crate::{
    Config, Url,
    decode::{Decode, Errors, section},
    selectors::{DecodeIn, Place},
};

section! {
    /// `override_subgraph_urls.<name>[]`
    pub struct SubgraphUrlRule {
        /// What has to hold of the request; docs/network.md#another-url-by-condition.
        pub when: Option<SubgraphCondition> = None,
        /// Where the subgraph is asked then, instead of every other URL that it has.
        pub url: Option<Url> = None,
    }
}

/// What has to hold of an operation before a subgraph is asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SubgraphCondition(pub Condition);

impl Decode for SubgraphCondition {
    fn decode(node: &Node, errors: &mut Errors) -> Option<Self> {
        Condition::decode_at(node, Place::SubgraphRule, errors).map(SubgraphCondition)
    }
}

impl Config {
    /// The other URLs of a subgraph in the order in which they are looked at.
    pub fn subgraph_urls(&self, name: &str) -> impl Iterator<Item = (&Condition, &Url)> {
        let rules = self.override_subgraph_urls.get(name).into_iter().flatten();
        rules.filter_map(|rule| Some((&rule.when.as_ref()?.0, rule.url.as_ref()?)))
    }
}

/// Most URLs of one subgraph.
const URLS_MAX: usize = 64;

/// Checks that every rule says what holds, and where to go then.
pub(crate) fn check(section: Option<&Node>, config: &Config, errors: &mut Errors) {
    let Some(Value::Map(subgraphs)) = section.map(|node| &node.value) else {
        return;
    };
    for (name, node) in subgraphs {
        let Some(rules) = config.override_subgraph_urls.get(&name.text) else {
            continue;
        };
        let Value::List(items) = &node.value else {
            continue;
        };
        if rules.len() > URLS_MAX {
            let message = format!(
                "{} URLs for one subgraph, {URLS_MAX} at the most",
                rules.len()
            );
            errors.invalid(node.span, message, "");
        }
        for (item, rule) in items.iter().zip(rules) {
            if rule.when.is_none() || rule.url.is_none() {
                let message = "a rule needs `when` and `url`";
                let help = "the URL for all other requests is `override_subgraph_url`";
                errors.invalid(item.span, message, help);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ogive_base::SourceId;

    fn load(rules: &str) -> Result<usize, String> {
        let text = format!("override_subgraph_urls: {{ products: {rules} }}\n");
        let config = crate::load(SourceId(0), &text, &|_| None);
        let config = config.map_err(|errors| errors[0].message.clone())?;
        Ok(config.subgraph_urls("products").count())
    }

    #[test]
    fn a_rule_says_what_holds_and_where_to_go() {
        let good = "[{ when: { exists: { request_header: x-a } }, url: 'http://a/' },\
                     { when: { eq: [{ operation_kind: true }, query] }, url: 'https://b/c' }]";
        assert_eq!(load(good), Ok(2));
        assert_eq!(load("[]"), Ok(0));
        let many = "{ when: { exists: { client_name: true } }, url: 'http://a/' }, ".repeat(65);
        for bad in [
            "[{ url: 'http://a/' }]",
            "[{ when: { exists: { request_header: x-a } } }]",
            "[{ when: { exists: { request_header: x-a } }, url: a }]",
            "[{ when: { exists: { response_status: true } }, url: 'http://a/' }]",
            "[{ when: { exists: { subgraph_name: true } }, url: 'http://a/' }]",
            "[{ when: { exists: { request_header: x-a } }, url: 'http://a/', to: b }]",
            &format!("[{many}]"),
        ] {
            assert!(load(bad).is_err(), "{bad}");
        }
    }
}
