//! Asking a coprocessor, over the connections that a worker keeps.
//!
//! It is asked like a subgraph: connections are kept, HTTP/2 and unix sockets are spoken, a circuit breaker leaves it alone,
//! and dropping the future gives the request up. A connection that it has closed meanwhile is replaced and the message sent
//! once more.

use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use ogive_base::Reservation;
use ogive_execute::{ErrorCode, SubgraphRequest, Transport};
use ogive_transport::{
    CircuitBreaker, Client, Endpoint, HeaderRules, Http2, RequestTransport, Traffic,
};
use tokio::{
    sync::Semaphore,
    time::{Instant, timeout_at},
};

use crate::{error::CoprocessorError, message::Message, reply::Reply};

/// How a coprocessor is asked.
#[derive(Clone, PartialEq, Debug)]
pub struct CoprocessorOptions {
    /// Where: every URL once; a message names one by its place.
    pub urls: Vec<Box<str>>,
    /// How long one message may take, waiting included.
    pub timeout: Duration,
    /// Most messages under way in the whole process.
    pub in_flight_max: usize,
    /// Largest answer in bytes.
    pub reply_bytes_max: usize,
    /// Which HTTP is spoken.
    pub http2: Http2,
    /// When it is left alone.
    pub breaker: Option<CircuitBreaker>,
}

/// A coprocessor, for all workers.
#[derive(Debug)]
pub struct Coprocessor {
    options: CoprocessorOptions,
    endpoints: Vec<Endpoint>,
    slots: Semaphore,
}

impl Coprocessor {
    /// One that is asked when there is something to tell. `prepare` adds what an endpoint needs besides, such as TLS.
    pub fn new(options: CoprocessorOptions, prepare: impl Fn(&mut Endpoint)) -> Self {
        let traffic = Traffic {
            timeout: options.timeout,
            connect_timeout: options.timeout,
            response_bytes_max: options.reply_bytes_max,
            breaker: options.breaker,
            deduplicate_query: false,
            http2: options.http2,
            ..Traffic::default()
        };
        let endpoint = |url: &str| {
            let rules = HeaderRules::default();
            let mut endpoint = Endpoint::new("coprocessor", url, traffic.clone(), rules);
            prepare(&mut endpoint);
            endpoint
        };
        Coprocessor {
            endpoints: options.urls.iter().map(|url| endpoint(url)).collect(),
            slots: Semaphore::new(options.in_flight_max),
            options,
        }
    }
    /// How it is asked.
    pub fn options(&self) -> &CoprocessorOptions {
        &self.options
    }

    /// Tells it something, at the URL of a place in the options, and reads what it says. `json`: the message with its
    /// context. While its answer arrives `memory` counts it; what is kept of it is the caller's to count.
    pub async fn ask(
        &self,
        client: &Client,
        url: usize,
        message: &Message<'_>,
        asked: (Vec<u8>, &Reservation),
    ) -> Result<Reply, CoprocessorError> {
        let answer = self.exchange(client, url, asked).await?;
        Reply::read(&answer, message)
    }

    /// Sends it a text, and gives what it answers.
    pub async fn exchange(
        &self,
        client: &Client,
        url: usize,
        (json, memory): (Vec<u8>, &Reservation),
    ) -> Result<Bytes, CoprocessorError> {
        let deadline = Instant::now() + self.options.timeout;
        let unanswered = |what: &str| {
            let within = self.options.timeout;
            CoprocessorError::Unanswered(format!("{what} within {within:?}"))
        };
        let slot = timeout_at(deadline, self.slots.acquire()).await;
        // The semaphore is never closed.
        let Ok(_slot) = slot else {
            return Err(unanswered(
                "too many messages to it are under way, none ended",
            ));
        };
        let request = SubgraphRequest {
            subgraph: u32::try_from(url).unwrap_or(u32::MAX),
            body: Bytes::from(json),
            idempotent: true,
        };
        let none = HeaderMap::new();
        let transport = RequestTransport::new(client, &self.endpoints, &none, Some(deadline))
            .counted_in(Some(memory), 0);
        match transport.send(request).await {
            Ok(answer) if answer.status == 200 => Ok(answer.body),
            Ok(answer) => Err(CoprocessorError::Status(answer.status)),
            Err(error) if error.code == ErrorCode::REQUEST_MEMORY_LIMIT => {
                Err(CoprocessorError::Memory)
            }
            Err(_) if Instant::now() >= deadline => Err(unanswered("it gives no whole answer")),
            Err(error) => Err(CoprocessorError::Unanswered(error.detail)),
        }
    }
}
