//! The body of an answer, made where its bytes lie.

use std::mem;

use bytes::{Buf, Bytes, BytesMut};

use super::{EXTENSIONS_MAX, Framing, Malformed, TRAILERS_MAX};

/// Most digits of a chunk's size, leading zeros included.
const DIGITS_MAX: u8 = 16;

/// Waits for the end of a body. The first [`Body::len`] bytes of the buffer are the body so far; after [`Body::read`] nothing
/// else is in it, unless the body is whole and something follows it.
#[derive(Debug)]
pub(crate) struct Body {
    length: usize,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// Of so many bytes altogether.
    Length(u64),
    Chunked(Chunks),
    UntilClose,
}

/// Where in a chunked body its reader is.
#[derive(Debug)]
struct Chunks {
    at: At,
    /// Bytes of the chunk that did not come yet, or its size so far.
    left: u64,
    digits: u8,
    extensions: usize,
    trailers: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum At {
    Size,
    AfterSize,
    Extension,
    SizeLf,
    Data,
    DataCr,
    DataLf,
    /// Where a trailer may begin.
    Line,
    Trailer,
    TrailerLf,
    LastLf,
    End,
}

impl Body {
    /// What is in the buffer was not looked at yet.
    pub(crate) fn new(framing: Framing) -> Self {
        Body {
            length: 0,
            kind: match framing {
                Framing::Length(length) => Kind::Length(length),
                Framing::Chunked => Kind::Chunked(Chunks {
                    at: At::Size,
                    left: 0,
                    digits: 0,
                    extensions: 0,
                    trailers: 0,
                }),
                Framing::UntilClose => Kind::UntilClose,
            },
        }
    }

    /// Looks at what came; says whether the body is whole. Linear in what came.
    pub(crate) fn read(&mut self, buffer: &mut BytesMut) -> Result<bool, Malformed> {
        match &mut self.kind {
            Kind::Length(all) => {
                let came = buffer.len() as u64;
                self.length = came.min(*all) as usize;
                Ok(came >= *all)
            }
            Kind::Chunked(chunks) => chunks.read(buffer, &mut self.length),
            Kind::UntilClose => {
                self.length = buffer.len();
                Ok(false)
            }
        }
    }

    /// Bytes of the body so far.
    pub(crate) fn len(&self) -> usize {
        self.length
    }
    /// Lets go of those bytes, for bodies that are taken as they come; says how many they are. They lie in the buffer still.
    pub(crate) fn pass(&mut self) -> usize {
        let passed = mem::take(&mut self.length);
        if let Kind::Length(left) = &mut self.kind {
            *left -= passed as u64;
        }
        passed
    }
    /// How many bytes it will have at least, by what it said itself.
    pub(crate) fn announced(&self) -> u64 {
        match &self.kind {
            Kind::Length(length) => *length,
            Kind::Chunked(chunks) if chunks.at == At::Data => {
                chunks.left.saturating_add(self.length as u64)
            }
            _ => self.length as u64,
        }
    }
    /// Whether [`Body::announced`] is all of it.
    pub(crate) fn is_sized(&self) -> bool {
        matches!(self.kind, Kind::Length(_))
    }
    /// Whether it is whole if nothing follows any more.
    pub(crate) fn may_end(&self) -> bool {
        matches!(self.kind, Kind::UntilClose)
    }
    /// The body, and whether nothing came after it.
    pub(crate) fn take(self, buffer: &mut BytesMut) -> (Bytes, bool) {
        let mut whole = mem::take(buffer);
        // What lies behind a chunked body is its own last line, unless that was cut off already.
        let clean = match self.kind {
            Kind::Length(_) => whole.len() == self.length,
            Kind::Chunked(chunks) => chunks.at == At::End && whole.len() == self.length,
            Kind::UntilClose => false,
        };
        whole.truncate(self.length);
        (whole.freeze(), clean)
    }
}

impl Chunks {
    fn read(&mut self, buffer: &mut BytesMut, length: &mut usize) -> Result<bool, Malformed> {
        // What is between `length` and `next` was looked at and is no part of the body.
        let mut next = *length;
        while self.at != At::End && next < buffer.len() {
            if self.at != At::Data {
                self.step(buffer[next])?;
                next += 1;
                continue;
            }
            if *length == 0 {
                // The body begins here.
                buffer.advance(next);
                next = 0;
            }
            let came = (buffer.len() - next) as u64;
            let size = came.min(self.left) as usize;
            if next != *length {
                buffer.copy_within(next..next + size, *length);
            }
            *length += size;
            next += size;
            self.left -= size as u64;
            if self.left == 0 {
                self.at = At::DataCr;
            }
        }
        if next == buffer.len() {
            buffer.truncate(*length);
        }
        Ok(self.at == At::End)
    }

    /// One byte between two chunks, or after the last.
    fn step(&mut self, byte: u8) -> Result<(), Malformed> {
        const SIZE: Malformed = Malformed("the size of a chunk is malformed");
        self.at = match (self.at, byte) {
            (At::Size, digit) if digit.is_ascii_hexdigit() => {
                self.digits += 1;
                if self.digits > DIGITS_MAX {
                    return Err(SIZE);
                }
                let digit = char::from(digit).to_digit(16).unwrap_or(0);
                self.left = self.left << 4 | u64::from(digit);
                At::Size
            }
            (At::Size, _) if self.digits == 0 => return Err(SIZE),
            (At::Size | At::AfterSize | At::Extension, b'\r') => At::SizeLf,
            (At::Size | At::AfterSize, b' ' | b'\t') => self.extension(At::AfterSize)?,
            (At::Size | At::AfterSize, b';') => self.extension(At::Extension)?,
            (At::Extension, b'\n') => return Err(SIZE),
            (At::Extension, _) => self.extension(At::Extension)?,
            (At::Size | At::AfterSize, _) => return Err(SIZE),
            (At::SizeLf, b'\n') => {
                self.digits = 0;
                match self.left {
                    0 => At::Line,
                    _ => At::Data,
                }
            }
            (At::SizeLf, _) => return Err(SIZE),
            (At::DataCr, b'\r') => At::DataLf,
            (At::DataLf, b'\n') => At::Size,
            (At::DataCr | At::DataLf | At::Data, _) => {
                return Err(Malformed("a chunk is longer than its size"));
            }
            (At::Line, b'\r') => At::LastLf,
            (At::Trailer, b'\r') => At::TrailerLf,
            (At::TrailerLf, b'\n') => At::Line,
            (At::LastLf, b'\n') => At::End,
            (At::Line | At::Trailer, byte) if byte != b'\n' => {
                self.trailers += 1;
                if self.trailers > TRAILERS_MAX {
                    return Err(Malformed("its trailers are longer than 16 KiB"));
                }
                At::Trailer
            }
            (At::Line | At::Trailer | At::TrailerLf | At::LastLf, _) => {
                return Err(Malformed("its trailers are malformed"));
            }
            (At::End, _) => At::End,
        };
        Ok(())
    }

    /// One more byte that says nothing.
    fn extension(&mut self, at: At) -> Result<At, Malformed> {
        self.extensions += 1;
        if self.extensions > EXTENSIONS_MAX {
            Err(Malformed("its chunk extensions are longer than 16 KiB"))
        } else {
            Ok(at)
        }
    }
}
