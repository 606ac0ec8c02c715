//! What of an operation a caller may not see, before anything is executed: for gateways that refuse such operations as
//! a whole, or only note them.

use ogive_plan::{Granted, LayoutId, OutSource, Plan};

use crate::condition::Conditions;

/// Response keys from the root to every field, and place of objects, that would be null because the caller may not see
/// it; at most `max`. What is switched off by `@skip` or `@include` does not count; what only objects of some types
/// have does. `masked`: whether fields count of which it sees a mask. Linear in the output of the plan.
pub fn refused_places(
    plan: &Plan,
    variables: &[Option<Box<str>>],
    granted: &Granted,
    max: usize,
    masked: bool,
) -> Vec<String> {
    let mut out = Vec::new();
    if plan.requirements.is_empty() {
        return out;
    }
    let conditions = Conditions::evaluate(plan, variables, granted);
    let mut open: Vec<(LayoutId, String)> = vec![(Plan::ROOT, String::new())];
    while let Some((id, path)) = open.pop() {
        if out.len() >= max {
            break;
        }
        let Some(layout) = plan.layouts.get(id) else {
            continue;
        };
        let is_refused = |granted| !conditions.hold(granted);
        if layout.restricted.iter().any(|r| is_refused(r.granted)) {
            out.push(path.clone());
        }
        for field in layout.output.iter().filter(|f| conditions.hold(f.cond)) {
            let place = match path.as_str() {
                "" => field.key.to_string(),
                path => format!("{path}.{}", field.key),
            };
            if is_refused(field.granted) {
                if masked || plan.mask(field.granted, granted).is_none() {
                    out.push(place);
                }
                continue;
            }
            if let OutSource::Object(slot) = field.source
                && let Some(child) = layout.slots.get(usize::from(slot)).and_then(|s| s.child)
            {
                open.push((child, place));
            }
        }
    }
    out.sort();
    out.dedup();
    out.truncate(max);
    out
}
