//! The fetch graph for Mermaid, which many Markdown viewers draw: one subgraph per wave, dashed arrows where only order
//! matters.

use std::fmt::{self, Write};

use crate::{describe::waves, graph::graph, ir::*};

/// The fetch graph as a Mermaid flowchart.
pub fn mermaid(plan: &Plan) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write_graph(plan, &mut out);
    out
}

fn write_graph(plan: &Plan, out: &mut String) -> fmt::Result {
    let graph = graph(plan);
    writeln!(out, "flowchart LR")?;
    for (wave, fetches) in waves(plan) {
        writeln!(out, "  subgraph wave{wave}[\"wave {wave}\"]")?;
        for request in graph.boxes.iter().filter(|b| fetches.contains(&b.fetch)) {
            write!(
                out,
                "    f{}[\"<b>{} {}</b>",
                request.fetch.0,
                request.fetch.0,
                escaped(&request.subgraph)
            )?;
            for line in &request.lines {
                write!(out, "<br/>{}", escaped(line))?;
            }
            writeln!(out, "\"]")?;
        }
        writeln!(out, "  end")?;
    }
    for arrow in &graph.arrows {
        if arrow.lines.is_empty() {
            writeln!(out, "  f{} -.-> f{}", arrow.from.0, arrow.to.0)?;
            continue;
        }
        let lines: Vec<String> = arrow.lines.iter().map(|line| escaped(line)).collect();
        writeln!(
            out,
            "  f{} -->|\"{}\"| f{}",
            arrow.from.0,
            lines.join("<br/>"),
            arrow.to.0
        )?;
    }
    Ok(())
}

/// The inside of a quoted Mermaid label: its own entities, so that no character ends the label or makes markup.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' => out.push_str("#quot;"),
            '#' => out.push_str("#35;"),
            '<' => out.push_str("#lt;"),
            '>' => out.push_str("#gt;"),
            '&' => out.push_str("#amp;"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}
