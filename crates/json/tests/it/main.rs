//! The scanner against `serde_json`: same verdict on every text, same values.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod compact;
mod generate;
mod levels;
mod pattern;

use ogive_json::{Kind, ScanErrorKind, Scanner, scan::validate};
use ogive_testbase::Rng;
use serde::de::IgnoredAny;
use serde_json::Value;

/// `IgnoredAny` checks the grammar only, as `skip_value` does; UTF-8 is checked apart.
fn reference_accepts(text: &[u8]) -> bool {
    std::str::from_utf8(text).is_ok_and(|text| serde_json::from_str::<IgnoredAny>(text).is_ok())
}

#[test]
fn verdicts_agree_on_handpicked_texts() {
    let texts: &[&[u8]] = &[
        b"",
        b" ",
        b"null",
        b" null ",
        b"nul",
        b"nulll",
        b"nULL",
        b"true",
        b"false",
        b"tru",
        b"0",
        b"-0",
        b"-",
        b"01",
        b"-01",
        b"1.",
        b".5",
        b"1.5",
        b"1e5",
        b"1E+5",
        b"1e",
        b"1e-",
        b"1.5e300",
        b"+1",
        b"0x1",
        b"1 2",
        b"\"\"",
        b"\"",
        b"\"a",
        b"\"\\\"",
        b"\"\\u00e9\"",
        b"\"\\u00g9\"",
        b"\"\\u12\"",
        b"\"\\x\"",
        b"\"\\ud800\"",
        b"\"\\ud83d\\ude00\"",
        b"\"\x00\"",
        b"\"\n\"",
        b"\"\x7f\"",
        b"\"\xff\"",
        b"\"\xc3\xa9\"",
        b"\"\xc3\"",
        b"\"\xed\xa0\x80\"",
        b"[]",
        b"[ ]",
        b"[,]",
        b"[1,]",
        b"[1 2]",
        b"[1,2]",
        b"[",
        b"]",
        b"[[]]",
        b"[[}]",
        b"{}",
        b"{ }",
        b"{,}",
        b"{\"a\"}",
        b"{\"a\":}",
        b"{\"a\":1}",
        b"{\"a\":1,}",
        b"{\"a\":1 \"b\":2}",
        b"{a:1}",
        b"{1:1}",
        b"{\"a\":{\"b\":[{}]}}",
        b"{\"a\":1]",
        b"[1}",
        b"{\"a\":1}}",
        b"\xef\xbb\xbf{}",
        b"/**/1",
        b"'a'",
        b"NaN",
        b"[\"a\\\\\"]",
        b"[\"a\\\\\\\"]",
    ];
    for text in texts {
        assert_eq!(
            validate(text).is_ok(),
            reference_accepts(text),
            "{}",
            text.escape_ascii()
        );
    }
}

#[test]
fn verdicts_agree_on_generated_and_damaged_texts() {
    let mut accepted = 0;
    for seed in generate::seeds(20_000) {
        let mut random = Rng::new(seed);
        let mut text = generate::document(&mut random);
        if seed % 4 != 0 {
            generate::damage(&mut random, &mut text);
        }
        let ours = validate(&text);
        assert_eq!(
            ours.is_ok(),
            reference_accepts(&text),
            "seed {seed}: {ours:?}: {}",
            text.escape_ascii()
        );
        accepted += u32::from(ours.is_ok());
    }
    // Both verdicts must really occur.
    let all = generate::seeds(20_000).end as u32;
    let [least, most] = if cfg!(miri) { [1, 9] } else { [3, 8] };
    let tenths = all * least / 10..all * most / 10;
    assert!(tenths.contains(&accepted), "{accepted}");
}

/// Rebuilds a value through the stepping interface.
fn read(scanner: &mut Scanner<'_>) -> Value {
    match scanner.peek().unwrap() {
        Kind::Null => {
            scanner.null().unwrap();
            Value::Null
        }
        Kind::True | Kind::False => Value::Bool(scanner.boolean().unwrap()),
        Kind::Number => {
            let number = scanner.number().unwrap();
            let text = std::str::from_utf8(&scanner.text()[number.range]).unwrap();
            assert_eq!(number.integer, !text.contains(['.', 'e', 'E']));
            serde_json::from_str(text).unwrap()
        }
        Kind::String => Value::String(scanner.string().unwrap().unescape().into_owned()),
        Kind::Array => {
            let mut items = Vec::new();
            let mut more = scanner.begin_array().unwrap();
            while more {
                items.push(read(scanner));
                more = scanner.next_item().unwrap();
            }
            Value::Array(items)
        }
        Kind::Object => {
            let mut members = serde_json::Map::new();
            let mut more = scanner.begin_object().unwrap();
            while more {
                let key = scanner.key().unwrap();
                assert!(key.is(&key.unescape()));
                assert!(!key.is(&format!("{}x", key.unescape())));
                members.insert(key.unescape().into_owned(), read(scanner));
                more = scanner.next_member().unwrap();
            }
            Value::Object(members)
        }
    }
}

#[test]
fn values_agree() {
    for seed in generate::seeds(5_000) {
        let text = generate::document(&mut Rng::new(seed));
        let Ok(expected) = serde_json::from_slice::<Value>(&text) else {
            continue; // lone surrogates, which a `Value` cannot hold
        };
        let mut scanner = Scanner::new(&text);
        assert_eq!(read(&mut scanner), expected, "seed {seed}");
        scanner.finish().unwrap();
    }
}

#[test]
fn skipped_ranges_are_the_values_themselves() {
    let text = br#" { "a" : [ 1 , {"x":2} ] , "b" : "q\"" , "c":-1.5e3}"#;
    let mut scanner = Scanner::new(text);
    let mut seen = Vec::new();
    let mut more = scanner.begin_object().unwrap();
    while more {
        let key = scanner.key().unwrap().unescape().into_owned();
        let range = scanner.skip_value().unwrap();
        assert_eq!(
            scanner.within(range.clone()).skip_value(),
            Ok(range.clone())
        );
        seen.push((key, String::from_utf8(text[range].to_vec()).unwrap()));
        more = scanner.next_member().unwrap();
    }
    scanner.finish().unwrap();
    assert_eq!(
        seen,
        [
            ("a".to_owned(), r#"[ 1 , {"x":2} ]"#.to_owned()),
            ("b".to_owned(), r#""q\"""#.to_owned()),
            ("c".to_owned(), "-1.5e3".to_owned()),
        ]
    );
}

#[test]
fn expected_keys_are_tried_without_loss() {
    let mut scanner = Scanner::new(br#"{"ab": 1, "a\u0062": 2, "abc" 3}"#);
    assert!(scanner.begin_object().unwrap());
    assert!(!scanner.try_key("a"));
    assert!(!scanner.try_key("abc"));
    assert!(scanner.try_key("ab"));
    scanner.skip_value().unwrap();
    assert!(scanner.next_member().unwrap());
    assert!(
        !scanner.try_key("ab"),
        "an escaped key is left to the slow path"
    );
    assert!(scanner.key().unwrap().is("ab"));
    scanner.skip_value().unwrap();
    assert!(scanner.next_member().unwrap());
    assert!(!scanner.try_key("abc"), "no colon");
    assert_eq!(
        scanner.key().unwrap_err().kind,
        ScanErrorKind::UnexpectedByte
    );
    assert!(!Scanner::new(b"\"a").try_key("ab"));
}

#[test]
fn depth_is_limited_without_recursion() {
    let nested = |depth: usize| [b"[".repeat(depth), b"]".repeat(depth)].concat();
    let skip = |text: &[u8], max| Scanner::with_depth_max(text, max).skip_value();
    assert!(skip(&nested(5), 5).is_ok());
    assert_eq!(
        skip(&nested(6), 5).unwrap_err(),
        ogive_json::ScanError {
            offset: 5,
            kind: ScanErrorKind::TooDeep
        }
    );
    assert!(skip(&nested(1024), u32::MAX).is_ok());
    assert_eq!(
        skip(
            &b"[{\"a\":".repeat(if cfg!(miri) { 1_000 } else { 1_000_000 }),
            u32::MAX
        )
        .unwrap_err()
        .kind,
        ScanErrorKind::TooDeep
    );
    // Depth is given back when containers close, whether stepped or skipped.
    assert!(skip(b"[[[]],[[]],{\"a\":{}}]", 3).is_ok());
    let mut scanner = Scanner::with_depth_max(b"[[1],[1],[1]]", 2);
    let mut more = scanner.begin_array().unwrap();
    while more {
        assert!(scanner.begin_array().unwrap());
        scanner.skip_value().unwrap();
        assert!(!scanner.next_item().unwrap());
        more = scanner.next_item().unwrap();
    }
    scanner.finish().unwrap();
}

#[test]
fn surrogates_are_paired_or_replaced() {
    let unescape = |text: &str| {
        Scanner::new(text.as_bytes())
            .string()
            .unwrap()
            .unescape()
            .into_owned()
    };
    assert_eq!(unescape(r#""\ud83d\ude00!""#), "😀!");
    assert_eq!(unescape(r#""\ud83d!""#), "\u{fffd}!");
    assert_eq!(unescape(r#""\ude00\ud83d""#), "\u{fffd}\u{fffd}");
    assert_eq!(unescape(r#""\ud83d\u0041""#), "\u{fffd}A");
    assert_eq!(unescape(r#""é\/\u00E9\n""#), "é/é\n");
}

#[test]
fn escapes_are_found_wherever_they_are() {
    let escapes = [r"\n", r#"\""#, r"\\", r"\u00e9", r"\ud83d\ude00", r"\n\n\t"];
    for escape in escapes {
        for before in (0..70).step_by(generate::stride(67)) {
            for after in [0, 1, 2, 5, 14, 15, 16, 17, 31, 33, 70] {
                let (before, after) = ("x".repeat(before), "é".repeat(after));
                for text in [
                    format!("\"{before}{escape}{after}\""),
                    format!("\"{after}{escape}{before}{escape}\""),
                ] {
                    let mut scanner = Scanner::new(text.as_bytes());
                    let expected: String = serde_json::from_str(&text).unwrap();
                    assert_eq!(scanner.string().unwrap().unescape(), expected, "{text}");
                }
            }
        }
    }
}

#[test]
fn errors_say_where() {
    for (text, message) in [
        (&b"[1,"[..], "unexpected end at byte 3"),
        (b"[1,]", "unexpected character at byte 3"),
        (b"[01]", "malformed number at byte 2"),
        (b"[\"\\q\"]", "malformed escape sequence at byte 2"),
        (b"\"a\tb\"", "unescaped control character at byte 2"),
        (b"\"ab\xff\"", "invalid UTF-8 at byte 3"),
        (b"{} {}", "something follows the value at byte 3"),
    ] {
        assert_eq!(validate(text).unwrap_err().to_string(), message);
    }
}
