//! What is parsed: generated text with the proportions of real schemas and operations, and real files if present.

use std::{fmt::Write as _, fs, path::PathBuf};

/// Which grammar the documents use; one of the parsers wants to know.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    TypeSystem,
    Executable,
}

/// Documents that are parsed one after the other.
pub struct Corpus {
    pub name: &'static str,
    pub kind: Kind,
    pub documents: Vec<String>,
}

impl Corpus {
    pub fn bytes(&self) -> usize {
        self.documents.iter().map(String::len).sum()
    }
}

/// All corpora there are on this machine.
pub fn all() -> Vec<Corpus> {
    let mut corpora = vec![
        Corpus {
            name: "SDL, generated, described",
            kind: Kind::TypeSystem,
            documents: vec![schema(600, true)],
        },
        Corpus {
            name: "SDL, generated, bare",
            kind: Kind::TypeSystem,
            documents: vec![schema(600, false)],
        },
        Corpus {
            name: "operations, generated",
            kind: Kind::Executable,
            documents: (0..200).map(operation).collect(),
        },
    ];
    if let Some(documents) = real_subgraphs() {
        corpora.push(Corpus {
            name: "SDL, 191 real subgraphs",
            kind: Kind::TypeSystem,
            documents,
        });
    }
    if let Some(documents) = scenario_operations() {
        corpora.push(Corpus {
            name: "operations, scenarios",
            kind: Kind::Executable,
            documents,
        });
    }
    corpora
}

fn shared() -> PathBuf {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared");
    std::env::var_os("OGIVE_SHARED").map_or_else(|| beside.into(), PathBuf::from)
}

fn real_subgraphs() -> Option<Vec<String>> {
    let text = fs::read_to_string(shared().join("data/compose/huge.json")).ok()?;
    let subgraphs: Vec<serde_json::Value> = serde_json::from_str(&text).ok()?;
    Some(
        subgraphs
            .iter()
            .filter_map(|s| Some(s["sdl"].as_str()?.to_owned()))
            .collect(),
    )
}

fn scenario_operations() -> Option<Vec<String>> {
    let mut documents = Vec::new();
    for scenario in ["fed", "many-plans", "big-response"] {
        let file = shared().join(format!("data/scenarios/{scenario}/body.json"));
        let text = fs::read_to_string(file).ok()?;
        let body: serde_json::Value = serde_json::from_str(&text).ok()?;
        documents.push(body["query"].as_str()?.to_owned());
    }
    Some(documents)
}

const WORDS: [&str; 24] = [
    "account",
    "address",
    "amount",
    "author",
    "billing",
    "category",
    "created",
    "currency",
    "customer",
    "description",
    "discount",
    "email",
    "id",
    "inventory",
    "name",
    "order",
    "payment",
    "price",
    "product",
    "quantity",
    "review",
    "shipping",
    "status",
    "updated",
];
const SCALARS: [&str; 6] = ["ID!", "String", "Int!", "Float", "Boolean!", "DateTime"];

/// A small deterministic source of variety.
struct Dice(u32);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.0 >> 8) as usize % n
    }
    fn word(&mut self) -> &'static str {
        WORDS[self.below(WORDS.len())]
    }
    fn name(&mut self) -> String {
        let (first, second) = (self.word(), self.word());
        format!("{first}{}{}", second[..1].to_uppercase(), &second[1..])
    }
    fn type_name(&mut self) -> String {
        let name = self.name();
        format!("{}{}", name[..1].to_uppercase(), &name[1..])
    }
}

/// About `types` object types with inputs, enums, interfaces and unions between them.
fn schema(types: usize, described: bool) -> String {
    let mut dice = Dice(7);
    let mut out = String::from("schema {\n  query: Query\n}\n\nscalar DateTime\n\n");
    let describe = |out: &mut String, dice: &mut Dice, indent: &str| {
        if !described {
            return;
        }
        if dice.below(3) == 0 {
            let (a, b) = (dice.name(), dice.name());
            let _ = writeln!(
                out,
                "{indent}\"\"\"\n{indent}The {a} of this {b}, as the last change left it.\n{indent}Empty while it is a draft.\n{indent}\"\"\""
            );
        } else {
            let a = dice.name();
            let _ = writeln!(out, "{indent}\"The {a}, if known\"");
        }
    };
    for i in 0..types {
        describe(&mut out, &mut dice, "");
        let name = dice.type_name();
        match i % 10 {
            0 => {
                let _ = writeln!(out, "enum {name}{i} {{");
                for j in 0..8 {
                    let word = dice.word().to_uppercase();
                    let _ = writeln!(out, "  {word}_{j}");
                }
                out.push_str("}\n\n");
                continue;
            }
            1 => {
                let _ = writeln!(out, "input {name}{i} {{");
                for j in 0..8 {
                    let (field, ty) = (dice.name(), SCALARS[dice.below(6)]);
                    let default = ["", " = null", " = [\"a\", 1]"][dice.below(3)];
                    let _ = writeln!(out, "  {field}{j}: {ty}{default}");
                }
                out.push_str("}\n\n");
                continue;
            }
            2 => {
                let _ = writeln!(out, "union {name}{i} = A{i} | B{i} | {name}\n");
                continue;
            }
            3 => {
                let _ = writeln!(out, "interface {name}{i} implements Node {{");
            }
            _ => {
                let _ = writeln!(
                    out,
                    "type {name}{i} implements Node & Entity @key(fields: \"id\") {{"
                );
            }
        }
        for j in 0..12 {
            describe(&mut out, &mut dice, "  ");
            let field = dice.name();
            match dice.below(5) {
                0 => {
                    let ty = dice.type_name();
                    let _ = writeln!(
                        out,
                        "  {field}{j}(first: Int = 10, after: String, filter: {ty}Filter): [{ty}!]! @shareable"
                    );
                }
                1 => {
                    let ty = dice.type_name();
                    let _ = writeln!(out, "  {field}{j}: {ty} @deprecated(reason: \"use {ty}\")");
                }
                _ => {
                    let ty = SCALARS[dice.below(6)];
                    let _ = writeln!(out, "  {field}{j}: {ty}");
                }
            }
        }
        out.push_str("}\n\n");
    }
    out
}

/// One client operation with its fragments.
fn operation(seed: u32) -> String {
    let mut dice = Dice(seed * 31 + 1);
    let mut out = String::new();
    let name = dice.type_name();
    let _ = writeln!(
        out,
        "query {name}($id: ID!, $first: Int = 10, $withDetails: Boolean!) {{"
    );
    for _ in 0..=dice.below(3) {
        selection(&mut out, &mut dice, 1);
    }
    out.push_str("}\n");
    for i in 0..dice.below(4) {
        let (fragment, ty) = (dice.type_name(), dice.type_name());
        let _ = writeln!(out, "\nfragment {fragment}{i} on {ty} {{");
        for _ in 0..5 {
            selection(&mut out, &mut dice, 3);
        }
        out.push_str("}\n");
    }
    out
}

fn selection(out: &mut String, dice: &mut Dice, depth: usize) {
    let indent = "  ".repeat(depth);
    let field = dice.name();
    match dice.below(8) {
        0 if depth > 1 => {
            let _ = writeln!(out, "{indent}...{}", dice.type_name());
            return;
        }
        1 if depth > 1 => {
            let _ = write!(
                out,
                "{indent}... on {} @include(if: $withDetails)",
                dice.type_name()
            );
        }
        2 => {
            let _ = write!(
                out,
                "{indent}{field}: {}(id: $id, first: $first)",
                dice.name()
            );
        }
        3 => {
            let _ = write!(
                out,
                "{indent}{field}(filter: {{status: ACTIVE, tags: [\"a\", \"b\"]}}, first: 20)"
            );
        }
        _ if depth < 2 => {
            let _ = write!(out, "{indent}{field}");
        }
        _ => {
            let _ = writeln!(out, "{indent}{field}");
            return;
        }
    }
    if depth > 4 {
        out.push_str(" { id }\n");
        return;
    }
    out.push_str(" {\n");
    for _ in 0..3 + dice.below(5) {
        selection(out, dice, depth + 1);
    }
    let _ = writeln!(out, "{indent}}}");
}
