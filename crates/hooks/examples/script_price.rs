//! What a script costs at a stage: microseconds for one call, the best of several rounds.
//!
//! `cargo run --release -p ogive-hooks --example script_price`

#![expect(clippy::print_stdout, reason = "what it is for")]

use std::{error::Error, hint::black_box, sync::Arc, time::Instant};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use ogive_hooks::{
    Body, CallMode, Exchange, Message, Stage,
    scripts::{Limits, Program, Scripts},
};

/// Calls of a round.
const CALLS: u32 = 20_000;
const ROUNDS: u32 = 7;

const CASES: [(&str, &str); 5] = [
    ("nothing", ""),
    ("one header set", "request.headers[\"x-a\"] = \"1\";"),
    (
        "one header read, one set",
        "if request.headers.contains(\"x-key\") { request.headers[\"x-a\"] = request.headers[\"x-key\"]; }",
    ),
    (
        "a claim to a header",
        "let claims = request.context[\"claims\"]; if claims != () { request.headers[\"x-user\"] = claims[\"sub\"]; }",
    ),
    (
        "a body read and written",
        "request.body.extensions = #{ a: request.body.query.len() };",
    ),
];

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::temp_dir().join(format!("ogive-price-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
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
    let body = Body::Json(Bytes::from_static(
        br#"{"query":"query Me { me { name } }"}"#,
    ));
    let headers = Arc::new(headers);
    for (name, text) in CASES {
        let script = format!(
            "fn supergraph_service(service) {{ service.map_request(|request| {{ {text} }}); }}"
        );
        std::fs::write(folder.join("main.rhai"), script)?;
        let limits = Limits::default();
        let program = Program::read(&folder.to_string_lossy(), "main.rhai", limits)?;
        let scripts = Scripts::start(&program, String::new)?;
        let mut best = f64::MAX;
        for _ in 0..ROUNDS {
            let begun = Instant::now();
            for _ in 0..CALLS {
                let mut exchange = Exchange::new(Stage::SupergraphRequest);
                exchange.headers = Arc::clone(&headers);
                let claims = serde_json::value::RawValue::from_string("{\"sub\":\"u1\"}".into())?;
                exchange.context.set("claims", claims)?;
                exchange.body = Some(body.clone());
                exchange.pass(&scripts, CallMode::Turn)?;
                black_box(exchange);
            }
            best = best.min(begun.elapsed().as_secs_f64() * 1e6 / f64::from(CALLS));
        }
        println!("script, {name}: {best:.2} us");
    }
    // What a coprocessor costs besides its round trip.
    let message = Message {
        headers: Some(&headers),
        body: Some(&body),
        ..Message::new(Stage::SupergraphRequest, "0123456789abcdef")
    };
    let begun = Instant::now();
    for _ in 0..CALLS {
        black_box(message.to_json());
    }
    let took = begun.elapsed().as_secs_f64() * 1e6 / f64::from(CALLS);
    println!("coprocessor, writing a message: {took:.2} us");
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}
