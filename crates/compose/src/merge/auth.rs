//! Authorisation of interfaces: what their implementations ask for, all of it; and of fields that require others.

use ogive_schema::{ConstValue, TypeKind};

use super::{
    Applied, MFieldId, MTypeId, Merged, Merger,
    arguments::{alternatives, conjunction},
};
use crate::{
    codes,
    fields::Item,
    report::{Place, Report},
    spec::{ELEMENTS, Word},
    subgraph::Subgraph,
};

/// What an element asks for.
#[derive(Clone, Default)]
struct Needs {
    authenticated: bool,
    scopes: Vec<Vec<Box<str>>>,
    policies: Vec<Vec<Box<str>>>,
}

impl Needs {
    fn of(list: &[Applied]) -> Needs {
        let mut out = Needs::default();
        for applied in list {
            let value = applied.args.first().map(|(_, v)| v);
            match applied.word {
                Some(Word::Authenticated) => out.authenticated = true,
                Some(Word::RequiresScopes) => out.scopes = alternatives(value),
                Some(Word::Policy) => out.policies = alternatives(value),
                _ => {}
            }
        }
        out
    }
    fn is_empty(&self) -> bool {
        !self.authenticated && self.scopes.is_empty() && self.policies.is_empty()
    }
    fn and(&self, other: &Needs) -> Needs {
        Needs {
            authenticated: self.authenticated || other.authenticated,
            scopes: both(&self.scopes, &other.scopes),
            policies: both(&self.policies, &other.policies),
        }
    }
    /// Whether who satisfies `self` satisfies `other`.
    fn covers(&self, other: &Needs) -> bool {
        let implies = |ours: &[Vec<Box<str>>], theirs: &[Vec<Box<str>>]| {
            theirs.is_empty()
                || (!ours.is_empty()
                    && ours
                        .iter()
                        .all(|o| theirs.iter().any(|t| t.iter().all(|x| o.contains(x)))))
        };
        (self.authenticated || !other.authenticated)
            && implies(&self.scopes, &other.scopes)
            && implies(&self.policies, &other.policies)
    }
}

fn both(a: &[Vec<Box<str>>], b: &[Vec<Box<str>>]) -> Vec<Vec<Box<str>>> {
    match (a.is_empty(), b.is_empty()) {
        (true, _) => b.to_vec(),
        (_, true) => a.to_vec(),
        _ => conjunction(&[a.to_vec(), b.to_vec()]),
    }
}

const WORDS: [Word; 3] = [Word::Authenticated, Word::RequiresScopes, Word::Policy];

impl Merger<'_> {
    /// Interfaces ask for what all their implementations ask for, and for what is asked of themselves: an `@interfaceObject` may.
    pub(crate) fn interface_authorisation(&mut self) {
        if !WORDS.iter().any(|w| self.out.features.used[*w as usize]) {
            return;
        }
        for id in self.out.types.ids() {
            if self.out.types[id].kind != TypeKind::Interface {
                continue;
            }
            let objects: Vec<MTypeId> = self.out.types[id].possible.iter().map(MTypeId).collect();
            let lists: Vec<Vec<Applied>> = objects
                .iter()
                .map(|o| self.out.types[*o].directives.clone())
                .collect();
            let own = std::mem::take(&mut self.out.types[id].directives);
            self.out.types[id].directives = self.with_needs_of(own, lists);
            for field in self.out.types[id].fields.clone() {
                let name = self.out.fields[field].name;
                let lists: Vec<Vec<Applied>> = objects
                    .iter()
                    .filter_map(|o| self.out.field_by_name.get(&(*o, name)))
                    .map(|f| self.out.fields[*f].directives.clone())
                    .collect();
                let own = std::mem::take(&mut self.out.fields[field].directives);
                self.out.fields[field].directives = self.with_needs_of(own, lists);
            }
        }
    }

    /// The directives of an element with those of its needs and of others together: each once.
    fn with_needs_of(&self, mut own: Vec<Applied>, mut lists: Vec<Vec<Applied>>) -> Vec<Applied> {
        let is_need = |applied: &Applied| applied.word.is_some_and(|word| WORDS.contains(&word));
        lists.push(own.clone());
        own.retain(|applied| !is_need(applied));
        own.extend(self.propagated(&lists));
        own
    }

    fn propagated(&self, lists: &[Vec<Applied>]) -> Vec<Applied> {
        let needs = lists
            .iter()
            .map(|l| Needs::of(l))
            .fold(Needs::default(), |a, b| a.and(&b));
        let mut out = Vec::new();
        let mut add = |word: Word, arg: Option<(&str, &[Vec<Box<str>>])>| {
            let args = arg.map_or_else(Vec::new, |(name, dnf)| {
                let value = dnf
                    .iter()
                    .map(|terms| {
                        ConstValue::List(terms.iter().cloned().map(ConstValue::String).collect())
                    })
                    .collect();
                vec![(Box::from(name), ConstValue::List(value))]
            });
            let name = self.out.features.names[word as usize]
                .clone()
                .unwrap_or_else(|| ELEMENTS[word as usize].name.into());
            out.push(Applied {
                name,
                args,
                word: Some(word),
                graphs: Vec::new(),
            });
        };
        if needs.authenticated {
            add(Word::Authenticated, None);
        }
        if !needs.scopes.is_empty() {
            add(Word::RequiresScopes, Some(("scopes", &needs.scopes)));
        }
        if !needs.policies.is_empty() {
            add(Word::Policy, Some(("policies", &needs.policies)));
        }
        out
    }
}

/// A field that requires others asks for what they ask for.
pub(crate) fn transitive(merged: &Merged, subs: &[Subgraph], report: &mut Report) {
    if !WORDS.iter().any(|w| merged.features.used[*w as usize]) {
        return;
    }
    for (field, row) in merged.fields.iter() {
        for (sub, local) in &row.sources {
            let s = &subs[*sub as usize];
            let info = &s.fields[*local];
            let mut sets: Vec<(&[Item], &str, ogive_base::Span)> = Vec::new();
            if let Some(set) = &info.requires {
                sets.push((&set.items, "@requires", set.span));
            }
            for (items, directive, span) in sets {
                let own = Needs::of(&row.directives)
                    .and(&Needs::of(&merged.types[row.parent].directives));
                if let Some(other) = uncovered(merged, *sub, items, &own) {
                    missing(merged, field, other, directive, s.place(span), report);
                    break;
                }
            }
        }
    }
}

/// The first field of a set that asks for more than `own`.
fn uncovered(merged: &Merged, sub: u32, items: &[Item], own: &Needs) -> Option<MFieldId> {
    items.iter().find_map(|item| match item {
        Item::Field { field: None, .. } => None,
        Item::Field {
            field: Some(f),
            sub: inner,
            ..
        } => {
            let id = merged.sub_fields[sub as usize][f.0 as usize];
            if id == super::NONE {
                return None;
            }
            let row = &merged.fields[MFieldId(id)];
            let needs =
                Needs::of(&row.directives).and(&Needs::of(&merged.types[row.ty.ty].directives));
            if !needs.is_empty() && !own.covers(&needs) {
                return Some(MFieldId(id));
            }
            uncovered(merged, sub, inner, own)
        }
        Item::On { sub: inner, .. } => uncovered(merged, sub, inner, own),
    })
}

fn missing(
    merged: &Merged,
    field: MFieldId,
    other: MFieldId,
    directive: &str,
    at: Place,
    report: &mut Report,
) {
    let (about, wanted) = (merged.coordinate(field), merged.coordinate(other));
    report.error_help(
        codes::MISSING_TRANSITIVE_AUTH_REQUIREMENTS,
        &about,
        format!("`{about}` reads `{wanted}` through `{directive}` and does not ask for the same authorisation"),
        format!("repeat the authorisation directives of `{wanted}` on `{about}`"),
        &[(at, String::new())],
    );
}
