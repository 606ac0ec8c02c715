//! Pass 4: which request brings which value, and how each object is reached there.
//!
//! Demand driven. Every wanted fact needs a provider: a *visit* of its object in one (wave, subgraph) request. A visit
//! is an entry (the root, or a key whose members must be provided in earlier waves) or a descent from a visit of the
//! parent in the same request. Facts with one possible provider are settled first; the rest take the provider that
//! costs least per value it brings. The closure guarantees that every demand can be met, so there is no backtracking.
//!
//! Afterwards each fact keeps its earliest provider only, and visits that bring nothing are dropped.

use std::ops::ControlFlow;

use ogive_base::{FastMap, IdVec, define_id, id::Id as _};
use ogive_operation::DeferId;

use crate::{
    PlanError,
    closure::Closure,
    search::Found,
    tree::{Fact, FactId, KeyAlternative, NodeId, Rows, Scope, Tree},
};

define_id! {
    /// One visit of an object in one request.
    pub struct VisitId;
}

/// What was decided for all scopes of an operation.
#[derive(Clone, Debug, Default)]
pub struct Schedule {
    /// All visits.
    pub visits: IdVec<VisitId, Visit>,
    /// The visit that brings each fact.
    pub provider: Providers,
    /// Number of waves of the scopes so far.
    pub waves: u32,
    /// First wave of each scope.
    pub scope_starts: Vec<u32>,
    /// Sets of deferred groups that have something to themselves, sorted; the first is empty, the primary part. Empty
    /// without deferred fragments, else the wave of each visit is that many times the wave, plus the visit's part.
    pub parts: Vec<Vec<DeferId>>,
}

impl Schedule {
    /// The part of a plan that a visit belongs to; 0 is the primary one.
    pub fn part_of(&self, wave: u32) -> u32 {
        wave.checked_rem(self.parts.len() as u32).unwrap_or(0)
    }
}

/// Which visit brings each fact.
#[derive(Clone, Debug, Default)]
pub struct Providers(IdVec<FactId, Option<VisitId>>);

impl Providers {
    /// The visit that brings a fact.
    pub fn get(&self, fact: &FactId) -> Option<&VisitId> {
        self.0.get(*fact)?.as_ref()
    }
    /// Another visit brings a fact.
    pub(crate) fn set(&mut self, fact: FactId, visit: VisitId) {
        self.0[fact] = Some(visit);
    }
    fn reserve(&mut self, facts: usize) {
        if self.0.len() < facts {
            self.0 = IdVec::from_vec(vec![None; facts]);
        }
    }
}

/// One object in one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visit {
    /// The object.
    pub node: NodeId,
    /// Which request: the subgraph, by index.
    pub subgraph: u32,
    /// Which request: the wave, counted over all scopes.
    pub wave: u32,
    /// How the object is reached.
    pub via: Via,
    /// Other keys of the same subgraph, for objects whose first key has a null member.
    pub spare_keys: Vec<usize>,
    /// Which scope it belongs to.
    pub scope: u32,
    /// Whether it is still needed.
    pub live: bool,
}

/// How an object is reached in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    /// A root operation type.
    Root,
    /// `_entities`, by this key alternative of the node.
    Key(usize),
    /// From its parent's visit in the same request.
    Parent(VisitId),
}

impl Visit {
    /// Whether a query root in the middle of the response is asked.
    pub(crate) fn is_reentry(&self, tree: &Tree<'_>) -> bool {
        match self.via {
            Via::Key(key) => tree.nodes[self.node].keys[key].fields.is_none(),
            _ => false,
        }
    }
    /// Keys by which the object may be entered, best first; none for a root or a descent.
    pub fn keys(&self) -> impl Iterator<Item = usize> {
        let first = match self.via {
            Via::Key(key) => Some(key),
            _ => None,
        };
        first.into_iter().chain(self.spare_keys.iter().copied())
    }
}

impl Via {
    pub(crate) fn is_descent(self) -> bool {
        matches!(self, Via::Parent(_))
    }
}

/// Settles the providers of one scope and appends them to `schedule`.
pub fn assign(
    tree: &Tree<'_>,
    scope: &Scope,
    found: &Found,
    schedule: &mut Schedule,
) -> Result<(), PlanError> {
    let offset = schedule.waves;
    let mut work = Assigner {
        tree,
        closure: &found.closure,
        requests: &found.requests.waves,
        preferred: &found.preferred.waves,
        rows: scope.rows.as_deref(),
        visits: IdVec::new(),
        index: Visits::new(scope.nodes.len()),
        providers: vec![Provided::NOT; scope.facts],
        cover: Cover::new(scope.nodes.len(), tree.supergraph.subgraphs.len()),
        missing: Cover::new(scope.nodes.len(), tree.supergraph.subgraphs.len()),
        demands: Vec::new(),
        offers: Vec::new(),
    };
    work.run(scope, found)?;
    work.prune(found);
    schedule.provider.reserve(tree.facts.len());
    let number = schedule.scope_starts.len() as u32;
    schedule.scope_starts.push(offset);
    let base = schedule.visits.len() as u32;
    if schedule.visits.is_empty() {
        schedule.visits = IdVec::from_vec(Vec::with_capacity(work.visits.len()));
    }
    for (_, visit) in work.visits.iter_mut() {
        let via = match visit.via {
            Via::Parent(p) => Via::Parent(VisitId(p.0 + base)),
            other => other,
        };
        schedule.visits.push(Visit {
            wave: visit.wave + offset,
            scope: number,
            via,
            spare_keys: std::mem::take(&mut visit.spare_keys),
            ..*visit
        });
    }
    for node in &scope.nodes {
        for fact in scope.facts_at(tree, *node) {
            if let Some(visit) = work.provided(*fact).visit {
                schedule.provider.0[*fact] = Some(VisitId(visit.0 + base));
            }
        }
    }
    schedule.waves = offset + found.requests.waves.len() as u32;
    Ok(())
}

/// Something that must be provided by a wave.
#[derive(Clone, Copy)]
struct Demand {
    fact: FactId,
    deadline: u32,
}

struct Assigner<'a> {
    tree: &'a Tree<'a>,
    closure: &'a Closure,
    requests: &'a [ogive_base::BitSet],
    preferred: &'a [ogive_base::BitSet],
    rows: Option<&'a Rows>,
    visits: IdVec<VisitId, Visit>,
    index: Visits,
    /// By row of the fact in the scope.
    providers: Vec<Provided>,
    /// Wanted values below each node that each subgraph reaches by descent alone.
    cover: Cover,
    /// What each subgraph would bring of the client's values at each node that nobody brings yet, and a little of what
    /// lies below them.
    missing: Cover,
    demands: Vec<Demand>,
    /// Room for the offers of one demand.
    offers: Vec<Offer>,
}

/// Who brings a fact.
#[derive(Clone, Copy, Debug)]
struct Provided {
    /// The earliest visit, the first among equals.
    visit: Option<VisitId>,
    /// Its wave.
    wave: u32,
    /// Subgraph and wave of the first visit that was found.
    request: (u32, u32),
    /// Whether it is brought in other requests too.
    several: bool,
}

impl Provided {
    const NOT: Provided = Provided {
        visit: None,
        wave: u32::MAX,
        request: (u32::MAX, u32::MAX),
        several: false,
    };
}

/// Visits by object, subgraph, wave and whether they are descents: a chain for objects with few, a map beyond.
struct Visits {
    /// By row of the node: how many, and the last.
    heads: Vec<(u32, u32)>,
    /// By visit: what it is, and the one before.
    links: Vec<(VisitKey, u32)>,
    /// Those of objects with many visits.
    map: FastMap<(u32, VisitKey), VisitId>,
}

/// Subgraph, wave, and whether it is a descent, in one word, which is compared and hashed as such.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct VisitKey(u64);

impl VisitKey {
    /// No graph has 2^31 subgraphs.
    #[inline]
    fn new(subgraph: u32, wave: u32, is_descent: bool) -> Self {
        VisitKey(u64::from(wave) << 32 | u64::from(subgraph) << 1 | u64::from(is_descent))
    }
}

impl Visits {
    /// Visits of an object that are looked for one by one.
    const CHAIN_MAX: u32 = 8;
    const NONE: u32 = u32::MAX;

    fn new(nodes: usize) -> Self {
        Visits {
            heads: vec![(0, Self::NONE); nodes],
            links: Vec::new(),
            map: FastMap::default(),
        }
    }
    fn get(&self, node: usize, key: VisitKey) -> Option<VisitId> {
        let (count, mut at) = self.heads[node];
        if count > Self::CHAIN_MAX {
            return self.map.get(&(node as u32, key)).copied();
        }
        while at != Self::NONE {
            let (other, before) = self.links[at as usize];
            if other == key {
                return Some(VisitId(at));
            }
            at = before;
        }
        None
    }
    /// Adds the visit with the next number.
    fn push(&mut self, node: usize, key: VisitKey, id: VisitId) {
        let (count, last) = &mut self.heads[node];
        self.links.push((key, *last));
        (*count, *last) = (*count + 1, id.0);
        if *count == Self::CHAIN_MAX + 1 {
            let mut at = *last;
            while at != Self::NONE {
                let (key, before) = self.links[at as usize];
                self.map.insert((node as u32, key), VisitId(at));
                at = before;
            }
        } else if *count > Self::CHAIN_MAX {
            self.map.insert((node as u32, key), id);
        }
    }
}

/// Wanted values below each node by subgraph: a dense table where it is small, else a map.
enum Cover {
    Dense(Vec<u32>, usize),
    Sparse(FastMap<(usize, u32), u32>),
}

impl Cover {
    /// Most cells of the dense table.
    const CELLS_MAX: usize = 1 << 20;

    fn new(nodes: usize, subgraphs: usize) -> Self {
        match nodes * subgraphs {
            cells if cells <= Self::CELLS_MAX => Cover::Dense(vec![0; cells], subgraphs),
            _ => Cover::Sparse(FastMap::default()),
        }
    }
    /// `node` is the row of a node.
    #[inline]
    fn get(&self, node: usize, subgraph: u32) -> u32 {
        match self {
            Cover::Dense(cells, width) => cells[node * width + subgraph as usize],
            Cover::Sparse(map) => map.get(&(node, subgraph)).copied().unwrap_or(0),
        }
    }
    #[inline]
    fn cell(&mut self, node: usize, subgraph: u32) -> &mut u32 {
        match self {
            Cover::Dense(cells, width) => &mut cells[node * *width + subgraph as usize],
            Cover::Sparse(map) => map.entry((node, subgraph)).or_default(),
        }
    }
}

/// A way to provide a fact.
#[derive(Clone, Copy)]
struct Offer {
    subgraph: u32,
    wave: u32,
    /// Must be an entry (for `@requires`), a descent (for `@provides`), or either.
    kind: Option<bool>,
}

impl<'a> Assigner<'a> {
    fn run(&mut self, scope: &Scope, found: &Found) -> Result<(), PlanError> {
        self.count_cover(found);
        self.count_missing(scope);
        let last = (self.requests.len() as u32).saturating_sub(1);
        let mut forced = Vec::with_capacity(found.wanted.len());
        let mut free = Vec::new();
        for fact in &found.wanted {
            let demand = Demand {
                fact: *fact,
                deadline: last,
            };
            if self.is_forced(demand) {
                forced.push(demand)
            } else {
                free.push(demand)
            }
        }
        for demand in forced.into_iter().chain(free) {
            self.demands.push(demand);
            while let Some(demand) = self.demands.pop() {
                self.meet(demand)?;
            }
        }
        Ok(())
    }

    fn row(&self, node: NodeId) -> usize {
        self.rows.map_or(node.index(), |rows| rows.node(node))
    }
    fn fact_row(&self, fact: FactId) -> usize {
        self.rows.map_or(fact.index(), |rows| rows.fact(fact))
    }
    /// Nobody brings a fact outside the scope.
    fn provided(&self, fact: FactId) -> Provided {
        let row = self.providers.get(self.fact_row(fact));
        row.copied().unwrap_or(Provided::NOT)
    }

    /// Bottom-up: how many wanted values a descent in one subgraph reaches from each node.
    fn count_cover(&mut self, found: &Found) {
        for id in found.wanted.iter().rev() {
            let fact = &self.tree.facts[*id];
            let row = self.row(fact.node);
            for s in fact.plain.iter() {
                *self.cover.cell(row, s) += 1 + self.below(fact, s);
            }
        }
    }

    /// What a descent reaches below a fact.
    fn below(&self, fact: &Fact, subgraph: u32) -> u32 {
        fact.child.map_or(0, |place| {
            let nodes = &self.tree.places[place].nodes;
            nodes
                .iter()
                .map(|n| self.cover.get(self.row(*n), subgraph))
                .sum()
        })
    }

    /// What a subgraph would bring with a fact.
    fn worth(&self, fact: &Fact, subgraph: u32) -> u32 {
        1 + self.below(fact, subgraph).min(8)
    }

    fn count_missing(&mut self, scope: &Scope) {
        for node in &scope.nodes {
            for id in scope.facts_at(self.tree, *node) {
                let fact = &self.tree.facts[*id];
                if fact.client.is_some() {
                    let row = self.row(*node);
                    for s in fact.plain.iter() {
                        *self.missing.cell(row, s) += self.worth(fact, s);
                    }
                }
            }
        }
    }

    /// A visit brings a fact.
    fn provide(&mut self, id: FactId, visit: VisitId) {
        let row = self.fact_row(id);
        let (subgraph, wave) = (self.visits[visit].subgraph, self.visits[visit].wave);
        let Some(provided) = self.providers.get_mut(row) else {
            return;
        };
        if provided.visit.is_none() {
            provided.request = (subgraph, wave);
            let fact = &self.tree.facts[id];
            if fact.client.is_some() {
                let row = self.row(fact.node);
                for s in fact.plain.iter() {
                    *self.missing.cell(row, s) -= self.worth(fact, s);
                }
            }
        }
        let provided = &mut self.providers[row];
        provided.several |= provided.request != (subgraph, wave);
        let earlier = |other: VisitId| (wave, visit) < (provided.wave, other);
        if provided.visit.is_none_or(earlier) {
            (provided.visit, provided.wave) = (Some(visit), wave);
        }
    }

    /// Every way the closure allows, earliest first, until `visit` breaks.
    fn each_offer(&self, demand: Demand, mut visit: impl FnMut(Offer) -> ControlFlow<()>) {
        let fact = &self.tree.facts[demand.fact];
        let last = demand
            .deadline
            .saturating_add(1)
            .min(self.requests.len() as u32);
        for wave in self.closure.known(demand.fact)..last {
            let w = wave as usize;
            let open = self.closure.open(fact.node, w);
            if open.is_empty() {
                continue;
            }
            let plain = fact.plain.iter_both(open);
            let by_provides = fact.provided.iter_both(self.closure.chain(fact.node, w));
            let by_requires = fact.requires.iter().filter(|r| {
                self.closure.entry(fact.node, w).contains(r.subgraph.0)
                    && self.closure.all_known_before(&r.facts, w)
            });
            let offers = plain
                .map(|s| (s, None))
                .chain(
                    by_provides
                        .filter(|s| !fact.plain.contains(*s))
                        .map(|s| (s, Some(true))),
                )
                .chain(by_requires.map(|r| (r.subgraph.0, Some(false))));
            for (subgraph, kind) in offers {
                if visit(Offer {
                    subgraph,
                    wave,
                    kind,
                })
                .is_break()
                {
                    return;
                }
            }
        }
    }

    /// Whether there is only one way.
    fn is_forced(&self, demand: Demand) -> bool {
        let mut count = 0;
        self.each_offer(demand, |_| {
            count += 1;
            if count > 1 {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        count == 1
    }

    /// The cheapest way, the earliest among equals. A visit that is made anyway costs nothing.
    fn cheapest(&mut self, demand: Demand) -> Option<Offer> {
        let node = self.tree.facts[demand.fact].node;
        let mut offers = std::mem::take(&mut self.offers);
        offers.clear();
        let mut free = None;
        let mut preferred = None;
        self.each_offer(demand, |offer| {
            let first = self.preferred.get(offer.wave as usize);
            if first.is_some_and(|set| set.contains(offer.subgraph)) {
                preferred = Some(offer);
                return ControlFlow::Break(());
            }
            if free.is_none()
                && self
                    .existing(node, offer.subgraph, offer.wave, offer.kind)
                    .is_some()
            {
                free = Some(offer);
                if self.preferred.is_empty() {
                    return ControlFlow::Break(());
                }
            }
            offers.push(offer);
            ControlFlow::Continue(())
        });
        let chosen = preferred.or(free).or_else(|| self.least(demand, &offers));
        self.offers = offers;
        chosen
    }

    /// The offer with the least price, the earliest and quickest among equals.
    fn least(&self, demand: Demand, offers: &[Offer]) -> Option<Offer> {
        if let [only] = offers {
            return Some(*only);
        }
        let slow = |offer: &Offer| match &self.tree.measured {
            Some(measured) => measured.slowness_of(offer.subgraph),
            None => 0,
        };
        let mut best: Option<((u32, u32, _), Offer)> = None;
        for offer in offers {
            let most = best.as_ref().map_or(u32::MAX, |((price, _, _), _)| *price);
            let key = (self.price(demand, offer, most), offer.wave, slow(offer));
            if best.as_ref().is_none_or(|(least, _)| key < *least) {
                best = Some((key, *offer));
            }
        }
        best.map(|(_, offer)| offer)
    }

    /// A visit of that kind, if it is made already.
    fn existing(
        &self,
        node: NodeId,
        subgraph: u32,
        wave: u32,
        kind: Option<bool>,
    ) -> Option<VisitId> {
        let order: &[bool] = match kind {
            Some(true) => &[true],
            Some(false) => &[false],
            None => &[true, false],
        };
        let row = self.row(node);
        order
            .iter()
            .find_map(|descent| self.index.get(row, VisitKey::new(subgraph, wave, *descent)))
    }

    fn meet(&mut self, demand: Demand) -> Result<(), PlanError> {
        if self.provided_before(demand.fact, demand.deadline + 1) {
            return Ok(());
        }
        let Some(offer) = self.cheapest(demand) else {
            let coordinate = self
                .tree
                .schema()
                .field_coordinate(self.tree.facts[demand.fact].field);
            return Err(PlanError::failed(format!(
                "no request brings `{coordinate}` in time"
            )));
        };
        let node = self.tree.facts[demand.fact].node;
        let visit = self.visit(node, offer.subgraph, offer.wave, offer.kind)?;
        self.provide(demand.fact, visit);
        for requirement in &self.tree.facts[demand.fact].requires {
            if requirement.subgraph.0 == offer.subgraph && offer.kind == Some(false) {
                self.demand_all(&requirement.facts, offer.wave);
            }
        }
        Ok(())
    }

    fn demand_all(&mut self, facts: &[FactId], before: u32) {
        for fact in facts.iter().rev() {
            self.demands.push(Demand {
                fact: *fact,
                deadline: before.saturating_sub(1),
            });
        }
    }

    /// Cost of an offer in sixteenths, per value it would bring at its object. A price above `most` may be told as any
    /// other above it.
    fn price(&self, demand: Demand, offer: &Offer, most: u32) -> u32 {
        let node = self.tree.facts[demand.fact].node;
        let fact = &self.tree.facts[demand.fact];
        let mut brings = 1 + self.missing.get(self.row(node), offer.subgraph);
        let counted = fact.client.is_some() && self.provided(demand.fact).visit.is_none();
        if counted && fact.plain.contains(offer.subgraph) {
            brings -= self.worth(fact, offer.subgraph);
        }
        let mut unknown = 0;
        if let Some(place) = self.tree.facts[demand.fact].child {
            let nodes = &self.tree.places[place].nodes;
            // Concrete types the subgraph cannot tell weigh against it: others would have to bring them.
            unknown = nodes
                .iter()
                .filter(|n| !self.tree.nodes[**n].types_known.contains(offer.subgraph))
                .count() as u32
                * 256;
            brings += self.below(fact, offer.subgraph).min(8);
        }
        // The least cost that is above `most`.
        let bound = match most {
            u32::MAX => u32::MAX,
            most => {
                let above = (most + 1).saturating_mul(brings);
                above.saturating_sub(unknown).div_ceil(16)
            }
        };
        let request = (offer.subgraph, offer.wave);
        let cost = self.visit_cost(node, request, offer.kind, 0, bound);
        (cost * 16 + unknown) / brings
    }

    /// What a visit takes that is not there yet, up to `bound`: a larger cost may be told as any larger number.
    fn visit_cost(
        &self,
        node: NodeId,
        (subgraph, wave): (u32, u32),
        kind: Option<bool>,
        depth: u32,
        bound: u32,
    ) -> u32 {
        if self.existing(node, subgraph, wave, kind).is_some() {
            return 0;
        }
        if node == Tree::ROOT {
            return 1;
        }
        if bound <= 1 {
            // Nothing else takes less.
            return 1;
        }
        if depth > 8 {
            return 64;
        }
        let w = wave as usize;
        let by_key =
            (kind != Some(true) && self.closure.entry(node, w).contains(subgraph)).then(|| {
                if bound <= 4 {
                    return 4;
                }
                let missing = self.tree.nodes[node]
                    .keys
                    .iter()
                    .filter(|k| {
                        k.subgraph.0 == subgraph && self.closure.all_known_before(&k.facts, w)
                    })
                    .map(|k| {
                        k.facts
                            .iter()
                            .filter(|f| !self.provided_before(**f, wave))
                            .count() as u32
                    })
                    .min()
                    .unwrap_or(0);
                4 + 2 * missing
            });
        let by_descent = (kind != Some(false) && self.closure.descent(node, w).contains(subgraph))
            .then(|| {
                let second = if self.second_list(node, subgraph, wave) {
                    40
                } else {
                    0
                };
                let bound = by_key.unwrap_or(u32::MAX).min(bound);
                match self.tree.parent(self.tree.nodes[node].place) {
                    // Not looked further at what cannot be cheaper.
                    Some(_) if 1 + second >= bound => bound,
                    Some(parent) => {
                        let left = bound - 1 - second;
                        let request = (subgraph, wave);
                        1 + second + self.visit_cost(parent, request, None, depth + 1, left)
                    }
                    None => 1,
                }
            });
        by_descent.into_iter().chain(by_key).min().unwrap_or(1_000)
    }

    fn provided_before(&self, fact: FactId, wave: u32) -> bool {
        self.provided(fact).wave < wave
    }

    /// Whether a descent would answer a list that another request answers already.
    fn second_list(&self, node: NodeId, subgraph: u32, wave: u32) -> bool {
        let place = &self.tree.places[self.tree.nodes[node].place];
        let Some(edge) = place.edge else { return false };
        let provided = self.provided(edge);
        self.tree.facts[edge].ty.wrapping.is_list()
            && provided.visit.is_some()
            && (provided.several || provided.request != (subgraph, wave))
    }

    /// The visit of an object in a request, made with everything it needs if new.
    fn visit(
        &mut self,
        node: NodeId,
        subgraph: u32,
        wave: u32,
        kind: Option<bool>,
    ) -> Result<VisitId, PlanError> {
        let visit = self.any_visit(node, subgraph, wave, kind)?;
        if kind == Some(false) {
            self.enter_by_type(visit);
        }
        Ok(visit)
    }

    /// Required values are sent with the concrete type's own key to a subgraph that defines the type: the interface may
    /// not have them. The type is one of the requirements, so it is known in time.
    fn enter_by_type(&mut self, id: VisitId) {
        let tree = self.tree;
        let Visit {
            node,
            subgraph,
            wave,
            via: Via::Key(key),
            ..
        } = self.visits[id]
        else {
            return;
        };
        let keys = &tree.nodes[node].keys;
        if keys[key].by_interface.is_none() || tree.is_untold(tree.nodes[node].ty, subgraph) {
            return;
        }
        if let Some(own) = self.best_key((node, subgraph, wave), |k| k.by_interface.is_none()) {
            self.visits[id].via = Via::Key(own);
            self.visits[id].spare_keys.clear();
            self.use_key(id, own);
        }
    }

    /// Of the keys by which an object can be entered in time, the one that takes least and is never null, if there is
    /// such a one.
    fn best_key(
        &self,
        (node, subgraph, wave): (NodeId, u32, u32),
        admits: impl Fn(&KeyAlternative) -> bool,
    ) -> Option<usize> {
        let keys = &self.tree.nodes[node].keys;
        let usable = (0..keys.len()).filter(|i| {
            keys[*i].subgraph.0 == subgraph
                && admits(&keys[*i])
                && self
                    .closure
                    .all_known_before(&keys[*i].facts, wave as usize)
        });
        usable.min_by_key(|i| {
            let facts = &keys[*i].facts;
            let missing = facts.iter().filter(|f| !self.provided_before(**f, wave));
            (missing.count(), self.may_be_null(facts), facts.len(), *i)
        })
    }

    fn may_be_null(&self, facts: &[FactId]) -> bool {
        let facts = facts.iter().map(|f| &self.tree.facts[*f]);
        facts.into_iter().any(|f| !f.ty.wrapping.is_non_null())
    }

    /// Demands what a visit's key consists of, and further keys for objects for which a part of it is null.
    fn use_key(&mut self, id: VisitId, key: usize) {
        let Visit {
            node,
            subgraph,
            wave,
            ..
        } = self.visits[id];
        let tree = self.tree;
        let keys = &tree.nodes[node].keys;
        self.demand_all(&keys[key].facts, wave);
        if !self.may_be_null(&keys[key].facts) {
            return;
        }
        for (i, spare) in keys.iter().enumerate() {
            let known = self.closure.all_known_before(&spare.facts, wave as usize);
            let by_same_name = spare.by_interface == keys[key].by_interface;
            if i != key && spare.subgraph.0 == subgraph && known && by_same_name {
                self.visits[id].spare_keys.push(i);
                self.demand_all(&spare.facts, wave);
            }
        }
    }

    fn any_visit(
        &mut self,
        node: NodeId,
        subgraph: u32,
        wave: u32,
        kind: Option<bool>,
    ) -> Result<VisitId, PlanError> {
        // Ancestors that must be visited too, innermost first. Depth is bounded by the operation's depth limit.
        let w = wave as usize;
        if let Some(found) = self.existing(node, subgraph, wave, kind) {
            return Ok(found);
        }
        if node == Tree::ROOT {
            return Ok(self.add(node, subgraph, wave, Via::Root));
        }
        let can_descend = kind != Some(false) && self.closure.descent(node, w).contains(subgraph);
        let can_enter = kind != Some(true) && self.closure.entry(node, w).contains(subgraph);
        let descend = match (can_descend, can_enter) {
            (true, false) => true,
            (false, true) => false,
            (true, true) => {
                let parent = self.tree.parent(self.tree.nodes[node].place);
                let parent_there = parent.is_some_and(|p| {
                    [true, false].iter().any(|d| {
                        self.index
                            .get(self.row(p), VisitKey::new(subgraph, wave, *d))
                            .is_some()
                    })
                });
                parent_there && !self.second_list(node, subgraph, wave)
            }
            (false, false) => {
                let name = self.tree.schema().type_name(self.tree.nodes[node].ty);
                return Err(PlanError::failed(format!(
                    "no way to reach `{name}` in time"
                )));
            }
        };
        if descend {
            self.descend(node, subgraph, wave)
        } else {
            self.enter(node, subgraph, wave)
        }
    }

    fn descend(&mut self, node: NodeId, subgraph: u32, wave: u32) -> Result<VisitId, PlanError> {
        let tree = self.tree;
        let Some(edge) = tree.places[tree.nodes[node].place].edge else {
            return Err(PlanError::failed("the root has no parent"));
        };
        let fact = &tree.facts[edge];
        let parent_kind = if fact.plain.contains(subgraph) {
            None
        } else if fact.provided.contains(subgraph)
            && self
                .closure
                .chain(fact.node, wave as usize)
                .contains(subgraph)
        {
            Some(true)
        } else {
            Some(false)
        };
        let parent = self.visit(fact.node, subgraph, wave, parent_kind)?;
        if parent_kind == Some(false) {
            for requirement in &fact.requires {
                if requirement.subgraph.0 == subgraph {
                    self.demand_all(&requirement.facts, wave);
                }
            }
        }
        let id = self.add(node, subgraph, wave, Via::Parent(parent));
        self.provide(edge, parent);
        Ok(id)
    }

    fn enter(&mut self, node: NodeId, subgraph: u32, wave: u32) -> Result<VisitId, PlanError> {
        let tree = self.tree;
        let Some(key) = self.best_key((node, subgraph, wave), |_| true) else {
            let name = tree.schema().type_name(tree.nodes[node].ty);
            return Err(PlanError::failed(format!(
                "no key of `{name}` is known in time"
            )));
        };
        let id = self.add(node, subgraph, wave, Via::Key(key));
        self.use_key(id, key);
        if let Some(edge) = tree.places[tree.nodes[node].place].edge {
            self.demand_all(&[edge], wave);
        }
        Ok(id)
    }

    fn add(&mut self, node: NodeId, subgraph: u32, wave: u32, via: Via) -> VisitId {
        let id = self.visits.push(Visit {
            node,
            subgraph,
            wave,
            via,
            spare_keys: Vec::new(),
            scope: 0,
            live: true,
        });
        let row = self.row(node);
        self.index
            .push(row, VisitKey::new(subgraph, wave, via.is_descent()), id);
        id
    }

    /// Keeps each fact's earliest provider and drops visits that bring nothing.
    fn prune(&mut self, found: &Found) {
        // A visit is needed if it is a fact's first provider, the parent of a needed visit, or (through the facts of
        // keys and requirements, which are provided facts) an earlier step. Facts that only an unneeded visit wanted
        // go with it, so this repeats until nothing changes.
        let mut wanted = vec![false; self.providers.len()];
        for fact in &found.wanted {
            wanted[self.fact_row(*fact)] = true;
        }
        let mut live: IdVec<VisitId, bool> = IdVec::from_vec(vec![false; self.visits.len()]);
        let mut stack: Vec<FactId> = found.wanted.clone();
        while let Some(fact) = stack.pop() {
            let Some(first) = self.provided(fact).visit else {
                continue;
            };
            let rows = self.rows;
            let mut need = |f: FactId, stack: &mut Vec<FactId>| {
                let row = rows.map_or(f.index(), |rows| rows.fact(f));
                if let Some(wanted) = wanted.get_mut(row)
                    && !*wanted
                {
                    *wanted = true;
                    stack.push(f);
                }
            };
            for requirement in &self.tree.facts[fact].requires {
                let visit = &self.visits[first];
                if requirement.subgraph.0 == visit.subgraph && !visit.via.is_descent() {
                    for f in &requirement.facts {
                        need(*f, &mut stack);
                    }
                }
            }
            let mut at = first;
            while !live[at] {
                live[at] = true;
                let visit = &self.visits[at];
                let Some(edge) = self.tree.places[self.tree.nodes[visit.node].place].edge else {
                    break;
                };
                match visit.via {
                    Via::Root => break,
                    Via::Key(_) => {
                        let keys = &self.tree.nodes[visit.node].keys;
                        for f in visit.keys().flat_map(|k| keys[k].facts.iter()) {
                            need(*f, &mut stack);
                        }
                        need(edge, &mut stack);
                        break;
                    }
                    Via::Parent(parent) => {
                        for requirement in &self.tree.facts[edge].requires {
                            if requirement.subgraph.0 == visit.subgraph
                                && !self.visits[parent].via.is_descent()
                            {
                                for f in &requirement.facts {
                                    need(*f, &mut stack);
                                }
                            }
                        }
                        at = parent;
                    }
                }
            }
        }
        for (id, visit) in self.visits.iter_mut() {
            visit.live = live[id];
        }
        for (provided, wanted) in self.providers.iter_mut().zip(wanted) {
            if !wanted {
                *provided = Provided::NOT;
            }
        }
    }
}
