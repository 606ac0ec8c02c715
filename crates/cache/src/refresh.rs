//! Refreshing an entry before it becomes stale.
//!
//! Where many callers share an entry, all of them miss at the moment it becomes stale. So each hit may refresh the entry
//! early, at random. The slower the request of the entry and the nearer its end, the more probable is a refresh (Vattani,
//! Chierichetti, Lowenstein: "Optimal Probabilistic Cache Stampede Prevention", 2015).

use crate::{Entry, Timestamp, Use};

/// How eager early refreshes are; 1 is the optimum of the paper.
const BETA: f64 = 1.0;
/// An entry is never refreshed before this part of its lifetime has passed, in percent. Without this limit, each hit on an
/// entry with a short lifetime and a slow request would refresh it.
const EARLIEST_PERCENT: u32 = 80;

/// Whether a hit on an entry should refresh the entry in the background. `random`: 64 random bits.
pub fn is_due(entry: &Entry, now: Timestamp, random: u64) -> bool {
    match entry.lifetime.usability(now) {
        Use::WhileRevalidating => true,
        Use::IfError | Use::Never => false,
        Use::Fresh => {
            let fresh = entry.lifetime.fresh;
            let remaining = entry.lifetime.remaining(now);
            if fresh - remaining < fresh / 100 * EARLIEST_PERCENT {
                return false;
            }
            // In (0, 1].
            let chance = ((random >> 11) + 1) as f64 / (1u64 << 53) as f64;
            entry.took.as_secs_f64() * BETA * -chance.ln() >= remaining.as_secs_f64()
        }
    }
}
