//! Names of the spans: one per stop of a request.
//!
//! `tracing` wants literals, so the macro [`stop_span!`](crate::stop_span) is the only user of these words.

/// Stop 1: bytes and headers become one GraphQL request.
pub const RECEIVE: &str = "request.receive";
/// Stop 2: parse, validate, normalise; coerce variables.
pub const PREPARE: &str = "request.prepare";
/// Stop 3: look the plan up, or search for it.
pub const PLAN: &str = "request.plan";
/// Stop 4: run the plan against the subgraphs.
pub const EXECUTE: &str = "request.execute";
/// Stop 5: the answer's bytes.
pub const RESPOND: &str = "request.respond";

/// An event of a subscription, with the name of its subgraph behind it.
pub const EVENT: &str = "event";

/// Field of [`PLAN`]: where the plan came from, `bundle`, `cache` or `planner`.
pub const PLAN_SOURCE: &str = "plan.source";

/// All of them, in order.
pub const STOPS: [&str; 5] = [RECEIVE, PREPARE, PLAN, EXECUTE, RESPOND];

/// A span of one stop, at debug level: at the default level it costs one comparison.
#[macro_export]
macro_rules! stop_span {
    ($name:expr $(, $($fields:tt)*)?) => {
        tracing::debug_span!(target: "ogive", $name $(, $($fields)*)?)
    };
}
