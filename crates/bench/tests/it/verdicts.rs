//! What the lab thinks of gateways that misbehave on purpose.

use ogive_bench::{
    record::{self, Run, Verdict},
    report::{self, html, markdown},
};

use crate::helpers::{STALL, campaign};

const SHORT: &str = "shape = { kind = \"rate\", rate = 100, duration = \"1s\" }\nsettle = \"10s\"";

fn of<'a>(runs: &'a [Run], gateway: &str, round: u32) -> Option<&'a Run> {
    runs.iter()
        .find(|run| run.gateway == gateway && run.round == round)
}

#[test]
fn verdicts_fit_behaviours_and_reach_the_report() {
    let behaviours = [
        "honest",
        "wrong",
        "wrong-under-load",
        "drops-header",
        "reorders",
        "crashes",
    ];
    let (_, runs, folder) = campaign("verdicts", &behaviours, SHORT);

    // What is kept says how each was started, but not where on this machine.
    let (last, exe) = (["{lab}/graphs/single/monolith.graphql"], "{binary}");
    for run in runs.iter().filter(|run| !run.command.is_empty()) {
        assert!(run.command.ends_with(&last.map(str::to_owned)), "{run:?}");
        assert!(run.command.iter().any(|part| part == exe), "{run:?}");
    }
    assert!(of(&runs, "honest", 1).is_some_and(|run| !run.command.is_empty()));
    for name in [record::CAMPAIGN, record::RESULTS] {
        let text = std::fs::read_to_string(folder.join(name)).unwrap();
        for place in [env!("CARGO_TARGET_TMPDIR"), env!("CARGO_MANIFEST_DIR")] {
            assert!(!text.contains(place), "{name} names {place}");
        }
    }

    let honest = of(&runs, "honest", 1).unwrap();
    assert_eq!(honest.verdict, Verdict::Ok);
    for round in [0, 1] {
        assert_eq!(
            of(&runs, "honest", round).unwrap().flags,
            Vec::<String>::new()
        );
    }
    let load = honest.load.as_ref().unwrap();
    assert_eq!(
        (load.answered, load.failed, load.odd),
        (100, 0, 0),
        "{:?}",
        load.failures
    );
    let checked = &honest.checked;
    assert!(
        checked.before > 0 && checked.during > 0 && checked.after > 0,
        "{checked:?}"
    );
    let per_request = honest.subgraphs.unwrap().per_request;
    assert!((per_request - 1.0).abs() < 1e-9, "{per_request}");
    assert!(honest.usage.as_ref().unwrap().pss_peak > 1 << 20);

    let check = of(&runs, "wrong", 0).unwrap();
    let reason = check.verdict.reason().unwrap_or_default();
    assert!(
        reason.contains("data.user.posts[0].title is \"Title 0f"),
        "{reason}"
    );
    assert!(matches!(check.verdict, Verdict::Disqualified(_)));
    assert!(
        of(&runs, "wrong", 1).is_none(),
        "a wrong gateway is not put under load"
    );

    let late = of(&runs, "wrong-under-load", 1).unwrap();
    assert!(
        matches!(&late.verdict, Verdict::Disqualified(reason) if reason.contains("under load")),
        "{:?}",
        late.verdict
    );
    assert!(late.checked.wrong > 0);

    let dropped = of(&runs, "drops-header", 0).unwrap();
    assert!(
        dropped
            .flags
            .iter()
            .any(|flag| flag.contains("drops the `authorization` header: 4 of 4")),
        "{:?}",
        dropped.flags
    );
    assert_eq!(dropped.verdict, Verdict::Ok);

    let order = of(&runs, "reorders", 0).unwrap();
    assert_eq!(
        (&order.verdict, order.flags.len()),
        (&Verdict::Ok, 1),
        "{:?}",
        order.flags
    );
    assert!(
        order.flags[0].contains("data.user are in another order"),
        "{:?}",
        order.flags
    );

    let crashed = of(&runs, "crashes", 1).unwrap();
    assert!(
        matches!(&crashed.verdict, Verdict::Failed(reason) if reason.contains("exit status: 7")),
        "{:?}",
        crashed.verdict
    );

    // Everything is on disk, also when the last line was never finished.
    let results = folder.join(record::RESULTS);
    let mut text = std::fs::read_to_string(&results).unwrap();
    text.push_str("{\"scenario\":\"test\",\"gat");
    std::fs::write(&results, text).unwrap();
    let (_, read) = record::read(&folder).unwrap();
    let told = |runs: &[Run]| -> Vec<_> {
        let run = |run: &Run| {
            (
                run.gateway.clone(),
                run.round,
                run.verdict.clone(),
                run.checked.clone(),
            )
        };
        runs.iter().map(run).collect()
    };
    assert!(
        told(&read) == told(&runs),
        "what is read is not what was kept"
    );

    let summary = report::write(&folder, None).unwrap();
    let row = |gateway: &str| summary.row("test", gateway).unwrap();
    assert_eq!(row("honest").rounds, 1);
    assert!(row("wrong").metrics.is_empty() && row("wrong-under-load").metrics.is_empty());
    let text = markdown::render(&summary, None);
    assert!(
        text.contains("| ~~wrong~~ |")
            && text.contains("**wrong**: a wrong answer: data.user.posts[0].title"),
        "{text}"
    );
    let page = html::render(&summary, None);
    assert!(
        !page.contains("NaN") && !page.contains("inf"),
        "a number that is none"
    );
    assert!(page.contains("<tr class=\"out\"><th>wrong</th>"));
}

#[test]
fn a_stall_is_paid_for_by_everybody_who_would_have_asked() {
    let load = "shape = { kind = \"rate\", rate = 100, duration = \"3s\" }\nconnections_max = 1\nsettle = \"10s\"";
    let (_, runs, _) = campaign("stall", &["stalls"], load);
    let run = of(&runs, "stalls", 1).unwrap();
    assert_eq!(run.verdict, Verdict::Ok);
    let load = run.load.as_ref().unwrap();
    let stall = STALL.as_secs_f64() * 1e6;
    assert!(load.latency["max"] >= stall, "{:?}", load.latency);
    // One request waited for its answer, but 80 were due while it did: a quarter of all.
    let late: u64 = load
        .histogram
        .iter()
        .filter(|(micros, _)| *micros as f64 > stall / 4.0)
        .map(|(_, n)| n)
        .sum();
    assert!(late >= 50, "{late} of {}", load.answered);
    assert!(load.latency["p90"] > stall / 4.0, "{:?}", load.latency);
    assert!(
        load.service["p90"] < load.latency["p90"] / 2.0,
        "{:?} {:?}",
        load.service,
        load.latency
    );
}
