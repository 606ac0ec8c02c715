//! Times planning of one operation: `cargo run --release -p ogive-planner --example time SUPERGRAPH OPERATION.json`.
#![expect(
    clippy::print_stdout,
    reason = "a command line tool speaks to its terminal"
)]

use std::time::Instant;

use ogive_base::SourceId;

// What the binary uses.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

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
    let mut passes = [u128::MAX; 4];
    let mut fetches = 0;
    let rounds = args.next().and_then(|n| n.parse().ok()).unwrap_or(200);
    for _ in 0..rounds {
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
        let options = Default::default();
        let tree = ogive_planner::tree::grow(&supergraph, &op, &options).expect("tree");
        let e = Instant::now();
        let mut schedule = ogive_planner::assign::Schedule::default();
        let scopes = tree.scopes();
        let found = ogive_planner::search::search(&tree, &scopes[0], &options).expect("found");
        let f = Instant::now();
        ogive_planner::assign::assign(&tree, &scopes[0], &found, &mut schedule).expect("assigned");
        let g = Instant::now();
        std::hint::black_box(ogive_planner::emit::emit(&tree, &schedule));
        let h = Instant::now();
        for (i, t) in [(e - d), (f - e), (g - f), (h - g)].into_iter().enumerate() {
            passes[i] = passes[i].min(t.as_nanos());
        }
        fetches = plan.fetches.len();
        for (i, t) in [(b - a), (c - b), (d - c)].into_iter().enumerate() {
            best[i] = best[i].min(t.as_nanos());
        }
    }
    println!(
        "{fetches} fetches; best ns: parse {} normalise {} plan {}",
        best[0], best[1], best[2]
    );
    println!(
        "  grow {} search {} assign {} emit {}",
        passes[0], passes[1], passes[2], passes[3]
    );
}
