//! The public suite http-cache-tests, as far as it means something for the answer to a POST. `oracle/cache/vectors.mjs` has
//! made the file. A cache with a virtual clock stands between the suite's client and its server.

use std::{collections::BTreeMap, time::Duration};

use http::HeaderMap;
use ogive_cache::{
    Answer, CacheOptions, CallerKey, EntryKind, Exchange, ResponseCache, StoringPolicy,
    StoringRefusal, Timestamp, Use, Write, decide,
};
use serde_json::Value;

use crate::made::{NOW, cache, file, first, headers, sent};

/// The suite waits so long where a test says so.
const PAUSE: Duration = Duration::from_secs(3);

/// Required tests that fail, and why.
const REQUIRED: &[(&str, &str)] = &[(
    "age-parse-prefix",
    "`Age: 0,7200` is read as no age at all, like `Age: 0, 0`, which the suite wants read so",
)];

/// Optimal tests that fail, and why.
const OPTIMAL: &[(&str, &str)] = &[
    (
        "vary-normalise-lang-order",
        "two languages of equal weight in another order may be answered otherwise",
    ),
    (
        "vary-normalise-lang-select",
        "the cache does not negotiate languages",
    ),
    (
        "vary-normalise-space",
        "whether spaces say something in an unknown header is not known",
    ),
    (
        "other-authorization-must-revalidate",
        "most servers that send `must-revalidate` do not mean to share answers between callers",
    ),
];

#[test]
fn the_suite_passes_but_for_what_is_listed() {
    let text = std::fs::read_to_string(file("http_cache_tests.jsonl")).unwrap();
    let mut failed: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for line in text.lines() {
        let test: Value = serde_json::from_str(line).unwrap();
        // Some are for caches of one user.
        if test["browser"].as_bool().unwrap() {
            continue;
        }
        let kind = test["kind"].as_str().unwrap().to_owned();
        *counts.entry(kind.clone()).or_default() += 1;
        if !passes(&test) {
            let id = test["id"].as_str().unwrap().to_owned();
            failed.entry(kind).or_default().push(id);
        }
    }
    let listed = |rows: &[(&str, &str)]| -> Vec<String> {
        rows.iter().map(|(id, _)| (*id).to_owned()).collect()
    };
    assert_eq!((counts["required"], counts["optimal"]), (59, 31));
    assert_eq!(failed["required"], listed(REQUIRED));
    assert_eq!(failed["optimal"], listed(OPTIMAL));
}

/// The client of the suite, and what answers it.
struct Play {
    cache: ResponseCache,
    now: Timestamp,
    policy: StoringPolicy,
}

/// How a request of the suite was answered.
#[derive(PartialEq, Debug)]
enum Outcome {
    Cached,
    Forwarded,
    Validated,
    Failed,
}

fn passes(test: &Value) -> bool {
    let mut play = Play {
        cache: cache(CacheOptions::default(), None),
        now: NOW,
        policy: StoringPolicy {
            revalidates: true,
            ..StoringPolicy::default()
        },
    };
    let requests = test["requests"].as_array().unwrap();
    requests.iter().all(|request| {
        let outcome = play.request(request);
        if request["pause"].as_bool().unwrap() {
            play.now = play.now.plus(PAUSE);
        }
        match request["expected"].as_str() {
            None => true,
            Some("cached") => outcome == Outcome::Cached,
            // An answer that is validated comes from the server, too.
            Some("not_cached") => outcome != Outcome::Cached,
            Some("etag_validated" | "lm_validated") => outcome == Outcome::Validated,
            Some(other) => panic!("{other}"),
        }
    })
}

impl Play {
    fn request(&mut self, request: &Value) -> Outcome {
        let asked = lines(&request["request"], self.now);
        let sent = sent(&asked);
        let caller = CallerKey::new(&sent, None);
        let first = first(&self.cache, "{a}");
        let lookup = self.cache.look_up_in_memory(first, &caller, self.now);
        let stamp = self.cache.stamp();
        if let Some(found) = &lookup.found {
            match found.usability {
                Use::Fresh => return Outcome::Cached,
                // The suite's server fails by closing the connection.
                Use::IfError | Use::WhileRevalidating if request["status"] == 0 => {
                    return Outcome::Cached;
                }
                _ => {}
            }
        }
        if request["status"] == 0 {
            return Outcome::Failed;
        }
        let answered = lines(&request["response"], self.now);
        let _ = self.store(first, &caller, stamp, &answered, request);
        let is_validated = lookup
            .found
            .is_some_and(|found| !found.entry.validators.is_empty());
        if is_validated {
            Outcome::Validated
        } else {
            Outcome::Forwarded
        }
    }

    fn store(
        &self,
        first: ogive_cache::Key,
        caller: &CallerKey<'_>,
        stamp: ogive_cache::ClockStamp,
        headers: &HeaderMap,
        request: &Value,
    ) -> Result<(), StoringRefusal> {
        let answer = Answer {
            status: request["status"].as_u64().unwrap() as u16,
            headers,
            bytes: 1,
            has_errors: false,
            exchange: Exchange {
                asked_at: self.now,
                answered_at: self.now,
            },
        };
        let write = Write {
            first,
            caller,
            stamp,
            storable: decide(answer, false, &self.policy)?,
            kind: EntryKind::Response,
            status: 200,
            headers: Box::default(),
            body: b"1",
            tags: Box::default(),
            took: Duration::ZERO,
            client: None,
        };
        self.cache.store(write, self.now)
    }
}

/// Headers as the suite writes them: a number is a date so many seconds from now, where the header is a date.
fn lines(list: &Value, now: Timestamp) -> HeaderMap {
    let list = list.as_array().unwrap().iter();
    let lines: Vec<_> = list
        .map(|line| {
            let value = match &line[1] {
                Value::Number(seconds) => {
                    let at = now.0 as i64 + seconds.as_i64().unwrap() * 1_000;
                    let at = std::time::UNIX_EPOCH + Duration::from_millis(at as u64);
                    httpdate::fmt_http_date(at)
                }
                value => value.as_str().unwrap().to_owned(),
            };
            (line[0].as_str().unwrap(), value)
        })
        .collect();
    headers(&lines)
}
