//! Parser throughput in MB/s: `ogive-syntax` beside `apollo-parser` and `cynic-parser`, one interleaved run.
//!
//! ```sh
//! cargo run --release --manifest-path bench/parser/Cargo.toml -- [ROUNDS]
//! ```
//!
//! Each round runs every parser once over every corpus, in turns, so that a slow moment of the machine hits all
//! of them; the table shows the median of all rounds and the spread. Every parser gets `&str` and keeps what it
//! makes until the end of the document; making and dropping both count. Before timing, every parser must
//! accept every document. `--only NAME` runs one parser (for a profiler).
//!
//! Corpora: a schema generated here (`corpus`), operations generated here, and, when `OGIVE_SHARED` (default
//! `../shared` beside the workspace) is present, 191 real subgraph schemas and the operations of the scenarios.

use std::{hint::black_box, time::Instant};

mod corpus;

use corpus::{Corpus, Kind};

struct Parser {
    name: &'static str,
    /// Parses one document and says whether it was accepted.
    parse: fn(Kind, &str) -> bool,
}

const PARSERS: [Parser; 3] = [
    Parser {
        name: "ogive-syntax",
        parse: ogive,
    },
    Parser {
        name: "apollo-parser",
        parse: apollo,
    },
    Parser {
        name: "cynic-parser",
        parse: cynic,
    },
];

/// Shortest time one measurement may take; small corpora are repeated until then.
const MEASUREMENT_SECONDS_MIN: f64 = 0.02;

fn main() {
    let mut rounds = 15;
    let mut only = None;
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--only" => only = args.next(),
            n => rounds = n.parse().expect("ROUNDS is a number"),
        }
    }
    let parsers: Vec<&Parser> = PARSERS
        .iter()
        .filter(|p| only.as_deref().is_none_or(|name| p.name.contains(name)))
        .collect();
    let corpora = corpus::all();
    for corpus in &corpora {
        for parser in &parsers {
            for document in &corpus.documents {
                assert!(
                    (parser.parse)(corpus.kind, document),
                    "{} refuses a document of {}",
                    parser.name,
                    corpus.name
                );
            }
        }
    }

    // rates[corpus][parser][round]
    let mut rates = vec![vec![Vec::new(); parsers.len()]; corpora.len()];
    for round in 0..rounds {
        for (c, corpus) in corpora.iter().enumerate() {
            for turn in 0..parsers.len() {
                // A different one goes first each round.
                let p = (turn + round) % parsers.len();
                rates[c][p].push(megabytes_per_second(parsers[p], corpus));
            }
        }
    }

    println!("{rounds} rounds, median MB/s (min to max); x = ogive / that parser\n");
    for (c, corpus) in corpora.iter().enumerate() {
        println!(
            "{} ({} documents, {} bytes)",
            corpus.name,
            corpus.documents.len(),
            corpus.bytes()
        );
        let ours = median(&mut rates[c][0]);
        for (p, parser) in parsers.iter().enumerate() {
            let rate = median(&mut rates[c][p]);
            let sorted = &rates[c][p];
            println!(
                "  {:14} {:8.1}  ({:.1} to {:.1})  x {:.2}",
                parser.name,
                rate,
                sorted[0],
                sorted[sorted.len() - 1],
                ours / rate
            );
        }
    }
}

fn megabytes_per_second(parser: &Parser, corpus: &Corpus) -> f64 {
    let start = Instant::now();
    let mut bytes = 0;
    loop {
        for document in &corpus.documents {
            black_box((parser.parse)(corpus.kind, black_box(document)));
        }
        bytes += corpus.bytes();
        let seconds = start.elapsed().as_secs_f64();
        if seconds >= MEASUREMENT_SECONDS_MIN {
            return bytes as f64 / seconds / 1e6;
        }
    }
}

/// Sorts and takes the middle.
fn median(rates: &mut [f64]) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

fn ogive(_: Kind, text: &str) -> bool {
    let parsed = ogive_syntax::parse(
        text,
        ogive_syntax::SourceId(0),
        &ogive_syntax::Limits::default(),
    );
    black_box(&parsed.document);
    parsed.errors.is_empty()
}

fn apollo(_: Kind, text: &str) -> bool {
    let tree = apollo_parser::Parser::new(text).parse();
    black_box(tree.document());
    tree.errors().len() == 0
}

fn cynic(kind: Kind, text: &str) -> bool {
    match kind {
        Kind::TypeSystem => black_box(cynic_parser::parse_type_system_document(text)).is_ok(),
        Kind::Executable => black_box(cynic_parser::parse_executable_document(text)).is_ok(),
    }
}
