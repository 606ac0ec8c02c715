//! The merged type system as supergraph SDL: join, link and feature definitions, types in order of their names.
//!
//! Invariant: what is printed is read back by `ogive_federation::read_supergraph`.

use std::{fmt::Write, ops::Range};

use ogive_base::IdVec;
use ogive_federation::vocabulary::{Spec, Version};
use ogive_schema::{ConstValue, OperationKind, TypeKind};

use crate::{
    merge::{Applied, InputRow, JoinField, MTypeId, Merged, NONE, feature_of, root_name},
    spec::{ELEMENTS, WORDS, Word},
    subgraph::Subgraph,
};

/// The join version a supergraph of this federation version needs.
pub fn join_version(federation: Option<Version>) -> Version {
    match federation {
        Some(v) if v >= Version::new(2, 8) => Version::new(0, 5),
        Some(v) if v >= Version::new(2, 7) => Version::new(0, 4),
        _ => Version::new(0, 3),
    }
}

/// Prints the supergraph.
pub fn supergraph(merged: &Merged, subs: &[Subgraph], join: Version) -> String {
    let mut text = print(merged, subs, join, None).text;
    tidy_end(&mut text);
    text
}

/// A supergraph that can be printed again in parts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Printed {
    text: String,
    /// Where each type is printed.
    types: IdVec<MTypeId, Range<usize>>,
}

impl Printed {
    /// The supergraph.
    pub(crate) fn supergraph(&self) -> String {
        let mut text = self.text.clone();
        tidy_end(&mut text);
        text
    }
}

/// The last type ends in one newline.
fn tidy_end(text: &mut String) {
    text.truncate(text.trim_end().len());
    text.push('\n');
}

/// Prints everything, or copies types that were printed before and are not touched (which is sorted).
pub(crate) fn print(
    merged: &Merged,
    subs: &[Subgraph],
    join: Version,
    before: Option<(&Printed, &[MTypeId])>,
) -> Printed {
    let capacity = before.map_or(4096, |(p, _)| p.text.len() + 4096);
    let mut printer = Printer {
        merged,
        subs,
        out: String::with_capacity(capacity),
    };
    printer.schema(join);
    printer.definitions(join);
    let mut types = IdVec::new();
    for (id, row) in merged.types.iter() {
        let start = printer.out.len();
        match before {
            Some((printed, touched)) if touched.binary_search(&id).is_err() => {
                printer
                    .out
                    .push_str(&printed.text[printed.types[id].clone()]);
            }
            _ if row.built_in && row.sources.is_empty() => {}
            _ => printer.type_definition(id),
        }
        types.push(start..printer.out.len());
    }
    Printed {
        text: printer.out,
        types,
    }
}

struct Printer<'a> {
    merged: &'a Merged,
    subs: &'a [Subgraph],
    out: String,
}

fn purpose_enum() -> &'static str {
    "enum link__Purpose {\n  \"\"\"\n  `SECURITY` features provide metadata necessary to securely resolve fields.\n  \"\"\"\n  SECURITY\n\n  \"\"\"\n  `EXECUTION` features provide metadata necessary for operation execution.\n  \"\"\"\n  EXECUTION\n}\n\n"
}

/// Definitions of directives, and the scalars they need.
struct Definitions {
    /// By name: what stands behind it.
    rows: Vec<(String, String)>,
    scalars: Vec<&'static str>,
}

/// Versions of join that first have `@join__directive`, and arguments from contexts.
pub(crate) const DIRECTIVE_SINCE: Version = Version::new(0, 4);
const CONTEXT_SINCE: Version = Version::new(0, 5);

/// What join and link define.
fn join_definitions(join: Version) -> Definitions {
    let has_directive = join >= DIRECTIVE_SINCE;
    let has_context = join >= CONTEXT_SINCE;
    let mut rows: Vec<(String, String)> = Vec::new();
    let mut add = |name: &str, rest: &str| rows.push((name.to_owned(), rest.to_owned()));
    add(
        "join__enumValue",
        "(graph: join__Graph!) repeatable on ENUM_VALUE",
    );
    let mut field = "(graph: join__Graph, requires: join__FieldSet, provides: join__FieldSet, type: String, external: Boolean, override: String, usedOverridden: Boolean".to_owned();
    if has_directive {
        field.push_str(", overrideLabel: String");
        add(
            "join__directive",
            "(graphs: [join__Graph!], name: String!, args: join__DirectiveArguments) repeatable on SCHEMA | OBJECT | INTERFACE | FIELD_DEFINITION",
        );
    }
    if has_context {
        field.push_str(", contextArguments: [join__ContextArgument!]");
    }
    add(
        "join__field",
        &format!("{field}) repeatable on FIELD_DEFINITION | INPUT_FIELD_DEFINITION"),
    );
    add("join__graph", "(name: String!, url: String!) on ENUM_VALUE");
    add(
        "join__implements",
        "(graph: join__Graph!, interface: String!) repeatable on OBJECT | INTERFACE",
    );
    add(
        "join__type",
        "(graph: join__Graph!, key: join__FieldSet, extension: Boolean! = false, resolvable: Boolean! = true, isInterfaceObject: Boolean! = false) repeatable on OBJECT | INTERFACE | UNION | ENUM | INPUT_OBJECT | SCALAR",
    );
    add(
        "join__unionMember",
        "(graph: join__Graph!, member: String!) repeatable on UNION",
    );
    add(
        "link",
        "(url: String, as: String, for: link__Purpose, import: [link__Import]) repeatable on SCHEMA",
    );
    let mut scalars: Vec<&'static str> = vec!["join__FieldSet", "link__Import"];
    if has_directive {
        scalars.push("join__DirectiveArguments");
    }
    if has_context {
        scalars.push("join__FieldValue");
    }
    Definitions { rows, scalars }
}

impl Printer<'_> {
    fn schema(&mut self, join: Version) {
        let merged = self.merged;
        if let Some(text) = &merged.description {
            self.description(text, "");
        }
        self.out
            .push_str("schema\n  @link(url: \"https://specs.apollo.dev/link/v1.0\")\n");
        let _ = writeln!(
            self.out,
            "  @link(url: \"https://specs.apollo.dev/join/{join}\", for: EXECUTION)"
        );
        let mut done: Vec<Spec> = Vec::new();
        for element in &ELEMENTS {
            let Some((spec, version, purpose)) = feature_of(element.word) else {
                continue;
            };
            let words: Vec<Word> = self.words_of(spec);
            if words.is_empty() || done.contains(&spec) {
                continue;
            }
            done.push(spec);
            let _ = write!(
                self.out,
                "  @link(url: \"https://specs.apollo.dev/{}/{version}\"",
                spec.name()
            );
            if let Some(purpose) = purpose {
                let _ = write!(self.out, ", for: {purpose}");
            }
            let imports: Vec<String> = words
                .iter()
                .filter_map(|w| {
                    let element = ELEMENTS[*w as usize].name;
                    let name = self.feature_name(*w);
                    if name != element {
                        Some(format!("{{name: \"@{element}\", as: \"@{name}\"}}"))
                    } else if element != spec.name() {
                        Some(format!("\"@{element}\""))
                    } else {
                        None
                    }
                })
                .collect();
            self.imports(&imports);
        }
        for feature in &merged.features.custom {
            let _ = write!(
                self.out,
                "  @link(url: \"{}/{}\"",
                feature.identity, feature.version
            );
            let imports: Vec<String> = feature
                .directives
                .iter()
                .map(|(element, name)| {
                    if element == name {
                        format!("\"@{element}\"")
                    } else {
                        format!("{{name: \"@{element}\", as: \"@{name}\"}}")
                    }
                })
                .collect();
            self.imports(&imports);
        }
        for applied in &merged.schema_directives {
            self.out.push_str("  ");
            let _ = applied.write(&merged.graph_names, &mut self.out);
            self.out.push('\n');
        }
        self.out.push_str("{\n");
        for kind in [
            OperationKind::Query,
            OperationKind::Mutation,
            OperationKind::Subscription,
        ] {
            if merged.root(kind).is_some() {
                let _ = writeln!(self.out, "  {}: {}", kind.as_str(), root_name(kind));
            }
        }
        self.out.push_str("}\n\n");
    }

    fn imports(&mut self, imports: &[String]) {
        if !imports.is_empty() {
            let _ = write!(self.out, ", import: [{}]", imports.join(", "));
        }
        self.out.push_str(")\n");
    }

    /// Directives of a specification that the supergraph applies.
    fn words_of(&self, spec: Spec) -> Vec<Word> {
        (0..WORDS)
            .filter(|i| self.merged.features.used[*i])
            .map(|i| ELEMENTS[i].word)
            .filter(|w| feature_of(*w).is_some_and(|(s, ..)| s == spec))
            .collect()
    }

    fn feature_name(&self, word: Word) -> &str {
        self.merged.features.names[word as usize]
            .as_deref()
            .unwrap_or(ELEMENTS[word as usize].name)
    }

    fn definitions(&mut self, join: Version) {
        let has_context = join >= CONTEXT_SINCE;
        let mut defined = join_definitions(join);
        self.linked_definitions(&mut defined);
        let Definitions { mut rows, scalars } = defined;
        rows.extend(
            self.merged
                .directives
                .iter()
                .map(|d| (d.name.to_string(), d.sdl.clone())),
        );
        // Readers of October 2021 do not know it.
        let is_one_of = |d: &Applied| &*d.name == "oneOf" && d.word.is_none();
        let mut inputs = self.merged.types.iter().map(|(_, row)| row);
        if inputs.any(|r| r.kind == TypeKind::InputObject && r.directives.iter().any(is_one_of))
            && !rows.iter().any(|(name, _)| name == "oneOf")
        {
            rows.push(("oneOf".into(), " on INPUT_OBJECT".into()));
        }
        rows.sort();
        for (name, rest) in rows {
            let _ = write!(self.out, "directive @{name}{rest}\n\n");
        }
        for scalar in scalars {
            let _ = write!(self.out, "scalar {scalar}\n\n");
        }
        if has_context {
            self.out.push_str("input join__ContextArgument {\n  name: String!\n  type: String!\n  context: String!\n  selection: join__FieldValue!\n}\n\n");
        }
        self.out.push_str("enum join__Graph {\n");
        for (sub, name) in self.subs.iter().zip(&self.merged.graph_names) {
            let (label, url) = (
                ConstValue::String(sub.name.clone()),
                ConstValue::String(sub.url.clone()),
            );
            let _ = writeln!(self.out, "  {name} @join__graph(name: {label}, url: {url})");
        }
        self.out.push_str("}\n\n");
        self.out.push_str(purpose_enum());
    }

    /// What the specifications define whose directives are applied.
    fn linked_definitions(&self, defined: &mut Definitions) {
        for element in &ELEMENTS {
            // A linked specification is defined as a whole, its elements under the names the link gives them.
            let Some((spec, ..)) = feature_of(element.word) else {
                continue;
            };
            if self.words_of(spec).is_empty() || spec == Spec::CacheTag {
                continue;
            }
            let imported = self.merged.features.used[element.word as usize];
            let qualified = format!("{}__{}", spec.name(), element.name);
            let name = if imported || element.name == spec.name() {
                self.feature_name(element.word)
            } else {
                &qualified
            };
            let args = element
                .args
                .replace("$Scope", "requiresScopes__Scope")
                .replace("$Policy", "policy__Policy")
                .replace("$ContextFieldValue", "context__ContextFieldValue");
            let repeatable = if element.repeatable {
                " repeatable"
            } else {
                ""
            };
            let schema = if element.word == Word::Tag {
                " | SCHEMA"
            } else {
                ""
            };
            defined.rows.push((
                name.to_owned(),
                format!("{args}{repeatable} on {}{schema}", element.locations),
            ));
            match element.word {
                Word::RequiresScopes => defined.scalars.push("requiresScopes__Scope"),
                Word::Policy => defined.scalars.push("policy__Policy"),
                Word::FromContext => defined.scalars.push("context__ContextFieldValue"),
                _ => {}
            }
        }
    }

    fn type_definition(&mut self, id: MTypeId) {
        let merged = self.merged;
        let row = &merged.types[id];
        if let Some(text) = &row.description {
            self.description(text, "");
        }
        let keyword = match row.kind {
            TypeKind::Scalar => "scalar",
            TypeKind::Object => "type",
            TypeKind::Interface => "interface",
            TypeKind::Union => "union",
            TypeKind::Enum => "enum",
            TypeKind::InputObject => "input",
        };
        let _ = write!(self.out, "{keyword} {}", merged.type_name(id));
        for (i, interface) in row.interfaces.iter().enumerate() {
            let _ = write!(
                self.out,
                "{}{}",
                if i == 0 { " implements " } else { " & " },
                merged.type_name(*interface)
            );
        }
        self.out.push('\n');
        self.join_type(id);
        for applied in &row.directives {
            self.out.push_str("  ");
            self.applied(applied);
            self.out.push('\n');
        }
        match row.kind {
            TypeKind::Object | TypeKind::Interface => {
                self.out.push_str("{\n");
                for field in &row.fields {
                    let field = &merged.fields[*field];
                    if let Some(text) = &field.description {
                        self.description(text, "  ");
                    }
                    let _ = write!(self.out, "  {}", merged.name(field.name));
                    self.args(&field.args);
                    let _ = write!(self.out, ": {}", merged.display(field.ty));
                    self.joins(&field.join);
                    self.spaced(&field.directives);
                    self.out.push('\n');
                }
                self.out.push_str("}\n");
            }
            TypeKind::Union => {
                for (i, member) in row.members.iter().enumerate() {
                    let _ = write!(
                        self.out,
                        "{}{}",
                        if i == 0 { " = " } else { " | " },
                        merged.type_name(*member)
                    );
                }
                self.out.push('\n');
            }
            TypeKind::Enum => {
                self.out.push_str("{\n");
                for value in &row.values {
                    if let Some(text) = &value.description {
                        self.description(text, "  ");
                    }
                    let _ = write!(self.out, "  {}", merged.name(value.name));
                    for (sub, _) in &value.sources {
                        let _ = write!(
                            self.out,
                            " @join__enumValue(graph: {})",
                            merged.graph_names[*sub as usize]
                        );
                    }
                    self.spaced(&value.directives);
                    self.out.push('\n');
                }
                self.out.push_str("}\n");
            }
            TypeKind::InputObject => {
                self.out.push_str("{\n");
                for input in &row.inputs {
                    if let Some(text) = &input.description {
                        self.description(text, "  ");
                    }
                    self.out.push_str("  ");
                    self.input(input);
                    self.out.push('\n');
                }
                self.out.push_str("}\n");
            }
            TypeKind::Scalar => {}
        }
        self.out.push('\n');
    }

    /// `@join__implements`, `@join__type` and `@join__unionMember` of a type.
    fn join_type(&mut self, id: MTypeId) {
        let merged = self.merged;
        let row = &merged.types[id];
        for (sub, ty) in &row.sources {
            let graph = &merged.graph_names[*sub as usize];
            for interface in &self.subs[*sub as usize].schema.types[*ty].interfaces {
                if let Some(interface) = merged.of(*sub, *interface) {
                    let _ = writeln!(
                        self.out,
                        "  @join__implements(graph: {graph}, interface: \"{}\")",
                        merged.type_name(interface)
                    );
                }
            }
        }
        let is_query = merged.type_name(id) == root_name(OperationKind::Query);
        let mut sources = row.sources.iter().peekable();
        for (i, graph) in merged.graph_names.iter().enumerate() {
            let source = match sources.peek() {
                Some((sub, ty)) if *sub == i as u32 => {
                    sources.next();
                    Some(*ty)
                }
                // Every subgraph has a query type, if only for the fields that make it a subgraph.
                _ if is_query => None,
                _ => continue,
            };
            let info = source.map(|ty| &self.subs[i].types[ty]);
            let object = if info.is_some_and(|t| t.interface_object) {
                ", isInterfaceObject: true"
            } else {
                ""
            };
            let keys = info.map(|t| &t.keys[..]).unwrap_or_default();
            if keys.is_empty() {
                let _ = writeln!(self.out, "  @join__type(graph: {graph}{object})");
            }
            for key in keys {
                let _ = write!(
                    self.out,
                    "  @join__type(graph: {graph}, key: {}",
                    ConstValue::String(key.text.clone())
                );
                if key.of_extension || info.is_some_and(|t| t.extends) {
                    self.out.push_str(", extension: true");
                }
                if key.resolvable_written {
                    let _ = write!(self.out, ", resolvable: {}", key.resolvable);
                }
                let _ = writeln!(self.out, "{object})");
            }
        }
        for (sub, ty) in &row.sources {
            let graph = &merged.graph_names[*sub as usize];
            for member in &self.subs[*sub as usize].schema.types[*ty].members {
                if let Some(member) = merged.of(*sub, *member) {
                    let _ = writeln!(
                        self.out,
                        "  @join__unionMember(graph: {graph}, member: \"{}\")",
                        merged.type_name(member)
                    );
                }
            }
        }
    }

    fn joins(&mut self, join: &[JoinField]) {
        for j in join {
            if j.subgraph == NONE {
                self.out.push_str(" @join__field");
            } else {
                let _ = write!(
                    self.out,
                    " @join__field(graph: {}{})",
                    self.merged.graph_names[j.subgraph as usize], j.args
                );
            }
        }
    }

    fn args(&mut self, args: &[InputRow]) {
        if args.is_empty() {
            return;
        }
        self.out.push('(');
        for (i, arg) in args.iter().enumerate() {
            if i > 0 {
                self.out.push_str(", ");
            }
            if let Some(text) = &arg.description {
                let _ = write!(self.out, "{} ", ConstValue::String(text.clone()));
            }
            self.input(arg);
        }
        self.out.push(')');
    }

    fn input(&mut self, input: &InputRow) {
        let _ = write!(
            self.out,
            "{}: {}",
            self.merged.name(input.name),
            self.merged.display(input.ty)
        );
        if let Some(default) = &input.default {
            let _ = write!(self.out, " = {default}");
        }
        self.joins(&input.join);
        self.spaced(&input.directives);
    }

    fn spaced(&mut self, directives: &[Applied]) {
        for applied in directives {
            self.out.push(' ');
            self.applied(applied);
        }
    }

    fn applied(&mut self, applied: &Applied) {
        let _ = applied.write(&self.merged.graph_names, &mut self.out);
    }

    /// A description; as a block string where that is the same text.
    fn description(&mut self, text: &str, indent: &str) {
        let plain = !text.contains("\"\"\"")
            && !text.ends_with(['"', '\\'])
            && !text.contains('\r')
            && !text.starts_with([' ', '\t', '\n'])
            && !text.ends_with([' ', '\t', '\n'])
            && text
                .chars()
                .all(|c| c == '\n' || c == '\t' || !c.is_control());
        if !plain {
            let _ = writeln!(self.out, "{indent}{}", ConstValue::String(text.into()));
            return;
        }
        let _ = writeln!(self.out, "{indent}\"\"\"");
        for line in text.split('\n') {
            if line.is_empty() {
                self.out.push('\n');
            } else {
                let _ = writeln!(self.out, "{indent}{line}");
            }
        }
        let _ = writeln!(self.out, "{indent}\"\"\"");
    }
}
