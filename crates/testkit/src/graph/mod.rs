//! The abstract model of a federated graph: for every type and field its role in every subgraph.
//!
//! The model is what the generator owns. Everything else follows from it: the SDL of each subgraph, the supergraph,
//! the merged schema of the monolith ([`mod@print`]), what can be reached from where ([`reach`]), and the data
//! ([`crate::world`]). Nothing here goes through composition, so a bug in one reader or printer cannot hide.
//!
//! Reading order: this file (the data), [`clean`] (what must hold), [`reach`], [`generate`], [`mod@print`], [`read`].

pub mod clean;
pub mod field_set;
pub mod generate;
pub mod interface_objects;
pub mod print;
pub mod reach;
pub mod read;

use std::collections::{BTreeMap, BTreeSet};

pub use field_set::{FieldSet, Item};

/// A subgraph, by index into [`Model::subgraphs`].
pub type Sub = usize;

/// A set of subgraphs as a bitset; a model has at most 64.
pub type Subs = u64;

/// The members of a set of subgraphs.
pub fn subs(set: Subs) -> impl Iterator<Item = Sub> {
    (0..64).filter(move |s| set & (1 << s) != 0)
}

/// A federated graph.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Model {
    /// Names of the subgraphs.
    pub subgraphs: Vec<String>,
    /// All types but the specified scalars, in the order in which schemas print them.
    pub types: Vec<TypeModel>,
    /// Minor version of join v0 in which the supergraph is printed: 2 to 5; anything else is 3.
    pub join: u8,
}

/// Kinds of types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the specification's own names")]
pub enum Kind {
    Object,
    Interface,
    Union,
    Enum,
    Scalar,
    Input,
}

impl Kind {
    /// Needs a selection set.
    pub fn is_composite(self) -> bool {
        matches!(self, Kind::Object | Kind::Interface | Kind::Union)
    }
    /// Interface or union.
    pub fn is_abstract(self) -> bool {
        matches!(self, Kind::Interface | Kind::Union)
    }
}

/// One type.
#[derive(Clone, Debug, PartialEq)]
pub struct TypeModel {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: Kind,
    /// Where it is defined.
    pub places: BTreeMap<Sub, Place>,
    /// Fields of an object or interface.
    pub fields: Vec<FieldModel>,
    /// Members of a union or values of an enum, each with the subgraphs that define it.
    pub members: Vec<(String, Subs)>,
    /// Fields of an input object, the same everywhere.
    pub inputs: Vec<InputModel>,
    /// `@inaccessible`
    pub hidden: bool,
    /// Values of an enum that are `@inaccessible`.
    pub hidden_members: BTreeSet<String>,
}

/// One type in one subgraph.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Place {
    /// Its keys.
    pub keys: Vec<KeyModel>,
    /// Interfaces it implements there.
    pub implements: Vec<String>,
    /// An interface that is an `@interfaceObject` there.
    pub interface_object: bool,
    /// A concrete type that is not defined there but known as this interface object. Follows from that; see
    /// [`interface_objects`].
    pub via: Option<String>,
}

/// One `@key`.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyModel {
    /// Its members.
    pub fields: FieldSet,
    /// Whether the subgraph can be entered by it.
    pub resolvable: bool,
}

/// One field of an object or interface.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldModel {
    /// Its name.
    pub name: String,
    /// Its arguments, the same everywhere.
    pub args: Vec<InputModel>,
    /// Its role where it is defined.
    pub sources: BTreeMap<Sub, FieldSource>,
    /// `@inaccessible`
    pub hidden: bool,
}

/// One field in one subgraph.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldSource {
    /// Its type there.
    pub ty: Ty,
    /// `@external`
    pub external: bool,
    /// `@requires`
    pub requires: Option<FieldSet>,
    /// `@provides`
    pub provides: Option<FieldSet>,
    /// `@override(from:)`
    pub overrides: Option<Sub>,
    /// `@override(label:)`: the override counts while the label is on.
    pub label: Option<String>,
    /// Another subgraph overrides this one.
    pub overridden: bool,
}

impl FieldSource {
    /// A plain field.
    pub fn plain(ty: Ty) -> Self {
        FieldSource {
            ty,
            external: false,
            requires: None,
            provides: None,
            overrides: None,
            label: None,
            overridden: false,
        }
    }
    /// Whether the subgraph resolves the field (possibly only with `@requires`).
    pub fn active(&self) -> bool {
        !self.external && !self.overridden
    }
}

/// An argument or an input object's field.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct InputModel {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: Ty,
    /// Its default, as GraphQL text.
    pub default: Option<String>,
    /// Known to these subgraphs only, and so to no client; 0 for an input that is the same everywhere.
    pub only: Subs,
    /// Subgraphs that would take null where the others and the merged schema do not.
    pub loose: Subs,
    /// `@inaccessible`
    pub hidden: bool,
}

impl InputModel {
    /// An input that is the same everywhere.
    pub fn plain(name: &str, ty: Ty, default: Option<String>) -> Self {
        InputModel {
            name: name.to_owned(),
            ty,
            default,
            ..InputModel::default()
        }
    }
    /// Whether clients may give it.
    pub fn is_visible(&self) -> bool {
        self.only == 0 && !self.hidden
    }
    /// Whether a subgraph defines it.
    pub fn is_in(&self, sub: Sub) -> bool {
        self.only == 0 || self.only & (1 << sub) != 0
    }
}

/// A type reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ty {
    /// A named type.
    Named(String),
    /// A list.
    List(Box<Ty>),
    /// A non-null type.
    NonNull(Box<Ty>),
}

impl Ty {
    /// A nullable named type.
    pub fn named(name: &str) -> Ty {
        Ty::Named(name.to_owned())
    }
    /// This, non-null.
    #[must_use]
    pub fn non_null(self) -> Ty {
        match self {
            Ty::NonNull(_) => self,
            ty => Ty::NonNull(Box::new(ty)),
        }
    }
    /// A list of this.
    #[must_use]
    pub fn list(self) -> Ty {
        Ty::List(Box::new(self))
    }
    /// The named type inside.
    pub fn name(&self) -> &str {
        match self {
            Ty::Named(name) => name,
            Ty::List(inner) | Ty::NonNull(inner) => inner.name(),
        }
    }
    /// This without the outermost non-null.
    pub fn nullable(&self) -> &Ty {
        match self {
            Ty::NonNull(inner) => inner,
            ty => ty,
        }
    }
    /// Whether the outermost layer is non-null.
    pub fn is_non_null(&self) -> bool {
        matches!(self, Ty::NonNull(_))
    }
    /// Whether it is a list under an optional non-null.
    pub fn is_list(&self) -> bool {
        matches!(self.nullable(), Ty::List(_))
    }
    /// The type that accepts both: nullable wherever one is. The lists and names must agree.
    #[must_use]
    pub fn widen(&self, other: &Ty) -> Ty {
        let inner = match (self.nullable(), other.nullable()) {
            (Ty::List(a), Ty::List(b)) => a.widen(b).list(),
            (a, _) => a.clone(),
        };
        if self.is_non_null() && other.is_non_null() {
            inner.non_null()
        } else {
            inner
        }
    }
    /// The type that both accept: non-null wherever one is. This is what data must satisfy.
    #[must_use]
    pub fn narrow(&self, other: &Ty) -> Ty {
        let inner = match (self.nullable(), other.nullable()) {
            (Ty::List(a), Ty::List(b)) => a.narrow(b).list(),
            (a, _) => a.clone(),
        };
        if self.is_non_null() || other.is_non_null() {
            inner.non_null()
        } else {
            inner
        }
    }
}

impl Default for Ty {
    fn default() -> Self {
        Ty::named("Int")
    }
}

impl std::fmt::Display for Ty {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Ty::Named(name) => f.write_str(name),
            Ty::List(inner) => write!(f, "[{inner}]"),
            Ty::NonNull(inner) => write!(f, "{inner}!"),
        }
    }
}

/// The specified scalars.
pub const SCALARS: [&str; 5] = ["Int", "Float", "String", "Boolean", "ID"];

impl Model {
    /// The type of that name; `None` for specified scalars.
    pub fn ty(&self, name: &str) -> Option<&TypeModel> {
        self.types.iter().find(|t| t.name == name)
    }
    /// The type of that name, to be changed.
    pub fn ty_mut(&mut self, name: &str) -> Option<&mut TypeModel> {
        self.types.iter_mut().find(|t| t.name == name)
    }
    /// The kind of a type; specified scalars are scalars.
    pub fn kind(&self, name: &str) -> Kind {
        self.ty(name).map_or(Kind::Scalar, |t| t.kind)
    }
    /// The field of an object or interface.
    pub fn field(&self, ty: &str, field: &str) -> Option<&FieldModel> {
        self.ty(ty)?.field(field)
    }
    /// Names of the object types a value of this composite type can have in a subgraph.
    pub fn possible_in(&self, name: &str, sub: Sub) -> Vec<&str> {
        let Some(ty) = self.ty(name) else {
            return Vec::new();
        };
        if !ty.places.contains_key(&sub) {
            return Vec::new();
        }
        match ty.kind {
            Kind::Object => vec![&ty.name],
            Kind::Interface if self.stands_alone(name) => {
                let object = ty.places[&sub].interface_object;
                object.then_some(&*ty.name).into_iter().collect()
            }
            Kind::Union => ty
                .members
                .iter()
                .filter(|(_, s)| s & (1 << sub) != 0)
                .map(|(m, _)| m.as_str())
                .collect(),
            Kind::Interface => self
                .types
                .iter()
                .filter(|t| {
                    t.kind == Kind::Object
                        && t.places
                            .get(&sub)
                            .is_some_and(|p| p.implements.iter().any(|i| i == name))
                })
                .map(|t| t.name.as_str())
                .collect(),
            _ => Vec::new(),
        }
    }
    /// Names of the object types a value of this composite type can have in the merged schema.
    pub fn possible(&self, name: &str) -> Vec<&str> {
        let Some(ty) = self.ty(name) else {
            return Vec::new();
        };
        match ty.kind {
            Kind::Object => vec![&ty.name],
            Kind::Union => ty.members.iter().map(|(m, _)| m.as_str()).collect(),
            Kind::Interface if self.stands_alone(name) => vec![&ty.name],
            Kind::Interface => self
                .types
                .iter()
                .filter(|t| t.kind == Kind::Object && t.implements(name))
                .map(|t| t.name.as_str())
                .collect(),
            _ => Vec::new(),
        }
    }
    /// What the data of a field may be: concrete types of an abstract field or values of an enum that every subgraph
    /// with the field knows. All concrete types or values of other kinds.
    pub fn domain(&self, field: &FieldModel) -> Vec<&str> {
        let Some(name) = field.sources.values().next().map(|s| s.ty.name()) else {
            return Vec::new();
        };
        let Some(ty) = self.ty(name) else {
            return Vec::new();
        };
        let everywhere = field.sources.keys().fold(0, |set: Subs, s| set | 1 << s);
        match ty.kind {
            Kind::Object => vec![&ty.name],
            Kind::Enum => ty
                .members
                .iter()
                .filter(|(_, s)| s & everywhere == everywhere)
                .map(|(m, _)| m.as_str())
                .collect(),
            Kind::Union | Kind::Interface => self
                .possible(name)
                .into_iter()
                .filter(|p| {
                    field
                        .sources
                        .keys()
                        .all(|s| self.possible_in(name, *s).contains(p))
                })
                .collect(),
            Kind::Scalar | Kind::Input => Vec::new(),
        }
    }
    /// What clients see: without what is `@inaccessible` and what only some subgraphs accept.
    #[must_use]
    pub fn visible(&self) -> Model {
        let mut out = self.clone();
        let hidden: BTreeSet<&str> = self
            .types
            .iter()
            .filter(|t| t.hidden)
            .map(|t| t.name.as_str())
            .collect();
        out.types.retain(|t| !t.hidden);
        for ty in &mut out.types {
            ty.members
                .retain(|(m, _)| !hidden.contains(m.as_str()) && !ty.hidden_members.contains(m));
            ty.inputs.retain(InputModel::is_visible);
            ty.fields
                .retain(|f| !f.hidden && !f.sources.values().any(|s| hidden.contains(s.ty.name())));
            for field in &mut ty.fields {
                field.args.retain(InputModel::is_visible);
            }
            for place in ty.places.values_mut() {
                place.implements.retain(|i| !hidden.contains(i.as_str()));
            }
        }
        out
    }
    /// The graph as it is while all labels are on, or off.
    #[must_use]
    pub fn labelled(&self, on: bool) -> Model {
        let mut out = self.clone();
        for field in out.types.iter_mut().flat_map(|t| &mut t.fields) {
            let moves: Vec<(Sub, Sub)> = field
                .sources
                .keys()
                .filter_map(|to| Some((*to, field.label(*to).and(field.taken_from(*to))?)))
                .collect();
            for (to, from) in moves {
                let lost = if on { from } else { to };
                if let Some(source) = field.sources.get_mut(&lost) {
                    source.overridden = true;
                }
            }
        }
        out
    }
    /// Labels of progressive overrides.
    pub fn labels(&self) -> BTreeSet<&str> {
        let fields = self.types.iter().flat_map(|t| &t.fields);
        fields
            .flat_map(|f| f.sources.values())
            .filter_map(|s| s.label.as_deref())
            .collect()
    }
    /// Whether it is an interface that nothing implements, but that some subgraph has as an interface object: then it is
    /// the only type that its objects have.
    pub fn stands_alone(&self, name: &str) -> bool {
        let objects = self.ty(name).filter(|t| t.kind == Kind::Interface);
        let is_object = objects.is_some_and(|t| t.places.values().any(|p| p.interface_object));
        let mut others = self.types.iter().filter(|t| t.kind == Kind::Object);
        is_object && !others.any(|t| t.implements(name))
    }
    /// Whether any subgraph has a key for the type.
    pub fn is_entity(&self, name: &str) -> bool {
        self.ty(name).is_some_and(TypeModel::is_entity)
    }
}

impl TypeModel {
    /// A type that is defined nowhere yet.
    pub fn new(name: &str, kind: Kind) -> Self {
        TypeModel {
            name: name.to_owned(),
            kind,
            places: BTreeMap::new(),
            fields: Vec::new(),
            members: Vec::new(),
            inputs: Vec::new(),
            hidden: false,
            hidden_members: BTreeSet::new(),
        }
    }
    /// The field of that name.
    pub fn field(&self, name: &str) -> Option<&FieldModel> {
        self.fields.iter().find(|f| f.name == name)
    }
    /// The field of that name, to be changed.
    pub fn field_mut(&mut self, name: &str) -> Option<&mut FieldModel> {
        self.fields.iter_mut().find(|f| f.name == name)
    }
    /// Whether any subgraph has a key for it.
    pub fn is_entity(&self) -> bool {
        self.places.values().any(|p| !p.keys.is_empty())
    }
    /// Whether it declares the interface in any subgraph.
    pub fn implements(&self, interface: &str) -> bool {
        self.places
            .values()
            .any(|p| p.implements.iter().any(|i| i == interface))
    }
    /// Interfaces it declares in any subgraph, in a stable order.
    pub fn interfaces(&self) -> Vec<&str> {
        let mut all: Vec<&str> = Vec::new();
        for place in self.places.values() {
            for interface in &place.implements {
                if !all.contains(&interface.as_str()) {
                    all.push(interface);
                }
            }
        }
        all
    }
    /// Subgraphs that define it.
    pub fn subs(&self) -> Subs {
        self.places.keys().fold(0, |set, s| set | 1 << s)
    }
    /// Whether its only key is its name, so that there is one of it.
    pub fn is_single(&self) -> bool {
        self.places.values().any(|p| {
            p.keys
                .iter()
                .any(|k| k.fields.names().all(|n| n == "__typename") && k.fields.items.len() == 1)
        })
    }
    /// Whether it is `Query` or `Mutation`.
    pub fn is_root(&self) -> bool {
        self.name == "Query" || self.name == "Mutation"
    }
}

impl FieldModel {
    /// A field that is defined nowhere yet.
    pub fn new(name: &str) -> Self {
        FieldModel {
            name: name.to_owned(),
            args: Vec::new(),
            sources: BTreeMap::new(),
            hidden: false,
        }
    }
    /// Its type in the merged schema: nullable wherever one subgraph says so.
    pub fn merged_ty(&self) -> Option<Ty> {
        let mut types = self
            .sources
            .values()
            .filter(|s| !s.overridden)
            .map(|s| &s.ty);
        let first = types.next()?.clone();
        Some(types.fold(first, |a, b| a.widen(b)))
    }
    /// The type that its data must satisfy in every subgraph.
    pub fn data_ty(&self) -> Option<Ty> {
        let mut types = self.sources.values().map(|s| &s.ty);
        let first = types.next()?.clone();
        Some(types.fold(first, |a, b| a.narrow(b)))
    }
    /// The subgraph that `sub` takes it from by an override, if that subgraph has it (any more).
    pub fn taken_from(&self, sub: Sub) -> Option<Sub> {
        let from = self.sources.get(&sub)?.overrides?;
        self.sources.contains_key(&from).then_some(from)
    }
    /// The label while which is off `sub` does not resolve it.
    pub fn label(&self, sub: Sub) -> Option<&str> {
        self.taken_from(sub)?;
        self.sources.get(&sub)?.label.as_deref()
    }
    /// Subgraphs that resolve it, with or without `@requires`.
    pub fn active(&self) -> Subs {
        self.sources
            .iter()
            .filter(|(_, s)| s.active())
            .fold(0, |set, (s, _)| set | 1 << s)
    }
    /// Its `@requires`, wherever it is.
    pub fn requires(&self) -> Option<(Sub, &FieldSet)> {
        self.sources
            .iter()
            .find_map(|(sub, s)| s.requires.as_ref().map(|r| (*sub, r)))
    }
}
