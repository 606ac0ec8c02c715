//! Times planning of one operation, pass by pass:
//! `cargo run --release -p ogive-planner --example time SUPERGRAPH OPERATION [ROUNDS]`.
//!
//! OPERATION is GraphQL text, or a request's JSON if its name ends in `.json`. `cold` is everything from the text to the
//! finished plan, freed again; the passes after it are measured on their own. An operation that is refused is timed up
//! to its error.
#![expect(
    clippy::print_stdout,
    reason = "a command line tool speaks to its terminal"
)]

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use ogive_base::SourceId;
use ogive_federation::Supergraph;
use ogive_operation::Operation;
use ogive_plan::Plan;
use ogive_planner::{
    Fuel, Observer,
    assign::Schedule,
    search::Found,
    tree::{Scope, Tree},
};

// What the binary uses.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What is measured, in order.
const STEPS: [&str; 9] = [
    "cold",
    "parse",
    "validate",
    "normalise",
    "plan",
    "grow",
    "search",
    "assign",
    "emit",
];

fn main() {
    let mut args = std::env::args().skip(1);
    let mut argument = |what: &str| args.next().unwrap_or_else(|| panic!("{what} is missing"));
    let supergraph = std::fs::read_to_string(argument("SUPERGRAPH")).expect("SUPERGRAPH");
    let path = argument("OPERATION");
    let mut query = std::fs::read_to_string(&path).expect("OPERATION");
    if path.ends_with(".json") {
        let body: serde_json::Value = serde_json::from_str(&query).expect("JSON");
        query = body["query"].as_str().expect("a query").to_owned();
    }
    let rounds = args.next().and_then(|n| n.parse().ok()).unwrap_or(200);
    let supergraph =
        ogive_federation::read_supergraph(&supergraph, SourceId(0), &Default::default())
            .expect("supergraph");
    let mut times = vec![Vec::with_capacity(rounds); STEPS.len()];
    let mut outcome = Ok(0);
    for _ in 0..rounds {
        let start = Instant::now();
        outcome = cold(&supergraph, &query);
        times[0].push(start.elapsed());
        if outcome.is_err() {
            continue;
        }
        for (step, time) in passes(&supergraph, &query).into_iter().enumerate() {
            times[step + 1].push(time);
        }
    }
    match outcome {
        Ok(fetches) => println!("{fetches} fetches"),
        Err(why) => println!("refused: {why}"),
    }
    println!("{:10} {:>12} {:>12}", "", "median", "least");
    for (step, mut times) in STEPS.into_iter().zip(times) {
        times.sort_unstable();
        if times.is_empty() {
            break;
        }
        let (median, least) = (times[times.len() / 2], times[0]);
        println!("{step:10} {median:>12?} {least:>12?}");
    }
}

fn normal_form(
    supergraph: &Supergraph,
    document: &ogive_syntax::Document,
) -> Result<Operation, String> {
    let operation = document.operations().next().ok_or("no operation")?;
    let limits = Default::default();
    ogive_operation::normalise(&supergraph.api, document, operation, &limits)
        .map_err(|error| error.message)
}

#[inline(never)]
fn cold(supergraph: &Supergraph, query: &str) -> Result<usize, String> {
    let parsed = ogive_syntax::parse(query, SourceId(0), &Default::default());
    if let Some(error) = parsed.errors.first() {
        return Err(error.message.clone());
    }
    let document = parsed.document;
    let errors = ogive_operation::validate(&supergraph.api, &document, &Default::default());
    if let Some(error) = errors.first() {
        return Err(error.message.clone());
    }
    let op = normal_form(supergraph, &document)?;
    let plan = ogive_planner::plan(supergraph, &op, &Default::default())
        .map_err(|error| error.to_string())?;
    Ok(black_box(&plan).fetches.len())
}

/// The times of the steps after the first.
fn passes(supergraph: &Supergraph, query: &str) -> Vec<Duration> {
    let mut times = Vec::new();
    let mut last = Instant::now();
    let mut done = |times: &mut Vec<Duration>| {
        times.push(last.elapsed());
        last = Instant::now();
    };
    let parsed = ogive_syntax::parse(query, SourceId(0), &Default::default());
    done(&mut times);
    black_box(ogive_operation::validate(
        &supergraph.api,
        &parsed.document,
        &Default::default(),
    ));
    done(&mut times);
    let op = normal_form(supergraph, &parsed.document).expect("a normal form");
    done(&mut times);
    let options = Default::default();
    let plan = ogive_planner::plan(supergraph, &op, &options).expect("a plan");
    done(&mut times);
    black_box(plan);
    let mut clock = Clock {
        times,
        last: Instant::now(),
    };
    let planned =
        ogive_planner::plan_observed(supergraph, &op, &options, Fuel::OfOptions, &mut clock);
    black_box(planned.expect("a plan"));
    clock.times
}

/// The time of each pass.
struct Clock {
    times: Vec<Duration>,
    last: Instant,
}

impl Clock {
    fn done(&mut self) {
        self.times.push(self.last.elapsed());
        self.last = Instant::now();
    }
}

impl Observer for Clock {
    fn tree(&mut self, _: &Tree<'_>) {
        self.done();
    }
    fn search(&mut self, _: &Tree<'_>, _: &[(Scope, Found)]) {
        self.done();
    }
    fn assign(&mut self, _: &Tree<'_>, _: &Schedule) {
        self.done();
    }
    fn emit(&mut self, _: &Plan) {
        self.done();
    }
}
