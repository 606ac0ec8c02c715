//! Which files or subgraphs have changed, as the cause of a reload.

/// Most names that are told.
const NAMES_MAX: usize = 3;

/// One clause about what has changed; `None` without names. `what` is said of those that are not named.
pub fn told(names: &[String], what: &str) -> Option<String> {
    match names {
        [] => None,
        [one] => Some(format!("{one} has changed")),
        some if some.len() <= NAMES_MAX => Some(format!("{} have changed", some.join(", "))),
        many => Some(format!(
            "{} and {} more{what} have changed",
            many[..NAMES_MAX].join(", "),
            many.len() - NAMES_MAX
        )),
    }
}
