//! How many connections each client has.

use std::{
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use ogive_base::FastMap;
use ogive_config::Measured;

use super::ServeOptions;
use crate::proxies::{Proxies, network};

/// Numbers of connections by address, if they are limited. There are never more addresses than connections.
pub(super) struct Clients {
    counts: Arc<Counts>,
    max: Option<Measured<usize>>,
    exempt: Proxies,
}

#[derive(Default)]
struct Counts(Mutex<FastMap<IpAddr, usize>>);

/// One connection; counted until it is dropped.
pub(super) struct Place {
    counts: Arc<Counts>,
    client: IpAddr,
    /// Which of its client it is, from 1.
    pub(super) number: usize,
}

impl Counts {
    /// Every change is complete when the lock is given back.
    fn lock(&self) -> MutexGuard<'_, FastMap<IpAddr, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clients {
    pub(super) fn new(options: &ServeOptions) -> Self {
        Clients {
            counts: Arc::default(),
            max: options.client_connections(),
            exempt: options.trusted_proxies.clone(),
        }
    }
    /// The limit.
    pub(super) fn max(&self) -> Option<&Measured<usize>> {
        self.max.as_ref()
    }
    /// A place for a connection; `None` if nobody counts it, an error if its client has as many as it may.
    pub(super) fn place(&self, address: Option<IpAddr>) -> Result<Option<Place>, IpAddr> {
        let address = address.map(|address| address.to_canonical());
        let (Some(max), Some(address)) = (self.max, address) else {
            return Ok(None);
        };
        if self.exempt.contains(Some(address)) {
            return Ok(None);
        }
        let client = network(address);
        let mut counts = self.counts.lock();
        let count = counts.entry(client).or_default();
        if *count >= max.ceiling {
            return Err(address);
        }
        *count += 1;
        let number = *count;
        let counts = Arc::clone(&self.counts);
        Ok(Some(Place {
            counts,
            client,
            number,
        }))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut counts = self.counts.lock();
        if let Some(count) = counts.get_mut(&self.client) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.client);
            }
        }
    }
}
