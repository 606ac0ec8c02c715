//! Tokens that were judged by npm `jose`: we judge them alike, or the difference stands here with the words of the RFC.
//!
//! `tests/tokens.jsonl` holds what `oracle/identity/record.mjs` printed for seed 1; with `OGIVE_ORACLE` set, 10,000 more are
//! made and judged.

use std::{path::PathBuf, process::Command};

use ogive_identity::{
    Authenticator, AuthenticatorOptions, KeyOrigin, KeySetOptions, TokenError,
    authenticator::SignatureCheck,
};
use ogive_testbase::{
    left_out,
    needs::{ORACLE_IS_OFF, oracle},
};
use serde_json::Value;

/// What we refuse and `jose` accepts: what was done to the token, and why.
const STRICTER: &[(&str, &str)] = &[
    (
        "a member of the header is there twice",
        "RFC 7515, section 4: the Header Parameter names within the JOSE Header MUST be unique; recipients MUST either reject \
         JWSs with duplicate Header Parameter names or use the last one",
    ),
    (
        "a claim is there twice",
        "RFC 7519, section 4: the Claim Names within a JWT Claims Set MUST be unique; JWT parsers MUST either reject JWTs with \
         duplicate Claim Names or use the last one",
    ),
    (
        "iat is to come",
        "RFC 7519, section 4.1.6: iat identifies the time at which the JWT was issued, which cannot be in the future",
    ),
    (
        "typ is for something else",
        "RFC 8725, section 3.11: explicit typing keeps one kind of JWT from being taken for another",
    ),
    (
        "sub is no text",
        "RFC 7519, section 4.1.2: the sub value is a case-sensitive string containing a StringOrURI value",
    ),
    (
        "aud has something that is no text",
        "RFC 7519, section 4.1.3: an array of case-sensitive strings",
    ),
    (
        "aud is no text",
        "RFC 7519, section 4.1.3: an array of case-sensitive strings",
    ),
    (
        "exp is out of range",
        "RFC 7519, section 2: NumericDate is of a UTC date, and those of RFC 3339 end with the year 9999",
    ),
    (
        "the last letter is another one",
        "RFC 4648, section 3.5: decoders may reject an encoding whose pad bits are not zero",
    ),
    (
        "a letter is another one",
        "RFC 4648, section 3.5: decoders may reject an encoding whose pad bits are not zero",
    ),
    (
        "white space",
        "RFC 7515, section 2: base64url encoding without the inclusion of any line breaks, whitespace, or other additional \
         characters",
    ),
    (
        "base64 of another alphabet",
        "RFC 7515, section 2: base64url encoding",
    ),
    (
        "padding",
        "RFC 7515, section 2: with all trailing '=' characters omitted",
    ),
];

/// What we accept and `jose` refuses.
const LESS_STRICT: &[(&str, &str)] = &[];

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

#[tokio::test]
async fn tokens_are_judged_as_jose_judges_them() {
    let recorded = std::fs::read_to_string(folder().join("tests/tokens.jsonl")).unwrap();
    assert_eq!(judge_all(&recorded).await, 300);
}

#[tokio::test]
async fn ten_thousand_more_tokens_are_judged_as_jose_judges_them() {
    let Some(folder) = oracle("identity/node_modules/jose") else {
        return left_out(ORACLE_IS_OFF);
    };
    let script = folder.join("identity/record.mjs");
    let made = Command::new("node")
        .arg(script)
        .args(["2", "10000"])
        .output();
    let made = String::from_utf8(made.unwrap().stdout).unwrap();
    assert_eq!(judge_all(&made).await, 10_000);
}

/// Judges all tokens of a record, and fails on the first differences that do not stand above.
async fn judge_all(record: &str) -> usize {
    let mut lines = record
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let head = lines.next().unwrap();
    let files = crate::made::Folder::new();
    let sets = head["sets"].as_array().unwrap().iter().enumerate();
    let sets = sets.map(|(at, set)| {
        let path = files.write(&format!("{at}.json"), &set["jwks"].to_string());
        let mut options = KeySetOptions::new(KeyOrigin::File(path));
        options.issuers = vec![set["issuer"].as_str().unwrap().into()];
        options.audiences = vec![head["audience"].as_str().unwrap().into()];
        options
    });
    let options = AuthenticatorOptions {
        sets: sets.collect(),
        clock_skew: std::time::Duration::from_secs(head["skew"].as_u64().unwrap()),
        ..AuthenticatorOptions::default()
    };
    let now = head["now"].as_u64().unwrap();
    let authenticator = Authenticator::start(options, None);
    let (mut count, mut accepted, mut wrong) = (0, 0, Vec::new());
    for line in lines {
        let token = line["token"].as_str().unwrap();
        let check = async |check: SignatureCheck| check();
        let ours = authenticator.judge(token, now, &check).await;
        let theirs = line["jose"] == "ok";
        count += 1;
        accepted += usize::from(ours.is_ok());
        let kinds: Vec<&str> = line["kinds"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(Value::as_str)
            .collect();
        let is_listed = |list: &[(&str, &str)]| list.iter().any(|(kind, _)| kinds.contains(kind));
        let is_right = match (&ours, theirs) {
            (Ok(_), true) | (Err(_), false) => true,
            (Err(error), true) => *error != TokenError::NoKeys && is_listed(STRICTER),
            (Ok(_), false) => is_listed(LESS_STRICT),
        };
        if !is_right {
            let ours = ours.map(|_| ()).map_err(|error| error.description());
            wrong.push(format!("{kinds:?}: {ours:?}, jose says {}", line["jose"]));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {count}: {:#?}",
        wrong.len(),
        &wrong[..wrong.len().min(20)]
    );
    assert!(
        accepted * 4 > count,
        "only {accepted} of {count} are accepted"
    );
    count
}
