//! Request text and response shapes.
//!
//! The selection of a visit is written once, as tokens under conditions, together with the shape that says where each
//! response key lands. A value keeps the client's response key if no other value of the same object claims it with
//! another field, arguments, type or sub-selection; else it gets an alias (`SameResponseShape`, specification 5.3.2,
//! holds by construction). On abstract types, what all concrete types of the subgraph share is written once on the
//! interface; the rest goes into fragments.

use std::hash::{Hash, Hasher};

use ogive_base::{BitSet, FastMap, Interner, Symbol};
use ogive_federation::SubgraphId;
use ogive_operation::CondId;
use ogive_plan::{
    Gate, Lookup, ObjectShape, OperationKind, Segment, ShapeField, ShapeId, SlotIndex, VariableUse,
};
use ogive_schema::{FieldId, Type, TypeId, Wrapping};

use crate::{
    assign::VisitId,
    emit::{
        Emitter,
        conditions::Both,
        lookups::LookupList,
        output::layout_id,
        plan_cond, print,
        selection::{Chunk, Piece, SelectionId},
        tables::Positions,
    },
    tree::{Fact, FactId, PlaceId},
};

/// A top-level part of a request: the root selection, or one `_entities` field.
pub(crate) struct Part {
    pub(crate) lookup: Option<u16>,
    pub(crate) pieces: Vec<Piece>,
}

/// One value of some concrete types, with its own sub-selection.
#[derive(Clone, Copy)]
pub(crate) struct Item {
    pub(crate) fact: FactId,
    pub(crate) name: Symbol,
    pub(crate) cond: CondId,
    sub: Option<(SelectionId, ShapeId)>,
    /// The subgraph, if it fills arguments of the field from objects above.
    contextual: Option<SubgraphId>,
}

/// A response name that is taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    pub(crate) name: Symbol,
    /// The value; `None` for `__typename`.
    fact: Option<FactId>,
    /// Type in the subgraph.
    ty: Type,
    sub: Option<SelectionId>,
}

impl Taken {
    /// Whether both may stand in one selection set for different concrete types (`SameResponseShape`).
    pub(crate) fn agrees_with(&self, other: &Taken) -> bool {
        self.ty == other.ty && self.sub == other.sub
    }
}

/// The response names of one object.
#[derive(Default)]
pub(crate) struct Names {
    taken: Vec<Taken>,
    at: Positions<Symbol>,
    /// Aliases given instead of a name: by that name, the field's name, the type and the sub-selection.
    aliases: FastMap<(Symbol, Symbol, Type, Option<SelectionId>), Vec<Taken>>,
    /// By name, the number of the next alias.
    numbers: FastMap<Symbol, u32>,
}

impl Names {
    /// All names, in order.
    pub(crate) fn taken(&self) -> impl Iterator<Item = Symbol> {
        self.taken.iter().map(|taken| taken.name)
    }
    fn push(&mut self, taken: Taken) {
        self.at.push(taken.name);
        self.taken.push(taken);
    }
}

/// Empty lists that are used again: every object needs some of each.
#[derive(Default)]
pub(crate) struct Pool {
    pub(crate) wanted: Vec<Vec<(VisitId, FactId)>>,
    taken: Vec<Vec<Taken>>,
    names: Vec<Positions<Symbol>>,
    items: Vec<Vec<Item>>,
    pieces: Vec<Vec<Piece>>,
    shapes: Positions<ShapeKey>,
    body: Text,
    request: Text,
}

impl Pool {
    /// Takes back the names of an object.
    pub(crate) fn put_names(&mut self, mut names: Vec<Taken>) {
        names.clear();
        self.taken.push(names);
    }
}

/// What is asked of an object.
pub(crate) struct Selected {
    pub(crate) selection: SelectionId,
    pub(crate) shape: ShapeId,
    /// Response names of the object itself, each once.
    pub(crate) names: Vec<Taken>,
    /// Holds if anything is asked.
    pub(crate) cond: CondId,
}

impl Emitter<'_> {
    /// The selection of some values of one place in one request (no braces), and the shape of its objects.
    /// `declared` is the subgraph's type of the place; `None` for the root and for look-ups, whose concrete type is
    /// known. Recursion is bounded by the operation's depth limit. Takes time in proportion to the values and the
    /// types they serve.
    pub(crate) fn object(
        &mut self,
        place: PlaceId,
        wanted: Vec<(VisitId, FactId)>,
        subgraph: u32,
        declared: Option<TypeId>,
    ) -> Selected {
        let mut names = Names {
            taken: self.pool.taken.pop().unwrap_or_default(),
            at: self.pool.names.pop().unwrap_or_default(),
            ..Names::default()
        };
        let selected = self.object_among(place, wanted, subgraph, declared, &mut names);
        names.at.clear();
        self.pool.names.push(names.at);
        Selected {
            names: names.taken,
            ..selected
        }
    }

    /// The same beside other selections of the same selection set, which took `names`.
    pub(crate) fn object_among(
        &mut self,
        place: PlaceId,
        mut wanted: Vec<(VisitId, FactId)>,
        subgraph: u32,
        declared: Option<TypeId>,
        names: &mut Names,
    ) -> Selected {
        let tree = self.tree;
        let is_abstract = declared.is_some_and(|ty| tree.schema().types[ty].kind.is_abstract());
        // An interface object is an object there, and its name tells nothing.
        let is_interface_object =
            is_abstract && declared.is_some_and(|ty| tree.is_interface_object(ty, subgraph));
        let abstract_here = is_abstract && !is_interface_object;
        let is_only_type = self.possible[place].len() <= 1;
        let ask_typename = match is_interface_object {
            // So that nobody takes its objects for the only type there seems to be.
            true => is_only_type && tree.may_be_untold(place),
            false => declared.is_some() && (abstract_here || !is_only_type),
        };
        let told = self.without_types(&mut wanted);
        if ask_typename {
            let id = ogive_schema::builtins::STRING;
            let ty = Type {
                id,
                wrapping: Wrapping::NON_NULL,
            };
            names.push(Taken {
                name: self.names.intern("__typename"),
                fact: None,
                ty,
                sub: None,
            });
        }
        // Clients' values choose their names first, so that they keep their response keys; gateway-only values are
        // written first, so that an object needs one cut.
        wanted.sort_by_key(|(_, fact)| tree.facts[*fact].client.is_none());
        let mut items: Vec<Item> = self.pool.items.pop().unwrap_or_default();
        items.reserve(wanted.len());
        for (visit, fact) in &wanted {
            items.push(self.item(*visit, *fact, subgraph, names));
        }
        wanted.clear();
        self.pool.wanted.push(wanted);
        items.sort_by_key(|i| {
            // Fragments come in order of types.
            let fact = &tree.facts[i.fact];
            let first = abstract_here.then(|| tree.nodes[fact.node].types.first());
            (first, fact.client.is_some())
        });
        let any = self.any_of_items(&items);
        let any = match told {
            Some(told) if items.is_empty() => told,
            Some(told) => self.conditional.or(any, told),
            None => any,
        };
        let interface_objects = match ask_typename && tree.may_be_untold(place) {
            true => self.interface_objects(place, subgraph),
            false => Vec::new(),
        };
        let shape = self.shape(place, &items, subgraph, ask_typename, interface_objects);
        let mut pieces = self.pool.pieces.pop().unwrap_or_default();
        if ask_typename {
            pieces.push(self.selections.text(CondId::TRUE, "__typename "));
        }
        match declared.filter(|_| abstract_here) {
            None => {
                // A look-up or root is asked only if something is wanted of it, unless that is not known exactly.
                let is_certain = any == CondId::TRUE || declared.is_some();
                if tree.places[place].nodes.len() > 1 {
                    items = self.each_name_once(&items);
                }
                self.write_items(&items, &mut pieces, is_certain && !ask_typename);
            }
            Some(declared) => self.write_fragments(place, &items, subgraph, declared, &mut pieces),
        }
        let selection = self.selections.intern(&pieces);
        pieces.clear();
        self.pool.pieces.push(pieces);
        items.clear();
        self.pool.items.push(items);
        Selected {
            selection,
            shape,
            names: Vec::new(),
            cond: any,
        }
    }

    /// Holds if any of the items is asked for.
    fn any_of_items(&mut self, items: &[Item]) -> CondId {
        let mut conds = items.iter().map(|i| i.cond);
        let first = conds.next().unwrap_or(CondId::TRUE);
        conds.fold(first, |any, cond| self.conditional.or(any, cond))
    }

    fn item(&mut self, visit: VisitId, fact_id: FactId, subgraph: u32, names: &mut Names) -> Item {
        let tree = self.tree;
        let fact = &tree.facts[fact_id];
        let source = tree.graph().field_source(fact.field, SubgraphId(subgraph));
        let ty = source.and_then(|s| s.ty).unwrap_or(fact.ty);
        let sub = fact.child.map(|place| {
            let wanted = self.facts_below(visit, place);
            let selected = self.object(place, wanted, subgraph, Some(ty.id));
            self.pool.put_names(selected.names);
            (selected.selection, selected.shape)
        });
        let selection = sub.map(|(selection, _)| selection);
        let name = self.name(fact_id, ty, selection, subgraph, names);
        Item {
            fact: fact_id,
            name,
            cond: self.conditional.of_fact(fact_id),
            sub,
            contextual: source
                .filter(|source| !source.context_args.is_empty())
                .map(|source| source.subgraph),
        }
    }

    /// The client's response key, unless another value of the object has it; then an alias.
    fn name(
        &mut self,
        fact_id: FactId,
        ty: Type,
        sub: Option<SelectionId>,
        subgraph: u32,
        names: &mut Names,
    ) -> Symbol {
        let tree = self.tree;
        let fact = &tree.facts[fact_id];
        let field = tree.schema().fields[fact.field].name;
        let same = |taken: &Taken| {
            let call = taken.fact.map(|other| &tree.facts[other]);
            taken.ty == ty
                && taken.sub == sub
                && call.is_some_and(|other| {
                    tree.schema().fields[other.field].name == field
                        && other.args == fact.args
                        && (other.slot == fact.slot
                            || other.node != fact.node
                                && (!tree.reads_untold(fact.node, subgraph)
                                    || !tree.reads_untold(other.node, subgraph)))
                })
        };
        let wanted = match fact.client {
            // Response keys of the operation have the same symbols here.
            Some(c) => tree.op.fields[c].key,
            None => self.field_name(fact.field),
        };
        let mut taken = Taken {
            name: wanted,
            fact: Some(fact_id),
            ty,
            sub,
        };
        match names.at.find(wanted) {
            Some(at) if same(&names.taken[at]) => return wanted,
            Some(_) => {}
            None => {
                names.push(taken);
                return wanted;
            }
        }
        let aliases = names.aliases.entry((wanted, field, ty, sub)).or_default();
        if let Some(alias) = aliases.iter().find(|alias| same(alias)) {
            return alias.name;
        }
        let number = names.numbers.entry(wanted).or_default();
        loop {
            let text = format!("_{number}_{}", &self.names[wanted]);
            taken.name = self.names.intern(&text);
            *number += 1;
            if names.at.find(taken.name).is_none() {
                aliases.push(taken);
                names.push(taken);
                return taken.name;
            }
        }
    }

    /// The name of a field among the response names.
    fn field_name(&mut self, field: FieldId) -> Symbol {
        let schema = self.tree.schema();
        let name = schema.fields[field].name;
        let names = &mut self.names;
        let intern = || names.intern(schema.name(name));
        *self.schema_names.entry(name).or_insert_with(intern)
    }

    fn shape(
        &mut self,
        place: PlaceId,
        items: &[Item],
        subgraph: u32,
        ask_typename: bool,
        interface_objects: Vec<Box<str>>,
    ) -> ShapeId {
        let tree = self.tree;
        let is_one_class = tree.places[place].nodes.len() == 1;
        let mut at = std::mem::take(&mut self.pool.shapes);
        // Of each key its types, and whether it is there before the type is known.
        let mut types: Vec<(BitSet, bool)> = Vec::new();
        for item in items {
            let fact = &tree.facts[item.fact];
            let key = ShapeKey {
                name: item.name,
                slot: fact.slot,
                shape: item.sub.map(|(_, shape)| shape),
            };
            let found = at.find(key);
            if found.is_none() {
                at.push(key);
            }
            if !is_one_class {
                let of_item = &tree.nodes[fact.node].types;
                match found {
                    Some(found) => {
                        types[found].0.union_with(of_item);
                    }
                    None => {
                        let untyped = tree.reads_untold(fact.node, subgraph);
                        types.push((of_item.clone(), untyped));
                    }
                }
            }
        }
        let fields = if is_one_class {
            let (names, keys) = (&self.names, at.keys());
            let make = || keys.iter().map(|key| shape_field(names, *key)).collect();
            self.lists.shapes.get_or_make(keys, make)
        } else {
            let mut fields = Vec::with_capacity(types.len());
            for (key, (types, untyped)) in at.keys().iter().zip(types) {
                let everywhere = self.possible[place].is_subset(&types);
                fields.push(ShapeField {
                    types: (!everywhere).then(|| self.runtime_set(&types)),
                    untyped: untyped && !everywhere,
                    ..shape_field(&self.names, *key)
                });
            }
            fields.into()
        };
        at.clear();
        self.pool.shapes = at;
        let typename_key = ask_typename.then(|| "__typename".into());
        self.shapes.push(ObjectShape {
            layout: layout_id(place),
            typename_key,
            interface_objects: interface_objects.into(),
            fields,
        })
    }

    /// Writes items one after another; adds `__typename` where they could all be switched off while the object is
    /// still asked for. (A root or look-up is not asked for then.)
    fn write_items(&mut self, items: &[Item], pieces: &mut Vec<Piece>, guard_empty: bool) {
        if guard_empty && !items.iter().any(|i| i.cond == CondId::TRUE) {
            pieces.push(self.selections.text(CondId::TRUE, "__typename "));
        }
        for item in items {
            self.write_item(item, pieces);
        }
    }

    fn write_item(&mut self, item: &Item, pieces: &mut Vec<Piece>) {
        let tree = self.tree;
        let fact = &tree.facts[item.fact];
        let head = self.head(item, fact);
        pieces.push(Piece {
            cond: item.cond,
            chunk: Chunk::Text(head),
        });
        let Some((sub, _)) = item.sub else { return };
        if self.selections.is_plain(sub) {
            pieces.push(Piece {
                cond: item.cond,
                chunk: Chunk::Selection(sub),
            });
        } else {
            let sub = self.selections.pieces(sub);
            let conds: Vec<Both> = sub
                .iter()
                .map(|p| self.conditional.and(item.cond, p.cond))
                .collect();
            // Braces and what they enclose must agree: where one condition is too large, all take the outer one.
            let is_widened = conds.contains(&Both::TooLarge);
            for (piece, both) in sub.iter().zip(conds) {
                let cond = match both {
                    _ if is_widened => item.cond,
                    Both::Cond(cond) => cond,
                    Both::Never | Both::TooLarge => continue,
                };
                pieces.push(Piece { cond, ..*piece });
            }
        }
        pieces.push(self.selections.close(item.cond));
    }

    /// `name:field(arguments){`, or a space instead of the brace for a leaf.
    fn head(&mut self, item: &Item, fact: &Fact) -> Symbol {
        let tree = self.tree;
        let key = (fact.field, item.name, item.sub.is_some());
        let is_plain = fact.args.is_empty() && item.contextual.is_none();
        if is_plain && let Some(head) = self.heads.get(&key) {
            return *head;
        }
        let field = tree.schema().field_name(fact.field);
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        let name = &self.names[item.name];
        if *name != *field {
            text.push_str(name);
            text.push(':');
        }
        text.push_str(field);
        let mut variables = Vec::new();
        print::arguments(tree.op, &fact.args, &mut text, &mut variables);
        if let Some(subgraph) = item.contextual {
            self.context_arguments(fact, subgraph, &mut text);
        }
        text.push(if item.sub.is_some() { '{' } else { ' ' });
        let head = self.selections.text_with(&text, &variables);
        self.text = text;
        if is_plain {
            self.heads.insert(key, head);
        }
        head
    }

    /// Writes once, on the interface, what all concrete types of the subgraph share; the rest as one fragment per type.
    fn write_fragments(
        &mut self,
        place: PlaceId,
        items: &[Item],
        subgraph: u32,
        declared: TypeId,
        pieces: &mut Vec<Piece>,
    ) {
        let tree = self.tree;
        let subgraph = SubgraphId(subgraph);
        let here: Vec<TypeId> = {
            let source = tree.graph().type_source(declared, subgraph);
            let nodes = &tree.places[place].nodes;
            nodes
                .iter()
                .filter(|n| tree.nodes[**n].unites.is_empty())
                .flat_map(|n| tree.nodes[*n].types.iter().map(TypeId))
                .filter(|t| source.is_some_and(|s| s.possible.contains(t.0)))
                .collect()
        };
        // By what is asked: the types that ask it.
        let same = |item: &Item| {
            (
                item.name,
                item.cond,
                item.sub.map(|(selection, _)| selection),
            )
        };
        let mut at = Positions::default();
        let mut asking: Vec<BitSet> = Vec::new();
        for item in items {
            let types = &tree.nodes[tree.facts[item.fact].node].types;
            match at.find(same(item)) {
                Some(found) => {
                    asking[found].union_with(types);
                }
                None => {
                    at.push(same(item));
                    asking.push(types.clone());
                }
            }
        }
        let all: BitSet = here.iter().map(|t| t.0).collect();
        let by_all: Vec<bool> = asking
            .iter()
            .map(|types| here.len() > 1 && all.is_subset(types))
            .collect();
        let is_shared = |item: &Item| {
            let name = tree.schema().fields[tree.facts[item.fact].field].name;
            let on_interface = || {
                tree.schema()
                    .fields_by_name
                    .get(&(declared, name))
                    .and_then(|f| tree.graph().field_source(*f, subgraph))
                    .is_some_and(|s| !s.external)
            };
            at.find(same(item)).is_some_and(|found| by_all[found]) && on_interface()
        };
        let mut written: Positions<Symbol> = Positions::default();
        let mut of_type: FastMap<u32, Vec<Item>> = FastMap::default();
        for item in items {
            if !is_shared(item) {
                for t in tree.nodes[tree.facts[item.fact].node].types.iter() {
                    of_type.entry(t).or_default().push(*item);
                }
            } else if written.find(item.name).is_none() {
                written.push(item.name);
                self.write_item(item, pieces);
            }
        }
        if tree.may_be_untold(place) {
            self.by_interface_object(&here, subgraph.0, &mut of_type);
        }
        for ty in self.fragment_types(place, here, subgraph.0) {
            let Some(items) = of_type.get(&ty.0) else {
                continue;
            };
            let any = self.any_of_items(items);
            let mut head = std::mem::take(&mut self.text);
            fragment_head(tree.schema().type_name(ty), &mut head);
            pieces.push(self.selections.text(any, &head));
            self.text = head;
            self.write_items(items, pieces, any == CondId::TRUE);
            pieces.push(self.selections.close(any));
        }
    }

    /// One `_entities` field over a list of representations; `taken` are response keys of the request's root fields.
    pub(crate) fn lookup_part(
        &mut self,
        index: usize,
        list: LookupList,
        taken: &[Symbol],
    ) -> (Part, Lookup) {
        let tree = self.tree;
        let (mut response_key, variable) = match index {
            0 => ("_entities".to_string(), "representations".to_string()),
            n => (format!("_e{n}"), format!("representations{n}")),
        };
        while taken.iter().any(|t| self.names[*t] == *response_key) {
            response_key.insert(0, '_');
        }
        let variable = self.free_name(variable);
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        if response_key != "_entities" {
            text.push_str(&response_key);
            text.push(':');
        }
        text.push_str("_entities(representations:$");
        text.push_str(&variable);
        text.push_str("){");
        let mut pieces = Vec::with_capacity(2 + 3 * list.selections.len());
        pieces.push(self.selections.text(CondId::TRUE, &text));
        for (ty, question) in &list.selections {
            fragment_head(tree.schema().type_name(*ty), &mut text);
            pieces.push(self.selections.text(question.cond, &text));
            pieces.push(Piece {
                cond: CondId::TRUE,
                chunk: Chunk::Selection(question.selection),
            });
            pieces.push(self.selections.close(question.cond));
        }
        pieces.push(self.selections.close(CondId::TRUE));
        self.text = text;
        let part = Part {
            lookup: Some(index as u16),
            pieces,
        };
        let lookup = Lookup {
            response_key: response_key.into(),
            variable: variable.into(),
            targets: list.targets,
        };
        (part, lookup)
    }

    /// A variable name the client does not use.
    pub(super) fn free_name(&self, mut name: String) -> String {
        while self.variables.contains(name.as_str()) {
            name.insert(0, '_');
        }
        name
    }

    /// The whole request: header with the variables in use, then the parts.
    pub(crate) fn assemble(
        &mut self,
        kind: OperationKind,
        parts: Vec<Part>,
        lookups: &[Lookup],
    ) -> (Vec<Segment>, Vec<VariableUse>) {
        let tree = self.tree;
        let mut uses: Vec<(u32, Vec<Gate>)> = Vec::new();
        let mut use_index: FastMap<u32, usize> = FastMap::default();
        let mut body = std::mem::take(&mut self.pool.body);
        for part in parts {
            self.selections
                .write(&part.pieces, |text, cond, variables| {
                    let gate = gate(part.lookup, cond);
                    for variable in variables {
                        let at = *use_index.entry(*variable).or_insert_with(|| {
                            uses.push((*variable, Vec::new()));
                            uses.len() - 1
                        });
                        uses[at].1.push(gate.unwrap_or(Gate {
                            lookup: None,
                            cond: plan_cond(CondId::TRUE),
                        }));
                    }
                    body.push(text, gate.as_slice());
                });
        }
        uses.sort_by_key(|(v, _)| *v);
        let uses: Vec<VariableUse> = uses
            .into_iter()
            .map(|(variable, gates)| VariableUse {
                variable,
                gates: any_of(gates),
            })
            .collect();
        let mut segments = std::mem::take(&mut self.pool.request);
        segments.push(kind.as_str(), &[]);
        let mut headers: Vec<(String, Vec<Gate>)> = lookups
            .iter()
            .enumerate()
            .filter(|(_, l)| !l.is_reentry())
            .map(|(i, l)| {
                let text = ["$", &*l.variable, ":[_Any!]! "].concat();
                let gates = gate(Some(i as u16), CondId::TRUE).into_iter().collect();
                (text, gates)
            })
            .collect();
        headers.extend(self.context_headers(lookups));
        for usage in &uses {
            let variable = &tree.op.variables[usage.variable as usize];
            let ty = tree.schema().display_type(variable.ty);
            let mut text = ["$", &*variable.name, ":", &*ty].concat();
            if let Some(default) = &variable.default {
                text.push('=');
                print::constant(default, &mut text);
            }
            text.push(' ');
            headers.push((text, usage.gates.clone()));
        }
        if !headers.is_empty() {
            let any = match headers.iter().any(|(_, g)| g.is_empty()) {
                true => Vec::new(),
                false => any_of(
                    headers
                        .iter()
                        .flat_map(|(_, g)| g.iter().copied())
                        .collect(),
                ),
            };
            segments.push("(", &any);
            let mut escaped = String::new();
            for (text, gates) in headers {
                escaped.clear();
                print::escape(&text, &mut escaped);
                segments.push(&escaped, &gates);
            }
            segments.push(")", &any);
        }
        segments.push("{", &[]);
        segments.append(&mut body);
        segments.push("}", &[]);
        let finished = segments.finish();
        (self.pool.body, self.pool.request) = (body, segments);
        (finished, uses)
    }
}

/// What a field of a shape is made of, if no type is told from another.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct ShapeKey {
    name: Symbol,
    slot: SlotIndex,
    shape: Option<ShapeId>,
}

impl Hash for ShapeKey {
    /// One word: lists of keys are hashed for every place.
    fn hash<H: Hasher>(&self, state: &mut H) {
        let shape = self.shape.map_or(0, |s| u64::from(s.0) + 1);
        state.write_u64(u64::from(self.name.0) << 48 ^ u64::from(self.slot) << 32 ^ shape);
    }
}

fn shape_field(names: &Interner, key: ShapeKey) -> ShapeField {
    ShapeField {
        key: names[key.name].into(),
        slot: key.slot,
        types: None,
        untyped: false,
        shape: key.shape,
    }
}

/// The gate of a piece; `None` if it is always written.
pub(crate) fn gate(lookup: Option<u16>, cond: CondId) -> Option<Gate> {
    (lookup.is_some() || cond != CondId::TRUE).then(|| Gate {
        lookup,
        cond: plan_cond(cond),
    })
}

/// Gates of which any must be open; none if one of them always is.
pub(crate) fn any_of(all: Vec<Gate>) -> Vec<Gate> {
    let mut seen: Positions<(Option<u16>, u32)> = Positions::default();
    let mut out: Vec<Gate> = Vec::new();
    for gate in all {
        if gate.lookup.is_none() && gate.cond == plan_cond(CondId::TRUE) {
            return Vec::new();
        }
        let key = (gate.lookup, gate.cond.0);
        if seen.find(key).is_none() {
            seen.push(key);
            out.push(gate);
        }
    }
    out
}

/// The start of a fragment.
fn fragment_head(ty: &str, text: &mut String) {
    text.clear();
    text.push_str("...on ");
    text.push_str(ty);
    text.push('{');
}

/// Request text while it is written: neighbours under the same gates are one segment.
#[derive(Default)]
pub(crate) struct Text {
    text: String,
    /// Gates of each segment and where it ends; the last one goes on.
    segments: Vec<(Vec<Gate>, usize)>,
}

impl Text {
    /// Appends text that is escaped already.
    fn push(&mut self, text: &str, gates: &[Gate]) {
        match self.segments.last_mut() {
            Some((of_last, _)) if *of_last == *gates => {}
            last => {
                if let Some((_, end)) = last {
                    *end = self.text.len();
                }
                self.segments.push((gates.to_vec(), 0));
            }
        }
        self.text.push_str(text);
    }
    /// Appends all of `other`, which is empty afterwards.
    fn append(&mut self, other: &mut Text) {
        let mut start = 0;
        let ends = other.segments.len();
        for (at, (gates, end)) in other.segments.drain(..).enumerate() {
            let end = if at + 1 == ends {
                other.text.len()
            } else {
                end
            };
            self.push(&other.text[start..end], &gates);
            start = end;
        }
        other.text.clear();
    }
    /// The segments; it is empty afterwards.
    fn finish(&mut self) -> Vec<Segment> {
        let mut start = 0;
        let ends = self.segments.len();
        let mut out = Vec::with_capacity(ends);
        for (at, (gates, end)) in self.segments.drain(..).enumerate() {
            let end = if at + 1 == ends { self.text.len() } else { end };
            let text = self.text[start..end].into();
            out.push(Segment { text, gates });
            start = end;
        }
        self.text.clear();
        out
    }
}
