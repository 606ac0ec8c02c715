//! Reasons in the report that several gateways share: why a key has no counterpart or is not needed, and what to do.

pub(crate) const OFF: &str = "it is off, as is the default";
pub(crate) const BUDGET: &str = "the budget is one of ten seconds";
pub(crate) const SUBSCRIPTIONS: &str =
    "subscriptions are configured differently: see `subscription`";
pub(crate) const CALLBACKS: &str = "subgraphs send events to the address of the gateway, at `subscription.mode.callback.path`, which every client can reach: let a proxy admit only subgraphs to that path";
pub(crate) const EVENTS: &str =
    "brokers are configured in `events.providers`, and custom code cannot process their events";
pub(crate) const CLAIMS: &str = "authentication is configured differently: see `authentication.router` and `authorization.claims`";
pub(crate) const CODE: &str = "code for another gateway is not loaded here; a WebAssembly component (`plugins`), a coprocessor (`coprocessor.url`), which is a program beside it, or a Rhai script (`rhai`) can do the same at the same stages";
pub(crate) const COPROCESSOR: &str = "a coprocessor has no such key here, and the stages that are brought over run without it: see `coprocessor`";
pub(crate) const HIVE_COPROCESSOR: &str = "coprocessors use Apollo Router's protocol here: write `coprocessor` by hand, with its `url` and stages";
pub(crate) const COSTS: &str = "costs are counted by `@cost` and `@listSize`, and limited in `demand_control` for the whole operation and by subgraph (`strategy.static_estimated.subgraph`)";
pub(crate) const CACHES: &str = "write a rule by hand: `response_cache.subgraph` keeps answers and entities in memory; see docs/response-cache.md";
pub(crate) const SIGNATURES: &str =
    "authentication to subgraphs is configured differently: see `authentication.subgraph`";
pub(crate) const MUTATIONS: &str = "write a rule by hand: `limits.operation_rules: [{ refuse: mutations }]`, with `when` or `unless` for a condition";
pub(crate) const CONNECTORS: &str = "every subgraph speaks GraphQL";
pub(crate) const TOOLS: &str = "operations are served as GraphQL over HTTP only";
