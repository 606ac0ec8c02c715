//! SipHash-2-4 with 128 bits of output (Aumasson and Bernstein, 2012): a keyed hash that is fast for short texts.
//!
//! Without the secret a client cannot choose two texts with equal hashes, so no client can aim a request at an entry of
//! another client. A state can be cloned, so that the representations of one fetch share the hash of the parts before them.

/// The state of a hash.
#[derive(Clone, Debug)]
pub(crate) struct Siphash {
    v: [u64; 4],
    /// The last bytes, which do not fill a word.
    tail: u64,
    /// The number of bytes so far.
    length: usize,
}

impl Siphash {
    pub(crate) fn new(secret: [u8; 16]) -> Self {
        let secret = u128::from_le_bytes(secret);
        let (k0, k1) = (secret as u64, (secret >> 64) as u64);
        Siphash {
            v: [
                k0 ^ 0x736f_6d65_7073_6575,
                k1 ^ 0x646f_7261_6e64_6f6d ^ 0xee,
                k0 ^ 0x6c79_6765_6e65_7261,
                k1 ^ 0x7465_6462_7974_6573,
            ],
            tail: 0,
            length: 0,
        }
    }

    pub(crate) fn write(&mut self, mut bytes: &[u8]) {
        let filled = self.length % 8;
        self.length = self.length.wrapping_add(bytes.len());
        if filled > 0 {
            let taken = bytes.len().min(8 - filled);
            self.tail |= word(&bytes[..taken]) << (8 * filled);
            if filled + taken < 8 {
                return;
            }
            self.compress(self.tail);
            bytes = &bytes[taken..];
        }
        let (words, rest) = bytes.as_chunks::<8>();
        for bytes in words {
            self.compress(u64::from_le_bytes(*bytes));
        }
        self.tail = word(rest);
    }

    pub(crate) fn finish(mut self) -> [u8; 16] {
        let last = self.tail | (self.length as u64) << 56;
        self.compress(last);
        self.v[2] ^= 0xee;
        let first = self.finalize();
        self.v[1] ^= 0xdd;
        let second = self.finalize();
        (u128::from(first) | u128::from(second) << 64).to_le_bytes()
    }

    fn compress(&mut self, word: u64) {
        self.v[3] ^= word;
        self.round();
        self.round();
        self.v[0] ^= word;
    }

    fn finalize(&mut self) -> u64 {
        for _ in 0..4 {
            self.round();
        }
        self.v[0] ^ self.v[1] ^ self.v[2] ^ self.v[3]
    }

    fn round(&mut self) {
        let [a, b, c, d] = &mut self.v;
        *a = a.wrapping_add(*b);
        *b = b.rotate_left(13) ^ *a;
        *a = a.rotate_left(32);
        *c = c.wrapping_add(*d);
        *d = d.rotate_left(16) ^ *c;
        *a = a.wrapping_add(*d);
        *d = d.rotate_left(21) ^ *a;
        *c = c.wrapping_add(*b);
        *b = b.rotate_left(17) ^ *c;
        *c = c.rotate_left(32);
    }
}

/// Up to eight bytes, the first one lowest.
fn word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `openssl mac -macopt hexkey:000102030405060708090a0b0c0d0e0f -macopt size:16 SIPHASH` (OpenSSL 3.0) says of
    /// the bytes 0, 1, 2, ...: as many as stand beside it.
    const OF_OPENSSL: &[(usize, &str)] = &[
        (0, "A3817F04BA25A8E66DF67214C7550293"),
        (1, "DA87C1D86B99AF44347659119B22FC45"),
        (2, "8177228DA4A45DC7FCA38BDEF60AFFE4"),
        (7, "A1F1EBBED8DBC153C0B84AA61FF08239"),
        (8, "3B62A9BA6258F5610F83E264F31497B4"),
        (9, "264499060AD9BAABC47F8B02BB6D71ED"),
        (15, "5493E99933B0A8117E08EC0F97CFC3D9"),
        (16, "6EE2A4CA67B054BBFD3315BF85230577"),
        (17, "473D06E8738DB89854C066C47AE47740"),
        (63, "5150D1772F50834A503E069A973FBD7C"),
        (64, "1EAF077DC0D4CD3F8CAD4D383658A74B"),
        (200, "7C5853F4ED12FF9D836A79BC4047022D"),
    ];

    #[test]
    fn hashes_are_those_of_openssl_however_the_text_is_cut() {
        let secret = std::array::from_fn(|at| at as u8);
        for (length, expected) in OF_OPENSSL {
            let text: Vec<u8> = (0..*length).map(|at| at as u8).collect();
            for cut in 0..=*length {
                let mut hash = Siphash::new(secret);
                hash.write(&text[..cut]);
                hash.write(&text[cut..]);
                let hex: String = hash.finish().iter().map(|b| format!("{b:02X}")).collect();
                assert_eq!(hex, *expected, "{length} bytes, cut at {cut}");
            }
        }
    }
}
