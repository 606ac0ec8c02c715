//! Generated mappings over generated bodies: the program gives what the reference gives.

use ogive_base::SourceId;
use ogive_mapping::{
    Environment, Inputs, Origin, ParseLimits, RunLimits, Shapes, Variable, Version, compile, parse,
};
use ogive_testbase::Rng;

use super::reference;

/// Mappings that are tried.
const CASES: u64 = 4_000;
/// Fewer that compile mean that the generator writes nonsense: mistakes of types are many.
const COMPILED_MIN: u64 = 1_000;

#[test]
fn generated_mappings_agree_with_the_reference() {
    let mut compiled = 0;
    for seed in 0..CASES {
        let mut rng = Rng::new(seed);
        let mapping = selection(&mut rng, 3);
        let body = value(&mut rng, 4);
        let args = object(&mut rng, 2);
        compiled += u64::from(agree(&mapping, &body, &args));
    }
    assert!(compiled >= COMPILED_MIN, "{compiled} of {CASES} compile");
}

/// Whether the mapping compiles; fails if it does and the reference differs.
fn agree(mapping: &str, body: &str, args: &str) -> bool {
    let origin = Origin::whole(SourceId(0));
    let parsed = parse(mapping, &origin, Version::V0_4, &ParseLimits::default());
    assert!(
        parsed.diagnostics.is_empty(),
        "{mapping}: {:?}",
        parsed.diagnostics
    );
    let mut environment = Environment::response("the selection", Shapes::new());
    environment.set(Variable::Args, Shapes::UNKNOWN);
    let Some(program) = compile(&parsed.mapping, &origin, &environment).program else {
        return false;
    };
    let inputs = Inputs::new()
        .body(body.as_bytes())
        .variable(Variable::Args, args.as_bytes());
    let outcome = program.run(&inputs, &RunLimits::default()).unwrap();
    let json = outcome.json.map(|json| String::from_utf8(json).unwrap());
    let variables = [(Variable::Args, args)];
    let expected = reference::evaluate(&parsed.mapping, Some(body), &variables);
    let difference = reference::difference(json.as_deref(), &expected);
    assert_eq!(difference, None, "{mapping}\nover {body}\nwith {args}");
    true
}

const KEYS: [&str; 5] = ["a", "b", "c", "list", "o"];

fn pick<'t>(rng: &mut Rng, all: &[&'t str]) -> &'t str {
    all[rng.below(all.len())]
}

fn value(rng: &mut Rng, depth: u32) -> String {
    match rng.below(if depth == 0 { 6 } else { 10 }) {
        0 => "null".to_owned(),
        1 => pick(rng, &["true", "false"]).to_owned(),
        2 => pick(rng, &["0", "1", "-2", "7", "100"]).to_owned(),
        3 => pick(rng, &["1.5", "2.0", "1e+2", "-0.25"]).to_owned(),
        4 | 5 => pick(rng, &["\"\"", "\"x\"", "\"a,b\"", "\"7\"", "\"é \""]).to_owned(),
        6 | 7 => {
            let items: Vec<String> = (0..rng.below(4)).map(|_| value(rng, depth - 1)).collect();
            format!("[{}]", items.join(", "))
        }
        _ => object(rng, depth - 1),
    }
}
fn object(rng: &mut Rng, depth: u32) -> String {
    let mut members = Vec::new();
    for key in KEYS {
        if rng.below(3) > 0 {
            members.push(format!("\"{key}\":{}", value(rng, depth)));
        }
    }
    format!("{{{}}}", members.join(","))
}

fn selection(rng: &mut Rng, depth: u32) -> String {
    let mut entries = Vec::new();
    for (index, key) in KEYS.into_iter().enumerate() {
        match rng.below(6) {
            0 => entries.push(key.to_owned()),
            1 => entries.push(format!("x{index}: {}", expression(rng, depth))),
            2 if depth > 0 => {
                entries.push(format!("{key} {{ {} }}", selection(rng, depth - 1)));
            }
            3 if depth > 0 => {
                entries.push(format!("x{index}: {{ {} }}", selection(rng, depth - 1)));
            }
            4 if rng.below(4) == 0 => entries.push(format!("... {}", expression(rng, depth))),
            _ => {}
        }
    }
    entries.join(" ")
}

fn expression(rng: &mut Rng, depth: u32) -> String {
    if depth == 0 {
        return pick(
            rng,
            &[
                "$", "@", "a", "$.b", "$args.a", "1", "2.5", "\"x\"", "null", "true", "[]",
            ],
        )
        .to_owned();
    }
    match rng.below(9) {
        0 => expression(rng, 0),
        1 => format!(
            "[{}, {}]",
            expression(rng, depth - 1),
            expression(rng, depth - 1)
        ),
        2 => format!(
            "{{ k: {} l: {} }}",
            expression(rng, depth - 1),
            expression(rng, depth - 1)
        ),
        3 => format!(
            "$({} {} {})",
            expression(rng, depth - 1),
            pick(rng, &["??", "?!"]),
            expression(rng, depth - 1)
        ),
        _ => path(rng, depth - 1),
    }
}

fn path(rng: &mut Rng, depth: u32) -> String {
    let mut path = pick(rng, &["$", "@", "a", "list", "o", "$args"]).to_owned();
    for _ in 0..rng.below(4) {
        path.push_str(&step(rng, depth));
        if rng.below(4) == 0 {
            path.push('?');
        }
    }
    if depth > 0 && rng.below(5) == 0 {
        path.push_str(&format!(" {{ {} }}", selection(rng, depth - 1)));
    }
    path
}

fn step(rng: &mut Rng, depth: u32) -> String {
    if rng.below(2) == 0 {
        return format!(".{}", pick(rng, &KEYS));
    }
    let simple = [
        "first",
        "last",
        "size",
        "entries",
        "not",
        "toString",
        "jsonStringify",
        "jsonParse",
        "trim",
        "parseInt",
        "joinNotNull(\"-\")",
        "split(\",\")",
        "slice(1)",
        "slice(0, 2)",
        "get(0)",
        "get(\"a\")",
        "as($v)->echo($v)",
    ];
    if depth == 0 || rng.below(2) == 0 {
        return format!("->{}", pick(rng, &simple));
    }
    let argument = expression(rng, depth - 1);
    match rng.below(4) {
        0 => format!("->map({argument})"),
        1 => format!(
            "->match([{argument}, 1], [@, {}])",
            expression(rng, depth - 1)
        ),
        2 => {
            let compares = ["eq(@)", "ne(1)", "gt(1)", "lte(\"x\")"];
            let name = pick(rng, &["filter", "find"]);
            format!("->{name}(@->{})", pick(rng, &compares))
        }
        _ => {
            let names = [
                "echo", "eq", "ne", "gt", "lt", "in", "contains", "and", "or", "add", "sub", "mul",
                "div", "mod",
            ];
            format!("->{}({argument})", pick(rng, &names))
        }
    }
}
