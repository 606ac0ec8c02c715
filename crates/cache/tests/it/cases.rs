//! Cases of storing, in a file: the status and the headers of an answer, and what becomes of it.
//!
//! A case is a block of lines in `storing.txt`: `#` and a name, the status with what is known besides, headers, and `=> `
//! with the outcome. `BLESS=1` writes the outcomes.

use std::time::Duration;

use ogive_cache::{
    Answer, Exchange, LifetimePolicy, Storable, StoringPolicy, StoringRefusal, Vary, decide,
    tag::{cache_groups, invalidated_groups},
};
use ogive_testbase::assert_recorded;

use crate::made::{NOW, file, headers};

#[test]
fn answers_are_stored_as_the_cases_say() {
    let path = file("storing.txt");
    let text = std::fs::read_to_string(&path).unwrap();
    let cases: Vec<String> = text.trim_end().split("\n\n").map(judge).collect();
    assert!(cases.len() >= 30);
    assert_recorded(&path, &(cases.join("\n\n") + "\n"));
}

fn judge(case: &str) -> String {
    let mut out = String::new();
    let given = case.lines().take_while(|line| !line.starts_with("=> "));
    given.clone().for_each(|line| {
        out.push_str(line);
        out.push('\n');
    });
    let given: Vec<&str> = given.filter(|line| !line.starts_with('#')).collect();
    let words: Vec<&str> = given[0].split(' ').collect();
    let lines: Vec<_> = given[1..]
        .iter()
        .map(|line| line.split_once(": ").unwrap())
        .collect();
    let headers = headers(&lines);
    let answer = Answer {
        status: words[0].parse().unwrap(),
        headers: &headers,
        bytes: if words.contains(&"big") { 2 << 20 } else { 2 },
        has_errors: words.contains(&"errors"),
        exchange: Exchange {
            asked_at: NOW.minus(Duration::from_secs(2)),
            answered_at: NOW,
        },
    };
    let policy = StoringPolicy {
        lifetime: LifetimePolicy {
            ttl: words.contains(&"ttl").then_some(Duration::from_secs(30)),
            stale_if_error: Duration::from_secs(if words.contains(&"excused") { 600 } else { 0 }),
            ..LifetimePolicy::default()
        },
        shared_with_credentials: words.contains(&"shared"),
        revalidates: words.contains(&"revalidates"),
        ..StoringPolicy::default()
    };
    let outcome = decide(answer, words.contains(&"id"), &policy);
    out + "=> " + &shown(outcome) + &groups(&headers)
}

fn shown(outcome: Result<Storable, StoringRefusal>) -> String {
    let storable = match outcome {
        Ok(storable) => storable,
        Err(why) => return format!("not stored: {}", why.name()),
    };
    let lifetime = storable.lifetime;
    let mut out = format!(
        "fresh {} s, now {} s old",
        lifetime.fresh.as_secs(),
        lifetime.age(NOW).as_secs()
    );
    for (name, duration) in [
        ("while revalidating", lifetime.stale_while_revalidate),
        ("if error", lifetime.stale_if_error),
    ] {
        if !duration.is_zero() {
            out += &format!(", {name} {} s", duration.as_secs());
        }
    }
    out += &match &storable.vary.vary {
        Vary::AllHeaders => "; by all headers".to_owned(),
        Vary::Named(names) => format!("; by {names:?}"),
    };
    let scope = storable.vary.scope;
    out += if scope.by_credentials {
        ", by credentials"
    } else {
        ""
    };
    out += if scope.by_private_id {
        ", by private id"
    } else {
        ""
    };
    out += if storable.validators.is_empty() {
        ""
    } else {
        "; can be validated"
    };
    out
}

fn groups(headers: &http::HeaderMap) -> String {
    let mut out = String::new();
    for (name, groups) in [
        ("groups", cache_groups(headers)),
        ("invalidates", invalidated_groups(headers)),
    ] {
        if !groups.is_empty() {
            out += &format!("; {name} {groups:?}");
        }
    }
    out
}
