//! Tokens that an attacker makes of what it has: keys of its own, tokens of others, numbers that are none.

use ogive_identity::{TokenError, base64url};
use ring::{
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair},
};
use serde_json::{Value, json};

use crate::{
    key_sets::{judge, set, start},
    made::{Folder, Made, Server, claims},
};

fn is_malformed(judged: Result<usize, TokenError>) -> bool {
    matches!(judged, Err(TokenError::Malformed(_)))
}

#[tokio::test]
async fn where_a_token_says_that_its_keys_are_nobody_looks() {
    let (folder, key, own) = (Folder::new(), Made::new("1"), Made::new("1"));
    let authenticator = start(vec![set(&folder, "one", &[&key], &["i"])]);
    let server = Server::new("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
    let url = format!("http://{}/jwks", server.address);
    for (name, value) in [
        ("jku", json!(url)),
        ("x5u", json!(url)),
        ("jwk", own.jwk()),
        ("x5c", json!(["MIIB"])),
    ] {
        let mut header = json!({ "alg": "EdDSA", "kid": "1" });
        header[name] = value;
        let header = header.to_string();
        let forged = own.signed(&header, &claims("i").to_string());
        let judged = judge(&authenticator, &forged).await;
        assert_eq!(judged, Err(TokenError::Signature), "{name}");
        let good = key.signed(&header, &claims("i").to_string());
        assert_eq!(judge(&authenticator, &good).await, Ok(0), "{name}");
    }
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn a_token_in_a_token_and_one_that_is_bound_to_a_key_give_no_access() {
    let (folder, key) = (Folder::new(), Made::new("1"));
    let authenticator = start(vec![set(&folder, "one", &[&key], &["i"])]);
    let header = r#"{"alg":"EdDSA","kid":"1","cty":"JWT"}"#;
    let nested = key.signed(header, &key.token(&claims("i")));
    assert!(is_malformed(judge(&authenticator, &nested).await));
    for bound in [
        json!({ "x5t#S256": "a" }),
        json!({ "jkt": "a" }),
        json!({}),
        json!(null),
    ] {
        let mut claims = claims("i");
        claims["cnf"] = bound;
        let judged = judge(&authenticator, &key.token(&claims)).await;
        assert!(is_malformed(judged), "{claims}");
    }
}

#[tokio::test]
async fn dates_are_numbers_that_can_be_dates() {
    let (folder, key) = (Folder::new(), Made::new("1"));
    let authenticator = start(vec![set(&folder, "one", &[&key], &["i"])]);
    for end in [
        "1e400",
        "-1e400",
        "1e308",
        "-1",
        "\"99999999999\"",
        "[99999999999]",
        "true",
        "18446744073709551616",
        "null",
    ] {
        let header = r#"{"alg":"EdDSA","kid":"1"}"#;
        let token = key.signed(header, &format!(r#"{{"iss":"i","exp":{end}}}"#));
        assert!(is_malformed(judge(&authenticator, &token).await), "{end}");
    }
    // Twice, with another meaning each time.
    let header = r#"{"alg":"EdDSA","kid":"1"}"#;
    let twice = key.signed(header, r#"{"iss":"i","exp":1,"exp":99999999999}"#);
    assert!(is_malformed(judge(&authenticator, &twice).await));
}

#[tokio::test]
async fn a_signature_of_zeros_or_of_another_length_proves_nothing() {
    let random = SystemRandom::new();
    let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
    let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8.as_ref(), &random)
        .unwrap();
    let point = pair.public_key().as_ref();
    let (x, y) = (
        base64url::encode(&point[1..33]),
        base64url::encode(&point[33..]),
    );
    let folder = Folder::new();
    let jwk = json!({ "kty": "EC", "crv": "P-256", "kid": "1", "x": x, "y": y });
    let set = json!({ "keys": [jwk] }).to_string();
    let path = folder.write("ec.json", &set);
    let authenticator = start(vec![crate::key_sets::at(&path, &["i"])]);
    let encode = |text: &Value| base64url::encode(text.to_string().as_bytes());
    let header = json!({ "alg": "ES256", "kid": "1" });
    let signed = format!("{}.{}", encode(&header), encode(&claims("i")));
    let good = pair.sign(&random, signed.as_bytes()).unwrap();
    let with = |signature: &[u8]| format!("{signed}.{}", base64url::encode(signature));
    assert_eq!(judge(&authenticator, &with(good.as_ref())).await, Ok(0));
    let half = |at: usize| {
        let mut bytes = good.as_ref().to_vec();
        bytes[at..at + 32].fill(0);
        bytes
    };
    for (what, signature) in [
        ("zeros", vec![0; 64]),
        ("r is zero", half(0)),
        ("s is zero", half(32)),
        ("ones", vec![0xff; 64]),
        ("short", good.as_ref()[..63].to_vec()),
        ("long", [good.as_ref(), &[0]].concat()),
    ] {
        let judged = judge(&authenticator, &with(&signature)).await;
        assert_eq!(judged, Err(TokenError::Signature), "{what}");
    }
}
