//! Composition and planner against each other: what composition accepts can be planned, field by field and in random
//! operations; a query that composition prints as unresolvable cannot.

use std::{
    collections::{BTreeMap, VecDeque, btree_map::Entry},
    path::{Path, PathBuf},
};

use ogive_base::BitSet;
use ogive_compose::{ComposeOptions, Composed, SubgraphInput, compose};
use ogive_federation::Supergraph;
use ogive_operation::{NormaliseLimits, normalise};
use ogive_planner::{PlanOptions, plan};
use ogive_schema::{FieldId, OperationKind, Schema, TypeId};
use ogive_testkit::{
    graph::{Model, print},
    rng::Rng,
    schemas::{supergraph, valid_document},
};

#[path = "../../../compose/examples/generate/sets.rs"]
mod sets;

/// Sets of one run; a third each are split, faulty and free.
const SETS: usize = 120;
/// Sets of which only the rejected ones are looked at, beyond those.
const MORE: usize = 1_200;
/// Random operations per accepted set.
const RANDOM: usize = 10;
/// Deepest random operation.
const DEPTH: usize = 4;

fn composed(set: &sets::Set, assume_satisfiable: bool) -> Composed {
    let inputs: Vec<SubgraphInput<'_>> = set
        .iter()
        .map(|(name, sdl)| SubgraphInput {
            name,
            url: "http://localhost",
            sdl,
        })
        .collect();
    let options = ComposeOptions {
        assume_satisfiable,
        ..ComposeOptions::default()
    };
    compose(&inputs, &options)
}

/// What composition makes of the subgraphs of a generated graph.
pub(super) fn supergraph_of(model: &Model) -> Result<String, String> {
    let sdl = |sub: usize| {
        (
            model.subgraphs[sub].clone(),
            print::subgraph_sdl(model, sub),
        )
    };
    let set: sets::Set = (0..model.subgraphs.len()).map(sdl).collect();
    let verdict = composed(&set, false);
    let errors = || {
        let errors = verdict.errors.iter();
        let lines: Vec<String> = { errors }
            .map(|e| e.render(&verdict.sources, false))
            .collect();
        format!("composition refuses\n{}", lines.join("\n"))
    };
    verdict.supergraph_sdl.clone().ok_or_else(errors)
}

fn planned(graph: &Supergraph, text: &str) -> Result<(), String> {
    planned_with(graph, text, &PlanOptions::default())
}

fn planned_with(graph: &Supergraph, text: &str, options: &PlanOptions) -> Result<(), String> {
    let document = valid_document(&graph.api, "operation", text)?;
    let operation = document.operations().next().ok_or("no operation")?;
    let operation = normalise(
        &graph.api,
        &document,
        operation,
        &NormaliseLimits::default(),
    )
    .map_err(|e| format!("normalise: {e:?}"))?;
    let plan = plan(graph, &operation, options).map_err(|e| e.to_string())?;
    ogive_plan::verify(&plan).map_err(|p| format!("verify: {}", p.join("\n")))
}

/// Whether a field can be written without inventing arguments.
fn is_plain(schema: &Schema, field: FieldId) -> bool {
    schema.fields[field].args.iter().all(|a| {
        let input = &schema.inputs[*a];
        !input.ty.wrapping.is_non_null() || input.default.is_some()
    })
}

/// A query down to every composite type that queries reach, shortest first: opening text and number of braces.
fn ways(schema: &Schema) -> BTreeMap<u32, (String, usize)> {
    let mut out = BTreeMap::new();
    let Some(query) = schema.root(OperationKind::Query) else {
        return out;
    };
    out.insert(query.0, ("{ ".to_owned(), 1));
    let mut queue = VecDeque::from([query]);
    while let Some(ty) = queue.pop_front() {
        let (text, depth) = out[&ty.0].clone();
        let mut reach = |target: TypeId, step: String| {
            if let Entry::Vacant(entry) = out.entry(target.0) {
                entry.insert((format!("{text}{step} {{ "), depth + 1));
                queue.push_back(target);
            }
        };
        for field in &schema.types[ty].fields {
            let target = schema.fields[*field].ty.id;
            if schema.types[target].kind.is_composite() && is_plain(schema, *field) {
                reach(target, schema.field_name(*field).to_owned());
            }
        }
        if schema.types[ty].kind.is_abstract() {
            for object in schema.types[ty].possible.iter().map(TypeId) {
                reach(object, format!("... on {}", schema.type_name(object)));
            }
        }
    }
    out
}

fn random(schema: &Schema, rng: &mut Rng, ty: TypeId, depth: usize) -> String {
    let mut out = String::from("{ __typename ");
    for field in &schema.types[ty].fields {
        let target = schema.fields[*field].ty.id;
        if !is_plain(schema, *field) || !rng.chance(60) {
            continue;
        }
        if !schema.types[target].kind.is_composite() {
            out.push_str(&format!("{} ", schema.field_name(*field)));
        } else if depth > 0 {
            let inner = random(schema, rng, target, depth - 1);
            out.push_str(&format!("{} {inner} ", schema.field_name(*field)));
        }
    }
    if schema.types[ty].kind.is_abstract() && depth > 0 {
        for object in schema.types[ty].possible.iter().map(TypeId) {
            // Fields of different objects may clash in type; one object per set is enough.
            if rng.chance(50) {
                let inner = random(schema, rng, object, depth - 1);
                out.push_str(&format!("... on {} {inner} ", schema.type_name(object)));
                break;
            }
        }
    }
    out.push('}');
    out
}

/// Plans every field that needs no arguments, labels off and on; says how many plans there are.
fn planned_field_by_field(graph: &Supergraph, name: &str, wrong: &mut Vec<String>) -> usize {
    let schema = &graph.api;
    let labels = graph.graph.override_labels.len();
    let mut plans = 0;
    for (ty, (way, depth)) in ways(schema) {
        for field in &schema.types[TypeId(ty)].fields {
            if !is_plain(schema, *field) {
                continue;
            }
            let target = schema.fields[*field].ty.id;
            let leaf = !schema.types[target].kind.is_composite();
            let tail = if leaf { "" } else { " { __typename }" };
            let field = schema.field_name(*field);
            let text = format!("{way}{field}{tail} {}", "}".repeat(depth));
            for on in [0, labels] {
                let options = PlanOptions {
                    labels: BitSet::all(on),
                    ..PlanOptions::default()
                };
                match planned_with(graph, &text, &options) {
                    Ok(()) => plans += 1,
                    Err(e) => wrong.push(format!("{name}: {text}\n{e}")),
                }
            }
        }
    }
    plans
}

#[test]
fn what_composition_accepts_of_its_cases_is_planned() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../compose/tests/cases");
    let listed = |folder: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).expect("a folder of cases");
        let mut paths: Vec<PathBuf> = entries.map(|e| e.expect("an entry").path()).collect();
        paths.sort();
        paths
    };
    let (mut accepted, mut plans, mut wrong) = (0, 0, Vec::new());
    let folders = listed(&cases).into_iter().filter(|p| p.is_dir());
    for case in folders
        .flat_map(|code| listed(&code))
        .filter(|p| p.is_dir())
    {
        let files = listed(&case).into_iter();
        let files = files.filter(|p| p.extension().is_some_and(|e| e == "graphql"));
        let read = |path: PathBuf| {
            let name = path.file_stem().unwrap_or_default();
            let text = std::fs::read_to_string(&path).expect("a subgraph");
            (name.to_string_lossy().into_owned(), text)
        };
        let set: sets::Set = files.map(read).collect();
        let Some(sdl) = composed(&set, false).supergraph_sdl else {
            continue;
        };
        let name = case
            .strip_prefix(&cases)
            .unwrap_or(&case)
            .display()
            .to_string();
        accepted += 1;
        match supergraph(&sdl) {
            Ok(graph) => plans += planned_field_by_field(&graph, &name, &mut wrong),
            Err(e) => wrong.push(format!("{name}: {e}")),
        }
    }
    assert!(
        wrong.is_empty(),
        "{} failures\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(
        accepted > 150 && plans > 1_000,
        "{accepted} cases, {plans} plans"
    );
}

#[test]
fn what_composition_accepts_is_planned_and_what_it_calls_unresolvable_is_not() {
    let (mut accepted, mut plans, mut witnesses) = (0, 0, 0);
    let mut wrong: Vec<String> = Vec::new();
    for i in 0..SETS + MORE {
        let set = sets::set(11, i);
        let verdict = composed(&set, false);
        if verdict.errors.is_empty() {
            if i >= SETS {
                continue;
            }
            accepted += 1;
            let graph = supergraph(verdict.supergraph_sdl.as_deref().unwrap()).unwrap();
            let schema = &graph.api;
            plans += planned_field_by_field(&graph, &format!("set {i}"), &mut wrong);
            let mut rng = Rng::new(i as u64);
            let query = schema.root(OperationKind::Query).unwrap();
            for _ in 0..RANDOM {
                let text = random(schema, &mut rng, query, DEPTH);
                if valid_document(schema, "operation", &text).is_ok() {
                    match planned(&graph, &text) {
                        Ok(()) => plans += 1,
                        Err(e) => wrong.push(format!("set {i}: {text}\n{e}")),
                    }
                }
            }
            continue;
        }
        if verdict
            .errors
            .iter()
            .any(|e| e.code != "SATISFIABILITY_ERROR")
        {
            continue;
        }
        let graph = supergraph(composed(&set, true).supergraph_sdl.as_deref().unwrap()).unwrap();
        for error in &verdict.errors {
            let (_, witness) = error.message.split_once("in this query: ").unwrap();
            // A shared mutation must be resolved by one subgraph; the planner is free to choose and need not know.
            // And what `@requires` names may be at hand on the way to the field, where composition, as the reference,
            // wants it reachable from the field's own subgraph.
            let stricter = error.notes.iter().any(|n| n.contains("@requires"));
            if witness.starts_with("mutation") || stricter {
                continue;
            }
            let result = planned(&graph, witness);
            match result {
                Err(e) if e.contains("PLANNING_FAILED") => witnesses += 1,
                other => wrong.push(format!("set {i}: {witness} was to fail: {other:?}")),
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} failures\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    println!("{accepted} of {SETS} accepted, {plans} plans, {witnesses} witnesses");
    assert!(accepted > SETS / 4 && plans > 1_000 && witnesses > 10);
}
