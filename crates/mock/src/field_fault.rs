//! Faults of single fields, as the engine takes them. How they are written and when they happen is in
//! [`fault`](crate::fault).

use ogive_base::FastMap;
use ogive_schema::FieldId;
use serde_json::Value;

use crate::node::FieldError;

/// What a fault does to a field.
#[derive(Clone, Debug, PartialEq)]
pub enum FaultAction {
    /// The field raises an error.
    Error(FieldError),
    /// The field is null.
    Null,
    /// The field has this value, whatever its type.
    Raw(Value),
}

/// A fault of one field.
#[derive(Clone, Debug, PartialEq)]
pub struct CoordinateFault {
    /// What it does.
    pub action: FaultAction,
}

/// Faults by field of one subgraph.
pub type CoordinateFaults = FastMap<FieldId, CoordinateFault>;
