//! Keys that messages are signed with.

use std::{
    fmt,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use ogive_files::Pipes;
use ring::{
    digest, hmac,
    rand::SystemRandom,
    signature::{
        ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair,
        Ed25519KeyPair, RSA_PKCS1_SHA256, RSA_PSS_SHA512, RsaKeyPair,
    },
};
use rustls::pki_types::{PrivateKeyDer, pem::PemObject};

use crate::Secret;

/// Largest file with a key.
const KEY_BYTES_MAX: u64 = 64 << 10;
/// Fewest bytes of a shared secret: half of what SHA-256 gives (RFC 2104, section 3, wants no less).
const SECRET_BYTES_MIN: usize = 16;

macro_rules! algorithms {
    ($( $(#[doc = $doc:literal])* $name:ident = $word:literal, )*) => {
        /// Algorithms of RFC 9421, section 3.3, by their registered names.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Algorithm { $( $(#[doc = $doc])* $name, )* }
        impl Algorithm {
            /// All of them.
            pub const ALL: &'static [Algorithm] = &[$(Algorithm::$name),*];
            /// Its registered name.
            pub fn name(self) -> &'static str {
                match self { $( Algorithm::$name => $word, )* }
            }
        }
    };
}

algorithms! {
    /// EdDSA with curve 25519.
    Ed25519 = "ed25519",
    /// ECDSA with curve P-256 and SHA-256.
    EcdsaP256 = "ecdsa-p256-sha256",
    /// ECDSA with curve P-384 and SHA-384.
    EcdsaP384 = "ecdsa-p384-sha384",
    /// RSASSA-PSS with SHA-512.
    RsaPss = "rsa-pss-sha512",
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    RsaPkcs1 = "rsa-v1_5-sha256",
    /// HMAC with SHA-256.
    Hmac = "hmac-sha256",
}

enum Material {
    Ed25519(Ed25519KeyPair),
    Ecdsa(EcdsaKeyPair),
    Rsa(RsaKeyPair),
    Hmac(hmac::Key),
}

/// A key and the one algorithm it is for. Clones are one key, also after its file was read again.
#[derive(Clone)]
pub struct SigningKey {
    algorithm: Algorithm,
    /// The key, or where it is.
    given: Secret,
    loaded: Arc<Mutex<Loaded>>,
}

#[derive(Clone)]
struct Loaded {
    material: Arc<Material>,
    /// SHA-256 of what the file held.
    digest: Vec<u8>,
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({})", self.algorithm.name())
    }
}

impl SigningKey {
    /// Reads a key: a PEM file, its text, or for [`Algorithm::Hmac`] the secret itself, as text or as `base64:…`. The error
    /// is for the operator, and says nothing of the key.
    pub fn read(algorithm: Algorithm, key: &Secret) -> Result<Self, String> {
        let (material, digest) = match algorithm {
            Algorithm::Hmac => (Material::Hmac(secret(key)?), Vec::new()),
            _ => {
                let pem = pem(key)?;
                (private(algorithm, &pem)?, hash(&pem))
            }
        };
        let material = Arc::new(material);
        Ok(SigningKey {
            algorithm,
            given: key.clone(),
            loaded: Arc::new(Mutex::new(Loaded { material, digest })),
        })
    }

    /// Reads the key's file again, if it has one; tells whether there is another key. One that cannot be used changes
    /// nothing.
    pub(crate) fn refresh(&self) -> Result<bool, String> {
        if self.algorithm == Algorithm::Hmac || is_pem(&self.given) {
            return Ok(false);
        }
        let pem = pem(&self.given)?;
        let digest = hash(&pem);
        if digest == self.loaded().digest {
            return Ok(false);
        }
        let material = Arc::new(private(self.algorithm, &pem)?);
        *self.lock() = Loaded { material, digest };
        Ok(true)
    }

    /// Every change is complete when the lock is given back.
    fn lock(&self) -> MutexGuard<'_, Loaded> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn loaded(&self) -> Loaded {
        self.lock().clone()
    }

    /// Its algorithm.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Whether a signature takes so long that other requests should not wait for it.
    pub(crate) fn is_heavy(&self) -> bool {
        matches!(
            self.algorithm,
            Algorithm::RsaPss | Algorithm::RsaPkcs1 | Algorithm::EcdsaP384
        )
    }

    /// A signature. There is no error but that of the machine's chance, and of RSA keys that are none.
    pub(crate) fn sign(&self, text: &[u8]) -> Result<Vec<u8>, String> {
        let failed = |_| "the key cannot sign".to_owned();
        let chance = SystemRandom::new();
        let material = Arc::clone(&self.lock().material);
        Ok(match &*material {
            Material::Hmac(key) => hmac::sign(key, text).as_ref().to_vec(),
            Material::Ed25519(key) => key.sign(text).as_ref().to_vec(),
            Material::Ecdsa(key) => key.sign(&chance, text).map_err(failed)?.as_ref().to_vec(),
            Material::Rsa(key) => {
                let padding: &dyn ring::signature::RsaEncoding = match self.algorithm {
                    Algorithm::RsaPkcs1 => &RSA_PKCS1_SHA256,
                    _ => &RSA_PSS_SHA512,
                };
                let mut signature = vec![0; key.public().modulus_len()];
                key.sign(padding, &chance, text, &mut signature)
                    .map_err(failed)?;
                signature
            }
        })
    }
}

fn secret(key: &Secret) -> Result<hmac::Key, String> {
    let bytes = match key.expose().strip_prefix("base64:") {
        Some(text) => STANDARD
            .decode(text.trim())
            .map_err(|_| "its base64 is malformed".to_owned())?,
        None => key.expose().as_bytes().to_vec(),
    };
    if bytes.len() < SECRET_BYTES_MIN {
        return Err(format!(
            "a secret of less than {SECRET_BYTES_MIN} bytes can be guessed"
        ));
    }
    Ok(hmac::Key::new(hmac::HMAC_SHA256, &bytes))
}

fn is_pem(key: &Secret) -> bool {
    key.expose().trim_start().starts_with("-----BEGIN")
}

fn hash(bytes: &[u8]) -> Vec<u8> {
    digest::digest(&digest::SHA256, bytes).as_ref().to_vec()
}

fn pem(key: &Secret) -> Result<Vec<u8>, String> {
    let text = key.expose();
    if is_pem(key) {
        return Ok(text.as_bytes().to_vec());
    }
    let path = Path::new(text);
    let read = ogive_files::read(path, KEY_BYTES_MAX, Pipes::Refused);
    // A text that is neither PEM nor a path may be the key itself. Names of files have a dot, and keys in base64 or hex none.
    let shown = if text.contains('.') && text.len() < 256 && !text.contains('\n') {
        text
    } else {
        "…"
    };
    read.map_err(|error| format!("the file `{shown}`: {error}"))
}

fn private(algorithm: Algorithm, pem: &[u8]) -> Result<Material, String> {
    let key = PrivateKeyDer::from_pem_slice(pem)
        .map_err(|_| "it has no private key in PEM".to_owned())?;
    let unfit = |error: ring::error::KeyRejected| {
        format!("it is no key for `{}`: {error}", algorithm.name())
    };
    Ok(match (algorithm, &key) {
        (Algorithm::Ed25519, PrivateKeyDer::Pkcs8(der)) => {
            // Many programs leave the public key out.
            let der = der.secret_pkcs8_der();
            Material::Ed25519(Ed25519KeyPair::from_pkcs8_maybe_unchecked(der).map_err(unfit)?)
        }
        (Algorithm::EcdsaP256 | Algorithm::EcdsaP384, PrivateKeyDer::Pkcs8(der)) => {
            let curve = match algorithm {
                Algorithm::EcdsaP256 => &ECDSA_P256_SHA256_FIXED_SIGNING,
                _ => &ECDSA_P384_SHA384_FIXED_SIGNING,
            };
            let chance = SystemRandom::new();
            Material::Ecdsa(
                EcdsaKeyPair::from_pkcs8(curve, der.secret_pkcs8_der(), &chance).map_err(unfit)?,
            )
        }
        (Algorithm::RsaPss | Algorithm::RsaPkcs1, PrivateKeyDer::Pkcs8(der)) => {
            Material::Rsa(RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()).map_err(unfit)?)
        }
        (Algorithm::RsaPss | Algorithm::RsaPkcs1, PrivateKeyDer::Pkcs1(der)) => {
            Material::Rsa(RsaKeyPair::from_der(der.secret_pkcs1_der()).map_err(unfit)?)
        }
        _ => {
            return Err(format!(
                "it is no PKCS #8 key for `{}`: `openssl pkcs8 -topk8 -nocrypt` makes one of what openssl reads",
                algorithm.name()
            ));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mWG9qfSnF\n-----END PRIVATE KEY-----\n";
    const OTHER: &str = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mWG9qfSnG\n-----END PRIVATE KEY-----\n";

    #[test]
    fn a_key_whose_file_is_replaced_is_another_and_a_broken_file_changes_nothing() {
        let folder = std::env::temp_dir().join(format!("ogive-signing-key-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("key.pem");
        std::fs::write(&file, ONE).unwrap();
        let path = Secret::new(file.to_str().unwrap());
        let key = SigningKey::read(Algorithm::Ed25519, &path).unwrap();
        let in_use = key.clone();
        // Ed25519 signs a text in one way only.
        let first = in_use.sign(b"text").unwrap();
        assert_eq!(key.refresh(), Ok(false));
        std::fs::write(&file, "half a k").unwrap();
        assert!(key.refresh().is_err());
        assert_eq!(in_use.sign(b"text").unwrap(), first);
        std::fs::write(&file, OTHER).unwrap();
        assert_eq!(key.refresh(), Ok(true));
        assert_ne!(in_use.sign(b"text").unwrap(), first);
        let given = SigningKey::read(Algorithm::Ed25519, &Secret::new(ONE)).unwrap();
        assert_eq!(given.refresh(), Ok(false));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn keys_that_cannot_be_used_say_why_and_not_what_they_are() {
        let read =
            |algorithm, key: &str| SigningKey::read(algorithm, &Secret::new(key)).unwrap_err();
        let ed25519 = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mWG9qfSnF\n-----END PRIVATE KEY-----\n";
        assert!(SigningKey::read(Algorithm::Ed25519, &Secret::new(ed25519)).is_ok());
        assert!(
            read(Algorithm::EcdsaP256, ed25519).starts_with("it is no key for `ecdsa-p256-sha256`")
        );
        assert!(read(Algorithm::RsaPss, ed25519).starts_with("it is no key for `rsa-pss-sha512`"));
        assert_eq!(
            read(Algorithm::Ed25519, "-----BEGIN x"),
            "it has no private key in PEM"
        );
        assert!(
            read(Algorithm::Ed25519, "/no/such/key.pem")
                .starts_with("the file `/no/such/key.pem`: ")
        );
        let pasted = read(Algorithm::Ed25519, "MC4CAQAw/QYDK2VwBCIEIJ/x");
        assert!(pasted.starts_with("the file `…`: "), "{pasted}");
        assert!(read(Algorithm::Hmac, "short").contains("can be guessed"));
        assert_eq!(read(Algorithm::Hmac, "base64:%"), "its base64 is malformed");
        let key = SigningKey::read(Algorithm::Hmac, &Secret::new("0123456789abcdef")).unwrap();
        assert_eq!(format!("{key:?}"), "SigningKey(hmac-sha256)");
    }
}
