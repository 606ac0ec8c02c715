//! What may be done with answers, compared with the npm package http-cache-semantics. `oracle/cache/record.mjs` makes the
//! answers and records its verdicts.

use std::process::Command;

use ogive_cache::{
    Answer, Exchange, Storable, StoringPolicy, StoringRefusal, Timestamp, Use, decide,
};
use ogive_testbase::{left_out, needs::ORACLE_IS_OFF, oracle};
use serde_json::Value;

use crate::made::{file, headers};

/// Why we differ, and of which answers.
type Row = (&'static str, fn(&Answered) -> bool);

/// Where we keep less than the package, and why. The first row that applies explains a difference.
const STRICTER: &[Row] = &[
    (
        "RFC 9111, section 4.1: what `Vary: *` is in is for no other request",
        |a| a.line["headers"]["vary"] == "*",
    ),
    (
        "only 200 is kept, because an answer with another status is a failure to a gateway",
        |a| a.status != 200,
    ),
    (
        "an answer that sets a cookie is one client's, `public` or not",
        |a| a.has("set-cookie"),
    ),
    (
        "RFC 9111, section 4.2.3: the age is at least the time since `Date`",
        |a| a.has("date"),
    ),
    (
        "RFC 9111, section 5.2.2.10: what `s-maxage` made fresh is not used stale",
        |a| a.says("s-maxage"),
    ),
    (
        "RFC 9111, section 5.2.2.8: what `proxy-revalidate` is in is not used stale",
        |a| a.says("proxy-revalidate"),
    ),
    (
        "RFC 5861 and RFC 9111, section 5.2.2.2: `must-revalidate` forbids stale use",
        |a| a.says("must-revalidate"),
    ),
    (
        "RFC 9111, section 5.2.2.4: what `no-cache` is in is not used without validation",
        |a| a.says("no-cache"),
    ),
    (
        "RFC 9110, section 9.3.3: an answer to a POST is kept by an explicit lifetime, `immutable` is none",
        |a| a.says("immutable"),
    ),
];

/// Where we keep more than the package, and why.
const LESS_STRICT: &[Row] = &[
    (
        "RFC 9111, section 5.2.2.2: `must-revalidate` says nothing of a fresh answer",
        |a| a.says("must-revalidate"),
    ),
    (
        "RFC 9111, section 5.2.2.8: `proxy-revalidate` says nothing of a fresh answer",
        |a| a.says("proxy-revalidate"),
    ),
    (
        "RFC 9111, section 3.5: kept for the credentials of its request alone",
        |a| a.asked_with("authorization"),
    ),
];

struct Answered {
    status: u16,
    line: Value,
}

impl Answered {
    fn has(&self, name: &str) -> bool {
        !self.line["headers"][name].is_null()
    }
    fn says(&self, directive: &str) -> bool {
        let text = self.line["headers"]["cache-control"].as_str();
        text.is_some_and(|text| text.contains(directive))
    }
    fn asked_with(&self, name: &str) -> bool {
        !self.line["request"][name].is_null()
    }
}

#[test]
fn answers_are_used_as_the_reference_uses_them() {
    let recorded = std::fs::read_to_string(file("answers.jsonl")).unwrap();
    let kept = judge_all(&recorded, 400);
    assert!(kept > 300, "{kept} uses of kept answers say too little");
}

#[test]
fn ten_thousand_more_answers_are_used_as_the_reference_uses_them() {
    let Some(folder) = oracle("cache/node_modules/http-cache-semantics") else {
        return left_out(ORACLE_IS_OFF);
    };
    let script = folder.join("cache/record.mjs");
    let made = Command::new("node")
        .arg(script)
        .args(["answers", "2", "10000"])
        .output();
    let made = String::from_utf8(made.unwrap().stdout).unwrap();
    judge_all(&made, 10_000);
}

/// Judges all answers; gives how often both would use one. Fails on differences that no row explains.
fn judge_all(record: &str, count: usize) -> usize {
    assert_eq!(record.lines().count(), count);
    let (mut agreed, mut wrong) = (0, Vec::new());
    for line in record.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let status = line["status"].as_u64().unwrap() as u16;
        let answered = Answered { status, line };
        let now = Timestamp(answered.line["now"].as_u64().unwrap());
        let ours = judge(&answered, now);
        for pair in answered.line["uses"].as_array().unwrap() {
            let later = Timestamp(now.0 + pair[0].as_u64().unwrap() * 1_000);
            let ours = match &ours {
                Ok(storable) => storable.lifetime.usability(later),
                Err(_) => Use::Never,
            };
            let (ours, theirs) = (rank(name(ours)), rank(pair[1].as_str().unwrap()));
            let rows = if ours < theirs { STRICTER } else { LESS_STRICT };
            if ours == theirs {
                agreed += usize::from(ours > 0);
            } else if !rows.iter().any(|(_, applies)| applies(&answered)) {
                wrong.push(format!("{ours} {pair} {}", answered.line));
            }
        }
    }
    let shown: Vec<_> = wrong.iter().take(5).collect();
    assert!(wrong.is_empty(), "{} differ: {shown:#?}", wrong.len());
    agreed
}

fn judge(answered: &Answered, now: Timestamp) -> Result<Storable, StoringRefusal> {
    let lines = answered.line["headers"].as_object().unwrap().iter();
    let lines: Vec<_> = lines.map(|(n, v)| (n, v.as_str().unwrap())).collect();
    let exchange = Exchange {
        asked_at: now,
        answered_at: now,
    };
    let answer = Answer {
        status: answered.status,
        headers: &headers(&lines),
        bytes: 0,
        has_errors: false,
        exchange,
    };
    decide(answer, false, &StoringPolicy::default())
}

fn name(usability: Use) -> &'static str {
    match usability {
        Use::Fresh => "fresh",
        Use::WhileRevalidating => "while_revalidating",
        Use::IfError => "if_error",
        Use::Never => "never",
    }
}

/// How much a verdict allows.
fn rank(verdict: &str) -> usize {
    let verdicts = ["never", "if_error", "while_revalidating", "fresh"];
    verdicts.iter().position(|known| *known == verdict).unwrap()
}
