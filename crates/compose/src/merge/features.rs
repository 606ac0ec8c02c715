//! Which directives the supergraph has, under which names, and which specifications it links for them.

use ogive_base::Span;
use ogive_federation::vocabulary::Version;

use super::{
    Merger,
    directives::{CustomFeature, mergeable},
};
use crate::{
    codes::{self, hint},
    report::{Place, quoted},
    spec::{ELEMENTS, Word},
};

/// A directive of a custom specification, as one subgraph links it.
struct DirectiveLink {
    identity: Box<str>,
    version: Version,
    /// Its name in the specification.
    element: Box<str>,
    /// Its name in the subgraph, and in the supergraph.
    name: Box<str>,
    /// Where the subgraph composes it.
    here: (Place, String),
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
                let known = names.iter().position(|(n, _)| **n == *name);
                let own_name = name == element.name || !name.contains("__");
                // Only names in use count where they differ.
                if known.is_none() && (own_name || sub.applies(symbol)) {
                    names.push((name.into(), s as u32));
                }
            }
            if names.len() > 1 {
                names.retain(|(n, _)| {
                    self.subs.iter().any(|sub| {
                        let symbol = sub.words[i];
                        symbol.is_some_and(|w| sub.schema.name(w) == &**n && sub.applies(w))
                    })
                });
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
        self.clashing_names();
        self.other_names();
        self.other_majors();
    }

    fn custom_features(&mut self) {
        for s in 0..self.subs.len() {
            for (composed, span) in self.subs[s].composed.clone() {
                if let Some(linked) = self.linked_directive(s, &composed, span) {
                    self.compose_directive(s, &composed, linked);
                }
            }
        }
    }

    /// What a subgraph says of a directive that it composes; `None` if it cannot be composed, or is anyway.
    fn linked_directive(&mut self, s: usize, composed: &str, span: Span) -> Option<DirectiveLink> {
        let sub = &self.subs[s];
        let name = composed.trim_start_matches('@');
        let here = (sub.place(span), String::new());
        if let Some(problem) = not_composable(sub, composed) {
            let shown = if composed.is_empty() {
                "@composeDirective"
            } else {
                composed
            };
            self.report.error_help(
                codes::DIRECTIVE_COMPOSITION_ERROR,
                shown,
                format!(
                    "`{shown}` of subgraph `{}` cannot be composed: {problem}",
                    sub.name
                ),
                "define the directive, and link a specification of yours that imports it".into(),
                &[here],
            );
            return None;
        }
        let link = sub.links.owner_of_directive(name)?;
        if link.spec.is_some() {
            self.report.hint(
                hint::DIRECTIVE_COMPOSITION_INFO,
                composed,
                format!("`{composed}` is composed anyway; `@composeDirective` is not needed"),
                &[here],
            );
            return None;
        }
        let imported = link
            .imports
            .iter()
            .find(|i| i.directive && &*i.name == name);
        let element = imported.map(|import| import.element.clone());
        Some(DirectiveLink {
            identity: link.identity.clone(),
            version: link.version.unwrap_or_default_version(),
            element: element.unwrap_or_else(|| {
                let unprefixed = name.strip_prefix(&format!("{}__", link.prefix));
                unprefixed.unwrap_or(name).into()
            }),
            name: name.into(),
            here,
        })
    }

    /// Adds a directive to the custom specification it belongs to, which all subgraphs have to agree on.
    fn compose_directive(&mut self, s: usize, composed: &str, linked: DirectiveLink) {
        let DirectiveLink {
            identity,
            version,
            element,
            name,
            here,
        } = linked;
        let custom = &mut self.out.features.custom;
        let Some(feature) = custom.iter_mut().find(|f| f.identity == identity) else {
            custom.push(CustomFeature {
                identity,
                version,
                directives: vec![(element, name)],
                newest: s as u32,
                subgraphs: vec![s as u32],
            });
            return;
        };
        if feature.version.major != version.major {
            let message = format!(
                "`{identity}` is linked as {} and as {version}, which are incompatible",
                feature.version
            );
            let code = codes::DIRECTIVE_COMPOSITION_ERROR;
            return self.report.error(code, composed, message, &[here]);
        }
        if !feature.subgraphs.contains(&(s as u32)) {
            feature.subgraphs.push(s as u32);
        }
        if version >= feature.version {
            feature.version = version;
            feature.newest = s as u32;
        }
        match feature.directives.iter().find(|(e, _)| *e == element) {
            Some((_, known)) if *known != name => {
                let message = format!("`@{element}` is composed as `@{known}` and as `@{name}`");
                let code = codes::DIRECTIVE_COMPOSITION_ERROR;
                self.report.error(code, composed, message, &[here]);
            }
            Some(_) => {}
            None => feature.directives.push((element, name)),
        }
    }

    /// A composed directive must not have the name of another one in the supergraph.
    fn clashing_names(&mut self) {
        let mut known: Vec<(Box<str>, usize)> = Vec::new();
        for at in 0..self.out.features.custom.len() {
            let feature = &self.out.features.custom[at];
            for (_, name) in feature.directives.clone() {
                let other = known.iter().find(|(n, o)| *n == name && *o != at);
                let subgraphs = &self.out.features.custom[at].subgraphs;
                let mut problem = other.map(|(_, o)| {
                    let other = &self.out.features.custom[*o].identity;
                    format!("it is composed from `{other}` too")
                });
                for word in [Word::Tag, Word::Inaccessible] {
                    let with: Vec<&str> = self
                        .subs
                        .iter()
                        .filter(|s| {
                            s.words[word as usize].is_some_and(|w| s.schema.name(w) == &*name)
                        })
                        .map(|s| &*s.name)
                        .collect();
                    if !with.is_empty() {
                        let in_subs = quoted(with);
                        problem = Some(format!("it is a directive of federation in {in_subs}"));
                    }
                }
                if let Some(problem) = problem {
                    let at = self.composing_places(subgraphs, &name);
                    self.report.error_help(
                        codes::DIRECTIVE_COMPOSITION_ERROR,
                        &format!("@{name}"),
                        format!("`@{name}` cannot be composed: {problem}"),
                        "import one of them under another name with `as`".into(),
                        &at,
                    );
                }
                known.push((name, at));
            }
        }
    }

    /// Where subgraphs say that they compose a directive.
    fn composing_places(&self, subs: &[u32], name: &str) -> Vec<(Place, String)> {
        let mut out = Vec::new();
        for s in subs {
            let sub = &self.subs[*s as usize];
            let span = sub
                .composed
                .iter()
                .find(|(c, _)| c.strip_prefix('@') == Some(name))
                .map(|(_, span)| *span);
            out.extend(span.map(|span| (sub.place(span), format!("in `{}`", sub.name))));
        }
        out
    }

    /// Subgraphs that do not compose a directive and call it otherwise.
    fn other_names(&mut self) {
        for feature in self.out.features.custom.clone() {
            for (element, name) in &feature.directives {
                let mut at: Vec<(Place, String)> = Vec::new();
                for (s, sub) in self.subs.iter().enumerate() {
                    if feature.subgraphs.contains(&(s as u32)) {
                        continue;
                    }
                    for link in sub
                        .links
                        .all
                        .iter()
                        .filter(|l| l.identity == feature.identity)
                    {
                        let other = link
                            .imports
                            .iter()
                            .find(|i| i.directive && i.element == *element && i.name != *name);
                        if let Some(import) = other {
                            at.push((
                                sub.place(link.span),
                                format!("`@{}` in `{}`", import.name, sub.name),
                            ));
                        }
                    }
                }
                if !at.is_empty() {
                    self.report.hint(
                        hint::DIRECTIVE_COMPOSITION_WARN,
                        &format!("@{name}"),
                        format!("`@{name}` goes by another name where it is not composed; it needs one name everywhere once it is"),
                        &at,
                    );
                }
            }
        }
    }

    /// Specifications that are linked in incompatible versions, and not composed by all who link them.
    fn other_majors(&mut self) {
        type Links = Vec<(u32, Span)>;
        let mut found: Vec<(Box<str>, Version, Links, bool)> = Vec::new();
        for (s, sub) in self.subs.iter().enumerate() {
            for link in sub.links.all.iter().filter(|l| l.spec.is_none()) {
                let version = link.version.unwrap_or_default_version();
                match found.iter_mut().find(|f| f.0 == link.identity) {
                    Some(known) => {
                        known.2.push((s as u32, link.span));
                        known.3 |= known.1.major != version.major;
                    }
                    None => found.push((
                        link.identity.clone(),
                        version,
                        vec![(s as u32, link.span)],
                        false,
                    )),
                }
            }
        }
        for (identity, _, links, _) in found.into_iter().filter(|f| f.3) {
            let at: Vec<(Place, String)> = links
                .iter()
                .map(|(s, span)| {
                    let sub = &self.subs[*s as usize];
                    (sub.place(*span), format!("in `{}`", sub.name))
                })
                .collect();
            self.report.hint(
                hint::DIRECTIVE_COMPOSITION_INFO,
                &identity,
                format!("`{identity}` is linked in incompatible versions, and not all who link it compose it"),
                &at,
            );
        }
    }
}

/// Why a directive cannot be named by `@composeDirective`.
fn not_composable(sub: &crate::subgraph::Subgraph, composed: &str) -> Option<String> {
    if composed.is_empty() {
        return Some("it names no directive".into());
    }
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

/// A version, or v0.0 if there is none.
trait OrZero {
    fn unwrap_or_default_version(self) -> Version;
}
impl OrZero for Option<Version> {
    fn unwrap_or_default_version(self) -> Version {
        self.unwrap_or(Version::new(0, 0))
    }
}
