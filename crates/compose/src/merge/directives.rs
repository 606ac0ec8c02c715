//! Merging directive applications and definitions.

use std::fmt::{self, Write};

use ogive_federation::vocabulary::{Spec, Version};
use ogive_schema::{AppliedDirective, ConstValue, TypeKind, builtins};

use super::{
    InputRow, MTypeId, Merger,
    arguments::{Args, Usage, distinct, merged_args, most_frequent, same_args},
};
use crate::{
    codes::hint,
    event_vocabulary::is_event_directive,
    events,
    report::{Place, Stage},
    spec::{WORDS, Word},
};

/// A directive applied in the supergraph.
#[derive(Clone, PartialEq, Debug)]
pub struct Applied {
    /// Its name there.
    pub name: Box<str>,
    /// Arguments.
    pub args: Vec<(Box<str>, ConstValue)>,
    /// What it means, if known.
    pub word: Option<Word>,
    /// Subgraphs a carried (not merged) directive comes from.
    pub graphs: Vec<u32>,
}

impl Applied {
    /// An argument.
    pub fn arg(&self, name: &str) -> Option<&ConstValue> {
        self.args.iter().find(|(n, _)| **n == *name).map(|(_, v)| v)
    }
    fn write_args(&self, out: &mut impl Write) -> fmt::Result {
        for (i, (name, value)) in self.args.iter().enumerate() {
            write!(out, "{}{name}: {value}", if i == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
    /// Writes it as in SDL; carried ones as `@join__directive`.
    pub fn write(&self, graph_names: &[String], out: &mut impl Write) -> fmt::Result {
        if self.graphs.is_empty() {
            write!(out, "@{}", self.name)?;
            if !self.args.is_empty() {
                out.write_char('(')?;
                self.write_args(out)?;
                out.write_char(')')?;
            }
            return Ok(());
        }
        out.write_str("@join__directive(graphs: [")?;
        for (i, graph) in self.graphs.iter().enumerate() {
            write!(
                out,
                "{}{}",
                if i == 0 { "" } else { ", " },
                graph_names[*graph as usize]
            )?;
        }
        write!(out, "], name: \"{}\", args: {{", self.name)?;
        self.write_args(out)?;
        out.write_str("})")
    }
}

/// A merged directive definition.
#[derive(Clone, Debug)]
pub struct DirectiveRow {
    /// Its name.
    pub name: Box<str>,
    /// The definition, as text without name.
    pub sdl: String,
    /// Its arguments.
    pub args: Vec<InputRow>,
    /// Composed by `@composeDirective`; else executable.
    pub composed: bool,
}

/// What the supergraph links beside `link` and `join`.
#[derive(Clone, Default, Debug)]
pub struct Features {
    /// Name of each known directive in the supergraph.
    pub names: [Option<Box<str>>; WORDS],
    /// Which of them are applied.
    pub used: [bool; WORDS],
    /// Custom specifications that are composed.
    pub custom: Vec<CustomFeature>,
}

/// A custom specification with composed directives.
#[derive(Clone, Debug)]
pub struct CustomFeature {
    /// Its URL without version.
    pub identity: Box<str>,
    /// Newest linked version.
    pub version: Version,
    /// Composed directives: name in the specification, name in the supergraph.
    pub directives: Vec<(Box<str>, Box<str>)>,
    /// The subgraph with the newest version.
    pub newest: u32,
    /// Subgraphs that compose it.
    pub subgraphs: Vec<u32>,
}

/// What a directive is to the merge.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Known(Word),
    Deprecated,
    SpecifiedBy,
    OneOf,
    /// Binds a field to a message broker.
    Event,
    Custom,
}

/// All applications of one directive on one element.
struct DirectiveUsages {
    /// Its name in the supergraph.
    name: Box<str>,
    role: Role,
    uses: Vec<Usage>,
}

impl Merger<'_> {
    fn role(&self, sub: u32, applied: &AppliedDirective) -> Option<Role> {
        let s = &self.subs[sub as usize];
        if let Some(word) = s.word_of(applied) {
            return mergeable(word).then_some(Role::Known(word));
        }
        let defs = &s.schema.directive_defs;
        if applied.name == defs[builtins::DEPRECATED].name {
            return Some(Role::Deprecated);
        }
        if applied.name == defs[builtins::SPECIFIED_BY].name {
            return Some(Role::SpecifiedBy);
        }
        // What one subgraph takes only so may be sent to all of them only so.
        if applied.name == defs[builtins::ONE_OF].name && applied.args.is_empty() {
            return Some(Role::OneOf);
        }
        let name = s.schema.name(applied.name);
        if s.events && is_event_directive(name) {
            return Some(Role::Event);
        }
        let composed =
            self.out.features.custom.iter().any(|f| {
                f.subgraphs.contains(&sub) && f.directives.iter().any(|(_, n)| **n == *name)
            });
        composed.then_some(Role::Custom)
    }

    /// Merges the directives of one element.
    pub(crate) fn merge_directives<I: Copy>(
        &mut self,
        about: &str,
        sources: &[(u32, I)],
        get: impl for<'s> Fn(&'s Self, (u32, I)) -> (u32, &'s [AppliedDirective]),
    ) -> Vec<Applied> {
        if sources.iter().all(|s| get(self, *s).1.is_empty()) {
            return Vec::new();
        }
        let found = self.applications(sources, get);
        let mut out = Vec::new();
        for application in found {
            self.merge_one(about, application, &mut out);
        }
        out
    }

    /// All applications on one element, by directive.
    fn applications<I: Copy>(
        &self,
        sources: &[(u32, I)],
        get: impl for<'s> Fn(&'s Self, (u32, I)) -> (u32, &'s [AppliedDirective]),
    ) -> Vec<DirectiveUsages> {
        let mut found: Vec<DirectiveUsages> = Vec::new();
        for source in sources {
            let (sub, list) = get(self, *source);
            for applied in list {
                let Some(role) = self.role(sub, applied) else {
                    continue;
                };
                let s = &self.subs[sub as usize];
                let name: Box<str> = match role {
                    Role::Known(word) => self.out.features.names[word as usize]
                        .clone()
                        .unwrap_or_default(),
                    _ => s.schema.name(applied.name).into(),
                };
                let application = Usage {
                    sub,
                    args: self.args(sub, applied, role),
                    place: s.place(applied.span),
                };
                match found.iter_mut().find(|known| known.name == name) {
                    Some(known) => known.uses.push(application),
                    None => found.push(DirectiveUsages {
                        name,
                        role,
                        uses: vec![application],
                    }),
                }
            }
        }
        found
    }

    /// Merges all applications of one directive on one element.
    fn merge_one(&mut self, about: &str, found: DirectiveUsages, out: &mut Vec<Applied>) {
        let DirectiveUsages { name, role, uses } = found;
        let word = match role {
            Role::Known(word) => Some(word),
            _ => None,
        };
        if let Some(word) = word {
            self.out.features.used[word as usize] = true;
        }
        if word == Some(Word::CacheTag) {
            out.extend(carried("federation__cacheTag", word, uses));
            return;
        }
        if role == Role::Event {
            out.extend(carried(&name, None, uses));
            return;
        }
        let plain = |args: Args| Applied {
            name: name.clone(),
            args,
            word,
            graphs: Vec::new(),
        };
        let repeatable = match role {
            Role::Known(Word::Tag | Word::Context) => true,
            Role::Custom => self.is_repeatable(&name),
            _ => false,
        };
        if repeatable {
            out.extend(distinct(uses).into_iter().map(plain));
            return;
        }
        let first = &uses[0].args;
        if uses.iter().all(|one| same_args(&one.args, first)) {
            out.push(plain(first.clone()));
            return;
        }
        let at: Vec<(Place, String)> = uses.iter().map(|u| (u.place, String::new())).collect();
        if let Some(args) = word.and_then(|word| merged_args(word, &uses)) {
            self.report.hint(
                hint::MERGED_NON_REPEATABLE_DIRECTIVE_ARGUMENTS,
                about,
                format!("`@{name}` on `{about}` has different arguments in different subgraphs; the supergraph has all they ask for"),
                &at,
            );
            out.push(plain(args));
            return;
        }
        self.report.hint(
            hint::INCONSISTENT_NON_REPEATABLE_DIRECTIVE_ARGUMENTS,
            about,
            format!("`@{name}` on `{about}` has different arguments in different subgraphs; the most frequent ones are used"),
            &at,
        );
        out.push(plain(most_frequent(&uses)));
    }

    /// Arguments as they go to the supergraph.
    fn args(
        &self,
        sub: u32,
        applied: &AppliedDirective,
        role: Role,
    ) -> Vec<(Box<str>, ConstValue)> {
        let s = &self.subs[sub as usize];
        if role == Role::Event {
            return events::arguments(s, applied);
        }
        applied
            .args
            .iter()
            .map(|(name, value)| {
                let value = match (role, value) {
                    (Role::Known(Word::Context), ConstValue::String(name)) => {
                        ConstValue::String(format!("{}__{name}", s.name).into())
                    }
                    _ => value.clone(),
                };
                (s.schema.name(*name).into(), value)
            })
            .collect()
    }

    fn is_repeatable(&self, name: &str) -> bool {
        self.subs.iter().any(|s| {
            s.schema
                .directive_by_name(name)
                .is_some_and(|d| s.schema.directive_defs[d].repeatable)
        })
    }

    /// Descriptions and directives of types.
    pub(crate) fn type_directives(&mut self) {
        for id in self.out.types.ids() {
            if !self.out.types[id].sources.is_empty() {
                self.item(Stage::Directives, id, |m| m.directives_of_type(id));
            }
        }
    }

    pub(super) fn directives_of_type(&mut self, id: MTypeId) {
        let sources = self.out.types[id].sources.clone();
        let about = self.out.type_name(id).to_owned();
        let texts: Vec<(Place, Option<String>)> = sources
            .iter()
            .map(|(sub, ty)| {
                let s = &self.subs[*sub as usize];
                let row = &s.schema.types[*ty];
                (
                    s.place(row.span),
                    row.description.as_deref().map(str::to_owned),
                )
            })
            .collect();
        if texts.iter().any(|(_, d)| d.is_some()) {
            let refs: Vec<(Place, Option<&str>)> =
                texts.iter().map(|(p, d)| (*p, d.as_deref())).collect();
            let description = self.description(&about, &refs);
            self.out.types[id].description = description;
        }
        let directives = self.merge_directives(&about, &sources, |m, (sub, ty)| {
            (sub, &m.subs[sub as usize].schema.types[ty].directives)
        });
        self.out.types[id].directives = directives;
    }

    /// Description and directives of the schema itself.
    pub(crate) fn schema_definition(&mut self) {
        let sources: Vec<(u32, ())> = (0..self.subs.len() as u32).map(|s| (s, ())).collect();
        self.out.schema_directives = self.merge_directives("schema", &sources, |m, (sub, ())| {
            (sub, &m.subs[sub as usize].schema.directives)
        });
        let texts: Vec<(Place, Option<String>)> = self
            .subs
            .iter()
            .map(|s| {
                (
                    s.place(ogive_base::Span::new(0, 0)),
                    s.schema.description.as_deref().map(str::to_owned),
                )
            })
            .collect();
        if texts.iter().any(|(_, d)| d.is_some()) {
            let refs: Vec<(Place, Option<&str>)> =
                texts.iter().map(|(p, d)| (*p, d.as_deref())).collect();
            self.out.description = self.description("schema", &refs);
        }
        // An enum or union used by nothing still counts as defined; only kinds are looked at here.
        debug_assert!(
            self.out
                .types
                .iter()
                .all(|(_, t)| t.kind != TypeKind::Union || t.fields.is_empty())
        );
    }
}

/// Whether a directive is part of the supergraph.
pub(super) fn mergeable(word: Word) -> bool {
    matches!(
        word,
        Word::Tag
            | Word::Inaccessible
            | Word::Authenticated
            | Word::RequiresScopes
            | Word::Policy
            | Word::Cost
            | Word::ListSize
            | Word::Context
            | Word::CacheTag
    )
}

/// DirectiveUsages that go to the supergraph as they are, each with the subgraphs it comes from.
fn carried(name: &str, word: Option<Word>, uses: Vec<Usage>) -> Vec<Applied> {
    let mut out: Vec<Applied> = Vec::new();
    for Usage { sub, args, .. } in uses {
        match out.iter_mut().find(|a| same_args(&a.args, &args)) {
            Some(known) if !known.graphs.contains(&sub) => known.graphs.push(sub),
            Some(_) => {}
            None => out.push(Applied {
                name: name.into(),
                args,
                word,
                graphs: vec![sub],
            }),
        }
    }
    out
}

/// The specification a known directive belongs to in a supergraph, and its version there.
pub fn feature_of(word: Word) -> Option<(Spec, Version, Option<&'static str>)> {
    let v01 = Version::new(0, 1);
    Some(match word {
        Word::Tag => (Spec::Tag, Version::new(0, 3), None),
        Word::Inaccessible => (Spec::Inaccessible, Version::new(0, 2), Some("SECURITY")),
        Word::Authenticated => (Spec::Authenticated, v01, Some("SECURITY")),
        Word::RequiresScopes => (Spec::RequiresScopes, v01, Some("SECURITY")),
        Word::Policy => (Spec::Policy, v01, Some("SECURITY")),
        Word::Context | Word::FromContext => (Spec::Context, v01, Some("SECURITY")),
        Word::Cost | Word::ListSize => (Spec::Cost, v01, None),
        Word::CacheTag => (Spec::CacheTag, v01, Some("EXECUTION")),
        _ => return None,
    })
}
