//! A remote tier in memory that can be slow, fail, forget and go back.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use bytes::Bytes;
use ogive_cache::{
    Changes, Fetched, Invalidation, Key, Position, RemoteError, RemoteFuture, RemoteTier,
    RemoteWrite, Tag,
};

/// The service, as all processes see it.
#[derive(Debug, Default)]
pub(crate) struct Service(Mutex<State>);

#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    pub(crate) values: HashMap<Key, Bytes>,
    pub(crate) position: Position,
    pub(crate) history: Vec<Invalidation>,
    /// Epochs are not chosen at random here.
    epochs: u64,
    pub(crate) delay: Duration,
    pub(crate) is_failing: bool,
    pub(crate) fetches: usize,
    pub(crate) keys: usize,
}

impl Service {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }
    /// All values and the clock are lost.
    pub(crate) fn flush(&self) {
        let mut state = self.state();
        let epochs = state.epochs;
        *state = State {
            epochs,
            ..State::default()
        };
    }
    /// A replica takes over that has not seen what happened since `older`.
    pub(crate) fn fail_over(&self, older: State) {
        let mut state = self.state();
        let epochs = state.epochs;
        *state = State { epochs, ..older };
    }

    fn answer<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut State) -> T + Send + 'static,
    ) -> RemoteFuture<'_, T> {
        let (delay, is_failing) = {
            let state = self.state();
            (state.delay, state.is_failing)
        };
        Box::pin(async move {
            if !delay.is_zero() {
                tokio::time::sleep(delay).await;
            }
            if is_failing {
                return Err(RemoteError::Failed("planted".into()));
            }
            let mut state = self.state();
            state.begin_clock();
            Ok(work(&mut state))
        })
    }
}

impl State {
    fn begin_clock(&mut self) {
        if self.position.epoch == 0 {
            self.begin_epoch();
        }
    }
    fn begin_epoch(&mut self) {
        self.epochs += 1;
        self.history.clear();
        self.position = Position {
            epoch: self.epochs,
            ..Position::default()
        };
    }
}

impl RemoteTier for Service {
    fn fetch<'a>(&'a self, keys: &'a [Key]) -> RemoteFuture<'a, Fetched> {
        let keys = keys.to_vec();
        self.answer(move |state| {
            state.fetches += 1;
            state.keys += keys.len();
            Fetched {
                position: state.position,
                values: keys
                    .iter()
                    .map(|key| state.values.get(key).cloned())
                    .collect(),
            }
        })
    }

    fn insert(&self, writes: Vec<RemoteWrite>) -> RemoteFuture<'_, ()> {
        self.answer(move |state| {
            let writes = writes.into_iter();
            state
                .values
                .extend(writes.map(|write| (write.key, write.value.into())));
        })
    }

    fn invalidate<'a>(&'a self, tags: &'a [Tag], nonce: u64) -> RemoteFuture<'a, Position> {
        let tags = tags.to_vec();
        self.answer(move |state| {
            state.position.number += 1;
            state.position.nonce = nonce;
            let position = state.position;
            state.history.push(Invalidation { position, tags });
            position
        })
    }

    fn changes_since(&self, known: Position) -> RemoteFuture<'_, Changes> {
        self.answer(move |state| {
            let at = |number: u64| state.history.iter().find(|i| i.position.number == number);
            let has_same = known.epoch == state.position.epoch
                && match at(known.number) {
                    Some(same) => same.position.nonce == known.nonce,
                    None => known.number == 0,
                };
            if !has_same {
                return Changes::Replaced(state.position);
            }
            let later = state.history.iter();
            let later = later.filter(|i| i.position.number > known.number);
            Changes::Since(later.cloned().collect())
        })
    }

    fn begin_epoch(&self, instead_of: u64) -> RemoteFuture<'_, Position> {
        self.answer(move |state| {
            if state.position.epoch == instead_of {
                state.begin_epoch();
            }
            state.position
        })
    }
}
