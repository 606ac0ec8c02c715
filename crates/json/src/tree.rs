//! A JSON text as a flat table of its values, for whoever has to look at values in another order than they come.
//!
//! A value takes one row of twelve bytes, a member one more for its key; texts and numbers stay where they are in the
//! text. So a table is at most [`BYTES_PER_TEXT_BYTE`] times as large as its text, whatever the text: a tree of maps and
//! vectors takes seventy times as much for `[{"":0},{"":0}]`. One allocation for all, and nothing recurses.
//!
//! Invariants: the rows of a value follow its own, `next` is the row behind the last of them; the text of every row was
//! scanned, so it is JSON.

use std::borrow::Cow;

use crate::{
    error::ScanError,
    scan::{Kind, Scanner},
    text::JsonStr,
};

/// Most bytes of table per byte of text: a number and a comma are a row.
pub const BYTES_PER_TEXT_BYTE: usize = size_of::<Row>() / 2;

/// Rows that there is room for at first.
const ROWS: usize = 16;
/// Texts from this length on are looked through for how many rows they need.
const COUNTED: usize = 4 << 10;

/// A value, or the key of a member.
#[derive(Clone, Copy, Debug)]
struct Row {
    /// Its text, quotes included.
    start: u32,
    end: u32,
    /// The row behind its last one.
    next: u32,
}

/// One JSON text, read.
#[derive(Debug)]
pub struct Tree<'a> {
    text: &'a [u8],
    rows: Vec<Row>,
    /// Most objects and lists open at a time.
    depth: usize,
}

/// One value of a tree.
#[derive(Clone, Copy, Debug)]
pub struct Node<'t> {
    tree: &'t Tree<'t>,
    at: usize,
}

/// About as many rows as a text needs, never too few.
fn rows_of(text: &[u8]) -> usize {
    if text.len() < COUNTED {
        return ROWS;
    }
    // A value has one of these before it, or behind its key; in texts they count for nothing, which is rare.
    let begins = text
        .iter()
        .filter(|b| matches!(b, b',' | b':' | b'[' | b'{'));
    // A text of nothing but these is no JSON.
    begins.count().min(text.len() / 2) + ROWS
}

impl<'a> Tree<'a> {
    /// Reads a text with at most `depth_max` objects and lists open at a time. Texts of 4 GiB and more are too deep.
    pub fn read(text: &'a [u8], depth_max: u32) -> Result<Self, ScanError> {
        let mut scanner = Scanner::with_depth_max(text, depth_max);
        if u32::try_from(text.len()).is_err() {
            return Err(scanner.too_deep());
        }
        let mut rows: Vec<Row> = Vec::with_capacity(rows_of(text));
        // Rows of collections that are still open.
        let mut open: Vec<(u32, bool)> = Vec::new();
        let mut depth = 0;
        loop {
            let kind = scanner.peek()?;
            let (at, start) = (rows.len() as u32, scanner.position() as u32);
            rows.push(Row {
                start,
                end: start,
                next: at + 1,
            });
            let entered = match kind {
                Kind::Object if scanner.begin_object()? => {
                    open.push((at, true));
                    push_key(&mut scanner, &mut rows)?;
                    true
                }
                Kind::Array if scanner.begin_array()? => {
                    open.push((at, false));
                    true
                }
                Kind::Object | Kind::Array => false,
                _ => {
                    scanner.scalar()?;
                    false
                }
            };
            depth = depth.max(open.len());
            if entered {
                continue;
            }
            rows[at as usize].end = scanner.position() as u32;
            // Close what ends with it.
            loop {
                let Some((at, is_object)) = open.last().copied() else {
                    scanner.finish()?;
                    return Ok(Tree { text, rows, depth });
                };
                let more = if is_object {
                    scanner.next_member()?
                } else {
                    scanner.next_item()?
                };
                if more {
                    if is_object {
                        push_key(&mut scanner, &mut rows)?;
                    }
                    break;
                }
                open.pop();
                let next = rows.len() as u32;
                let row = &mut rows[at as usize];
                (row.end, row.next) = (scanner.position() as u32, next);
            }
        }
    }

    /// The value.
    pub fn root(&self) -> Node<'_> {
        Node { tree: self, at: 0 }
    }
    /// Most objects and lists open at a time, empty ones not counted.
    pub fn depth(&self) -> usize {
        self.depth
    }
    /// Bytes of the table.
    pub fn heap_bytes(&self) -> usize {
        self.rows.capacity() * size_of::<Row>()
    }
}

fn push_key(scanner: &mut Scanner<'_>, rows: &mut Vec<Row>) -> Result<(), ScanError> {
    scanner.peek()?;
    let start = scanner.position() as u32;
    let key = scanner.key()?;
    let next = rows.len() as u32 + 1;
    rows.push(Row {
        start,
        end: start + key.raw().len() as u32 + 2,
        next,
    });
    Ok(())
}

impl<'t> Node<'t> {
    /// The tree it is of.
    pub fn tree(self) -> &'t Tree<'t> {
        self.tree
    }
    fn row(self) -> Row {
        self.tree.rows[self.at]
    }
    /// Its text, as it is written.
    pub fn raw(self) -> &'t [u8] {
        let Row { start, end, .. } = self.row();
        &self.tree.text[start as usize..end as usize]
    }
    /// Where its text stands.
    pub fn range(self) -> std::ops::Range<usize> {
        let Row { start, end, .. } = self.row();
        start as usize..end as usize
    }
    /// What it is.
    pub fn kind(self) -> Kind {
        match self.raw().first() {
            Some(b'{') => Kind::Object,
            Some(b'[') => Kind::Array,
            Some(b'"') => Kind::String,
            Some(b't') => Kind::True,
            Some(b'f') => Kind::False,
            Some(b'n') => Kind::Null,
            _ => Kind::Number,
        }
    }
    /// Whether it is null.
    pub fn is_null(self) -> bool {
        self.kind() == Kind::Null
    }
    /// The text that a string denotes; `None` of anything else.
    pub fn string(self) -> Option<Cow<'t, str>> {
        (self.kind() == Kind::String).then(|| self.text().unescape())
    }
    /// The digits of a number; `None` of anything else.
    pub fn number(self) -> Option<&'t str> {
        let digits = str::from_utf8(self.raw()).ok();
        digits.filter(|_| self.kind() == Kind::Number)
    }
    fn text(self) -> JsonStr<'t> {
        let raw = self.raw();
        let inner = &raw[1..raw.len() - 1];
        JsonStr::new(inner, inner.contains(&b'\\'))
    }
    /// The items of a list; none of anything else.
    pub fn items(self) -> Items<'t> {
        Items {
            tree: self.tree,
            at: self.at + 1,
            end: match self.kind() {
                Kind::Array => self.row().next as usize,
                _ => self.at + 1,
            },
        }
    }
    /// The members of an object, in order, those with equal keys one by one; none of anything else.
    pub fn members(self) -> Members<'t> {
        Members(Items {
            tree: self.tree,
            at: self.at + 1,
            end: match self.kind() {
                Kind::Object => self.row().next as usize,
                _ => self.at + 1,
            },
        })
    }
    /// The last member of an object with that key.
    pub fn get(self, key: &str) -> Option<Node<'t>> {
        let found = self.members().filter(|(name, _)| name.is(key));
        found.last().map(|(_, value)| value)
    }
}

/// Items of a list.
#[derive(Clone, Debug)]
pub struct Items<'t> {
    tree: &'t Tree<'t>,
    at: usize,
    end: usize,
}

impl<'t> Iterator for Items<'t> {
    type Item = Node<'t>;

    fn next(&mut self) -> Option<Node<'t>> {
        let node = Node {
            tree: self.tree,
            at: self.at,
        };
        (self.at < self.end).then(|| {
            self.at = node.row().next as usize;
            node
        })
    }
}

/// Members of an object.
#[derive(Clone, Debug)]
pub struct Members<'t>(Items<'t>);

impl<'t> Iterator for Members<'t> {
    type Item = (JsonStr<'t>, Node<'t>);

    fn next(&mut self) -> Option<Self::Item> {
        let key = self.0.next()?;
        Some((key.text(), self.0.next()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Tree<'_> {
        Tree::read(text.as_bytes(), 128).unwrap()
    }

    #[test]
    fn values_are_found_where_they_stand() {
        let tree = read(r#" {"a": [1, -2.50, {"b": null}, [], {}], "d\u0065": "x\n", "e": true} "#);
        let root = tree.root();
        assert_eq!(root.kind(), Kind::Object);
        assert_eq!(root.members().count(), 3);
        let list = root.get("a").unwrap();
        let items: Vec<&[u8]> = list.items().map(Node::raw).collect();
        assert_eq!(
            items,
            [&b"1"[..], b"-2.50", br#"{"b": null}"#, b"[]", b"{}"]
        );
        assert_eq!(list.items().nth(1).unwrap().number(), Some("-2.50"));
        assert_eq!(list.items().nth(4).unwrap().members().count(), 0);
        assert_eq!(root.get("de").unwrap().string().unwrap(), "x\n");
        assert_eq!(root.get("e").unwrap().kind(), Kind::True);
        assert!(root.get("nope").is_none());
        assert!(list.get("a").is_none() && root.items().next().is_none());
    }

    #[test]
    fn of_members_with_equal_keys_the_last_one_counts() {
        let tree = read(r#"{"a":1,"\u0061":2}"#);
        assert_eq!(tree.root().get("a").unwrap().raw(), b"2");
    }

    #[test]
    fn what_is_no_json_is_refused() {
        for text in [
            "",
            "{",
            "[1,]",
            "{\"a\" 1}",
            "1 2",
            "{\"a\":1}}",
            "nul",
            "[1",
        ] {
            assert!(Tree::read(text.as_bytes(), 128).is_err(), "{text}");
        }
        assert!(Tree::read("[".repeat(129).as_bytes(), 128).is_err());
        let nested = "[".repeat(128) + &"]".repeat(128);
        assert!(Tree::read(nested.as_bytes(), 128).is_ok());
    }

    #[test]
    fn tables_are_no_larger_than_promised_and_never_grow() {
        let n = 20_000;
        for item in [
            "0",
            "{\"\":0}",
            "[]",
            "{}",
            "\"\"",
            "[[[[0]]]]",
            "{\"\":{\"\":{}}}",
            "\",,,,\"",
        ] {
            let text = format!("[{}]", vec![item; n].join(","));
            let tree = read(&text);
            let most = text.len() * BYTES_PER_TEXT_BYTE + ROWS * size_of::<Row>();
            assert!(
                tree.heap_bytes() <= most,
                "{item}: {} of {most}",
                tree.heap_bytes()
            );
            assert!(
                tree.rows.capacity() <= rows_of(text.as_bytes()),
                "{item}: it has grown"
            );
        }
    }
}
