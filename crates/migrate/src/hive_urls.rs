//! Hive Router's expressions that choose the URL of a subgraph, as rules of `override_subgraph_urls`.
//!
//! ```text
//! if .request.headers."x-stage" == "canary" { "https://canary.internal/graphql" } else { .default }
//! ```

use ogive_yaml::Node;

use super::nodes::{list, map, set, text};

/// Longest expression that is read, in tokens.
const TOKENS_MAX: usize = 1_000;
/// Most parentheses within one another.
const DEPTH_MAX: usize = 16;

/// Which URL a subgraph has.
pub(crate) struct Choice {
    /// Rules of `override_subgraph_urls`, in order.
    pub(crate) rules: Vec<Node>,
    /// The URL of all other requests; `None` for that of the supergraph.
    pub(crate) otherwise: Option<String>,
}

/// Reads an expression, if it does nothing but choose.
pub(crate) fn choice(expression: &str) -> Option<Choice> {
    let tokens = tokens(expression)?;
    let mut reader = Reader { tokens: &tokens };
    let mut rules = Vec::new();
    while reader.takes("if") {
        let when = reader.any(DEPTH_MAX)?;
        // A rule for `.default` would need the URL of the supergraph.
        let url = reader.block()??;
        let mut rule = map();
        set(&mut rule, "when", when);
        set(&mut rule, "url", text(url));
        rules.push(rule);
        // Without `else` the expression gives nothing, which is an error there.
        if !reader.takes("else") {
            return None;
        }
    }
    let otherwise = if rules.is_empty() {
        reader.url()?
    } else {
        reader.block()?
    };
    reader
        .tokens
        .is_empty()
        .then_some(Choice { rules, otherwise })
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Token {
    /// A path or a keyword.
    Word(String),
    /// A text in quotes.
    Text(String),
    /// An operator or a bracket.
    Sign(&'static str),
}

fn tokens(expression: &str) -> Option<Vec<Token>> {
    const SIGNS: [&str; 8] = ["==", "!=", "&&", "||", "{", "}", "(", ")"];
    let mut out = Vec::new();
    let mut rest = expression.trim_start();
    while !rest.is_empty() {
        if out.len() >= TOKENS_MAX {
            return None;
        }
        if let Some(comment) = rest.strip_prefix('#') {
            rest = comment.split_once('\n').map_or("", |(_, rest)| rest);
        } else if let Some(inner) = rest.strip_prefix('"') {
            let (found, after) = inner.split_once('"')?;
            // Escapes are not read.
            if found.contains('\\') {
                return None;
            }
            out.push(Token::Text(found.to_owned()));
            rest = after;
        } else if let Some(sign) = SIGNS.into_iter().find(|sign| rest.starts_with(sign)) {
            out.push(Token::Sign(sign));
            rest = &rest[sign.len()..];
        } else {
            let (word, after) = word(rest)?;
            out.push(Token::Word(word));
            rest = after;
        }
        rest = rest.trim_start();
    }
    Some(out)
}

/// A path or keyword at the beginning of a text, without the quotes of its last part; and what follows.
fn word(text: &str) -> Option<(String, &str)> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
    let (head, rest) = text.split_at(end);
    if head.is_empty() {
        return None;
    }
    match rest.strip_prefix('"') {
        Some(inner) if head.ends_with('.') => {
            let (part, after) = inner.split_once('"')?;
            Some((format!("{head}{part}"), after))
        }
        _ => Some((head.to_owned(), rest)),
    }
}

struct Reader<'t> {
    tokens: &'t [Token],
}

impl Reader<'_> {
    fn next(&mut self) -> Option<Token> {
        let (first, rest) = self.tokens.split_first()?;
        self.tokens = rest;
        Some(first.clone())
    }
    fn takes(&mut self, wanted: &str) -> bool {
        let is_next = match self.tokens.first() {
            Some(Token::Word(word)) => word == wanted,
            Some(Token::Sign(sign)) => *sign == wanted,
            _ => false,
        };
        if is_next {
            self.tokens = &self.tokens[1..];
        }
        is_next
    }
    /// Conditions of which one has to hold.
    fn any(&mut self, depth: usize) -> Option<Node> {
        let mut found = vec![self.all(depth)?];
        while self.takes("||") {
            found.push(self.all(depth)?);
        }
        Some(joined("any", found))
    }
    /// Conditions that all have to hold.
    fn all(&mut self, depth: usize) -> Option<Node> {
        let mut found = vec![self.comparison(depth)?];
        while self.takes("&&") {
            found.push(self.comparison(depth)?);
        }
        Some(joined("all", found))
    }
    fn comparison(&mut self, depth: usize) -> Option<Node> {
        if self.takes("(") {
            let inner = self.any(depth.checked_sub(1)?)?;
            return self.takes(")").then_some(inner);
        }
        let left = self.next()?;
        let is_equal = self.takes("==");
        if !is_equal && !self.takes("!=") {
            return None;
        }
        let (path, value) = match (left, self.next()?) {
            (Token::Word(path), Token::Text(value)) | (Token::Text(value), Token::Word(path)) => {
                (path, value)
            }
            _ => return None,
        };
        let mut equal = map();
        set(&mut equal, "eq", list(vec![selector(&path)?, text(value)]));
        if is_equal {
            return Some(equal);
        }
        let mut not = map();
        set(&mut not, "not", equal);
        Some(not)
    }
    /// A URL in braces; `None` within is `.default`.
    fn block(&mut self) -> Option<Option<String>> {
        if !self.takes("{") {
            return None;
        }
        let url = self.url()?;
        self.takes("}").then_some(url)
    }
    fn url(&mut self) -> Option<Option<String>> {
        match self.next()? {
            Token::Text(url) => Some(Some(url)),
            Token::Word(word) if word == ".default" => Some(None),
            _ => None,
        }
    }
}

fn joined(word: &str, mut found: Vec<Node>) -> Node {
    if found.len() == 1 {
        return found.remove(0);
    }
    let mut out = map();
    set(&mut out, word, list(found));
    out
}

/// What a path of the request is here.
fn selector(path: &str) -> Option<Node> {
    let of_request = path.strip_prefix(".request.")?;
    let mut out = map();
    let named = |prefix: &str| {
        let name = of_request.strip_prefix(prefix)?;
        (!name.is_empty()).then(|| name.to_owned())
    };
    if let Some(name) = named("headers.") {
        set(&mut out, "request_header", text(name));
    } else if let Some(claim) = named("jwt.claims.") {
        set(&mut out, "jwt_claim", text(claim));
    } else {
        let word = match of_request {
            "operation.name" => "operation_name",
            "operation.type" => "operation_kind",
            _ => return None,
        };
        set(&mut out, word, text("true"));
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write::flow;

    fn shown(expression: &str) -> String {
        let Some(choice) = choice(expression) else {
            return "no".to_owned();
        };
        let rules: Vec<String> = choice.rules.iter().map(flow).collect();
        format!("{} else {:?}", rules.join(" "), choice.otherwise)
    }

    #[test]
    fn choices_by_what_the_request_says() {
        for (expression, expected) in [
            (".default", " else None"),
            ("\"http://a\"", " else Some(\"http://a\")"),
            (
                "# stage\nif .request.headers.\"x-stage\" == \"canary\" {\n \"http://c\" # c\n} else { .default }",
                "{ when: { eq: [{ request_header: x-stage }, canary] }, url: http://c } else None",
            ),
            (
                "if (.request.headers.a != \"1\" && \"2\" == .request.jwt.claims.org.plan) || .request.operation.type == \"mutation\" { \"u\" } \
                 else if .request.operation.name == \"Q\" { \"v\" } else { \"w\" }",
                "{ when: { any: [{ all: [{ not: { eq: [{ request_header: a }, \"1\"] } }, { eq: [{ jwt_claim: org.plan }, \"2\"] }] }, \
                 { eq: [{ operation_kind: \"true\" }, mutation] }] }, url: u } \
                 { when: { eq: [{ operation_name: \"true\" }, Q] }, url: v } else Some(\"w\")",
            ),
        ] {
            assert_eq!(shown(expression), expected, "{expression}");
        }
    }

    #[test]
    fn other_expressions_are_not_read() {
        for expression in [
            "",
            "if .request.headers.a == \"1\" { \"u\" }",
            "if .request.headers.a == \"1\" { .default } else { \"u\" }",
            "if exists(.request.headers.a) { \"u\" } else { .default }",
            "if .request.headers.a == .request.headers.b { \"u\" } else { .default }",
            "if .request.path == \"/\" { \"u\" } else { .default }",
            "\"http://\" + .request.headers.a",
            "if .request.headers.a == \"1\\\"\" { \"u\" } else { .default }",
            "if .request.headers.a == \"1\" { \"u\" } else { .default } more",
            &format!(
                "if {} .request.headers.a == \"1\" {{ \"u\" }} else {{ .default }}",
                "(".repeat(100)
            ),
        ] {
            assert_eq!(shown(expression), "no", "{expression}");
        }
    }
}
