//! The files under `bench/` mean something and fit together.

use std::{collections::BTreeSet, path::Path};

use ogive_bench::{
    model::{Lab, Role},
    schedule::{Choice, Schedule},
};

pub(crate) fn lab() -> Lab {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench");
    Lab::read(&root).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn all_files_are_read_and_fit_together() {
    let lab = lab();
    assert!(lab.gateways.len() >= 15, "{}", lab.gateways.len());
    assert!(lab.scenarios.len() >= 25, "{}", lab.scenarios.len());
    for scenario in &lab.scenarios {
        let any = lab
            .gateways
            .iter()
            .any(|g| scenario.roles.iter().any(|role| g.can(*role)));
        assert!(any, "nobody can take part in {}", scenario.name);
        assert!(
            !scenario.caveats.is_empty(),
            "{} claims to have no caveats",
            scenario.name
        );
    }
    for gateway in &lab.gateways {
        let mut names = BTreeSet::new();
        for file in gateway.spec.start.files.iter().map(Path::new) {
            let path = gateway.folder.join(file);
            assert!(path.is_file(), "{} is missing", path.display());
            assert!(names.insert(file.file_name()), "{} twice", path.display());
        }
    }
    for gateway in lab.gateways.iter().filter(|g| g.can(Role::Federation)) {
        assert!(
            lab.features.gateways.contains(&gateway.name)
                || ["hive-gateway-bun", "yoga", "mesh"].contains(&gateway.name.as_str())
        );
    }
}

#[test]
fn every_published_row_has_a_scenario_or_a_reason() {
    let lab = lab();
    let covered: BTreeSet<&str> = lab
        .scenarios
        .iter()
        .flat_map(|s| s.seeds.iter().map(String::as_str))
        .collect();
    let map =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/bench.md"))
            .unwrap();
    for row in [
        "000-1", "000-2", "000-3", "000-4", "000-5", "000-6", "001-1", "001-2", "001-3", "001-4",
        "002-1", "003-1", "003-2", "003-3", "003-4", "003-5", "003-6", "003-7", "004-1", "004-2",
        "004-3", "004-4",
    ] {
        let line = map
            .lines()
            .find(|line| line.starts_with(&format!("| {row} |")));
        let line = line.unwrap_or_else(|| panic!("docs/bench.md has no line for {row}"));
        assert!(
            covered.contains(row) || line.contains("no scenario:"),
            "{row} has neither a scenario nor a reason"
        );
    }
}

#[test]
fn quick_fits_into_five_minutes_with_two_gateways() {
    let lab = lab();
    let choice = Choice {
        gateways: vec!["ogive".into(), "apollo-gateway".into()],
        rounds: 1,
        quick: true,
        ..Choice::default()
    };
    let schedule = Schedule::new(&lab, &choice, &|_| true).unwrap();
    assert!(
        schedule.scenarios.len() >= 6,
        "{}",
        schedule.scenarios.len()
    );
    let seconds = schedule.estimate.as_secs();
    assert!(seconds < 240, "{seconds} s");
}
