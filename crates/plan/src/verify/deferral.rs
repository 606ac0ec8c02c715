//! What must hold of deferred groups and of the parts they make of a plan.

use crate::{deferral::Deferral, ir::Plan};

/// What is wrong with what may be answered later.
pub(super) fn problems(deferral: &Deferral, plan: &Plan) -> Vec<String> {
    let mut out = Vec::new();
    let mut check = |holds: bool, text: &dyn Fn() -> String| {
        if !holds {
            out.push(text());
        }
    };
    for (at, group) in deferral.groups.iter().enumerate() {
        let known = group.parent.is_none_or(|parent| (parent as usize) < at);
        check(known, &|| format!("group {at} comes before its parent"));
        let known = plan.layouts.get(group.layout).is_some();
        check(known, &|| format!("group {at} has no place"));
        let mut variable = group.variable.iter();
        let known = variable.all(|v| (*v as usize) < plan.variables.len());
        check(known, &|| format!("group {at} names an unknown variable"));
    }
    check(deferral.parts.first().is_some_and(Vec::is_empty), &|| {
        "part 0 is not the primary one".to_owned()
    });
    for (at, part) in deferral.parts.iter().enumerate().skip(1) {
        let sorted = !part.is_empty() && part.windows(2).all(|pair| pair[0] < pair[1]);
        check(sorted, &|| format!("part {at} is empty or not sorted"));
        let known = part.iter().all(|g| (*g as usize) < deferral.groups.len());
        check(known, &|| format!("part {at} names an unknown group"));
    }
    check(deferral.fetches.len() == plan.fetches.len(), &|| {
        "not every fetch has a part".to_owned()
    });
    let known = |part: u32| (part as usize) < deferral.parts.len();
    check(deferral.fetches.iter().all(|part| known(*part)), &|| {
        "a fetch is in an unknown part".to_owned()
    });
    let sorted = (deferral.outputs.windows(2))
        .all(|pair| (pair[0].layout, pair[0].entry) < (pair[1].layout, pair[1].entry));
    check(sorted, &|| "deferred values are not sorted".to_owned());
    for output in &deferral.outputs {
        let layout = plan.layouts.get(output.layout);
        let there = layout.is_some_and(|l| (output.entry as usize) < l.output.len());
        let known = known(output.part) && output.part != Deferral::PRIMARY;
        check(there && known, &|| {
            format!("a deferred value of layout {} is unknown", output.layout.0)
        });
    }
    for (id, fetch) in plan.fetches.iter() {
        for earlier in &fetch.dependencies {
            let parts = (
                deferral.of_fetch(id.0 as usize),
                deferral.of_fetch(earlier.0 as usize),
            );
            check(deferral.follows(parts.0, parts.1), &|| {
                format!(
                    "fetch {} waits for fetch {}, which may come later than its own part",
                    id.0, earlier.0
                )
            });
        }
    }
    out
}
