//! The index of the search: a script, so that it can be loaded from a file without a server. `find.js` reads it.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use serde_json::{Value, json};

use super::{
    contents::Contents,
    page::{Page, Part},
};

/// Words of other products and of readers, and the words of these pages for them.
const SYNONYMS: &str = include_str!("synonyms.txt");

/// Words that say nothing about a part. `find.js` leaves them out of what was typed, too.
const STOP_WORDS: &[&str] = &[
    "an", "and", "are", "as", "at", "be", "by", "can", "do", "does", "for", "from", "has", "have",
    "how", "if", "in", "is", "it", "its", "my", "no", "not", "of", "on", "or", "so", "than",
    "that", "the", "their", "them", "then", "there", "they", "this", "to", "was", "what", "when",
    "where", "which", "who", "why", "will", "with",
];

/// Pages, their parts and synonyms:
///
/// - a page is its address, its title, and its section of the contents, `null` if no section has it;
/// - a part is the number of its page, its anchor, its title, its words, its excerpt, and whether it is a row of a table;
/// - a line of synonyms is two lists of words.
pub(crate) fn index(pages: &BTreeMap<String, Page>, contents: &Contents) -> Result<String> {
    let mut list = String::new();
    let mut parts = String::new();
    for (number, page) in pages.values().enumerate() {
        let row = json!([page.output, page.title, contents.section(&page.source)]);
        list.push_str(&format!("{row},\n"));
        for part in page.parts() {
            parts.push_str(&format!("{},\n", entry(number, &part)));
        }
    }
    let (stop, synonyms) = (json!(STOP_WORDS), json!(synonyms(SYNONYMS)?));
    Ok(format!(
        "const pages = [\n{list}];\nconst parts = [\n{parts}];\nconst stopWords = {stop};\nconst synonyms = {synonyms};\n"
    ))
}

fn entry(page: usize, part: &Part) -> Value {
    let excerpt = part
        .excerpt
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    let name = if part.is_row { part.title.as_str() } else { "" };
    let excerpt = excerpt.strip_prefix(name).unwrap_or(&excerpt).trim();
    let is_row = u8::from(part.is_row);
    json!([
        page,
        part.anchor,
        part.title,
        words(&part.text),
        excerpt,
        is_row
    ])
}

/// Different words, sorted, with how often they occur if they do so more than once: `limit key*3`. Lower case, unless
/// capitals divide the word; at least two letters, with the dots and underscores of names.
fn words(text: &str) -> String {
    let found = text.split(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '.' | '@' | '-'));
    let mut counts = BTreeMap::<String, usize>::new();
    for word in found.map(|word| word.trim_matches(['.', '-'])) {
        let lower = word.to_lowercase();
        if lower.len() < 2 || STOP_WORDS.contains(&lower.as_str()) {
            continue;
        }
        let word = if is_camel(word) {
            word.to_owned()
        } else {
            lower
        };
        *counts.entry(word).or_default() += 1;
    }
    let words = counts.into_iter().map(|(word, count)| match count {
        1 => word,
        count => format!("{word}*{count}"),
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Whether a capital follows a small letter: `ConfigMap`.
fn is_camel(word: &str) -> bool {
    let mut after_lower = false;
    word.chars().any(|c| {
        let divides = after_lower && c.is_uppercase();
        after_lower = c.is_lowercase();
        divides
    })
}

/// Lines `what is typed, or that: what the pages say, or this`.
fn synonyms(text: &str) -> Result<Vec<[Vec<&str>; 2]>> {
    let mut out = Vec::new();
    for line in text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        let Some((typed, said)) = line.split_once(':') else {
            bail!("synonyms.txt: no colon in `{line}`");
        };
        out.push([typed, said].map(|side| side.split(',').map(str::trim).collect()));
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_keep_the_names_of_keys() {
        assert_eq!(
            words("The key `limits.max_depth`, a limit. The KEY of a ConfigMap"),
            "ConfigMap key*2 limit limits.max_depth"
        );
    }

    #[test]
    fn synonyms_have_two_sides() {
        let found = synonyms("# words\n\na, b c: d\n").unwrap();
        assert_eq!(found, [[vec!["a", "b c"], vec!["d"]]]);
        assert!(synonyms("a b\n").is_err());
        assert!(synonyms(SYNONYMS).is_ok());
    }
}
