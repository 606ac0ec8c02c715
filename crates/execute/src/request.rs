//! What a subgraph is sent: the body of one request.

use bytes::Bytes;
use ogive_plan::{Fetch, FetchId, Plan, Segment};

use crate::{
    condition::Conditions, gather::Gathered, limits::ExecuteLimits,
    operation_names::OperationNames, stop::LimitReached,
};

/// What is set aside for the parts of a body that are neither text of the plan nor representations.
const BODY_FRAME_BYTES: usize = 128;

/// Builds the body of a request; `None` if there is nothing to ask.
pub(crate) fn body(
    (id, fetch): (FetchId, &Fetch),
    gathered: &Gathered,
    conditions: &Conditions,
    variables: &[Option<Box<str>>],
    plan: &Plan,
    (limits, names): (&ExecuteLimits, Option<OperationNames<'_>>),
) -> Result<Option<Bytes>, LimitReached> {
    if !gathered.root && gathered.n_representations() == 0 {
        return Ok(None);
    }
    let live = |lookup| gathered.is_live(lookup);
    let texts = fetch.segments.iter().map(|segment| segment.text.len());
    let facts = &plan.derived().lookups[id];
    let variables_of_lookups = facts.iter().map(|facts| facts.variable.len() + 3);
    let likely = texts.sum::<usize>() + gathered.text.len() + gathered.context.len();
    let likely = likely + variables_of_lookups.sum::<usize>();
    let mut out = Vec::with_capacity(likely + BODY_FRAME_BYTES);
    out.extend_from_slice(b"{\"query\":\"");
    let name = names.and_then(|names| names.of(id, fetch));
    let mut segments = fetch.segments.iter();
    if let Some(name) = &name {
        write_named(name, fetch, segments.next(), &mut out);
    }
    for segment in segments {
        if conditions.open(&segment.gates, live) {
            out.extend_from_slice(segment.text.as_bytes());
        }
    }
    out.push(b'"');
    if let Some(name) = &name {
        for part in [",\"operationName\":\"", name, "\""] {
            out.extend_from_slice(part.as_bytes());
        }
    }
    let mut empty = true;
    let mut begin = |out: &mut Vec<u8>| {
        out.extend_from_slice(if empty { b",\"variables\":{" } else { b"," });
        empty = false;
    };
    for variable in &fetch.variables {
        let index = variable.variable as usize;
        let value = variables.get(index).and_then(Option::as_deref);
        if let (Some(value), Some(name)) = (value, plan.variables.get(index))
            && conditions.open(&variable.gates, live)
        {
            begin(&mut out);
            ogive_json::write_string(&mut out, name);
            out.push(b':');
            out.extend_from_slice(value.as_bytes());
        }
    }
    let lookups = fetch.lookups.iter().zip(facts);
    for ((lookup, facts), asked) in lookups.zip(&gathered.lookups) {
        if asked.n_representations > 0 && !lookup.is_reentry() {
            begin(&mut out);
            out.extend_from_slice(&facts.variable);
            out.push(b'[');
            out.extend_from_slice(&gathered.text[asked.text.clone()]);
            out.push(b']');
        }
    }
    if !gathered.context.is_empty() {
        // Behind the representations there is always something to put a comma behind.
        out.extend_from_slice(&gathered.context);
    }
    out.extend_from_slice(if empty { b"}" } else { b"}}" });
    if out.len() > limits.request_bytes_max {
        return Err(LimitReached("request_bytes_max"));
    }
    Ok(Some(Bytes::from(out)))
}

/// The first piece of a text, which is always written, with a name behind the word that opens it.
#[inline(never)]
fn write_named(name: &str, fetch: &Fetch, first: Option<&Segment>, out: &mut Vec<u8>) {
    let kind = fetch.kind.as_str();
    let text = first.map_or("", |segment| &segment.text);
    let rest = text.strip_prefix(kind).unwrap_or(text);
    for part in [kind, " ", name, rest] {
        out.extend_from_slice(part.as_bytes());
    }
}
