//! What may be done with answers, compared with the npm package http-cache-semantics. `oracle/cache/record.mjs` makes the
//! answers and records its verdicts.

use ogive_cache::{
    Answer, Exchange, Storable, StoringPolicy, StoringRefusal, Timestamp, Use, decide,
};
use ogive_testbase::{left_out, needs::ORACLE_IS_OFF};
use serde_json::Value;

use crate::made::{file, headers, record};

/// Why we differ from the package about some answers.
struct Difference {
    of: Trait,
    #[expect(dead_code, reason = "for readers")]
    why: &'static str,
}

/// Which answers a difference is about.
enum Trait {
    VaryStar,
    NotOk,
    /// The answer has a header.
    Header(&'static str),
    /// `cache-control` contains a directive.
    Directive(&'static str),
    /// The request has a header.
    Asked(&'static str),
}

use Trait::{Asked, Directive, Header, NotOk, VaryStar};

const fn row(of: Trait, why: &'static str) -> Difference {
    Difference { of, why }
}

/// Where we keep less than the package, and why. The first row that applies explains a difference.
const STRICTER: &[Difference] = &[
    row(
        VaryStar,
        "RFC 9111, section 4.1: an answer with `Vary: *` is for no other request",
    ),
    row(
        NotOk,
        "only 200 is kept, because an answer with another status is a failure to a gateway",
    ),
    row(
        Header("set-cookie"),
        "an answer that sets a cookie is for one client, `public` or not",
    ),
    row(
        Header("date"),
        "RFC 9111, section 4.2.3: the age is at least the time since `Date`",
    ),
    row(
        Directive("s-maxage"),
        "RFC 9111, section 5.2.2.10: it forbids stale use",
    ),
    row(
        Directive("proxy-revalidate"),
        "RFC 9111, section 5.2.2.8: it forbids stale use",
    ),
    row(
        Directive("must-revalidate"),
        "RFC 5861 and RFC 9111, section 5.2.2.2: it forbids stale use",
    ),
    row(
        Directive("no-cache"),
        "RFC 9111, section 5.2.2.4: it forbids use without validation",
    ),
    row(
        Directive("immutable"),
        "RFC 9110, section 9.3.3: an answer to a POST needs an explicit lifetime",
    ),
];

/// Where we keep more than the package, and why.
const LESS_STRICT: &[Difference] = &[
    row(
        Directive("must-revalidate"),
        "RFC 9111, section 5.2.2.2: it says nothing of a fresh answer",
    ),
    row(
        Directive("proxy-revalidate"),
        "RFC 9111, section 5.2.2.8: it says nothing of a fresh answer",
    ),
    row(
        Asked("authorization"),
        "RFC 9111, section 3.5: kept for the credentials of its request only",
    ),
];

struct Answered {
    status: u16,
    line: Value,
}

impl Answered {
    fn is(&self, of: &Trait) -> bool {
        let headers = &self.line["headers"];
        match of {
            VaryStar => headers["vary"] == "*",
            NotOk => self.status != 200,
            Header(name) => !headers[*name].is_null(),
            Directive(directive) => {
                let text = headers["cache-control"].as_str();
                text.is_some_and(|text| text.contains(directive))
            }
            Asked(name) => !self.line["request"][*name].is_null(),
        }
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
    let Some(made) = record("answers", "http-cache-semantics") else {
        return left_out(ORACLE_IS_OFF);
    };
    judge_all(&made, 10_000);
}

/// Judges all answers; gives how often both would use one. Fails on differences that no row explains.
fn judge_all(lines: &str, count: usize) -> usize {
    assert_eq!(lines.lines().count(), count);
    let (mut agreed, mut wrong) = (0, Vec::new());
    for line in lines.lines() {
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
            } else if !rows.iter().any(|row| answered.is(&row.of)) {
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
