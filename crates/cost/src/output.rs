//! What the entries of a plan's outputs cost: the prices of an operation's fields, at the places of its plan.
//!
//! Compiled once per operation and plan, evaluated with the variables of a request (once for all, if no argument of a
//! variable costs anything). An object is charged as what it is; where nobody has said that, as the type that costs most
//! by its own fields. So an answer costs no more than was estimated, wherever lists are as long as was said.

use ogive_base::{FastMap, FastSet, IdVec};
use ogive_federation::Costs;
use ogive_operation::{FieldNodeId, Operation, SelectionSetId, Variables};
use ogive_plan::{FieldCost, Layout, LayoutCosts, LayoutId, OutSource, OutputCosts, Plan};
use ogive_schema::{OperationKind, Schema, TypeId};

use crate::{MUTATION, Program, Scratch, program::VariantRow};

/// Most pairs of a type and an entry of one layout that are told apart; with more, the largest counts for all types.
const PAIRS_MAX: usize = 1 << 16;

/// Indexes of the program's variants, of which the largest counts.
type Variants = Box<[u32]>;

/// See the module documentation.
#[derive(Clone, Debug)]
pub struct OutputProgram {
    /// Without numbers.
    template: OutputCosts,
    /// By layout, row and entry.
    variants: IdVec<LayoutId, Vec<Vec<Variants>>>,
}

struct Compiler<'a> {
    schema: &'a Schema,
    operation: &'a Operation,
    plan: &'a Plan,
    program: &'a Program,
    of_node: FastMap<FieldNodeId, Vec<u32>>,
    types: Vec<Option<TypeId>>,
}

impl OutputProgram {
    /// That of an operation and its plan. `program` was compiled with [`fields`](crate::Settings::fields).
    pub fn compile(
        schema: &Schema,
        operation: &Operation,
        program: &Program,
        plan: &Plan,
    ) -> OutputProgram {
        let mut of_node: FastMap<FieldNodeId, Vec<u32>> = FastMap::default();
        for (at, variant) in (0..).zip(&program.variants) {
            of_node.entry(variant.node).or_default().push(at);
        }
        let types = plan.types.iter();
        let types = types.map(|(_, name)| schema.type_by_name(name)).collect();
        let compiler = Compiler {
            schema,
            operation,
            plan,
            program,
            of_node,
            types,
        };
        compiler.compile()
    }

    /// The costs for these variables, which are coerced. All else is what it was compiled with.
    pub fn evaluate(
        &self,
        program: &Program,
        of: (&Schema, &Costs),
        variables: &Variables,
        scratch: &mut Scratch,
    ) -> OutputCosts {
        let costs = program.evaluate_variants(of, variables, scratch);
        let mut out = self.template.clone();
        for (id, rows) in self.variants.iter() {
            let layout = &mut out.layouts[id];
            let mut most = 0;
            for (at, row) in rows.iter().enumerate() {
                let entries = row.iter().map(|variants| {
                    let costs = variants.iter().filter_map(|at| costs.get(*at as usize));
                    costs.fold(FieldCost::default(), |most, cost| FieldCost {
                        args: most.args.max(cost.args),
                        item: most.item.max(cost.item),
                    })
                });
                let row: Box<[FieldCost]> = entries.collect();
                let each = row.iter().map(|cost| cost.args.saturating_add(cost.item));
                let sum = each.fold(0_u64, u64::saturating_add);
                if sum > most {
                    (most, layout.unknown) = (sum, at as u32);
                }
                layout.rows.push(row);
            }
        }
        out
    }
}

impl Compiler<'_> {
    fn compile(&self) -> OutputProgram {
        let sets = self.sets();
        let mut variants = IdVec::default();
        let mut layouts = IdVec::default();
        for (id, layout) in self.plan.layouts.iter() {
            let (rows, by_type) = self.rows(layout, &sets[id]);
            variants.push(rows);
            layouts.push(LayoutCosts {
                by_type,
                ..LayoutCosts::default()
            });
        }
        let base = match self.operation.kind {
            OperationKind::Mutation => MUTATION,
            _ => 0,
        };
        OutputProgram {
            template: OutputCosts::new(self.plan, base, layouts),
            variants,
        }
    }

    /// By layout, the selection sets of its objects.
    fn sets(&self) -> IdVec<LayoutId, Vec<SelectionSetId>> {
        let layouts = self.plan.layouts.iter();
        let mut out: IdVec<LayoutId, Vec<SelectionSetId>> = layouts.map(|_| Vec::new()).collect();
        let mut seen: FastSet<(SelectionSetId, LayoutId)> = FastSet::default();
        let mut open = vec![(self.operation.root, Plan::ROOT)];
        while let Some((set, at)) = open.pop() {
            let Some(layout) = self.plan.layouts.get(at) else {
                continue;
            };
            if !seen.insert((set, at)) {
                continue;
            }
            out[at].push(set);
            let by_key = self.by_key(&[set]);
            for entry in layout.output.iter() {
                let OutSource::Object(slot) = entry.source else {
                    continue;
                };
                let child = layout.slots.get(usize::from(slot));
                let Some(child) = child.and_then(|slot| slot.child) else {
                    continue;
                };
                for node in by_key.get(&*entry.key).into_iter().flatten() {
                    let node = &self.operation.fields[*node];
                    let types = entry.types.as_ref().unwrap_or(&layout.types);
                    let meets = |ty: u32| {
                        let ty = self.types.get(ty as usize).copied().flatten();
                        ty.is_some_and(|ty| node.types.contains(ty.0))
                    };
                    if types.iter().any(meets) {
                        open.extend(node.selection_set.map(|set| (set, child)));
                    }
                }
            }
        }
        out
    }

    fn by_key(&self, sets: &[SelectionSetId]) -> FastMap<&str, Vec<FieldNodeId>> {
        let mut out: FastMap<&str, Vec<FieldNodeId>> = FastMap::default();
        let sets = sets
            .iter()
            .filter_map(|set| self.operation.selection_sets.get(*set));
        for id in sets.flat_map(|set| &set.fields) {
            let key = self.operation.keys.text(self.operation.fields[*id].key);
            out.entry(key).or_default().push(*id);
        }
        out
    }

    /// What each entry costs, of types that cost differently in several rows; and which row is whose.
    fn rows(&self, layout: &Layout, sets: &[SelectionSetId]) -> (Vec<Vec<Variants>>, Box<[u32]>) {
        let by_key = self.by_key(sets);
        let entries = layout.output.iter().map(|entry| {
            let nodes = by_key.get(&*entry.key).into_iter().flatten();
            let variants = nodes.filter_map(|node| self.of_node.get(node)).flatten();
            variants.copied().collect()
        });
        let all: Vec<Variants> = entries.collect();
        if layout.types.len().saturating_mul(all.len()) > PAIRS_MAX {
            return (vec![all], Box::default());
        }
        let mut rows: Vec<Vec<Variants>> = Vec::new();
        let mut known: FastMap<Vec<Variants>, u32> = FastMap::default();
        let mut by_type = vec![0; self.plan.types.len()];
        for ty in layout.types.iter() {
            let id = self.types.get(ty as usize).copied().flatten();
            let row = layout.output.iter().zip(&all).map(|(entry, variants)| {
                let has_it = entry.types.as_ref().is_none_or(|types| types.contains(ty));
                let of_type = |variant: &&u32| has_it && self.is_of(**variant, id);
                variants.iter().filter(of_type).copied().collect()
            });
            let row: Vec<Variants> = row.collect();
            let at = *known.entry(row).or_insert_with_key(|row| {
                rows.push(row.clone());
                rows.len() as u32 - 1
            });
            if let Some(of_type) = by_type.get_mut(ty as usize) {
                *of_type = at;
            }
        }
        if rows.len() <= 1 {
            return (vec![rows.pop().unwrap_or(all)], Box::default());
        }
        (rows, by_type.into())
    }

    fn is_of(&self, variant: u32, ty: Option<TypeId>) -> bool {
        let Some(VariantRow { node, types, .. }) = self.program.variants.get(variant as usize)
        else {
            return false;
        };
        let Some(ty) = ty else {
            return true;
        };
        debug_assert!(ty.0 < self.schema.types.len() as u32);
        match types {
            Some(types) => types.contains(ty.0),
            None => self.operation.fields[*node].types.contains(ty.0),
        }
    }
}
