//! What is a document in a program, and what only looks like one; programs from chance with documents planted in them.

use ogive_testbase::Rng;

use super::*;

fn tags() -> Vec<String> {
    vec!["gql".into(), "graphql".into()]
}

fn scanned(text: &str, jsx: bool) -> Scanned {
    let tags = tags();
    scan(text, &ScanOptions { jsx, tags: &tags })
}

fn found(text: &str) -> Vec<String> {
    let documents = scanned(text, true).documents;
    documents.into_iter().map(|d| d.text).collect()
}

#[test]
fn every_way_to_write_a_document_is_found() {
    for text in [
        "gql`{a}`",
        "graphql`{a}`",
        "const q = gql /* why */ `{a}`;",
        "gql\n`{a}`",
        "gql(`{a}`)",
        "graphql(/* GraphQL */ `{a}`, [F])",
        "gql(\"{a}\")",
        "graphql('{a}', [F])",
        "/* GraphQL */ `{a}`",
        "f(/* graphql */ '{a}')",
        "gql<Data, Variables>`{a}`",
        "gql<Data<A>, () => B>(`{a}`)",
        "apollo.gql`{a}`",
        "import { gql as query } from 'x'; query`{a}`",
        "import query from \"graphql-tag\";\nquery`{a}`",
        "`${gql`{a}`}`",
        "x = { q: gql`{a}` }",
        "return <div title={gql`{a}`}>it's `</div>",
        "<A.B x='`' {...y} z>don't ` {/* ` */} {f(gql`{a}`)} <></> <b/> </A.B>",
    ] {
        assert_eq!(found(text), ["{a}"], "{text}");
    }
    assert_eq!(found("`#graphql\n{a}`"), ["#graphql\n{a}"]);
}

#[test]
fn what_only_looks_like_a_document_is_not_one() {
    for text in [
        "// gql`{a}`",
        "/* gql`{a}` */",
        "'gql`{a}`'",
        "\"gql`{a}`\"",
        "`gql\\`{a}\\``",
        "/gql`{a}`/",
        "x = /[/]gql`{a}`/g",
        "if (x) /gql`{a}`/.test(y)",
        "<p>gql`{a}`</p>",
        "<p title=\"gql`{a}`\"/>",
        "gqlx`{a}`",
        "graphql(schema, '{a}')",
        "graphql({ schema, source: '{a}' })",
        "import { graphql } from 'graphql'",
        "function gql(strings) {}",
        "gql, `{a}`",
        "/* GraphQL */ x, `{a}`",
    ] {
        assert_eq!(found(text), [""; 0], "{text}");
    }
}

#[test]
fn what_stands_before_a_document_does_not_hide_it() {
    for before in [
        "a / b / c;",
        "x++ / 2; y-- / 2;",
        "(a) / b;",
        "a[0] / b;",
        "if (a) /`/.test(b);",
        "x = a < b, c > d;",
        "const f = <T,>(x: T) => x;",
        "const f = <T extends A>(x: T) => x;",
        "const f = <T extends keyof A = B>(x: T) => x;",
        "type F = <T>(x: T) => void;",
        "let x = <div>it's a ` and a <b>\"</b></div>;",
        "let x = <a b=\"'\" c='\"' d={`${e}`} />;",
        "let x = <Select<Option> value={1}>`</Select>;",
        "x = `a ${ { b: `c ${d} }` } } e`;",
        "x = '\\'' + \"\\\"\" + `\\``;",
        "x = 'a\\\nb';",
        "// it's\n",
        "/* ` */",
        "x = y! / 2; z!.a;",
        "#!/usr/bin/env node\n",
        "class A { #b = 1; get #c() { return this.#b / 2 } }",
        "x = /[`]/ && /\\//;",
        "a = b ? /`/ : c;",
        "return /`/;",
        "x = {}\n/`/.exec(y);",
        "const s = \"</script>\";",
        "<a>{x ? <b>`</b> : `c`}</a>;",
        "<p>`{'`'}</p>;",
    ] {
        let text = format!("{before}\nq = gql`{{a}}`;");
        assert_eq!(found(&text), ["{a}"], "{text}");
    }
    // Without JSX it may be a type assertion.
    let text = "x = <T>y; q = gql`{a}`;";
    let tags = tags();
    let options = ScanOptions {
        jsx: false,
        tags: &tags,
    };
    assert_eq!(scan(text, &options).documents.len(), 1);
}

#[test]
fn escapes_are_resolved_and_expressions_are_holes() {
    let text = "gql`a\\`b\\u0063\\u{64}\\x65\\n\\\r\nf${ {x: '}'} }g\r\n`";
    let scanned = scanned(text, true);
    let [document] = &*scanned.documents else {
        panic!("{scanned:?}");
    };
    assert_eq!(document.text, "a`bcde\nf\ng\n");
    let [substitution] = &*document.substitutions else {
        panic!("{document:?}");
    };
    assert_eq!(&text[substitution.span.range()], "${ {x: '}'} }");
    let g = document.text.find('g').unwrap() as u32;
    assert_eq!(&text[document.place(g) as usize..][..1], "g");
}

#[test]
fn what_cannot_be_known_is_said() {
    let scanned = scanned("gql('{a' + b + '}'); gql`{a}", true);
    assert!(scanned.documents.is_empty());
    assert_eq!((scanned.dynamic.len(), scanned.unterminated.len()), (1, 1));
}

/// Programs made of pieces that hold one another, with documents planted in them: all are found, and nothing else.
#[test]
fn planted_documents_are_all_found() {
    let mut rng = Rng::new(19);
    let (mut planted, mut largest) = (0, 0);
    for seed in 0..2_000 {
        let mut plan = Plan {
            rng: rng.fork(seed),
            planted: 0,
        };
        let program = plan.program(4);
        let count = found(&program).len();
        assert_eq!(count, plan.planted, "{program}");
        planted += count;
        largest = largest.max(program.len());
    }
    assert!(planted > 4_000 && largest > 1_000, "{planted}, {largest}");
}

struct Plan {
    rng: Rng,
    planted: usize,
}

impl Plan {
    fn program(&mut self, depth: usize) -> String {
        let mut out = String::new();
        for _ in 0..self.rng.between(1, 5) {
            let expression = self.expression(depth);
            let which = self.rng.below(8);
            let has_block = matches!(which, 2 | 3 | 5 | 6) && depth > 0;
            let block = match self.rng.below(3) {
                0 if has_block => self.program(depth - 1),
                _ => String::new(),
            };
            out += &match which {
                0 => format!("const x = {expression};\n"),
                1 => format!("if ({expression}) /[/`']/.test(y);\n"),
                2 => format!("function f(a, b = 1) {{ {block} return {expression}\n }}\n"),
                3 => format!("// it's `not` {{ gql`{{x}}`\n{block}{expression};\n"),
                4 => format!("/* gql`{{x}}` \" */ export default {expression};\n"),
                5 => format!("for (const a of {expression}) {{\n{block}}}\n"),
                6 => format!("class A<T> extends B {{ x = {expression}; m() {{ {block} }} }}\n"),
                _ => format!("foo({expression}, a / b / c);\n"),
            };
        }
        out
    }

    fn expression(&mut self, depth: usize) -> String {
        if depth == 0 {
            return self.leaf();
        }
        let a = self.expression(depth - 1);
        let which = self.rng.below(10);
        let b = if which < 4 || which == 7 {
            self.leaf()
        } else {
            String::new()
        };
        match which {
            0 => format!("({a}) / ({b})"),
            1 => format!("[{a}, {b}]"),
            2 => format!("{{ a: {a}, 'b`': {b} }}"),
            3 => format!("`t ${{{a}}} \\` ${{{b}}} it's`"),
            4 => format!("x => {{ return {a} }}"),
            5 => format!("<div a=\"`'\" b={{{a}}}>don't ` / {{{b}}} <br/></div>"),
            6 => format!("<><A.B {{...{a}}}/>{{/* ` */}}\"</>"),
            7 => format!("a < b ? {a} : {b}"),
            8 => format!("f<T, U>({a})"),
            _ => a,
        }
    }

    fn leaf(&mut self) -> String {
        let mut document = |text: &str| {
            self.planted += 1;
            text.to_owned()
        };
        match self.rng.below(14) {
            0 => document("gql`query A { a(b: \"\\`\") } ${F}`"),
            1 => document("graphql(`{a}`)"),
            2 => document("gql('{a}')"),
            3 => document("/* GraphQL */ `{a}`"),
            4 => document("gql<A<B>>`{a}`"),
            5 => "\"gql`{a}`\"".to_owned(),
            6 => "'it\\'s `'".to_owned(),
            7 => "/`|\\/|[/'\"]/g".to_owned(),
            8 => "`plain ' \" /`".to_owned(),
            9 => "12.5".to_owned(),
            10 => "<p>it's ` gql</p>".to_owned(),
            11 => "x.gql".to_owned(),
            12 => "y++".to_owned(),
            _ => "z".to_owned(),
        }
    }
}

/// Texts that are no programs: it ends, without a panic, and in time that grows with them only.
#[test]
fn any_text_is_read_to_its_end() {
    const PIECES: &[&str] = &[
        "`",
        "${",
        "}",
        "{",
        "(",
        ")",
        "[",
        "]",
        "<",
        "</",
        ">",
        "/>",
        "/",
        "//",
        "/*",
        "*/",
        "'",
        "\"",
        "\\",
        "\n",
        "\r",
        "gql",
        "graphql",
        "as",
        "import",
        "from",
        "'graphql-tag'",
        "é",
        "\u{1f600}",
        "#",
        "a",
        "A.b",
        " ",
        "=",
        "=>",
        "query",
        "fragment",
        "$",
        "\\u{",
        "\\x4",
        "...",
        "<div",
        "<script>",
        "</script>",
        "---",
        "\u{feff}",
        "\0",
    ];
    let mut rng = Rng::new(20);
    for _ in 0..8_000 {
        let pieces = rng.below(60);
        let text: String = (0..pieces).map(|_| *rng.pick(PIECES)).collect();
        for jsx in [true, false] {
            for document in scanned(&text, jsx).documents {
                document.substitutions_within();
                for at in 0..=document.text.len() as u32 {
                    assert!(document.place(at) as usize <= text.len(), "{text:?}");
                }
            }
        }
    }
    // Whatever is repeated, time grows with the text only.
    for piece in PIECES
        .iter()
        .chain(&["'\\", "/ \\", "gql<", "<a \"", "gql`${", "<a>{"])
    {
        let text = piece.repeat(20_000);
        scanned(&text, true);
        scanned(&format!("gql`{text}"), true);
        scanned(&format!("gql`{{{text}"), false);
    }
}
