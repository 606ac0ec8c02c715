//! Running the binary.

use std::{
    ffi::OsStr,
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, ChildStderr, ChildStdout, Command, Output, Stdio},
    sync::mpsc,
    time::Duration,
};

/// The binary with arguments, in a folder of its own without any configuration. `OGIVE_LOAD_BINARY` names another one
/// for the long runs of `bench/load.sh`.
pub(crate) fn ogive<A: AsRef<OsStr>>(arguments: &[A]) -> Command {
    let binary = std::env::var_os("OGIVE_LOAD_BINARY");
    let binary = binary.unwrap_or_else(|| env!("CARGO_BIN_EXE_ogive").into());
    let mut command = Command::new(binary);
    command
        .args(arguments)
        .current_dir(folder())
        .env_remove("NO_COLOR")
        .stdin(Stdio::null());
    command
}

/// A folder for this test run.
pub(crate) fn folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cli");
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// A file in that folder.
pub(crate) fn file(name: &str, text: impl AsRef<[u8]>) -> String {
    let path = folder().join(name);
    fs::write(&path, text).unwrap();
    path.to_string_lossy().into_owned()
}

/// A file of the demo graph.
pub(crate) fn demo(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples/demo")
        .join(name);
    path.to_string_lossy().into_owned()
}

pub(crate) fn run<A: AsRef<OsStr>>(arguments: &[A]) -> (Option<i32>, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = ogive(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

/// A process that serves until it is told to stop.
pub(crate) struct Running {
    child: Child,
    stdout: BufReader<ChildStdout>,
    stderr: BufReader<ChildStderr>,
    /// Dropped with it; a process that outlives [`LIFE_MAX`] is ended, so that a line that never comes fails its test.
    _watchdog: mpsc::Sender<()>,
}

const LIFE_MAX: Duration = Duration::from_secs(600);

/// A long soak lives longer, and so does a long load with the rest after it.
fn life() -> Duration {
    let seconds = ["OGIVE_SOAK_SECONDS", "OGIVE_REST_SECONDS"].map(|name| {
        let text = std::env::var(name).ok();
        text.and_then(|text| text.parse().ok()).unwrap_or(0)
    });
    let more: u64 = seconds
        .iter()
        .map(|s| if *s > 0 { s + 300 } else { 0 })
        .sum();
    LIFE_MAX + Duration::from_secs(more)
}

impl Running {
    pub(crate) fn start<A: AsRef<OsStr>>(arguments: &[A]) -> Running {
        Running::of(ogive(arguments))
    }
    pub(crate) fn of(mut command: Command) -> Running {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let (watchdog, gone) = mpsc::channel::<()>();
        let id = child.id().to_string();
        std::thread::spawn(move || {
            if gone.recv_timeout(life()) == Err(mpsc::RecvTimeoutError::Timeout) {
                let _ = Command::new("kill").args(["-KILL", &id]).status();
            }
        });
        Running {
            child,
            stdout,
            stderr,
            _watchdog: watchdog,
        }
    }
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }
    /// Reads standard error up to a line that holds `needle`, and gives that line.
    pub(crate) fn logged(&mut self, needle: &str) -> String {
        line_with(&mut self.stderr, needle)
    }
    /// The same for standard output.
    pub(crate) fn printed(&mut self, needle: &str) -> String {
        line_with(&mut self.stdout, needle)
    }
    pub(crate) fn signal(&self, name: &str) {
        let status = Command::new("kill")
            .arg(format!("-{name}"))
            .arg(self.child.id().to_string())
            .status()
            .unwrap();
        assert!(status.success());
    }
    /// Waits for the end; gives the exit code and the rest of standard error.
    pub(crate) fn ended(mut self) -> (Option<i32>, String) {
        let mut rest = String::new();
        self.stderr.read_to_string(&mut rest).unwrap();
        (self.child.wait().unwrap().code(), rest)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Already gone in a test that passed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn line_with(reader: &mut impl BufRead, needle: &str) -> String {
    let mut seen = String::new();
    loop {
        let mut line = String::new();
        let n = reader.read_line(&mut line).unwrap();
        assert!(n > 0, "no line with {needle:?} in:\n{seen}");
        if line.contains(needle) {
            return line;
        }
        seen.push_str(&line);
    }
}

/// The `host:port` of the first URL in a line.
pub(crate) fn address(line: &str) -> String {
    let rest = line
        .split("http://")
        .nth(1)
        .unwrap_or_else(|| panic!("no URL in {line:?}"));
    let end = rest.find(|c: char| c != '.' && c != ':' && !c.is_ascii_alphanumeric());
    rest[..end.unwrap_or(rest.len())].to_owned()
}

/// The demo's subgraphs, and the lines of a configuration that point to them.
pub(crate) fn subgraphs() -> (Running, String) {
    let config = demo("mock.yaml");
    let mut mock = Running::start(&["mock", "--config", &config, "--listen", "127.0.0.1:0"]);
    let urls = subgraph_urls(&mut mock);
    (mock, urls)
}

/// The lines of a configuration that point to the demo's subgraphs where this mock says that it plays them.
pub(crate) fn subgraph_urls(mock: &mut Running) -> String {
    let address = address(&mock.printed("accounts "));
    let names = ["accounts", "inventory", "products", "reviews"];
    let urls = names.map(|name| format!("  {name}: http://{address}/graphql/{name}\n"));
    format!("override_subgraph_url:\n{}", urls.concat())
}

/// A connection for one request; the answer is read by [`answer`].
pub(crate) fn ask(address: &str, method: &str, path: &str, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(120)))
        .unwrap();
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    stream
}

/// Status and body.
pub(crate) fn answer(mut stream: TcpStream) -> (u16, String) {
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (
        head.split(' ').nth(1).unwrap().parse().unwrap(),
        body.to_owned(),
    )
}
