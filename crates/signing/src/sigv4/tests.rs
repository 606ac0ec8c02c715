//! AWS's own vectors, and what the gateway signs of a request.

use super::{sign as sign_with, *};
use crate::Secret;

const KEY: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
const NOW: &str = "20150830T123600Z";

fn target() -> Target {
    Target {
        region: "us-east-1".into(),
        service: "service".into(),
    }
}

fn credentials(token: Option<&str>) -> Credentials {
    Credentials {
        access_key_id: "AKIDEXAMPLE".into(),
        secret_access_key: Secret::new(KEY),
        session_token: token.map(Secret::new),
    }
}

/// The signature of one case of AWS's own suite, and the one it has to be.
fn signature(case: &str) -> (String, String) {
    let mut lines = case.lines();
    let words: Vec<&str> = lines.next().unwrap().split(' ').collect();
    let [_, _, paths, signs_body, token] = words[..] else {
        panic!("{case}");
    };
    let (method, place) = lines.next().unwrap().split_once(' ').unwrap();
    let (path, query) = place.split_once('?').unwrap_or((place, ""));
    let mut headers = HeaderMap::new();
    let (mut body, mut expected) = ("", "");
    let value = |text: &str| HeaderValue::from_bytes(text.as_bytes()).unwrap();
    for line in lines {
        if let Some(text) = line.strip_prefix("body ") {
            body = text;
        } else if let Some(text) = line.strip_prefix("signature ") {
            expected = text;
        } else if let Some((name, text)) = line.split_once(':') {
            headers.append(
                HeaderName::from_bytes(name.as_bytes()).unwrap(),
                value(text),
            );
        }
    }
    headers.insert(DATE, value(NOW));
    if token != "-" {
        headers.insert(TOKEN, value(token));
    }
    let body_hash = hex(digest::digest(&digest::SHA256, body.as_bytes()).as_ref());
    if signs_body == "signed-body" {
        headers.insert(BODY_HASH, value(&body_hash));
    }
    let request = Request {
        method,
        path,
        query,
        headers: &headers,
        body_hash: &body_hash,
    };
    let paths = Paths {
        normalise: paths == "normal",
        // The suite's paths are encoded once, or not at all.
        twice: !path.contains('%'),
    };
    let token = (token != "-").then_some(token);
    let authorization = authorization(&target(), &credentials(token), NOW, &request, paths);
    let (_, found) = authorization.rsplit_once("Signature=").unwrap();
    (found.to_owned(), expected.to_owned())
}

#[test]
fn aws_own_vectors_are_signed_as_aws_does() {
    let vectors = include_str!("vectors.txt");
    let cases: Vec<&str> = vectors
        .split("\n\n")
        .filter(|case| case.trim_start().starts_with("case "))
        .collect();
    assert_eq!(cases.len(), 38);
    for case in cases {
        let (found, expected) = signature(case.trim_start());
        assert_eq!(found, expected, "{case}");
    }
}

#[test]
fn paths_are_encoded_twice_except_for_s3() {
    let path = |path: &str, s3: bool| {
        let paths = Paths {
            normalise: !s3,
            twice: !s3,
        };
        let mut out = String::new();
        canonical_path(&mut out, path, paths);
        out
    };
    // AWS's vectors `double-encode-path` and `double-url-encode`.
    assert_eq!(
        path("/test/@connections/JBDvjfGEIAMCERw%3D", false),
        "/test/%40connections/JBDvjfGEIAMCERw%253D"
    );
    assert_eq!(
        path("/functions/arn%3Aaws/x", false),
        "/functions/arn%253Aaws/x"
    );
    assert_eq!(path("/a//b/../c%20d", true), "/a//b/../c%20d");
    assert_eq!(path("", false), "/");
}

#[test]
fn host_content_type_and_headers_of_aws_are_signed_and_nothing_else() {
    let mut headers = HeaderMap::new();
    for (name, value) in [
        ("content-type", "application/json"),
        ("x-amz-meta", "1"),
        ("x-amz-date", "of the client"),
        ("traceparent", "00-1-2-00"),
        ("user-agent", "ogive"),
        ("authorization", "of the client"),
    ] {
        headers.insert(
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        );
    }
    let host = HeaderValue::from_static("a.example:8080");
    let now = clock::parse("2015-08-30T12:36:00Z").unwrap();
    let sign = |service: &str, token| {
        let target = Target {
            service: service.into(),
            ..target()
        };
        sign_with(
            &target,
            &credentials(token),
            now,
            ("POST", &host, "/graphql", ""),
            (&headers, b"{}"),
        )
    };
    let added = sign("lambda", Some("t"));
    let text = added[header::AUTHORIZATION].to_str().unwrap();
    assert!(
        text.starts_with(
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/lambda/aws4_request, \
             SignedHeaders=content-type;host;x-amz-date;x-amz-meta;x-amz-security-token, Signature="
        ),
        "{text}"
    );
    assert_eq!(added[DATE], NOW);
    assert!(added.values().all(HeaderValue::is_sensitive));
    assert!(!added.contains_key(BODY_HASH));
    let lattice = sign("vpc-lattice-svcs", None);
    assert_eq!(lattice[BODY_HASH], "UNSIGNED-PAYLOAD");
    let s3 = sign("s3", None);
    assert_eq!(
        s3[BODY_HASH],
        hex(digest::digest(&digest::SHA256, b"{}").as_ref())
    );
    assert!(!s3.contains_key(TOKEN));
}
