//! In-flight sharing: who shares with whom, and what happens when somebody leaves.

use std::{
    cell::{Cell, RefCell},
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use bytes::Bytes;
use ogive_execute::{ErrorCode, Failure, SubgraphRequest, SubgraphResponse, TransportFuture};
use ogive_transport::Coalescer;

/// Subgraph, credentials and body.
type Key = (u32, &'static str, Bytes);
type Shared = Coalescer<Key, Result<SubgraphResponse, Failure>>;

/// One client's requests, sharing flights with those of others.
struct SharedTransport<'a> {
    client: &'a Client<'a>,
    flights: &'a Shared,
}

impl<'a> SharedTransport<'a> {
    fn new(client: &'a Client<'a>, flights: &'a Shared) -> Self {
        SharedTransport { client, flights }
    }
    fn send(&self, request: SubgraphRequest) -> TransportFuture<'_> {
        match self.client.authorization {
            Some(authorization) if request.idempotent => {
                let key = (request.subgraph, authorization, request.body);
                Box::pin(self.flights.join_or_lead(key, || self.client.send()))
            }
            _ => self.client.send(),
        }
    }
}

/// Counts what is sent; answers when told to.
#[derive(Default)]
struct Upstream {
    sent: Cell<usize>,
    cancelled: Cell<usize>,
    open: Cell<bool>,
    fails: Cell<bool>,
    wakers: RefCell<Vec<Waker>>,
}

/// One client's transport.
struct Client<'u> {
    upstream: &'u Upstream,
    authorization: Option<&'static str>,
}

struct Sent<'u> {
    upstream: &'u Upstream,
    number: usize,
    done: bool,
}

impl Future for Sent<'_> {
    type Output = Result<SubgraphResponse, Failure>;
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if !self.upstream.open.get() {
            self.upstream
                .wakers
                .borrow_mut()
                .push(context.waker().clone());
            return Poll::Pending;
        }
        self.done = true;
        Poll::Ready(if self.upstream.fails.get() {
            Err(Failure::new(ErrorCode::GATEWAY_TIMEOUT, "late", ""))
        } else {
            Ok(SubgraphResponse {
                status: 200,
                body: Bytes::from(self.number.to_string()),
            })
        })
    }
}
impl Drop for Sent<'_> {
    fn drop(&mut self) {
        if !self.done {
            self.upstream
                .cancelled
                .set(self.upstream.cancelled.get() + 1);
        }
    }
}

impl Client<'_> {
    fn send(&self) -> TransportFuture<'_> {
        self.upstream.sent.set(self.upstream.sent.get() + 1);
        Box::pin(Sent {
            upstream: self.upstream,
            number: self.upstream.sent.get(),
            done: false,
        })
    }
}

fn request(subgraph: u32, body: &'static str) -> SubgraphRequest {
    SubgraphRequest {
        subgraph,
        body: Bytes::from_static(body.as_bytes()),
        idempotent: true,
    }
}

#[derive(Default)]
struct Count(AtomicUsize);
impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Polls once; says whether the future wants to be polled again by itself.
fn poll(future: &mut TransportFuture<'_>) -> (Poll<String>, Arc<Count>) {
    let count = Arc::new(Count::default());
    let waker = Waker::from(Arc::clone(&count));
    let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
    let text = polled.map(|result| match result {
        Ok(response) => String::from_utf8(response.body.to_vec()).unwrap(),
        Err(error) => error.code.as_str().to_owned(),
    });
    (text, count)
}
fn woken(count: &Count) -> bool {
    count.0.load(Ordering::Relaxed) > 0
}

#[test]
fn equal_requests_share_and_nothing_is_kept() {
    let (upstream, flights) = (Upstream::default(), Coalescer::default());
    let client = || Client {
        upstream: &upstream,
        authorization: Some("me"),
    };
    let (one, two) = (client(), client());
    let (a, b) = (
        SharedTransport::new(&one, &flights),
        SharedTransport::new(&two, &flights),
    );
    let (mut first, mut second) = (a.send(request(0, "q")), b.send(request(0, "q")));
    assert!(poll(&mut first).0.is_pending());
    let (pending, second_wakes) = poll(&mut second);
    assert!(pending.is_pending());
    assert_eq!((upstream.sent.get(), flights.under_way()), (1, 1));
    upstream.open.set(true);
    assert_eq!(poll(&mut first).0, Poll::Ready("1".to_owned()));
    assert!(woken(&second_wakes));
    assert_eq!(flights.under_way(), 0);
    // Too late for the first flight, but the second passenger still gets its answer.
    let mut third = b.send(request(0, "q"));
    assert_eq!(poll(&mut third).0, Poll::Ready("2".to_owned()));
    assert_eq!(poll(&mut second).0, Poll::Ready("1".to_owned()));
    assert_eq!((flights.led(), flights.joined()), (2, 1));
}

#[test]
fn everything_that_is_sent_must_be_equal() {
    let (upstream, flights) = (Upstream::default(), Coalescer::default());
    let client = |authorization| Client {
        upstream: &upstream,
        authorization,
    };
    let clients = [
        client(Some("me")),
        client(Some("you")),
        client(None),
        client(None),
    ];
    let shared: Vec<_> = clients
        .iter()
        .map(|client| SharedTransport::new(client, &flights))
        .collect();
    let mutation = || SubgraphRequest {
        idempotent: false,
        ..request(0, "q")
    };
    let mut futures = vec![
        shared[0].send(request(0, "q")),
        shared[1].send(request(0, "q")),
        shared[0].send(request(1, "q")),
        shared[0].send(request(0, "p")),
        shared[2].send(request(0, "q")),
        shared[3].send(request(0, "q")),
        shared[0].send(mutation()),
        shared[0].send(mutation()),
    ];
    for future in &mut futures {
        assert!(poll(future).0.is_pending());
    }
    assert_eq!(upstream.sent.get(), futures.len());
    assert_eq!(flights.joined(), 0);
}

#[test]
fn a_thousand_identities_never_mix() {
    let (upstream, flights) = (Upstream::default(), Coalescer::default());
    let names: Vec<&'static str> = (0..1000)
        .map(|n| &*Box::leak(format!("Bearer {n}").into_boxed_str()))
        .collect();
    let clients: Vec<Client<'_>> = names
        .iter()
        .chain(&names)
        .map(|name| Client {
            upstream: &upstream,
            authorization: Some(name),
        })
        .collect();
    let shared: Vec<_> = clients
        .iter()
        .map(|client| SharedTransport::new(client, &flights))
        .collect();
    let mut futures: Vec<_> = shared.iter().map(|s| s.send(request(0, "q"))).collect();
    for future in &mut futures {
        assert!(poll(future).0.is_pending());
    }
    assert_eq!(upstream.sent.get(), 1000);
    upstream.open.set(true);
    let answers: Vec<_> = futures.iter_mut().map(|future| poll(future).0).collect();
    for (at, answer) in answers.iter().enumerate() {
        assert_eq!(*answer, Poll::Ready((at % 1000 + 1).to_string()));
    }
}

#[test]
fn somebody_else_leads_when_the_leader_leaves() {
    let (upstream, flights) = (Upstream::default(), Coalescer::default());
    let client = Client {
        upstream: &upstream,
        authorization: Some("me"),
    };
    let shared = SharedTransport::new(&client, &flights);
    let mut futures: Vec<_> = (0..4).map(|_| Some(shared.send(request(0, "q")))).collect();
    let wakes: Vec<_> = futures
        .iter_mut()
        .map(|future| poll(future.as_mut().unwrap()).1)
        .collect();
    // One who waits leaves: nobody notices.
    futures[1] = None;
    assert_eq!((upstream.sent.get(), upstream.cancelled.get()), (1, 0));
    futures[0] = None;
    assert_eq!((upstream.sent.get(), upstream.cancelled.get()), (1, 1));
    assert!(woken(&wakes[2]) && woken(&wakes[3]));
    // The one who was woken leaves before being polled.
    futures[2] = None;
    upstream.open.set(true);
    let last = futures[3].as_mut().unwrap();
    assert_eq!(poll(last).0, Poll::Ready("2".to_owned()));
    assert_eq!(flights.under_way(), 0);
}

#[test]
fn when_all_leave_nothing_remains() {
    let (upstream, flights) = (Upstream::default(), Coalescer::default());
    let client = Client {
        upstream: &upstream,
        authorization: Some("me"),
    };
    let shared = SharedTransport::new(&client, &flights);
    let mut futures: Vec<_> = (0..3).map(|_| shared.send(request(0, "q"))).collect();
    assert_eq!(flights.under_way(), 1);
    for future in &mut futures {
        assert!(poll(future).0.is_pending());
    }
    drop(futures);
    assert_eq!(flights.under_way(), 0);
    assert_eq!(upstream.cancelled.get(), 1);
}

#[test]
fn failures_are_shared() {
    let (upstream, flights) = (Upstream::default(), Coalescer::default());
    let client = Client {
        upstream: &upstream,
        authorization: Some("me"),
    };
    let shared = SharedTransport::new(&client, &flights);
    let (mut first, mut second) = (shared.send(request(0, "q")), shared.send(request(0, "q")));
    assert!(poll(&mut first).0.is_pending());
    assert!(poll(&mut second).0.is_pending());
    upstream.fails.set(true);
    upstream.open.set(true);
    for future in [&mut first, &mut second] {
        assert_eq!(poll(future).0, Poll::Ready("GATEWAY_TIMEOUT".to_owned()));
    }
    assert_eq!(upstream.sent.get(), 1);
}

/// Work that never ends.
fn endless<'a>() -> Pin<Box<dyn Future<Output = u32> + 'a>> {
    Box::pin(std::future::pending())
}

#[test]
fn who_fails_to_begin_leads_nobody() {
    let flights: Coalescer<u32, u32> = Coalescer::default();
    let poll = |future: Pin<&mut dyn Future<Output = u32>>| {
        let waker = Waker::from(Arc::<Count>::default());
        future.poll(&mut Context::from_waker(&waker))
    };
    let mut first = Box::pin(flights.join_or_lead(1, endless));
    let mut second = Box::pin(flights.join_or_lead(1, || panic!("cannot begin")));
    let mut third = Box::pin(flights.join_or_lead(1, || Box::pin(std::future::ready(3))));
    assert!(poll(first.as_mut()).is_pending());
    drop(first);
    let begun = catch_unwind(AssertUnwindSafe(|| poll(second.as_mut())));
    assert!(begun.is_err());
    drop(second);
    assert_eq!(poll(third.as_mut()), Poll::Ready(3));
}

#[test]
fn who_waits_is_woken_once_and_the_last_one_first() {
    let flights: Coalescer<u32, u32> = Coalescer::default();
    let order: Arc<Mutex<Vec<usize>>> = Arc::default();
    struct Named(usize, Arc<Mutex<Vec<usize>>>);
    impl Wake for Named {
        fn wake(self: Arc<Self>) {
            self.1.lock().unwrap().push(self.0);
        }
    }
    let mut futures: Vec<_> = (0..100)
        .map(|_| Some(Box::pin(flights.join_or_lead(1, endless))))
        .collect();
    // Each is polled by several wakers; only the last one counts.
    for round in 0..3 {
        for (at, future) in futures.iter_mut().enumerate() {
            let waker = Waker::from(Arc::new(Named(round * 100 + at, Arc::clone(&order))));
            let future = future.as_mut().unwrap().as_mut();
            assert!(future.poll(&mut Context::from_waker(&waker)).is_pending());
        }
    }
    // One who waits leaves, the next one to come has that seat.
    futures[50] = None;
    let mut late = Box::pin(flights.join_or_lead(1, endless));
    let waker = Waker::from(Arc::new(Named(999, Arc::clone(&order))));
    assert!(
        late.as_mut()
            .poll(&mut Context::from_waker(&waker))
            .is_pending()
    );
    futures[0] = None;
    let mut expected: Vec<usize> = (201..300).rev().collect();
    expected[49] = 999;
    assert_eq!(*order.lock().unwrap(), expected);
}
