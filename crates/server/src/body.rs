//! The body of a response: bytes that are all there, in pieces that may share memory with what they were made of, encoded
//! on their way out if the client reads that; or parts that come one after another ([`crate::parts`]).
//!
//! Encoding happens piece by piece while the connection takes the bytes, so that a large answer neither exists twice
//! nor keeps the thread from other requests.

use std::{
    collections::VecDeque,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, header};
use hyper::body::{Body, Frame, SizeHint};
use ogive_base::Reservation;
use ogive_net::encoding::{Encoder, Encoding};

use crate::{
    events::{EventParts, Events, PartFraming},
    parts::{PartStream, Parts},
    upgrade::Upgrade,
};

/// Bytes that are encoded in one go.
const PIECE: usize = 64 << 10;

/// A body: whole, unless it is made of [parts](ResponseBody::of_parts).
#[derive(Debug, Default)]
pub struct ResponseBody {
    /// What is still to be sent; no piece is empty.
    pieces: VecDeque<Bytes>,
    /// Bytes in `pieces`.
    len: usize,
    coding: Option<Coding>,
    /// Counts what it holds, until it is sent.
    memory: Option<Reservation>,
}

/// How it is encoded, or where it comes from.
#[derive(Debug)]
enum Coding {
    /// In parts that are not there yet; they are sent as they come.
    Parts(Box<Parts>),
    /// The same, of which many clients are sent the same.
    Events(EventParts),
    /// None of it comes from here.
    Elsewhere,
    /// None: the connection becomes something else.
    Upgrade(Box<Upgrade>),
    /// In one go, when it is taken: it is no more than a piece.
    AtOnce(Encoding),
    /// Piece by piece. What the encoder holds meanwhile counts: a client may take none of it.
    Pieces(Box<Encoder>, Reservation),
}

/// What an encoder holds, at most: its window and its tables.
fn encoder_bytes(encoding: Encoding) -> usize {
    match encoding {
        Encoding::Gzip => 384 << 10,
        Encoding::Brotli | Encoding::Zstd => 2 << 20,
    }
}

impl ResponseBody {
    /// A body whose parts are sent as they come; never encoded.
    pub fn of_parts(parts: PartStream) -> Self {
        ResponseBody {
            coding: Some(Coding::Parts(Box::new(Parts(parts)))),
            ..ResponseBody::default()
        }
    }
    /// A body of events; never encoded, and the last one of an HTTP/1.1 connection.
    pub fn of_events(events: impl Events + 'static) -> Self {
        ResponseBody {
            coding: Some(Coding::Events(EventParts(Box::new(events)))),
            ..ResponseBody::default()
        }
    }
    /// The events, for whoever writes them instead.
    pub(crate) fn take_events(&mut self) -> Option<EventParts> {
        match self.coding.take() {
            Some(Coding::Events(events)) => {
                self.coding = Some(Coding::Elsewhere);
                Some(events)
            }
            coding => {
                self.coding = coding;
                None
            }
        }
    }
    /// No body, but what goes on behind a head with status 101, over HTTP/1.1.
    pub fn of_upgrade(upgrade: Upgrade) -> Self {
        ResponseBody {
            coding: Some(Coding::Upgrade(Box::new(upgrade))),
            ..ResponseBody::default()
        }
    }
    /// What goes on behind the head.
    pub(crate) fn take_upgrade(&mut self) -> Option<Upgrade> {
        match self.coding.take() {
            Some(Coding::Upgrade(upgrade)) => Some(*upgrade),
            coding => {
                self.coding = coding;
                None
            }
        }
    }
    /// Its parts, if it comes in parts: for whoever sends them in another way than HTTP does.
    pub fn take_parts(&mut self) -> Option<PartStream> {
        match self.coding.take() {
            Some(Coding::Parts(parts)) => Some(parts.0),
            coding => {
                self.coding = coding;
                None
            }
        }
    }
    /// Whether it comes in parts.
    pub fn is_in_parts(&self) -> bool {
        matches!(self.coding, Some(Coding::Parts(_) | Coding::Events(_)))
    }
    /// What its pieces share memory with is counted there; given back when they are gone.
    pub fn hold(&mut self, memory: Reservation) {
        self.memory = Some(memory);
    }
    /// Holds that, too.
    pub fn hold_also(&mut self, memory: Reservation) {
        match &self.memory {
            Some(held) => held.absorb(memory),
            None => self.memory = Some(memory),
        }
    }
    /// Puts other bytes into their place, which hold what these did.
    pub fn replace(&mut self, bytes: Bytes) {
        let memory = self.memory.take();
        *self = bytes.into();
        self.memory = memory;
    }
    /// Number of bytes before they are encoded.
    pub fn len(&self) -> usize {
        self.len
    }
    /// Whether there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// The bytes before they are encoded, in pieces that follow one another.
    pub fn pieces(&self) -> impl Iterator<Item = &Bytes> {
        self.pieces.iter()
    }
    /// The bytes before they are encoded, in one piece; copies them.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut whole = Vec::with_capacity(self.len);
        self.pieces
            .iter()
            .for_each(|piece| whole.extend_from_slice(piece));
        whole
    }
    /// Takes the next piece of at most `max` bytes.
    fn take(&mut self, max: usize) -> Option<Bytes> {
        let mut piece = self.pieces.pop_front()?;
        if piece.len() > max {
            let rest = piece.split_off(max);
            self.pieces.push_front(rest);
        }
        self.len -= piece.len();
        Some(piece)
    }
}

impl From<Bytes> for ResponseBody {
    fn from(bytes: Bytes) -> Self {
        ResponseBody::from_iter([bytes])
    }
}

impl FromIterator<Bytes> for ResponseBody {
    fn from_iter<I: IntoIterator<Item = Bytes>>(pieces: I) -> Self {
        let pieces: VecDeque<Bytes> = pieces.into_iter().filter(|p| !p.is_empty()).collect();
        ResponseBody {
            len: pieces.iter().map(Bytes::len).sum(),
            pieces,
            coding: None,
            memory: None,
        }
    }
}

/// Encodes a response of at least `bytes_min` if the request's headers ask for it, and there is memory for the encoder,
/// which counts in what `reserve` gives.
pub fn encode(
    request: &HeaderMap,
    bytes_min: usize,
    response: &mut Response<ResponseBody>,
    reserve: impl FnOnce() -> Reservation,
) {
    let body = response.body();
    if body.len() < bytes_min.max(1) || response.headers().contains_key(header::CONTENT_ENCODING) {
        return;
    }
    let vary = HeaderValue::from_static("accept-encoding");
    response.headers_mut().append(header::VARY, vary);
    let Some(encoding) = AcceptEncoding::of(request).0 else {
        return;
    };
    let coding = match response.body().len() {
        0..=PIECE => Coding::AtOnce(encoding),
        _ => {
            let memory = reserve();
            let fits = memory.grow_if_roomy(encoder_bytes(encoding)).is_ok();
            // Without an encoder the answer is sent as it is, which is never wrong.
            let Some(encoder) = fits.then(|| Encoder::new(encoding).ok()).flatten() else {
                return;
            };
            Coding::Pieces(Box::new(encoder), memory)
        }
    };
    response.body_mut().coding = Some(coding);
    response.headers_mut().insert(
        header::CONTENT_ENCODING,
        HeaderValue::from_static(encoding.name()),
    );
}

/// The encoding that a client likes best.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct AcceptEncoding(Option<Encoding>);

/// Most items of `accept-encoding` that are looked at.
const ITEMS_MAX: usize = 32;

impl AcceptEncoding {
    fn of(headers: &HeaderMap) -> Self {
        let mut best: Option<(u32, Encoding)> = None;
        let values = headers.get_all(header::ACCEPT_ENCODING).iter();
        let items = values
            .filter_map(|v| v.to_str().ok())
            .flat_map(|v| v.split(','));
        for item in items.take(ITEMS_MAX) {
            let (name, parameters) = item.split_once(';').unwrap_or((item, ""));
            let quality = parameters.trim().strip_prefix("q=");
            let quality = quality.map_or(1000, |q| thousandths(q.trim()));
            // `*` says nothing about a particular one, and no encoding is always fine.
            let Some(encoding) = Encoding::parse(name) else {
                continue;
            };
            let rank = |e| Encoding::ALL.iter().position(|x| *x == e);
            let better =
                best.is_none_or(|(q, e)| quality > q || (quality == q && rank(encoding) < rank(e)));
            if quality > 0 && better {
                best = Some((quality, encoding));
            }
        }
        AcceptEncoding(best.map(|(_, encoding)| encoding))
    }
}

/// A quality value (RFC 9110, section 12.4.2) in thousandths: `0.85` is 850; anything malformed is 0, so that it is not
/// preferred. `.2`, which Java's `HttpURLConnection` has always sent, is read as `0.2`.
pub fn thousandths(text: &str) -> u32 {
    let (whole, fraction) = match text.split_once('.') {
        Some(("", fraction)) => ("0", fraction),
        Some(parts) => parts,
        None => (text, ""),
    };
    let digits_only = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    if !matches!(whole, "0" | "1") || fraction.len() > 3 || !digits_only(fraction) {
        return 0;
    }
    let fraction: u32 = format!("{fraction:0<3}").parse().unwrap_or(0);
    (if whole == "1" { 1000 } else { 0 } + fraction).min(1000)
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        self.poll_piece(cx, usize::MAX)
    }
    fn is_end_stream(&self) -> bool {
        self.is_empty() && self.coding.is_none()
    }
    fn size_hint(&self) -> SizeHint {
        match self.coding {
            None => SizeHint::with_exact(self.len as u64),
            Some(_) => SizeHint::default(),
        }
    }
}

impl ResponseBody {
    /// The next frame; at most `max` bytes unless they are encoded, or a part.
    pub(crate) fn poll_piece(
        &mut self,
        cx: &mut Context<'_>,
        max: usize,
    ) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        let (mut encoder, memory) = match self.coding.take() {
            None => return Poll::Ready(self.take(max).map(|piece| Ok(Frame::data(piece)))),
            Some(Coding::Pieces(encoder, memory)) => (encoder, memory),
            Some(Coding::Upgrade(_)) => return Poll::Ready(None),
            Some(Coding::Parts(mut parts)) => {
                let part = parts.0.as_mut().poll_next(cx);
                if !matches!(part, Poll::Ready(None | Some(Err(_)))) {
                    self.coding = Some(Coding::Parts(parts));
                }
                return part.map(|part| part.map(|part| part.map(Frame::data)));
            }
            Some(Coding::Events(mut events)) => {
                let part = events.0.poll_part(cx, PartFraming::Plain);
                if !matches!(part, Poll::Ready(None)) {
                    self.coding = Some(Coding::Events(events));
                }
                return part.map(|part| part.map(|part| Ok(Frame::data(part))));
            }
            Some(Coding::Elsewhere) => {
                self.coding = Some(Coding::Elsewhere);
                return Poll::Pending;
            }
            Some(Coding::AtOnce(encoding)) => {
                let encoded = Encoder::new(encoding).and_then(|mut encoder| {
                    let mut out = Vec::new();
                    while let Some(piece) = self.take(PIECE) {
                        out.extend_from_slice(&encoder.push(&piece)?);
                    }
                    out.extend_from_slice(&encoder.finish()?);
                    Ok(Frame::data(out.into()))
                });
                return Poll::Ready(Some(encoded));
            }
        };
        let piece = self.take(PIECE).unwrap_or_default();
        let last = self.is_empty();
        let encoded = encoder.push(&piece).and_then(|mut out| {
            if last {
                out.extend_from_slice(&encoder.finish()?)
            } else {
                self.coding = Some(Coding::Pieces(encoder, memory))
            }
            Ok(out)
        });
        match encoded {
            Ok(out) if out.is_empty() && !last => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Ok(out) => Poll::Ready(Some(Ok(Frame::data(out.into())))),
            Err(error) => Poll::Ready(Some(Err(error))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_preferred_encoding_is_taken() {
        let best = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(text));
            AcceptEncoding::of(&headers).0
        };
        assert_eq!(best("gzip, deflate, br, zstd"), Some(Encoding::Zstd));
        assert_eq!(best("gzip, deflate, br"), Some(Encoding::Brotli));
        assert_eq!(best("gzip;q=1.0, br;q=0.5"), Some(Encoding::Gzip));
        assert_eq!(best("zstd;q=0, GZIP"), Some(Encoding::Gzip));
        assert_eq!(best("identity"), None);
        assert_eq!(best("*"), None);
        assert_eq!(best("deflate"), None);
    }
}
