//! What must hold of every plan. Runs in all planner tests, and on a sample of plans in production.
//!
//! The first part (this file) checks the plan's form: ids, trees, tables, text. The second (`flow`) replays the
//! plan symbolically: whatever is read was written before, and whatever the client sees is written by somebody. The last
//! (`own`) looks for values that one failing field of the client's would take away from others.

mod deferral;
mod flow;
mod own;

use ogive_base::{BitSet, FastMap, FastSet, IdVec, id::Id};

use crate::{
    describe,
    ids::*,
    ir::*,
    representation::{Member, Representation},
};

/// Checks all invariants of [`ir`](crate::ir); on failure says everything that is wrong.
pub fn verify(plan: &Plan) -> Result<(), Vec<String>> {
    let mut form = Form {
        plan,
        problems: Vec::new(),
    };
    form.check(!plan.layouts.is_empty(), || "no root layout".to_owned());
    form.conditions();
    form.enums();
    for (id, layout) in plan.layouts.iter() {
        form.layout(id, layout);
    }
    for (id, shape) in plan.shapes.iter() {
        form.shape(id, shape);
    }
    for (id, fetch) in plan.fetches.iter() {
        form.fetch(id, fetch);
    }
    form.graph();
    if let Some(deferral) = &plan.deferral {
        form.problems.extend(deferral::problems(deferral, plan));
    }
    if form.problems.is_empty() {
        // The replay indexes freely, so it needs a well-formed plan.
        form.problems = flow::replay(plan);
        form.problems.extend(own::losses(plan));
    }
    if form.problems.is_empty() {
        Ok(())
    } else {
        Err(form.problems)
    }
}

struct Form<'p> {
    plan: &'p Plan,
    problems: Vec<String>,
}

fn has<I: Id, T>(table: &IdVec<I, T>, id: I) -> bool {
    id.index() < table.len()
}

impl Form<'_> {
    fn problem(&mut self, text: impl Into<String>) {
        self.problems.push(text.into());
    }
    fn check(&mut self, holds: bool, text: impl FnOnce() -> String) {
        if !holds {
            self.problems.push(text());
        }
    }

    fn conditions(&mut self) {
        let plan = self.plan;
        let always = plan.conditions.get(Cond::TRUE).map(Vec::as_slice);
        self.check(always == Some(&[vec![]]), || {
            "condition 0 is not the one that always holds".to_owned()
        });
        for (id, terms) in plan.conditions.iter() {
            for (variable, _) in terms.iter().flatten() {
                let n_literals = plan.variables.len() + plan.requirements.len();
                self.check((*variable as usize) < n_literals, || {
                    format!("condition {} names variable {variable}", id.0)
                });
            }
        }
    }
    fn enums(&mut self) {
        for (id, values) in self.plan.enums.iter() {
            self.check(values.windows(2).all(|pair| pair[0] < pair[1]), || {
                format!("enum {} is not sorted", id.0)
            });
        }
    }
    fn cond(&mut self, cond: Cond, place: &str) {
        let known = has(&self.plan.conditions, cond);
        self.check(known, || format!("{place}: no condition {}", cond.0));
    }
    /// Whether a caller may see something depends on the caller alone.
    fn granted(&mut self, granted: Cond, place: &str) {
        self.cond(granted, place);
        let n_variables = self.plan.variables.len();
        let terms = self.plan.conditions.get(granted).into_iter().flatten();
        let of_callers =
            |(literal, wanted): &(u32, bool)| *literal as usize >= n_variables && *wanted;
        self.check(terms.flatten().all(of_callers), || {
            format!("{place}: condition {} is not about the caller", granted.0)
        });
    }
    fn types(&mut self, types: &BitSet, of: &BitSet, place: &str) {
        self.check(!types.is_empty(), || format!("{place}: no type"));
        self.check(types.is_subset(of), || {
            format!("{place}: types {types:?} are not all of {of:?}")
        });
    }

    fn layout(&mut self, id: LayoutId, layout: &Layout) {
        let plan = self.plan;
        let n_before = self.problems.len();
        let place = &format!("layout {}", id.0);
        // A place no subgraph can answer has no type.
        if !layout.types.is_empty() {
            self.types(&layout.types, &BitSet::all(plan.types.len()), place);
        }
        match layout.parent {
            None => self.check(id == Plan::ROOT, || format!("{place}: no parent")),
            Some((parent, slot)) => {
                let slots = plan.layouts.get(parent).map(|parent| &parent.slots);
                let child = slots.and_then(|slots| slots.get(usize::from(slot)));
                let child = child.and_then(|slot| slot.child);
                self.check(parent < id && child == Some(id), || {
                    format!("{place}: does not hang below its parent")
                });
            }
        }
        for (at, slot) in layout.slots.iter().enumerate() {
            let Some(child) = slot.child else { continue };
            let parent = plan.layouts.get(child).and_then(|child| child.parent);
            self.check(parent == Some((id, at as SlotIndex)), || {
                format!("{place}: the child of slot {at} has another parent")
            });
        }
        self.check(layout.slots.len() <= usize::from(SlotIndex::MAX), || {
            format!("{place}: too many slots")
        });
        for (at, field) in layout.output.iter().enumerate() {
            self.out_field(
                layout,
                field,
                &format!("{place}: output {at} ({})", field.key),
            );
        }
        let mut seen = BitSet::new();
        for restricted in &layout.restricted {
            self.types(&restricted.types, &layout.types, place);
            self.check(!seen.intersects(&restricted.types), || {
                format!("{place}: types are restricted twice")
            });
            seen.union_with(&restricted.types);
            self.granted(restricted.granted, place);
        }
        self.repetition(layout, place);
        for problem in &mut self.problems[n_before..] {
            *problem += &format!(" (at {})", describe::layout_path(plan, id));
        }
    }

    fn out_field(&mut self, layout: &Layout, field: &OutField, place: &str) {
        let plan = self.plan;
        let mut key_json = Vec::new();
        ogive_json::write_string(&mut key_json, &field.key);
        key_json.push(b':');
        self.check(*key_json == *field.key_json, || {
            format!("{place}: key and JSON key differ")
        });
        self.cond(field.cond, place);
        self.granted(field.granted, place);
        if let Some(types) = &field.types {
            self.types(types, &layout.types, place);
        }
        let (slot, leaf) = match field.source {
            OutSource::Leaf(slot, kind) => {
                if let LeafKind::Enum(values) = kind {
                    self.check(has(&plan.enums, values), || {
                        format!("{place}: no enum {}", values.0)
                    });
                }
                (slot, true)
            }
            OutSource::Object(slot) => (slot, false),
            OutSource::Typename | OutSource::Null => return,
            OutSource::Local(local) => {
                return self.check(local < plan.locals, || format!("{place}: no local {local}"));
            }
        };
        let Some(slot) = layout.slots.get(usize::from(slot)) else {
            return self.problem(format!("{place}: no slot {slot}"));
        };
        self.check(slot.child.is_none() == leaf, || {
            format!("{place}: object and leaf confused")
        });
        self.check(slot.lists == field.wrapping.lists(), || {
            format!("{place}: {} lists in the slot", slot.lists)
        });
        self.check(slot.client_key.as_deref() == Some(&*field.key), || {
            format!("{place}: the slot's key is {:?}", slot.client_key)
        });
    }

    /// `repeated` is set exactly where some object can have two entries of one key.
    fn repetition(&mut self, layout: &Layout, place: &str) {
        let mut by_key: FastMap<&str, Vec<&OutField>> = FastMap::default();
        for field in &layout.output {
            by_key.entry(&field.key).or_default().push(field);
        }
        for field in &layout.output {
            let rivals = by_key.get(&*field.key).map_or(&[][..], Vec::as_slice);
            let repeated = rivals.iter().any(|rival| {
                !std::ptr::eq(*rival, field)
                    && match (&rival.types, &field.types) {
                        (Some(a), Some(b)) => a.intersects(b),
                        _ => true,
                    }
            });
            self.check(field.repeated == repeated, || {
                format!(
                    "{place}: output {} is wrongly marked as repeated or not",
                    field.key
                )
            });
        }
    }

    fn shape(&mut self, id: ShapeId, shape: &ObjectShape) {
        let plan = self.plan;
        let place = &format!("shape {}", id.0);
        let Some(layout) = plan.layouts.get(shape.layout) else {
            return self.problem(format!("{place}: no layout {}", shape.layout.0));
        };
        let mut seen: FastMap<&str, Vec<&BitSet>> = FastMap::default();
        // Of an object whose type is not known yet a key means one thing too.
        let mut untyped: FastSet<&str> = FastSet::default();
        let names_itself = shape.interface_objects.is_empty() || shape.typename_key.is_some();
        self.check(names_itself, || {
            format!("{place}: interface objects without a name")
        });
        for field in &shape.fields {
            let place = &format!("{place}: key {}", field.key);
            if let Some(types) = &field.types {
                self.types(types, &layout.types, place);
            }
            let types = field.types.as_ref().unwrap_or(&layout.types);
            let others = seen.entry(&field.key).or_default();
            let unique = others.iter().all(|others| !others.intersects(types));
            others.push(types);
            let unique = unique && (!field.untyped || untyped.insert(&*field.key));
            self.check(
                unique && shape.typename_key.as_ref() != Some(&field.key),
                || format!("{place}: means several things for one type"),
            );
            let Some(slot) = layout.slots.get(usize::from(field.slot)) else {
                self.problem(format!("{place}: no slot {}", field.slot));
                continue;
            };
            let child = field.shape.map(|shape| plan.shapes.get(shape));
            let fits = match (slot.child, child) {
                (None, None) => true,
                (Some(layout), Some(Some(shape))) => shape.layout == layout,
                _ => false,
            };
            self.check(fits, || format!("{place}: its shape does not fit its slot"));
        }
    }

    fn fetch(&mut self, id: FetchId, fetch: &Fetch) {
        let plan = self.plan;
        let place = &format!("fetch {}", id.0);
        self.check((fetch.subgraph as usize) < plan.subgraphs.len(), || {
            format!("{place}: no subgraph {}", fetch.subgraph)
        });
        self.check(fetch.root.is_some() || !fetch.lookups.is_empty(), || {
            format!("{place}: asks nothing")
        });
        // Only root fields make a request a mutation or subscription.
        let expected = match &fetch.root {
            Some(_) => plan.kind,
            None => OperationKind::Query,
        };
        self.check(fetch.kind == expected, || {
            format!("{place}: is a {:?}", fetch.kind)
        });
        for segment in &fetch.segments {
            let quoted = format!("\"{}\"", segment.text);
            let escaped = ogive_json::scan::validate(quoted.as_bytes()).is_ok();
            self.check(escaped, || {
                format!("{place}: text is not escaped: {}", segment.text)
            });
            self.gates(fetch, &segment.gates, place);
        }
        for used in &fetch.variables {
            self.check((used.variable as usize) < plan.variables.len(), || {
                format!("{place}: no variable {}", used.variable)
            });
            self.gates(fetch, &used.gates, place);
        }
        if let Some(root) = &fetch.root {
            self.cond(root.cond, place);
            let layout = plan.shapes.get(root.shape).map(|shape| shape.layout);
            self.check(layout == Some(Plan::ROOT), || {
                format!("{place}: root fields do not land in the root")
            });
        }
        self.lookup_names(fetch, place);
        for (at, lookup) in fetch.lookups.iter().enumerate() {
            let place = &format!("{place}: look-up {at}");
            self.check(!lookup.targets.is_empty(), || format!("{place}: no target"));
            let mut pairs = lookup.targets.windows(2);
            let are_alike = pairs.all(|pair| pair[0].has_contexts_of(&pair[1]));
            self.check(are_alike, || {
                format!("{place}: its targets need different values from above")
            });
            let fits = at.max(lookup.targets.len()) < usize::from(Gate::ROOT);
            self.check(fits, || format!("{place}: too many look-ups or targets"));
            for target in &lookup.targets {
                self.target(target, place);
            }
        }
    }

    fn gates(&mut self, fetch: &Fetch, gates: &[Gate], place: &str) {
        for gate in gates {
            self.cond(gate.cond, place);
            let known = gate.lookup.is_none_or(|lookup| match lookup {
                Gate::ROOT => fetch.root.is_some(),
                lookup => usize::from(lookup) < fetch.lookups.len(),
            });
            self.check(known, || format!("{place}: no look-up {:?}", gate.lookup));
        }
    }

    /// Response keys and variables of one request do not collide.
    fn lookup_names(&mut self, fetch: &Fetch, place: &str) {
        let plan = self.plan;
        let (mut keys, mut variables) = (FastSet::default(), FastSet::default());
        let mut root_keys: FastSet<&str> = FastSet::default();
        if let Some(shape) = fetch.root.as_ref().and_then(|r| plan.shapes.get(r.shape)) {
            keys.extend(shape.fields.iter().map(|field| &*field.key));
        }
        for used in &fetch.variables {
            if let Some(name) = plan.variables.get(used.variable as usize) {
                self.check(variables.insert(&**name), || {
                    format!("{place}: variable ${name} is used twice")
                });
            }
        }
        for lookup in &fetch.lookups {
            if lookup.is_reentry() {
                self.check(lookup.response_key.is_empty(), || {
                    format!(
                        "{place}: a re-entry has the response key {}",
                        lookup.response_key
                    )
                });
                let targets = lookup.targets.iter();
                let empty = |r: &Representation| r.members.is_empty() && r.typename.is_none();
                let alike = targets.clone().all(|t| t.representations.iter().all(empty));
                self.check(alike, || format!("{place}: a re-entry has a key"));
                let shapes = targets.filter_map(|t| plan.shapes.get(t.shape));
                root_keys.extend(shapes.flat_map(|s| s.fields.iter().map(|f| &*f.key)));
                continue;
            }
            self.check(keys.insert(&lookup.response_key), || {
                format!(
                    "{place}: response key {} is used twice",
                    lookup.response_key
                )
            });
            self.check(variables.insert(&lookup.variable), || {
                format!("{place}: variable ${} is used twice", lookup.variable)
            });
        }
        // Root fields asked for several places may share their keys, but not those of entities.
        for lookup in fetch.lookups.iter().filter(|lookup| !lookup.is_reentry()) {
            self.check(!root_keys.contains(&*lookup.response_key), || {
                format!(
                    "{place}: response key {} is used twice",
                    lookup.response_key
                )
            });
        }
    }

    fn target(&mut self, target: &Target, place: &str) {
        let plan = self.plan;
        let Some(layout) = plan.layouts.get(target.layout) else {
            return self.problem(format!("{place}: no layout {}", target.layout.0));
        };
        self.cond(target.cond, place);
        if let Some(types) = &target.types {
            self.types(types, &layout.types, place);
        }
        let shape = plan.shapes.get(target.shape).map(|shape| shape.layout);
        self.check(shape == Some(target.layout), || {
            format!("{place}: answers land in another layout")
        });
        self.check(!target.representations.is_empty(), || {
            format!("{place}: no representation")
        });
        let named = |r: &Representation| r.typename.is_some();
        let nameable = !target.untyped || target.representations.iter().all(named);
        self.check(nameable, || {
            format!("{place}: objects of unknown type are sent by their own type")
        });
        for representation in &target.representations {
            self.member_keys(&representation.members, &layout.types, place);
        }
        // Members below a member belong to deeper layouts.
        let tops = target.representations.iter();
        let mut open: Vec<(LayoutId, &Member)> = tops
            .flat_map(|r| r.members.iter().map(|member| (target.layout, member)))
            .collect();
        for context in &target.contexts {
            self.cond(context.cond, place);
            self.check(!context.members.is_empty(), || {
                format!("{place}: ${} comes from nowhere", context.variable)
            });
            let mut above = layout.parent;
            while let Some((parent, _)) = above.filter(|(parent, _)| *parent > context.layout) {
                above = plan.layouts.get(parent).and_then(|l| l.parent);
            }
            if above.is_some_and(|(parent, _)| parent == context.layout) {
                let members = context.members.iter();
                open.extend(members.map(|member| (context.layout, member)));
            } else {
                self.problem(format!("{place}: ${} is not above it", context.variable));
            }
        }
        while let Some((at, member)) = open.pop() {
            let key = String::from_utf8_lossy(&member.key_json);
            let place = &format!("{place}: member {}", key.trim_end_matches(':'));
            let mut scanner = ogive_json::Scanner::new(&member.key_json);
            let well_formed = scanner.key().is_ok() && scanner.position() == key.len();
            self.check(well_formed, || format!("{place}: is no key"));
            if let Some(types) = &member.types {
                self.types(types, &plan.layouts[at].types, place);
            }
            let Some(slot) = member.slot else {
                self.check(member.members.is_empty(), || {
                    format!("{place}: members of a name")
                });
                continue;
            };
            let Some(slot) = plan.layouts[at].slots.get(usize::from(slot)) else {
                self.problem(format!("{place}: no slot {slot}"));
                continue;
            };
            match slot.child {
                Some(child) if has(&plan.layouts, child) && child > at => {
                    self.check(!member.members.is_empty(), || {
                        format!("{place}: no members")
                    });
                    self.member_keys(&member.members, &plan.layouts[child].types, place);
                    open.extend(member.members.iter().map(|member| (child, member)));
                }
                Some(_) => self.problem(format!("{place}: its slot has no layout")),
                None => self.check(member.members.is_empty(), || {
                    format!("{place}: members of a leaf")
                }),
            }
        }
    }

    /// No object of a representation has two members of one key.
    fn member_keys(&mut self, members: &[Member], all: &BitSet, place: &str) {
        let mut seen: FastMap<&[u8], Vec<&BitSet>> = FastMap::default();
        for member in members {
            let types = member.types.as_ref().unwrap_or(all);
            let others = seen.entry(&member.key_json).or_default();
            let unique = others.iter().all(|others| !others.intersects(types));
            others.push(types);
            self.check(unique, || {
                let key = String::from_utf8_lossy(&member.key_json);
                let key = key.trim_end_matches(':');
                format!("{place}: member {key} occurs twice for one type")
            });
        }
    }

    /// Dependencies and successors mirror each other, waves grow, fetches are in order of wave, then subgraph.
    fn graph(&mut self) {
        let plan = self.plan;
        let mut last = (0, 0);
        for (id, fetch) in plan.fetches.iter() {
            let place = format!("fetch {}", id.0);
            self.check(fetch.wave > 0, || format!("{place}: wave 0"));
            self.check(last <= (fetch.wave, fetch.subgraph), || {
                format!("{place}: out of order")
            });
            last = (fetch.wave, fetch.subgraph);
            for (others, forth) in [(&fetch.dependencies, false), (&fetch.successors, true)] {
                let unique: FastSet<_> = others.iter().collect();
                self.check(unique.len() == others.len(), || {
                    format!("{place}: names a fetch twice")
                });
                for other in others {
                    let Some(neighbour) = plan.fetches.get(*other) else {
                        self.problem(format!("{place}: no fetch {}", other.0));
                        continue;
                    };
                    let (back, grows) = if forth {
                        (&neighbour.dependencies, fetch.wave < neighbour.wave)
                    } else {
                        (&neighbour.successors, neighbour.wave < fetch.wave)
                    };
                    self.check(back.contains(&id), || {
                        format!("{place}: fetch {} does not know of it", other.0)
                    });
                    self.check(grows, || {
                        format!("{place}: wave does not grow along the edge to {}", other.0)
                    });
                }
            }
        }
    }
}
