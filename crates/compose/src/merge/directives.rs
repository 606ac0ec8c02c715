//! Merging directive applications and definitions.

use std::fmt::{self, Write};

use ogive_base::Symbol;
use ogive_federation::vocabulary::{Spec, Version};
use ogive_schema::{AppliedDirective, ConstValue, DirectiveLocation, TypeKind, builtins};

use super::{Merger, inputs::same_value};
use crate::{
    codes::{self, hint},
    report::Place,
    spec::{ELEMENTS, WORDS, Word},
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

/// A merged directive definition, as text without name.
#[derive(Clone, PartialEq, Debug)]
pub struct DirectiveRow {
    /// Its name.
    pub name: Box<str>,
    /// The definition.
    pub sdl: String,
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
    Custom,
}

impl Merger<'_> {
    /// Which directives are merged, and under which names.
    pub(crate) fn link_features(&mut self) {
        for element in &ELEMENTS {
            let i = element.word as usize;
            let mut names: Vec<(Box<str>, u32)> = Vec::new();
            for (s, sub) in self.subs.iter().enumerate() {
                let Some(symbol) = sub.words[i] else { continue };
                let name = sub.schema.name(symbol);
                let imported = sub.links.all.iter().any(|l| {
                    l.imports
                        .iter()
                        .any(|im| im.directive && &*im.name == name && &*im.element == element.name)
                });
                let renamed_spec = !name.contains("__") && name != element.name;
                if (imported || renamed_spec) && !names.iter().any(|(n, _)| **n == *name) {
                    names.push((name.into(), s as u32));
                }
            }
            if names.len() > 1 && mergeable(element.word) {
                let about = format!("@{}", element.name);
                let at: Vec<(Place, String)> = names
                    .iter()
                    .filter_map(|(n, s)| {
                        let sub = &self.subs[*s as usize];
                        let link = sub.links.owner_of_directive(n)?;
                        Some((sub.place(link.span), format!("`@{n}` in `{}`", sub.name)))
                    })
                    .collect();
                self.report.error_help(
                    codes::LINK_IMPORT_NAME_MISMATCH,
                    &about,
                    format!("`{about}` goes by different names in different subgraphs"),
                    "import it under one name everywhere".into(),
                    &at,
                );
            }
            self.out.features.names[i] = Some(
                names
                    .into_iter()
                    .next()
                    .map_or_else(|| element.name.into(), |(n, _)| n),
            );
        }
        self.custom_features();
    }

    fn custom_features(&mut self) {
        for s in 0..self.subs.len() {
            for (composed, span) in self.subs[s].composed.clone() {
                let sub = &self.subs[s];
                let name = composed.trim_start_matches('@');
                if let Some(problem) = not_composable(sub, &composed) {
                    let at = [(sub.place(span), String::new())];
                    self.report.error_help(
                        codes::DIRECTIVE_COMPOSITION_ERROR,
                        &composed,
                        format!(
                            "`{composed}` of subgraph `{}` cannot be composed: {problem}",
                            sub.name
                        ),
                        "define the directive, and link a specification of yours that imports it"
                            .into(),
                        &at,
                    );
                    continue;
                }
                let Some(link) = sub.links.owner_of_directive(name) else {
                    continue;
                };
                if link.spec.is_some() {
                    let at = [(sub.place(span), String::new())];
                    self.report.hint(
                        hint::DIRECTIVE_COMPOSITION_INFO,
                        &composed,
                        format!(
                            "`{composed}` is composed anyway; `@composeDirective` is not needed"
                        ),
                        &at,
                    );
                    continue;
                }
                let element = link
                    .imports
                    .iter()
                    .find(|i| i.directive && &*i.name == name)
                    .map_or_else(
                        || {
                            name.strip_prefix(&format!("{}__", link.prefix))
                                .unwrap_or(name)
                                .into()
                        },
                        |i| i.element.clone(),
                    );
                let version = link.version.unwrap_or_default_version();
                let identity = link.identity.clone();
                let here = (sub.place(span), String::new());
                let found = self
                    .out
                    .features
                    .custom
                    .iter()
                    .position(|f| f.identity == identity);
                let Some(at) = found else {
                    self.out.features.custom.push(CustomFeature {
                        identity,
                        version,
                        directives: vec![(element, name.into())],
                        newest: s as u32,
                        subgraphs: vec![s as u32],
                    });
                    continue;
                };
                let feature = &mut self.out.features.custom[at];
                if feature.version.major != version.major {
                    let message = format!(
                        "`{identity}` is linked as {} and as {version}, which are incompatible",
                        feature.version
                    );
                    self.report.error(
                        codes::DIRECTIVE_COMPOSITION_ERROR,
                        &composed,
                        message,
                        &[here],
                    );
                    continue;
                }
                if !feature.subgraphs.contains(&(s as u32)) {
                    feature.subgraphs.push(s as u32);
                }
                if version > feature.version {
                    feature.version = version;
                    feature.newest = s as u32;
                }
                match feature.directives.iter().find(|(e, _)| *e == element) {
                    Some((_, known)) if **known != *name => {
                        let message =
                            format!("`@{element}` is composed as `@{known}` and as `@{name}`");
                        self.report.error(
                            codes::DIRECTIVE_COMPOSITION_ERROR,
                            &composed,
                            message,
                            &[here],
                        );
                    }
                    Some(_) => {}
                    None => feature.directives.push((element, name.into())),
                }
            }
        }
    }

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
        let name = s.schema.name(applied.name);
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
        // Name, role, and per application its subgraph, arguments and place.
        type Uses = Vec<(u32, Vec<(Box<str>, ConstValue)>, Place)>;
        let mut found: Vec<(Box<str>, Role, Uses)> = Vec::new();
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
                let args = self.args(sub, applied, role);
                let entry = (sub, args, s.place(applied.span));
                match found.iter_mut().find(|(n, _, _)| *n == name) {
                    Some((_, _, list)) => list.push(entry),
                    None => found.push((name, role, vec![entry])),
                }
            }
        }
        let mut out = Vec::new();
        for (name, role, uses) in found {
            if let Role::Known(word) = role {
                self.out.features.used[word as usize] = true;
            }
            let word = match role {
                Role::Known(word) => Some(word),
                _ => None,
            };
            let plain = |args: Vec<(Box<str>, ConstValue)>| Applied {
                name: name.clone(),
                args,
                word,
                graphs: Vec::new(),
            };
            let repeatable = match role {
                Role::Known(Word::Tag | Word::Context | Word::CacheTag) => true,
                Role::Custom => self.is_repeatable(&name),
                _ => false,
            };
            if word == Some(Word::CacheTag) {
                out.extend(carried("federation__cacheTag", Word::CacheTag, uses));
                continue;
            }
            if repeatable {
                let mut distinct: Vec<Vec<(Box<str>, ConstValue)>> = Vec::new();
                for (_, args, _) in uses {
                    if !distinct.iter().any(|d| same_args(d, &args)) {
                        distinct.push(args);
                    }
                }
                out.extend(distinct.into_iter().map(plain));
                continue;
            }
            let different = uses.iter().any(|(_, a, _)| !same_args(a, &uses[0].1));
            if !different {
                out.push(plain(uses[0].1.clone()));
                continue;
            }
            let at: Vec<(Place, String)> =
                uses.iter().map(|(_, _, p)| (*p, String::new())).collect();
            let merged = match word {
                Some(Word::Cost) => {
                    Some(max_args(&uses.iter().map(|u| &u.1[..]).collect::<Vec<_>>()))
                }
                Some(Word::ListSize) => Some(list_size(
                    &uses.iter().map(|u| &u.1[..]).collect::<Vec<_>>(),
                )),
                Some(Word::RequiresScopes | Word::Policy) => {
                    Some(all_of(&uses.iter().map(|u| &u.1[..]).collect::<Vec<_>>()))
                }
                _ => None,
            };
            if let Some(args) = merged {
                self.report.hint(
                    hint::MERGED_NON_REPEATABLE_DIRECTIVE_ARGUMENTS,
                    about,
                    format!("`@{name}` on `{about}` has different arguments in different subgraphs; the supergraph has all they ask for"),
                    &at,
                );
                out.push(plain(args));
                continue;
            }
            let mut counted: Vec<(&Args, usize)> = Vec::new();
            for (_, args, _) in &uses {
                match counted.iter_mut().find(|(a, _)| same_args(a, args)) {
                    Some((_, n)) => *n += 1,
                    None => counted.push((args, 1)),
                }
            }
            let most = counted.iter().map(|(_, n)| *n).max().unwrap_or(0);
            let chosen = counted
                .iter()
                .find(|(_, n)| *n == most)
                .map(|(a, _)| (*a).clone())
                .unwrap_or_default();
            self.report.hint(
                hint::INCONSISTENT_NON_REPEATABLE_DIRECTIVE_ARGUMENTS,
                about,
                format!("`@{name}` on `{about}` has different arguments in different subgraphs; the most frequent ones are used"),
                &at,
            );
            out.push(plain(chosen));
        }
        out
    }

    /// Arguments as they go to the supergraph.
    fn args(
        &self,
        sub: u32,
        applied: &AppliedDirective,
        role: Role,
    ) -> Vec<(Box<str>, ConstValue)> {
        let s = &self.subs[sub as usize];
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
            let sources = self.out.types[id].sources.clone();
            if sources.is_empty() {
                continue;
            }
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
    }

    /// Executable directives all subgraphs define, and composed ones.
    pub(crate) fn directive_definitions(&mut self) {
        let mut names: Vec<(Symbol, Vec<u32>)> = Vec::new();
        for (i, sub) in self.subs.iter().enumerate() {
            for id in &sub.schema.directive_list {
                let def = &sub.schema.directive_defs[*id];
                if def.built_in || sub.machinery_directives.contains(id.0) {
                    continue;
                }
                if !def.locations.iter().any(|l| *l < DirectiveLocation::Schema) {
                    continue;
                }
                let name = self.out.sub_names[i][def.name.0 as usize];
                match names.iter_mut().find(|(n, _)| *n == name) {
                    Some((_, list)) => list.push(i as u32),
                    None => names.push((name, vec![i as u32])),
                }
            }
        }
        for (name, with) in names {
            self.executable(name, &with);
        }
        for i in 0..self.out.features.custom.len() {
            let feature = self.out.features.custom[i].clone();
            for (_, name) in &feature.directives {
                self.composed_definition(feature.newest, &feature.subgraphs, name);
            }
        }
        self.out.directives.sort_by(|a, b| a.name.cmp(&b.name));
        self.out.directives.dedup_by(|a, b| a.name == b.name);
    }

    fn executable(&mut self, name: Symbol, with: &[u32]) {
        let text = self.out.name(name).to_owned();
        let about = format!("@{text}");
        let at: Vec<(Place, String)> = with
            .iter()
            .filter_map(|s| {
                let sub = &self.subs[*s as usize];
                let def = sub.schema.directive_by_name(&text)?;
                Some((
                    sub.place(sub.schema.directive_defs[def].span),
                    String::new(),
                ))
            })
            .collect();
        if with.len() < self.subs.len() {
            let without: Vec<u32> = (0..self.subs.len() as u32)
                .filter(|s| !with.contains(s))
                .collect();
            self.report.hint(
                hint::INCONSISTENT_EXECUTABLE_DIRECTIVE_PRESENCE,
                &about,
                format!(
                    "`{about}` is dropped from the supergraph: it is missing in {}",
                    self.sub_names(&without)
                ),
                &at,
            );
            return;
        }
        let defs: Vec<_> = with
            .iter()
            .filter_map(|s| {
                let schema = &self.subs[*s as usize].schema;
                schema.directive_by_name(&text).map(|d| (*s, d))
            })
            .collect();
        let rows: Vec<(Vec<DirectiveLocation>, bool)> = defs
            .iter()
            .map(|(s, d)| {
                let def = &self.subs[*s as usize].schema.directive_defs[*d];
                (
                    def.locations
                        .iter()
                        .copied()
                        .filter(|l| *l < DirectiveLocation::Schema)
                        .collect(),
                    def.repeatable,
                )
            })
            .collect();
        let repeatable = rows.iter().all(|r| r.1);
        if !repeatable && rows.iter().any(|r| r.1) {
            self.report.hint(
                hint::INCONSISTENT_EXECUTABLE_DIRECTIVE_REPEATABLE,
                &about,
                format!(
                    "`{about}` is repeatable in some subgraphs only; it is not in the supergraph"
                ),
                &at,
            );
        }
        let common: Vec<DirectiveLocation> = rows[0]
            .0
            .iter()
            .copied()
            .filter(|l| rows.iter().all(|r| r.0.contains(l)))
            .collect();
        if common.is_empty() {
            self.report.hint(
                hint::NO_EXECUTABLE_DIRECTIVE_INTERSECTION,
                &about,
                format!("`{about}` is dropped from the supergraph: it has no location common to all subgraphs"),
                &at,
            );
            return;
        }
        if rows.iter().any(|r| r.0.len() != common.len()) {
            self.report.hint(
                hint::INCONSISTENT_EXECUTABLE_DIRECTIVE_LOCATIONS,
                &about,
                format!("`{about}` has different locations in different subgraphs; the supergraph has the common ones"),
                &at,
            );
        }
        let first = self.subs[defs[0].0 as usize].schema.directive_defs[defs[0].1]
            .args
            .clone();
        let mut sources: Vec<(Symbol, Vec<(u32, ogive_schema::InputId)>)> = Vec::new();
        for arg in first {
            let sub0 = &self.subs[defs[0].0 as usize];
            let arg_name = sub0.schema.name(sub0.schema.inputs[arg].name).to_owned();
            let found: Vec<_> = defs
                .iter()
                .filter_map(|(s, d)| {
                    let schema = &self.subs[*s as usize].schema;
                    schema
                        .arg_by_name(&schema.directive_defs[*d].args, &arg_name)
                        .map(|a| (*s, a))
                })
                .collect();
            if found.len() == defs.len() {
                let symbol = self.out.names.intern(&arg_name);
                sources.push((symbol, found));
            }
        }
        let mut sdl = String::new();
        self.write_definition(defs[0].0, &sources, repeatable, &common, &mut sdl);
        self.out.directives.push(DirectiveRow {
            name: text.into(),
            sdl,
        });
    }

    fn composed_definition(&mut self, newest: u32, subs: &[u32], name: &str) {
        let sub = &self.subs[newest as usize];
        let Some(id) = sub.schema.directive_by_name(name) else {
            let about = format!("@{name}");
            if let Some((_, span)) = self.subs[newest as usize].composed.first() {
                let at = [(self.subs[newest as usize].place(*span), String::new())];
                self.report.error(
                    codes::DIRECTIVE_COMPOSITION_ERROR,
                    &about,
                    format!("`{about}` is composed, and the subgraph with its newest version does not define it"),
                    &at,
                );
            }
            return;
        };
        let _ = subs;
        let def = sub.schema.directive_defs[id].clone();
        let args: Vec<_> = def
            .args
            .iter()
            .map(|a| {
                (
                    self.out.sub_names[newest as usize][sub.schema.inputs[*a].name.0 as usize],
                    vec![(newest, *a)],
                )
            })
            .collect();
        let mut sdl = String::new();
        self.write_definition(newest, &args, def.repeatable, &def.locations, &mut sdl);
        self.out.directives.push(DirectiveRow {
            name: name.into(),
            sdl,
        });
    }

    fn write_definition(
        &mut self,
        _sub: u32,
        args: &[(Symbol, Vec<(u32, ogive_schema::InputId)>)],
        repeatable: bool,
        locations: &[DirectiveLocation],
        out: &mut String,
    ) {
        for (i, (name, found)) in args.iter().enumerate() {
            let (s, a) = found[0];
            let sub = &self.subs[s as usize];
            let row = &sub.schema.inputs[a];
            let ty = self.out.of(s, row.ty.id).map_or_else(
                || sub.schema.type_name(row.ty.id).to_owned(),
                |t| self.out.type_name(t).to_owned(),
            );
            let _ = write!(
                out,
                "{}{}: {}",
                if i == 0 { "(" } else { ", " },
                self.out.name(*name),
                row.ty.wrapping.display(&ty)
            );
            if let Some(default) = &row.default {
                let _ = write!(out, " = {default}");
            }
        }
        if !args.is_empty() {
            out.push(')');
        }
        if repeatable {
            out.push_str(" repeatable");
        }
        for (i, location) in locations.iter().enumerate() {
            let _ = write!(
                out,
                "{}{}",
                if i == 0 { " on " } else { " | " },
                location.as_str()
            );
        }
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

/// Why a directive cannot be named by `@composeDirective`.
fn not_composable(sub: &crate::subgraph::Subgraph, composed: &str) -> Option<String> {
    let Some(name) = composed.strip_prefix('@') else {
        return Some("its name must start with `@`".into());
    };
    if sub.schema.directive_by_name(name).is_none() {
        return Some("the subgraph does not define it".into());
    }
    let Some(link) = sub.links.owner_of_directive(name) else {
        return Some("it belongs to no linked specification".into());
    };
    let word = sub
        .words
        .iter()
        .position(|w| w.is_some_and(|w| sub.schema.name(w) == name));
    match (link.spec, word) {
        (Some(_), Some(word)) if mergeable(ELEMENTS[word].word) => None,
        (Some(_), _) => Some("it is a directive of federation itself".into()),
        (None, _) => None,
    }
}

/// Whether a directive is part of the supergraph.
fn mergeable(word: Word) -> bool {
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

type Args = Vec<(Box<str>, ConstValue)>;

fn carried(name: &str, word: Word, uses: Vec<(u32, Args, Place)>) -> Vec<Applied> {
    let mut out: Vec<Applied> = Vec::new();
    for (sub, args, _) in uses {
        match out.iter_mut().find(|a| same_args(&a.args, &args)) {
            Some(known) if !known.graphs.contains(&sub) => known.graphs.push(sub),
            Some(_) => {}
            None => out.push(Applied {
                name: name.into(),
                args,
                word: Some(word),
                graphs: vec![sub],
            }),
        }
    }
    out
}

fn same_args(a: &[(Box<str>, ConstValue)], b: &[(Box<str>, ConstValue)]) -> bool {
    a.len() == b.len()
        && a.iter()
            .all(|(n, v)| b.iter().any(|(m, w)| n == m && same_value(v, w)))
}

fn number(value: &ConstValue) -> i64 {
    match value {
        ConstValue::Int(text) => text.parse().unwrap_or(0),
        _ => 0,
    }
}

fn max_args(all: &[&[(Box<str>, ConstValue)]]) -> Args {
    all.iter()
        .max_by_key(|args| args.first().map(|(_, v)| number(v)))
        .map(|a| a.to_vec())
        .unwrap_or_default()
}

fn list_size(all: &[&[(Box<str>, ConstValue)]]) -> Args {
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
fn all_of(all: &[&[(Box<str>, ConstValue)]]) -> Args {
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

/// A version, or v0.0 if there is none.
trait OrZero {
    fn unwrap_or_default_version(self) -> Version;
}
impl OrZero for Option<Version> {
    fn unwrap_or_default_version(self) -> Version {
        self.unwrap_or(Version::new(0, 0))
    }
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
