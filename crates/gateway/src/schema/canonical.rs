//! The canonical form of an operation: what two documents share if one plan serves both.
//!
//! It starts from the normal form, so fragments, whitespace and constant conditions are gone already. Here the
//! operation's name and unused variables go, variables are numbered by first use, and literal arguments become
//! variables, so that `product(id: 1)` and `product(id: 2)` are the same operation with other values. The order of
//! fields stays, because clients see it; so do the names of the client's variables, because subgraphs see them.
//!
//! A literal stays where it is if its meaning could change on the way through a variable: below `__schema` and `__type`,
//! in fields that a `@key`, `@requires` or `@provides` selection names with arguments (the planner compares those),
//! enum values and structures in custom scalars, and fields whose concrete types declare the argument differently.
//! Equal literals of one type become one variable, because the planner shares what is equal.
//!
//! Invariants: equal keys mean equal canonical operations under one schema; the key names types and fields by name, so it
//! means the same under another schema that has them. Keys are compared whole, never by hash.

use ogive_base::{FastMap, FastSet, IdVec, Symbol};
use ogive_federation::Supergraph;
use ogive_operation::{
    ArgValue, Clause, CondId, Conditions, FieldNode, FieldNodeId, FieldRef, Operation,
    SelectionSetId, Variable, coerce::literal_json,
};
use ogive_schema::{ConstValue, Schema, Type, TypeId, TypeKind};

/// An operation in canonical form.
#[derive(Debug)]
pub struct Canonical {
    /// The form as bytes.
    pub key: Box<[u8]>,
    /// The operation to plan.
    pub operation: Operation,
    /// Its variables, from a client's.
    pub binding: Binding,
}

/// Where the values of a canonical operation's variables come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    values: Box<[Bound]>,
    /// The client's variables as they are.
    identity: bool,
}

/// One variable of a canonical operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bound {
    /// A variable of the client's operation, by index.
    Client(u32),
    /// A literal of the client's document, as JSON.
    Literal(Box<str>),
}

impl Binding {
    /// The values of the canonical operation's variables.
    pub fn apply(&self, mut client: Vec<Option<Box<str>>>) -> Vec<Option<Box<str>>> {
        if self.identity {
            return client;
        }
        let value = |bound: &Bound| match bound {
            // Every client variable is bound at most once.
            Bound::Client(index) => client.get_mut(*index as usize).and_then(Option::take),
            Bound::Literal(json) => Some(json.clone()),
        };
        self.values.iter().map(value).collect()
    }
    /// The literals that became variables, with the index of the variable.
    pub fn literals(&self) -> impl Iterator<Item = (usize, &str)> {
        let values = self.values.iter().enumerate();
        values.filter_map(|(index, bound)| match bound {
            Bound::Literal(json) => Some((index, &**json)),
            Bound::Client(_) => None,
        })
    }
    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        size_of_val(&*self.values) + self.literals().map(|(_, json)| json.len()).sum::<usize>()
    }
}

/// Names of fields whose arguments the planner compares as literals.
#[derive(Clone, Debug, Default)]
pub struct ComparedFields(FastSet<Symbol>);

impl ComparedFields {
    /// Those of a supergraph.
    pub fn new(supergraph: &Supergraph) -> Self {
        let sets = supergraph.graph.field_sets.as_slice();
        let items = sets.iter().flat_map(|set| &set.items);
        let with_arguments = items.filter(|item| !item.args.is_empty());
        let fields = with_arguments.filter_map(|item| item.field);
        ComparedFields(fields.map(|f| supergraph.schema.fields[f].name).collect())
    }
}

/// Brings an operation into canonical form.
pub fn canonical(
    supergraph: &Supergraph,
    compared: &ComparedFields,
    operation: &Operation,
) -> Canonical {
    let mut work = Work {
        schema: &supergraph.api,
        client: operation,
        variables: Vec::new(),
        bound: Vec::new(),
        client_index: FastMap::default(),
        literal_index: FastMap::default(),
        names: operation.variables.iter().map(|v| v.name.clone()).collect(),
        conditions: Conditions::default(),
    };
    let mut out = operation.clone();
    out.name = None;
    let local = local_sets(operation);
    for (id, field) in out.fields.iter_mut() {
        let lift = !local[operation.fields[id].parent] && work.may_lift(field, compared);
        work.arguments(field, lift);
    }
    // Conditions come after all arguments; the order only has to be a function of the operation.
    for (_, field) in out.fields.iter_mut() {
        field.cond = work.condition(field.cond);
    }
    for (_, set) in out.selection_sets.iter_mut() {
        for entry in &mut set.order {
            entry.cond = work.condition(entry.cond);
        }
    }
    for (_, group) in out.deferral.groups.iter_mut() {
        group.variable = group.variable.map(|v| work.client_variable(v));
    }
    // In order of fields: the numbers of variables are a function of the operation.
    let is_streamed = !out.deferral.streams.is_empty();
    for field in operation.fields.ids().filter(|_| is_streamed) {
        if let Some(stream) = out.deferral.streams.get_mut(&field) {
            stream.initial_variable = stream.initial_variable.map(|v| work.client_variable(v));
            stream.variable = stream.variable.map(|v| work.client_variable(v));
        }
    }
    let values = work.bound.into_boxed_slice();
    let identity = values.len() == operation.variables.len()
        && (0..).zip(&values).all(|(i, b)| *b == Bound::Client(i));
    out.variables = work.variables;
    out.conditions = work.conditions;
    Canonical {
        key: key(&supergraph.api, &out),
        operation: out,
        binding: Binding { values, identity },
    }
}

/// Which selection sets the gateway answers itself.
fn local_sets(operation: &Operation) -> IdVec<SelectionSetId, bool> {
    let mut local: IdVec<SelectionSetId, bool> = IdVec::new();
    for (_, set) in operation.selection_sets.iter() {
        let below = set.parent.is_some_and(|field: FieldNodeId| {
            let field = &operation.fields[field];
            // Parents come before their children.
            matches!(field.field, FieldRef::Schema | FieldRef::Type) || local[field.parent]
        });
        local.push(below);
    }
    local
}

struct Work<'a> {
    schema: &'a Schema,
    client: &'a Operation,
    variables: Vec<Variable>,
    bound: Vec<Bound>,
    /// By the client's index.
    client_index: FastMap<u32, u32>,
    literal_index: FastMap<(Type, Box<str>), u32>,
    /// Names that are taken.
    names: FastSet<Box<str>>,
    conditions: Conditions,
}

impl Work<'_> {
    fn may_lift(&self, field: &FieldNode, compared: &ComparedFields) -> bool {
        let FieldRef::Field(row) = field.field else {
            return false;
        };
        let name = self.schema.fields[row].name;
        if compared.0.contains(&name) {
            return false;
        }
        // One node may answer for several concrete types, whose arguments need not have the same type.
        field.types.iter().all(|ty| {
            let of_type = self.schema.fields_by_name.get(&(TypeId(ty), name));
            of_type.is_some_and(|other| {
                *other == row
                    || field.args.iter().all(|arg| {
                        let theirs = &self.schema.fields[*other].args;
                        let theirs = self.schema.arg_by_name(theirs, &arg.name);
                        let ours = self.schema.inputs.get(arg.input);
                        theirs.is_some_and(|theirs| {
                            ours.is_some_and(|ours| ours.ty == self.schema.inputs[theirs].ty)
                        })
                    })
            })
        })
    }

    fn arguments(&mut self, field: &mut FieldNode, lift: bool) {
        for arg in &mut field.args {
            let ty = self.schema.inputs.get(arg.input).map(|input| input.ty);
            let ty = ty.filter(|_| lift);
            let value = std::mem::replace(&mut arg.value, ArgValue::List(Vec::new()));
            arg.value = self.value(&arg.name, value, ty);
        }
    }

    /// Renumbers variables and lifts literals; `ty` is `None` where literals stay. Nesting is bounded by the parser's
    /// depth limit.
    fn value(&mut self, name: &str, value: ArgValue, ty: Option<Type>) -> ArgValue {
        match value {
            ArgValue::Variable(index) => ArgValue::Variable(self.client_variable(index)),
            ArgValue::Const(literal) => {
                let json = ty
                    .filter(|ty| self.means_the_same(&literal, *ty))
                    .and_then(|ty| Some((ty, literal_json(self.schema, &literal, ty)?)));
                match json {
                    Some((ty, json)) => ArgValue::Variable(self.literal(name, ty, json)),
                    None => ArgValue::Const(literal),
                }
            }
            ArgValue::List(items) => {
                let item = ty.and_then(item_type);
                let items = items.into_iter();
                ArgValue::List(items.map(|v| self.value(name, v, item)).collect())
            }
            ArgValue::Object(fields) => {
                let object = ty.filter(|ty| {
                    self.schema.types[ty.id].kind == TypeKind::InputObject && !ty.wrapping.is_list()
                });
                let fields = fields.into_iter().map(|(name, value)| {
                    let of_field = object.and_then(|ty| {
                        let field = self.schema.input_field_by_name(ty.id, &name)?;
                        Some(self.schema.inputs[field].ty)
                    });
                    let value = self.value(&name, value, of_field);
                    (name, value)
                });
                ArgValue::Object(fields.collect())
            }
        }
    }

    /// Whether a literal means the same as its JSON sent as a variable.
    fn means_the_same(&self, literal: &ConstValue, ty: Type) -> bool {
        let mut open = vec![(literal, ty)];
        while let Some((literal, ty)) = open.pop() {
            let def = &self.schema.types[ty.id];
            match (literal, item_type(ty)) {
                (ConstValue::List(items), Some(item)) => {
                    open.extend(items.iter().map(|value| (value, item)));
                    continue;
                }
                (single, Some(item)) => {
                    if *single != ConstValue::Null {
                        open.push((single, item));
                    }
                    continue;
                }
                (_, None) => {}
            }
            let plain = match literal {
                ConstValue::Enum(_) => def.kind == TypeKind::Enum,
                ConstValue::List(_) => false,
                ConstValue::Object(fields) if def.kind == TypeKind::InputObject => {
                    for (name, value) in fields {
                        let Some(field) = self.schema.input_field_by_name(ty.id, name) else {
                            return false;
                        };
                        open.push((value, self.schema.inputs[field].ty));
                    }
                    true
                }
                ConstValue::Object(_) => false,
                _ => true,
            };
            if !plain {
                return false;
            }
        }
        true
    }

    fn client_variable(&mut self, index: u32) -> u32 {
        if let Some(known) = self.client_index.get(&index) {
            return *known;
        }
        let variable = self.client.variables[index as usize].clone();
        let new = self.push(variable, Bound::Client(index));
        self.client_index.insert(index, new);
        new
    }

    fn literal(&mut self, name: &str, ty: Type, json: String) -> u32 {
        let json = json.into_boxed_str();
        if let Some(known) = self.literal_index.get(&(ty, json.clone())) {
            return *known;
        }
        let mut free: Box<str> = name.into();
        let mut n = 0;
        while !self.names.insert(free.clone()) {
            n += 1;
            free = format!("{name}_{n}").into();
        }
        let variable = Variable {
            name: free,
            ty,
            default: None,
        };
        let new = self.push(variable, Bound::Literal(json.clone()));
        self.literal_index.insert((ty, json), new);
        new
    }

    fn push(&mut self, variable: Variable, bound: Bound) -> u32 {
        self.variables.push(variable);
        self.bound.push(bound);
        self.bound.len() as u32 - 1
    }

    fn condition(&mut self, cond: CondId) -> CondId {
        if cond == CondId::TRUE {
            return cond;
        }
        let client = self.client;
        let clauses = client.conditions.clauses(cond).iter().map(|clause| {
            let mut clause: Clause = clause
                .iter()
                .map(|(variable, wanted)| (self.client_variable(*variable), *wanted))
                .collect();
            clause.sort_unstable();
            clause
        });
        let clauses = clauses.collect();
        // A condition of the normal form always has clauses.
        self.conditions.of(clauses).unwrap_or(CondId::TRUE)
    }
}

fn item_type(ty: Type) -> Option<Type> {
    let wrapping = ty.wrapping.nullable().item()?;
    Some(Type { wrapping, ..ty })
}

/// The canonical operation as bytes: every string and list with its length first, so nothing can be read two ways.
fn key(schema: &Schema, op: &Operation) -> Box<[u8]> {
    let mut key = Key {
        schema,
        out: vec![KEY_VERSION, op.kind as u8],
    };
    key.number(op.variables.len());
    for variable in &op.variables {
        key.text(&variable.name);
        key.text(&schema.display_type(variable.ty));
        match &variable.default {
            Some(default) => key.text(&format!("={default}")),
            None => key.text(""),
        }
    }
    key.number(op.conditions.len());
    for at in 0..op.conditions.len() {
        let clauses = op.conditions.clauses(CondId(at as u32));
        key.number(clauses.len());
        for clause in clauses {
            key.number(clause.len());
            for (variable, wanted) in clause {
                key.number(2 * *variable as usize + usize::from(*wanted));
            }
        }
    }
    key.number(op.selection_sets.len());
    for (_, set) in op.selection_sets.iter() {
        key.text(schema.type_name(set.ty));
        key.number(set.parent.map_or(0, |field| field.0 as usize + 1));
        key.number(set.order.len());
        for entry in &set.order {
            key.number(entry.field.0 as usize);
            key.number(entry.cond.0 as usize);
            key.types(&entry.types, &set.possible);
        }
    }
    if !op.deferral.is_empty() {
        key.deferral(op);
    }
    key.number(op.fields.len());
    for (_, field) in op.fields.iter() {
        key.field(op, field);
    }
    key.out.into_boxed_slice()
}

/// Changes whenever keys are made in another way.
const KEY_VERSION: u8 = 2;

struct Key<'a> {
    schema: &'a Schema,
    out: Vec<u8>,
}

impl Key<'_> {
    fn number(&mut self, mut number: usize) {
        while number >= 0x80 {
            self.out.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.out.push(number as u8);
    }
    fn text(&mut self, text: &str) {
        self.number(text.len());
        self.out.extend_from_slice(text.as_bytes());
    }
    /// Type names, or nothing for all possible types.
    fn types(&mut self, types: &ogive_base::BitSet, possible: &ogive_base::BitSet) {
        if possible.is_subset(types) {
            return self.number(0);
        }
        self.number(types.len() + 1);
        for ty in types.iter() {
            self.text(self.schema.type_name(TypeId(ty)));
        }
    }
    /// What is answered later. A field belongs to groups by its appearances.
    fn deferral(&mut self, op: &Operation) {
        let optional = |id: Option<u32>| id.map_or(0, |id| id as usize + 1);
        self.number(op.deferral.groups.len());
        for (_, group) in op.deferral.groups.iter() {
            self.text(group.label.as_deref().unwrap_or_default());
            self.number(usize::from(group.label.is_some()));
            self.number(optional(group.parent.map(|parent| parent.0)));
            self.number(group.place.0 as usize);
            self.number(optional(group.variable));
        }
        for (_, set) in op.selection_sets.iter() {
            for entry in &set.order {
                self.number(optional(entry.defer.map(|group| group.0)));
            }
        }
        self.number(op.deferral.streams.len());
        for field in op.fields.ids() {
            if let Some(stream) = op.deferral.streams.get(&field) {
                self.number(field.0 as usize);
                self.text(stream.label.as_deref().unwrap_or_default());
                self.number(usize::from(stream.label.is_some()));
                self.number(stream.initial_count as usize);
                self.number(optional(stream.initial_variable));
                self.number(optional(stream.variable));
            }
        }
    }
    fn field(&mut self, op: &Operation, field: &FieldNode) {
        self.number(field.parent.0 as usize);
        self.text(&op.keys[field.key]);
        match field.field {
            FieldRef::Field(row) => self.text(self.schema.field_name(row)),
            FieldRef::Typename => self.text("__typename"),
            FieldRef::Schema => self.text("__schema"),
            FieldRef::Type => self.text("__type"),
        }
        self.types(&field.types, &op.selection_sets[field.parent].possible);
        self.number(field.cond.0 as usize);
        self.number(field.selection_set.map_or(0, |set| set.0 as usize + 1));
        self.text(&self.schema.display_type(field.ty));
        self.number(field.args.len());
        for arg in &field.args {
            self.text(&arg.name);
            self.value(&arg.value);
        }
    }
    /// Nesting is bounded by the parser's depth limit.
    fn value(&mut self, value: &ArgValue) {
        match value {
            ArgValue::Variable(index) => {
                self.out.push(0);
                self.number(*index as usize);
            }
            ArgValue::Const(literal) => {
                self.out.push(1);
                self.text(&literal.to_string());
            }
            ArgValue::List(items) => {
                self.out.push(2);
                self.number(items.len());
                for item in items {
                    self.value(item);
                }
            }
            ArgValue::Object(fields) => {
                self.out.push(3);
                self.number(fields.len());
                for (name, value) in fields {
                    self.text(name);
                    self.value(value);
                }
            }
        }
    }
}
