//! Writing JSON.

/// Appends `text` as a JSON string, quotes included.
pub fn write_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    write_string_content(out, text);
    out.push(b'"');
}

/// Appends `text` with everything escaped that a JSON string needs escaped, without quotes.
pub fn write_string_content(out: &mut Vec<u8>, text: &str) {
    let bytes = text.as_bytes();
    let mut copied = 0;
    for (at, byte) in bytes.iter().enumerate() {
        let short = match byte {
            b'"' => b'"',
            b'\\' => b'\\',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            0x08 => b'b',
            0x0c => b'f',
            0..0x20 => b'u',
            _ => continue,
        };
        out.extend_from_slice(&bytes[copied..at]);
        copied = at + 1;
        out.push(b'\\');
        out.push(short);
        if short == b'u' {
            const DIGITS: &[u8; 16] = b"0123456789abcdef";
            out.extend_from_slice(b"00");
            out.push(DIGITS[usize::from(byte >> 4)]);
            out.push(DIGITS[usize::from(byte & 15)]);
        }
    }
    out.extend_from_slice(&bytes[copied..]);
}

/// Writes a JSON text piece by piece, compact or indented by two spaces. Puts commas, colons and line breaks itself;
/// the caller opens and closes containers in pairs.
#[derive(Debug, Default)]
pub struct Writer {
    out: Vec<u8>,
    pretty: bool,
    depth: usize,
    /// The innermost container has a value already.
    follows: bool,
    /// A key has just been written.
    after_key: bool,
}

impl Writer {
    /// Writes everything on one line.
    pub fn compact() -> Self {
        Writer::default()
    }
    /// Writes one member or item a line.
    pub fn pretty() -> Self {
        Writer {
            pretty: true,
            ..Writer::default()
        }
    }
    /// The text written so far.
    pub fn into_string(self) -> String {
        // Only whole strings and ASCII are ever appended; raw values come from `&str`.
        String::from_utf8(self.out)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
    }
    fn value(&mut self) {
        if self.after_key {
            self.after_key = false;
            return;
        }
        if self.follows {
            self.out.push(b',');
        }
        self.line();
        self.follows = true;
    }
    fn line(&mut self) {
        if self.pretty && self.depth > 0 {
            self.out.push(b'\n');
            self.out.resize(self.out.len() + 2 * self.depth, b' ');
        }
    }
    fn open(&mut self, bracket: u8) {
        self.value();
        self.out.push(bracket);
        self.depth += 1;
        self.follows = false;
    }
    fn close(&mut self, bracket: u8) {
        self.depth = self.depth.saturating_sub(1);
        if self.follows {
            if self.depth > 0 {
                self.line();
            } else if self.pretty {
                self.out.push(b'\n');
            }
        }
        self.out.push(bracket);
        self.follows = true;
    }
    /// `{`
    pub fn begin_object(&mut self) {
        self.open(b'{');
    }
    /// `}`
    pub fn end_object(&mut self) {
        self.close(b'}');
    }
    /// `[`
    pub fn begin_array(&mut self) {
        self.open(b'[');
    }
    /// `]`
    pub fn end_array(&mut self) {
        self.close(b']');
    }
    /// The key of the next value.
    pub fn key(&mut self, key: &str) {
        self.value();
        write_string(&mut self.out, key);
        self.out
            .extend_from_slice(if self.pretty { b": " } else { b":" });
        self.after_key = true;
    }
    /// A string.
    pub fn string(&mut self, text: &str) {
        self.value();
        write_string(&mut self.out, text);
    }
    /// An integer.
    pub fn integer(&mut self, number: i64) {
        self.raw(&number.to_string());
    }
    /// `true` or `false`.
    pub fn boolean(&mut self, boolean: bool) {
        self.raw(if boolean { "true" } else { "false" });
    }
    /// `null`
    pub fn null(&mut self) {
        self.raw("null");
    }
    /// A value that is JSON already.
    pub fn raw(&mut self, json: &str) {
        self.value();
        self.out.extend_from_slice(json.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_escaped_like_everywhere_else() {
        let text = "a\"b\\c\n\r\t\u{8}\u{c}\u{1}\u{1f}\u{7f}é😀/";
        let mut out = Vec::new();
        write_string(&mut out, text);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            serde_json::to_string(text).unwrap()
        );
    }

    #[test]
    fn writer_nests() {
        for (mut writer, expected) in [
            (
                Writer::compact(),
                r#"{"a":[1,"x",[],{}],"b":{"c":null},"d":true}"#,
            ),
            (
                Writer::pretty(),
                "{\n  \"a\": [\n    1,\n    \"x\",\n    [],\n    {}\n  ],\n  \"b\": {\n    \"c\": null\n  },\n  \"d\": true\n}",
            ),
        ] {
            writer.begin_object();
            writer.key("a");
            writer.begin_array();
            writer.integer(1);
            writer.string("x");
            writer.begin_array();
            writer.end_array();
            writer.begin_object();
            writer.end_object();
            writer.end_array();
            writer.key("b");
            writer.begin_object();
            writer.key("c");
            writer.null();
            writer.end_object();
            writer.key("d");
            writer.boolean(true);
            writer.end_object();
            assert_eq!(writer.into_string(), expected);
        }
    }
}
