//! Nulls inside of lists, and of values that pass to the client as they stand: a subgraph that reports an error without a
//! usable path may mean any of them.

use ogive_json::{Kind, ScanError, Scanner};
use ogive_plan::{Layout, LayoutId, OutField, Plan, SlotIndex};

use super::{Absorb, places::Places};
use crate::{
    graphql_error::{Path, PathStep},
    shown::{is_null, slot_of},
    store::{RawRange, RecordId, Value},
};

impl<'p> Absorb<'_, 'p> {
    /// Whether a value is of the answer that is read.
    pub(super) fn is_of_answer(&self, range: RawRange) -> bool {
        range.place().0 == self.source.rank()
    }

    /// Adds the items of a list in a slot that are null.
    pub(super) fn add_null_items(
        &self,
        object: &Path<'p>,
        (record, slot): (RecordId, SlotIndex),
        value: Value,
        places: &mut Places<'p>,
    ) {
        let (Value::List(_), Some(field)) = (value, self.shown_field(record, slot)) else {
            return;
        };
        let mut path = object.clone();
        path.push(PathStep::Key(&field.key));
        let mut open = vec![(path, value)];
        while let Some((path, value)) = open.pop() {
            match value {
                Value::List(list) => {
                    for at in (0..list.len).rev() {
                        let item = self.store.item(list, at);
                        if is_null(item) || matches!(item, Value::List(_)) {
                            let mut path = path.clone();
                            path.push(PathStep::Index(at));
                            open.push((path, item));
                        }
                    }
                }
                _ => places.add(path),
            }
        }
    }

    /// Adds what is null inside of a value that passes as it stands.
    pub(super) fn add_nulls_inside(
        &self,
        object: &Path<'p>,
        (record, slot): (RecordId, SlotIndex),
        range: RawRange,
        places: &mut Places<'p>,
    ) {
        let text = self.store.raw(range);
        let Some(field) = self.shown_field(record, slot) else {
            return;
        };
        if !text.windows(4).any(|bytes| bytes == b"null") {
            return;
        }
        let mut path = object.clone();
        path.push(PathStep::Key(&field.key));
        let layout = self.store.layout(record);
        let inside = Inside::of(&self.store.plan().layouts[layout], field);
        // The text was validated when it was read.
        let _ = add_nulls(self.store.plan(), (text, inside), path, places);
    }
}

/// What there may be inside of a value.
struct Inside {
    /// Whether clients know it.
    is_shown: bool,
    /// Layers of lists.
    lists: u8,
    /// The places that its objects may have.
    objects: Vec<LayoutId>,
}

impl Inside {
    fn of(layout: &Layout, field: &OutField) -> Self {
        let slot = slot_of(field).and_then(|slot| layout.slots.get(usize::from(slot)));
        Inside {
            is_shown: true,
            lists: field.wrapping.lists(),
            objects: slot.and_then(|slot| slot.child).into_iter().collect(),
        }
    }
    /// The same of an item of a list.
    fn item(&self) -> Self {
        Inside {
            is_shown: self.is_shown,
            lists: self.lists.saturating_sub(1),
            objects: self.objects.clone(),
        }
    }
    /// Reads the next key of an object: the step it stands for, and what is inside of its value.
    fn member<'p>(
        &self,
        plan: &'p Plan,
        scanner: &mut Scanner<'_>,
    ) -> Result<(PathStep<'p>, Self), ScanError> {
        let key = scanner.key()?;
        let mut name = "";
        let mut all = Inside {
            is_shown: false,
            lists: 0,
            objects: Vec::new(),
        };
        for object in &self.objects {
            let layout = &plan.layouts[*object];
            for field in layout.output.iter().filter(|field| key.is(&field.key)) {
                let inside = Inside::of(layout, field);
                name = &field.key;
                (all.is_shown, all.lists) = (true, inside.lists);
                all.objects.extend(inside.objects);
            }
        }
        Ok((PathStep::Key(name), all))
    }
}

/// An object or list around what is read.
struct Open {
    inside: Inside,
    /// Of a list, the index of the item that comes next.
    next: Option<u32>,
}

/// Adds all nulls in a text whose value has this path.
fn add_nulls<'p>(
    plan: &'p Plan,
    (text, mut value): (&[u8], Inside),
    mut path: Path<'p>,
    places: &mut Places<'p>,
) -> Result<(), ScanError> {
    let mut scanner = Scanner::with_depth_max(text, Scanner::DEPTH_MAX);
    let mut open: Vec<Open> = Vec::new();
    loop {
        let mut more = match scanner.peek()? {
            Kind::Array if value.lists > 0 => {
                let (inside, next) = (value, Some(0));
                open.push(Open { inside, next });
                scanner.begin_array()?
            }
            Kind::Object if value.lists == 0 && !value.objects.is_empty() => {
                let (inside, next) = (value, None);
                open.push(Open { inside, next });
                scanner.begin_object()?
            }
            kind => {
                if kind == Kind::Null && value.is_shown {
                    places.add(path.clone());
                }
                scanner.skip_value()?;
                leave(&mut scanner, &open, &mut path)?
            }
        };
        while !more {
            // The innermost object or list is complete.
            if open.pop().is_none() {
                return Ok(());
            }
            more = leave(&mut scanner, &open, &mut path)?;
        }
        let Some(innermost) = open.last_mut() else {
            return Ok(());
        };
        let (step, inside) = match &mut innermost.next {
            Some(next) => {
                *next += 1;
                (PathStep::Index(*next - 1), innermost.inside.item())
            }
            None => innermost.inside.member(plan, &mut scanner)?,
        };
        path.push(step);
        value = inside;
    }
}

/// Behind a value: whether another one follows in the object or list around it.
fn leave(scanner: &mut Scanner<'_>, open: &[Open], path: &mut Path<'_>) -> Result<bool, ScanError> {
    let Some(innermost) = open.last() else {
        return Ok(false);
    };
    path.pop();
    match innermost.next {
        Some(_) => scanner.next_item(),
        None => scanner.next_member(),
    }
}
