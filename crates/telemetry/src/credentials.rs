//! Texts of others without the credentials in them.

use std::borrow::Cow;

/// Names behind which credentials stand.
const CREDENTIALS: [&str; 11] = [
    "authorization",
    "cookie",
    "password",
    "passwd",
    "secret",
    "token",
    "api-key",
    "api_key",
    "apikey",
    "bearer",
    "basic",
];
const REDACTED: &str = "[redacted]";

/// The text, with `[redacted]` for values behind such names, and for JSON Web Tokens.
pub(crate) fn without_credentials(text: &str) -> String {
    let lower = text.to_ascii_lowercase();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let value = value_behind(&lower, at).or_else(|| json_web_token(text, at));
        match value {
            Some((from, to)) => {
                out.push_str(&text[at..from]);
                out.push_str(REDACTED);
                at = to;
            }
            None => {
                out.push(c);
                at += c.len_utf8();
            }
        }
    }
    out
}

/// Where the value of a credential stands whose name begins at `at`.
fn value_behind(lower: &str, at: usize) -> Option<(usize, usize)> {
    let rest = &lower[at..];
    let name = CREDENTIALS.iter().find(|name| rest.starts_with(**name))?;
    let mut from = at + name.len();
    let is_scheme = matches!(*name, "bearer" | "basic");
    let mut is_value = is_scheme;
    let mut has_gap = false;
    for byte in lower[from..].bytes() {
        match byte {
            b':' | b'=' => is_value = true,
            b' ' | b'"' | b'\'' | b'\\' => has_gap = true,
            _ => break,
        }
        from += 1;
    }
    for scheme in ["bearer ", "basic "] {
        if is_value && lower[from..].starts_with(scheme) {
            from += scheme.len();
        }
    }
    // Cookies are several values on a line.
    let ends = |c: char| match *name {
        "cookie" => matches!(c, '\n' | '\r' | '<' | '"'),
        _ => c.is_whitespace() || matches!(c, ',' | ';' | '<' | '&' | '"' | '\'' | '}' | ')'),
    };
    if !is_value {
        return None;
    }
    let len = lower[from..].find(ends).unwrap_or(lower.len() - from);
    // `basic` and `bearer` are words, too.
    let is_value = !is_scheme || (has_gap && len >= 8);
    (is_value && len > 0).then_some((from, from + len))
}

/// The text, with `[redacted]` for JSON Web Tokens.
pub(crate) fn without_tokens(text: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let mut from = 0;
    for (at, _) in text.match_indices("eyJ") {
        if at < from {
            continue;
        }
        if let Some((_, to)) = json_web_token(text, at) {
            out.push_str(&text[from..at]);
            out.push_str(REDACTED);
            from = to;
        }
    }
    if from == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[from..]);
    Cow::Owned(out)
}

fn json_web_token(text: &str, at: usize) -> Option<(usize, usize)> {
    // Looked at from every byte, so its end is not looked for unless it begins here.
    let rest = text[at..].strip_prefix("eyJ")?;
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let len = "eyJ".len() + rest.find(|c| !is_part(c)).unwrap_or(rest.len());
    (len >= 20).then_some((at, at + len))
}
