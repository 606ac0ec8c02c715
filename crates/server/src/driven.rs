//! What whoever drives the protocol of a connection needs.

use std::{rc::Rc, time::Duration};

use tokio::time::Instant;

use crate::{
    activity::Activity, draining::Draining, io::Bytes, options::ServeOptions, places::PlaceGuard,
};

/// Why a connection ended early.
pub(crate) type Error = Box<dyn std::error::Error + Send + Sync>;

/// What whoever drives the protocol of a connection needs.
pub(crate) struct Driven {
    pub(crate) bytes: Bytes,
    pub(crate) place: PlaceGuard,
    pub(crate) activity: Rc<Activity>,
    pub(crate) options: Rc<ServeOptions>,
    pub(crate) draining: Draining,
    /// When the connection did.
    pub(crate) began: Instant,
    /// How long a head may take, and how long a connection may be idle.
    pub(crate) patience: Duration,
}

impl Driven {
    /// Whether nothing is asked, and the client has all that was answered.
    pub(crate) fn is_idle(&self) -> bool {
        self.activity.is_idle() && !self.bytes.has_unwritten()
    }
}
