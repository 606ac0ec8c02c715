//! Tables of long runs in `docs/load.md`. `OGIVE_LOAD_MARKDOWN` names the page; without it nothing is written.

use std::{
    fs,
    sync::{Mutex, PoisonError},
    time::Duration,
};

/// Tests run at the same time; the page is changed by one after the other.
static PAGE: Mutex<()> = Mutex::new(());

/// Replaces what is between `<!-- NAME: begin -->` and `<!-- NAME: end -->`.
pub(crate) fn put(name: &str, table: &str) {
    let Ok(page) = std::env::var("OGIVE_LOAD_MARKDOWN") else {
        return;
    };
    let _alone = PAGE.lock().unwrap_or_else(PoisonError::into_inner);
    let (begin, end) = (
        format!("<!-- {name}: begin -->\n"),
        format!("<!-- {name}: end -->\n"),
    );
    let text = fs::read_to_string(&page).unwrap();
    let (before, rest) = text.split_once(&begin).expect("the page has the marker");
    let (_, after) = rest.split_once(&end).expect("the page has the marker");
    fs::write(&page, format!("{before}{begin}{table}{end}{after}")).unwrap();
}

/// A number that makes a test longer than it is in continuous integration.
pub(crate) fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    let number = text.parse();
    Some(number.unwrap_or_else(|_| panic!("{name} is no number")))
}

/// Lets time pass between two steps of a load. Nothing is ever waited for with this.
pub(crate) fn pace(duration: Duration) {
    std::thread::sleep(duration);
}

/// Resident memory in KiB, and open files; `None` without `/proc`.
pub(crate) fn look(process: u32) -> Option<(f64, usize)> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find(|l| l.starts_with("VmRSS:"))?;
    let resident = line.split_whitespace().nth(1)?.parse().ok()?;
    let files = fs::read_dir(format!("/proc/{process}/fd")).ok()?.count();
    Some((resident, files))
}
