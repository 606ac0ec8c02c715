//! Connections of one worker that can take a request.
//!
//! HTTP/1.1: idle connections, last in, first out, so the busiest stay warm and the others age out. HTTP/2: one
//! connection per origin, shared by requests at the same time. Nothing runs in the background. Connections that are too
//! old, and those at the old end that were closed, are dropped when one of their origin is kept, and every time something
//! is kept one origin more has its turn, so all of them age out as long as there are requests at all ([`Pool::keep`]); each is
//! dropped once, so this is constant per request. Beyond a number for all origins together the oldest of all goes. Whoever knows that there is nothing else to do calls [`Pool::trim`].
//!
//! Connections end when they are old, however busy ([`Age`]): otherwise they would lead to where a name once was for as long
//! as there is traffic. One that carries a request ends after it.

use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http2::SendRequest;
use tokio::time::Instant;

use crate::{Http2, address::Target, age::Age, http1::Connection};

/// A connection that can take a request.
pub(crate) enum Ready {
    /// One at a time. In a box, because it moves from here to a request and back.
    Http1(Box<Connection>),
    /// Many.
    Http2(SendRequest<Full<Bytes>>, Age),
}

/// How old connections may be that are given another request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ages {
    /// Since the last one.
    pub(crate) idle: Duration,
    /// Since they were made, see [`Age`].
    pub(crate) max: Duration,
}

/// What connections are pooled by: requests share one only if they would have made it alike.
#[derive(Clone, Copy)]
pub(crate) struct Origin<'a> {
    pub(crate) target: &'a Target,
    /// What [`ClientTls::current`](crate::ClientTls) says; `None` without TLS.
    pub(crate) tls: Option<u64>,
    pub(crate) http2: Http2,
}

/// How old connections of an origin may be before any was kept.
const NEW: Ages = Ages {
    idle: Duration::from_secs(60),
    max: Duration::from_secs(60),
};

/// All connections.
#[derive(Default)]
pub(crate) struct Pool {
    /// A handful of origins: a list is faster than hashing names.
    origins: RefCell<Vec<Entry>>,
    /// Whose turn it is to age.
    turn: Cell<usize>,
    /// Number of idle HTTP/1.1 connections of all origins.
    n_idle: Cell<usize>,
}

struct Entry {
    target: Target,
    tls: Option<u64>,
    http2: Http2,
    idle: VecDeque<Idle>,
    shared: Option<(SendRequest<Full<Bytes>>, Instant, Age)>,
    /// Whether the last connection spoke HTTP/2, so that newcomers better wait for one than make one each.
    speaks_http2: bool,
    connecting: Arc<tokio::sync::Mutex<()>>,
    used: Instant,
    /// What connections were kept with last.
    ages: Ages,
}

struct Idle {
    connection: Box<Connection>,
    since: Instant,
}

impl Entry {
    fn is(&self, origin: &Origin<'_>) -> bool {
        self.tls == origin.tls && self.http2 == origin.http2 && self.target == *origin.target
    }
    /// Takes the youngest connection that is open and young enough.
    fn newest(&mut self, now: Instant, ages: Ages) -> Option<Box<Connection>> {
        while let Some(mut newest) = self.idle.pop_back() {
            if now.saturating_duration_since(newest.since) > ages.idle {
                // All others are older still.
                self.idle.clear();
                return None;
            }
            if !newest.connection.age.is_over(now, ages.max) && newest.connection.is_quiet() {
                return Some(newest.connection);
            }
        }
        None
    }
    /// Drops the oldest connections, as far as they are too old or closed.
    fn age(&mut self, now: Instant) {
        let ages = self.ages;
        while let Some(oldest) = self.idle.front_mut() {
            let idle = now.saturating_duration_since(oldest.since);
            let is_young = idle <= ages.idle && !oldest.connection.age.is_over(now, ages.max);
            if is_young && oldest.connection.is_quiet() {
                break;
            }
            self.idle.pop_front();
        }
    }
}

impl Pool {
    /// The connection to use next that is young enough and, as far as is known, still open.
    pub(crate) fn take(&self, origin: &Origin<'_>, ages: Ages) -> Option<Ready> {
        let mut origins = self.origins.borrow_mut();
        let entry = origins.iter_mut().find(|entry| entry.is(origin))?;
        let now = Instant::now();
        if let Some((sender, used, age)) = &mut entry.shared {
            let is_young = now.saturating_duration_since(*used) <= ages.idle;
            if !sender.is_closed() && is_young && !age.is_over(now, ages.max) {
                *used = now;
                entry.used = now;
                return Some(Ready::Http2(sender.clone(), *age));
            }
            // Requests in flight hold it, and it ends with the last of them.
            entry.shared = None;
        }
        let before = entry.idle.len();
        let newest = entry.newest(now, ages);
        self.n_idle
            .set(self.n_idle.get() - (before - entry.idle.len()));
        newest.map(Ready::Http1)
    }

    /// Keeps a connection for later. `idle_max`: most idle ones of the origin, and of all together.
    pub(crate) fn keep(
        &self,
        origin: &Origin<'_>,
        ready: Ready,
        ages: Ages,
        (idle_max, total_max): (usize, usize),
    ) {
        let now = Instant::now();
        let mut origins = self.origins.borrow_mut();
        let at = Self::place(&mut origins, origin);
        let entry = &mut origins[at];
        entry.used = now;
        entry.ages = ages;
        entry.speaks_http2 = matches!(ready, Ready::Http2(..));
        let before = entry.idle.len();
        entry.age(now);
        match ready {
            Ready::Http1(connection) if connection.age.is_over(now, ages.max) => {}
            Ready::Http1(connection) => {
                while entry.idle.len() >= idle_max.max(1) {
                    entry.idle.pop_front();
                }
                entry.idle.push_back(Idle {
                    connection,
                    since: now,
                });
            }
            Ready::Http2(sender, age) if !sender.is_closed() => {
                let known = entry.shared.as_ref();
                let is_usable =
                    known.is_some_and(|(s, _, age)| !s.is_closed() && !age.is_over(now, ages.max));
                if !is_usable {
                    entry.shared = Some((sender, now, age));
                }
            }
            Ready::Http2(..) => {}
        }
        let mut n_idle = self.n_idle.get() + entry.idle.len() - before;
        let turn = self.turn.get() % origins.len();
        self.turn.set(turn + 1);
        if turn != at {
            let other = &mut origins[turn];
            let before = other.idle.len();
            other.age(now);
            n_idle -= before - other.idle.len();
            // Nobody asks it any more: a replica that is gone, a certificate that was replaced.
            let unused = now.saturating_duration_since(other.used);
            if unused > other.ages.idle.saturating_mul(2) {
                n_idle -= other.idle.len();
                origins.swap_remove(turn);
            }
        }
        while n_idle > total_max.max(1) {
            let oldest = origins.iter_mut().filter(|entry| !entry.idle.is_empty());
            let Some(entry) = oldest.min_by_key(|entry| entry.idle.front().map(|idle| idle.since))
            else {
                break;
            };
            entry.idle.pop_front();
            n_idle -= 1;
        }
        self.n_idle.set(n_idle);
    }

    /// Drops connections that are too old or closed; says how many.
    pub(crate) fn trim(&self) -> usize {
        let now = Instant::now();
        let mut dropped = 0;
        let mut origins = self.origins.borrow_mut();
        for entry in origins.iter_mut() {
            let (n_idle, n_shared) = (entry.idle.len(), usize::from(entry.shared.is_some()));
            let before = n_idle + n_shared;
            entry.age(now);
            let ages = entry.ages;
            entry.idle.retain_mut(|idle| {
                !idle.connection.age.is_over(now, ages.max) && idle.connection.is_quiet()
            });
            entry.idle.shrink_to_fit();
            self.n_idle
                .set(self.n_idle.get() - (n_idle - entry.idle.len()));
            entry.shared.take_if(|(sender, used, age)| {
                let is_idle = now.saturating_duration_since(*used) > ages.idle;
                sender.is_closed() || is_idle || age.is_over(now, ages.max)
            });
            dropped += before - entry.idle.len() - usize::from(entry.shared.is_some());
        }
        dropped
    }

    /// Held while a connection is made that others will share; `None` if connections are not shared.
    pub(crate) fn gate(&self, origin: &Origin<'_>) -> Option<Arc<tokio::sync::Mutex<()>>> {
        let mut origins = self.origins.borrow_mut();
        if origin.http2 != Http2::Only {
            let found = origins.iter().find(|entry| entry.is(origin))?;
            return found.speaks_http2.then(|| Arc::clone(&found.connecting));
        }
        let at = Self::place(&mut origins, origin);
        Some(Arc::clone(&origins[at].connecting))
    }

    /// Number of idle connections to an origin; a shared one counts as idle.
    pub(crate) fn idle(&self, origin: &Origin<'_>) -> usize {
        let origins = self.origins.borrow();
        let found = origins.iter().find(|entry| entry.is(origin));
        found.map_or(0, |entry| {
            entry.idle.len() + usize::from(entry.shared.is_some())
        })
    }

    /// Where an origin is in the list.
    fn place(origins: &mut Vec<Entry>, origin: &Origin<'_>) -> usize {
        let found = origins.iter().position(|entry| entry.is(origin));
        found.unwrap_or_else(|| {
            origins.push(Entry {
                target: origin.target.clone(),
                tls: origin.tls,
                http2: origin.http2,
                idle: VecDeque::new(),
                shared: None,
                speaks_http2: false,
                connecting: Arc::default(),
                used: Instant::now(),
                ages: NEW,
            });
            origins.len() - 1
        })
    }
}

#[cfg(test)]
mod tests {
    use hyper::client::conn::http2;
    use hyper_util::rt::{TokioExecutor, TokioIo};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_shared_connection_stays_for_as_long_as_it_is_used() {
        let (near, _far) = tokio::io::duplex(1 << 16);
        let http2 = http2::Builder::new(TokioExecutor::new());
        let (sender, connection) = http2.handshake(TokioIo::new(near)).await.unwrap();
        tokio::spawn(connection);
        let targets = [1, 2].map(|port| Target::Tcp("a".into(), port));
        let [used, other] = [0, 1].map(|at| Origin {
            target: &targets[at],
            tls: None,
            http2: Http2::Only,
        });
        let (pool, age) = (Pool::default(), Age::new());
        let ages = Ages {
            idle: Duration::from_secs(10),
            max: Duration::from_secs(100),
        };
        let keep = |origin, age| {
            let ready = Ready::Http2(sender.clone(), age);
            pool.keep(origin, ready, ages, (1, 1));
        };
        keep(&used, age);
        // The shortest time that any has.
        for _ in 1..8 {
            tokio::time::advance(ages.idle).await;
            assert!(pool.take(&used, ages).is_some());
            // Origins that nobody asks any more go when others are kept.
            keep(&other, Age::new());
        }
        // Found by a review: a connection that was used all the time was used for ever.
        tokio::time::advance(3 * ages.idle).await;
        let busy = Ages {
            idle: ages.max,
            ..ages
        };
        assert!(pool.take(&used, busy).is_none());
        // One that is new takes its place, also if the old one is still there.
        keep(&used, age);
        keep(&used, Age::new());
        assert!(pool.take(&used, busy).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn connections_made_together_do_not_end_together() {
        let (now, max) = (Instant::now(), Duration::from_secs(60));
        let ages: Vec<Age> = (0..1_000).map(|_| Age::new()).collect();
        let over = |seconds| {
            let now = now + Duration::from_secs(seconds);
            ages.iter().filter(|age| age.is_over(now, max)).count()
        };
        assert_eq!((over(47), over(60)), (0, 1_000));
        let half = over(54);
        assert!((300..=700).contains(&half), "{half} of 1,000");
        assert!(ages[0].is_over(now, Duration::ZERO), "no time at all");
        assert!(!ages[0].is_over(now, Duration::MAX));
    }
}
