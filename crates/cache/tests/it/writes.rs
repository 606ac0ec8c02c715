//! The queue of writes to the remote tier stays within its limits.

use std::{net::IpAddr, sync::Arc};

use ogive_base::{MemoryBudget, Reservation, ShareLimits};
use ogive_cache::{
    Key, Remote, RemoteLimits, RemoteTier, RemoteWrite, WriteQueue, writer::WRITE_BYTES,
};

use crate::{made::NOW, remote_double::Service};

const CLIENTS: [Option<IpAddr>; 2] = [
    Some(IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1))),
    Some(IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2))),
];

fn write(n: u8, bytes: usize) -> RemoteWrite {
    RemoteWrite {
        key: Key([n; 16]),
        value: vec![0; bytes],
        until: NOW,
    }
}

#[tokio::test]
async fn one_client_fills_its_share_only_until_its_writes_are_sent() {
    let budget = Arc::new(MemoryBudget::default());
    let each = 2 * (WRITE_BYTES + 1_000);
    let limits = ShareLimits {
        all: 2 * each,
        each,
    };
    let queue = WriteQueue::new(limits, &budget);
    let [one, other] = CLIENTS;
    (0..3).for_each(|n| queue.push(write(n, 1_000), one));
    assert_eq!((queue.len(), queue.dropped()), (2, 1));
    queue.push(write(3, 1_000), other);
    assert_eq!((queue.len(), queue.dropped()), (3, 1));
    let service = Service::new();
    let tier: Arc<dyn RemoteTier> = Arc::clone(&service) as _;
    queue
        .flush(&Remote::new(tier, RemoteLimits::default()))
        .await;
    assert_eq!(service.state().values.len(), 3);
    assert_eq!(budget.used(), 0);
    queue.push(write(4, 1_000), one);
    assert_eq!(queue.len(), 1);
}

#[test]
fn a_request_that_needs_memory_gets_that_of_the_latest_writes() {
    let budget = Arc::new(MemoryBudget::new(1 << 20));
    let all = usize::MAX;
    let queue = WriteQueue::new(ShareLimits { all, each: all }, &budget);
    (0..100).for_each(|n| queue.push(write(n, 10_000), None));
    let queued = budget.used();
    assert!(queued > 500_000 && queued <= 1 << 19, "{queued}");
    let request = Reservation::new(&budget);
    request.grow(700_000).unwrap();
    assert!(budget.used() <= budget.admitting());
    assert!(!queue.is_empty(), "the rest still waits");
    assert_eq!(queue.len() as u64 + queue.dropped(), 100);
}
