//! Any bytes as a key set, as a token, and as a key set with a token in the line below: reading them ends, claims are read
//! as `serde_json` reads them, one value has one text, and no key proves what it is not for.

#![no_main]

use libfuzzer_sys::fuzz_target;
use ogive_identity::{
    Algorithm, AlgorithmSet, base64url,
    claims::{self, ClaimRules},
    jwk::KeySet,
    token::Token,
};
use serde_json::Value;

const NOW: u64 = 1_700_000_000;

fuzz_target!(|bytes: &[u8]| {
    let end = bytes.iter().rposition(|byte| *byte == b'\n');
    let (set, token) = match end {
        Some(end) => (&bytes[..end], &bytes[end + 1..]),
        None => (bytes, bytes),
    };
    let set = KeySet::parse(set, AlgorithmSet::EVERY).unwrap_or_default();
    for key in set.keys() {
        assert!(!key.allowed().is_empty());
    }
    let Ok(read) = Token::parse(token, 16 << 10) else {
        return;
    };
    is_read_as_written(token, &read);
    for key in set.keys() {
        for algorithm in Algorithm::ALL {
            let proved = key.verifies(algorithm, read.signed, &read.signature);
            assert!(!proved || key.allowed().has(algorithm));
        }
    }
    let _ = claims::issuer(&read.claims);
    let rules = ClaimRules {
        audiences: &[],
        allow_missing_exp: true,
        skew: 5,
    };
    if let Ok(end) = claims::check(&read.claims, rules, NOW) {
        assert!(end > NOW);
    }
});

fn is_read_as_written(text: &[u8], read: &Token<'_>) {
    let parts: Vec<&[u8]> = text.split(|byte| *byte == b'.').collect();
    let [header, payload, signature] = parts[..] else {
        panic!("it has three parts");
    };
    assert_eq!(signature, base64url::encode(&read.signature).as_bytes());
    assert_eq!(read.signed.len(), header.len() + 1 + payload.len());
    let payload = base64url::decode(payload).expect("it was read");
    // Names that mean something to this reader alone.
    if !payload.windows(12).any(|part| part == b"$serde_json:") {
        let known: Value = serde_json::from_slice(&payload).expect("it is JSON");
        assert_eq!(Value::Object(read.claims.clone()), known);
    }
}
