//! What components say where something is decided: who asks, which policies hold, what an operation is counted by. Whatever
//! they say, they change nothing, and one that lies or never ends says nothing.

use ogive_hooks::{
    CallError, CallMode, Exchange, RequestHead, Stage,
    components::{Component, ComponentError, Decision, PolicyQuestion, Verdict},
};

use super::guest::{component, options};
use crate::headers;

/// A component that decides one thing. With the header `x-evil`, or where policies are asked for, it does harm.
fn deciding(
    decision: Decision,
    text: &str,
    (more, permitted): (&str, &str),
) -> Result<Component, ComponentError> {
    let mut options = options(permitted);
    options.decides = vec![decision];
    options.ejection.faults = usize::MAX;
    let bytes = component(&[(decision.hook_name(), text)], more);
    Component::of(options, &bytes)
}

fn head(sent: &str) -> Exchange {
    let client = RequestHead {
        method: http::Method::POST,
        headers: headers(sent).into(),
        path: "/graphql?a=1".into(),
    };
    Exchange::of(Stage::RouterRequest, "".into(), client.into())
}

fn verdict(text: &str, permitted: &str, sent: &str) -> Result<Verdict, CallError> {
    let plugin = deciding(Decision::Authenticate, text, ("", permitted)).unwrap();
    let said = plugin.authenticate(&mut head(sent), CallMode::Whole);
    // An instance is used again, or another one is made.
    assert_eq!(
        plugin.authenticate(&mut head(sent), CallMode::Whole),
        said,
        "{text}"
    );
    said
}

#[test]
fn a_component_says_who_asks_or_that_it_does_not_know_or_refuses() {
    assert_eq!(verdict("(call $unknown)", "", ""), Ok(Verdict::Unknown));
    let claims = verdict(
        "(call $claims @\"{'sub':'ida','exp':4000000000}\" )",
        "",
        "",
    );
    let Ok(Verdict::Claims(claims)) = claims else {
        panic!("{claims:?}");
    };
    assert_eq!((claims["sub"].as_str(), claims.len()), (Some("ida"), 2));
    let refused = verdict("(call $refused @\"no such user\" )", "", "");
    assert_eq!(refused, Ok(Verdict::Refused("no such user".into())));
    // The header is the claims.
    let by_header = "(call $header @\"x-user\" (i32.const 32)) (if (result i32) (i32.load8_u (i32.const 32)) \
                     (then (call $claims (call $some (i32.const 32)))) (else (call $unknown)))";
    let said = verdict(by_header, "read=x-user", "x-user={\"sub\":\"a\"}");
    assert!(matches!(said, Ok(Verdict::Claims(claims)) if claims["sub"] == "a"));
    assert_eq!(verdict(by_header, "read=x-user", ""), Ok(Verdict::Unknown));
    assert!(matches!(
        verdict(by_header, "", ""),
        Err(CallError::Forbidden(_))
    ));
}

#[test]
fn what_says_nothing_that_can_be_believed_has_said_nothing() {
    let large = "(drop (memory.grow (i32.const 64))) (memory.fill (i32.const 131072) (i32.const 49) (i32.const 3000000))";
    for (text, expected) in [
        (
            "(call $claims @\"\" )",
            "it gave what cannot be used: claims",
        ),
        (
            "(call $claims @\"[1]\" )",
            "it gave what cannot be used: claims",
        ),
        (
            "(call $claims @\"{'a':1,'a':2}\" )",
            "it gave what cannot be used: claims",
        ),
        (
            "(call $claims @\"{'a':1\" )",
            "it gave what cannot be used: claims",
        ),
        (
            &format!("{large} (call $claims (i32.const 131072) (i32.const 100000))"),
            "it needs more than it may have: more than 65536 bytes of claims",
        ),
        (
            &format!("{large} (call $claims (i32.const 131072) (i32.const 3000000))"),
            "it needs more than it may have: more than 1048576 bytes of what it says",
        ),
        ("(call $claims (i32.const 0) (i32.const -1))", "it trapped"),
        (
            "(i32.store8 (i32.const 32) (i32.const 255)) (call $claims (i32.const 32) (i32.const 1))",
            "it trapped",
        ),
        (
            "(call $said (i32.const 7) (i32.const 0) (i32.const 0))",
            "it trapped",
        ),
        ("(unreachable)", "it trapped"),
        (
            "(loop $again (br $again)) (call $unknown)",
            "it needs more than it may have",
        ),
        ("(call $failed @\"no\" )", "it failed: no"),
        // Nothing is changed where something is only decided.
        (
            "(call $set_header @\"x-a\" @\"1\" ) (call $claims @\"{}\" )",
            "it is not permitted: changing",
        ),
        (
            "(call $end_header @\"x-a\" @\"1\" ) (call $claims @\"{}\" )",
            "it is not permitted: changing",
        ),
        (
            "(call $end (i32.const 200) @\"{}\" ) (call $claims @\"{}\" )",
            "it is not permitted: changing",
        ),
        (
            "(call $set_status (i32.const 200)) (call $claims @\"{}\" )",
            "it is not permitted: changing",
        ),
        (
            "(call $set @\"a\" @\"1\" ) (call $claims @\"{}\" )",
            "it is not permitted: changing",
        ),
        (
            "(call $remove @\"a\" ) (call $claims @\"{}\" )",
            "it is not permitted: changing",
        ),
        (
            "(call $set_body @\"{}\" ) (call $claims @\"{}\" )",
            "it is not permitted",
        ),
        (
            "(call $set_uri @\"/a\" ) (call $claims @\"{}\" )",
            "it is not permitted: changing",
        ),
    ] {
        let said = verdict(text, "write=x-a set=a", "x-a=1")
            .unwrap_err()
            .to_string();
        assert!(said.starts_with(expected), "{text}: {said}");
    }
}

fn question() -> PolicyQuestion {
    PolicyQuestion {
        policies: vec!["paid".into(), "staff".into()],
        kind: "query".into(),
        scopes: vec!["read".into()],
        claims: "{\"sub\":\"ida\"}".into(),
    }
}

fn holding(text: &str) -> Result<Vec<String>, CallError> {
    let plugin = deciding(Decision::Policies, text, ("", "")).unwrap();
    let said = plugin.policies(&question(), CallMode::Whole);
    assert_eq!(
        plugin.policies(&question(), CallMode::Whole),
        said,
        "{text}"
    );
    said
}

#[test]
fn a_component_says_which_policies_hold() {
    let all = holding("(call $list (local.get $policies) (local.get $count))");
    assert_eq!(all.unwrap(), ["paid", "staff"]);
    let first = holding("(call $list (local.get $policies) (i32.const 1))");
    assert_eq!(first.unwrap(), ["paid"]);
    assert!(
        holding("(call $list (i32.const 0) (i32.const 0))")
            .unwrap()
            .is_empty()
    );
    // What it is told beside them arrives.
    let scopes = holding("(call $list (local.get $scopes) (local.get $scope_count))");
    assert_eq!(scopes.unwrap(), ["read"]);
    let texts = "(i32.store (i32.const 96) (local.get $kind)) (i32.store (i32.const 100) (local.get $kind_length)) \
                 (i32.store (i32.const 104) (local.get $claimed)) (i32.store (i32.const 108) (local.get $claimed_length)) \
                 (call $list (i32.const 96) (i32.const 2))";
    assert_eq!(holding(texts).unwrap(), ["query", "{\"sub\":\"ida\"}"]);
}

#[test]
fn a_list_that_says_one_text_a_million_times_is_not_taken_over() {
    // Each of them is the same kilobyte: together they are a gigabyte.
    let many =
        "(local $at i32) (drop (memory.grow (i32.const 200))) (local.set $at (i32.const 131072))
        (loop $again
          (i32.store (local.get $at) (i32.const 1024))
          (i32.store (i32.add (local.get $at) (i32.const 4)) (i32.const 1024))
          (local.set $at (i32.add (local.get $at) (i32.const 8)))
          (br_if $again (i32.lt_u (local.get $at) (i32.const 8131072))))
        (call $list (i32.const 131072) (i32.const 1000000))";
    let limit = |said: &CallError| matches!(said, CallError::Limit(_));
    assert!(holding(many).is_err_and(|error| limit(&error)));
    let beyond = holding("(call $list (i32.const 131000) (i32.const 1000))");
    assert!(matches!(beyond, Err(CallError::Trapped(_))), "{beyond:?}");
    let endless = holding("(loop $again (br $again)) (i32.const 0)");
    assert!(endless.is_err_and(|error| limit(&error)));
}

#[test]
fn a_component_says_what_an_operation_is_counted_by() {
    let key = |text: &str| {
        let plugin = deciding(Decision::RateKey, text, ("", "read=x-tenant")).unwrap();
        plugin.rate_key(&mut head("x-tenant=acme"), CallMode::Whole)
    };
    let tenant =
        "(call $header @\"x-tenant\" (i32.const 32)) (call $key (call $some (i32.const 32)))";
    assert_eq!(key(tenant), Ok(Some("acme".into())));
    assert_eq!(key("(call $unknown)"), Ok(None), "none");
    assert_eq!(key("(call $key @\"\" )"), Ok(None), "an empty one is none");
    let long = key("(call $key (i32.const 1024) (i32.const 8000))");
    assert!(matches!(long, Err(CallError::Limit(_))), "{long:?}");
}

#[test]
fn a_component_decides_what_it_is_named_for_and_has_to_be_able_to() {
    let bytes = component(&[("authenticate", "(call $unknown)")], "");
    let unnamed = Component::of(options(""), &bytes).unwrap_err().to_string();
    assert!(
        unnamed.contains("authenticate") && unnamed.contains("nowhere"),
        "{unnamed}"
    );
    let mut policies = options("");
    policies.decides = vec![Decision::Policies];
    let missing = Component::of(policies, &bytes).unwrap_err().to_string();
    assert!(
        missing.contains("ogive:hooks/decide-policies@1.1.0"),
        "{missing}"
    );
    let plugin = deciding(Decision::Authenticate, "(call $unknown)", ("", "")).unwrap();
    assert!(
        plugin.options().stages.is_empty(),
        "it is called at no stage"
    );
}

#[test]
fn one_that_traps_where_it_decides_is_left_alone_too() {
    let mut options = options("");
    options.decides = vec![Decision::Authenticate];
    options.ejection.faults = 2;
    options.ejection.time = std::time::Duration::from_secs(3600);
    let bytes = component(&[("authenticate", "(unreachable)")], "");
    let plugin = Component::of(options, &bytes).unwrap();
    for _ in 0..2 {
        let said = plugin.authenticate(&mut head(""), CallMode::Whole);
        assert!(matches!(said, Err(CallError::Trapped(_))), "{said:?}");
    }
    assert_eq!(
        plugin.authenticate(&mut head(""), CallMode::Whole),
        Err(CallError::Ejected)
    );
}
