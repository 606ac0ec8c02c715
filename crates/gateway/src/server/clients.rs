//! How many connections each client has.

use std::{
    net::{IpAddr, Ipv6Addr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use ogive_base::FastMap;

use super::ServeOptions;

/// Numbers of connections by address, if they are limited. There are never more addresses than connections.
pub(super) struct Clients {
    counts: Arc<Counts>,
    max: Option<usize>,
    exempt: Vec<IpAddr>,
}

#[derive(Default)]
struct Counts(Mutex<FastMap<IpAddr, usize>>);

/// One connection; counted until it is dropped.
pub(super) struct Place {
    counts: Arc<Counts>,
    client: IpAddr,
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
            max: options.connections_per_client_max,
            exempt: options
                .trusted_proxies
                .iter()
                .map(IpAddr::to_canonical)
                .collect(),
        }
    }
    /// A place for a connection; `None` if nobody counts it, an error if its client has as many as it may.
    pub(super) fn place(&self, address: Option<IpAddr>) -> Result<Option<Place>, IpAddr> {
        let address = address.map(|address| address.to_canonical());
        let (Some(max), Some(address)) = (self.max, address) else {
            return Ok(None);
        };
        if self.exempt.contains(&address) {
            return Ok(None);
        }
        let client = network(address);
        let mut counts = self.counts.lock();
        let count = counts.entry(client).or_default();
        if *count >= max {
            return Err(address);
        }
        *count += 1;
        let counts = Arc::clone(&self.counts);
        Ok(Some(Place { counts, client }))
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

/// Whoever has an IPv6 address has a whole network of them.
fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => {
            let network = address.to_bits() & !u128::from(u64::MAX);
            IpAddr::V6(Ipv6Addr::from_bits(network))
        }
    }
}
