//! Every instruction set gives the same answers, at every alignment and distance from the end.

use ogive_json::{Level, Scanner, scan::validate};
use ogive_testbase::Rng;

use crate::generate;

#[test]
fn all_levels_agree_with_the_scalar_twin() {
    let levels = Level::available();
    assert_eq!(levels[0], Level::Scalar);
    for seed in generate::seeds(4_000) {
        let mut random = Rng::new(seed);
        let mut text = generate::document(&mut random);
        if seed % 2 == 0 {
            generate::damage(&mut random, &mut text);
        }
        assert!(Level::Scalar.force());
        let expected = validate(&text);
        for level in &levels[1..] {
            assert!(level.force());
            assert_eq!(validate(&text), expected, "{level:?}, seed {seed}");
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "tens of thousands of texts, of which none is special")]
fn positions_do_not_depend_on_alignment() {
    let mut strings = vec![
        String::new(),
        "é".into(),
        "\\n".into(),
        "\\u12G4".into(),
        "\u{1}".into(),
    ];
    for len in [1, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 130] {
        for tail in ["", "é", "\\\"", "\\q", "\u{1f}", "\u{80}"] {
            strings.push(format!("{}{tail}", "x".repeat(len)));
            strings.push(format!("{tail}{}", "y".repeat(len)));
        }
    }
    for level in Level::available() {
        assert!(level.force());
        for string in &strings {
            for pad in 0..70 {
                let value = format!("{}\"{string}\"", " ".repeat(pad));
                let expected = serde_json::from_str::<String>(&value);
                for after in [0, 1, 40, 100] {
                    let text = format!("{value}{}", ",".repeat(after));
                    let mut scanner = Scanner::new(text.as_bytes());
                    let found = scanner.skip_value();
                    assert_eq!(found.is_ok(), expected.is_ok(), "{level:?}: {text:?}");
                    if let Ok(range) = found {
                        assert_eq!(range, pad..value.len(), "{level:?}: {text:?}");
                    }
                }
            }
        }
        for digits in 1..70 {
            let number = format!(
                "-{}.{}e+{}",
                "1".repeat(digits),
                "0".repeat(digits),
                "9".repeat(digits)
            );
            for cut in 1..=number.len() {
                let text = &number[..cut];
                let reference = serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
                assert_eq!(
                    validate(text.as_bytes()).is_ok(),
                    reference,
                    "{level:?}: {text}"
                );
            }
        }
    }
}
