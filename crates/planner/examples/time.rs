//! Times planning of one operation: `cargo run --release -p ogive-planner --example time SUPERGRAPH OPERATION.json`.
use std::time::Instant;

use ogive_base::SourceId;

fn main() {
    let mut args = std::env::args().skip(1);
    let supergraph = std::fs::read_to_string(args.next().expect("supergraph")).expect("read");
    let body = std::fs::read_to_string(args.next().expect("body")).expect("read");
    let body: serde_json::Value = serde_json::from_str(&body).expect("json");
    let query = body["query"].as_str().expect("query");
    let supergraph =
        ogive_federation::read_supergraph(&supergraph, SourceId(0), &Default::default())
            .expect("supergraph");
    let mut best = [u128::MAX; 3];
    let mut fetches = 0;
    for _ in 0..200 {
        let a = Instant::now();
        let parsed = ogive_syntax::parse(query, SourceId(0), &Default::default());
        let b = Instant::now();
        let op = parsed.document.operations().next().expect("op");
        let op =
            ogive_operation::normalise(&supergraph.api, &parsed.document, op, &Default::default())
                .expect("ok");
        let c = Instant::now();
        let plan = ogive_planner::plan(&supergraph, &op, &Default::default()).expect("plan");
        let d = Instant::now();
        fetches = plan.fetches.len();
        for (i, t) in [(b - a), (c - b), (d - c)].into_iter().enumerate() {
            best[i] = best[i].min(t.as_nanos());
        }
    }
    println!(
        "{fetches} fetches; best ns: parse {} normalise {} plan {}",
        best[0], best[1], best[2]
    );
}
