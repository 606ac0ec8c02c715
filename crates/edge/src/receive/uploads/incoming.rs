//! Reading files while they arrive.

use std::{
    fmt::Display,
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
    time::Instant,
};

use bytes::{Buf, Bytes};
use futures_core::Stream;
use hyper::body::Body;
use multer::{Field, Multipart};
use ogive_telemetry::codes;
use ogive_transport::{FeedError, PieceSender};

use crate::receive::growing::{Arriving, GrowingBody};
use crate::receive::uploads::{NOTHING, Refusal, State, Uploads, invalid, out_of_order, refusal};
use ogive_server::drain_body::{BYTES_MAX, Drain, PAUSE_MAX, TIME_MAX};

/// A body as the parser wants it: at most so many bytes, and one piece at a time. The parser would take whatever is
/// there, and a client that is faster than the subgraph would fill memory.
pub(super) struct Chunks<B> {
    body: Pin<Box<B>>,
    left: usize,
    max: usize,
    paused: bool,
    collected: Collected,
}

impl<B> Chunks<B> {
    pub(super) fn new(body: B, max: usize, collected: Collected) -> Self {
        Chunks {
            body: Box::pin(body),
            left: max,
            max,
            paused: false,
            collected,
        }
    }
}

/// Most bytes that the parser may collect without making anything of them: what stands before a part, and its head. It
/// looks through all of them again whenever more come.
const COLLECTED_MAX: usize = 16 << 10;

/// How many bytes the parser has been given since it gave something back.
#[derive(Clone, Debug, Default)]
pub(super) struct Collected(Arc<AtomicUsize>);

impl Collected {
    /// It has given something back.
    fn end(&self) {
        self.0.store(0, Ordering::Relaxed);
    }
    fn add(&self, bytes: usize) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }
    fn is_too_far(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= COLLECTED_MAX
    }
}

/// Marks an error of [`Chunks`] as that of a part that does not begin.
#[derive(Debug)]
struct NoPart;

impl Display for NoPart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "no part begins within {COLLECTED_MAX} bytes")
    }
}
impl std::error::Error for NoPart {}

/// Marks an error of [`Chunks`] as that of its limit.
#[derive(Debug)]
struct TooLarge(usize);

impl Display for TooLarge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the body is larger than {} bytes", self.0)
    }
}
impl std::error::Error for TooLarge {}

impl<B> Stream for Chunks<B>
where
    B: Body,
    B::Error: Display,
{
    type Item = Result<Bytes, io::Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if std::mem::take(&mut self.paused) {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if self.collected.is_too_far() {
            return Poll::Ready(Some(Err(io::Error::other(NoPart))));
        }
        let next = loop {
            match ready!(self.body.as_mut().poll_frame(cx)) {
                None => break None,
                Some(Err(error)) => break Some(Err(io::Error::other(error.to_string()))),
                Some(Ok(frame)) => {
                    let Ok(mut data) = frame.into_data() else {
                        continue;
                    };
                    let size = data.remaining();
                    match self.left.checked_sub(size) {
                        Some(left) => self.left = left,
                        None => break Some(Err(io::Error::other(TooLarge(self.max)))),
                    }
                    self.collected.add(size);
                    break Some(Ok(data.copy_to_bytes(size)));
                }
            }
        };
        self.paused = next.is_some();
        Poll::Ready(next)
    }
}

pub(super) fn too_large(max: usize) -> Refusal {
    let message = format!("the request's body is larger than {max} bytes");
    refusal(codes::UPLOAD_TOO_LARGE, message)
}

/// What the parser's error means to the client.
fn of_parser(error: multer::Error) -> Refusal {
    if let multer::Error::StreamReadFailed(cause) = &error {
        let cause = cause.downcast_ref::<io::Error>();
        let cause = cause.and_then(io::Error::get_ref);
        if let Some(TooLarge(max)) = cause.and_then(|cause| cause.downcast_ref()) {
            return too_large(*max);
        }
        if cause.is_some_and(|cause| cause.is::<NoPart>()) {
            let message = format!("no part of the body begins within {COLLECTED_MAX} bytes");
            return invalid(message);
        }
    }
    tracing::debug!(%error, "the client's files could not be read");
    match error {
        multer::Error::IncompleteStream
        | multer::Error::IncompleteHeaders
        | multer::Error::IncompleteFieldData { .. }
        | multer::Error::StreamReadFailed(_) => refusal(
            codes::UPLOAD_FILE_MISSING,
            "the request's body ended in the middle of a file",
        ),
        _ => invalid("the request's body is not well-formed `multipart/form-data`"),
    }
}

/// Reads the next field as a whole; it must have this name.
pub(super) async fn text(
    (multipart, collected): (&mut Multipart<'static>, &Collected),
    name: &str,
    bytes_max: usize,
    arriving: Arriving<'_>,
) -> Result<Bytes, Refusal> {
    let field = multipart.next_field().await.map_err(of_parser)?;
    collected.end();
    let Some(mut field) = field.filter(|field| field.name() == Some(name)) else {
        let message = format!(
            "the field `{name}` is not where it must be: send `operations`, `map`, then files"
        );
        return Err(invalid(message));
    };
    let mut whole = GrowingBody::new(arriving);
    while let Some(piece) = field.chunk().await.map_err(of_parser)? {
        collected.end();
        if whole.bytes_received() + piece.len() > bytes_max {
            let message = format!("the field `{name}` is larger than {bytes_max} bytes");
            return Err(refusal(codes::REQUEST_TOO_LARGE, message));
        }
        whole.push(&piece)?;
    }
    Ok(whole.whole())
}

/// A file that somebody will want.
#[derive(Clone)]
pub(super) struct FileContent {
    head: String,
    pieces: Vec<Bytes>,
}

/// What is left of the body, back where it was lent from when the reader is done or gone.
struct Back<'a> {
    uploads: &'a Uploads,
    lent: Option<Multipart<'static>>,
}

impl Drop for Back<'_> {
    fn drop(&mut self) {
        *self.uploads.multipart.borrow_mut() = self.lent.take();
    }
}

impl Uploads {
    /// Passes a file on: `begin` goes before it, followed by what its part says about it.
    pub async fn forward(
        &self,
        file: usize,
        begin: &str,
        out: &PieceSender,
    ) -> Result<(), FeedError> {
        let kept = match &self.files.borrow()[file].state {
            State::Kept(kept) => Some(kept.clone()),
            State::Coming | State::Gone => None,
        };
        if let Some(kept) = kept {
            out.send(format!("{begin}{}\r\n\r\n", kept.head)).await?;
            for piece in kept.pieces {
                out.send(piece).await?;
            }
            return Ok(());
        }
        if matches!(self.files.borrow()[file].state, State::Gone) {
            let what = "a file is wanted a second time";
            return Err(self.fail(out_of_order(what, &self.options)));
        }
        if let Some(before) = &*self.failed.borrow() {
            return Err(refused(before));
        }
        let multipart = self.multipart.borrow_mut().take();
        let Some(multipart) = multipart else {
            let message = "the request's body ended before a file of `map`";
            return Err(self.fail(refusal(codes::UPLOAD_FILE_MISSING, message)));
        };
        let mut back = Back {
            uploads: self,
            lent: Some(multipart),
        };
        match &mut back.lent {
            Some(multipart) => self.pass_on(multipart, file, begin, out).await,
            None => Ok(()),
        }
    }

    async fn pass_on(
        &self,
        multipart: &mut Multipart<'static>,
        file: usize,
        begin: &str,
        out: &PieceSender,
    ) -> Result<(), FeedError> {
        loop {
            let (found, mut field) = self.next(multipart).await.map_err(|r| self.fail(r))?;
            let head = head(&field);
            if found != file {
                let kept = self.keep(field, head).await.map_err(|r| self.fail(r))?;
                self.files.borrow_mut()[found].state = State::Kept(kept);
                continue;
            }
            let mut tee = {
                let mut files = self.files.borrow_mut();
                files[file].state = State::Gone;
                files[file].keep.then(Vec::new)
            };
            out.send(format!("{begin}{head}\r\n\r\n")).await?;
            let mut size = 0;
            loop {
                let piece = self.piece(&mut field, &mut size).await;
                let piece = piece.map_err(|r| self.fail(r))?;
                if piece.is_empty() {
                    break;
                }
                if let Some(pieces) = &mut tee {
                    if self.reserve(piece.len()) {
                        pieces.push(piece.clone());
                    } else {
                        // Whoever else wants it learns that it is gone.
                        self.release(tee.take());
                    }
                }
                out.send(piece).await?;
            }
            if let Some(pieces) = tee {
                let kept = State::Kept(FileContent { head, pieces });
                self.files.borrow_mut()[file].state = kept;
            }
            return Ok(());
        }
    }

    /// The next file of `map`; parts that it does not name are passed over.
    async fn next(
        &self,
        multipart: &mut Multipart<'static>,
    ) -> Result<(usize, Field<'static>), Refusal> {
        loop {
            let next = tokio::time::timeout(self.options.pause_max, multipart.next_field());
            let next = next.await.map_err(|_| self.late())?;
            let Some(mut field) = next.map_err(of_parser)? else {
                let message = "the request's body ended before a file of `map`";
                return Err(refusal(codes::UPLOAD_FILE_MISSING, message));
            };
            self.collected.end();
            let file = field.name().and_then(|name| self.by_key.get(name).copied());
            let is_coming = |file: &usize| {
                let files = self.files.borrow();
                matches!(files[*file].state, State::Coming)
            };
            if let Some(file) = file.filter(is_coming) {
                return Ok((file, field));
            }
            let mut size = 0;
            while !self.piece(&mut field, &mut size).await?.is_empty() {}
        }
    }

    /// The next piece of a file, empty at its end.
    async fn piece(&self, field: &mut Field<'static>, size: &mut usize) -> Result<Bytes, Refusal> {
        loop {
            let piece = tokio::time::timeout(self.options.pause_max, field.chunk());
            let piece = piece.await.map_err(|_| self.late())?;
            let Some(piece) = piece.map_err(of_parser)? else {
                return Ok(NOTHING);
            };
            self.collected.end();
            *size += piece.len();
            if *size > self.options.file_bytes_max {
                let max = self.options.file_bytes_max;
                let message = format!("a file is larger than {max} bytes");
                return Err(refusal(codes::UPLOAD_TOO_LARGE, message));
            }
            if !piece.is_empty() {
                return Ok(piece);
            }
        }
    }

    /// Reads a file for later.
    async fn keep(&self, mut field: Field<'static>, head: String) -> Result<FileContent, Refusal> {
        let mut pieces = Vec::new();
        let mut size = 0;
        loop {
            let piece = self.piece(&mut field, &mut size).await?;
            if piece.is_empty() {
                return Ok(FileContent { head, pieces });
            }
            if !self.reserve(piece.len()) {
                let what = "a file is wanted before another one that comes first";
                return Err(out_of_order(what, &self.options));
            }
            pieces.push(piece);
        }
    }

    /// Room for so many bytes more.
    fn reserve(&self, bytes: usize) -> bool {
        let kept = self.kept_bytes.get() + bytes;
        let fits = kept <= self.options.kept_bytes_max && self.memory.grow(bytes).is_ok();
        if fits {
            self.kept_bytes.set(kept);
        }
        fits
    }

    fn release(&self, pieces: Option<Vec<Bytes>>) {
        let bytes: usize = pieces.iter().flatten().map(Bytes::len).sum();
        self.kept_bytes.set(self.kept_bytes.get() - bytes);
        self.memory.shrink(bytes);
    }

    fn late(&self) -> Refusal {
        let message = format!("nothing of a file came for {:?}", self.options.pause_max);
        refusal(codes::UPLOAD_FILE_MISSING, message)
    }

    /// Remembers what went wrong; nothing can be read after it.
    fn fail(&self, refusal: Refusal) -> FeedError {
        let error = refused(&refusal);
        self.failed.borrow_mut().get_or_insert(refusal);
        error
    }
}

fn refused(refusal: &Refusal) -> FeedError {
    FeedError::Refused {
        code: refusal.code,
        message: refusal.message.clone(),
    }
}

/// What a part says about a file, as the part of another form says it.
fn head(field: &Field<'_>) -> String {
    let mut head = String::new();
    if let Some(name) = field.file_name() {
        head.push_str("; filename=\"");
        // As browsers do it (HTML standard, multipart/form-data encoding algorithm).
        for c in name.chars() {
            match c {
                '"' => head.push_str("%22"),
                '\r' => head.push_str("%0D"),
                '\n' => head.push_str("%0A"),
                c => head.push(c),
            }
        }
        head.push('"');
    }
    if let Some(media) = field.content_type() {
        head.push_str("\r\nContent-Type: ");
        head.push_str(media.as_ref());
    }
    head
}

/// Reads on until the end, a pause or a limit, as [`ogive_server::drain_body`] does.
pub(super) async fn linger(mut multipart: Multipart<'static>, collected: &Collected) {
    let Some(_drain) = Drain::begin() else {
        return;
    };
    let began = Instant::now();
    let mut read = 0;
    let mut field: Option<Field<'static>> = None;
    while read < BYTES_MAX && began.elapsed() < TIME_MAX {
        let next = async {
            match &mut field {
                Some(open) => match open.chunk().await {
                    Ok(Some(piece)) => read += piece.len(),
                    Ok(None) => field = None,
                    Err(_) => return false,
                },
                None => match multipart.next_field().await {
                    Ok(Some(next)) => field = Some(next),
                    _ => return false,
                },
            }
            collected.end();
            true
        };
        match tokio::time::timeout(PAUSE_MAX, next).await {
            Ok(true) => {}
            _ => return,
        }
    }
}
