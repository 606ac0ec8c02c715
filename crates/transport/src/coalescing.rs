//! Request coalescing: equal work that is under way at the same time is done once, whoever asks.
//!
//! [`RequestTransport`](crate::RequestTransport) shares requests to subgraphs; a gateway shares whole operations with a
//! key of its own. For a request, equal means: every byte that would be sent is equal, headers and credentials included.
//! A keyed hash finds candidates, full comparison decides, so that nobody can aim for somebody else's answer. Only
//! queries are shared. Everybody gets the same result, failures included, unless it is the leader's own affair (too little
//! time or memory) or was made for the leader alone ([`SharingScope`]). Nothing is kept: a request that comes after the answer is
//! sent again.
//!
//! One of those who wait is the leader: its work is done. If the leader's client leaves, its work is cancelled and the
//! next who is polled leads, with work of its own. Those who came last are woken first: mostly they have the most time
//! left, so that the lead changes as rarely as can be.
//!
//! Lives on one thread: one [`Coalescer`] per worker.

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
pub enum SharingScope {
    /// Everybody who waits for it.
    Everybody,
    /// The leader's: it says nothing about others, who ask again, together.
    OwnAffair,
    /// The leader's alone: an equal request would be answered otherwise, so others ask again, each for themselves.
    Personal,
}

/// How waiting for work ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Coalesced<O> {
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
pub struct Coalescer<K, O> {
    hasher: RandomState,
    table: RefCell<HashTable<Rc<SharedWork<K, O>>>>,
    led: Cell<u64>,
    joined: Cell<u64>,
}

impl<K, O> Default for Coalescer<K, O> {
    fn default() -> Self {
        Coalescer {
            hasher: RandomState::default(),
            table: RefCell::default(),
            led: Cell::default(),
            joined: Cell::default(),
        }
    }
}

impl<K, O> Coalescer<K, O> {
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

impl<K: Eq + Hash, O: Clone> Coalescer<K, O> {
    /// The outcome of the work that `key` stands for: `lead` begins it, unless somebody is at it already.
    pub fn join_or_lead<'a, F>(&'a self, key: K, lead: F) -> impl Future<Output = O> + 'a
    where
        F: FnOnce() -> Pin<Box<dyn Future<Output = O> + 'a>> + Unpin + 'a,
    {
        self.wait_for(key, lead)
    }

    fn wait_for<'a, F>(&'a self, key: K, lead: F) -> Waiter<'a, K, O, F>
    where
        F: FnOnce() -> Pin<Box<dyn Future<Output = O> + 'a>>,
    {
        Waiter {
            work: self.join(key),
            coalescer: self,
            lead: Some(lead),
            leading: None,
            slot: None,
            finished: false,
        }
    }

    /// The outcome of the work that `key` stands for, for somebody who has a time of their own. Who joins others waits
    /// for them until `deadline` only. (Who leads has the outcome of the own work, whenever it comes.) What others got may
    /// be theirs, as `scope` says: if it is their own affair, this one asks again, together with all others whom that leaves
    /// without an answer.
    pub async fn join_until<'a>(
        &self,
        deadline: Instant,
        mut key: K,
        lead: impl Fn() -> Pin<Box<dyn Future<Output = O> + 'a>>,
        scope: impl Fn(&O) -> SharingScope,
    ) -> Coalesced<O>
    where
        K: Clone,
    {
        loop {
            let led = Cell::new(false);
            let leads = || {
                led.set(true);
                lead()
            };
            let mut waiter = pin!(self.wait_for(key, leads));
            let mut patience = None;
            let outcome = poll_fn(|context| {
                if let Poll::Ready(outcome) = waiter.as_mut().poll(context) {
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
                return Coalesced::TooLate;
            };
            if led.get() {
                return Coalesced::Led(outcome);
            }
            match scope(&outcome) {
                SharingScope::Everybody => return Coalesced::Joined(outcome),
                _ if Instant::now() >= deadline => return Coalesced::TooLate,
                // One after the other would take as long as all of them together.
                SharingScope::Personal => return Coalesced::Alone,
                SharingScope::OwnAffair => key = waiter.work.key.clone(),
            }
        }
    }

    /// The work of a key, made if there is none.
    fn join(&self, key: K) -> Rc<SharedWork<K, O>> {
        let hash = self.hasher.hash_one(&key);
        let mut table = self.table.borrow_mut();
        if let Some(work) = table.find(hash, |work| work.key == key) {
            work.waiters.set(work.waiters.get() + 1);
            self.joined.set(self.joined.get() + 1);
            return Rc::clone(work);
        }
        let work = Rc::new(SharedWork {
            key,
            hash,
            state: RefCell::default(),
            waiters: Cell::new(1),
        });
        table.insert_unique(hash, Rc::clone(&work), |work| work.hash);
        work
    }
    fn remove(&self, work: &Rc<SharedWork<K, O>>) {
        let mut table = self.table.borrow_mut();
        if let Ok(entry) = table.find_entry(work.hash, |known| Rc::ptr_eq(known, work)) {
            entry.remove();
        }
    }
}

/// Work under way.
#[derive(Debug)]
struct SharedWork<K, O> {
    key: K,
    /// That of the key: keys are as long as requests.
    hash: u64,
    state: RefCell<State<O>>,
    /// Futures that have not been answered or dropped.
    waiters: Cell<usize>,
}

#[derive(Debug)]
struct State<O> {
    led: bool,
    outcome: Option<O>,
    /// One for everybody who has waited; empty once they were woken.
    slots: Vec<Option<Waker>>,
    /// Those whose waiters are gone.
    free: Vec<usize>,
}

impl<O> Default for State<O> {
    fn default() -> Self {
        State {
            led: false,
            outcome: None,
            slots: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<O> State<O> {
    /// Somebody waits, in the slot they have or in a new one; gives the slot. Takes the same time however many wait.
    fn wait(&mut self, slot: Option<usize>, waker: &Waker) -> usize {
        let slot = slot.or_else(|| self.free.pop()).unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        match &mut self.slots[slot] {
            Some(known) => known.clone_from(waker),
            empty => *empty = Some(waker.clone()),
        }
        slot
    }
}

impl<K, O> SharedWork<K, O> {
    /// Everybody looks again. Woken after the borrow ends, because an executor may poll at once.
    fn wake_all(&self) {
        let mut state = self.state.borrow_mut();
        let waiting = state.slots.iter_mut().rev();
        let wakers: Vec<Waker> = waiting.filter_map(Option::take).collect();
        drop(state);
        for waker in wakers {
            waker.wake();
        }
    }
}

/// Somebody who wants the outcome.
struct Waiter<'a, K: Eq + Hash, O: Clone, F> {
    coalescer: &'a Coalescer<K, O>,
    work: Rc<SharedWork<K, O>>,
    /// Begins the work; there until this waiter leads.
    lead: Option<F>,
    /// The leader's own work.
    leading: Option<Pin<Box<dyn Future<Output = O> + 'a>>>,
    /// Where it waits, once it has waited.
    slot: Option<usize>,
    finished: bool,
}

impl<'a, K, O, F> Future for Waiter<'a, K, O, F>
where
    K: Eq + Hash,
    O: Clone,
    F: FnOnce() -> Pin<Box<dyn Future<Output = O> + 'a>> + Unpin,
{
    type Output = O;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<O> {
        let this = &mut *self;
        if this.leading.is_none() {
            let mut state = this.work.state.borrow_mut();
            if let Some(outcome) = state.outcome.clone() {
                drop(state);
                this.finish();
                return Poll::Ready(outcome);
            }
            if state.led {
                this.slot = Some(state.wait(this.slot, context.waker()));
                return Poll::Pending;
            }
            let Some(lead) = this.lead.take() else {
                return Poll::Pending;
            };
            drop(state);
            this.coalescer.led.set(this.coalescer.led.get() + 1);
            this.leading = Some(lead());
            // Only now: whoever fails to begin leads nobody.
            this.work.state.borrow_mut().led = true;
        }
        let Some(future) = &mut this.leading else {
            return Poll::Pending;
        };
        match future.as_mut().poll(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(outcome) => {
                this.leading = None;
                // Whoever comes now is too late to share.
                this.coalescer.remove(&this.work);
                if this.work.waiters.get() > 1 {
                    this.work.state.borrow_mut().outcome = Some(outcome.clone());
                }
                this.finish();
                this.work.wake_all();
                Poll::Ready(outcome)
            }
        }
    }
}

impl<K: Eq + Hash, O: Clone, F> Waiter<'_, K, O, F> {
    fn finish(&mut self) {
        self.finished = true;
        if let Some(slot) = self.slot.take() {
            let mut state = self.work.state.borrow_mut();
            state.slots[slot] = None;
            state.free.push(slot);
        }
        self.work.waiters.set(self.work.waiters.get() - 1);
    }
}

impl<K: Eq + Hash, O: Clone, F> Drop for Waiter<'_, K, O, F> {
    fn drop(&mut self) {
        if self.finished {
            return;
        }
        self.finish();
        if self.work.waiters.get() == 0 {
            self.coalescer.remove(&self.work);
        }
        if self.leading.take().is_some() {
            // The work is cancelled; somebody else leads.
            self.work.state.borrow_mut().led = false;
            self.work.wake_all();
        }
    }
}
