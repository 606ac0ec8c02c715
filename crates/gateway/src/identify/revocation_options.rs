//! How often what goes on is judged again, as a configuration asks for it.

use std::time::Duration;

use ogive_config::Config;

/// How often what goes on is judged again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RevocationOptions {
    /// The time between two judgements.
    pub check_interval: Duration,
    /// How long something goes on of which nobody can say whether it may.
    pub unanswered_max: Duration,
}

impl RevocationOptions {
    /// The options that a configuration asks for.
    pub fn new(config: &Config) -> Self {
        let options = &config.authorization.revocation;
        RevocationOptions {
            check_interval: options.check_interval.0,
            unanswered_max: options.unanswered_max.0,
        }
    }
}
