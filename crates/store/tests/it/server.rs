//! `redis-server`, started by the test.

use std::{
    io::{BufRead, BufReader},
    net::TcpListener,
    path::Path,
    process::{Child, Command, Stdio},
    sync::{
        atomic::{AtomicU16, Ordering},
        mpsc::{Receiver, channel},
    },
    time::Duration,
};

/// A server on a port of its own; killed when it is dropped.
pub(crate) struct Server {
    child: Child,
    pub(crate) port: u16,
    lines: Receiver<String>,
}

/// A port that nobody uses. It is below those that the operating system gives away by itself, so that nobody has it either
/// while its server is away.
pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = 10_000 + (std::process::id() % 200) as u16 * 100;
    loop {
        let port = first + NEXT.fetch_add(1, Ordering::Relaxed) % 100;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

impl Server {
    /// `None` if there is no such program.
    pub(crate) fn start(port: u16, more: &[&str]) -> Option<Server> {
        let text = port.to_string();
        // None finds what another one has left.
        let file = format!("ogive-{text}.rdb");
        let own = ["--port", &text, "--dbfilename", &file];
        Server::run(port, &[&own, &COMMON[..], more].concat(), READY)
    }

    /// One that speaks TLS only.
    pub(crate) fn encrypted(port: u16, more: &[&str]) -> Option<Server> {
        let text = port.to_string();
        let own = ["--port", "0", "--tls-port", &text];
        Server::run(port, &[&own, &COMMON[..], more].concat(), READY)
    }

    /// A sentinel that watches the server at another port.
    pub(crate) fn sentinel(port: u16, file: &Path, watched: u16) -> Option<Server> {
        let text = format!(
            "port {port}\nbind 127.0.0.1\nsentinel monitor mymaster 127.0.0.1 {watched} 1\n\
             sentinel down-after-milliseconds mymaster 3000\n"
        );
        std::fs::write(file, text).unwrap();
        Server::run(
            port,
            &[file.to_str().unwrap(), "--sentinel"],
            "+monitor master",
        )
    }

    fn run(port: u16, arguments: &[&str], ready: &str) -> Option<Server> {
        let mut command = Command::new("redis-server");
        command.args(arguments).current_dir(std::env::temp_dir());
        let command = command.stdout(Stdio::piped()).stdin(Stdio::null());
        let mut child = command.spawn().ok()?;
        let read = BufReader::new(child.stdout.take()?).lines();
        let (send, lines) = channel();
        // Whatever it says must not make it wait.
        std::thread::spawn(move || {
            read.map_while(Result::ok)
                .for_each(|line| drop(send.send(line)))
        });
        let server = Server { child, port, lines };
        server.has_said(ready);
        Some(server)
    }

    /// Waits until it has said something.
    pub(crate) fn has_said(&self, text: &str) {
        let mut said = Vec::new();
        loop {
            match self.lines.recv_timeout(Duration::from_secs(60)) {
                Ok(line) if line.contains(text) => return,
                Ok(line) => said.push(line),
                Err(_) => panic!("redis-server does not say `{text}`, but {said:#?}"),
            }
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Sends it a signal by its id.
    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args([name, &id]).status();
        assert!(sent.unwrap().success());
    }

    /// What `redis-cli` says.
    pub(crate) fn tell(&self, words: &[&str]) -> String {
        let mut command = Command::new("redis-cli");
        command.args(["-p", &self.port.to_string()]).args(words);
        String::from_utf8(command.output().unwrap().stdout).unwrap()
    }
}

const READY: &str = "Ready to accept connections";
const COMMON: [&str; 10] = [
    "--bind",
    "127.0.0.1",
    "--save",
    "",
    "--appendonly",
    "no",
    "--repl-diskless-sync-delay",
    "0",
    "--repl-diskless-load",
    "swapdb",
];

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
