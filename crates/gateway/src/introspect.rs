//! Local answers to `__schema` and `__type`.

use ogive_operation::{Operation, Variables};
use ogive_schema::Schema;

pub(crate) fn answer_locals(_: &Schema, operation: &Operation, _: &Variables) -> Vec<Vec<u8>> {
    vec![b"null".to_vec(); operation.fields.len()]
}
