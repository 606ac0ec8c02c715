//! The algorithms that a token may be signed with (RFC 7518, section 3.1; RFC 8037; RFC 9864), and which of them a key of
//! some type is good for. There is no `none`.

use ring::{digest, hmac};

/// How a token is signed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u16)]
pub enum Algorithm {
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    Rs256 = 1,
    /// RSASSA-PKCS1-v1_5 with SHA-384.
    Rs384 = 1 << 1,
    /// RSASSA-PKCS1-v1_5 with SHA-512.
    Rs512 = 1 << 2,
    /// RSASSA-PSS with SHA-256.
    Ps256 = 1 << 3,
    /// RSASSA-PSS with SHA-384.
    Ps384 = 1 << 4,
    /// RSASSA-PSS with SHA-512.
    Ps512 = 1 << 5,
    /// ECDSA with P-256 and SHA-256.
    Es256 = 1 << 6,
    /// ECDSA with P-384 and SHA-384.
    Es384 = 1 << 7,
    /// Ed25519.
    EdDsa = 1 << 8,
    /// HMAC with SHA-256.
    Hs256 = 1 << 9,
    /// HMAC with SHA-384.
    Hs384 = 1 << 10,
    /// HMAC with SHA-512.
    Hs512 = 1 << 11,
}

use Algorithm as A;

impl Algorithm {
    /// All of them.
    pub const ALL: [Algorithm; 12] = [
        A::Rs256,
        A::Rs384,
        A::Rs512,
        A::Ps256,
        A::Ps384,
        A::Ps512,
        A::Es256,
        A::Es384,
        A::EdDsa,
        A::Hs256,
        A::Hs384,
        A::Hs512,
    ];
    /// By its name. `EdDSA` is read as Ed25519, the only one of its curves that is known here.
    pub fn parse(name: &str) -> Option<Self> {
        if name == "Ed25519" {
            return Some(A::EdDsa);
        }
        A::ALL
            .into_iter()
            .find(|algorithm| algorithm.name() == name)
    }
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            A::Rs256 => "RS256",
            A::Rs384 => "RS384",
            A::Rs512 => "RS512",
            A::Ps256 => "PS256",
            A::Ps384 => "PS384",
            A::Ps512 => "PS512",
            A::Es256 => "ES256",
            A::Es384 => "ES384",
            A::EdDsa => "EdDSA",
            A::Hs256 => "HS256",
            A::Hs384 => "HS384",
            A::Hs512 => "HS512",
        }
    }
    /// The HMAC of a symmetric one.
    pub(crate) fn hmac(self) -> Option<hmac::Algorithm> {
        match self {
            A::Hs256 => Some(hmac::HMAC_SHA256),
            A::Hs384 => Some(hmac::HMAC_SHA384),
            A::Hs512 => Some(hmac::HMAC_SHA512),
            _ => None,
        }
    }
    /// Shortest secret, in bytes: as long as the hash (RFC 7518, section 3.2).
    pub(crate) fn secret_bytes_min(self) -> Option<usize> {
        match self {
            A::Hs256 => Some(digest::SHA256_OUTPUT_LEN),
            A::Hs384 => Some(digest::SHA384_OUTPUT_LEN),
            A::Hs512 => Some(digest::SHA512_OUTPUT_LEN),
            _ => None,
        }
    }
}

/// Some algorithms.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct AlgorithmSet(u16);

impl AlgorithmSet {
    /// What RSA keys are good for.
    pub const RSA: AlgorithmSet =
        AlgorithmSet::of(&[A::Rs256, A::Rs384, A::Rs512, A::Ps256, A::Ps384, A::Ps512]);
    /// What secrets are good for.
    pub const SECRET: AlgorithmSet = AlgorithmSet::of(&[A::Hs256, A::Hs384, A::Hs512]);
    /// What public keys are good for: everything but what secrets are.
    pub const PUBLIC: AlgorithmSet =
        AlgorithmSet(AlgorithmSet::RSA.0 | AlgorithmSet::of(&[A::Es256, A::Es384, A::EdDsa]).0);
    /// All of them.
    pub const EVERY: AlgorithmSet = AlgorithmSet(AlgorithmSet::PUBLIC.0 | AlgorithmSet::SECRET.0);

    /// These.
    pub const fn of(algorithms: &[Algorithm]) -> Self {
        let (mut bits, mut at) = (0, 0);
        while at < algorithms.len() {
            bits |= algorithms[at] as u16;
            at += 1;
        }
        AlgorithmSet(bits)
    }
    /// Whether one is among them.
    pub const fn has(self, algorithm: Algorithm) -> bool {
        self.0 & algorithm as u16 != 0
    }
    /// What both have.
    #[must_use]
    pub const fn and(self, other: AlgorithmSet) -> Self {
        AlgorithmSet(self.0 & other.0)
    }
    /// Whether there is none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
    /// One by one.
    pub fn iter(self) -> impl Iterator<Item = Algorithm> {
        A::ALL.into_iter().filter(move |one| self.has(*one))
    }
}

impl std::fmt::Debug for AlgorithmSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list()
            .entries(self.iter().map(Algorithm::name))
            .finish()
    }
}
