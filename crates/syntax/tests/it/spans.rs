//! Spans cover exactly the text of their node: diagnostics of every later stage point with them.

use ogive_syntax::{Document, Limits, SourceId, Span, ast::*, parse};

fn document(source: &str) -> Document {
    let parsed = parse(source, SourceId(3), &Limits::default());
    assert!(parsed.errors.is_empty(), "{:?}", parsed.errors);
    assert_eq!(parsed.document.source_id(), SourceId(3));
    parsed.document
}

fn texts(doc: &Document, spans: impl IntoIterator<Item = Span>) -> Vec<&str> {
    spans.into_iter().map(|span| doc.text(span)).collect()
}

#[test]
fn operation_nodes_cover_their_text() {
    let source = "# c\n \"d\" query Q ( \"v\" $a : [Int! ] = [1, {b : 2 }] @v , $c: D ) @w ( x: $a ) \
                  { a : b ( x : \"s\" , y: [$a ] ) @d { c } # e\n ...F @s ... on T @i { e } } # end";
    let doc = document(source);
    let operation = *doc.operations().next().unwrap();
    let whole = doc.text(operation.span);
    assert!(whole.starts_with("\"d\" query Q") && whole.ends_with("{ e } }"));
    assert_eq!(doc.text(operation.description.unwrap().span), "\"d\"");
    assert_eq!(doc.name(operation.name.unwrap()), "Q");

    let variables = &doc[operation.variables];
    assert_eq!(
        texts(&doc, variables.iter().map(|v| v.span)),
        ["\"v\" $a : [Int! ] = [1, {b : 2 }] @v", "$c: D"]
    );
    assert_eq!(doc.name(variables[0].name), "a");
    assert_eq!(doc.text(variables[0].ty.span), "[Int! ]");
    assert_eq!(
        doc.text(variables[0].default.unwrap().span),
        "[1, {b : 2 }]"
    );
    let ValueKind::List(items) = variables[0].default.unwrap().kind else {
        panic!("a list was written");
    };
    assert_eq!(
        texts(&doc, doc[items].iter().map(|v| v.span)),
        ["1", "{b : 2 }"]
    );
    let ValueKind::Object(fields) = doc[items][1].kind else {
        panic!("an object was written");
    };
    assert_eq!(texts(&doc, doc[fields].iter().map(|f| f.span)), ["b : 2"]);
    assert_eq!(
        texts(&doc, doc[operation.directives].iter().map(|d| d.span)),
        ["@w ( x: $a )"]
    );

    let set = operation.selection_set;
    assert!(doc.text(set.span).starts_with("{ a :") && doc.text(set.span).ends_with("{ e } }"));
    let selections = &doc[set.items];
    assert_eq!(
        texts(&doc, selections.iter().map(Selection::span)),
        [
            "a : b ( x : \"s\" , y: [$a ] ) @d { c }",
            "...F @s",
            "... on T @i { e }"
        ]
    );
    let Selection::Field(field) = selections[0] else {
        panic!("a field was written");
    };
    assert_eq!(
        (doc.name(field.response_key()), doc.name(field.name)),
        ("a", "b")
    );
    assert_eq!(
        texts(&doc, doc[field.arguments].iter().map(|a| a.span)),
        ["x : \"s\"", "y: [$a ]"]
    );
    assert_eq!(doc.text(field.selection_set.unwrap().span), "{ c }");
    let Selection::Inline(inline) = selections[2] else {
        panic!("an inline fragment was written");
    };
    assert_eq!(doc.text(inline.selection_set.span), "{ e }");
}

#[test]
fn type_system_nodes_cover_their_text() {
    let source = "\"d\" schema @s { query : Q } extend type A implements & B & C @x { \"f\" f ( \"a\" a : Int = 1 @y , b: B ) : [T! ]! @z } \
                  directive @d ( a : Int ) repeatable on | FIELD | QUERY \
                  \"e\" enum E { \"v\" V @w , W } union U = | A | B #";
    let doc = document(source);
    assert_eq!(
        texts(&doc, doc.definitions.iter().map(Definition::span)),
        [
            "\"d\" schema @s { query : Q }",
            "extend type A implements & B & C @x { \"f\" f ( \"a\" a : Int = 1 @y , b: B ) : [T! ]! @z }",
            "directive @d ( a : Int ) repeatable on | FIELD | QUERY",
            "\"e\" enum E { \"v\" V @w , W }",
            "union U = | A | B",
        ]
    );
    let Definition::Schema(schema) = doc.definitions[0] else {
        panic!("a schema was written");
    };
    assert_eq!(
        texts(&doc, doc[schema.root_types].iter().map(|r| r.span)),
        ["query : Q"]
    );
    let kinds: Vec<_> = doc
        .definitions
        .iter()
        .filter_map(|d| match d {
            Definition::Type(t) => Some(t.kind),
            _ => None,
        })
        .collect();
    let [
        TypeDefinitionKind::Object { interfaces, fields },
        TypeDefinitionKind::Enum { values },
        TypeDefinitionKind::Union { members },
    ] = kinds[..]
    else {
        panic!("an object type, an enum and a union were written: {kinds:?}");
    };
    let names = |list: List<Name>| doc[list].iter().map(|n| doc.name(*n)).collect::<Vec<_>>();
    assert_eq!(names(interfaces), ["B", "C"]);
    assert_eq!(names(members), ["A", "B"]);
    let field = doc[fields][0];
    assert_eq!(
        doc.text(field.span),
        "\"f\" f ( \"a\" a : Int = 1 @y , b: B ) : [T! ]! @z"
    );
    assert_eq!(doc.text(field.ty.span), "[T! ]!");
    assert_eq!(
        texts(&doc, doc[field.arguments].iter().map(|a| a.span)),
        ["\"a\" a : Int = 1 @y", "b: B"]
    );
    assert_eq!(
        texts(&doc, doc[values].iter().map(|v| v.span)),
        ["\"v\" V @w", "W"]
    );
}
