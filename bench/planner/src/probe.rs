//! The first plan of every operation, in a child process, so that a planner that stalls, panics or eats memory is
//! shown as such and stops neither the run nor the machine.
//!
//! The child plans the operations of a case in turn and prints a line for each. The parent waits for each line; a
//! child that takes too long is killed, and the next one starts behind the operation it was killed at.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    time::{Duration, Instant},
};

use crate::{
    cases::Case,
    planners::{Counts, Engine, Who},
};

/// Most resident memory of a child, in pages of 4 KiB: 3 GiB.
const PAGES_MAX: u64 = 3 << 18;

/// How often a child's memory is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// What came of each operation of a case.
pub type Outcomes = Vec<Result<Counts, String>>;

/// Plans every operation of a case once, each within `limit`.
pub fn probe(who: Who, index: usize, case: &Case, limit: Duration) -> Outcomes {
    let planner = Who::ALL.iter().position(|w| *w == who).unwrap_or(0);
    let mut outcomes = Outcomes::new();
    while outcomes.len() < case.operations.len() {
        let mut child = Command::new(std::env::current_exe().expect("a path of this program"))
            .arg("--child")
            .args([planner, index, outcomes.len()].map(|n| n.to_string()))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("this program starts again");
        let lines = lines(&mut child);
        let missing = loop {
            match next(&lines, &child, limit) {
                Ok(line) => outcomes.push(read(&line)),
                Err(why) => break why,
            }
            if outcomes.len() == case.operations.len() {
                break String::new();
            }
        };
        // It may have ended by itself.
        let _ = child.kill();
        let _ = child.wait();
        if outcomes.len() < case.operations.len() {
            outcomes.push(Err(missing));
        }
    }
    outcomes
}

/// The child's side.
pub fn child(who: Who, case: &Case, first: usize) {
    std::panic::set_hook(Box::new(|_| {}));
    let engines: Vec<_> = case
        .graphs
        .iter()
        .map(|sdl| Engine::new(who, sdl))
        .collect();
    let mut out = std::io::stdout();
    for (graph, text) in &case.operations[first..] {
        let line = match &engines[*graph] {
            Err(error) => format!("error supergraph {error}"),
            Ok(engine) => match engine.plan_caught(text) {
                Ok(counts) => format!("ok {} {}", counts.requests, counts.waves),
                Err(error) => format!("error {error}"),
            },
        };
        let line = line.replace(['\n', '\r'], " ");
        if writeln!(out, "{line}").and_then(|()| out.flush()).is_err() {
            return;
        }
    }
}

fn lines(child: &mut Child) -> Receiver<String> {
    let stdout = child.stdout.take().expect("piped above");
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

fn next(lines: &Receiver<String>, child: &Child, limit: Duration) -> Result<String, String> {
    let start = Instant::now();
    loop {
        match lines.recv_timeout(LOOK) {
            Ok(line) => return Ok(line),
            Err(RecvTimeoutError::Disconnected) => return Err("the process died".to_owned()),
            Err(RecvTimeoutError::Timeout) => {}
        }
        if pages(child) > PAGES_MAX {
            return Err("more than 3 GiB".to_owned());
        }
        if start.elapsed() > limit {
            return Err(format!("more than {} s", limit.as_secs()));
        }
    }
}

fn pages(child: &Child) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{}/statm", child.id())).unwrap_or_default();
    let resident = text.split(' ').nth(1).and_then(|n| n.parse().ok());
    resident.unwrap_or(0)
}

fn read(line: &str) -> Result<Counts, String> {
    let mut words = line.split(' ');
    let ok = words.next() == Some("ok");
    let mut number = || words.next().and_then(|n| n.parse().ok());
    match (ok, ok.then(|| (number(), number()))) {
        (true, Some((Some(requests), Some(waves)))) => Ok(Counts { requests, waves }),
        _ => Err(line.trim_start_matches("error ").to_owned()),
    }
}
