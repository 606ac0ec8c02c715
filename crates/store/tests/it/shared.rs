//! One server: the rate is kept by all together, and documents are found by all.

use std::time::{Duration, Instant};

use ogive_testbase::left_out;

use super::{
    MISSING, Process, options, passed, passed_until_rejected, quota,
    server::{Server, free_port},
    wait,
};

#[test]
fn four_processes_let_pass_what_the_rate_says() {
    let user = [
        "--user",
        "default",
        "off",
        "--user",
        "ogive",
        "on",
        ">secret",
        "~test:*",
        "-@all",
        "+get",
        "+set",
        "+setex",
        "+time",
        "+eval",
        "+evalsha",
        "+script|load",
        "+zadd",
        "+zcard",
        "+zremrangebyscore",
        "+expire",
    ];
    let Some(server) = Server::start(free_port(), &user) else {
        return left_out(MISSING);
    };
    let one = || {
        let mut options = options(vec![server.url()]);
        options.username = Some("ogive".to_owned());
        options.password = Some("secret".to_owned());
        Process::new(options).connected()
    };
    let processes = [one(), one(), one(), one()];
    let passed = passed_until_rejected(&processes, quota(10_000, 360_000));
    assert!((9_990..=10_010).contains(&passed), "{passed}");
    assert!(processes.iter().all(|process| !process.store.is_away()));
}

#[test]
fn one_process_alone_gets_all_of_it() {
    let Some(server) = Server::start(free_port(), &[]) else {
        return left_out(MISSING);
    };
    let one = Process::at(server.url()).connected();
    assert_eq!(passed(&[one], 1_500, quota(1_000, 360_000)), 1_000);
}

#[test]
fn most_requests_are_served_from_what_is_leased() {
    let Some(server) = Server::start(free_port(), &[]) else {
        return left_out(MISSING);
    };
    let one = Process::at(server.url()).connected();
    assert_eq!(passed(&[one], 5_000, quota(100_000, 36_000)), 5_000);
    let told = server.tell(&["info", "commandstats"]);
    let calls = told.lines().find(|line| line.starts_with("cmdstat_set:"));
    let calls = calls.unwrap().split([':', '=', ',']).nth(2).unwrap();
    assert!(calls.parse::<u32>().unwrap() <= 2, "{told}");
}

#[test]
fn what_is_given_back_can_be_taken_again_but_not_after_time_has_given_it_back() {
    let Some(server) = Server::start(free_port(), &[]) else {
        return left_out(MISSING);
    };
    let one = Process::at(server.url()).connected();
    let long = quota(100, 36_000);
    wait(async {
        let mut taken = Vec::new();
        while let Some(more) = one.take(7, &long, 1).await {
            taken.push(more);
        }
        assert_eq!(taken.len(), 100);
        taken
            .iter()
            .take(5)
            .for_each(|one_of| one.rates.give_back(one_of, 1));
        for _ in 0..5 {
            assert!(one.take(7, &long, 1).await.is_some());
        }
        assert!(one.take(7, &long, 1).await.is_none());
        // All of it comes free in a tenth of a second.
        let mut short = quota(100, 1);
        short.interval = Duration::from_millis(100);
        let taken = one.take(8, &short, 100).await.unwrap();
        let since = Instant::now();
        while since.elapsed() <= short.interval {}
        // Somebody else has all of it by now, and there is nothing to be given back; unless the machine is so busy that all
        // has come free once more.
        loop {
            let since = Instant::now();
            if one.take(8, &short, 100).await.is_none() {
                continue;
            }
            one.rates.give_back(&taken, 100);
            if one.take(8, &short, 100).await.is_none() {
                break;
            }
            assert!(since.elapsed() > short.interval / 2, "it came back twice");
        }
    });
}

#[test]
fn what_one_process_keeps_another_one_finds() {
    let Some(server) = Server::start(free_port(), &[]) else {
        return left_out(MISSING);
    };
    let one = Process::at(server.url()).connected();
    let other = Process::at(server.url()).connected();
    wait(async {
        assert_eq!(other.store.get("document:a").await.unwrap(), None);
        one.store
            .put("document:a", "{ a }".to_owned(), Duration::from_secs(600));
        while other.store.get("document:a").await.unwrap().as_deref() != Some("{ a }") {}
    });
    assert!(
        server
            .tell(&["ttl", "test:document:a"])
            .trim()
            .parse::<u32>()
            .unwrap()
            > 500
    );
}

#[test]
fn what_is_too_much_now_or_ever_keeps_nobody_out_who_wants_less() {
    let Some(server) = Server::start(free_port(), &[]) else {
        return left_out(MISSING);
    };
    let one = Process::at(server.url()).connected();
    let quota = quota(100, 36_000);
    wait(async {
        assert!(one.take(7, &quota, 101).await.is_none());
        assert!(one.take(7, &quota, 60).await.is_some());
        assert!(one.take(7, &quota, 60).await.is_none());
        assert!(one.take(7, &quota, 40).await.is_some());
        assert!(one.take(7, &quota, 1).await.is_none());
    });
}
