//! The table `tests/cases/connectors.txt`: schema documents, and the connectors that they have or why they are refused.
//!
//! A case is a document, which begins with `v0.3` and the rest of the links that the table does not repeat. Then come
//! `= ` lines that describe each source and connector, or `E line:column | message` and `W …`; lines count from the first
//! one of the case.

use std::fmt::Write as _;

use ogive_base::{Severity, SourceId, diagnostic::line_column};
use ogive_mapping::{
    Connector, ConnectorSource, Connectors, ParseLimits, Program, Variable,
    connectors::{ConnectorHeader, ConnectorHeaderValue, RequestParts, ResponseParts},
    read_connectors,
};
use ogive_syntax::{Limits, parse};

/// Fewer mean that some were not found.
const CASES: usize = 40;

#[test]
fn documents_have_the_connectors_of_the_table() {
    let mut found = 0;
    let mut wrong = String::new();
    for text in include_str!("../cases/connectors.txt")
        .split("\n== ")
        .skip(1)
    {
        let (name, text) = text.split_once('\n').unwrap();
        let (version, text) = text.split_once('\n').unwrap();
        let is_expected =
            |line: &&str| ["= ", "E ", "W "].iter().any(|mark| line.starts_with(mark));
        let expected: Vec<&str> = text.lines().filter(is_expected).collect();
        let lines = text.lines().filter(|line| !is_expected(line));
        let link = format!(
            "extend schema @link(url: \"https://specs.apollo.dev/connect/{version}\", import: [\"@source\", \"@connect\"])"
        );
        let document = lines.fold(link, |document, line| document + "\n" + line);
        let got = describe(&document);
        if got != expected.join("\n") {
            let _ = writeln!(
                wrong,
                "{name}\nexpected:\n{}\ngot:\n{got}\n",
                expected.join("\n")
            );
        }
        found += 1;
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(found >= CASES, "cases are gone: {found}");
}

fn describe(document: &str) -> String {
    let parsed = parse(document, SourceId(0), &Limits::default());
    assert!(parsed.errors.is_empty(), "{document}: {:?}", parsed.errors);
    let read = read_connectors(&parsed.document, &ParseLimits::default());
    let mut lines: Vec<String> = read
        .diagnostics
        .iter()
        .map(|diagnostic| {
            let letter = match diagnostic.severity {
                Severity::Error => 'E',
                _ => 'W',
            };
            // The first line is the link.
            let (line, column) = line_column(document, diagnostic.labels[0].span.start);
            format!("{letter} {}:{column} | {}", line - 1, diagnostic.message)
        })
        .collect();
    if let Some(connectors) = &read.connectors {
        lines.extend(connectors.sources.iter().map(source));
        let all = connectors.connectors.iter();
        lines.extend(all.map(|one| connector(one, connectors)));
    }
    lines.join("\n")
}

fn source(source: &ConnectorSource) -> String {
    let mut line = format!("= source {}", source.name);
    request(&source.request, &mut line);
    response(&source.response, &mut line);
    line
}

fn connector(connector: &Connector, all: &Connectors) -> String {
    let mut line = format!("= {}", connector.coordinate);
    if let Some(row) = connector.source {
        let _ = write!(line, " of {}", all.sources[row].name);
    }
    if let Some(http) = &connector.http {
        let _ = write!(line, " {:?}", http.method);
        for program in http.url.programs() {
            reads(program, &mut line);
        }
        request(&http.request, &mut line);
        if let Some(body) = &http.body {
            line.push_str(" body");
            reads(body, &mut line);
        }
    }
    if connector.entity {
        line.push_str(" entity");
    }
    if let Some(size) = connector.batch_size_max {
        let _ = write!(line, " batch {size}");
    }
    response(&connector.response, &mut line);
    let _ = write!(
        line,
        " selects {}",
        connector.selection.body_paths().join(",")
    );
    line
}

fn reads(program: &Program, line: &mut String) {
    for variable in Variable::ALL {
        for path in program.variable_paths(variable) {
            let _ = write!(line, " ${}.{path}", variable.name());
        }
    }
}

fn request(request: &RequestParts, line: &mut String) {
    for (name, program) in [("path", &request.path), ("query", &request.parameters)] {
        if let Some(program) = program {
            let _ = write!(line, " {name}");
            reads(program, line);
        }
    }
    for ConnectorHeader { name, value } in &request.headers {
        let _ = write!(line, " header {name}");
        match value {
            ConnectorHeaderValue::From(from) => {
                let _ = write!(line, " from {from}");
            }
            ConnectorHeaderValue::Template(template) => {
                template.programs().for_each(|program| reads(program, line));
            }
        }
    }
}

fn response(response: &ResponseParts, line: &mut String) {
    for (name, program) in [
        ("success", &response.is_success),
        ("message", &response.message),
        ("extensions", &response.extensions),
    ] {
        if program.is_some() {
            let _ = write!(line, " {name}");
        }
    }
}

#[test]
fn a_document_without_the_link_has_no_connectors() {
    let text = "type Query { a: Int @connect(selection: \"a\") }";
    let parsed = parse(text, SourceId(0), &Limits::default());
    let read = read_connectors(&parsed.document, &ParseLimits::default());
    assert!(read.connectors.is_none() && read.diagnostics.is_empty());
}

#[test]
fn directives_have_the_names_of_the_link() {
    for (link, connect, source) in [
        ("", "@connect", "@connect__source"),
        (", as: \"rest\"", "@rest", "@rest__source"),
        (
            ", import: [{ name: \"@connect\", as: \"@fetch\" }, \"@source\"]",
            "@fetch",
            "@source",
        ),
    ] {
        let text = format!(
            "extend schema @link(url: \"https://specs.apollo.dev/connect/v0.3\"{link})
             {source}(name: \"a\", http: {{ baseURL: \"https://a\" }})
             type Query {{ a: Int {connect}(source: \"a\", http: {{ GET: \"/\" }}, selection: \"$\") }}"
        );
        let parsed = parse(text.as_str(), SourceId(0), &Limits::default());
        assert!(parsed.errors.is_empty(), "{text}: {:?}", parsed.errors);
        let read = read_connectors(&parsed.document, &ParseLimits::default());
        let connectors = read.connectors.unwrap();
        assert_eq!(
            (connectors.sources.len(), connectors.connectors.len()),
            (1, 1),
            "{link}"
        );
    }
}
