//! Connections of one worker that can take a request.
//!
//! HTTP/1.1: idle connections, last in, first out, so the busiest stay warm and the others age out. HTTP/2: one
//! connection per origin, shared by requests at the same time. Nothing runs in the background; connections that are too
//! old are dropped when their origin is used next or another one is kept ([`Pool::keep`] sweeps), so at most `idle_max`
//! per origin are held. Whoever knows that there is nothing else to do calls [`Pool::trim`].

use std::{
    cell::RefCell,
    collections::VecDeque,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::{http1, http2};

use crate::endpoint::{Http2, Target};

/// The handle of a connection; `B` is what its requests carry.
pub(crate) enum Sender<B = Full<Bytes>> {
    /// For one request at a time.
    Http1(http1::SendRequest<B>),
    /// For many.
    Http2(http2::SendRequest<B>),
}

/// What connections are pooled by: requests share one only if they would have made it alike.
#[derive(Clone, Copy)]
pub(crate) struct Origin<'a> {
    pub(crate) target: &'a Target,
    /// What [`ClientTls::current`](crate::ClientTls) says; `None` without TLS.
    pub(crate) tls: Option<u64>,
    pub(crate) http2: Http2,
}

/// All connections.
#[derive(Default)]
pub(crate) struct Pool {
    /// A handful of origins: a list is faster than hashing names.
    origins: RefCell<Vec<Entry>>,
}

struct Entry {
    target: Target,
    tls: Option<u64>,
    http2: Http2,
    idle: VecDeque<Idle>,
    shared: Option<(http2::SendRequest<Full<Bytes>>, Instant)>,
    /// Whether the last connection spoke HTTP/2, so that newcomers better wait for one than make one each.
    speaks_http2: bool,
    connecting: Arc<tokio::sync::Mutex<()>>,
    used: Instant,
    /// What connections were kept with last.
    idle_timeout: Duration,
}

struct Idle {
    sender: http1::SendRequest<Full<Bytes>>,
    since: Instant,
}

impl Entry {
    fn is(&self, origin: &Origin<'_>) -> bool {
        self.tls == origin.tls && self.http2 == origin.http2 && self.target == *origin.target
    }
    fn age(&mut self, idle_timeout: Duration) {
        while self
            .idle
            .front()
            .is_some_and(|oldest| oldest.since.elapsed() > idle_timeout)
        {
            self.idle.pop_front();
        }
    }
}

impl Pool {
    /// The connection to use next that is still open and young enough.
    pub(crate) fn take(&self, origin: &Origin<'_>, idle_timeout: Duration) -> Option<Sender> {
        let mut origins = self.origins.borrow_mut();
        let entry = origins.iter_mut().find(|entry| entry.is(origin))?;
        if let Some((sender, used)) = &mut entry.shared {
            if !sender.is_closed() && used.elapsed() <= idle_timeout {
                *used = Instant::now();
                return Some(Sender::Http2(sender.clone()));
            }
            entry.shared = None;
        }
        while let Some(newest) = entry.idle.pop_back() {
            if newest.since.elapsed() > idle_timeout {
                // All others are older still.
                entry.idle.clear();
                return None;
            }
            if !newest.sender.is_closed() {
                return Some(Sender::Http1(newest.sender));
            }
        }
        None
    }

    /// Keeps a connection for later.
    pub(crate) fn keep(
        &self,
        origin: &Origin<'_>,
        sender: Sender,
        idle_timeout: Duration,
        idle_max: usize,
    ) {
        let mut origins = self.origins.borrow_mut();
        let entry = Self::entry(&mut origins, origin);
        entry.used = Instant::now();
        entry.idle_timeout = idle_timeout;
        entry.speaks_http2 = matches!(sender, Sender::Http2(_));
        entry.age(idle_timeout);
        match sender {
            Sender::Http1(sender) if !sender.is_closed() => {
                while entry.idle.len() >= idle_max.max(1) {
                    entry.idle.pop_front();
                }
                entry.idle.push_back(Idle {
                    sender,
                    since: Instant::now(),
                });
            }
            Sender::Http2(sender) if !sender.is_closed() => {
                let open = entry.shared.as_ref().is_some_and(|(s, _)| !s.is_closed());
                if !open {
                    entry.shared = Some((sender, Instant::now()));
                }
            }
            _ => {}
        }
        // Origins that nobody asks any more: replicas that are gone, certificates that were replaced.
        let old = |entry: &Entry| entry.used.elapsed() > idle_timeout.saturating_mul(2);
        if origins.iter().any(old) {
            origins.retain(|entry| !old(entry));
        }
    }

    /// Drops connections that are too old or closed; says how many.
    pub(crate) fn trim(&self) -> usize {
        let mut dropped = 0;
        let mut origins = self.origins.borrow_mut();
        for entry in origins.iter_mut() {
            let before = entry.idle.len() + usize::from(entry.shared.is_some());
            entry.age(entry.idle_timeout);
            entry.idle.retain(|idle| !idle.sender.is_closed());
            entry.idle.shrink_to_fit();
            let timeout = entry.idle_timeout;
            entry
                .shared
                .take_if(|(sender, used)| sender.is_closed() || used.elapsed() > timeout);
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
        Some(Arc::clone(&Self::entry(&mut origins, origin).connecting))
    }

    /// Number of idle connections to an origin; a shared one counts as idle.
    pub(crate) fn idle(&self, origin: &Origin<'_>) -> usize {
        let origins = self.origins.borrow();
        let found = origins.iter().find(|entry| entry.is(origin));
        found.map_or(0, |entry| {
            entry.idle.len() + usize::from(entry.shared.is_some())
        })
    }

    fn entry<'e>(origins: &'e mut Vec<Entry>, origin: &Origin<'_>) -> &'e mut Entry {
        let at = match origins.iter().position(|entry| entry.is(origin)) {
            Some(at) => at,
            None => {
                origins.push(Entry {
                    target: origin.target.clone(),
                    tls: origin.tls,
                    http2: origin.http2,
                    idle: VecDeque::new(),
                    shared: None,
                    speaks_http2: false,
                    connecting: Arc::default(),
                    used: Instant::now(),
                    idle_timeout: Duration::ZERO,
                });
                origins.len() - 1
            }
        };
        &mut origins[at]
    }
}
