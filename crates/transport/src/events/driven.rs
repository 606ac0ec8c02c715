//! The task of one WebSocket connection: it alone reads and writes it.
//!
//! Actions come from subscriptions, events go to their queues. While one queue is full nothing is read, so the subgraph
//! has to wait. A subscription that shares the connection may hold up the others for a while only.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use ogive_base::FastMap;
use ogive_stream::{
    Close, Received, WebSocket,
    upstream::{Event, Upstream},
};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, timeout},
};

use super::{
    failures::{closed, lost, malformed, overflow, refused},
    queue::{End, Feed},
};
use ogive_failure::Failure;

use crate::{Stream, endpoint::Endpoint};

/// How long a subgraph may take to answer a close.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// What a subscription wants of its connection.
pub(crate) enum Action {
    /// To begin. The answer is its number.
    Subscribe {
        payload: Bytes,
        feed: Feed,
        began: oneshot::Sender<u64>,
    },
    /// To end.
    Unsubscribe(u64),
}

/// An event for which there is no room.
struct Blocked {
    number: u64,
    event: Bytes,
    since: Instant,
}

/// A connection and its subscriptions.
pub(crate) struct EventConnection {
    pub(crate) socket: WebSocket<Stream>,
    pub(crate) upstream: Upstream,
    pub(crate) commands: mpsc::UnboundedReceiver<Action>,
    /// That the connection should not get further subscriptions.
    pub(crate) retired: Arc<AtomicBool>,
    pub(crate) endpoint: Endpoint,
    pub(crate) heartbeat_interval: Option<Duration>,
    pub(crate) stall_timeout: Duration,
}

/// How the work of a connection ends.
enum Done {
    /// Nobody needs it any more.
    Idle,
    /// This happened to every subscription on it; and how to close it, if somebody is there to be told.
    Failed(Box<dyn Fn(&Endpoint) -> Failure + Send>, Option<Close>),
}

impl EventConnection {
    /// Works until nobody needs the connection, or it fails.
    pub(crate) async fn drive(mut self) {
        let mut feeds = FastMap::default();
        let done = self.work(&mut feeds).await;
        self.retired.store(true, Ordering::Relaxed);
        let close = match done {
            Done::Idle => {
                if let Some(text) = self.upstream.goodbye() {
                    let _ = timeout(CLOSE_TIMEOUT, self.socket.send(text)).await;
                }
                Some(Close::normal())
            }
            Done::Failed(failure, close) => {
                for (_, feed) in feeds.drain() {
                    Feed::end(feed, End::Failed(failure(&self.endpoint)));
                }
                close
            }
        };
        // Whoever has asked meanwhile sees that nobody answers, and asks on another connection.
        self.commands.close();
        drop(feeds);
        if let Some(close) = close {
            self.socket.close(close, CLOSE_TIMEOUT).await;
        }
    }

    async fn work(&mut self, feeds: &mut FastMap<u64, Feed>) -> Done {
        let mut blocked: Option<Blocked> = None;
        let mut heartbeat = self.heartbeat_interval.map(|interval| {
            let mut ticks = tokio::time::interval_at(Instant::now() + interval, interval);
            ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            ticks
        });
        loop {
            let is_shared = feeds.len() > 1;
            let step = tokio::select! {
                command = self.commands.recv() => match command {
                    None => return Done::Idle,
                    Some(command) => self.command(command, feeds, &mut blocked).await,
                },
                received = self.socket.receive(), if blocked.is_none() => {
                    self.all_received(received, feeds, &mut blocked).await
                }
                () = room(feeds, &blocked), if blocked.is_some() => {
                    let Blocked { number, event, since } = blocked.take().expect("it is blocked");
                    if let Some(Err(event)) = feeds.get(&number).map(|feed| feed.put(event)) {
                        blocked = Some(Blocked { number, event, since });
                    }
                    Ok(())
                }
                () = stalled(&blocked, self.stall_timeout), if is_shared && blocked.is_some() => {
                    let number = blocked.take().expect("it is blocked").number;
                    let feed = feeds.remove(&number);
                    if let Some(feed) = feed {
                        feed.end(End::Failed(overflow(&self.endpoint)));
                    }
                    self.unsubscribe(number).await
                }
                () = tick(&mut heartbeat), if blocked.is_none() && heartbeat.is_some() => {
                    self.heartbeat().await
                }
            };
            if let Err(done) = step {
                return done;
            }
            if feeds.is_empty() && blocked.is_none() && self.upstream.open() == 0 {
                // Whoever has found the connection before it is closed gets it.
                match self.commands.try_recv() {
                    Ok(command) => {
                        if let Err(done) = self.command(command, feeds, &mut blocked).await {
                            return done;
                        }
                    }
                    Err(_) => return Done::Idle,
                }
            }
        }
    }

    async fn command(
        &mut self,
        command: Action,
        feeds: &mut FastMap<u64, Feed>,
        blocked: &mut Option<Blocked>,
    ) -> Result<(), Done> {
        match command {
            Action::Subscribe {
                payload,
                feed,
                began,
            } => {
                let payload = String::from_utf8_lossy(&payload);
                let (number, text) = self.upstream.subscribe(&payload);
                feeds.insert(number, feed);
                self.send(text).await?;
                if began.send(number).is_err() {
                    // Given up before it began.
                    feeds.remove(&number);
                    self.unsubscribe(number).await?;
                }
                Ok(())
            }
            Action::Unsubscribe(number) => {
                feeds.remove(&number);
                if blocked.as_ref().is_some_and(|b| b.number == number) {
                    *blocked = None;
                }
                self.unsubscribe(number).await
            }
        }
    }

    async fn unsubscribe(&mut self, number: u64) -> Result<(), Done> {
        match self.upstream.unsubscribe(number) {
            Some(text) => self.send(text).await,
            None => Ok(()),
        }
    }

    /// A subgraph that takes nothing any more is as good as gone.
    async fn send(&mut self, text: String) -> Result<(), Done> {
        let within = self.endpoint.traffic.timeout;
        let why = match timeout(within, self.socket.send(text)).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(why)) => why,
            Err(_) => format!("the subgraph has taken nothing for {within:?}"),
        };
        let failure = move |endpoint: &Endpoint| lost(endpoint, why.clone());
        Err(Done::Failed(Box::new(failure), None))
    }

    async fn heartbeat(&mut self) -> Result<(), Done> {
        match self.upstream.ping() {
            Ok(Some(text)) => self.send(text).await,
            // Below the messages everybody has pings.
            Ok(None) => {
                let _ = timeout(self.endpoint.traffic.timeout, self.socket.ping()).await;
                Ok(())
            }
            Err(_) => {
                let detail = "a heartbeat was not answered";
                let failure = move |endpoint: &Endpoint| lost(endpoint, detail);
                let close = Close::new(1001, "No answer to a ping");
                Err(Done::Failed(Box::new(failure), Some(close)))
            }
        }
    }

    /// Takes what has come, and what has come with it.
    async fn all_received(
        &mut self,
        first: Received,
        feeds: &mut FastMap<u64, Feed>,
        blocked: &mut Option<Blocked>,
    ) -> Result<(), Done> {
        let mut received = Some(first);
        while let Some(next) = received {
            self.received(next, feeds, blocked).await?;
            // What has come behind an event for which there is no room waits in the socket.
            received = match blocked {
                None => self.socket.take_received(),
                Some(_) => None,
            };
        }
        Ok(())
    }

    async fn received(
        &mut self,
        received: Received,
        feeds: &mut FastMap<u64, Feed>,
        blocked: &mut Option<Blocked>,
    ) -> Result<(), Done> {
        let text = match received {
            Received::Text(text) => Bytes::from(text),
            Received::Control => {
                self.upstream.alive();
                return Ok(());
            }
            Received::Binary => {
                let close = Close::new(1003, "Messages are text");
                return Err(violation("a binary message".into(), close));
            }
            Received::Violation { close, what } => return Err(violation(what, close)),
            Received::Closed(close) => {
                let failure = move |endpoint: &Endpoint| closed(endpoint, close.as_ref());
                // It is answered with what it has said.
                return Err(Done::Failed(Box::new(failure), Some(Close::normal())));
            }
            Received::Broken(why) => {
                let failure = move |endpoint: &Endpoint| lost(endpoint, why.clone());
                return Err(Done::Failed(Box::new(failure), None));
            }
        };
        // Checked by the frames.
        let message = std::str::from_utf8(&text).unwrap_or_default();
        match self.upstream.receive(message) {
            Event::Nothing | Event::Ready => {}
            Event::Send(answer) => self.send(answer).await?,
            Event::Next(number, payload) => {
                put(feeds, number, text.slice_ref(payload.as_bytes()), blocked);
            }
            Event::Failed(number, errors) => {
                put(feeds, number, response(errors), blocked);
                self.finish(number, feeds, blocked);
            }
            Event::Complete(number) => self.finish(number, feeds, blocked),
            Event::Refused(why) => {
                let why = ogive_base::foreign::bounded_name(why.unwrap_or("no reason"));
                let why = format!("`connection_error`: {why}");
                let failure = move |endpoint: &Endpoint| refused(endpoint, why.clone());
                return Err(Done::Failed(Box::new(failure), Some(Close::normal())));
            }
            Event::Stray(what) => {
                tracing::warn!(
                    subgraph = &*self.endpoint.name,
                    what,
                    "a subgraph does not keep to the protocol of its events"
                );
                self.retired.store(true, Ordering::Relaxed);
            }
            Event::Violation(what) => {
                let close = Close::bad_request("Invalid message received");
                return Err(violation(what, close));
            }
        }
        Ok(())
    }

    /// The subgraph has ended a subscription. Its last event may still wait for room: then it is handed over with it.
    fn finish(
        &mut self,
        number: u64,
        feeds: &mut FastMap<u64, Feed>,
        blocked: &mut Option<Blocked>,
    ) {
        let Some(feed) = feeds.remove(&number) else {
            return;
        };
        match blocked.take_if(|blocked| blocked.number == number) {
            None => feed.end(End::Complete),
            // Only an error that is the whole answer; whoever waits for it has nothing else to wait for.
            Some(blocked) => {
                tokio::spawn(async move {
                    feed.has_room(&blocked.event).await;
                    let _ = feed.put(blocked.event);
                    feed.end(End::Complete);
                });
            }
        }
    }
}

fn violation(what: String, close: Close) -> Done {
    let failure = move |endpoint: &Endpoint| malformed(endpoint, what.clone());
    Done::Failed(Box::new(failure), Some(close))
}

fn put(feeds: &FastMap<u64, Feed>, number: u64, event: Bytes, blocked: &mut Option<Blocked>) {
    if let Some(feed) = feeds.get(&number)
        && let Err(event) = feed.put(event)
    {
        *blocked = Some(Blocked {
            number,
            event,
            since: Instant::now(),
        });
    }
}

/// Errors of an operation that did not run, a list or one, as an answer.
pub(super) fn response(errors: &str) -> Bytes {
    let list = match errors.as_bytes().first() {
        Some(b'[') => errors.to_owned(),
        Some(b'{') => format!("[{errors}]"),
        _ => "[{\"message\":\"The subscription failed.\"}]".to_owned(),
    };
    format!("{{\"errors\":{list}}}").into()
}

async fn room(feeds: &FastMap<u64, Feed>, blocked: &Option<Blocked>) {
    if let Some(blocked) = blocked
        && let Some(feed) = feeds.get(&blocked.number)
    {
        feed.has_room(&blocked.event).await;
    }
}

async fn stalled(blocked: &Option<Blocked>, within: Duration) {
    if let Some(blocked) = blocked {
        tokio::time::sleep_until(blocked.since + within).await;
    }
}

async fn tick(heartbeat: &mut Option<tokio::time::Interval>) {
    if let Some(ticks) = heartbeat {
        ticks.tick().await;
    }
}
