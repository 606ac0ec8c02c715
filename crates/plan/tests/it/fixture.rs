//! Builds plans by hand, for the tests of this crate and of the executor. Slots are named after fields; client-visible
//! ones get an output entry at once.

#![allow(dead_code, reason = "each crate's tests use their part")]

use ogive_base::{BitSet, IdVec};
use ogive_plan::*;

pub(crate) struct Builder {
    pub(crate) plan: Plan,
}

/// One key of a shape: response key (`alias=slot` or just the slot's name) and the shape of its objects.
pub(crate) type Key<'a> = (&'a str, Option<ShapeId>);

impl Builder {
    /// `types[0]` is the root type.
    pub(crate) fn new(subgraphs: &[&str], types: &[&str]) -> Self {
        let root = Layout {
            parent: None,
            types: BitSet::all(1),
            slots: Shared::default(),
            output: Shared::default(),
            restricted: Vec::new(),
        };
        Builder {
            plan: Plan {
                kind: OperationKind::Query,
                subgraphs: subgraphs.iter().map(|name| (*name).into()).collect(),
                types: types.iter().map(|name| (*name).into()).collect(),
                enums: IdVec::new(),
                conditions: IdVec::from_vec(vec![vec![vec![]]]),
                variables: Vec::new(),
                requirements: Vec::new(),
                layouts: IdVec::from_vec(vec![root]),
                shapes: IdVec::new(),
                fetches: IdVec::new(),
                locals: 0,
                deferral: None,
                derived: DerivedCell::default(),
            },
        }
    }

    pub(crate) fn types(&self, names: &[&str]) -> BitSet {
        let ty = |name: &&str| {
            let found = self.plan.types.iter().find(|(_, known)| ***known == **name);
            found.expect("a declared type").0.0
        };
        names.iter().map(ty).collect()
    }
    pub(crate) fn slot(&self, layout: LayoutId, name: &str) -> SlotIndex {
        let slots = &self.plan.layouts[layout].slots;
        let at = slots.iter().position(|slot| *slot.name == *name);
        at.unwrap_or_else(|| panic!("no slot {name}")) as SlotIndex
    }
    pub(crate) fn add_slot(&mut self, layout: LayoutId, slot: Slot) -> SlotIndex {
        let slots = &mut self.plan.layouts[layout].slots;
        slots.push(slot);
        slots.len() as SlotIndex - 1
    }

    /// A condition: a disjunction of conjunctions of (variable, wanted).
    pub(crate) fn cond(&mut self, terms: &[&[(u32, bool)]]) -> Cond {
        let terms = terms.iter().map(|term| term.to_vec()).collect();
        self.plan.conditions.push(terms)
    }

    /// A leaf that only the gateway needs.
    pub(crate) fn hidden(&mut self, layout: LayoutId, name: &str) -> SlotIndex {
        self.add_slot(
            layout,
            Slot {
                name: name.into(),
                client_key: None,
                lists: 0,
                child: None,
                value: 0,
            },
        )
    }
    /// A leaf with a type like `[Int!]!`; names that are no built-in scalar are custom scalars.
    pub(crate) fn leaf(&mut self, layout: LayoutId, name: &str, ty: &str) -> SlotIndex {
        let (wrapping, named) = wrapping(ty);
        let kind = match named {
            "Int" => LeafKind::Int,
            "Float" => LeafKind::Float,
            "String" => LeafKind::String,
            "Boolean" => LeafKind::Boolean,
            "ID" => LeafKind::Id,
            _ => LeafKind::Any,
        };
        self.leaf_of(layout, name, wrapping, kind)
    }
    pub(crate) fn leaf_of(
        &mut self,
        layout: LayoutId,
        name: &str,
        wrapping: Wrapping,
        kind: LeafKind,
    ) -> SlotIndex {
        let slot = self.add_slot(
            layout,
            Slot {
                name: name.into(),
                client_key: Some(name.into()),
                lists: wrapping.lists(),
                child: None,
                value: 0,
            },
        );
        self.output(layout, name, OutSource::Leaf(slot, kind), wrapping);
        slot
    }
    /// A composite field with a type like `[User!]!` and possible concrete types.
    pub(crate) fn object(
        &mut self,
        layout: LayoutId,
        name: &str,
        ty: &str,
        types: &[&str],
    ) -> LayoutId {
        let (wrapping, _) = wrapping(ty);
        let (slot, child) = self.child(layout, name, true, wrapping.lists(), types);
        self.output(layout, name, OutSource::Object(slot), wrapping);
        child
    }
    /// A composite field that only the gateway needs.
    pub(crate) fn hidden_object(
        &mut self,
        layout: LayoutId,
        name: &str,
        lists: u8,
        types: &[&str],
    ) -> LayoutId {
        self.child(layout, name, false, lists, types).1
    }
    fn child(
        &mut self,
        layout: LayoutId,
        name: &str,
        visible: bool,
        lists: u8,
        types: &[&str],
    ) -> (SlotIndex, LayoutId) {
        let child = self.plan.layouts.next_id();
        let slot = self.add_slot(
            layout,
            Slot {
                name: name.into(),
                client_key: visible.then(|| name.into()),
                lists,
                child: Some(child),
                value: 0,
            },
        );
        let types = self.types(types);
        self.plan.layouts.push(Layout {
            parent: Some((layout, slot)),
            types,
            slots: Shared::default(),
            output: Shared::default(),
            restricted: Vec::new(),
        });
        (slot, child)
    }
    pub(crate) fn output(
        &mut self,
        layout: LayoutId,
        key: &str,
        source: OutSource,
        wrapping: Wrapping,
    ) -> &mut OutField {
        let owner = match self.plan.layouts[layout].only_type() {
            Some(ty) => self.plan.types[ty].to_string(),
            None => "Abstract".to_owned(),
        };
        let output = &mut self.plan.layouts[layout].output;
        output.push(OutField {
            key_json: format!("\"{key}\":").into_bytes().into(),
            key: key.into(),
            source,
            types: None,
            cond: Cond::TRUE,
            granted: Cond::TRUE,
            repeated: false,
            wrapping,
            coordinate: format!("{owner}.{key}").into(),
        });
        output.last_mut().unwrap()
    }
    pub(crate) fn typename(&mut self, layout: LayoutId, key: &str) {
        self.output(layout, key, OutSource::Typename, Wrapping::NON_NULL);
    }
    /// The last output entry of a layout.
    pub(crate) fn last_output(&mut self, layout: LayoutId) -> &mut OutField {
        self.plan.layouts[layout].output.last_mut().unwrap()
    }

    pub(crate) fn shape(&mut self, layout: LayoutId, keys: &[Key<'_>]) -> ShapeId {
        self.shape_of(layout, None, keys)
    }
    /// A shape whose `__typename` says the concrete type.
    pub(crate) fn typed_shape(&mut self, layout: LayoutId, keys: &[Key<'_>]) -> ShapeId {
        self.shape_of(layout, Some("__typename"), keys)
    }
    fn shape_of(&mut self, layout: LayoutId, typename: Option<&str>, keys: &[Key<'_>]) -> ShapeId {
        let fields = keys.iter().map(|(key, shape)| {
            let (key, slot) = key.split_once('=').unwrap_or((key, key));
            ShapeField {
                key: key.into(),
                slot: self.slot(layout, slot),
                types: None,
                untyped: false,
                shape: *shape,
            }
        });
        let shape = ObjectShape {
            layout,
            typename_key: typename.map(Into::into),
            interface_objects: Shared::default(),
            fields: fields.collect(),
        };
        self.plan.shapes.push(shape)
    }
    /// Restricts the last key of a shape to some types.
    pub(crate) fn only_for(&mut self, shape: ShapeId, key: &str, types: &[&str]) {
        let types = self.types(types);
        let fields = &mut self.plan.shapes[shape].fields;
        let field = fields.iter_mut().rev().find(|field| *field.key == *key);
        field.unwrap().types = Some(types);
    }

    /// A fetch of root fields.
    pub(crate) fn root(&mut self, subgraph: u32, text: &str, keys: &[Key<'_>]) -> FetchId {
        let shape = self.shape(Plan::ROOT, keys);
        let id = self.fetch(subgraph, text, &[], Vec::new());
        self.plan.fetches[id].root = Some(RootPart {
            cond: Cond::TRUE,
            shape,
        });
        id
    }
    pub(crate) fn fetch(
        &mut self,
        subgraph: u32,
        text: &str,
        dependencies: &[FetchId],
        lookups: Vec<Lookup>,
    ) -> FetchId {
        let waves = dependencies.iter().map(|id| self.plan.fetches[*id].wave);
        let wave = 1 + waves.max().unwrap_or(0);
        let id = self.plan.fetches.push(Fetch {
            subgraph,
            wave,
            dependencies: dependencies.to_vec(),
            successors: Vec::new(),
            kind: self.plan.kind,
            segments: vec![Segment {
                text: text.into(),
                gates: Vec::new(),
            }],
            variables: Vec::new(),
            root: None,
            lookups,
        });
        for dependency in dependencies {
            self.plan.fetches[*dependency].successors.push(id);
        }
        id
    }
    /// A target whose representations have these leaves as key.
    pub(crate) fn target(&self, layout: LayoutId, key: &[&str], shape: ShapeId) -> Target {
        let members = key
            .iter()
            .map(|name| self.member(layout, name, true, Vec::new()));
        Target {
            layout,
            types: None,
            untyped: false,
            cond: Cond::TRUE,
            representations: vec![Representation {
                typename: None,
                members: members.collect(),
            }]
            .into(),
            shape,
            selection: shape.0,
            contexts: Vec::new(),
        }
    }
    pub(crate) fn member(
        &self,
        layout: LayoutId,
        name: &str,
        key: bool,
        members: Vec<Member>,
    ) -> Member {
        Member {
            key_json: format!("\"{name}\":").into_bytes().into(),
            slot: Some(self.slot(layout, name)),
            types: None,
            key,
            members,
        }
    }
    /// The plan, which must be a correct one.
    pub(crate) fn build(self) -> Plan {
        if let Err(problems) = verify(&self.plan) {
            panic!("{}", problems.join("\n"));
        }
        self.plan
    }
    /// The plan, whatever it is.
    pub(crate) fn build_unchecked(self) -> Plan {
        self.plan
    }
}

/// A look-up under the usual names.
pub(crate) fn lookup(targets: Vec<Target>) -> Lookup {
    lookup_as("_entities", "representations", targets)
}
pub(crate) fn lookup_as(response_key: &str, variable: &str, targets: Vec<Target>) -> Lookup {
    Lookup {
        response_key: response_key.into(),
        variable: variable.into(),
        targets,
    }
}

/// The wrapping and the name of a type like `[Int!]!`.
pub(crate) fn wrapping(ty: &str) -> (Wrapping, &str) {
    let name = ty.trim_matches(|c| "[]!".contains(c));
    let closing = &ty[ty.find(name).unwrap() + name.len()..];
    let mut wrapping = Wrapping::NULLABLE;
    for mark in closing.chars() {
        wrapping = match mark {
            '!' => wrapping.non_null(),
            _ => wrapping.list_of().unwrap(),
        };
    }
    (wrapping, name)
}

/// `{ me { name reviews { body } } }`: accounts knows users, reviews their reviews. `types` are those of `me`, its
/// `name`, `reviews` and `body`.
pub(crate) fn me(types: [&str; 4]) -> Plan {
    let mut b = Builder::new(&["accounts", "reviews"], &["Query", "User", "Review"]);
    let me = b.object(Plan::ROOT, "me", types[0], &["User"]);
    b.hidden(me, "id");
    b.leaf(me, "name", types[1]);
    let reviews = b.object(me, "reviews", types[2], &["Review"]);
    b.leaf(reviews, "body", types[3]);
    let user = b.shape(me, &[("__k0=id", None), ("name", None)]);
    let first = b.root(0, "{me{__k0:id name}}", &[("me", Some(user))]);
    let review = b.shape(reviews, &[("body", None)]);
    let more = b.shape(me, &[("reviews", Some(review))]);
    let target = b.target(me, &["id"], more);
    b.fetch(1, ENTITIES, &[first], vec![lookup(vec![target])]);
    b.build()
}
/// The text of a look-up, where it does not matter.
pub(crate) const ENTITIES: &str = "query($representations:[_Any!]!){_entities(representations:$representations){...on User{reviews{body}}}}";
