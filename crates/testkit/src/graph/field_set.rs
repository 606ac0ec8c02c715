//! Field sets as in `@key(fields: "id org { id }")`: data, text, and projection of data onto them.

use std::fmt;

/// A selection without aliases.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct FieldSet {
    /// Members in order.
    pub items: Vec<Item>,
}

/// One member.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// A field, with its arguments as GraphQL text (`currency: "EUR"`, empty if none).
    Field {
        /// Its name.
        name: String,
        /// Arguments as text.
        args: String,
        /// Sub-selection, empty for leaves.
        sub: FieldSet,
    },
    /// `... on Type { ... }`
    On {
        /// The type condition.
        ty: String,
        /// What applies to it.
        sub: FieldSet,
    },
}

impl FieldSet {
    /// A set of leaves.
    pub fn leaves(names: &[&str]) -> Self {
        FieldSet {
            items: names.iter().map(|n| Item::field(n)).collect(),
        }
    }
    /// Whether there is no member.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
    /// Names of the fields at the top, without those under type conditions.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.items.iter().filter_map(|item| match item {
            Item::Field { name, .. } => Some(name.as_str()),
            Item::On { .. } => None,
        })
    }
    /// The sub-selection of a top field, if it is a member.
    pub fn get(&self, field: &str) -> Option<&FieldSet> {
        self.items.iter().find_map(|item| match item {
            Item::Field { name, sub, .. } if name == field => Some(sub),
            _ => None,
        })
    }
    /// Members that apply to objects of `ty`: its fields, and those under conditions that `matches`.
    pub fn of_type<'a>(&'a self, matches: &dyn Fn(&str) -> bool) -> Vec<&'a Item> {
        let mut out = Vec::new();
        for item in &self.items {
            match item {
                Item::Field { .. } => out.push(item),
                Item::On { ty, sub } if matches(ty) => out.extend(sub.of_type(matches)),
                Item::On { .. } => {}
            }
        }
        out
    }
    /// Reads the text of a field set. `None` if it is malformed.
    pub fn parse(text: &str) -> Option<FieldSet> {
        let mut reader = Reader { rest: text };
        let set = reader.set()?;
        reader.skip();
        (reader.rest.is_empty() && !set.is_empty()).then_some(set)
    }
}

impl Item {
    /// A leaf without arguments.
    pub fn field(name: &str) -> Item {
        Item::nested(name, FieldSet::default())
    }
    /// A field with sub-selection.
    pub fn nested(name: &str, sub: FieldSet) -> Item {
        Item::Field {
            name: name.to_owned(),
            args: String::new(),
            sub,
        }
    }
}

impl fmt::Display for FieldSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, item) in self.items.iter().enumerate() {
            if i > 0 {
                f.write_str(" ")?;
            }
            match item {
                Item::Field { name, args, sub } => {
                    f.write_str(name)?;
                    if !args.is_empty() {
                        write!(f, "({args})")?;
                    }
                    if !sub.is_empty() {
                        write!(f, " {{ {sub} }}")?;
                    }
                }
                Item::On { ty, sub } => write!(f, "... on {ty} {{ {sub} }}")?,
            }
        }
        Ok(())
    }
}

/// A reader of its own, so that a bug in the product's parser does not bend the model too.
struct Reader<'a> {
    rest: &'a str,
}

impl<'a> Reader<'a> {
    fn skip(&mut self) {
        self.rest = self
            .rest
            .trim_start_matches(|c: char| c.is_whitespace() || c == ',');
    }
    fn eat(&mut self, token: &str) -> bool {
        self.skip();
        if let Some(rest) = self.rest.strip_prefix(token) {
            self.rest = rest;
            return true;
        }
        false
    }
    fn word(&mut self) -> Option<&'a str> {
        self.skip();
        let end = self
            .rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
            .unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        (!word.is_empty()).then_some(word)
    }
    fn set(&mut self) -> Option<FieldSet> {
        let mut items = Vec::new();
        loop {
            self.skip();
            if self.rest.is_empty() || self.rest.starts_with('}') {
                return Some(FieldSet { items });
            }
            if self.eat("...") {
                if self.word()? != "on" {
                    return None;
                }
                let ty = self.word()?.to_owned();
                let sub = self.braces()?;
                items.push(Item::On { ty, sub });
                continue;
            }
            let name = self.word()?.to_owned();
            let args = if self.eat("(") {
                let end = self.rest.find(')')?;
                let (args, rest) = self.rest.split_at(end);
                self.rest = &rest[1..];
                args.trim().to_owned()
            } else {
                String::new()
            };
            self.skip();
            let sub = if self.rest.starts_with('{') {
                self.braces()?
            } else {
                FieldSet::default()
            };
            items.push(Item::Field { name, args, sub });
        }
    }
    fn braces(&mut self) -> Option<FieldSet> {
        if !self.eat("{") {
            return None;
        }
        let set = self.set()?;
        self.eat("}").then_some(set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_round_trip() {
        let text = r#"id price(currency: "EUR") org { id ... on Firm { vat } }"#;
        let set = FieldSet::parse(text).unwrap();
        assert_eq!(set.to_string(), text);
        assert_eq!(FieldSet::parse("id {"), None);
        assert_eq!(FieldSet::parse(""), None);
    }
}
