//! A document that stands within another text: what it says when the program runs, and where each of its bytes is.

use ogive_base::Span;

/// A document in a file of code.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Embedded {
    /// What it says: escapes are resolved, and expressions in it are blank.
    pub text: String,
    /// The expressions in it.
    pub substitutions: Vec<Substitution>,
    /// Whether it is only a document if it looks like one: what was called may be another function of that name.
    pub doubtful: bool,
    /// Where bytes of the text are in the file: from that byte on, one by one.
    places: Vec<(u32, u32)>,
}

/// An expression in a document.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Substitution {
    /// Where it would be in the text.
    pub at: u32,
    /// Where it is in the file.
    pub span: Span,
}

impl Embedded {
    /// A document that is a whole file.
    pub fn whole(text: &str) -> Self {
        Embedded {
            text: text.to_owned(),
            places: vec![(0, 0)],
            ..Embedded::default()
        }
    }
    /// Nothing yet.
    pub(crate) fn maybe(doubtful: bool) -> Self {
        Embedded {
            doubtful,
            ..Embedded::default()
        }
    }
    /// Where a byte of the text is in the file.
    pub fn place(&self, at: u32) -> u32 {
        let after = self.places.partition_point(|(text, _)| *text <= at);
        match after.checked_sub(1).and_then(|i| self.places.get(i)) {
            Some((text, file)) => file + (at - text),
            None => 0,
        }
    }
    /// Where a part of the text is in the file.
    pub fn span(&self, span: Span) -> Span {
        let start = self.place(span.start);
        // The last byte is in the file, whatever follows it.
        let end = self.place(span.end.saturating_sub(1).max(span.start)) + 1;
        Span::new(start, end.max(start))
    }
    /// What is next is there in the file.
    fn note(&mut self, file: usize) {
        let next = (self.text.len() as u32, file as u32);
        let goes_on = self
            .places
            .last()
            .is_some_and(|(text, place)| next.0.wrapping_sub(*text) == next.1.wrapping_sub(*place));
        if !goes_on {
            self.places.push(next);
        }
    }
    /// Adds what is in the file as it is.
    pub(crate) fn push(&mut self, part: &str, file: usize) {
        self.note(file);
        self.text.push_str(part);
    }
    /// Adds what an escape stands for, which is there in the file.
    pub(crate) fn push_escaped(&mut self, meant: char, file: usize) {
        self.note(file);
        self.text.push(meant);
    }
    /// Adds an expression.
    pub(crate) fn push_substitution(&mut self, span: Span) {
        self.note(span.start as usize);
        let at = self.text.len() as u32;
        self.substitutions.push(Substitution { at, span });
        self.text.push('\n');
    }
    /// The same in a file of which this was a part that begins there.
    pub(crate) fn moved(mut self, by: u32) -> Self {
        for (_, file) in &mut self.places {
            *file += by;
        }
        for substitution in &mut self.substitutions {
            substitution.span = Span::new(substitution.span.start + by, substitution.span.end + by);
        }
        self
    }
    /// The expressions that stand within a definition, where they could be anything: between definitions they can only be
    /// documents of fragments.
    pub fn substitutions_within(&self) -> Vec<Substitution> {
        let mut substitutions = self.substitutions.iter().copied().peekable();
        let mut within = Vec::new();
        let bytes = self.text.as_bytes();
        let (mut at, mut depth) = (0, 0usize);
        let mut between = true;
        while at < bytes.len() && substitutions.peek().is_some() {
            while let Some(substitution) =
                substitutions.next_if(|substitution| substitution.at as usize <= at)
            {
                if depth > 0 || !between {
                    within.push(substitution);
                }
            }
            let rest = &self.text[at..];
            at += match bytes[at] {
                b'#' => rest.find('\n').unwrap_or(rest.len()),
                b'"' => string_length(rest),
                byte => {
                    match byte {
                        b'{' | b'(' | b'[' => depth += 1,
                        b'}' | b')' | b']' => depth = depth.saturating_sub(1),
                        _ => {}
                    }
                    match byte {
                        // What ends with this brace may be a definition, or the object of a default.
                        b'}' => between = depth == 0,
                        byte if byte.is_ascii_whitespace() || byte == b',' => {}
                        _ => between = false,
                    }
                    rest.chars().next().map_or(1, char::len_utf8)
                }
            };
        }
        within.extend(substitutions.filter(|_| depth > 0 || !between));
        within
    }
}

/// Bytes of a GraphQL string at the beginning of a text.
fn string_length(text: &str) -> usize {
    let is_block = text.starts_with("\"\"\"");
    let (open, close) = if is_block { (3, "\"\"\"") } else { (1, "\"") };
    let mut at = open;
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with(close) {
            return at + close.len();
        }
        let first = rest.chars().next();
        if !is_block && first == Some('\n') {
            return at;
        }
        let escaped = match (first, is_block) {
            (Some('\\'), false) => rest[1..].chars().next().map_or(0, char::len_utf8),
            (Some('\\'), true) if rest.starts_with("\\\"\"\"") => 3,
            _ => 0,
        };
        at += first.map_or(1, char::len_utf8) + escaped;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_found_in_the_file() {
        let mut embedded = Embedded::default();
        embedded.push("ab", 10);
        embedded.push_escaped('`', 12);
        embedded.push("cd", 14);
        embedded.push_substitution(Span::new(16, 21));
        embedded.push("e", 21);
        assert_eq!(embedded.text, "ab`cd\ne");
        let places: Vec<u32> = (0..7).map(|at| embedded.place(at)).collect();
        assert_eq!(places, [10, 11, 12, 14, 15, 16, 21]);
        assert_eq!(embedded.span(Span::new(1, 4)), Span::new(11, 15));
    }

    #[test]
    fn only_what_stands_between_definitions_can_be_fragments() {
        let within = |parts: &[&str]| {
            let mut embedded = Embedded::default();
            for (i, part) in parts.iter().enumerate() {
                if i > 0 {
                    embedded.push_substitution(Span::default());
                }
                embedded.push(part, 0);
            }
            embedded.substitutions_within().len()
        };
        assert_eq!(within(&["", "{a}", "", ""]), 0);
        assert_eq!(within(&["query A($x: I = {a: \"}\"}) {a} # }\n", ""]), 0);
        assert_eq!(within(&["{a ", "}"]), 1);
        assert_eq!(within(&["query ", "{a}"]), 1);
        assert_eq!(within(&["{a(b: \"", "\") c(d: \"\"\"}", "\"\"\")}"]), 2);
        assert_eq!(within(&["query A($b: ", ") {a}", "query B ", "{a}"]), 2);
    }
}
