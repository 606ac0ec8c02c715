//! Bytes for plans: variable-length integers, a table of strings, and a sealed header. Used by [`mod@crate::encode`] and
//! [`mod@crate::bundle`].
//!
//! Invariants: a reader never reads past the end, never allocates more than [`DECODED_BYTES_MAX`], and never panics,
//! whatever the bytes are. Equal values give equal bytes on every machine.

use std::fmt;

use ogive_base::FastMap;

/// The version of the format. It grows whenever a plan of an older version would be read wrongly.
pub const FORMAT_VERSION: u16 = 8;

/// Most memory that decoding one file may take, in bytes.
pub const DECODED_BYTES_MAX: usize = 1 << 30;

/// Why bytes are no plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// Not the kind of file that was expected.
    Magic,
    /// A version this build does not read.
    Version(u16),
    /// The bytes are not those that were written.
    Checksum,
    /// The bytes end too early.
    Truncated,
    /// Something is out of range; says what.
    Invalid(&'static str),
    /// The content would take more than [`DECODED_BYTES_MAX`].
    TooLarge,
    /// The plan breaks an invariant; says which.
    Unsound(String),
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DecodeError::Magic => f.write_str("this is no file of plans"),
            DecodeError::Version(version) => write!(
                f,
                "format version {version} is not the version {FORMAT_VERSION} that is read here"
            ),
            DecodeError::Checksum => f.write_str("the content is damaged (its checksum differs)"),
            DecodeError::Truncated => f.write_str("the content ends too early"),
            DecodeError::Invalid(what) => write!(f, "the content is damaged ({what})"),
            DecodeError::TooLarge => {
                write!(
                    f,
                    "the content would take more than {DECODED_BYTES_MAX} bytes"
                )
            }
            DecodeError::Unsound(problem) => write!(f, "a plan is unsound: {problem}"),
        }
    }
}

impl std::error::Error for DecodeError {}

/// A 128-bit hash that is the same in every process and version (FNV-1a): for checksums and for telling whether an
/// operator's own schema changed. Easily collided on purpose, so never an identity for what clients send.
pub fn stable_hash(bytes: &[u8]) -> u128 {
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    bytes.iter().fold(BASIS, |hash, byte| {
        (hash ^ u128::from(*byte)).wrapping_mul(PRIME)
    })
}

/// Writes values; strings go into a table, each once.
#[derive(Debug, Default)]
pub(crate) struct Encoder {
    body: Vec<u8>,
    strings: Vec<Box<str>>,
    index: FastMap<Box<str>, u64>,
}

impl Encoder {
    pub(crate) fn byte(&mut self, byte: u8) {
        self.body.push(byte);
    }
    pub(crate) fn bool(&mut self, value: bool) {
        self.body.push(value.into());
    }
    /// Seven bits a byte, lowest first.
    pub(crate) fn number(&mut self, number: u64) {
        write_number(&mut self.body, number);
    }
    pub(crate) fn hash(&mut self, hash: u128) {
        self.body.extend_from_slice(&hash.to_le_bytes());
    }
    pub(crate) fn string(&mut self, text: &str) {
        let at = self.string_index(text);
        self.number(at);
    }
    pub(crate) fn optional_string(&mut self, text: Option<&str>) {
        let at = text.map_or(0, |text| 1 + self.string_index(text));
        self.number(at);
    }
    /// Raw bytes that are not worth a row of the table.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.body.extend_from_slice(bytes);
    }
    fn string_index(&mut self, text: &str) -> u64 {
        if let Some(at) = self.index.get(text) {
            return *at;
        }
        let at = self.strings.len() as u64;
        self.strings.push(text.into());
        self.index.insert(text.into(), at);
        at
    }
    /// The whole file: magic, version, checksum of the rest, string table, body.
    pub(crate) fn seal(self, magic: [u8; 4]) -> Vec<u8> {
        let mut rest = Vec::with_capacity(self.body.len() * 2);
        write_number(&mut rest, self.strings.len() as u64);
        for text in &self.strings {
            write_number(&mut rest, text.len() as u64);
            rest.extend_from_slice(text.as_bytes());
        }
        rest.extend_from_slice(&self.body);
        let mut out = magic.to_vec();
        out.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
        out.extend_from_slice(&stable_hash(&rest).to_le_bytes());
        out.extend_from_slice(&rest);
        out
    }
}

fn write_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Reads what an [`Encoder`] wrote.
#[derive(Debug)]
pub(crate) struct Decoder<'a> {
    rest: &'a [u8],
    strings: Vec<&'a str>,
    budget: usize,
}

type Result<T> = std::result::Result<T, DecodeError>;

impl<'a> Decoder<'a> {
    /// Checks the header and reads the string table.
    pub(crate) fn open(bytes: &'a [u8], magic: [u8; 4]) -> Result<Self> {
        let mut decoder = Decoder {
            rest: bytes,
            strings: Vec::new(),
            budget: DECODED_BYTES_MAX,
        };
        if decoder.take(4) != Ok(&magic[..]) {
            return Err(DecodeError::Magic);
        }
        let version = u16::from_le_bytes(decoder.array()?);
        if version != FORMAT_VERSION {
            return Err(DecodeError::Version(version));
        }
        let checksum = u128::from_le_bytes(decoder.array()?);
        if stable_hash(decoder.rest) != checksum {
            return Err(DecodeError::Checksum);
        }
        let n = decoder.length()?;
        for _ in 0..n {
            let n = decoder.length()?;
            let text = std::str::from_utf8(decoder.take(n)?);
            let text = text.map_err(|_| DecodeError::Invalid("a string is not UTF-8"))?;
            decoder.spend(size_of::<&str>())?;
            decoder.strings.push(text);
        }
        Ok(decoder)
    }
    /// Nothing may be left.
    pub(crate) fn finish(self) -> Result<()> {
        match self.rest {
            [] => Ok(()),
            _ => Err(DecodeError::Invalid("there is more than a plan")),
        }
    }

    fn take(&mut self, n: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self
            .rest
            .split_at_checked(n)
            .ok_or(DecodeError::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }
    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let taken = self.take(N)?;
        taken.try_into().map_err(|_| DecodeError::Truncated)
    }
    /// Accounts for memory before it is taken.
    pub(crate) fn spend(&mut self, bytes: usize) -> Result<()> {
        self.budget = self
            .budget
            .checked_sub(bytes)
            .ok_or(DecodeError::TooLarge)?;
        Ok(())
    }

    pub(crate) fn byte(&mut self) -> Result<u8> {
        Ok(self.array::<1>()?[0])
    }
    pub(crate) fn bool(&mut self) -> Result<bool> {
        match self.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(DecodeError::Invalid("a boolean")),
        }
    }
    pub(crate) fn number(&mut self) -> Result<u64> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(DecodeError::Invalid("a number"))
    }
    pub(crate) fn u32(&mut self) -> Result<u32> {
        u32::try_from(self.number()?).map_err(|_| DecodeError::Invalid("a number is too large"))
    }
    pub(crate) fn u16(&mut self) -> Result<u16> {
        u16::try_from(self.number()?).map_err(|_| DecodeError::Invalid("a number is too large"))
    }
    /// A number of things that take a byte at least each.
    pub(crate) fn length(&mut self) -> Result<usize> {
        let n = usize::try_from(self.number()?).map_err(|_| DecodeError::Truncated)?;
        if n > self.rest.len() {
            return Err(DecodeError::Truncated);
        }
        Ok(n)
    }
    /// A list, in memory that is accounted for.
    pub(crate) fn list<T>(
        &mut self,
        mut one: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<Vec<T>> {
        let n = self.length()?;
        self.spend(n.saturating_mul(size_of::<T>()))?;
        let mut out = Vec::with_capacity(n);
        for _ in 0..n {
            out.push(one(self)?);
        }
        Ok(out)
    }
    pub(crate) fn hash(&mut self) -> Result<u128> {
        Ok(u128::from_le_bytes(self.array()?))
    }
    pub(crate) fn bytes(&mut self) -> Result<Box<[u8]>> {
        let n = self.length()?;
        self.spend(n)?;
        Ok(self.take(n)?.into())
    }
    pub(crate) fn string(&mut self) -> Result<Box<str>> {
        let at = self.number()?;
        self.text(at)
    }
    pub(crate) fn optional_string(&mut self) -> Result<Option<Box<str>>> {
        match self.number()? {
            0 => Ok(None),
            at => Ok(Some(self.text(at - 1)?)),
        }
    }
    fn text(&mut self, at: u64) -> Result<Box<str>> {
        let text = usize::try_from(at).ok().and_then(|at| self.strings.get(at));
        let text = *text.ok_or(DecodeError::Invalid("no such string"))?;
        self.spend(text.len())?;
        Ok(text.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_length_come_back() {
        let mut encoder = Encoder::default();
        let numbers: Vec<u64> = (0..64)
            .flat_map(|bit| [1u64 << bit, (1u64 << bit) - 1])
            .chain([u64::MAX])
            .collect();
        for number in &numbers {
            encoder.number(*number);
        }
        let bytes = encoder.seal(*b"TEST");
        let mut decoder = Decoder::open(&bytes, *b"TEST").unwrap();
        for number in &numbers {
            assert_eq!(decoder.number(), Ok(*number));
        }
        assert_eq!(decoder.finish(), Ok(()));
    }

    #[test]
    fn numbers_that_are_too_long_are_refused() {
        let mut encoder = Encoder::default();
        for _ in 0..9 {
            encoder.byte(0xff);
        }
        encoder.byte(2);
        let bytes = encoder.seal(*b"TEST");
        let mut decoder = Decoder::open(&bytes, *b"TEST").unwrap();
        assert_eq!(decoder.number(), Err(DecodeError::Invalid("a number")));
    }

    #[test]
    fn the_hash_is_the_published_one() {
        assert_eq!(stable_hash(b""), 0x6c62272e07bb014262b821756295c58d);
        assert_eq!(stable_hash(b"a"), 0xd228cb696f1a8caf78912b704e4a8964);
    }

    #[test]
    fn memory_is_bounded() {
        // One long string, named over and over.
        let mut encoder = Encoder::default();
        let long = "x".repeat(1 << 12);
        for _ in 0..2_000 {
            encoder.string(&long);
        }
        let bytes = encoder.seal(*b"TEST");
        let mut decoder = Decoder::open(&bytes, *b"TEST").unwrap();
        decoder.budget = 1 << 20;
        let last = (0..2_000).map(|_| decoder.string()).find(Result::is_err);
        assert_eq!(last, Some(Err(DecodeError::TooLarge)));
    }
}
