//! Planner tests.
//!
//! `cases/<rule>/<name>.graphql` holds one operation after `#!` header lines (`#! supergraph: NAME`, and `#! operation:
//! NAME` where there are several, `#! labels: A, B` for override labels that are on, `#! profile: least-load` or `fewest-requests` for another profile), and below it the expected plan in lines that start with `#>`. `BLESS=1 cargo test -p ogive-planner` rewrites the expectations.
//! Supergraphs lie in `supergraphs/NAME.graphql`, without the definitions of the join and link specifications, which
//! the harness adds.
//!
//! Every plan made here passes the verifier, and each of its requests, with all conditions on, is validated against the
//! subgraph's own schema.

mod batching;
mod classes;
mod conditions;
mod defer;
mod families;
mod generate;
mod load;
mod oracle;
mod parts;
mod relations;
mod rules;
mod scenarios;

use std::path::{Path, PathBuf};

use ogive_base::{SourceId, Sources};
use ogive_federation::Supergraph;
use ogive_plan::Plan;
use ogive_planner::{PlanOptions, Profile};
use ogive_testbase::Recorded;

const PREAMBLE: &str = include_str!("../join.graphql");

/// The schema definition of a supergraph file, unless it brings its own.
fn schema_definition(text: &str) -> String {
    let mutation = if text.contains("type Mutation") {
        " mutation: Mutation"
    } else {
        ""
    };
    let subscription = if text.contains("type Subscription") {
        " subscription: Subscription"
    } else {
        ""
    };
    format!(
        "schema @link(url: \"https://specs.apollo.dev/link/v1.0\") @link(url: \"https://specs.apollo.dev/join/v0.4\", for: EXECUTION) {{ query: Query{mutation}{subscription} }}\n"
    )
}

/// Fewer cases mean that some were not found.
const CASES: usize = 326;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests")
        .join(name)
}

/// Reads a supergraph that names only its own types, or its own schema definition too, or everything.
fn supergraph(name: &str) -> Supergraph {
    let path = folder("supergraphs").join(format!("{name}.graphql"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let schema = if text.lines().any(|l| l.starts_with("schema")) {
        String::new()
    } else {
        schema_definition(&text)
    };
    let preamble = if text.contains("directive @join__type") {
        ""
    } else {
        PREAMBLE
    };
    read(&format!("{schema}{preamble}{text}"))
}

fn read(sdl: &str) -> Supergraph {
    let mut sources = Sources::new();
    let id = sources.add("supergraph.graphql", sdl);
    match ogive_federation::read_supergraph(sdl, id, &Default::default()) {
        Ok(supergraph) => supergraph,
        Err(errors) => {
            let text: Vec<String> = errors.iter().map(|e| e.render(&sources, false)).collect();
            panic!("{}", text.join("\n"));
        }
    }
}

fn operation(supergraph: &Supergraph, text: &str) -> ogive_operation::Operation {
    operation_named(supergraph, text, None)
}

/// The operation of that name, or the first.
fn operation_named(
    supergraph: &Supergraph,
    text: &str,
    name: Option<&str>,
) -> ogive_operation::Operation {
    let parsed = ogive_syntax::parse(text, SourceId(0), &Default::default());
    assert!(parsed.errors.is_empty(), "{:?}", parsed.errors);
    let invalid = ogive_operation::validate(&supergraph.api, &parsed.document, &Default::default());
    assert!(invalid.is_empty(), "{invalid:#?}");
    let op = parsed
        .document
        .operations()
        .find(|op| name.is_none_or(|n| op.name.is_some_and(|have| parsed.document.name(have) == n)))
        .expect("the operation");
    let limits = ogive_operation::NormaliseLimits {
        deferral: true,
        ..Default::default()
    };
    ogive_operation::normalise(&supergraph.api, &parsed.document, op, &limits).expect("normal form")
}

/// Plans an operation and checks the plan in every way that needs no execution.
fn plan_with(
    supergraph: &Supergraph,
    text: &str,
    options: &PlanOptions,
) -> Result<Plan, ogive_planner::PlanError> {
    let op = operation(supergraph, text);
    let plan = ogive_planner::plan(supergraph, &op, options)?;
    check(supergraph, &plan);
    Ok(plan)
}

fn check(supergraph: &Supergraph, plan: &Plan) {
    if let Err(why) = soundness(supergraph, plan) {
        panic!("{why}");
    }
}

/// The verifier, a round trip through bytes, and every request against the schema of its subgraph.
fn soundness(supergraph: &Supergraph, plan: &Plan) -> Result<(), String> {
    let text = || ogive_plan::text(plan);
    ogive_plan::verify(plan).map_err(|e| format!("the plan is unsound: {e:#?}\n{}", text()))?;
    let header = ogive_plan::Header {
        planner: "test".into(),
        schema: 1,
    };
    let decoded = ogive_plan::decode(&ogive_plan::encode(plan, &header));
    if decoded.as_ref().map(|(_, decoded)| decoded) != Ok(plan) {
        return Err(format!(
            "the plan changes by being written and read\n{}",
            text()
        ));
    }
    for (_, fetch) in plan.fetches.iter() {
        let escaped: String = fetch.segments.iter().map(|s| &*s.text).collect();
        let request: String = serde_json::from_str(&format!("\"{escaped}\""))
            .expect("segments are JSON string contents");
        let subgraph = ogive_federation::SubgraphId(fetch.subgraph);
        let (schema, sdl) = ogive_federation::subgraph_schema(supergraph, subgraph);
        let parsed = ogive_syntax::parse(request.as_str(), SourceId(0), &Default::default());
        if !parsed.errors.is_empty() {
            return Err(format!("{request}\n{:?}", parsed.errors));
        }
        let invalid = ogive_operation::validate(&schema, &parsed.document, &Default::default());
        if !invalid.is_empty() {
            return Err(format!("{request}\n{invalid:#?}\n{sdl}"));
        }
    }
    Ok(())
}

#[test]
fn cases() {
    let mut recorded = Recorded::new();
    let mut wrong = Vec::new();
    let mut topics: Vec<PathBuf> = std::fs::read_dir(folder("cases"))
        .expect("cases")
        .map(|e| e.expect("entry").path())
        .collect();
    topics.sort();
    for topic in topics {
        let mut files: Vec<PathBuf> = std::fs::read_dir(&topic)
            .expect("topic")
            .map(|e| e.expect("entry").path())
            .collect();
        files.sort();
        for file in files {
            let text = std::fs::read_to_string(&file).expect("case");
            let header = text
                .lines()
                .find_map(|l| l.strip_prefix("#! supergraph: "))
                .expect("header");
            let body: String = text
                .lines()
                .filter(|l| !l.starts_with("#>"))
                .map(|l| format!("{l}\n"))
                .collect::<String>();
            let name = text.lines().find_map(|l| l.strip_prefix("#! operation: "));
            let supergraph = supergraph(header.trim());
            let op = operation_named(&supergraph, &body, name.map(str::trim));
            let labels = text.lines().find_map(|l| l.strip_prefix("#! labels: "));
            let labels = labels.into_iter().flat_map(|l| l.split(','));
            let known = &supergraph.graph.override_labels;
            let label = |name: &str| known.iter().position(|l| **l == *name.trim());
            let profile = text.lines().find_map(|l| l.strip_prefix("#! profile: "));
            let options = PlanOptions {
                profile: match profile.map(str::trim) {
                    None => Profile::CriticalPath,
                    Some("fewest-requests") => Profile::FewestRequests,
                    Some("least-load") => Profile::LeastLoad,
                    Some(other) => panic!("{}: no profile {other}", file.display()),
                },
                labels: labels
                    .map(|l| label(l).expect("a label of the supergraph") as u32)
                    .collect(),
                ..PlanOptions::default()
            };
            let outcome = match ogive_planner::plan(&supergraph, &op, &options) {
                Ok(plan) => {
                    if let Err(why) = soundness(&supergraph, &plan) {
                        wrong.push(format!("{}: {why}", file.display()));
                    }
                    ogive_plan::text(&plan)
                }
                Err(error) => error.to_string(),
            };
            let expected: String = outcome
                .trim_end()
                .lines()
                .map(|l| format!("#> {l}").trim_end().to_string() + "\n")
                .collect();
            let new = format!("{}\n{expected}", body.trim_end());
            recorded.compare(&file, &new);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    recorded.finish(CASES);
}
