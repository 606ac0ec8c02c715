//! The events of one subscription, as answers of a subgraph.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures_core::Stream;
use ogive_execute::{Event, Failure, SubgraphResponse};
use ogive_failure::codes;
use ogive_syntax::ast::Field;
use tokio::time::Sleep;

use crate::{
    answer::{answer, unusable},
    failure::failed,
    fields::EventFields,
    filter::Condition,
    provider::Provider,
    queue::{Channel, End, Feed, Item, Message},
    request::EventRequest,
    settings::Reconnect,
};

/// How many events that nobody wants are passed over before others get their turn.
const PASSED_OVER_MAX: usize = 256;

/// The channels that a queue hears. Dropping it leaves them.
pub(crate) struct Subscribed {
    feed: Arc<Feed>,
    channels: Vec<Arc<Channel>>,
}

impl Subscribed {
    pub(crate) fn new(feed: Arc<Feed>) -> Subscribed {
        Subscribed {
            feed,
            channels: Vec::new(),
        }
    }
    pub(crate) fn add(&mut self, channel: Arc<Channel>) {
        self.channels.push(channel);
    }
    /// Waits until the broker has accepted all of them.
    pub(crate) async fn accepted(&self) -> Result<(), String> {
        for channel in &self.channels {
            channel.accepted().await?;
        }
        Ok(())
    }
}

impl Drop for Subscribed {
    fn drop(&mut self) {
        for channel in &self.channels {
            channel.leave(&self.feed);
        }
    }
}

/// What was asked for, and who is told.
pub(crate) struct Source<'a> {
    /// Of the subgraph.
    pub(crate) name: &'a str,
    pub(crate) fields: &'a EventFields,
    pub(crate) of: &'a str,
    pub(crate) field: Field,
    pub(crate) request: EventRequest,
    pub(crate) condition: Option<Condition>,
    pub(crate) bytes_max: usize,
    pub(crate) patience: Reconnect,
    pub(crate) on_loss: Box<dyn Fn(&Failure) + 'a>,
}

impl Source<'_> {
    /// The answer to one event; `None` if it is not wanted.
    fn respond(&self, message: &Message) -> Option<SubgraphResponse> {
        if message.len() > self.bytes_max {
            return Some(unusable(codes::EVENT_MALFORMED, "An event is too large."));
        }
        let Some(value) = message.value() else {
            return Some(unusable(codes::EVENT_MALFORMED, "An event is no JSON."));
        };
        if self
            .condition
            .as_ref()
            .is_some_and(|condition| !condition.holds(value))
        {
            return None;
        }
        let body = answer(&self.request, self.fields, &self.field, self.of, value);
        Some(SubgraphResponse {
            status: 200,
            body: body.into(),
        })
    }
    fn lost(&self, why: &str) -> Failure {
        failed(
            self.name,
            codes::SUBREQUEST_STREAM_LOST,
            "the connection to the broker was lost",
            why,
        )
    }
}

/// The events of one subscription.
pub(crate) struct BrokerEvents<'a> {
    subscribed: Subscribed,
    source: Source<'a>,
    /// Handed out, and handed on once the next one is asked for.
    handed: Option<Arc<Message>>,
    /// When a connection that is lost is given up, and why it is lost.
    given_up: Option<(Pin<Box<Sleep>>, String)>,
    is_over: bool,
    /// Keeps the connection.
    _provider: Arc<Provider>,
}

impl<'a> BrokerEvents<'a> {
    pub(crate) fn new(subscribed: Subscribed, source: Source<'a>, provider: Arc<Provider>) -> Self {
        BrokerEvents {
            subscribed,
            source,
            handed: None,
            given_up: None,
            is_over: false,
            _provider: provider,
        }
    }
    fn end(&mut self, error: Failure) -> Poll<Option<Event>> {
        self.is_over = true;
        Poll::Ready(Some(Err(error)))
    }
}

impl Stream for BrokerEvents<'_> {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Event>> {
        let this = &mut *self;
        if let Some(message) = this.handed.take() {
            message.hand_on();
        }
        if this.is_over {
            return Poll::Ready(None);
        }
        for _ in 0..PASSED_OVER_MAX {
            match this.subscribed.feed.poll(cx) {
                Poll::Ready(Item::Event(message)) => match this.source.respond(&message) {
                    Some(response) => {
                        this.handed = Some(message);
                        return Poll::Ready(Some(Ok(response)));
                    }
                    None => message.pass_over(),
                },
                Poll::Ready(Item::Lost(why)) => {
                    (this.source.on_loss)(&this.source.lost(&why));
                    let patience = this.source.patience.altogether();
                    this.given_up
                        .get_or_insert_with(|| (Box::pin(tokio::time::sleep(patience)), why));
                }
                Poll::Ready(Item::Back) => this.given_up = None,
                Poll::Ready(Item::End(End::Overflow)) => {
                    let what = "events were not taken in time";
                    let error = failed(
                        this.source.name,
                        codes::SUBREQUEST_STREAM_OVERFLOW,
                        what,
                        "its queue is full",
                    );
                    return this.end(error);
                }
                Poll::Ready(Item::End(End::Refused(why))) => {
                    let what = "the broker refused the subscription";
                    let error = failed(
                        this.source.name,
                        codes::SUBREQUEST_STREAM_REFUSED,
                        what,
                        why,
                    );
                    return this.end(error);
                }
                Poll::Pending => {
                    if let Some((given_up, why)) = &mut this.given_up
                        && given_up.as_mut().poll(cx).is_ready()
                    {
                        let error = this.source.lost(why);
                        return this.end(error);
                    }
                    return Poll::Pending;
                }
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
