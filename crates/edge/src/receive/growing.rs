//! A body of which more is to come, counted with the room that is kept for it, in the memory of all and in what one client
//! may have of that.
//!
//! It is kept in pieces. A buffer that doubles has up to twice the room of what came, and a client that sends no more keeps
//! it so.

use std::sync::Arc;

use bytes::Bytes;
use ogive_base::{Client, OutOfMemory, Reservation, ShareLimits};

use crate::{
    client_shares::{ClientShare, ClientShares},
    proxies::Proxies,
};

/// Where bytes are counted that arrive.
#[derive(Clone, Copy, Debug)]
pub struct Arriving<'a> {
    /// With all else of the request.
    pub memory: &'a Reservation,
    /// As those of their client; `None` if it is not known which is which.
    pub client: Option<ClientBytes<'a>>,
}

/// What one client may have arriving.
#[derive(Clone, Copy, Debug)]
pub struct ClientBytes<'a> {
    /// What all clients have arriving.
    pub all: &'a Arc<ClientShares>,
    /// Whose bytes they are.
    pub client: Client,
    /// Tell which clients are many.
    pub proxies: &'a Proxies,
    /// Most bytes.
    pub most: usize,
}

impl<'a> Arriving<'a> {
    /// Counted in the memory of the request only.
    pub fn of(memory: &'a Reservation) -> Self {
        Arriving {
            memory,
            client: None,
        }
    }
    /// Counts nothing of the client's yet.
    fn share(self) -> Option<ArrivingShare> {
        self.client.and_then(ArrivingShare::of)
    }
}

/// What one body of a client, or one message, has of what the client may have.
#[derive(Debug)]
pub(crate) struct ArrivingShare {
    share: ClientShare,
    limits: ShareLimits,
}

impl ArrivingShare {
    /// Nothing yet; `None` if nobody can tell whose it is.
    pub(crate) fn of(bytes: ClientBytes<'_>) -> Option<Self> {
        let client = bytes.proxies.counted(bytes.client)?;
        Some(ArrivingShare {
            share: ClientShare::of(bytes.all, Some(client)),
            limits: ShareLimits {
                all: usize::MAX,
                each: bytes.most,
            },
        })
    }
    /// Counts so many bytes more, if the client may have them.
    pub(crate) fn grow(&mut self, bytes: usize) -> Result<(), OutOfMemory> {
        self.share.grow(bytes, self.limits).map_err(|_| OutOfMemory)
    }
}

/// What waits for the rest of a body holds beside it, in bytes: the request, and the buffer of its connection's parser.
const WAITING: usize = 32 << 10;
/// What of that is not counted with every request.
const PARSER: usize = 8 << 10;

/// A request waits for the rest of its body. Dropped, it counts no longer.
pub(crate) struct Waiting<'m> {
    memory: &'m Reservation,
    _client: Option<ArrivingShare>,
}

impl<'m> Waiting<'m> {
    /// Waits, if there is memory for it.
    pub(crate) fn begin(arriving: Arriving<'m>) -> Result<Self, OutOfMemory> {
        let mut client = arriving.share();
        if let Some(client) = &mut client {
            client.grow(WAITING)?;
        }
        arriving.memory.grow(PARSER)?;
        Ok(Waiting {
            memory: arriving.memory,
            _client: client,
        })
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.memory.shrink(PARSER);
    }
}

/// Room of the first piece and of the largest ones, in bytes; each of those between has twice as much as the one before.
const FIRST: usize = 4 << 10;
const LARGEST: usize = 16 << 10;

/// A body of which more is to come. Dropped, it counts no longer.
pub struct GrowingBody<'m> {
    memory: &'m Reservation,
    client: Option<ArrivingShare>,
    pieces: Vec<Vec<u8>>,
    length: usize,
    /// Bytes that count for it: the room of all pieces.
    counted: usize,
}

impl<'m> GrowingBody<'m> {
    /// Empty.
    pub fn new(arriving: Arriving<'m>) -> Self {
        GrowingBody {
            memory: arriving.memory,
            client: arriving.share(),
            pieces: Vec::new(),
            length: 0,
            counted: 0,
        }
    }
    /// Number of bytes that have arrived.
    pub fn bytes_received(&self) -> usize {
        self.length
    }
    /// Appends bytes, if there is memory for them.
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<(), OutOfMemory> {
        self.length += bytes.len();
        while !bytes.is_empty() {
            let last = self.pieces.last();
            let free = last.map_or(0, |last| last.capacity() - last.len());
            if free == 0 {
                let room = last.map_or(0, Vec::capacity);
                let room = (2 * room).clamp(FIRST, LARGEST);
                if let Some(client) = &mut self.client {
                    client.grow(room)?;
                }
                self.memory.grow(room)?;
                self.counted += room;
                self.pieces.push(Vec::with_capacity(room));
            }
            if let Some(last) = self.pieces.last_mut() {
                let free = last.capacity() - last.len();
                let (fits, rest) = bytes.split_at(free.min(bytes.len()));
                last.extend_from_slice(fits);
                bytes = rest;
            }
        }
        Ok(())
    }
    /// All that came, in one piece. What it holds then stays counted.
    pub fn whole(mut self) -> Bytes {
        let mut whole = Vec::with_capacity(self.length);
        for piece in std::mem::take(&mut self.pieces) {
            whole.extend_from_slice(&piece);
        }
        self.counted -= self.length;
        whole.into()
    }
}

impl Drop for GrowingBody<'_> {
    fn drop(&mut self) {
        self.memory.shrink(self.counted);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ogive_base::MemoryBudget;

    use super::*;

    /// A client that stops in the middle holds no more than is counted, and hardly more than it has sent.
    #[test]
    fn the_room_of_what_came_is_counted_and_is_not_doubled() {
        let memory = Reservation::new(&Arc::new(MemoryBudget::default()));
        let mut body = GrowingBody::new(Arriving::of(&memory));
        let mut sent = Vec::new();
        for nth in 0..300_u32 {
            let piece = vec![nth as u8; 1 + (nth as usize * 37) % 9_000];
            body.push(&piece).unwrap();
            sent.extend_from_slice(&piece);
            let room: usize = body.pieces.iter().map(Vec::capacity).sum();
            assert_eq!(memory.used(), room);
            assert!(room < sent.len() + LARGEST, "{room} for {}", sent.len());
            assert_eq!(body.bytes_received(), sent.len());
        }
        assert!(body.whole() == sent);
        assert_eq!(memory.used(), sent.len());
    }

    #[test]
    fn one_client_leaves_memory_for_others() {
        let (all, proxies) = (Arc::default(), Proxies::default());
        let memory = Reservation::new(&Arc::new(MemoryBudget::default()));
        let arriving = |client: [u8; 4]| Arriving {
            memory: &memory,
            client: Some(ClientBytes {
                all: &all,
                client: Client::At(client.into()),
                proxies: &proxies,
                most: 100 << 10,
            }),
        };
        let waiting = Waiting::begin(arriving([10, 0, 0, 1])).unwrap();
        let mut body = GrowingBody::new(arriving([10, 0, 0, 1]));
        body.push(&[b'x'; 60 << 10]).unwrap();
        assert_eq!(body.push(&[b'x'; 30 << 10]), Err(OutOfMemory));
        assert!(Waiting::begin(arriving([10, 0, 0, 1])).is_err());
        let mut other = GrowingBody::new(arriving([10, 0, 0, 2]));
        other.push(&[b'x'; 60 << 10]).unwrap();
        drop((waiting, body, other));
        assert_eq!((all.taken(), memory.used()), (0, 0));
    }

    #[test]
    fn what_finds_no_memory_or_is_dropped_counts_no_longer() {
        let memory = Reservation::new(&Arc::new(MemoryBudget::new(1 << 20)));
        let mut body = GrowingBody::new(Arriving::of(&memory));
        let piece = [b'x'; 100 << 10];
        while body.push(&piece).is_ok() {}
        assert!(memory.used() > 700 << 10 && memory.used() <= 768 << 10);
        drop(body);
        assert_eq!(memory.used(), 0);
    }
}
