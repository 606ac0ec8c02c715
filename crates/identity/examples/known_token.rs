//! How long it takes to prove a token, and to know it again: what every further request with it pays.
//!
//! ```sh
//! cargo run --release -p ogive-identity --example known_token
//! ```
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "whoever runs it reads what it prints"
)]

use std::{hint::black_box, time::Instant};

use http::{HeaderMap, HeaderValue, header};
use ogive_identity::{
    Authenticator, AuthenticatorOptions, Credentials, KeyOrigin, KeySetOptions, TokenSource,
    authenticator::SignatureCheck, key_source::now,
};
use serde_json::json;

#[path = "../tests/it/made.rs"]
#[allow(dead_code, reason = "tests need more of it")]
mod made;

use made::{Folder, Made, claims, jwks};

/// Tokens that are known at a time.
const TOKENS: usize = 1_000;
const ROUNDS: usize = 200;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let (folder, key) = (Folder::new(), Made::new("1"));
    let path = folder.write("jwks.json", &jwks(&[&key]));
    let options = AuthenticatorOptions {
        sets: vec![KeySetOptions::new(KeyOrigin::File(path))],
        ..AuthenticatorOptions::default()
    };
    let authenticator = Authenticator::start(options, None);
    let credentials = Credentials {
        sources: vec![TokenSource::Header {
            name: header::AUTHORIZATION,
            prefix: "Bearer".into(),
        }],
        ignore_other_prefixes: false,
    };
    let requests: Vec<HeaderMap> = (0..TOKENS).map(|number| request(&key, number)).collect();
    let of = |headers| credentials.find(headers).unwrap().unwrap();
    let check = async |check: SignatureCheck| check();
    let start = Instant::now();
    for headers in &requests {
        let token = of(headers);
        let digest = authenticator.recall(token, now()).unwrap_err();
        let proved = authenticator.prove(token, digest, now(), check).await;
        proved.unwrap_or_else(|error| panic!("{error}"));
    }
    print("proved for the first time", start, TOKENS);
    let start = Instant::now();
    for headers in requests.iter().cycle().take(TOKENS * ROUNDS) {
        let known = authenticator.recall(of(black_box(headers)), now());
        black_box(known.unwrap());
    }
    print("known already", start, TOKENS * ROUNDS);
}

/// The headers of a request with a token of its own, as large as those of providers.
fn request(key: &Made, number: usize) -> HeaderMap {
    let mut claims = claims("https://issuer.example");
    claims["sub"] = format!("user-{number}").into();
    claims["scope"] = "openid profile email orders:read orders:write".into();
    claims["realm_access"] = json!({ "roles": ["customer", "editor", "offline_access"] });
    let bearer = format!("Bearer {}", key.token(&claims));
    let mut headers = HeaderMap::new();
    headers.insert(
        header::AUTHORIZATION,
        HeaderValue::from_str(&bearer).unwrap(),
    );
    headers
}

fn print(what: &str, start: Instant, times: usize) {
    let each = start.elapsed().as_nanos() as f64 / times as f64 / 1e3;
    println!("{what}: {each:.2} µs each, {times} times");
}
