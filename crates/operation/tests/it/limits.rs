//! Limits: documents made to be expensive are cheap or refused. Steps are counted, not time.

use std::fmt::Write as _;

use ogive_operation::{
    NormaliseLimits, ValidationLimits, normalise, validate, validate::validate_counting,
};
use ogive_schema::Schema;
use ogive_syntax::{Document, Limits, SourceId, parse};

use crate::files::{document, schema, schema_of};

/// Messages, and the steps that field merging took.
fn count(schema: &Schema, text: &str) -> (Vec<String>, u32) {
    let (found, steps) = validate_counting(schema, &document(text), &ValidationLimits::default());
    (found.into_iter().map(|d| d.message).collect(), steps)
}

fn valid_steps(schema: &Schema, text: &str) -> u32 {
    let (messages, steps) = count(schema, text);
    assert_eq!(messages, Vec::<String>::new());
    steps
}

fn repeated(n: usize, each: impl Fn(usize) -> String) -> String {
    (0..n).map(each).collect::<Vec<_>>().join(" ")
}

#[test]
fn overlapping_fields_take_linear_steps() {
    let layers = schema("layers");
    for n in [1_000, 2_000, 4_000] {
        // The same leaf, the same composite, and both through inline fragments.
        let leaves = format!("{{ dog {{ {} }} }}", repeated(n, |_| "name".into()));
        let nested = format!(
            "{{ {} }}",
            repeated(n, |_| "dog { name owner { name } }".into())
        );
        let inline = format!(
            "{{ dog {{ {} }} }}",
            repeated(n, |_| "... on Pet { name } ... on Dog { name }".into())
        );
        let arguments = format!(
            "{{ dog {{ {} }} }}",
            repeated(n, |_| "isAt(x: 1, y: 2) isAt(y: 2, x: 1)".into())
        );
        let apart = format!(
            "{{ pet {{ {} }} }}",
            repeated(n, |_| "... on Dog { x: name } ... on Cat { x: nickname }"
                .into())
        );
        for text in [leaves, nested, inline, arguments, apart] {
            let steps = valid_steps(&layers, &text);
            assert!(steps as usize <= 12 * n, "{steps} steps for {n}");
        }
    }
}

#[test]
fn deep_overlaps_take_linear_steps() {
    let layers = schema("layers");
    let chain = format!("{}{{ x }}{}", "{ a ".repeat(150), "}".repeat(150));
    let text = format!("{{ {} }}", repeated(40, |_| format!("deep {chain}")));
    let steps = valid_steps(&layers, &text);
    assert!(steps < 40 * 152 * 3, "{steps}");
}

#[test]
fn fragment_bombs_take_linear_steps() {
    let layers = schema("layers");
    // Each fragment spreads the next one twice: 2^n paths when expanded.
    for n in [20, 200, 1_000] {
        let mut same_key = String::from("{ deep { ...F0 } }");
        let mut two_keys = same_key.clone();
        for i in 0..n {
            let _ = write!(
                same_key,
                "fragment F{i} on Deep {{ a {{ ...F{} }} a {{ ...F{} }} }}",
                i + 1,
                i + 1
            );
            let _ = write!(
                two_keys,
                "fragment F{i} on Deep {{ a {{ ...F{} }} b {{ ...F{} }} }}",
                i + 1,
                i + 1
            );
        }
        let end = format!("fragment F{n} on Deep {{ x }}");
        for text in [same_key + &end, two_keys + &end] {
            let steps = valid_steps(&layers, &text);
            assert!(steps <= 12 * n + 50, "{steps} steps for {n}");
        }
    }
}

#[test]
fn chains_and_fans_of_fragments_take_linear_steps() {
    let layers = schema("layers");
    let n = 5_000;
    let mut chain = String::from("{ deep { ...F0 } }");
    let mut backwards = String::from("{ deep { x } }");
    let mut fan = format!("{{ deep {{ {} }} }}", repeated(n, |i| format!("...F{i}")));
    for i in 0..n {
        let _ = write!(chain, "fragment F{i} on Deep {{ x ...F{} }}", i + 1);
        let _ = write!(backwards, "fragment F{} on Deep {{ x ...F{i} }}", i + 1);
        let _ = write!(fan, "fragment F{i} on Deep {{ x }}");
    }
    chain.push_str(&format!("fragment F{n} on Deep {{ x }}"));
    backwards.push_str("fragment F0 on Deep { x }");
    assert!(valid_steps(&layers, &chain) < 6 * n as u32);
    assert!(valid_steps(&layers, &fan) < 6 * n as u32);
    // Not used by any operation, and each spread by the next one.
    let (messages, steps) = count(&layers, &backwards);
    assert!(steps < 6 * n as u32, "{steps}");
    assert_eq!(messages.len(), 101);
}

#[test]
fn cycles_of_fragments_end() {
    let layers = schema("layers");
    let n = 3_000;
    let cycle = repeated(n, |i| {
        format!("fragment F{i} on Deep {{ x a {{ ...F{} }} }}", (i + 1) % n)
    });
    let (messages, _) = count(&layers, &format!("{{ deep {{ ...F0 }} }} {cycle}"));
    assert!(messages[0].starts_with("Cannot spread fragment \"F0\" within itself via \"F1\""));
    let only_spreads = repeated(n, |i| {
        format!("fragment F{i} on Deep {{ ...F{} }}", (i + 1) % n)
    });
    let (messages, _) = count(&layers, &format!("{{ deep {{ ...F0 }} }} {only_spreads}"));
    assert_eq!(messages.len(), 1);
}

#[test]
fn too_many_combinations_are_refused_with_a_clear_error() {
    let layers = schema("layers");
    // Choosing `a` or `b` at each level combines fragments in exponentially many ways: the subset construction's
    // worst case.
    let n = 24;
    let mut text =
        String::from("{ deep { ...S } } fragment S on Deep { a { ...S } b { ...S ...F0 } }");
    let _ = write!(
        text,
        "fragment F0 on Deep {{ a {{ ...F1 }} b {{ ...F1 }} }}"
    );
    for i in 1..n {
        let _ = write!(
            text,
            "fragment F{i} on Deep {{ a {{ ...F{} }} b {{ ...F{} }} }}",
            i + 1,
            i + 1
        );
    }
    let _ = write!(text, "fragment F{n} on Deep {{ x }}");
    let limits = ValidationLimits {
        merge_steps_max: 50_000,
        ..ValidationLimits::default()
    };
    let (found, steps) = validate_counting(&layers, &document(&text), &limits);
    let refusal = found
        .iter()
        .find(|d| d.code == "VALIDATION_TOO_COMPLEX")
        .unwrap();
    assert_eq!(
        refusal.message,
        "Checking that fields can be merged takes more than 50000 steps."
    );
    assert!(!refusal.labels.is_empty() && refusal.help.is_some());
    assert!(steps < 60_000, "{steps}");
}

#[test]
fn one_conflict_among_thousands_of_fields_is_named() {
    let layers = schema("layers");
    let text = format!(
        "{{ dog {{ {} x: nickname }} }}",
        repeated(2_000, |_| "x: name".into())
    );
    let (messages, steps) = count(&layers, &text);
    assert!(steps < 10_000, "{steps}");
    assert!(
        messages[0].starts_with(
            "Fields \"x\" conflict because \"name\" and \"nickname\" are different fields."
        ),
        "{messages:?}"
    );
}

#[test]
fn a_conflict_deeper_than_words_go_is_still_reported() {
    let layers = schema("layers");
    let n = 1_000;
    let mut text = String::from("{ deep { a { ...A0 } a { ...B0 } } }");
    for i in 0..n {
        for side in ["A", "B"] {
            let _ = write!(
                text,
                "fragment {side}{i} on Deep {{ a {{ ...{side}{} }} }}",
                i + 1
            );
        }
    }
    let _ = write!(
        text,
        "fragment A{n} on Deep {{ x: x }} fragment B{n} on Deep {{ x: y }}"
    );
    let (messages, steps) = count(&layers, &text);
    assert!(steps < 30 * n, "{steps}");
    assert_eq!(
        messages,
        [
            "Fields \"x\" conflict because \"x\" and \"y\" are different fields. \
          Use different aliases on the fields to fetch both if this was intentional."
        ]
    );
}

#[test]
fn errors_stop_at_the_limit_in_the_reference_words() {
    let layers = schema("layers");
    let text = format!("{{ {} }}", repeated(500, |i| format!("nope{i}")));
    let (messages, _) = count(&layers, &text);
    assert_eq!(messages.len(), 101);
    assert_eq!(
        messages[99],
        "Cannot query field \"nope99\" on type \"Query\"."
    );
    assert_eq!(
        messages[100],
        "Too many validation errors, error limit reached. Validation aborted."
    );
    let limits = ValidationLimits {
        errors_max: 3,
        ..ValidationLimits::default()
    };
    assert_eq!(validate(&layers, &document(&text), &limits).len(), 4);
}

#[test]
fn exactly_as_many_errors_as_allowed_are_no_abort() {
    let layers = schema("layers");
    let text = format!("{{ {} }}", repeated(100, |i| format!("nope{i}")));
    assert_eq!(count(&layers, &text).0.len(), 100);
}

#[test]
fn variables_of_many_operations_and_fragments_are_limited() {
    let zoo = schema("zoo");
    let operations = repeated(2_000, |i| {
        format!("query Q{i}($a: Int!) {{ lion {{ ...F }} }}")
    });
    let usages = repeated(2_000, |i| format!("r{i}: roar(volume: $a)"));
    let text = format!("{operations} fragment F on Lion {{ {usages} }}");
    let (messages, _) = count(&zoo, &text);
    assert_eq!(
        messages,
        ["Checking variables takes more than 1000000 steps."]
    );
}

#[test]
fn nesting_beyond_the_limit_is_refused() {
    let layers = schema("layers");
    let parsed = |text: &str| -> Document {
        let limits = Limits {
            depth_max: 100_000,
            ..Limits::default()
        };
        let parsed = parse(text, SourceId(0), &limits);
        assert!(parsed.errors.is_empty());
        parsed.document
    };
    let codes = |text: &str| -> Vec<&'static str> {
        let found = validate(&layers, &parsed(text), &ValidationLimits::default());
        found.into_iter().map(|d| d.code).collect()
    };
    let nested = |n: usize| format!("{{ deep {}{{ x }}{} }}", "{ a ".repeat(n), "}".repeat(n));
    assert!(codes(&nested(200)).is_empty());
    assert_eq!(codes(&nested(20_000)), ["VALIDATION_TOO_COMPLEX"]);
    let list = |n: usize| format!("{{ any {{ f(l: {}1{}) }} }}", "[".repeat(n), "]".repeat(n));
    assert_eq!(codes(&list(20_000)), ["VALIDATION_TOO_COMPLEX"]);
    let inline = |n: usize| format!("{{ {}deep {{ x }}{} }}", "... { ".repeat(n), "}".repeat(n));
    assert!(codes(&inline(200)).is_empty());
    assert_eq!(codes(&inline(20_000)), ["VALIDATION_TOO_COMPLEX"]);
}

#[test]
fn many_object_types_behind_an_interface_stay_cheap() {
    let n = 300;
    let mut sdl = String::from("type Query { i: I } interface I { a: Int } ");
    let mut text = String::from("{ i { a x: a ");
    for i in 0..n {
        let _ = write!(sdl, "type T{i} implements I {{ a: Int b: I }} ");
        let _ = write!(text, "... on T{i} {{ a b {{ a }} }} ");
    }
    text.push_str("} }");
    let steps = valid_steps(&schema_of(&sdl), &text);
    assert!(steps < 20 * n, "{steps}");
}

/// Normalises the only operation; the error's code and message.
fn normalised(schema: &Schema, text: &str) -> Result<usize, (&'static str, String)> {
    let document = document(text);
    assert_eq!(
        validate(schema, &document, &ValidationLimits::default()),
        Vec::new()
    );
    let operation = document.operations().next().expect("an operation");
    normalise(schema, &document, operation, &NormaliseLimits::default())
        .map(|operation| operation.fields.len())
        .map_err(|error| (error.code, error.message))
}

#[test]
fn too_many_selections_are_refused_before_anything_else() {
    let layers = schema("layers");
    let fields = |n: usize| format!("{{ nothing {} }}", repeated(n - 1, |_| "dog".into()));
    let (messages, steps) = count(&layers, &fields(50_001));
    assert_eq!(messages, ["Document has more than 50000 selections."]);
    assert_eq!(steps, 0);
    // At the limit the first violation is found.
    let (messages, _) = count(&layers, &fields(50_000));
    assert!(messages[0].contains("nothing"), "{messages:?}");
}

#[test]
fn conditions_that_double_at_every_spread_are_refused() {
    let layers = schema("layers");
    // Every path through the fragments has conditions of its own.
    let bomb = |n: usize| {
        let variables = repeated(n, |i| format!("$v{i}: Boolean!"));
        let fragments = repeated(n, |i| {
            let next = i + 1;
            format!(
                "fragment F{i} on Deep {{ ...F{next} @include(if: $v{i}) ...F{next} @skip(if: $v{i}) x }}"
            )
        });
        format!(
            "query({variables}) {{ deep {{ ...F0 }} }} {fragments} fragment F{n} on Deep {{ x }}"
        )
    };
    assert_eq!(normalised(&layers, &bomb(8)), Ok(2));
    for n in [14, 16, 100] {
        let (code, message) = normalised(&layers, &bomb(n)).expect_err("refused");
        assert_eq!(code, "OPERATION_TOO_LARGE");
        assert!(
            message.contains("more than 20000 selections under `@skip` or `@include`"),
            "{message}"
        );
    }
}

#[test]
fn a_name_of_a_megabyte_is_not_written_a_hundred_times() {
    let layers = schema("layers");
    let name = "x".repeat(1_000_000);
    let uses = repeated(100, |i| format!("a{i}: f(a: $v{i})"));
    let (messages, _) = count(&layers, &format!("query {name} {{ any {{ {uses} }} }}"));
    assert_eq!(messages.len(), 5);
    assert!(messages[0].contains("is not defined by operation"));
    assert!(messages[4].starts_with("Too many"), "{}", messages[4]);
    let (messages, _) = count(&layers, &format!("query x {{ any {{ {uses} }} }}"));
    assert_eq!(messages.len(), 100);
}

/// However the fragments are ordered and whatever stands around them; and nothing is refused that is small.
#[test]
fn fields_that_double_at_every_spread_are_counted_and_not_made() {
    let layers = schema("layers");
    let bomb = |n: usize, inside: &dyn Fn(usize) -> String, reversed: bool| {
        let mut fragments: Vec<String> = (0..n)
            .map(|i| {
                let next = inside(i + 1);
                format!("fragment F{i} on Deep {{ a {{ {next} }} b {{ {next} }} }}")
            })
            .collect();
        if reversed {
            fragments.reverse();
        }
        // Some order in which nothing is known when it is needed.
        let all = repeated(n, |i| format!("...F{}", n - 1 - i));
        let fragments = fragments.join(" ");
        format!("{{ deep {{ {all} }} }} {fragments} fragment F{n} on Deep {{ x }}")
    };
    let spread = |i: usize| format!("...F{i}");
    let inline = |i: usize| format!("... {{ ... on Deep {{ ...F{i} }} }}");
    for reversed in [false, true] {
        assert_eq!(normalised(&layers, &bomb(10, &spread, reversed)), Ok(4_093));
        assert_eq!(normalised(&layers, &bomb(10, &inline, reversed)), Ok(4_093));
        for inside in [&spread as &dyn Fn(usize) -> String, &inline] {
            let (code, message) = normalised(&layers, &bomb(100, inside, reversed)).unwrap_err();
            assert_eq!(code, "OPERATION_TOO_LARGE");
            assert!(message.contains("more than 50000 fields"), "{message}");
        }
    }
    // As many on paper, but all of them are the same, or none is there.
    let same = |i: usize| format!("...F{i} ...F{i}");
    let text = bomb(40, &same, false).replace(" b {", " a {");
    assert_eq!(normalised(&layers, &text), Ok(81));
    let never = |i: usize| format!("x ...F{i} @skip(if: true)");
    assert_eq!(normalised(&layers, &bomb(40, &never, false)), Ok(5));
}

#[test]
fn a_thousand_conditions_each_on_a_field_of_its_own_are_fine() {
    let layers = schema("layers");
    let n = 1_000;
    let text = format!(
        "query({}) {{ deep {{ {} }} }}",
        repeated(n, |i| format!("$v{i}: Boolean!")),
        repeated(n, |i| format!("x{i}: x @include(if: $v{i})"))
    );
    assert_eq!(normalised(&layers, &text), Ok(n + 1));
}

#[test]
fn conflicts_beyond_those_reported_are_not_looked_for() {
    let layers = schema("layers");
    let text = format!(
        "{{ dog {{ {} }} }}",
        repeated(4_000, |i| format!("x: isAt(x: {i}, y: 2)"))
    );
    let (messages, _) = count(&layers, &text);
    assert_eq!(messages.len(), 101);
    assert!(messages[99].contains("conflict because they have differing arguments"));
}
