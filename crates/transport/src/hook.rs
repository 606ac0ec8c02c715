//! A place beside requests to subgraphs at which somebody may look at them, change them, or answer instead.

use std::{future::Future, pin::Pin};

use bytes::Bytes;
use http::HeaderMap;
use ogive_execute::Failure;

/// A request that is about to leave.
#[derive(Clone, Debug)]
pub struct FetchRequest<'a> {
    /// The name of the subgraph.
    pub subgraph: &'a str,
    /// Where it is asked.
    pub url: Option<String>,
    /// What header rules made of the client's headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

/// An answer as it came.
#[derive(Clone, Debug)]
pub struct FetchAnswer {
    /// HTTP status.
    pub status: u16,
    /// Headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

/// What becomes of a request.
#[derive(Clone, Debug)]
pub enum FetchDecision {
    /// It leaves, with these headers and this body, and for another URL if one is named.
    Send {
        /// Its headers.
        headers: HeaderMap,
        /// Its body.
        body: Bytes,
        /// Where it is sent.
        url: Option<String>,
    },
    /// Nobody is asked, and this is the answer.
    Answer(FetchAnswer),
}

/// A future of something that a hook does.
pub type HookFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, Failure>> + 'a>>;

/// Looks at one request to a subgraph and at its answer.
pub trait FetchHook {
    /// Before it leaves. `number` tells the requests of one client request apart.
    fn request<'a>(
        &'a self,
        number: u32,
        request: FetchRequest<'a>,
    ) -> HookFuture<'a, FetchDecision>;

    /// After it was answered.
    fn response<'a>(
        &'a self,
        number: u32,
        subgraph: &'a str,
        answer: FetchAnswer,
    ) -> HookFuture<'a, FetchAnswer>;
}

/// Whether a request may be sent; why not, if it may not.
pub type AdmissionFuture<'a> = Pin<Box<dyn Future<Output = Result<(), Failure>> + 'a>>;

/// Says how often subgraphs are asked.
pub trait FetchAdmission {
    /// Asked before each request is sent, and before each further try of it.
    fn admit<'a>(&'a self, subgraph: &'a str) -> AdmissionFuture<'a>;
}
