//! Showing the plan to the client that asks for it, in the words Apollo's tools know: a request header, and
//! `extensions.apolloQueryPlan` with the tree as JSON and as text,
//! and how much was done to find it. Off unless the configuration allows it, because plans
//! show what clients otherwise never see.

use http::{HeaderMap, HeaderName};
use ogive_config::Config;
use ogive_json::write_string;
use ogive_plan::apollo;

use crate::schema::operation::PlannedOperation;

/// Whether and how plans are shown.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExposeOptions {
    /// The header that asks for the plan; `None`: plans are not shown.
    pub header: Option<HeaderName>,
}

/// What a client asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Exposed {
    /// No plan.
    No,
    /// The plan beside the response.
    WithResponse,
    /// The plan alone; nothing is executed.
    DryRun,
}

impl ExposeOptions {
    /// The options that a configuration asks for.
    pub fn new(config: &Config) -> Self {
        let expose = &config.query_planning.expose;
        let header = HeaderName::from_bytes(expose.header.0.as_bytes()).ok();
        ExposeOptions {
            header: header.filter(|_| expose.enabled),
        }
    }
    /// What the headers of a request ask for.
    pub fn asked(&self, headers: &HeaderMap) -> Exposed {
        let value = self.header.as_ref().and_then(|name| headers.get(name));
        match value.map(|value| value.as_bytes()) {
            Some(b"true") => Exposed::WithResponse,
            Some(b"dry-run") => Exposed::DryRun,
            _ => Exposed::No,
        }
    }
}

/// The value of `extensions.apolloQueryPlan`.
pub(crate) fn plan_extension(planned: &PlannedOperation) -> Vec<u8> {
    let plan = &*planned.plan;
    let mut out = b"{\"object\":".to_vec();
    out.extend_from_slice(apollo::json_line(plan).as_bytes());
    out.extend_from_slice(b",\"text\":");
    write_string(&mut out, &apollo::text(plan));
    out.extend_from_slice(b",\"tier\":");
    write_string(&mut out, planned.shared.tier.as_str());
    out.push(b'}');
    out
}

/// Adds extensions, at least one, to a response, which must be a JSON object without `extensions`.
pub(crate) fn add_extensions(body: &[u8], extensions: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let size: usize = extensions.iter().map(|(n, v)| n.len() + v.len() + 4).sum();
    let mut out = Vec::with_capacity(body.len() + size + 16);
    out.extend_from_slice(body.strip_suffix(b"}").unwrap_or(body));
    for (index, (name, value)) in extensions.iter().enumerate() {
        out.extend_from_slice(match index {
            0 => b",\"extensions\":{",
            _ => b",",
        });
        write_string(&mut out, name);
        out.push(b':');
        out.extend_from_slice(value);
    }
    out.extend_from_slice(b"}}");
    out
}

/// The response to a request that only wants the plan.
pub(crate) fn dry_run(planned: &PlannedOperation) -> Vec<u8> {
    add_extensions(
        b"{\"data\":null}",
        &[("apolloQueryPlan", plan_extension(planned))],
    )
}
