//! `content-encoding`: gzip, br and zstd, both ways, piece by piece (RFC 9110, section 8.4).
//!
//! Used towards subgraphs here and towards clients by the gateway. Decoding stops at a limit on the bytes that come
//! out, so a small body cannot become a huge one, and gives other requests a turn while it works.

use std::io::{self, Write};

use bytes::Bytes;
use http::HeaderMap;

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
}

/// Bytes that go in at once; what comes out of them is at most about a thousand times as much.
const PIECE: usize = 4 << 10;
/// Bytes that come out before other requests get a turn.
const TURN: usize = 1 << 20;
/// Buffers of the brotli coders.
const BUFFER: usize = 16 << 10;
/// Largest window of zstd, as a power of two: what RFC 8878 advises every decoder to support.
const ZSTD_WINDOW_LOG_MAX: u32 = 23;

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

/// Decodes a whole body into at most `max` bytes.
pub async fn decode(encoding: Encoding, body: &[u8], max: usize) -> Result<Bytes, DecodeError> {
    let out = Bounded {
        bytes: Vec::new(),
        max,
        exceeded: false,
    };
    let mut decoder = Decoder::new(encoding, out).map_err(malformed)?;
    let mut turn = TURN;
    for piece in body.chunks(PIECE) {
        if let Err(error) = decoder.write(piece) {
            return Err(match decoder.out().exceeded {
                true => DecodeError::TooLarge,
                false => malformed(error),
            });
        }
        if decoder.out().bytes.len() >= turn {
            turn = decoder.out().bytes.len() + TURN;
            tokio::task::yield_now().await;
        }
    }
    decoder.finish()
}

fn malformed(error: io::Error) -> DecodeError {
    DecodeError::Malformed(error.to_string())
}

struct Bounded {
    bytes: Vec<u8>,
    max: usize,
    exceeded: bool,
}

impl Write for Bounded {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + piece.len() > self.max {
            self.exceeded = true;
            return Err(io::Error::other("too large"));
        }
        self.bytes.extend_from_slice(piece);
        Ok(piece.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

enum Decoder {
    Gzip(Box<flate2::write::MultiGzDecoder<Bounded>>),
    Brotli(Box<brotli::DecompressorWriter<Bounded>>),
    Zstd(Box<zstd::stream::write::Decoder<'static, Bounded>>),
}

impl Decoder {
    fn new(encoding: Encoding, out: Bounded) -> io::Result<Decoder> {
        Ok(match encoding {
            Encoding::Gzip => Decoder::Gzip(Box::new(flate2::write::MultiGzDecoder::new(out))),
            Encoding::Brotli => {
                Decoder::Brotli(Box::new(brotli::DecompressorWriter::new(out, BUFFER)))
            }
            Encoding::Zstd => {
                let mut decoder = zstd::stream::write::Decoder::new(out)?;
                decoder.window_log_max(ZSTD_WINDOW_LOG_MAX)?;
                Decoder::Zstd(Box::new(decoder))
            }
        })
    }
    fn write(&mut self, piece: &[u8]) -> io::Result<()> {
        match self {
            Decoder::Gzip(d) => d.write_all(piece),
            Decoder::Brotli(d) => d.write_all(piece),
            Decoder::Zstd(d) => d.write_all(piece),
        }
    }
    fn out(&self) -> &Bounded {
        match self {
            Decoder::Gzip(d) => d.get_ref(),
            Decoder::Brotli(d) => d.get_ref(),
            Decoder::Zstd(d) => d.get_ref(),
        }
    }
    fn finish(mut self) -> Result<Bytes, DecodeError> {
        let end = match &mut self {
            Decoder::Gzip(d) => d.try_finish(),
            Decoder::Brotli(d) => d.close(),
            Decoder::Zstd(d) => d.flush(),
        };
        if let Err(error) = end {
            return Err(match self.out().exceeded {
                true => DecodeError::TooLarge,
                false => malformed(error),
            });
        }
        let out = match &mut self {
            Decoder::Gzip(d) => d.get_mut(),
            Decoder::Brotli(d) => d.get_mut(),
            Decoder::Zstd(d) => d.get_mut(),
        };
        Ok(std::mem::take(&mut out.bytes).into())
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
                    decode(encoding, &small, text.len()).await.unwrap(),
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
                decode(encoding, &bomb, 1 << 20).await,
                Err(DecodeError::TooLarge),
                "{encoding:?}"
            );
        }
    }

    #[tokio::test]
    async fn noise_and_cut_off_bodies_are_refused() {
        for encoding in Encoding::ALL {
            let noise = decode(encoding, b"\xffthis is not encoded at all", 1000).await;
            assert!(
                matches!(noise, Err(DecodeError::Malformed(_))),
                "{encoding:?}: {noise:?}"
            );
        }
        for encoding in [Encoding::Gzip, Encoding::Brotli] {
            let whole = encode(encoding, &b"0123456789abcdef".repeat(100)).unwrap();
            let cut = decode(encoding, &whole[..whole.len() / 2], 10_000).await;
            assert!(
                matches!(cut, Err(DecodeError::Malformed(_))),
                "{encoding:?}: {cut:?}"
            );
        }
    }
}
