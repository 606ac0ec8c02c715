//! What is found in front ends of a few files, and what is said to be wrong with them.

use std::path::PathBuf;

use ogive_base::diagnostic::line_column;

use super::*;

fn collected(files: &[(&str, &str)], as_sent_by_apollo: bool) -> Extraction {
    let mut collector = Collector::new(ExtractOptions {
        as_sent_by_apollo,
        ..ExtractOptions::default()
    });
    for (path, text) in files {
        let path = PathBuf::from(path);
        collector.add(SourceFile {
            kind: FileKind::of(&path).unwrap(),
            path,
            text: (*text).to_owned(),
        });
    }
    collector.finish()
}

fn names(extraction: &Extraction) -> Vec<&str> {
    assert_eq!(extraction.diagnostics, []);
    extraction.operations.iter().map(|o| &*o.name).collect()
}

/// Code, file, line and column of each diagnostic.
fn said(extraction: &Extraction) -> Vec<(&str, String)> {
    let place = |diagnostic: &Diagnostic| {
        let label = &diagnostic.labels[0];
        let source = extraction.sources.get(label.source).unwrap();
        let (line, column) = line_column(&source.text, label.span.start);
        format!("{}:{line}:{column}", source.name)
    };
    let all = extraction.diagnostics.iter();
    all.map(|d| (d.code, place(d))).collect()
}

#[test]
fn fragments_come_from_anywhere() {
    let found = collected(
        &[
            (
                "a.ts",
                "import { F } from './b'; export const Q = gql`\n  ${F}\n  query Q { me { ...F } }\n`;",
            ),
            (
                "b.tsx",
                "export const F = gql`fragment F on User { id ...G } ${G}`; const x = <p>it's</p>;",
            ),
            (
                "c.graphql",
                "# all\nfragment G on User { name }\nfragment Unused on User { id }\nquery C { me { ...G } }",
            ),
            (
                "d.vue",
                "<template>it's {{ x }} `</template>\n<script setup lang=\"ts\">\nconst q = gql`query D { me { id } }`\n</script>",
            ),
            (
                "e.svelte",
                "<script context=\"module\">gql(`mutation E { add }`)</script><p>`</p><script>/* GraphQL */ `subscription E2 { e }`</script>",
            ),
            (
                "f.js",
                "const typeDefs = gql`type Query { a: Int }`; gql` # nothing\n`; graphql('hello'); x.gql('{')",
            ),
            (
                "schema.graphql",
                "\"\"\"d\"\"\" type Query { a: Int } extend type B { c: Int }",
            ),
        ],
        false,
    );
    assert_eq!(names(&found), ["C", "D", "E", "E2", "Q"]);
    assert_eq!(found.fragments, 3);
    assert_eq!(
        found.operations[4].text,
        "query Q {\n  me {\n    ...F\n  }\n}\n\nfragment F on User {\n  id\n  ...G\n}\n\nfragment G on User {\n  name\n}"
    );
    let place = &found.operations[4];
    let text = &found.sources.get(place.source).unwrap().text;
    assert_eq!(line_column(text, place.span.start), (3, 3));
    // Of what is written it is known where it is, in whichever file.
    for (wanted, file, at) in [
        ("...F", "a.ts", (3, 18)),
        ("...G", "b.tsx", (1, 46)),
        ("name", "c.graphql", (2, 22)),
    ] {
        let offset = place.written.find(wanted).unwrap() as u32;
        let (source, byte) = found.place(place, offset);
        let source = found.sources.get(source).unwrap();
        assert_eq!(
            (&*source.name, line_column(&source.text, byte)),
            (file, at),
            "{wanted}"
        );
    }
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let found = collected(
        &[
            ("a.ts", "\n  gql`query A { me { ...Nowhere } }`"),
            ("b.ts", "gql`\n  query B {\n    me { ${fields} }\n  }`"),
            ("c.ts", "gql`\n  query C {\n    me { \\`é\\` id( }\n  }`"),
            ("d.ts", "gql`query { me { id } }`"),
            ("e.ts", "gql`query Same { a }`"),
            ("f.ts", "gql`query Same { b }`; gql`query  Same{a}`;"),
            ("g.ts", "gql`query G { a ...Two }`"),
            ("h.ts", "gql`fragment Two on A { a }`"),
            (
                "i.ts",
                "gql`fragment Two on A { b }`; gql`query Own { a ...Two }`",
            ),
            ("j.ts", "gql('query J {' + x + '}')"),
            ("k.ts", "x; gql`query K { a }"),
            ("l.graphql", "qeury L { a }"),
        ],
        false,
    );
    let ops: Vec<&str> = found.operations.iter().map(|o| &*o.name).collect();
    assert_eq!(ops, ["Own", "Same"]);
    let said = said(&found);
    let has = |code: &str, place: &str| {
        assert!(
            said.contains(&(code, place.to_owned())),
            "{code} {place}: {said:?}"
        );
    };
    has(codes::UNKNOWN_FRAGMENT, "a.ts:2:25");
    has(codes::DYNAMIC_DOCUMENT, "b.ts:3:10");
    assert!(
        said.iter().any(|(_, place)| place.starts_with("c.ts:3:1")),
        "{said:?}"
    );
    has(codes::UNNAMED_OPERATION, "d.ts:1:5");
    has(codes::DUPLICATE_OPERATION, "f.ts:1:5");
    has(codes::AMBIGUOUS_FRAGMENT, "g.ts:1:20");
    has(codes::DYNAMIC_DOCUMENT, "j.ts:1:5");
    has(codes::UNTERMINATED_LITERAL, "k.ts:1:7");
    assert!(
        said.iter()
            .any(|(_, place)| place.starts_with("l.graphql:1:1")),
        "{said:?}"
    );
}

#[test]
fn fragments_that_spread_one_another_come_to_an_end() {
    let found = collected(
        &[(
            "a.graphql",
            "query A { a { ...F } } fragment F on A { ...G } fragment G on A { ...F }",
        )],
        true,
    );
    assert_eq!(names(&found), ["A"]);
    assert!(found.operations[0].text.contains("__typename"));
}

#[test]
fn the_order_of_files_does_not_matter() {
    let files = [
        ("a.ts", "gql`query A { a { ...F } }`"),
        ("b.ts", "gql`fragment F on A { b } query B { b }`"),
        ("c.ts", "gql`query C { c } query  B { b }`"),
    ];
    let one = collected(&files, false);
    let mut turned = files;
    turned.reverse();
    let other = collected(&turned, false);
    let texts = |e: &Extraction| -> Vec<(String, String)> {
        e.operations
            .iter()
            .map(|o| (o.name.clone(), o.text.clone()))
            .collect()
    };
    assert_eq!(names(&one), ["A", "B", "C"]);
    assert_eq!(texts(&one), texts(&other));
}
