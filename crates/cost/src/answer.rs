//! What an answer did cost: of each field that is in it, its arguments and its items, at the nodes of the estimate.
//!
//! The answer is read once, as JSON, along the selection sets. Where objects of several types may stand, a field costs
//! what it costs at most of any of them, as in the estimate; so an answer costs no more than was estimated wherever
//! lists are as long as was said. What is null has no items.

use ogive_base::{FastMap, Symbol};
use ogive_federation::Costs;
use ogive_json::{Kind, ScanError, Scanner};
use ogive_operation::{FieldNodeId, Operation, SelectionSetId, Variables};
use ogive_schema::{OperationKind, Schema};

use crate::{Estimate, MUTATION, Program, Scratch, evaluate::NodeCost};

/// Deeper than any answer is.
const DEPTH_MAX: u32 = 1 << 12;

/// Which price a field of an answer has, by its place. Made once per operation.
#[derive(Clone, Debug, Default)]
pub struct AnswerCosts {
    places: Vec<Vec<Entry>>,
    base: u64,
}

/// One response key of a place.
#[derive(Clone, Debug)]
struct Entry {
    key: Box<str>,
    nodes: Vec<FieldNodeId>,
    /// The place of its objects.
    below: Option<u32>,
}

/// Reads one answer.
struct Reader<'a> {
    answer_costs: &'a AnswerCosts,
    nodes: &'a [NodeCost],
    cost: u64,
}

impl AnswerCosts {
    /// That of an operation.
    pub fn new(operation: &Operation) -> Self {
        let mut places: Vec<Vec<Entry>> = vec![Vec::new()];
        let mut open: Vec<(usize, Vec<SelectionSetId>)> = vec![(0, vec![operation.root])];
        while let Some((at, sets)) = open.pop() {
            let mut entries: Vec<Entry> = Vec::new();
            let mut known: FastMap<Symbol, usize> = FastMap::default();
            let mut below: Vec<Vec<SelectionSetId>> = Vec::new();
            let sets = sets
                .iter()
                .filter_map(|set| operation.selection_sets.get(*set));
            for id in sets.flat_map(|set| &set.fields) {
                let node = &operation.fields[*id];
                let entry = *known.entry(node.key).or_insert(entries.len());
                if entry == entries.len() {
                    entries.push(Entry {
                        key: operation.keys.text(node.key).into(),
                        nodes: Vec::new(),
                        below: None,
                    });
                    below.push(Vec::new());
                }
                entries[entry].nodes.push(*id);
                below[entry].extend(node.selection_set);
            }
            for (entry, sets) in entries.iter_mut().zip(below) {
                if !sets.is_empty() {
                    entry.below = Some(places.len() as u32);
                    open.push((places.len(), sets));
                    places.push(Vec::new());
                }
            }
            places[at] = entries;
        }
        let base = match operation.kind {
            OperationKind::Mutation => MUTATION,
            _ => 0,
        };
        AnswerCosts { places, base }
    }

    /// Bytes on the heap, about.
    pub fn heap_bytes(&self) -> usize {
        let entries = self.places.iter().flatten();
        let entries = entries
            .map(|entry| size_of::<Entry>() + entry.key.len() + size_of_val(&entry.nodes[..]));
        self.places.len() * size_of::<Vec<Entry>>() + entries.sum::<usize>()
    }

    /// What the response `body` did cost. `program` was compiled with [`fields`](crate::Settings::fields). What cannot be
    /// read costs nothing.
    pub fn cost(
        &self,
        program: &Program,
        of: (&Schema, &Costs),
        variables: &Variables,
        scratch: &mut Scratch,
        body: &[u8],
    ) -> u64 {
        let nodes = program.evaluate_nodes(of, variables, scratch);
        let mut reader = Reader {
            answer_costs: self,
            nodes: &nodes,
            cost: self.base,
        };
        let mut scanner = Scanner::with_depth_max(body, DEPTH_MAX);
        let _ = reader.response(&mut scanner);
        reader.cost
    }
}

impl Estimate {
    /// How much more was estimated than it did cost.
    pub fn beyond(&self, actual: u64) -> u64 {
        self.cost.saturating_sub(actual)
    }
}

impl Reader<'_> {
    fn response(&mut self, scanner: &mut Scanner<'_>) -> Result<(), ScanError> {
        let mut more = scanner.begin_object()?;
        while more {
            if scanner.key()?.is("data") && scanner.peek()? == Kind::Object {
                self.object(scanner, 0)?;
            } else {
                scanner.skip_value()?;
            }
            more = scanner.next_member()?;
        }
        Ok(())
    }

    /// Recursion follows the nesting of the operation, which parsing bounds.
    fn object(&mut self, scanner: &mut Scanner<'_>, place: u32) -> Result<(), ScanError> {
        let answer_costs = self.answer_costs;
        let entries = answer_costs.places.get(place as usize);
        let entries = entries.map_or(&[][..], Vec::as_slice);
        // Members come in the order of the operation.
        let mut next = entries.iter();
        let mut more = scanner.begin_object()?;
        while more {
            let key = scanner.key()?;
            let is = |entry: &&Entry| key.is(&entry.key);
            match next.find(is).or_else(|| entries.iter().find(is)) {
                Some(entry) => {
                    let (args, item) = self.node(entry);
                    self.cost = self.cost.saturating_add(args);
                    self.value(scanner, item, entry.below)?;
                }
                None => {
                    scanner.skip_value()?;
                }
            }
            more = scanner.next_member()?;
        }
        Ok(())
    }

    fn value(
        &mut self,
        scanner: &mut Scanner<'_>,
        item: u64,
        below: Option<u32>,
    ) -> Result<(), ScanError> {
        match (scanner.peek()?, below) {
            (Kind::Null, _) => scanner.null(),
            (Kind::Array, _) if item > 0 || below.is_some() => {
                let mut more = scanner.begin_array()?;
                while more {
                    self.value(scanner, item, below)?;
                    more = scanner.next_item()?;
                }
                Ok(())
            }
            (Kind::Object, Some(below)) => {
                self.cost = self.cost.saturating_add(item);
                self.object(scanner, below)
            }
            _ => {
                scanner.skip_value()?;
                self.cost = self.cost.saturating_add(item);
                Ok(())
            }
        }
    }

    /// What its arguments and each of its items cost, at most.
    fn node(&self, entry: &Entry) -> (u64, u64) {
        let nodes = entry.nodes.iter().filter_map(|node| {
            let at = self.nodes.binary_search_by_key(node, |price| price.field);
            self.nodes.get(at.ok()?)
        });
        nodes.fold((0, 0), |(args, item), price| {
            (args.max(price.args), item.max(price.item))
        })
    }
}
