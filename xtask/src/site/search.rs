//! The index of the search: a script, so that it can be loaded from a file without a server.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::page::Page;

/// Every part of every page: address, title of the page, title of the part, its words.
pub(crate) fn index(pages: &BTreeMap<String, Page>) -> String {
    let mut out = "const parts = [\n".to_owned();
    for page in pages.values() {
        for part in page.parts() {
            let hash = if part.anchor.is_empty() {
                String::new()
            } else {
                format!("#{}", part.anchor)
            };
            let row: Value = json!([
                format!("{}{hash}", page.output),
                page.title,
                part.title,
                words(&part.text)
            ]);
            out.push_str(&format!("{row},\n"));
        }
    }
    out.push_str("];\n");
    out
}

/// Different words, sorted: lower case, at least two letters, with the dots and underscores of names.
fn words(text: &str) -> String {
    let lower = text.to_lowercase();
    let found = lower.split(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '.' | '@' | '-'));
    let found = found
        .map(|word| word.trim_matches(['.', '-']))
        .filter(|word| word.len() > 1);
    found
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_keep_the_names_of_keys() {
        assert_eq!(
            words("The key `limits.max_depth`, a limit. The KEY"),
            "key limit limits.max_depth the"
        );
    }
}
