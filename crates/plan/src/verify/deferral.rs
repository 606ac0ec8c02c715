//! What must hold of deferred groups and of the parts they make of a plan.

use crate::{
    deferral::{Deferral, DeferredOutput},
    ir::Plan,
};

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
        let known = plan.conditions.get(group.cond).is_some();
        check(known, &|| format!("group {at} names an unknown condition"));
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
        let of_group = output
            .group
            .is_none_or(|group| fits(deferral, plan, output, group));
        let is_deferred = output.part != Deferral::PRIMARY || output.group.is_some();
        let known = known(output.part) && is_deferred && of_group;
        check(there && known, &|| {
            let groups = deferral.parts.get(output.part as usize);
            format!(
                "entry {} of layout {} does not belong to group {:?} and the groups {groups:?}",
                output.entry, output.layout.0, output.group
            )
        });
    }
    let sorted = (deferral.streams.windows(2))
        .all(|pair| (pair[0].layout, pair[0].entry) < (pair[1].layout, pair[1].entry));
    check(sorted, &|| "streamed lists are not sorted".to_owned());
    for stream in &deferral.streams {
        let layout = plan.layouts.get(stream.layout);
        let entry = layout.and_then(|layout| layout.output.get(stream.entry as usize));
        let is_list = entry.is_some_and(|entry| entry.wrapping.is_list());
        let variables = [stream.initial_variable, stream.variable];
        let mut variables = variables.iter().flatten();
        let known = variables.all(|v| (*v as usize) < plan.variables.len());
        check(is_list && known, &|| {
            let (entry, layout) = (stream.entry, stream.layout.0);
            format!(
                "entry {entry} of layout {layout} is streamed and no list, or names an unknown variable"
            )
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

/// Whether a group can ask for a value: it is no higher than the group, and answered with the group, with one around it, or
/// at first.
fn fits(deferral: &Deferral, plan: &Plan, output: &DeferredOutput, group: u32) -> bool {
    let Some(place) = deferral.groups.get(group as usize).map(|g| g.layout) else {
        return false;
    };
    let groups = deferral.parts.get(output.part as usize);
    let around =
        |part: &Vec<u32>| part.is_empty() || part.iter().any(|g| deferral.is_within(group, *g));
    plan.depth(output.layout) >= plan.depth(place) && groups.is_some_and(around)
}
