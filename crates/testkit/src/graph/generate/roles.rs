//! The roles that make federation interesting: `@provides`, `@requires`, `@override`.

use super::{
    super::{
        FieldModel, FieldSet, FieldSource, Item, Kind, Model, Sub, Ty,
        clean::{self, SPARE_KEYS},
    },
    Draw,
    edit::{add_key, add_source},
};

impl Draw {
    /// `@provides`: a field hands out fields of its value that only other subgraphs resolve.
    pub(super) fn provides(&mut self) {
        for _ in 0..self.rng.between(0, 4) {
            let Some((parent, field, sub, value)) = self.any_composite_source() else {
                return;
            };
            let set = match self.model.kind(&value) {
                Kind::Object => self.external_set(&value, sub, 2, false),
                _ => self.provided_by_type(&value, sub),
            };
            let Some(set) = set else { continue };
            if let Some(source) = self
                .model
                .ty_mut(&parent)
                .and_then(|t| t.field_mut(&field))
                .and_then(|f| f.sources.get_mut(&sub))
                && source.provides.is_none()
                && source.active()
            {
                source.provides = Some(set);
            }
        }
    }

    fn any_composite_source(&mut self) -> Option<(String, String, Sub, String)> {
        let mut all = Vec::new();
        for ty in &self.model.types {
            if ty.kind != Kind::Object {
                continue;
            }
            for field in &ty.fields {
                for (sub, source) in &field.sources {
                    if source.active() && self.model.kind(source.ty.name()).is_composite() {
                        all.push((
                            ty.name.clone(),
                            field.name.clone(),
                            *sub,
                            source.ty.name().to_owned(),
                        ));
                    }
                }
            }
        }
        self.rng.try_pick(&all).cloned()
    }

    /// A field set on `ty` of fields that `sub` does not resolve, declared external there.
    fn external_set(
        &mut self,
        ty: &str,
        sub: Sub,
        depth: usize,
        for_requires: bool,
    ) -> Option<FieldSet> {
        let mut candidates: Vec<FieldModel> = self
            .model
            .ty(ty)?
            .fields
            .iter()
            .filter(|f| {
                f.sources.get(&sub).is_none_or(|s| s.external)
                    && f.sources.values().all(|s| s.overrides.is_none())
                    && (for_requires || (f.requires().is_none() && f.args.is_empty()))
                    && f.args
                        .iter()
                        .all(|a| !a.ty.is_non_null() || a.default.is_some())
            })
            .cloned()
            .collect();
        self.rng.shuffle(&mut candidates);
        if for_requires && self.options.through_objects && self.rng.chance(80) {
            let (model, abstract_first) = (&self.model, self.rng.chance(50));
            let rank = |f: &FieldModel| {
                let kind = f.merged_ty().map(|t| model.kind(t.name()));
                match kind {
                    Some(kind) if kind.is_abstract() && abstract_first => 0,
                    Some(kind) if kind.is_composite() => 1,
                    _ => 2,
                }
            };
            candidates.sort_by_key(rank);
        }
        let count = self.rng.between(1, 2);
        candidates.truncate(count);
        let mut items = Vec::new();
        for field in candidates {
            let Some(ty_there) = field.merged_ty() else {
                continue;
            };
            let value = ty_there.name().to_owned();
            let inner = match self.model.kind(&value) {
                Kind::Object if depth > 0 => {
                    let set = self.value_set(&value, sub, depth - 1);
                    let Some(set) = set else { continue };
                    set
                }
                Kind::Interface | Kind::Union if depth > 0 => {
                    let set = self.abstract_set(&value, sub, depth - 1);
                    let Some(set) = set else { continue };
                    set
                }
                kind if kind.is_composite() => continue,
                _ => FieldSet::default(),
            };
            let mut source = FieldSource::plain(ty_there);
            source.external = true;
            add_source(&mut self.model, ty, &field.name, sub, source);
            let args = match field.args.first() {
                Some(arg) if for_requires && self.rng.chance(70) => literal(&self.model, &arg.ty)
                    .map(|v| format!("{}: {v}", arg.name))
                    .unwrap_or_default(),
                _ => String::new(),
            };
            items.push(Item::Field {
                name: field.name,
                args,
                sub: inner,
            });
        }
        (!items.is_empty()).then_some(FieldSet { items })
    }

    /// A selection on an abstract value, by concrete type; `__typename` tells the subgraph which applies.
    fn abstract_set(&mut self, value: &str, sub: Sub, depth: usize) -> Option<FieldSet> {
        let concrete: Vec<String> = self
            .model
            .possible_in(value, sub)
            .into_iter()
            .map(str::to_owned)
            .collect();
        let mut items = vec![Item::field("__typename")];
        for ty in concrete {
            if let Some(set) = self.value_set(&ty, sub, depth)
                && self.rng.chance(80)
            {
                items.push(Item::On { ty, sub: set });
            }
        }
        (items.len() > 1).then_some(FieldSet { items })
    }

    /// What a field of an abstract type provides, by concrete type.
    fn provided_by_type(&mut self, value: &str, sub: Sub) -> Option<FieldSet> {
        let concrete: Vec<String> = self
            .model
            .possible_in(value, sub)
            .into_iter()
            .map(str::to_owned)
            .collect();
        let mut items = Vec::new();
        for ty in concrete {
            if let Some(set) = self.external_set(&ty, sub, 1, false) {
                items.push(Item::On { ty, sub: set });
            }
        }
        (!items.is_empty()).then_some(FieldSet { items })
    }

    /// A selection on the value of an external field: `sub` must know the type and the fields.
    fn value_set(&mut self, value: &str, sub: Sub, depth: usize) -> Option<FieldSet> {
        let ty = self.model.ty(value)?;
        let mut candidates: Vec<FieldModel> = ty
            .fields
            .iter()
            .filter(|f| {
                f.args.is_empty()
                    && f.requires().is_none()
                    && f.sources
                        .values()
                        .all(|s| s.overrides.is_none() && !s.overridden)
            })
            .cloned()
            .collect();
        self.rng.shuffle(&mut candidates);
        let count = self.rng.between(1, 2);
        let entity = ty.is_entity();
        let mut items = Vec::new();
        for field in candidates {
            if items.len() == count {
                break;
            }
            let Some(field_ty) = field.merged_ty() else {
                continue;
            };
            let inner = match self.model.kind(field_ty.name()) {
                Kind::Object if depth > 0 => {
                    let name = field_ty.name().to_owned();
                    match self.value_set(&name, sub, depth - 1) {
                        Some(set) => set,
                        None => continue,
                    }
                }
                Kind::Interface | Kind::Union if depth > 0 && self.options.through_objects => {
                    let name = field_ty.name().to_owned();
                    match self.abstract_set(&name, sub, depth - 1) {
                        Some(set) => set,
                        None => continue,
                    }
                }
                kind if kind.is_composite() => continue,
                _ => FieldSet::default(),
            };
            if let Some(row) = self.model.ty_mut(value) {
                row.places.entry(sub).or_default();
            }
            if !field.sources.contains_key(&sub) {
                let mut source = FieldSource::plain(field_ty);
                // Fields of entities stay where they are; value types are shared.
                source.external = entity;
                add_source(&mut self.model, value, &field.name, sub, source);
            }
            items.push(Item::Field {
                name: field.name,
                args: String::new(),
                sub: inner,
            });
        }
        if entity && !items.is_empty() {
            self.ensure_some_key(value, sub);
        }
        (!items.is_empty()).then_some(FieldSet { items })
    }

    /// An entity that a subgraph only mentions still needs a key there to be told apart.
    fn ensure_some_key(&mut self, name: &str, sub: Sub) {
        let Some(ty) = self.model.ty(name) else {
            return;
        };
        if ty.places.get(&sub).is_some_and(|p| !p.keys.is_empty()) {
            return;
        }
        let mut keys: Vec<FieldSet> = ty
            .places
            .values()
            .flat_map(|p| p.keys.iter().map(|k| k.fields.clone()))
            .collect();
        self.rng.shuffle(&mut keys);
        if let Some(fields) = keys.into_iter().next() {
            let resolvable = self.rng.chance(50);
            add_key(&mut self.model, name, sub, fields, resolvable);
        }
    }

    /// `@requires`: a field that is computed from what other subgraphs know.
    pub(super) fn requires(&mut self) {
        let least = if self.options.through_objects { 3 } else { 0 };
        for i in 0..self.rng.between(least, 5) {
            let entities: Vec<(String, Sub)> = self
                .model
                .types
                .iter()
                .filter(|t| t.kind == Kind::Object)
                .flat_map(|t| {
                    t.places
                        .iter()
                        .filter(|(_, p)| p.keys.iter().any(|k| k.resolvable))
                        .map(|(s, _)| (t.name.clone(), *s))
                })
                .collect();
            let Some((name, sub)) = self.rng.try_pick(&entities).cloned() else {
                return;
            };
            let Some(set) = self.external_set(&name, sub, 2, true) else {
                continue;
            };
            let value = if self.rng.chance(20) {
                let known: Vec<String> = self
                    .model
                    .types
                    .iter()
                    .filter(|t| {
                        t.kind == Kind::Object && !t.is_root() && t.places.contains_key(&sub)
                    })
                    .map(|t| t.name.clone())
                    .collect();
                self.rng.try_pick(&known).cloned().unwrap_or_default()
            } else {
                ["String", "Int", "Float", "ID"][self.rng.below(4)].to_owned()
            };
            let mut source = FieldSource::plain(self.wrap(&value));
            source.requires = Some(set);
            let field = format!("r{i}");
            add_source(&mut self.model, &name, &field, sub, source);
            let args = self.args(15);
            if let Some(row) = self.model.ty_mut(&name).and_then(|t| t.field_mut(&field)) {
                row.args = args;
            }
        }
    }

    /// `@override`: a field moves to another subgraph.
    pub(super) fn overrides(&mut self) {
        for _ in 0..self.rng.between(0, 3) {
            let mentioned = clean::mentioned(&self.model);
            let label = match self.rng.below(5) {
                0 => Some("percent(40)".to_owned()),
                1 => Some("beta".to_owned()),
                _ => None,
            };
            // While a label is off, and for an interface of its own, a subgraph serves what another one takes from it.
            let below_interfaces = label.is_some() && self.rng.chance(60);
            let mut all = Vec::new();
            for ty in &self.model.types {
                if ty.kind != Kind::Object || ty.is_root() || !ty.is_entity() {
                    continue;
                }
                for field in &ty.fields {
                    for (from, source) in &field.sources {
                        let key = (ty.name.clone(), field.name.clone(), *from);
                        if source.active()
                            && source.requires.is_none()
                            && source.provides.is_none()
                            && source.overrides.is_none()
                            && (!mentioned.contains(&key)
                                || (clean::is_key_member(ty, *from, &field.name)
                                    && !self.model.kind(source.ty.name()).is_composite()
                                    && !SPARE_KEYS.contains(&field.name.as_str())))
                            && ty.interfaces().is_empty() != below_interfaces
                        {
                            for to in self.common(&ty.name, source.ty.name()) {
                                if !field.sources.contains_key(&to) {
                                    all.push((key.0.clone(), key.1.clone(), *from, to));
                                }
                            }
                        }
                    }
                }
            }
            let Some((ty, field, from, to)) = self.rng.try_pick(&all).cloned() else {
                continue;
            };
            if let Some(row) = self.model.ty_mut(&ty).and_then(|t| t.field_mut(&field))
                && let Some(source) = row.sources.get_mut(&from)
            {
                source.overridden = label.is_none();
                let mut moved = FieldSource::plain(source.ty.clone());
                moved.overrides = Some(from);
                moved.label = label;
                row.sources.insert(to, moved);
            }
        }
    }
}

/// A literal for an argument of a required field.
fn literal(model: &Model, ty: &Ty) -> Option<String> {
    Some(match ty.nullable() {
        Ty::List(inner) => format!("[{}]", literal(model, inner)?),
        Ty::Named(name) => match name.as_str() {
            "Int" => "42".to_owned(),
            "Float" => "2.5".to_owned(),
            // Field sets are printed inside a string; plain words only.
            "String" | "ID" => "\"x\"".to_owned(),
            "Boolean" => "false".to_owned(),
            _ if model.kind(name) == Kind::Enum => "BLUE".to_owned(),
            _ => return None,
        },
        Ty::NonNull(_) => return None,
    })
}
