//! The timed execution trace that an allowed client gets with its response, in `extensions.ogiveTrace`.

use std::time::Duration;

use ogive_json::write_string;

use crate::{
    hook::HookCall,
    operation::{Operation, Stop},
};

/// The JSON object; times are microseconds from the start of the HTTP request. `hooks`: those that were called so far.
pub fn json<'n>(
    operation: &Operation,
    hooks: &[HookCall],
    subgraph: impl Fn(u32) -> &'n str,
) -> Vec<u8> {
    let mut out = Vec::with_capacity(512);
    let number = |out: &mut Vec<u8>, name: &str, value: u128| {
        write_string(out, name);
        out.push(b':');
        out.extend_from_slice(value.to_string().as_bytes());
    };
    let times = |out: &mut Vec<u8>, start: Duration, took: Duration| {
        number(out, "startMicros", start.as_micros());
        out.push(b',');
        number(out, "durationMicros", took.as_micros());
    };
    out.extend_from_slice(b"{\"version\":1,\"planSource\":");
    write_string(&mut out, operation.plan_source);
    out.extend_from_slice(b",\"stops\":[");
    let stops = Stop::ALL.into_iter().zip(&operation.stops);
    for (index, (stop, (start, took))) in stops
        .filter_map(|(stop, timed)| Some((stop, (*timed)?)))
        .enumerate()
    {
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(b"{\"name\":");
        write_string(&mut out, stop.word());
        out.push(b',');
        times(&mut out, start, took);
        out.push(b'}');
    }
    out.extend_from_slice(b"],\"subgraphRequests\":[");
    for (index, call) in operation.calls.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(b"{\"subgraph\":");
        write_string(&mut out, subgraph(call.subgraph));
        out.push(b',');
        times(&mut out, call.started, call.took);
        if let Some(status) = call.status {
            out.push(b',');
            number(&mut out, "status", u128::from(status));
        }
        if let Some(code) = call.failure() {
            out.extend_from_slice(b",\"code\":");
            write_string(&mut out, code);
        }
        out.push(b',');
        number(&mut out, "tries", u128::from(call.tries));
        out.push(b',');
        number(&mut out, "bytes", call.bytes as u128);
        out.push(b'}');
    }
    out.push(b']');
    for (index, call) in hooks.iter().enumerate() {
        out.extend_from_slice(if index == 0 { b",\"hooks\":[{" } else { b",{" });
        for (name, word) in [
            ("hook", call.hook.word()),
            ("stage", call.stage),
            ("outcome", call.outcome.word()),
        ] {
            write_string(&mut out, name);
            out.push(b':');
            write_string(&mut out, word);
            out.push(b',');
        }
        times(&mut out, call.started, call.took);
        out.push(b'}');
    }
    if !hooks.is_empty() {
        out.push(b']');
    }
    out.push(b'}');
    out
}
