//! What a component costs at a stage: microseconds for one call of a warm instance, the best of several rounds.
//!
//! `cargo run --release -p ogive-component --features engine --example price`

#![expect(clippy::print_stdout, reason = "what it is for")]

use std::{error::Error, hint::black_box, time::Instant};

use http::{HeaderMap, HeaderValue};
use ogive_component::{Exchange, Plugin, PluginOptions, options::Name};
use ogive_coprocessor::Stage;

/// Calls of a round.
const CALLS: u32 = 20_000;
const ROUNDS: u32 = 7;

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
    let mut options = PluginOptions::new("tenant", "tenant.wat");
    options
        .permissions
        .write_headers
        .extend(Name::read("x-tenant"));
    let begun = Instant::now();
    let plugin = Plugin::of(options, &wat::parse_str(include_str!("tenant.wat"))?)?;
    println!("loading: {:.2} ms", begun.elapsed().as_secs_f64() * 1e3);
    let mut best = f64::MAX;
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        for _ in 0..CALLS {
            let mut exchange = Exchange::new(Stage::SubgraphRequest);
            exchange.headers.clone_from(&headers);
            let (exchange, outcome) = plugin.call(exchange);
            outcome?;
            black_box(exchange);
        }
        best = best.min(begun.elapsed().as_secs_f64() * 1e6 / f64::from(CALLS));
    }
    println!("one header set: {best:.2} us");
    Ok(())
}
