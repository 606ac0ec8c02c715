//! `ogive lint`: what composes and could be better: names, descriptions, deprecation, and what the subgraphs together
//! show to be unused or redundant.
//!
//! Rules have ids, a level and an example of each kind; `checks.yaml` sets levels and names what to leave alone. One
//! pass over each subgraph collects what rules need to know of all of them, a second one applies them.

use ogive_base::{Diagnostic, FastMap, FastSet, Severity, SourceId, Span};
use ogive_config::checks::{Checks, LintLevel, matches};
use ogive_schema::suggest::suggestions;
use ogive_syntax::{
    Document, Limits,
    ast::{
        Definition, Directive, FieldDefinition, InputValueDefinition, List, Name, TypeDefinition,
        TypeDefinitionKind, ValueKind,
    },
    parse,
};

use crate::{Refused, codes, load::Loaded};

/// One rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rule {
    /// Its id.
    pub id: &'static str,
    /// How loud it is unless configured.
    pub level: LintLevel,
    /// What it finds.
    pub summary: &'static str,
    /// Something it finds.
    pub bad: &'static str,
    /// The same after the remedy.
    pub good: &'static str,
}

macro_rules! rules {
    ($($id:ident $level:ident $summary:literal $bad:literal $good:literal)*) => {
        $(const $id: &str = stringify!($id);)*
        /// Every rule.
        pub const RULES: &[Rule] = &[$(Rule {
            id: $id, level: LintLevel::$level, summary: $summary, bad: $bad, good: $good }),*];
    };
}

rules! {
    TYPE_NAMES_PASCAL_CASE Warning "Names of types start with a capital and have no underscores."
        "type order_line { id: ID }" "type OrderLine { id: ID }"
    FIELD_NAMES_CAMEL_CASE Warning "Names of fields start with a small letter and have no underscores."
        "type User { first_name: String }" "type User { firstName: String }"
    ARGUMENT_NAMES_CAMEL_CASE Warning "Names of arguments start with a small letter and have no underscores."
        "type Query { users(Page_size: Int): Int }" "type Query { users(pageSize: Int): Int }"
    INPUT_FIELD_NAMES_CAMEL_CASE Warning "Names of input fields start with a small letter and have no underscores."
        "input Filter { Max_price: Int }" "input Filter { maxPrice: Int }"
    ENUM_VALUES_UPPER_CASE Warning "Enum values are written in capitals, words apart by underscores."
        "enum State { inStock }" "enum State { IN_STOCK }"
    INPUT_TYPE_SUFFIX Off "Names of input types end in `Input`."
        "input NewUser { name: String }" "input NewUserInput { name: String }"
    FIELD_REPEATS_TYPE Hint "A field does not begin with the name of its type, which is said already."
        "type User { userName: String }" "type User { name: String }"
    QUERY_VERB Hint "Fields of `Query` do not begin with a verb such as get, list or fetch: asking is what they do."
        "type Query { getUser: Int }" "type Query { user: Int }"
    TYPE_DESCRIPTION Off "Types are described."
        "type User { id: ID }" "\"Somebody with an account.\" type User { id: ID }"
    FIELD_DESCRIPTION Off "Fields and input fields are described."
        "type User { id: ID }" "type User { \"Never changes.\" id: ID }"
    DEPRECATION_REASON Warning "A deprecation says why, and what to use instead."
        "type User { mail: String @deprecated }" "type User { mail: String @deprecated(reason: \"use `address`\") }"
    NULLABLE_LIST_ITEMS Off "Items of lists are non-null, unless gaps mean something."
        "type User { tags: [String] }" "type User { tags: [String!] }"
    NULLABLE_KEY Hint "Fields of a `@key` are non-null: an entity without its key cannot be found in other subgraphs."
        "type User @key(fields: \"id\") { id: ID }" "type User @key(fields: \"id\") { id: ID! }"
    UNUSED_TYPE Warning "Every type is used by some subgraph."
        "type Query { a: Int } type Forgotten { b: Int }" "type Query { a: Int }"
    UNIMPLEMENTED_INTERFACE Warning "Every interface is implemented by some type of the same subgraph."
        "type Query { a: Node } interface Node { id: ID }"
        "type Query { a: Node } interface Node { id: ID } type User implements Node { id: ID }"
    REDUNDANT_SHAREABLE Hint "`@shareable` stands only on fields that another subgraph has, too."
        "type Query { a: Int @shareable }" "type Query { a: Int }"
    LONELY_KEY Hint "A `@key` stands only on types that another subgraph knows: there is nobody else to enter from."
        "type User @key(fields: \"id\") { id: ID! }" "type User { id: ID! }"
}

/// Lints subgraphs: diagnostics by subgraph in order of names, then by place. The refusal names what the configuration
/// gets wrong.
pub fn lint(loaded: &[Loaded], checks: &Checks) -> Result<Vec<Diagnostic>, Refused> {
    let mut levels: FastMap<&str, LintLevel> = RULES.iter().map(|r| (r.id, r.level)).collect();
    for (id, level, _) in &checks.lint_rules {
        match levels.get_mut(&**id) {
            Some(entry) => *entry = *level,
            None => {
                let near = suggestions(id, RULES.iter().map(|r| r.id));
                let help = match near.first() {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "`ogive lint --rules` lists every rule".into(),
                };
                let message = format!("there is no lint rule `{id}`");
                let error = Diagnostic::error(codes::INVALID_INPUT, message).help(help);
                return Err(Refused::new(error));
            }
        }
    }
    let mut sorted: Vec<&Loaded> = loaded.iter().collect();
    sorted.sort_by_key(|s| &s.name);
    let parsed: Vec<_> = sorted
        .iter()
        .enumerate()
        .map(|(at, s)| parse(&*s.sdl, SourceId(at as u32), &Limits::default()))
        .collect();
    let mut out = Vec::new();
    // A text with syntax errors is composition's to complain about; lint says so once.
    let mut documents = Vec::new();
    for parsed in &parsed {
        out.extend(parsed.errors.iter().take(1).cloned());
        documents.push(&parsed.document);
    }
    let known = Known::new(&documents);
    for (at, document) in documents.iter().enumerate() {
        let mut linter = Linter {
            document,
            known: &known,
            source: SourceId(at as u32),
            levels: &levels,
            checks,
            out: Vec::new(),
        };
        linter.document();
        linter
            .out
            .sort_by_key(|d| d.labels.first().map(|l| l.span.start));
        out.append(&mut linter.out);
    }
    Ok(out)
}

/// What the subgraphs together know; everything counted by subgraph.
#[derive(Default)]
struct Known {
    /// Names that something refers to.
    referenced: FastSet<String>,
    /// How many subgraphs have a type.
    types: FastMap<String, u32>,
    /// How many subgraphs have `Type.field`.
    fields: FastMap<String, u32>,
}

impl Known {
    fn new(documents: &[&Document]) -> Self {
        let mut known = Known::default();
        for document in documents {
            let mut types: FastSet<&str> = FastSet::default();
            for definition in &document.definitions {
                match definition {
                    Definition::Type(ty) => {
                        types.insert(document.name(ty.name));
                        known.ty(document, ty);
                    }
                    Definition::Schema(schema) => {
                        for root in &document[schema.root_types] {
                            known.refer(document, root.ty);
                        }
                    }
                    Definition::Directive(directive) => {
                        for arg in &document[directive.arguments] {
                            known.refer(document, arg.ty.name);
                        }
                    }
                    _ => {}
                }
            }
            for name in sorted(types) {
                *known.types.entry(name.to_owned()).or_default() += 1;
            }
        }
        known
    }
    fn refer(&mut self, document: &Document, name: Name) {
        self.referenced.insert(document.name(name).to_owned());
    }
    fn ty(&mut self, document: &Document, ty: &TypeDefinition) {
        let name = document.name(ty.name);
        match ty.kind {
            TypeDefinitionKind::Object { interfaces, fields }
            | TypeDefinitionKind::Interface { interfaces, fields } => {
                for field in &document[fields] {
                    let coordinate = format!("{name}.{}", document.name(field.name));
                    *self.fields.entry(coordinate).or_default() += 1;
                    self.refer(document, field.ty.name);
                    for arg in &document[field.arguments] {
                        self.refer(document, arg.ty.name);
                    }
                }
                // Whoever implements something is met wherever that is.
                for interface in &document[interfaces] {
                    self.refer(document, *interface);
                    self.referenced.insert(name.to_owned());
                }
            }
            TypeDefinitionKind::Union { members } => {
                for member in &document[members] {
                    self.refer(document, *member);
                }
            }
            TypeDefinitionKind::InputObject { fields } => {
                for field in &document[fields] {
                    self.refer(document, field.ty.name);
                }
            }
            TypeDefinitionKind::Scalar | TypeDefinitionKind::Enum { .. } => {}
        }
        let entity = document[ty.directives]
            .iter()
            .any(|d| short(document, d) == "key");
        if entity || matches!(name, "Query" | "Mutation" | "Subscription") {
            self.referenced.insert(name.to_owned());
        }
    }
}

fn sorted(names: FastSet<&str>) -> Vec<&str> {
    let mut names: Vec<&str> = names.into_iter().collect();
    names.sort_unstable();
    names
}

/// A directive's name without the prefix of its specification.
fn short<'d>(document: &'d Document, directive: &Directive) -> &'d str {
    let name = document.name(directive.name);
    name.strip_prefix("federation__").unwrap_or(name)
}

struct Linter<'a> {
    document: &'a Document,
    known: &'a Known,
    source: SourceId,
    levels: &'a FastMap<&'static str, LintLevel>,
    checks: &'a Checks,
    out: Vec<Diagnostic>,
}

impl Linter<'_> {
    fn find(
        &mut self,
        id: &'static str,
        coordinate: &str,
        at: Span,
        message: String,
        help: String,
    ) {
        let severity = match self.levels.get(id) {
            None | Some(LintLevel::Off) => return,
            Some(LintLevel::Hint) => Severity::Hint,
            Some(LintLevel::Warning) => Severity::Warning,
            Some(LintLevel::Error) => Severity::Error,
        };
        let ignored = self.checks.lint_ignore.iter().any(|i| {
            i.rule.as_deref().is_none_or(|r| r == id) && matches(&i.coordinate, coordinate)
        });
        if ignored {
            return;
        }
        let mut found = Diagnostic::error(id, message)
            .about(coordinate)
            .label(self.source, at, "")
            .help(help);
        found.severity = severity;
        self.out.push(found);
    }

    fn document(&mut self) {
        let document = self.document;
        for definition in &document.definitions {
            if let Definition::Type(ty) = definition {
                self.ty(ty);
            }
        }
    }

    fn ty(&mut self, ty: &TypeDefinition) {
        let document = self.document;
        let name = document.name(ty.name);
        let at = ty.name.span();
        // Names of linked specifications are theirs.
        if name.contains("__") || name.starts_with('_') {
            return;
        }
        if !ty.extend {
            if !is_pascal(name) {
                let better = pascal(name);
                let message = format!("the type `{name}` is not written in PascalCase");
                self.find(
                    TYPE_NAMES_PASCAL_CASE,
                    name,
                    at,
                    message,
                    format!("call it `{better}`"),
                );
            }
            if ty.description.is_none() {
                let message = format!("the type `{name}` is not described");
                self.find(
                    TYPE_DESCRIPTION,
                    name,
                    at,
                    message,
                    "write a string before it".into(),
                );
            }
            if !self.known.referenced.contains(name) {
                let message = format!("the type `{name}` is used by no subgraph");
                self.find(
                    UNUSED_TYPE,
                    name,
                    at,
                    message,
                    "use it, or remove it".into(),
                );
            }
        }
        match ty.kind {
            TypeDefinitionKind::Object { fields, .. } => {
                self.keys(ty, fields);
                self.fields(name, fields, false);
            }
            TypeDefinitionKind::Interface { fields, .. } => {
                self.fields(name, fields, true);
                if !ty.extend && !self.is_implemented(name) {
                    let message =
                        format!("no type of this subgraph implements the interface `{name}`");
                    let help = "implement it, or remove it".into();
                    self.find(UNIMPLEMENTED_INTERFACE, name, at, message, help);
                }
            }
            TypeDefinitionKind::Enum { values } => {
                for value in &document[values] {
                    let value_name = document.name(value.name);
                    let coordinate = format!("{name}.{value_name}");
                    if value_name.chars().any(|c| c.is_ascii_lowercase()) {
                        let message =
                            format!("the enum value `{coordinate}` is not written in capitals");
                        let help = format!("call it `{}`", upper(value_name));
                        self.find(
                            ENUM_VALUES_UPPER_CASE,
                            &coordinate,
                            value.name.span(),
                            message,
                            help,
                        );
                    }
                    self.deprecation(&coordinate, value.directives);
                }
            }
            TypeDefinitionKind::InputObject { fields } => {
                if !name.ends_with("Input") && !ty.extend {
                    let message =
                        format!("the name of the input type `{name}` does not end in `Input`");
                    self.find(
                        INPUT_TYPE_SUFFIX,
                        name,
                        at,
                        message,
                        format!("call it `{name}Input`"),
                    );
                }
                for field in &document[fields] {
                    self.input(
                        INPUT_FIELD_NAMES_CAMEL_CASE,
                        "input field",
                        &format!("{name}."),
                        "",
                        field,
                    );
                }
            }
            _ => {}
        }
    }

    fn is_implemented(&self, interface: &str) -> bool {
        let document = self.document;
        document.definitions.iter().any(|d| match d {
            Definition::Type(ty) => match ty.kind {
                TypeDefinitionKind::Object { interfaces, .. } => document[interfaces]
                    .iter()
                    .any(|i| document.name(*i) == interface),
                _ => false,
            },
            _ => false,
        }) || document.definitions.iter().any(|d| match d {
            // An interface object stands for its implementations elsewhere.
            Definition::Type(ty) => {
                document.name(ty.name) == interface
                    && document[ty.directives]
                        .iter()
                        .any(|d| short(document, d) == "interfaceObject")
            }
            _ => false,
        })
    }

    fn keys(&mut self, ty: &TypeDefinition, fields: List<FieldDefinition>) {
        let document = self.document;
        let name = document.name(ty.name);
        for directive in document[ty.directives]
            .iter()
            .filter(|d| short(document, d) == "key")
        {
            if self.known.types.get(name).copied().unwrap_or(0) < 2 {
                let message =
                    format!("no other subgraph knows `{name}`, so its `@key` is not used");
                let help = "remove it until another subgraph refers to the type".into();
                self.find(LONELY_KEY, name, directive.span, message, help);
            }
            let text = document[directive.arguments]
                .iter()
                .find(|a| document.name(a.name) == "fields")
                .and_then(|a| a.value.as_string());
            let Some(text) = text.map(|t| document.string_value(t)) else {
                continue;
            };
            for field in document[fields]
                .iter()
                .filter(|f| !f.ty.wrapping.is_non_null())
            {
                let field_name = document.name(field.name);
                // Top-level members of the key only: nested ones belong to other types.
                let depth_zero = text.split('{').next().unwrap_or_default();
                if depth_zero.split_whitespace().any(|w| w == field_name) {
                    let coordinate = format!("{name}.{field_name}");
                    let message = format!("`{coordinate}` is part of a `@key` and may be null");
                    let ty = field.ty.wrapping.display(document.name(field.ty.name));
                    let help = format!("make it `{ty}!`");
                    self.find(NULLABLE_KEY, &coordinate, field.name.span(), message, help);
                }
            }
        }
    }

    fn fields(&mut self, parent: &str, fields: List<FieldDefinition>, interface: bool) {
        let document = self.document;
        for field in &document[fields] {
            let name = document.name(field.name);
            let coordinate = format!("{parent}.{name}");
            let at = field.name.span();
            if name.starts_with('_') {
                continue;
            }
            if !is_camel(name) {
                let message = format!("the field `{coordinate}` is not written in camelCase");
                let help = format!("call it `{}`", camel(name));
                self.find(FIELD_NAMES_CAMEL_CASE, &coordinate, at, message, help);
            }
            let prefix = camel(parent);
            let rest = name.strip_prefix(&*prefix);
            if let Some(rest) = rest.filter(|r| r.starts_with(|c: char| c.is_ascii_uppercase())) {
                let message = format!("the field `{coordinate}` repeats the name of its type");
                self.find(
                    FIELD_REPEATS_TYPE,
                    &coordinate,
                    at,
                    message,
                    format!("call it `{}`", camel(rest)),
                );
            }
            if parent == "Query" {
                let verb = ["get", "list", "fetch", "retrieve"].iter().find_map(|v| {
                    let rest = name.strip_prefix(v)?;
                    rest.starts_with(|c: char| c.is_ascii_uppercase())
                        .then_some(rest)
                });
                if let Some(rest) = verb {
                    let message = format!("the field `{coordinate}` begins with a verb");
                    self.find(
                        QUERY_VERB,
                        &coordinate,
                        at,
                        message,
                        format!("call it `{}`", camel(rest)),
                    );
                }
            }
            if field.description.is_none() {
                let message = format!("the field `{coordinate}` is not described");
                self.find(
                    FIELD_DESCRIPTION,
                    &coordinate,
                    at,
                    message,
                    "write a string before it".into(),
                );
            }
            let wrapping = field.ty.wrapping;
            if (0..wrapping.lists()).any(|layer| !wrapping.layer_is_non_null(layer)) {
                let message = format!("the list `{coordinate}` may have items that are null");
                let help = "write `!` after the type of its items".into();
                self.find(
                    NULLABLE_LIST_ITEMS,
                    &coordinate,
                    field.ty.span,
                    message,
                    help,
                );
            }
            self.deprecation(&coordinate, field.directives);
            let shareable = document[field.directives]
                .iter()
                .find(|d| short(document, d) == "shareable");
            if let Some(directive) = shareable.filter(|_| !interface)
                && self.known.fields.get(&coordinate).copied().unwrap_or(0) < 2
            {
                let message =
                    format!("no other subgraph has `{coordinate}`, so `@shareable` means nothing");
                let help = "remove it, or leave it for a subgraph to come".into();
                self.find(
                    REDUNDANT_SHAREABLE,
                    &coordinate,
                    directive.span,
                    message,
                    help,
                );
            }
            for arg in &document[field.arguments] {
                self.input(
                    ARGUMENT_NAMES_CAMEL_CASE,
                    "argument",
                    &format!("{coordinate}("),
                    ":)",
                    arg,
                );
            }
        }
    }

    fn input(
        &mut self,
        rule: &'static str,
        what: &str,
        before: &str,
        after: &str,
        input: &InputValueDefinition,
    ) {
        let name = self.document.name(input.name);
        let coordinate = format!("{before}{name}{after}");
        if !is_camel(name) {
            let message = format!("the {what} `{coordinate}` is not written in camelCase");
            let help = format!("call it `{}`", camel(name));
            self.find(rule, &coordinate, input.name.span(), message, help);
        }
        if input.description.is_none() && rule == INPUT_FIELD_NAMES_CAMEL_CASE {
            let message = format!("the {what} `{coordinate}` is not described");
            let help = "write a string before it".into();
            self.find(
                FIELD_DESCRIPTION,
                &coordinate,
                input.name.span(),
                message,
                help,
            );
        }
        self.deprecation(&coordinate, input.directives);
    }

    fn deprecation(&mut self, coordinate: &str, directives: List<Directive>) {
        let document = self.document;
        for directive in &document[directives] {
            if document.name(directive.name) != "deprecated" {
                continue;
            }
            let said = document[directive.arguments].iter().any(|a| {
                document.name(a.name) == "reason"
                    && a.value.kind != ValueKind::Null
                    && a.value
                        .as_string()
                        .is_some_and(|s| !document.string_value(s).trim().is_empty())
            });
            if !said {
                let message = format!("`{coordinate}` is deprecated without a reason");
                let help = "say why, and what to use instead: `@deprecated(reason: \"…\")`".into();
                self.find(
                    DEPRECATION_REASON,
                    coordinate,
                    directive.span,
                    message,
                    help,
                );
            }
        }
    }
}

fn is_pascal(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_uppercase()) && !name.contains('_')
}

fn is_camel(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase()) && !name.contains('_')
}

fn words(name: &str) -> impl Iterator<Item = &str> {
    name.split('_').filter(|w| !w.is_empty())
}

fn pascal(name: &str) -> String {
    words(name)
        .map(|w| w[..1].to_ascii_uppercase() + &w[1..])
        .collect()
}

/// `first_name` and `FirstName` to `firstName`; a leading run of capitals becomes small as a whole: `URLPath` to `urlPath`.
fn camel(name: &str) -> String {
    let first = words(name).next().unwrap_or_default();
    let run = first.chars().take_while(char::is_ascii_uppercase).count();
    let small = match run {
        0 | 1 => run,
        _ if run == first.len() => run,
        _ => run - 1,
    };
    let mut out = first[..small].to_ascii_lowercase() + &first[small..];
    for word in words(name).skip(1) {
        out.push_str(&pascal(word));
    }
    out
}

/// `inStock` to `IN_STOCK`.
fn upper(name: &str) -> String {
    let mut out = String::new();
    let mut small = false;
    for c in name.chars() {
        if c.is_ascii_uppercase() && small {
            out.push('_');
        }
        small = c.is_ascii_lowercase() || c.is_ascii_digit();
        out.push(c.to_ascii_uppercase());
    }
    out
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn found(sdl: &str, level: LintLevel, rule: &str) -> Vec<Diagnostic> {
        let loaded = Loaded {
            name: "a".into(),
            url: String::new(),
            sdl: Arc::from(sdl),
            called: "a".into(),
            file: None,
        };
        let checks = Checks {
            lint_rules: vec![(rule.into(), level, Span::default())],
            ..Checks::default()
        };
        let all = lint(&[loaded], &checks).unwrap();
        all.into_iter().filter(|d| d.code == rule).collect()
    }

    #[test]
    fn every_rule_finds_its_bad_example_and_not_its_good_one() {
        for rule in RULES {
            let bad = found(rule.bad, LintLevel::Error, rule.id);
            assert_eq!(bad.len(), 1, "{}: {bad:?}", rule.id);
            assert_eq!(bad[0].severity, Severity::Error);
            assert!(bad[0].help.is_some() && bad[0].coordinate.is_some());
            assert_eq!(
                found(rule.good, LintLevel::Error, rule.id),
                [],
                "{}",
                rule.id
            );
            assert_eq!(found(rule.bad, LintLevel::Off, rule.id), [], "{}", rule.id);
        }
    }

    #[test]
    fn names_that_are_proposed() {
        for (from, to) in [
            ("first_name", "firstName"),
            ("FirstName", "firstName"),
            ("URLPath", "urlPath"),
            ("ID", "id"),
            ("a_b", "aB"),
        ] {
            assert_eq!(camel(from), to);
        }
        assert_eq!(pascal("order_line"), "OrderLine");
        assert_eq!(upper("inStock2Go"), "IN_STOCK2_GO");
    }
}
