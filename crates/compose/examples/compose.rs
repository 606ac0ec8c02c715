//! Composes schema files, a JSON array of `{name, url, sdl}`, or generated graphs, and prints what came out.
//!
//! `compose FILE.graphql...`, `compose SET.json`, `compose --clean 100` (100 subgraphs of 100 types),
//! `compose --hub 100` (100 subgraphs sharing five entities under rotating keys); `--set` prints the subgraphs,
//! `--time` timings instead of the supergraph. `compose --lines` answers one JSON array per input line, as `oracle/compose/compose.mjs` does.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool"
)]
#![allow(clippy::unwrap_used, reason = "an example")]

use std::{fmt::Write, io::BufRead, time::Instant};

use ogive_base::{Diagnostic, Sources, diagnostic::line_column};
use ogive_compose::{ComposeOptions, Composed, SubgraphInput, compose};
use serde_json::{Value, json};

struct Owned {
    name: String,
    url: String,
    sdl: String,
}

fn main() {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let mut flag = |name: &str| {
        let before = args.len();
        args.retain(|a| a != name);
        before != args.len()
    };
    let (set_only, time, lines, clean, hub) = (
        flag("--set"),
        flag("--time"),
        flag("--lines"),
        flag("--clean"),
        flag("--hub"),
    );
    if lines {
        for line in std::io::stdin().lock().lines() {
            let line = line.unwrap();
            if !line.trim().is_empty() {
                println!("{}", answer(&run(&read_json(&line))));
            }
        }
        return;
    }
    let n = || args.first().and_then(|a| a.parse().ok()).unwrap_or(100);
    let set = if clean {
        clean_graph(n())
    } else if hub {
        hub_graph(n())
    } else if let Some(path) = args.first().filter(|a| a.ends_with(".json")) {
        read_json(&std::fs::read_to_string(path).unwrap())
    } else {
        args.iter()
            .map(|path| {
                let name = std::path::Path::new(path)
                    .file_stem()
                    .unwrap()
                    .to_string_lossy()
                    .into_owned();
                Owned {
                    url: format!("http://{name}"),
                    name,
                    sdl: std::fs::read_to_string(path).unwrap(),
                }
            })
            .collect()
    };
    if set_only {
        let subgraphs: Vec<Value> = set
            .iter()
            .map(|s| json!({"name": s.name, "url": s.url, "sdl": s.sdl}))
            .collect();
        println!("{}", Value::from(subgraphs));
        return;
    }
    let started = Instant::now();
    let composed = run(&set);
    let first = started.elapsed();
    for diagnostic in composed.errors.iter().take(20) {
        eprintln!("{}\n", diagnostic.render(&composed.sources, false));
    }
    if time {
        let mut best = first;
        for _ in 0..10 {
            let started = Instant::now();
            let _ = run(&set);
            best = best.min(started.elapsed());
        }
        let mut composer = ogive_compose::Composer::new();
        let mut again = first;
        for round in 0..8 {
            // A field more in the middle subgraph.
            let middle = &set[set.len() / 2].sdl;
            let edited = with_field(middle, round);
            let mut inputs: Vec<SubgraphInput<'_>> = set
                .iter()
                .map(|s| SubgraphInput {
                    name: &s.name,
                    url: &s.url,
                    sdl: &s.sdl,
                })
                .collect();
            inputs[set.len() / 2].sdl = &edited;
            let started = Instant::now();
            let _ = composer.compose(&inputs, &ComposeOptions::default());
            again = again.min(started.elapsed());
        }
        println!(
            "after an edit of one subgraph: {:.2} ms ({} of 8 continued the one before)",
            again.as_secs_f64() * 1e3,
            composer.continued()
        );
        println!(
            "{} subgraphs, {} KB: first {:.2} ms, best {:.2} ms, {} errors, {} hints",
            set.len(),
            set.iter().map(|s| s.sdl.len()).sum::<usize>() / 1000,
            first.as_secs_f64() * 1e3,
            best.as_secs_f64() * 1e3,
            composed.errors.len(),
            composed.hints.len()
        );
    } else if let Some(sdl) = &composed.supergraph_sdl {
        print!("{sdl}");
    }
}

/// The text with a field more in its first type that has one.
fn with_field(sdl: &str, n: usize) -> String {
    let at = sdl.match_indices("type ").find_map(|(at, _)| {
        let open = at + sdl[at..].find('{')?;
        (!sdl[at..open].contains('\n')).then_some(open + 1)
    });
    let at = at.unwrap();
    format!("{} added{n}: Int{}", &sdl[..at], &sdl[at..])
}

fn run(set: &[Owned]) -> Composed {
    let inputs: Vec<SubgraphInput<'_>> = set
        .iter()
        .map(|s| SubgraphInput {
            name: &s.name,
            url: &s.url,
            sdl: &s.sdl,
        })
        .collect();
    compose(&inputs, &ComposeOptions::default())
}

fn read_json(text: &str) -> Vec<Owned> {
    let value: Value = serde_json::from_str(text).unwrap();
    let text = |v: &Value, key: &str| v[key].as_str().unwrap_or_default().to_owned();
    value
        .as_array()
        .unwrap()
        .iter()
        .map(|s| Owned {
            name: text(s, "name"),
            url: text(s, "url"),
            sdl: text(s, "sdl"),
        })
        .collect()
}

fn answer(composed: &Composed) -> Value {
    let one = |d: &Diagnostic, sources: &Sources| {
        let places: Vec<String> = d
            .labels
            .iter()
            .filter_map(|l| {
                let source = sources.get(l.source)?;
                let (line, column) = line_column(&source.text, l.span.start);
                Some(format!("{}:{line}:{column}", source.name))
            })
            .collect();
        json!({"code": d.code, "coordinate": d.coordinate, "message": d.message, "help": d.help, "notes": d.notes, "places": places})
    };
    let list = |list: &[Diagnostic]| {
        list.iter()
            .map(|d| one(d, &composed.sources))
            .collect::<Vec<_>>()
    };
    json!({"supergraph": composed.supergraph_sdl, "errors": list(&composed.errors), "hints": list(&composed.hints)})
}

const LINK: &str = "extend schema @link(url: \"https://specs.apollo.dev/federation/v2.5\", import: [\"@key\", \"@shareable\", \"@external\", \"@requires\"])\n";

/// `n` subgraphs of about a hundred types: 60 entities, 20 extensions of the next subgraph's entities, 20 values.
fn clean_graph(n: usize) -> Vec<Owned> {
    (0..n)
        .map(|s| {
            let mut sdl = String::from(LINK);
            sdl.push_str("type Query {\n");
            for t in 0..60 {
                let _ = writeln!(sdl, "  s{s}t{t}(id: ID!): S{s}T{t}");
            }
            sdl.push_str("}\n");
            for t in 0..60 {
                let next = (t + 7) % 60;
                let _ = writeln!(
                    sdl,
                    "\"\"\"Entity {t} of subgraph {s}\"\"\"\ntype S{s}T{t} @key(fields: \"id\") {{\n  id: ID!\n  name: String!\n  count(first: Int = 10, filter: S{s}In{}): Int\n  next: S{s}T{next}\n  list: [S{s}T{next}!]!\n  value: S{s}V{}\n  kind: S{s}E{}\n}}",
                    t % 5, t % 10, t % 5
                );
            }
            let other = (s + 1) % n;
            for t in 0..20 {
                let _ = writeln!(sdl, "type S{other}T{t} @key(fields: \"id\") {{\n  id: ID!\n  from{s}: String\n  link{s}: S{s}T{t}\n}}");
            }
            for t in 0..10 {
                let _ = writeln!(sdl, "type S{s}V{t} {{\n  a: Int\n  b: String\n  c: [Float!]\n}}");
            }
            for t in 0..5 {
                let _ = writeln!(sdl, "enum S{s}E{t} {{\n  ONE\n  TWO\n  THREE\n}}\ninput S{s}In{t} {{\n  a: Int\n  b: [String!]\n}}");
            }
            Owned { name: format!("s{s}"), url: format!("http://s{s}"), sdl }
        })
        .collect()
}

/// `n` subgraphs that share five entities, each with one of four keys and the next one to lead on.
fn hub_graph(n: usize) -> Vec<Owned> {
    const KEYS: usize = 4;
    (0..n)
        .map(|s| {
            let mut sdl = String::from(LINK);
            let _ = writeln!(sdl, "type Query {{ s{s}: E{} }}", s % 5);
            for e in 0..5 {
                let (a, b) = ((s + e) % KEYS, (s + e + 1) % KEYS);
                let _ = writeln!(
                    sdl,
                    "type E{e} @key(fields: \"k{a}\") @key(fields: \"k{b}\") {{\n  k{a}: ID!\n  k{b}: ID!\n  f{s}: String\n  to{s}: E{}\n}}",
                    (e + 1) % 5
                );
            }
            Owned { name: format!("s{s}"), url: format!("http://s{s}"), sdl }
        })
        .collect()
}
