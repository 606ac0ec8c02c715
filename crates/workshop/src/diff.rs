//! What changed between two graphs: in the schema clients see, and in who resolves what.
//!
//! Changes are *breaking* (some operation that was valid fails), *dangerous* (valid operations go on, clients may
//! meet something new) or *safe*. Linear in both schemas.

use ogive_base::{FastMap, FastSet};
use ogive_federation::{Supergraph, field_set::write_field_set};
use ogive_schema::{ConstValue, InputId, Schema, Type, TypeId, TypeKind, value::write_value};

/// What a change does to clients.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Impact {
    /// Some operation that was valid fails.
    Breaking,
    /// Clients may meet something new.
    Dangerous,
    /// No client notices, or only by looking.
    Safe,
}

impl Impact {
    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Impact::Breaking => "breaking",
            Impact::Dangerous => "dangerous",
            Impact::Safe => "safe",
        }
    }
}

/// A kind of change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChangeKind {
    /// Its code.
    pub code: &'static str,
    /// What it does.
    pub impact: Impact,
    /// What it is.
    pub summary: &'static str,
}

macro_rules! kinds {
    ($($name:ident $impact:ident $summary:literal)*) => {
        $(#[doc = $summary] pub const $name: ChangeKind = ChangeKind {
            code: stringify!($name), impact: Impact::$impact, summary: $summary };)*
        /// Every kind of change.
        pub const KINDS: &[ChangeKind] = &[$($name),*];
    };
}

kinds! {
    TYPE_REMOVED Breaking "A type is gone: operations cannot name it any more."
    TYPE_KIND_CHANGED Breaking "A type is of another kind."
    FIELD_REMOVED Breaking "A field is gone: operations that select it fail."
    FIELD_TYPE_CHANGED Breaking "A field's type changed so that clients may get what they do not expect, such as null."
    ARGUMENT_REMOVED Breaking "An argument is gone: operations that give it fail."
    REQUIRED_ARGUMENT_ADDED Breaking "A field has a new argument that must be given: operations that select it fail."
    ARGUMENT_TYPE_CHANGED Breaking "An argument's type changed so that values that were valid are not."
    INPUT_FIELD_REMOVED Breaking "An input field is gone: values that have it fail."
    REQUIRED_INPUT_FIELD_ADDED Breaking "An input type has a new field that must be given: values without it fail."
    INPUT_FIELD_TYPE_CHANGED Breaking "An input field's type changed so that values that were valid are not."
    ONE_OF_ADDED Breaking "An input type takes exactly one field now."
    ENUM_VALUE_REMOVED Breaking "An enum value is gone: operations that use it fail."
    UNION_MEMBER_REMOVED Breaking "A union lost a member: fragments on it fail."
    IMPLEMENTATION_REMOVED Breaking "A type does not implement an interface any more: fragments on either fail."
    DIRECTIVE_REMOVED Breaking "A directive is gone."
    DIRECTIVE_ARGUMENT_REMOVED Breaking "A directive's argument is gone."
    REQUIRED_DIRECTIVE_ARGUMENT_ADDED Breaking "A directive has a new argument that must be given."
    DIRECTIVE_LOCATION_REMOVED Breaking "A directive may not stand where it stood."
    DIRECTIVE_NOT_REPEATABLE Breaking "A directive may stand once only."
    ARGUMENT_ADDED Dangerous "A field has a new optional argument."
    ARGUMENT_DEFAULT_CHANGED Dangerous "An argument has another default: operations that leave it out mean something else."
    INPUT_FIELD_ADDED Dangerous "An input type has a new optional field."
    INPUT_FIELD_DEFAULT_CHANGED Dangerous "An input field has another default: values that leave it out mean something else."
    ENUM_VALUE_ADDED Dangerous "An enum has a new value, which clients may get without knowing it."
    UNION_MEMBER_ADDED Dangerous "A union has a new member, which clients may get without knowing it."
    IMPLEMENTATION_ADDED Dangerous "A type that was there implements an interface, whose clients may get it without knowing it."
    ONE_OF_REMOVED Safe "An input type takes any number of its fields now."
    KEY_REMOVED Dangerous "A subgraph cannot be entered by a key any more; other keys or subgraphs serve the fields."
    TYPE_ADDED Safe "There is a new type."
    FIELD_ADDED Safe "There is a new field."
    FIELD_TYPE_NARROWED Safe "A field's type promises more than before."
    ARGUMENT_TYPE_WIDENED Safe "An argument takes more than before."
    INPUT_FIELD_TYPE_WIDENED Safe "An input field takes more than before."
    DIRECTIVE_ADDED Safe "There is a new directive."
    DEPRECATION_ADDED Safe "Something is deprecated."
    DEPRECATION_REMOVED Safe "Something is not deprecated any more."
    DESCRIPTION_CHANGED Safe "A description changed."
    FIELD_MOVED Safe "A field is resolved by other subgraphs than before."
    RESOLVER_ADDED Safe "A field is resolved by one more subgraph."
    RESOLVER_REMOVED Safe "A field is resolved by one subgraph less."
    KEY_ADDED Safe "A subgraph can be entered by a new key."
    SUBGRAPH_ADDED Safe "There is a new subgraph."
    SUBGRAPH_REMOVED Safe "A subgraph is gone; whatever clients miss is listed by itself."
    SUBGRAPH_URL_CHANGED Safe "A subgraph is served elsewhere."
}

/// One change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change {
    /// What kind.
    pub kind: ChangeKind,
    /// What changed, as a schema coordinate.
    pub coordinate: String,
    /// One sentence.
    pub message: String,
    /// What is gone was deprecated, for this reason.
    pub deprecated: Option<String>,
    /// Who resolves what, rather than what clients see.
    pub ownership: bool,
}

/// All changes from one graph to another: of the API, then of ownership; most severe first, then by coordinate.
pub fn diff(before: &Supergraph, after: &Supergraph) -> Vec<Change> {
    let mut changes = api(&before.api, &after.api);
    changes.extend(ownership(before, after));
    changes
}

/// Changes of what clients see; most severe first, then by coordinate.
pub fn api(before: &Schema, after: &Schema) -> Vec<Change> {
    let mut differ = Differ {
        old: before,
        new: after,
        out: Vec::new(),
    };
    differ.types();
    differ.directives();
    sorted(differ.out)
}

fn sorted(mut changes: Vec<Change>) -> Vec<Change> {
    changes.sort_by(|a, b| {
        (a.kind.impact, &a.coordinate, a.kind.code).cmp(&(
            b.kind.impact,
            &b.coordinate,
            b.kind.code,
        ))
    });
    changes
}

struct Differ<'s> {
    old: &'s Schema,
    new: &'s Schema,
    out: Vec<Change>,
}

impl Differ<'_> {
    fn push(&mut self, kind: ChangeKind, coordinate: String, message: String) {
        self.out.push(Change {
            kind,
            coordinate,
            message,
            deprecated: None,
            ownership: false,
        });
    }
    fn removed(
        &mut self,
        kind: ChangeKind,
        coordinate: String,
        message: String,
        deprecated: Option<&str>,
    ) {
        self.push(kind, coordinate, message);
        if let Some(last) = self.out.last_mut() {
            last.deprecated = deprecated.map(str::to_owned);
        }
    }

    fn types(&mut self) {
        let (old, new) = (self.old, self.new);
        for (id, row) in old.types().filter(|(_, t)| !t.built_in) {
            let name = old.type_name(id);
            let Some(now) = new.type_by_name(name) else {
                self.push(
                    TYPE_REMOVED,
                    name.into(),
                    format!("the type `{name}` is gone"),
                );
                continue;
            };
            let is = new.types[now].kind;
            if is != row.kind {
                let message = format!("`{name}` was {} and is {}", word(row.kind), word(is));
                self.push(TYPE_KIND_CHANGED, name.into(), message);
                continue;
            }
            self.describe(name, &row.description, &new.types[now].description);
            match is {
                TypeKind::Object | TypeKind::Interface => {
                    self.fields(id, now);
                    self.interfaces(id, now);
                }
                TypeKind::Union => self.members(id, now),
                TypeKind::Enum => self.values(id, now),
                TypeKind::InputObject => self.input_fields(id, now),
                TypeKind::Scalar => {}
            }
        }
        for (id, _) in new.types().filter(|(_, t)| !t.built_in) {
            let name = new.type_name(id);
            if old.type_by_name(name).is_none() {
                self.push(
                    TYPE_ADDED,
                    name.into(),
                    format!("there is a new type `{name}`"),
                );
            }
        }
    }

    fn describe(&mut self, coordinate: &str, old: &Option<Box<str>>, new: &Option<Box<str>>) {
        if old != new {
            let message = format!("the description of `{coordinate}` changed");
            self.push(DESCRIPTION_CHANGED, coordinate.into(), message);
        }
    }
    fn deprecate(&mut self, coordinate: &str, old: &Option<Box<str>>, new: &Option<Box<str>>) {
        match (old, new) {
            (None, Some(reason)) => {
                let message = format!("`{coordinate}` is deprecated: {reason}");
                self.push(DEPRECATION_ADDED, coordinate.into(), message);
            }
            (Some(_), None) => {
                let message = format!("`{coordinate}` is not deprecated any more");
                self.push(DEPRECATION_REMOVED, coordinate.into(), message);
            }
            _ => {}
        }
    }

    fn fields(&mut self, before: TypeId, after: TypeId) {
        let (old, new) = (self.old, self.new);
        for field in &old.types[before].fields {
            let row = &old.fields[*field];
            let coordinate = old.field_coordinate(*field);
            let Some(now) = new.field_by_name(after, old.name(row.name)) else {
                let message = format!("the field `{coordinate}` is gone");
                self.removed(
                    FIELD_REMOVED,
                    coordinate,
                    message,
                    row.deprecated.as_deref(),
                );
                continue;
            };
            let is = &new.fields[now];
            self.describe(&coordinate, &row.description, &is.description);
            self.deprecate(&coordinate, &row.deprecated, &is.deprecated);
            if let Some(narrower) = self.output_change(row.ty, is.ty) {
                let message = self.was_is(&coordinate, row.ty, is.ty);
                let kind = if narrower {
                    FIELD_TYPE_NARROWED
                } else {
                    FIELD_TYPE_CHANGED
                };
                self.push(kind, coordinate.clone(), message);
            }
            let called = |name: &str| format!("{coordinate}({name}:)");
            let kinds = [
                ARGUMENT_REMOVED,
                REQUIRED_ARGUMENT_ADDED,
                ARGUMENT_ADDED,
                ARGUMENT_TYPE_CHANGED,
                ARGUMENT_TYPE_WIDENED,
                ARGUMENT_DEFAULT_CHANGED,
            ];
            self.inputs(&row.args, &is.args, &called, &kinds);
        }
        for field in &new.types[after].fields {
            let name = new.field_name(*field);
            if old.field_by_name(before, name).is_none() {
                let coordinate = new.field_coordinate(*field);
                let message = format!("there is a new field `{coordinate}`");
                self.push(FIELD_ADDED, coordinate, message);
            }
        }
    }

    /// Arguments or input fields. `kinds`: removed, required one added, optional one added, type changed, widened,
    /// default changed.
    fn inputs(
        &mut self,
        before: &[InputId],
        after: &[InputId],
        called: &dyn Fn(&str) -> String,
        kinds: &[ChangeKind; 6],
    ) {
        let (old, new) = (self.old, self.new);
        for input in before {
            let row = &old.inputs[*input];
            let name = old.name(row.name);
            let coordinate = called(name);
            let Some(now) = new.arg_by_name(after, name) else {
                let message = format!("`{coordinate}` is gone");
                self.removed(kinds[0], coordinate, message, row.deprecated.as_deref());
                continue;
            };
            let is = &new.inputs[now];
            self.describe(&coordinate, &row.description, &is.description);
            self.deprecate(&coordinate, &row.deprecated, &is.deprecated);
            if let Some(wider) = self.input_change(row.ty, is.ty) {
                let message = self.was_is(&coordinate, row.ty, is.ty);
                // A required input that was optional is a change, unless a default stands in.
                let kind = if wider { kinds[4] } else { kinds[3] };
                self.push(kind, coordinate.clone(), message);
            }
            if row.default != is.default {
                let message = format!(
                    "the default of `{coordinate}` was {} and is {}",
                    default(&row.default),
                    default(&is.default)
                );
                self.push(kinds[5], coordinate, message);
            }
        }
        for input in after {
            let row = &new.inputs[*input];
            let name = new.name(row.name);
            if old.arg_by_name(before, name).is_none() {
                let coordinate = called(name);
                let (kind, what) = if row.is_required() {
                    (kinds[1], "required")
                } else {
                    (kinds[2], "optional")
                };
                let message = format!("`{coordinate}` is new and {what}");
                self.push(kind, coordinate, message);
            }
        }
    }

    fn input_fields(&mut self, before: TypeId, after: TypeId) {
        let (old, new) = (self.old, self.new);
        let name = old.type_name(before).to_owned();
        match (old.types[before].one_of, new.types[after].one_of) {
            (false, true) => self.push(
                ONE_OF_ADDED,
                name.clone(),
                format!("`{name}` takes exactly one field now"),
            ),
            (true, false) => {
                let message = format!("`{name}` takes any number of its fields now");
                self.push(ONE_OF_REMOVED, name.clone(), message);
            }
            _ => {}
        }
        let called = |field: &str| format!("{name}.{field}");
        let kinds = [
            INPUT_FIELD_REMOVED,
            REQUIRED_INPUT_FIELD_ADDED,
            INPUT_FIELD_ADDED,
            INPUT_FIELD_TYPE_CHANGED,
            INPUT_FIELD_TYPE_WIDENED,
            INPUT_FIELD_DEFAULT_CHANGED,
        ];
        let fields = (
            &old.types[before].input_fields,
            &new.types[after].input_fields,
        );
        self.inputs(fields.0, fields.1, &called, &kinds);
    }

    fn values(&mut self, before: TypeId, after: TypeId) {
        let (old, new) = (self.old, self.new);
        let ty = old.type_name(before);
        for value in &old.types[before].enum_values {
            let row = &old.enum_values[*value];
            let name = old.name(row.name);
            let coordinate = format!("{ty}.{name}");
            let Some(now) = new.enum_value_by_name(after, name) else {
                let message = format!("the value `{coordinate}` is gone");
                self.removed(
                    ENUM_VALUE_REMOVED,
                    coordinate,
                    message,
                    row.deprecated.as_deref(),
                );
                continue;
            };
            let is = &new.enum_values[now];
            self.describe(&coordinate, &row.description, &is.description);
            self.deprecate(&coordinate, &row.deprecated, &is.deprecated);
        }
        for value in &new.types[after].enum_values {
            let name = new.name(new.enum_values[*value].name);
            if old.enum_value_by_name(before, name).is_none() {
                let message = format!("there is a new value `{ty}.{name}`");
                self.push(ENUM_VALUE_ADDED, format!("{ty}.{name}"), message);
            }
        }
    }

    fn members(&mut self, before: TypeId, after: TypeId) {
        let (old, new) = (self.old, self.new);
        let name = old.type_name(before);
        let (lost, gained) = compared(
            (old, &old.types[before].members),
            (new, &new.types[after].members),
        );
        for member in lost {
            let message = format!("`{name}` has no member `{member}` any more");
            self.push(UNION_MEMBER_REMOVED, name.into(), message);
        }
        for member in gained {
            self.push(
                UNION_MEMBER_ADDED,
                name.into(),
                format!("`{name}` has a new member `{member}`"),
            );
        }
    }

    fn interfaces(&mut self, before: TypeId, after: TypeId) {
        let (old, new) = (self.old, self.new);
        let name = old.type_name(before);
        let (lost, gained) = compared(
            (old, &old.types[before].interfaces),
            (new, &new.types[after].interfaces),
        );
        for interface in lost {
            let message = format!("`{name}` does not implement `{interface}` any more");
            self.push(IMPLEMENTATION_REMOVED, name.into(), message);
        }
        for interface in gained {
            let message = format!("`{name}` implements `{interface}` now");
            self.push(IMPLEMENTATION_ADDED, name.into(), message);
        }
    }

    fn directives(&mut self) {
        let (old, new) = (self.old, self.new);
        for id in &old.directive_list {
            let row = &old.directive_defs[*id];
            let name = old.name(row.name);
            let coordinate = format!("@{name}");
            if row.built_in {
                continue;
            }
            let Some(now) = new.directive_by_name(name) else {
                self.push(
                    DIRECTIVE_REMOVED,
                    coordinate.clone(),
                    format!("`{coordinate}` is gone"),
                );
                continue;
            };
            let is = &new.directive_defs[now];
            for location in row.locations.iter().filter(|l| !is.locations.contains(l)) {
                let message = format!(
                    "`{coordinate}` may not stand on {} any more",
                    location.as_str()
                );
                self.push(DIRECTIVE_LOCATION_REMOVED, coordinate.clone(), message);
            }
            if row.repeatable && !is.repeatable {
                let message = format!("`{coordinate}` is not repeatable any more");
                self.push(DIRECTIVE_NOT_REPEATABLE, coordinate.clone(), message);
            }
            for arg in &row.args {
                let arg = old.name(old.inputs[*arg].name);
                if new.arg_by_name(&is.args, arg).is_none() {
                    let coordinate = format!("{coordinate}({arg}:)");
                    let message = format!("`{coordinate}` is gone");
                    self.push(DIRECTIVE_ARGUMENT_REMOVED, coordinate, message);
                }
            }
            for arg in is.args.iter().filter(|a| new.inputs[**a].is_required()) {
                let arg = new.name(new.inputs[*arg].name);
                if old.arg_by_name(&row.args, arg).is_none() {
                    let coordinate = format!("{coordinate}({arg}:)");
                    let message = format!("`{coordinate}` is new and required");
                    self.push(REQUIRED_DIRECTIVE_ARGUMENT_ADDED, coordinate, message);
                }
            }
        }
        for id in &new.directive_list {
            let row = &new.directive_defs[*id];
            let name = new.name(row.name);
            if !row.built_in && old.directive_by_name(name).is_none() {
                self.push(
                    DIRECTIVE_ADDED,
                    format!("@{name}"),
                    format!("there is a new directive `@{name}`"),
                );
            }
        }
    }

    fn was_is(&self, coordinate: &str, was: Type, is: Type) -> String {
        format!(
            "`{coordinate}` was of the type `{}` and is of the type `{}`",
            self.old.display_type(was),
            self.new.display_type(is)
        )
    }

    /// `None` if equal, else whether whoever read the old type can read the new one.
    fn output_change(&self, was: Type, is: Type) -> Option<bool> {
        let same = self.same_name(was, is);
        if same && was.wrapping == is.wrapping {
            return None;
        }
        // Clients see a narrower named type as one of those they knew: only if the old one was its interface or union.
        let named = same || {
            let found = self.new.type_by_name(self.old.type_name(was.id));
            found.is_some_and(|sup| self.new.is_subtype(is.id, sup))
        };
        Some(named && covers(was, is))
    }
    /// `None` if equal, else whether every value of the old type fits the new one.
    fn input_change(&self, was: Type, is: Type) -> Option<bool> {
        let same = self.same_name(was, is);
        if same && was.wrapping == is.wrapping {
            return None;
        }
        Some(same && covers(is, was))
    }
    fn same_name(&self, was: Type, is: Type) -> bool {
        self.old.type_name(was.id) == self.new.type_name(is.id)
    }
}

/// Whether `narrow` has the lists of `wide` and is non-null wherever that is.
fn covers(wide: Type, narrow: Type) -> bool {
    let (wide, narrow) = (wide.wrapping, narrow.wrapping);
    wide.lists() == narrow.lists()
        && (0..=wide.lists()).all(|l| !wide.layer_is_non_null(l) || narrow.layer_is_non_null(l))
}

fn compared<'s>(
    (old, before): (&'s Schema, &[TypeId]),
    (new, after): (&'s Schema, &[TypeId]),
) -> (Vec<&'s str>, Vec<&'s str>) {
    let was: Vec<&str> = before.iter().map(|t| old.type_name(*t)).collect();
    let is: Vec<&str> = after.iter().map(|t| new.type_name(*t)).collect();
    let lost = was.iter().copied().filter(|n| !is.contains(n)).collect();
    let gained = is.iter().copied().filter(|n| !was.contains(n)).collect();
    (lost, gained)
}

fn default(value: &Option<ConstValue>) -> String {
    match value {
        None => "none".into(),
        Some(value) => {
            let mut out = String::from("`");
            // Writing to a string cannot fail.
            let _ = write_value(value, &mut out);
            out.push('`');
            out
        }
    }
}

fn word(kind: TypeKind) -> &'static str {
    match kind {
        TypeKind::Scalar => "a scalar",
        TypeKind::Object => "an object type",
        TypeKind::Interface => "an interface",
        TypeKind::Union => "a union",
        TypeKind::Enum => "an enum",
        TypeKind::InputObject => "an input type",
    }
}

/// Changes of who resolves what; most severe first, then by coordinate.
pub fn ownership(before: &Supergraph, after: &Supergraph) -> Vec<Change> {
    let mut out = Vec::new();
    let mut push = |kind: ChangeKind, coordinate: String, message: String| {
        out.push(Change {
            kind,
            coordinate,
            message,
            deprecated: None,
            ownership: true,
        });
    };
    let find = |graph: &Supergraph, name: &str| {
        let found = graph.subgraphs.iter().find(|(_, s)| &*s.name == name);
        found.map(|(_, s)| s.url.clone())
    };
    for (_, subgraph) in before.subgraphs.iter() {
        let name = &*subgraph.name;
        match find(after, name) {
            None => push(
                SUBGRAPH_REMOVED,
                name.into(),
                format!("the subgraph `{name}` is gone"),
            ),
            // Schemas that are given as files alone say nothing of an address.
            Some(url) if url != subgraph.url && !url.is_empty() && !subgraph.url.is_empty() => {
                push(
                    SUBGRAPH_URL_CHANGED,
                    name.into(),
                    format!(
                        "the subgraph `{name}` was served at `{}` and is at `{url}`",
                        subgraph.url
                    ),
                )
            }
            Some(_) => {}
        }
    }
    for (_, subgraph) in after.subgraphs.iter() {
        let name = &*subgraph.name;
        if find(before, name).is_none() {
            push(
                SUBGRAPH_ADDED,
                name.into(),
                format!("there is a new subgraph `{name}`"),
            );
        }
    }
    let (old, new) = (resolvers(before), resolvers(after));
    let mut coordinates: Vec<&String> = old.keys().filter(|c| new.contains_key(*c)).collect();
    coordinates.sort();
    for coordinate in coordinates {
        let (was, is) = (&old[coordinate], &new[coordinate]);
        let lost: Vec<&String> = was.iter().filter(|s| !is.contains(s)).collect();
        let gained: Vec<&String> = is.iter().filter(|s| !was.contains(s)).collect();
        match (lost.is_empty(), gained.is_empty()) {
            (false, false) => push(
                FIELD_MOVED,
                coordinate.clone(),
                format!(
                    "`{coordinate}` moved from {} to {}",
                    names(&lost),
                    names(&gained)
                ),
            ),
            (true, false) => push(
                RESOLVER_ADDED,
                coordinate.clone(),
                format!("`{coordinate}` is resolved by {} too", names(&gained)),
            ),
            (false, true) => push(
                RESOLVER_REMOVED,
                coordinate.clone(),
                format!(
                    "`{coordinate}` is not resolved by {} any more",
                    names(&lost)
                ),
            ),
            (true, true) => {}
        }
    }
    let (old, new) = (keys(before), keys(after));
    for (ty, subgraph, key) in old.iter().filter(|k| !new.contains(*k)) {
        // A type or subgraph that is gone says so itself.
        if after.schema.type_by_name(ty).is_some() && find(after, subgraph).is_some() {
            let message = format!(
                "`{subgraph}` cannot be entered by `{ty} @key(fields: \"{key}\")` any more"
            );
            push(KEY_REMOVED, ty.clone(), message);
        }
    }
    for (ty, subgraph, key) in new.iter().filter(|k| !old.contains(*k)) {
        if before.schema.type_by_name(ty).is_some() && find(before, subgraph).is_some() {
            let message =
                format!("`{subgraph}` can be entered by `{ty} @key(fields: \"{key}\")` now");
            push(KEY_ADDED, ty.clone(), message);
        }
    }
    sorted(out)
}

fn names(list: &[&String]) -> String {
    let quoted: Vec<String> = list.iter().map(|n| format!("`{n}`")).collect();
    quoted.join(", ")
}

/// Who can resolve each field, `@requires` or not; names in order.
fn resolvers(graph: &Supergraph) -> FastMap<String, Vec<String>> {
    let mut out: FastMap<String, Vec<String>> = FastMap::default();
    for (_, ty) in graph.schema.types().filter(|(_, t)| !t.built_in) {
        for field in &ty.fields {
            let rows = graph.graph.fields[*field].sources.iter();
            let mut names: Vec<String> = rows
                .filter(|s| !s.external && !s.used_overridden)
                .map(|s| graph.subgraphs[s.subgraph].name.to_string())
                .collect();
            names.sort();
            names.dedup();
            out.insert(graph.schema.field_coordinate(*field), names);
        }
    }
    out
}

/// Type, subgraph and key of every entry.
fn keys(graph: &Supergraph) -> Vec<(String, String, String)> {
    let mut seen = FastSet::default();
    let mut out = Vec::new();
    for (id, _) in graph.schema.types() {
        for source in &graph.graph.types[id].sources {
            for key in source.keys.iter().filter(|k| k.resolvable) {
                let mut text = String::new();
                let possible = &graph.schema.types[id].possible;
                let sets = &graph.graph.field_sets;
                write_field_set(&graph.schema, sets, key.fields, possible, &mut text);
                let row = (
                    graph.schema.type_name(id).to_owned(),
                    graph.subgraphs[source.subgraph].name.to_string(),
                    text,
                );
                if seen.insert(row.clone()) {
                    out.push(row);
                }
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(sdl: &str) -> Schema {
        let parsed = ogive_syntax::parse(
            sdl,
            ogive_base::SourceId(0),
            &ogive_syntax::Limits::default(),
        );
        assert!(parsed.errors.is_empty(), "{:?}", parsed.errors);
        let built =
            ogive_schema::build(&[&parsed.document], &ogive_schema::BuildOptions::default());
        assert!(built.errors.is_empty(), "{:?}", built.errors);
        built.schema
    }

    /// One line per change: impact, code, coordinate.
    fn changes(before: &str, after: &str) -> Vec<String> {
        let changes = api(&schema(before), &schema(after));
        changes
            .iter()
            .map(|c| {
                format!(
                    "{} {} {}",
                    c.kind.impact.as_str(),
                    c.kind.code,
                    c.coordinate
                )
            })
            .collect()
    }

    #[test]
    fn outputs_may_promise_more_and_inputs_may_take_more() {
        for (before, after, change) in [
            ("a: Int", "a: Int!", "safe FIELD_TYPE_NARROWED Query.a"),
            ("a: Int!", "a: Int", "breaking FIELD_TYPE_CHANGED Query.a"),
            ("a: [Int]", "a: [Int!]!", "safe FIELD_TYPE_NARROWED Query.a"),
            ("a: [Int]", "a: Int", "breaking FIELD_TYPE_CHANGED Query.a"),
            ("a: Int", "a: String", "breaking FIELD_TYPE_CHANGED Query.a"),
            (
                "a(x: Int!): Int",
                "a(x: Int): Int",
                "safe ARGUMENT_TYPE_WIDENED Query.a(x:)",
            ),
            (
                "a(x: Int): Int",
                "a(x: Int!): Int",
                "breaking ARGUMENT_TYPE_CHANGED Query.a(x:)",
            ),
            (
                "a(x: Int): Int",
                "a: Int",
                "breaking ARGUMENT_REMOVED Query.a(x:)",
            ),
            (
                "a: Int",
                "a(x: Int): Int",
                "dangerous ARGUMENT_ADDED Query.a(x:)",
            ),
            (
                "a: Int",
                "a(x: Int!): Int",
                "breaking REQUIRED_ARGUMENT_ADDED Query.a(x:)",
            ),
            (
                "a: Int",
                "a(x: Int! = 1): Int",
                "dangerous ARGUMENT_ADDED Query.a(x:)",
            ),
            (
                "a(x: Int = 1): Int",
                "a(x: Int = 2): Int",
                "dangerous ARGUMENT_DEFAULT_CHANGED Query.a(x:)",
            ),
            ("a: Int b: Int", "a: Int", "breaking FIELD_REMOVED Query.b"),
            ("a: Int", "a: Int b: Int", "safe FIELD_ADDED Query.b"),
            (
                "a: Int",
                "a: Int @deprecated(reason: \"old\")",
                "safe DEPRECATION_ADDED Query.a",
            ),
            ("a: Int", "\"A\" a: Int", "safe DESCRIPTION_CHANGED Query.a"),
        ] {
            let wrap = |fields: &str| format!("type Query {{ {fields} }}");
            assert_eq!(
                changes(&wrap(before), &wrap(after)),
                [change],
                "{before} to {after}"
            );
        }
    }

    #[test]
    fn members_values_and_interfaces() {
        let base = "type Query { a: U e(i: I): E }\n";
        for (before, after, change) in [
            (
                "union U = A | B",
                "union U = A",
                "breaking UNION_MEMBER_REMOVED U",
            ),
            (
                "union U = A",
                "union U = A | B",
                "dangerous UNION_MEMBER_ADDED U",
            ),
            (
                "enum E { X Y }",
                "enum E { X }",
                "breaking ENUM_VALUE_REMOVED E.Y",
            ),
            (
                "enum E { X }",
                "enum E { X Y }",
                "dangerous ENUM_VALUE_ADDED E.Y",
            ),
            (
                "input I { a: Int b: Int }",
                "input I { a: Int }",
                "breaking INPUT_FIELD_REMOVED I.b",
            ),
            (
                "input I { a: Int }",
                "input I { a: Int b: Int }",
                "dangerous INPUT_FIELD_ADDED I.b",
            ),
            (
                "input I { a: Int }",
                "input I { a: Int b: Int! }",
                "breaking REQUIRED_INPUT_FIELD_ADDED I.b",
            ),
            (
                "input I { a: Int }",
                "input I @oneOf { a: Int }",
                "breaking ONE_OF_ADDED I",
            ),
            (
                "type A implements N { a: Int }",
                "type A { a: Int }",
                "breaking IMPLEMENTATION_REMOVED A",
            ),
            (
                "directive @d on FIELD | QUERY",
                "directive @d on FIELD",
                "breaking DIRECTIVE_LOCATION_REMOVED @d",
            ),
        ] {
            let whole = |part: &str| {
                let mut text = format!("{base}{part}\n");
                for (name, default) in [
                    ("type A", "type A { a: Int }"),
                    ("type B", "type B { b: Int }"),
                    ("interface N", "interface N { a: Int }"),
                    ("union U", "union U = A | B"),
                    ("enum E", "enum E { X }"),
                    ("input I", "input I { a: Int }"),
                ] {
                    if !part.starts_with(name) {
                        text.push_str(default);
                        text.push('\n');
                    }
                }
                text
            };
            assert_eq!(
                changes(&whole(before), &whole(after)),
                [change],
                "{before} to {after}"
            );
        }
    }
}
