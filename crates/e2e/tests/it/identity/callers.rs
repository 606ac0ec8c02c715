//! Tokens and keys that are taken, and those that are not; what becomes of what they claim.

use std::process::Command;

use ogive_testbase::{
    left_out, runs,
    subgraph::{Reply, StubSubgraph, answer},
};
use serde_json::json;

use super::{Known, claims, made::Made};
use crate::{
    graph::Graph,
    http_client::{post_with, send},
};

const ENFORCE: &str = "authorization: { directives: enforce }\n";
const QUERY: &str = "{ me { name city } }";

/// What a client is told: status, code, and the challenge without its realm.
fn told(answer: &crate::http_client::Answer) -> (u16, Vec<String>, String) {
    let challenge = answer.header("www-authenticate").unwrap_or_default();
    let challenge = challenge.replace("Bearer realm=\"graphql\"", "Bearer");
    (answer.status, answer.codes(), challenge)
}

#[test]
fn a_good_token_says_who_asks_and_a_bad_one_is_refused() {
    let known = Known::with("", ENFORCE);
    let now = ogive_identity::key_source::now();
    let with_scope = known.token(json!({ "scope": "other people" }));
    for _ in 0..2 {
        let answer = known.bear(QUERY, &with_scope);
        assert_eq!(answer.codes(), [""; 0]);
        assert!(answer.json()["data"]["me"]["city"].is_string());
        assert_eq!(answer.header("cache-control"), Some("no-store"));
    }
    for scopes in [
        json!({ "scope": "other" }),
        json!({ "scp": ["peoples"] }),
        json!({}),
    ] {
        let answer = known.bear(QUERY, &known.token(scopes));
        assert_eq!(answer.codes(), ["UNAUTHORIZED_FIELD_OR_TYPE"]);
        assert_eq!(answer.header("www-authenticate"), None, "it has its answer");
    }
    let listed = known.token(json!({ "scp": ["people"] }));
    assert_eq!(known.bear(QUERY, &listed).codes(), [""; 0]);
    // Nobody is nobody.
    assert_eq!(
        known.ask(QUERY, &[]).codes(),
        ["UNAUTHORIZED_FIELD_OR_TYPE"]
    );
    let invalid =
        |why: &str| format!("Bearer, error=\"invalid_token\", error_description=\"{why}\"");
    let expired = known.token(json!({ "exp": now - 60 }));
    let good = known.token(json!({}));
    let (start, end) = good.split_at(good.len() - 10);
    let damaged = format!("{start}AAAAAAAAAA{}", &end[10..]);
    for (token, code, why) in [
        (expired, "TOKEN_EXPIRED", "the token has expired"),
        (
            known.token(json!({ "nbf": now + 60 })),
            "TOKEN_NOT_YET_VALID",
            "the token is not valid yet",
        ),
        (
            known.token(json!({ "iss": "x" })),
            "UNKNOWN_ISSUER",
            "the token is of an unknown issuer",
        ),
        (
            known.token(json!({ "aud": ["x"] })),
            "WRONG_AUDIENCE",
            "the token is for another audience",
        ),
        (
            damaged,
            "INVALID_TOKEN",
            "the signature of the token is not good",
        ),
        ("x".into(), "INVALID_TOKEN", "the token has not three parts"),
        (
            Made::new("1").token(&claims(json!({}))),
            "INVALID_TOKEN",
            "the signature of the token is not good",
        ),
        (
            Made::new("2").token(&claims(json!({}))),
            "INVALID_TOKEN",
            "the token is signed with a key that its issuer does not have",
        ),
        (
            known.key.signed(
                r#"{"alg":"none","kid":"1"}"#,
                &claims(json!({})).to_string(),
            ),
            "INVALID_TOKEN",
            "the token is signed with an algorithm that is not allowed",
        ),
    ] {
        let answer = known.bear(QUERY, &token);
        assert_eq!(told(&answer), (401, vec![code.to_owned()], invalid(why)));
        assert_eq!(answer.header("cache-control"), Some("no-store"));
    }
    for headers in [
        &[("authorization", "Basic eDp5")][..],
        &[("authorization", "Bearer")],
        &[("authorization", "Bearer ")],
        &[("authorization", "Bearer x"), ("authorization", "Bearer x")],
    ] {
        let answer = known.ask(QUERY, headers);
        assert_eq!(
            (answer.status, answer.codes()),
            (400, vec!["INVALID_CREDENTIALS".to_owned()])
        );
        assert!(
            told(&answer)
                .2
                .starts_with("Bearer, error=\"invalid_request\"")
        );
    }
}

#[test]
fn tokens_come_in_headers_and_cookies_in_the_order_of_the_configuration() {
    let more = ", ignore_other_prefixes: true, sources: [{ type: header, name: x-token, value_prefix: '' }, \
                { type: cookie, name: session }]";
    let known = Known::with(more, ENFORCE);
    let good = known.token(json!({ "scope": "people" }));
    let cookie = format!("a=b; session={good}; c=d");
    let quoted = format!("session=\"{good}\"");
    let bearer = format!("bearer {good}");
    for headers in [
        &[("x-token", good.as_str())][..],
        &[("cookie", &cookie)],
        &[("cookie", &quoted)],
        &[("authorization", &bearer)],
        &[("authorization", "Basic eDp5"), ("x-token", &good)],
        &[("x-token", &good), ("cookie", "session=bad")],
    ] {
        assert_eq!(known.ask(QUERY, headers).codes(), [""; 0], "{headers:?}");
    }
    // The first that is there counts, also if it is bad.
    let both = known.ask(QUERY, &[("x-token", "bad"), ("cookie", &cookie)]);
    assert_eq!(both.codes(), ["INVALID_TOKEN"]);
    let twice = format!("{cookie}; session=x");
    assert_eq!(
        known.ask(QUERY, &[("cookie", &twice)]).codes(),
        ["INVALID_CREDENTIALS"]
    );
    // Other cookies are nobody's token.
    let other = known.ask(QUERY, &[("cookie", &format!("xsession={good}"))]);
    assert_eq!(other.codes(), ["UNAUTHORIZED_FIELD_OR_TYPE"]);
}

#[test]
fn a_bad_token_may_count_as_none_if_that_is_asked_for() {
    let known = Known::with(", on_error: Continue", ENFORCE);
    let answer = known.bear(QUERY, "bad");
    assert_eq!(
        (answer.status, answer.codes()),
        (200, vec!["UNAUTHORIZED_FIELD_OR_TYPE".to_owned()])
    );
    assert_eq!(answer.json()["data"]["me"]["city"], json!(null));
    let good = known.token(json!({ "scope": "people" }));
    assert_eq!(known.bear(QUERY, &good).codes(), [""; 0]);
}

#[test]
fn a_caller_may_be_required_for_all_or_some_operations() {
    const MUTATION: &str =
        "mutation { addReview(review: { product: \"1\", stars: 1, title: \"t\" }) { title } }";
    let all = Known::with(
        "",
        "authorization: { directives: enforce, require_authentication: true }\n",
    );
    let token = all.token(json!({}));
    let refused = all.ask("{ me { name } }", &[]);
    let expected = (401, vec!["UNAUTHENTICATED".to_owned()], "Bearer".to_owned());
    assert_eq!(told(&refused), expected);
    let answer = all.bear("{ me { name } }", &token);
    assert_eq!(answer.codes(), [""; 0]);
    assert_eq!(
        answer.header("cache-control"),
        Some("no-store"),
        "others would not get it"
    );
    // What is no operation needs nobody; a token there is not looked at.
    let address = all.graph.address();
    let get = |path: &str, headers: &[(&str, &str)]| send(address, "GET", path, headers, b"");
    assert_eq!(
        get("/health", &[("authorization", "Bearer bad")]).status,
        200
    );
    assert_eq!(get("/graphql", &[("accept", "text/html")]).status, 200);
    assert_eq!(
        get(
            "/graphql?query=%7Bme%7Bname%7D%7D",
            &[("apollo-require-preflight", "1")]
        )
        .status,
        401
    );
    let malformed = send(
        address,
        "POST",
        "/graphql",
        &[("content-type", "application/json")],
        b"{",
    );
    assert_eq!(malformed.status, 401, "nobody learns what would be wrong");

    let some = Known::with(
        "",
        "authorization: { directives: enforce, require_authentication_for: [mutation] }\n",
    );
    assert_eq!(some.ask("{ me { name } }", &[]).codes(), [""; 0]);
    assert_eq!(told(&some.ask(MUTATION, &[])), expected);
    let token = some.token(json!({ "scope": "write" }));
    assert_eq!(some.bear(MUTATION, &token).codes(), [""; 0]);
}

#[test]
fn claims_travel_to_subgraphs_and_nobody_else_writes_them() {
    let rules = "headers: { all: { request: [\
        { insert: { name: x-user, from_context: 'apollo::authentication::jwt_claims', path: '.sub' } },\
        { insert: { name: x-tenant, from_context: 'apollo::authentication::jwt_claims', path: '.org.tenant', default: none } },\
        { propagate: { matching: '^x-' } }] } }\n";
    let known = Known::with("", &format!("{rules}{ENFORCE}"));
    known
        .graph
        .service
        .configure("accounts", |s| s.record = true);
    let forged = [
        ("x-user", "root"),
        ("x_user", "root"),
        ("x-tenant", "all"),
        ("x-other", "1"),
    ];
    let seen = |headers: &[(&str, &str)]| {
        let before = known.graph.service.recorded().len();
        assert_eq!(known.ask("{ me { name } }", headers).codes(), [""; 0]);
        let all = known.graph.service.recorded();
        let headers = all[before].headers.clone();
        ["x-user", "x-tenant", "x-other"].map(|name| {
            let found: Vec<&str> = headers
                .iter()
                .filter(|(n, _)| n.replace('_', "-") == name)
                .map(|(_, v)| v.as_str())
                .collect();
            found.join(",")
        })
    };
    let ida = format!(
        "Bearer {}",
        known.token(json!({ "org": { "tenant": "acme" } }))
    );
    let evil = format!(
        "Bearer {}",
        known.token(json!({ "sub": "a\r\nx-admin: 1", "org": 1 }))
    );
    for headers in [&[][..], &forged] {
        let other = if headers.is_empty() { "" } else { "1" };
        let with = |token: &str| -> Vec<(String, String)> {
            let own = [("authorization".to_owned(), token.to_owned())];
            let copied = headers
                .iter()
                .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()));
            own.into_iter().chain(copied).collect()
        };
        let of = |all: &[(String, String)]| {
            let all: Vec<(&str, &str)> =
                all.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
            seen(&all)
        };
        assert_eq!(of(&with(&ida)), ["ida", "acme", other]);
        // Of whom no header can tell, the subgraph is not asked: it would take the caller for another one.
        let before = known.graph.service.recorded().len();
        let all = with(&evil);
        let all: Vec<(&str, &str)> = all.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        let refused = known.ask("{ me { name } }", &all);
        assert_eq!(refused.codes(), ["SUBREQUEST_HTTP_ERROR"]);
        assert!(!refused.text().contains("x-admin"), "{}", refused.text());
        assert_eq!(known.graph.service.recorded().len(), before);
        // What would arrive as what another caller claims is not sent.
        for sub in [" ida", "ida\t", ""] {
            let other_caller = format!("Bearer {}", known.token(json!({ "sub": sub })));
            assert_eq!(of(&with(&other_caller)), ["", "none", other], "{sub:?}");
        }
        assert_eq!(seen(headers), ["", "none", other]);
    }
}

#[test]
fn what_a_trusted_proxy_says_stays_and_a_token_wins_over_it() {
    let yaml = "authorization: { directives: enforce, claims: { header: x-claims, trusted: [127.0.0.1] } }\n";
    let known = Known::with("", yaml);
    let claims = ("x-claims", r#"{"scopes":["people"]}"#);
    assert_eq!(known.ask(QUERY, &[claims]).codes(), [""; 0]);
    let token = format!("Bearer {}", known.token(json!({})));
    let both = known.ask(QUERY, &[claims, ("authorization", &token)]);
    assert_eq!(both.codes(), ["UNAUTHORIZED_FIELD_OR_TYPE"]);
    // A bad one that counts as none takes nothing away.
    let known = Known::with(", on_error: continue", yaml);
    let both = known.ask(QUERY, &[claims, ("authorization", "Bearer x")]);
    assert_eq!(both.codes(), [""; 0]);
}

#[test]
fn only_requests_that_are_let_in_have_keys_fetched() {
    let key = Made::new("1");
    let server = super::made::Server::json(&super::made::jwks(&[&key]));
    let yaml = format!(
        "authentication: {{ router: {{ jwt: {{ last_known_good: '', refetch_interval: 0s, jwks: [{{ url: '{}', poll_interval: 1h, request_timeout: 60s, \
         issuers: ['{}'], audiences: [us] }}] }} }} }}\n\
         traffic_shaping: {{ router: {{ rate_limit: {{ capacity: 1, interval: 1h, key: ip }} }} }}\n{ENFORCE}",
        server.url(),
        super::ISSUER
    );
    let graph = Graph::changed(&yaml, crate::authorization::RESTRICTED);
    let bear = |key: &Made| {
        let bearer = format!("Bearer {}", key.token(&claims(json!({}))));
        post_with(
            graph.address(),
            "{ me { name } }",
            &[("authorization", &bearer)],
        )
    };
    assert_eq!(bear(&key).codes(), [""; 0]);
    assert_eq!(bear(&Made::new("2")).codes(), ["REQUEST_RATE_LIMITED"]);
    let bearer = format!("Bearer {}", Made::new("3").token(&claims(json!({}))));
    let headers = [("authorization", bearer.as_str())];
    let elsewhere = send(graph.address(), "GET", "/graphqlnonsense", &headers, b"");
    assert_eq!(elsewhere.status, 404);
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn api_keys_are_known_by_their_digests() {
    let folder = super::made::Folder::new();
    // The SHA-256 of `reporting-key` and of `old-key`.
    let digest = |key: &str| {
        let digest = ogive_identity::digest::digest_of(key.as_bytes());
        digest
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>()
    };
    let keys = |scopes: &[&str]| {
        json!({ "keys": {
            "reporting": { "sha256": digest("reporting-key"), "scopes": scopes, "claims": { "tenant": "acme" } },
            "old": { "sha256": digest("old-key"), "scopes": scopes, "expires": 1 },
        } })
    };
    let path = folder.write("keys.json", &keys(&["people"]).to_string());
    let yaml = format!(
        "authentication: {{ router: {{ api_keys: {{ file: '{0}' }}, jwt: {{ on_error: continue, jwks: [{{ url: 'file://{1}' }}] }} }} }}\n\
         headers: {{ all: {{ request: [{{ propagate: {{ matching: '.*' }} }}] }} }}\n\
         authorization: {{ directives: enforce, require_authentication_for: [mutation] }}\n",
        path.display(),
        folder.write("jwks.json", "{\"keys\":[]}").display()
    );
    let graph = Graph::changed(&yaml, crate::authorization::RESTRICTED);
    let ask = |key: &str| post_with(graph.address(), QUERY, &[("x-api-key", key)]);
    graph.service.configure("accounts", |s| s.record = true);
    assert_eq!(ask("reporting-key").codes(), [""; 0]);
    let sent = &graph.service.recorded()[0].headers;
    assert!(
        !sent.iter().any(|(name, _)| name == "x-api-key"),
        "{sent:?}"
    );
    // A bad token counts as none here, so the key beside it is looked at, be it good or bad.
    for (key, codes) in [("reporting-key", &[][..]), ("x", &["INVALID_API_KEY"])] {
        for token in ["Bearer x", "Bearer", "Bearer e30.e30.e30"] {
            let both = [("authorization", token), ("x-api-key", key)];
            assert_eq!(
                post_with(graph.address(), QUERY, &both).codes(),
                codes,
                "{token}"
            );
        }
    }
    let twice = [("x-api-key", "reporting-key"), ("x-api-key", "a")];
    let twice = post_with(graph.address(), QUERY, &twice);
    assert_eq!(twice.codes(), ["INVALID_CREDENTIALS"]);
    assert_eq!(twice.header("www-authenticate"), None);
    for key in [
        "old-key",
        "reporting-keys",
        "REPORTING-KEY",
        &digest("reporting-key"),
        "",
    ] {
        let answer = ask(key);
        assert_eq!(
            (answer.status, answer.codes()),
            (401, vec!["INVALID_API_KEY".to_owned()]),
            "{key}"
        );
        assert_eq!(
            answer.header("www-authenticate"),
            Some("ApiKey realm=\"graphql\"")
        );
    }
    let nobody = post_with(graph.address(), QUERY, &[]);
    assert_eq!(nobody.codes(), ["UNAUTHORIZED_FIELD_OR_TYPE"]);
    // Whoever loses a scope loses it while the gateway runs.
    folder.write("keys.json", &keys(&[]).to_string());
    while ask("reporting-key").codes().is_empty() {
        std::thread::yield_now();
    }
    assert_eq!(ask("reporting-key").codes(), ["UNAUTHORIZED_FIELD_OR_TYPE"]);
    // An empty list takes all keys back.
    folder.write("keys.json", "{\"keys\":{}}");
    while ask("reporting-key").codes() != ["INVALID_API_KEY"] {
        std::thread::yield_now();
    }
}

#[test]
fn what_key_sets_may_be_used_for_and_tokens_without_an_end() {
    let key = Made::new("1");
    let server = super::made::Server::json(&super::made::jwks(&[&key]));
    let secret = super::made::Folder::new();
    let k = ogive_identity::base64url::encode(&[7; 32]);
    let path = secret.write(
        "secret.json",
        &json!({ "keys": [{ "kty": "oct", "kid": "s", "k": k }] }).to_string(),
    );
    let yaml = |jwt: &str, set: &str| {
        format!(
            "authentication: {{ router: {{ jwt: {{ last_known_good: '', {jwt} jwks: [\
             {{ url: '{}', issuers: [i], request_timeout: 60s, headers: [{{ name: x-key, value: k }}], {set} }},\
             {{ url: 'file://{}', issuers: [s] }}] }} }} }}\n{ENFORCE}",
            server.url(),
            path.display()
        )
    };
    let end = ogive_identity::key_source::now();
    let codes = |graph: &Graph, claims: &serde_json::Value| {
        let bearer = format!("Bearer {}", key.token(claims));
        post_with(graph.address(), QUERY, &[("authorization", &bearer)]).codes()
    };
    let strict = Graph::changed(
        &yaml("max_token_size: 400B,", ""),
        crate::authorization::RESTRICTED,
    );
    assert_eq!(codes(&strict, &json!({ "iss": "i" })), ["INVALID_TOKEN"]);
    assert_eq!(
        codes(&strict, &json!({ "iss": "i", "exp": end - 20 })),
        ["TOKEN_EXPIRED"]
    );
    let people = json!({ "iss": "i", "exp": end + 600, "scope": "people" });
    assert_eq!(codes(&strict, &people), [""; 0]);
    let long = json!({ "iss": "i", "exp": end + 600, "scope": "people", "x": "x".repeat(400) });
    assert_eq!(codes(&strict, &long), ["INVALID_TOKEN"]);
    assert!(server.requests()[0].contains("x-key: k"));
    let read = "clock_skew: 10m, scopes_claim: roles.all, policies_claim: [policies],";
    let loose = Graph::changed(
        &yaml(read, "allow_missing_exp: true"),
        crate::authorization::RESTRICTED,
    );
    let roles = json!({ "iss": "i", "roles": { "all": ["people"] } });
    assert_eq!(codes(&loose, &roles), [""; 0]);
    assert_eq!(
        codes(
            &loose,
            &json!({ "iss": "i", "exp": end - 20, "roles": { "all": "people" } })
        ),
        [""; 0]
    );
    assert_eq!(codes(&loose, &people), ["UNAUTHORIZED_FIELD_OR_TYPE"]);
    let stock = |policies: &str| {
        let claims = json!({ "iss": "i", "policies": policies });
        let bearer = format!("Bearer {}", key.token(&claims));
        let query = "{ topProducts(first: 1) { warehouse { city } } }";
        post_with(loose.address(), query, &[("authorization", &bearer)]).codes()
    };
    assert!(stock("stock").is_empty() && !stock("stocks").is_empty());
    let other = Graph::changed(
        &yaml("", "algorithms: [RS256]"),
        crate::authorization::RESTRICTED,
    );
    // The set has no key that may be used, so it is none.
    assert_eq!(codes(&other, &people), ["AUTHENTICATION_UNAVAILABLE"]);
    // A secret in a file may be used; the public key of another set is none.
    let by = |secret: &[u8]| {
        let encode = |text: &str| ogive_identity::base64url::encode(text.as_bytes());
        let claims = json!({ "iss": "s", "exp": end + 600, "scope": "people" }).to_string();
        let signed = format!(
            "{}.{}",
            encode(r#"{"alg":"HS256","kid":"s"}"#),
            encode(&claims)
        );
        let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, secret);
        let tag = ring::hmac::sign(&key, signed.as_bytes());
        let bearer = format!(
            "Bearer {signed}.{}",
            ogive_identity::base64url::encode(tag.as_ref())
        );
        post_with(other.address(), QUERY, &[("authorization", &bearer)]).codes()
    };
    assert_eq!(by(&[7; 32]), [""; 0]);
    assert_eq!(
        by(key.jwk()["x"].as_str().unwrap().as_bytes()),
        ["INVALID_TOKEN"]
    );
}

/// A signature of RSA with 4,096 bits takes as long as a whole request, so no worker checks any; and none is checked twice.
#[test]
fn signatures_are_checked_beside_the_worker_and_once() {
    if !runs("openssl") {
        return left_out("there is no openssl");
    }
    let folder = super::made::Folder::new();
    let pem = folder.path().join("key.pem").display().to_string();
    let openssl = |args: &[&str]| {
        let output = Command::new("openssl").args(args).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        output.stdout
    };
    openssl(&[
        "genpkey",
        "-algorithm",
        "RSA",
        "-pkeyopt",
        "rsa_keygen_bits:4096",
        "-out",
        &pem,
    ]);
    let modulus = openssl(&["rsa", "-in", &pem, "-noout", "-modulus"]);
    let modulus = String::from_utf8(modulus).unwrap();
    let hex = modulus.trim().trim_start_matches("Modulus=").as_bytes();
    let bytes: Vec<u8> = hex
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect();
    assert_eq!(bytes.len(), 512);
    let n = ogive_identity::base64url::encode(&bytes);
    let jwk = json!({ "kty": "RSA", "kid": "r", "n": n, "e": "AQAB" });
    let set = folder.write("jwks.json", &json!({ "keys": [jwk] }).to_string());
    let encode = |text: &str| ogive_identity::base64url::encode(text.as_bytes());
    let claims = claims(json!({ "sub": "ida" })).to_string();
    let signed = format!(
        "{}.{}",
        encode(r#"{"alg":"RS512","kid":"r"}"#),
        encode(&claims)
    );
    let text = folder.write("signed", &signed).display().to_string();
    let signature = openssl(&["dgst", "-sha512", "-sign", &pem, &text]);
    let token = format!("{signed}.{}", ogive_identity::base64url::encode(&signature));
    let graph = Graph::with(&format!(
        "authentication: {{ router: {{ jwt: {{ jwks: [{{ url: 'file://{}', issuers: ['{}'], audiences: [us] }}] }} }} }}\n\
         authorization: {{ require_authentication: true }}\n",
        set.display(),
        super::ISSUER
    ));
    let done = || graph.served.gateway.offload().done();
    let ask = |token: &str| {
        let bearer = format!("Bearer {token}");
        let answer = post_with(
            graph.address(),
            "{ me { name } }",
            &[("authorization", &bearer)],
        );
        answer.status
    };
    assert_eq!(ask("no.token.this"), 401);
    let before = done();
    assert_eq!(ask(&token), 200);
    assert_eq!(done(), before + 1);
    assert_eq!([ask(&token), ask(&token)], [200, 200]);
    assert_eq!(
        done(),
        before + 1,
        "a token that is known is not checked again"
    );
    let (head, _) = token.rsplit_once('.').unwrap();
    assert_eq!(ask(&format!("{head}.{}", "A".repeat(683))), 401);
    assert_eq!(done(), before + 2);
}

/// Each configuration of the page starts, knows whom it should, and refuses others where it says so.
#[test]
fn the_documented_set_ups_start() {
    let page = std::fs::read_to_string(
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/authentication.md"),
    );
    let page = page.unwrap();
    let blocks: Vec<&str> = page
        .split("```yaml\n")
        .skip(1)
        .map(|block| block.split("```").next().unwrap())
        .collect();
    assert_eq!(blocks.len(), 7);
    let folder = super::made::Folder::new();
    let key = Made::new("1");
    let keys = super::made::jwks(&[&key]);
    let jwks = folder.write("jwks.json", &keys);
    let example = page
        .split("```json\n")
        .nth(1)
        .unwrap()
        .split("```")
        .next()
        .unwrap();
    let mut api_keys: serde_json::Value = serde_json::from_str(example).unwrap();
    let digest = ogive_identity::digest::digest_of(b"key");
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    api_keys["keys"]["reporting"]["sha256"] = digest.into();
    let api_keys = folder.write("api-keys.json", &api_keys.to_string());
    let server = super::made::Server::json(&keys);
    let about = super::made::Server::json("{}");
    let issuer = format!("http://{}", about.address);
    let document = json!({ "issuer": issuer, "jwks_uri": server.url() }).to_string();
    about.answer(Some(super::made::ok(&document, "")));
    let endpoint = StubSubgraph::start(|_, request| {
        let said = json!({ "active": request.contains("token=opaque&"), "aud": "https://graphql.example.com" });
        Reply::Whole(answer(200, "", said.to_string().as_bytes()))
    });
    for block in blocks {
        // Whoever is asked may have to wait for its turn.
        let patient = "          request_timeout: 60s\n          audiences:";
        let yaml = block
            .replace("          audiences:", patient)
            .replace(
                "      client_id:",
                "      request_timeout: 60s\n      client_id:",
            )
            .replace("https://issuer.example.com/introspect", &endpoint.url())
            .replace("https://issuer.example.com/jwks.json", &server.url())
            .replace("https://issuer.example.com", &issuer)
            .replace("/etc/ogive/jwks.json", &jwks.display().to_string())
            .replace("/etc/ogive/api-keys.json", &api_keys.display().to_string())
            .replace("    jwt:\n", "    jwt:\n      last_known_good: ''\n")
            .replace("10.1.2.3", "127.0.0.1")
            .replace("${env.INTROSPECTION_SECRET}", "secret");
        if block.contains("client_certificate") {
            super::certificates::the_documented_set_up_starts(&yaml);
            continue;
        }
        let graph = Graph::with(&yaml);
        let mut claims = super::made::claims(&issuer);
        claims["aud"] = "https://graphql.example.com".into();
        let bearer = format!("Bearer {}", key.token(&claims));
        let credentials = match block {
            block if block.contains("api_keys") => ("x-api-key", "key"),
            block if block.contains("x-claims") => ("x-claims", "{}"),
            block if block.contains("introspection") => ("authorization", "Bearer opaque"),
            _ => ("authorization", bearer.as_str()),
        };
        let known = post_with(graph.address(), "{ me { name } }", &[credentials]);
        assert_eq!(known.codes(), [""; 0], "{block}");
        let nobody = post_with(graph.address(), "{ me { name } }", &[]);
        let expected = if block.contains("require_authentication") {
            401
        } else {
            200
        };
        assert_eq!(nobody.status, expected, "{block}");
        let bad = post_with(
            graph.address(),
            "{ me { name } }",
            &[(credentials.0, "Bearer x")],
        );
        assert!(bad.status >= 400, "{block}");
    }
}

/// RFC 6750, section 3: found by a reviewer, a token that does not suffice was refused without a challenge.
#[test]
fn a_token_that_does_not_suffice_is_told_so() {
    let known = Known::with(
        "",
        "authorization: { directives: enforce, reject_unauthorized: true }\n",
    );
    let refused = |challenge: &str| {
        let codes = vec!["UNAUTHORIZED_FIELD_OR_TYPE".to_owned()];
        (403, codes, challenge.to_owned())
    };
    let few = known.token(json!({ "scope": "other" }));
    assert_eq!(
        told(&known.bear(QUERY, &few)),
        refused("Bearer, error=\"insufficient_scope\"")
    );
    // Nothing is wrong with a token that is not there.
    assert_eq!(told(&known.ask(QUERY, &[])), refused("Bearer"));
    let enough = known.token(json!({ "scope": "people" }));
    assert_eq!(
        told(&known.bear(QUERY, &enough)),
        (200, vec![], String::new())
    );
}
