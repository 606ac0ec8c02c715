//! Options and limits of building and printing; costs that must stay linear.

use std::fmt::Write;

use ogive_schema::{
    BuildOptions, Edition, Schema, build,
    builder::TYPES_MAX,
    builtins, codes,
    introspection::{Meta, OUTPUT_BYTES_MAX, Root, Selected, execute},
    print::{Applied, PrintOptions, print},
};
use ogive_syntax::{Limits, SourceId, parse};
use ogive_testbase::assert_recorded;

use crate::built;

fn codes_of(sdl: &str, options: &BuildOptions) -> Vec<&'static str> {
    built(sdl, options).errors.iter().map(|e| e.code).collect()
}

#[test]
fn an_older_edition_knows_fewer_rules() {
    let sdl = "
        type Query implements I { a(x: Int = \"1\"): Int @deprecated }
        interface I { a(x: Int = 1): Int }
        input A { a: A = {} }
        extend input A @oneOf
    ";
    assert_eq!(
        codes_of(sdl, &BuildOptions::default()),
        [
            codes::INVALID_IMPLEMENTATION,
            codes::INVALID_DEFAULT_VALUE,
            codes::CIRCULAR_DEFINITION,
            codes::INVALID_ONE_OF,
        ]
    );
    let old = BuildOptions {
        edition: Edition::October2021,
        ..BuildOptions::default()
    };
    let built = built(sdl, &old);
    assert_eq!(built.errors, []);
    let a = built.schema.type_by_name("A").unwrap();
    assert!(!built.schema.types[a].one_of);
}

#[test]
fn extensions_define_where_asked() {
    let sdl = "
        extend type Query { me: User }
        extend type User @key(fields: \"id\") { id: ID! }
        extend input One @oneOf { a: Int }
        extend schema @link(url: \"https://specs.example/v1\")
        directive @key(fields: String!) on OBJECT
        directive @link(url: String!) on SCHEMA
    ";
    assert!(codes_of(sdl, &BuildOptions::default()).contains(&codes::INVALID_EXTENSION));
    let options = BuildOptions {
        extensions_define: true,
        ..BuildOptions::default()
    };
    let built = built(sdl, &options);
    assert_eq!(built.errors, []);
    let schema = &built.schema;
    assert_eq!(schema.roots[0], schema.type_by_name("Query"));
    assert!(schema.types[schema.type_by_name("One").unwrap()].one_of);
}

#[test]
fn several_documents_make_one_schema_and_errors_name_theirs() {
    let one = parse("type Query { a: A }", SourceId(3), &Limits::default()).document;
    let two = parse(
        "type A { a: Int } extend type Query { b: B }",
        SourceId(7),
        &Limits::default(),
    )
    .document;
    let built = build(&[&one, &two], &BuildOptions::default());
    let [error] = built.errors.as_slice() else {
        panic!("{:?}", built.errors);
    };
    assert_eq!(error.code, codes::UNKNOWN_TYPE);
    assert_eq!(error.labels[0].source, SourceId(7));
    assert!(built.schema.type_by_name("A").is_some());
}

#[test]
fn a_schema_without_query_can_be_allowed() {
    let options = BuildOptions {
        require_query: false,
        ..BuildOptions::default()
    };
    assert_eq!(codes_of("type A { a: Int }", &options), [] as [&str; 0]);
    assert_eq!(
        codes_of("type A { a: Int }", &BuildOptions::default()),
        [codes::INVALID_ROOT_TYPE]
    );
}

#[test]
fn diagnostics_and_types_are_bounded() {
    let sdl = format!("type Query {{ {} }}", "a: X ".repeat(1000));
    assert_eq!(codes_of(&sdl, &BuildOptions::default()).len(), 100);
    let mut sdl = String::from("type Query { a: Int }");
    for i in 0..TYPES_MAX {
        write!(sdl, " scalar S{i}").unwrap();
    }
    assert_eq!(
        codes_of(&sdl, &BuildOptions::default()),
        [codes::SCHEMA_TOO_LARGE]
    );
}

#[test]
fn applied_directives_can_be_left_out() {
    let sdl = "directive @tag(name: String!) on OBJECT | FIELD_DEFINITION
type Query @tag(name: \"x\") { a: Int @tag(name: \"y\") @deprecated }";
    let schema = built(sdl, &BuildOptions::default()).schema;
    let options = PrintOptions {
        applied: Applied::Specified,
        ..PrintOptions::default()
    };
    assert_eq!(
        print(&schema, &options),
        "directive @tag(name: String!) on OBJECT | FIELD_DEFINITION

type Query {
  a: Int @deprecated
}
"
    );
}

#[test]
fn built_in_definitions_are_those_of_the_specification() {
    let schema = built("type Query { a: Int }", &BuildOptions::default()).schema;
    let options = PrintOptions {
        built_ins: true,
        descriptions: false,
        ..PrintOptions::default()
    };
    let text = print(&schema, &options);
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/built_ins.graphql");
    assert_recorded(path, &text);
}

/// `{ __type(name: $name) { .. } }` from `parent.field` notations: (key, type, field, deprecated too, children).
fn ask(
    schema: &Schema,
    name: &str,
    rows: &[(&str, &str, &str, bool, std::ops::Range<u32>)],
    root: std::ops::Range<u32>,
) -> String {
    let selected: Vec<Selected> = rows
        .iter()
        .map(|(key, parent, field, all, children)| {
            let meta = match *field {
                "__typename" => Meta::Typename,
                _ => {
                    let parent = schema.type_by_name(parent).unwrap();
                    Meta::Field(schema.field_by_name(parent, field).unwrap())
                }
            };
            Selected::new(*key, meta)
                .include_deprecated(*all)
                .children(children.clone())
        })
        .collect();
    let mut out = Vec::new();
    let root_field = Root::Type(name);
    execute(
        schema,
        &selected,
        root,
        root_field,
        OUTPUT_BYTES_MAX,
        &mut out,
    )
    .unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn deprecated_elements_are_shown_when_asked_for() {
    let schema = built(
        "type Query { a(x: Int @deprecated(reason: \"r\"), y: Int): Int b: Int @deprecated }
         input I { a: Int b: Int @deprecated }
         enum E { A B @deprecated }",
        &BuildOptions::default(),
    )
    .schema;
    for (all, expected) in [
        (
            false,
            r#"{"fields":[{"name":"a","args":[{"name":"y","deprecationReason":null}]}]}"#,
        ),
        (
            true,
            r#"{"fields":[{"name":"a","args":[{"name":"x","deprecationReason":"r"},{"name":"y","deprecationReason":null}]},{"name":"b","args":[]}]}"#,
        ),
    ] {
        let rows = [
            ("fields", "__Type", "fields", all, 1..3),
            ("name", "__Field", "name", false, 0..0),
            ("args", "__Field", "args", all, 3..5),
            ("name", "__InputValue", "name", false, 0..0),
            (
                "deprecationReason",
                "__InputValue",
                "deprecationReason",
                false,
                0..0,
            ),
        ];
        assert_eq!(ask(&schema, "Query", &rows, 0..1), expected);
    }
    for (ty, list, expected) in [
        (
            "I",
            "inputFields",
            r#"{"few":[{"n":"a"}],"all":[{"n":"a"},{"n":"b"}]}"#,
        ),
        (
            "E",
            "enumValues",
            r#"{"few":[{"n":"A"}],"all":[{"n":"A"},{"n":"B"}]}"#,
        ),
    ] {
        let item = if ty == "I" {
            "__InputValue"
        } else {
            "__EnumValue"
        };
        let rows = [
            ("few", "__Type", list, false, 2..3),
            ("all", "__Type", list, true, 2..3),
            ("n", item, "name", false, 0..0),
        ];
        assert_eq!(ask(&schema, ty, &rows, 0..2), expected);
    }
    assert_eq!(ask(&schema, "Nope", &[], 0..0), "null");
}

#[test]
fn of_type_may_nest_without_end() {
    let schema = built("type Query { a: [[Int!]]! }", &BuildOptions::default()).schema;
    let depth = 200_000;
    let mut rows = vec![
        ("fields", "__Type", "fields", false, 1..2),
        ("type", "__Field", "type", false, 2..4),
    ];
    for i in 0..depth {
        let children = 2 * i + 4..2 * i + 6;
        rows.push(("t", "__Type", "__typename", false, 0..0));
        rows.push(("of", "__Type", "ofType", false, children));
    }
    rows.push(("t", "__Type", "__typename", false, 0..0));
    rows.push(("k", "__Type", "kind", false, 0..0));
    let answer = ask(&schema, "Query", &rows, 0..1);
    assert_eq!(
        answer,
        r#"{"fields":[{"type":{"t":"__Type","of":{"t":"__Type","of":{"t":"__Type","of":{"t":"__Type","of":{"t":"__Type","of":null}}}}}}]}"#
    );
}

#[test]
fn output_is_bounded_and_restored() {
    let schema = built("type Query { a: Int }", &BuildOptions::default()).schema;
    let types = schema.field_by_name(builtins::INTROSPECTION_SCHEMA, "types");
    let description = schema.field_by_name(builtins::INTROSPECTION_TYPE, "description");
    let selected = [
        Selected::new("types", Meta::Field(types.unwrap())).children(1..2),
        Selected::new("d", Meta::Field(description.unwrap())),
    ];
    let mut out = b"before".to_vec();
    let error = execute(&schema, &selected, 0..1, Root::Schema, 100, &mut out).unwrap_err();
    assert_eq!(error.output_bytes_max, 100);
    assert_eq!(out, b"before");
}

/// Each schema is as large as the others; none may take a time out of proportion.
#[test]
fn large_schemas_of_awkward_shapes_are_built() {
    let n = 3_000;
    let mut chain = String::from("type Query { a(i: I0): Int }\n");
    let mut wide = String::from("type Query { a: Int }\ninput W {");
    let mut defaults = String::from("type Query { a: Int }\n");
    let mut implements = String::from("type Query { a: Int }\n");
    for i in 0..n {
        writeln!(chain, "input I{i} {{ a: I{}! = {{}} }}", (i + 1).min(n - 1)).unwrap();
        write!(wide, " f{i}: Int = {i}").unwrap();
        writeln!(
            defaults,
            "input D{i} {{ a: [D{}] = [{{}}, {{}}] }}",
            (i + 1) % n
        )
        .unwrap();
        writeln!(
            implements,
            "interface J{i} {{ a: Int }} type T{i} implements J{i} {{ a: Int }}"
        )
        .unwrap();
    }
    writeln!(wide, " }}\nextend type Query {{").unwrap();
    for i in 0..n {
        writeln!(wide, " q{i}(w: W = {{}}): Int").unwrap();
    }
    wide.push('}');
    let deep = format!(
        "type Query {{ a(x: S = {}1{}): Int }} scalar S",
        "[".repeat(150),
        "]".repeat(150)
    );
    assert_eq!(codes_of(&wide, &BuildOptions::default()), [] as [&str; 0]);
    assert_eq!(
        codes_of(&implements, &BuildOptions::default()),
        [] as [&str; 0]
    );
    assert_eq!(codes_of(&deep, &BuildOptions::default()), [] as [&str; 0]);
    assert_eq!(
        codes_of(&chain, &BuildOptions::default()),
        [codes::CIRCULAR_DEFINITION; 2]
    );
    assert_eq!(
        codes_of(&defaults, &BuildOptions::default()),
        [codes::CIRCULAR_DEFINITION]
    );
}
