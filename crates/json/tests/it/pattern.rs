//! Patterns against the scanner: a text matches if and only if reading it token by token says so.

use ogive_json::{
    Conditions, Kind, Level, Pattern, PatternField, PatternScalar, PatternValue, Scanner,
};
use ogive_testbase::Rng;

use crate::generate;

/// A pattern that can be read slowly.
#[derive(Debug)]
pub(crate) enum Spec {
    Scalar(PatternScalar),
    Object(Vec<(String, u32, Type)>),
}

/// A spec with lists around it.
#[derive(Debug)]
pub(crate) struct Type {
    spec: Spec,
    lists: u8,
    non_null: u16,
}

const SETS: [&[&str]; 1] = [&["A", "B2", "a longer name than one block of bytes can hold"]];

impl Type {
    pub(crate) fn random(random: &mut Rng, depth: usize) -> Type {
        let lists = [0, 0, 0, 1, 2][random.below(5)];
        let spec = if depth == 0 || random.below(3) == 0 {
            Spec::Scalar(*random.pick(&[
                PatternScalar::Int,
                PatternScalar::Number,
                PatternScalar::String,
                PatternScalar::Boolean,
                PatternScalar::StringOrInteger,
                PatternScalar::OneOf(0),
                PatternScalar::Any,
            ]))
        } else {
            let fields = (0..random.below(5)).map(|i| {
                let long = if random.below(6) == 0 {
                    "x".repeat(20 + random.below(40))
                } else {
                    String::new()
                };
                let cond = [0, 0, 0, 1, 2][random.below(5)];
                (format!("k{i}{long}"), cond, Type::random(random, depth - 1))
            });
            Spec::Object(fields.collect())
        };
        let non_null = random.below(8) as u16;
        Type {
            spec,
            lists,
            non_null,
        }
    }

    pub(crate) fn pattern(&self, pattern: &mut Pattern) -> PatternValue {
        let value = match &self.spec {
            Spec::Scalar(scalar) => PatternValue::scalar(*scalar),
            Spec::Object(fields) => {
                let fields = fields
                    .iter()
                    .map(|(key, cond, ty)| PatternField::new(key, *cond, ty.pattern(pattern)))
                    .collect();
                PatternValue::object(pattern.add_object(fields))
            }
        };
        value.wrapped(self.lists, self.non_null)
    }

    /// A text that fits.
    pub(crate) fn write(&self, random: &mut Rng, layer: u8, out: &mut Vec<u8>) {
        if self.non_null & (1 << layer) == 0 && random.below(6) == 0 {
            out.extend_from_slice(b"null");
            return;
        }
        if layer > 0 {
            out.push(b'[');
            for i in 0..random.below(4) {
                if i > 0 {
                    out.push(b',');
                }
                self.write(random, layer - 1, out);
            }
            out.push(b']');
            return;
        }
        match &self.spec {
            Spec::Scalar(scalar) => {
                let texts: &[&[u8]] = match scalar {
                    PatternScalar::Int => &[b"0", b"-7", b"2147483647", b"-2147483648", b"12345"],
                    PatternScalar::Number => &[b"1.5", b"-0", b"1e9", b"123456789012345678901"],
                    PatternScalar::String => &[
                        b"\"\"",
                        "\"héllo wörld, a string of more than sixty-four bytes, so that blocks repeat\"".as_bytes(),
                        b"\"a\\n\\u00e9\"",
                        b"\"plain and simple, but more than thirty-two\"",
                    ],
                    PatternScalar::Boolean => &[b"true", b"false"],
                    PatternScalar::StringOrInteger => &[b"\"id\"", b"17", b"-1"],
                    PatternScalar::OneOf(_) => &[
                        b"\"A\"",
                        b"\"B2\"",
                        b"\"a longer name than one block of bytes can hold\"",
                    ],
                    PatternScalar::Any => &[b"{\"x\": [1, {}]}", b"[]", b"\"s\"", b"false"],
                };
                out.extend_from_slice(random.pick::<&[u8]>(texts));
            }
            Spec::Object(fields) => {
                out.push(b'{');
                let mut first = true;
                for (key, cond, ty) in fields {
                    if *cond == 2 {
                        continue;
                    }
                    if !first {
                        out.push(b',');
                    }
                    first = false;
                    out.extend_from_slice(format!("\"{key}\":").as_bytes());
                    ty.write(random, ty.lists, out);
                }
                out.push(b'}');
            }
        }
    }

    /// Reads a value token by token; none if it does not fit.
    fn read(&self, scanner: &mut Scanner<'_>, layer: u8) -> Option<()> {
        tight(scanner)?;
        let kind = scanner.peek().ok()?;
        if kind == Kind::Null {
            scanner.null().ok()?;
            return (self.non_null & (1 << layer) == 0).then_some(());
        }
        if layer > 0 {
            if kind != Kind::Array {
                return None;
            }
            let empty = scanner.text()[scanner.position()..].starts_with(b"[]");
            let mut more = scanner.begin_array().ok()?;
            if more == empty || (more && opened(scanner) != b'[') {
                return None;
            }
            while more {
                self.read(scanner, layer - 1)?;
                tight(scanner)?;
                more = scanner.next_item().ok()?;
            }
            return Some(());
        }
        match &self.spec {
            Spec::Scalar(scalar) => {
                let range = scanner.skip_value().ok()?;
                let text = std::str::from_utf8(&scanner.text()[range]).ok()?;
                let integer = kind == Kind::Number && !text.contains(['.', 'e', 'E']);
                let fits = match scalar {
                    PatternScalar::Int => integer && text.parse::<i32>().is_ok(),
                    PatternScalar::Number => kind == Kind::Number,
                    PatternScalar::String => kind == Kind::String,
                    PatternScalar::Boolean => matches!(kind, Kind::True | Kind::False),
                    PatternScalar::StringOrInteger => kind == Kind::String || integer,
                    PatternScalar::OneOf(set) => SETS[*set as usize]
                        .iter()
                        .any(|name| text == format!("\"{name}\"")),
                    PatternScalar::Any => true,
                };
                fits.then_some(())
            }
            Spec::Object(fields) => {
                if kind != Kind::Object {
                    return None;
                }
                let empty = scanner.text()[scanner.position()..].starts_with(b"{}");
                let mut more = scanner.begin_object().ok()?;
                if more == empty || (more && opened(scanner) != b'{') {
                    return None;
                }
                for (key, cond, ty) in fields {
                    if *cond == 2 {
                        continue;
                    }
                    let quoted = format!("\"{key}\":");
                    let here = &scanner.text()[scanner.position()..];
                    if !more || !here.starts_with(quoted.as_bytes()) || !scanner.try_key(key) {
                        return None;
                    }
                    ty.read(scanner, ty.lists)?;
                    tight(scanner)?;
                    more = scanner.next_member().ok()?;
                }
                (!more).then_some(())
            }
        }
    }
}

/// The byte before the next one: the bracket, unless white space follows it.
fn opened(scanner: &Scanner<'_>) -> u8 {
    scanner.text()[scanner.position() - 1]
}

/// None if white space follows.
fn tight(scanner: &Scanner<'_>) -> Option<()> {
    match scanner.text().get(scanner.position()) {
        Some(b' ' | b'\n' | b'\t' | b'\r') => None,
        _ => Some(()),
    }
}

/// Compares both readings of one text; says whether it was accepted.
fn check(ty: &Type, text: &[u8], context: &str) -> bool {
    let mut pattern = Pattern::default();
    for set in SETS {
        pattern.add_set(set.iter().map(|name| (*name).into()).collect());
    }
    let value = ty.pattern(&mut pattern);
    let mut conditions = Conditions::default();
    conditions.set(1);
    let mut slow = Scanner::new(text);
    let expected = ty.read(&mut slow, ty.lists).map(|()| slow.position());
    let mut fast = Scanner::new(text);
    let found = fast.try_pattern(&pattern, value, &conditions);
    assert_eq!(
        found.map(|range| range.end),
        expected,
        "{context}: {ty:?}\n{}",
        text.escape_ascii()
    );
    expected.is_some()
}

#[test]
fn patterns_accept_what_the_scanner_accepts() {
    let mut counts = [0, 0];
    for level in Level::available() {
        assert!(level.force());
        for seed in generate::seeds(12_000) {
            let mut random = Rng::new(seed);
            let ty = Type::random(&mut random, 3);
            let mut text = Vec::new();
            ty.write(&mut random, ty.lists, &mut text);
            if random.below(2) == 0 {
                generate::damage(&mut random, &mut text);
            } else {
                // What follows must not matter, nor where the text ends.
                text.extend_from_slice(&b",".repeat(random.below(70)));
            }
            let accepted = check(&ty, &text, &format!("{level:?}, seed {seed}"));
            counts[usize::from(accepted)] += 1;
        }
    }
    let all = counts[0] + counts[1];
    assert!(counts[0] > all / 20 && counts[1] > all / 10, "{counts:?}");
}

#[test]
fn depth_counts_from_outside() {
    let mut pattern = Pattern::default();
    let inner = PatternValue::scalar(PatternScalar::Any).wrapped(1, 0);
    let object = pattern.add_object(vec![PatternField::new("a", 0, inner)]);
    for (depth_max, fits) in [(1, false), (2, false), (3, true), (4, true)] {
        let mut scanner = Scanner::with_depth_max(br#"{"a":[{}]}"#, depth_max);
        let value = PatternValue::object(object);
        let found = scanner.try_pattern(&pattern, value, &Conditions::default());
        assert_eq!(found.is_some(), fits, "{depth_max}");
    }
}
