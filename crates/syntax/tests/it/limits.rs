//! Every limit ends the parse with its own code; no depth overflows the stack.

use ogive_syntax::{Limits, SourceId, parse, parse_selection_set, parse_type_ref, parse_value};

fn codes(source: &str, limits: &Limits) -> Vec<&'static str> {
    parse(source, SourceId(0), limits)
        .errors
        .iter()
        .map(|e| e.code)
        .collect()
}

#[test]
fn the_token_limit_counts_every_token_but_the_end() {
    let limits = |tokens_max| Limits {
        tokens_max,
        ..Limits::default()
    };
    assert_eq!(codes("{ a b }", &limits(4)), [""; 0]);
    assert_eq!(codes("{ a b }", &limits(3)), ["MAX_TOKENS_LIMIT"]);
    assert_eq!(codes("{ a b", &limits(3)), ["GRAPHQL_PARSE_FAILED"]);
    assert_eq!(codes("{ a b }", &limits(0)), ["MAX_TOKENS_LIMIT"]);
}

#[test]
fn the_size_limit_is_checked_before_reading() {
    let limits = Limits {
        source_bytes_max: 5,
        ..Limits::default()
    };
    assert_eq!(codes("{ a }", &limits), [""; 0]);
    assert_eq!(codes("{ aa }", &limits), ["MAX_SOURCE_BYTES"]);
    assert!(parse_value("\"1234\"", true, &limits).is_err());
}

#[test]
fn the_depth_limit_counts_selection_sets_values_and_list_types_together() {
    let limits = |depth_max| Limits {
        depth_max,
        ..Limits::default()
    };
    for (source, depth) in [
        ("{ a }", 1),
        ("{ a { b } c { d } }", 2),
        ("{ a(x: [[1], {y: 2}]) }", 3),
        ("{ a { b(x: {y: []}) } }", 4),
        ("{ ... { ... on A { b } } }", 3),
        ("type A { a: [[Int]] }", 2),
        ("type A { a(x: Int = [[[1]]]): Int b: [B] }", 3),
    ] {
        assert_eq!(codes(source, &limits(depth)), [""; 0], "{source}");
        assert_eq!(
            codes(source, &limits(depth - 1)),
            ["MAX_PARSE_DEPTH"],
            "{source}"
        );
    }
}

#[test]
fn the_error_limit_ends_the_parse() {
    let source = "type A { a: }\n".repeat(30);
    let limits = Limits {
        errors_max: 7,
        ..Limits::default()
    };
    let errors = parse(source.as_str(), SourceId(0), &limits).errors;
    assert_eq!(errors.len(), 7);
    assert!(!errors[6].notes.is_empty());
    assert_eq!(
        parse(source, SourceId(0), &Limits::default()).errors.len(),
        30
    );
}

#[test]
fn deep_nesting_is_refused_quickly_by_default() {
    let n = 100_000;
    for source in [
        "{a".repeat(n),
        "{".repeat(n),
        format!("{{a(x: {}", "[".repeat(n)),
        format!("{{a(x: {}", "{a:".repeat(n)),
        format!("type A {{ a: {}", "[".repeat(n)),
        format!(
            "query ($a: Int = {}1{}) {{ a }}",
            "[".repeat(n),
            "]".repeat(n)
        ),
        "{... on A ".repeat(n),
    ] {
        let errors = parse(source.as_str(), SourceId(0), &Limits::default()).errors;
        assert_eq!(errors.len(), 1);
        let expected = if source.starts_with("{{") {
            "GRAPHQL_PARSE_FAILED"
        } else {
            "MAX_PARSE_DEPTH"
        };
        assert_eq!(errors[0].code, expected, "{}", &source[..20]);
    }
}

#[test]
fn deep_nesting_needs_no_stack_when_the_limit_allows_it() {
    let n = 100_000;
    let limits = Limits {
        depth_max: u32::MAX,
        ..Limits::default()
    };
    let set = format!("{}{}", "{a".repeat(n), "}".repeat(n));
    assert_eq!(codes(&set, &limits), [""; 0]);
    let list = format!("{}{}", "[".repeat(n), "]".repeat(n));
    assert!(parse_value(&list, true, &limits).is_ok());
    let object = format!("{}1{}", "{a:".repeat(n), "}".repeat(n));
    assert!(parse_value(&object, true, &limits).is_ok());
    assert!(parse_type_ref("[[[[[[[[[[[[[[[Int]]]]]]]]]]]]]]]", &limits).is_ok());
    assert_eq!(
        parse_type_ref("[[[[[[[[[[[[[[[[Int]]]]]]]]]]]]]]]]", &limits).unwrap_err()[0].code,
        "MAX_PARSE_DEPTH"
    );
    let open = parse("{a".repeat(n), SourceId(0), &limits).errors;
    assert_eq!(open.len(), 1);
}

#[test]
fn a_bare_selection_set_has_no_outer_braces() {
    let parsed = parse_selection_set("id org { id }", SourceId(0), &Limits::default());
    assert!(parsed.errors.is_empty(), "{:?}", parsed.errors);
    let doc = &parsed.document;
    let set = doc.operations().next().unwrap().selection_set;
    assert_eq!(doc[set.items].len(), 2);
    for bad in ["", "{ id }", "id }", "id org { id"] {
        let errors = parse_selection_set(bad, SourceId(0), &Limits::default()).errors;
        assert_eq!(errors.len(), 1, "{bad}: {errors:?}");
    }
}
