//! Texts that are no tokens, and tokens that are for something else.

use ogive_identity::{Algorithm, AlgorithmSet, TokenError, base64url, jwk::KeySet, token::Token};
use serde_json::json;

use crate::made::Made;

fn parse(text: &str) -> Result<(), TokenError> {
    Token::parse(text.as_bytes(), 16 << 10).map(|_| ())
}

fn with(header: &str, claims: &str) -> String {
    Made::new("a").signed(header, claims)
}

#[test]
fn only_signed_tokens_of_three_parts_are_read() {
    let good = with(r#"{"alg":"EdDSA","kid":"a"}"#, "{}");
    assert_eq!(parse(&good), Ok(()));
    let [header, claims, signature] = good.split('.').collect::<Vec<_>>()[..] else {
        panic!("three parts")
    };
    for text in [
        String::new(),
        ".".into(),
        "..".into(),
        format!("{header}.{claims}"),
        format!("{header}.{claims}."),
        format!("{header}..{signature}"),
        format!(".{claims}.{signature}"),
        format!("{good}."),
        format!("{good}.e30"),
        format!("{good}="),
        format!("{good}\n"),
        format!(" {good}"),
        format!("{good}é"),
    ] {
        assert!(
            matches!(parse(&text), Err(TokenError::Malformed(_))),
            "{text}"
        );
    }
    let long = with(
        r#"{"alg":"EdDSA"}"#,
        &json!({ "a": "x".repeat(16 << 10) }).to_string(),
    );
    assert_eq!(
        parse(&long),
        Err(TokenError::Malformed("the token is too long"))
    );
}

#[test]
fn headers_that_cannot_be_understood_as_meant_are_refused() {
    for header in [
        r#"{"alg":"none"}"#,
        r#"{"alg":"None"}"#,
        r#"{"alg":"NONE"}"#,
        r#"{"alg":""}"#,
        r#"{"alg":"ES512"}"#,
        r#"{"alg":"RS1"}"#,
        r#"{"alg":"dir"}"#,
    ] {
        assert_eq!(
            parse(&with(header, "{}")),
            Err(TokenError::Algorithm),
            "{header}"
        );
    }
    for header in [
        "{}",
        "[]",
        r#"{"alg":null}"#,
        r#"{"alg":["EdDSA"]}"#,
        r#"{"alg":"EdDSA","crit":["exp"]}"#,
        r#"{"alg":"EdDSA","crit":[]}"#,
        r#"{"alg":"EdDSA","b64":true}"#,
        r#"{"alg":"EdDSA","b64":false,"crit":["b64"]}"#,
        r#"{"alg":"EdDSA","enc":"A256GCM"}"#,
        r#"{"alg":"EdDSA","alg":"EdDSA"}"#,
        r#"{"alg":"EdDSA","\u0061lg":"EdDSA"}"#,
        r#"{"alg":"EdDSA","kid":1}"#,
        r#"{"alg":"EdDSA","kid":null}"#,
        r#"{"alg":"EdDSA","typ":"logout+jwt"}"#,
        r#"{"alg":"EdDSA","typ":"application/DPoP+JWT"}"#,
    ] {
        let refused = matches!(parse(&with(header, "{}")), Err(TokenError::Malformed(_)));
        assert!(refused, "{header}");
    }
    for header in [
        r#"{"alg":"EdDSA","typ":"JWT"}"#,
        r#"{"alg":"Ed25519","typ":"application/at+jwt"}"#,
        r#"{"alg":"EdDSA","jwk":{},"jku":"x","x5u":"x"}"#,
        r#"{"alg":"EdDSA","zip":"DEF"}"#,
    ] {
        assert_eq!(parse(&with(header, "{}")), Ok(()), "{header}");
    }
    let deep = format!("{}1{}", "{\"a\":".repeat(40), "}".repeat(40));
    let refused = parse(&with(r#"{"alg":"EdDSA"}"#, &deep)).unwrap_err();
    assert!(refused.description().contains("nested deeper than 32"));
}

#[test]
fn nothing_of_a_token_is_shown() {
    let text = with(
        r#"{"alg":"EdDSA","kid":"secret-kid"}"#,
        r#"{"sub":"secret-sub"}"#,
    );
    let token = Token::parse(text.as_bytes(), 16 << 10).unwrap();
    assert_eq!(format!("{token:?}"), "Token { algorithm: EdDsa, .. }");
}

#[test]
fn a_key_is_good_for_what_its_type_is_and_no_more() {
    let secret = base64url::encode(&[7; 32]);
    let rsa_n = base64url::encode(&[0xc1; 256]);
    let key = |jwk: serde_json::Value, allowed| {
        KeySet::parse(json!({ "keys": [jwk] }).to_string().as_bytes(), allowed)
            .map(|set| set.keys()[0].allowed())
    };
    let every = AlgorithmSet::EVERY;
    let rsa = json!({ "kty": "RSA", "n": rsa_n, "e": "AQAB" });
    assert_eq!(key(rsa.clone(), every), Ok(AlgorithmSet::RSA));
    let ed = Made::new("a").jwk();
    assert_eq!(
        key(ed.clone(), every),
        Ok(AlgorithmSet::of(&[Algorithm::EdDsa]))
    );
    let oct = json!({ "kty": "oct", "k": secret });
    // As long as the hash at the least.
    assert_eq!(
        key(oct.clone(), every),
        Ok(AlgorithmSet::of(&[Algorithm::Hs256]))
    );
    assert!(
        key(oct.clone(), AlgorithmSet::PUBLIC).is_err(),
        "no secrets from elsewhere"
    );
    let changed = |jwk: &serde_json::Value, name: &str, value: serde_json::Value| {
        let mut jwk = jwk.clone();
        jwk[name] = value;
        jwk
    };
    for jwk in [
        changed(&rsa, "alg", json!("HS256")),
        changed(&rsa, "alg", json!("RSA-OAEP")),
        changed(&rsa, "use", json!("enc")),
        changed(&rsa, "key_ops", json!(["sign"])),
        changed(&rsa, "n", json!(base64url::encode(&[0xc1; 128]))),
        changed(&rsa, "n", json!(base64url::encode(&[0xc1; 1100]))),
        changed(&rsa, "e", json!("AQ")),
        changed(&rsa, "e", json!("BA")),
        changed(&rsa, "d", json!("AQAB")),
        changed(&rsa, "kid", json!(1)),
        changed(&rsa, "kty", json!("oct")),
        changed(&ed, "crv", json!("X25519")),
        changed(&ed, "x", json!("AQAB")),
        changed(&ed, "d", json!("AQAB")),
        changed(&oct, "k", json!(base64url::encode(&[7; 31]))),
        changed(&oct, "alg", json!("RS256")),
        json!({ "kty": "EC", "crv": "P-521", "x": secret, "y": secret }),
        json!({ "kty": "EC", "crv": "P-384", "x": secret, "y": secret }),
        json!(1),
    ] {
        assert!(key(jwk.clone(), every).is_err(), "{jwk}");
    }
    // One that cannot be used does not take the others away.
    let two = json!({ "keys": [{ "kty": "new", "kid": "n" }, ed] }).to_string();
    let set = KeySet::parse(two.as_bytes(), every).unwrap();
    assert_eq!(set.keys().len(), 1);
    assert_eq!(
        set.skipped,
        ["key 0 \"n\": its type (`kty`) is not supported"]
    );
}

/// The bytes of tokens and key sets, changed at random: reading ends, and what is read is what is written.
#[test]
fn whatever_bytes_come_reading_them_ends() {
    let key = Made::new("a");
    let claims = r#"{"iss":"i","aud":["x"],"exp":1700000001.5,"nbf":1}"#;
    let token = key.signed(r#"{"alg":"EdDSA","kid":"a","typ":"JWT"}"#, claims);
    let set = json!({ "keys": [key.jwk(), { "kty": "oct", "k": base64url::encode(&[7; 64]) }] });
    let (token, set) = (token.into_bytes(), set.to_string().into_bytes());
    let mut rng = ogive_testbase::Rng::new(17);
    let (mut tokens, mut sets) = (0, 0);
    for turn in 0..50_000 {
        let mut bytes = if turn % 2 == 0 {
            token.clone()
        } else {
            set.clone()
        };
        for _ in 0..rng.below(4) {
            let at = rng.below(bytes.len());
            match rng.below(4) {
                0 => bytes[at] = rng.below(256) as u8,
                1 => bytes.truncate(at.max(1)),
                2 => bytes.insert(at, b"\"{}[].,:=-_aA0"[rng.below(14)]),
                _ => {
                    let piece = bytes[at..].to_vec();
                    bytes.splice(at..at, piece.into_iter().take(16));
                }
            }
        }
        if let Ok(read) = Token::parse(&bytes, 16 << 10) {
            tokens += 1;
            let signature = base64url::encode(&read.signature);
            assert_eq!([read.signed, b".", signature.as_bytes()].concat(), bytes);
            let rules = ogive_identity::claims::ClaimRules {
                audiences: &[],
                allow_missing_exp: false,
                skew: 0,
            };
            let checked = ogive_identity::claims::check(&read.claims, rules, 1_700_000_000);
            assert!(checked.is_err() || checked.is_ok_and(|end| end > 1_700_000_000));
        }
        if let Ok(read) = KeySet::parse(&bytes, AlgorithmSet::EVERY) {
            sets += 1;
            assert!(read.keys().iter().all(|key| !key.allowed().is_empty()));
        }
    }
    assert!(tokens > 1_000 && sets > 1_000, "{tokens} {sets}");
}
