//! Message brokers that tests start, stop and start again on the same port, and clients that publish.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU16, AtomicU32, Ordering},
    time::Duration,
};

/// A test that waits longer has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// A broker in a process of its own.
pub(super) struct Server {
    command: Vec<String>,
    ready: &'static str,
    child: Option<Child>,
    pub(super) address: SocketAddr,
    folder: PathBuf,
}

/// None of those that the system gives to whoever asks for any, from 32768 on: another test could have it before the broker
/// does, or while the broker is away.
fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let own = u16::try_from(std::process::id() % 200).unwrap() * 100;
    loop {
        let port = 10_000 + own + NEXT.fetch_add(1, Ordering::Relaxed) % 100;
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

fn folder() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("ogive-broker-{}-{number}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

impl Server {
    pub(super) fn nats(more: &[&str]) -> Server {
        let mut nats = Server::new("Server is ready", |port, folder| {
            let (port, folder) = (port.to_string(), folder.to_owned());
            [
                "nats-server",
                "-a",
                "127.0.0.1",
                "-p",
                &port,
                "-js",
                "-sd",
                &folder,
            ]
            .map(str::to_owned)
            .to_vec()
        });
        nats.command
            .extend(more.iter().map(|arg| (*arg).to_owned()));
        nats.start();
        nats
    }
    pub(super) fn redis() -> Server {
        let mut redis = Server::new("Ready to accept connections", |port, folder| {
            let (port, folder) = (port.to_string(), folder.to_owned());
            [
                "redis-server",
                "--bind",
                "127.0.0.1",
                "--save",
                "",
                "--port",
                &port,
                "--dir",
                &folder,
            ]
            .map(str::to_owned)
            .to_vec()
        });
        redis.start();
        redis
    }
    pub(super) fn kafka(program: &str) -> Server {
        let mut kafka = Server::new("ready", |port, folder| {
            vec![program.to_owned(), port.to_string(), folder.to_owned()]
        });
        kafka.start();
        kafka
    }
    fn new(ready: &'static str, command: impl Fn(u16, &str) -> Vec<String>) -> Server {
        let (port, folder) = (free_port(), folder());
        Server {
            command: command(port, &folder.to_string_lossy()),
            ready,
            child: None,
            address: SocketAddr::from(([127, 0, 0, 1], port)),
            folder,
        }
    }
    /// Starts it, for the first time or again.
    pub(super) fn start(&mut self) {
        let mut child = Command::new(&self.command[0])
            .args(&self.command[1..])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (stdout, stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        self.child = Some(child);
        let (tell, told) = std::sync::mpsc::channel();
        let outputs: [Box<dyn Read + Send>; 2] = [Box::new(stdout), Box::new(stderr)];
        for output in outputs {
            let (tell, ready) = (tell.clone(), self.ready);
            // They end with the process, whose output they take.
            std::thread::spawn(move || {
                let mut lines = BufReader::new(output).lines();
                while let Some(Ok(line)) = lines.next() {
                    if line.contains(ready) {
                        let _ = tell.send(());
                    }
                }
            });
        }
        told.recv_timeout(PATIENCE)
            .expect("the broker does not start");
    }
    /// Kills it.
    pub(super) fn stop(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A client of NATS: its protocol is lines.
pub(super) struct NatsClient {
    stream: BufReader<TcpStream>,
}

impl NatsClient {
    pub(super) fn connect(address: SocketAddr) -> NatsClient {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut client = NatsClient {
            stream: BufReader::new(stream),
        };
        client.line();
        client.write("CONNECT {\"verbose\":false,\"pedantic\":false,\"headers\":true,\"no_responders\":true}\r\n");
        client.flush();
        client
    }
    fn write(&mut self, text: &str) {
        self.stream.get_mut().write_all(text.as_bytes()).unwrap();
    }
    fn line(&mut self) -> String {
        let mut line = String::new();
        assert!(
            self.stream.read_line(&mut line).unwrap() > 0,
            "NATS closed the connection"
        );
        line.trim_end().to_owned()
    }
    /// Waits until the server has seen everything.
    pub(super) fn flush(&mut self) {
        self.write("PING\r\n");
        while self.line() != "PONG" {}
    }
    pub(super) fn publish(&mut self, subject: &str, payload: &str) {
        self.write(&format!("PUB {subject} {}\r\n{payload}\r\n", payload.len()));
        self.flush();
    }
    /// Publishes many at once.
    pub(super) fn publish_all(&mut self, subject: &str, payloads: impl Iterator<Item = String>) {
        let mut text = String::new();
        for payload in payloads {
            text.push_str(&format!("PUB {subject} {}\r\n{payload}\r\n", payload.len()));
        }
        self.write(&text);
        self.flush();
    }
    pub(super) fn subscribe(&mut self, subject: &str) {
        self.write(&format!("SUB {subject} 1\r\n"));
        self.flush();
    }
    /// The next message: its subject, where an answer goes, and what it says.
    pub(super) fn next(&mut self) -> (String, String, String) {
        loop {
            let line = self.line();
            let words: Vec<&str> = line.split(' ').collect();
            if words[0] == "PING" {
                self.write("PONG\r\n");
            }
            if !matches!(words[0], "MSG" | "HMSG") {
                continue;
            }
            let has_headers = words[0] == "HMSG";
            let sizes = if has_headers { 2 } else { 1 };
            let length: usize = words[words.len() - 1].parse().unwrap();
            let skipped: usize = if has_headers {
                words[words.len() - 2].parse().unwrap()
            } else {
                0
            };
            let mut payload = vec![0; length + 2];
            self.stream.read_exact(&mut payload).unwrap();
            let payload = String::from_utf8(payload[skipped..length].to_vec()).unwrap();
            let reply = if words.len() == 4 + sizes {
                words[3]
            } else {
                ""
            };
            return (words[1].to_owned(), reply.to_owned(), payload);
        }
    }
    /// Whether somebody hears a subject, who then gets this event.
    pub(super) fn is_heard(&mut self, subject: &str, payload: &str) -> bool {
        let length = payload.len();
        self.write(&format!(
            "SUB _INBOX.test 9\r\nPUB {subject} _INBOX.test {length}\r\n{payload}\r\nPING\r\n"
        ));
        let mut is_heard = true;
        loop {
            let line = self.line();
            // Nobody does: the server answers.
            is_heard &= !line.starts_with("HMSG _INBOX.test");
            if line == "PONG" {
                self.write("UNSUB 9\r\n");
                return is_heard;
            }
        }
    }
    /// Asks JetStream for something.
    pub(super) fn ask(&mut self, subject: &str, payload: &str) -> String {
        self.write("SUB _INBOX.test 9\r\n");
        self.write(&format!(
            "PUB {subject} _INBOX.test {}\r\n{payload}\r\n",
            payload.len()
        ));
        let (_, _, answer) = self.next();
        self.write("UNSUB 9\r\n");
        self.flush();
        answer
    }
}

/// A client of Redis.
pub(super) struct RedisClient {
    stream: BufReader<TcpStream>,
}

impl RedisClient {
    pub(super) fn connect(address: SocketAddr) -> RedisClient {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        RedisClient {
            stream: BufReader::new(stream),
        }
    }
    /// Sends a command, and reads the first line of its answer.
    pub(super) fn command(&mut self, words: &[&str]) -> String {
        let mut text = format!("*{}\r\n", words.len());
        for word in words {
            text.push_str(&format!("${}\r\n{word}\r\n", word.len()));
        }
        self.stream.get_mut().write_all(text.as_bytes()).unwrap();
        self.line()
    }
    /// How many hear a channel, or how many patterns are heard.
    pub(super) fn number_of(&mut self, what: &str, channel: &str) -> u64 {
        let first = if channel.is_empty() {
            self.command(&["PUBSUB", what])
        } else {
            self.command(&["PUBSUB", what, channel])
        };
        let lines = if first.starts_with('*') { 3 } else { 0 };
        let last = (0..lines).map(|_| self.line()).last().unwrap_or(first);
        last.trim_start_matches(':').parse().unwrap()
    }
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }
}
