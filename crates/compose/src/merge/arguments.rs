//! How several applications of one directive become one: those that are the same, those that together ask for more, and
//! those of which the most frequent one is used.

use ogive_schema::ConstValue;

use super::inputs::same_value;
use crate::{report::Place, spec::Word};

/// One argument of an application: its name and its value.
pub(super) type Arg = (Box<str>, ConstValue);
/// The arguments of an application.
pub(super) type Args = Vec<Arg>;

/// A directive as one subgraph applies it.
pub(super) struct Usage {
    pub(super) sub: u32,
    pub(super) args: Args,
    pub(super) place: Place,
}

/// Whether two applications say the same.
pub(super) fn same_args(a: &[Arg], b: &[Arg]) -> bool {
    a.len() == b.len()
        && a.iter()
            .all(|(n, v)| b.iter().any(|(m, w)| n == m && same_value(v, w)))
}

/// Arguments that differ, each once, in order.
pub(super) fn distinct(uses: Vec<Usage>) -> Vec<Args> {
    let mut distinct: Vec<Args> = Vec::new();
    for Usage { args, .. } in uses {
        if !distinct.iter().any(|known| same_args(known, &args)) {
            distinct.push(args);
        }
    }
    distinct
}

/// One application that asks for all that several do, of directives of which that is known.
pub(super) fn merged_args(word: Word, uses: &[Usage]) -> Option<Args> {
    let all: Vec<&[Arg]> = uses.iter().map(|one| &one.args[..]).collect();
    match word {
        Word::Cost => Some(max_args(&all)),
        Word::ListSize => Some(list_size(&all)),
        Word::RequiresScopes | Word::Policy => Some(all_of(&all)),
        _ => None,
    }
}

/// The arguments that most applications have, or the first of those.
pub(super) fn most_frequent(uses: &[Usage]) -> Args {
    let mut counted: Vec<(&Args, usize)> = Vec::new();
    for Usage { args, .. } in uses {
        match counted.iter_mut().find(|(known, _)| same_args(known, args)) {
            Some((_, count)) => *count += 1,
            None => counted.push((args, 1)),
        }
    }
    let most = counted.iter().map(|(_, count)| *count).max().unwrap_or(0);
    let chosen = counted.iter().find(|(_, count)| *count == most);
    chosen.map(|(args, _)| (*args).clone()).unwrap_or_default()
}

fn number(value: &ConstValue) -> i64 {
    match value {
        ConstValue::Int(text) => text.parse().unwrap_or(0),
        _ => 0,
    }
}

fn max_args(all: &[&[Arg]]) -> Args {
    all.iter()
        .max_by_key(|args| args.first().map(|(_, v)| number(v)))
        .map(|a| a.to_vec())
        .unwrap_or_default()
}

fn list_size(all: &[&[Arg]]) -> Args {
    let mut out: Args = Vec::new();
    for args in all {
        // Its default takes part in the merge.
        let implied = (
            Box::from("requireOneSlicingArgument"),
            ConstValue::Boolean(true),
        );
        let implied = std::iter::once(&implied).filter(|(n, _)| !args.iter().any(|(m, _)| m == n));
        for (name, value) in args.iter().chain(implied) {
            match out.iter_mut().find(|(n, _)| n == name) {
                None => out.push((name.clone(), value.clone())),
                Some((_, known)) => match (&mut *known, value) {
                    (ConstValue::List(ours), ConstValue::List(theirs)) => {
                        for item in theirs {
                            if !ours.contains(item) {
                                ours.push(item.clone());
                            }
                        }
                    }
                    (ConstValue::Boolean(ours), ConstValue::Boolean(theirs)) => *ours &= *theirs,
                    (ours @ ConstValue::Null, theirs) => *ours = theirs.clone(),
                    (ours, theirs) if number(theirs) > number(ours) => *ours = theirs.clone(),
                    _ => {}
                },
            }
        }
    }
    out
}

/// Conjunction of lists of alternatives: every way to satisfy all of them, without those that ask for more than another.
fn all_of(all: &[&[Arg]]) -> Args {
    let Some(name) = all.first().and_then(|a| a.first()).map(|(n, _)| n.clone()) else {
        return Vec::new();
    };
    let lists: Vec<Vec<Vec<Box<str>>>> = all
        .iter()
        .map(|a| alternatives(a.first().map(|(_, v)| v)))
        .collect();
    let merged = conjunction(&lists);
    let value = ConstValue::List(
        merged
            .into_iter()
            .map(|terms| ConstValue::List(terms.into_iter().map(ConstValue::String).collect()))
            .collect(),
    );
    vec![(name, value)]
}

/// Most alternatives of a merged requirement; beyond that the first subgraph's stand.
pub(crate) const ALTERNATIVES_MAX: usize = 10_000;

/// `[["a", "b"], ["c"]]` as lists of strings.
pub(crate) fn alternatives(value: Option<&ConstValue>) -> Vec<Vec<Box<str>>> {
    let Some(ConstValue::List(outer)) = value else {
        return Vec::new();
    };
    outer
        .iter()
        .map(|inner| match inner {
            ConstValue::List(items) => items
                .iter()
                .filter_map(|i| i.as_str().map(Box::from))
                .collect(),
            ConstValue::String(s) => vec![s.clone()],
            _ => Vec::new(),
        })
        .collect()
}

/// The conjunction of requirements in disjunctive form.
pub(crate) fn conjunction(lists: &[Vec<Vec<Box<str>>>]) -> Vec<Vec<Box<str>>> {
    let mut merged: Vec<Vec<Box<str>>> = vec![Vec::new()];
    for list in lists.iter().filter(|l| !l.is_empty()) {
        if merged.len() * list.len() > ALTERNATIVES_MAX {
            break;
        }
        let mut next: Vec<Vec<Box<str>>> = Vec::new();
        for left in &merged {
            for right in list {
                let mut both = left.clone();
                both.extend(right.iter().filter(|r| !left.contains(r)).cloned());
                both.sort();
                next.push(both);
            }
        }
        next.sort_by_key(Vec::len);
        merged.clear();
        for terms in next {
            if !merged.iter().any(|m| m.iter().all(|t| terms.contains(t))) {
                merged.push(terms);
            }
        }
    }
    merged
}
