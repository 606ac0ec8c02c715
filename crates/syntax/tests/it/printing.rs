//! Printing of parts, and canonical form of what may be written in several ways.

use ogive_syntax::{
    Limits, SourceId, parse, parse_type_ref, parse_value, print_definition, print_document,
    print_type_ref, print_value,
};

fn print(source: &str) -> String {
    let parsed = parse(source, SourceId(0), &Limits::default());
    assert!(parsed.errors.is_empty(), "{source}: {:?}", parsed.errors);
    print_document(&parsed.document)
}

#[test]
fn values_print_on_one_line() {
    for (source, printed) in [
        ("[1,2.5e+3,-0,[],{}]", "[1, 2.5e+3, -0, [], {}]"),
        (
            "{a:$v b:{c:[[ENUM]]}d:null}",
            "{a: $v, b: {c: [[ENUM]]}, d: null}",
        ),
        ("\"\"\"\n a\n  b\n\"\"\"", "\"a\\n b\""),
        ("[\"[\", \"{\"]", "[\"[\", \"{\"]"),
        (
            r#""\u0000\u007f\/\t é\u{1F600}""#,
            r#""\u0000\u007F/\t é😀""#,
        ),
        ("true", "true"),
    ] {
        let (document, value) = parse_value(source, false, &Limits::default()).unwrap();
        assert_eq!(print_value(&document, &value), printed);
    }
}

#[test]
fn types_print_as_written() {
    for source in ["Int", "Int!", "[Int]", "[[Int!]]!", "[[[A]!]]"] {
        let (document, ty) = parse_type_ref(source, &Limits::default()).unwrap();
        assert_eq!(print_type_ref(&document, &ty), source);
    }
    assert!(parse_type_ref("Int!!", &Limits::default()).is_err());
    assert!(parse_type_ref("[Int", &Limits::default()).is_err());
    assert!(parse_type_ref("", &Limits::default()).is_err());
}

#[test]
fn variables_are_refused_in_constant_values() {
    let errors = parse_value("[$a]", true, &Limits::default()).unwrap_err();
    assert_eq!(
        errors[0].message,
        "Syntax Error: Unexpected variable \"$a\" in constant value."
    );
    assert!(parse_value("1 2", true, &Limits::default()).is_err());
}

#[test]
fn a_definition_prints_without_line_end() {
    let parsed = parse("type A{a:B} {a}", SourceId(0), &Limits::default());
    let definitions = &parsed.document.definitions;
    assert_eq!(
        print_definition(&parsed.document, &definitions[0]),
        "type A {\n  a: B\n}"
    );
    assert_eq!(
        print_definition(&parsed.document, &definitions[1]),
        "{\n  a\n}"
    );
    assert_eq!(print_document(&ogive_syntax::Document::default()), "");
}

/// `type A` followed by `{ a }` would be a type with a broken field.
#[test]
fn a_query_after_a_definition_without_body_keeps_its_keyword() {
    for before in [
        "type A",
        "interface A @d",
        "enum A",
        "input A",
        "extend schema @d",
        "extend type A implements B",
    ] {
        let printed = print(&format!("{before} query {{ a }} query {{ a }}"));
        assert_eq!(
            printed,
            format!("{before}\n\nquery {{\n  a\n}}\n\n{{\n  a\n}}\n")
        );
        assert_eq!(print(&printed), printed);
    }
    for before in [
        "scalar A",
        "union A",
        "union A = B",
        "directive @d on FIELD",
    ] {
        let printed = print(&format!("{before} {{ a }}"));
        assert_eq!(printed, format!("{before}\n\n{{\n  a\n}}\n"));
    }
}

#[test]
fn deep_documents_print_without_recursion() {
    let n = 20_000;
    let limits = Limits {
        depth_max: u32::MAX,
        ..Limits::default()
    };
    let list = format!("{}{}", "[".repeat(n), "]".repeat(n));
    let (document, value) = parse_value(&list, true, &limits).unwrap();
    assert_eq!(print_value(&document, &value), list);
    // Quadratic in the indentation, so not as deep.
    let n = 2_000;
    let set = format!("{}{}", "{a".repeat(n), "}".repeat(n));
    let parsed = parse(set, SourceId(0), &limits);
    let printed = print_document(&parsed.document);
    assert_eq!(printed.matches("a {").count(), n - 1);
}
