//! Look-ups as the executor asks them: which representations are written alike, and what their variables look like.
//!
//! Part of what is [derived](crate::derived) from a plan; says nothing the plan does not say.

use ogive_json::Key;

use crate::{
    derived::{LookupFacts, Prefix, Programs},
    ir::*,
    keys::needs_no_escapes,
    representation::Representation,
};

/// The facts of all look-ups of a fetch.
pub(crate) fn lookup_facts(plan: &Plan, fetch: &Fetch) -> Box<[LookupFacts]> {
    let facts = fetch.lookups.iter().map(|lookup| {
        let mut variable = Vec::with_capacity(lookup.variable.len() + 3);
        ogive_json::write_string(&mut variable, &lookup.variable);
        variable.push(b':');
        let key = &lookup.response_key;
        let has_key = !lookup.is_reentry() && needs_no_escapes(key);
        LookupFacts {
            key: has_key.then(|| Key::new(key)),
            variable: variable.into(),
            programs: leaf_programs(plan, lookup),
        }
    });
    facts.collect()
}

fn leaf_programs(plan: &Plan, lookup: &Lookup) -> Option<Programs> {
    let targets = &lookup.targets;
    let are_plain = targets.iter().all(|target| {
        target.contexts.is_empty() && target.representations.iter().all(Representation::is_plain)
    });
    if !are_plain {
        return None;
    }
    let mut distinct: Vec<&Representation> = Vec::new();
    let mut number = |representation| {
        let known = distinct
            .iter()
            .position(|other| write_alike(other, representation));
        known.unwrap_or_else(|| {
            distinct.push(representation);
            distinct.len() - 1
        }) as u32
    };
    let numbers = targets.iter().map(|target| {
        let representations = target.representations.iter();
        representations.map(&mut number).collect()
    });
    let numbers = numbers.collect();
    let by_type = distinct
        .iter()
        .map(|representation| representation.shows_type());
    Some(Programs {
        numbers,
        by_type: by_type.collect(),
        prefixes: targets.iter().map(|target| prefix(plan, target)).collect(),
    })
}

fn prefix(plan: &Plan, target: &Target) -> Option<Prefix> {
    let [representation] = &*target.representations else {
        return None;
    };
    let [member] = &*representation.members else {
        return None;
    };
    let slot = member.slot?;
    let (typename, ty) = match representation.typename.as_deref() {
        Some(name) => (name, None),
        None => {
            let ty = plan.layouts.get(target.layout)?.only_type()?;
            (&**plan.types.get(ty)?, Some(ty))
        }
    };
    if member.types.is_some() {
        return None;
    }
    let before = [
        b"{\"__typename\":\"",
        typename.as_bytes(),
        b"\",",
        &member.key_json,
    ];
    Some(Prefix {
        text: Key::from_json(&before.concat()),
        slot,
        ty,
    })
}

/// Whether two representations of records of one type with the same values are the same text.
fn write_alike(one: &Representation, other: &Representation) -> bool {
    one.typename == other.typename
        && one.members.len() == other.members.len()
        && one.members.iter().zip(&other.members).all(|(one, other)| {
            one.key_json == other.key_json
                && one.slot.is_some() == other.slot.is_some()
                && one.types == other.types
        })
}
