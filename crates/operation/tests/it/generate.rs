//! Documents made up from a seed: type-directed, so that most are valid, then damaged token by token.
//!
//! The same seed gives the same document on any machine. Failing seeds are printed; `document(schema, seed)` repeats
//! them.

use std::{collections::BTreeMap, fmt::Write as _};

use ogive_schema::{FieldId, InputId, OperationKind, Schema, Type, TypeId, TypeKind};
use ogive_testbase::Rng;

/// A document: about half are as generated, the others damaged in up to three places.
pub(crate) fn document(schema: &Schema, seed: u64) -> String {
    let mut rng = Rng::new(seed);
    let reckless = rng.chance(30);
    let mut generator = Generator {
        schema,
        rng,
        reckless,
        fragments: Vec::new(),
        aliases: 0,
    };
    let text = generator.document();
    let mut rng = generator.rng;
    if rng.chance(45) {
        return text;
    }
    let mut tokens = tokens(&text);
    for _ in 0..1 + rng.below(3) {
        damage(schema, &mut rng, &mut tokens);
    }
    tokens.join(" ")
}

/// Variables that a piece of text uses, with the types they need.
type Uses = BTreeMap<String, String>;

struct Fragment {
    name: String,
    ty: TypeId,
    text: String,
    uses: Uses,
    spreads: Vec<usize>,
}

/// Text being written, with what it refers to.
#[derive(Default)]
struct Piece {
    text: String,
    uses: Uses,
    spreads: Vec<usize>,
}

struct Generator<'a> {
    schema: &'a Schema,
    rng: Rng,
    /// Whether response names may collide.
    reckless: bool,
    fragments: Vec<Fragment>,
    aliases: usize,
}

impl Generator<'_> {
    fn document(&mut self) -> String {
        let composites: Vec<TypeId> = self
            .schema
            .types()
            .filter(|(_, t)| t.kind.is_composite() && !t.built_in)
            .map(|(id, _)| id)
            .collect();
        for i in 0..self.rng.below(4) {
            let ty = *self.rng.pick(&composites);
            let mut piece = Piece::default();
            self.directives(&mut piece, "FRAGMENT_DEFINITION");
            self.selection_set(ty, 2, &mut piece);
            self.fragments.push(Fragment {
                name: format!("F{i}"),
                ty,
                text: piece.text,
                uses: piece.uses,
                spreads: piece.spreads,
            });
        }
        let mut out = String::new();
        let mut used = vec![false; self.fragments.len()];
        let n_operations = if self.rng.chance(75) { 1 } else { 2 };
        for i in 0..n_operations {
            let kind = match self.rng.below(10) {
                0 => OperationKind::Mutation,
                1 => OperationKind::Subscription,
                _ => OperationKind::Query,
            };
            let kind = self
                .schema
                .root(kind)
                .map_or(OperationKind::Query, |_| kind);
            let Some(root) = self.schema.root(kind) else {
                continue;
            };
            let mut piece = Piece::default();
            if kind == OperationKind::Subscription {
                let field = *self.rng.pick(&self.schema.types[root].fields);
                piece.text.push_str("{ ");
                self.field(field, 2, &mut piece);
                piece.text.push('}');
            } else {
                self.selection_set(root, 4, &mut piece);
            }
            let mut directives = Piece::default();
            self.directives(&mut directives, &kind.as_str().to_uppercase());
            piece.uses.append(&mut directives.uses);
            self.reach(&piece.spreads, &mut used, &mut piece.uses);
            out.push_str(kind.as_str());
            if n_operations > 1 || self.rng.chance(50) {
                let _ = write!(out, " Op{i}");
            }
            self.variables(&piece.uses, &mut out);
            out.push_str(&directives.text);
            let _ = writeln!(out, " {}", piece.text);
        }
        for (fragment, used) in self.fragments.iter().zip(used) {
            if used {
                let ty = self.schema.type_name(fragment.ty);
                let _ = writeln!(out, "fragment {} on {ty}{}", fragment.name, fragment.text);
            }
        }
        out
    }

    fn reach(&self, spreads: &[usize], used: &mut [bool], uses: &mut Uses) {
        let mut pending = spreads.to_vec();
        while let Some(index) = pending.pop() {
            used[index] = true;
            let fragment = &self.fragments[index];
            uses.extend(fragment.uses.clone());
            pending.extend(&fragment.spreads);
        }
    }

    fn variables(&mut self, uses: &Uses, out: &mut String) {
        for (i, (name, ty)) in uses.iter().enumerate() {
            out.push_str(if i == 0 { " (" } else { ", " });
            let _ = write!(out, "${name}: {ty}");
            if self.rng.chance(10) {
                out.push_str(" @everywhere");
            }
        }
        if !uses.is_empty() {
            out.push(')');
        }
    }

    fn selection_set(&mut self, ty: TypeId, depth: u32, piece: &mut Piece) {
        let def = &self.schema.types[ty];
        piece.text.push_str(" { ");
        let n = 1 + self.rng.below(4);
        let mut n_written = 0;
        for _ in 0..n {
            match self.rng.below(10) {
                0 => piece.text.push_str("__typename "),
                1 if depth > 0 => {
                    let conditions: Vec<TypeId> = self.overlapping(ty);
                    let condition = *self.rng.pick(&conditions);
                    piece.text.push_str("...");
                    let mut inner = condition;
                    if self.rng.chance(85) {
                        let _ = write!(piece.text, " on {}", self.schema.type_name(condition));
                    } else {
                        inner = ty;
                    }
                    self.directives(piece, "INLINE_FRAGMENT");
                    self.selection_set(inner, depth - 1, piece);
                }
                2 | 3 => {
                    let fits: Vec<usize> = (0..self.fragments.len())
                        .filter(|i| self.overlap(self.fragments[*i].ty, ty))
                        .collect();
                    if !fits.is_empty() {
                        let index = *self.rng.pick(&fits);
                        let _ = write!(piece.text, "...{} ", self.fragments[index].name);
                        piece.spreads.push(index);
                        self.directives(piece, "FRAGMENT_SPREAD");
                        n_written += 1;
                    }
                    continue;
                }
                _ if !def.fields.is_empty() => {
                    let field = *self.rng.pick(&def.fields);
                    let composite = self.schema.types[self.schema.fields[field].ty.id]
                        .kind
                        .is_composite();
                    if composite && depth == 0 {
                        continue;
                    }
                    self.field(field, depth, piece);
                }
                _ => continue,
            }
            n_written += 1;
        }
        if n_written == 0 {
            piece.text.push_str("__typename ");
        }
        piece.text.push_str("} ");
    }

    fn overlap(&self, a: TypeId, b: TypeId) -> bool {
        let of = |id: TypeId| &self.schema.types[id].possible;
        a == b || of(a).intersects(of(b))
    }

    fn overlapping(&self, ty: TypeId) -> Vec<TypeId> {
        self.schema
            .types()
            .filter(|(id, t)| t.kind.is_composite() && self.overlap(*id, ty))
            .map(|(id, _)| id)
            .collect()
    }

    fn field(&mut self, field: FieldId, depth: u32, piece: &mut Piece) {
        let def = &self.schema.fields[field];
        let name = self.schema.name(def.name);
        let mut arguments = Piece::default();
        for id in &def.args {
            let input = &self.schema.inputs[*id];
            if input.is_required() || self.rng.chance(30) {
                self.input_value(*id, &mut arguments, ": ", 2);
            }
        }
        if self.reckless && self.rng.chance(30) {
            let _ = write!(piece.text, "{}: ", self.rng.pick(&["x", "y", "id", "name"]));
        } else if !arguments.text.is_empty() || self.rng.chance(15) {
            if !(self.reckless && self.rng.chance(50)) {
                self.aliases += 1;
                let _ = write!(piece.text, "a{}: ", self.aliases);
            }
        } else if !self.reckless && self.schema.types[def.ty.id].kind.is_composite() {
            // Distinct keys for composites keep different selections from meeting.
            self.aliases += 1;
            let _ = write!(piece.text, "c{}: ", self.aliases);
        } else if !self.reckless && self.rng.chance(60) {
            let shape = self.schema.display_type(def.ty);
            let shape: String = shape.chars().filter(|c| c.is_alphanumeric()).collect();
            let lists = def.ty.wrapping.lists();
            let bits = (0..=lists).fold(0, |n, l| {
                n * 2 + u32::from(def.ty.wrapping.layer_is_non_null(l))
            });
            let _ = write!(piece.text, "{name}_{shape}_{lists}_{bits}: ");
        }
        piece.text.push_str(name);
        if !arguments.text.is_empty() {
            let _ = write!(piece.text, "({})", arguments.text.trim_end());
            piece.uses.append(&mut arguments.uses);
        }
        self.directives(piece, "FIELD");
        piece.text.push(' ');
        if self.schema.types[def.ty.id].kind.is_composite() {
            self.selection_set(def.ty.id, depth.saturating_sub(1), piece);
        }
    }

    fn directives(&mut self, piece: &mut Piece, location: &str) {
        if !self.rng.chance(12) {
            return;
        }
        let fits: Vec<_> = self
            .schema
            .directive_list
            .iter()
            .filter(|id| {
                let def = &self.schema.directive_defs[**id];
                def.locations.iter().any(|l| l.as_str() == location)
            })
            .copied()
            .collect();
        if fits.is_empty() {
            return;
        }
        let def = &self.schema.directive_defs[*self.rng.pick(&fits)];
        let _ = write!(piece.text, " @{}", self.schema.name(def.name));
        let mut arguments = Piece::default();
        for id in &def.args {
            if self.schema.inputs[*id].is_required() || self.rng.chance(40) {
                self.input_value(*id, &mut arguments, ": ", 2);
            }
        }
        if !arguments.text.is_empty() {
            let _ = write!(piece.text, "({}) ", arguments.text.trim_end());
            piece.uses.append(&mut arguments.uses);
        }
    }

    fn input_value(&mut self, id: InputId, piece: &mut Piece, colon: &str, depth: u32) {
        let input = &self.schema.inputs[id];
        let _ = write!(piece.text, "{}{colon}", self.schema.name(input.name));
        self.value(input.ty, piece, depth);
        piece.text.push_str(", ");
    }

    fn value(&mut self, ty: Type, piece: &mut Piece, depth: u32) {
        if self.rng.chance(25) {
            let wrapping = if self.rng.chance(30) {
                ty.wrapping.non_null()
            } else {
                ty.wrapping
            };
            let text = wrapping.display(self.schema.type_name(ty.id));
            // One variable per type text, so that all uses agree.
            let name: String = text
                .chars()
                .map(|c| match c {
                    '[' => 'L',
                    ']' => 'E',
                    '!' => 'N',
                    c => c,
                })
                .collect();
            let _ = write!(piece.text, "$v{name}");
            piece.uses.insert(format!("v{name}"), text);
            return;
        }
        if !ty.wrapping.is_non_null() && (depth == 0 || self.rng.chance(10)) {
            piece.text.push_str("null");
            return;
        }
        if let Some(item) = ty.wrapping.nullable().item() {
            let item = Type {
                id: ty.id,
                wrapping: item,
            };
            if self.rng.chance(20) && !item.wrapping.is_list() {
                return self.value(
                    Type {
                        id: ty.id,
                        wrapping: item.wrapping.non_null(),
                    },
                    piece,
                    depth,
                );
            }
            piece.text.push('[');
            for _ in 0..if depth == 0 { 0 } else { self.rng.below(3) } {
                self.value(item, piece, depth.saturating_sub(1));
                piece.text.push_str(", ");
            }
            piece.text.push(']');
            return;
        }
        let def = &self.schema.types[ty.id];
        match def.kind {
            TypeKind::Enum => {
                let value = *self.rng.pick(&def.enum_values);
                piece
                    .text
                    .push_str(self.schema.name(self.schema.enum_values[value].name));
            }
            TypeKind::InputObject => {
                piece.text.push_str("{ ");
                if def.one_of {
                    // A field whose value cannot be null, by being non-null here.
                    let id = def.input_fields[self.rng.below(2)];
                    let input = &self.schema.inputs[id];
                    let _ = write!(piece.text, "{}: ", self.schema.name(input.name));
                    let wrapping = input.ty.wrapping.non_null();
                    self.value(
                        Type {
                            id: input.ty.id,
                            wrapping,
                        },
                        piece,
                        depth,
                    );
                } else {
                    for id in &def.input_fields {
                        if self.schema.inputs[*id].is_required()
                            || (depth > 0 && self.rng.chance(30))
                        {
                            self.input_value(*id, piece, ": ", depth.saturating_sub(1));
                        }
                    }
                }
                piece.text.push('}');
            }
            _ => {
                let options: &[&str] = match self.schema.type_name(ty.id) {
                    "Int" => &["0", "1", "-7", "2147483647"],
                    "Float" => &["1", "2.50", "-1e3"],
                    "String" => &["\"a\"", "\"\"", "\"\"\"block\"\"\"", "\"q\\\"\""],
                    "Boolean" => &["true", "false"],
                    "ID" => &["\"id\"", "7"],
                    _ => &["1", "\"any\"", "[1, {a: B}]", "{a: 1}", "true"],
                };
                let option: &&str = self.rng.pick(options);
                piece.text.push_str(option);
            }
        }
    }
}

/// Tokens of a document, good enough for generated ones.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let word = |c: char| c.is_alphanumeric() || c == '_' || c == '-' || c == '.';
        let len = if let Some(block) = rest.strip_prefix("\"\"\"") {
            block.find("\"\"\"").map_or(rest.len(), |i| i + 6)
        } else if first == '"' {
            let bytes = rest.as_bytes();
            let mut i = 1;
            while i < bytes.len() && bytes[i] != b'"' {
                i += if bytes[i] == b'\\' { 2 } else { 1 };
            }
            i + 1
        } else if rest.starts_with("...") {
            3
        } else if word(first) {
            rest.find(|c: char| !word(c)).unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        let token = &rest[..len.min(rest.len())];
        // Commas separate nothing here.
        if token != "," {
            tokens.push(token.to_owned());
        }
        rest = rest[token.len()..].trim_start();
    }
    tokens
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Changes the document somewhere. The result may be valid, invalid or no document at all.
fn damage(schema: &Schema, rng: &mut Rng, tokens: &mut Vec<String>) {
    let names: Vec<usize> = (0..tokens.len()).filter(|i| is_name(&tokens[*i])).collect();
    if names.is_empty() {
        return;
    }
    let at = *rng.pick(&names);
    let open: Vec<usize> = (0..tokens.len()).filter(|i| tokens[*i] == "{").collect();
    match rng.below(16) {
        // Another name of the schema, or of the document.
        0 | 1 => tokens[at] = a_name(schema, rng),
        2 | 3 => tokens[at] = tokens[*rng.pick(&names)].clone(),
        // A slip of the finger.
        4 => {
            let middle = tokens[at].len() / 2;
            tokens[at].insert(middle, 'q');
        }
        5 => {
            tokens.remove(at);
        }
        6 => {
            let copy = tokens[at].clone();
            tokens.insert(at, copy);
        }
        // Other values.
        7 | 8 => {
            let values: Vec<usize> = (0..tokens.len())
                .filter(|i| {
                    let t = &tokens[*i];
                    t.starts_with(['"', '-'])
                        || t.starts_with(|c: char| c.is_ascii_digit())
                        || matches!(t.as_str(), "true" | "false" | "null")
                })
                .collect();
            if !values.is_empty() {
                let options = [
                    "1",
                    "1.5",
                    "\"s\"",
                    "true",
                    "null",
                    "GRASS",
                    "[]",
                    "[1]",
                    "{}",
                    "{a: 1}",
                    "$vID",
                    "99999999999",
                ];
                let at = *rng.pick(&values);
                tokens[at] = (*rng.pick(&options)).to_owned();
            }
        }
        // Nullability of variables.
        9 => {
            let bangs: Vec<usize> = (0..tokens.len()).filter(|i| tokens[*i] == "!").collect();
            if bangs.is_empty() {
                tokens.insert(at + 1, "!".to_owned());
            } else {
                tokens.remove(*rng.pick(&bangs));
            }
        }
        // Selections that may clash, or do not exist.
        10 | 11 if !open.is_empty() => {
            let name = a_name(schema, rng);
            let selection = match rng.below(6) {
                0 => format!("x: {name}"),
                1 => format!("...F{}", rng.below(5)),
                2 => "__typename".to_owned(),
                3 => format!("... on {name} {{ id }}"),
                4 => format!("id: {name}"),
                _ => name,
            };
            tokens.insert(*rng.pick(&open) + 1, selection);
        }
        12 => {
            let name = [
                "skip", "include", "onField", "onQuery", "many", "limit", "nope",
            ];
            let arguments = [
                "",
                "(if: true)",
                "(if: $vID)",
                "(max: 1)",
                "(tag: \"t\" tag: \"u\")",
            ];
            tokens.insert(
                at + 1,
                format!("@{}{}", rng.pick(&name), rng.pick(&arguments)),
            );
        }
        13 => {
            let directives: Vec<usize> = (0..tokens.len()).filter(|i| tokens[*i] == "@").collect();
            if !directives.is_empty() {
                let from = *rng.pick(&directives);
                tokens.drain(from..(from + 2).min(tokens.len()));
            }
        }
        // Arguments.
        14 => {
            let parens: Vec<usize> = (0..tokens.len()).filter(|i| tokens[*i] == "(").collect();
            if !parens.is_empty() {
                let name = a_name(schema, rng);
                tokens.insert(*rng.pick(&parens) + 1, format!("{name}: 1"));
            }
        }
        _ => {
            let fragments = [
                "fragment F0 on Query { __typename }",
                "fragment F9 on Nope { id }",
                "{ __typename }",
                "query Op0 { __typename }",
                "fragment F8 on Query { ...F8 ...F0 }",
            ];
            tokens.push((*rng.pick(&fragments)).to_owned());
        }
    }
}

fn a_name(schema: &Schema, rng: &mut Rng) -> String {
    let symbol = ogive_base::Symbol(rng.below(schema.names.len()) as u32);
    schema.name(symbol).to_owned()
}

/// A document made to bring fields together: few response names, many fragments that spread each other, also in
/// cycles. Valid but for field merging and unused fragments, most of the time.
pub(crate) fn merging(schema: &Schema, seed: u64) -> String {
    let mut clash = Clash {
        schema,
        rng: Rng::new(seed ^ 0xc1a5),
        types: Vec::new(),
        tangled: false,
    };
    clash.tangled = clash.rng.chance(20);
    let composites: Vec<TypeId> = schema
        .types()
        .filter(|(_, t)| t.kind.is_composite() && !t.built_in)
        .map(|(id, _)| id)
        .collect();
    for _ in 0..clash.rng.below(6) {
        let ty = *clash.rng.pick(&composites);
        clash.types.push(ty);
    }
    let mut out = String::from("query");
    let Some(root) = schema.root(OperationKind::Query) else {
        return out;
    };
    clash.selection_set(root, 0, 4, &mut out);
    let fragments: Vec<String> = (0..clash.types.len())
        .map(|i| {
            let ty = clash.types[i];
            let mut text = format!("\nfragment F{i} on {}", schema.type_name(ty));
            clash.selection_set(ty, i + 1, 2, &mut text);
            text
        })
        .collect();
    // Only those that are spread somewhere, most of the time.
    let mut pending = vec![out.clone()];
    let mut used = vec![clash.rng.chance(10); fragments.len()];
    while let Some(text) = pending.pop() {
        for i in 0..used.len() {
            if !used[i] && text.contains(&format!("...F{i} ")) {
                used[i] = true;
                pending.push(fragments[i].clone());
            }
        }
    }
    for (text, used) in fragments.iter().zip(used) {
        if used {
            out.push_str(text);
        }
    }
    out
}

struct Clash<'a> {
    schema: &'a Schema,
    rng: Rng,
    /// Type conditions of the fragments.
    types: Vec<TypeId>,
    /// Whether fragments may spread earlier ones.
    tangled: bool,
}

impl Clash<'_> {
    /// `next` is the first fragment that may be spread without risking a cycle.
    fn selection_set(&mut self, ty: TypeId, next: usize, depth: u32, out: &mut String) {
        let schema = self.schema;
        let overlap = |a: TypeId, b: TypeId| {
            a == b
                || schema.types[a]
                    .possible
                    .intersects(&schema.types[b].possible)
        };
        out.push_str(" { ");
        for _ in 0..1 + self.rng.below(4) {
            match self.rng.below(10) {
                0 | 1 => {
                    let conditions: Vec<TypeId> = schema
                        .types()
                        .filter(|(id, t)| t.kind.is_composite() && overlap(*id, ty))
                        .map(|(id, _)| id)
                        .collect();
                    let condition = *self.rng.pick(&conditions);
                    let _ = write!(out, "... on {}", schema.type_name(condition));
                    self.selection_set(condition, next, depth.saturating_sub(1), out);
                }
                2..=4 => {
                    let from = if self.tangled { 0 } else { next };
                    let fits: Vec<usize> = (from..self.types.len())
                        .filter(|i| overlap(self.types[*i], ty))
                        .collect();
                    if !fits.is_empty() {
                        let _ = write!(out, "...F{} ", self.rng.pick(&fits));
                    }
                }
                _ => {
                    let fields = &schema.types[ty].fields;
                    if fields.is_empty() {
                        continue;
                    }
                    let def = &schema.fields[*self.rng.pick(fields)];
                    let composite = schema.types[def.ty.id].kind.is_composite();
                    if composite && depth == 0 {
                        continue;
                    }
                    let name = schema.name(def.name);
                    // Rarely another field under a name that is in use.
                    let alias = match self.rng.below(30) {
                        0 => "x",
                        1 => "deepBox",
                        2 => "name",
                        _ => name,
                    };
                    let _ = write!(out, "{alias}: {name}");
                    if !def.args.is_empty() && self.rng.chance(4) {
                        let arg = &schema.inputs[def.args[0]];
                        let _ = write!(out, "({}: null)", schema.name(arg.name));
                    }
                    out.push(' ');
                    if composite {
                        self.selection_set(def.ty.id, next, depth - 1, out);
                    }
                }
            }
        }
        out.push_str("__typename } ");
    }
}
