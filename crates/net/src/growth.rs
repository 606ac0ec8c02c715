//! How the buffer of an answer grows whose length is not known.
//!
//! A buffer that doubles holds its bytes twice while it moves, and ends up to twice as large as what it holds: an answer
//! that is refused at its limit would have cost three times the limit. So a small buffer doubles, and one that proves large
//! gets room for all that may come, at once. Pages of that room to which nothing is written take no memory.

/// Buffers up to so many bytes double.
const SMALL: usize = 128 << 10;
/// The next size, and the length at which it is too small: then comes the last one.
const MIDDLE: (usize, usize) = (2 << 20, 1 << 20);
/// Most room that is asked for at once beyond what is needed: a limit may be far larger than memory.
const ROOM_MAX: usize = 1 << 30;

/// How much room to reserve behind `length` bytes for `more`; altogether there will be no more than `most`, but for what is
/// needed now.
pub fn room(length: usize, more: usize, most: usize) -> usize {
    let whole = match length {
        0..SMALL => 0,
        _ if length < MIDDLE.1 => MIDDLE.0.min(most),
        _ => most.min(ROOM_MAX),
    };
    more.max(whole.saturating_sub(length))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Most bytes that a buffer of the limit takes altogether while it moves for the last time, and its last size.
    fn filled(limit: usize, piece: usize) -> (usize, usize) {
        let mut buffer: Vec<u8> = Vec::new();
        let mut most = 0;
        while buffer.len() < limit {
            let before = buffer.capacity();
            if buffer.capacity() - buffer.len() < piece {
                buffer.reserve(room(buffer.len(), piece, limit + piece));
            }
            // What was copied is there twice; what nothing was written to is not there.
            if buffer.capacity() != before {
                most = most.max(2 * buffer.len());
            }
            buffer.resize(buffer.len() + piece, 1);
        }
        (most, buffer.capacity())
    }

    #[test]
    fn an_answer_that_is_refused_took_no_more_than_its_limit() {
        for limit in [8 << 20, 64 << 20] {
            for piece in [8 << 10, 256 << 10] {
                let (moved, capacity) = filled(limit, piece);
                assert!(moved <= 4 << 20, "{moved} bytes while it moved");
                assert!(capacity <= limit + 2 * piece, "{capacity} of {limit}");
            }
        }
    }

    #[test]
    fn small_answers_take_little() {
        assert_eq!(room(0, 8 << 10, 64 << 20), 8 << 10);
        assert_eq!(room(SMALL, 8 << 10, 64 << 20), MIDDLE.0 - SMALL);
        assert_eq!(room(SMALL, 8 << 10, 200 << 10), (200 << 10) - SMALL);
        assert_eq!(room(usize::MAX - 1, 1, usize::MAX), 1);
    }
}
