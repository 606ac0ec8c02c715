//! A campaign that was interrupted goes on where it stopped, and what does not belong to it is refused.

use ogive_bench::{
    campaign,
    record::{self, Run, Verdict},
};

use crate::helpers::prepared;

const LOAD: &str = "shape = { kind = \"rate\", rate = 100, duration = \"1s\" }\nsettle = \"10s\"";

/// What tells runs apart; numbers lose their last digit on the way through a file.
fn told(runs: &[Run]) -> Vec<(String, u32, String, u64, bool)> {
    let run = |run: &Run| {
        let answered = run.load.as_ref().map_or(0, |load| load.answered);
        let has_start = run.ready_ms.is_some();
        (
            run.gateway.clone(),
            run.round,
            run.started.clone(),
            answered,
            has_start,
        )
    };
    runs.iter().map(run).collect()
}

#[test]
fn an_interrupted_campaign_goes_on_where_it_stopped() {
    let (lab, mut order, equipment) = prepared("continued", &["honest", "reorders"], LOAD);
    order.choice.rounds = 2;
    order.choice.keep = true;
    let quiet = || Box::new(|_: &str| {});
    let (first, runs) = campaign::run(&lab, &order, &equipment, quiet()).unwrap();
    // Two checks, then two rounds of both; the second round of a gateway that keeps running has no start.
    let order_of: Vec<(&str, u32)> = runs.iter().map(|r| (r.gateway.as_str(), r.round)).collect();
    assert_eq!(
        order_of,
        [
            ("honest", 0),
            ("reorders", 0),
            ("honest", 1),
            ("reorders", 1),
            ("honest", 2),
            ("reorders", 2)
        ]
    );
    assert!(
        runs.iter().all(|run| run.verdict == Verdict::Ok),
        "{runs:?}"
    );

    // The last but one run is cut in its middle, as by a loss of power.
    let results = order.folder.join(record::RESULTS);
    let text = std::fs::read_to_string(&results).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let cut = format!("{}{}", lines[..4].concat(), &lines[4][..lines[4].len() / 2]);
    std::fs::write(&results, cut).unwrap();
    let (second, again) = campaign::run(&lab, &order, &equipment, quiet()).unwrap();
    assert_eq!(second.started, first.started);
    assert_eq!(second.resumed.len(), 1);
    assert_eq!(again.len(), 6);
    assert_eq!(told(&again[..4]), told(&runs[..4]), "measured before");
    let (_, read) = record::read(&order.folder).unwrap();
    assert_eq!(told(&read), told(&again));

    // Nothing is left to do: nothing is run.
    let (_, third) = campaign::run(&lab, &order, &equipment, quiet()).unwrap();
    assert_eq!(told(&third), told(&read));

    order.choice.rounds = 3;
    let error = campaign::run(&lab, &order, &equipment, quiet()).unwrap_err();
    assert!(
        error.to_string().contains("another campaign (other rounds"),
        "{error}"
    );
}
