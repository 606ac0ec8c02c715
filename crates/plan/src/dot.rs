//! The fetch graph for Graphviz: `ogive plan --format dot | dot -Tsvg`. Requests of one wave share a rank.

use std::fmt::{self, Write};

use crate::{describe::waves, graph::graph, ir::*};

/// The fetch graph in the DOT language.
pub fn dot(plan: &Plan) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write_graph(plan, &mut out);
    out
}

fn write_graph(plan: &Plan, out: &mut String) -> fmt::Result {
    let graph = graph(plan);
    writeln!(out, "digraph plan {{")?;
    writeln!(out, "  rankdir=LR;")?;
    writeln!(out, "  node [shape=box, fontname=monospace, fontsize=11];")?;
    writeln!(out, "  edge [fontname=monospace, fontsize=9];")?;
    for request in &graph.boxes {
        write!(
            out,
            "  f{} [label=\"{} {}\\l",
            request.fetch.0,
            request.fetch.0,
            escaped(&request.subgraph)
        )?;
        for line in &request.lines {
            write!(out, "{}\\l", escaped(line))?;
        }
        writeln!(out, "\"];")?;
    }
    for (_, fetches) in waves(plan) {
        write!(out, "  {{ rank=same;")?;
        for fetch in fetches {
            write!(out, " f{};", fetch.0)?;
        }
        writeln!(out, " }}")?;
    }
    for arrow in &graph.arrows {
        write!(out, "  f{} -> f{}", arrow.from.0, arrow.to.0)?;
        if arrow.lines.is_empty() {
            writeln!(out, " [style=dashed];")?;
            continue;
        }
        write!(out, " [label=\"")?;
        for line in &arrow.lines {
            write!(out, "{}\\l", escaped(line))?;
        }
        writeln!(out, "\"];")?;
    }
    writeln!(out, "}}")
}

/// The inside of a quoted DOT string.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}
