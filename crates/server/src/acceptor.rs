//! Lets connections in, and hands each to the worker with the fewest.

use std::{cell::RefCell, sync::Arc, time::Duration};

use ogive_limits::Measured;
use tokio::{
    sync::{Notify, OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout_at},
};

use crate::{
    listener::{Accepted, Listener},
    options::ServeOptions,
    places::{Places, SPARED},
    service::Service,
    worker::{Connection, Worker},
};

/// How often connections that are idle are looked for while a newcomer waits.
const LOOK: Duration = Duration::from_millis(100);

/// Where connections are let in.
pub(crate) struct Acceptor {
    permits: Arc<Semaphore>,
    max: Measured<usize>,
    places: Places,
    workers: Vec<Worker>,
    /// Told when a worker has begun a connection.
    room: Arc<Notify>,
    /// Accepted, and not let in yet.
    waiting: RefCell<Option<Accepted>>,
}

impl Acceptor {
    /// `room`: told when a worker has begun a connection.
    pub(crate) fn new(options: &ServeOptions, workers: Vec<Worker>, room: Arc<Notify>) -> Self {
        Acceptor {
            permits: Arc::new(Semaphore::new(options.connections().ceiling)),
            max: options.connections(),
            places: Places::new(options),
            workers,
            room,
            waiting: RefCell::default(),
        }
    }
    /// Lets connections in, for ever.
    pub(crate) async fn accept(&self, listener: &Listener, service: &impl Service) {
        // Since when there has been no place for a newcomer.
        let mut full = None;
        loop {
            // Asked before one is accepted: the operating system holds those for whom there is no room.
            while !self.workers.iter().any(Worker::has_room) {
                self.room.notified().await;
            }
            match listener.accept().await {
                Ok(accepted) => {
                    self.waiting.replace(Some(accepted));
                    let permit = self.permit(&mut full).await;
                    if let Some(accepted) = self.waiting.take() {
                        self.let_in(accepted, permit, service);
                    }
                }
                Err(error) => {
                    // Most often the process is out of file descriptors; trying again at once would only burn time.
                    tracing::warn!(%error, "a connection could not be accepted");
                    self.places.give_up(self.max.ceiling);
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }
    }
    /// Closes the socket, and lets in those whom the operating system has accepted already.
    pub(crate) fn close(&self, listener: Listener, service: &impl Service) {
        let waiting = self.waiting.take();
        for accepted in waiting.into_iter().chain(listener.close()) {
            let permit = Arc::clone(&self.permits).try_acquire_owned().ok();
            self.let_in(accepted, permit, service);
        }
    }
    /// Who has the connections.
    pub(crate) fn into_workers(self) -> Vec<Worker> {
        self.workers
    }
    /// A permit, if there is one or will be in a moment: nobody waits for one after newcomers have waited for it so long
    /// that all idle connections could have gone.
    async fn permit(&self, full: &mut Option<Instant>) -> Option<OwnedSemaphorePermit> {
        let permits = &self.permits;
        if let Ok(permit) = Arc::clone(permits).try_acquire_owned() {
            *full = None;
            return Some(permit);
        }
        let end = *full.get_or_insert_with(Instant::now) + 2 * SPARED;
        loop {
            let some_leave = self.places.give_up(self.max.ceiling);
            let now = Instant::now();
            if !some_leave && now >= end {
                return None;
            }
            let waiting = timeout_at(now + LOOK, Arc::clone(permits).acquire_owned());
            if let Ok(permit) = waiting.await {
                return permit.ok();
            }
        }
    }
    /// Hands a connection to a worker; one without a permit, or of a client that has too many, is let in for a moment.
    fn let_in(
        &self,
        accepted: Accepted,
        permit: Option<OwnedSemaphorePermit>,
        service: &impl Service,
    ) {
        let taken = match permit {
            Some(permit) => self
                .places
                .take(accepted.peer())
                .map(|taken| (permit, taken)),
            None => None,
        };
        let (place, permit) = match taken {
            Some((permit, (place, number))) => {
                let max = &self.max;
                service.note(max, &(max.ceiling - self.permits.available_permits()));
                if let Some(number) = number {
                    service.note(self.places.per_client(), &number);
                }
                (place, Some(permit))
            }
            None => {
                tracing::debug!(peer = ?accepted.peer(), "there is no place for a connection");
                (self.places.take_guest(), None)
            }
        };
        let connection = Connection {
            accepted,
            permit,
            place,
        };
        // One that is busy with others may have the fewest.
        let workers = self.workers.iter();
        if let Some(worker) = workers.min_by_key(|w| (!w.has_room(), w.load())) {
            worker.take(connection);
        }
    }
}
