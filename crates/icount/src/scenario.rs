//! What is measured. A scenario is prepared once and run any number of times; only runs count.

use std::{cell::RefCell, hint::black_box, path::Path};

use anyhow::{Context as _, Result, ensure};
use ogive_base::SourceId;
use ogive_execute::{ExecuteOptions, ExecuteOutput, ResponseBody, Reuse};
use ogive_json::{Scanner, scan::validate, write_string};
use ogive_operation::{
    NormaliseLimits, ValidationLimits, normalise, validate as validate_operation,
};
use ogive_planner::{PlanOptions, plan};
use ogive_syntax::{Limits, parse};

use crate::{
    graph::{Graph, Prepared},
    identify::identify_known_token,
    variant::Variant,
    whole::{end_to_end, end_to_end_scripted, prepare_hit},
};

/// Every scenario: name and what it does.
pub const SCENARIOS: &[(&str, &str)] = &[
    (
        "unescape",
        "take the shop's TestQuery out of a request, where its line breaks are escaped",
    ),
    ("parse", "parse it"),
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
        "TestQuery: entity joins over four subgraphs, equal look-ups sent once",
    ),
    (
        "execute-reuse",
        "TestQuery as it is executed by default: nothing is asked twice",
    ),
    (
        "execute-many",
        "341 objects over seven subgraphs: 119 look-ups of an entity or two each",
    ),
    ("execute-big", "eight megabytes, nothing joined"),
    (
        "execute-arriving",
        "the eight megabytes, looked at whenever 64 KiB more of them have come",
    ),
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
    (
        "prepare-hit",
        "the body of a known operation's request: read, looked up, variables coerced",
    ),
    (
        "identify-known-token",
        "who asks, of a request whose token was proved before",
    ),
    (
        "whole-trivial",
        "a request through server, gateway and transport: one object from one subgraph",
    ),
    (
        "whole-script",
        "the same, and a script sets one header of the response",
    ),
    (
        "whole-script-at-subgraph",
        "the same, and a script sets one header of the request to the subgraph",
    ),
];

const SETS_ONE_HEADER: &str = r#"fn router_service(service) { service.map_response(|response| { response.headers["x-a"] = "1"; }); }"#;
const SETS_ONE_HEADER_OF_SUBGRAPH: &str = r#"fn subgraph_service(service, subgraph) { service.map_request(|request| { request.subgraph.headers["x-a"] = "1"; }); }"#;

/// A prepared scenario.
pub struct Scenario(Box<dyn Fn() -> Result<()>>);

impl Scenario {
    /// The name of the function in which everything is counted.
    pub const COUNTED: &'static str = "run_counted";

    /// Prepares a scenario, with subgraphs' answers from a file if it needs some.
    pub fn prepare(name: &str, answers: Option<&Path>) -> Result<Scenario> {
        if let Some(executed) = Executed::find(name) {
            let prepared = match answers {
                Some(path) => executed.graph()?.prepare_from(path, executed.options)?,
                None => executed.prepare()?,
            };
            return Ok(Scenario(match name {
                "scan-big" => Box::new(move || {
                    for (_, answer) in &prepared.answers {
                        validate(answer)?;
                    }
                    Ok(())
                }),
                "copy-big" => {
                    let copy = RefCell::new(Vec::new());
                    Box::new(move || {
                        for (_, answer) in &prepared.answers {
                            validate_and_copy(answer, &mut copy.borrow_mut())?;
                        }
                        Ok(())
                    })
                }
                "execute-arriving" => {
                    prepared.plan.derived();
                    Box::new(move || {
                        let output = prepared.run_in_pieces(64 << 10)?;
                        // All but the last piece and what a look leaves.
                        let unknown = output.stats.answer_bytes - output.stats.streamed_bytes;
                        ensure!(output.errors == 0 && unknown < 160 << 10);
                        black_box(into_segments(output));
                        Ok(())
                    })
                }
                _ => execute(prepared),
            }));
        }
        let shop = || Graph::read("shop", "test-query", "{}");
        Ok(Scenario(match name {
            "unescape" => {
                let (graph, mut text) = (shop()?, Vec::new());
                write_string(&mut text, graph.operation.as_str());
                Box::new(move || {
                    let document = Scanner::new(&text).string()?;
                    ensure!(document.has_escapes());
                    black_box(document.unescape());
                    Ok(())
                })
            }
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
            "prepare-hit" => {
                let variables = r#"{"userId":"1"}"#;
                prepare_hit(Graph::read("four-services", "complex", variables)?)?
            }
            "identify-known-token" => identify_known_token(Graph::read("single", "user", "{}")?)?,
            "whole-trivial" => end_to_end(Graph::read("single", "user", "{}")?, "")?,
            "whole-script" => {
                end_to_end_scripted(Graph::read("single", "user", "{}")?, SETS_ONE_HEADER)?
            }
            "whole-script-at-subgraph" => end_to_end_scripted(
                Graph::read("single", "user", "{}")?,
                SETS_ONE_HEADER_OF_SUBGRAPH,
            )?,
            "plan-many" => planning(Graph::read("many-plans", "deep", "{}")?),
            _ => anyhow::bail!("no scenario {name}"),
        }))
    }

    /// Runs it once.
    pub fn run(&self) -> Result<()> {
        (self.0)()
    }

    /// Runs it so that callgrind knows what to count ([`Scenario::COUNTED`]).
    #[inline(never)]
    pub fn run_counted(&self) -> Result<()> {
        (self.0)()
    }
}

/// What is executed, and how.
struct Executed {
    graph: &'static str,
    operation: &'static str,
    variables: &'static str,
    options: ExecuteOptions,
    variant: Option<Variant>,
}

impl Executed {
    fn find(name: &str) -> Option<Executed> {
        let (graph, operation, variables) = match name {
            "execute-trivial" => ("single", "user", "{}"),
            "execute-join" => ("four-services", "complex", r#"{"userId":"1"}"#),
            "execute-query" | "execute-reuse" => ("shop", "test-query", "{}"),
            "execute-many" => ("many-plans", "deep", "{}"),
            "execute-big" | "execute-arriving" | "copy-big" | "scan-big" | "execute-pretty"
            | "execute-reversed" | "execute-escaped" => ("big-response", "all", "{}"),
            "execute-held" => ("big-response", "held", "{}"),
            _ => return None,
        };
        let all = matches!(name, "execute-reuse" | "execute-many");
        let options = ExecuteOptions {
            reuse: if all { Reuse::All } else { Reuse::Entities },
            prefetch: all,
            ..ExecuteOptions::default()
        };
        Some(Executed {
            graph,
            operation,
            variables,
            options,
            variant: match name {
                "execute-pretty" => Some(Variant::Pretty),
                "execute-reversed" => Some(Variant::Reversed),
                "execute-escaped" => Some(Variant::Escaped),
                _ => None,
            },
        })
    }
    fn graph(&self) -> Result<Graph> {
        Graph::read(self.graph, self.operation, self.variables)
    }
    fn prepare(&self) -> Result<Prepared> {
        match self.variant {
            Some(variant) => variant.prepare(),
            None => self.graph()?.prepare_with(self.options),
        }
    }
}

/// Writes down what the subgraphs answer in a scenario, if they are asked.
pub fn record(name: &str, path: &Path) -> Result<()> {
    match Executed::find(name) {
        Some(executed) => executed.prepare()?.write_answers(path),
        None => Ok(()),
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

fn execute(prepared: Prepared) -> Box<dyn Fn() -> Result<()>> {
    // What a plan cache has done already.
    prepared.plan.derived();
    Box::new(move || {
        black_box(respond(&prepared)?);
        Ok(())
    })
}

/// Executes and walks the segments, as a vectored write would.
pub fn respond(prepared: &Prepared) -> Result<usize> {
    let output = prepared.run()?;
    ensure!(output.errors == 0);
    Ok(into_segments(output))
}
fn into_segments(output: ExecuteOutput) -> usize {
    let body: ResponseBody = output.body;
    body.into_segments().map(|segment| segment.len()).sum()
}
