//! Budgets, caps and the committed selection.

use std::{path::Path, time::Duration};

use ogive_bench::{
    Error,
    model::{Role, Selection},
    schedule::{Choice, LEAST, Schedule},
};

use crate::files::lab;

fn minutes(n: u64) -> Duration {
    Duration::from_secs(n * 60)
}

#[test]
fn a_budget_is_met_by_one_cap_and_refused_where_it_cannot_be() {
    let lab = lab();
    let choice = |budget| Choice {
        gateways: vec!["ogive".into(), "hive-router".into()],
        rounds: 3,
        budget: Some(budget),
        ..Choice::default()
    };
    let all = |_: &_| true;
    let long = Schedule::new(&lab, &choice(minutes(60)), &all).unwrap();
    let short = Schedule::new(&lab, &choice(minutes(35)), &all).unwrap();
    for (schedule, budget) in [(&long, 60), (&short, 35)] {
        assert!(
            schedule.estimate <= minutes(budget),
            "{:?}",
            schedule.estimate
        );
        assert!(
            schedule.estimate >= minutes(budget).mul_f64(0.9),
            "{:?}",
            schedule.estimate
        );
        assert!(schedule.cap.unwrap() >= LEAST);
        assert_eq!(
            schedule.pairs.len(),
            long.pairs.len(),
            "nothing is left out"
        );
    }
    assert!(long.cap > short.cap);
    for (scenario, shortened) in &short.scenarios {
        let measured = scenario.load.shape.duration();
        assert!(
            measured >= LEAST || shortened.is_none(),
            "{}: {measured:?}",
            scenario.name
        );
        assert!(measured >= scenario.load.least.0, "{}", scenario.name);
    }
    let soak = short
        .scenarios
        .iter()
        .find(|(s, _)| s.name == "memory-soak")
        .unwrap();
    let words = soak.1.as_deref().unwrap();
    assert!(words.starts_with("shortened from 3600s to "), "{words}");

    let error = Schedule::new(&lab, &choice(minutes(10)), &all).unwrap_err();
    assert!(matches!(error, Error::Budget { .. }), "{error}");
    assert!(error.to_string().contains("raise --budget"), "{error}");
    // Enough time: everything as it is written.
    let whole = Schedule::new(&lab, &choice(minutes(60 * 24)), &all).unwrap();
    assert!(whole.cap.is_none() && whole.scenarios.iter().all(|(_, words)| words.is_none()));
}

#[test]
fn the_committed_selection_has_the_core_in_everything_and_all_in_what_was_published() {
    let lab = lab();
    let selection = Selection::read(&lab.root.join("full.toml"), &lab).unwrap();
    let core = [
        "ogive",
        "hive-router",
        "hive-gateway",
        "apollo-gateway",
        "yoga",
        "mercurius",
        "nginx",
    ];
    for scenario in &lab.scenarios {
        let published = !scenario.seeds.is_empty();
        let mut n_left_out = 0;
        for gateway in lab
            .gateways
            .iter()
            .filter(|g| scenario.roles.iter().any(|r| g.can(*r)))
        {
            let rounds = selection.rounds(&gateway.name, &scenario.name, published);
            let is_core = core.contains(&gateway.name.as_str()) || !gateway.can(Role::Federation);
            assert!(
                rounds > 0 || !is_core,
                "{} in {}",
                gateway.name,
                scenario.name
            );
            n_left_out += u32::from(rounds == 0 && published);
        }
        // Four repeat others on a machine with one CPU for the gateway; the file says so.
        let repeats = scenario.name.starts_with("constant-vus-300")
            || ["constant-vus-500-delay", "ramping-vus-2000"].contains(&scenario.name.as_str());
        assert!(
            n_left_out == 0 || repeats,
            "{}: {n_left_out}",
            scenario.name
        );
    }
    let wrong = Path::new(env!("CARGO_TARGET_TMPDIR")).join("wrong.toml");
    std::fs::write(&wrong, "[[tier]]\ngateways = [\"nobody\"]\nrounds = 1\n").unwrap();
    let error = Selection::read(&wrong, &lab).unwrap_err();
    assert!(error.to_string().contains("no gateway `nobody`"), "{error}");
}
