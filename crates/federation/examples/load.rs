//! Loads a supergraph and says how long it took, or prints what was read.
//!
//! `cargo run -p ogive-federation --example load -- supergraph.graphql [rows|api|subgraph NAME]`
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line example"
)]

use std::time::Instant;

use ogive_base::Sources;
use ogive_federation::{ReadOptions, describe, read_supergraph, subgraph_sdl};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let Some(path) = args.first() else {
        eprintln!("usage: load supergraph.graphql [rows | subgraph NAME]");
        std::process::exit(2);
    };
    let sdl = match std::fs::read_to_string(path) {
        Ok(sdl) => sdl,
        Err(error) => {
            eprintln!("{path}: {error}");
            std::process::exit(1);
        }
    };
    let mut sources = Sources::new();
    let source = sources.add(path.as_str(), sdl.as_str());
    let start = Instant::now();
    let supergraph = match read_supergraph(&sdl, source, &ReadOptions::default()) {
        Ok(supergraph) => supergraph,
        Err(errors) => {
            for error in errors {
                eprintln!("{}\n", error.render(&sources, false));
            }
            std::process::exit(1);
        }
    };
    let took = start.elapsed();
    match args.get(1).map(String::as_str) {
        Some("rows") => print!("{}", describe(&supergraph)),
        Some("subgraph") => {
            for (id, subgraph) in supergraph.subgraphs.iter() {
                if args.get(2).is_none_or(|name| **name == *subgraph.name) {
                    println!("# {}\n{}", subgraph.name, subgraph_sdl(&supergraph, id));
                }
            }
        }
        _ => {
            let graph = &supergraph.graph;
            println!(
                "{} bytes, {} subgraphs, {} types, {} fields, {} field sets, {} warnings: {:.1} ms",
                sdl.len(),
                supergraph.subgraphs.len(),
                graph.types.len(),
                graph.fields.len(),
                graph.field_sets.len(),
                supergraph.warnings.len(),
                took.as_secs_f64() * 1e3
            );
        }
    }
}
