//! Generated documents: the print has exactly the tokens that were meant, and printing it again changes nothing.
//!
//! A document is generated as the list of its canonical tokens plus a text with the same meaning and every
//! liberty the grammar gives: white space, commas, comments, byte order marks, optional separators, escapes.

use crate::{
    Limits, SourceId,
    lexer::{Lexer, TokenKind},
    parse,
    parser::report::Report,
    print_document,
    string_value::string_value,
};
use ogive_testbase::Rng;

#[test]
fn prints_have_the_meant_tokens_and_are_fixpoints() {
    let seeds = std::env::var("OGIVE_SEEDS").map_or(2_000, |n| n.parse().unwrap());
    for seed in 0..seeds {
        let mut generator = Generator::new(seed);
        generator.document();
        let (text, meant) = (generator.text, generator.meant);
        let parsed = parse(text.as_str(), SourceId(0), &Limits::default());
        assert!(
            parsed.errors.is_empty(),
            "seed {seed}: {:?}\n{text}",
            parsed.errors
        );
        let printed = print_document(&parsed.document);
        assert_eq!(
            tokens(&printed),
            meant,
            "seed {seed}\n{text}\n----\n{printed}"
        );
        let again = parse(printed.as_str(), SourceId(0), &Limits::default());
        assert_eq!(
            print_document(&again.document),
            printed,
            "seed {seed}\n{text}"
        );
    }
}

/// The tokens of `text`, strings by kind and value.
fn tokens(text: &str) -> Vec<String> {
    let mut lexer = Lexer::new(text, u32::MAX, Report::silent());
    let mut tokens = Vec::new();
    loop {
        let token = lexer.next();
        let raw = &text[token.start as usize..token.end as usize];
        tokens.push(match token.kind {
            TokenKind::Eof => return tokens,
            TokenKind::String => format!("s{}", string_value(raw, false)),
            TokenKind::BlockString => format!("b{}", string_value(raw, true)),
            _ => raw.to_owned(),
        });
    }
}

struct Generator {
    random: Rng,
    text: String,
    meant: Vec<String>,
    /// Whether the next thing printed in short form would be read as a body.
    bodyless: bool,
}

const NAMES: [&str; 16] = [
    "a",
    "b",
    "Foo",
    "_x1",
    "type",
    "query",
    "on",
    "input",
    "fragment",
    "true",
    "null",
    "extend",
    "implements",
    "repeatable",
    "schema",
    "__typename",
];
const VALUE_TEXTS: [&str; 9] = [
    "0", "-1", "12.5e+3", "true", "null", "ENUM", "on", "type", "false",
];
const IGNORED: [&str; 8] = [
    " ",
    "\n",
    ", ",
    "\r\n",
    "\t",
    " # \"c\" {\n",
    "\u{FEFF} ",
    "\r",
];
const PIECES: [&str; 14] = [
    "a", "word ", " ", "  ", "\t", "\n", "\n  ", "\n\n", "\"", "\\", "é", "😀", "\"\"\"", "#",
];

impl Generator {
    fn new(seed: u64) -> Self {
        Generator {
            random: Rng::new(seed),
            text: String::new(),
            meant: Vec::new(),
            bodyless: false,
        }
    }

    fn below(&mut self, n: usize) -> usize {
        self.random.below(n)
    }

    fn chance(&mut self, one_in: usize) -> bool {
        self.below(one_in) == 0
    }

    /// Writes a token that is not kept.
    fn noise(&mut self, token: &str) {
        let ignored = IGNORED[self.below(IGNORED.len())];
        self.text.push_str(ignored);
        self.text.push_str(token);
    }

    fn token(&mut self, token: &str) {
        let punctuator = token.len() == 1 && !token.as_bytes()[0].is_ascii_alphanumeric();
        if punctuator && self.chance(2) {
            self.text.push_str(token);
        } else {
            self.noise(token);
        }
        self.meant.push(token.to_owned());
    }

    fn words(&mut self, words: &str) {
        for word in words.split(' ') {
            self.token(word);
        }
    }

    fn name(&mut self) {
        let name = NAMES[self.below(NAMES.len())];
        self.token(name);
    }

    fn name_but(&mut self, not: &[&str]) {
        let name = NAMES[self.below(NAMES.len())];
        self.token(if not.contains(&name) { "other" } else { name });
    }

    fn string(&mut self) {
        let value: String = (0..self.below(8))
            .map(|_| PIECES[self.below(PIECES.len())])
            .collect();
        if self.chance(2) {
            let raw = format!("\"\"\"{}\"\"\"", block_text(&value));
            self.meant.push(format!("b{}", string_value(&raw, true)));
            self.noise(&raw);
        } else {
            let raw = format!("\"{}\"", self.quoted_text(&value));
            self.meant.push(format!("s{value}"));
            self.noise(&raw);
        }
    }

    fn quoted_text(&mut self, value: &str) -> String {
        let mut out = String::new();
        for c in value.chars() {
            match c {
                _ if self.chance(6) => out.push_str(&format!("\\u{{{:x}}}", c as u32)),
                '"' | '\\' => out.extend(['\\', c]),
                '\n' => out.push_str("\\n"),
                _ if self.chance(6) => {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        out.push_str(&format!("\\u{unit:04X}"));
                    }
                }
                _ => out.push(c),
            }
        }
        out
    }

    fn description(&mut self) {
        if self.chance(3) {
            self.string();
        }
    }

    fn value(&mut self, depth: usize, constant: bool) {
        match self.below(if depth > 2 { 4 } else { 6 }) {
            0 if !constant => {
                self.token("$");
                self.name();
            }
            1 => self.string(),
            0 | 2 | 3 => {
                let text = VALUE_TEXTS[self.below(VALUE_TEXTS.len())];
                self.token(text);
            }
            4 => {
                self.token("[");
                for i in 0..self.below(4) {
                    if i > 0 {
                        self.noise("");
                    }
                    self.value(depth + 1, constant);
                }
                self.noise("]");
                self.meant.push("]".to_owned());
            }
            _ => {
                self.token("{");
                for _ in 0..self.below(4) {
                    self.name();
                    self.token(":");
                    self.value(depth + 1, constant);
                }
                self.token("}");
            }
        }
    }

    fn arguments(&mut self, constant: bool) {
        if !self.chance(3) {
            return;
        }
        self.token("(");
        for _ in 0..=self.below(3) {
            self.name();
            self.token(":");
            self.value(0, constant);
        }
        self.token(")");
    }

    /// Whether there was any.
    fn directives(&mut self, constant: bool) -> bool {
        let n = if self.chance(3) { 1 + self.below(2) } else { 0 };
        for _ in 0..n {
            self.token("@");
            self.name();
            self.arguments(constant);
        }
        n > 0
    }

    fn type_ref(&mut self) {
        let lists = self.below(3);
        for _ in 0..lists {
            self.token("[");
        }
        self.name();
        for layer in 0..=lists {
            if layer > 0 {
                self.token("]");
            }
            if self.chance(2) {
                self.token("!");
            }
        }
    }

    fn selection_set(&mut self, depth: usize) {
        self.token("{");
        for _ in 0..=self.below(3) {
            match self.below(6) {
                0 => {
                    self.token("...");
                    self.name_but(&["on"]);
                    self.directives(false);
                }
                1 if depth < 4 => {
                    self.token("...");
                    if self.chance(2) {
                        self.token("on");
                        self.name();
                    }
                    self.directives(false);
                    self.selection_set(depth + 1);
                }
                _ => {
                    if self.chance(4) {
                        self.name();
                        self.token(":");
                    }
                    self.name();
                    self.arguments(false);
                    self.directives(false);
                    if depth < 4 && self.chance(3) {
                        self.selection_set(depth + 1);
                    }
                }
            }
        }
        self.token("}");
    }

    fn input_value(&mut self) {
        self.description();
        self.name();
        self.token(":");
        self.type_ref();
        if self.chance(3) {
            self.token("=");
            self.value(0, true);
        }
        self.directives(true);
    }

    fn argument_definitions(&mut self) {
        if self.chance(3) {
            self.token("(");
            for _ in 0..=self.below(3) {
                self.input_value();
            }
            self.token(")");
        }
    }

    fn field(&mut self) {
        self.description();
        self.name();
        self.argument_definitions();
        self.token(":");
        self.type_ref();
        self.directives(true);
    }

    /// Whether there were any.
    fn members(&mut self, needed: bool, member: fn(&mut Self)) -> bool {
        if !needed && self.chance(3) {
            return false;
        }
        self.token("{");
        for _ in 0..=self.below(4) {
            member(self);
        }
        self.token("}");
        true
    }

    fn separated(&mut self, separator: &str, name: fn(&mut Self)) {
        if self.chance(2) {
            self.noise(separator);
        }
        for i in 0..=self.below(3) {
            if i > 0 {
                self.token(separator);
            }
            name(self);
        }
    }

    fn document(&mut self) {
        for _ in 0..=self.below(5) {
            self.definition();
        }
        self.noise("");
    }

    fn definition(&mut self) {
        let bodyless = std::mem::take(&mut self.bodyless);
        match self.below(9) {
            0 | 1 => self.operation(bodyless),
            2 => {
                self.description();
                self.token("fragment");
                self.name_but(&["on"]);
                self.token("on");
                self.name();
                self.directives(false);
                self.selection_set(0);
            }
            3 => {
                self.description();
                self.words("directive @");
                self.name();
                self.argument_definitions();
                if self.chance(2) {
                    self.token("repeatable");
                }
                self.token("on");
                self.separated("|", |g| {
                    let word = *g.random.pick(&["FIELD", "QUERY", "VARIABLE_DEFINITION"]);
                    g.token(word);
                });
            }
            4 => {
                let extend = self.chance(2);
                if extend {
                    self.token("extend");
                } else {
                    self.description();
                }
                self.token("schema");
                let directives = self.directives(true);
                self.bodyless = !self.members(!extend || !directives, |g| {
                    let word = *g.random.pick(&["query", "mutation", "subscription"]);
                    g.token(word);
                    g.token(":");
                    g.name();
                });
            }
            _ => self.type_definition(),
        }
    }

    fn operation(&mut self, after_bodyless: bool) {
        let kind = ["query", "mutation", "subscription"][self.below(3)];
        if self.chance(3) {
            // Short form in print; the text may have the keyword.
            if after_bodyless {
                self.token("query");
            } else if self.chance(2) {
                self.noise("query");
            }
            self.selection_set(0);
            return;
        }
        self.description();
        self.token(kind);
        self.name();
        if self.chance(2) {
            self.token("(");
            for _ in 0..=self.below(2) {
                self.description();
                self.token("$");
                self.name();
                self.token(":");
                self.type_ref();
                if self.chance(3) {
                    self.token("=");
                    self.value(0, true);
                }
                self.directives(true);
            }
            self.token(")");
        }
        self.directives(false);
        self.selection_set(0);
    }

    fn type_definition(&mut self) {
        let extend = self.chance(3);
        if extend {
            self.token("extend");
        } else {
            self.description();
        }
        match self.below(6) {
            0 => {
                self.token("scalar");
                self.name();
                if !self.directives(true) && extend {
                    self.words("@ d");
                }
            }
            1 => {
                self.token("union");
                self.name();
                let some = self.directives(true);
                if extend && !some || self.chance(2) {
                    self.token("=");
                    self.separated("|", Self::name);
                }
            }
            2 => {
                self.token("enum");
                self.name();
                let some = self.directives(true);
                self.bodyless = !self.members(extend && !some, |g| {
                    g.description();
                    g.name_but(&["true", "false", "null"]);
                    g.directives(true);
                });
            }
            3 => {
                self.token("input");
                self.name();
                let some = self.directives(true);
                self.bodyless = !self.members(extend && !some, Self::input_value);
            }
            kind => {
                self.token(if kind == 4 { "type" } else { "interface" });
                self.name();
                let mut some = self.chance(2);
                if some {
                    self.token("implements");
                    self.separated("&", Self::name);
                }
                some |= self.directives(true);
                self.bodyless = !self.members(extend && !some, Self::field);
            }
        }
    }
}

/// `value` between the quotes of a block string.
fn block_text(value: &str) -> String {
    let mut text = value.replace("\"\"\"", "\\\"\"\"");
    if text.ends_with(['"', '\\']) {
        text.push('\n');
    }
    text
}
