//! Names of types and modules that others see are the field's terms.
//!
//! Every word of such a name stands in `docs/terms.txt`: words of the GraphQL, federation and HTTP specifications, of
//! Apollo's vocabulary, of our glossary, and plain ones of the trade. A new word is looked up before it is added there.

use std::{collections::BTreeSet, fs, path::Path};

use anyhow::{Context, Result};
use syn::{
    Ident, Item, Visibility,
    visit::{self, Visit},
};

use super::{Crate, attributes, is_test};

/// Where the words are.
const TERMS: &str = "docs/terms.txt";

/// The words that names are made of.
pub(crate) struct Terms(BTreeSet<String>);

impl Terms {
    pub(crate) fn read(root: &Path) -> Result<Self> {
        let text =
            fs::read_to_string(root.join(TERMS)).with_context(|| format!("reading {TERMS}"))?;
        Ok(Self::parse(&text))
    }
    /// Words are apart by spaces; a line that begins with `#` is a heading.
    fn parse(text: &str) -> Self {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        Terms(
            lines
                .flat_map(str::split_whitespace)
                .map(str::to_owned)
                .collect(),
        )
    }
    fn has(&self, word: &str) -> bool {
        self.0.contains(word)
            || word
                .strip_suffix('s')
                .is_some_and(|one| self.0.contains(one))
            || word.bytes().all(|byte| byte.is_ascii_digit())
    }
}

/// Says which names of a crate have words that are not terms.
pub(crate) fn check(krate: &Crate, terms: &Terms) -> Vec<String> {
    let mut found = Found {
        shown: "",
        terms,
        wrong: Vec::new(),
    };
    for file in &krate.files {
        found.shown = &file.shown;
        file.items.iter().for_each(|item| found.visit_item(item));
    }
    found.wrong
}

struct Found<'a> {
    shown: &'a str,
    terms: &'a Terms,
    wrong: Vec<String>,
}

impl Found<'_> {
    fn look_at(&mut self, name: &Ident) {
        for word in words(&name.to_string()) {
            if !self.terms.has(&word) {
                self.wrong.push(format!(
                    "{}:{}: `{name}`: `{word}` is no listed term; use the field's, or add it to {TERMS} where it is one",
                    self.shown,
                    name.span().start().line
                ));
            }
        }
    }
}

/// The words of a name, in small letters.
fn words(name: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut before = ' ';
    let mut letters = name.chars().peekable();
    while let Some(letter) = letters.next() {
        // `HTTPServer` is two words, and so is `EntityKey`.
        let is_last_of_many =
            before.is_uppercase() && letters.peek().is_some_and(|next| next.is_lowercase());
        let begins = letter.is_uppercase() && (!before.is_uppercase() || is_last_of_many);
        if (letter == '_' || begins) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if letter != '_' {
            word.extend(letter.to_lowercase());
        }
        before = letter;
    }
    words.extend(Some(word).filter(|word| !word.is_empty()));
    words
}

fn is_seen(visibility: &Visibility) -> bool {
    !matches!(visibility, Visibility::Inherited)
}

impl<'ast> Visit<'ast> for Found<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        if is_test(attributes(item)) {
            return;
        }
        match item {
            // Whoever looks for something sees the list of files.
            Item::Mod(item) => self.look_at(&item.ident),
            Item::Struct(item) if is_seen(&item.vis) => self.look_at(&item.ident),
            Item::Enum(item) if is_seen(&item.vis) => self.look_at(&item.ident),
            Item::Trait(item) if is_seen(&item.vis) => self.look_at(&item.ident),
            Item::Type(item) if is_seen(&item.vis) => self.look_at(&item.ident),
            Item::Union(item) if is_seen(&item.vis) => self.look_at(&item.ident),
            _ => {}
        }
        visit::visit_item(self, item);
    }
}

#[cfg(test)]
mod tests {
    use super::{super::planted, *};

    #[test]
    fn names_are_cut_into_words() {
        assert_eq!(words("HTTPServerOptions"), ["http", "server", "options"]);
        assert_eq!(words("json_value"), ["json", "value"]);
        assert_eq!(words("Http2"), ["http2"]);
    }

    #[test]
    fn a_planted_name_that_is_not_listed_is_refused() {
        let terms = Terms::parse("# Federation\nentity key\n# HTTP\nrequest\n");
        let krate = planted(&[(
            "",
            "pub struct EntityKeys; pub(crate) enum PassengerRequest {} struct Private;",
        )]);
        assert_eq!(
            check(&krate, &terms),
            [
                "lib.rs:1: `PassengerRequest`: `passenger` is no listed term; use the field's, or add it to docs/terms.txt where it is one"
            ]
        );
    }
}
