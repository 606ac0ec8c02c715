//! Keys that prove tokens (RFC 7517, RFC 7518 section 6, RFC 8037), and sets of them.
//!
//! What a key is good for follows from its type, and is narrowed by what the key says of itself (`alg`) and by the
//! configuration. A key that cannot be used is left out and told, so that one new kind of key does not take the others away.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use ogive_files::Pipes;
use ring::{
    hmac,
    signature::{
        ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
        RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256,
        RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaPublicKeyComponents,
        UnparsedPublicKey,
    },
};
use serde_json::{Map, Value};

use crate::{
    algorithm::{Algorithm, AlgorithmSet},
    base64url, json,
    key_fetch::ANSWER_BYTES_MAX,
};

/// Smallest and largest modulus of an RSA key, in bits.
const RSA_BITS: std::ops::RangeInclusive<usize> = 2048..=8192;
/// Most keys of a set.
pub const KEYS_MAX: usize = 200;

/// What proves a signature.
#[derive(PartialEq, Eq)]
enum Material {
    Rsa { n: Box<[u8]>, e: Box<[u8]> },
    P256(Box<[u8]>),
    P384(Box<[u8]>),
    Ed25519(Box<[u8]>),
    Secret(Box<[u8]>),
}

impl Material {
    /// What a key of this type is good for at all.
    fn algorithms(&self) -> AlgorithmSet {
        match self {
            Material::Rsa { .. } => AlgorithmSet::RSA,
            Material::P256(_) => AlgorithmSet::of(&[Algorithm::Es256]),
            Material::P384(_) => AlgorithmSet::of(&[Algorithm::Es384]),
            Material::Ed25519(_) => AlgorithmSet::of(&[Algorithm::EdDsa]),
            Material::Secret(secret) => {
                let long_enough = |algorithm: &Algorithm| {
                    let least = algorithm.secret_bytes_min();
                    least.is_some_and(|least| secret.len() >= least)
                };
                let all: Vec<Algorithm> = AlgorithmSet::SECRET.iter().collect();
                let good: Vec<Algorithm> = all.into_iter().filter(long_enough).collect();
                AlgorithmSet::of(&good)
            }
        }
    }
}

/// One key.
pub struct Key {
    kid: Option<Box<str>>,
    allowed: AlgorithmSet,
    material: Material,
    /// The second since 1970 from which on it proves nothing; 0 as long as its set has it.
    gone_from: AtomicU64,
}

/// Never shows what it is made of.
impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Key")
            .field("kid", &self.kid)
            .field("allowed", &self.allowed)
            .finish_non_exhaustive()
    }
}

impl Key {
    /// Its name.
    pub fn kid(&self) -> Option<&str> {
        self.kid.as_deref()
    }
    /// What it is good for.
    pub fn allowed(&self) -> AlgorithmSet {
        self.allowed
    }
    /// Whether it still proves anything, at a time in seconds since 1970.
    pub fn is_good(&self, now: u64) -> bool {
        let from = self.gone_from.load(Ordering::Relaxed);
        from == 0 || now < from
    }
    fn is_same(&self, other: &Key) -> bool {
        self.kid == other.kid && self.allowed == other.allowed && self.material == other.material
    }
    /// Whether whatever this proves the other proves, too.
    pub(crate) fn is_made_like(&self, other: &Key) -> bool {
        self.material == other.material
    }
    /// Whether checking a signature takes so long that a worker should not do it.
    pub fn is_slow(&self) -> bool {
        !matches!(self.material, Material::Secret(_))
    }

    /// Whether a signature is good. Never, if the algorithm is not one that the key is for.
    pub fn verifies(&self, algorithm: Algorithm, signed: &[u8], signature: &[u8]) -> bool {
        if !self.allowed.has(algorithm) {
            return false;
        }
        use Algorithm as A;
        match (&self.material, algorithm) {
            (Material::Rsa { n, e }, _) => {
                let parameters = match algorithm {
                    A::Rs256 => &RSA_PKCS1_2048_8192_SHA256,
                    A::Rs384 => &RSA_PKCS1_2048_8192_SHA384,
                    A::Rs512 => &RSA_PKCS1_2048_8192_SHA512,
                    A::Ps256 => &RSA_PSS_2048_8192_SHA256,
                    A::Ps384 => &RSA_PSS_2048_8192_SHA384,
                    A::Ps512 => &RSA_PSS_2048_8192_SHA512,
                    _ => return false,
                };
                let key = RsaPublicKeyComponents { n, e };
                key.verify(parameters, signed, signature).is_ok()
            }
            (Material::P256(point), A::Es256) => {
                let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point);
                key.verify(signed, signature).is_ok()
            }
            (Material::P384(point), A::Es384) => {
                let key = UnparsedPublicKey::new(&ECDSA_P384_SHA384_FIXED, point);
                key.verify(signed, signature).is_ok()
            }
            (Material::Ed25519(public), A::EdDsa) => {
                let key = UnparsedPublicKey::new(&ED25519, public);
                key.verify(signed, signature).is_ok()
            }
            (Material::Secret(secret), _) => match algorithm.hmac() {
                Some(hash) => {
                    let key = hmac::Key::new(hash, secret);
                    // In constant time.
                    hmac::verify(&key, signed, signature).is_ok()
                }
                None => false,
            },
            _ => false,
        }
    }
}

/// The keys of one source.
#[derive(Debug, Default)]
pub struct KeySet {
    keys: Vec<Arc<Key>>,
    /// Why some were left out.
    pub skipped: Vec<String>,
}

impl KeySet {
    /// Reads a set (RFC 7517, section 5). `allowed` is what the configuration lets its keys be used for. The error is for
    /// the operator. An empty list is a set.
    pub fn parse(text: &[u8], allowed: AlgorithmSet) -> Result<Self, String> {
        let Some(members) = json::object(text) else {
            return Err("it is no JSON object, or has a member twice".to_owned());
        };
        let Some(Value::Array(items)) = members.get("keys") else {
            return Err("it has no list `keys`".to_owned());
        };
        if items.len() > KEYS_MAX {
            return Err(format!("it has more than {KEYS_MAX} keys"));
        }
        let mut set = KeySet::default();
        for (at, item) in items.iter().enumerate() {
            let read = match item {
                Value::Object(members) => read_key(members, allowed),
                _ => Err("it is no JSON object"),
            };
            match read {
                Ok(key) => set.keys.push(Arc::new(key)),
                Err(why) => {
                    let kid = item.get("kid").and_then(Value::as_str).unwrap_or_default();
                    let kid: String = kid.chars().take(64).collect();
                    set.skipped.push(format!("key {at} {kid:?}: {why}"));
                }
            }
        }
        // A list without keys says that all were taken back. One of which nothing can be used says nothing.
        if set.keys.is_empty() && !set.skipped.is_empty() {
            Err(format!(
                "none of its keys can be used: {}",
                set.skipped.join("; ")
            ))
        } else {
            Ok(set)
        }
    }

    /// Checks the file of a set. The error is for the operator.
    pub fn check(path: &Path) -> Result<(), String> {
        let text = ogive_files::read(path, ANSWER_BYTES_MAX as u64, Pipes::Refused);
        let text = text.map_err(|error| error.to_string());
        let read = text.and_then(|text| KeySet::parse(&text, AlgorithmSet::EVERY));
        read.map(|_| ())
            .map_err(|why| format!("`{}`: {why}", path.display()))
    }

    /// How many there are that still prove something.
    pub fn len(&self, now: u64) -> usize {
        self.keys.iter().filter(|key| key.is_good(now)).count()
    }
    /// All of them.
    pub fn keys(&self) -> &[Arc<Key>] {
        &self.keys
    }

    /// Whether a set that was just read says the same as this one, but for keys of this one that are gone.
    pub(crate) fn is_same(&self, read: &KeySet) -> bool {
        let is_there = |key: &&Arc<Key>| key.gone_from.load(Ordering::Relaxed) == 0;
        let there: Vec<&Arc<Key>> = self.keys.iter().filter(is_there).collect();
        let mut pairs = there.iter().zip(&read.keys);
        there.len() == read.keys.len()
            && pairs.all(|(old, new)| old.is_same(new))
            && self.skipped == read.skipped
    }

    /// Takes over from the set before: keys that are still there stay the same, so that what they proved still holds; those
    /// that are not are good for `grace` seconds more.
    #[must_use]
    pub fn after(mut self, before: &KeySet, now: u64, grace: u64) -> Self {
        for old in &before.keys {
            match self.keys.iter_mut().find(|key| key.is_same(old)) {
                Some(key) => {
                    old.gone_from.store(0, Ordering::Relaxed);
                    *key = Arc::clone(old);
                }
                None => {
                    let end = now.saturating_add(grace).max(1);
                    let first = old.gone_from.compare_exchange(
                        0,
                        end,
                        Ordering::Relaxed,
                        Ordering::Relaxed,
                    );
                    if first.is_ok() || old.is_good(now) {
                        self.keys.push(Arc::clone(old));
                    }
                }
            }
        }
        self.keys.retain(|key| key.is_good(now));
        self
    }

    /// Ends all keys, until [`after`](Self::after) finds them in a set again.
    pub fn end(&self, now: u64) {
        for key in &self.keys {
            key.gone_from.store(now.max(1), Ordering::Relaxed);
        }
    }

    /// The keys that a token may be signed with: those of its `kid` if it names one, and of those what its algorithm is one
    /// of.
    pub fn find(
        &self,
        kid: Option<&str>,
        algorithm: Algorithm,
        now: u64,
    ) -> impl Iterator<Item = &Arc<Key>> {
        self.named(kid, now)
            .filter(move |key| key.allowed.has(algorithm))
    }
    /// The keys of a name; all of them for a token that names none.
    pub fn named(&self, kid: Option<&str>, now: u64) -> impl Iterator<Item = &Arc<Key>> {
        let is_named = move |key: &&Arc<Key>| kid.is_none() || key.kid() == kid;
        self.keys
            .iter()
            .filter(move |key| is_named(key) && key.is_good(now))
    }
}

fn text<'m>(members: &'m Map<String, Value>, name: &str) -> Option<&'m str> {
    members.get(name).and_then(Value::as_str)
}

fn bytes(members: &Map<String, Value>, name: &str) -> Option<Vec<u8>> {
    base64url::decode(text(members, name)?.as_bytes()).filter(|bytes| !bytes.is_empty())
}

fn read_key(members: &Map<String, Value>, allowed: AlgorithmSet) -> Result<Key, &'static str> {
    match members.get("use") {
        None => {}
        Some(Value::String(usage)) if usage == "sig" => {}
        Some(_) => return Err("it is not for signatures (`use`)"),
    }
    match members.get("key_ops") {
        None => {}
        Some(Value::Array(ops)) if ops.iter().any(|op| op == "verify") => {}
        Some(_) => return Err("it is not for checking signatures (`key_ops`)"),
    }
    let kid = match members.get("kid") {
        None => None,
        Some(Value::String(kid)) => Some(kid.as_str().into()),
        Some(_) => return Err("its name (`kid`) is no text"),
    };
    let material = material(members)?;
    let mut good_for = material.algorithms();
    match members.get("alg") {
        None => {}
        Some(Value::String(name)) => {
            let named = Algorithm::parse(name).ok_or("its algorithm (`alg`) is not supported")?;
            good_for = good_for.and(AlgorithmSet::of(&[named]));
            if good_for.is_empty() {
                return Err(
                    "its algorithm (`alg`) is none that a key of its type and size is good for",
                );
            }
        }
        Some(_) => return Err("its algorithm (`alg`) is no text"),
    }
    if good_for.is_empty() {
        return Err("a secret needs at least 32 bytes");
    }
    let allowed = good_for.and(allowed);
    if allowed.is_empty() {
        return Err(match material {
            Material::Secret(_) => {
                "secrets do not come from elsewhere unless `algorithms` names one such as HS256"
            }
            _ => "none of its algorithms is in `algorithms`",
        });
    }
    Ok(Key {
        kid,
        allowed,
        material,
        gone_from: AtomicU64::new(0),
    })
}

fn material(members: &Map<String, Value>) -> Result<Material, &'static str> {
    let kty = text(members, "kty").ok_or("it does not say of which type it is (`kty`)")?;
    // Whoever can read it can make tokens.
    if kty != "oct" && members.contains_key("d") {
        return Err("its private part is there for everybody to read");
    }
    match kty {
        "RSA" => {
            let (Some(n), Some(e)) = (bytes(members, "n"), bytes(members, "e")) else {
                return Err("its numbers (`n`, `e`) are not there");
            };
            // Some write zeros first.
            let trim = |number: Vec<u8>| -> Box<[u8]> {
                let zeros = number.iter().take_while(|byte| **byte == 0).count();
                number[zeros..].into()
            };
            let (n, e) = (trim(n), trim(e));
            let leading = n.first().map_or(0, |byte| byte.leading_zeros() as usize);
            if !RSA_BITS.contains(&(n.len() * 8).saturating_sub(leading)) {
                return Err("RSA keys need 2048 to 8192 bits");
            }
            let is_odd = e.last().is_some_and(|byte| byte & 1 == 1);
            if !is_odd || e.len() > 4 || *e == [1] {
                return Err("its exponent (`e`) is none that is safe");
            }
            Ok(Material::Rsa { n, e })
        }
        "EC" => {
            let size = match text(members, "crv") {
                Some("P-256") => 32,
                Some("P-384") => 48,
                _ => return Err("of its kind only the curves P-256 and P-384 are supported"),
            };
            let (Some(x), Some(y)) = (bytes(members, "x"), bytes(members, "y")) else {
                return Err("its point (`x`, `y`) is not there");
            };
            if x.len() != size || y.len() != size {
                return Err("its point (`x`, `y`) has another size than its curve");
            }
            let point: Box<[u8]> = [&[4][..], &x, &y].concat().into();
            Ok(match size {
                32 => Material::P256(point),
                _ => Material::P384(point),
            })
        }
        "OKP" => match (text(members, "crv"), bytes(members, "x")) {
            (Some("Ed25519"), Some(x)) if x.len() == 32 => Ok(Material::Ed25519(x.into())),
            (Some("Ed25519"), _) => Err("its point (`x`) has not 32 bytes"),
            _ => Err("of its kind only the curve Ed25519 is supported"),
        },
        "oct" => match bytes(members, "k") {
            Some(secret) => Ok(Material::Secret(secret.into())),
            None => Err("its secret (`k`) is not there"),
        },
        _ => Err("its type (`kty`) is not supported"),
    }
}
