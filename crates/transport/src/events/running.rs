//! Opening a stream of events, and opening it again when it was lost.

use std::{
    future::Future,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, ready},
};

use futures_core::Stream;
use ogive_execute::{Event, EventStream, Failure, SubgraphResponse};
use ogive_stream::Protocol;
use tokio::time::{Instant, timeout, timeout_at};

use super::{
    callback::{self, CallbackEvents, CallbackOutcome, Callbacks},
    failures::too_late,
    over_http::{self, HttpAnswer, HttpEvents},
    sockets::{SocketEvents, Sockets},
    source::{EventProtocol, Learned},
    subscribe_request::SubscribeRequest,
};
use crate::{
    address::Address,
    endpoint::Endpoint,
    error::{BREAKER_OPEN, HTTP_ERROR, failed, is_no_fault_of_subgraph},
    sign,
};

/// What was opened.
enum Opened {
    Socket(SocketEvents),
    Http(Box<HttpEvents>),
    Called(CallbackEvents),
    /// One response instead of events.
    Whole(Option<SubgraphResponse>),
}

/// Opens one subscription, once or again.
struct Opener<'a> {
    opening: SubscribeRequest<'a>,
    sockets: &'a Sockets,
    callbacks: &'a Arc<Callbacks>,
}

impl Opener<'_> {
    /// Opens it, whatever its protocol is. The time for that is the subgraph's, or the client's if that is less.
    async fn open(&self, deadline: Option<Instant>) -> Result<Opened, Failure> {
        let endpoint = self.opening.endpoint;
        let own = Instant::now() + endpoint.traffic.timeout;
        let deadline = deadline.map_or(own, |deadline| deadline.min(own));
        sign::ready(endpoint, deadline).await?;
        let permit = endpoint.health.admit(endpoint.traffic.breaker);
        let permit = permit.ok_or_else(|| {
            let what = "the subgraph has failed too often and is left alone for a while";
            failed(
                BREAKER_OPEN,
                &endpoint.name,
                what,
                "its circuit breaker is open",
            )
        })?;
        let opened = match timeout_at(deadline, self.by_protocol()).await {
            Ok(opened) => opened,
            Err(_) => Err(too_late(
                endpoint,
                "the subgraph took too long",
                format!("no stream within {:?}", endpoint.traffic.timeout),
            )),
        };
        permit.done(opened.as_ref().err().is_none_or(is_no_fault_of_subgraph));
        opened
    }

    async fn by_protocol(&self) -> Result<Opened, Failure> {
        let endpoint = self.opening.endpoint;
        let replicas = endpoint.replicas.as_ref().map_err(|error| {
            let detail = format!("subgraph `{}`: {error}", endpoint.name);
            let what = "the subgraph's URL cannot be used";
            failed(HTTP_ERROR, &endpoint.name, what, detail)
        })?;
        let chosen = replicas.choose(None);
        let mut address = chosen.address().clone();
        if let Some(path) = &self.opening.source.path {
            address.path = path.clone();
        }
        let opened = match self.opening.source.protocol {
            EventProtocol::TransportWs => self.socket(&address, Protocol::TransportWs).await,
            EventProtocol::LegacyWs => self.socket(&address, Protocol::LegacyWs).await,
            EventProtocol::Sse | EventProtocol::Multipart => {
                let answer = self.asked(&address).await;
                answer.and_then(of_answer)
            }
            EventProtocol::Callback => Box::pin(self.called_back(&address)).await,
            EventProtocol::Auto => self.found_out(&address).await,
        };
        chosen.done(opened.as_ref().err().is_none_or(is_no_fault_of_subgraph));
        opened
    }

    async fn asked(&self, address: &Address) -> Result<HttpAnswer, Failure> {
        over_http::open(&self.opening, address, self.opening.body.clone()).await
    }

    async fn called_back(&self, address: &Address) -> Result<Opened, Failure> {
        let called = callback::open(&self.opening, address, self.callbacks).await?;
        Ok(match called {
            CallbackOutcome::Events(events) => Opened::Called(events),
            CallbackOutcome::Whole(response) => Opened::Whole(Some(response)),
        })
    }

    async fn socket(&self, address: &Address, protocol: Protocol) -> Result<Opened, Failure> {
        let events = self
            .sockets
            .subscribe(&self.opening, address, protocol)
            .await;
        events.map(Opened::Socket)
    }

    /// By the protocol that worked last time, else by one after the other.
    async fn found_out(&self, address: &Address) -> Result<Opened, Failure> {
        let source = self.opening.source;
        match source.learned() {
            Learned::WebSocket => {
                let opened = self.socket(address, Protocol::TransportWs).await;
                if opened.as_ref().is_err_and(|error| !error.may_retry) {
                    source.learn(Learned::Nothing);
                }
                return opened;
            }
            Learned::Http => {
                let answer = self.asked(address).await?;
                if !matches!(answer, HttpAnswer::Events(_)) {
                    source.learn(Learned::Nothing);
                }
                return of_answer(answer);
            }
            Learned::Nothing => {}
        }
        self.tried(address).await
    }

    /// Over HTTP, and over WebSocket if that brings no stream, or nothing for a while. The first answer says more than that
    /// there is no WebSocket either.
    async fn tried(&self, address: &Address) -> Result<Opened, Failure> {
        let source = self.opening.source;
        let mut asked = pin!(self.asked(address));
        // Begins when somebody waits for it.
        let mut socket = pin!(self.socket(address, Protocol::TransportWs));
        let answer = match timeout(source.patience, &mut asked).await {
            Ok(answer) => answer,
            Err(_) => tokio::select! {
                answer = &mut asked => answer,
                opened = &mut socket => return match opened {
                    Ok(opened) => Ok(self.opened_socket(opened)),
                    Err(_) => self.learned_from(asked.await),
                },
            },
        };
        match answer {
            Ok(HttpAnswer::Events(_)) => self.learned_from(answer),
            // What may be over a moment later says nothing about protocols.
            Ok(HttpAnswer::Neither(error)) if error.may_retry => Err(error),
            answer => match socket.await {
                Ok(opened) => Ok(self.opened_socket(opened)),
                Err(_) => self.learned_from(answer),
            },
        }
    }

    fn opened_socket(&self, opened: Opened) -> Opened {
        self.opening.source.learn(Learned::WebSocket);
        opened
    }

    fn learned_from(&self, answer: Result<HttpAnswer, Failure>) -> Result<Opened, Failure> {
        let answer = answer?;
        if matches!(answer, HttpAnswer::Events(_)) {
            self.opening.source.learn(Learned::Http);
        }
        of_answer(answer)
    }
}

fn of_answer(answer: HttpAnswer) -> Result<Opened, Failure> {
    match answer {
        HttpAnswer::Events(events) => Ok(Opened::Http(events)),
        HttpAnswer::Whole(response) => Ok(Opened::Whole(Some(response))),
        HttpAnswer::Neither(error) => Err(error),
    }
}

impl Opened {
    fn poll_next(
        &mut self,
        endpoint: &Endpoint,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<SubgraphResponse, Failure>>> {
        let event = match self {
            Opened::Socket(events) => ready!(events.poll_next(endpoint, cx)),
            Opened::Http(events) => ready!(events.poll_next(endpoint, cx)),
            Opened::Called(events) => ready!(events.poll_next(endpoint, cx)),
            Opened::Whole(response) => return Poll::Ready(response.take().map(Ok)),
        };
        let response = |body| SubgraphResponse { status: 200, body };
        Poll::Ready(event.map(|event| event.map(response)))
    }
}

/// A stream that is open.
struct Running<'a> {
    opener: Opener<'a>,
    opened: Opened,
    /// Tries to open it again since the last event.
    attempts: u32,
}

/// A stream that is opened again, or the end of that.
type Again<'a> = Pin<Box<dyn Future<Output = Result<Box<Running<'a>>, Failure>> + 'a>>;

/// Opens a stream again that was lost in that way, if that may be over, as often as it may be tried.
async fn again<'a>(running: Box<Running<'a>>, lost: Failure) -> Result<Box<Running<'a>>, Failure> {
    let Running {
        opener,
        opened,
        mut attempts,
    } = *running;
    // Its connection is closed before another one is made.
    drop(opened);
    let reconnect = opener.opening.source.reconnect;
    let mut error = lost;
    while error.may_retry && attempts < reconnect.attempts {
        (opener.opening.on_loss)(&error);
        tokio::time::sleep(reconnect.wait(attempts)).await;
        attempts += 1;
        match opener.open(None).await {
            Ok(opened) => {
                return Ok(Box::new(Running {
                    opener,
                    opened,
                    attempts,
                }));
            }
            Err(again) => error = again,
        }
    }
    Err(error)
}

/// The events of a subscription. Nothing comes after an error.
struct Events<'a> {
    /// `None` while it is lost, and when it is over.
    running: Option<Box<Running<'a>>>,
    /// `None` unless it is lost.
    again: Option<Again<'a>>,
}

impl Stream for Events<'_> {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        loop {
            if let Some(opening) = &mut self.again {
                let opened = ready!(opening.as_mut().poll(cx));
                self.again = None;
                match opened {
                    Ok(running) => self.running = Some(running),
                    Err(error) => return Poll::Ready(Some(Err(error))),
                }
            }
            let Some(running) = &mut self.running else {
                return Poll::Ready(None);
            };
            let endpoint = running.opener.opening.endpoint;
            match ready!(running.opened.poll_next(endpoint, cx)) {
                Some(Ok(event)) => {
                    running.attempts = 0;
                    return Poll::Ready(Some(Ok(event)));
                }
                Some(Err(error)) => {
                    let lost = self.running.take();
                    self.again =
                        lost.map(|running| -> Again<'_> { Box::pin(again(running, error)) });
                }
                None => self.running = None,
            }
        }
    }
}

/// Opens a subscription; the stream opens it again when it is lost.
pub(crate) async fn subscribe<'a>(
    (sockets, callbacks): (&'a Sockets, &'a Arc<Callbacks>),
    opening: SubscribeRequest<'a>,
) -> Result<EventStream<'a>, Failure> {
    let deadline = opening.deadline;
    let opener = Opener {
        opening,
        sockets,
        callbacks,
    };
    let opened = opener.open(deadline).await;
    let opened = opened?;
    let running = Running {
        opener,
        opened,
        attempts: 0,
    };
    Ok(Box::pin(Events {
        running: Some(Box::new(running)),
        again: None,
    }))
}
