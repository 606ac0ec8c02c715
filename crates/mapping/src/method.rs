//! The methods of the language: names, versions, arguments.

use crate::{kinds::Kinds, version::Version};

/// A method.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[allow(
    missing_docs,
    reason = "each has the name it has in the language; docs/mapping.md describes them"
)]
pub enum Method {
    Add,
    And,
    As,
    Contains,
    Div,
    Echo,
    Entries,
    Eq,
    Filter,
    Find,
    First,
    Get,
    Gt,
    Gte,
    In,
    JoinNotNull,
    JsonParse,
    JsonStringify,
    KeysToCamelCase,
    KeysToCamelCaseDeep,
    Last,
    Lt,
    Lte,
    Map,
    Match,
    Mod,
    Mul,
    Ne,
    Not,
    Or,
    ParseInt,
    Size,
    Slice,
    Split,
    Sub,
    ToString,
    Trim,
    TrimEnd,
    TrimStart,
}

/// What is known of a method before it runs.
#[derive(Clone, Copy, Debug)]
pub struct MethodInfo {
    /// The method.
    pub method: Method,
    /// Its name, without `->`.
    pub name: &'static str,
    /// The version whose documentation has it first.
    pub since: Version,
    /// Fewest arguments.
    pub arguments_min: usize,
    /// Most arguments.
    pub arguments_max: usize,
    /// The values that it accepts.
    pub takes: Kinds,
    /// The values that its arguments may have; the second one of `->split` is a number.
    pub argument: Kinds,
}

/// As many arguments as are written.
const MANY: usize = usize::MAX;

const fn info(
    method: Method,
    name: &'static str,
    since: Version,
    arguments: (usize, usize),
    takes: Kinds,
    argument: Kinds,
) -> MethodInfo {
    MethodInfo {
        method,
        name,
        since,
        arguments_min: arguments.0,
        arguments_max: arguments.1,
        takes,
        argument,
    }
}

/// All methods, by name.
#[rustfmt::skip]
pub const METHODS: [MethodInfo; 39] = {
    use Kinds as K;
    use Version::{V0_1, V0_2, V0_3, V0_4};
    const SIZED: Kinds = K::STRING.or(K::LIST).or(K::OBJECT);
    const ORDERED: Kinds = K::NUMBER.or(K::STRING);
    const INDEX: Kinds = K::NUMBER.or(K::STRING);
    [
        info(Method::Add, "add", V0_3, (1, MANY), K::NUMBER, K::NUMBER),
        info(Method::And, "and", V0_3, (1, MANY), K::BOOL, K::BOOL),
        info(Method::As, "as", V0_4, (1, 2), K::ANY, K::ANY),
        info(Method::Contains, "contains", V0_3, (1, 1), K::LIST, K::ANY),
        info(Method::Div, "div", V0_3, (1, MANY), K::NUMBER, K::NUMBER),
        info(Method::Echo, "echo", V0_1, (1, 1), K::ANY, K::ANY),
        info(Method::Entries, "entries", V0_1, (0, 0), K::OBJECT, K::ANY),
        info(Method::Eq, "eq", V0_3, (1, 1), K::ANY, K::ANY),
        info(Method::Filter, "filter", V0_3, (1, 1), K::LIST, K::BOOL),
        info(Method::Find, "find", V0_3, (1, 1), K::LIST, K::BOOL),
        info(Method::First, "first", V0_1, (0, 0), K::LIST, K::ANY),
        info(Method::Get, "get", V0_3, (1, 1), SIZED, INDEX),
        info(Method::Gt, "gt", V0_3, (1, 1), ORDERED, ORDERED),
        info(Method::Gte, "gte", V0_3, (1, 1), ORDERED, ORDERED),
        info(Method::In, "in", V0_3, (1, MANY), K::ANY, K::ANY),
        info(Method::JoinNotNull, "joinNotNull", V0_2, (1, 1), K::LIST, K::STRING),
        info(Method::JsonParse, "jsonParse", V0_4, (0, 0), K::STRING, K::ANY),
        info(Method::JsonStringify, "jsonStringify", V0_1, (0, 0), K::ANY, K::ANY),
        info(Method::KeysToCamelCase, "keysToCamelCase", V0_4, (0, 0), K::OBJECT, K::ANY),
        info(Method::KeysToCamelCaseDeep, "keysToCamelCaseDeep", V0_4, (0, 0), K::OBJECT.or(K::LIST), K::ANY),
        info(Method::Last, "last", V0_1, (0, 0), K::LIST, K::ANY),
        info(Method::Lt, "lt", V0_3, (1, 1), ORDERED, ORDERED),
        info(Method::Lte, "lte", V0_3, (1, 1), ORDERED, ORDERED),
        info(Method::Map, "map", V0_1, (1, 1), K::ANY, K::ANY),
        info(Method::Match, "match", V0_1, (1, MANY), K::ANY, K::LIST),
        info(Method::Mod, "mod", V0_3, (1, MANY), K::NUMBER, K::NUMBER),
        info(Method::Mul, "mul", V0_3, (1, MANY), K::NUMBER, K::NUMBER),
        info(Method::Ne, "ne", V0_3, (1, 1), K::ANY, K::ANY),
        info(Method::Not, "not", V0_3, (0, 0), K::BOOL, K::ANY),
        info(Method::Or, "or", V0_3, (1, MANY), K::BOOL, K::BOOL),
        info(Method::ParseInt, "parseInt", V0_3, (0, 1), K::NUMBER.or(K::STRING), K::NUMBER),
        info(Method::Size, "size", V0_1, (0, 0), SIZED, K::ANY),
        info(Method::Slice, "slice", V0_1, (1, 2), K::LIST.or(K::STRING), K::NUMBER),
        info(Method::Split, "split", V0_4, (1, 2), K::STRING, K::STRING),
        info(Method::Sub, "sub", V0_3, (1, MANY), K::NUMBER, K::NUMBER),
        info(Method::ToString, "toString", V0_3, (0, 0), K::SCALAR, K::ANY),
        info(Method::Trim, "trim", V0_4, (0, 0), K::STRING, K::ANY),
        info(Method::TrimEnd, "trimEnd", V0_4, (0, 0), K::STRING, K::ANY),
        info(Method::TrimStart, "trimStart", V0_4, (0, 0), K::STRING, K::ANY),
    ]
};

impl Method {
    /// The method with that name, without `->`.
    pub fn from_name(name: &str) -> Option<Self> {
        let found = METHODS.iter().find(|info| info.name == name);
        found.map(|info| info.method)
    }
    /// What is known of it.
    pub fn info(self) -> &'static MethodInfo {
        &METHODS[self as usize]
    }
    /// Its name, without `->`.
    pub fn name(self) -> &'static str {
        self.info().name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_methods() {
        for (index, info) in METHODS.iter().enumerate() {
            assert_eq!(info.method as usize, index, "{}", info.name);
            assert_eq!(Method::from_name(info.name), Some(info.method));
            assert!(info.arguments_min <= info.arguments_max);
        }
        assert!(METHODS.is_sorted_by_key(|info| info.name));
        assert_eq!(Method::from_name("typeof"), None);
    }
}
