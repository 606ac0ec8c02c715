//! Other gateways' configurations, brought into ours: every key is accounted for.
//!
//! A table per format ([`apollo`], [`hive`], [`grafbase`], [`cosmo`]) says what becomes of which key; [`rules`] walks
//! the foreign tree by it ([`nodes`]). A key that no table knows is reported as unsupported, never dropped in silence. Where a
//! gateway's default differs from ours and matters, its default is written out.
//!
//! It fails closed: what protected something there and nothing does here ([`protections`]) comes first in the report and
//! stands as a comment in the result, and a switch whose value is not known counts as on.
//!
//! The result is a text that [`load`](ogive_config::load) reads; tests hold it to that.

mod apollo;
mod attributes;
mod convert;
mod cors;
mod cosmo;
mod costs;
mod environment;
mod grafbase;
mod grafbase_tokens;
mod headers;
mod hive;
mod hive_documents;
mod hive_urls;
mod masking;
mod nodes;
mod protections;
mod rates;
mod redis;
mod report;
mod rules;
mod section;
mod settings;
mod signatures;
mod subscriptions;
mod telemetry;
mod tokens;
mod versions;
mod why;
mod write;

pub use report::wrapped;

use ogive_base::{Diagnostic, SourceId, Span};
use ogive_config::{Config, Expansion, codes, decode::Errors, load_whole, yaml};
use ogive_yaml::Node;

/// Whose configuration it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// Apollo Router, `router.yaml`.
    Apollo,
    /// Hive Router, `router.config.yaml`.
    Hive,
    /// Grafbase Gateway, `grafbase.toml`.
    Grafbase,
    /// Cosmo Router, `config.yaml`.
    Cosmo,
}

/// What became of a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It has this name here, too.
    Kept,
    /// It has another name, or is written in another way.
    Renamed,
    /// It was not in the file: the other gateway's default, which differs from ours.
    Added,
    /// It is the behaviour here anyway, or has no purpose here.
    NotNeeded,
    /// There is nothing like it here.
    Unsupported,
}

/// One line of the report.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReportRow {
    /// Path in the foreign configuration; empty for [`Verdict::Added`].
    pub from: String,
    /// Path in ours, if it has one.
    pub to: Option<String>,
    /// What became of it.
    pub verdict: Verdict,
    /// Whether it protected something, or may have, and nothing here does it instead.
    pub protection: bool,
    /// Why, or how it is meant; may be empty.
    pub note: String,
}

/// A configuration that was brought over.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Migration {
    /// Whose it was.
    pub format: Format,
    /// The text of `ogive.yaml`.
    pub yaml: String,
    /// A row per key: protections that are lost, then what else is unsupported, then all others in the order of the file,
    /// then what was added.
    pub report: Vec<ReportRow>,
}

/// What can be read of a configuration that was brought over.
#[derive(Clone, Debug)]
pub struct MigratedConfig {
    /// The configuration, without what cannot be read.
    pub config: Config,
    /// What keeps it from being loaded: nothing, unless the migration is wrong about a value, or the file was.
    pub errors: Vec<Diagnostic>,
    /// Values that come from where none was found. What follows from them is no error.
    pub missing: Vec<Diagnostic>,
}

/// A protection that could not be brought over.
#[derive(Clone, Debug)]
struct Lost {
    path: String,
    /// As it was written; `None` for what is not one key.
    value: Option<Node>,
    why: String,
}

impl Format {
    /// All of them.
    pub const ALL: [Format; 4] = [
        Format::Apollo,
        Format::Hive,
        Format::Grafbase,
        Format::Cosmo,
    ];
    /// The word on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Format::Apollo => "apollo",
            Format::Hive => "hive",
            Format::Grafbase => "grafbase",
            Format::Cosmo => "cosmo",
        }
    }
    /// The format of that word.
    pub fn parse(word: &str) -> Option<Format> {
        Format::ALL.into_iter().find(|f| f.word() == word)
    }
    /// What to call it in sentences.
    pub fn product(self) -> &'static str {
        match self {
            Format::Apollo => "Apollo Router",
            Format::Hive => "Hive Router",
            Format::Grafbase => "Grafbase Gateway",
            Format::Cosmo => "Cosmo Router",
        }
    }
    /// Guesses by the name of the file: the four default names are all different.
    pub fn guess(file_name: &str) -> Option<Format> {
        match file_name {
            "router.yaml" | "router.yml" => Some(Format::Apollo),
            name if name.starts_with("router.config.") => Some(Format::Hive),
            name if name.ends_with(".toml") => Some(Format::Grafbase),
            "config.yaml" | "config.yml" => Some(Format::Cosmo),
            _ => None,
        }
    }
}

/// Brings a configuration over. Diagnostics point into `source_id`, whose text must be `text`; they are about texts that
/// cannot be read at all.
pub fn migrate(
    source_id: SourceId,
    text: &str,
    format: Format,
) -> Result<Migration, Vec<Diagnostic>> {
    let mut errors = Errors::new(source_id);
    let root = match format {
        Format::Grafbase => match convert::from_toml(text) {
            Ok(root) => root,
            Err((span, message)) => {
                let message = format!("this is not valid TOML: {message}");
                errors.push(codes::SYNTAX, span, message, None);
                return errors.finish(()).map(|()| Migration::empty(format));
            }
        },
        _ => match yaml::parse_with_aliases(text, &mut errors) {
            Some(root) => root,
            None => return errors.finish(()).map(|()| Migration::empty(format)),
        },
    };
    if errors.entries(&root).is_none() {
        return errors.finish(()).map(|()| Migration::empty(format));
    }
    errors.finish(())?;
    Ok(walked(format, &root))
}

fn walked(format: Format, root: &Node) -> Migration {
    let (table, finish): (&[rules::Rule], fn(&mut rules::Walk<'_>)) = match format {
        Format::Apollo => (apollo::RULES, apollo::finish),
        Format::Hive => (hive::RULES, hive::finish),
        Format::Grafbase => (grafbase::RULES, grafbase::finish),
        Format::Cosmo => (cosmo::RULES, cosmo::finish),
    };
    let mut root = root.clone();
    let moved = match format {
        Format::Apollo => versions::apply(&mut root, apollo::PLACES),
        _ => versions::apply(&mut root, &[]),
    };
    let mut walk = rules::Walk::new(format, &root);
    walk.run(table);
    walk.rest();
    finish(&mut walk);
    let (tree, mut report, mut lost) = walk.done();
    moved.name(&mut report, &mut lost);
    sort(&mut report);
    let yaml = format!(
        "# From a configuration of {}.\n{}{}",
        format.product(),
        report::comments(format, &lost),
        write::yaml(&tree)
    );
    Migration {
        format,
        yaml,
        report,
    }
}

/// What needs work comes first.
fn sort(report: &mut [ReportRow]) {
    report.sort_by_key(|row| (!row.protection, row.verdict != Verdict::Unsupported));
}

impl Migration {
    /// The result as far as it can be read. Diagnostics point into `source_id`, whose text must be `yaml`.
    pub fn loaded(&self, source_id: SourceId, from: Expansion<'_>) -> MigratedConfig {
        let (config, found) = load_whole(source_id, &self.yaml, from, &[]);
        let place = |error: &Diagnostic| error.labels.first().map(|label| label.span);
        let (missing, found): (Vec<_>, Vec<_>) = found
            .into_iter()
            .partition(|error| error.code == codes::EXPANSION);
        let places: Vec<_> = missing.iter().filter_map(place).collect();
        // An error about a section that contains a missing value may follow from that value.
        let holds =
            |outer: Span, inner: &Span| outer.start <= inner.start && inner.end <= outer.end;
        let is_read = |error: &Diagnostic| {
            place(error).is_none_or(|at| !places.iter().any(|place| holds(at, place)))
        };
        MigratedConfig {
            config,
            errors: found.into_iter().filter(is_read).collect(),
            missing,
        }
    }
    fn empty(format: Format) -> Self {
        Migration {
            format,
            yaml: String::new(),
            report: Vec::new(),
        }
    }
}

#[cfg(test)]
mod closed_tests;
#[cfg(test)]
mod kept_tests;
#[cfg(test)]
mod named_tests;
#[cfg(test)]
mod replaced_tests;
#[cfg(test)]
mod switch_tests;
#[cfg(test)]
mod tests;
