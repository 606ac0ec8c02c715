//! Names that clients choose, as far as they are told apart: up to a limit for all threads together, of which each client has
//! its share. What is told apart stays so.

use std::{
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use ogive_base::{FastMap, Share, ShareLimits, Shares};

/// Names that are told apart, with the place that each has taken.
#[derive(Debug)]
pub(super) struct NewNames {
    limits: ShareLimits,
    places: Arc<Shares<IpAddr>>,
    learnt: Mutex<FastMap<Box<str>, Share<IpAddr>>>,
}

impl NewNames {
    pub(super) fn new(limits: ShareLimits) -> Self {
        NewNames {
            limits,
            places: Arc::default(),
            learnt: Mutex::default(),
        }
    }
    fn lock(&self) -> MutexGuard<'_, FastMap<Box<str>, Share<IpAddr>>> {
        self.learnt.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Whether a name is told apart.
    pub(super) fn knows(&self, name: &str) -> bool {
        self.lock().contains_key(name)
    }
    /// Whether a name is told apart: it was before, or its client may bring one more. `client`: `None` if nobody can tell
    /// whose it is.
    pub(super) fn learn(&self, name: &str, client: Option<IpAddr>) -> bool {
        let mut learnt = self.lock();
        if learnt.contains_key(name) {
            return true;
        }
        let Ok(place) = self.places.take(client, 1, self.limits) else {
            return false;
        };
        learnt.insert(name.into(), place);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Found by an attacker: two thousand names that one client had made up, and no other was told apart any more.
    #[test]
    fn names_that_one_client_makes_up_leave_room_for_others() {
        let names = NewNames::new(ShareLimits::of(2_000, 50));
        let client = |last: u8| Some(IpAddr::from([10, 0, 0, last]));
        let learnt = (0..5_000).filter(|n| names.learn(&format!("Junk{n}"), client(1)));
        assert_eq!(learnt.count(), 1_000);
        assert!(names.learn("Junk7", client(1)), "it is known");
        assert!(!names.learn("Junk5000", client(1)));
        assert!(names.learn("Shop", client(2)));
        assert!(names.learn("Shop", client(1)), "whoever has brought it");
    }
}
