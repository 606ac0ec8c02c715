//! In-flight sharing: equal work that is under way at the same time is done once, whoever asks.
//!
//! [`RequestTransport`](crate::RequestTransport) shares requests to subgraphs; a gateway shares whole operations with a
//! key of its own. For a request, equal means: every byte that would be sent is equal, headers and credentials included.
//! A keyed hash finds candidates, full comparison decides, so that nobody can aim for somebody else's answer. Only
//! queries are shared. Everybody gets the same result, failures included, unless it is the leader's own affair (too little
//! time or memory) or was made for the leader alone ([`Whose`]). Nothing is kept: a request that comes after the answer is
//! sent again.
//!
//! One of those who wait is the leader: its work is done. If the leader's client leaves, its work is cancelled and the
//! next who is polled leads, with work of its own. Those who came last are woken first: mostly they have the most time
//! left, so that the lead changes as rarely as can be.
//!
//! Lives on one thread: one [`Flights`] per worker.

use std::{
    cell::{Cell, RefCell},
    future::{Future, poll_fn},
    hash::{BuildHasher, Hash},
    pin::{Pin, pin},
    rc::Rc,
    task::{Context, Poll, Waker},
};

use foldhash::quality::RandomState;
use hashbrown::HashTable;
use tokio::time::{Instant, sleep_until};

/// Whom an outcome is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Whose {
    /// Everybody who waits for it.
    Everybodys,
    /// The leader's: it says nothing about others, who ask again, together.
    OwnAffair,
    /// The leader's alone: an equal request would be answered otherwise, so others ask again, each for themselves.
    Personal,
}

/// How waiting for work ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Landed<O> {
    /// With the outcome of the own work.
    Led(O),
    /// With that of somebody else.
    Joined(O),
    /// Nothing can be shared: whoever wants an outcome has to do the work.
    Alone,
    /// The time is over.
    TooLate,
}

/// The work under way on one thread, by what makes it equal: a key `K`, which decides by `Eq`, and its outcome `O`.
#[derive(Debug)]
pub struct Flights<K, O> {
    hasher: RandomState,
    table: RefCell<HashTable<Rc<Flight<K, O>>>>,
    led: Cell<u64>,
    joined: Cell<u64>,
}

impl<K, O> Default for Flights<K, O> {
    fn default() -> Self {
        Flights {
            hasher: RandomState::default(),
            table: RefCell::default(),
            led: Cell::default(),
            joined: Cell::default(),
        }
    }
}

impl<K, O> Flights<K, O> {
    /// How often work was begun.
    pub fn led(&self) -> u64 {
        self.led.get()
    }
    /// How often somebody joined work under way.
    pub fn joined(&self) -> u64 {
        self.joined.get()
    }
    /// How much different work is under way.
    pub fn under_way(&self) -> usize {
        self.table.borrow().len()
    }
}

impl<K: Eq + Hash, O: Clone> Flights<K, O> {
    /// The outcome of the work that `key` stands for: `lead` begins it, unless somebody is at it already.
    pub fn fly<'a, F>(&'a self, key: K, lead: F) -> impl Future<Output = O> + 'a
    where
        F: FnOnce() -> Pin<Box<dyn Future<Output = O> + 'a>> + Unpin + 'a,
    {
        self.board(key, lead)
    }

    fn board<'a, F>(&'a self, key: K, lead: F) -> Passenger<'a, K, O, F>
    where
        F: FnOnce() -> Pin<Box<dyn Future<Output = O> + 'a>>,
    {
        Passenger {
            flight: self.join(key),
            flights: self,
            lead: Some(lead),
            leading: None,
            seat: None,
            landed: false,
        }
    }

    /// The outcome of the work that `key` stands for, for somebody who has a time of their own. Who joins others waits
    /// for them until `deadline` only. (Who leads has the outcome of the own work, whenever it comes.) What others got may
    /// be theirs, as `whose` says: if it is their own affair, this one asks again, together with all others whom that leaves
    /// without an answer.
    pub async fn fly_until<'a>(
        &self,
        deadline: Instant,
        mut key: K,
        lead: impl Fn() -> Pin<Box<dyn Future<Output = O> + 'a>>,
        whose: impl Fn(&O) -> Whose,
    ) -> Landed<O>
    where
        K: Clone,
    {
        loop {
            let led = Cell::new(false);
            let leads = || {
                led.set(true);
                lead()
            };
            let mut flight = pin!(self.board(key, leads));
            let mut patience = None;
            let outcome = poll_fn(|context| {
                if let Poll::Ready(outcome) = flight.as_mut().poll(context) {
                    return Poll::Ready(Some(outcome));
                }
                if led.get() {
                    return Poll::Pending;
                }
                let begin = || Box::pin(sleep_until(deadline));
                let over = patience.get_or_insert_with(begin).as_mut().poll(context);
                over.map(|()| None)
            });
            let Some(outcome) = outcome.await else {
                return Landed::TooLate;
            };
            if led.get() {
                return Landed::Led(outcome);
            }
            match whose(&outcome) {
                Whose::Everybodys => return Landed::Joined(outcome),
                _ if Instant::now() >= deadline => return Landed::TooLate,
                // One after the other would take as long as all of them together.
                Whose::Personal => return Landed::Alone,
                Whose::OwnAffair => key = flight.flight.key.clone(),
            }
        }
    }

    /// The flight of a key, made if there is none.
    fn join(&self, key: K) -> Rc<Flight<K, O>> {
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
    fn remove(&self, flight: &Rc<Flight<K, O>>) {
        let hash = self.hasher.hash_one(&flight.key);
        let mut table = self.table.borrow_mut();
        if let Ok(entry) = table.find_entry(hash, |known| Rc::ptr_eq(known, flight)) {
            entry.remove();
        }
    }
}

/// Work under way.
#[derive(Debug)]
struct Flight<K, O> {
    key: K,
    state: RefCell<State<O>>,
    /// Futures that have not been answered or dropped.
    passengers: Cell<usize>,
}

#[derive(Debug)]
struct State<O> {
    led: bool,
    outcome: Option<O>,
    /// One for everybody who has waited; empty once they were woken.
    seats: Vec<Option<Waker>>,
    /// Those whose passengers are gone.
    free: Vec<usize>,
}

impl<O> Default for State<O> {
    fn default() -> Self {
        State {
            led: false,
            outcome: None,
            seats: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<O> State<O> {
    /// Somebody waits, in the seat they have or in a new one; gives the seat. Takes the same time however many wait.
    fn wait(&mut self, seat: Option<usize>, waker: &Waker) -> usize {
        let seat = seat.or_else(|| self.free.pop()).unwrap_or_else(|| {
            self.seats.push(None);
            self.seats.len() - 1
        });
        match &mut self.seats[seat] {
            Some(known) => known.clone_from(waker),
            empty => *empty = Some(waker.clone()),
        }
        seat
    }
}

impl<K, O> Flight<K, O> {
    /// Everybody looks again. Woken after the borrow ends, because an executor may poll at once.
    fn wake_all(&self) {
        let mut state = self.state.borrow_mut();
        let waiting = state.seats.iter_mut().rev();
        let wakers: Vec<Waker> = waiting.filter_map(Option::take).collect();
        drop(state);
        for waker in wakers {
            waker.wake();
        }
    }
}

/// Somebody who wants the outcome.
struct Passenger<'a, K: Eq + Hash, O: Clone, F> {
    flights: &'a Flights<K, O>,
    flight: Rc<Flight<K, O>>,
    /// Begins the work; there until this passenger leads.
    lead: Option<F>,
    /// The leader's own work.
    leading: Option<Pin<Box<dyn Future<Output = O> + 'a>>>,
    /// Where it waits, once it has waited.
    seat: Option<usize>,
    landed: bool,
}

impl<'a, K, O, F> Future for Passenger<'a, K, O, F>
where
    K: Eq + Hash,
    O: Clone,
    F: FnOnce() -> Pin<Box<dyn Future<Output = O> + 'a>> + Unpin,
{
    type Output = O;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<O> {
        let this = &mut *self;
        if this.leading.is_none() {
            let mut state = this.flight.state.borrow_mut();
            if let Some(outcome) = state.outcome.clone() {
                drop(state);
                this.land();
                return Poll::Ready(outcome);
            }
            if state.led {
                this.seat = Some(state.wait(this.seat, context.waker()));
                return Poll::Pending;
            }
            let Some(lead) = this.lead.take() else {
                return Poll::Pending;
            };
            drop(state);
            this.flights.led.set(this.flights.led.get() + 1);
            this.leading = Some(lead());
            // Only now: whoever fails to begin leads nobody.
            this.flight.state.borrow_mut().led = true;
        }
        let Some(future) = &mut this.leading else {
            return Poll::Pending;
        };
        match future.as_mut().poll(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(outcome) => {
                this.leading = None;
                // Whoever comes now is too late to share.
                this.flights.remove(&this.flight);
                if this.flight.passengers.get() > 1 {
                    this.flight.state.borrow_mut().outcome = Some(outcome.clone());
                }
                this.land();
                this.flight.wake_all();
                Poll::Ready(outcome)
            }
        }
    }
}

impl<K: Eq + Hash, O: Clone, F> Passenger<'_, K, O, F> {
    fn land(&mut self) {
        self.landed = true;
        if let Some(seat) = self.seat.take() {
            let mut state = self.flight.state.borrow_mut();
            state.seats[seat] = None;
            state.free.push(seat);
        }
        self.flight.passengers.set(self.flight.passengers.get() - 1);
    }
}

impl<K: Eq + Hash, O: Clone, F> Drop for Passenger<'_, K, O, F> {
    fn drop(&mut self) {
        if self.landed {
            return;
        }
        self.land();
        if self.flight.passengers.get() == 0 {
            self.flights.remove(&self.flight);
        }
        if self.leading.take().is_some() {
            // The work is cancelled; somebody else leads.
            self.flight.state.borrow_mut().led = false;
            self.flight.wake_all();
        }
    }
}
