//! Bytes of an artefact: compressed once, however many artefacts contain them.
//!
//! Every piece is compressed by itself and ends on a byte boundary, so compressed pieces can be joined. The binary,
//! nearly all of each artefact, is compressed once for the archive, the image and all packages.

use std::{rc::Rc, sync::OnceLock};

use flate2::{Compress, Compression, Crc, FlushCompress};
use ring::digest;

/// Pieces from this size on are compressed by themselves, so that other artefacts can use the result.
const LARGE: usize = 1 << 20;

/// An empty last block: ends a stream of compressed pieces.
const LAST_BLOCK: [u8; 2] = [0x03, 0x00];

/// The content of a file.
pub(crate) struct Content {
    plain: Vec<u8>,
    compressed: OnceLock<Vec<u8>>,
}

impl Content {
    /// A file's content, shared by the artefacts that contain the file.
    pub(crate) fn new(plain: impl Into<Vec<u8>>) -> Rc<Content> {
        Rc::new(Content {
            plain: plain.into(),
            compressed: OnceLock::new(),
        })
    }

    /// The bytes as they are.
    pub(crate) fn plain(&self) -> &[u8] {
        &self.plain
    }

    /// A whole DEFLATE stream (RFC 1951) of the bytes.
    pub(crate) fn deflate(&self) -> Vec<u8> {
        [self.piece(), &LAST_BLOCK].concat()
    }

    /// The bytes as DEFLATE blocks, none of which is the last one.
    fn piece(&self) -> &[u8] {
        self.compressed.get_or_init(|| compress(&self.plain))
    }
}

/// A sequence of bytes, plain or as gzip.
#[derive(Default)]
pub(crate) struct Stream {
    pieces: Vec<Rc<Content>>,
    /// The bytes after the last piece.
    rest: Vec<u8>,
}

impl Stream {
    /// Appends bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.rest.extend_from_slice(bytes);
    }

    /// Appends a file's content.
    pub(crate) fn push_content(&mut self, content: &Rc<Content>) {
        if content.plain.len() < LARGE {
            return self.push(&content.plain);
        }
        self.close();
        self.pieces.push(Rc::clone(content));
    }

    /// Appends zeros until the length is a multiple of `size`.
    pub(crate) fn pad(&mut self, size: usize) {
        let over = self.len() % size;
        if over > 0 {
            self.rest.resize(self.rest.len() + size - over, 0);
        }
    }

    /// The number of plain bytes.
    pub(crate) fn len(&self) -> usize {
        let pieces = self.pieces.iter().map(|piece| piece.plain.len());
        pieces.sum::<usize>() + self.rest.len()
    }

    /// The plain bytes.
    pub(crate) fn plain(mut self) -> Vec<u8> {
        self.close();
        let pieces: Vec<&[u8]> = self.pieces.iter().map(|piece| piece.plain()).collect();
        pieces.concat()
    }

    /// The SHA-256 of the plain bytes, in hexadecimal.
    pub(crate) fn sha256(&self) -> String {
        let mut context = digest::Context::new(&digest::SHA256);
        for piece in &self.pieces {
            context.update(piece.plain());
        }
        context.update(&self.rest);
        hex(context.finish().as_ref())
    }

    /// The bytes as gzip (RFC 1952), without a name and a time.
    pub(crate) fn gzip(mut self) -> Vec<u8> {
        self.close();
        let mut out = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 0xff];
        let mut crc = Crc::new();
        for piece in &self.pieces {
            crc.update(piece.plain());
            out.extend_from_slice(piece.piece());
        }
        out.extend_from_slice(&LAST_BLOCK);
        out.extend_from_slice(&crc.sum().to_le_bytes());
        out.extend_from_slice(&crc.amount().to_le_bytes());
        out
    }

    fn close(&mut self) {
        if !self.rest.is_empty() {
            self.pieces
                .push(Content::new(std::mem::take(&mut self.rest)));
        }
    }
}

/// Compresses bytes to DEFLATE blocks that end on a byte boundary and refer to nothing before them.
fn compress(plain: &[u8]) -> Vec<u8> {
    let mut compress = Compress::new(Compression::best(), false);
    let mut out = Vec::with_capacity(plain.len() / 2 + 64);
    loop {
        let at = usize::try_from(compress.total_in()).unwrap_or(usize::MAX);
        // Compressing to memory has no error: the arguments are whole at every call.
        let _ = compress.compress_vec(&plain[at..], &mut out, FlushCompress::Full);
        let is_whole = compress.total_in() == plain.len() as u64;
        if is_whole && out.len() < out.capacity() {
            return out;
        }
        out.reserve(out.capacity() / 4 + 64);
    }
}

/// The SHA-256 of bytes, in hexadecimal.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex(digest::digest(&digest::SHA256, bytes).as_ref())
}

/// Bytes in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Bytes in the alphabet of base64 (RFC 4648, section 4) or, `url_safe`, in that of section 5 without padding.
pub(crate) fn base64(bytes: &[u8], url_safe: bool) -> String {
    const LETTERS: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    let letter = |value: u32| match (value & 63, url_safe) {
        (62, false) => '+',
        (62, true) => '-',
        (63, false) => '/',
        (63, true) => '_',
        (value, _) => char::from(LETTERS[value as usize]),
    };
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        let letters = [bits >> 18, bits >> 12, bits >> 6, bits].map(letter);
        out.extend(letters.iter().take(chunk.len() + 1));
        if !url_safe {
            out.extend(std::iter::repeat_n('=', 3 - chunk.len()));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn joined_pieces_decompress_to_what_was_put_in() {
        let large: Vec<u8> = (0..LARGE as u32 + 9)
            .flat_map(|n| (n / 3).to_le_bytes())
            .collect();
        let content = Content::new(large.clone());
        let mut stream = Stream::default();
        stream.push(b"before");
        stream.push_content(&content);
        stream.push_content(&Content::new(*b"after"));
        stream.pad(512);
        let expected = [b"before".as_slice(), &large, b"after"].concat();
        assert_eq!(stream.len() % 512, 0);
        let sum = stream.sha256();
        let mut plain = Vec::new();
        flate2::read::GzDecoder::new(stream.gzip().as_slice())
            .read_to_end(&mut plain)
            .unwrap();
        assert!(plain.starts_with(&expected));
        assert_eq!(sum, sha256(&plain));
        let mut plain = Vec::new();
        flate2::read::DeflateDecoder::new(content.deflate().as_slice())
            .read_to_end(&mut plain)
            .unwrap();
        assert_eq!(plain, large);
    }

    #[test]
    fn base64_has_both_alphabets() {
        for (bytes, padded, url_safe) in [
            (&b""[..], "", ""),
            (b"f", "Zg==", "Zg"),
            (b"fo", "Zm8=", "Zm8"),
            (b"foo", "Zm9v", "Zm9v"),
            (b"\xfb\xff\xfe", "+//+", "-__-"),
        ] {
            assert_eq!(base64(bytes, false), padded);
            assert_eq!(base64(bytes, true), url_safe);
        }
    }
}
