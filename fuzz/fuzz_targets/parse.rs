//! Any bytes: lexer, parser and printer must not panic, errors must point into the text, and the print of a
//! valid document must parse and print to itself.

#![no_main]

use libfuzzer_sys::fuzz_target;
use ogive_syntax::{
    Limits, SourceId, parse, parse_schema_coordinate, parse_selection_set, parse_type_ref,
    parse_value, print_document, print_value,
};

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let limits = Limits::default();
    let parsed = parse(text, SourceId(0), &limits);
    let printed = print_document(&parsed.document);
    let mut last = 0;
    for error in &parsed.errors {
        let span = error.labels[0].span;
        assert!(span.start >= last, "errors out of order");
        last = span.start;
        for label in &error.labels {
            assert!(
                text.get(label.span.range()).is_some(),
                "error outside the text"
            );
        }
    }
    assert!(parsed.errors.len() <= limits.errors_max as usize);
    if parsed.errors.is_empty() {
        let again = parse(printed.as_str(), SourceId(0), &limits);
        assert!(again.errors.is_empty(), "{printed:?}: {:?}", again.errors);
        assert_eq!(print_document(&again.document), printed);
    }

    let few = Limits {
        tokens_max: 40,
        errors_max: 2,
        depth_max: 3,
        ..limits
    };
    let bounded = parse(text, SourceId(0), &few);
    assert!(bounded.errors.len() <= 2);

    let _ = parse_selection_set(text, SourceId(0), &limits);
    let _ = parse_type_ref(text, &limits);
    let _ = parse_schema_coordinate(text);
    if let Ok((document, value)) = parse_value(text, false, &limits) {
        let printed = print_value(&document, &value);
        let (document, value) = parse_value(&printed, false, &limits).expect("prints are valid");
        assert_eq!(print_value(&document, &value), printed);
    }
});
