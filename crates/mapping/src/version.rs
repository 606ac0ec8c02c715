//! Versions of the connect specification, and what each added to the language.

use std::fmt;

/// A version of `https://specs.apollo.dev/connect`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Version {
    /// v0.1: paths, selections, literals in `$(…)`, the first nine methods.
    V0_1,
    /// v0.2: `$batch`, headers of request and response, `->joinNotNull`.
    V0_2,
    /// v0.3: `?`, `??`, `?!`, `$env`, comparisons, arithmetic.
    V0_3,
    /// v0.4: one syntax for selections and expressions, `...`, commas between entries.
    V0_4,
}

impl Version {
    /// All versions, oldest first.
    pub const ALL: [Version; 4] = [Version::V0_1, Version::V0_2, Version::V0_3, Version::V0_4];

    /// The version of a link such as `v0.3`.
    pub fn from_link(version: &str) -> Option<Self> {
        let digits = version.strip_prefix('v').unwrap_or(version);
        Self::ALL
            .into_iter()
            .find(|version| version.digits() == digits)
    }

    const fn digits(self) -> &'static str {
        match self {
            Version::V0_1 => "0.1",
            Version::V0_2 => "0.2",
            Version::V0_3 => "0.3",
            Version::V0_4 => "0.4",
        }
    }

    /// Whether selections and expressions have one syntax: literals behind an alias, commas, `...`, shorthand members.
    pub(crate) fn has_one_syntax(self) -> bool {
        self >= Version::V0_4
    }
    /// Whether `?`, `??` and `?!` exist.
    pub(crate) fn has_absence_operators(self) -> bool {
        self >= Version::V0_3
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "connect v{}", self.digits())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_links() {
        assert_eq!(Version::from_link("v0.3"), Some(Version::V0_3));
        assert_eq!(Version::from_link("0.4"), Some(Version::V0_4));
        assert_eq!(Version::from_link("v0.5"), None);
        assert_eq!(Version::V0_1.to_string(), "connect v0.1");
    }
}
