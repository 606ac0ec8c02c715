//! The tables `tests/cases/*.txt`.
//!
//! A case begins with `== what it shows`. Its lines begin with:
//!
//! - `v0.3`: the version; v0.4 if it is not there.
//! - `> `: the mapping.
//! - `$ `: the body; without one there is no body. `$args `, `$this ` and so on: variables.
//! - `= `: the result, byte for byte, or `missing`.
//! - `! path | text | message`: a problem of the run: the path of the value, the text of the mapping, what happened.
//! - `E line:column | message` and `W line:column | message`: an error or a warning of the mapping.
//! - `reads paths`: what is read of the body, `reads $this paths` of a variable.
//! - `shape $args {…}`: the shape of a variable; `target {…}`: the type that the mapping is for; see `shapes.rs`.
//! - `request`: the mapping is one of a request, so that there is no `$`.
//!
//! Whatever has a result is run by the reference, too.

use std::fmt::Write as _;

use ogive_base::{Diagnostic, Severity, SourceId, diagnostic::line_column};
use ogive_mapping::{
    Environment, Inputs, Kinds, Origin, ParseLimits, RunLimits, Shapes, Variable, Version, compile,
    parse,
};

use super::{reference, shapes};

/// Fewer mean that some were not found.
const CASES: usize = 250;

const TABLES: [(&str, &str); 7] = [
    ("paths", include_str!("../cases/paths.txt")),
    ("selections", include_str!("../cases/selections.txt")),
    ("literals", include_str!("../cases/literals.txt")),
    ("methods", include_str!("../cases/methods.txt")),
    ("absence", include_str!("../cases/absence.txt")),
    ("mistakes", include_str!("../cases/mistakes.txt")),
    ("types", include_str!("../cases/types.txt")),
];

#[derive(Default)]
struct Case<'t> {
    name: &'t str,
    version: Option<Version>,
    mapping: Option<String>,
    body: Option<&'t str>,
    variables: Vec<(Variable, &'t str)>,
    shapes: Vec<(Variable, &'t str)>,
    target: Option<&'t str>,
    expects: Option<Kinds>,
    request: bool,
    reads: Vec<&'t str>,
    expected: Vec<&'t str>,
}

#[test]
fn mappings_do_what_the_tables_say() {
    let mut found = 0;
    let mut wrong = String::new();
    for (table, text) in TABLES {
        for text in text.split("\n== ").skip(1) {
            let case = read(text);
            let got = run(&case);
            let expected = case.expected.join("\n");
            if got != expected {
                let mapping = case.mapping.as_deref().unwrap_or_default();
                let _ = writeln!(
                    wrong,
                    "{table}: {}\n{mapping}\nexpected:\n{expected}\ngot:\n{got}\n",
                    case.name
                );
            }
            found += 1;
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(found >= CASES, "cases are gone: {found}");
}

fn read(text: &str) -> Case<'_> {
    let mut lines = text.lines();
    let mut case = Case {
        name: lines.next().unwrap(),
        ..Case::default()
    };
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            ">" => {
                let mapping = case.mapping.get_or_insert_default();
                if !mapping.is_empty() {
                    mapping.push('\n');
                }
                mapping.push_str(rest);
            }
            "$" => case.body = Some(rest),
            "=" | "!" | "E" | "W" => case.expected.push(line),
            "reads" => {
                case.reads.push(rest);
                case.expected.push(line);
            }
            "shape" => {
                let (name, shape) = rest.split_once(' ').unwrap();
                case.shapes.push((variable(name), shape));
            }
            "target" => case.target = Some(rest),
            "expects" => {
                case.expects = Some(match rest {
                    "bool" => Kinds::BOOL,
                    "string" => Kinds::STRING,
                    "object" => Kinds::OBJECT,
                    _ => panic!("unknown kind {rest}"),
                });
            }
            "request" => case.request = true,
            _ if word.starts_with('$') => case.variables.push((variable(word), rest)),
            _ => {
                let version = Version::from_link(word);
                case.version = Some(version.unwrap_or_else(|| panic!("{}: {line}", case.name)));
            }
        }
    }
    case
}

fn variable(name: &str) -> Variable {
    let known = name.strip_prefix('$').and_then(Variable::from_name);
    known.unwrap_or_else(|| panic!("{name} is no variable"))
}

/// What a case gives, as its expectation is written.
fn run(case: &Case<'_>) -> String {
    let mapping = case.mapping.clone().unwrap_or_default();
    let version = case.version.unwrap_or(Version::V0_4);
    let origin = Origin::whole(SourceId(0));
    let parsed = parse(&mapping, &origin, version, &ParseLimits::default());
    if !parsed.diagnostics.is_empty() {
        return diagnostics(&parsed.diagnostics, &mapping);
    }
    let environment = environment(case);
    let compiled = compile(&parsed.mapping, &origin, &environment);
    let mut got = diagnostics(&compiled.diagnostics, &mapping);
    let Some(program) = compiled.program else {
        return got;
    };
    let mut add = |line: String| {
        if !got.is_empty() {
            got.push('\n');
        }
        got.push_str(&line);
    };
    let runs = case.expected.iter().any(|line| line.starts_with('='));
    if runs {
        let mut inputs = Inputs::new();
        if let Some(body) = case.body {
            inputs = inputs.body(body.as_bytes());
        }
        for (variable, json) in &case.variables {
            inputs = inputs.variable(*variable, json.as_bytes());
        }
        let outcome = program.run(&inputs, &RunLimits::default()).unwrap();
        let json = outcome.json.map(|json| String::from_utf8(json).unwrap());
        add(format!("= {}", json.as_deref().unwrap_or("missing")));
        for problem in &outcome.problems {
            let text = &mapping[problem.span.range()];
            let line = format!("! {} | {text} | {}", problem.path, problem.message);
            add(line.replace("!  |", "! |"));
        }
        let reference = reference::evaluate(&parsed.mapping, case.body, &case.variables);
        if let Some(difference) = reference::difference(json.as_deref(), &reference) {
            add(difference);
        }
    }
    for reads in &case.reads {
        let (paths, prefix) = match reads.split_once(' ') {
            Some((name, _)) if name.starts_with('$') && name.len() > 1 => {
                (program.variable_paths(variable(name)), format!("{name} "))
            }
            _ => (program.body_paths(), String::new()),
        };
        let shown: Vec<String> = paths
            .into_iter()
            .map(|path| {
                if path.is_empty() {
                    "*".to_owned()
                } else {
                    path
                }
            })
            .collect();
        add(format!("reads {prefix}{}", shown.join(" ")));
    }
    got
}

fn environment(case: &Case<'_>) -> Environment {
    let mut table = Shapes::new();
    let given: Vec<_> = case
        .shapes
        .iter()
        .map(|(variable, text)| (*variable, shapes::read(text, &mut table)))
        .collect();
    let target = case.target.map(|text| shapes::read(text, &mut table));
    let mut environment = if case.request {
        Environment::request("the body of a request", table)
    } else {
        Environment::response("the selection", table)
    };
    for (variable, _) in &case.variables {
        environment.set(*variable, Shapes::UNKNOWN);
    }
    for (variable, shape) in given {
        environment.set(variable, shape);
    }
    environment.target = target;
    environment.expects = case.expects.unwrap_or(Kinds::ANY);
    environment
}

fn diagnostics(all: &[Diagnostic], mapping: &str) -> String {
    let lines = all.iter().map(|diagnostic| {
        let letter = match diagnostic.severity {
            Severity::Error => 'E',
            _ => 'W',
        };
        let (line, column) = line_column(mapping, diagnostic.labels[0].span.start);
        format!("{letter} {line}:{column} | {}", diagnostic.message)
    });
    lines.collect::<Vec<_>>().join("\n")
}
