//! A reader of the log that has stopped reading.

use std::{
    io::{BufRead, BufReader, ErrorKind, Write},
    process::{Child, Command, Stdio},
    sync::mpsc::{self, RecvTimeoutError},
    time::Duration,
};

use crate::process::{address, answer, ask, demo, file, ogive};

/// Longer than shutdown may take on any machine: whoever waits for the reader waits for ever.
const PATIENCE: Duration = Duration::from_secs(120);

/// Standard error is a full pipe that nobody reads: requests that fail, each of which has a line in the log, are
/// answered, and so is SIGTERM.
#[test]
fn a_stuck_reader_of_standard_error_holds_up_neither_answers_nor_shutdown() {
    // Nobody listens at that port, nor can another test get it.
    let config = file(
        "stuck.yaml",
        "listen: 127.0.0.1:0\noverride_subgraph_url: { accounts: 'http://127.0.0.1:1/' }\n\
         telemetry: { access_log: { enabled: true } }\n",
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
    let stdout = BufReader::new(process.0.stdout.take().unwrap());
    let (tell, log) = mpsc::channel();
    std::thread::spawn(move || {
        for line in stdout.lines() {
            let _ = tell.send(line.unwrap());
        }
    });
    // What is still to be written when the process ends is not waited for on a busy machine.
    for n in 0..40 {
        let line = log.recv_timeout(PATIENCE);
        assert!(line.is_ok(), "the access log is whole: {n} lines");
    }
    let id = process.0.id().to_string();
    let told = Command::new("kill").args(["-TERM", &id]).status().unwrap();
    assert!(told.success());
    let end = log.recv_timeout(PATIENCE);
    assert_eq!(end, Err(RecvTimeoutError::Disconnected), "it has not ended");
    assert_eq!(process.0.wait().unwrap().code(), Some(0));
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
