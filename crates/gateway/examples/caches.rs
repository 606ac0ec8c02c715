//! Times what stands between a request and its plan, best of many runs:
//! `cargo run --release -p ogive-gateway --example caches SUPERGRAPH OPERATION.json`.
#![allow(clippy::print_stdout, reason = "it is there to print")]

use std::{
    hint::black_box,
    sync::Arc,
    time::{Duration, Instant},
};

use ogive_base::SourceId;
use ogive_config::Config;
use ogive_edge::receive::Delivery;
use ogive_gateway::{
    SchemaState,
    plan::plan_now,
    prepare::prepare_operation,
    schema::{
        canonical::canonical,
        fingerprint::{Fingerprints, rests_on},
    },
};
use ogive_plan::{Header, decode, encode};

fn best<T>(runs: u32, mut run: impl FnMut() -> T) -> Duration {
    let once = |_| {
        let clock = Instant::now();
        black_box(run());
        clock.elapsed()
    };
    (0..runs).map(once).min().unwrap_or_default()
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let sdl = std::fs::read_to_string(arguments.next().expect("a supergraph")).expect("readable");
    let body = std::fs::read_to_string(arguments.next().expect("a request")).expect("readable");
    let body: serde_json::Value = serde_json::from_str(&body).expect("JSON");
    let query = body["query"].as_str().expect("a query");
    let supergraph = ogive_federation::read_supergraph(&sdl, SourceId(0), &Default::default());
    let (state, _) = SchemaState::new(supergraph.expect("a supergraph"), &Config::default());
    let refused = "the operation is valid and can be planned";

    let prepare = || prepare_operation(&state, query, None).expect(refused);
    let operation = prepare();
    let form = canonical(&state.supergraph, &state.compared, &operation.operation);
    let (planned, _) = plan_now(&state, &operation).expect(refused);
    state.operations.insert(None, Arc::new(operation));
    let known = state
        .operations
        .get(query, None, Delivery::Whole)
        .expect("just inserted");
    let header = Header {
        planner: "example".into(),
        schema: 0,
    };
    let bytes = encode(&planned.plan, &header);

    println!(
        "hash the schema       {:>10.1?}",
        best(20, || Fingerprints::new(&state.supergraph))
    );
    println!("parse to normal form  {:>10.1?}", best(200, prepare));
    println!(
        "canonical form        {:>10.1?}  ({} bytes)",
        best(200, || canonical(
            &state.supergraph,
            &state.compared,
            &known.operation
        )),
        form.key.len()
    );
    println!(
        "parts it rests on     {:>10.1?}  ({})",
        best(200, || rests_on(&state.supergraph, &form.operation)),
        rests_on(&state.supergraph, &form.operation).len()
    );
    println!(
        "hit by canonical form {:>10.1?}",
        best(200, || {
            let make = || Err::<_, ()>(());
            state.plans.get_or_make_now(form.key.clone(), true, make)
        })
    );
    // A thousand at a time: the clock is coarser than one.
    let hits = best(200, || {
        for _ in 0..1_000 {
            let known = state
                .operations
                .get(black_box(query), None, Delivery::Whole);
            black_box(known.map(|known| plan_now(&state, &known)));
        }
    });
    println!(
        "hit by text           {:>10.1?}  (document of {} bytes)",
        hits / 1_000,
        query.len()
    );
    println!(
        "plan                  {:>10} bytes in memory, {} encoded",
        planned.plan.heap_bytes(),
        bytes.len()
    );
    println!(
        "encode                {:>10.1?}",
        best(200, || encode(&planned.plan, &header))
    );
    println!(
        "decode and verify     {:>10.1?}",
        best(50, || decode(&bytes))
    );
}
