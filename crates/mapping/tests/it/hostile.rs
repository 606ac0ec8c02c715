//! Inputs and mappings that are meant to cost much: each meets a limit, and none takes long.

use ogive_base::SourceId;
use ogive_mapping::{
    Environment, Failure, Inputs, Located, Origin, ParseLimits, Program, RunLimits, Shapes,
    Variable, Version, compile, parse, parse_url_template,
};
use ogive_testbase::Rng;

fn program(mapping: &str) -> Program {
    let origin = Origin::whole(SourceId(0));
    let parsed = parse(mapping, &origin, Version::V0_4, &ParseLimits::default());
    assert!(parsed.diagnostics.is_empty(), "{:?}", parsed.diagnostics);
    let environment = Environment::response("the selection", Shapes::new());
    let compiled = compile(&parsed.mapping, &origin, &environment);
    compiled
        .program
        .unwrap_or_else(|| panic!("{:?}", compiled.diagnostics))
}

fn failure(mapping: &str, body: &str, limits: &RunLimits) -> Failure {
    let inputs = Inputs::new().body(body.as_bytes());
    program(mapping).run(&inputs, limits).unwrap_err()
}

/// So few that a test in a debug build is quick.
fn few_steps() -> RunLimits {
    RunLimits {
        steps_max: 200_000,
        ..RunLimits::default()
    }
}

#[test]
fn expressions_are_nested_to_a_limit_only() {
    let limits = ParseLimits::default();
    let origin = Origin::whole(SourceId(0));
    for (open, close) in [
        ("[", "]"),
        ("$(", ")"),
        ("a { ", " }"),
        ("x: { ", " }"),
        ("a->echo(", ")"),
        ("... ", ""),
        ("{ a: ", "}"),
    ] {
        for (times, accepted) in [(8, true), (10_000, false)] {
            let mapping = format!("{}a{}", open.repeat(times), close.repeat(times));
            for version in Version::ALL {
                let parsed = parse(&mapping, &origin, version, &limits);
                if !accepted {
                    assert!(!parsed.diagnostics.is_empty(), "{open}");
                }
                assert!(parsed.diagnostics.len() <= limits.diagnostics_max);
            }
        }
    }
}

#[test]
fn a_text_that_is_too_long_is_refused() {
    let limits = ParseLimits {
        text_bytes_max: 10,
        ..ParseLimits::default()
    };
    let origin = Origin::whole(SourceId(0));
    let parsed = parse("aaaaaaaaaaa", &origin, Version::V0_4, &limits);
    assert_eq!(parsed.diagnostics.len(), 1);
}

#[test]
fn mistakes_are_reported_to_a_limit_only() {
    let limits = ParseLimits::default();
    let origin = Origin::whole(SourceId(0));
    let parsed = parse(&"% ".repeat(10_000), &origin, Version::V0_4, &limits);
    assert_eq!(parsed.diagnostics.len(), limits.diagnostics_max);
}

#[test]
fn names_that_do_not_exist_are_reported_to_a_limit_only() {
    let limits = ParseLimits::default();
    let origin = Origin::whole(SourceId(0));
    let mapping = format!("$([{}])", "$a, b->map(@->nope), ".repeat(1_000));
    let parsed = parse(&mapping, &origin, Version::V0_4, &limits);
    assert!(parsed.diagnostics.is_empty(), "{:?}", parsed.diagnostics);
    let environment = Environment::response("the selection", Shapes::new());
    let compiled = compile(&parsed.mapping, &origin, &environment);
    assert!(compiled.program.is_none());
    assert_eq!(compiled.diagnostics.len(), limits.diagnostics_max);
}

#[test]
fn templates_have_a_length_and_report_mistakes_to_a_limit() {
    let limits = ParseLimits::default();
    let environment = Environment::request("the URL", Shapes::new());
    let read = |text: &str| {
        let text = Located {
            text: text.to_owned(),
            origin: Origin::whole(SourceId(0)),
        };
        parse_url_template(&text, Version::V0_4, &environment, &limits)
    };
    let long = read(&format!("/{}", "a".repeat(limits.text_bytes_max)));
    assert!(long.template.is_none() && long.diagnostics.len() == 1);
    for mistake in ["}", "#"] {
        let read = read(&mistake.repeat(1_000));
        assert_eq!(read.diagnostics.len(), limits.diagnostics_max);
        assert!(read.template.is_none());
    }
}

#[test]
fn output_that_doubles_meets_a_limit() {
    let mapping = format!("${}", "->echo([@, @])".repeat(40));
    assert_eq!(failure(&mapping, "1", &few_steps()), Failure::Steps);
    let limits = RunLimits {
        output_bytes_max: 1_000,
        ..RunLimits::default()
    };
    assert_eq!(failure(&mapping, "1", &limits), Failure::OutputBytes);
}

#[test]
fn comparing_values_that_double_meets_a_limit() {
    let doubled = "->echo([@, @])".repeat(40);
    let mapping = format!("$->as($o){doubled}->eq($o{doubled})");
    assert_eq!(failure(&mapping, "1", &few_steps()), Failure::Steps);
}

#[test]
fn a_value_that_grows_in_depth_meets_a_limit() {
    let mapping = format!("${}", "->echo([@])".repeat(1_000));
    let found = failure(&mapping, "1", &RunLimits::default());
    assert_eq!(found, Failure::Nesting);
}

#[test]
fn text_that_doubles_meets_a_limit() {
    let mapping = format!("${}", "->echo([@, @])->joinNotNull(\"\")".repeat(60));
    let found = failure(&mapping, "\"0123456789\"", &RunLimits::default());
    assert_eq!(found, Failure::ComputedBytes);
}

#[test]
fn lists_within_lists_meet_a_limit() {
    let body = format!("{}1{}", "[".repeat(100), "]".repeat(100));
    let limits = RunLimits {
        nesting_max: 50,
        ..RunLimits::default()
    };
    assert_eq!(failure("a", &body, &limits), Failure::Nesting);
    assert_eq!(failure("$.a", &body, &limits), Failure::Nesting);
}

#[test]
fn a_body_that_is_too_deep_is_refused() {
    let body = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    assert!(matches!(
        failure("$.x.y", &body, &RunLimits::default()),
        Failure::Body(_)
    ));
}

#[test]
fn bodies_that_are_no_json_are_refused() {
    for body in [
        "",
        "{",
        "{\"a\":1",
        "[1,]",
        "{\"x\":tru,\"a\":1}",
        "1 2",
        "{\"a\":1}x",
    ] {
        for mapping in ["a", "$", "$.a", "b: 1"] {
            let found = failure(mapping, body, &RunLimits::default());
            assert!(
                matches!(found, Failure::Body(_)),
                "{mapping} over {body}: {found}"
            );
        }
    }
}

#[test]
fn values_are_held_to_a_limit() {
    let body = format!("[{}]", vec!["{\"a\":1}"; 1_000].join(","));
    let limits = RunLimits {
        values_max: 500,
        ..RunLimits::default()
    };
    assert_eq!(failure("a", &body, &limits), Failure::Values);
    assert_eq!(failure("$->map(1)", &body, &limits), Failure::Values);
}

#[test]
fn problems_are_kept_to_a_limit_and_counted() {
    let body = format!("[{}]", vec!["{}"; 1_000].join(","));
    let limits = RunLimits::default();
    let inputs = Inputs::new().body(body.as_bytes());
    let outcome = program("a").run(&inputs, &limits).unwrap();
    assert_eq!(outcome.problems.len(), limits.problems_max);
    assert_eq!(outcome.problems_total, 1_000);
    assert_eq!(outcome.problems[19].path, "$[19].a");
}

#[test]
fn steps_grow_with_the_input_only() {
    let steps = |n: usize| {
        let item = r#"{"id":1,"name":"n","tags":[{"label":"x"}],"skipped":{"a":[1,2,3]}}"#;
        let body = format!("[{}]", vec![item; n].join(","));
        let inputs = Inputs::new().body(body.as_bytes());
        let mapping =
            "id name tags { label } size: tags->size big: tags->filter(@.label->eq(\"x\"))";
        program(mapping)
            .run(&inputs, &RunLimits::default())
            .unwrap()
            .steps
    };
    let (small, large) = (steps(100), steps(1_000));
    assert!(large <= small * 11, "{small} and {large}");
}

#[test]
fn many_keys_of_one_object_take_linear_time() {
    let members: Vec<String> = (0..20_000).map(|i| format!("\"key_{i}\":{i}")).collect();
    let body = format!("{{{}}}", members.join(","));
    let inputs = Inputs::new().body(body.as_bytes());
    for mapping in ["$->entries", "$->keysToCamelCase", "... $ x: 1", "$->eq($)"] {
        let outcome = program(mapping)
            .run(&inputs, &RunLimits::default())
            .unwrap();
        assert!(outcome.steps < 500_000, "{mapping}: {}", outcome.steps);
    }
}

#[test]
fn every_byte_that_a_method_reads_costs_fuel() {
    let zeros = vec!["0"; 1_000].join(",");
    let digits = "1".repeat(100_000);
    let body = format!(r#"{{"l":[{zeros}],"n":{digits},"s":"{digits}","o":{{"a_{digits}":1}}}}"#);
    let inputs = Inputs::new().body(body.as_bytes());
    let mappings = [
        "$.l->map(@)->as($m)->echo($.l->filter($m->contains(1)))",
        "$.l->filter(@->gt($.n))",
        "$.l->filter(@->eq($.n))",
        "$.l->map($.n->add(1))",
        "$.l->map($.s->parseInt)",
        "$.l->map(\"a\"->split($.s))",
        "$.l->map([@]->joinNotNull($.s))",
        "$.o->keysToCamelCase->as($o)->echo($.l->map($o.x?))",
        "$.o->keysToCamelCase->as($o)->echo($.l->map($o->get(\"x\")))",
        "$.o->keysToCamelCase->as($o)->echo($.l->map({ ... $o, y: 1 }.y))",
        "$.o->keysToCamelCase->as($o)->echo($.l->filter($o->eq({ a: 1 })))",
    ];
    let mut cheap = mappings.to_vec();
    cheap.retain(|mapping| program(mapping).run(&inputs, &few_steps()) != Err(Failure::Steps));
    assert!(cheap.is_empty(), "{cheap:#?}");
}

#[test]
fn parameters_of_a_query_have_a_length() {
    let body = format!(r#"{{"s":"{}"}}"#, "x".repeat(1_000));
    let inputs = Inputs::new().body(body.as_bytes());
    let limits = RunLimits {
        output_bytes_max: 2_500,
        ..RunLimits::default()
    };
    let run = |mapping: &str| program(mapping).run_members(&inputs, &limits);
    assert!(run("a: s b: s").is_ok());
    assert_eq!(run("a: s b: s c: s"), Err(Failure::OutputBytes));
    assert_eq!(run("a: [$.s, $.s] c: s"), Err(Failure::OutputBytes));
}

/// Seeds of the fuzz target: a version, a mapping, a zero, a body.
const SEEDS: [&[u8]; 5] = [
    include_bytes!("../../../../fuzz/seeds/mapping/selection"),
    include_bytes!("../../../../fuzz/seeds/mapping/match"),
    include_bytes!("../../../../fuzz/seeds/mapping/fallback"),
    include_bytes!("../../../../fuzz/seeds/mapping/url"),
    include_bytes!("../../../../fuzz/seeds/mapping/literal"),
];

#[test]
fn seeds_with_changed_bytes_end_and_give_json() {
    const BYTES: &[u8] = b"{}[]()$@.,:?!->\"'#\\ \n0aeE_\xc3\xa9";
    let (mut ran, limits) = (0, few_steps());
    for seed in 0..10_000 {
        let mut rng = Rng::new(seed);
        let mut input = rng.pick(&SEEDS).to_vec();
        for _ in 0..rng.between(1, 4) {
            let at = rng.below(input.len());
            match rng.below(3) {
                0 => input[at] = *rng.pick(BYTES),
                1 => input.insert(at, *rng.pick(BYTES)),
                _ => {
                    input.remove(at);
                }
            }
        }
        ran += u64::from(run_bytes(&input, &limits));
    }
    assert!(ran > 1_000, "{ran}");
}

/// Whether the bytes have a mapping that compiles and a body that it runs over.
fn run_bytes(input: &[u8], limits: &RunLimits) -> bool {
    let version = Version::ALL[usize::from(input[0] % 4)];
    let end = input
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(input.len());
    let body = input.get(end + 1..).unwrap_or(b"{}");
    let Some(Ok(mapping)) = input.get(1..end).map(str::from_utf8) else {
        return false;
    };
    let origin = Origin::whole(SourceId(0));
    let parsed = parse(mapping, &origin, version, &ParseLimits::default());
    for diagnostic in &parsed.diagnostics {
        let span = diagnostic.labels[0].span;
        assert!(
            mapping.get(span.range()).is_some(),
            "{mapping:?} {diagnostic:?}"
        );
    }
    let mut environment = Environment::response("the selection", Shapes::new());
    environment.set(Variable::Args, Shapes::UNKNOWN);
    let Some(program) = compile(&parsed.mapping, &origin, &environment).program else {
        return false;
    };
    let inputs = Inputs::new().body(body).variable(Variable::Args, body);
    let Ok(outcome) = program.run(&inputs, limits) else {
        return false;
    };
    if let Some(json) = &outcome.json {
        assert!(ogive_json::scan::validate(json).is_ok(), "{mapping:?}");
    }
    for problem in &outcome.problems {
        assert!(
            mapping.get(problem.span.range()).is_some(),
            "{mapping:?} {problem:?}"
        );
    }
    true
}
