//! The examples of `docs/mapping.md`.

use ogive_base::SourceId;
use ogive_mapping::{
    Environment, Inputs, METHODS, Origin, ParseLimits, RunLimits, Shapes, Variable, Version,
    compile, parse,
};

/// Fewer mean that some were not found.
const EXAMPLES: usize = 55;

fn page() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/mapping.md");
    std::fs::read_to_string(path).unwrap()
}

/// The cells of a row of a table, without the marks of code.
fn cells(line: &str) -> Option<Vec<&str>> {
    let row = line.strip_prefix("| ")?.strip_suffix(" |")?;
    Some(
        row.split(" | ")
            .map(|cell| cell.trim_matches('`'))
            .collect(),
    )
}

fn run(mapping: &str, body: &str) -> String {
    let origin = Origin::whole(SourceId(0));
    let parsed = parse(mapping, &origin, Version::V0_4, &ParseLimits::default());
    assert!(
        parsed.diagnostics.is_empty(),
        "{mapping}: {:?}",
        parsed.diagnostics
    );
    let environment = Environment::response("the selection", Shapes::new());
    let compiled = compile(&parsed.mapping, &origin, &environment);
    let program = compiled.program.unwrap();
    let inputs = Inputs::new().body(body.as_bytes());
    let outcome = program.run(&inputs, &RunLimits::default()).unwrap();
    String::from_utf8(outcome.json.unwrap()).unwrap()
}

#[test]
fn examples_give_what_the_page_says() {
    let page = page();
    let mut found = 0;
    for line in page.lines() {
        let (mapping, body, result) = match cells(line).as_deref() {
            Some([mapping, body, result, _]) if body.starts_with('{') => (*mapping, *body, *result),
            Some([_, _, _, mapping, body, result]) if body.starts_with('{') => {
                (*mapping, *body, *result)
            }
            _ => continue,
        };
        assert_eq!(run(mapping, body), result, "{mapping} over {body}");
        found += 1;
    }
    assert!(found >= EXAMPLES, "examples are gone: {found}");
}

#[test]
fn the_page_has_all_methods_and_variables() {
    let page = page();
    for info in METHODS {
        let since = info.since.to_string();
        let since = since.strip_prefix("connect v").unwrap();
        let row = format!("| `{}` | {since} | ", info.name);
        assert!(page.contains(&row), "{row}");
    }
    for variable in Variable::ALL {
        let since = variable.since().to_string();
        let since = since.strip_prefix("connect v").unwrap();
        let row = format!("| `${}` | {since} | ", variable.name());
        assert!(page.contains(&row), "{row}");
    }
}
