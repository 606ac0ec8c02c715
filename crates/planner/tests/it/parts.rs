//! Parts of an operation that share no subgraph are searched one by one.

use std::fmt::Write as _;

use ogive_planner::{PlanOptions, Quality};

use super::{PREAMBLE, check, operation, read, schema_definition};

/// Museums of one country, by number.
const MUSEUMS: usize = 7;
/// Links between pieces, and the museums that know them.
const LINKS: [(&str, &[usize]); 3] = [
    ("copyOf", &[1, 2, 5]),
    ("pendant", &[3, 5]),
    ("study", &[1, 2, 3]),
];
/// Values, and the museums that know them.
const VALUES: [(&str, &[usize]); 5] = [
    ("title", &[1, 2]),
    ("artist", &[4, 5]),
    ("year", &[5, 6]),
    ("room", &[5, 6]),
    ("lender", &[1, 2]),
];

/// Countries with pieces of their own, and one operation about all of them.
fn countries(n: usize) -> (String, String) {
    let [mut graphs, mut roots, mut types, mut query] = [const { String::new() }; 4];
    let on = |graphs: &mut dyn Iterator<Item = usize>, what: &str| -> String {
        graphs
            .map(|g| format!(" @join__{what}(graph: M{g})"))
            .collect()
    };
    for country in 0..n {
        let first = country * MUSEUMS;
        for museum in first..first + MUSEUMS {
            let _ = write!(
                graphs,
                " M{museum} @join__graph(name: \"m{museum}\", url: \"\")"
            );
            let _ = write!(
                types,
                "{} @join__type(graph: M{museum}, key: \"id\")",
                if museum == first {
                    format!("type Piece{country}")
                } else {
                    String::new()
                }
            );
        }
        let _ = writeln!(
            roots,
            "  centre{country}: Piece{country} @join__field(graph: M{first})"
        );
        types += " {\n  id: ID!\n";
        let piece = format!("Piece{country}");
        for (fields, ty) in [(&LINKS[..], &*piece), (&VALUES[..], "String")] {
            for (name, museums) in fields {
                let known = on(&mut museums.iter().map(|m| first + m), "field");
                let _ = writeln!(types, "  {name}: {ty}{known}");
            }
        }
        types += "}\n";
        let inner = "{ title artist year lender }";
        let outer = format!("{{ artist year room copyOf {inner} pendant {inner} study {inner} }}");
        let _ = write!(
            query,
            " centre{country} {{ copyOf {outer} pendant {outer} study {outer} }}"
        );
    }
    let everywhere = on(&mut (0..n * MUSEUMS), "type");
    let sdl =
        format!("enum join__Graph {{{graphs} }}\ntype Query{everywhere} {{\n{roots}}}\n{types}");
    (sdl, format!("{{{query} }}"))
}

fn quality(n: usize, exact_fuel: u64) -> Quality {
    let (sdl, query) = countries(n);
    let supergraph = read(&format!("{}{PREAMBLE}{sdl}", schema_definition(&sdl)));
    let op = operation(&supergraph, &query);
    let options = PlanOptions {
        exact_fuel,
        ..PlanOptions::default()
    };
    let planned = ogive_planner::plan_judged(&supergraph, &op, &options).expect("a plan");
    check(&supergraph, &planned.plan);
    assert_eq!(planned.plan.fetches.len() as u32, planned.quality.requests);
    planned.quality
}

/// Deciding all at once would try the choices of each part with those of every other.
#[test]
fn parts_are_solved_exactly_with_the_fuel_of_their_sum() {
    let one = quality(1, u64::MAX);
    assert!(one.settled && one.requests > one.lower_bound, "{one:?}");
    assert!(!quality(1, 0).settled, "the part is hard");
    for n in [2, 4, 9] {
        let all = quality(n, n as u64 * one.firings);
        assert!(all.settled, "{all:?}");
        assert_eq!(all.requests, n as u32 * one.requests);
        assert_eq!(all.lower_bound, n as u32 * one.lower_bound);
        assert_eq!(all.waves, one.waves);
        let most = (n as u64 + 1) * one.firings;
        assert!(all.firings <= most, "{n}: {all:?}, one: {one:?}");
    }
}

/// What one part leaves of its fuel, a harder one can use.
#[test]
fn an_easy_part_leaves_its_fuel_to_a_hard_one() {
    let one = quality(1, u64::MAX);
    let (mut sdl, query) = countries(1);
    let easy = "type Query @join__type(graph: EASY) @join__type(graph: PLAIN) {\n  \
                now: String @join__field(graph: EASY) @join__field(graph: PLAIN)\n";
    let graphs = "enum join__Graph { EASY @join__graph(name: \"easy\", url: \"\") \
                  PLAIN @join__graph(name: \"plain\", url: \"\")";
    sdl = sdl.replacen("enum join__Graph {", graphs, 1);
    let (head, tail) = sdl.split_once("type Query").expect("a root");
    let (known, tail) = tail.split_once("{\n").expect("its fields");
    let (open, fields) = easy.split_once('{').expect("the same");
    let sdl = format!("{head}{open}{known}{{{fields}{tail}");
    let supergraph = read(&format!("{}{PREAMBLE}{sdl}", schema_definition(&sdl)));
    let op = operation(&supergraph, &query.replacen('{', "{ now", 1));
    let options = PlanOptions {
        exact_fuel: one.firings,
        ..PlanOptions::default()
    };
    let all = ogive_planner::plan_judged(&supergraph, &op, &options).expect("a plan");
    assert!(all.quality.settled, "{:?}", all.quality);
    assert_eq!(all.quality.requests, one.requests + 1);
}
