//! Subgraphs to one merged type system.
//!
//! Order: names of types are grouped; implements and memberships are merged (subtyping needs them); overrides are
//! resolved; fields, arguments and input fields; enums, which need to know where they are used; directive
//! definitions. Types are kept in order of their names, sources in order of their subgraphs.
//!
//! Invariants: rows are made for every name, whatever was wrong, so tables are closed; ids of subgraphs' rows are
//! mapped to merged ids by [`Merged::sub_types`] and [`Merged::sub_fields`].

mod again;
mod arguments;
pub(crate) mod auth;
mod definitions;
mod directives;
mod enums;
mod features;
mod fields;
mod inputs;
mod overrides;
mod types;

use ogive_base::{BitSet, FastMap, IdVec, Interner, Symbol, define_id};
use ogive_federation::vocabulary::Version;
use ogive_schema::{ConstValue, FieldId, InputId, OperationKind, TypeId, TypeKind, Wrapping};

use crate::{
    codes::{self, hint},
    report::{Place, Report, Stage, quoted},
    spec::WORDS,
    subgraph::Subgraph,
};

pub use directives::{Applied, DirectiveRow, Features, feature_of};

define_id! {
    /// A merged type.
    pub struct MTypeId;
}
define_id! {
    /// A field of a merged object or interface.
    pub struct MFieldId;
}

/// No merged row stands for this one.
pub const NONE: u32 = u32::MAX;

/// A merged type reference.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Ref {
    /// The named type.
    pub ty: MTypeId,
    /// Lists and non-nulls around it.
    pub wrapping: Wrapping,
}

impl Ref {
    /// Stands where no subgraph states a type; an error says so elsewhere.
    pub(crate) const UNKNOWN: Ref = Ref {
        ty: MTypeId(0),
        wrapping: Wrapping::NULLABLE,
    };
}

/// One merged type.
#[derive(Clone, Debug)]
pub struct TypeRow {
    /// Its name.
    pub name: Symbol,
    /// Its kind.
    pub kind: TypeKind,
    /// A specified scalar.
    pub built_in: bool,
    /// Who defines it, in order of subgraphs.
    pub sources: Vec<(u32, TypeId)>,
    /// Interfaces it implements.
    pub interfaces: Vec<MTypeId>,
    /// Members of a union.
    pub members: Vec<MTypeId>,
    /// Object types a value can have.
    pub possible: BitSet,
    /// Fields.
    pub fields: Vec<MFieldId>,
    /// Input fields.
    pub inputs: Vec<InputRow>,
    /// Enum values.
    pub values: Vec<ValueRow>,
    /// Description.
    pub description: Option<Box<str>>,
    /// Merged directives.
    pub directives: Vec<Applied>,
    /// Some argument or input field is of this type.
    pub used_as_input: bool,
    /// Some field is of this type.
    pub used_as_output: bool,
}

/// One merged field.
#[derive(Clone, Debug)]
pub struct FieldRow {
    /// Its name.
    pub name: Symbol,
    /// Its type.
    pub parent: MTypeId,
    /// Who mentions it, overridden and unused ones left out.
    pub sources: Vec<(u32, FieldId)>,
    /// What it returns.
    pub ty: Ref,
    /// Whether some subgraph says otherwise, those that lost it to an override included.
    pub is_uneven: bool,
    /// Arguments.
    pub args: Vec<InputRow>,
    /// Description.
    pub description: Option<Box<str>>,
    /// Merged directives.
    pub directives: Vec<Applied>,
    /// `@join__field` per source, if any is needed.
    pub join: Vec<JoinField>,
    /// Comes from interface objects only.
    pub via_interface_object: bool,
}

/// One `@join__field`.
#[derive(Clone, Debug)]
pub struct JoinField {
    /// The subgraph.
    pub subgraph: u32,
    /// Arguments after `graph`, as text.
    pub args: String,
}

/// One merged argument or input field.
#[derive(Clone, Debug)]
pub struct InputRow {
    /// Its name.
    pub name: Symbol,
    /// Its type.
    pub ty: Ref,
    /// Its default.
    pub default: Option<ConstValue>,
    /// Who defines it.
    pub sources: Vec<(u32, InputId)>,
    /// Description.
    pub description: Option<Box<str>>,
    /// Merged directives.
    pub directives: Vec<Applied>,
    /// `@join__field` per source, if any is needed.
    pub join: Vec<JoinField>,
}

/// One merged enum value.
#[derive(Clone, Debug)]
pub struct ValueRow {
    /// Its name.
    pub name: Symbol,
    /// Who defines it.
    pub sources: Vec<(u32, ogive_schema::EnumValueId)>,
    /// Description.
    pub description: Option<Box<str>>,
    /// Merged directives.
    pub directives: Vec<Applied>,
}

/// The merged type system.
#[derive(Clone, Debug, Default)]
pub struct Merged {
    /// All names.
    pub names: Interner,
    /// Types.
    pub types: IdVec<MTypeId, TypeRow>,
    /// Types by name.
    pub by_name: FastMap<Symbol, MTypeId>,
    /// Fields.
    pub fields: IdVec<MFieldId, FieldRow>,
    /// Fields by type and name.
    pub field_by_name: FastMap<(MTypeId, Symbol), MFieldId>,
    /// Per subgraph and its types.
    pub sub_types: Vec<Vec<u32>>,
    /// Per subgraph and its fields.
    pub sub_fields: Vec<Vec<u32>>,
    /// Per subgraph and its names: the merged symbol.
    pub sub_names: Vec<Vec<Symbol>>,
    /// `join__Graph` values.
    pub graph_names: Vec<String>,
    /// Directive definitions that are merged.
    pub directives: Vec<DirectiveRow>,
    /// Linked features.
    pub features: Features,
    /// Highest federation version any subgraph links.
    pub federation: Option<Version>,
    /// Description of the schema.
    pub description: Option<Box<str>>,
    /// Directives of the schema.
    pub schema_directives: Vec<Applied>,
    /// Per type, bits of the known directives applied in it.
    pub(crate) used_by: Vec<u32>,
    /// Bits of those applied outside of types.
    pub(crate) used_elsewhere: u32,
}

impl Merged {
    /// Text of a name.
    pub fn name(&self, symbol: Symbol) -> &str {
        self.names.text(symbol)
    }
    /// Name of a type.
    pub fn type_name(&self, ty: MTypeId) -> &str {
        self.names.text(self.types[ty].name)
    }
    /// `Type.field`
    pub fn coordinate(&self, field: MFieldId) -> String {
        let row = &self.fields[field];
        format!("{}.{}", self.type_name(row.parent), self.name(row.name))
    }
    /// The merged type of a subgraph's type.
    pub fn of(&self, sub: u32, ty: TypeId) -> Option<MTypeId> {
        let id = self.sub_types[sub as usize][ty.0 as usize];
        (id != NONE).then_some(MTypeId(id))
    }
    /// A reference as text.
    pub fn display(&self, ty: Ref) -> String {
        ty.wrapping.display(self.type_name(ty.ty))
    }
    /// Root operation types.
    pub fn root(&self, kind: OperationKind) -> Option<MTypeId> {
        let name = self.names.get(root_name(kind))?;
        self.by_name.get(&name).copied()
    }
    /// Whether every value of `a` is one of `b`.
    pub fn is_subtype(&self, a: Ref, b: Ref) -> bool {
        let (mut x, mut y) = (a.wrapping, b.wrapping);
        loop {
            if y.is_non_null() && !x.is_non_null() {
                return false;
            }
            match (x.nullable().item(), y.nullable().item()) {
                (None, None) => break,
                (Some(p), Some(q)) => (x, y) = (p, q),
                _ => return false,
            }
        }
        a.ty == b.ty
            || self.types[a.ty].interfaces.contains(&b.ty)
            || self.types[b.ty].members.contains(&a.ty)
    }
}

/// Default name of a root type.
pub fn root_name(kind: OperationKind) -> &'static str {
    match kind {
        OperationKind::Query => "Query",
        OperationKind::Mutation => "Mutation",
        OperationKind::Subscription => "Subscription",
    }
}

/// Merging in progress.
pub(crate) struct Merger<'a> {
    pub(crate) subs: &'a mut [Subgraph],
    pub(crate) out: Merged,
    pub(crate) report: &'a mut Report,
}

/// Merges subgraphs that were validated one by one, in order of their names.
pub fn merge(subs: &mut [Subgraph], report: &mut Report) -> Merged {
    let mut merger = Merger {
        subs,
        out: Merged::default(),
        report,
    };
    merger.names();
    merger.collect_types();
    merger.out.used_by = vec![0; merger.out.types.len()];
    merger.shallow();
    merger.report.mark(Stage::Overrides, 0);
    merger.overrides();
    merger.report.mark(Stage::Features, 0);
    merger.link_features();
    merger.composites();
    merger.input_objects();
    merger.report.mark(Stage::After, 0);
    merger.interface_objects();
    merger.join_fields();
    merger.enums();
    merger.type_directives();
    merger.report.mark(Stage::After, 0);
    merger.interface_authorisation();
    let of_types = std::mem::take(&mut merger.out.features.used);
    merger.directive_definitions();
    merger.schema_definition();
    merger.out.used_elsewhere = mask(&merger.out.features.used);
    for (now, before) in merger.out.features.used.iter_mut().zip(of_types) {
        *now |= before;
    }
    merger.out
}

/// Bits of what is set.
fn mask(used: &[bool; WORDS]) -> u32 {
    (0..WORDS).filter(|i| used[*i]).fold(0, |m, i| m | 1 << i)
}

impl Merger<'_> {
    fn names(&mut self) {
        let mut taken: FastMap<String, u32> = FastMap::default();
        for sub in self.subs.iter() {
            let names = &sub.schema.names;
            let mapped = (0..names.len())
                .map(|s| self.out.names.intern(names.text(Symbol(s as u32))))
                .collect();
            self.out.sub_names.push(mapped);
            self.out.graph_names.push(graph_name(&sub.name, &mut taken));
            let implied = sub
                .links
                .all
                .iter()
                .filter_map(|l| Some((crate::spec::implied_federation(l.spec?)?, l)))
                .max_by_key(|(version, _)| *version);
            self.out.federation = self.out.federation.max(sub.version);
            if let Some((version, link)) = implied.filter(|(v, _)| Some(*v) > sub.version) {
                let written = sub
                    .version
                    .map_or("federation 1".to_owned(), |v| format!("federation {v}"));
                self.report.hint(
                    hint::IMPLICITLY_UPGRADED_FEDERATION_VERSION,
                    "@link",
                    format!(
                        "subgraph `{}` of {written} links `{}` and is taken for federation {version}",
                        sub.name, link.url
                    ),
                    &[(sub.place(link.span), String::new())],
                );
                self.out.federation = self.out.federation.max(Some(version));
            }
        }
    }

    /// Groups types by name; root types go by their default names.
    fn collect_types(&mut self) {
        let mut groups: FastMap<Symbol, usize> = FastMap::default();
        let mut rows: Vec<TypeRow> = Vec::new();
        let mut open = |rows: &mut Vec<TypeRow>, name: Symbol, kind: TypeKind, built_in: bool| {
            *groups.entry(name).or_insert_with(|| {
                rows.push(TypeRow::new(name, kind, built_in));
                rows.len() - 1
            })
        };
        for (i, sub) in self.subs.iter().enumerate() {
            for (ty, def) in sub.schema.types() {
                let name = self.out.sub_names[i][def.name.0 as usize];
                if def.built_in {
                    if def.kind == TypeKind::Scalar {
                        open(&mut rows, name, def.kind, true);
                    }
                    continue;
                }
                if sub.machinery.contains(ty.0) {
                    continue;
                }
                let name = match sub.root_kind(ty) {
                    Some(kind) => self.out.names.intern(root_name(kind)),
                    None => name,
                };
                let kind = if sub.types[ty].interface_object {
                    TypeKind::Interface
                } else {
                    def.kind
                };
                let at = open(&mut rows, name, kind, false);
                rows[at].sources.push((i as u32, ty));
            }
        }
        let query = self.out.names.intern("Query");
        open(&mut rows, query, TypeKind::Object, false);
        rows.sort_by(|a, b| self.out.names.text(a.name).cmp(self.out.names.text(b.name)));
        self.out.types = IdVec::from_vec(rows);
        self.out.by_name = self
            .out
            .types
            .iter()
            .map(|(id, row)| (row.name, id))
            .collect();
        for (i, sub) in self.subs.iter().enumerate() {
            let mut map = vec![NONE; sub.schema.types.len()];
            for (ty, def) in sub.schema.types() {
                if def.built_in
                    && let Some(id) = self
                        .out
                        .by_name
                        .get(&self.out.sub_names[i][def.name.0 as usize])
                {
                    map[ty.0 as usize] = id.0;
                }
            }
            self.out.sub_types.push(map);
            self.out
                .sub_fields
                .push(vec![NONE; sub.schema.fields.len()]);
        }
        for (id, row) in self.out.types.iter() {
            for (sub, ty) in &row.sources {
                self.out.sub_types[*sub as usize][ty.0 as usize] = id.0;
            }
        }
        self.kinds();
    }

    fn kinds(&mut self) {
        for id in self.out.types.ids() {
            let row = &self.out.types[id];
            let kind_of = |(sub, ty): &(u32, TypeId)| {
                let s = &self.subs[*sub as usize];
                if s.types[*ty].interface_object {
                    TypeKind::Interface
                } else {
                    s.schema.types[*ty].kind
                }
            };
            if row.sources.iter().all(|s| kind_of(s) == row.kind) {
                continue;
            }
            let name = self.out.type_name(id).to_owned();
            let at: Vec<(Place, String)> = row
                .sources
                .iter()
                .map(|s| {
                    let sub = &self.subs[s.0 as usize];
                    let object = if sub.types[s.1].interface_object {
                        "interface object"
                    } else {
                        kind_word(sub.schema.types[s.1].kind)
                    };
                    (
                        sub.place(sub.schema.types[s.1].span),
                        format!("{object} in `{}`", sub.name),
                    )
                })
                .collect();
            self.report.error_help(
                codes::TYPE_KIND_MISMATCH,
                &name,
                format!("`{name}` is not of the same kind in all subgraphs"),
                "make it the same kind everywhere, or rename one".into(),
                &at,
            );
        }
    }

    /// Implements, memberships, possible types, value type and entity hints.
    fn shallow(&mut self) {
        for id in self.out.types.ids() {
            let row = &self.out.types[id];
            let mut interfaces: Vec<MTypeId> = Vec::new();
            let mut members: Vec<MTypeId> = Vec::new();
            for (sub, ty) in &row.sources {
                let def = &self.subs[*sub as usize].schema.types[*ty];
                for (list, from) in [
                    (&mut interfaces, &def.interfaces),
                    (&mut members, &def.members),
                ] {
                    for t in from {
                        if let Some(t) = self.out.of(*sub, *t)
                            && !list.contains(&t)
                        {
                            list.push(t);
                        }
                    }
                }
            }
            let row = &mut self.out.types[id];
            row.interfaces = interfaces;
            row.members = members;
        }
        for id in self.out.types.ids() {
            match self.out.types[id].kind {
                TypeKind::Object => {
                    self.out.types[id].possible.insert(id.0);
                    for interface in self.out.types[id].interfaces.clone() {
                        self.out.types[interface].possible.insert(id.0);
                    }
                }
                TypeKind::Union => {
                    self.out.types[id].possible =
                        self.out.types[id].members.iter().map(|m| m.0).collect();
                }
                _ => {}
            }
        }
        for id in self.out.types.ids() {
            self.report.mark(Stage::Uneven, id.0);
            self.uneven(id);
        }
    }

    /// Works on one type, and notes which known directives it applies.
    pub(crate) fn item(&mut self, stage: Stage, id: MTypeId, work: impl FnOnce(&mut Self)) {
        self.report.mark(stage, id.0);
        let before = std::mem::take(&mut self.out.features.used);
        work(self);
        let used = &mut self.out.features.used;
        self.out.used_by[id.0 as usize] |= mask(used);
        for (now, before) in used.iter_mut().zip(before) {
            *now |= before;
        }
    }

    /// Hints about what only some subgraphs say of a type.
    fn uneven(&mut self, id: MTypeId) {
        let row = &self.out.types[id];
        if row.sources.len() < 2 {
            return;
        }
        let name = self.out.type_name(id).to_owned();
        if row.kind == TypeKind::Union {
            for member in row.members.clone() {
                let (with, without) = self.split(id, |m, sub, ty| {
                    m.subs[sub as usize].schema.types[ty]
                        .members
                        .iter()
                        .any(|t| m.out.of(sub, *t) == Some(member))
                });
                if !without.is_empty() {
                    let member = self.out.type_name(member).to_owned();
                    self.report.hint(
                        hint::INCONSISTENT_UNION_MEMBER,
                        &name,
                        format!(
                            "`{member}` is a member of `{name}` in {} and not in {}",
                            self.sub_names(&with),
                            self.sub_names(&without)
                        ),
                        &self.type_places(id),
                    );
                }
            }
            return;
        }
        if row.kind != TypeKind::Object
            || [
                OperationKind::Query,
                OperationKind::Mutation,
                OperationKind::Subscription,
            ]
            .iter()
            .any(|k| root_name(*k) == name)
        {
            return;
        }
        let (with, without) = self.split(id, |m, sub, ty| {
            !m.subs[sub as usize].types[ty].keys.is_empty()
        });
        if !with.is_empty() && !without.is_empty() {
            self.report.hint(
                hint::INCONSISTENT_ENTITY,
                &name,
                format!(
                    "`{name}` has a `@key` in {} and none in {}",
                    self.sub_names(&with),
                    self.sub_names(&without)
                ),
                &self.type_places(id),
            );
        }
    }

    /// Sources of a type for which `test` holds, and the others.
    pub(crate) fn split(
        &self,
        id: MTypeId,
        test: impl Fn(&Self, u32, TypeId) -> bool,
    ) -> (Vec<u32>, Vec<u32>) {
        let (mut with, mut without) = (Vec::new(), Vec::new());
        for (sub, ty) in &self.out.types[id].sources {
            if test(self, *sub, *ty) {
                with.push(*sub);
            } else {
                without.push(*sub);
            }
        }
        (with, without)
    }

    /// Names of subgraphs for a message.
    pub(crate) fn sub_names(&self, subs: &[u32]) -> String {
        let names = quoted(subs.iter().map(|s| &*self.subs[*s as usize].name));
        if subs.len() == 1 {
            format!("subgraph {names}")
        } else {
            format!("subgraphs {names}")
        }
    }

    /// Where a type is defined.
    pub(crate) fn type_places(&self, id: MTypeId) -> Vec<(Place, String)> {
        self.out.types[id]
            .sources
            .iter()
            .map(|(sub, ty)| {
                let s = &self.subs[*sub as usize];
                (s.place(s.schema.types[*ty].span), String::new())
            })
            .collect()
    }

    /// Whether a merged field of that name in subgraph `sub` exists.
    pub(crate) fn sub_field(&self, sub: u32, ty: TypeId, name: Symbol) -> Option<FieldId> {
        let s = &self.subs[sub as usize].schema;
        let text = self.out.names.text(name);
        s.field_by_name(ty, text)
    }

    /// The most frequent description; ties go to the first subgraph.
    pub(crate) fn description(
        &mut self,
        about: &str,
        found: &[(Place, Option<&str>)],
    ) -> Option<Box<str>> {
        let mut counts: Vec<(&str, usize)> = Vec::new();
        for text in found
            .iter()
            .filter_map(|(_, d)| *d)
            .filter(|d| !d.is_empty())
        {
            match counts.iter_mut().find(|(t, _)| *t == text) {
                Some((_, n)) => *n += 1,
                None => counts.push((text, 1)),
            }
        }
        let mut best: Option<(&str, usize)> = None;
        for (text, n) in &counts {
            if best.is_none_or(|(_, most)| *n > most) {
                best = Some((text, *n));
            }
        }
        if counts.len() > 1 {
            let at: Vec<(Place, String)> = found
                .iter()
                .filter(|(_, d)| d.is_some())
                .map(|(p, _)| (*p, String::new()))
                .collect();
            self.report.hint(
                hint::INCONSISTENT_DESCRIPTION,
                about,
                format!(
                    "`{about}` is described in {} ways; the most frequent is used",
                    counts.len()
                ),
                &at,
            );
        }
        best.map(|(text, _)| text.into())
    }
}

impl TypeRow {
    fn new(name: Symbol, kind: TypeKind, built_in: bool) -> Self {
        TypeRow {
            name,
            kind,
            built_in,
            sources: Vec::new(),
            interfaces: Vec::new(),
            members: Vec::new(),
            possible: BitSet::new(),
            fields: Vec::new(),
            inputs: Vec::new(),
            values: Vec::new(),
            description: None,
            directives: Vec::new(),
            used_as_input: false,
            used_as_output: false,
        }
    }
}

/// A kind in words.
pub fn kind_word(kind: TypeKind) -> &'static str {
    match kind {
        TypeKind::Scalar => "scalar",
        TypeKind::Object => "object type",
        TypeKind::Interface => "interface",
        TypeKind::Union => "union",
        TypeKind::Enum => "enum",
        TypeKind::InputObject => "input object",
    }
}

/// The `join__Graph` value of a subgraph.
fn graph_name(name: &str, taken: &mut FastMap<String, u32>) -> String {
    let mut out: String = name
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '_' {
                c.to_ascii_uppercase()
            } else {
                '_'
            }
        })
        .collect();
    if out.starts_with(|c: char| c.is_ascii_digit()) {
        out.insert(0, '_');
    }
    let digits = out.bytes().rev().take_while(u8::is_ascii_digit).count();
    if digits > 0 && digits < out.len() && out.as_bytes()[out.len() - digits - 1] == b'_' {
        out.push('_');
    }
    let count = taken.entry(out.clone()).or_insert(0);
    *count += 1;
    if *count > 1 {
        format!("{out}_{}", *count - 1)
    } else {
        out
    }
}
