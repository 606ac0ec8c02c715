//! Planner tests.
use std::path::PathBuf;

use ogive_base::SourceId;
use ogive_plan::Plan;

fn shared() -> Option<PathBuf> {
    let path = std::env::var_os("OGIVE_SHARED")
        .map(PathBuf::from)
        .unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"));
    path.is_dir().then_some(path)
}

fn plan_text(supergraph: &str, operation: &str) -> Plan {
    let supergraph =
        ogive_federation::read_supergraph(supergraph, SourceId(0), &Default::default())
            .expect("supergraph");
    let parsed = ogive_syntax::parse(operation, SourceId(0), &Default::default());
    assert!(parsed.errors.is_empty(), "{:?}", parsed.errors);
    let op = parsed.document.operations().next().expect("one operation");
    let op = ogive_operation::normalise(&supergraph.api, &parsed.document, op, &Default::default())
        .expect("normal form");
    ogive_planner::plan(&supergraph, &op, &Default::default()).expect("plan")
}

fn show(plan: &Plan) -> String {
    let mut out = String::new();
    for (id, fetch) in plan.fetches.iter() {
        let text: String = fetch.segments.iter().map(|s| &*s.text).collect();
        let reps: usize = fetch.lookups.iter().map(|l| l.targets.len()).sum();
        out.push_str(&format!(
            "{} wave {} {} after {:?} targets {reps}: {}\n",
            id.0,
            fetch.wave,
            plan.subgraphs[fetch.subgraph as usize],
            fetch.dependencies.iter().map(|d| d.0).collect::<Vec<_>>(),
            &text[..text.len().min(1500)]
        ));
    }
    out
}

#[test]
fn scenarios() {
    let Some(shared) = shared() else { return };
    for name in ["fed", "many-plans", "big-response"] {
        let dir = shared.join("data/scenarios").join(name);
        let supergraph = std::fs::read_to_string(dir.join("supergraph.graphql")).unwrap();
        let body = std::fs::read_to_string(dir.join("body.json")).unwrap();
        let body: serde_json::Value = serde_json::from_str(&body).unwrap();
        let start = std::time::Instant::now();
        let plan = plan_text(&supergraph, body["query"].as_str().unwrap());
        println!(
            "{name}: {} fetches {:?}",
            plan.fetches.len(),
            start.elapsed()
        );
        println!("{}", show(&plan));
    }
}
