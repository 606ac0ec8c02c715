//! Merging again the types of a few subgraphs that changed, everything else staying as it was.
//!
//! Needs subgraphs of the same shape as before (see [`crate::again`]): same types of the same kinds with the same interfaces
//! and members. Ids of types stay; a type's fields get new ids, the old rows are left behind.

use ogive_base::Symbol;
use ogive_schema::TypeKind;

use super::{MTypeId, Merger, NONE, mask, root_name};
use crate::{
    report::Stage,
    spec::{WORDS, Word},
};

/// Directives whose merge looks beyond one type.
const FAR: [Word; 5] = [
    Word::Authenticated,
    Word::RequiresScopes,
    Word::Policy,
    Word::Context,
    Word::FromContext,
];

impl Merger<'_> {
    /// Merges `touched` types again after `changed` subgraphs were replaced. `None` if more than that would change.
    pub(crate) fn again(&mut self, changed: &[u32], touched: &[MTypeId]) -> Option<()> {
        for sub in changed {
            self.renumber(*sub)?;
        }
        for id in touched {
            self.report.mark(Stage::Uneven, id.0);
            self.uneven(*id);
        }
        self.features_again()?;
        for id in touched {
            self.out.used_by[id.0 as usize] = 0;
        }
        let of_kind = |m: &Self, kinds: &[TypeKind]| -> Vec<MTypeId> {
            let ids = touched.iter().copied();
            ids.filter(|id| kinds.contains(&m.out.types[*id].kind))
                .collect()
        };
        for id in of_kind(self, &[TypeKind::Object, TypeKind::Interface]) {
            for field in std::mem::take(&mut self.out.types[id].fields) {
                let name = self.out.fields[field].name;
                self.out.field_by_name.remove(&(id, name));
            }
            self.item(Stage::Composite, id, |m| m.composite(id));
            for field in self.out.types[id].fields.clone() {
                self.out.fields[field].join = self.join_of(field);
            }
        }
        for id in of_kind(self, &[TypeKind::InputObject]) {
            self.item(Stage::Input, id, |m| m.input_object(id));
        }
        let enums = of_kind(self, &[TypeKind::Enum]);
        if !enums.is_empty() {
            self.uses(touched);
        }
        for id in enums {
            self.item(Stage::Enum, id, |m| m.one_enum(id));
        }
        for id in touched {
            self.out.types[*id].description = None;
            self.item(Stage::Directives, *id, |m| m.directives_of_type(*id));
        }
        let used = self
            .out
            .used_by
            .iter()
            .fold(self.out.used_elsewhere, |all, of_type| all | of_type);
        self.out.features.used = std::array::from_fn(|i: usize| used >> i & 1 == 1);
        self.is_near().then_some(())
    }

    /// Whether nothing is used whose merge looks beyond one type.
    pub(crate) fn is_near(&self) -> bool {
        let far = FAR.iter().fold(0, |m, w| m | 1 << *w as u32);
        mask(&self.out.features.used) & far == 0
            && self.out.features.custom.is_empty()
            && !self.has_interface_objects()
    }

    /// What an interface object brings, its implementations have, and may call external.
    fn has_interface_objects(&self) -> bool {
        let mut types = self.subs.iter().flat_map(|s| s.types.iter());
        types.any(|(_, ty)| ty.interface_object)
    }

    /// A replaced subgraph's own ids.
    fn renumber(&mut self, sub: u32) -> Option<()> {
        let at = sub as usize;
        let schema = &self.subs[at].schema;
        let names: Vec<Symbol> = (0..schema.names.len())
            .map(|s| self.out.names.intern(schema.names.text(Symbol(s as u32))))
            .collect();
        let mut map = vec![NONE; schema.types.len()];
        for (ty, def) in schema.types() {
            let own = names[def.name.0 as usize];
            if def.built_in {
                // A specified scalar nobody used before is a new type.
                match self.out.by_name.get(&own) {
                    Some(id) => map[ty.0 as usize] = id.0,
                    None if def.kind == TypeKind::Scalar => return None,
                    None => {}
                }
                continue;
            }
            if self.subs[at].machinery.contains(ty.0) {
                continue;
            }
            let name = match self.subs[at].root_kind(ty) {
                Some(kind) => self.out.names.intern(root_name(kind)),
                None => own,
            };
            let id = *self.out.by_name.get(&name)?;
            map[ty.0 as usize] = id.0;
            let sources = &mut self.out.types[id].sources;
            sources.iter_mut().find(|(s, _)| *s == sub)?.1 = ty;
        }
        self.out.sub_names[at] = names;
        self.out.sub_types[at] = map;
        self.out.sub_fields[at] = vec![NONE; self.subs[at].schema.fields.len()];
        Some(())
    }

    /// Linked specifications must come out as before.
    fn features_again(&mut self) -> Option<()> {
        let before = std::mem::take(&mut self.out.features);
        self.report.mark(Stage::Features, 0);
        self.link_features();
        let same = self.out.features.names == before.names
            && self.out.features.custom.is_empty()
            && before.custom.is_empty();
        self.out.features.used = [false; WORDS];
        same.then_some(())
    }

    /// Where touched types are used, as input and as output.
    fn uses(&mut self, touched: &[MTypeId]) {
        let count = self.out.types.len();
        let (mut input, mut output) = (vec![false; count], vec![false; count]);
        for (_, row) in self.out.types.iter() {
            for field in &row.fields {
                let field = &self.out.fields[*field];
                output[field.ty.ty.0 as usize] = true;
                for arg in &field.args {
                    input[arg.ty.ty.0 as usize] = true;
                }
            }
            for field in &row.inputs {
                input[field.ty.ty.0 as usize] = true;
            }
        }
        for id in touched {
            self.out.types[*id].used_as_input = input[id.0 as usize];
            self.out.types[*id].used_as_output = output[id.0 as usize];
        }
    }
}
