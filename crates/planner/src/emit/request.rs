//! Request text and response shapes.
//!
//! The selection of a visit is written once, as tokens under conditions, together with the shape that says where each
//! response key lands. A value keeps the client's response key if no other value of the same object claims it with
//! another field, arguments, type or sub-selection; else it gets an alias (`SameResponseShape`, specification 5.3.2,
//! holds by construction). On abstract types, what all concrete types of the subgraph share is written once on the
//! interface; the rest goes into fragments.

use std::rc::Rc;

use ogive_base::{BitSet, FastMap, FastSet};
use ogive_federation::SubgraphId;
use ogive_operation::CondId;
use ogive_plan::{
    Gate, Lookup, ObjectShape, OperationKind, Segment, ShapeField, ShapeId, VariableUse,
};
use ogive_schema::{Type, TypeId, Wrapping};

use crate::{
    assign::VisitId,
    emit::{Emitter, LookupList, conditions::Both, output::layout_id, plan_cond, print},
    tree::{FactId, PlaceId, Tree},
};

/// A piece of selection text that is written if its condition holds.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Token {
    pub(crate) text: String,
    pub(crate) cond: CondId,
    /// Variables the text uses.
    pub(crate) variables: Vec<u32>,
}

/// A top-level part of a request: the root selection, or one `_entities` field.
pub(crate) struct Part {
    pub(crate) lookup: Option<u16>,
    pub(crate) tokens: Vec<Token>,
}

/// One value of some concrete types, with its own sub-selection.
#[derive(Clone)]
struct Item {
    fact: FactId,
    types: BitSet,
    name: Rc<str>,
    cond: CondId,
    sub: Option<(Rc<[Token]>, ShapeId)>,
}

/// A response name that is taken.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Taken {
    name: Rc<str>,
    /// The value; `None` for `__typename`.
    fact: Option<FactId>,
    /// Type in the subgraph.
    ty: Type,
    sub: Option<Rc<[Token]>>,
}

/// What is asked of an object.
pub(crate) struct Selected {
    pub(crate) tokens: Vec<Token>,
    pub(crate) shape: ShapeId,
    /// Response names of the object itself.
    pub(crate) names: Vec<Taken>,
    /// Holds if anything is asked.
    pub(crate) cond: CondId,
}

/// Whether selections of different concrete types may stand in one selection set (`SameResponseShape`).
pub(crate) fn compatible(a: &[Taken], b: &[Taken]) -> bool {
    a.iter().all(|x| {
        b.iter()
            .all(|y| x.name != y.name || (x.ty == y.ty && x.sub == y.sub))
    })
}

impl Emitter<'_> {
    /// The selection of some values of one place in one request (no braces), and the shape of its objects.
    /// `declared` is the subgraph's type of the place; `None` for the root and for look-ups, whose concrete type is
    /// known. Recursion is bounded by the operation's depth limit.
    pub(crate) fn object(
        &mut self,
        place: PlaceId,
        mut wanted: Vec<(VisitId, FactId)>,
        subgraph: u32,
        declared: Option<TypeId>,
    ) -> Selected {
        let tree = self.tree;
        let abstract_here = declared.is_some_and(|ty| tree.schema().types[ty].kind.is_abstract());
        let ask_typename = declared.is_some() && (abstract_here || self.possible[place].len() > 1);
        let mut taken: Vec<Taken> = Vec::new();
        if ask_typename {
            let id = ogive_schema::builtins::STRING;
            let ty = Type {
                id,
                wrapping: Wrapping::NON_NULL,
            };
            taken.push(Taken {
                name: "__typename".into(),
                fact: None,
                ty,
                sub: None,
            });
        }
        // Clients' values choose their names first, so that they keep their response keys; gateway-only values are
        // written first, so that an object needs one cut.
        wanted.sort_by_key(|(_, fact)| tree.facts[*fact].client.is_none());
        let mut items: Vec<Item> = Vec::with_capacity(wanted.len());
        for (visit, fact) in wanted {
            items.push(self.item(visit, fact, subgraph, &mut taken));
        }
        items.sort_by_key(|i| {
            // Fragments come in order of types.
            let first = abstract_here.then(|| i.types.first());
            (first, tree.facts[i.fact].client.is_some())
        });
        let any = self.any_of_items(&items);
        let shape = self.shape(place, &items, ask_typename);
        let mut tokens = Vec::new();
        if ask_typename {
            put(&mut tokens, plain("__typename "));
        }
        match declared.filter(|_| abstract_here) {
            None => {
                // A look-up or root is asked only if something is wanted of it, unless that is not known exactly.
                let is_certain = any == CondId::TRUE || declared.is_some();
                self.write_items(items, &mut tokens, is_certain && !ask_typename);
            }
            Some(declared) => self.write_fragments(place, items, subgraph, declared, &mut tokens),
        }
        Selected {
            tokens,
            shape,
            names: taken,
            cond: any,
        }
    }

    /// Holds if any of the items is asked for.
    fn any_of_items(&mut self, items: &[Item]) -> CondId {
        let mut conds = items.iter().map(|i| i.cond);
        let first = conds.next().unwrap_or(CondId::TRUE);
        conds.fold(first, |any, cond| self.conditional.or(any, cond))
    }

    fn item(
        &mut self,
        visit: VisitId,
        fact_id: FactId,
        subgraph: u32,
        taken: &mut Vec<Taken>,
    ) -> Item {
        let tree = self.tree;
        let fact = &tree.facts[fact_id];
        let source = tree.graph().field_source(fact.field, SubgraphId(subgraph));
        let ty = source.and_then(|s| s.ty).unwrap_or(fact.ty);
        let sub = fact.child.map(|place| {
            let children = self
                .children_of
                .get(&(visit, place))
                .cloned()
                .unwrap_or_default();
            let wanted = self.facts_in(&children);
            let selected = self.object(place, wanted, subgraph, Some(ty.id));
            (Rc::from(selected.tokens), selected.shape)
        });
        let field = tree.schema().field_name(fact.field);
        let wanted = match fact.client {
            Some(c) => &tree.op.keys[tree.op.fields[c].key],
            None => field,
        };
        let sub_tokens = sub.as_ref().map(|(tokens, _)| tokens);
        let same_call = |other: Option<FactId>| {
            other.map(|o| &tree.facts[o]).is_some_and(|o| {
                let names = &tree.schema().fields;
                names[o.field].name == names[fact.field].name && o.args == fact.args
            })
        };
        let mut name: Rc<str> = wanted.into();
        let mut n = 0;
        let clash = |t: &Taken, name: &str| {
            *t.name == *name && (t.ty != ty || t.sub.as_ref() != sub_tokens || !same_call(t.fact))
        };
        while taken.iter().any(|t| clash(t, &name)) {
            name = format!("_{n}_{wanted}").into();
            n += 1;
        }
        if !taken.iter().any(|t| t.name == name) {
            let (name, sub) = (Rc::clone(&name), sub_tokens.cloned());
            taken.push(Taken {
                name,
                fact: Some(fact_id),
                ty,
                sub,
            });
        }
        let cond = self.conditional.of_fact(fact_id);
        Item {
            fact: fact_id,
            types: tree.nodes[fact.node].types.clone(),
            name,
            cond,
            sub,
        }
    }

    fn shape(&mut self, place: PlaceId, items: &[Item], ask_typename: bool) -> ShapeId {
        let tree = self.tree;
        let mut fields: Vec<(ShapeField, BitSet)> = Vec::new();
        for item in items {
            let fact = &tree.facts[item.fact];
            let shape = item.sub.as_ref().map(|(_, s)| *s);
            let types = self.runtime_set(&item.types);
            let same = fields
                .iter_mut()
                .find(|(f, _)| *f.key == *item.name && f.slot == fact.slot && f.shape == shape);
            match same {
                Some((_, have)) => {
                    have.union_with(&types);
                }
                None => fields.push((
                    ShapeField {
                        key: (*item.name).into(),
                        slot: fact.slot,
                        types: None,
                        shape,
                    },
                    types,
                )),
            }
        }
        let all = self.runtime_set(&self.possible[place].clone());
        let fields = fields
            .into_iter()
            .map(|(field, types)| ShapeField {
                types: (!all.is_subset(&types)).then_some(types),
                ..field
            })
            .collect();
        let typename_key = ask_typename.then(|| "__typename".into());
        self.shapes.push(ObjectShape {
            layout: layout_id(place),
            typename_key,
            fields,
        })
    }

    /// Writes items one after another; adds `__typename` where they could all be switched off while the object is
    /// still asked for. (A root or look-up is not asked for then.)
    fn write_items(&mut self, items: Vec<Item>, tokens: &mut Vec<Token>, guard_empty: bool) {
        if guard_empty && !items.iter().any(|i| i.cond == CondId::TRUE) {
            put(tokens, plain("__typename "));
        }
        for item in items {
            self.write_item(item, tokens);
        }
    }

    fn write_item(&mut self, item: Item, tokens: &mut Vec<Token>) {
        let tree = self.tree;
        let fact = &tree.facts[item.fact];
        let field = tree.schema().field_name(fact.field);
        let mut text = String::new();
        if *item.name != *field {
            text.push_str(&item.name);
            text.push(':');
        }
        text.push_str(field);
        let mut variables = Vec::new();
        print::arguments(tree.op, &fact.args, &mut text, &mut variables);
        text.push(if item.sub.is_some() { '{' } else { ' ' });
        put(
            tokens,
            Token {
                text,
                cond: item.cond,
                variables,
            },
        );
        if let Some((sub, _)) = item.sub {
            let conds: Vec<Both> = sub
                .iter()
                .map(|t| self.conditional.and(item.cond, t.cond))
                .collect();
            // Braces and what they enclose must agree: where one condition is too large, all take the outer one.
            let is_widened = conds.contains(&Both::TooLarge);
            for (token, both) in sub.iter().zip(conds) {
                match both {
                    _ if is_widened => put_copy(tokens, token, item.cond),
                    Both::Cond(cond) => put_copy(tokens, token, cond),
                    Both::Never | Both::TooLarge => {}
                }
            }
            put(tokens, under(item.cond, "} ".into()));
        }
    }

    fn write_fragments(
        &mut self,
        place: PlaceId,
        items: Vec<Item>,
        subgraph: u32,
        declared: TypeId,
        tokens: &mut Vec<Token>,
    ) {
        let tree = self.tree;
        let subgraph = SubgraphId(subgraph);
        let here: Vec<TypeId> = {
            let source = tree.graph().type_source(declared, subgraph);
            let nodes = &tree.places[place].nodes;
            nodes
                .iter()
                .flat_map(|n| tree.nodes[*n].types.iter().map(TypeId))
                .filter(|t| source.is_some_and(|s| s.possible.contains(t.0)))
                .collect()
        };
        let shared = |items: &[Item], item: &Item| -> bool {
            let name = tree.schema().fields[tree.facts[item.fact].field].name;
            let on_interface = tree
                .schema()
                .fields_by_name
                .get(&(declared, name))
                .is_some_and(|f| {
                    tree.graph()
                        .field_source(*f, subgraph)
                        .is_some_and(|s| !s.external)
                });
            on_interface
                && here.iter().all(|t| {
                    items.iter().any(|i| {
                        i.types.contains(t.0)
                            && i.name == item.name
                            && i.cond == item.cond
                            && i.sub.as_ref().map(|s| &s.0) == item.sub.as_ref().map(|s| &s.0)
                    })
                })
        };
        let folded: Vec<bool> = items
            .iter()
            .map(|i| here.len() > 1 && shared(&items, i))
            .collect();
        let mut written: FastSet<Rc<str>> = FastSet::default();
        let mut rest: Vec<Item> = Vec::new();
        for (item, folded) in items.into_iter().zip(folded) {
            if !folded {
                rest.push(item);
            } else if written.insert(Rc::clone(&item.name)) {
                self.write_item(item, tokens);
            }
        }
        for ty in here {
            let items: Vec<Item> = rest
                .iter()
                .filter(|i| i.types.contains(ty.0))
                .cloned()
                .collect();
            if items.is_empty() {
                continue;
            }
            let any = self.any_of_items(&items);
            put(
                tokens,
                under(any, format!("...on {}{{", tree.schema().type_name(ty))),
            );
            self.write_items(items, tokens, any == CondId::TRUE);
            put(tokens, under(any, "} ".into()));
        }
    }

    /// One `_entities` field over a list of representations; `taken` are response keys of the request's root fields.
    pub(crate) fn lookup_part(
        &mut self,
        index: usize,
        list: LookupList,
        taken: &[Box<str>],
    ) -> (Part, Lookup) {
        let tree = self.tree;
        let (mut response_key, variable) = match index {
            0 => ("_entities".to_string(), "representations".to_string()),
            n => (format!("_e{n}"), format!("representations{n}")),
        };
        while taken.iter().any(|t| **t == *response_key) {
            response_key.insert(0, '_');
        }
        let variable = free_name(tree, &variable);
        let alias = match response_key.as_str() {
            "_entities" => String::new(),
            other => format!("{other}:"),
        };
        let mut tokens = vec![plain(&format!(
            "{alias}_entities(representations:${variable}){{"
        ))];
        for (ty, cond, selection) in &list.selections {
            tokens.push(under(
                *cond,
                format!("...on {}{{", tree.schema().type_name(*ty)),
            ));
            tokens.extend(selection.iter().cloned());
            tokens.push(under(*cond, "} ".into()));
        }
        tokens.push(plain("} "));
        let part = Part {
            lookup: Some(index as u16),
            tokens,
        };
        let lookup = Lookup {
            response_key: response_key.into(),
            variable: variable.into(),
            targets: list.targets,
        };
        (part, lookup)
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
        let mut body: Vec<Segment> = Vec::new();
        for part in parts {
            for token in part.tokens {
                let gates = gates(part.lookup, token.cond);
                for variable in token.variables {
                    let at = *use_index.entry(variable).or_insert_with(|| {
                        uses.push((variable, Vec::new()));
                        uses.len() - 1
                    });
                    uses[at].1.push(gates.first().copied().unwrap_or(Gate {
                        lookup: None,
                        cond: plan_cond(CondId::TRUE),
                    }));
                }
                push_segment(&mut body, &token.text, gates);
            }
        }
        uses.sort_by_key(|(v, _)| *v);
        let uses: Vec<VariableUse> = uses
            .into_iter()
            .map(|(variable, gates)| VariableUse {
                variable,
                gates: any_of(gates),
            })
            .collect();
        let mut segments: Vec<Segment> = Vec::new();
        push_segment(&mut segments, kind.as_str(), Vec::new());
        let mut headers: Vec<(String, Vec<Gate>)> = lookups
            .iter()
            .enumerate()
            .map(|(i, l)| {
                (
                    format!("${}:[_Any!]! ", l.variable),
                    gates(Some(i as u16), CondId::TRUE),
                )
            })
            .collect();
        for usage in &uses {
            let variable = &tree.op.variables[usage.variable as usize];
            let mut text = format!(
                "${}:{}",
                variable.name,
                tree.schema().display_type(variable.ty)
            );
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
            push_segment(&mut segments, "(", any.clone());
            for (text, gates) in headers {
                push_segment(&mut segments, &text, gates);
            }
            push_segment(&mut segments, ")", any);
        }
        push_segment(&mut segments, "{", Vec::new());
        for segment in body {
            push_escaped(&mut segments, &segment.text, segment.gates);
        }
        push_segment(&mut segments, "}", Vec::new());
        (segments, uses)
    }
}

/// Appends a token, joining it to the last one under the same condition.
fn put(tokens: &mut Vec<Token>, token: Token) {
    match tokens.last_mut() {
        Some(last) if last.cond == token.cond => {
            last.text.push_str(&token.text);
            last.variables.extend(token.variables);
        }
        _ => tokens.push(token),
    }
}

/// Appends a copy of a token under another condition.
fn put_copy(tokens: &mut Vec<Token>, token: &Token, cond: CondId) {
    match tokens.last_mut() {
        Some(last) if last.cond == cond => {
            last.text.push_str(&token.text);
            last.variables.extend_from_slice(&token.variables);
        }
        _ => tokens.push(Token {
            cond,
            ..token.clone()
        }),
    }
}

fn plain(text: &str) -> Token {
    Token {
        text: text.into(),
        cond: CondId::TRUE,
        variables: Vec::new(),
    }
}

fn under(cond: CondId, text: String) -> Token {
    Token {
        text,
        cond,
        variables: Vec::new(),
    }
}

fn gates(lookup: Option<u16>, cond: CondId) -> Vec<Gate> {
    if lookup.is_none() && cond == CondId::TRUE {
        return Vec::new();
    }
    vec![Gate {
        lookup,
        cond: plan_cond(cond),
    }]
}

/// Gates of which any must be open; none if one of them always is.
fn any_of(all: Vec<Gate>) -> Vec<Gate> {
    let mut out: Vec<Gate> = Vec::new();
    for gate in all {
        if gate.lookup.is_none() && gate.cond == plan_cond(CondId::TRUE) {
            return Vec::new();
        }
        if !out.contains(&gate) {
            out.push(gate);
        }
    }
    out
}

fn push_segment(segments: &mut Vec<Segment>, text: &str, gates: Vec<Gate>) {
    let mut escaped = String::with_capacity(text.len());
    print::escape(text, &mut escaped);
    push_escaped(segments, &escaped, gates);
}

/// Appends text that is escaped already, joining neighbours under the same gates.
fn push_escaped(segments: &mut Vec<Segment>, text: &str, gates: Vec<Gate>) {
    match segments.last_mut() {
        Some(last) if last.gates == gates => {
            let mut joined = String::with_capacity(last.text.len() + text.len());
            joined.push_str(&last.text);
            joined.push_str(text);
            last.text = joined.into();
        }
        _ => segments.push(Segment {
            text: text.into(),
            gates,
        }),
    }
}

/// A variable name the client does not use.
fn free_name(tree: &Tree<'_>, wanted: &str) -> String {
    let mut name = wanted.to_string();
    while tree.op.variables.iter().any(|v| *v.name == *name) {
        name.insert(0, '_');
    }
    name
}
