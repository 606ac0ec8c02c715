//! The options of `authorization.policies`: who decides what `@policy` asks for.

use std::{collections::BTreeMap, num::NonZeroUsize};

use ogive_selectors::Condition;
use ogive_yaml::Node;

use crate::{
    ByteSize, ClaimNames, Duration, NamedHeader, Url,
    decode::{Decode, Errors, section},
    scalars::nonzero,
    selectors::{DecodeIn, Place},
};

section! {
    /// `authorization.policies`
    pub struct PolicyOptions {
        /// By policy: a condition on the caller's claims, as `{ eq: [{ jwt_claim: plan }, gold] }`. There are `eq`, `gt`, `lt`,
        /// `contains`, `exists`, `not`, `all` and `any`. A policy that is named here is decided here, and by nobody else.
        pub rules: BTreeMap<String, PolicyCondition> = BTreeMap::new(),
        /// A service that decides all other policies. Without it they hold for nobody, unless whoever says who the caller is
        /// names them, too.
        pub http: Option<PolicyServiceOptions> = None,
        /// Instead of a service: policies in the language Cedar, which decide all others. A build needs the feature `cedar` for
        /// it, which released ones have.
        pub cedar: Option<CedarOptions> = None,
        /// Instead of either: a WebAssembly component, by the name that it has in `plugins`. It is told what the caller claims.
        pub component: Option<String> = None,
    }

    /// `authorization.policies.cedar`
    pub struct CedarOptions {
        /// Files with policies. The action is the kind of the operation, as `Action::"query"`, the resource the policy that a
        /// field asks for, as `Policy::"paid"`. They are watched, as are the others.
        pub policies: Vec<String> = Vec::new(),
        /// File with entities, as JSON in Cedar's format.
        pub entities: Option<String> = None,
        /// File with a schema in Cedar's format, by which the policies are validated when they are read.
        pub schema: Option<String> = None,
        /// The type of callers.
        pub principal_type: String = "User".into(),
        /// The claim with the id of a caller, or several, as `[iss, sub]`, with `|` between what they say; for a caller without one of
        /// them nothing holds. Where callers come from several issuers and `entities` names them, `iss` has to be among them.
        pub principal_claim: ClaimNames = ClaimNames(vec!["sub".into()]),
        /// The claim with the groups that a caller is in, as a list or a text with spaces between them; default none.
        pub groups_claim: Option<String> = None,
        /// The type of these groups.
        pub group_type: String = "Group".into(),
        /// Most memory for decisions, which are good until the files change; default `8 MiB`.
        pub cache_memory: ByteSize = ByteSize(8 << 20),
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

section! {
    /// `authorization.revocation`
    pub struct RevocationOptions {
        /// How often credentials and policies are judged again by which subscriptions and answers in parts go on. One that was
        /// withdrawn ends them so much later at the latest, beside the time for which its issuer, or who decides the policy, is
        /// believed without asking again.
        pub check_interval: Duration = Duration::seconds(10),
        /// How long they go on while nobody can say whether the credential still holds, or what is decided of the policy.
        pub unanswered_max: Duration = Duration::seconds(300),
    }
}

impl PolicyOptions {
    /// Whether nobody is named who decides anything.
    pub fn decides_nothing(&self) -> bool {
        let PolicyOptions {
            rules,
            http,
            cedar,
            component,
        } = self;
        rules.is_empty() && http.is_none() && cedar.is_none() && component.is_none()
    }
}

impl CedarOptions {
    /// All files.
    pub fn files(&self) -> impl Iterator<Item = &String> {
        let policies = self.policies.iter();
        policies.chain(&self.entities).chain(&self.schema)
    }
}

/// What a policy asks of the claims of a caller, and of nothing else: what is decided is good for whatever the caller asks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PolicyCondition(pub Condition);

impl Decode for PolicyCondition {
    fn decode(node: &Node, errors: &mut Errors) -> Option<Self> {
        Condition::decode_at(node, Place::Policy, errors).map(PolicyCondition)
    }
}

#[cfg(test)]
mod tests {
    use ogive_selectors::Condition;

    use crate::Config;
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
            matches!(&paid.0, Condition::Any(of) if of.len() == 2),
            "{paid:?}"
        );
        let deep = format!(
            "{}{{ exists: {{ jwt_claim: a }} }}{}",
            "{ not: ".repeat(16),
            " }".repeat(16)
        );
        for (condition, message) in [
            ("{ eq: [a, b] }", "nothing of the request is compared"),
            (
                "{ exists: { client_name: true } }",
                "`client_name` says nothing in policies",
            ),
            (
                "{ exists: { jwt_claim: a, client_name: true } }",
                "a selector names one value of a request",
            ),
            (
                "{ eq: [{ jwt_claim: a }] }",
                "a comparison is a list of two values",
            ),
            ("{ all: [] }", "`all` has no condition"),
            ("{ any: { eq: [] } }", "`any` needs a list of conditions"),
            (
                "{ exists: a }",
                "`exists` needs what is looked for, such as `{ jwt_claim: sub }`",
            ),
            (
                "{ }",
                "a condition is one of `eq`, `contains`, `gt`, `lt`, `exists`, `not`, `all`, `any`",
            ),
            (
                "{ exists: { jwt_claim: a }, not: { exists: { jwt_claim: a } } }",
                "a condition is one of `eq`, `contains`, `gt`, `lt`, `exists`, `not`, `all`, `any`",
            ),
            ("{ equals: [] }", "unknown key `equals`"),
            ("{ exists: { jwt_claim: '' } }", "`jwt_claim` needs a name"),
            (&deep, "conditions are nested too deep"),
        ] {
            let found = load(&format!("rules: {{ paid: {condition} }}"));
            assert_eq!(found.unwrap_err(), message, "{condition}");
        }
    }

    #[test]
    fn cedar_needs_policies_and_nobody_else_decides_beside_it() {
        let good = load("cedar: { policies: [a.cedar], entities: e.json }").unwrap();
        let cedar = good.authorization.policies.cedar.unwrap();
        assert_eq!(cedar.files().collect::<Vec<_>>(), ["a.cedar", "e.json"]);
        let several = "authentication: { router: { api_keys: { file: k }, jwt: { jwks: [ { url: 'file:///k', issuers: [a] } ] } } }\n\
                       authorization: { directives: enforce, policies: { cedar: { policies: [a.cedar], entities: e.json CLAIM } } }\n";
        let load_several =
            |claim: &str| crate::load(SourceId(0), &several.replace("CLAIM", claim), &|_| None);
        let refused = load_several("").unwrap_err();
        assert!(
            refused[0]
                .message
                .starts_with("callers come from several origins")
        );
        assert!(load_several(", principal_claim: [iss, sub]").is_ok());
        assert_eq!(
            load("cedar: { }").unwrap_err(),
            "Cedar needs `policies`: a list of files"
        );
        assert_eq!(
            load("cedar: { policies: [a] }, http: { url: 'https://a.example' }").unwrap_err(),
            "policies are decided by Cedar or by a service, not by both"
        );
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
