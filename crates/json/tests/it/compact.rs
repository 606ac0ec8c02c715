//! Taking white space out, against `serde_json`, with every instruction set.

use ogive_json::{Key, Level, append_short, compact, is_spaced, scan::validate};
use ogive_testbase::Rng;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::generate;

/// What must hold of any text: if something comes out, it is JSON if the text is, with the same value, and nothing can be
/// taken out any more.
fn check(text: &[u8]) {
    let mut first = None;
    for level in Level::available() {
        assert!(level.force());
        let out = compact(text);
        let known = first.get_or_insert_with(|| out.clone());
        assert_eq!(*known, out, "{level:?}");
    }
    let Some(Some(out)) = first else {
        assert!(validate(text).is_err(), "{}", String::from_utf8_lossy(text));
        return;
    };
    assert_eq!(
        validate(text).is_ok(),
        validate(&out).is_ok(),
        "{} became {}",
        String::from_utf8_lossy(text),
        String::from_utf8_lossy(&out)
    );
    if let Ok(value) = serde_json::from_slice::<Value>(text) {
        assert_eq!(serde_json::from_slice::<Value>(&out).unwrap(), value);
        assert_eq!(compact(&out), Some(out));
    }
}

#[test]
fn handpicked_texts() {
    let texts: &[&[u8]] = &[
        b"",
        b" ",
        b" 1 ",
        b"1 2",
        b"tr ue",
        b"- 1",
        b"1 .5",
        b"[1 2]",
        b"[1 , 2]",
        b"{ \"a\" : 1 }",
        b"{ \"a b\" : \" c \" , \"d\\\" e\" : [ ] }",
        b"\"a\" \"b\"",
        b"\"a \\\\\" , \"b c\"",
        b"[ \"\\\\\" , \"\\\\\\\" x \" , true ]",
        b"\" \n\"",
        b"\"unterminated   ",
        b"[ \xff ]",
        b"{}{} ",
        b"\\\" 1 \\\"",
    ];
    for text in texts {
        check(text);
        if cfg!(miri) {
            continue;
        }
        // At every place of a block.
        for offset in 0..70 {
            let mut longer = b"[\"".to_vec();
            longer.resize(2 + offset, b'x');
            longer.extend_from_slice(b"\" , ");
            longer.extend_from_slice(text);
            longer.extend_from_slice(b" ]");
            check(&longer);
        }
    }
}

/// Bytes that are taken in at a time.
const STEP: usize = 4096;

/// What a text looks like up to the end of a step, and what may stand across it there.
const ACROSS: &[(&str, u8, &str, &[&str], &str)] = &[
    (
        "inside a string",
        b'x',
        "[ \"",
        &[
            r"\\",
            r#"\""#,
            r#"\\\""#,
            r"\u00e9 \ud83d\ude00",
            "é😀",
            "   ",
            r#"" , ""#,
            "\" , \" a b \" ,\n \"",
            "\" , 1 , 22 , \"",
            "\" 1 , \"",
            "\" , 1 2 , \"",
            "\n",
        ],
        "\" ]",
    ),
    (
        "behind backslashes",
        b'\\',
        "[ \"",
        &["", r"\", r#"\" , ""#, r#"" , ""#, "n", " "],
        "\" ]",
    ),
    (
        "in white space",
        b' ',
        "[",
        &[
            "1 , 2",
            "1 2",
            "true  , false",
            "tr ue",
            r#""a b" , "c\" d""#,
            r#"{ "a" : [ ] }"#,
            r#"""  , """#,
        ],
        " ]",
    ),
    // A number stays in mind however much white space is behind it.
    (
        "behind a number",
        b' ',
        "[ 1",
        &[", 2", "2", "]", "\"a\""],
        " ]",
    ),
    (
        "in a number",
        b'1',
        "[ ",
        &["2", " 2", "  , 2", "e5", "\"a\""],
        " ]",
    ),
];

#[test]
#[cfg_attr(miri, ignore = "hundreds of texts of thousands of bytes")]
fn strings_escapes_and_white_space_across_the_steps() {
    for (place, filler, before, across, after) in ACROSS {
        for what in *across {
            for end in [STEP, 2 * STEP] {
                // The end of the step is in front of, anywhere in, and behind what stands there; also a block away.
                let near = (0..=what.len() + 1).chain([64, 65, what.len() + 64]);
                for shift in near.step_by(generate::stride(7)) {
                    let mut text = before.as_bytes().to_vec();
                    text.resize(end - shift, *filler);
                    text.extend_from_slice(what.as_bytes());
                    text.extend_from_slice(after.as_bytes());
                    let reference = serde_json::from_slice::<IgnoredAny>(&text).is_ok();
                    for level in Level::available() {
                        assert!(level.force());
                        let verdict = validate(&text).is_ok();
                        assert_eq!(verdict, reference, "{level:?}: {what:?} {place}, {shift}");
                    }
                    check(&text);
                }
            }
        }
    }
}

#[test]
fn generated_texts_damaged_and_torn() {
    for seed in generate::seeds(1_500) {
        let mut random = Rng::new(seed);
        let mut text = generate::document(&mut random);
        check(&text);
        if let Ok(value) = serde_json::from_slice::<Value>(&text) {
            let plain = serde_json::to_vec(&value).unwrap();
            assert_eq!(
                compact(&serde_json::to_vec_pretty(&value).unwrap()),
                Some(plain)
            );
        }
        check(&text[..random.below(text.len() + 1)]);
        // White space anywhere, inside tokens too.
        let mut torn = text.clone();
        torn.insert(random.below(text.len() + 1), b" \t\n\r"[seed as usize % 4]);
        check(&torn);
        generate::damage(&mut random, &mut text);
        check(&text);
    }
}

#[test]
fn spaced_texts_are_noticed() {
    for text in ["{ \"data\":1}", "\n{}", "{\"data\": {}}", "{\n}", " 1"] {
        assert!(is_spaced(text.as_bytes()), "{text}");
    }
    for text in [
        "",
        "{}",
        "{\"data\":{\"a\":\"b c\"}}",
        "{\"a\":\" \"}",
        "[1]",
    ] {
        assert!(!is_spaced(text.as_bytes()), "{text}");
    }
}

#[test]
fn keys_of_any_length_are_compared_and_written() {
    for len in (0..80).step_by(generate::stride(37)) {
        let name = "k".repeat(len);
        let key = Key::new(&name);
        let member = format!(",\"{name}\":1");
        assert_eq!(key.len(), member.len() - 1);
        for behind in [0, 1, 40] {
            let mut text = member.clone().into_bytes();
            text.resize(text.len() + behind, b' ');
            assert!(key.stands_at(&text, 0, false));
            assert!(key.stands_at(&text, 1, true));
            assert!(!key.stands_at(&text, 1, false));
            assert!(!key.stands_at(&text[..member.len() - 2], 0, false));
            for at in 0..member.len() - 1 {
                let mut other = text.clone();
                other[at] ^= 1;
                assert!(!key.stands_at(&other, 0, false), "{len} {at}");
                assert_eq!(key.stands_at(&other, 1, true), at == 0, "{len} {at}");
            }
        }
        for first in [false, true] {
            let mut out = b"{".to_vec();
            key.append(&mut out, first);
            assert_eq!(
                out[1..],
                member.as_bytes()[usize::from(first)..member.len() - 1]
            );
        }
        for start in [0, 3, 100] {
            let mut out = b"{".to_vec();
            append_short(&mut out, member.as_bytes(), start, len);
            let from = start.min(member.len());
            let to = (start + len).min(member.len()).max(from);
            assert_eq!(out[1..], member.as_bytes()[from..to]);
        }
    }
}
