//! Resource accounting against a process of known use.

use std::{
    collections::BTreeMap,
    io::Write as _,
    net::TcpListener,
    time::{Duration, Instant},
};

use ogive_bench::{
    process::{self, Process, Program},
    usage::{self, Sampler},
};

use crate::helpers::{BURN_AT, BURNT, role};

#[test]
fn cpu_and_memory_of_a_known_process_are_measured() {
    let folder = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let log = folder.join("burn.log");
    let cpus = process::cpus();
    let gate = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = gate.local_addr().unwrap().to_string();
    let mut burning = Process::start(&Program {
        // A shell in between: the tree counts, not the first process.
        command: vec![
            "sh".into(),
            "-c".into(),
            format!("{}; true", quoted(&role("burn"))),
        ],
        env: BTreeMap::from([(BURN_AT.to_owned(), at)]),
        folder,
        log: log.clone(),
        cpus: cpus[..1].to_vec(),
        memory: Some(1 << 30),
    })
    .unwrap();
    assert!(burning.memory_limit.is_some());
    let sampler = Sampler::start(burning.id(), Vec::new());
    // It begins when somebody looks.
    gate.accept().unwrap().0.write_all(b"!").unwrap();
    let start = Instant::now();
    while !std::fs::read_to_string(&log).unwrap().contains("burnt") {
        assert!(
            burning.ended().is_none() && start.elapsed() < Duration::from_secs(600),
            "{}",
            burning.last_words()
        );
        std::thread::yield_now();
    }
    let measured = sampler.finish();
    let usage = usage::tree(burning.id());
    assert!(
        (BURNT.0..BURNT.0 + 0.6).contains(&usage.cpu_seconds),
        "{usage:?}"
    );
    assert!(
        (measured.cpu_seconds - usage.cpu_seconds).abs() < 0.4,
        "{measured:?}"
    );
    // One CPU was allowed: no second can hold more than a second's worth of it.
    assert!(measured.cpu_max <= 1.15, "{}", measured.cpu_max);
    let most = BURNT.1 as u64;
    for bytes in [usage.rss, measured.rss_peak, usage::pss(burning.id())] {
        assert!((most..most + (32 << 20)).contains(&bytes), "{bytes}");
    }
    let id = burning.id();
    burning.stop();
    assert_eq!(usage::tree(id).rss, 0, "nothing of it is left");
}

fn quoted(command: &[String]) -> String {
    command
        .iter()
        .map(|part| format!("'{part}'"))
        .collect::<Vec<_>>()
        .join(" ")
}
