//! Who serves objects of an abstract type where several subgraphs could (planner rules 68 and 69).
//!
//! Subgraphs that can answer one field need not know the same members of its type. Then nobody says which of them is
//! right about an object, so:
//!
//! 1. Only members that all of them know are certain. A field under a condition on another member is null there, and
//!    nobody is asked for it ([`Fact::is_uncertain`](crate::tree::Fact::is_uncertain)).
//! 2. Where the client asks a field of the interface itself, or a list, one of them serves the place; those that know
//!    the same members count as one. It must have what is asked for every member it knows, from its own objects or by
//!    a key from them. Items of lists are not the same items to subgraphs that know other members. Of single objects,
//!    others may bring what it lacks of the certain members.
//! 3. Subgraphs that know the same members may help each other out, unless none of them alone has what is asked of the
//!    interface itself: answers are not combined type by type to make up for that.
//!
//! Which subgraphs can answer a field at a place is what the [closure](crate::closure) of all requests says, so this
//! comes after everything else has grown. Where no two subgraphs could serve an abstract place, nothing is computed.

use ogive_base::{BitSet, FastMap, IdVec};
use ogive_operation::{FieldNodeId, FieldRef};
use ogive_plan::OperationKind;
use ogive_schema::TypeKind;

use crate::tree::{FactId, NodeId, PlaceId, Scope, Tree};
use crate::{
    PlanError, PlanOptions,
    closure::{Closure, NEVER},
    search::told_elsewhere,
};

/// Most closures of one operation; where more would be needed, the nearest subgraph serves.
const CLOSURES_MAX: u32 = 64;

/// Settles who serves each place, from the root down.
pub(super) fn settle(tree: &mut Tree<'_>, options: &PlanOptions) -> Result<(), PlanError> {
    let levels = doubtful(tree);
    if levels.is_empty() {
        return Ok(());
    }
    let mut work = Settling {
        scope: Scope {
            nodes: tree.nodes.ids().collect(),
            root_facts: tree.nodes[Tree::ROOT].facts.clone(),
            serial: tree.op.kind != OperationKind::Query,
            entered_by: None,
            facts: tree.facts.len(),
            rows: None,
        },
        closure: Closure::default(),
        left: CLOSURES_MAX,
        waves_max: options.waves_max.max(1) as usize,
    };
    for level in levels {
        work.level(tree, &level)?;
    }
    Ok(())
}

/// Places of an abstract type that several subgraphs may serve, and not alike, level by level: those of a level are
/// below some of the level before.
fn doubtful(tree: &Tree<'_>) -> Vec<Vec<PlaceId>> {
    let mut levels: Vec<Vec<PlaceId>> = Vec::new();
    // Most operations have no such place.
    let Some(first) = tree.places.ids().find(|id| is_doubtful(tree, *id)) else {
        return levels;
    };
    let mut depths: IdVec<PlaceId, usize> = IdVec::new();
    for id in tree.places.ids() {
        let above = tree
            .parent(id)
            .map_or(0, |node| depths[tree.nodes[node].place]);
        if id < first || !is_doubtful(tree, id) {
            depths.push(above);
            continue;
        }
        depths.push(above + 1);
        if levels.len() == above {
            levels.push(Vec::new());
        }
        levels[above].push(id);
    }
    levels
}

fn is_doubtful(tree: &Tree<'_>, id: PlaceId) -> bool {
    let place = &tree.places[id];
    if place.possible.len() < 2 || place.selection.is_none() {
        return false;
    }
    let Some(edge) = place.edge.map(|edge| &tree.facts[edge]) else {
        return false;
    };
    let mut leading = edge.plain.union(&edge.provided);
    for requirement in &edge.requires {
        leading.insert(requirement.subgraph.0);
    }
    if leading.len() < 2 {
        return false;
    }
    let mut known = members(tree, id).map(|n| tree.nodes[n].types_known.intersection(&leading));
    let first = known.next();
    let is_even = known.all(|other| Some(&other) == first.as_ref());
    let is_interface = tree.schema().types[place.ty].kind == TypeKind::Interface;
    let has_all = |s: &u32| {
        let mut facts = members(tree, id).flat_map(|n| &tree.nodes[n].facts);
        facts.all(|f| {
            let fact = &tree.facts[*f];
            let is_known = tree.nodes[fact.node].types_known.contains(*s);
            fact.client.is_none() || !is_known || fact.plain.contains(*s)
        })
    };
    !is_even || is_interface && !leading.iter().any(|s| has_all(&s))
}

/// Nodes of a place that are concrete types.
fn members<'t>(tree: &'t Tree<'_>, place: PlaceId) -> impl Iterator<Item = NodeId> + 't {
    let nodes = tree.places[place].nodes.iter().copied();
    nodes.filter(|n| tree.nodes[*n].unites.is_empty())
}

/// Subgraphs that know the same members.
#[derive(Clone)]
struct Group {
    subgraphs: BitSet,
    /// Nodes (`NodeId.0`).
    knows: BitSet,
    /// First wave in which one of them leads to the place.
    wave: usize,
    /// Whether it was found to lack nothing that is asked of the interface itself.
    is_whole: bool,
}

/// A place at which it is to be found out who serves.
struct Trial {
    place: PlaceId,
    /// Nearest first.
    groups: Vec<Group>,
    /// Those that are tried, by index, and whether others may help with certain members.
    candidates: Vec<(usize, bool)>,
    /// How many were.
    next: usize,
    /// Nodes that all groups know.
    certain: BitSet,
    /// Only what is asked of the interface itself counts, and who has it need not serve alone.
    is_there: bool,
    /// By node of the place.
    before: Vec<BitSet>,
    /// What the first candidate lacked.
    lacks: Option<FactId>,
}

struct Settling {
    scope: Scope,
    closure: Closure,
    /// Closures that may still be computed.
    left: u32,
    waves_max: usize,
}

impl Settling {
    fn close(&mut self, tree: &Tree<'_>) {
        let subgraphs = BitSet::all(tree.supergraph.subgraphs.len());
        self.left = self.left.saturating_sub(1);
        self.closure
            .run_to_end(tree, &self.scope, &subgraphs, self.waves_max);
    }

    fn level(&mut self, tree: &mut Tree<'_>, places: &[PlaceId]) -> Result<(), PlanError> {
        self.close(tree);
        let mut open = Vec::new();
        for place in places {
            open.extend(self.trial(tree, *place));
        }
        while !open.is_empty() {
            for trial in &open {
                trial.restrict(tree);
            }
            let is_judged = self.left > 0;
            if is_judged {
                self.close(tree);
            }
            let mut still = Vec::new();
            for trial in open {
                if !is_judged {
                    trial.accept(tree);
                    continue;
                }
                still.extend(self.judge(tree, trial)?);
            }
            open = still;
        }
        Ok(())
    }

    /// What is to be found out about a place. Fields that are uncertain are marked.
    fn trial(&self, tree: &mut Tree<'_>, place: PlaceId) -> Option<Trial> {
        let groups = self.groups(tree, place);
        let asked = asked_of_itself(tree, place);
        let mut certain = groups.first()?.knows.clone();
        for group in &groups {
            certain.intersect_with(&group.knows);
        }
        let nodes = tree.places[place].nodes.clone();
        let before = nodes.iter().map(|n| tree.nodes[*n].types_known.clone());
        let mut trial = Trial {
            place,
            candidates: (0..groups.len()).map(|group| (group, false)).collect(),
            next: 0,
            is_there: false,
            before: before.collect(),
            lacks: None,
            certain,
            groups,
        };
        if let [group] = &*trial.groups {
            let is_had = asked.is_empty() || has_one(tree, place, group, &asked);
            let alone = |s: u32| Group {
                subgraphs: [s].into_iter().collect(),
                ..group.clone()
            };
            trial.groups = group.subgraphs.iter().map(alone).collect();
            trial.candidates = (0..trial.groups.len())
                .map(|group| (group, false))
                .collect();
            trial.is_there = true;
            return (!is_had).then_some(trial);
        }
        for node in members(tree, place)
            .filter(|n| !trial.certain.contains(n.0))
            .collect::<Vec<_>>()
        {
            for fact in tree.nodes[node].facts.clone() {
                let row = &mut tree.facts[fact];
                if row
                    .client
                    .is_some_and(|client| !asked.contains_key(&client))
                {
                    row.is_uncertain = true;
                    (row.plain, row.provided) = (BitSet::new(), BitSet::new());
                    row.requires.clear();
                }
            }
        }
        let is_list = tree.places[place]
            .edge
            .is_some_and(|e| tree.facts[e].ty.wrapping.is_list());
        if !is_list {
            let helped = (0..trial.groups.len()).map(|group| (group, true));
            trial.candidates.extend(helped);
        }
        (is_list || !asked.is_empty()).then_some(trial)
    }

    /// The subgraphs that lead to a place by what they know there, nearest first.
    fn groups(&self, tree: &Tree<'_>, place: PlaceId) -> Vec<Group> {
        let mut groups: Vec<Group> = Vec::new();
        let Some(edge) = tree.places[place].edge else {
            return groups;
        };
        let fact = &tree.facts[edge];
        let mut seen = BitSet::new();
        for wave in 0..self.closure.waves() {
            for subgraph in self.closure.resolving(fact, fact.node, wave).iter() {
                if !seen.insert(subgraph) {
                    continue;
                }
                let known =
                    members(tree, place).filter(|n| tree.nodes[*n].types_known.contains(subgraph));
                let knows: BitSet = known.map(|n| n.0).collect();
                match groups.iter_mut().find(|group| group.knows == knows) {
                    Some(group) => {
                        group.subgraphs.insert(subgraph);
                    }
                    None => groups.push(Group {
                        subgraphs: [subgraph].into_iter().collect(),
                        knows,
                        wave,
                        is_whole: false,
                    }),
                }
            }
        }
        groups.sort_by_key(|group| (group.wave, group.subgraphs.first()));
        groups
    }

    /// Accepts the candidate that was tried, or goes on to the next.
    fn judge(&self, tree: &mut Tree<'_>, mut trial: Trial) -> Result<Option<Trial>, PlanError> {
        let (group, is_helped) = trial.candidates[trial.next];
        let mut lacks = self.lacking(tree, trial.place, true);
        if !is_helped {
            trial.groups[group].is_whole = lacks.is_none();
        }
        if lacks.is_none() && !trial.is_there {
            lacks = self.lacking(tree, trial.place, false);
        }
        let Some(fact) = lacks else {
            trial.accept(tree);
            return Ok(None);
        };
        trial.restore(tree);
        trial.lacks.get_or_insert(fact);
        let after = trial.next + 1..trial.candidates.len();
        let next = after.into_iter().find(|at| {
            let (group, is_helped) = trial.candidates[*at];
            !is_helped || trial.groups[group].is_whole
        });
        match next {
            Some(next) => Ok(Some(Trial { next, ..trial })),
            None => {
                let fact = &tree.facts[trial.lacks.unwrap_or(fact)];
                let coordinate = tree.schema().field_coordinate(fact.field);
                Err(PlanError::failed(format!(
                    "no subgraph can resolve `{coordinate}` for all objects that it knows at this place"
                )))
            }
        }
    }

    /// A value at a place or below that the client wants of an object that is there, and nobody brings. Either anything
    /// counts, or what is asked of the interface itself.
    fn lacking(&self, tree: &Tree<'_>, place: PlaceId, of_itself: bool) -> Option<FactId> {
        let asked = of_itself.then(|| asked_of_itself(tree, place));
        let mut open: Vec<PlaceId> = vec![place];
        while let Some(at) = open.pop() {
            for node in &tree.places[at].nodes {
                let is_there =
                    (0..self.closure.waves()).any(|w| !self.closure.open(*node, w).is_empty());
                if !is_there {
                    continue;
                }
                for id in &tree.nodes[*node].facts {
                    let fact = &tree.facts[*id];
                    let counts =
                        |asked: &Asked| fact.client.is_some_and(|c| asked.contains_key(&c));
                    let counts = at != place || asked.as_ref().is_none_or(counts);
                    if !fact.is_wanted() || !counts {
                        continue;
                    }
                    if self.closure.known(*id) == NEVER {
                        if fact.is_type && told_elsewhere(tree, &self.closure, *node) {
                            continue;
                        }
                        return Some(*id);
                    }
                    open.extend(fact.child);
                }
            }
        }
        None
    }
}

impl Trial {
    /// Lets nobody but the candidate lead to the members of the place.
    fn restrict(&self, tree: &mut Tree<'_>) {
        let (group, is_helped) = self.candidates[self.next];
        let group = &self.groups[group];
        for node in tree.places[self.place].nodes.clone() {
            if !is_helped || !self.certain.contains(node.0) {
                tree.nodes[node]
                    .types_known
                    .intersect_with(&group.subgraphs);
            }
        }
    }

    fn restore(&self, tree: &mut Tree<'_>) {
        let nodes = tree.places[self.place].nodes.clone();
        for (node, known) in nodes.into_iter().zip(&self.before) {
            tree.nodes[node].types_known.clone_from(known);
        }
    }

    fn accept(&self, tree: &mut Tree<'_>) {
        if self.is_there {
            return self.restore(tree);
        }
        let (group, is_helped) = self.candidates[self.next];
        let Some(edge) = tree.places[self.place].edge.filter(|_| !is_helped) else {
            return;
        };
        let subgraphs = &self.groups[group].subgraphs;
        let edge = &mut tree.facts[edge];
        edge.plain.intersect_with(subgraphs);
        edge.provided.intersect_with(subgraphs);
        edge.requires.retain(|r| subgraphs.contains(r.subgraph.0));
    }
}

/// Fields that the client asks of an interface itself.
type Asked = FastMap<FieldNodeId, ()>;

/// The client's fields that it asks of the interface of a place, under no condition on other types.
fn asked_of_itself(tree: &Tree<'_>, place: PlaceId) -> Asked {
    let place = &tree.places[place];
    let schema = tree.schema();
    let (Some(selection), TypeKind::Interface) = (place.selection, schema.types[place.ty].kind)
    else {
        return Asked::default();
    };
    let set = &tree.op.selection_sets[selection];
    // One field may be several nodes, if its types differ. Written under no condition it appears for all of each.
    let mut whole: FastMap<ogive_base::Symbol, BitSet> = FastMap::default();
    let mut candidates: Vec<FieldNodeId> = Vec::new();
    for occurrence in &set.order {
        let field = &tree.op.fields[occurrence.field];
        let FieldRef::Field(row) = field.field else {
            continue;
        };
        let name = schema.fields[row].name;
        let is_of_interface = schema.fields_by_name.contains_key(&(place.ty, name));
        if is_of_interface && field.types.is_subset(&occurrence.types) {
            whole.entry(field.key).or_default().union_with(&field.types);
            candidates.push(occurrence.field);
        }
    }
    let is_everywhere = |field: &FieldNodeId| {
        let types = whole.get(&tree.op.fields[*field].key);
        types.is_some_and(|types| place.possible.is_subset(types))
    };
    candidates
        .into_iter()
        .filter(is_everywhere)
        .map(|field| (field, ()))
        .collect()
}

/// Whether one of the subgraphs resolves all of these fields on every member it knows by itself.
fn has_one(tree: &Tree<'_>, place: PlaceId, group: &Group, asked: &Asked) -> bool {
    group.subgraphs.iter().any(|s| {
        members(tree, place)
            .filter(|n| group.knows.contains(n.0))
            .all(|n| {
                tree.nodes[n].facts.iter().all(|f| {
                    let fact = &tree.facts[*f];
                    let is_asked = fact.client.is_some_and(|c| asked.contains_key(&c));
                    !is_asked || fact.plain.contains(s)
                })
            })
    })
}
