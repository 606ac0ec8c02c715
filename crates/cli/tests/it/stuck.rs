//! A reader of the log that has stopped reading.

use std::{
    io::{BufRead, BufReader, ErrorKind, Read, Write},
    net::TcpListener,
    process::{Child, Command, Stdio},
    sync::mpsc,
    time::Duration,
};

use crate::process::{address, answer, ask, demo, file, ogive};

/// Longer than shutdown may take, and shorter than anybody would wait.
const PATIENCE: Duration = Duration::from_secs(20);

/// Standard error is a full pipe that nobody reads: requests that fail, each of which has a line in the log, are
/// answered, and so is SIGTERM.
#[test]
fn a_stuck_reader_of_standard_error_holds_up_neither_answers_nor_shutdown() {
    let refused = TcpListener::bind("127.0.0.1:0").unwrap();
    let subgraph = refused.local_addr().unwrap();
    drop(refused);
    let config = file(
        "stuck.yaml",
        format!(
            "listen: 127.0.0.1:0\noverride_subgraph_url: {{ accounts: 'http://{subgraph}/' }}\n\
             telemetry: {{ access_log: {{ enabled: true }} }}\n"
        ),
    );
    let (reader, mut writer) = std::io::pipe().unwrap();
    let mut process = Ended(
        ogive(&["serve", "-s", &demo("supergraph.graphql"), "-c", &config])
            .stdout(Stdio::piped())
            .stderr(writer.try_clone().unwrap())
            .spawn()
            .unwrap(),
    );
    let mut reader = BufReader::new(reader);
    let mut line = String::new();
    while !line.contains("serving http://") {
        line.clear();
        assert!(reader.read_line(&mut line).unwrap() > 0);
    }
    let gateway = address(&line);
    rustix::io::ioctl_fionbio(&writer, true).unwrap();
    loop {
        match writer.write(&[b'x'; 512]) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => panic!("{error}"),
        }
    }
    rustix::io::ioctl_fionbio(&writer, false).unwrap();
    for _ in 0..40 {
        let query = r#"{"query":"{ me { name } }"}"#;
        let (status, body) = answer(ask(&gateway, "POST", "/graphql", query));
        assert_eq!(status, 200);
        assert!(body.contains("SUBREQUEST_HTTP_ERROR"), "{body}");
    }
    let mut stdout = process.0.stdout.take().unwrap();
    let id = process.0.id().to_string();
    let told = Command::new("kill").args(["-TERM", &id]).status().unwrap();
    assert!(told.success());
    let (tell, ended) = mpsc::channel();
    std::thread::spawn(move || {
        let mut log = String::new();
        stdout.read_to_string(&mut log).unwrap();
        let _ = tell.send(log);
    });
    let ended = ended.recv_timeout(PATIENCE);
    let log = ended.expect("the process has not ended in time");
    assert_eq!(process.0.wait().unwrap().code(), Some(0));
    assert_eq!(log.lines().count(), 40, "the access log is whole: {log}");
    drop(reader);
}

/// A process that does not outlive its test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
