//! Random JSON texts, valid and damaged. Seeds are printed by the tests that use them.

use ogive_testbase::Rng;

/// How many of so many texts are tried: an interpreter takes a few hundred times as long for each.
pub(crate) fn seeds(all: u64) -> std::ops::Range<u64> {
    0..if cfg!(miri) { all / 1_000 } else { all }
}

/// How far loops go over places that differ by one: so that an interpreter takes few of them, and not always the same.
pub(crate) fn stride(few: usize) -> usize {
    if cfg!(miri) { few } else { 1 }
}

/// A valid text with some white space.
pub(crate) fn document(random: &mut Rng) -> Vec<u8> {
    let mut out = Vec::new();
    space(random, &mut out);
    value(random, 5, &mut out);
    space(random, &mut out);
    out
}

fn space(random: &mut Rng, out: &mut Vec<u8>) {
    out.extend_from_slice(random.pick::<&[u8]>(&[b"", b"", b"", b" ", b"\n\t", b"\r "]));
}

fn value(random: &mut Rng, depth: usize, out: &mut Vec<u8>) {
    match random.below(if depth == 0 { 4 } else { 8 }) {
        0 => out.extend_from_slice(random.pick::<&[u8]>(&[b"null", b"true", b"false"])),
        1 | 2 => number(random, out),
        3 => string(random, out),
        4 | 5 => {
            out.push(b'[');
            space(random, out);
            for i in 0..random.below(4) {
                if i > 0 {
                    out.push(b',');
                }
                space(random, out);
                value(random, depth - 1, out);
                space(random, out);
            }
            out.push(b']');
        }
        _ => {
            out.push(b'{');
            space(random, out);
            for i in 0..random.below(4) {
                if i > 0 {
                    out.push(b',');
                    space(random, out);
                }
                string(random, out);
                space(random, out);
                out.push(b':');
                space(random, out);
                value(random, depth - 1, out);
                space(random, out);
            }
            out.push(b'}');
        }
    }
}

fn number(random: &mut Rng, out: &mut Vec<u8>) {
    out.extend_from_slice(random.pick::<&[u8]>(&[
        b"0",
        b"-0",
        b"7",
        b"-12",
        b"123456789012345678901234567890",
        b"0.5",
        b"-1.25e-7",
        b"1E9",
        b"1e+400",
        b"2147483648",
    ]));
}

fn string(random: &mut Rng, out: &mut Vec<u8>) {
    out.push(b'"');
    for _ in 0..random.below(5) {
        out.extend_from_slice(random.pick::<&[u8]>(&[
            b"a",
            b"key",
            b" ",
            "é".as_bytes(),
            "😀".as_bytes(),
            b"\\\"",
            b"\\\\",
            b"\\/",
            b"\\n",
            b"\\u0041",
            b"\\u00e9",
            b"\\ud83d\\ude00",
            b"\\ud83d",
            b"\x7f",
            b"{}[],:",
        ]));
    }
    out.push(b'"');
}

/// One to three random edits, most of which make the text invalid.
pub(crate) fn damage(random: &mut Rng, text: &mut Vec<u8>) {
    for _ in 0..=random.below(3) {
        let at = random.below(text.len() + 1);
        match random.below(4) {
            0 => text.truncate(at),
            1 if at < text.len() => {
                text.remove(at);
            }
            2 if at < text.len() => text[at] = random.next() as u8,
            _ => {
                let byte = *random.pick(&[
                    b'"', b'\\', b'{', b'}', b'[', b']', b',', b':', b'0', b'-', b'.', b'e', b' ',
                    b'\n', 0, 0xc3, 0xff, b'n',
                ]);
                text.insert(at, byte);
            }
        }
    }
}
