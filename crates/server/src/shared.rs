//! What all connections of a worker have in common.

use std::{cell::Cell, rc::Rc, sync::Arc};

use ogive_base::Reservation;
use ogive_net::ServerTls;

use crate::{
    draining::Draining, options::ServeOptions, request_queue::RequestQueue, service::Service,
};

/// What all connections of a worker have in common.
pub(crate) struct Shared<S: Service> {
    pub(crate) service: Arc<S>,
    pub(crate) worker: S::Worker,
    pub(crate) options: Rc<ServeOptions>,
    pub(crate) tls: Option<Arc<ServerTls>>,
    pub(crate) draining: Draining,
    pub(crate) queue: Rc<RequestQueue>,
    /// How many requests came, so that it can be told when none does.
    pub(crate) requests: Cell<u64>,
}

/// Where the memory is counted that connections hold.
pub(crate) trait CountsMemory {
    /// Counts what a connection makes the process hold.
    fn reserve(&self) -> Reservation;
}

impl<S: Service> CountsMemory for Shared<S> {
    fn reserve(&self) -> Reservation {
        self.service.reserve(&self.worker)
    }
}
