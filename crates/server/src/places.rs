//! Places for connections: how many there are, how many one client has, and who gives up a place when there is none.
//!
//! A client that holds connections on which it asks nothing must not keep others out. So a newcomer that finds no place
//! gets that of a connection of which nothing is asked: of its own client if that has as many as it may, else of anybody.
//! Spared are those that were busy a moment ago, and the last few of those that have asked nothing yet. One that finds no
//! place even so is let in for a moment, to be told so ([`Kind::Guest`]): that is how health is answered when all places
//! are taken. Guests have places of their own, of which the oldest is given up for the next, whatever it does; and each of
//! them is gone after [`GUEST_TIME`].
//!
//! Whether a connection was busy is told by a bit that requests set and a look takes away, so that no request has to read
//! a clock.

use std::{
    collections::VecDeque,
    net::IpAddr,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use ogive_base::{Client, FastMap, Peer, PeerRange};
use ogive_limits::Measured;
use tokio::sync::Notify;

use crate::options::ServeOptions;

/// How long somebody for whom there is no place is let in, all in all.
pub(crate) const GUEST_TIME: Duration = Duration::from_secs(1);
/// Places of guests.
pub(crate) const GUESTS_MAX: usize = 32;
/// A connection that was busy, or begun, at most so long ago is not given up.
pub(crate) const SPARED: Duration = Duration::from_secs(1);
/// So many connections that have asked nothing yet, the last ones, are not given up before that either.
const NEW_SPARED: usize = 64;
/// Of a client's places, or of all, this part is given up at a time: finding them takes a look at every connection.
const PART: usize = 32;
/// After a look that found none, the next one is no sooner than that.
const REST: Duration = Duration::from_millis(50);

/// All places of a listener.
pub(crate) struct Places {
    table: Arc<Mutex<Table>>,
    per_client: Measured<usize>,
    exempt: Vec<PeerRange>,
}

/// Connections by their number, which are those in which they came.
#[derive(Default)]
struct Table {
    next: u64,
    open: FastMap<u64, Arc<Place>>,
    /// There are never more clients than connections.
    clients: FastMap<IpAddr, Count>,
    guests: VecDeque<u64>,
    /// When a look among all of them found none that can leave.
    looked: Option<Instant>,
}

/// Connections of one client.
#[derive(Clone, Copy, Default)]
struct Count {
    open: usize,
    /// Of these, connections that were told to go.
    leaving: usize,
    /// When a look among them found none that can leave.
    looked: Option<Instant>,
}

/// What a connection is let in for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// Whatever it asks.
    Client,
    /// Health, and to be told that there is no place.
    Guest,
}

/// One connection's place, until its [`PlaceGuard`] is dropped.
pub(crate) struct Place {
    number: u64,
    /// Whose place it is, if those are counted.
    client: Option<IpAddr>,
    pub(crate) kind: Kind,
    /// Whether something is asked.
    busy: AtomicBool,
    /// Whether something was asked since the last look.
    used: AtomicBool,
    /// Whether anything was asked at all.
    known: AtomicBool,
    idle_since: Mutex<Instant>,
    told: AtomicBool,
    leave: Notify,
}

/// A place that is taken.
pub(crate) struct PlaceGuard {
    pub(crate) place: Arc<Place>,
    /// When it is given up, whatever happens there; only guests have such an end.
    pub(crate) end: Option<Instant>,
    table: Arc<Mutex<Table>>,
}

impl Place {
    /// Something is asked.
    pub(crate) fn set_busy(&self) {
        self.busy.store(true, Ordering::Relaxed);
        self.used.store(true, Ordering::Relaxed);
        self.known.store(true, Ordering::Relaxed);
    }
    /// Everything is answered.
    pub(crate) fn set_idle(&self) {
        self.busy.store(false, Ordering::Relaxed);
    }
    /// Whether it is to be given up, as far as nothing is asked.
    pub(crate) fn is_told_to_leave(&self) -> bool {
        self.told.load(Ordering::Relaxed)
    }
    /// Waits until it is.
    pub(crate) async fn told_to_leave(&self) {
        while !self.is_told_to_leave() {
            self.leave.notified().await;
        }
    }
    /// Whether it may stay although it was told to leave, because something is asked. Guests may not: they would stay for
    /// as long as they send.
    pub(crate) fn may_stay(&self) -> bool {
        self.kind == Kind::Client
    }
    fn tell(&self) {
        self.told.store(true, Ordering::Relaxed);
        self.leave.notify_one();
    }
    /// Since when nothing is asked; looks at the bit.
    fn idle_since(&self, now: Instant) -> Option<Instant> {
        if self.busy.load(Ordering::Relaxed) {
            return None;
        }
        let mut since = self
            .idle_since
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if self.used.swap(false, Ordering::Relaxed) {
            *since = now;
        }
        Some(*since)
    }
}

impl Places {
    pub(crate) fn new(options: &ServeOptions) -> Self {
        Places {
            table: Arc::default(),
            per_client: options.client_connections(),
            exempt: options.trusted_proxies.clone(),
        }
    }
    /// How many connections a client may have.
    pub(crate) fn per_client(&self) -> &Measured<usize> {
        &self.per_client
    }
    /// Every change is complete when the lock is given back.
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
    /// Takes a place, which there is, and says how many the client has then, if those are counted; `None` if the client
    /// has as many as it may, and needs them.
    pub(crate) fn take(&self, peer: Peer) -> Option<(PlaceGuard, Option<usize>)> {
        let client = self.counted(peer.client());
        let mut table = self.lock();
        if let Some(client) = client {
            let max = self.per_client.ceiling;
            let staying = |table: &Table| {
                let count = table.clients.get(&client);
                count.map_or(0, |count| count.open - count.leaving)
            };
            if staying(&table) >= max {
                table.give_up(Some(client), max);
            }
            if staying(&table) >= max {
                return None;
            }
        }
        let place = table.enter(client, Kind::Client);
        let number = client.and_then(|client| table.clients.get(&client));
        let number = number.map(|count| count.open);
        drop(table);
        Some((self.guard(place, None), number))
    }
    /// Whose places are counted; of clients at a unix socket nobody can tell which is which.
    fn counted(&self, client: Client) -> Option<IpAddr> {
        let is_exempt = self.exempt.iter().any(|range| range.contains(client));
        client.network().filter(|_| !is_exempt)
    }
    /// Takes a place for a moment; there always is one.
    pub(crate) fn take_guest(&self) -> PlaceGuard {
        let mut table = self.lock();
        if table.guests.len() >= GUESTS_MAX
            && let Some(oldest) = table.guests.pop_front()
            && let Some(place) = table.open.get(&oldest)
        {
            place.tell();
        }
        let place = table.enter(None, Kind::Guest);
        table.guests.push_back(place.number);
        drop(table);
        self.guard(place, Some(Instant::now() + GUEST_TIME))
    }
    /// Has connections of which nothing is asked leave, `most` being how many there may be; says whether there are any.
    pub(crate) fn give_up(&self, most: usize) -> bool {
        self.lock().give_up(None, most)
    }
    fn guard(&self, place: Arc<Place>, end: Option<Instant>) -> PlaceGuard {
        let table = Arc::clone(&self.table);
        PlaceGuard { place, end, table }
    }
}

impl Table {
    fn enter(&mut self, client: Option<IpAddr>, kind: Kind) -> Arc<Place> {
        let number = self.next;
        self.next += 1;
        let place = Arc::new(Place {
            number,
            client,
            kind,
            busy: AtomicBool::new(false),
            used: AtomicBool::new(false),
            known: AtomicBool::new(false),
            idle_since: Mutex::new(Instant::now()),
            told: AtomicBool::new(false),
            leave: Notify::new(),
        });
        if let Some(client) = client {
            self.clients.entry(client).or_default().open += 1;
        }
        self.open.insert(number, Arc::clone(&place));
        place
    }
    /// Tells those to leave that have been idle for the longest time: a part of the `most` that may be there.
    fn give_up(&mut self, client: Option<IpAddr>, most: usize) -> bool {
        let now = Instant::now();
        // A client all of whose connections are busy must not keep others from being looked for.
        let looked = match client {
            Some(client) => self.clients.get(&client).and_then(|count| count.looked),
            None => self.looked,
        };
        if looked.is_some_and(|looked| now.duration_since(looked) < REST) {
            return false;
        }
        let places = self.open.values().filter(|place| {
            place.kind == Kind::Client
                && (client.is_none() || place.client == client)
                && !place.is_told_to_leave()
        });
        let mut idle: Vec<(Instant, &Arc<Place>)> = places
            .filter_map(|place| Some((place.idle_since(now)?, place)))
            .collect();
        idle.sort_unstable_by_key(|(since, place)| (*since, place.number));
        let is_new = |place: &Place| !place.known.load(Ordering::Relaxed);
        let new = idle.iter().filter(|(_, place)| is_new(place)).count();
        let mut early = new.saturating_sub(NEW_SPARED);
        let leave = idle.iter().filter(|(since, place)| {
            let overtaken = is_new(place) && early > 0;
            if is_new(place) {
                early = early.saturating_sub(1);
            }
            overtaken || now.duration_since(*since) >= SPARED
        });
        let leave: Vec<Arc<Place>> = leave
            .take((most / PART).max(1))
            .map(|(_, place)| Arc::clone(place))
            .collect();
        if leave.is_empty() {
            match client.and_then(|client| self.clients.get_mut(&client)) {
                Some(count) => count.looked = Some(now),
                None => self.looked = Some(now),
            }
            return false;
        }
        for place in leave {
            if let Some(count) = place
                .client
                .and_then(|client| self.clients.get_mut(&client))
            {
                count.leaving += 1;
            }
            place.tell();
        }
        true
    }
}

impl PlaceGuard {
    /// It was told to leave when it had begun something, and stays.
    pub(crate) fn stays(&self) {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        if self.place.told.swap(false, Ordering::Relaxed)
            && let Some(client) = self.place.client
            && let Some(count) = table.clients.get_mut(&client)
        {
            count.leaving -= 1;
        }
    }
}

impl Drop for PlaceGuard {
    fn drop(&mut self) {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let place = &self.place;
        table.open.remove(&place.number);
        if place.kind == Kind::Guest {
            table.guests.retain(|number| *number != place.number);
        }
        let Some(client) = place.client else {
            return;
        };
        if let Some(count) = table.clients.get_mut(&client) {
            count.open -= 1;
            count.leaving -= usize::from(place.is_told_to_leave());
            if count.open == 0 {
                table.clients.remove(&client);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    fn places(per_client_max: usize) -> Places {
        Places::new(&ServeOptions {
            connections_per_client_max: per_client_max,
            ..ServeOptions::default()
        })
    }
    fn peer(last: u8) -> Peer {
        Peer::Tcp(SocketAddr::from(([10, 0, 0, last], 1)))
    }
    fn take(places: &Places, number: usize, peer: Peer) -> Vec<PlaceGuard> {
        (0..number)
            .map(|_| places.take(peer).expect("a place").0)
            .collect()
    }
    /// As if nothing had happened for longer than connections are spared.
    fn rests(guard: &PlaceGuard) {
        let mut since = guard.place.idle_since.lock().unwrap();
        *since = since.checked_sub(2 * SPARED).unwrap();
        guard.place.used.store(false, Ordering::Relaxed);
    }
    fn told(all: &[PlaceGuard]) -> usize {
        all.iter()
            .filter(|guard| guard.place.is_told_to_leave())
            .count()
    }

    #[test]
    fn a_client_gives_up_its_own_places_and_those_that_asked_nothing_first() {
        let places = places(100);
        let (mine, other) = (take(&places, 100, peer(1)), take(&places, 100, peer(2)));
        assert!(places.take(peer(1)).is_some());
        let gone: Vec<bool> = mine.iter().map(|h| h.place.is_told_to_leave()).collect();
        // A thirty-second of a hundred.
        assert_eq!(gone[..4], [true, true, true, false]);
        assert_eq!((told(&mine), told(&other)), (3, 0));
        // Those are as good as gone, so there is room for two more without a look.
        let more = take(&places, 2, peer(1));
        assert_eq!(told(&mine), 3);
        drop((more, mine));
        let table = places.lock();
        assert_eq!(table.clients.len(), 1, "nobody is counted who is gone");
        assert_eq!(table.open.len(), other.len());
    }

    #[test]
    fn whoever_is_busy_or_was_a_moment_ago_stays() {
        let places = places(3);
        let all = take(&places, 3, peer(1));
        let [busy, before, idle] = &all[..] else {
            panic!()
        };
        for guard in [busy, before, idle] {
            guard.place.set_busy();
            rests(guard);
        }
        before.place.set_idle();
        before.place.used.store(true, Ordering::Relaxed);
        idle.place.set_idle();
        assert!(places.take(peer(1)).is_some());
        assert!(idle.place.is_told_to_leave());
        assert_eq!(told(&all), 1);
        // It has begun something meanwhile.
        idle.place.set_busy();
        idle.stays();
        assert!(places.take(peer(1)).is_none());
        // That nothing was found of one client is nobody else's affair.
        let others = take(&places, 3, peer(2));
        others.iter().for_each(rests);
        assert!(places.take(peer(2)).is_some());
        assert_eq!(told(&others), 1);
        // An IPv6 address has a network; whoever is at a unix socket is nobody in particular.
        assert!(places.take(Peer::Unix).is_some());
    }

    #[test]
    fn guests_make_room_for_one_another() {
        let places = Places::new(&ServeOptions::default());
        let guests: Vec<PlaceGuard> = (0..GUESTS_MAX).map(|_| places.take_guest()).collect();
        assert_eq!(told(&guests), 0);
        let _next = places.take_guest();
        assert!(guests[0].place.is_told_to_leave());
        assert_eq!(told(&guests), 1);
        drop(guests);
        assert_eq!(places.lock().guests.len(), 1);
    }
}
