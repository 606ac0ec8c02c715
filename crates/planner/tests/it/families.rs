//! Families of hard inputs with a size, and how the work they cause grows with it.
//!
//! Work is counted, never timed: nodes and facts of the planning tree, rule firings of the search, fetches and bytes of
//! the plan. Each member of a family is set against its input (schema or operation in bytes, whichever grows faster), and each count may grow
//! by `n log n` with some tolerance; a family that is known to grow faster says so by its power.

use std::fmt::Write as _;

use ogive_planner::{PlanOptions, search::search, tree::grow};

use super::{PREAMBLE, operation, read, schema_definition, soundness};

/// Growth beyond `n log n` that is still put down to constants.
const TOLERANCE: f64 = 1.3;

/// An input: types without join definitions, and an operation.
struct Input {
    sdl: String,
    query: String,
}

/// What one input costs.
#[derive(Debug)]
struct Work {
    schema_bytes: usize,
    query_bytes: usize,
    nodes: usize,
    facts: usize,
    firings: u64,
    fetches: usize,
    waves: usize,
    plan_bytes: usize,
}

fn work(input: &Input) -> Work {
    let supergraph = read(&format!(
        "{}{PREAMBLE}{}",
        schema_definition(&input.sdl),
        input.sdl
    ));
    let op = operation(&supergraph, &input.query);
    let options = PlanOptions::default();
    let tree = grow(&supergraph, &op, &options).expect("a tree");
    let firings = tree
        .scopes()
        .iter()
        .map(|scope| search(&tree, scope, &options).expect("found").firings)
        .sum();
    let plan = ogive_planner::plan(&supergraph, &op, &options).expect("a plan");
    // Validation against subgraph schemas is for small ones; the verifier is for all.
    if input.query.len() < 2_000 {
        soundness(&supergraph, &plan)
    } else {
        ogive_plan::verify(&plan).map_err(|e| format!("{e:?}"))
    }
    .unwrap_or_else(|why| panic!("{why}"));
    let header = ogive_plan::Header {
        planner: "test".into(),
        schema: 1,
    };
    Work {
        schema_bytes: input.sdl.len(),
        query_bytes: input.query.len(),
        nodes: tree.nodes.len(),
        facts: tree.facts.len(),
        firings,
        fetches: plan.fetches.len(),
        waves: plan.fetches.iter().map(|(_, f)| f.wave).max().unwrap_or(0) as usize,
        plan_bytes: ogive_plan::encode(&plan, &header).len(),
    }
}

/// Fails if some count grows faster than its power of the input allows. `power` is that of the rule firings.
#[expect(
    clippy::print_stdout,
    reason = "the counts are the finding; shown with --nocapture"
)]
fn grows(name: &str, sizes: [usize; 3], power: f64, member: impl Fn(usize) -> Input) -> Vec<Work> {
    let all: Vec<Work> = sizes.iter().map(|n| work(&member(*n))).collect();
    for (n, work) in sizes.iter().zip(&all) {
        println!("{name:<28} {n:>5} {work:?}");
    }
    for pair in all.windows(2) {
        let [small, large] = pair else { continue };
        let schema = large.schema_bytes as f64 / small.schema_bytes as f64;
        let query = large.query_bytes as f64 / small.query_bytes as f64;
        let input = schema.max(query);
        let bytes = (small.schema_bytes + small.query_bytes) as f64;
        let log = (bytes * input).ln() / bytes.ln();
        let counts = [
            ("nodes", small.nodes as f64, large.nodes as f64, 1.0),
            ("facts", small.facts as f64, large.facts as f64, 1.0),
            ("firings", small.firings as f64, large.firings as f64, power),
            (
                "bytes",
                small.plan_bytes as f64,
                large.plan_bytes as f64,
                1.0,
            ),
        ];
        for (what, before, after, power) in counts {
            let allowed = input.powf(power) * log * TOLERANCE;
            let found = after / before.max(1.0);
            assert!(
                found <= allowed,
                "{name}: {what} grow {found:.1} times where the input grows {input:.1} times: {small:?} {large:?}"
            );
        }
    }
    all
}

fn graphs(n: usize) -> String {
    let mut out = String::from("enum join__Graph {");
    for s in 0..n {
        let _ = write!(out, " S{s} @join__graph(name: \"s{s}\", url: \"\")");
    }
    out.push_str(" }\ntype Query");
    for s in 0..n {
        let _ = write!(out, " @join__type(graph: S{s})");
    }
    out.push_str(" {\n");
    out
}

fn by_id(subgraphs: std::ops::Range<usize>) -> String {
    let mut out = String::new();
    for s in subgraphs {
        let _ = write!(out, " @join__type(graph: S{s}, key: \"id\")");
    }
    out
}

/// A tree of `fan_out` fields per object and `depth` levels; every link is known to four subgraphs and every leaf to two.
fn many_plans(depth: usize, fan_out: usize) -> Input {
    let mut sdl =
        graphs(4) + "  top: Node @join__field(graph: S0) @join__field(graph: S1)\n}\ntype Node";
    sdl += &by_id(0..4);
    sdl += " {\n  id: ID!\n";
    for i in 0..fan_out {
        let _ = writeln!(sdl, "  link{i}: Node");
    }
    for i in 0..4 {
        let (a, b) = (i, (i + 1) % 4);
        let _ = writeln!(
            sdl,
            "  leaf{i}: Int @join__field(graph: S{a}) @join__field(graph: S{b})"
        );
    }
    sdl += "}\n";
    let mut below = String::from("{ leaf0 leaf1 leaf2 leaf3 }");
    for _ in 0..depth {
        let mut here = String::from("{ leaf0 leaf2");
        for i in 0..fan_out {
            let _ = write!(here, " link{i} {below}");
        }
        below = here + " }";
    }
    Input {
        sdl,
        query: format!("{{ top {below} }}"),
    }
}

#[test]
fn many_plans_grow_with_their_places() {
    let by_fan_out = grows("many plans, by fan-out", [4, 8, 16], 1.0, |n| {
        many_plans(2, n)
    });
    assert!(
        by_fan_out
            .iter()
            .all(|w| w.fetches == by_fan_out[0].fetches)
    );
    grows("many plans, by depth", [3, 5, 7], 1.0, |n| many_plans(n, 2));
}

/// Each subgraph knows two keys, its own and the next one's: the way round leads through all of them.
fn key_ring(n: usize) -> Input {
    let mut sdl = graphs(n) + "  start: Thing @join__field(graph: S0)\n}\ntype Thing";
    for s in 0..n {
        let next = (s + 1) % n;
        let _ = write!(
            sdl,
            " @join__type(graph: S{s}, key: \"k{s}\") @join__type(graph: S{s}, key: \"k{next}\")"
        );
    }
    sdl += " {\n";
    for s in 0..n {
        let before = (s + n - 1) % n;
        let _ = writeln!(
            sdl,
            "  k{s}: ID! @join__field(graph: S{s}) @join__field(graph: S{before})\n  value{s}: Int @join__field(graph: S{s})"
        );
    }
    sdl += "}\n";
    Input {
        sdl,
        query: format!("{{ start {{ value{} }} }}", n / 2),
    }
}

#[test]
fn key_rings() {
    // As many waves as subgraphs: every wave looks at every key, and every request of every wave is tried.
    let all = grows("key ring", [6, 12, 24], 2.2, key_ring);
    assert_eq!(all[2].waves, 24 / 2 + 1);
}

/// All subgraphs share one key, and each owns a value.
fn key_mesh(n: usize) -> Input {
    let mut sdl = graphs(n) + "  start: Thing @join__field(graph: S0)\n}\ntype Thing";
    sdl += &by_id(0..n);
    sdl += " {\n  id: ID!\n";
    let mut query = String::from("{ start {");
    for s in 0..n {
        let _ = writeln!(sdl, "  value{s}: Int @join__field(graph: S{s})");
        let _ = write!(query, " value{s}");
    }
    sdl += "}\n";
    Input {
        sdl,
        query: query + " } }",
    }
}

#[test]
fn key_meshes() {
    let all = grows("key mesh", [100, 200, 400], 1.0, key_mesh);
    assert_eq!((all[2].fetches, all[2].waves), (400, 2));
}

/// A mesh in which two subgraphs know each value: about half of them will do.
fn shared_mesh(n: usize) -> Input {
    let Input { sdl, query } = key_mesh(n);
    let mut shared = String::new();
    for line in sdl.lines() {
        shared += line;
        if let Some(s) = line
            .strip_prefix("  value")
            .and_then(|l| l.split(':').next()?.parse::<usize>().ok())
        {
            let _ = write!(shared, " @join__field(graph: S{})", (s + 1) % n);
        }
        shared.push('\n');
    }
    Input { sdl: shared, query }
}

#[test]
fn shared_key_meshes() {
    // Each request is tried in a few orders, and a trial looks at every value.
    let all = grows("shared mesh", [15, 30, 60], 2.0, shared_mesh);
    // Half of the subgraphs cover all values; the first has to be entered a wave earlier to give the key.
    for (n, work) in [15, 30, 60].into_iter().zip(&all) {
        assert!(work.fetches <= n / 2 + n / 4 + 2, "{work:?}");
    }
}

/// Each value requires the one before, which the other subgraph has.
fn requires_ladder(n: usize) -> Input {
    let mut sdl = graphs(2) + "  start: Thing @join__field(graph: S0)\n}\ntype Thing";
    sdl += &by_id(0..2);
    sdl += " {\n  id: ID!\n  rung0: Int @join__field(graph: S0) @join__field(graph: S1, external: true)\n";
    for i in 1..=n {
        let (here, there, before) = (i % 2, (i + 1) % 2, i - 1);
        let _ = writeln!(
            sdl,
            "  rung{i}: Int @join__field(graph: S{here}, requires: \"rung{before}\") @join__field(graph: S{there}, external: true)"
        );
    }
    sdl += "}\n";
    Input {
        sdl,
        query: format!("{{ start {{ rung{n} }} }}"),
    }
}

#[test]
fn requires_ladders() {
    // As many waves as rungs, and every wave looks at every rung.
    let all = grows("requires ladder", [15, 30, 60], 2.0, requires_ladder);
    assert_eq!((all[2].fetches, all[2].waves), (61, 61));
}

/// `n` types behind an interface with `m` fields in two subgraphs; alike, or each with a field of its own.
fn implementers(n: usize, m: usize, alike: bool) -> Input {
    let mut sdl = graphs(2)
        + "  all: [Item] @join__field(graph: S0)\n}\ninterface Item @join__type(graph: S0) {\n  id: ID!\n";
    for f in 0..m {
        let _ = writeln!(sdl, "  f{f}: Int");
    }
    sdl += "}\n";
    let mut query = String::from("{ all { id");
    for f in 0..m {
        let _ = write!(query, " f{f}");
    }
    for i in 0..n {
        let _ = write!(
            sdl,
            "type Kind{i} implements Item @join__implements(graph: S0, interface: \"Item\")"
        );
        sdl += &by_id(0..2);
        sdl += " {\n  id: ID!\n";
        for f in 0..m {
            let _ = writeln!(sdl, "  f{f}: Int @join__field(graph: S0)");
        }
        let _ = writeln!(
            sdl,
            "  own{i}: Int @join__field(graph: S1)\n  extra: Int @join__field(graph: S1)\n}}"
        );
        let own = if alike {
            "extra".to_string()
        } else {
            format!("own{i}")
        };
        let _ = write!(query, " ... on Kind{i} {{ {own} }}");
    }
    Input {
        sdl,
        query: query + " } }",
    }
}

#[test]
fn interfaces_of_many_types() {
    let alike = grows("implementers alike", [140, 350, 700], 1.0, |n| {
        implementers(n, 5, true)
    });
    assert!(alike.iter().all(|w| w.fetches == 2));
    grows("implementers apart", [70, 140, 350], 1.0, |n| {
        implementers(n, 5, false)
    });
    grows("interface fields", [20, 40, 80], 1.0, |m| {
        implementers(10, m, true)
    });
}

/// One entity under `n` names.
fn paths(n: usize) -> Input {
    let sdl = graphs(2)
        + "  thing(number: Int): Thing @join__field(graph: S0)\n}\ntype Thing"
        + &by_id(0..2)
        + " {\n  id: ID!\n  near: Int @join__field(graph: S0)\n  far: Int @join__field(graph: S1)\n}\n";
    let mut query = String::from("{");
    for i in 0..n {
        let _ = write!(query, " a{i}: thing(number: {i}) {{ near far }}");
    }
    Input {
        sdl,
        query: query + " }",
    }
}

#[test]
fn one_entity_on_many_paths() {
    let all = grows("same entity on n paths", [40, 160, 640], 1.0, paths);
    assert!(all.iter().all(|w| (w.fetches, w.waves) == (2, 2)));
}

/// `n` root fields, each known to three of four subgraphs.
fn shared_roots(n: usize) -> Input {
    let mut sdl = graphs(4);
    let mut query = String::from("{");
    for i in 0..n {
        let _ = write!(sdl, "  root{i}: Int");
        for s in (0..4).filter(|s| *s != i % 4) {
            let _ = write!(sdl, " @join__field(graph: S{s})");
        }
        sdl.push('\n');
        let _ = write!(query, " root{i}");
    }
    Input {
        sdl: sdl + "}\n",
        query: query + " }",
    }
}

#[test]
fn many_shareable_roots() {
    let all = grows("shareable roots", [40, 160, 640], 1.0, shared_roots);
    assert!(all.iter().all(|w| (w.fetches, w.waves) == (2, 1)));
}

/// `n` pairs of subgraphs that have nothing to do with each other.
fn components(n: usize) -> Input {
    let mut sdl = graphs(2 * n);
    let mut types = String::new();
    let mut query = String::from("{");
    for i in 0..n {
        let (a, b) = (2 * i, 2 * i + 1);
        let _ = writeln!(
            sdl,
            "  thing{i}: Thing{i} @join__field(graph: S{a}) @join__field(graph: S{b})"
        );
        let _ = writeln!(
            types,
            "type Thing{i}{} {{\n  id: ID!\n  near: Int @join__field(graph: S{a})\n  both: Int\n  far: Int @join__field(graph: S{b})\n}}",
            by_id(a..b + 1)
        );
        let _ = write!(query, " thing{i} {{ near both far }}");
    }
    Input {
        sdl: sdl + "}\n" + &types,
        query: query + " }",
    }
}

#[test]
fn disjoint_components() {
    let all = grows("disjoint components", [8, 16, 32], 1.0, components);
    assert_eq!(all[2].fetches, 64);
}

/// `n` mutations, each with a follow-up.
fn mutations(n: usize) -> Input {
    let thing = paths(1).sdl.replace("type Query", "type Mutation");
    let sdl =
        thing + "type Query @join__type(graph: S0) { nothing: Int @join__field(graph: S0) }\n";
    Input {
        sdl,
        query: format!("mutation {}", paths(n).query),
    }
}

#[test]
fn mutations_one_after_another() {
    // Each waits for all before it, and its plan says so.
    let all = grows("mutations", [50, 150, 450], 1.0, mutations);
    assert_eq!(all[2].fetches, 900);
}

/// One object with `n` values over three subgraphs.
fn wide(n: usize) -> Input {
    let mut sdl = graphs(3)
        + "  thing: Thing @join__field(graph: S0)\n}\ntype Thing"
        + &by_id(0..3)
        + " {\n  id: ID!\n";
    let mut query = String::from("{ thing {");
    for i in 0..n {
        let (a, b) = (i % 3, (i / 3) % 3);
        let _ = write!(sdl, "  f{i}: Int @join__field(graph: S{a})");
        if a != b {
            let _ = write!(sdl, " @join__field(graph: S{b})");
        }
        sdl.push('\n');
        let _ = write!(query, " f{i}");
    }
    Input {
        sdl: sdl + "}\n",
        query: query + " } }",
    }
}

#[test]
fn wide_selections() {
    grows("wide selections", [100, 400, 1_600], 1.0, wide);
}

/// Parsed, and normalised or refused; then planned or refused.
fn code_of(
    supergraph: &ogive_federation::Supergraph,
    query: &str,
    options: &PlanOptions,
) -> String {
    let parsed = ogive_syntax::parse(query, ogive_base::SourceId(0), &Default::default());
    if let Some(error) = parsed.errors.first() {
        return format!("{error:?}");
    }
    let op = parsed.document.operations().next().expect("an operation");
    match ogive_operation::normalise(&supergraph.api, &parsed.document, op, &Default::default()) {
        Err(errors) => format!("{errors:?}"),
        Ok(op) => match ogive_planner::plan(supergraph, &op, options) {
            Err(error) => error.to_string(),
            Ok(plan) => format!("{} fetches", plan.fetches.len()),
        },
    }
}

/// `n` fragments, each of which spreads the next one twice: under two names, or in the same place.
fn bomb(n: usize, names: [&str; 2]) -> String {
    let mut query = String::from("{ top { ...f0 } }");
    for i in 0..n {
        let [a, b] = names;
        let next = i + 1;
        let _ = write!(
            query,
            " fragment f{i} on Node {{ {a}: link0 {{ ...f{next} }} {b}: link0 {{ ...f{next} }} }}"
        );
    }
    query + &format!(" fragment f{n} on Node {{ leaf0 }}")
}

#[test]
fn fragment_bombs_are_refused_or_harmless() {
    let sdl = many_plans(1, 1).sdl;
    let supergraph = read(&format!("{}{PREAMBLE}{sdl}", schema_definition(&sdl)));
    let options = PlanOptions::default();
    let harmless = code_of(&supergraph, &bomb(30, ["a", "a"]), &options);
    assert_eq!(harmless, "1 fetches");
    let small = code_of(&supergraph, &bomb(6, ["a", "b"]), &options);
    assert_eq!(small, "1 fetches");
    for n in [20, 40, 200] {
        let refused = code_of(&supergraph, &bomb(n, ["a", "b"]), &options);
        assert!(refused.contains("OPERATION_TOO_LARGE"), "{refused}");
    }
}

#[test]
fn limits_have_their_errors() {
    let Input { sdl, query } = many_plans(3, 4);
    let supergraph = read(&format!("{}{PREAMBLE}{sdl}", schema_definition(&sdl)));
    let tight = PlanOptions {
        nodes_max: 50,
        ..PlanOptions::default()
    };
    assert_eq!(
        code_of(&supergraph, &query, &tight),
        "QUERY_PLAN_TOO_LARGE: the operation has more than 50 objects and concrete types to plan"
    );
    let Input { sdl, query } = requires_ladder(20);
    let supergraph = read(&format!("{}{PREAMBLE}{sdl}", schema_definition(&sdl)));
    let flat = PlanOptions {
        waves_max: 10,
        ..PlanOptions::default()
    };
    assert_eq!(
        code_of(&supergraph, &query, &flat),
        "QUERY_PLAN_TOO_LARGE: the operation needs more than 10 requests one after another"
    );
}
