//! A composer that continues its last composition says what a fresh one says, edit after edit.

use ogive_base::SourceId;
use ogive_compose::{ComposeOptions, Composed, Composer, SubgraphInput, compose};
use ogive_testbase::Rng;

use crate::{Owned, real, sets, sub};

/// Edits per set.
const EDITS: usize = 12;

/// One random edit of one subgraph's text, most of which keep it valid.
fn edit(rng: &mut Rng, sdl: &str, n: usize) -> String {
    // Braces of types: a member may be added after an opening one.
    let places = |what: &str| -> Vec<usize> {
        sdl.match_indices(what)
            .map(|(at, _)| at + what.len())
            .collect()
    };
    let insert = |at: usize, text: &str| format!("{}{text}{}", &sdl[..at], &sdl[at..]);
    let mut bodies: Vec<(usize, bool)> = Vec::new();
    for (keyword, is_type) in [("type ", true), ("enum ", false)] {
        for (at, _) in sdl.match_indices(keyword) {
            let Some(open) = sdl[at..].find('{') else {
                continue;
            };
            if !sdl[at..at + open].contains(['\n', '"', '(']) {
                bodies.push((at + open + 1, is_type));
            }
        }
    }
    match rng.below(12) {
        0 => format!("# {n}\n{sdl}"),
        1 => format!("{sdl}\ntype New{n} {{ a: Int }}\n"),
        2 => sdl.replacen("String", "Int", 1),
        3 => sdl.replacen(": Int", ": Int @deprecated(reason: \"old\")", 1),
        4 => sdl.replacen(" String", " String!", 1),
        5 => sdl.replacen("@shareable", "", 1),
        6 if !places("Int ").is_empty() => {
            let all = places("Int ");
            insert(*rng.pick(&all), &format!("extra{n}: Float "))
        }
        7 => sdl.replacen(&format!("added{}: Int ", n.saturating_sub(1)), "", 1),
        8 if n.is_multiple_of(3) => sdl.replacen('{', "{{", 1),
        _ if !bodies.is_empty() => {
            let (at, is_type) = *rng.pick(&bodies);
            let text = if is_type {
                format!(" added{n}: Int ")
            } else {
                format!(" ADDED{n} ")
            };
            insert(at, &text)
        }
        _ => sdl.to_owned(),
    }
}

/// Edits a set and composes after each; returns how many compositions were continued and how many had no errors.
fn follow(mut set: Vec<Owned>, seed: u64, edits: usize) -> (usize, usize) {
    let mut rng = Rng::new(seed);
    let mut composer = Composer::new();
    let options = ComposeOptions::default();
    let mut fine = 0;
    for n in 0..=edits {
        if n > 0 {
            let at = rng.below(set.len());
            let edited = edit(&mut rng, &set[at].sdl, n);
            let before = std::mem::replace(&mut set[at].sdl, edited);
            let inputs = inputs(&set);
            // What breaks the graph is seen once and taken back, so that later edits have something to continue.
            if !compose(&inputs, &options).errors.is_empty() {
                check(&mut composer, &inputs, &options, seed, n);
                set[at].sdl = before;
                continue;
            }
        }
        check(&mut composer, &inputs(&set), &options, seed, n);
        fine += 1;
    }
    (composer.continued(), fine)
}

fn inputs(set: &[Owned]) -> Vec<SubgraphInput<'_>> {
    set.iter()
        .map(|s| SubgraphInput {
            name: &s.name,
            url: "http://localhost",
            sdl: &s.sdl,
        })
        .collect()
}

fn check(
    composer: &mut Composer,
    inputs: &[SubgraphInput<'_>],
    options: &ComposeOptions,
    seed: u64,
    n: usize,
) {
    let (again, fresh) = (composer.compose(inputs, options), compose(inputs, options));
    assert_eq!(
        again.supergraph_sdl, fresh.supergraph_sdl,
        "seed {seed}, edit {n}"
    );
    assert_eq!(again.errors, fresh.errors, "seed {seed}, edit {n}");
    assert_eq!(again.hints, fresh.hints, "seed {seed}, edit {n}");
    for at in 0..inputs.len() as u32 {
        let source = |c: &Composed| {
            c.sources
                .get(SourceId(at))
                .map(|s| (s.name.clone(), s.text.clone()))
        };
        let (a, b) = (source(&again), source(&fresh));
        assert_eq!(a, b, "seed {seed}, edit {n}");
    }
}

#[test]
fn random_edits_of_generated_graphs() {
    let (mut continued, mut fine) = (0, 0);
    for i in 0..30 {
        let set: Vec<Owned> = sets::set(23, 3 * i)
            .iter()
            .map(|(n, s)| sub(n, s))
            .collect();
        let (c, f) = follow(set, i as u64, EDITS);
        continued += c;
        fine += f;
    }
    assert!(
        continued > 30 && continued < fine,
        "{continued} of {fine} continued"
    );
}

/// Hubs and values under federation 1, where sharing depends on everybody.
#[test]
fn random_edits_of_plain_graphs() {
    let mut continued = 0;
    for seed in 0..25 {
        let set: Vec<Owned> = (0..4)
            .map(|s| {
                let link = if s % 2 == seed as usize % 2 {
                    ""
                } else {
                    "extend schema @link(url: \"https://specs.apollo.dev/federation/v2.3\", import: [\"@key\", \"@shareable\", \"@external\", \"@requires\"])\n"
                };
                let shareable = if link.is_empty() { "" } else { "@shareable " };
                let text = format!(
                    "{link}type Query {{ q{s}: E hello{s}: V e{s}(x: Color, y: In): Color }}\n\
                     type E @key(fields: \"id\") {{ id: ID! f{s}: Int g{s}: String v{s}: [V] }}\n\
                     type V {shareable}{{ a: Int b: String }}\nenum Color {{ RED GREEN }}\nenum Free {{ A }}\n\
                     input In {{ a: Int b: String }}\ninterface I {{ a: Int }}\ntype W implements I {shareable}{{ a: Int }}\n"
                );
                sub(&format!("s{s}"), &text)
            })
            .collect();
        continued += follow(set, seed, EDITS).0;
    }
    assert!(continued > 80, "{continued} continued");
}

#[test]
fn random_edits_of_graphs_of_a_companys_size() {
    for (name, graph, edits) in [("eleven", real::ELEVEN, 12), ("huge", real::HUGE, 8)] {
        let (continued, fine) = follow(graph.set(), 5, edits);
        println!("{name}: {continued} of {fine} continued");
        assert!(continued > 0);
    }
}
