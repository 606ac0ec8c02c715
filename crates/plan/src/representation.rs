//! Representations: how records are shown to subgraphs that look them up.

use ogive_base::BitSet;

use crate::ids::SlotIndex;

/// How to write one `_Any` representation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Representation {
    /// The `__typename` to send; `None` for the record's own concrete type.
    pub typename: Option<Box<str>>,
    /// Members, in order.
    pub members: Vec<Member>,
}

/// One member of a representation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Member {
    /// `"name":` as JSON bytes.
    pub key_json: Box<[u8]>,
    /// The value's slot; `None` writes the record's concrete type name (`__typename`).
    pub slot: Option<SlotIndex>,
    /// Concrete types that have it; `None` for all.
    pub types: Option<BitSet>,
    /// Key member: a null or absent value rules the alternative out. Otherwise null is sent as null and an absent
    /// value leaves the member out.
    pub key: bool,
    /// Members of the object (or of each object of the list) in the slot; empty for leaves.
    pub members: Vec<Member>,
}

impl Representation {
    /// Whether it has nothing but leaves.
    pub fn is_plain(&self) -> bool {
        let mut members = self.members.iter();
        members.all(|member| member.members.is_empty())
    }

    /// Whether the type of a record shows in it.
    pub fn shows_type(&self) -> bool {
        let mut members = self.members.iter();
        self.typename.is_none()
            || members.any(|member| member.slot.is_none() || member.types.is_some())
    }
}
