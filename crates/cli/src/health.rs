//! `ogive health`: asks a gateway whether it serves, for probes in images that have no shell and no other program.

use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream, ToSocketAddrs},
    os::unix::net::UnixStream,
    time::{Duration, Instant},
};

use anyhow::Result;

use crate::{environment, terminal};

/// Where a gateway is asked without `--url` and without `OGIVE_LISTEN`.
const GATEWAY: &str = "http://127.0.0.1:4000";

/// The path that is asked where `--url` has none.
const PATH: &str = "/health";

/// Most bytes of the first line of an answer.
const LINE_MAX: usize = 256;

/// Arguments of `ogive health`.
#[derive(clap::Args)]
#[command(
    after_help = "The gateway is asked at `--url`, else at the port or socket of OGIVE_LISTEN, else at http://127.0.0.1:4000.\n\
                  With `health_check.listen` in the configuration, name that address with `--url`.\n\n\
                  Exit codes: 0 the gateway serves, or is ready; 1 it does not, or did not answer; 2 the arguments are wrong."
)]
pub(crate) struct Arguments {
    /// Ask whether new requests are welcome: not while the gateway starts without a schema, and not while it drains
    #[arg(long)]
    ready: bool,
    /// Where the gateway is asked: http://HOST:PORT or unix:///PATH, without a path at /health
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Longest wait for the answer, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=60))]
    timeout: u64,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let url = arguments.url.clone().or_else(listened_on);
    let url = url.as_deref().unwrap_or(GATEWAY);
    let Some(target) = Target::parse(url) else {
        return Err(terminal::error(
            format_args!("`{url}` cannot be asked"),
            "write `http://HOST:PORT` or `unix:///PATH`; of a gateway that serves https, ask `health_check.listen`",
        ));
    };
    let query = if arguments.ready { "?ready" } else { "" };
    let path = format!("{}{query}", target.path);
    let end = Instant::now() + Duration::from_secs(arguments.timeout);
    match ask(&target.place, &path, end) {
        Ok(200) => Ok(()),
        Ok(status) => Err(terminal::error(
            format_args!("{url} answers {status} at {path}"),
            "the log of the gateway says why",
        )),
        Err(why) => Err(terminal::error(
            format_args!("{url} does not answer: {why}"),
            "check that the gateway runs, and that it serves at this address",
        )),
    }
}

/// The address in `OGIVE_LISTEN`. A gateway that listens on all addresses is asked at the local one.
fn listened_on() -> Option<String> {
    let listen = environment::text(environment::LISTEN)?;
    if listen.starts_with("unix://") {
        return Some(listen);
    }
    let (host, port) = listen.rsplit_once(':')?;
    let host = match host {
        "0.0.0.0" => "127.0.0.1",
        "[::]" => "[::1]",
        host => host,
    };
    Some(format!("http://{host}:{port}"))
}

/// Where a gateway is, and what is asked there.
#[derive(Debug, PartialEq, Eq)]
struct Target<'a> {
    place: Place<'a>,
    path: &'a str,
}

#[derive(Debug, PartialEq, Eq)]
enum Place<'a> {
    /// `HOST:PORT`
    Tcp(&'a str),
    /// The path of a socket.
    Unix(&'a str),
}

impl<'a> Target<'a> {
    fn parse(url: &'a str) -> Option<Target<'a>> {
        if let Some(socket) = url.strip_prefix("unix://") {
            let place = Place::Unix(socket);
            return socket
                .starts_with('/')
                .then_some(Target { place, path: PATH });
        }
        let rest = url.strip_prefix("http://")?;
        let at = rest.find('/').unwrap_or(rest.len());
        let (authority, path) = rest.split_at(at);
        let (host, port) = authority.rsplit_once(':')?;
        let is_known = !host.is_empty() && !host.contains('@') && port.parse::<u16>().is_ok();
        let path = if path.len() > 1 { path } else { PATH };
        let place = Place::Tcp(authority);
        is_known.then_some(Target { place, path })
    }
}

/// The status of the answer to a GET.
fn ask(place: &Place<'_>, path: &str, end: Instant) -> io::Result<u16> {
    match place {
        Place::Unix(socket) => {
            let stream = UnixStream::connect(socket)?;
            stream.set_write_timeout(Some(left(end)?))?;
            exchange(stream, "localhost", path, |stream| {
                stream.set_read_timeout(Some(left(end)?))
            })
        }
        Place::Tcp(authority) => {
            let addresses: Vec<SocketAddr> = authority.to_socket_addrs()?.collect();
            let mut last = io::Error::other("the host has no address");
            for address in addresses {
                match TcpStream::connect_timeout(&address, left(end)?) {
                    Err(why) => last = why,
                    Ok(stream) => {
                        stream.set_write_timeout(Some(left(end)?))?;
                        return exchange(stream, authority, path, |stream| {
                            stream.set_read_timeout(Some(left(end)?))
                        });
                    }
                }
            }
            Err(last)
        }
    }
}

/// What is left of the time; an error if nothing is.
fn left(end: Instant) -> io::Result<Duration> {
    let left = end.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(io::Error::new(io::ErrorKind::TimedOut, "no answer in time"));
    }
    Ok(left)
}

/// Sends the request and reads the first line of the answer; `arm` limits the next read.
fn exchange<S: Read + Write>(
    mut stream: S,
    host: &str,
    path: &str,
    arm: impl Fn(&S) -> io::Result<()>,
) -> io::Result<u16> {
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nhost: {host}\r\nuser-agent: ogive-health\r\nconnection: close\r\n\r\n"
    )?;
    let mut line = Vec::new();
    let mut byte = [0; 64];
    while !line.contains(&b'\n') && line.len() < LINE_MAX {
        arm(&stream)?;
        match stream.read(&mut byte)? {
            0 => break,
            count => line.extend_from_slice(&byte[..count]),
        }
    }
    status(&line).ok_or_else(|| io::Error::other("the answer is not HTTP"))
}

/// The status in `HTTP/1.1 200 OK`.
fn status(line: &[u8]) -> Option<u16> {
    let line = std::str::from_utf8(line.get(..12)?).ok()?;
    line.strip_prefix("HTTP/1.")?.get(2..)?.parse().ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]
    use super::*;

    #[test]
    fn urls_name_a_place_and_a_path() {
        let parsed = |url| Target::parse(url).map(|target| (target.place, target.path));
        let tcp = |place, path| Some((Place::Tcp(place), path));
        assert_eq!(
            parsed("http://127.0.0.1:4000"),
            tcp("127.0.0.1:4000", "/health")
        );
        assert_eq!(parsed("http://[::1]:80/"), tcp("[::1]:80", "/health"));
        assert_eq!(
            parsed("http://gateway:8088/alive"),
            tcp("gateway:8088", "/alive")
        );
        assert_eq!(
            parsed("unix:///run/o.sock"),
            Some((Place::Unix("/run/o.sock"), "/health"))
        );
        for url in [
            "https://a:1",
            "a:1",
            "http://a",
            "http://:1",
            "http://a:x",
            "unix://run",
            "http://u@a:1",
        ] {
            assert_eq!(parsed(url), None, "{url}");
        }
    }

    #[test]
    fn only_a_status_line_has_a_status() {
        assert_eq!(status(b"HTTP/1.1 503 Service Unavailable\r\n"), Some(503));
        for line in [&b"HTTP/1.1"[..], b"SSH-2.0-OpenSSH", b"HTTP/1.1 abc"] {
            assert_eq!(status(line), None);
        }
    }
}
