//! Where the requests of an HTTP/1.1 connection begin and end, and whether a head has two lengths.
//!
//! The parser shows either `content-length` or `transfer-encoding` of a request that has both. Requests may come one behind
//! the other while the first of them is answered, so a head can be anywhere in what is read. So all of it is followed: heads
//! line by line, bodies by their length, which is jumped over. Nothing is checked here: whatever the parser refuses ends the
//! connection, and where it ends up then does not matter.

/// How far a connection was looked through.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Framing {
    at: At,
    /// Of the head that is looked through.
    length: Option<u64>,
    is_chunked: bool,
    /// Heads that are over.
    over: u32,
    /// Heads that were asked about.
    asked: u32,
    /// The last head has two lengths, and nobody looks at what follows it.
    has_both: bool,
    /// Bytes of a head that is not over, about: not fewer.
    unfinished: usize,
    /// Bytes of the largest head, in the same way.
    largest: usize,
}

/// Where the next byte stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum At {
    /// Before a head, where empty lines may stand.
    Before,
    /// At the beginning of a line of a head.
    Line,
    /// Within the name of a field, of which so many bytes are those of this one.
    Name(Field, usize),
    /// Within the value of `content-length`.
    Length,
    /// In the rest of a line.
    Rest,
    /// In a body, of which so many bytes are left.
    Body(u64),
    /// In the size of a chunk.
    Size(u64),
    /// Behind it, in the same line.
    SizeRest(u64),
    /// In a chunk, of which so many bytes are left, its end of line included.
    Chunk(u64),
    /// At the beginning of a line of trailers.
    Trailers,
    /// In the rest of such a line.
    Trailer,
    /// At the second byte of its end.
    TrailerEnd,
    /// At the last byte of a request with chunks.
    LastEnd,
    /// Nobody looks.
    Nowhere,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Field {
    Length,
    Encoding,
}

impl Field {
    /// The one whose name begins so.
    fn of(byte: u8) -> Option<Field> {
        match byte {
            b'c' | b'C' => Some(Field::Length),
            b't' | b'T' => Some(Field::Encoding),
            _ => None,
        }
    }
    fn name(self) -> &'static [u8] {
        match self {
            Field::Length => b"content-length:",
            Field::Encoding => b"transfer-encoding:",
        }
    }
}

impl Framing {
    /// At the beginning of a connection.
    pub(crate) fn begin() -> Self {
        Framing {
            at: At::Before,
            length: None,
            is_chunked: false,
            over: 0,
            asked: 0,
            has_both: false,
            unfinished: 0,
            largest: 0,
        }
    }
    /// Where it is not followed.
    pub(crate) fn off() -> Self {
        Framing {
            at: At::Nowhere,
            ..Framing::begin()
        }
    }
    /// Whether the next head has both lengths; to be asked once for each, in their order.
    pub(crate) fn next_has_both(&mut self) -> bool {
        self.asked = self.asked.wrapping_add(1);
        self.has_both && self.asked == self.over
    }

    /// Bytes that are kept of a head that is not over, about: not fewer.
    pub(crate) fn unfinished(&self) -> usize {
        self.unfinished
    }
    /// No head was larger.
    pub(crate) fn largest(&self) -> usize {
        self.largest
    }
    /// Follows what comes next.
    pub(crate) fn read(&mut self, bytes: &[u8]) {
        let (at, over) = (self.at, self.over);
        self.follow(bytes);
        let bytes = self.unfinished + bytes.len();
        if self.over != over {
            self.largest = self.largest.max(bytes);
        }
        self.unfinished = match self.at {
            At::Line | At::Name(..) | At::Length | At::Rest => bytes,
            // Empty lines are kept until a head comes.
            At::Before if at == At::Before && self.over == over => bytes,
            _ => 0,
        };
    }
    fn follow(&mut self, mut rest: &[u8]) {
        while let Some((byte, more)) = rest.split_first() {
            (self.at, rest) = match self.at {
                At::Nowhere => return,
                At::Before if matches!(byte, b'\r' | b'\n') => (At::Before, more),
                // No field: whatever the line of a request begins with.
                At::Before => (At::Rest, more),
                At::Line => match (byte, Field::of(*byte)) {
                    (b'\n', _) => (self.end_head(), more),
                    (b'\r', _) => (At::Line, more),
                    (_, Some(field)) => (At::Name(field, 1), more),
                    _ => (At::Rest, more),
                },
                At::Name(field, at) => match field.name().get(at) {
                    Some(expected) if byte.eq_ignore_ascii_case(expected) => {
                        (At::Name(field, at + 1), more)
                    }
                    // The byte may be the end of the line.
                    Some(_) => (At::Rest, rest),
                    None => (self.begin_value(field), rest),
                },
                At::Length => (self.value(*byte), more),
                At::Rest => after(b'\n', rest, At::Line, At::Rest),
                At::Body(left) => jump(left, rest, At::Body, At::Before),
                At::Size(size) => match char::from(*byte).to_digit(16) {
                    Some(digit) => {
                        let size = size.saturating_mul(16).saturating_add(digit.into());
                        (At::Size(size), more)
                    }
                    None => (At::SizeRest(size), rest),
                },
                At::SizeRest(0) => after(b'\n', rest, At::Trailers, At::SizeRest(0)),
                At::SizeRest(size) => {
                    let chunk = At::Chunk(size.saturating_add(2));
                    after(b'\n', rest, chunk, At::SizeRest(size))
                }
                At::Chunk(left) => jump(left, rest, At::Chunk, At::Size(0)),
                At::Trailers if *byte == b'\r' => (At::LastEnd, more),
                At::Trailers | At::Trailer => after(b'\r', rest, At::TrailerEnd, At::Trailer),
                // Only both bytes end a line there; anything else is refused.
                At::TrailerEnd => (At::Trailers, more),
                At::LastEnd => (At::Before, more),
            };
        }
    }
    fn begin_value(&mut self, field: Field) -> At {
        match field {
            Field::Length => {
                self.length = Some(0);
                At::Length
            }
            Field::Encoding => {
                self.is_chunked = true;
                At::Rest
            }
        }
    }
    fn value(&mut self, byte: u8) -> At {
        match byte {
            b'\n' => return At::Line,
            b'0'..=b'9' => {
                let length = self.length.unwrap_or(0).saturating_mul(10);
                self.length = Some(length.saturating_add((byte - b'0').into()));
            }
            _ => {}
        }
        At::Length
    }
    fn end_head(&mut self) -> At {
        let (length, is_chunked) = (self.length.take(), std::mem::take(&mut self.is_chunked));
        self.over = self.over.wrapping_add(1);
        match (length, is_chunked) {
            (Some(_), true) => {
                self.has_both = true;
                At::Nowhere
            }
            (_, true) => At::Size(0),
            (None | Some(0), false) => At::Before,
            (Some(length), false) => At::Body(length),
        }
    }
}

/// Goes to what is behind the next `end`, or on.
fn after(end: u8, rest: &[u8], found: At, none: At) -> (At, &[u8]) {
    match memchr::memchr(end, rest) {
        Some(at) => (found, &rest[at + 1..]),
        None => (none, &[]),
    }
}

/// Jumps over so many bytes.
fn jump(left: u64, rest: &[u8], within: fn(u64) -> At, behind: At) -> (At, &[u8]) {
    match usize::try_from(left) {
        Ok(left) if left <= rest.len() => (behind, &rest[left..]),
        _ => (within(left - rest.len() as u64), &[]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GET: &str = "GET /?a=content-length: HTTP/1.1\r\nhost: a\r\n\r\n";
    const POST: &str =
        "POST / HTTP/1.1\r\ncontent-length:  7 \r\ncontent-type: a\r\n\r\n\r\n\r\n\r\nx";
    /// With a body that looks like a head, small and capital digits, an extension and trailers.
    const CHUNKED: &str = "POST / HTTP/1.1\nTransfer-Encoding: chunked\nx: content-length: 4\n\n\
        1E;a=b\r\nGET / HTTP/1.1\r\nhost: a\r\n\r\n \r\n0a \r\n0123456789\r\n\
        0\r\ncontent-length: 4\r\nx:\ny\r\n\r\n";
    const BARE: &str = "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n";
    const BOTH: [&str; 3] = [
        "POST / HTTP/1.1\r\ncontent-LENGTH: 4\r\nTransfer-encoding: chunked\r\n\r\n",
        "POST / HTTP/1.1\ntransfer-encoding:chunked\ncontent-length:4\n\n",
        "\r\n\nPOST / HTTP/1.1\r\ntransfer-encoding: chunked\r\ncontent-\r\nx: y\r\ncontent-length: 0\r\n\r\n",
    ];

    /// The number of the first head that has both.
    fn found(pieces: &[&[u8]]) -> Option<usize> {
        let mut framing = Framing::begin();
        pieces.iter().for_each(|piece| framing.read(piece));
        (0..10).find(|_| framing.next_has_both())
    }

    #[test]
    fn a_head_with_two_lengths_is_found_wherever_it_stands_and_is_cut() {
        let before: [&[&str]; 7] = [
            &[],
            &[GET],
            &[POST],
            &[CHUNKED],
            &[BARE, BARE],
            &[GET, POST, GET],
            &[CHUNKED, POST, CHUNKED],
        ];
        for before in before {
            for both in BOTH {
                let text = before.concat() + both + BOTH[0];
                let text = text.as_bytes();
                assert_eq!(found(&[text]), Some(before.len()), "{before:?} {both:?}");
                for cut in 0..text.len() {
                    let (one, other) = text.split_at(cut);
                    let found = found(&[one, other]);
                    assert_eq!(found, Some(before.len()), "{before:?} {both:?} at {cut}");
                }
                let bytes: Vec<&[u8]> = text.chunks(1).collect();
                assert_eq!(found(&bytes), Some(before.len()), "{before:?} {both:?}");
            }
            assert_eq!(found(&[before.concat().as_bytes()]), None, "{before:?}");
        }
    }

    #[test]
    fn what_is_kept_of_heads_is_known() {
        let mut framing = Framing::begin();
        framing.read(b"\r\n\r\n");
        framing.read(&POST.as_bytes()[..20]);
        assert_eq!(framing.unfinished(), 24);
        framing.read(&POST.as_bytes()[20..]);
        assert_eq!(framing.unfinished(), 0, "the head is over");
        assert!(framing.largest() >= POST.len());
        framing.read(&[b'x'; 100]);
        assert_eq!(framing.unfinished(), 100);
    }

    #[test]
    fn a_head_that_is_not_over_has_nothing_yet_and_lengths_beyond_all_numbers_end_nowhere() {
        let (head, _) = BOTH[0].split_at(BOTH[0].len() - 1);
        assert_eq!(found(&[head.as_bytes()]), None);
        let length = "9".repeat(40);
        let endless = format!(
            "POST / HTTP/1.1\r\ncontent-length: {length}\r\n\r\n{}",
            BOTH[0]
        );
        assert_eq!(found(&[endless.as_bytes()]), None);
        let endless = BARE.replace('0', &"f".repeat(40)) + BOTH[0];
        assert_eq!(found(&[endless.as_bytes()]), None);
    }
}
