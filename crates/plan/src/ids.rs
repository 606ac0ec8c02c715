//! What the rows of a plan are called by: ids of its tables, and indexes of slots.

use ogive_base::define_id;

define_id! {
    /// A record layout: one object-valued place of the response.
    pub struct LayoutId;
}
define_id! {
    /// One subgraph request.
    pub struct FetchId;
}
define_id! {
    /// One object shape of a subgraph answer.
    pub struct ShapeId;
}
define_id! {
    /// A concrete object type, by index into [`Plan::types`].
    pub struct RuntimeType;
}
define_id! {
    /// A condition over boolean variables, by index into [`Plan::conditions`]; [`Cond::TRUE`] always holds.
    pub struct Cond;
}
define_id! {
    /// A set of enum values, by index into [`Plan::enums`].
    pub struct EnumId;
}

impl Cond {
    /// The condition that always holds.
    pub const TRUE: Cond = Cond(0);
}

/// Index of a slot in its layout.
pub type SlotIndex = u16;
