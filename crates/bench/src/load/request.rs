//! Requests: a template with places for a fresh alias, a unique token and drawn numbers.
//!
//! All places have fixed widths, so every right answer has the same length and a different length alone makes an
//! answer suspicious.

use std::{collections::BTreeMap, net::SocketAddr};

use serde_json::{Map, Value, json};

use crate::model::{Authorization, FRESH, Fresh};

/// Digits of an alias and a token.
const DIGITS: usize = 9;
/// Marks places inside the written body; GraphQL and JSON leave it alone.
const MARK: &str = "@@";

/// Makes requests.
#[derive(Clone, Debug)]
pub struct RequestMaker {
    address: SocketAddr,
    method: &'static str,
    path: String,
    authorization: Authorization,
    keep_alive: bool,
    body: Vec<Piece>,
    /// The operation without a fresh alias, for tools that send one request only.
    pub plain: String,
}

#[derive(Clone, Debug, PartialEq)]
enum Piece {
    Text(String),
    Fresh,
    /// A number between two, written as wide as the second.
    Draw(u64, u64),
}

/// A request in bytes.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// All of it.
    pub bytes: Vec<u8>,
}

/// What a request is made of.
#[derive(Clone, Debug)]
pub struct Parts<'a> {
    /// Where to.
    pub address: SocketAddr,
    /// Path to POST to.
    pub path: &'a str,
    /// Path to GET instead.
    pub get: Option<&'a str>,
    /// The operation as in its file.
    pub operation: &'a str,
    /// Variables with their placeholders.
    pub variables: &'a BTreeMap<String, String>,
    /// Whether a fresh alias goes in.
    pub fresh: Fresh,
    /// The token.
    pub authorization: Authorization,
    /// Whether the connection is used again.
    pub keep_alive: bool,
}

impl RequestMaker {
    /// Prepares requests.
    pub fn new(parts: &Parts<'_>) -> RequestMaker {
        let alias = match parts.fresh {
            Fresh::Alias => format!("a{MARK}fresh{MARK}: __typename"),
            Fresh::No => String::new(),
        };
        // One line without indentation, as clients send it.
        let written = |alias: &str| {
            let text = parts.operation.replace(FRESH, alias);
            text.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        let mut variables = Map::new();
        for (name, text) in parts.variables {
            let text = text
                .replace('{', &format!("{MARK}draw "))
                .replace('}', MARK);
            variables.insert(name.clone(), Value::String(text));
        }
        let body = |alias: &str| {
            let mut body = json!({ "query": written(alias) });
            if !variables.is_empty() {
                body["variables"] = Value::Object(variables.clone());
            }
            body.to_string()
        };
        let mut maker = RequestMaker {
            address: parts.address,
            method: if parts.get.is_some() { "GET" } else { "POST" },
            path: parts.get.unwrap_or(parts.path).to_owned(),
            authorization: parts.authorization,
            keep_alive: parts.keep_alive,
            body: pieces(&body(&alias)),
            plain: String::new(),
        };
        let mut plain = maker.clone();
        plain.body = pieces(&body(""));
        maker.plain = String::from_utf8_lossy(&plain.body(0)).into_owned();
        maker
    }

    /// Whether requests differ.
    pub fn varies(&self) -> bool {
        self.authorization == Authorization::Unique
            || self.body.iter().any(|p| !matches!(p, Piece::Text(_)))
    }

    /// The body of the `n`th request.
    pub fn body(&self, n: u64) -> Vec<u8> {
        let mut out = Vec::with_capacity(1024);
        for piece in &self.body {
            match piece {
                Piece::Text(text) => out.extend_from_slice(text.as_bytes()),
                Piece::Fresh => digits(&mut out, n, DIGITS),
                Piece::Draw(low, high) => {
                    let drawn = low + mix(n) % (high - low + 1);
                    digits(&mut out, drawn, high.to_string().len());
                }
            }
        }
        out
    }

    /// The token of the `n`th request.
    pub fn token(&self, n: u64) -> Option<String> {
        let n = match self.authorization {
            Authorization::None => return None,
            Authorization::Constant => 0,
            Authorization::Unique => n,
        };
        let mut token = b"Bearer t".to_vec();
        digits(&mut token, n, DIGITS);
        String::from_utf8(token).ok()
    }

    /// The `n`th request.
    pub fn make(&self, n: u64) -> Request {
        let mut bytes = Vec::with_capacity(2048);
        let body = if self.method == "GET" {
            Vec::new()
        } else {
            self.body(n)
        };
        let head = format!(
            "{} {} HTTP/1.1\r\nhost: {}\r\naccept: application/json\r\n",
            self.method, self.path, self.address
        );
        bytes.extend_from_slice(head.as_bytes());
        if let Some(token) = self.token(n) {
            bytes.extend_from_slice(b"authorization: ");
            bytes.extend_from_slice(token.as_bytes());
            bytes.extend_from_slice(b"\r\n");
        }
        if !self.keep_alive {
            bytes.extend_from_slice(b"connection: close\r\n");
        }
        if self.method == "POST" {
            let length = format!(
                "content-type: application/json\r\ncontent-length: {}\r\n",
                body.len()
            );
            bytes.extend_from_slice(length.as_bytes());
        }
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(&body);
        Request { bytes }
    }

    /// The body as a JavaScript expression over `n` (a number) with `pad(n, width)` and `draw(low, high)` in scope.
    pub(crate) fn script(&self) -> String {
        let pieces = self.body.iter().map(|piece| match piece {
            Piece::Text(text) => Value::String(text.clone()).to_string(),
            Piece::Fresh => format!("pad(n, {DIGITS})"),
            Piece::Draw(low, high) => {
                format!("pad(draw({low}, {high}), {})", high.to_string().len())
            }
        });
        pieces.collect::<Vec<_>>().join(" + ")
    }

    /// The same for Lua.
    pub(crate) fn lua(&self) -> String {
        let pieces = self.body.iter().map(|piece| match piece {
            // A long bracket of level 3 cannot end inside GraphQL or JSON.
            Piece::Text(text) => format!("[===[{text}]===]"),
            Piece::Fresh => format!("string.format('%0{DIGITS}d', n)"),
            Piece::Draw(low, high) => {
                format!(
                    "string.format('%0{}d', math.random({low}, {high}))",
                    high.to_string().len()
                )
            }
        });
        pieces.collect::<Vec<_>>().join(" .. ")
    }

    pub(crate) fn authorization(&self) -> Authorization {
        self.authorization
    }
    pub(crate) fn url(&self) -> String {
        format!("http://{}{}", self.address, self.path)
    }
    pub(crate) fn method(&self) -> &'static str {
        self.method
    }
    pub(crate) fn path(&self) -> &str {
        &self.path
    }
}

fn pieces(text: &str) -> Vec<Piece> {
    let mut out = Vec::new();
    for (i, part) in text.split(MARK).enumerate() {
        let range = part.strip_prefix("draw ").and_then(|r| r.split_once(".."));
        let range = range.and_then(|(low, high)| Some((low.parse().ok()?, high.parse().ok()?)));
        out.push(match (i % 2, range) {
            (1, Some((low, high))) if low <= high => Piece::Draw(low, high),
            (1, _) if part == "fresh" => Piece::Fresh,
            _ => Piece::Text(part.to_owned()),
        });
    }
    out
}

fn digits(out: &mut Vec<u8>, n: u64, width: usize) {
    let text = format!("{n:0width$}");
    // More digits than fit: the last ones differ fastest.
    out.extend_from_slice(&text.as_bytes()[text.len() - width..]);
}

/// SplitMix64's finaliser: neighbouring numbers give unrelated draws, the same on every machine.
pub(crate) fn mix(n: u64) -> u64 {
    let mut z = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn maker(fresh: Fresh, authorization: Authorization) -> RequestMaker {
        let variables = BTreeMap::from([("userId".to_owned(), "user-{0..999}".to_owned())]);
        RequestMaker::new(&Parts {
            address: ([127, 0, 0, 1], 80).into(),
            path: "/graphql",
            get: None,
            operation: "query Q($userId: ID!) {\n  # fresh alias\n  user(id: $userId) { id }\n}\n",
            variables: &variables,
            fresh,
            authorization,
            keep_alive: true,
        })
    }

    #[test]
    fn every_request_is_new_and_as_long_as_the_last() {
        let maker = maker(Fresh::Alias, Authorization::Unique);
        let texts: Vec<String> = (0..2000)
            .map(|n| String::from_utf8(maker.make(n).bytes).unwrap())
            .collect();
        assert!(texts.iter().all(|t| t.len() == texts[0].len()));
        assert_ne!(texts[0], texts[1]);
        assert!(
            texts[7].contains("a000000007: __typename user(id: $userId)"),
            "{}",
            texts[7]
        );
        assert!(texts[7].contains("authorization: Bearer t000000007\r\n"));
        let body: Value = serde_json::from_slice(&maker.body(7)).unwrap();
        let user = body["variables"]["userId"].as_str().unwrap();
        assert_eq!(user.len(), "user-123".len());
    }

    #[test]
    fn a_repeated_request_stays_the_same_but_for_its_draws() {
        let maker = maker(Fresh::No, Authorization::Constant);
        let first = String::from_utf8(maker.body(1)).unwrap();
        assert!(
            first.contains("{\"query\":\"query Q($userId: ID!) { user(id: $userId) { id } }\""),
            "{first}"
        );
        assert_eq!(maker.token(1), maker.token(2));
        assert!(maker.varies());
    }
}
