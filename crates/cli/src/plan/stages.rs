//! The planner pass by pass, with the time each took. The passes and their order are those of [`ogive_planner::plan`].

use std::{
    fmt::Write,
    time::{Duration, Instant},
};

use clap::ValueEnum;
use ogive_gateway::SchemaState;
use ogive_operation::Operation;
use ogive_plan::{Header, Plan};
use ogive_planner::{
    PlanError, PlanOptions, VERSION,
    assign::{self, Schedule},
    defer, describe, emit, load, quality, restrict, tree,
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

/// Runs all passes, with so much more fuel if the plan is to be refined.
pub(super) fn run(
    state: &SchemaState,
    operation: &Operation,
    options: &PlanOptions,
    refine: Option<u64>,
) -> Result<Passes, PlanError> {
    let supergraph = &state.supergraph;
    let mut sections = Vec::new();
    let normal = ogive_operation::describe(&supergraph.api, operation);
    sections.push((Stage::Normalise, Duration::ZERO, normal));

    let clock = Instant::now();
    let operation = &*restrict(supergraph, operation)?;
    let tree = tree::grow(supergraph, operation, options)?;
    sections.push((Stage::Tree, clock.elapsed(), describe::tree(&tree)));

    let mut schedule = Schedule::default();
    let (mut closures, mut searches) = (String::new(), String::new());
    let mut took = [Duration::ZERO; 3];
    let mut requests = Vec::new();
    let clock = Instant::now();
    let options = &match refine {
        Some(fuel) => quality::refining(&tree, options, fuel),
        None => options.clone(),
    };
    let scopes = load::choose(&tree, options)?;
    took[1] += clock.elapsed();
    for (n, (scope, found)) in scopes.iter().enumerate() {
        if scopes.len() > 1 {
            for out in [&mut closures, &mut searches] {
                let _ = writeln!(out, "part {}", n + 1);
            }
        }
        searches.push_str(&describe::search(&tree, found));
        requests.push(describe::summary(found));
        let clock = Instant::now();
        let closure = describe::closure(&tree, scope, found.closure.waves());
        took[0] += clock.elapsed();
        closures.push_str(&closure);
        let clock = Instant::now();
        assign::assign(&tree, scope, found, &mut schedule)?;
        took[2] += clock.elapsed();
    }
    sections.push((Stage::Closure, took[0], closures));
    sections.push((Stage::Search, took[1], searches));
    sections.push((Stage::Assign, took[2], describe::assign(&tree, &schedule)));

    let clock = Instant::now();
    defer::split(&tree, &mut schedule);
    let plan = emit::emit(&tree, &schedule);
    let mut text = String::new();
    let emitted = clock.elapsed();
    let header = Header {
        planner: VERSION.into(),
        schema: 0,
    };
    let _ = writeln!(
        text,
        "{} bytes in memory, {} bytes encoded\n",
        plan.heap_bytes(),
        ogive_plan::encode(&plan, &header).len()
    );
    text.push_str(&ogive_plan::text(&plan));
    sections.push((Stage::Emit, emitted, text));
    Ok(Passes {
        sections,
        requests,
        plan,
    })
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
