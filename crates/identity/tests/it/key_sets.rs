//! Which key proves a token: issuers first, then names of keys, then algorithms.

use std::{path::Path, time::Duration};

use ogive_identity::{
    Authenticator, AuthenticatorOptions, Caller, CallerOptions, KeyOrigin, KeySetOptions,
    TokenError, authenticator::SignatureCheck, key_source::now,
};
use serde_json::{Value, json};

use crate::made::{Folder, Made, claims, jwks};

pub(crate) async fn judge(authenticator: &Authenticator, token: &str) -> Result<usize, TokenError> {
    let check = async |check: SignatureCheck| check();
    let judged = authenticator.judge(token, now(), &check).await;
    judged.map(|(judged, _)| judged.set)
}

pub(crate) fn set(folder: &Folder, name: &str, keys: &[&Made], issuers: &[&str]) -> KeySetOptions {
    at(&folder.write(name, &jwks(keys)), issuers)
}

/// The set of a file.
pub(crate) fn at(path: &Path, issuers: &[&str]) -> KeySetOptions {
    let path = path.to_owned();
    let mut set = KeySetOptions::new(KeyOrigin::File(path));
    set.issuers = issuers.iter().map(|issuer| (*issuer).into()).collect();
    set
}

pub(crate) fn start(sets: Vec<KeySetOptions>) -> Authenticator {
    let options = AuthenticatorOptions {
        sets,
        ..AuthenticatorOptions::default()
    };
    Authenticator::start(options, None)
}

#[tokio::test]
async fn two_issuers_with_keys_of_one_name_do_not_vouch_for_each_other() {
    let folder = Folder::new();
    let (one, two, other) = (Made::new("1"), Made::new("1"), Made::new("1"));
    let authenticator = start(vec![
        set(&folder, "one", &[&one], &["https://one"]),
        set(&folder, "two", &[&two], &["https://two"]),
        set(&folder, "other", &[&other], &[]),
    ]);
    for (key, issuer, expected) in [
        (&one, "https://one", Ok(0)),
        (&two, "https://two", Ok(1)),
        (&two, "https://one", Err(TokenError::Signature)),
        (&one, "https://two", Err(TokenError::Signature)),
        // A set for any issuer is for those that no other set is for.
        (&other, "https://one", Err(TokenError::Signature)),
        (&other, "https://three", Ok(2)),
        (&one, "https://three", Err(TokenError::Signature)),
    ] {
        assert_eq!(
            judge(&authenticator, &key.token(&claims(issuer))).await,
            expected,
            "{issuer}"
        );
    }
    // An issuer is a text, and that text.
    for issuer in [json!(["https://one"]), json!(null), json!(1)] {
        let token = one.token(&json!({ "iss": issuer, "exp": now() + 60 }));
        let error = TokenError::Malformed("`iss` of the token is no text");
        assert_eq!(judge(&authenticator, &token).await, Err(error));
    }
    let without = one.token(&json!({ "exp": now() + 60 }));
    assert_eq!(
        judge(&authenticator, &without).await,
        Err(TokenError::Signature)
    );
    let named = start(vec![set(&folder, "one", &[&one], &["https://one"])]);
    for issuer in ["https://one/", "https://ONE", "", "https://three"] {
        let token = one.token(&claims(issuer));
        assert_eq!(
            judge(&named, &token).await,
            Err(TokenError::UnknownIssuer),
            "{issuer}"
        );
    }
}

#[tokio::test]
async fn a_name_of_a_key_is_compared_and_never_understood() {
    let folder = Folder::new();
    let key = Made::new("key-1");
    let mut options = set(&folder, "one", &[&key, &Made::new("key-2")], &["i"]);
    options.source.refetch_interval = Duration::from_secs(3_600);
    let authenticator = start(vec![options]);
    let with = |kid: Value| {
        let header = json!({ "alg": "EdDSA", "kid": kid }).to_string();
        key.signed(&header, &claims("i").to_string())
    };
    assert_eq!(judge(&authenticator, &with(json!("key-1"))).await, Ok(0));
    // Without a name, whatever fits the algorithm is tried.
    let unnamed = key.signed(r#"{"alg":"EdDSA"}"#, &claims("i").to_string());
    assert_eq!(judge(&authenticator, &unnamed).await, Ok(0));
    assert_eq!(
        judge(&authenticator, &with(json!("key-2"))).await,
        Err(TokenError::Signature)
    );
    for kid in [
        "",
        "key-1 ",
        "KEY-1",
        "key-1\u{0}",
        "../../../../dev/null",
        "' UNION SELECT 'k'; --",
        "http://127.0.0.1:1/jwks",
        "key%2D1",
        "key-1|id",
        &"k".repeat(1_000),
    ] {
        let refused = judge(&authenticator, &with(json!(kid))).await;
        assert_eq!(refused, Err(TokenError::UnknownKey), "{kid}");
    }
    for kid in [
        json!(1),
        json!(null),
        json!(["key-1"]),
        json!({}),
        json!("k".repeat(2_000)),
    ] {
        let refused = judge(&authenticator, &with(kid)).await;
        assert!(matches!(refused, Err(TokenError::Malformed(_))));
    }
    let twice = key.signed(r#"{"alg":"EdDSA","kid":"key-1","kid":"key-2"}"#, "{}");
    assert!(matches!(
        judge(&authenticator, &twice).await,
        Err(TokenError::Malformed(_))
    ));
    let source = &authenticator.sources()[0];
    assert_eq!(
        source.fetches(),
        1,
        "a file that is as it was is not read again"
    );
}

#[tokio::test]
async fn whom_a_token_is_for_and_when_it_holds_is_looked_at() {
    let folder = Folder::new();
    let key = Made::new("a");
    let mut options = set(&folder, "one", &[&key], &[]);
    options.audiences = vec!["us".into(), "them".into()];
    let authenticator = start(vec![options]);
    // All at one time, however long the test takes.
    let now = now();
    let judged = async |change: Value| {
        let mut claims = json!({ "aud": "us", "exp": now + 600 });
        for (name, value) in change.as_object().unwrap() {
            match value {
                Value::Null => claims.as_object_mut().unwrap().remove(name),
                value => claims
                    .as_object_mut()
                    .unwrap()
                    .insert(name.clone(), value.clone()),
            };
        }
        let check = async |check: SignatureCheck| check();
        let judged = authenticator.judge(&key.token(&claims), now, &check).await;
        judged.map(|(judged, _)| judged.set)
    };
    for good in [
        json!({}),
        json!({ "aud": ["x", "them"] }),
        json!({ "exp": now as f64 + 0.5 }),
        json!({ "exp": now - 2, "nbf": now + 2 }),
        json!({ "iat": now - 1_000_000 }),
    ] {
        assert_eq!(judged(good.clone()).await, Ok(0), "{good}");
    }
    for (bad, expected) in [
        (json!({ "aud": null }), TokenError::Audience),
        (json!({ "aud": [] }), TokenError::Audience),
        (json!({ "aud": "US" }), TokenError::Audience),
        (json!({ "exp": now - 10 }), TokenError::Expired),
        (json!({ "exp": 0 }), TokenError::Expired),
        (json!({ "nbf": now + 100 }), TokenError::NotYetValid),
        (json!({ "iat": now + 100 }), TokenError::NotYetValid),
    ] {
        assert_eq!(judged(bad.clone()).await, Err(expected), "{bad}");
    }
    for bad in [
        json!({ "aud": 1 }),
        json!({ "aud": ["us", 1] }),
        json!({ "exp": null }),
        json!({ "exp": "9999999999" }),
        json!({ "exp": 1e300 }),
        json!({ "exp": -1 }),
        json!({ "nbf": true }),
        json!({ "sub": 1 }),
    ] {
        let refused = matches!(judged(bad.clone()).await, Err(TokenError::Malformed(_)));
        assert!(refused, "{bad}");
    }
}

#[tokio::test]
async fn what_was_proved_is_remembered_until_it_ends_and_within_a_limit() {
    let folder = Folder::new();
    let key = Made::new("a");
    let options = AuthenticatorOptions {
        sets: vec![set(&folder, "one", &[&key], &[])],
        cache_bytes_max: 64 << 10,
        ..AuthenticatorOptions::default()
    };
    let authenticator = Authenticator::start(options, None);
    let check = async |check: SignatureCheck| check();
    let first = claims("i");
    let end = first["exp"].as_u64().unwrap();
    let token = key.token(&first);
    let digest = authenticator.recall(&token, now()).unwrap_err();
    let proved = authenticator
        .prove(&token, digest, now(), check)
        .await
        .unwrap();
    let recalled = authenticator.recall(&token, now()).unwrap();
    assert!(std::sync::Arc::ptr_eq(&proved, &recalled));
    // It ends with the token, and clocks may differ by five seconds.
    assert!(authenticator.recall(&token, end - 5).is_ok());
    assert!(authenticator.recall(&token, end + 6).is_err());
    assert!(
        authenticator.recall(&token, now()).is_err(),
        "what has ended is gone"
    );
    for i in 0..1_000 {
        let mut claims = claims("i");
        claims["sub"] = json!(format!("{i}"));
        let token = key.token(&claims);
        let digest = authenticator.recall(&token, now()).unwrap_err();
        authenticator
            .prove(&token, digest, now(), check)
            .await
            .unwrap();
    }
    assert!(authenticator.remembered().len() < 100);
}

#[test]
fn scopes_are_texts_or_lists_and_claims_have_paths() {
    let read = |claims: Value, scopes: &[&str]| {
        let options = CallerOptions {
            scopes: scopes.iter().map(|name| (*name).into()).collect(),
            policies: vec!["policies".into()],
        };
        let Value::Object(claims) = claims else {
            panic!()
        };
        Caller::proved(claims, &options)
    };
    let scopes = |claims: Value, names: &[&str]| -> Vec<String> {
        let caller = read(claims, names);
        assert!(caller.granted.authenticated);
        caller
            .granted
            .scopes
            .iter()
            .map(ToString::to_string)
            .collect()
    };
    assert_eq!(
        scopes(json!({ "scope": "a b  a" }), &["scope", "scp"]),
        ["a", "b"]
    );
    assert_eq!(
        scopes(json!({ "scp": ["a", 1, "b c"] }), &["scope", "scp"]),
        ["a", "b c"]
    );
    let keycloak = json!({ "realm_access": { "roles": ["x"] } });
    assert_eq!(scopes(keycloak, &["realm_access.roles"]), ["x"]);
    let auth0 = json!({ "https://api.example/roles": ["x"] });
    assert_eq!(scopes(auth0, &["https://api.example/roles"]), ["x"]);
    assert_eq!(scopes(json!({ "scope": { "a": 1 } }), &["scope"]), [""; 0]);
    let caller = read(
        json!({ "sub": "i", "n": 1, "o": { "l": ["x"] }, "z": null }),
        &[],
    );
    assert_eq!(caller.claim(".sub").as_deref(), Some("i"));
    assert_eq!(caller.claim("n").as_deref(), Some("1"));
    assert_eq!(caller.claim("o.l.0").as_deref(), Some("x"));
    assert_eq!(caller.claim("o").as_deref(), Some("{\"l\":[\"x\"]}"));
    assert_eq!(caller.claim("z"), None);
    assert_eq!(Caller::default().claim("sub"), None);
}
