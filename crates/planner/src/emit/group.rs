//! The requests of one subgraph in one wave: one, unless the subgraph is to be asked in smaller ones.

use std::collections::VecDeque;

use ogive_base::{FastSet, Symbol, id::Id as _};
use ogive_operation::CondId;
use ogive_plan::{
    Cond, Fetch, FetchId, Gate, Lookup, OperationKind, Representation, RootPart, Target,
};

use crate::{
    Batching,
    assign::{Schedule, Via, Visit, VisitId},
    emit::{
        Emitter,
        assemble::Part,
        lookups::{LookupList, LookupLists, Question, Types},
        names::Names,
        object::Selected,
        output, plan_cond,
        selection::{Chunk, Piece, SelectionId},
    },
};

/// The visits of one subgraph in one wave.
pub(crate) struct Group {
    pub(crate) key: GroupKey,
    pub(crate) visits: Vec<VisitId>,
}

/// Which group a visit belongs to; in the order in which groups are numbered.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct GroupKey {
    pub(crate) scope: u32,
    pub(crate) wave: u32,
    pub(crate) subgraph: u32,
}

impl GroupKey {
    fn of(visit: &Visit) -> Self {
        GroupKey {
            scope: visit.scope,
            wave: visit.wave,
            subgraph: visit.subgraph,
        }
    }
}

/// All groups, sorted.
pub(crate) fn groups(schedule: &Schedule) -> Vec<Group> {
    let live = schedule.visits.iter();
    let live = live.filter(|(_, v)| v.live && !matches!(v.via, Via::Parent(_)));
    let mut order: Vec<(GroupKey, VisitId)> = live.map(|(id, v)| (GroupKey::of(v), id)).collect();
    order.sort_by_key(|(key, id)| (*key, schedule.visits[*id].node, *id));
    let groups = order.chunk_by(|(a, _), (b, _)| a == b);
    let group = |of_group: &[(GroupKey, VisitId)]| Group {
        key: of_group[0].0,
        visits: of_group.iter().map(|(_, id)| *id).collect(),
    };
    groups.map(group).collect()
}

/// What a group asks, before it is cut into requests.
struct Questions {
    kind: OperationKind,
    root: Option<(RootPart, Part)>,
    /// Response names of the root fields.
    names: Names,
    /// What is asked of the root type below other objects.
    reentries: Vec<(SelectionId, Vec<Target>)>,
    lists: LookupLists,
}

impl Emitter<'_> {
    /// The requests of a group. Dependencies are indexes of `groups`, which are sorted.
    pub(super) fn requests(&mut self, group: &Group, groups: &[Group]) -> Vec<Fetch> {
        let batching = self.tree.batching.get(group.key.subgraph as usize);
        let batching = batching.copied().unwrap_or_default();
        let questions = self.questions(group, batching);
        let dependencies = self.dependencies(&group.visits, groups);
        self.cut(group.key, questions, batching, &dependencies)
    }

    fn questions(&mut self, group: &Group, batching: Batching) -> Questions {
        let mut questions = Questions {
            kind: OperationKind::Query,
            root: None,
            names: Names::default(),
            reentries: Vec::new(),
            lists: LookupLists::new(batching),
        };
        let mut by_interface: FastSet<VisitId> = FastSet::default();
        for id in &group.visits {
            if by_interface.contains(id) {
                continue;
            }
            let visit = &self.schedule.visits[*id];
            if let Some(interface) = self.entered_by(*id) {
                let lists = &mut questions.lists;
                self.look_up_by(interface, *id, &group.visits, &mut by_interface, lists);
            } else if visit.via == Via::Root {
                self.ask_root(*id, &mut questions);
            } else if visit.is_reentry(self.tree) {
                self.ask_again(*id, &mut questions);
            } else {
                self.look_up(*id, &mut questions.lists);
            }
        }
        questions
    }

    /// Everything that a visit to the root type asks.
    fn select_root(&mut self, id: VisitId, names: &mut Names) -> Selected {
        let visit = &self.schedule.visits[id];
        let place = self.tree.nodes[visit.node].place;
        let facts = self.facts_of(id).iter();
        let wanted = facts.map(|f| (id, *f)).collect();
        self.object_among(place, wanted, visit.subgraph, None, names)
    }

    fn ask_root(&mut self, id: VisitId, questions: &mut Questions) {
        let selected = self.select_root(id, &mut questions.names);
        questions.kind = self.tree.op.kind;
        let part = RootPart {
            cond: plan_cond(selected.cond),
            shape: selected.shape,
        };
        questions.root = Some((part, whole(None, selected.selection)));
    }

    /// Asks for values of the root type below another object.
    fn ask_again(&mut self, id: VisitId, questions: &mut Questions) {
        let selected = self.select_root(id, &mut questions.names);
        let visit = &self.schedule.visits[id];
        let node = &self.tree.nodes[visit.node];
        let target = Target {
            layout: output::layout_id(node.place),
            types: None,
            untyped: false,
            cond: plan_cond(selected.cond),
            representations: self.lists.representations(vec![Representation {
                typename: None,
                members: Vec::new(),
            }]),
            shape: selected.shape,
            selection: self.question(visit.subgraph, &node.types, selected.selection),
            contexts: Vec::new(),
        };
        let reentries = &mut questions.reentries;
        match reentries.iter_mut().find(|(s, _)| *s == selected.selection) {
            Some((_, targets)) => targets.push(target),
            None => reentries.push((selected.selection, vec![target])),
        }
    }

    /// Adds the look-ups of one visit: one for each group of its values that needs a representation of its own.
    fn look_up(&mut self, id: VisitId, lists: &mut LookupLists) {
        let visit = &self.schedule.visits[id];
        let node = &self.tree.nodes[visit.node];
        let place = node.place;
        let types = node.types.intersection(&self.possible[place]);
        let several = self.possible[place].len() > 1 || self.tree.may_be_untold(place);
        let groups = self.representable_groups(id).into_iter();
        let groups: Vec<_> = groups
            .flat_map(|(facts, whole)| self.split_by_contexts(id, facts, whole))
            .collect();
        for (facts, representations) in groups {
            let mut wanted = self.pool.wanted.pop().unwrap_or_default();
            wanted.extend(facts.iter().map(|f| (id, *f)));
            let Selected {
                selection,
                shape,
                names,
                cond,
            } = self.object(place, wanted, visit.subgraph, None);
            let contexts = self.contexts(id, &facts);
            let target = Target {
                layout: output::layout_id(place),
                types: several.then(|| self.runtime_set(&types)),
                untyped: false,
                cond: Cond(cond.0),
                representations: self.lists.representations(representations),
                shape,
                selection: self.question(visit.subgraph, &types, selection),
                contexts,
            };
            let question = Question { cond, selection };
            lists.add(Types::concrete(&types), question, &names, target);
            self.pool.put_names(names);
        }
    }

    /// The groups that bring what is sent with these visits. Descents count too: a `@requires` on the way down is sent
    /// with the entry above it.
    fn dependencies(&self, visits: &[VisitId], groups: &[Group]) -> Vec<FetchId> {
        let mut dependencies: Vec<FetchId> = Vec::new();
        for fact in self.inputs_of(visits) {
            let Some(provider) = self.schedule.provider.get(&fact) else {
                continue;
            };
            let from = GroupKey::of(&self.schedule.visits[*provider]);
            let from = groups.binary_search_by_key(&from, |group| group.key);
            if let Ok(from) = from.map(FetchId::from_usize)
                && !dependencies.contains(&from)
            {
                dependencies.push(from);
            }
        }
        dependencies.sort();
        dependencies
    }

    /// Puts questions into as few requests as may be.
    fn cut(
        &mut self,
        key: GroupKey,
        questions: Questions,
        batching: Batching,
        dependencies: &[FetchId],
    ) -> Vec<Fetch> {
        let taken: Vec<Symbol> = questions.names.taken().collect();
        let mut root = questions.root;
        let mut lists: VecDeque<LookupList> = questions.lists.into_lists().collect();
        let mut reentries = VecDeque::from(questions.reentries);
        let (most, beside_root) = match batching {
            Batching::All(most) => (most.max(1) as usize, most.max(1) as usize),
            Batching::Off | Batching::Paths => (1, 0),
        };
        let mut out = Vec::new();
        loop {
            let mut parts: Vec<Part> = Vec::new();
            let mut lookups = Vec::new();
            let mut kind = OperationKind::Query;
            let mut room = most;
            let root = root.take().map(|(root, part)| {
                parts.push(part);
                kind = questions.kind;
                room = beside_root;
                root
            });
            while room > 0
                && let Some(list) = lists.pop_front()
            {
                room -= 1;
                let (part, lookup) = self.lookup_part(lookups.len(), list, &taken);
                parts.push(part);
                lookups.push(lookup);
            }
            while room > 0
                && let Some((selection, targets)) = reentries.pop_front()
            {
                room -= 1;
                parts.push(whole(Some(lookups.len() as u16), selection));
                lookups.push(Lookup {
                    response_key: "".into(),
                    variable: "".into(),
                    targets,
                });
            }
            if root.is_some() && !lookups.is_empty() {
                // The parts of the request may be sent one by one.
                parts[0].lookup = Some(Gate::ROOT);
            }
            let (segments, variables) = self.assemble(kind, parts, &lookups);
            out.push(Fetch {
                subgraph: key.subgraph,
                wave: self.schedule.part_of(key.wave),
                dependencies: dependencies.to_vec(),
                successors: Vec::new(),
                kind,
                segments,
                variables,
                root,
                lookups,
            });
            if lists.is_empty() && reentries.is_empty() {
                return out;
            }
        }
    }
}

/// The part that is one selection.
fn whole(lookup: Option<u16>, selection: SelectionId) -> Part {
    Part {
        lookup,
        pieces: vec![Piece {
            cond: CondId::TRUE,
            chunk: Chunk::Selection(selection),
        }],
    }
}
