//! In-flight sharing: equal requests to a subgraph that are under way at the same time are sent once, whoever asks.
//!
//! Equal means: every byte that would be sent is equal, headers and credentials included
//! ([`Transport::fingerprint`]). A keyed hash finds candidates, full comparison decides, so that nobody can aim for
//! somebody else's answer. Only queries are shared. Everybody gets the same result, failures included. Nothing is kept:
//! a request that comes after the answer is sent again.
//!
//! One of those who wait is the leader: its transport sends. If the leader's client leaves, its request is cancelled
//! and the next who is polled leads, with a request of its own.
//!
//! Lives on one thread, like the futures of a [`Transport`]: one [`Flights`] per worker, and per schema, because
//! subgraphs are numbers.

use std::{
    cell::{Cell, RefCell},
    future::Future,
    hash::BuildHasher,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, Waker},
};

use bytes::Bytes;
use foldhash::quality::RandomState;
use hashbrown::HashTable;

use crate::transport::{
    SubgraphRequest, SubgraphResponse, Transport, TransportError, TransportFuture,
};

type Outcome = Result<SubgraphResponse, TransportError>;

/// The requests under way on one thread.
#[derive(Debug, Default)]
pub struct Flights {
    hasher: RandomState,
    table: RefCell<HashTable<Rc<Flight>>>,
    led: Cell<u64>,
    joined: Cell<u64>,
}

impl Flights {
    /// Number of requests that were sent.
    pub fn led(&self) -> u64 {
        self.led.get()
    }
    /// Number of requests that joined one under way.
    pub fn joined(&self) -> u64 {
        self.joined.get()
    }
    /// Number of different requests under way.
    pub fn under_way(&self) -> usize {
        self.table.borrow().len()
    }

    /// The flight of a request, made if there is none.
    fn join(&self, key: Key) -> Rc<Flight> {
        let hash = self.hasher.hash_one(&key);
        let mut table = self.table.borrow_mut();
        if let Some(flight) = table.find(hash, |flight| flight.key == key) {
            flight.passengers.set(flight.passengers.get() + 1);
            self.joined.set(self.joined.get() + 1);
            return Rc::clone(flight);
        }
        let flight = Rc::new(Flight {
            key,
            state: RefCell::default(),
            passengers: Cell::new(1),
        });
        table.insert_unique(hash, Rc::clone(&flight), |flight| {
            self.hasher.hash_one(&flight.key)
        });
        flight
    }
    fn remove(&self, flight: &Rc<Flight>) {
        let hash = self.hasher.hash_one(&flight.key);
        let mut table = self.table.borrow_mut();
        if let Ok(entry) = table.find_entry(hash, |known| Rc::ptr_eq(known, flight)) {
            entry.remove();
        }
    }
}

/// What requests are equal by.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Key {
    subgraph: u32,
    fingerprint: Bytes,
    body: Bytes,
}

/// One request under way.
#[derive(Debug)]
struct Flight {
    key: Key,
    state: RefCell<State>,
    /// Futures that have not been answered or dropped.
    passengers: Cell<usize>,
}

#[derive(Debug, Default)]
struct State {
    led: bool,
    outcome: Option<Outcome>,
    /// Of those who wait.
    wakers: Vec<Waker>,
}

impl Flight {
    /// Everybody looks again. Woken after the borrow ends, because an executor may poll at once.
    fn wake_all(&self) {
        let wakers = std::mem::take(&mut self.state.borrow_mut().wakers);
        for waker in wakers {
            waker.wake();
        }
    }
}

/// A transport whose requests share flights with those of others.
pub struct SharedTransport<'a> {
    inner: &'a dyn Transport,
    flights: &'a Flights,
}

impl<'a> SharedTransport<'a> {
    /// Sends through `inner`, unless an equal request is under way in `flights`.
    pub fn new(inner: &'a dyn Transport, flights: &'a Flights) -> Self {
        SharedTransport { inner, flights }
    }
}

impl Transport for SharedTransport<'_> {
    fn send(&self, request: SubgraphRequest) -> TransportFuture<'_> {
        let fingerprint = self.inner.fingerprint(request.subgraph);
        let Some(fingerprint) = fingerprint.filter(|_| request.idempotent) else {
            return self.inner.send(request);
        };
        let flight = self.flights.join(Key {
            subgraph: request.subgraph,
            fingerprint,
            body: request.body.clone(),
        });
        Box::pin(Passenger {
            inner: self.inner,
            flights: self.flights,
            flight,
            request,
            leading: None,
            landed: false,
        })
    }
    fn fingerprint(&self, subgraph: u32) -> Option<Bytes> {
        self.inner.fingerprint(subgraph)
    }
    fn shows_errors(&self, subgraph: u32) -> bool {
        self.inner.shows_errors(subgraph)
    }
}

/// Somebody who wants the answer.
struct Passenger<'a> {
    inner: &'a dyn Transport,
    flights: &'a Flights,
    flight: Rc<Flight>,
    request: SubgraphRequest,
    /// The leader's own request.
    leading: Option<TransportFuture<'a>>,
    landed: bool,
}

impl Future for Passenger<'_> {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Outcome> {
        let this = &mut *self;
        if this.leading.is_none() {
            let mut state = this.flight.state.borrow_mut();
            if let Some(outcome) = state.outcome.clone() {
                drop(state);
                this.land();
                return Poll::Ready(outcome);
            }
            if state.led {
                if !state.wakers.iter().any(|w| w.will_wake(context.waker())) {
                    state.wakers.push(context.waker().clone());
                }
                return Poll::Pending;
            }
            state.led = true;
            drop(state);
            this.flights.led.set(this.flights.led.get() + 1);
            this.leading = Some(this.inner.send(this.request.clone()));
        }
        let Some(future) = &mut this.leading else {
            return Poll::Pending;
        };
        match future.as_mut().poll(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(outcome) => {
                this.leading = None;
                this.flight.state.borrow_mut().outcome = Some(outcome.clone());
                // Whoever comes now is too late to share.
                this.flights.remove(&this.flight);
                this.land();
                this.flight.wake_all();
                Poll::Ready(outcome)
            }
        }
    }
}

impl Passenger<'_> {
    fn land(&mut self) {
        self.landed = true;
        self.flight.passengers.set(self.flight.passengers.get() - 1);
    }
}

impl Drop for Passenger<'_> {
    fn drop(&mut self) {
        if self.landed {
            return;
        }
        self.land();
        if self.flight.passengers.get() == 0 {
            self.flights.remove(&self.flight);
        }
        if self.leading.take().is_some() {
            // The request is cancelled; somebody else leads.
            self.flight.state.borrow_mut().led = false;
            self.flight.wake_all();
        }
    }
}
