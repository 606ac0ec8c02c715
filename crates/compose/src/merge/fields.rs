//! Merging objects and interfaces: fields, their types and who may resolve them.

use std::fmt::Write;

use ogive_base::{FastMap, Symbol};
use ogive_schema::{FieldId, OperationKind, TypeKind};

use super::{
    FieldRow, JoinField, MFieldId, MTypeId, Merger, NONE, Ref, root_name,
    types::{Position, Stated},
};
use crate::{
    codes::{self, hint},
    report::{Place, Stage},
    spec::Word,
};

impl Merger<'_> {
    /// Merges the fields of every object and interface.
    pub(crate) fn composites(&mut self) {
        for id in self.out.types.ids() {
            if matches!(
                self.out.types[id].kind,
                TypeKind::Object | TypeKind::Interface
            ) {
                self.item(Stage::Composite, id, |m| m.composite(id));
            }
        }
    }

    pub(super) fn composite(&mut self, id: MTypeId) {
        let sources = self.out.types[id].sources.clone();
        let mut order: Vec<(Symbol, Vec<(u32, FieldId)>)> = Vec::new();
        let mut at: FastMap<Symbol, usize> = FastMap::default();
        for (sub, ty) in &sources {
            let schema = &self.subs[*sub as usize].schema;
            let kind = if self.subs[*sub as usize].types[*ty].interface_object {
                TypeKind::Interface
            } else {
                schema.types[*ty].kind
            };
            // Where kinds differ, which was reported, only those of the first kind have a say.
            if kind != self.out.types[id].kind {
                continue;
            }
            for field in &schema.types[*ty].fields {
                let name = self.out.sub_names[*sub as usize][schema.fields[*field].name.0 as usize];
                let i = *at.entry(name).or_insert_with(|| {
                    order.push((name, Vec::new()));
                    order.len() - 1
                });
                order[i].1.push((*sub, *field));
            }
        }
        let mut fields = Vec::with_capacity(order.len());
        for (name, mentions) in order {
            let field = self.field(id, name, mentions);
            fields.push(field);
        }
        self.value_type_hints(id, &fields);
        self.out.types[id].fields = fields;
    }

    fn field(&mut self, parent: MTypeId, name: Symbol, mentions: Vec<(u32, FieldId)>) -> MFieldId {
        let about = format!("{}.{}", self.out.type_name(parent), self.out.name(name));
        let row_id = self.out.fields.next_id();
        for (sub, field) in &mentions {
            self.out.sub_fields[*sub as usize][field.0 as usize] = row_id.0;
        }
        let sources: Vec<(u32, FieldId)> = mentions
            .iter()
            .copied()
            .filter(|(sub, field)| {
                self.subs[*sub as usize].fields[*field].overridden != Some(false)
            })
            .collect();
        // What is overridden still has its say in types and arguments.
        let owners: Vec<(u32, FieldId)> = mentions
            .iter()
            .copied()
            .filter(|(sub, field)| !self.subs[*sub as usize].fields[*field].external)
            .collect();
        if owners.is_empty() && !self.is_brought(parent, name) {
            self.external_everywhere(&about, &sources);
        }
        let judged = if owners.is_empty() { &sources } else { &owners };
        let ty = self.output_type(&about, judged);
        self.out.types[ty.ty].used_as_output = true;
        let args = self.arguments(&about, judged);
        self.externals(&about, ty, &sources, &args);
        self.sharing(&about, parent, &sources);
        let found: Vec<(Place, Option<&str>)> = judged
            .iter()
            .map(|(sub, field)| {
                let s = &self.subs[*sub as usize];
                let row = &s.schema.fields[*field];
                (s.place(row.span), row.description.as_deref())
            })
            .collect();
        let described = found.iter().any(|(_, d)| d.is_some());
        let description = if described {
            let owned: Vec<(Place, Option<String>)> = found
                .iter()
                .map(|(p, d)| (*p, d.map(str::to_owned)))
                .collect();
            let refs: Vec<(Place, Option<&str>)> =
                owned.iter().map(|(p, d)| (*p, d.as_deref())).collect();
            self.description(&about, &refs)
        } else {
            None
        };
        let directives = self.merge_directives(&about, judged, |m, (sub, field)| {
            (sub, &m.subs[sub as usize].schema.fields[field].directives)
        });
        self.out.field_by_name.insert((parent, name), row_id);
        let is_uneven = mentions
            .iter()
            .any(|(sub, field)| self.field_ref(*sub, *field) != Some(ty));
        self.out.fields.push(FieldRow {
            name,
            parent,
            sources,
            ty,
            is_uneven,
            args,
            description,
            directives,
            join: Vec::new(),
            via_interface_object: false,
        })
    }

    /// Place of a subgraph's field.
    pub(crate) fn field_place(&self, sub: u32, field: FieldId) -> Place {
        let s = &self.subs[sub as usize];
        s.place(s.schema.fields[field].span)
    }

    /// The merged reference of a subgraph's field type.
    pub(crate) fn field_ref(&self, sub: u32, field: FieldId) -> Option<Ref> {
        let ty = self.subs[sub as usize].schema.fields[field].ty;
        Some(Ref {
            ty: self.out.of(sub, ty.id)?,
            wrapping: ty.wrapping,
        })
    }

    /// Whether an object of an interface of this type's resolves the field.
    fn is_brought(&self, parent: MTypeId, name: Symbol) -> bool {
        let interfaces = self.out.types[parent].interfaces.iter();
        let mut sources = interfaces.flat_map(|i| &self.out.types[*i].sources);
        sources.any(|(sub, ty)| {
            let host = &self.subs[*sub as usize];
            host.types[*ty].interface_object
                && self
                    .sub_field(*sub, *ty, name)
                    .is_some_and(|field| !host.fields[field].external)
        })
    }

    fn external_everywhere(&mut self, about: &str, sources: &[(u32, FieldId)]) {
        let at: Vec<(Place, String)> = sources
            .iter()
            .map(|(s, f)| (self.field_place(*s, *f), "external here".into()))
            .collect();
        let subs: Vec<u32> = sources.iter().map(|s| s.0).collect();
        let names = self.sub_names(&subs);
        self.report.error_help(
            codes::EXTERNAL_MISSING_ON_BASE,
            about,
            format!("`{about}` is external in {names}, and no other subgraph defines it"),
            "define it in the subgraph that resolves it".into(),
            &at,
        );
    }

    /// The least strict of the sources' types.
    fn output_type(&mut self, about: &str, judged: &[(u32, FieldId)]) -> Ref {
        let stated = judged.iter().filter_map(|(s, f)| {
            let ty = self.field_ref(*s, *f)?;
            Some(Stated {
                sub: *s,
                place: self.field_place(*s, *f),
                ty,
            })
        });
        self.merge_types(about, stated.collect(), Position::Output)
    }

    /// External fields must fit what the others define.
    fn externals(
        &mut self,
        about: &str,
        ty: Ref,
        sources: &[(u32, FieldId)],
        args: &[super::InputRow],
    ) {
        for (sub, field) in sources {
            if !self.subs[*sub as usize].fields[*field].external {
                continue;
            }
            self.merged_on_external(about, *sub, *field);
            let place = self.field_place(*sub, *field);
            let Some(theirs) = self.field_ref(*sub, *field) else {
                continue;
            };
            if theirs != ty {
                let message = format!(
                    "external `{about}` is of type `{}` in subgraph `{}`, and of type `{}` where it is defined",
                    self.out.display(theirs),
                    self.subs[*sub as usize].name,
                    self.out.display(ty)
                );
                let help = format!("declare it as `{}`", self.out.display(ty));
                self.report.error_help(
                    codes::EXTERNAL_TYPE_MISMATCH,
                    about,
                    message,
                    help,
                    &[(place, String::new())],
                );
            }
            self.external_args(about, *sub, *field, args);
        }
    }

    /// What becomes part of the supergraph is said where the field is resolved.
    fn merged_on_external(&mut self, about: &str, sub: u32, field: FieldId) {
        const MERGED: [Word; 7] = [
            Word::Tag,
            Word::Inaccessible,
            Word::Authenticated,
            Word::RequiresScopes,
            Word::Policy,
            Word::Cost,
            Word::ListSize,
        ];
        let s = &self.subs[sub as usize];
        for applied in &s.schema.fields[field].directives {
            let name = s.schema.name(applied.name);
            let merged = s.word_of(applied).is_some_and(|w| MERGED.contains(&w));
            if merged || name == "deprecated" {
                self.report.error_help(
                    codes::MERGED_DIRECTIVE_APPLICATION_ON_EXTERNAL,
                    about,
                    format!("`@{name}` on external `{about}` has no effect"),
                    "apply it where the field is resolved".into(),
                    &[(s.place(applied.span), String::new())],
                );
            }
        }
    }

    fn external_args(&mut self, about: &str, sub: u32, field: FieldId, args: &[super::InputRow]) {
        for arg in args {
            let s = &self.subs[sub as usize];
            let place = self.field_place(sub, field);
            let name = self.out.name(arg.name).to_owned();
            let coordinate = format!("{about}({name}:)");
            let row = &s.schema.fields[field];
            let Some(input) = s.schema.arg_by_name(&row.args, &name) else {
                self.report.error_help(
                    codes::EXTERNAL_ARGUMENT_MISSING,
                    about,
                    format!(
                        "external `{about}` of subgraph `{}` lacks the argument `{name}`",
                        s.name
                    ),
                    format!("add `{name}: {}`", self.out.display(arg.ty)),
                    &[(place, String::new())],
                );
                continue;
            };
            let theirs = &s.schema.inputs[input];
            let at = [(s.place(theirs.span), String::new())];
            let Some(ty) = self.out.of(sub, theirs.ty.id) else {
                continue;
            };
            let ty = Ref {
                ty,
                wrapping: theirs.ty.wrapping,
            };
            if !self.out.is_subtype(arg.ty, ty) {
                let message = format!(
                    "argument `{name}` of external `{about}` is of type `{}`, and of type `{}` where it is defined",
                    self.out.display(ty),
                    self.out.display(arg.ty)
                );
                self.report.error(
                    codes::EXTERNAL_ARGUMENT_TYPE_MISMATCH,
                    &coordinate,
                    message,
                    &at,
                );
            } else if theirs.default != arg.default {
                let message = format!(
                    "argument `{name}` of external `{about}` has another default than where it is defined"
                );
                self.report.error(
                    codes::EXTERNAL_ARGUMENT_DEFAULT_MISMATCH,
                    &coordinate,
                    message,
                    &at,
                );
            }
        }
    }

    /// A field of an object that several subgraphs resolve must be shareable in all of them.
    fn sharing(&mut self, about: &str, parent: MTypeId, sources: &[(u32, FieldId)]) {
        if self.out.types[parent].kind != TypeKind::Object {
            return;
        }
        let resolving = self.resolving(about, parent, sources);
        let subscription = self.out.type_name(parent) == root_name(OperationKind::Subscription);
        if subscription && self.refuse_marked_subscription(about, sources) {
            return;
        }
        if resolving.len() < 2 {
            return;
        }
        let bad: Vec<(u32, FieldId)> = resolving
            .iter()
            .copied()
            .filter(|(sub, field)| {
                let info = &self.subs[*sub as usize].fields[*field];
                // What is external is shared by whoever resolves it, wherever it is provided; in federation 1 whatever
                // several subgraphs resolve is.
                let shared = info.shareable || info.in_key || info.external;
                subscription || !(shared || self.subs[*sub as usize].is_v1())
            })
            .collect();
        if bad.is_empty() {
            return;
        }
        let help = if subscription {
            "a subscription has one source: keep it in one subgraph".to_owned()
        } else {
            format!(
                "add `@shareable` in {}, or keep the field in one subgraph (`@override` moves it)",
                self.sub_names(&bad.iter().map(|r| r.0).collect::<Vec<_>>())
            )
        };
        self.refuse_sharing(about, &resolving, &bad, help);
    }

    /// The fields that are resolved under one coordinate, those of interface objects included.
    fn resolving(
        &self,
        about: &str,
        parent: MTypeId,
        sources: &[(u32, FieldId)],
    ) -> Vec<(u32, FieldId)> {
        let mut resolving: Vec<(u32, FieldId)> = sources
            .iter()
            .copied()
            .filter(|(sub, field)| {
                let info = &self.subs[*sub as usize].fields[*field];
                (!info.external || info.provided)
                    && info.overridden.is_none()
                    && info.override_label.is_none()
            })
            .collect();
        let name = about.rsplit('.').next().and_then(|n| self.out.names.get(n));
        let Some(name) = name else {
            return resolving;
        };
        for interface in &self.out.types[parent].interfaces {
            for (sub, ty) in &self.out.types[*interface].sources {
                let s = &self.subs[*sub as usize];
                if s.types[*ty].interface_object
                    && let Some(field) = self.sub_field(*sub, *ty, name)
                    && !s.fields[field].external
                    && s.fields[field].overridden.is_none()
                    && !resolving.iter().any(|r| r.0 == *sub)
                {
                    resolving.push((*sub, field));
                }
            }
        }
        resolving
    }

    /// A subscription is not shared, whatever it says. Says whether it was marked.
    fn refuse_marked_subscription(&mut self, about: &str, sources: &[(u32, FieldId)]) -> bool {
        let marked: Vec<(Place, String)> = sources
            .iter()
            .filter_map(|(s, f)| {
                let sub = &self.subs[*s as usize];
                Some((sub.place(sub.fields[*f].marked_shareable?), String::new()))
            })
            .collect();
        if !marked.is_empty() {
            self.report.error_help(
                codes::INVALID_FIELD_SHARING,
                about,
                format!("`{about}` is a subscription, which cannot be shared"),
                "keep it in one subgraph, without `@shareable`".into(),
                &marked,
            );
        }
        !marked.is_empty()
    }

    /// Reports fields of which those that are `bad` may not be shared.
    fn refuse_sharing(
        &mut self,
        about: &str,
        resolving: &[(u32, FieldId)],
        bad: &[(u32, FieldId)],
        help: String,
    ) {
        let mut at: Vec<(Place, String)> = bad
            .iter()
            .map(|(s, f)| {
                (
                    self.field_place(*s, *f),
                    format!("not shareable in `{}`", self.subs[*s as usize].name),
                )
            })
            .collect();
        at.extend(resolving.iter().filter(|r| !bad.contains(r)).map(|(s, f)| {
            let sub = &self.subs[*s as usize];
            let how = if sub.fields[*f].external {
                "provided"
            } else {
                "shareable"
            };
            (self.field_place(*s, *f), format!("{how} in `{}`", sub.name))
        }));
        let subs: Vec<u32> = resolving.iter().map(|r| r.0).collect();
        self.report.error_help(
            codes::INVALID_FIELD_SHARING,
            about,
            format!(
                "`{about}` is resolved by {} and not shareable in all of them",
                self.sub_names(&subs)
            ),
            help,
            &at,
        );
    }

    /// Hints about fields that only some subgraphs of a value type or interface define.
    fn value_type_hints(&mut self, id: MTypeId, fields: &[MFieldId]) {
        let row = &self.out.types[id];
        if row.sources.len() < 2 {
            return;
        }
        let name = self.out.type_name(id).to_owned();
        let interface = row.kind == TypeKind::Interface;
        let entity = row.sources.iter().any(|(sub, ty)| {
            !self.subs[*sub as usize].types[*ty].keys.is_empty()
                || self.subs[*sub as usize].types[*ty].interface_object
        });
        let root = [
            OperationKind::Query,
            OperationKind::Mutation,
            OperationKind::Subscription,
        ]
        .iter()
        .any(|k| root_name(*k) == name);
        if entity || root {
            return;
        }
        for field in fields {
            let field_name = self.out.fields[*field].name;
            let (with, without) =
                self.split(id, |m, sub, ty| m.sub_field(sub, ty, field_name).is_some());
            let all_external = |m: &Self, s: u32| {
                let sub = &m.subs[s as usize];
                m.out.types[id].sources.iter().any(|(s2, ty)| {
                    *s2 == s
                        && sub.schema.types[*ty]
                            .fields
                            .iter()
                            .all(|f| sub.fields[*f].external)
                })
            };
            if without.iter().all(|s| all_external(self, *s)) {
                continue;
            }
            let about = self.out.coordinate(*field);
            let places: Vec<(Place, String)> = self.type_places(id);
            let code = if interface {
                hint::INCONSISTENT_INTERFACE_VALUE_TYPE_FIELD
            } else {
                hint::INCONSISTENT_OBJECT_VALUE_TYPE_FIELD
            };
            let message = format!(
                "`{about}` exists in {} and not in {}",
                self.sub_names(&with),
                self.sub_names(&without)
            );
            self.report.hint(code, &name, message, &places);
        }
    }

    /// Implementations get the fields of their interface that interface objects resolve.
    pub(crate) fn interface_objects(&mut self) {
        for id in self.out.types.ids() {
            if self.out.types[id].kind != TypeKind::Object {
                continue;
            }
            for interface in self.out.types[id].interfaces.clone() {
                let hosts: Vec<_> = self.out.types[interface]
                    .sources
                    .iter()
                    .copied()
                    .filter(|(sub, ty)| self.subs[*sub as usize].types[*ty].interface_object)
                    .collect();
                if hosts.is_empty() {
                    continue;
                }
                for field in self.out.types[interface].fields.clone() {
                    self.inherit(id, field, &hosts);
                }
            }
        }
    }

    fn inherit(&mut self, id: MTypeId, from: MFieldId, hosts: &[(u32, ogive_schema::TypeId)]) {
        let row = &self.out.fields[from];
        let name = row.name;
        let from_host = hosts.iter().any(|(sub, ty)| {
            self.sub_field(*sub, *ty, name)
                .is_some_and(|f| !self.subs[*sub as usize].fields[f].external)
        });
        if !from_host || self.out.field_by_name.contains_key(&(id, name)) {
            return;
        }
        let mut copy = row.clone();
        copy.parent = id;
        copy.sources = Vec::new();
        copy.via_interface_object = true;
        let new = self.out.fields.push(copy);
        self.out.field_by_name.insert((id, name), new);
        self.out.types[id].fields.push(new);
        self.sharing(&self.out.coordinate(new), id, &[]);
    }

    /// Decides for every field whether `@join__field` is needed.
    pub(crate) fn join_fields(&mut self) {
        for id in self.out.fields.ids() {
            let join = self.join_of(id);
            self.out.fields[id].join = join;
        }
    }

    pub(super) fn join_of(&self, id: MFieldId) -> Vec<JoinField> {
        let row = &self.out.fields[id];
        if row.via_interface_object {
            return vec![JoinField {
                subgraph: NONE,
                args: String::new(),
            }];
        }
        let parents = if self.out.root(OperationKind::Query) == Some(row.parent) {
            // Every subgraph has a query type.
            self.subs.len()
        } else {
            self.out.types[row.parent].sources.len()
        };
        let special = row.sources.iter().any(|(sub, field)| {
            let info = &self.subs[*sub as usize].fields[*field];
            info.external
                || info.requires.is_some()
                || info.provides.is_some()
                || info.overrides.as_ref().is_some_and(|over| over.is_needed)
                || info.overridden.is_some()
                || info.override_label.is_some()
                || !info.context_args.is_empty()
        });
        if row.sources.len() == parents && !special && !row.is_uneven {
            return Vec::new();
        }
        row.sources
            .iter()
            .map(|(sub, field)| {
                let s = &self.subs[*sub as usize];
                let info = &s.fields[*field];
                let mut args = String::new();
                for (name, set) in [("requires", &info.requires), ("provides", &info.provides)] {
                    if let Some(set) = set {
                        let _ = write!(args, ", {name}: {}", ogive_schema::ConstValue::String(set.text.clone()));
                    }
                }
                if row.is_uneven {
                    let ty = self.field_ref(*sub, *field).unwrap_or(row.ty);
                    let _ = write!(args, ", type: \"{}\"", self.out.display(ty));
                }
                if info.external {
                    args.push_str(", external: true");
                }
                if let Some(over) = &info.overrides {
                    let _ = write!(args, ", override: {}", ogive_schema::ConstValue::String(over.from.clone()));
                }
                let is_moving = info.override_label.is_some() && !info.external;
                let used = info.overridden == Some(true) || is_moving && self.is_used(*sub, *field);
                if used {
                    args.push_str(", usedOverridden: true");
                }
                let label = info.overrides.as_ref().and_then(|o| o.label.as_ref()).or(info.override_label.as_ref());
                if let Some(label) = label {
                    let _ = write!(args, ", overrideLabel: {}", ogive_schema::ConstValue::String(label.clone()));
                }
                if !info.context_args.is_empty() {
                    args.push_str(", contextArguments: [");
                    for (i, context) in info.context_args.iter().enumerate() {
                        let input = &s.schema.inputs[context.arg];
                        let ty = self.out.of(*sub, input.ty.id).map_or_else(String::new, |t| self.out.display(Ref { ty: t, wrapping: input.ty.wrapping }));
                        let _ = write!(
                            args,
                            "{}{{context: \"{}__{}\", name: \"{}\", type: \"{ty}\", selection: {}}}",
                            if i == 0 { "" } else { ", " },
                            s.name,
                            context.context,
                            s.schema.name(input.name),
                            ogive_schema::ConstValue::String(context.selection.clone()),
                        );
                    }
                    args.push(']');
                }
                JoinField { subgraph: *sub, args }
            })
            .collect()
    }
}
