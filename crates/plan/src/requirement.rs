//! What callers must be to see some values of a response (planner rule 28), and what a caller is.
//!
//! A plan lists its [`Requirement`]s once; its conditions refer to them as to boolean variables. So one cached plan
//! serves all callers, and what a caller may not see is not even asked for.

use std::fmt;

use ogive_base::BitSet;

/// What a caller must be: all parts must hold (`@authenticated`, `@requiresScopes`, `@policy` of one element).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Requirement {
    /// Must be authenticated.
    pub authenticated: bool,
    /// Must have all scopes of one alternative; `None` asks for none, no alternative is for nobody.
    pub scopes: Option<Vec<Vec<Box<str>>>>,
    /// All policies of one alternative must hold; likewise.
    pub policies: Option<Vec<Vec<Box<str>>>>,
    /// What callers see who do not meet it, of a field whose values are texts; `None` is null, with an error.
    pub mask: Option<Box<str>>,
}

/// What is known of the caller of one request. The default is a caller of whom nothing is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claims {
    /// Somebody vouches for who the caller is.
    pub authenticated: bool,
    /// Scopes the caller was given.
    pub scopes: Vec<Box<str>>,
    /// Policies that hold for the caller.
    pub policies: Vec<Box<str>>,
}

/// Indexes of the requirements of one plan that a caller meets. The default is none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Granted(BitSet);

impl Requirement {
    /// Whether a caller meets it. What an unauthenticated caller claims to have counts for nothing.
    pub fn is_met_by(&self, claims: &Claims) -> bool {
        let has = |wanted: &Option<Vec<Vec<Box<str>>>>, have: &[Box<str>]| {
            wanted.as_ref().is_none_or(|alternatives| {
                let mut alternatives = alternatives.iter();
                alternatives.any(|names| names.iter().all(|name| have.contains(name)))
            })
        };
        let scopes = if claims.authenticated {
            claims.scopes.as_slice()
        } else {
            &[]
        };
        (!self.authenticated || claims.authenticated)
            && has(&self.scopes, scopes)
            && has(&self.policies, &claims.policies)
    }
}

impl Granted {
    /// Whether the requirement of this index is met.
    pub fn contains(&self, requirement: u32) -> bool {
        self.0.contains(requirement)
    }
}

impl FromIterator<u32> for Granted {
    fn from_iter<I: IntoIterator<Item = u32>>(requirements: I) -> Self {
        Granted(requirements.into_iter().collect())
    }
}

impl fmt::Display for Requirement {
    /// `authenticated, scopes a and b or c, policies p`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = |alternatives: &Vec<Vec<Box<str>>>| -> String {
            if alternatives.is_empty() {
                return "that nobody has".to_owned();
            }
            let all = alternatives.iter().map(|names| names.join(" and "));
            all.collect::<Vec<_>>().join(" or ")
        };
        let mut parts: Vec<String> = Vec::new();
        parts.extend(self.authenticated.then(|| "authenticated".to_owned()));
        parts.extend((self.scopes.as_ref()).map(|s| format!("scopes {}", names(s))));
        parts.extend((self.policies.as_ref()).map(|p| format!("policies {}", names(p))));
        parts.extend((self.mask.as_ref()).map(|mask| format!("else {mask:?}")));
        f.write_str(&parts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(list: &[&str]) -> Vec<Box<str>> {
        list.iter().map(|name| Box::from(*name)).collect()
    }

    #[test]
    fn all_names_of_one_alternative_are_needed() {
        let requirement = Requirement {
            scopes: Some(vec![names(&["read", "staff"]), names(&["admin"])]),
            ..Requirement::default()
        };
        let caller = |scopes: &[&str]| Claims {
            authenticated: true,
            scopes: names(scopes),
            ..Claims::default()
        };
        assert!(requirement.is_met_by(&caller(&["staff", "other", "read"])));
        assert!(requirement.is_met_by(&caller(&["admin"])));
        assert!(!requirement.is_met_by(&caller(&["read"])));
        assert!(!requirement.is_met_by(&Claims {
            authenticated: false,
            ..caller(&["admin"])
        }));
        assert_eq!(requirement.to_string(), "scopes read and staff or admin");
    }

    #[test]
    fn all_parts_are_needed_and_no_alternative_is_for_nobody() {
        let requirement = Requirement {
            authenticated: true,
            scopes: None,
            policies: Some(vec![names(&["paid"])]),
            mask: None,
        };
        let paid = Claims {
            policies: names(&["paid"]),
            ..Claims::default()
        };
        assert!(!requirement.is_met_by(&paid));
        let paid = Claims {
            authenticated: true,
            ..paid
        };
        assert!(requirement.is_met_by(&paid));
        let nobody = Requirement {
            policies: Some(Vec::new()),
            ..Requirement::default()
        };
        assert!(!nobody.is_met_by(&paid));
        assert!(Requirement::default().is_met_by(&Claims::default()));
    }
}
