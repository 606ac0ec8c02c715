//! What a request asks of one object, and the shape of its answer.
//!
//! The selection of a visit is written once, as tokens under conditions, together with the shape that says where each
//! response key lands. On abstract types, what all concrete types of the subgraph share is written once on the
//! interface; the rest goes into fragments.

use std::hash::{Hash, Hasher};

use ogive_base::{BitSet, FastMap, Interner, Symbol};
use ogive_federation::SubgraphId;
use ogive_operation::CondId;
use ogive_plan::{ObjectShape, ShapeField, ShapeId, SlotIndex};
use ogive_schema::{Type, TypeId, Wrapping};

use crate::{
    assign::VisitId,
    emit::{
        Emitter,
        assemble::Text,
        conditions::Both,
        names::{Names, Taken},
        output::layout_id,
        print,
        selection::{Chunk, Piece, SelectionId},
        tables::Positions,
    },
    tree::{Fact, FactId, PlaceId},
};

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

/// Empty lists that are used again: every object needs some of each.
#[derive(Default)]
pub(crate) struct Pool {
    pub(crate) wanted: Vec<Vec<(VisitId, FactId)>>,
    taken: Vec<Vec<Taken>>,
    names: Vec<Positions<Symbol>>,
    items: Vec<Vec<Item>>,
    pieces: Vec<Vec<Piece>>,
    shapes: Positions<ShapeKey>,
    pub(crate) body: Text,
    pub(crate) request: Text,
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
        let mut names = Names::within(
            self.pool.taken.pop().unwrap_or_default(),
            self.pool.names.pop().unwrap_or_default(),
        );
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
        let ask_typename = if is_interface_object {
            is_only_type && tree.may_be_untold(place)
        } else {
            declared.is_some() && (abstract_here || !is_only_type)
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
        let interface_objects = if ask_typename && tree.may_be_untold(place) {
            self.interface_objects(place, subgraph)
        } else {
            Vec::new()
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
            print::fragment_head(tree.schema().type_name(ty), &mut head);
            pieces.push(self.selections.text(any, &head));
            self.text = head;
            self.write_items(items, pieces, any == CondId::TRUE);
            pieces.push(self.selections.close(any));
        }
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
