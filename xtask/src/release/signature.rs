//! Ed25519 signatures (RFC 8032). Keys are PEM files, as `openssl genpkey -algorithm ed25519` writes them.

use anyhow::{Context, Result, anyhow, bail};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};

use super::content::base64;

/// What stands before the 32 bytes of a public key (RFC 8410).
const PUBLIC_PREFIX: [u8; 12] = [
    0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
];

/// A private key.
pub(crate) struct Key(Ed25519KeyPair);

impl Key {
    /// Reads a private key (PKCS #8).
    pub(crate) fn read(pem: &str) -> Result<Key> {
        let bytes = decode(pem, "PRIVATE KEY")?;
        let pair = Ed25519KeyPair::from_pkcs8_maybe_unchecked(&bytes);
        Ok(Key(
            pair.map_err(|why| anyhow!("not an Ed25519 key: {why}"))?
        ))
    }

    /// The signature: 64 bytes.
    pub(crate) fn sign(&self, bytes: &[u8]) -> Vec<u8> {
        self.0.sign(bytes).as_ref().to_vec()
    }

    /// The public key.
    pub(crate) fn public(&self) -> String {
        let bytes = [&PUBLIC_PREFIX, self.0.public_key().as_ref()].concat();
        format!(
            "-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n",
            base64(&bytes, false)
        )
    }
}

/// Fails unless the signature of these bytes was made with the private key that belongs to the public one.
pub(crate) fn verify(public: &str, bytes: &[u8], signature: &[u8]) -> Result<()> {
    let key = decode(public, "PUBLIC KEY")?;
    let Some(key) = key.strip_prefix(&PUBLIC_PREFIX) else {
        bail!("not a public key of Ed25519");
    };
    let key = UnparsedPublicKey::new(&ED25519, key);
    key.verify(bytes, signature)
        .map_err(|_| anyhow!("the signature is wrong"))
}

/// The bytes of a PEM block.
fn decode(pem: &str, label: &str) -> Result<Vec<u8>> {
    let (_, block) = pem
        .split_once(&format!("-----BEGIN {label}-----"))
        .with_context(|| format!("no PEM block `{label}`"))?;
    let (block, _) = block
        .split_once("-----END")
        .context("a PEM block without an end")?;
    let (mut out, mut bits, mut count) = (Vec::new(), 0_u32, 0);
    for byte in block
        .bytes()
        .filter(|byte| !byte.is_ascii_whitespace() && *byte != b'=')
    {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => bail!("a PEM block is not base64"),
        };
        bits = bits << 6 | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
            bits &= (1 << count) - 1;
        }
    }
    Ok(out)
}

/// A key that no release is signed with.
#[cfg(test)]
pub(crate) fn throw_away() -> (Key, String) {
    let random = ring::rand::SystemRandom::new();
    let document = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
    let base64 = base64(document.as_ref(), false);
    let key = Key::read(&format!(
        "-----BEGIN PRIVATE KEY-----\n{base64}\n-----END PRIVATE KEY-----\n"
    ))
    .unwrap();
    let public = key.public();
    (key, public)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_holds_for_its_bytes_and_key_only() {
        let (key, public) = throw_away();
        let signature = key.sign(b"sums");
        verify(&public, b"sums", &signature).unwrap();
        assert!(verify(&public, b"sumz", &signature).is_err());
        assert!(verify(&throw_away().1, b"sums", &signature).is_err());
        assert!(verify("what", b"sums", &signature).is_err());
    }

    /// A key that OpenSSL wrote; its public key is what OpenSSL says.
    #[test]
    fn keys_of_openssl_are_read() {
        let pem = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n-----END PRIVATE KEY-----\n";
        let public = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----\n";
        assert_eq!(Key::read(pem).unwrap().public(), public);
    }
}
