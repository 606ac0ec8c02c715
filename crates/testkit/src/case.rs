//! Cases on file: subgraphs, supergraph, operation and the expected answer in one text.
//!
//! A case is a sequence of sections, each headed by a line `### word rest`:
//!
//! ```text
//! # free text: what the case is about
//! ### seed 7
//! ### subgraph accounts
//! ...SDL...
//! ### supergraph
//! ...SDL...
//! ### operation
//! ...document...
//! ### variables
//! {"a": 1}
//! ### data
//! {"q0":null}
//! ```
//!
//! The data comes from [`crate::world`] under the seed; `data` is what the monolith answered when the case was
//! written. The supergraph may be left out; then it is printed from the subgraphs.

use std::fmt::Write;

use crate::{
    differential::{Bench, Mismatch},
    faults::Fault,
    graph::{Model, print, read},
    pipeline::Mode,
};

/// One case.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Case {
    /// What it is about.
    pub title: String,
    /// Seed of the world.
    pub seed: u64,
    /// Resolvers that fail, of 1,000.
    pub faults: u64,
    /// The request that fails when the case runs once more.
    pub lost: Option<Fault>,
    /// Name and SDL of each subgraph.
    pub subgraphs: Vec<(String, String)>,
    /// The supergraph; empty to have it printed.
    pub supergraph: String,
    /// The document.
    pub operation: String,
    /// Variables as JSON; empty for none.
    pub variables: String,
    /// Expected `data`.
    pub data: String,
}

impl Case {
    /// Reads a case.
    pub fn parse(text: &str) -> Result<Case, String> {
        let mut case = Case::default();
        let (title, rest) = text.split_once("\n### ").unwrap_or((text, ""));
        case.title = title
            .lines()
            .map(|l| l.trim_start_matches('#').trim())
            .collect::<Vec<_>>()
            .join("\n");
        for section in rest.split("\n### ") {
            let (head, body) = section.split_once('\n').unwrap_or((section, ""));
            let (word, rest) = head.split_once(' ').unwrap_or((head, ""));
            let body = body.trim();
            match word {
                "seed" => {
                    case.seed = rest.trim().parse().map_err(|e| format!("seed: {e}"))?;
                }
                "faults" => {
                    case.faults = rest.trim().parse().map_err(|e| format!("faults: {e}"))?;
                }
                "lost" => {
                    case.lost = Some(Fault::parse(rest.trim()).map_err(|e| format!("lost: {e}"))?);
                }
                "subgraph" => case
                    .subgraphs
                    .push((rest.trim().to_owned(), format!("{body}\n"))),
                "supergraph" => case.supergraph = format!("{body}\n"),
                "operation" => case.operation = format!("{body}\n"),
                "variables" => case.variables = body.to_owned(),
                "data" => case.data = body.to_owned(),
                other => return Err(format!("unknown section {other:?}")),
            }
        }
        Ok(case)
    }

    /// A case from a graph and an operation.
    pub fn of(model: &Model, seed: u64, operation: String, variables: String, title: &str) -> Case {
        Case {
            title: title.to_owned(),
            seed,
            faults: 0,
            lost: None,
            subgraphs: (0..model.subgraphs.len())
                .map(|s| (model.subgraphs[s].clone(), print::subgraph_sdl(model, s)))
                .collect(),
            supergraph: print::supergraph_sdl(model),
            operation,
            variables,
            data: String::new(),
        }
    }

    /// The graph of its subgraphs.
    pub fn model(&self) -> Result<Model, String> {
        read::read(&self.subgraphs)
    }

    /// Runs the case. On success the case with its supergraph and data filled in.
    pub fn run(&self) -> Result<Case, Mismatch> {
        let broken = |report: String| Mismatch {
            kind: "the case is broken".to_owned(),
            report,
            lost: None,
        };
        let model = self.model().map_err(broken)?;
        let mut bench = Bench::with_faults(&model, self.seed, self.faults).map_err(broken)?;
        if !self.supergraph.is_empty() {
            bench.schemas.supergraph =
                crate::schemas::supergraph(&self.supergraph).map_err(broken)?;
        }
        let variables = if self.variables.is_empty() {
            "{}"
        } else {
            &self.variables
        };
        let mut out = self.clone();
        if out.supergraph.is_empty() {
            out.supergraph = print::supergraph_sdl(&model);
        }
        let (data, _) = bench.expected(&self.operation, variables).map_err(broken)?;
        if !self.data.is_empty() && self.data != data {
            return Err(broken(format!(
                "the monolith answers\n{data}\nwhere the case expects\n{}",
                self.data
            )));
        }
        out.data = data;
        let modes = Mode::all_from(self.seed);
        let answer = bench.compare_in(&self.operation, variables, self.seed, &modes)?;
        if let Some(lost) = self.lost {
            let mut fields = model.types.iter().flat_map(|t| &t.fields);
            let computes = fields.any(|f| f.requires().is_some());
            let op = (&*self.operation, variables, computes);
            bench.compare_without_text(op, self.seed, &answer, lost)?;
        }
        Ok(out)
    }
}

impl std::fmt::Display for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for line in self.title.lines() {
            writeln!(f, "# {line}")?;
        }
        writeln!(f, "\n### seed {}", self.seed)?;
        if self.faults > 0 {
            writeln!(f, "\n### faults {}", self.faults)?;
        }
        if let Some(lost) = self.lost {
            writeln!(f, "\n### lost {lost}")?;
        }
        for (name, sdl) in &self.subgraphs {
            writeln!(f, "\n### subgraph {name}\n{}", sdl.trim_end())?;
        }
        if !self.supergraph.is_empty() {
            writeln!(f, "\n### supergraph\n{}", self.supergraph.trim_end())?;
        }
        writeln!(f, "\n### operation\n{}", self.operation.trim_end())?;
        if !self.variables.is_empty() && self.variables != "{}" {
            writeln!(f, "\n### variables\n{}", self.variables)?;
        }
        let mut data = String::new();
        if !self.data.is_empty() {
            let _ = writeln!(data, "\n### data\n{}", self.data);
        }
        f.write_str(&data)
    }
}
