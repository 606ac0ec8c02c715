//! Keys: what is equal has one, and what differs has another.

use http::{HeaderName, HeaderValue};
use ogive_cache::{
    CallerKey, Content, Key, KeyMaker, KeyParts, KeySecret, Scope, SentHeaders, Tag, TagName,
    Timestamp, Vary, VaryRecord, canonical,
};

use crate::made::{headers, sent};

fn keys() -> KeyMaker {
    KeyMaker::new(KeySecret::derive(b"tests"))
}

fn entity(representation: &'static str) -> KeyParts<'static> {
    KeyParts {
        subgraph: "a",
        url: "http://a/",
        schema: 1,
        extensions: b"",
        content: Content::Entity {
            selection: b"{name}",
            variables: b"{}",
            representation: representation.as_bytes(),
        },
    }
}

#[test]
fn representations_are_compared_in_canonical_form() {
    for (written, canonical_form) in [
        (
            r#"{"b":1,"a":{"d":[{"f":1,"e":2}, 3],"c":"}"}}"#,
            r#"{"a":{"c":"}","d":[{"e":2,"f":1},3]},"b":1}"#,
        ),
        (r#" { "a" : 1.0 , "a":2 } "#, r#"{"a":1.0,"a":2}"#),
        (r#"{}"#, "{}"),
        (r#"[]"#, "[]"),
        (r#"{"a":"#, r#"{"a":"#),
    ] {
        let found = canonical(written.as_bytes());
        assert_eq!(std::str::from_utf8(&found).unwrap(), canonical_form);
    }
    let deep = "[".repeat(100_000);
    assert_eq!(&*canonical(deep.as_bytes()), deep.as_bytes());
    let first = |text| keys().first(&entity(text));
    assert_eq!(
        first(r#"{"id":1,"sku":"a"}"#),
        first(r#"{"sku": "a", "id": 1}"#)
    );
    assert_ne!(first(r#"{"id":1}"#), first(r#"{"id":"1"}"#));
    assert_ne!(first(r#"{"id":1}"#), first(r#"{"id":1.0}"#));
}

#[test]
fn parts_that_are_cut_otherwise_are_other_keys() {
    let of = |subgraph, url| {
        keys().first(&KeyParts {
            subgraph,
            url,
            ..entity("{}")
        })
    };
    assert_ne!(of("ab", "c"), of("a", "bc"));
    let secrets = [KeySecret::derive(b"a"), KeySecret::derive(b"b")];
    let [one, other] = secrets.map(|secret| KeyMaker::new(secret).first(&entity("{}")));
    assert_ne!(one, other);
}

#[test]
fn headers_are_compared_as_the_record_says() {
    let first = Key([1; 16]);
    let key = |record: &VaryRecord, lines: &[(&str, &str)], id: Option<&str>| {
        let headers = headers(lines);
        let sent = sent(&headers);
        let sent: SentHeaders<'_> = &sent;
        let caller = CallerKey::new(sent, id.map(str::as_bytes));
        keys().second(first, record, &caller)
    };
    let base = [("x-a", "1"), ("x-b", "2"), ("authorization", "t")];
    let with = |at: usize, value| {
        let mut lines = base;
        lines[at].1 = value;
        lines
    };
    let by = |vary, by_credentials, by_private_id| VaryRecord {
        vary,
        scope: Scope {
            by_credentials,
            by_private_id,
        },
        until: Timestamp::default(),
    };
    let named = || Vary::Named([HeaderName::from_static("x-a")].into());
    // Which of: another `x-a`, another `x-b`, other credentials, another private id.
    for (record, differs) in [
        (VaryRecord::default(), [true, true, true, false]),
        (by(named(), true, false), [true, false, true, false]),
        (by(named(), false, false), [true, false, false, false]),
        (by(named(), false, true), [true, false, false, true]),
        (
            by(Vary::AllHeaders, false, false),
            [true, true, false, false],
        ),
        (by(Vary::AllHeaders, true, true), [true, true, true, true]),
    ] {
        let same = key(&record, &base, Some("i"));
        let others = [
            key(&record, &with(0, "9"), Some("i")),
            key(&record, &with(1, "9"), Some("i")),
            key(&record, &with(2, "9"), Some("i")),
            key(&record, &base, Some("j")),
        ];
        assert_eq!(others.map(|other| other != same), differs, "{record:?}");
        let mut turned = base;
        turned.reverse();
        assert_eq!(key(&record, &turned, Some("i")), same, "order says nothing");
    }
    // All headers of a request that has the named ones only.
    let lines = [("x-a", "1")];
    assert_ne!(
        key(&by(named(), true, false), &lines, None),
        key(&VaryRecord::default(), &lines, None)
    );
    // Missing, empty, twice.
    let of = |lines: &[(&str, &str)]| key(&by(named(), false, false), lines, None);
    assert_ne!(of(&[]), of(&[("x-a", "")]));
    assert_eq!(of(&[("x-a", "1"), ("x-a", "2")]), of(&[("x-a", "1, 2")]));
    assert_ne!(of(&[("x-a", "1,2")]), of(&[("x-a", "1, 2")]));
}

#[test]
fn a_credential_is_compared_wherever_it_stands() {
    let record = VaryRecord::default();
    let value = HeaderValue::from_static("s=1");
    let cookie = HeaderName::from_static("cookie");
    let with = [(&cookie, &value)];
    let keys = keys();
    let some = keys.second(Key([1; 16]), &record, &CallerKey::new(&with, None));
    let none = keys.second(Key([1; 16]), &record, &CallerKey::new(&[], None));
    assert_ne!(some, none);
}

#[test]
fn tags_of_different_things_differ() {
    let secret = KeySecret::derive(b"tests");
    let (subgraph, name) = ("a", "T");
    let names = [
        TagName::Subgraph("a"),
        TagName::Subgraph("T"),
        TagName::Type { subgraph, name },
        TagName::Entity {
            subgraph,
            name,
            key: b"{}",
        },
        TagName::Free {
            subgraph: None,
            name,
        },
        TagName::Free {
            subgraph: Some(subgraph),
            name,
        },
    ];
    let mut tags = names.map(|name| Tag::of(&secret, name)).to_vec();
    tags.sort();
    tags.dedup();
    assert_eq!(tags.len(), names.len());
}
