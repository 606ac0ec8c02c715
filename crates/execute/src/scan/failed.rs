//! What a request that failed was to bring.

use ogive_plan::ShapeId;

use super::applies;
use crate::store::{RecordId, Store, TypeState, Value};

/// Marks every value that `shape` would have put into `record`, and into the objects that others have put there, as
/// failed, if nothing else put one there.
pub(crate) fn fail_fields(store: &mut Store<'_>, shape: ShapeId, record: RecordId) {
    let plan = store.plan();
    let mut open = vec![(shape, Value::Record(record))];
    while let Some((id, value)) = open.pop() {
        let record = match value {
            Value::Record(record) => record,
            Value::List(list) => {
                open.extend((0..list.len).map(|at| (id, store.item(list, at))));
                continue;
            }
            _ => continue,
        };
        let shape = &plan.shapes[id];
        let ty = store.known_type(record);
        if store.type_state(record) == TypeState::Unknown && shape.typename_key.is_some() {
            store.set_type_state(record, TypeState::Failed);
        }
        let mut may_come = false;
        for field in shape.fields.iter().filter(|field| applies(field, ty)) {
            store.merge(record, field.slot, Value::Failed);
            if let Some(child) = field.shape {
                let value = store.value(record, field.slot);
                may_come |= value == Value::Failed;
                open.push((child, value));
            }
        }
        if may_come {
            store.expect_objects(id, record);
        }
    }
}
