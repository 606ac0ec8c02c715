//! The examples of RFC 9421, appendix B.2, and what is covered in which form.

use bytes::Bytes;
use http::uri::PathAndQuery;

use super::*;
use crate::{Algorithm, Secret};

/// RFC 9421, appendix B.2: the request that all examples sign.
fn request(headers: &HeaderMap) -> (HeaderMap, PathAndQuery, HeaderValue) {
    let target = PathAndQuery::from_static("/foo?param=Value&Pet=dog");
    (
        headers.clone(),
        target,
        HeaderValue::from_static("example.com"),
    )
}

fn headers() -> HeaderMap {
    let digest = "sha-512=:WZDPaVn/7XgHaAy8pmojAkGWoRx2UFChF41A2svX+TaPm+AbwAgBWnrIiYllu7BNNyealdVLvRwEmTHWXvJwew==:";
    let pairs = [
        ("date", "Tue, 20 Apr 2021 02:07:55 GMT"),
        ("content-type", "application/json"),
        ("content-digest", digest),
        ("content-length", "18"),
    ];
    let pair = |(name, value)| {
        (
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        )
    };
    HeaderMap::from_iter(pairs.map(pair))
}

const BODY: Bytes = Bytes::from_static(b"{\"hello\": \"world\"}");
const CREATED: Duration = Duration::from_secs(1_618_884_473);
const ED25519: &str = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mWG9qfSnF\n-----END PRIVATE KEY-----\n";
const SHARED: &str = "base64:uzvJfB4u3N0Jy4T7NZ75MDVcr8zSTInedJtkgcu46YW4XByzNJjxBdtjUkdJPBtbmHhIDi6pcl8jsasjlTMtDQ==";

fn options(algorithm: Algorithm, key: &str, components: &[&str]) -> MessageSignatureOptions {
    MessageSignatureOptions {
        key: SigningKey::read(algorithm, &Secret::new(key)).unwrap(),
        key_id: None,
        components: components
            .iter()
            .map(|c| Component::parse(c).unwrap())
            .collect(),
        label: "sig1".into(),
        expires: None,
        names_algorithm: false,
        tag: None,
        digest: Digest::Sha512,
    }
}

async fn signed(options: MessageSignatureOptions) -> HeaderMap {
    let (headers, target, authority) = request(&headers());
    let request = Unsigned {
        method: &http::Method::POST,
        https: true,
        authority: &authority,
        target: &target,
        headers: &headers,
        body: Some(&BODY),
    };
    let signature = MessageSignature::new(options).unwrap();
    signature
        .sign(request, SystemTime::UNIX_EPOCH + CREATED)
        .await
        .unwrap()
}

#[tokio::test]
async fn appendix_b_2_5_hmac() {
    let signed = signed(MessageSignatureOptions {
        key_id: Some("test-shared-secret".into()),
        label: "sig-b25".into(),
        ..options(
            Algorithm::Hmac,
            SHARED,
            &["date", "@authority", "content-type"],
        )
    })
    .await;
    assert_eq!(
        signed[SIGNATURE_INPUT],
        "sig-b25=(\"date\" \"@authority\" \"content-type\");created=1618884473;keyid=\"test-shared-secret\""
    );
    assert_eq!(
        signed[SIGNATURE],
        "sig-b25=:pxcQw6G3AjtMBQjwo8XzkZf/bws5LelbaMk5rGIGtE8=:"
    );
}

#[tokio::test]
async fn appendix_b_2_6_ed25519() {
    let components = [
        "date",
        "@method",
        "@path",
        "@authority",
        "content-type",
        "content-length",
    ];
    let signed = signed(MessageSignatureOptions {
        key_id: Some("test-key-ed25519".into()),
        label: "sig-b26".into(),
        ..options(Algorithm::Ed25519, ED25519, &components)
    })
    .await;
    assert_eq!(
        signed[SIGNATURE],
        "sig-b26=:wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw==:"
    );
}

#[tokio::test]
async fn the_digest_is_that_of_the_body_and_comes_with_the_signature() {
    let signed = signed(options(Algorithm::Hmac, SHARED, &["content-digest"])).await;
    assert_eq!(signed[CONTENT_DIGEST], headers()[CONTENT_DIGEST]);
    // RFC 9530, appendix D.
    assert_eq!(
        content_digest(Digest::Sha256, &BODY),
        "sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:"
    );
}

#[test]
fn components_are_those_of_section_2() {
    let (mut headers, target, _) = request(&headers());
    headers.append("cache-control", HeaderValue::from_static("  max-age=60 "));
    headers.append("cache-control", HeaderValue::from_static("must-revalidate"));
    let authority = HeaderValue::from_static("EXAMPLE.com:443");
    let request = Unsigned {
        method: &http::Method::POST,
        https: true,
        authority: &authority,
        target: &target,
        headers: &headers,
        body: None,
    };
    let names = [
        "@method",
        "@target-uri",
        "@authority",
        "@scheme",
        "@request-target",
        "@path",
        "@query",
        "cache-control",
    ];
    let components: Vec<_> = names.iter().map(|c| Component::parse(c).unwrap()).collect();
    let base = base(&components, "()", request, &HeaderMap::new()).unwrap();
    let expected = "\"@method\": POST\n\"@target-uri\": https://example.com/foo?param=Value&Pet=dog\n\
        \"@authority\": example.com\n\"@scheme\": https\n\"@request-target\": /foo?param=Value&Pet=dog\n\
        \"@path\": /foo\n\"@query\": ?param=Value&Pet=dog\n\"cache-control\": max-age=60, must-revalidate\n\
        \"@signature-params\": ()";
    assert_eq!(base, expected);
    let missing = [Component::parse("x-none").unwrap()];
    let error = super::base(&missing, "()", request, &HeaderMap::new()).unwrap_err();
    assert!(error.0.contains("`x-none`"), "{error}");
}

#[test]
fn parameters_are_structured_fields() {
    let signature = MessageSignature::new(MessageSignatureOptions {
        key_id: Some("a \"b\" \\c".into()),
        expires: Some(Duration::from_secs(300)),
        names_algorithm: true,
        tag: Some("ogive".into()),
        ..options(Algorithm::Ed25519, ED25519, &["@method", "@path"])
    });
    assert_eq!(
        signature.unwrap().params(10),
        "(\"@method\" \"@path\");created=10;expires=310;keyid=\"a \\\"b\\\" \\\\c\";alg=\"ed25519\";tag=\"ogive\""
    );
}

#[test]
fn what_cannot_be_written_or_proves_nothing_is_refused() {
    let new = |change: fn(&mut MessageSignatureOptions)| {
        let mut options = options(Algorithm::Ed25519, ED25519, &["@method"]);
        change(&mut options);
        MessageSignature::new(options).unwrap_err()
    };
    assert!(new(|o| o.key_id = Some("\u{e9}".into())).contains("`key_id`"));
    assert!(new(|o| o.label = "Sig".into()).contains("no label"));
    assert!(new(|o| o.components.clear()).contains("proves nothing"));
    assert!(new(|o| o.components.push(Component::Method)).contains("covered twice"));
    for name in ["@status", "@query-param", "signature", "a b", ""] {
        assert!(Component::parse(name).is_err(), "{name}");
    }
}

#[test]
fn headers_that_no_request_can_have_are_no_components() {
    for name in [
        "host",
        "Connection",
        "transfer-encoding",
        "te",
        "keep-alive",
        "upgrade",
        "via",
        "signature",
    ] {
        assert!(Component::parse(name).is_err(), "{name}");
    }
    let host = Component::parse("host").unwrap_err();
    assert!(host.contains("@authority"), "{host}");
    for name in ["content-length", "accept", "content-encoding", "x-tenant"] {
        assert!(Component::parse(name).is_ok(), "{name}");
    }
}
