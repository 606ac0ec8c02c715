//! One operation as it is kept: what every request for it shares, and its plans once there are some.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arc_swap::ArcSwapOption;
use ogive_base::BitSet;
use ogive_cost::Program;
use ogive_edge::receive::Delivery;
use ogive_operation::Operation;
use ogive_plan::Plan;
use ogive_syntax::{Document, ast::OperationDefinition};

use crate::{
    schema::canonical::Binding,
    schema::operation_rules::OperationFacts,
    schema::operation_usage::OperationUsage,
    schema::plan_cache::{PlanSlot, SharedPlan},
    schema::plan_costs::{PlanCosts, PlanOutputCosts},
    schema::split_fetch::SplitFetch,
};

/// A valid operation, and its plan once there is one.
#[derive(Debug)]
pub struct PreparedOperation {
    /// The parsed document.
    pub document: Document,
    /// The operation's definition.
    pub definition: OperationDefinition,
    /// The normal form.
    pub operation: Operation,
    /// How it is answered, which the normal form depends on.
    pub delivery: Delivery,
    /// Codes of the limits that it exceeds and that are only measured.
    pub exceeded: Box<[&'static str]>,
    /// What it costs; `None` if nobody asks.
    pub cost: Option<Box<Program>>,
    /// What rules ask about it, once one does.
    pub facts: OnceLock<Box<OperationFacts>>,
    /// What is kept for those who count its use, once somebody does.
    pub(crate) usage: OnceLock<Box<OperationUsage>>,
    /// The plan; set by stop 3.
    pub planned: ArcSwapOption<PlannedOperation>,
    /// Override labels that can matter to its plan, by index; none for most operations.
    pub labels: Box<[u32]>,
    /// Its plans with some of them on.
    pub(crate) variants: Mutex<Vec<(BitSet, Arc<PlannedOperation>)>>,
}

impl PreparedOperation {
    /// Its name.
    pub(crate) fn name(&self) -> Option<&str> {
        let name = self.definition.name?;
        Some(self.document.name(name))
    }
    /// Bytes on the heap, about; plans not counted.
    pub(crate) fn heap_bytes(&self) -> usize {
        let text = self.document.source().len() * (1 + TREE_BYTES_PER_TEXT_BYTE);
        let cost = self.cost.as_ref().map_or(0, |cost| cost.heap_bytes());
        text + cost + self.operation.fields.len() * BYTES_PER_FIELD
    }
    /// Most variants kept with an operation; further ones are found a level below.
    const VARIANTS_MAX: usize = 16;

    /// The plan with these labels on, if it was made before.
    pub(crate) fn known(&self, on: &BitSet) -> Option<Arc<PlannedOperation>> {
        if on.is_empty() {
            return self.planned.load_full();
        }
        let variants = self.variants.lock().unwrap_or_else(PoisonError::into_inner);
        let found = variants.iter().find(|(labels, _)| labels == on);
        found.map(|(_, planned)| Arc::clone(planned))
    }
    /// Keeps the plan with these labels on, instead of the one before; gives back what is kept.
    pub(crate) fn keep(&self, on: &BitSet, planned: PlannedOperation) -> Arc<PlannedOperation> {
        let planned = Arc::new(planned);
        if on.is_empty() {
            self.planned.store(Some(Arc::clone(&planned)));
            return planned;
        }
        let mut variants = self.variants.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, kept)) = variants.iter_mut().find(|(labels, _)| labels == on) {
            kept.clone_from(&planned);
        } else if variants.len() < Self::VARIANTS_MAX {
            variants.push((on.clone(), Arc::clone(&planned)));
        }
        planned
    }
}

/// The plan of one document's operation.
#[derive(Debug)]
pub struct PlannedOperation {
    /// The plan, shared with equivalent documents.
    pub plan: Arc<Plan>,
    /// Values of the plan's variables, from the client's.
    pub binding: Binding,
    /// Whether to send parts of fetches early.
    pub prefetch: Arc<SplitFetch>,
    /// What is known about the plan.
    pub shared: Arc<SharedPlan>,
    /// Where a better one will be.
    pub(crate) slot: Arc<PlanSlot>,
    /// What it costs, once somebody asks.
    pub(crate) costs: OnceLock<PlanCosts>,
    /// What its answers cost, likewise.
    pub(crate) output_costs: OnceLock<Box<PlanOutputCosts>>,
}

impl PlannedOperation {
    pub(crate) fn new(slot: Arc<PlanSlot>, binding: Binding) -> Self {
        let shared = slot.current();
        PlannedOperation {
            plan: Arc::clone(&shared.plan),
            binding,
            prefetch: Arc::default(),
            shared,
            slot,
            costs: OnceLock::new(),
            output_costs: OnceLock::new(),
        }
    }
    /// The same operation with what its slot holds now.
    pub(crate) fn renewed(&self) -> Self {
        let mut renewed = Self::new(Arc::clone(&self.slot), self.binding.clone());
        if Arc::ptr_eq(&renewed.plan, &self.plan) {
            renewed.prefetch = Arc::clone(&self.prefetch);
        }
        renewed
    }
}

/// Bytes of syntax tree per byte of text, about.
pub(crate) const TREE_BYTES_PER_TEXT_BYTE: usize = 8;
/// Bytes of normal form per field, about.
const BYTES_PER_FIELD: usize = 400;
