//! An operation to its cost program. What does not depend on variables is computed here, once.
//!
//! Two passes over the selection sets, no recursion over them: parents first, to hand down what `sizedFields` say of
//! fields below; then children first, for the costs. Linear in the operation, but for places whose objects can be of
//! several types (`place`), where there is a limit.

use ogive_base::{BitSet, FastMap, FastSet, IdVec, Symbol};
use ogive_federation::{Costs, ListSize, SlicingArgument};
use ogive_operation::{
    ArgValue, CondId, FieldNode, FieldNodeId, FieldRef, Operation, SelectionSetId,
};
use ogive_schema::{ConstValue, FieldId, InputId, OperationKind, Schema, Type, TypeId, TypeKind};

use crate::{
    LIST_SIZE, MUTATION, evaluate,
    place::{self, Alternatives, PAIRS_MAX, Part},
    program::{
        ABSENT, FieldOperands, FieldRow, Operand, Operands, Program, Step, Value, VariantRow,
    },
    values,
};

/// Most ways in which the field of an abstract type may cost something; with more, the largest counts for all types.
const VARIANTS_MAX: usize = 16;

/// No size is said.
const NOTHING: Operand = Operand::Const(Value::of(ABSENT));

/// What is not said by schema and operation.
#[derive(Clone, Copy, Debug)]
pub struct Settings<'a> {
    /// Items of a list of which nobody knows the size; default [`LIST_SIZE`].
    pub list_size: u32,
    /// The fields whose weights and arguments count; `None`: all. Sizes of lists count in any case.
    pub counted: Option<&'a BitSet>,
    /// Whether [`Program::evaluate_fields`] will be asked.
    pub fields: bool,
    /// What the items of each field weigh instead of what the schema says, by field; then arguments cost nothing, and no
    /// operation begins with a cost.
    pub weights: Option<&'a FastMap<FieldNodeId, u64>>,
}

impl Default for Settings<'_> {
    fn default() -> Self {
        Settings {
            list_size: LIST_SIZE,
            counted: None,
            fields: false,
            weights: None,
        }
    }
}

/// The cost program of an operation. `schema` is the one it was normalised with, or the one that is a view of.
pub fn compile(
    schema: &Schema,
    costs: &Costs,
    operation: &Operation,
    settings: &Settings<'_>,
) -> Program {
    let sets = operation.selection_sets.iter();
    let mut compiler = Compiler {
        schema,
        costs,
        operation,
        settings,
        pairs: 0,
        steps: Vec::new(),
        operands: Vec::new(),
        conditions: Vec::new(),
        paths: Vec::new(),
        fields: Vec::new(),
        rows: Vec::new(),
        known: FastMap::default(),
        known_paths: FastMap::default(),
        known_conditions: FastMap::default(),
        variants: FastMap::default(),
        inherited: sets.map(|_| Vec::new()).collect(),
        special: special_names(schema, costs),
    };
    for set in operation.selection_sets.ids() {
        compiler.hand_down(set);
    }
    let mut done: IdVec<SelectionSetId, Operand> = operation
        .selection_sets
        .iter()
        .map(|_| Operand::ZERO)
        .collect();
    let sets: Vec<SelectionSetId> = operation.selection_sets.ids().collect();
    for set in sets.into_iter().rev() {
        done[set] = compiler.selection_set(set, &done);
    }
    let base = match operation.kind {
        OperationKind::Mutation if settings.weights.is_none() && settings.counted.is_none() => {
            MUTATION
        }
        _ => 0,
    };
    let base = Operand::Const(Value::of(base));
    let root = done.get(operation.root).copied().unwrap_or(Operand::ZERO);
    let total = compiler.sum(vec![base, root]);
    compiler.fields.sort_by_key(|row| row.node);
    Program {
        steps: compiler.steps,
        operands: compiler.operands,
        conditions: compiler.conditions,
        paths: compiler.paths,
        total,
        variables: operation.variables.len() as u32,
        fields: compiler.fields,
        variants: compiler.rows,
        has_fields: settings.fields,
    }
}

/// Names of fields that cost, or hold, something else than others: only for these is it looked whether the types of a
/// place differ.
fn special_names(schema: &Schema, costs: &Costs) -> FastSet<Symbol> {
    let mut names: FastSet<Symbol> = FastSet::default();
    let fields = costs.fields.keys().chain(costs.list_sizes.keys());
    names.extend(fields.map(|id| schema.fields[*id].name));
    if !costs.inputs.is_empty() || !costs.types.is_empty() {
        for (_, field) in schema.fields.iter() {
            let differs = |input: &InputId| {
                costs.inputs.contains_key(input) || schema.inputs[*input].default.is_some()
            };
            if costs.types.contains_key(&field.ty.id) || field.args.iter().any(differs) {
                names.insert(field.name);
            }
        }
    }
    names
}

/// What the `sizedFields` of a field say of a place below it.
#[derive(Clone, PartialEq, Eq)]
struct Sized<'a> {
    path: &'a [Symbol],
    size: Operand,
}

/// Concrete types whose row of a field costs the same.
#[derive(Clone)]
struct Variant {
    row: FieldId,
    types: BitSet,
}

/// What steps are shared by.
#[derive(PartialEq, Eq, Hash)]
enum Known {
    Given(u32, u32),
    Default(u32, u64),
    Input(u32, TypeId, Option<u32>),
}

fn constant(size: Option<u64>) -> Operand {
    size.map_or(NOTHING, |size| Operand::Const(Value::of(size)))
}

struct Compiler<'a> {
    schema: &'a Schema,
    costs: &'a Costs,
    operation: &'a Operation,
    settings: &'a Settings<'a>,
    /// Pairs of a type and a field that were looked at.
    pairs: usize,
    steps: Vec<Step>,
    operands: Vec<Operand>,
    conditions: Vec<Vec<ogive_operation::Clause>>,
    paths: Vec<Vec<InputId>>,
    fields: Vec<FieldRow>,
    rows: Vec<VariantRow>,
    known: FastMap<Known, Operand>,
    known_paths: FastMap<Vec<InputId>, u32>,
    known_conditions: FastMap<CondId, u32>,
    /// By type of the place and name of the field.
    variants: FastMap<(TypeId, Symbol), Vec<Variant>>,
    inherited: IdVec<SelectionSetId, Vec<Sized<'a>>>,
    special: FastSet<Symbol>,
}

impl<'a> Compiler<'a> {
    fn step(&mut self, step: Step) -> Operand {
        self.steps.push(step);
        Operand::Step(self.steps.len() as u32 - 1)
    }

    fn list(&mut self, operands: &[Operand]) -> Operands {
        let start = self.operands.len() as u32;
        self.operands.extend_from_slice(operands);
        start..self.operands.len() as u32
    }

    /// The sum of operands.
    fn sum(&mut self, operands: Vec<Operand>) -> Operand {
        self.fold(operands, Value::plus, Step::Sum)
    }

    /// The largest of operands.
    fn max(&mut self, operands: Vec<Operand>) -> Operand {
        self.fold(operands, Value::max, Step::Max)
    }

    fn fold(
        &mut self,
        operands: Vec<Operand>,
        fold: impl Fn(Value, Value) -> Value,
        step: impl Fn(Operands) -> Step,
    ) -> Operand {
        let mut fixed = Value::ZERO;
        let mut rest = Vec::new();
        for operand in operands {
            match operand {
                Operand::Const(amount) => fixed = fold(fixed, amount),
                Operand::Step(_) => rest.push(operand),
            }
        }
        match rest[..] {
            [] => Operand::Const(fixed),
            [only] if fixed == Value::ZERO => only,
            _ => {
                if fixed != Value::ZERO {
                    rest.push(Operand::Const(fixed));
                }
                let list = self.list(&rest);
                self.step(step(list))
            }
        }
    }

    /// Notes for the sets below what the fields of a set say of lists there.
    fn hand_down(&mut self, set: SelectionSetId) {
        if self.costs.list_sizes.is_empty() {
            return;
        }
        let operation = self.operation;
        for id in &operation.selection_sets[set].fields {
            let node = &operation.fields[*id];
            let (FieldRef::Field(row), Some(below)) = (node.field, node.selection_set) else {
                continue;
            };
            let name = self.schema.fields[row].name;
            let mut sized: Vec<Sized<'a>> = Vec::new();
            for above in &self.inherited[set] {
                if let Some((first, rest)) = above.path.split_first()
                    && *first == name
                    && !rest.is_empty()
                {
                    let size = above.size;
                    sized.push(Sized { path: rest, size });
                }
            }
            for variant in self.variants(node, row) {
                let costs = self.costs;
                for one in costs.list_sizes.get(&variant.row).into_iter().flatten() {
                    if one.sized.is_empty() {
                        continue;
                    }
                    let size = self.said(*id, node, one);
                    for path in &one.sized {
                        let more = Sized { path, size };
                        if !sized.contains(&more) {
                            sized.push(more);
                        }
                    }
                }
            }
            self.inherited[below].append(&mut sized);
        }
    }

    fn selection_set(
        &mut self,
        set: SelectionSetId,
        done: &IdVec<SelectionSetId, Operand>,
    ) -> Operand {
        let operation = self.operation;
        let row = &operation.selection_sets[set];
        let mut variants: Vec<(Symbol, BitSet, Operand)> = Vec::new();
        for id in &row.fields {
            let node = &operation.fields[*id];
            let FieldRef::Field(field) = node.field else {
                continue;
            };
            let below = node.selection_set.map(|set| done[set]);
            let below = below.unwrap_or(Operand::ZERO);
            let first = variants.len();
            let mut size = Operand::Const(Value::of(1));
            let own = self.variants(node, field);
            let is_only = own.len() == 1;
            for variant in own {
                let (cost, of) = self.field(*id, node, set, variant.row, below);
                size = of.size;
                if self.settings.fields {
                    self.rows.push(VariantRow {
                        node: *id,
                        types: (!is_only).then(|| variant.types.clone()),
                        args: of.args,
                        weight: of.weight,
                    });
                }
                variants.push((node.key, variant.types, cost));
            }
            if self.settings.fields {
                let costs = variants[first..].iter().map(|(_, _, cost)| *cost);
                let cost = self.max(costs.collect());
                self.fields.push(FieldRow {
                    node: *id,
                    size,
                    cost,
                });
            }
        }
        let parts = variants.iter().map(|(key, types, cost)| Part {
            key: *key,
            types,
            cost: *cost,
        });
        let alternatives = place::alternatives(&row.possible, parts.collect(), &mut self.pairs);
        self.place(alternatives)
    }

    fn place(&mut self, place: Alternatives) -> Operand {
        let mut sum = place.common;
        if place.classes {
            let sums = place.lists.into_iter().map(|list| self.sum(list));
            let sums: Vec<Operand> = sums.collect();
            sum.push(self.max(sums));
        } else {
            let most = place.lists.into_iter().map(|list| self.max(list));
            sum.extend(most);
        }
        self.sum(sum)
    }

    /// The rows of a field that cost something of their own, each with the types of the node that have it.
    fn variants(&mut self, node: &FieldNode, row: FieldId) -> Vec<Variant> {
        let all = Variant {
            row,
            types: node.types.clone(),
        };
        let name = self.schema.fields[row].name;
        if node.types.len() <= 1 || !self.special.contains(&name) {
            return vec![all];
        }
        let ty = self.operation.selection_sets[node.parent].ty;
        if !self.variants.contains_key(&(ty, name)) {
            let variants = self.variants_of(ty, name);
            self.variants.insert((ty, name), variants);
        }
        let known = self.variants.get(&(ty, name)).into_iter().flatten();
        if self.pairs <= PAIRS_MAX {
            self.pairs = self.pairs.saturating_add(known.clone().count());
        }
        let exact = known.clone().count() <= VARIANTS_MAX && self.pairs <= PAIRS_MAX;
        let mut out: Vec<Variant> = Vec::new();
        for variant in known {
            let types = variant.types.intersection(&node.types);
            if !types.is_empty() {
                out.push(Variant {
                    row: variant.row,
                    types,
                });
            }
        }
        if !exact {
            // Any of them may be met: each counts for all types.
            for variant in &mut out {
                variant.types = node.types.clone();
            }
        }
        if out.is_empty() {
            out.push(all);
        }
        out
    }

    fn variants_of(&self, ty: TypeId, name: Symbol) -> Vec<Variant> {
        let mut out: Vec<Variant> = Vec::new();
        for object in self.schema.types[ty].possible.iter() {
            let Some(row) = self.schema.fields_by_name.get(&(TypeId(object), name)) else {
                continue;
            };
            match out.iter_mut().find(|known| self.same(known.row, *row)) {
                Some(known) => {
                    known.types.insert(object);
                }
                None => out.push(Variant {
                    row: *row,
                    types: [object].into_iter().collect(),
                }),
            }
        }
        out
    }

    /// Whether two rows of equal name cost the same with equal arguments.
    fn same(&self, a: FieldId, b: FieldId) -> bool {
        let (costs, schema) = (self.costs, self.schema);
        let (one, other) = (&schema.fields[a], &schema.fields[b]);
        let input = |id: &InputId| {
            let input = &schema.inputs[*id];
            (input.name, input.default.as_ref(), costs.inputs.get(id))
        };
        let same_size = |x: &ListSize, y: &ListSize| {
            let path = |s: &SlicingArgument| (schema.inputs[s.input].name, s.path.clone());
            x.assumed == y.assumed
                && x.exactly_one == y.exactly_one
                && x.sized == y.sized
                && x.slicing.iter().map(path).eq(y.slicing.iter().map(path))
        };
        let sizes = |id: &FieldId| costs.list_sizes.get(id).map_or(&[][..], Vec::as_slice);
        let (x, y) = (sizes(&a), sizes(&b));
        costs.fields.get(&a) == costs.fields.get(&b)
            && one.ty == other.ty
            && one.args.iter().map(input).eq(other.args.iter().map(input))
            && x.len() == y.len()
            && x.iter().zip(y).all(|(x, y)| same_size(x, y))
    }

    /// The cost of a field on one object, and what it is made of.
    fn field(
        &mut self,
        id: FieldNodeId,
        node: &FieldNode,
        set: SelectionSetId,
        row: FieldId,
        selections: Operand,
    ) -> (Operand, FieldOperands) {
        let counted = self.settings.counted;
        let is_counted = counted.is_none_or(|counted| counted.contains(id.0));
        let args = if is_counted && self.settings.weights.is_none() {
            self.arguments(node, row)
        } else {
            Operand::ZERO
        };
        let def = &self.schema.fields[row];
        let of_type = || self.costs.of_type(self.schema, def.ty.id);
        let weight = self.costs.fields.get(&row).copied().unwrap_or_else(of_type);
        let weight = match self.settings.weights {
            Some(weights) => weights.get(&id).copied().unwrap_or(0),
            None => u64::from(weight),
        };
        let lists = u32::from(def.ty.wrapping.lists());
        let size = if lists == 0 {
            Operand::Const(Value::of(1))
        } else {
            self.size(id, node, set, row)
        };
        let list_size = u64::from(self.settings.list_size);
        let field = FieldOperands {
            args,
            size,
            nested: list_size.saturating_pow(lists.saturating_sub(1)),
            weight: if is_counted { weight } else { 0 },
            selections,
        };
        let cond = (node.cond != CondId::TRUE).then_some(node.cond);
        (self.field_cost(cond, field), field)
    }

    fn field_cost(&mut self, cond: Option<CondId>, field: FieldOperands) -> Operand {
        if let (Operand::Const(args), Operand::Const(size), Operand::Const(below)) =
            (field.args, field.size, field.selections)
        {
            let item = Value::of(field.weight).plus(below);
            let items = size.times(Value::of(field.nested)).times(item);
            let cost = args.plus(items);
            if cond.is_none() || cost == Value::ZERO {
                return Operand::Const(cost);
            }
        }
        let cond = cond.map(|cond| self.condition(cond));
        self.step(Step::Field { cond, field })
    }

    fn condition(&mut self, cond: CondId) -> u32 {
        if let Some(known) = self.known_conditions.get(&cond) {
            return *known;
        }
        let clauses = self.operation.conditions.clauses(cond).to_vec();
        self.conditions.push(clauses);
        let index = self.conditions.len() as u32 - 1;
        self.known_conditions.insert(cond, index);
        index
    }

    /// How many items a list has: what the fields above or its own directives say, the largest of it.
    fn size(
        &mut self,
        id: FieldNodeId,
        node: &FieldNode,
        set: SelectionSetId,
        row: FieldId,
    ) -> Operand {
        let name = self.schema.fields[row].name;
        let above = self.inherited[set].iter();
        let above = above.filter(|sized| sized.path == [name]);
        let mut said: Vec<Operand> = above.map(|sized| sized.size).collect();
        let costs = self.costs;
        for one in costs.list_sizes.get(&row).into_iter().flatten() {
            if one.sized.is_empty() {
                said.push(self.said(id, node, one));
            }
        }
        self.largest(said, u64::from(self.settings.list_size))
    }

    /// What one `@listSize` says of a list, [`ABSENT`] if nothing.
    fn said(&mut self, id: FieldNodeId, node: &FieldNode, size: &ListSize) -> Operand {
        let mut given: Vec<Operand> = Vec::new();
        for slicing in &size.slicing {
            let input = &self.schema.inputs[slicing.input];
            let name = self.schema.name(input.name);
            let default = input.default.as_ref();
            let arg = node.args.iter().find(|arg| *arg.name == *name);
            let (value, default) = match arg {
                Some(arg) => self.given(slicing.input, &arg.value, &slicing.path, default),
                None => {
                    let size = self.default(slicing.input, default, &slicing.path);
                    (NOTHING, constant(size))
                }
            };
            given.extend([value, default]);
        }
        let assumed = size.assumed.map(u64::from).unwrap_or(ABSENT);
        let one = Some(id).filter(|_| size.exactly_one);
        self.largest_given(given, assumed, one)
    }

    /// The largest of sizes that were said in several ways.
    fn largest(&mut self, said: Vec<Operand>, fallback: u64) -> Operand {
        let given = said.into_iter().flat_map(|size| [size, NOTHING]);
        let given = given.collect();
        self.largest_given(given, fallback, None)
    }

    /// A size: the largest of what is given, in pairs with the default of each, else `fallback`.
    fn largest_given(
        &mut self,
        given: Vec<Operand>,
        fallback: u64,
        one: Option<FieldNodeId>,
    ) -> Operand {
        let fixed = given.iter().map(|operand| match operand {
            Operand::Const(amount) => Some(*amount),
            Operand::Step(_) => None,
        });
        if let Some(fixed) = fixed.collect::<Option<Vec<Value>>>() {
            let pairs = fixed.chunks_exact(2).map(|pair| (pair[0], pair[1]));
            return Operand::Const(evaluate::size(pairs, fallback, one));
        }
        let given = self.list(&given);
        self.step(Step::Size {
            given,
            fallback,
            one,
        })
    }

    /// The number or length at a path of an argument, and what counts if nothing is given there: the default of the
    /// argument, or of the input field that is left out or gets a variable without a value.
    fn given(
        &mut self,
        input: InputId,
        value: &ArgValue,
        path: &[InputId],
        default: Option<&ConstValue>,
    ) -> (Operand, Operand) {
        match (value, path) {
            (ArgValue::Const(value), _) => {
                let size = self.constant(input, value, path).unwrap_or(ABSENT);
                (Operand::Const(Value::of(size)), NOTHING)
            }
            (ArgValue::Variable(variable), _) => {
                let size = self.default(input, default, path);
                let default = self.unless_given(*variable, size);
                let path = self.path(path);
                let known = Known::Given(*variable, path);
                if let Some(operand) = self.known.get(&known) {
                    return (*operand, default);
                }
                let variable = *variable;
                let operand = self.step(Step::Given { variable, path });
                self.known.insert(known, operand);
                (operand, default)
            }
            (ArgValue::List(items), []) => {
                let length = items.len() as u64;
                (Operand::Const(Value::of(length)), NOTHING)
            }
            (ArgValue::Object(fields), [first, rest @ ..]) => {
                let schema = self.schema;
                let field = &schema.inputs[*first];
                let name = schema.name(field.name);
                let default = field.default.as_ref();
                match fields.iter().find(|(field, _)| **field == *name) {
                    Some((_, value)) => self.given(*first, value, rest, default),
                    None => (NOTHING, constant(self.default(*first, default, rest))),
                }
            }
            _ => (NOTHING, NOTHING),
        }
    }

    /// A default that counts where a variable has no value.
    fn unless_given(&mut self, variable: u32, size: Option<u64>) -> Operand {
        let Some(number) = size else {
            return NOTHING;
        };
        let known = Known::Default(variable, number);
        if let Some(operand) = self.known.get(&known) {
            return *operand;
        }
        let operand = self.step(Step::Default { variable, number });
        self.known.insert(known, operand);
        operand
    }

    fn default(
        &self,
        input: InputId,
        default: Option<&ConstValue>,
        path: &[InputId],
    ) -> Option<u64> {
        self.constant(input, default?, path)
    }

    fn path(&mut self, path: &[InputId]) -> u32 {
        if let Some(known) = self.known_paths.get(path) {
            return *known;
        }
        self.paths.push(path.to_vec());
        let index = self.paths.len() as u32 - 1;
        self.known_paths.insert(path.to_vec(), index);
        index
    }

    /// The number or length at a path of a value of an argument or input field.
    fn constant(&self, input: InputId, value: &ConstValue, path: &[InputId]) -> Option<u64> {
        let mut value = value;
        let last = path.last().copied().unwrap_or(input);
        for input in path {
            let name = self.schema.name(self.schema.inputs[*input].name);
            let ConstValue::Object(fields) = value else {
                return None;
            };
            let field = fields.iter().find(|(field, _)| **field == *name);
            value = match field {
                Some((_, value)) => value,
                None => self.schema.inputs[*input].default.as_ref()?,
            };
        }
        let is_list = self.schema.inputs[last].ty.wrapping.nullable().is_list();
        match value {
            ConstValue::List(items) => Some(items.len() as u64),
            ConstValue::Null => None,
            // A single value is a list of one.
            _ if is_list => Some(1),
            ConstValue::Int(text) | ConstValue::Float(text) => values::number(text),
            _ => None,
        }
    }

    fn arguments(&mut self, node: &FieldNode, row: FieldId) -> Operand {
        let mut costs = Vec::new();
        for arg in &node.args {
            let args = &self.schema.fields[row].args;
            let Some(input) = self.schema.arg_by_name(args, &arg.name) else {
                continue;
            };
            costs.push(self.input(input, &arg.value));
        }
        self.sum(costs)
    }

    /// What a value of an argument or of an input field costs.
    fn input(&mut self, input: InputId, value: &ArgValue) -> Operand {
        let weight = self.costs.inputs.get(&input).copied();
        let Type { id: ty, .. } = self.schema.inputs[input].ty;
        let of_type = self.costs.of_type(self.schema, ty);
        let own = u64::from(weight.map_or(of_type, |_| 0));
        let paid = Operand::Const(Value::of(u64::from(weight.unwrap_or(0))));
        if let ArgValue::Variable(variable) = value {
            let is_object = self.schema.types[ty].kind == TypeKind::InputObject;
            if !is_object && weight.is_none() && own == 0 {
                return Operand::ZERO;
            }
            let variable = *variable;
            let known = Known::Input(variable, ty, weight);
            if let Some(operand) = self.known.get(&known) {
                return *operand;
            }
            let operand = self.step(Step::Input {
                variable,
                ty,
                weight,
            });
            self.known.insert(known, operand);
            return operand;
        }
        let rest = self.contents(ty, value, own);
        self.sum(vec![paid, rest])
    }

    /// What is in a value, `own` being paid for each object or leaf. The nesting of values is bounded by the parser.
    fn contents(&mut self, ty: TypeId, value: &ArgValue, own: u64) -> Operand {
        match value {
            ArgValue::Const(value) => Operand::Const(Value::of(self.fixed(ty, value, own))),
            // An item of a list that is a variable.
            ArgValue::Variable(variable) => {
                let (variable, weight) = (*variable, (own == 0).then_some(0));
                self.step(Step::Input {
                    variable,
                    ty,
                    weight,
                })
            }
            ArgValue::List(items) => {
                let items = items.iter().map(|item| self.contents(ty, item, own));
                let items = items.collect();
                self.sum(items)
            }
            ArgValue::Object(fields) => {
                let mut costs = vec![Operand::Const(Value::of(own))];
                for (name, value) in fields {
                    if let Some(input) = self.schema.input_field_by_name(ty, name) {
                        costs.push(self.input(input, value));
                    }
                }
                self.sum(costs)
            }
        }
    }

    fn fixed(&self, ty: TypeId, value: &ConstValue, own: u64) -> u64 {
        match value {
            ConstValue::Null => 0,
            ConstValue::List(items) => {
                let items = items.iter().map(|item| self.fixed(ty, item, own));
                items.fold(0, u64::saturating_add)
            }
            ConstValue::Object(fields) if self.schema.types[ty].kind == TypeKind::InputObject => {
                let fields = fields.iter().map(|(name, value)| {
                    let Some(input) = self.schema.input_field_by_name(ty, name) else {
                        return 0;
                    };
                    let weight = self.costs.inputs.get(&input).copied();
                    let ty = self.schema.inputs[input].ty.id;
                    let of_type = self.costs.of_type(self.schema, ty);
                    let own = weight.map_or(of_type, |_| 0);
                    let paid = u64::from(weight.unwrap_or(0));
                    paid.saturating_add(self.fixed(ty, value, u64::from(own)))
                });
                fields.fold(own, u64::saturating_add)
            }
            _ => own,
        }
    }
}
