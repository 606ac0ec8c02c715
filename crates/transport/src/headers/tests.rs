//! What each kind of header rule does to a request.

use super::*;

fn named(name: &'static str) -> NameMatch {
    NameMatch::Named(HeaderName::from_static(name))
}
fn propagate(from: NameMatch) -> HeaderRule {
    HeaderRule::Propagate {
        from,
        rename: None,
        default: None,
    }
}
fn all() -> NameMatch {
    NameMatch::Matching(Regex::new(".*").unwrap())
}
fn insert(name: &'static str, value: &'static str) -> HeaderRule {
    HeaderRule::Insert(
        HeaderName::from_static(name),
        HeaderValue::from_static(value),
    )
}
fn apply(rules: Vec<HeaderRule>, client: &[(&'static str, &'static str)]) -> Vec<String> {
    let mut map = HeaderMap::new();
    for (name, value) in client {
        map.append(
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        );
    }
    let out = HeaderRules::new(rules).apply(&map, None);
    let mut out: Vec<String> = out
        .iter()
        .map(|(n, v)| format!("{n}: {}", v.to_str().unwrap()))
        .collect();
    out.sort();
    out
}

struct Ida;
impl CallerContext for Ida {
    fn claim(&self, path: &str) -> Option<HeaderValue> {
        (path == ".sub").then(|| HeaderValue::from_static("ida"))
    }
}

/// A caller whose claims have line breaks.
#[derive(Debug)]
struct Odd;

impl CallerContext for Odd {
    fn claim(&self, _: &str) -> Option<HeaderValue> {
        None
    }
    fn is_unsayable(&self, path: &str) -> bool {
        path == ".sub"
    }
}

#[test]
fn a_header_that_cannot_say_what_a_claim_says_is_known() {
    let name = HeaderName::from_static("x-user");
    let claim = |path: &str| HeaderRule::InsertClaim {
        name: name.clone(),
        path: path.into(),
        default: Some(HeaderValue::from_static("nobody")),
    };
    let template = HeaderRule::InsertTemplate {
        name: name.clone(),
        parts: [TemplatePart::Claim(".sub".into())].into(),
        default: None,
    };
    for (rule, is_unsayable) in [
        (claim(".sub"), true),
        (claim(".org"), false),
        (template, true),
    ] {
        let rules = HeaderRules::new(vec![rule]);
        let found = rules.unsayable(&HeaderMap::new(), Some(&Odd));
        assert_eq!(found.is_some(), is_unsayable, "{rules:?}");
        assert!(rules.unsayable(&HeaderMap::new(), None).is_none());
    }
}

#[test]
fn what_a_claim_says_is_never_the_clients_to_say() {
    let claim = |path: &str, default| HeaderRule::InsertClaim {
        name: HeaderName::from_static("x-user"),
        path: path.into(),
        default,
    };
    let renamed = HeaderRule::Propagate {
        from: named("x-other"),
        rename: Some(HeaderName::from_static("x-user")),
        default: Some(HeaderValue::from_static("nobody")),
    };
    let mut client = HeaderMap::new();
    for name in ["x-user", "x_user", "x-other"] {
        client.append(name, HeaderValue::from_static("root"));
    }
    let user = |rules: Vec<HeaderRule>, caller: Option<&dyn CallerContext>| {
        let out = HeaderRules::new(rules).apply(&client, caller);
        assert!(!out.contains_key("x_user"), "{out:?}");
        out.get("x-user")
            .map(|value| value.to_str().unwrap().to_owned())
    };
    let ida: Option<&dyn CallerContext> = Some(&Ida);
    let like = propagate(named("x_user"));
    let copies = [propagate(all()), propagate(named("x-user")), like, renamed];
    for copy in copies {
        for rules in [
            vec![claim(".sub", None), copy.clone()],
            vec![copy.clone(), claim(".sub", None)],
        ] {
            assert_eq!(user(rules.clone(), ida).as_deref(), Some("ida"));
            assert_eq!(user(rules, None), None);
        }
        let defaulted = claim(".tenant", Some(HeaderValue::from_static("none")));
        let rules = vec![copy, defaulted];
        assert_eq!(user(rules, ida).as_deref(), Some("none"));
    }
    assert!(HeaderRules::new(vec![claim(".sub", None)]).copies());
}

/// Found by a first user: `propagate` with `rename` let the client say by another name who it is.
#[test]
fn what_a_claim_says_is_not_the_clients_to_say_by_any_other_name() {
    let name = HeaderName::from_static;
    let account = |from| HeaderRule::Propagate {
        from: named(from),
        rename: Some(name("x-account")),
        default: Some(HeaderValue::from_static("nobody")),
    };
    let text = |part| HeaderRule::InsertTemplate {
        name: name("x-account"),
        parts: [part].into(),
        default: Some(HeaderValue::from_static("nobody")),
    };
    let first = TemplatePart::First([name("x-user"), name("x-none")].into());
    let others = [
        account("x-user"),
        account("x_user"),
        text(TemplatePart::Header(name("x-user"))),
        text(TemplatePart::Header(name("x_user"))),
        text(first),
    ];
    let claim = HeaderRule::InsertClaim {
        name: name("x-user"),
        path: ".sub".into(),
        default: None,
    };
    let within = HeaderRule::InsertTemplate {
        name: name("x-user"),
        parts: [TemplatePart::Claim(".sub".into())].into(),
        default: None,
    };
    let mut client = HeaderMap::new();
    for own in ["x-user", "x_user"] {
        client.append(own, HeaderValue::from_static("root"));
    }
    for (other, claim) in others.iter().flat_map(|o| [(o, &claim), (o, &within)]) {
        for rules in [[other, claim], [claim, other]] {
            let rules = HeaderRules::new(rules.into_iter().cloned().collect());
            let out = rules.apply(&client, Some(&Ida));
            assert_eq!(out["x-account"], "nobody", "{rules:?}");
            assert_eq!(out["x-user"], "ida");
            assert!(!out.contains_key("x_user"));
            assert!(rules.believed(&client).is_empty(), "as extensions see it");
            let nobody = rules.apply(&client, None);
            assert_eq!(nobody["x-account"], "nobody");
            assert_eq!(nobody.len(), 1, "{nobody:?}");
        }
    }
}

/// Whom a proxy's header names is added to, and no claim: the header stays what the client sent.
#[test]
fn an_address_is_added_to_what_a_header_says() {
    struct At;
    impl CallerContext for At {
        fn claim(&self, _path: &str) -> Option<HeaderValue> {
            None
        }
        fn value(&self, _value: ClientValue) -> Option<Cow<'_, str>> {
            Some("10.0.0.1".into())
        }
    }
    let name = HeaderName::from_static("x-forwarded-for");
    let parts = [
        TemplatePart::Header(name.clone()),
        TemplatePart::Text(", ".into()),
        TemplatePart::Known(ClientValue::Address),
    ];
    let rules = HeaderRules::new(vec![HeaderRule::InsertTemplate {
        name: name.clone(),
        parts: parts.into(),
        default: None,
    }]);
    let client = HeaderMap::from_iter([(name, HeaderValue::from_static("1.2.3.4"))]);
    let out = rules.apply(&client, Some(&At));
    assert_eq!(out["x-forwarded-for"], "1.2.3.4, 10.0.0.1");
}

#[test]
fn headers_of_the_gateway_are_kept_from_clients_and_not_from_the_operator() {
    let own = [
        OwnHeader::Named(header::AUTHORIZATION),
        OwnHeader::Prefixed("x-amz-"),
    ];
    let rules = vec![
        propagate(all()),
        propagate(named("x-amz-target")),
        insert("x-amz-invocation-type", "Event"),
    ];
    let rules = HeaderRules::new(rules).owning(own);
    let mut client = HeaderMap::new();
    for name in [
        "authorization",
        "x-amz-target",
        "x-amz-invocation-type",
        "x_amz_date",
        "x-amz",
        "x-other",
    ] {
        client.append(name, HeaderValue::from_static("of-the-client"));
    }
    let out = rules.apply(&client, None);
    assert_eq!(out["x-amz-invocation-type"], "Event");
    let mut names: Vec<&str> = out.keys().map(HeaderName::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["x-amz", "x-amz-invocation-type", "x-other"]);
    assert!(!rules.claims(), "nothing of it depends on who asks");
}

#[test]
fn what_a_client_is_called_is_told_from_the_first_header_that_says_it() {
    let rule = |default| HeaderRule::InsertFirst {
        name: HeaderName::from_static("x-client"),
        from: ["client-name", "graphql-client-name"]
            .map(HeaderName::from_static)
            .into(),
        default,
    };
    let both = [("graphql-client-name", "b"), ("client-name", " a ")];
    assert_eq!(apply(vec![rule(None)], &both), ["x-client: a"]);
    assert_eq!(apply(vec![rule(None)], &both[..1]), ["x-client: b"]);
    // What the client itself sends under that name is not what it is called.
    let forged = [("x-client", "c"), ("x_client", "c")];
    for rules in [
        [propagate(all()), rule(None)],
        [rule(None), propagate(all())],
    ] {
        assert!(apply(rules.into(), &forged).is_empty());
    }
    let defaulted = Some(HeaderValue::from_static("none"));
    let said = [("client-name", " ")];
    assert_eq!(apply(vec![rule(defaulted)], &said), ["x-client: none"]);
    let rules = HeaderRules::new(vec![rule(None)]);
    assert_eq!(rules.sources(&HeaderMap::new()).len(), 2);
    assert!(rules.copies() && !rules.claims());
}

#[test]
fn nothing_travels_without_rules() {
    assert!(apply(vec![], &[("authorization", "x"), ("cookie", "y")]).is_empty());
}

#[test]
fn propagation_keeps_every_value() {
    let rules = vec![propagate(named("x-a"))];
    assert_eq!(
        apply(rules, &[("x-a", "1"), ("x-a", "2"), ("x-b", "3")]),
        ["x-a: 1", "x-a: 2"]
    );
}

#[test]
fn renaming_and_defaults() {
    let rule = HeaderRule::Propagate {
        from: named("x-user"),
        rename: Some(HeaderName::from_static("x-account")),
        default: Some(HeaderValue::from_static("nobody")),
    };
    assert_eq!(
        apply(vec![rule.clone()], &[("x-user", "ann")]),
        ["x-account: ann"]
    );
    assert_eq!(apply(vec![rule], &[]), ["x-account: nobody"]);
}

#[test]
fn the_first_propagation_wins_and_insertion_replaces() {
    let rename = HeaderRule::Propagate {
        from: named("x-a"),
        rename: Some(HeaderName::from_static("x-b")),
        default: None,
    };
    let client = [("x-a", "1"), ("x-b", "2")];
    let rules = vec![rename.clone(), propagate(named("x-b"))];
    assert_eq!(apply(rules, &client), ["x-b: 1"]);
    let rules = vec![rename, insert("x-b", "3")];
    assert_eq!(apply(rules, &client), ["x-b: 3"]);
}

#[test]
fn removal_takes_back_what_earlier_steps_set() {
    let rules = vec![
        propagate(all()),
        HeaderRule::Remove(NameMatch::Matching(Regex::new("^x-int").unwrap())),
        HeaderRule::Remove(named("cookie")),
    ];
    let client = [("cookie", "c"), ("x-internal", "1"), ("x-a", "2")];
    assert_eq!(apply(rules, &client), ["x-a: 2"]);
}

#[test]
fn patterns_of_names_have_no_case() {
    let rules = vec![
        propagate(NameMatch::matching("^X-").unwrap()),
        HeaderRule::Remove(NameMatch::matching("^X-Secret").unwrap()),
    ];
    let client = [("x-secret-key", "1"), ("x-a", "2"), ("y-x-a", "3")];
    assert_eq!(apply(rules, &client), ["x-a: 2"]);
}

#[test]
fn hop_by_hop_headers_never_travel() {
    let client = [
        ("connection", "close, X-Mine"),
        ("x-mine", "1"),
        ("keep-alive", "timeout=5"),
        ("transfer-encoding", "chunked"),
        ("content-length", "5"),
        ("host", "a"),
        ("upgrade", "websocket"),
        ("x-ok", "1"),
    ];
    assert_eq!(apply(vec![propagate(all())], &client), ["x-ok: 1"]);
    let sneaky = vec![
        insert("transfer-encoding", "chunked"),
        HeaderRule::Propagate {
            from: named("x-ok"),
            rename: Some(HeaderName::from_static("host")),
            default: None,
        },
    ];
    assert!(apply(sneaky, &client).is_empty());
}

/// Found by a review: `Connection: x-from` took away what the operator inserts.
#[test]
fn a_clients_connection_takes_nothing_away_from_the_operator() {
    let defaulted = |rename| HeaderRule::Propagate {
        from: named("x-user"),
        rename,
        default: Some(HeaderValue::from_static("nobody")),
    };
    let connection = ("connection", "X-From, x-user ,x-account");
    let rules = vec![insert("x-from", "gateway"), defaulted(None)];
    let expected = ["x-from: gateway", "x-user: nobody"];
    assert_eq!(apply(rules.clone(), &[connection]), expected);
    // Nor does it let the client's own value through.
    assert_eq!(apply(rules, &[connection, ("x-user", "ann")]), expected);
    let renamed = defaulted(Some(HeaderName::from_static("x-account")));
    assert_eq!(apply(vec![renamed], &[connection]), ["x-account: nobody"]);
    // The name of the target is the operator's, not the client's.
    let renamed = HeaderRule::Propagate {
        from: named("x-tenant"),
        rename: Some(HeaderName::from_static("x-account")),
        default: None,
    };
    let client = [connection, ("x-tenant", "t")];
    assert_eq!(apply(vec![renamed], &client), ["x-account: t"]);
}

#[test]
fn headers_for_all_recipients_are_of_no_connection() {
    let client = [
        ("connection", "keep-alive"),
        (
            "connection",
            "Authorization, cookie, x-forwarded-for, forwarded, x-mine",
        ),
        ("authorization", "Bearer t"),
        ("cookie", "a=1"),
        ("forwarded", "for=1.2.3.4"),
        ("x-forwarded-for", "1.2.3.4"),
        ("x-mine", "1"),
    ];
    let mut map = HeaderMap::new();
    for (name, value) in client {
        map.append(name, HeaderValue::from_static(value));
    }
    let out = HeaderRules::new(vec![propagate(all())]).apply(&map, None);
    let mut names: Vec<&str> = out.keys().map(HeaderName::as_str).collect();
    names.sort_unstable();
    let expected = ["authorization", "cookie", "forwarded", "x-forwarded-for"];
    assert_eq!(names, expected);
}

#[test]
fn bytes_beyond_ascii_hide_no_name() {
    let mut map = HeaderMap::new();
    let value = HeaderValue::from_bytes(b"\xe4, x-mine").unwrap();
    map.append(header::CONNECTION, value);
    map.append("x-mine", HeaderValue::from_static("1"));
    map.append("content-language", HeaderValue::from_static("de"));
    let rules = HeaderRules::new(vec![propagate(all())]);
    assert!(rules.apply(&map, None).is_empty());
}

#[test]
fn what_requests_depend_on_is_known_though_the_client_sends_nothing() {
    let rules = HeaderRules::new(vec![
        propagate(named("authorization")),
        propagate(NameMatch::matching("^x-").unwrap()),
        insert("x-from", "gateway"),
    ]);
    let mut map = HeaderMap::new();
    assert_eq!(rules.sources(&map), [header::AUTHORIZATION]);
    map.append("x-a", HeaderValue::from_static("1"));
    let x_a = HeaderName::from_static("x-a");
    assert_eq!(rules.sources(&map), [header::AUTHORIZATION, x_a]);
    assert!(rules.copies());
    assert!(!HeaderRules::new(vec![insert("x-from", "gateway")]).copies());
}
