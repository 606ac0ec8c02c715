//! Requests of components to other hosts, sent by nobody but a test: what is permitted, what is told, and what ends a call.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use http::HeaderMap;
use ogive_hooks::{
    CallError, CallMode, Exchange, Stage,
    components::{
        Component, ComponentOptions,
        outgoing::{Answer, Host, Outgoing, Sender, Unanswered},
    },
};

use super::guest::{asking, component, exchange, options};
use crate::{pass, said_at_end};

/// Asks for the URL of `x-url` with the header of `x-name` and `x-value`, and ends with what comes back: its status and body, or
/// 502 and the error.
const ASK: &str = r#"
(func $ask (result i32)
  (local $headers i32)
  (call $header @"x-name" (i32.const 32))
  (if (i32.load8_u (i32.const 32)) (then
    (local.set $headers (i32.const 1))
    (i32.store (i32.const 256) (i32.load (i32.const 36))) (i32.store (i32.const 260) (i32.load (i32.const 40)))
    (call $header @"x-value" (i32.const 32))
    (i32.store (i32.const 264) (i32.load (i32.const 36))) (i32.store (i32.const 268) (i32.load (i32.const 40)))))
  (call $header @"x-url" (i32.const 32))
  (call $send @"POST" (call $some (i32.const 32)) (i32.const 256) (local.get $headers) @"asked" (i32.const 128))
  (if (i32.load8_u (i32.const 128))
    (then (call $end (i32.const 502) (i32.load (i32.const 132)) (i32.load (i32.const 136))))
    (else (call $end (i32.load16_u (i32.const 132)) (i32.load (i32.const 144)) (i32.load (i32.const 148)))))
  (i32.const 0))
"#;

/// Answers with what it says, and remembers what it was asked.
#[derive(Debug)]
struct Recorder {
    says: Result<Answer, Unanswered>,
    asked: Mutex<Vec<Outgoing>>,
}

impl Sender for Recorder {
    fn send(&self, request: Outgoing) -> Result<Answer, Unanswered> {
        self.asked.lock().unwrap().push(request);
        self.says.clone()
    }
}

fn permitted() -> ComponentOptions {
    let mut options = options("read=x-url read=x-name read=x-value");
    for (https, name, port) in [(true, "good.test", 443), (false, "10.0.0.1", 8080)] {
        let name = name.into();
        options.permissions.hosts.insert(Host { https, name, port });
    }
    options
}

fn good() -> Result<Answer, Unanswered> {
    let mut headers = HeaderMap::new();
    headers.insert("x-a", "1".parse().unwrap());
    Ok(Answer {
        status: 201,
        headers,
        body: "made".into(),
    })
}

fn plugin(
    text: &str,
    options: ComponentOptions,
    says: Result<Answer, Unanswered>,
) -> (Component, Arc<Recorder>) {
    let recorder = Arc::new(Recorder {
        says,
        asked: Mutex::default(),
    });
    let bytes = asking(&[("receive", text)], ASK);
    let sender: Arc<dyn Sender> = Arc::<Recorder>::clone(&recorder);
    let plugin = Component::sending(options, &bytes, Some(sender)).unwrap();
    (plugin, recorder)
}

fn call(plugin: &Component, sent: &str) -> (Exchange, Result<(), CallError>) {
    pass(
        plugin,
        exchange(Stage::RouterRequest, sent, ""),
        CallMode::Whole,
    )
}

fn told(after: &Exchange) -> String {
    let ending = after.changes.ending.as_ref().unwrap();
    format!("{} {}", ending.status.as_u16(), said_at_end(ending))
}

#[test]
fn a_request_goes_to_a_permitted_host_and_its_answer_is_told() {
    let (plugin, recorder) = plugin("(call $ask)", permitted(), good());
    assert!(plugin.sends_requests());
    let (after, outcome) = call(
        &plugin,
        "x-url=https://good.test/a?b; x-name=X-B; x-value=2",
    );
    assert_eq!((outcome, told(&after)), (Ok(()), "201 made".to_owned()));
    let asked = recorder.asked.lock().unwrap();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].host.to_string(), "https://good.test");
    assert_eq!(
        (asked[0].path.as_str(), asked[0].method.as_str()),
        ("/a?b", "POST")
    );
    assert_eq!(
        (&asked[0].headers["x-b"], &*asked[0].body),
        (&"2".parse().unwrap(), &b"asked"[..])
    );
    assert_eq!(asked[0].body_bytes_max, 1 << 20);
    assert!(asked[0].within <= Duration::from_secs(60));
}

#[test]
fn what_is_not_permitted_or_cannot_be_sent_is_told_and_sent_nowhere() {
    let mut options = permitted();
    options.ejection.faults = 1;
    let (plugin, recorder) = plugin("(call $ask)", options, good());
    for (sent, why) in [
        (
            "x-url=https://evil.test/",
            "not permitted: requests to `https://evil.test` (`permissions.hosts`)",
        ),
        (
            "x-url=http://good.test/",
            "not permitted: requests to `http://good.test` (`permissions.hosts`)",
        ),
        (
            "x-url=http://169.254.169.254/latest",
            "not permitted: requests to `http://169.254.169.254` (`permissions.hosts`)",
        ),
        (
            "x-url=https://good.test@evil.test/",
            "the URL has more than a host and a port before its path",
        ),
        (
            "x-url=ftp://good.test/",
            "the URL is to begin with `https://`",
        ),
        (
            "x-url=https://good.test/; x-name=Host; x-value=evil.test",
            "the header `host` is the gateway's to write",
        ),
        (
            "x-url=https://good.test/; x-name=transfer-encoding; x-value=chunked",
            "the header `transfer-encoding` is the gateway's to write",
        ),
    ] {
        let (after, outcome) = call(&plugin, sent);
        // No client makes a component fail by what it says.
        assert_eq!(outcome, Ok(()), "{sent}");
        assert_eq!(told(&after), format!("502 {why}"), "{sent}");
    }
    assert!(recorder.asked.lock().unwrap().is_empty());
}

#[test]
fn what_goes_wrong_on_the_way_is_told_and_time_that_is_over_ends_the_call() {
    let failed = Err(Unanswered::Failed("nobody answers".to_owned()));
    let (plugin_, _) = plugin("(call $ask)", permitted(), failed);
    let (after, outcome) = call(&plugin_, "x-url=https://good.test/");
    assert_eq!(
        (outcome, told(&after)),
        (Ok(()), "502 nobody answers".to_owned())
    );
    let (plugin_, _) = plugin("(call $ask)", permitted(), Err(Unanswered::Late));
    let (after, outcome) = call(&plugin_, "x-url=https://good.test/");
    assert_eq!(outcome, Err(CallError::Limit("longer than 60s".to_owned())));
    assert!(after.changes.ending.is_none());
}

/// Whether it is sent or not.
#[test]
fn more_requests_than_a_call_may_send_end_it() {
    let mut options = permitted();
    options.limits.requests = 3;
    let again = "(loop $again (drop (call $ask)) (br $again)) (i32.const 0)";
    for (url, sent) in [("https://good.test/", 3), ("https://evil.test/", 0)] {
        let (plugin, recorder) = plugin(again, options.clone(), good());
        let (_, outcome) = call(&plugin, &format!("x-url={url}"));
        let limit = CallError::Limit("more than 3 requests".to_owned());
        // It had ended the request with the first answer: the request does not go on.
        assert_eq!(outcome, Err(CallError::Ending(limit.into())), "{url}");
        assert_eq!(recorder.asked.lock().unwrap().len(), sent, "{url}");
    }
}

/// Else its headers would go to anybody, whatever hosts are permitted.
#[test]
fn a_request_of_a_subgraph_is_sent_to_no_host_that_is_not_permitted() {
    for (url, why) in [
        (
            "http://169.254.169.254/latest/",
            "it is not permitted: sending a request of a subgraph to `http://169.254.169.254` (`permissions.hosts`)",
        ),
        (
            "https://products.local:4001/graphql",
            "it is not permitted: sending a request of a subgraph to `https://products.local:4001` (`permissions.hosts`)",
        ),
        (
            "/graphql",
            "it gave what cannot be used: the URL is to begin with `https://`",
        ),
    ] {
        let text = format!("(call $set_uri @\"{url}\" ) (i32.const 0)");
        let bytes = component(&[("subgraph-request", text.as_str())], "");
        let plugin = Component::of(permitted(), &bytes).unwrap();
        let (after, outcome) = pass(
            &plugin,
            exchange(Stage::SubgraphRequest, "", ""),
            CallMode::Whole,
        );
        assert_eq!(outcome.unwrap_err().to_string(), why, "{url}");
        assert!(!after.changes.uri, "{url}");
    }
}

/// A list that has the same text again and again takes no more of the gateway's memory than the component may have itself.
#[test]
fn a_request_is_not_larger_than_the_memory_of_who_says_it() {
    let flood = r#"(func $flood (result i32)
  (local $at i32)
  (drop (memory.grow (i32.const 8)))
  (local.set $at (i32.const 131072))
  (loop $again
    (i32.store offset=4 (local.get $at) (i32.const 1))
    (i32.store offset=12 (local.get $at) (i32.const 60000))
    (local.set $at (i32.add (local.get $at) (i32.const 16)))
    (br_if $again (i32.lt_u (local.get $at) (i32.const 147072))))
  (call $send @"GET" @"https://good.test/" (i32.const 131072) (i32.const 1000) (i32.const 0) (i32.const 0) (i32.const 128))
  (i32.const 0))"#;
    let recorder = Arc::new(Recorder {
        says: good(),
        asked: Mutex::default(),
    });
    let mut options = permitted();
    options.limits.memory = 1 << 20;
    let bytes = asking(&[("receive", "(call $flood)")], flood);
    let sender: Arc<dyn Sender> = Arc::<Recorder>::clone(&recorder);
    let plugin = Component::sending(options, &bytes, Some(sender)).unwrap();
    let (_, outcome) = call(&plugin, "");
    let why = "more than 1048576 bytes of what it says".to_owned();
    assert_eq!(outcome, Err(CallError::Limit(why)));
    assert!(recorder.asked.lock().unwrap().is_empty());
}

#[test]
fn who_asks_without_a_host_that_is_permitted_is_refused_when_it_is_loaded() {
    let bytes = asking(&[("receive", "(call $ask)")], ASK);
    let error = Component::of(options(""), &bytes).unwrap_err().to_string();
    let why = "it imports `ogive:hooks/http`, and `permissions.hosts` names no host";
    assert!(error.contains(why), "{error}");
    // Who asks nobody may be permitted to.
    let quiet =
        Component::of(permitted(), &component(&[("receive", "(i32.const 0)")], "")).unwrap();
    assert!(!quiet.sends_requests());
}
