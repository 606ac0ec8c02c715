//! Generates subgraph sets, one JSON array per line: `generate SEED COUNT`, or `generate --mutants SEED COUNT`.
//!
//! Three kinds in turn: a monolith split at random, which must compose; the same with one labelled fault; and free
//! random subgraphs over a small pool of names, most of which must not compose. The same seed gives the same sets.
#![expect(clippy::print_stdout, reason = "a command-line tool")]

use serde_json::json;

mod mutants;
mod sets;

fn main() {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let mutated = args.first().is_some_and(|a| a == "--mutants");
    if mutated {
        args.remove(0);
    }
    let seed: u64 = args.first().and_then(|a| a.parse().ok()).unwrap_or(1);
    let count: usize = args.get(1).and_then(|a| a.parse().ok()).unwrap_or(10);
    for i in 0..count {
        let set = if mutated {
            mutants::mutant(seed, i)
        } else {
            sets::set(seed, i)
        };
        let subgraphs: Vec<_> = set
            .iter()
            .map(|(name, sdl)| json!({"name": name, "url": format!("http://{name}"), "sdl": sdl}))
            .collect();
        println!("{}", serde_json::Value::from(subgraphs));
    }
}
