//! The rules of `limits.operation_rules`: operations that are refused by what they are, whoever asks or only some.
//!
//! ```yaml
//! limits:
//!   operation_rules:
//!     - { refuse: mutations, unless: { eq: [{ jwt_claim: role }, editor] }, message: "read only until Monday" }
//!     - { refuse: introspection, unless: { contains: ["10.0.0.0/8 unix", { client_address: true }] } }
//! ```

use ogive_selectors::Condition;

use crate::{decode::section, words::words};

section! {
    /// `limits.operation_rules[]`
    pub struct OperationRuleOptions {
        /// What is refused: `mutations`, `subscriptions`, operations that are `anonymous`, those with numbers or texts as
        /// `literals` where variables could be or as defaults of variables, `introspection`, or the `documents` that are listed.
        pub refuse: Option<RefusedWord> = None,
        /// With `refuse: documents`, which: each a document of one operation. Another one is the same if it differs in names of
        /// the operation, white space, fragments, or literals alone.
        pub documents: Vec<String> = Vec::new(),
        /// Only requests of which this holds; default all. `{ eq: [{ client_name: true }, shop] }`, as in policies; there are
        /// `jwt_claim`, `request_header`, `client_name`, `client_version`, `client_address`, `operation_name` and
        /// `operation_kind`.
        pub when: Option<Condition> = None,
        /// All but requests of which this holds.
        pub unless: Option<Condition> = None,
        /// What clients are told; default what is refused.
        pub message: String = String::new(),
        /// Whether it is only logged, and counted in `ogive.limits.exceeded`; default no.
        pub warn_only: bool = false,
    }
}

words! {
    /// What a rule refuses.
    pub enum RefusedWord {
        /// Mutations.
        Mutations = "mutations",
        /// Subscriptions.
        Subscriptions = "subscriptions",
        /// Operations without a name.
        Anonymous = "anonymous",
        /// Operations with numbers or texts as arguments that are no variables.
        Literals = "literals",
        /// Operations that ask for `__schema` or `__type`.
        Introspection = "introspection",
        /// Those that are listed.
        Documents = "documents",
    }
}
