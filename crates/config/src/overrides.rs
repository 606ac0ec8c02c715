//! Values from the environment that win over the file: `OGIVE__limits__max_depth=12`.
//!
//! Every key of the reference has such a name: its path with `__` between the parts, in lower or upper case, names of
//! subgraphs and other names of one's own as they are. The value is read as YAML, so a list is `[a, b]`. It may be a
//! secret, so no message repeats it.

use ogive_base::{Diagnostic, SourceId, Span};
use ogive_yaml::{Key, Node, Value};

use crate::{codes, decode::Errors, reference, suggest, yaml};

/// What such names begin with.
pub const PREFIX: &str = "OGIVE__";

/// Values from the environment have places beyond every text, which are never shown.
const BEYOND: u32 = 1 << 30;

/// A value of the environment: the variable's whole name, and its text.
pub type Override = (String, String);

/// Writes the values over those of the file. `root` is changed; what is wrong is reported without any value.
pub(crate) fn apply(root: &mut Node, overrides: &[Override], errors: &mut Errors) {
    let keys = Place::of_all();
    let mut paths: Vec<(Vec<String>, &str)> = Vec::new();
    for (index, (name, text)) in overrides.iter().enumerate() {
        let at = Span::new(BEYOND + index as u32, BEYOND + index as u32);
        let path = match keys.find(name) {
            Ok(path) => path,
            Err(help) => {
                let message = format!("unknown key in the environment variable `{name}`");
                errors.push(codes::UNKNOWN_KEY, at, message, Some(help));
                continue;
            }
        };
        if let Some((_, other)) = paths.iter().find(|(known, _)| *known == path) {
            let message =
                format!("the environment variables `{other}` and `{name}` set the same key");
            errors.push(codes::DUPLICATE_KEY, at, message, None);
            continue;
        }
        let mut read = Errors::new(SourceId(0));
        let Some(mut value) = yaml::parse(text, &mut read) else {
            errors.invalid(
                at,
                format!("the value of the environment variable `{name}` is not YAML"),
                "put it in double quotes, inside those of the shell",
            );
            continue;
        };
        prepare(&mut value, at);
        set(root, &path, value, at);
        paths.push((path, name));
    }
}

/// Gives every node the same place. A `$` is itself: nothing is expanded a second time.
fn prepare(node: &mut Node, at: Span) {
    let mut open = vec![node];
    while let Some(node) = open.pop() {
        node.span = at;
        match &mut node.value {
            Value::Scalar { text, .. } => *text = text.replace('$', "$$"),
            Value::List(items) => open.extend(items),
            Value::Map(entries) => {
                for (key, below) in entries {
                    key.span = at;
                    open.push(below);
                }
            }
        }
    }
}

fn set(root: &mut Node, path: &[String], value: Node, at: Span) {
    let mut place = root;
    for part in path {
        if !matches!(place.value, Value::Map(_)) {
            place.value = Value::Map(Vec::new());
        }
        let Value::Map(entries) = &mut place.value else {
            return;
        };
        let found = entries.iter().position(|(key, _)| key.text == *part);
        let found = found.unwrap_or_else(|| {
            let key = Key {
                span: at,
                text: part.clone(),
            };
            entries.push((key, Node::null(at)));
            entries.len() - 1
        });
        place = &mut entries[found].1;
    }
    *place = value;
}

/// Takes values of the environment out of messages about them, and places that no text has.
pub(crate) fn redact(errors: &mut [Diagnostic], overrides: &[Override]) {
    for error in errors {
        let beyond = error.labels.iter().find(|label| label.span.start >= BEYOND);
        let index = beyond.map(|label| (label.span.start - BEYOND) as usize);
        let Some((name, text)) = index.and_then(|index| overrides.get(index)) else {
            continue;
        };
        error.labels.retain(|label| label.span.start < BEYOND);
        if error.message.contains(name.as_str()) {
            continue;
        }
        error.message = match error.message.replace(&format!("`{text}`"), "its value") {
            // A part of it may still be there, as in what a regular expression is said to lack.
            message if is_free_of(&message, text) => {
                format!("the environment variable `{name}`: {message}")
            }
            _ => format!("the value of the environment variable `{name}` cannot be used"),
        };
        if error
            .help
            .as_ref()
            .is_some_and(|help| !is_free_of(help, text))
        {
            error.help = None;
        }
    }
}

/// Whether no word of a value is in a message. Short ones say nothing.
fn is_free_of(message: &str, value: &str) -> bool {
    let words = value.split(|c: char| !(c.is_alphanumeric() || c == '-' || c == '_'));
    let mut words = words.filter(|word| word.len() > 3);
    words.all(|word| !message.contains(word))
}

/// One place of the tree of keys.
#[derive(Default)]
struct Place {
    below: Vec<(String, Place)>,
    is_value: bool,
}

impl Place {
    fn of_all() -> Place {
        let mut root = Place::default();
        for row in reference::options() {
            let mut place = &mut root;
            for part in row.path.split('.') {
                let key = part.strip_suffix("[]").unwrap_or(part);
                let at = place.below.iter().position(|(known, _)| known == key);
                let at = at.unwrap_or_else(|| {
                    place.below.push((key.to_owned(), Place::default()));
                    place.below.len() - 1
                });
                place = &mut place.below[at].1;
                if key != part {
                    // A list of sections is one value.
                    break;
                }
            }
            place.is_value = true;
        }
        root
    }

    /// The path of a variable, or what to write instead.
    fn find(&self, name: &str) -> Result<Vec<String>, String> {
        let mut place = self;
        let mut path = Vec::new();
        let mut before = PREFIX.trim_end_matches('_').to_owned();
        for part in name.strip_prefix(PREFIX).unwrap_or(name).split("__") {
            let known = |(key, _): &&(String, Place)| key.eq_ignore_ascii_case(part);
            let any = || {
                place
                    .below
                    .iter()
                    .find(|(key, _)| key == "<name>" && !part.is_empty())
            };
            let Some((key, below)) = place.below.iter().find(known).or_else(any) else {
                let keys = place.below.iter().map(|(key, _)| key.as_str());
                return Err(
                    match suggest::nearest(&part.to_ascii_lowercase(), keys.clone()) {
                        Some(near) => format!("did you mean `{before}__{near}`?"),
                        None => format!("known keys here: {}", keys.collect::<Vec<_>>().join(", ")),
                    },
                );
            };
            path.push(match key.as_str() {
                "<name>" => part.to_owned(),
                key => key.to_owned(),
            });
            before = format!("{before}__{part}");
            place = below;
        }
        if place.is_value {
            Ok(path)
        } else {
            let keys: Vec<&str> = place.below.iter().map(|(key, _)| key.as_str()).collect();
            Err(format!("name a key below it: {}", keys.join(", ")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, Expansion, load_whole};

    fn whole(text: &str, overrides: &[(&str, &str)]) -> (Config, Vec<Diagnostic>) {
        let overrides: Vec<Override> = overrides
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let from = Expansion {
            env: &|_| None,
            file: &|_| Err("none".to_owned()),
        };
        load_whole(SourceId(0), text, from, &overrides)
    }

    fn good(text: &str, overrides: &[(&str, &str)]) -> Config {
        let (config, errors) = whole(text, overrides);
        assert_eq!(errors, []);
        config
    }

    #[test]
    fn the_environment_wins_over_the_file_and_the_file_over_the_default() {
        let text = "limits: { max_depth: 5, max_aliases: 6 }\nlisten: ${env.NOT_SET}\n";
        let config = good(
            text,
            &[
                ("OGIVE__limits__max_depth", "7"),
                ("OGIVE__LIMITS__MAX_HEIGHT", "8"),
                ("OGIVE__listen", "127.0.0.1:1"),
                ("OGIVE__supergraph__headers__X-Key", "a$b${env.c}"),
                ("OGIVE__override_subgraph_url__my_Graph", "http://a:1/"),
                ("OGIVE__cors__policies", "[{ origins: [\"https://a\"] }]"),
                ("OGIVE__http__workers", "3"),
                ("OGIVE__traffic_shaping__subgraphs__a__timeout", "4s"),
                ("OGIVE__limits__warn_only", "[max_depth]"),
                ("OGIVE__headers__all__request", "[{ remove: { named: a } }]"),
            ],
        );
        let limits = &config.limits;
        assert_eq!(
            (limits.max_depth, limits.max_aliases, limits.max_height),
            (Some(7), Some(6), Some(8))
        );
        assert_eq!(config.listen.0, "127.0.0.1:1");
        assert_eq!(config.supergraph.headers["X-Key"], "a$b${env.c}");
        assert_eq!(config.override_subgraph_url["my_Graph"].0, "http://a:1/");
        assert_eq!(config.cors.policies[0].origins, ["https://a"]);
        assert_eq!(config.traffic("a").timeout.as_secs(), 4);
        assert_eq!(config.request_header_rules("a").count(), 1);
    }

    #[test]
    fn unknown_names_are_errors_with_what_was_meant() {
        for (name, help) in [
            (
                "OGIVE__limits__max_dept",
                "did you mean `OGIVE__limits__max_depth`?",
            ),
            ("OGIVE__limit__max_depth", "did you mean `OGIVE__limits`?"),
            ("OGIVE__limits", "name a key below it: max_depth"),
            ("OGIVE__listen__x", "known keys here: "),
            ("OGIVE__", "known keys here: listen"),
        ] {
            let (_, errors) = whole("", &[(name, "secret-value")]);
            assert_eq!(errors.len(), 1, "{name}: {errors:?}");
            assert!(errors[0].message.contains(name), "{errors:?}");
            let found = errors[0].help.clone().unwrap_or_default();
            assert!(found.starts_with(help), "{name}: {found}");
        }
        let twice = [("OGIVE__listen", "a:1"), ("OGIVE__LISTEN", "a:2")];
        assert_eq!(whole("", &twice).1[0].code, codes::DUPLICATE_KEY);
    }

    /// Whatever is wrong with a value, the value is not told.
    #[test]
    fn values_are_never_told() {
        let names = reference::options().into_iter().map(|row| row.path);
        let names = names.filter(|path| !path.contains("[]"));
        for path in names {
            let name = format!(
                "{PREFIX}{}",
                path.replace("<name>", "mine").replace('.', "__")
            );
            for value in [
                "s3cret-value",
                "[s3cret-value, (]",
                "{ s3cret-value: s3cret-value }",
                "\"s3cret-value",
            ] {
                let (_, errors) = whole("", &[(&name, value)]);
                for error in errors {
                    let told = format!("{error:?}");
                    assert!(!told.contains("s3cret"), "{name}: {told}");
                    assert!(told.contains(&name), "{name}: {told}");
                }
            }
        }
    }
}
