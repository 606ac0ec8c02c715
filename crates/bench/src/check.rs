//! The check before any load: right answers, forwarded headers, nothing shared between tokens.
//!
//! It runs against subgraphs that record what they are asked, which costs time and therefore is not done under load.

use std::time::Duration;

use crate::{
    Result,
    load::Kept,
    model::{Authorization, Role, Scenario},
    record::{Checked, Verdict},
    stage::{self, Plot, Stage},
    verify::{self, Difference, Rule},
};

/// Requests one after the other.
const ONE_BY_ONE: u64 = 3;
/// Requests at the same time, each with a token of its own.
const TOGETHER: u64 = 4;
/// Number of the first checking request; the load counts from lower numbers.
const FIRST: u64 = 900_000_000;

/// What came of a check.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Why the gateway is disqualified, if so.
    pub wrong: Option<String>,
    /// What readers must know.
    pub flags: Vec<String>,
    /// Bytes of a right answer.
    pub bytes: Option<usize>,
    /// Answers compared.
    pub n: u32,
}

/// Compares answers one by one and looks at what subgraphs saw.
pub fn check(plot: &Plot<'_>, stage: &Stage) -> Result<Report> {
    let mut report = answers(plot, stage, ONE_BY_ONE)?;
    let looks_at_headers = plot.record
        && plot.scenario.authorization == Authorization::Unique
        && plot.gateway.can(Role::Federation)
        && report.wrong.is_none();
    if looks_at_headers {
        report.flags.extend(headers(plot, stage)?);
    }
    Ok(report)
}

/// Compares answers of a gateway that is not under load.
pub fn answers(plot: &Plot<'_>, stage: &Stage, n: u64) -> Result<Report> {
    let maker = stage::request_maker(plot, stage.address)?;
    let patience = plot.scenario.load.timeout.0;
    let mut report = Report::default();
    for i in 0..n {
        let request = maker.make(FIRST + i);
        // No answer is a failure, not a wrong answer.
        let answer = stage.ask(&request.bytes, patience)?;
        report.n += 1;
        let kept = Kept {
            // A server that is asked by GET answers what the operation would.
            request: maker.body(FIRST + i),
            answer: answer.body,
            status: answer.status,
        };
        match judge(plot.scenario, stage, &kept)? {
            Err(Difference::Value(text)) => {
                report.wrong = Some(text);
                return Ok(report);
            }
            Err(Difference::Order(text)) if i == 0 => report.flags.push(text),
            _ => {}
        }
        report.bytes = Some(answer.length);
    }
    Ok(report)
}

/// Compares one kept answer.
pub fn judge(
    scenario: &Scenario,
    stage: &Stage,
    kept: &Kept,
) -> Result<std::result::Result<(), Difference>> {
    if kept.status != 200 {
        return Ok(Err(Difference::Value(format!("status {}", kept.status))));
    }
    let rule = if scenario.expect.faults.is_empty() {
        Rule::Same
    } else {
        Rule::DataAndErrors
    };
    let expected = stage.expected(&kept.request)?;
    Ok(verify::compare(&expected, &kept.answer, rule))
}

/// Compares what was kept of a load.
pub fn judge_all(
    plot: &Plot<'_>,
    stage: &Stage,
    kept: &[Kept],
    checked: &mut Checked,
    verdict: &mut Verdict,
) -> Result<()> {
    let mut right: Option<&Kept> = None;
    for item in kept {
        if item.status != 200 || right == Some(item) {
            // No answer is counted as a failure already and is no wrong answer; the same answer to the same request
            // needs no second look.
            continue;
        }
        if let Err(Difference::Value(text)) = judge(plot.scenario, stage, item)? {
            checked.wrong += 1;
            if *verdict == Verdict::Ok {
                *verdict = Verdict::Disqualified(format!("a wrong answer under load: {text}"));
            }
        } else {
            right = Some(item);
        }
    }
    Ok(())
}

/// What a gateway does with the headers of requests that come at the same time. If they make more subgraph requests than
/// the server keeps, fewer are sent.
fn headers(plot: &Plot<'_>, stage: &Stage) -> Result<Vec<String>> {
    let mut together = TOGETHER;
    loop {
        let (flags, all_kept) = headers_of(plot, stage, together)?;
        if all_kept {
            return Ok(flags);
        }
        if together <= 2 {
            return Ok(vec![
                "headers not checked: too many subgraph requests to keep them all".to_owned(),
            ]);
        }
        together /= 2;
    }
}

/// Remarks about so many requests at the same time, and whether the subgraph server has kept all it was asked.
fn headers_of(plot: &Plot<'_>, stage: &Stage, together: u64) -> Result<(Vec<String>, bool)> {
    let maker = stage::request_maker(plot, stage.address)?;
    let patience = plot.scenario.load.timeout.0.max(Duration::from_secs(5));
    stage.reset_counts()?;
    // At the same time, so that a gateway that shares requests in flight has something to share.
    let asked = std::thread::scope(|scope| {
        let asking: Vec<_> = (0..together)
            .map(|i| {
                let request = maker.make(FIRST + 100 + i);
                // What gives up has asked subgraphs nothing, or not all.
                scope.spawn(move || {
                    let answer = stage.ask(&request.bytes, patience);
                    answer.is_ok_and(|answer| answer.status == 200)
                })
            })
            .collect();
        asking
            .into_iter()
            .filter_map(|thread| thread.join().ok())
            .filter(|ok| *ok)
            .count()
    });
    if asked < together as usize {
        let flag = format!(
            "headers not checked: of {together} requests at the same time {asked} were answered within {patience:?}"
        );
        return Ok((vec![flag], true));
    }
    let seen = stage.recorded_headers()?;
    let all_kept = stage.counts()?.requests <= seen.len() as u64;
    let token = |headers: &std::collections::BTreeMap<String, String>| {
        headers.get("authorization").cloned()
    };
    let without = seen
        .iter()
        .filter(|headers| token(headers).is_none())
        .count();
    let mut flags = Vec::new();
    if without > 0 {
        flags.push(format!(
            "drops the `authorization` header: {without} of {} subgraph requests came without",
            seen.len()
        ));
        return Ok((flags, true));
    }
    let missing = (0..together)
        .filter_map(|i| maker.token(FIRST + 100 + i))
        .filter(|wanted| {
            !seen
                .iter()
                .any(|headers| token(headers).as_ref() == Some(wanted))
        })
        .count();
    if missing > 0 {
        flags.push(format!(
            "shares subgraph answers between requests with different `authorization`: {missing} of {together} tokens reached no subgraph"
        ));
    }
    Ok((flags, all_kept))
}
