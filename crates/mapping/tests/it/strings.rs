//! Strings of documents: their values are those of the parser of documents, and their offsets lead back.

use ogive_base::{SourceId, Span};
use ogive_mapping::locate_string;
use ogive_syntax::{Limits, parse};
use ogive_testbase::Rng;

/// The value of the one string of a document, as the parser of documents has it, and the token.
fn value_of(document: &str) -> Option<(String, Span)> {
    let parsed = parse(document, SourceId(0), &Limits::default());
    if !parsed.errors.is_empty() {
        return None;
    }
    let description = parsed.document.definitions.iter().find_map(|definition| {
        let ogive_syntax::ast::Definition::Schema(schema) = definition else {
            return None;
        };
        schema.description
    })?;
    let value = parsed.document.string_value(description).into_owned();
    Some((value, description.span))
}

#[test]
fn values_are_those_of_documents() {
    let pieces = [
        "a",
        " ",
        "\n",
        "\r\n",
        "\r",
        "\t",
        "  b",
        "\\n",
        "\\\"",
        "\\u0041",
        "\\u{1F600}",
        "\\uD83D\\uDE00",
        "é",
        "\\\"\"\"",
        "\"",
        "{",
        "\n\n    ",
        "#",
    ];
    let mut compared = 0;
    for seed in 0..3_000 {
        let mut rng = Rng::new(seed);
        let inner: String = (0..rng.below(12))
            .map(|_| pieces[rng.below(pieces.len())])
            .collect();
        let quotes = if rng.below(2) == 0 { "\"\"\"" } else { "\"" };
        let document = format!("{quotes}{inner}{quotes} schema {{ query: Q }}");
        let Some((value, span)) = value_of(&document) else {
            continue;
        };
        let token = &document[span.range()];
        let located = locate_string(SourceId(0), token, span.start);
        assert_eq!(located.text, value, "{document:?}");
        compared += 1;
        // Every letter that is not escaped leads back to itself.
        for (at, letter) in located
            .text
            .char_indices()
            .filter(|(_, c)| c.is_alphabetic())
        {
            let end = at + letter.len_utf8();
            let back = located.origin.span(Span::new(at as u32, end as u32));
            let shown = &document[back.range()];
            assert!(
                shown.starts_with(letter) || shown.starts_with('\\'),
                "{document:?}: {letter} is {shown:?}"
            );
        }
    }
    assert!(compared > 500, "{compared}");
}
