//! Runs that are committed can be read, reported and compared, and tell nothing of the machine but what it is.

use std::{
    fs,
    path::{Path, PathBuf},
};

use ogive_bench::{
    record::{self, Verdict},
    report::{self, Summary, banner, compare},
};

/// Most bytes of one committed run.
const BYTES_MAX: u64 = 20 << 20;

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/run")
}

fn summary(folder: &Path) -> Summary {
    let (campaign, runs) = record::read(folder).unwrap();
    Summary::new(campaign, &runs)
}

#[test]
fn a_small_run_becomes_a_report_a_chart_and_a_section() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("committed");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    for name in [record::CAMPAIGN, record::RESULTS] {
        fs::copy(fixture().join(name), folder.join(name)).unwrap();
    }
    let summary = report::write(&folder, None).unwrap();
    let text = fs::read_to_string(folder.join("report.md")).unwrap();
    assert!(
        text.contains("open loop (shortened from 60s to 4s)"),
        "{text}"
    );
    assert!(
        text.contains("~~Cosmo Router~~") && text.contains("**failed**"),
        "{text}"
    );
    assert!(folder.join("report.html").is_file() && folder.join("charts").is_dir());

    let query = summary
        .scenarios
        .iter()
        .find(|s| s.name == "query")
        .unwrap();
    let chart = banner::chart(&summary, query);
    assert!(chart.starts_with("<svg") && chart.ends_with("</svg>\n") && !chart.contains("NaN"));
    assert!(chart.contains("prefers-color-scheme:dark") && chart.contains(">Cosmo Router<"));
    assert!(chart.matches("<text").count() == chart.matches("</text>").count());

    let section = banner::section(&summary, "a.svg", "bench/runs/x");
    assert!(
        section.contains("![") && section.contains("](a.svg)"),
        "{section}"
    );
    assert!(
        section.contains("| Query, a token for each request |"),
        "{section}"
    );
    // The floor is nobody to win or lose against.
    assert!(!section.contains("nginx"), "{section}");
    let page = format!("before\n{}\nold\n{}\nafter\n", banner::START, banner::END);
    let page = banner::splice(&page, &section).unwrap();
    assert!(page.starts_with("before\n") && page.ends_with("\nafter\n") && !page.contains("old"));
    assert_eq!(
        banner::splice(&page, &section).as_deref(),
        Some(page.as_str())
    );
    assert_eq!(banner::splice("no marks", &section), None);
}

#[test]
fn a_lost_scenario_is_shown_as_lost() {
    let (campaign, mut runs) = record::read(&fixture()).unwrap();
    for run in runs
        .iter_mut()
        .filter(|run| run.gateway == "ogive" && run.round > 0)
    {
        match run.scenario.as_str() {
            "query" => run.usage.as_mut().unwrap().cpu_seconds *= 1e3,
            "many-plans" => run.verdict = Verdict::Disqualified("a wrong answer".into()),
            _ => {}
        }
    }
    let section = banner::section(&Summary::new(campaign, &runs), "a.svg", "x");
    let line = |name: &str| {
        section
            .lines()
            .find(|l| l.contains(name))
            .unwrap()
            .to_owned()
    };
    assert!(line("Query").ends_with("| **3 of 3** |"), "{section}");
    assert!(line("Many plans").ends_with("| **out** |"), "{section}");
}

#[test]
fn a_run_compared_with_itself_has_not_changed() {
    let summary = summary(&fixture());
    let comparison = compare::compare(&summary, &summary);
    assert!(comparison.remarks.is_empty() && !comparison.changes.is_empty());
    let text = compare::render(&comparison);
    assert!(
        !text.contains("better") && !text.contains("worse"),
        "{text}"
    );
}

#[test]
fn committed_runs_are_small_complete_and_portable() {
    let runs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/runs");
    let folders = fs::read_dir(&runs).into_iter().flatten().flatten();
    for folder in folders
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
    {
        let summary = summary(&folder);
        assert!(!summary.scenarios.is_empty(), "{}", folder.display());
        let comparison = compare::compare(&summary, &summary);
        assert!(comparison.remarks.is_empty(), "{:?}", comparison.remarks);
        let mut bytes = 0;
        for name in [
            record::CAMPAIGN,
            record::RESULTS,
            "report.md",
            "report.html",
        ] {
            let text = fs::read_to_string(folder.join(name)).unwrap();
            bytes += text.len() as u64;
            for place in ["tmp", "root", "home", "work"].map(|name| format!("/{name}/")) {
                let at = text
                    .find(&place)
                    .map(|at| &text[at..(at + 60).min(text.len())]);
                assert_eq!(
                    at,
                    None,
                    "{name} of {} names a folder of one machine",
                    folder.display()
                );
            }
        }
        assert!(bytes < BYTES_MAX, "{bytes} bytes in {}", folder.display());
    }
}
