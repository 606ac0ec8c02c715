//! Requests with files: bodies that are made while they are sent.
//!
//! Between whoever makes a body and the connection that takes it is a channel with room for a few pieces, so a slow
//! subgraph slows the client down instead of filling memory. A body counts as whole only if its maker says so: one that
//! is given up in the middle, because the client left or sent too much, ends the connection with an error and is never
//! taken for a short file.

use std::{
    future::Future,
    io,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::HeaderValue;
use hyper::body::{Body, Frame};
use ogive_failure::ErrorCode;
use tokio::sync::mpsc;

/// Pieces on their way at a time.
const PIECES_MAX: usize = 4;

/// The files of one client request.
pub trait Files {
    /// What to send instead of a request's JSON `body`; `None` if no file belongs to it.
    fn attach<'a>(&'a self, body: &Bytes) -> Option<Attachment<'a>>;
    /// A subgraph has answered a request of this client request.
    fn answered(&self) {}
    /// Bytes of files that are held in memory.
    fn held(&self) -> usize {
        0
    }
}

/// A body that is made while it is sent.
pub struct Attachment<'a> {
    /// Its media type.
    pub content_type: HeaderValue,
    /// It.
    pub pieces: Pieces,
    /// Makes it; runs while the request is on its way.
    pub feed: Pin<Box<dyn Future<Output = Result<(), FeedError>> + 'a>>,
}

/// Why a body was not made to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FeedError {
    /// The subgraph takes no more of it; its answer says why.
    NobodyReads,
    /// What the client sends cannot be passed on.
    Refused {
        /// `extensions.code`.
        code: ErrorCode,
        /// For the client.
        message: String,
    },
}

enum Piece {
    Data(Bytes),
    End,
}

/// The end of a body that is written to.
#[derive(Debug)]
pub struct PieceSender(mpsc::Sender<Piece>);

/// The end of a body that is sent.
#[derive(Debug)]
pub struct Pieces {
    receiver: mpsc::Receiver<Piece>,
    ended: bool,
}

/// Both ends of a body.
pub fn channel() -> (PieceSender, Pieces) {
    let (sender, receiver) = mpsc::channel(PIECES_MAX);
    let pieces = Pieces {
        receiver,
        ended: false,
    };
    (PieceSender(sender), pieces)
}

impl PieceSender {
    /// Writes some bytes, once there is room for them.
    pub async fn send(&self, bytes: impl Into<Bytes>) -> Result<(), FeedError> {
        self.piece(Piece::Data(bytes.into())).await
    }
    /// Says that the body is whole.
    pub async fn end(self) -> Result<(), FeedError> {
        self.piece(Piece::End).await
    }
    async fn piece(&self, piece: Piece) -> Result<(), FeedError> {
        let sent = self.0.send(piece).await;
        sent.map_err(|_| FeedError::NobodyReads)
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        self.receiver.poll_recv(cx).map(|piece| match piece {
            Some(Piece::Data(bytes)) => Some(Ok(Frame::data(bytes))),
            Some(Piece::End) => {
                self.ended = true;
                None
            }
            None => {
                self.ended = true;
                let why = "the client's files did not arrive";
                Some(Err(io::Error::new(io::ErrorKind::UnexpectedEof, why)))
            }
        })
    }
    fn is_end_stream(&self) -> bool {
        self.ended
    }
}
