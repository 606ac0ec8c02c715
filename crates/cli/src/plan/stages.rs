//! The planner pass by pass, with the time each took.

use std::{
    fmt::Write,
    time::{Duration, Instant},
};

use clap::ValueEnum;
use ogive_gateway::SchemaState;
use ogive_operation::Operation;
use ogive_plan::{Header, Plan};
use ogive_planner::{
    Fuel, Observer, PlanError, PlanOptions, VERSION,
    assign::Schedule,
    describe, plan_observed,
    search::Found,
    tree::{Scope, Tree},
};

/// A planning pass.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Stage {
    /// The operation in canonical form
    Normalise,
    /// Every object, its values, keys and who resolves what
    Tree,
    /// Who can hold what in which wave if everything is allowed
    Closure,
    /// The chosen requests, the lower bound and the fuel used
    Search,
    /// Which request brings which value, and by which key
    Assign,
    /// The plan, and its size
    Emit,
    /// All of them
    All,
}

/// What every pass found.
pub(super) struct Passes {
    sections: Vec<(Stage, Duration, String)>,
    requests: Vec<String>,
    /// The result.
    pub(super) plan: Plan,
}

/// Plans, with so much more fuel if the plan is to be refined, and describes what every pass finds.
pub(super) fn run(
    state: &SchemaState,
    operation: &Operation,
    options: &PlanOptions,
    refine: Option<u64>,
) -> Result<Passes, PlanError> {
    let supergraph = &state.supergraph;
    let normal = ogive_operation::describe(&supergraph.api, operation);
    let mut found = Describer {
        sections: vec![(Stage::Normalise, Duration::ZERO, normal)],
        requests: Vec::new(),
        clock: Instant::now(),
    };
    let fuel = refine.map_or(Fuel::OfOptions, Fuel::Refined);
    let planned = plan_observed(supergraph, operation, options, fuel, &mut found)?;
    Ok(Passes {
        sections: found.sections,
        requests: found.requests,
        plan: planned.plan,
    })
}

/// Describes what it is shown. The clock stands while it does.
struct Describer {
    sections: Vec<(Stage, Duration, String)>,
    requests: Vec<String>,
    /// When the pass that runs began.
    clock: Instant,
}

impl Describer {
    fn section(&mut self, stage: Stage, took: Duration, text: String) {
        self.sections.push((stage, took, text));
        self.clock = Instant::now();
    }
}

impl Observer for Describer {
    fn tree(&mut self, tree: &Tree<'_>) {
        let took = self.clock.elapsed();
        self.section(Stage::Tree, took, describe::tree(tree));
    }

    fn search(&mut self, tree: &Tree<'_>, scopes: &[(Scope, Found)]) {
        let took = self.clock.elapsed();
        let (mut closures, mut searches) = (String::new(), String::new());
        let mut describing = Duration::ZERO;
        for (n, (scope, found)) in scopes.iter().enumerate() {
            if scopes.len() > 1 {
                for out in [&mut closures, &mut searches] {
                    let _ = writeln!(out, "part {}", n + 1);
                }
            }
            searches.push_str(&describe::search(tree, found));
            self.requests.push(describe::summary(found));
            let clock = Instant::now();
            closures.push_str(&describe::closure(tree, scope, found.closure.waves()));
            describing += clock.elapsed();
        }
        // The search asks for closures all the time; this is one of everything.
        self.section(Stage::Closure, describing, closures);
        self.section(Stage::Search, took, searches);
    }

    fn assign(&mut self, tree: &Tree<'_>, schedule: &Schedule) {
        let took = self.clock.elapsed();
        self.section(Stage::Assign, took, describe::assign(tree, schedule));
    }

    fn emit(&mut self, plan: &Plan) {
        let took = self.clock.elapsed();
        let header = Header {
            planner: VERSION.into(),
            schema: 0,
        };
        let bytes = ogive_plan::encode(plan, &header).len();
        let in_memory = plan.heap_bytes();
        let plan = ogive_plan::text(plan);
        let text = format!("{in_memory} bytes in memory, {bytes} bytes encoded\n\n{plan}");
        self.section(Stage::Emit, took, text);
    }
}

impl Passes {
    /// What one pass found, or all of them.
    pub(super) fn text(&self, stage: Stage) -> String {
        let mut out = String::new();
        for (at, took, text) in &self.sections {
            if stage != Stage::All && stage != *at {
                continue;
            }
            let name = at.to_possible_value();
            let name = name.as_ref().map_or("", |name| name.get_name());
            let _ = match *at {
                // The normal form is the input, and made before.
                Stage::Normalise => writeln!(out, "== {name} =="),
                _ => writeln!(out, "== {name} == {took:.1?}"),
            };
            out.push_str(text.trim_end());
            out.push_str("\n\n");
        }
        out.truncate(out.trim_end().len());
        out
    }

    /// How good the plan is, in one line.
    pub(super) fn summary(&self) -> String {
        let waves = self.plan.fetches.iter().map(|(_, fetch)| fetch.wave).max();
        format!(
            "{} requests in {} waves; search: {}",
            self.plan.fetches.len(),
            waves.unwrap_or(0),
            self.requests.join("; ")
        )
    }
}
