//! One subgraph, read on its own: links resolved, missing definitions added, schema built, federation directives
//! turned into tables.
//!
//! Reading depends on nothing but name-independent text, so the result is cached by content; labels point to
//! `SourceId(0)` until [`Subgraph::relabel`] says which subgraph of a composition it is.
//!
//! Invariants: `types` and `fields` run parallel to the schema's arenas; `machinery` types are never merged.

use ogive_base::{BitSet, Diagnostic, FastMap, IdVec, SourceId, Span, Symbol};
use ogive_federation::{
    Links,
    vocabulary::{Spec, Version},
};
use ogive_schema::{
    AppliedDirective, BuildOptions, ConstValue, Edition, FieldId, OperationKind, Schema, TypeId,
    TypeKind, build, value::const_value,
};
use ogive_syntax::{
    Document, Limits,
    ast::{self, Definition},
    parse,
};

use crate::{
    codes, event_vocabulary,
    fields::{self, Conditions, Item, Kind, Rules},
    links, own,
    report::Place,
    spec::{self, Vocabulary, WORDS, Word},
};

/// One `@key`.
#[derive(Clone, Debug)]
pub struct Key {
    /// Its fields as written.
    pub text: Box<str>,
    /// Its fields.
    pub items: Vec<Item>,
    /// Whether the subgraph can be entered by it.
    pub resolvable: bool,
    /// Whether it says so in as many words.
    pub resolvable_written: bool,
    /// Whether it stands on an extension.
    pub of_extension: bool,
    /// Where it stands.
    pub span: Span,
}

/// A field set of a field.
#[derive(Clone, Debug)]
pub struct Fields {
    /// As written.
    pub text: Box<str>,
    /// Its members.
    pub items: Vec<Item>,
    /// Where the directive stands.
    pub span: Span,
}

/// `@override`
#[derive(Clone, Debug)]
pub struct Override {
    /// The subgraph it takes the field from.
    pub from: Box<str>,
    /// Progressive if there is one.
    pub label: Option<Box<str>>,
    /// Whether that subgraph has the field, settled when overrides are merged.
    pub is_needed: bool,
    /// Where it stands.
    pub span: Span,
}

/// One `@fromContext` argument.
#[derive(Clone, Debug)]
pub struct ContextArg {
    /// Name of the context in this subgraph.
    pub context: Box<str>,
    /// The argument.
    pub arg: ogive_schema::InputId,
    /// The selection as written, with what precedes it.
    pub selection: Box<str>,
    /// Where it stands.
    pub span: Span,
}

/// What federation says about a type.
#[derive(Clone, Debug, Default)]
pub struct TypeInfo {
    /// Keys in order.
    pub keys: Vec<Key>,
    /// `@interfaceObject`
    pub interface_object: bool,
    /// `@shareable` on the type.
    pub shareable: bool,
    /// `@extends`
    pub extends: bool,
    /// Has a definition that is no extension.
    pub defined: bool,
    /// Has an extension.
    pub extended: bool,
    /// Contexts it sets.
    pub contexts: Vec<(Box<str>, Span)>,
}

/// What federation says about a field.
#[derive(Clone, Debug, Default)]
pub struct FieldInfo {
    /// `@external` on it or on its type, and meant so.
    pub external: bool,
    /// `@external` on it or its type, as written.
    pub marked_external: Option<Span>,
    /// `@external` because its type is.
    pub external_by_type: bool,
    /// May be resolved by other subgraphs too.
    pub shareable: bool,
    /// Where `@shareable` stands on it.
    pub marked_shareable: Option<Span>,
    /// Part of a key of this subgraph.
    pub in_key: bool,
    /// Used by a key, `@requires`, `@provides` or context of this subgraph.
    pub used: bool,
    /// Selected by a `@provides` of this subgraph, which resolves it there although it is external.
    pub provided: bool,
    /// `@requires`
    pub requires: Option<Fields>,
    /// `@provides`
    pub provides: Option<Fields>,
    /// `@override`
    pub overrides: Option<Override>,
    /// `@fromContext` of its arguments.
    pub context_args: Vec<ContextArg>,
    /// Another subgraph took it: whether it is still used here for keys and the like.
    pub overridden: Option<bool>,
    /// Label under which another subgraph takes it progressively.
    pub override_label: Option<Box<str>>,
}

/// One subgraph.
#[derive(Clone, Debug)]
pub struct Subgraph {
    /// Its name.
    pub name: Box<str>,
    /// Where it is served.
    pub url: Box<str>,
    /// Its source among those of the composition.
    pub source: SourceId,
    /// Its types.
    pub schema: Schema,
    /// Federation version; `None` for federation 1.
    pub version: Option<Version>,
    /// Its links.
    pub links: Links,
    /// What it calls the directives.
    pub words: [Option<Symbol>; WORDS],
    /// Per type.
    pub types: IdVec<TypeId, TypeInfo>,
    /// Per field.
    pub fields: IdVec<FieldId, FieldInfo>,
    /// Types of specifications, not of the subgraph.
    pub machinery: BitSet,
    /// Directive definitions of specifications.
    pub machinery_directives: BitSet,
    /// `@composeDirective(name:)` in order.
    pub composed: Vec<(Box<str>, Span)>,
    /// What is wrong with it on its own, before validation.
    pub errors: Vec<Diagnostic>,
    /// What is wrong with its field sets; reported with the errors of validation.
    pub field_set_errors: Vec<Diagnostic>,
    /// Whether its root fields are bound to message brokers instead of a service.
    pub events: bool,
    /// Fields that field sets mention in which something else is wrong: they are used, too.
    pub mentioned: Vec<FieldId>,
}

/// Reads one subgraph.
pub fn read(name: &str, url: &str, sdl: &str, preludes: &mut Preludes) -> Subgraph {
    let parsed = parse(sdl, SourceId(0), &Limits::default());
    let mut errors: Vec<Diagnostic> = parsed.errors;
    for error in &mut errors {
        error.code = codes::INVALID_GRAPHQL;
    }
    let mut doc = parsed.document;
    let syntax_ok = errors.is_empty();
    let (links, link_errors) = Links::read(&doc);
    errors.extend(link_errors);
    let version = links
        .get(Spec::Federation)
        .map(|l| l.version.unwrap_or(Version::new(2, 0)));
    links::check(&doc, &links, &mut errors);
    let mut vocabulary = spec::vocabulary(&links, version);
    let defined = links::check_definitions(&mut doc, &vocabulary, version.is_none(), &mut errors);
    let events = event_vocabulary::bring(&doc, &mut vocabulary);
    let prelude = preludes.get(&vocabulary, &defined);
    let options = BuildOptions {
        validate: true,
        require_query: false,
        errors_max: 100,
        edition: Edition::October2021,
        extensions_define: true,
        loose_values: true,
    };
    let documents = [&doc, &prelude.document];
    let built = if syntax_ok {
        build(&documents, &options)
    } else {
        Default::default()
    };
    for mut error in built.errors {
        // Rules of GraphQL that federation knows under names of its own, or does not insist on.
        let empty_root = error.code == ogive_schema::codes::EMPTY_DEFINITION
            && built.schema.roots.iter().flatten().any(|r| {
                error
                    .labels
                    .iter()
                    .any(|l| l.span == built.schema.types[*r].span)
            });
        if empty_root
            || error.labels.iter().any(|l| l.source != SourceId(0))
            || (version.is_none() && own::is_of_machinery(&doc, &built.schema, &error))
        {
            continue;
        }
        links::explain_unknown(&mut error, &built.schema, version.is_none());
        error.code = codes::INVALID_GRAPHQL;
        errors.push(error);
    }
    let schema = built.schema;
    let words = std::array::from_fn(|i| {
        vocabulary.directives[i]
            .as_deref()
            .and_then(|n| schema.names.get(n))
    });
    let mut subgraph = Subgraph {
        name: name.into(),
        url: url.into(),
        source: SourceId(0),
        types: schema.types.ids().map(|_| TypeInfo::default()).collect(),
        fields: schema.fields.ids().map(|_| FieldInfo::default()).collect(),
        machinery: BitSet::new(),
        machinery_directives: BitSet::new(),
        version,
        links,
        words,
        schema,
        composed: Vec::new(),
        errors,
        field_set_errors: Vec::new(),
        events,
        mentioned: Vec::new(),
    };
    subgraph.find_machinery(&vocabulary);
    own::check(&subgraph.schema, &subgraph.machinery, &mut subgraph.errors);
    let extensions = subgraph.find_extensions(&doc);
    if subgraph.errors.is_empty() {
        if let Some(name) = &vocabulary.directives[Word::Shareable as usize] {
            subgraph.field_set_errors = own::repeated_shareable(&doc, name);
        }
        subgraph.read_directives(&extensions);
        if events {
            subgraph.settle_events();
        }
    }
    subgraph
}

/// Field sets as most directives have them.
const STRICT: Rules = Rules {
    conditions: Conditions::Possible,
    ignores_directives: false,
};

/// The same rules, directives aside.
fn lenient(rules: Rules) -> Rules {
    Rules {
        ignores_directives: true,
        ..rules
    }
}

/// Parsed preludes by text; most subgraphs of a composition share one.
#[derive(Debug, Default)]
pub struct Preludes {
    by_text: FastMap<String, std::sync::Arc<Prelude>>,
}

/// The definitions a subgraph may leave out.
#[derive(Debug)]
pub struct Prelude {
    document: Document,
}

/// Source of the diagnostics of a prelude, which nobody sees.
const PRELUDE: SourceId = SourceId(u32::MAX);

impl Preludes {
    /// What a vocabulary brings, without what a subgraph defines itself.
    fn get(
        &mut self,
        vocabulary: &Vocabulary,
        defined: &[(String, bool)],
    ) -> std::sync::Arc<Prelude> {
        let mut text = String::new();
        for (name, directive, definition) in &vocabulary.definitions {
            let is_own = |(n, d): &(String, bool)| **n == **name && d == directive;
            if defined.iter().any(is_own) {
                continue;
            }
            text.push_str(definition);
            text.push('\n');
        }
        if let Some(known) = self.by_text.get(&text) {
            return known.clone();
        }
        let document = parse(text.as_str(), PRELUDE, &Limits::default()).document;
        let prelude = std::sync::Arc::new(Prelude { document });
        self.by_text.insert(text, prelude.clone());
        prelude
    }
}

impl Subgraph {
    /// Gives the directives of an event subgraph their meaning.
    fn settle_events(&mut self) {
        use event_vocabulary::{BINDINGS, FILTER, RESULT};
        for (name, ..) in BINDINGS {
            if let Some(id) = self.schema.directive_by_name(name) {
                self.machinery_directives.insert(id.0);
            }
        }
        if let Some(id) = self.schema.directive_by_name(FILTER) {
            self.machinery_directives.insert(id.0);
        }
        if let Some(ty) = self.schema.type_by_name(RESULT) {
            self.types[ty].defined = true;
            for field in self.schema.types[ty].fields.clone() {
                // Every event subgraph has it.
                self.fields[field].shareable = true;
            }
        }
        // The event brings the key, whatever is written on it.
        let types: Vec<TypeId> = self.merged_types().collect();
        for ty in types {
            let mut keys: Vec<FieldId> = Vec::new();
            for key in &self.types[ty].keys {
                fields::each_field(&key.items, &mut |field, _| keys.push(field));
            }
            for field in keys {
                let info = &mut self.fields[field];
                info.external = false;
                info.marked_external = None;
                info.external_by_type = false;
            }
        }
    }
    /// Whether it is a federation 1 subgraph.
    pub fn is_v1(&self) -> bool {
        self.version.is_none()
    }
    /// The place of `span` in this subgraph.
    pub fn place(&self, span: Span) -> Place {
        Place {
            source: self.source,
            span,
        }
    }
    /// Says which subgraph of a composition this is.
    pub fn relabel(&mut self, source: SourceId) {
        self.source = source;
        let errors = self.errors.iter_mut().chain(&mut self.field_set_errors);
        for label in errors.flat_map(|e| &mut e.labels) {
            label.source = source;
        }
    }
    /// The application of `word` in a list of directives.
    pub fn find<'a>(
        &self,
        directives: &'a [AppliedDirective],
        word: Word,
    ) -> Option<&'a AppliedDirective> {
        let name = self.words[word as usize]?;
        directives.iter().find(|d| d.name == name)
    }
    /// Whether a directive is applied anywhere.
    pub fn applies(&self, name: Symbol) -> bool {
        let has = |list: &[AppliedDirective]| list.iter().any(|d| d.name == name);
        let schema = &self.schema;
        has(&schema.directives)
            || schema.types.iter().any(|(_, t)| has(&t.directives))
            || schema.fields.iter().any(|(_, f)| has(&f.directives))
            || schema.inputs.iter().any(|(_, i)| has(&i.directives))
            || schema.enum_values.iter().any(|(_, v)| has(&v.directives))
    }
    /// Which known directive this is.
    pub fn word_of(&self, directive: &AppliedDirective) -> Option<Word> {
        let at = self.words.iter().position(|w| *w == Some(directive.name))?;
        Some(spec::ELEMENTS[at].word)
    }
    /// An argument of an applied directive.
    pub fn arg<'a>(&self, directive: &'a AppliedDirective, name: &str) -> Option<&'a ConstValue> {
        directive.arg(self.schema.names.get(name)?)
    }
    /// Types that take part in the merge.
    pub fn merged_types(&self) -> impl Iterator<Item = TypeId> + '_ {
        self.schema
            .type_list
            .iter()
            .copied()
            .filter(|id| !self.schema.types[*id].built_in && !self.machinery.contains(id.0))
    }
    /// Whether a type is an extension as far as federation cares.
    pub fn is_extension(&self, ty: TypeId) -> bool {
        let info = &self.types[ty];
        info.extends || (info.extended && !info.defined)
    }
    /// The operation a type is the root of.
    pub fn root_kind(&self, ty: TypeId) -> Option<OperationKind> {
        [
            OperationKind::Query,
            OperationKind::Mutation,
            OperationKind::Subscription,
        ]
        .into_iter()
        .find(|k| self.schema.root(*k) == Some(ty))
    }

    fn find_machinery(&mut self, vocabulary: &Vocabulary) {
        let mut types: Vec<&str> = vocabulary.types.iter().map(|t| &**t).collect();
        types.extend(["_Any", "_Entity", "_Service", "_FieldSet"]);
        let reserved = vocabulary
            .reserved
            .iter()
            .filter(|(_, is_directive, _)| !is_directive);
        types.extend(reserved.map(|(name, ..)| &**name));
        for name in types {
            if let Some(ty) = self.schema.type_by_name(name) {
                self.machinery.insert(ty.0);
            }
        }
        for (id, ty) in self.schema.types() {
            let name = self.schema.type_name(id);
            if !ty.built_in
                && self
                    .links
                    .owner_of_type(name)
                    .is_some_and(|l| l.spec.is_some())
            {
                self.machinery.insert(id.0);
            }
        }
        for (name, is_directive, _) in &vocabulary.definitions {
            if *is_directive && let Some(id) = self.schema.directive_by_name(name) {
                self.machinery_directives.insert(id.0);
            }
        }
        let query = self.schema.root(OperationKind::Query);
        if let Some(query) = query.or(self.schema.type_by_name("Query")) {
            let names = ["_entities", "_service"].map(|n| self.schema.names.get(n));
            let (types, fields) = (&mut self.schema.types, &self.schema.fields);
            types[query]
                .fields
                .retain(|f| !names.contains(&Some(fields[*f].name)));
            for name in names.into_iter().flatten() {
                self.schema.fields_by_name.remove(&(query, name));
            }
        }
    }

    /// Spans of type extensions, in order, and per type whether it is defined or extended.
    fn find_extensions(&mut self, doc: &Document) -> Vec<Span> {
        let mut spans = Vec::new();
        for definition in &doc.definitions {
            let Definition::Type(def) = definition else {
                continue;
            };
            if def.extend {
                spans.push(def.span);
            }
            if let Some(ty) = self.schema.type_by_name(doc.name(def.name)) {
                let info = &mut self.types[ty];
                info.extended |= def.extend;
                info.defined |= !def.extend;
            }
        }
        spans
    }

    fn read_directives(&mut self, extensions: &[Span]) {
        let in_extension = |span: Span| {
            let after = extensions.partition_point(|e| e.start <= span.start);
            after > 0 && extensions[after - 1].end >= span.end
        };
        for i in 0..self.schema.type_list.len() {
            let ty = self.schema.type_list[i];
            if self.schema.types[ty].built_in
                || self.machinery.contains(ty.0)
                || !self.schema.types[ty].kind.is_composite()
            {
                continue;
            }
            self.read_type(ty, &in_extension);
        }
        if let Some(name) = self.words[Word::ComposeDirective as usize] {
            for applied in self.schema.directives.iter().filter(|d| d.name == name) {
                // The specification lets the name be left out; composition does not.
                let name = self.arg(applied, "name").and_then(ConstValue::as_str);
                self.composed
                    .push((name.unwrap_or_default().into(), applied.span));
            }
        }
        self.mark_uses();
    }

    fn read_type(&mut self, ty: TypeId, in_extension: &dyn Fn(Span) -> bool) {
        let mut info = std::mem::take(&mut self.types[ty]);
        let directives = std::mem::take(&mut self.schema.types[ty].directives);
        let mut external = None;
        let mut shareable_blocks: Vec<Span> = Vec::new();
        for applied in &directives {
            match self.word_of(applied) {
                Some(Word::Key) => {
                    if let Some(key) = self.read_key(ty, applied, in_extension(applied.span)) {
                        info.keys.push(key);
                    }
                }
                Some(Word::InterfaceObject) => info.interface_object = true,
                Some(Word::Shareable) => {
                    info.shareable = true;
                    shareable_blocks.push(applied.span);
                }
                Some(Word::Extends) => info.extends = true,
                Some(Word::External) => external = Some(applied.span),
                Some(Word::Context) => {
                    if let Some(name) = self.arg(applied, "name").and_then(ConstValue::as_str) {
                        info.contexts.push((name.into(), applied.span));
                    }
                }
                _ => {}
            }
        }
        for i in 0..self.schema.types[ty].fields.len() {
            let field = self.schema.types[ty].fields[i];
            self.read_field(ty, field, external, info.shareable);
        }
        self.schema.types[ty].directives = directives;
        self.types[ty] = info;
    }

    fn read_field(&mut self, ty: TypeId, field: FieldId, external: Option<Span>, shareable: bool) {
        let mut info = FieldInfo {
            external: external.is_some(),
            marked_external: external,
            external_by_type: external.is_some(),
            shareable,
            ..FieldInfo::default()
        };
        let directives = std::mem::take(&mut self.schema.fields[field].directives);
        for applied in &directives {
            match self.word_of(applied) {
                Some(Word::External) => {
                    info.external = true;
                    info.external_by_type = false;
                    info.marked_external = Some(applied.span);
                }
                Some(Word::Shareable) => {
                    info.shareable = true;
                    info.marked_shareable = Some(applied.span);
                }
                Some(Word::Requires) => {
                    info.requires = self.read_fields(ty, applied, Word::Requires, field)
                }
                Some(Word::Provides) => {
                    let target = self.schema.fields[field].ty.id;
                    if self.schema.types[target].kind.is_composite() {
                        info.provides = self.read_fields(target, applied, Word::Provides, field);
                    }
                }
                Some(Word::Override) => {
                    let text = |name: &str| {
                        self.arg(applied, name)
                            .and_then(ConstValue::as_str)
                            .map(Box::from)
                    };
                    if let Some(from) = text("from") {
                        info.overrides = Some(Override {
                            from,
                            label: text("label"),
                            is_needed: true,
                            span: applied.span,
                        });
                    }
                }
                _ => {}
            }
        }
        for arg in self.schema.fields[field].args.clone() {
            let row = &self.schema.inputs[arg];
            let Some(applied) = self.find(&row.directives, Word::FromContext) else {
                continue;
            };
            let text = self
                .arg(applied, "field")
                .and_then(ConstValue::as_str)
                .unwrap_or_default();
            let (context, selection) = split_context(text);
            info.context_args.push(ContextArg {
                context: context.into(),
                arg,
                selection: selection.into(),
                span: applied.span,
            });
        }
        self.schema.fields[field].directives = directives;
        self.fields[field] = info;
    }

    fn read_key(
        &mut self,
        ty: TypeId,
        applied: &AppliedDirective,
        of_extension: bool,
    ) -> Option<Key> {
        let text = self.fields_text(applied, Word::Key, self.schema.type_name(ty).to_owned())?;
        let written = self
            .arg(applied, "resolvable")
            .and_then(ConstValue::as_bool);
        let items = match fields::read(&self.schema, ty, &text, STRICT) {
            Ok(items) => items,
            Err(problem) => {
                let directive = problem.kind == Kind::Directive;
                let name = self.schema.type_name(ty).to_owned();
                self.fields_error(Word::Key, name, &text, applied.span, problem);
                self.mentioned
                    .extend(fields::mentioned(&self.schema, ty, &text));
                match fields::read(&self.schema, ty, &text, lenient(STRICT)) {
                    Ok(items) if directive => items,
                    _ => return None,
                }
            }
        };
        Some(Key {
            text,
            items,
            resolvable: written.unwrap_or(true),
            resolvable_written: written.is_some(),
            of_extension,
            span: applied.span,
        })
    }

    fn read_fields(
        &mut self,
        on: TypeId,
        applied: &AppliedDirective,
        word: Word,
        field: FieldId,
    ) -> Option<Fields> {
        let coordinate = self.schema.field_coordinate(field);
        let text = self.fields_text(applied, word, coordinate.clone())?;
        let rules = match word {
            Word::Requires => Rules {
                conditions: Conditions::Foreign,
                ..STRICT
            },
            _ => STRICT,
        };
        match fields::read(&self.schema, on, &text, rules) {
            Ok(items) => Some(Fields {
                text,
                items,
                span: applied.span,
            }),
            Err(problem) => {
                let directive = problem.kind == Kind::Directive;
                self.fields_error(word, coordinate, &text, applied.span, problem);
                self.mentioned
                    .extend(fields::mentioned(&self.schema, on, &text));
                let items = fields::read(&self.schema, on, &text, lenient(rules)).ok()?;
                directive.then_some(Fields {
                    text,
                    items,
                    span: applied.span,
                })
            }
        }
    }

    /// The `fields` argument: a string, in federation 1 also a list of strings or a bare name.
    fn fields_text(
        &mut self,
        applied: &AppliedDirective,
        word: Word,
        about: String,
    ) -> Option<Box<str>> {
        let value = self.arg(applied, "fields")?;
        if let Some(text) = value.as_str() {
            return Some(text.into());
        }
        if self.is_v1() {
            let word_of = |v: &ConstValue| match v {
                ConstValue::String(s) | ConstValue::Enum(s) => Some(s.to_string()),
                _ => None,
            };
            let coerced = match value {
                ConstValue::Enum(name) => Some(name.to_string()),
                ConstValue::List(items) => items
                    .iter()
                    .map(word_of)
                    .collect::<Option<Vec<_>>>()
                    .map(|w| w.join(" ")),
                _ => None,
            };
            if let Some(text) = coerced {
                return Some(text.into());
            }
        }
        let code = match word {
            Word::Key => codes::KEY_INVALID_FIELDS_TYPE,
            Word::Requires => codes::REQUIRES_INVALID_FIELDS_TYPE,
            _ => codes::PROVIDES_INVALID_FIELDS_TYPE,
        };
        let name = spec::ELEMENTS[word as usize].name;
        self.field_set_errors.push(
            Diagnostic::error(
                code,
                format!("the fields of `@{name}` on `{about}` are no string"),
            )
            .about(about)
            .label(self.source, applied.span, "")
            .help("write them as one string: `fields: \"id name\"`"),
        );
        None
    }

    fn fields_error(
        &mut self,
        word: Word,
        coordinate: String,
        text: &str,
        span: Span,
        problem: fields::Problem,
    ) {
        let code = match (word, problem.kind) {
            (Word::Key, Kind::Invalid) => codes::KEY_INVALID_FIELDS,
            (Word::Requires, Kind::Invalid) => codes::REQUIRES_INVALID_FIELDS,
            (_, Kind::Invalid) => codes::PROVIDES_INVALID_FIELDS,
            (Word::Key, Kind::Directive) => codes::KEY_DIRECTIVE_IN_FIELDS_ARG,
            (Word::Requires, Kind::Directive) => codes::REQUIRES_DIRECTIVE_IN_FIELDS_ARG,
            (_, Kind::Directive) => codes::PROVIDES_DIRECTIVE_IN_FIELDS_ARG,
        };
        let name = spec::ELEMENTS[word as usize].name;
        let mut error = Diagnostic::error(
            code,
            format!(
                "`@{name}(fields: \"{text}\")` on `{coordinate}`: {}",
                problem.message
            ),
        )
        .about(coordinate)
        .label(self.source, span, "");
        error.help = problem.help;
        self.field_set_errors.push(error);
    }

    /// Which fields are parts of keys, which are used at all, and which external ones are external in name only.
    pub fn mark_uses(&mut self) {
        let schema = &self.schema;
        let mut in_key: Vec<FieldId> = Vec::new();
        let mut used: Vec<FieldId> = Vec::new();
        for field in &self.mentioned {
            used.push(*field);
            used.extend(fields::implementations(schema, *field));
        }
        let mut provided: Vec<FieldId> = Vec::new();
        let mut fake: Vec<FieldId> = Vec::new();
        for (ty, info) in self.types.iter() {
            for key in &info.keys {
                let extension = key.of_extension || info.extends;
                fields::each_field(&key.items, &mut |field, _| {
                    in_key.push(field);
                    in_key.extend(fields::implementations(schema, field));
                    used.push(field);
                    used.extend(fields::implementations(schema, field));
                    if extension && schema.fields[field].parent == ty {
                        fake.push(field);
                    }
                });
            }
        }
        for (field, _) in schema.fields.iter() {
            let info = &self.fields[field];
            for (_, items) in info.context_args.iter().flat_map(|a| self.selected(a)) {
                fields::each_field(&items, &mut |f, _| {
                    used.push(f);
                    used.extend(fields::implementations(schema, f));
                });
            }
            for set in [&info.requires, &info.provides].into_iter().flatten() {
                fields::each_field(&set.items, &mut |f, _| {
                    used.push(f);
                    used.extend(fields::implementations(schema, f));
                });
            }
            if let Some(set) = &info.provides {
                fields::each_field(&set.items, &mut |f, _| {
                    provided.push(f);
                    provided.extend(fields::implementations(schema, f));
                });
            }
        }
        for field in provided {
            self.fields[field].provided = true;
        }
        for field in in_key {
            self.fields[field].in_key = true;
        }
        for field in used {
            self.fields[field].used = true;
        }
        for field in fake {
            self.fields[field].external = false;
        }
    }

    /// The types that set the context of an argument.
    pub fn setters(&self, arg: &ContextArg) -> impl Iterator<Item = TypeId> {
        let sets = |info: &TypeInfo| info.contexts.iter().any(|(name, _)| *name == arg.context);
        let setters = self.types.iter().filter(move |(_, info)| sets(info));
        setters.map(|(ty, _)| ty)
    }
    /// What an argument takes from each type that sets its context, as far as it can be read.
    pub fn selected(&self, arg: &ContextArg) -> impl Iterator<Item = (TypeId, Vec<Item>)> {
        self.setters(arg)
            .filter_map(|ty| Some((ty, self.selected_of(arg, ty).ok()?)))
    }
    /// What an argument takes from one type that sets its context.
    pub fn selected_of(&self, arg: &ContextArg, ty: TypeId) -> Result<Vec<Item>, fields::Problem> {
        let rules = Rules {
            conditions: Conditions::Any,
            ..STRICT
        };
        fields::read(&self.schema, ty, &arg.selection, rules)
    }
    /// Coordinate of a field under the subgraph's own names.
    pub fn coordinate(&self, field: FieldId) -> String {
        self.schema.field_coordinate(field)
    }
    /// Whether the type is an object (not an interface object).
    pub fn is_plain_object(&self, ty: TypeId) -> bool {
        self.schema.types[ty].kind == TypeKind::Object && !self.types[ty].interface_object
    }
}

/// `$context selection` in two; the second keeps what follows the name.
pub fn split_context(text: &str) -> (&str, &str) {
    let Some(rest) = text.trim_start().strip_prefix('$') else {
        return ("", text);
    };
    let rest = rest.trim_start();
    let end = rest
        .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .unwrap_or(rest.len());
    rest.split_at(end)
}

/// Reads a literal; used where the syntax tree is at hand.
pub fn literal(doc: &Document, value: &ast::Value) -> ConstValue {
    const_value(doc, value)
}
