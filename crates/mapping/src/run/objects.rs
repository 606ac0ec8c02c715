//! Methods of objects, and conversion from and to JSON text.

use ogive_json::{Scanner, write_string};

use super::{
    calls::Call,
    eval::{Result, Run},
    heap::{Entry, Slice, Value},
};
use crate::program::Rows;

impl Run<'_> {
    /// `->entries`: a list of objects with `key` and `value`.
    pub(super) fn call_entries(&mut self, call: Call) -> Result<Value> {
        let Some(members) = self.as_members(call.value)? else {
            return Ok(Value::Missing);
        };
        let key_name = self.make_key("key")?;
        let value_name = self.make_key("value")?;
        let base = self.stack.len();
        for index in members.range() {
            self.spend(1)?;
            let member = self.heap.members[index];
            let entry = self.members.len();
            let pair = [
                (key_name, Value::String(member.key)),
                (value_name, member.value),
            ];
            let pair = pair.map(|(key, value)| Entry { key, value });
            self.members.extend(pair);
            let object = self.made_object(entry)?;
            self.push_item(object);
        }
        self.list(base)
    }

    /// `->keysToCamelCase`, `->keysToCamelCaseDeep`
    pub(super) fn call_camel_case(&mut self, call: Call, deep: bool) -> Result<Value> {
        self.camel_case(call.value, deep)
    }
    fn camel_case(&mut self, value: Value, deep: bool) -> Result<Value> {
        if let Some(members) = self.as_members(value)? {
            return self.deeper(|run| run.camel_case_object(members, deep));
        }
        match self.as_list(value)? {
            Some(items) if deep => {
                self.deeper(|run| run.map_cells(items, |run, item| run.camel_case(item, deep)))
            }
            _ => Ok(value),
        }
    }
    fn camel_case_object(&mut self, members: Rows, deep: bool) -> Result<Value> {
        let base = self.members.len();
        for index in members.range() {
            self.spend(1)?;
            let member = self.heap.members[index];
            let value = if deep {
                self.camel_case(member.value, deep)?
            } else {
                member.value
            };
            let name = self.heap.string(member.key).into_owned();
            let camel = camel_case(&name);
            let key = if camel == name {
                member.key
            } else {
                self.make_key(&camel)?
            };
            self.members.push(Entry { key, value });
        }
        self.keep_last(base)?;
        self.made_object(base)
    }

    /// `->jsonStringify`
    pub(super) fn call_stringify(&mut self, call: Call) -> Result<Value> {
        let mut json = Vec::new();
        self.write(call.value, &mut json)?;
        let json = ogive_json::compact(&json).unwrap_or(json);
        self.make_string(&String::from_utf8_lossy(&json))
    }

    /// `->jsonParse`
    pub(super) fn call_parse(&mut self, call: Call) -> Result<Value> {
        let Value::String(slice) = call.value else {
            return Ok(Value::Missing);
        };
        self.spend_bytes(slice.len())?;
        self.check_computed(slice.len())?;
        let text = self.heap.string(slice).into_owned();
        let mut scanner = Scanner::with_depth_max(text.as_bytes(), self.limits.depth_max);
        let mut read = || {
            let kind = scanner.peek()?;
            let range = scanner.skip_value()?;
            scanner.finish()?;
            Ok::<_, ogive_json::ScanError>((kind, range))
        };
        match read() {
            Ok((kind, range)) => {
                let start = self.heap.scratch.len();
                self.heap.scratch.extend_from_slice(&text.as_bytes()[range]);
                Ok(Value::at(self.heap.added_since(start), kind))
            }
            Err(error) => self.fail(call, &format!("the string is no JSON: {error}")),
        }
    }

    /// A key of a member.
    fn make_key(&mut self, name: &str) -> Result<Slice> {
        self.check_computed(name.len() + 2)?;
        let start = self.heap.scratch.len();
        write_string(&mut self.heap.scratch, name);
        Ok(self.heap.added_since(start))
    }
}

/// `user_name`, `UserName` and `USER_NAME` as `userName`. Underscores at the beginning stay.
fn camel_case(name: &str) -> String {
    let rest = name.trim_start_matches('_');
    let mut out = String::with_capacity(name.len());
    out.push_str(&name[..name.len() - rest.len()]);
    let mut first = true;
    for word in words(rest) {
        let mut characters = word.chars();
        let Some(initial) = characters.next() else {
            continue;
        };
        if first {
            out.extend(initial.to_lowercase());
        } else {
            out.extend(initial.to_uppercase());
        }
        first = false;
        out.extend(characters.flat_map(char::to_lowercase));
    }
    out
}

/// The words of a name: between underscores and hyphens, before a capital letter behind a small one or a digit, and
/// before the last of several capital letters if a small one follows.
fn words(name: &str) -> Vec<&str> {
    let characters: Vec<(usize, char)> = name.char_indices().collect();
    let mut words = Vec::new();
    let mut start = 0;
    for (index, (at, character)) in characters.iter().enumerate() {
        if matches!(character, '_' | '-') {
            words.push(&name[start..*at]);
            start = at + 1;
            continue;
        }
        let before = index.checked_sub(1).map(|index| characters[index].1);
        let after = characters.get(index + 1).map(|(_, after)| *after);
        let begins = character.is_uppercase()
            && before.is_some_and(|before| {
                let ends_word = before.is_lowercase() || before.is_numeric();
                let ends_capitals = before.is_uppercase() && after.is_some_and(char::is_lowercase);
                ends_word || ends_capitals
            });
        if begins {
            words.push(&name[start..*at]);
            start = *at;
        }
    }
    words.push(&name[start..]);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_camel_case() {
        for (name, camel) in [
            ("login_name", "loginName"),
            ("LoginName", "loginName"),
            ("LOGIN_NAME", "loginName"),
            ("loginName", "loginName"),
            ("id", "id"),
            ("ID", "id"),
            ("userID", "userId"),
            ("HTTPServer", "httpServer"),
            ("address_line_2", "addressLine2"),
            ("x-request-id", "xRequestId"),
            ("__typename", "__typename"),
            ("_id", "_id"),
            ("a__b", "aB"),
            ("", ""),
        ] {
            assert_eq!(camel_case(name), camel, "{name}");
        }
    }
}
