//! A document without the values that were written into it: names, mail addresses or keys that belong in variables are
//! nothing to tell others.

use crate::{
    lexer::{Lexer, TokenKind},
    parser::report::Report,
};

/// A document with `0` for every number and `""` for every text; everything else stays as it is.
pub fn without_literals(source: &str) -> String {
    // Offsets are `u32`.
    if u32::try_from(source.len()).is_err() {
        return String::new();
    }
    let mut lexer = Lexer::new(source, u32::MAX, Report::silent());
    let mut out = String::with_capacity(source.len());
    let mut told = 0;
    loop {
        let token = lexer.next();
        let (start, end) = (token.start as usize, token.end as usize);
        let replacement = match token.kind {
            TokenKind::Eof => break,
            TokenKind::Int | TokenKind::Float => "0",
            TokenKind::String | TokenKind::BlockString => "\"\"",
            _ => continue,
        };
        out.push_str(source.get(told..start).unwrap_or_default());
        out.push_str(replacement);
        told = end;
    }
    out.push_str(source.get(told..).unwrap_or_default());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_texts_are_left_out_wherever_they_are() {
        let text = "query A1($a: [Int] = [1, -2] @x(y: \"\u{e9}\\\" 5\")) { b2(c: {d: [3.5e-1, {e: \"\"\"f \\\"\"\" \"g\" \"\"\"}], g: RED_1}, h: true, i: $a1) ... on L { m(n: \"\") } }";
        assert_eq!(
            without_literals(text),
            "query A1($a: [Int] = [0, 0] @x(y: \"\")) { b2(c: {d: [0, {e: \"\"}], g: RED_1}, h: true, i: $a1) ... on L { m(n: \"\") } }"
        );
    }
}
