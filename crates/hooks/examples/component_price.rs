//! What a component costs at a stage: microseconds for one call of a warm instance, the best of several rounds.
//!
//! `cargo run --release -p ogive-hooks --features components --example component_price [FILE]`; without a file that of `tenant.wat`. What
//! is called is its hook for requests to subgraphs; it may do what those of `examples/plugins` do.

#![expect(clippy::print_stdout, reason = "what it is for")]

use std::{
    error::Error,
    hint::black_box,
    sync::Arc,
    time::{Duration, Instant},
};

use http::{HeaderMap, HeaderValue};
use ogive_hooks::components::{Component, ComponentOptions, options::Name};
use ogive_hooks::{CallMode, Exchange, Stage};
use serde_json::value::RawValue;

/// How long a round is.
const ROUND: Duration = Duration::from_millis(200);
const ROUNDS: u32 = 7;
const CLAIMS: &str = "apollo::authentication::jwt_claims";

fn main() -> Result<(), Box<dyn Error>> {
    let mut headers = HeaderMap::new();
    for (name, value) in [
        ("accept", "application/json"),
        ("content-type", "application/json"),
        ("host", "localhost"),
        ("user-agent", "price"),
        ("x-key", "0123456789"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    let headers = Arc::new(headers);
    let mut options = ComponentOptions::new("tenant", "tenant.wat");
    // That of others is measured, not bounded.
    options.limits.time = Duration::from_secs(60);
    let permissions = &mut options.permissions;
    permissions.write_headers.extend(Name::read("x-tenant"));
    permissions.read_headers.extend(Name::read("authorization"));
    permissions.read_context.insert(CLAIMS.to_owned());
    let bytes = match std::env::args().nth(1) {
        Some(path) => std::fs::read(path)?,
        None => wat::parse_str(include_str!("tenant.wat"))?,
    };
    let begun = Instant::now();
    let plugin = Component::of(options, &bytes)?;
    println!("loading: {:.2} ms", begun.elapsed().as_secs_f64() * 1e3);
    let mut best = f64::MAX;
    for _ in 0..ROUNDS {
        let (begun, mut calls) = (Instant::now(), 0_u32);
        while begun.elapsed() < ROUND {
            calls += 1;
            let mut exchange = Exchange::new(Stage::SubgraphRequest);
            exchange.headers = Arc::clone(&headers);
            let claims = RawValue::from_string("{\"tenant\":\"gold\"}".to_owned())?;
            exchange.context.set(CLAIMS, claims)?;
            exchange.pass(&plugin, CallMode::Turn)?;
            black_box(exchange);
        }
        best = best.min(begun.elapsed().as_secs_f64() * 1e6 / f64::from(calls));
    }
    println!("one header set: {best:.2} us");
    Ok(())
}
