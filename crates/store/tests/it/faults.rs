//! Redis slow, full, away, restarted: nobody waits for it for longer than its timeout, and rates are kept all the same.

use std::time::{Duration, Instant};

use ogive_testbase::left_out;

use super::{
    MISSING, Process, options, passed, quota,
    server::{Server, free_port},
    wait,
};

#[test]
fn without_redis_each_process_counts_by_itself() {
    // Nobody is there.
    let one = Process::at(format!("redis://127.0.0.1:{}", free_port()));
    assert_eq!(passed(&[one], 500, quota(100, 36_000)), 100);
}

#[test]
fn a_server_that_goes_away_lets_no_more_pass_than_what_was_leased_and_is_found_again() {
    let Some(server) = Server::start(free_port(), &[]) else {
        return left_out(MISSING);
    };
    let one = || Process::at(server.url()).connected();
    let processes = [one(), one()];
    let quota = quota(1_000, 36_000);
    assert_eq!(passed(&processes, 400, quota), 400);
    let port = server.port;
    drop(server);
    // A tenth of the rate each at most, and what time brings.
    let during = passed(&processes, 2_000, quota);
    assert!(during <= 205, "{during}");
    // It comes back without what it knew: one more burst, and it is counted together again.
    let server = Server::start(port, &[]);
    assert!(server.is_some());
    processes.iter().for_each(Process::until_connected);
    let after = passed(&processes, 3_000, quota);
    assert!((990..=1_010).contains(&after), "{after}");
}

#[test]
fn a_key_that_was_idle_is_served_when_the_server_goes_away() {
    let Some(server) = Server::start(free_port(), &[]) else {
        return left_out(MISSING);
    };
    let one = Process::at(server.url()).connected();
    let mut quota = quota(100, 1);
    quota.interval = Duration::from_millis(50);
    assert!(wait(one.take(7, &quota, 1)).is_some());
    let taken = Instant::now();
    drop(server);
    one.until(true);
    // All of it has come free since Redis answered last.
    while taken.elapsed() < Duration::from_millis(100) {
        std::thread::yield_now();
    }
    assert!(wait(one.take(7, &quota, 90)).is_some());
}

#[test]
fn a_server_that_stands_still_is_waited_for_once() {
    let Some(server) = Server::start(free_port(), &[]) else {
        return left_out(MISSING);
    };
    let mut options = options(vec![server.url()]);
    options.timeout = Duration::from_millis(100);
    let one = Process::new(options);
    let quota = quota(1_000, 36_000);
    assert!(wait(one.take(1, &quota, 1)).is_some());
    server.signal("-STOP");
    let started = Instant::now();
    for key in 0..1_000 {
        // Every key is one that nothing is leased of.
        assert!(wait(one.take(key + 10, &quota, 1)).is_some());
    }
    assert!(one.store.is_away());
    assert!(wait(one.store.get("document:a")).is_err());
    // Once a tenth of a second, and not a thousand times.
    let elapsed = started.elapsed();
    assert!(elapsed < Duration::from_secs(60), "{elapsed:?}");
    server.signal("-CONT");
    one.until(false);
    assert!(wait(one.take(1, &quota, 1)).is_some());
}

#[test]
fn a_server_that_is_full_is_gone_on_without() {
    let Some(server) = Server::start(free_port(), &["--maxmemory-policy", "noeviction"]) else {
        return left_out(MISSING);
    };
    server.tell(&["config", "set", "maxmemory", "1"]);
    let one = Process::at(server.url());
    let quota = quota(100, 36_000);
    assert_eq!(passed(std::slice::from_ref(&one), 500, quota), 100);
    assert!(one.store.is_away());
    server.tell(&["config", "set", "maxmemory", "0"]);
    one.until(false);
}
