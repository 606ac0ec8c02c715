//! The differential test: generated graphs and operations, and the cases kept from earlier findings.
//!
//! `OGIVE_DIFF_OPERATIONS` sets how many operations to run (default 12,000), `OGIVE_DIFF_SEED` where to start,
//! `OGIVE_DIFF_SUBGRAPHS` the most subgraphs of a graph, `OGIVE_DIFF_KEEP` how many different failures to shrink
//! before stopping, `OGIVE_DIFF_MODES` that one operation of so many is executed in every mode (default 3, and 1 for more
//! operations than that). A failure is shrunk and printed as a case; put it into `tests/cases` with a speaking name.
//! `BLESS=1` fills in the supergraph and data of cases that lack them.

mod composed;
mod contexts;
mod costs;
mod reference;

use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use ogive_testbase::Recorded;
use ogive_testkit::{
    case::Case,
    coverage::{
        PairCoverage,
        evidence::{Evidence, exercised},
    },
    differential::{Bench, Mismatch},
    faults::Fault,
    graph::{
        Model,
        generate::{GraphOptions, count::roles, generate},
        print,
    },
    ops::{self, Op, features::features, generate::OpOptions},
    pipeline::{Answer, Mode},
    rng::mix,
    schemas::supergraph,
    shrink::{Failing, shrink},
};

fn number(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Err(_) => default,
        Ok(text) => text
            .parse()
            .unwrap_or_else(|_| panic!("{name} must be a number, is {text:?}")),
    }
}

/// Operations per graph.
const PER_GRAPH: u64 = 16;

/// Every so many graphs have resolvers that fail, so that errors and null propagation are compared too.
const FAULTS_EVERY: u64 = 3;

/// Every so many graphs are served from the supergraph that composition makes of their subgraphs.
const COMPOSED_EVERY: u64 = 5;

/// Fields that fail there, of 1,000.
const FAULTS_PER_MILLE: u64 = 25;

/// Of this many operations one runs again with a request that gets no answer.
const LOST_EVERY: u64 = 3;

/// Of this many operations one is executed in every mode, unless it is a full run: then all are.
const MODES_EVERY: u64 = 3;

/// Operations that `cargo test` runs.
const SLICE: u64 = 12_000;

/// From this many operations on a run has to cover what it claims to.
const COVERING: u64 = 10_000;

/// Least percentage of pairs of rules.
const PAIRS_MIN: f64 = 95.0;

#[test]
fn gateway_equals_monolith() {
    let started = std::time::Instant::now();
    let operations = number("OGIVE_DIFF_OPERATIONS", SLICE);
    let modes_every = if operations > SLICE { 1 } else { MODES_EVERY };
    let run = Run {
        operations,
        modes_every: number("OGIVE_DIFF_MODES", modes_every).max(1),
        base: number("OGIVE_DIFF_SEED", 1),
        keep: number("OGIVE_DIFF_KEEP", 1) as usize,
        next: AtomicU64::new(0),
        found: Mutex::default(),
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| run.work());
        }
    });
    let found = run
        .found
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    println!("{}", found.coverage);
    for report in found.failures.values() {
        println!("{report}");
    }
    println!(
        "{operations} operations, {} mismatches, {:.0} s",
        found.counts.values().sum::<usize>(),
        started.elapsed().as_secs_f64()
    );
    assert!(found.counts.is_empty(), "{:#?}", found.counts);
    if operations >= COVERING {
        found.coverage.check();
    }
}

/// A run over generated graphs, on all cores: each worker takes the next graph.
struct Run {
    operations: u64,
    modes_every: u64,
    base: u64,
    /// Different failures to shrink before the run stops.
    keep: usize,
    next: AtomicU64,
    found: Mutex<Found>,
}

/// What the workers of a run have found.
#[derive(Default)]
struct Found {
    coverage: Coverage,
    /// Reports by kind of failure; a failure that is being shrunk has an empty one.
    failures: BTreeMap<String, String>,
    counts: BTreeMap<String, usize>,
}

impl Run {
    fn found(&self) -> MutexGuard<'_, Found> {
        // A worker that panics ends the test.
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        loop {
            let g = self.next.fetch_add(1, Ordering::Relaxed);
            let stop = self.keep == 1 && !self.found().failures.is_empty();
            if stop || g >= self.operations.div_ceil(PER_GRAPH) {
                return;
            }
            self.graph(g);
        }
    }

    fn graph(&self, g: u64) {
        let seed = mix(self.base.wrapping_add(g)) >> 16;
        let faults = match g % FAULTS_EVERY {
            0 => FAULTS_PER_MILLE,
            _ => 0,
        };
        let model = generate(seed, &graph_options(g, faults));
        let setup = Setup {
            seed,
            faults,
            is_composed: g % COMPOSED_EVERY == 1,
        };
        let bench = match setup.bench(&model) {
            Ok(bench) => bench,
            // Composition asks for more than the data of a generated graph needs, as the reference does.
            Err(e) if e.contains("SATISFIABILITY_ERROR") => {
                self.found().coverage.unsatisfiable += 1;
                return;
            }
            Err(e) => {
                return self.fail(format!("graph: {}", without_names(&e)), || {
                    let all = (0..model.subgraphs.len()).map(|s| print::subgraph_sdl(&model, s));
                    let all: Vec<String> = all.collect();
                    let all = all.join("\n########\n");
                    format!("\n======== graph {seed} ========\n{e}\n\n{all}\n")
                });
            }
        };
        self.found().coverage.graph(&model);
        for i in 0..PER_GRAPH.min(self.operations - g * PER_GRAPH) {
            let op = ops::generate::generate(&model, mix(seed ^ i), &OpOptions::default());
            // Composition sorts what introspection lists.
            if setup.is_composed && features(&model, &op).contains("introspection") {
                continue;
            }
            self.found().coverage.operation(&model, &op);
            let in_all = (g + i).is_multiple_of(self.modes_every);
            match guarded(&bench, &op, i, in_all) {
                Ok((answer, lost)) => {
                    let mut found = self.found();
                    found.coverage.answer(&model, &op, &answer, lost);
                }
                Err(mismatch) => self.fail(mismatch.kind.clone(), || {
                    report(&model, setup, &op, (i, in_all), &mismatch)
                }),
            }
        }
    }

    /// Counts a failure, and reports the first of its kind while fewer than `keep` are reported.
    fn fail(&self, kind: String, report: impl FnOnce() -> String) {
        {
            let mut found = self.found();
            *found.counts.entry(kind.clone()).or_default() += 1;
            if found.failures.len() >= self.keep || found.failures.contains_key(&kind) {
                return;
            }
            found.failures.insert(kind.clone(), String::new());
        }
        // Shrinking takes long.
        let report = report();
        self.found().failures.insert(kind, report);
    }
}

/// What a graph becomes a bench by.
#[derive(Clone, Copy)]
struct Setup {
    seed: u64,
    faults: u64,
    is_composed: bool,
}

impl Setup {
    fn bench(self, model: &Model) -> Result<Bench, String> {
        let mut bench = Bench::with_faults(model, self.seed, self.faults)?;
        if self.is_composed {
            bench.schemas.supergraph = supergraph(&composed::supergraph_of(model)?)?;
        }
        Ok(bench)
    }
}

/// The first line that says what is wrong, without the names in it.
fn without_names(text: &str) -> String {
    let line = text.lines().find(|l| l.contains("error")).unwrap_or(text);
    line.split('`').step_by(2).collect::<Vec<_>>().join("_")
}

/// Now and then a graph of many subgraphs.
fn graph_options(g: u64, faults: u64) -> GraphOptions {
    let mut options = GraphOptions::default();
    options.subgraphs_max = number("OGIVE_DIFF_SUBGRAPHS", options.subgraphs_max as u64) as usize;
    options.uniform = faults > 0;
    options.through_objects = faults > 0;
    if g % 25 == 24 {
        options.subgraphs_max = 40;
        options.entities_max = 8;
    }
    options
}

/// Compares, in every mode or one, with panics turned into mismatches. The answer, and whether it was also had with a
/// request lost.
fn guarded(bench: &Bench, op: &Op, seed: u64, in_all: bool) -> Result<(Answer, bool), Mismatch> {
    let modes = if in_all {
        Mode::all_from(seed)
    } else {
        vec![Mode::by_seed(seed)]
    };
    let both = || {
        let answer = bench.compare_in(&op.document(), &op.variables_json(), seed, &modes)?;
        let sent = answer.requests.len();
        let lose = sent > 0 && mix(seed).is_multiple_of(LOST_EVERY);
        if lose {
            let request = (mix(seed) % sent as u64) as usize;
            bench.compare_without(op, seed, &answer, Fault::of(request, seed))?;
        }
        Ok((answer, lose))
    };
    match catch_unwind(AssertUnwindSafe(both)) {
        Ok(result) => result,
        Err(panic) => {
            let message = panic
                .downcast_ref::<String>()
                .cloned()
                .or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()))
                .unwrap_or_default();
            Err(Mismatch {
                kind: format!("panic: {message}"),
                report: format!("panic: {message}"),
                lost: None,
            })
        }
    }
}

/// Shrinks a failure and tells the whole story.
fn report(
    model: &Model,
    setup: Setup,
    op: &Op,
    (op_seed, in_all): (u64, bool),
    mismatch: &Mismatch,
) -> String {
    let kind = mismatch.kind.clone();
    let again = |case: &Failing| -> Option<Mismatch> {
        let bench = setup.bench(&case.model).ok()?;
        guarded(&bench, &case.op, op_seed, in_all)
            .err()
            .filter(|m| m.kind == kind)
    };
    let small = shrink(
        Failing {
            model: model.clone(),
            op: op.clone(),
        },
        &mut |case| again(case).is_some(),
    );
    let smallest = again(&small).unwrap_or_else(|| mismatch.clone());
    let mut case = Case::of(
        &small.model,
        setup.seed,
        small.op.document(),
        small.op.variables_json(),
        &kind,
    );
    case.faults = setup.faults;
    case.lost = smallest.lost;
    if let (true, Ok(text)) = (setup.is_composed, composed::supergraph_of(&small.model)) {
        case.supergraph = text;
    }
    let replay = match case.run() {
        Err(m) if m.kind == kind => "fails from its text too",
        _ => "DOES NOT fail from its text: the model or operation order matters",
    };
    format!(
        "\n======== graph {}, operation {op_seed} ========\n{case}\n-------- {replay}\n{}\n-------- before it was shrunk\n{}\n",
        setup.seed,
        smallest.report,
        mismatch.report.chars().take(2_000).collect::<String>()
    )
}

/// Fewer cases mean that some were not found.
const KEPT_CASES: usize = 23;

#[test]
fn kept_cases_pass() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(&folder)
        .expect("the folder of cases is there")
        .map(|entry| entry.expect("the folder can be listed").path())
        .collect();
    paths.sort();
    let mut failed = Vec::new();
    let mut recorded = Recorded::new();
    for path in paths
        .iter()
        .filter(|p| p.extension().is_some_and(|e| e == "case"))
    {
        let text = std::fs::read_to_string(path).expect("a case that was just listed can be read");
        let outcome = Case::parse(&text).and_then(|case| case.run().map_err(|m| m.report));
        match outcome {
            Err(report) => failed.push(format!("{}\n{report}", path.display())),
            // With its supergraph and data.
            Ok(complete) => recorded.compare(path, &complete.to_string()),
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
    recorded.finish(KEPT_CASES);
}

/// What a run exercised.
#[derive(Default)]
struct Coverage {
    graphs: usize,
    /// Graphs that composition finds not to be satisfiable.
    unsatisfiable: usize,
    operations: usize,
    roles: BTreeMap<&'static str, usize>,
    features: BTreeMap<&'static str, usize>,
    waves: BTreeMap<u32, usize>,
    requests: usize,
    subgraphs_max: usize,
    pairs: PairCoverage,
}

impl Coverage {
    fn graph(&mut self, model: &Model) {
        self.graphs += 1;
        self.subgraphs_max = self.subgraphs_max.max(model.subgraphs.len());
        for (role, n) in roles(model) {
            *self.roles.entry(role).or_default() += n;
        }
    }
    fn operation(&mut self, model: &Model, op: &Op) {
        self.operations += 1;
        for feature in features(model, op) {
            *self.features.entry(feature).or_default() += 1;
        }
    }
    fn answer(&mut self, model: &Model, op: &Op, answer: &Answer, lost: bool) {
        *self.waves.entry(answer.waves).or_default() += 1;
        self.requests += answer.requests.len();
        let Some(plan) = &answer.compiled else { return };
        self.pairs.add(exercised(&Evidence {
            model,
            op,
            plan,
            requests: &answer.requests,
            data: &answer.data,
            errors: answer.errors.as_deref(),
            failed_request: lost,
        }));
    }
    /// A run that leaves a feature out proves nothing about it.
    fn check(&self) {
        let (graphs, refused) = (self.graphs, self.unsatisfiable);
        assert!(
            refused * 50 < graphs,
            "composition refuses {refused} graphs"
        );
        let missing = self.pairs.missing_rules();
        assert!(missing.is_empty(), "nobody exercised rules {missing:?}");
        let percent = self.pairs.percent();
        assert!(percent >= PAIRS_MIN, "{percent:.1} % of the pairs of rules");
        for (role, n) in &self.roles {
            assert!(*n > 0, "no graph has {role}");
        }
        for feature in FEATURES {
            assert!(
                self.features.get(feature).is_some_and(|n| *n >= 5),
                "hardly any operation has {feature}"
            );
        }
    }
}

/// Features every full run must have.
const FEATURES: [&str; 35] = [
    "query",
    "mutation",
    "mutation with several root fields",
    "alias",
    "alias that is another field's name",
    "alias that is a key's name",
    "argument",
    "input object literal",
    "list literal",
    "variable in argument",
    "variable with default",
    "variable left out",
    "inline fragment",
    "named fragment",
    "fragment without type condition",
    "fragment on interface",
    "fragment on union",
    "fragment on object",
    "condition on fragment",
    "@skip literal",
    "@skip variable",
    "@include literal",
    "@include variable",
    "field repeated in one set",
    "introspection",
    "__typename",
    "interface field",
    "union field",
    "field with @requires",
    "field with @provides",
    "field with @override",
    "shared field",
    "nested list",
    "depth above 5",
    "same key under different types",
];

impl std::fmt::Display for Coverage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(
            f,
            "{} operations over {} graphs of up to {} subgraphs, {} requests",
            self.operations, self.graphs, self.subgraphs_max, self.requests
        )?;
        writeln!(f, "{} graphs refused by composition", self.unsatisfiable)?;
        writeln!(f, "roles in graphs:")?;
        for (name, n) in &self.roles {
            writeln!(f, "  {n:6} {name}")?;
        }
        writeln!(f, "operations with:")?;
        for (name, n) in &self.features {
            writeln!(f, "  {n:6} {name}")?;
        }
        writeln!(f, "plans by waves: {:?}", self.waves)?;
        write!(f, "{}", self.pairs)
    }
}
