//! Idle connections of one worker.
//!
//! Last in, first out: the busiest connections stay warm and the others age out. Nothing runs in the background;
//! connections that are too old are dropped when their origin is used next or another one is kept
//! ([`Pool::keep`] sweeps one origin per call), so at most `idle_max` per origin are held.

use std::{
    cell::RefCell,
    collections::VecDeque,
    time::{Duration, Instant},
};

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1::SendRequest;

use crate::endpoint::Origin;

/// The handle of a connection.
pub(crate) type Sender = SendRequest<Full<Bytes>>;

/// All idle connections.
#[derive(Default)]
pub(crate) struct Pool {
    /// A handful of origins: a list is faster than hashing names.
    origins: RefCell<Vec<(Origin, VecDeque<Idle>)>>,
}

struct Idle {
    sender: Sender,
    since: Instant,
}

impl Pool {
    /// The most recently used connection that is still open and young enough.
    pub(crate) fn take(&self, origin: &Origin, idle_timeout: Duration) -> Option<Sender> {
        let mut origins = self.origins.borrow_mut();
        let (_, idle) = origins.iter_mut().find(|(o, _)| o == origin)?;
        while let Some(newest) = idle.pop_back() {
            if newest.since.elapsed() > idle_timeout {
                // All others are older still.
                idle.clear();
                return None;
            }
            if !newest.sender.is_closed() {
                return Some(newest.sender);
            }
        }
        None
    }

    /// Keeps a connection for later.
    pub(crate) fn keep(
        &self,
        origin: &Origin,
        sender: Sender,
        idle_timeout: Duration,
        idle_max: usize,
    ) {
        if sender.is_closed() {
            return;
        }
        let mut origins = self.origins.borrow_mut();
        let at = match origins.iter().position(|(o, _)| o == origin) {
            Some(at) => at,
            None => {
                origins.push((origin.clone(), VecDeque::new()));
                origins.len() - 1
            }
        };
        let idle = &mut origins[at].1;
        while idle.len() >= idle_max.max(1)
            || idle
                .front()
                .is_some_and(|oldest| oldest.since.elapsed() > idle_timeout)
        {
            idle.pop_front();
        }
        idle.push_back(Idle {
            sender,
            since: Instant::now(),
        });
    }

    /// Number of idle connections to an origin.
    pub(crate) fn idle(&self, origin: &Origin) -> usize {
        let origins = self.origins.borrow();
        let found = origins.iter().find(|(o, _)| o == origin);
        found.map_or(0, |(_, idle)| idle.len())
    }
}
