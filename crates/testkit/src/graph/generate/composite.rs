//! Entities with composite keys only, several levels deep: keys inside keys, and `@requires` through such entities. And
//! migrations that have ended: an `@override` of a field that the subgraph before no longer has.

use super::{
    super::{FieldSet, FieldSource, Item, KeyModel, Kind, Place, Sub, Ty, TypeModel, clean},
    Draw,
    edit::add_source,
};

/// Most levels.
const LEVELS_MAX: usize = 4;

impl Draw {
    /// Draws deep keys into some graphs.
    pub(super) fn deep_keys(&mut self) {
        if self.n_subs() < 2 || !self.rng.chance(self.options.deep_keys) {
            return;
        }
        if self.rng.chance(50) {
            self.keys_inside_keys();
        } else {
            self.requires_through_keys();
        }
    }

    /// Two different subgraphs.
    fn two_subs(&mut self) -> (Sub, Sub) {
        let first = self.rng.below(self.n_subs());
        (first, self.other_than(first))
    }

    fn other_than(&mut self, sub: Sub) -> Sub {
        (sub + 1 + self.rng.below(self.n_subs() - 1)) % self.n_subs()
    }

    fn plain(&mut self, ty: &str, field: &str, sub: Sub, value: Ty) {
        if let Some(row) = self.model.ty_mut(ty) {
            row.places.entry(sub).or_default();
        }
        add_source(&mut self.model, ty, field, sub, FieldSource::plain(value));
    }

    fn key(&mut self, ty: &str, sub: Sub, fields: FieldSet) {
        if let Some(row) = self.model.ty_mut(ty) {
            let place: &mut Place = row.places.entry(sub).or_default();
            place.keys.push(KeyModel {
                fields,
                resolvable: true,
            });
        }
    }

    /// The key of each level needs the id of the next level, which another subgraph has and is entered by its key.
    fn keys_inside_keys(&mut self) {
        let levels = self.rng.between(2, LEVELS_MAX);
        let holder = self.rng.below(self.n_subs());
        for level in 0..=levels {
            let ty = TypeModel::new(&format!("Deep{level}"), Kind::Object);
            self.model.types.push(ty);
        }
        let id = || Ty::named("ID").non_null();
        for level in 0..levels {
            let (ty, next) = (format!("Deep{level}"), format!("Deep{}", level + 1));
            let field = format!("deep{}", level + 1);
            let owner = self.other_than(holder);
            for sub in [holder, owner] {
                self.plain(&ty, &field, sub, Ty::named(&next).non_null());
            }
            self.plain(&ty, "value", owner, Ty::named("Int"));
            self.plain(&ty, "id", owner, id());
            self.plain(&next, "id", owner, id());
            let members = FieldSet::leaves(&["id"]);
            let items = vec![Item::nested(&field, members)];
            self.key(&ty, owner, FieldSet { items });
        }
        self.plain(&format!("Deep{levels}"), "id", holder, id());
        let ty = self.wrap("Deep0");
        self.plain("Query", "deep", holder, ty);
    }

    /// One subgraph computes a value from what another one has of an entity some steps away.
    fn requires_through_keys(&mut self) {
        let (holder, owner) = self.two_subs();
        for name in ["Chain", "Tag"] {
            self.model.types.push(TypeModel::new(name, Kind::Object));
        }
        for sub in [holder, owner] {
            self.plain("Tag", "code", sub, Ty::named("ID").non_null());
            self.plain("Chain", "tag", sub, Ty::named("Tag").non_null());
            let items = vec![Item::nested("tag", FieldSet::leaves(&["code"]))];
            self.key("Chain", sub, FieldSet { items });
        }
        let mut external = FieldSource::plain(Ty::named("Int"));
        external.external = true;
        add_source(&mut self.model, "Chain", "leaf", holder, external);
        self.plain("Chain", "leaf", owner, Ty::named("Int"));
        self.plain("Chain", "next", holder, Ty::named("Chain"));
        let mut set = FieldSet::leaves(&["leaf"]);
        for _ in 0..self.rng.between(1, LEVELS_MAX) {
            let items = vec![Item::nested("next", set)];
            set = FieldSet { items };
        }
        let mut calc = FieldSource::plain(Ty::named("Int"));
        calc.requires = Some(set);
        add_source(&mut self.model, "Chain", "calc", holder, calc);
        let from = if self.rng.chance(50) { holder } else { owner };
        let ty = self.wrap("Chain");
        self.plain("Query", "chain", from, ty);
    }

    /// Takes fields from subgraphs that lost them to an `@override`.
    pub(super) fn ended_migrations(&mut self) {
        let mentioned = clean::mentioned(&self.model);
        for ty in &mut self.model.types {
            for field in &mut ty.fields {
                let lost = field.sources.values().filter_map(|s| s.overrides);
                for from in lost.collect::<Vec<Sub>>() {
                    let is_mentioned =
                        mentioned.contains(&(ty.name.clone(), field.name.clone(), from));
                    let implements = |p: &Place| !p.implements.is_empty();
                    let is_needed = is_mentioned || ty.places.get(&from).is_some_and(implements);
                    if !is_needed && self.rng.chance(40) {
                        field.sources.remove(&from);
                    }
                }
            }
        }
    }
}
