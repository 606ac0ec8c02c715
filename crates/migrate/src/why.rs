//! Why there is nothing like it here, or no need for it, and what to do instead: said alike of all four gateways.

pub(crate) const OFF: &str = "it is off, as is the default";
pub(crate) const BUDGET: &str = "the budget is one of ten seconds";
pub(crate) const SUBSCRIPTIONS: &str =
    "how subscriptions are served is written otherwise: see `subscription`";
pub(crate) const CALLBACKS: &str = "events of subgraphs come to the address of the gateway, at `subscription.mode.callback.path`, so whoever reaches the gateway reaches that: keep all but subgraphs from it in front of the gateway";
pub(crate) const EVENTS: &str =
    "brokers are configured in `events.providers`, and no code of others sees their events";
pub(crate) const CLAIMS: &str = "how callers are known is written otherwise: see `authentication.router` and `authorization.claims`";
pub(crate) const CODE: &str = "code for another gateway is not loaded here; a WebAssembly component (`plugins`), a coprocessor (`coprocessor.url`), which is a program beside it, or a Rhai script (`rhai`) can do the same at the same stages";
pub(crate) const COPROCESSOR: &str = "a coprocessor has no such key here, and its stages that are brought over are asked without it: see `coprocessor`";
pub(crate) const HIVE_COPROCESSOR: &str = "programs are asked in Apollo Router's protocol here: write `coprocessor` by hand, with its `url` and stages";
pub(crate) const COSTS: &str = "costs are counted by `@cost` and `@listSize`, and limited in `demand_control` for the whole operation and by subgraph (`strategy.static_estimated.subgraph`)";
pub(crate) const CACHES: &str =
    "answers are not kept from one request to the next; equal requests under way are sent once";
pub(crate) const SIGNATURES: &str =
    "what proves to subgraphs who asks is written otherwise: see `authentication.subgraph`";
pub(crate) const MUTATIONS: &str = "write a rule by hand: `limits.operation_rules: [{ refuse: mutations }]`, with `when` or `unless` for a condition";
pub(crate) const CONNECTORS: &str = "every subgraph speaks GraphQL";
pub(crate) const TOOLS: &str = "operations are served as GraphQL over HTTP only";
