//! The options of `authorization.policies`: who decides what `@policy` asks for.

use std::{collections::BTreeMap, num::NonZeroUsize};

use crate::{
    ByteSize, Duration, NamedHeader, Url,
    decode::{Decode, Errors, section},
    scalars::nonzero,
    tree::{Node, Value},
};

section! {
    /// `authorization.policies`
    pub struct PolicyOptions {
        /// By policy: a condition on the caller's claims, as `{ eq: [{ jwt_claim: plan }, gold] }`. There are `eq`, `contains`,
        /// `exists`, `not`, `all` and `any`. A policy that is named here is decided here, and by nobody else.
        pub rules: BTreeMap<String, PolicyCondition> = BTreeMap::new(),
        /// A service that decides all other policies. Without it they hold for nobody, unless whoever says who the caller is
        /// names them, too.
        pub http: Option<PolicyServiceOptions> = None,
    }

    /// `authorization.policies.http`
    pub struct PolicyServiceOptions {
        /// Where it is asked, by POST: `{"version": 1, "policies": ["paid"], "scopes": [], "claims": {}}`, to be answered with
        /// `{"policies": {"paid": true}}`.
        pub url: Url = Url(String::new()),
        /// Headers to send along, as `{ name: authorization, value: "Bearer ${env.KEY}" }`.
        pub headers: Vec<NamedHeader> = Vec::new(),
        /// How long it may take; after that operations that need it are refused with `POLICIES_UNAVAILABLE`. Default `1s`.
        pub timeout: Duration = Duration::seconds(1),
        /// Most requests to it at a time; default 64. Operations wait for one of them no longer than `timeout`.
        pub max_in_flight: NonZeroUsize = nonzero(64),
        /// How long its decisions are good, by policy and claims; an answer may shorten that with `cache-control`. `0s`: every
        /// operation asks. Default `60s`.
        pub cache_ttl: Duration = Duration::seconds(60),
        /// Most memory for its decisions; default `8 MiB`.
        pub cache_memory: ByteSize = ByteSize(8 << 20),
        /// Whether `url` may be an `http://` one of another machine. Whoever is on the way can then read claims, and decide.
        /// Default no.
        pub allow_plain_http: bool = false,
    }
}

/// Most conditions within one another.
const DEPTH_MAX: usize = 16;

/// What a policy asks of the claims of a caller.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PolicyCondition {
    /// Both are the same text; lists and objects are no texts, and nothing equals what is not there.
    Eq(PolicyValue, PolicyValue),
    /// The first is a list that has the second, or a text that has it between spaces.
    Contains(PolicyValue, PolicyValue),
    /// There is such a claim, and it is not null.
    Exists(String),
    /// The condition is not met.
    Not(Box<PolicyCondition>),
    /// All are met; none listed: refused.
    All(Vec<PolicyCondition>),
    /// One is met.
    Any(Vec<PolicyCondition>),
}

/// One side of a comparison.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PolicyValue {
    /// `{ jwt_claim: NAME }`: what the caller claims; a dot leads into an object.
    Claim(String),
    /// A text.
    Text(String),
}

impl Decode for PolicyCondition {
    fn decode(node: &Node, errors: &mut Errors) -> Option<Self> {
        condition(node, DEPTH_MAX, errors)
    }
}

const WORDS: [&str; 6] = ["eq", "contains", "exists", "not", "all", "any"];

fn condition(node: &Node, depth: usize, errors: &mut Errors) -> Option<PolicyCondition> {
    let Some(depth) = depth.checked_sub(1) else {
        errors.invalid(node.span, "conditions are nested too deep", "");
        return None;
    };
    let found = crate::headers::fields(node, WORDS, errors)?;
    let mut present = found
        .iter()
        .zip(WORDS)
        .filter_map(|(n, w)| Some(((*n)?, w)));
    let (Some((body, word)), None) = (present.next(), present.next()) else {
        let message = "a condition is one of `eq`, `contains`, `exists`, `not`, `all`, `any`";
        errors.invalid(node.span, message, "combine several with `all` or `any`");
        return None;
    };
    Some(match word {
        "eq" | "contains" => {
            let [left, right] = pair(body, errors)?;
            let (left, right) = (operand(left, errors)?, operand(right, errors)?);
            if let (PolicyValue::Text(_), PolicyValue::Text(_)) = (&left, &right) {
                errors.invalid(
                    body.span,
                    "no claim is compared",
                    "name one: `{ jwt_claim: sub }`",
                );
                return None;
            }
            if word == "eq" {
                PolicyCondition::Eq(left, right)
            } else {
                PolicyCondition::Contains(left, right)
            }
        }
        "exists" => match operand(body, errors)? {
            PolicyValue::Claim(name) => PolicyCondition::Exists(name),
            PolicyValue::Text(_) => {
                errors.invalid(body.span, "`exists` needs `{ jwt_claim: NAME }`", "");
                return None;
            }
        },
        "not" => PolicyCondition::Not(Box::new(condition(body, depth, errors)?)),
        _ => {
            let Value::List(items) = &body.value else {
                errors.invalid(
                    body.span,
                    format!("`{word}` needs a list of conditions"),
                    "",
                );
                return None;
            };
            if items.is_empty() {
                errors.invalid(body.span, format!("`{word}` has no condition"), "");
                return None;
            }
            let all: Option<Vec<PolicyCondition>> = items
                .iter()
                .map(|item| condition(item, depth, errors))
                .collect();
            if word == "all" {
                PolicyCondition::All(all?)
            } else {
                PolicyCondition::Any(all?)
            }
        }
    })
}

fn pair<'n>(node: &'n Node, errors: &mut Errors) -> Option<[&'n Node; 2]> {
    if let Value::List(items) = &node.value
        && let [left, right] = items.as_slice()
    {
        return Some([left, right]);
    }
    let help = "such as `[{ jwt_claim: plan }, gold]`";
    errors.invalid(node.span, "a comparison is a list of two values", help);
    None
}

fn operand(node: &Node, errors: &mut Errors) -> Option<PolicyValue> {
    if !matches!(node.value, Value::Map(_)) {
        let text = errors.scalar(node, "a text, or `{ jwt_claim: NAME }`")?;
        return Some(PolicyValue::Text(text.to_owned()));
    }
    let [name] = crate::headers::fields(node, ["jwt_claim"], errors)?;
    let name = name.and_then(|name| errors.scalar(name, "the name of a claim"));
    match name {
        Some(name) if !name.is_empty() => Some(PolicyValue::Claim(name.to_owned())),
        _ => {
            errors.invalid(node.span, "a claim needs a name", "");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Config, PolicyCondition};
    use ogive_base::SourceId;

    fn load(policies: &str) -> Result<Config, String> {
        let text = format!(
            "authorization: {{ directives: enforce, claims: {{ header: x, trusted: [10.1.2.3] }}, policies: {{ {policies} }} }}\n"
        );
        crate::load(SourceId(0), &text, &|_| None).map_err(|e| e[0].message.clone())
    }

    #[test]
    fn conditions_are_read_and_those_that_mean_nothing_are_refused() {
        let config = load(
            "rules: { paid: { any: [{ eq: [{ jwt_claim: plan }, gold] }, { not: { exists: { jwt_claim: a.b } } }] } }",
        )
        .unwrap();
        let paid = &config.authorization.policies.rules["paid"];
        assert!(
            matches!(paid, PolicyCondition::Any(of) if of.len() == 2),
            "{paid:?}"
        );
        let deep = format!(
            "{}{{ exists: {{ jwt_claim: a }} }}{}",
            "{ not: ".repeat(16),
            " }".repeat(16)
        );
        for (condition, message) in [
            ("{ eq: [a, b] }", "no claim is compared"),
            (
                "{ eq: [{ jwt_claim: a }] }",
                "a comparison is a list of two values",
            ),
            ("{ all: [] }", "`all` has no condition"),
            ("{ any: { eq: [] } }", "`any` needs a list of conditions"),
            ("{ exists: a }", "`exists` needs `{ jwt_claim: NAME }`"),
            (
                "{ }",
                "a condition is one of `eq`, `contains`, `exists`, `not`, `all`, `any`",
            ),
            (
                "{ exists: { jwt_claim: a }, not: { exists: { jwt_claim: a } } }",
                "a condition is one of `eq`, `contains`, `exists`, `not`, `all`, `any`",
            ),
            ("{ equals: [] }", "unknown key `equals`"),
            ("{ exists: { jwt_claim: '' } }", "a claim needs a name"),
            (&deep, "conditions are nested too deep"),
        ] {
            let found = load(&format!("rules: {{ paid: {condition} }}"));
            assert_eq!(found.unwrap_err(), message, "{condition}");
        }
    }

    #[test]
    fn a_service_that_decides_is_on_a_way_that_nobody_else_can_use() {
        assert_eq!(
            load("http: { }").unwrap_err(),
            "the service that decides policies needs `url`"
        );
        for good in ["https://policies.example/", "http://localhost:1/"] {
            assert!(
                load(&format!("http: {{ url: '{good}' }}")).is_ok(),
                "{good}"
            );
        }
        let far = "http: { url: 'http://policies.example/'";
        assert_eq!(
            load(&format!("{far} }}")).unwrap_err(),
            "whoever is on the way to the service could decide policies, and read claims"
        );
        assert!(load(&format!("{far}, allow_plain_http: true }}")).is_ok());
        assert!(load("http: { url: 'https://a.example', timeout: 0s }").is_err());
        let without = "authorization: { policies: { http: { url: 'https://a.example' } } }\n";
        assert!(crate::load(SourceId(0), without, &|_| None).is_err());
    }
}
