//! `content-encoding`: gzip, br and zstd, both ways, piece by piece (RFC 9110, section 8.4).
//!
//! Decoding stops at a limit on the bytes that come
//! out, so a small body cannot become a huge one, and gives other requests a turn while it works.

use std::io::{self, BufRead, ErrorKind, Read, Write};

use bytes::Bytes;
use http::HeaderMap;
use ogive_base::{OutOfMemory, Reservation};

use crate::growth;

/// How a body is encoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Encoding {
    /// `gzip`
    Gzip,
    /// `br`
    Brotli,
    /// `zstd`
    Zstd,
}

/// Why a body could not be decoded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DecodeError {
    /// More comes out than allowed.
    TooLarge,
    /// It is not what it says it is, or ends early.
    Malformed(String),
    /// The process has no memory for what comes out.
    OutOfMemory,
}

/// Bytes that go in or come out before other requests get a turn. At most a few hundred microseconds, whatever they are.
const TURN: usize = 32 << 10;
/// Bytes that come out at once.
const PIECE: usize = 16 << 10;
/// How many times as much as goes in there is room for at first, and at most how much. The pages of room that nothing
/// is written to are not taken.
const EXPANSION: usize = 8;
const RESERVE_MAX: usize = 16 << 20;
/// Buffers of the brotli coders.
const BUFFER: usize = 16 << 10;
/// Largest window of zstd, as a power of two: what RFC 8878 advises every decoder to support.
const ZSTD_WINDOW_LOG_MAX: u32 = 23;
/// Largest window of brotli (RFC 7932, section 9.1).
const BROTLI_WINDOW: usize = 16 << 20;

impl Encoding {
    /// All of them, the preferred ones first.
    pub const ALL: [Encoding; 3] = [Encoding::Zstd, Encoding::Brotli, Encoding::Gzip];

    /// Its name in headers.
    pub fn name(self) -> &'static str {
        match self {
            Encoding::Gzip => "gzip",
            Encoding::Brotli => "br",
            Encoding::Zstd => "zstd",
        }
    }

    /// What a decoder holds besides its window, at most: tables, and what has come out last.
    fn decoder_bytes(self) -> usize {
        match self {
            Encoding::Gzip => 64 << 10,
            Encoding::Brotli => 128 << 10,
            Encoding::Zstd => 256 << 10,
        }
    }

    /// Largest window of a decoder: what came out and may be referred to, a second time.
    fn window_max(self) -> usize {
        match self {
            // Among its tables.
            Encoding::Gzip => 0,
            Encoding::Brotli => BROTLI_WINDOW,
            Encoding::Zstd => 1 << ZSTD_WINDOW_LOG_MAX,
        }
    }

    /// Reads a name of a `content-encoding`.
    pub fn parse(name: &str) -> Option<Encoding> {
        let name = name.trim();
        if name.eq_ignore_ascii_case("x-gzip") {
            return Some(Encoding::Gzip);
        }
        Self::ALL
            .into_iter()
            .find(|e| e.name().eq_ignore_ascii_case(name))
    }

    /// How a body is encoded: `Ok(None)` if it is not; the error is an encoding that is not known, or several.
    pub fn of(headers: &HeaderMap) -> Result<Option<Encoding>, String> {
        let mut values = headers.get_all(http::header::CONTENT_ENCODING).iter();
        let Some(value) = values.next() else {
            return Ok(None);
        };
        let text = value.to_str().unwrap_or_default().trim();
        if values.next().is_some() {
            return Err("several encodings".to_owned());
        }
        if text.is_empty() || text.eq_ignore_ascii_case("identity") {
            return Ok(None);
        }
        Encoding::parse(text)
            .map(Some)
            .ok_or_else(|| text.to_owned())
    }
}

/// Decodes a whole body into at most `max` bytes, which count in `memory` while they come out, and stay counted. What the
/// decoder holds counts there, too, for as long as there is one.
///
/// Decoders are asked for bytes instead of given them: how many come out of a few that go in is the sender's choice, and
/// may be a thousand times as many.
pub async fn decode(
    encoding: Encoding,
    body: &[u8],
    max: usize,
    memory: Option<&Reservation>,
) -> Result<Bytes, DecodeError> {
    let source = Source {
        rest: body,
        left: TURN,
    };
    let own = memory.map(Reservation::beside);
    let counts = |window: usize| match &own {
        Some(own) => own.set(encoding.decoder_bytes() + window),
        None => Ok(()),
    };
    counts(0).map_err(|OutOfMemory| DecodeError::OutOfMemory)?;
    let mut decoder = Decoder::new(encoding, source).map_err(malformed)?;
    let expected = body.len().saturating_mul(EXPANSION).min(RESERVE_MAX);
    let mut out: Vec<u8> = Vec::with_capacity(expected.min(max));
    let mut piece = vec![0; PIECE];
    let mut turn = TURN;
    loop {
        match decoder.read(&mut piece) {
            Ok(0) => return Ok(out.into()),
            Ok(came) if came > max - out.len() => return Err(DecodeError::TooLarge),
            Ok(came)
                if memory.is_some_and(|memory| memory.grow(came).is_err())
                    || counts((out.len() + came).min(encoding.window_max())).is_err() =>
            {
                return Err(DecodeError::OutOfMemory);
            }
            Ok(came) => {
                if out.capacity() - out.len() < came {
                    out.reserve(growth::room(out.len(), came, max));
                }
                out.extend_from_slice(&piece[..came]);
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => decoder.source().left = 0,
            Err(error) => return Err(malformed(error)),
        }
        if out.len() >= turn || decoder.source().left == 0 {
            turn = out.len() + TURN;
            decoder.source().left = TURN;
            tokio::task::yield_now().await;
        }
    }
}

fn malformed(error: io::Error) -> DecodeError {
    DecodeError::Malformed(error.to_string())
}

/// What is still to be decoded.
struct Source<'a> {
    rest: &'a [u8],
    /// How many bytes of it are given in this turn.
    left: usize,
}

impl BufRead for Source<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        match self.left.min(self.rest.len()) {
            0 if !self.rest.is_empty() => Err(ErrorKind::WouldBlock.into()),
            count => Ok(&self.rest[..count]),
        }
    }
    fn consume(&mut self, count: usize) {
        self.rest = &self.rest[count..];
        self.left -= count;
    }
}

impl Read for Source<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(out)?;
        self.consume(count);
        Ok(count)
    }
}

/// Each of them goes on where it was when there is nothing to read for a while.
enum Decoder<'a> {
    Gzip(Box<flate2::bufread::MultiGzDecoder<Source<'a>>>),
    Brotli(Box<brotli::Decompressor<Source<'a>>>),
    Zstd(Box<zstd::stream::read::Decoder<'static, Source<'a>>>),
}

impl<'a> Decoder<'a> {
    fn new(encoding: Encoding, source: Source<'a>) -> io::Result<Self> {
        Ok(match encoding {
            Encoding::Gzip => Decoder::Gzip(Box::new(flate2::bufread::MultiGzDecoder::new(source))),
            Encoding::Brotli => {
                Decoder::Brotli(Box::new(brotli::Decompressor::new(source, BUFFER)))
            }
            Encoding::Zstd => {
                let mut decoder = zstd::stream::read::Decoder::with_buffer(source)?;
                decoder.window_log_max(ZSTD_WINDOW_LOG_MAX)?;
                Decoder::Zstd(Box::new(decoder))
            }
        })
    }
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            Decoder::Gzip(d) => d.read(out),
            Decoder::Brotli(d) => d.read(out),
            Decoder::Zstd(d) => d.read(out),
        }
    }
    fn source(&mut self) -> &mut Source<'a> {
        match self {
            Decoder::Gzip(d) => d.get_mut(),
            Decoder::Brotli(d) => d.get_mut(),
            Decoder::Zstd(d) => d.get_mut(),
        }
    }
}

/// Encodes a body piece by piece.
pub struct Encoder(Coder);

enum Coder {
    Gzip(flate2::write::GzEncoder<Vec<u8>>),
    Brotli(Box<brotli::CompressorWriter<Vec<u8>>>),
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
}

impl Encoder {
    /// A fast one: an answer is made once and read once.
    pub fn new(encoding: Encoding) -> io::Result<Encoder> {
        Ok(Encoder(match encoding {
            Encoding::Gzip => Coder::Gzip(flate2::write::GzEncoder::new(
                Vec::new(),
                flate2::Compression::new(3),
            )),
            Encoding::Brotli => Coder::Brotli(Box::new(brotli::CompressorWriter::new(
                Vec::new(),
                BUFFER,
                3,
                20,
            ))),
            Encoding::Zstd => Coder::Zstd(zstd::stream::write::Encoder::new(Vec::new(), 2)?),
        }))
    }
    /// Takes bytes in; gives what is ready, possibly nothing yet.
    pub fn push(&mut self, piece: &[u8]) -> io::Result<Vec<u8>> {
        let out = match &mut self.0 {
            Coder::Gzip(e) => {
                e.write_all(piece)?;
                e.get_mut()
            }
            Coder::Brotli(e) => {
                e.write_all(piece)?;
                e.get_mut()
            }
            Coder::Zstd(e) => {
                e.write_all(piece)?;
                e.get_mut()
            }
        };
        Ok(std::mem::take(out))
    }
    /// Gives the rest.
    pub fn finish(self) -> io::Result<Vec<u8>> {
        match self.0 {
            Coder::Gzip(e) => e.finish(),
            Coder::Brotli(e) => Ok(e.into_inner()),
            Coder::Zstd(e) => e.finish(),
        }
    }
}

impl std::fmt::Debug for Encoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Encoder")
    }
}

/// Encodes a whole body.
pub fn encode(encoding: Encoding, body: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = Encoder::new(encoding)?;
    let mut out = encoder.push(body)?;
    out.extend_from_slice(&encoder.finish()?);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use std::{cell::Cell, sync::Arc};

    use ogive_base::{MemoryBudget, memory::CHUNK};

    use super::*;

    #[tokio::test]
    async fn what_is_encoded_is_decoded() {
        let text: Vec<u8> = (0..300_000u32)
            .flat_map(|i| (i % 1000).to_le_bytes())
            .collect();
        for encoding in Encoding::ALL {
            for body in [&b""[..], b"{}", &text] {
                let small = encode(encoding, body).unwrap();
                assert_eq!(
                    decode(encoding, &small, text.len(), None).await.unwrap(),
                    body,
                    "{encoding:?}"
                );
            }
        }
    }

    #[tokio::test]
    async fn bombs_are_defused() {
        let zeros = vec![b' '; 64 << 20];
        for encoding in Encoding::ALL {
            let bomb = encode(encoding, &zeros).unwrap();
            assert!(bomb.len() < 1 << 20, "{encoding:?}: {}", bomb.len());
            assert_eq!(
                decode(encoding, &bomb, 1 << 20, None).await,
                Err(DecodeError::TooLarge),
                "{encoding:?}"
            );
        }
    }

    /// The window is a second copy of what came out last.
    #[tokio::test]
    async fn what_a_decoder_holds_is_counted_while_there_is_one() {
        let spaces = vec![b' '; 1 << 20];
        for (encoding, times) in [
            (Encoding::Gzip, 1),
            (Encoding::Brotli, 2),
            (Encoding::Zstd, 2),
        ] {
            let body = encode(encoding, &spaces).unwrap();
            let within = async |limit: usize| {
                let budget = Arc::new(MemoryBudget::new(limit));
                let memory = Reservation::new(&budget);
                memory.run();
                let decoded = decode(encoding, &body, spaces.len(), Some(&memory)).await;
                (decoded.map(|body| body.len()), budget.used())
            };
            // Large things that run may have fifteen sixteenths.
            let needed = (times << 20) + encoding.decoder_bytes();
            let enough = within((needed + CHUNK).div_ceil(15) * 16).await;
            assert_eq!(enough, (Ok(1 << 20), 1 << 20), "{encoding:?}");
            let (refused, _) = within(needed - CHUNK).await;
            assert_eq!(refused, Err(DecodeError::OutOfMemory), "{encoding:?}");
        }
    }

    /// Whatever goes in, and however much comes out of it: others have their turns meanwhile.
    #[tokio::test(flavor = "current_thread")]
    async fn decoding_takes_turns() {
        let spaces = vec![b' '; 40 * TURN];
        // Much goes in, and nothing comes out.
        let mut nothing = Vec::new();
        let empty = encode(Encoding::Gzip, b"").unwrap();
        while nothing.len() < 40 * TURN {
            nothing.extend_from_slice(&empty);
        }
        let bombs = Encoding::ALL.map(|e| (e, encode(e, &spaces).unwrap(), spaces.len()));
        let nothings = [(Encoding::Gzip, nothing, 0)];
        for (encoding, body, length) in bombs.into_iter().chain(nothings) {
            let turns = Cell::new(0);
            let others = async {
                loop {
                    tokio::task::yield_now().await;
                    turns.set(turns.get() + 1);
                }
            };
            let decoded = tokio::select! {
                decoded = decode(encoding, &body, spaces.len(), None) => decoded,
                () = others => unreachable!("they never end"),
            };
            assert_eq!(decoded.unwrap().len(), length);
            // A turn ends with a whole piece.
            let least = 40 * TURN / (TURN + PIECE);
            assert!(turns.get() >= least, "{encoding:?}: {}", turns.get());
        }
    }

    /// A turn may end anywhere in what goes in.
    #[test]
    fn decoders_go_on_after_every_byte() {
        let text: Vec<u8> = (0..50_000u32).flat_map(u32::to_le_bytes).collect();
        for encoding in Encoding::ALL {
            let mut body = encode(encoding, &text).unwrap();
            if encoding != Encoding::Brotli {
                // And one more behind it.
                body.extend_from_slice(&encode(encoding, b"more").unwrap());
            }
            let source = Source {
                rest: &body,
                left: 0,
            };
            let mut decoder = Decoder::new(encoding, source).unwrap();
            let (mut out, mut piece) = (Vec::new(), [0; 100]);
            loop {
                match decoder.read(&mut piece) {
                    Ok(0) => break,
                    Ok(count) => out.extend_from_slice(&piece[..count]),
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::WouldBlock, "{encoding:?}");
                        decoder.source().left = 1;
                    }
                }
            }
            let more: &[u8] = if encoding == Encoding::Brotli {
                b""
            } else {
                b"more"
            };
            assert!(out == [&text, more].concat(), "{encoding:?}");
        }
    }

    #[tokio::test]
    async fn noise_and_cut_off_bodies_are_refused() {
        for encoding in Encoding::ALL {
            let noise = decode(encoding, b"\xffthis is not encoded at all", 1000, None).await;
            assert!(
                matches!(noise, Err(DecodeError::Malformed(_))),
                "{encoding:?}: {noise:?}"
            );
        }
        for encoding in Encoding::ALL {
            let whole = encode(encoding, &b"0123456789abcdef".repeat(100)).unwrap();
            let cut = decode(encoding, &whole[..whole.len() / 2], 10_000, None).await;
            assert!(
                matches!(cut, Err(DecodeError::Malformed(_))),
                "{encoding:?}: {cut:?}"
            );
        }
    }
}
