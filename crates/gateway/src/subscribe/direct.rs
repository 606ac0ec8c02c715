//! Events that go from their source to a socket at once.
//!
//! An event that waits in a queue wakes the task of its client, which looks at what has happened, takes the event and
//! writes it. Where source and socket are on one thread, and nothing waits in the queue or in the socket, whoever has the
//! event writes it instead. What the socket does not take then is written by the client's task, which is woken for that;
//! until it is, further events wait in the queue as always.

use std::{
    cell::RefCell,
    rc::Rc,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use ogive_base::FastMap;
use ogive_server::Upgraded;
use ogive_stream::{Protocol, WebSocket};

use crate::subscribe::queue::{Event, EventQueue};

/// The socket of a session.
pub(crate) struct SessionSocket {
    pub(crate) socket: WebSocket<Upgraded>,
    /// Whether nothing is to be written.
    pub(crate) is_flushed: bool,
    /// The session's task, once it has waited.
    pub(crate) task: Option<Waker>,
}

/// Where the events of a queue go.
struct DirectSocket {
    socket: Rc<RefCell<SessionSocket>>,
    protocol: Protocol,
    /// What the client calls the operation.
    id: Box<str>,
}

thread_local! {
    /// Those of this thread, by the addresses of their queues.
    static SOCKETS: RefCell<FastMap<usize, DirectSocket>> = RefCell::default();
}

fn address(queue: &Arc<EventQueue>) -> usize {
    Arc::as_ptr(queue) as usize
}

/// Events of a queue go to a socket until this is dropped.
pub(crate) struct DirectGuard(Arc<EventQueue>);

impl DirectGuard {
    pub(crate) fn new(
        queue: &Arc<EventQueue>,
        socket: &Rc<RefCell<SessionSocket>>,
        (protocol, id): (Protocol, &str),
    ) -> Self {
        let direct = DirectSocket {
            socket: Rc::clone(socket),
            protocol,
            id: id.into(),
        };
        SOCKETS.with_borrow_mut(|sockets| sockets.insert(address(queue), direct));
        DirectGuard(Arc::clone(queue))
    }
}

impl Drop for DirectGuard {
    fn drop(&mut self) {
        // A thread that ends may have ended this before.
        let _ = SOCKETS.try_with(|sockets| {
            let removed = sockets.borrow_mut().remove(&address(&self.0));
            drop(removed);
        });
    }
}

/// What became of an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DirectOutcome {
    /// It is on its way.
    Sent,
    /// Nobody has taken it: it goes by the queue.
    Elsewhere,
    /// The socket takes nothing any more.
    Broken,
}

/// Writes an event if nothing is before it.
pub(crate) fn send(queue: &Arc<EventQueue>, event: &Event) -> DirectOutcome {
    SOCKETS.with_borrow(|sockets| match sockets.get(&address(queue)) {
        Some(direct) if queue.lets_past(event) => {
            let outcome = direct.send(event);
            if outcome == DirectOutcome::Sent {
                queue.pass();
            }
            outcome
        }
        _ => DirectOutcome::Elsewhere,
    })
}

impl DirectSocket {
    fn send(&self, event: &Event) -> DirectOutcome {
        // Whoever has it is about to write, or to end.
        let Ok(mut socket) = self.socket.try_borrow_mut() else {
            return DirectOutcome::Elsewhere;
        };
        let SessionSocket {
            socket,
            is_flushed: is_flushed @ true,
            task: Some(task),
        } = &mut *socket
        else {
            return DirectOutcome::Elsewhere;
        };
        socket.share(&event.message(self.protocol, &self.id));
        match socket.poll_flush(&mut Context::from_waker(task)) {
            Poll::Ready(Ok(())) => DirectOutcome::Sent,
            Poll::Pending => {
                *is_flushed = false;
                DirectOutcome::Sent
            }
            Poll::Ready(Err(_)) => {
                // The session finds out for itself.
                *is_flushed = false;
                task.wake_by_ref();
                DirectOutcome::Broken
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicBool, Ordering},
        task::Wake,
        time::{Duration, Instant},
    };

    use ogive_stream::WebSocketLimits;
    use tokio::io::{AsyncReadExt, DuplexStream, duplex};

    use super::*;
    use crate::subscribe::options::QueueLimits;

    #[derive(Default)]
    struct Task(AtomicBool);

    impl Wake for Task {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    struct Session {
        queue: Arc<EventQueue>,
        socket: Rc<RefCell<SessionSocket>>,
        client: DuplexStream,
        task: Arc<Task>,
        _guard: DirectGuard,
    }

    /// A session whose socket has room for so many bytes.
    fn session(room: usize) -> Session {
        let (own, client) = duplex(room);
        let task = Arc::<Task>::default();
        let upgraded = Upgraded::new(bytes::Bytes::new(), own);
        let socket = Rc::new(RefCell::new(SessionSocket {
            socket: WebSocket::server(upgraded, WebSocketLimits::default()),
            is_flushed: true,
            task: Some(Arc::clone(&task).into()),
        }));
        let queue = Arc::new(EventQueue::new(QueueLimits {
            events_max: 9,
            bytes_max: 999,
            drops: false,
        }));
        Session {
            _guard: DirectGuard::new(&queue, &socket, (Protocol::TransportWs, "1")),
            queue,
            socket,
            client,
            task,
        }
    }
    fn event() -> Arc<Event> {
        Arc::new(Event::new("{}".into()))
    }
    fn sent(session: &Session) -> (DirectOutcome, u64) {
        let outcome = send(&session.queue, &event());
        (outcome, session.queue.passed())
    }

    #[tokio::test]
    async fn an_event_is_written_at_once_where_nothing_is_before_it() {
        let mut session = session(999);
        assert_eq!(sent(&session), (DirectOutcome::Sent, 1));
        let mut read = [0; 39];
        session.client.read_exact(&mut read).await.unwrap();
        assert_eq!(&read[2..], br#"{"id":"1","type":"next","payload":{}}"#);
        let other = Arc::new(EventQueue::new(QueueLimits {
            events_max: 1,
            bytes_max: 1,
            drops: false,
        }));
        assert_eq!(send(&other, &event()), DirectOutcome::Elsewhere);
        // While the session has the socket itself.
        let held = session.socket.borrow_mut();
        assert_eq!(sent(&session), (DirectOutcome::Elsewhere, 1));
        drop(held);
        // Behind another one that waits.
        session.queue.push(&event());
        assert_eq!(sent(&session), (DirectOutcome::Elsewhere, 1));
    }

    #[tokio::test]
    async fn what_a_full_socket_does_not_take_is_for_its_session() {
        let session = session(8);
        assert_eq!(sent(&session), (DirectOutcome::Sent, 1));
        assert!(!session.socket.borrow().is_flushed);
        assert_eq!(sent(&session), (DirectOutcome::Elsewhere, 1));
    }

    #[tokio::test]
    async fn what_a_broken_socket_does_not_take_is_not_sent() {
        let Session {
            queue,
            socket,
            client,
            task,
            _guard,
        } = session(999);
        drop(client);
        assert_eq!(send(&queue, &event()), DirectOutcome::Broken);
        assert_eq!((queue.passed(), socket.borrow().is_flushed), (0, false));
        assert!(task.0.load(Ordering::Relaxed));
    }

    #[tokio::test]
    async fn nothing_is_written_for_whom_has_expired_or_ended() {
        let expired = session(999);
        expired.queue.expire(Some(Instant::now()));
        assert_eq!(sent(&expired), (DirectOutcome::Elsewhere, 0));
        let later = Instant::now() + Duration::from_secs(60);
        expired.queue.expire(Some(later));
        assert_eq!(sent(&expired), (DirectOutcome::Sent, 1));
        expired
            .queue
            .end(crate::subscribe::queue::StreamEnd::Complete);
        assert_eq!(sent(&expired), (DirectOutcome::Elsewhere, 1));
    }
}
