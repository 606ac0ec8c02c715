//! Any bytes: the scanner must accept exactly what `serde_json` accepts and read the same values, with every
//! instruction set, at every alignment, and wherever the text is cut off.

#![no_main]

use libfuzzer_sys::fuzz_target;
use ogive_json::{
    Conditions, Kind, Level, Pattern, PatternField, PatternScalar, PatternValue, ScanError,
    ScanErrorKind, Scanner, compact, scan::validate,
};
use serde_json::Value;

/// Bytes that `compact` takes in at a time.
const STEP: usize = 4096;

fuzz_target!(|bytes: &[u8]| {
    let Some((&choice, text)) = bytes.split_first() else {
        return;
    };
    let text_is_utf8 = std::str::from_utf8(text).is_ok();
    let reference = text_is_utf8 && serde_json::from_slice::<serde::de::IgnoredAny>(text).is_ok();
    // `serde_json` has no limit on what it ignores, the scanner has one.
    if validate(text).is_err_and(|error| error.kind == ScanErrorKind::TooDeep) {
        let open = text.iter().filter(|byte| matches!(byte, b'[' | b'{'));
        assert!(open.count() > Scanner::DEPTH_MAX_DEFAULT as usize);
        return;
    }
    // The same bytes somewhere else in memory, with something behind them.
    let offset = usize::from(choice % 64);
    let mut moved = vec![b' '; offset];
    moved.extend_from_slice(text);
    let cut = usize::from(choice) * text.len() / 255;
    // The same behind so much white space that a step of `compact` ends at the cut: what it knows there, inside a string
    // or behind a backslash, has to reach the next step.
    let mut late = vec![b' '; STEP - cut % STEP];
    late.extend_from_slice(text);
    let mut pattern = Pattern::default();
    let object = shape(&mut pattern);
    let mut expected: Option<(Result<(), ScanError>, Result<(), ScanError>)> = None;
    let mut without_space: Option<Option<Vec<u8>>> = None;
    for level in Level::available() {
        assert!(level.force());
        let verdict = validate(text);
        assert_eq!(verdict.is_ok(), reference, "{level:?}: {verdict:?}");
        assert_eq!(validate(&moved).is_ok(), reference, "{level:?} moved");
        let head = validate(&text[..cut]);
        let both = *expected.get_or_insert((verdict, head));
        assert_eq!(both, (verdict, head), "{level:?} differs");
        // Without its white space a text is as good or bad as before.
        let out = compact(text);
        match &out {
            Some(out) => assert_eq!(validate(out).is_ok(), reference, "{level:?} compact"),
            None => assert!(!reference, "{level:?} cannot compact"),
        }
        assert_eq!(compact(&late), out, "{level:?} across a step");
        let known = without_space.get_or_insert_with(|| out.clone());
        assert_eq!(*known, out, "{level:?} differs in compact");
        // A pattern accepts no value that the scanner refuses.
        let any = PatternValue::scalar(PatternScalar::Any).wrapped(0, 1);
        for value in [any, any.wrapped(1, 0), object, object.wrapped(1, 1)] {
            let found = Scanner::new(text).try_pattern(&pattern, value, &Conditions::default());
            if let Some(range) = found {
                assert!(Scanner::new(&text[range]).skip_value().is_ok(), "{level:?}");
            }
        }
    }
    if reference && let Ok(value) = serde_json::from_slice::<Value>(text) {
        let mut scanner = Scanner::new(text);
        assert_eq!(read(&mut scanner), Some(value.clone()));
        assert!(scanner.finish().is_ok());
        let out = compact(text).unwrap_or_default();
        assert_eq!(serde_json::from_slice::<Value>(&out).ok(), Some(value));
    }
});

/// An object with a list of objects.
fn shape(pattern: &mut Pattern) -> PatternValue {
    let scalar = |kind| PatternValue::scalar(kind);
    let inner = pattern.add_object(vec![
        PatternField::new("a", 0, scalar(PatternScalar::Int)),
        PatternField::new("b", 0, scalar(PatternScalar::String)),
    ]);
    let list = PatternValue::object(inner).wrapped(1, 2);
    let outer = pattern.add_object(vec![
        PatternField::new("a", 0, list),
        PatternField::new("b", 0, scalar(PatternScalar::Number)),
        PatternField::new("c", 0, scalar(PatternScalar::StringOrInteger)),
    ]);
    PatternValue::object(outer)
}

/// Rebuilds a value through the stepping interface.
fn read(scanner: &mut Scanner<'_>) -> Option<Value> {
    Some(match scanner.peek().ok()? {
        Kind::Null => {
            scanner.null().ok()?;
            Value::Null
        }
        Kind::True | Kind::False => Value::Bool(scanner.boolean().ok()?),
        Kind::Number => {
            let number = scanner.number().ok()?;
            serde_json::from_slice(&scanner.text()[number.range]).ok()?
        }
        Kind::String => Value::String(scanner.string().ok()?.unescape().into_owned()),
        Kind::Array => {
            let mut items = Vec::new();
            let mut more = scanner.begin_array().ok()?;
            while more {
                items.push(read(scanner)?);
                more = scanner.next_item().ok()?;
            }
            Value::Array(items)
        }
        Kind::Object => {
            let mut members = serde_json::Map::new();
            let mut more = scanner.begin_object().ok()?;
            while more {
                let key = scanner.key().ok()?.unescape().into_owned();
                members.insert(key, read(scanner)?);
                more = scanner.next_member().ok()?;
            }
            Value::Object(members)
        }
    })
}
