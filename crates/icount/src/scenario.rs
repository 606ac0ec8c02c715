//! What is measured. A scenario is prepared once and run any number of times; only runs count.

use std::{cell::RefCell, hint::black_box};

use anyhow::{Context as _, Result, ensure};
use ogive_base::SourceId;
use ogive_execute::ResponseBody;
use ogive_json::scan::validate;
use ogive_operation::{
    NormaliseLimits, ValidationLimits, normalise, validate as validate_operation,
};
use ogive_planner::{PlanOptions, plan};
use ogive_syntax::{Limits, parse};

use crate::{
    graph::{Graph, Prepared},
    variant::Variant,
};

/// Every scenario: name and what it does.
pub const SCENARIOS: &[(&str, &str)] = &[
    ("parse", "parse the shop's TestQuery"),
    ("validate", "validate it against the API schema"),
    ("normalise", "bring it into normal form"),
    ("plan", "plan it, everything before included"),
    (
        "plan-typical",
        "plan thirteen fields of four subgraphs, everything before included",
    ),
    (
        "plan-many",
        "plan 341 objects over seven subgraphs, everything before included",
    ),
    ("execute-trivial", "one object from one subgraph"),
    ("execute-join", "five levels over four subgraphs"),
    (
        "execute-query",
        "TestQuery: entity joins over four subgraphs",
    ),
    ("execute-big", "eight megabytes, nothing joined"),
    ("execute-held", "eight megabytes, four entities joined"),
    (
        "execute-pretty",
        "the eight megabytes printed for people, nothing joined",
    ),
    (
        "execute-reversed",
        "the eight megabytes with all members the other way round",
    ),
    (
        "execute-escaped",
        "the eight megabytes with escapes in their strings",
    ),
    ("copy-big", "validate those eight megabytes and copy them"),
    ("scan-big", "only validate those eight megabytes"),
];

/// A prepared scenario.
pub struct Scenario(Box<dyn Fn() -> Result<()>>);

impl Scenario {
    /// Prepares a scenario.
    pub fn prepare(name: &str) -> Result<Scenario> {
        let shop = || Graph::read("shop", "test-query", "{}");
        Ok(Scenario(match name {
            "parse" => {
                let graph = shop()?;
                Box::new(move || {
                    let parsed = parse(graph.operation.as_str(), SourceId(0), &Limits::default());
                    ensure!(black_box(parsed).errors.is_empty());
                    Ok(())
                })
            }
            "validate" => {
                let graph = shop()?;
                let parsed = parse(graph.operation.as_str(), SourceId(0), &Limits::default());
                Box::new(move || {
                    let limits = ValidationLimits::default();
                    let api = &graph.supergraph.api;
                    ensure!(validate_operation(api, &parsed.document, &limits).is_empty());
                    Ok(())
                })
            }
            "normalise" => {
                let graph = shop()?;
                let parsed = parse(graph.operation.as_str(), SourceId(0), &Limits::default());
                Box::new(move || {
                    let operation = parsed.document.operations().next().context("none")?;
                    let limits = NormaliseLimits::default();
                    let api = &graph.supergraph.api;
                    ensure!(normalise(api, &parsed.document, operation, &limits).is_ok());
                    Ok(())
                })
            }
            "plan" => planning(shop()?),
            "plan-typical" => planning(Graph::read("four-services", "complex", "{}")?),
            "plan-many" => planning(Graph::read("many-plans", "deep", "{}")?),
            "execute-trivial" => execute(&Graph::read("single", "user", "{}")?)?,
            "execute-join" => execute(&Graph::read(
                "four-services",
                "complex",
                r#"{"userId":"1"}"#,
            )?)?,
            "execute-query" => execute(&shop()?)?,
            "execute-big" => execute(&Graph::read("big-response", "all", "{}")?)?,
            "execute-held" => execute(&Graph::read("big-response", "held", "{}")?)?,
            "execute-pretty" => variant(Variant::Pretty)?,
            "execute-reversed" => variant(Variant::Reversed)?,
            "execute-escaped" => variant(Variant::Escaped)?,
            "copy-big" => {
                let prepared = Graph::read("big-response", "all", "{}")?.prepare()?;
                let copy = RefCell::new(Vec::new());
                Box::new(move || {
                    for (_, answer) in &prepared.answers {
                        validate_and_copy(answer, &mut copy.borrow_mut())?;
                    }
                    Ok(())
                })
            }
            "scan-big" => {
                let prepared = Graph::read("big-response", "all", "{}")?.prepare()?;
                Box::new(move || {
                    for (_, answer) in &prepared.answers {
                        validate(answer)?;
                    }
                    Ok(())
                })
            }
            _ => anyhow::bail!("no scenario {name}"),
        }))
    }

    /// Runs it once.
    pub fn run(&self) -> Result<()> {
        (self.0)()
    }
}

/// What a gateway that looks at nothing would have to do: see that it is JSON, and keep it.
pub fn validate_and_copy(text: &[u8], copy: &mut Vec<u8>) -> Result<()> {
    validate(black_box(text))?;
    copy.clear();
    copy.extend_from_slice(text);
    black_box(copy);
    Ok(())
}

fn variant(variant: Variant) -> Result<Box<dyn Fn() -> Result<()>>> {
    let prepared = variant.prepare()?;
    prepared.plan.derived();
    Ok(Box::new(move || {
        black_box(respond(&prepared)?);
        Ok(())
    }))
}

fn planning(graph: Graph) -> Box<dyn Fn() -> Result<()>> {
    Box::new(move || {
        let parsed = parse(graph.operation.as_str(), SourceId(0), &Limits::default());
        let api = &graph.supergraph.api;
        let limits = ValidationLimits::default();
        ensure!(validate_operation(api, &parsed.document, &limits).is_empty());
        let operation = parsed.document.operations().next().context("none")?;
        let limits = NormaliseLimits::default();
        let operation = normalise(api, &parsed.document, operation, &limits);
        let operation = operation.ok().context("no normal form")?;
        let made = plan(&graph.supergraph, &operation, &PlanOptions::default());
        ensure!(black_box(made).is_ok());
        Ok(())
    })
}

fn execute(graph: &Graph) -> Result<Box<dyn Fn() -> Result<()>>> {
    let prepared = graph.prepare()?;
    // What a plan cache has done already.
    prepared.plan.derived();
    Ok(Box::new(move || {
        black_box(respond(&prepared)?);
        Ok(())
    }))
}

/// Executes and walks the segments, as a vectored write would.
pub fn respond(prepared: &Prepared) -> Result<usize> {
    let output = prepared.run()?;
    ensure!(output.errors == 0);
    let body: ResponseBody = output.body;
    Ok(body.into_segments().map(|segment| segment.len()).sum())
}
