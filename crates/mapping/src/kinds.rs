//! Sets of the kinds of JSON values.

use std::fmt;

/// A set of kinds of JSON values.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Kinds(u8);

impl Kinds {
    /// No kind.
    pub(crate) const NONE: Kinds = Kinds(0);
    /// `null`.
    pub const NULL: Kinds = Kinds(1);
    /// `true` and `false`.
    pub const BOOL: Kinds = Kinds(2);
    /// Numbers.
    pub const NUMBER: Kinds = Kinds(4);
    /// Strings.
    pub const STRING: Kinds = Kinds(8);
    /// Lists.
    pub const LIST: Kinds = Kinds(16);
    /// Objects.
    pub const OBJECT: Kinds = Kinds(32);
    /// Everything but lists and objects.
    pub const SCALAR: Kinds = Kinds(15);
    /// Everything.
    pub const ANY: Kinds = Kinds(63);

    /// Both sets together.
    pub const fn or(self, other: Kinds) -> Kinds {
        Kinds(self.0 | other.0)
    }
    /// Whether the sets have a kind in common.
    pub const fn meets(self, other: Kinds) -> bool {
        self.0 & other.0 != 0
    }
}

impl fmt::Display for Kinds {
    /// As in "expected a list or a string".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [(Kinds, &str); 6] = [
            (Kinds::NULL, "null"),
            (Kinds::BOOL, "a boolean"),
            (Kinds::NUMBER, "a number"),
            (Kinds::STRING, "a string"),
            (Kinds::LIST, "a list"),
            (Kinds::OBJECT, "an object"),
        ];
        if *self == Kinds::ANY {
            return f.write_str("a value");
        }
        let names = NAMES.iter().filter(|(kind, _)| kind.meets(*self));
        for (index, (_, name)) in names.enumerate() {
            if index > 0 {
                f.write_str(" or ")?;
            }
            f.write_str(name)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Kinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Kinds({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_shown_as_words() {
        assert_eq!(
            Kinds::LIST.or(Kinds::STRING).to_string(),
            "a string or a list"
        );
        assert_eq!(Kinds::ANY.to_string(), "a value");
        assert!(Kinds::SCALAR.meets(Kinds::NULL) && !Kinds::SCALAR.meets(Kinds::LIST));
    }
}
