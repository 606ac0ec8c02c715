//! A cluster of three, and sentinels.

use std::{
    process::Command,
    time::{Duration, Instant},
};

use ogive_store::Topology;
use ogive_testbase::left_out;

use super::{
    MISSING, Process, options, passed, quota,
    server::{Server, free_port},
};

#[test]
fn a_cluster_of_three_counts_as_one_server_does() {
    let folder = std::env::temp_dir().join(format!("ogive-store-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let start = || {
        let port = free_port();
        // The bus is at a port that cannot be more than 65535.
        let bus = free_port().to_string();
        let file = folder.join(format!("{port}.conf"));
        let more = [
            "--cluster-enabled",
            "yes",
            "--cluster-port",
            &bus,
            "--cluster-config-file",
        ];
        Server::start(port, &[&more[..], &[file.to_str().unwrap()]].concat())
    };
    let (Some(a), Some(b), Some(c)) = (start(), start(), start()) else {
        return left_out(MISSING);
    };
    let nodes = [&a, &b, &c].map(|node| format!("127.0.0.1:{}", node.port));
    let mut create = Command::new("redis-cli");
    create
        .args(["--cluster", "create"])
        .args(&nodes)
        .arg("--cluster-yes");
    let Ok(made) = create.output() else {
        return left_out("redis-cli is not installed");
    };
    let text = String::from_utf8_lossy(&made.stdout).into_owned();
    assert!(
        made.status.success() && text.contains("16384 slots covered"),
        "{text}"
    );
    let one = || {
        let mut options = options(vec![a.url(), c.url()]);
        options.topology = Topology::Cluster;
        Process::new(options).connected()
    };
    let processes = [one(), one()];
    let all = passed(&processes, 3_000, quota(1_000, 36_000));
    assert!((990..=1_010).contains(&all), "{all}");
    assert!(processes.iter().all(|process| !process.store.is_away()));
    let _ = std::fs::remove_dir_all(folder);
}

#[test]
fn sentinels_say_where_the_server_is_and_which_one_takes_its_place() {
    let file = std::env::temp_dir().join(format!("ogive-sentinel-{}.conf", std::process::id()));
    let Some(server) = Server::start(free_port(), &[]) else {
        return left_out(MISSING);
    };
    let port = server.port.to_string();
    let replica = Server::start(free_port(), &["--replicaof", "127.0.0.1", &port]).unwrap();
    let sentinel = Server::sentinel(free_port(), &file, server.port).unwrap();
    let one = || {
        let mut options = options(vec![sentinel.url()]);
        options.topology = Topology::Sentinel("mymaster".to_owned());
        Process::new(options).connected()
    };
    let processes = [one(), one()];
    let quota = quota(100, 36_000);
    let before = passed(&processes, 60, quota);
    assert_eq!(before, 60);
    sentinel.has_said(&format!("+slave slave 127.0.0.1:{}", replica.port));
    // What is told to a client may not be told to the replica yet.
    let taken = server.tell(&["get", "test:rate:7"]);
    let asked = Instant::now();
    while replica.tell(&["get", "test:rate:7"]) != taken {
        assert!(asked.elapsed() < Duration::from_secs(60));
    }
    drop(server);
    // No request waits for what follows.
    let during = passed(&processes, 20, quota);
    sentinel.has_said("+switch-master");
    processes.iter().for_each(Process::until_connected);
    processes.iter().for_each(Process::until_sharing);
    // The replica knows what was taken.
    let after = passed(&processes, 300, quota);
    let all = before + during + after;
    assert!((95..=105).contains(&all), "{before} {during} {after}");
    let _ = std::fs::remove_file(file);
}
