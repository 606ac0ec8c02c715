//! The listening socket: TCP, or a unix socket whose file goes with it.

use std::{
    io,
    net::SocketAddr,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use ogive_transport::Socket;
use tokio::net::{TcpListener, TcpSocket, TcpStream, UnixListener, UnixStream};

/// Connections that the operating system holds until they are accepted; it may have a lower limit of its own. With the
/// usual 128 a burst of clients waits for retransmissions of a second each.
const BACKLOG: u32 = 4_096;

/// What is listened on.
#[derive(Debug)]
pub(super) enum Listener {
    Tcp(TcpListener, SocketAddr),
    /// The file goes first: as long as the socket is there, its number is nobody else's.
    Unix(SocketFile, UnixListener),
}

/// A client's connection on its way to another thread.
pub(super) enum Accepted {
    Tcp(std::net::TcpStream),
    Unix(std::os::unix::net::UnixStream),
}

/// The file of a unix socket; removed with it, unless another process has put its own there meanwhile.
#[derive(Debug)]
pub(super) struct SocketFile {
    path: PathBuf,
    number: Option<(u64, u64)>,
}

impl SocketFile {
    fn new(path: &Path) -> Self {
        SocketFile {
            path: path.to_owned(),
            number: number(path),
        }
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if self.number.is_some() && self.number == number(&self.path) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// What tells a file from all others: its file system, and its number there.
fn number(path: &Path) -> Option<(u64, u64)> {
    let found = std::fs::symlink_metadata(path).ok()?;
    Some((found.dev(), found.ino()))
}

impl Listener {
    /// `HOST:PORT`, or `unix://` and a path.
    pub(super) async fn bind(listen: &str) -> io::Result<Listener> {
        if let Some(path) = listen.strip_prefix("unix://") {
            let path = Path::new(path);
            remove_stale(path)?;
            let listener = UnixListener::bind(path)?;
            return Ok(Listener::Unix(SocketFile::new(path), listener));
        }
        let listener = bind_tcp(listen).await?;
        let address = listener.local_addr()?;
        Ok(Listener::Tcp(listener, address))
    }
    pub(super) fn address(&self) -> Option<SocketAddr> {
        match self {
            Listener::Tcp(_, address) => Some(*address),
            Listener::Unix(..) => None,
        }
    }
    /// As a client would write it, without a path.
    pub(super) fn url(&self, tls: bool) -> String {
        match self {
            Listener::Tcp(_, address) if tls => format!("https://{address}"),
            Listener::Tcp(_, address) => format!("http://{address}"),
            Listener::Unix(file, _) => format!("unix://{}", file.path.display()),
        }
    }
    pub(super) async fn accept(&self) -> io::Result<Accepted> {
        match self {
            // The stream leaves this thread's reactor for the worker's.
            Listener::Tcp(listener, _) => {
                let (stream, _) = listener.accept().await?;
                stream.into_std().map(Accepted::Tcp)
            }
            Listener::Unix(_, listener) => {
                let (stream, _) = listener.accept().await?;
                stream.into_std().map(Accepted::Unix)
            }
        }
    }
    /// Closes the socket. Gives the connections that the operating system has accepted already: their clients believe
    /// to be served.
    pub(super) fn close(self) -> Vec<Accepted> {
        let mut accepted = Vec::new();
        match self {
            Listener::Tcp(listener, _) => {
                if let Ok(listener) = listener.into_std() {
                    while let Ok((stream, _)) = listener.accept() {
                        if stream.set_nonblocking(true).is_ok() {
                            accepted.push(Accepted::Tcp(stream));
                        }
                    }
                }
            }
            Listener::Unix(file, listener) => {
                // From now on another process may have the path.
                drop(file);
                if let Ok(listener) = listener.into_std() {
                    while let Ok((stream, _)) = listener.accept() {
                        if stream.set_nonblocking(true).is_ok() {
                            accepted.push(Accepted::Unix(stream));
                        }
                    }
                }
            }
        }
        accepted
    }
}

impl Accepted {
    /// The address of the client, if it has one.
    pub(super) fn address(&self) -> Option<std::net::IpAddr> {
        match self {
            Accepted::Tcp(stream) => stream.peer_addr().ok().map(|address| address.ip()),
            Accepted::Unix(_) => None,
        }
    }
    /// Joins the reactor of this thread. Gives the client's address, too, if it has one.
    pub(super) fn join(self) -> io::Result<(Socket, Option<SocketAddr>)> {
        match self {
            Accepted::Tcp(stream) => {
                let stream = TcpStream::from_std(stream)?;
                // Answers are written whole; waiting for more would only delay them.
                let _ = stream.set_nodelay(true);
                let address = stream.peer_addr().ok();
                Ok((Socket::Tcp(stream), address))
            }
            Accepted::Unix(stream) => {
                let stream = UnixStream::from_std(stream)?;
                Ok((Socket::Unix(stream), None))
            }
        }
    }
}

/// Binds the first address that can be bound.
async fn bind_tcp(listen: &str) -> io::Result<TcpListener> {
    let mut last = io::Error::new(io::ErrorKind::InvalidInput, "the host name has no address");
    for address in tokio::net::lookup_host(listen).await? {
        let bind = || {
            let socket = match address {
                SocketAddr::V4(_) => TcpSocket::new_v4()?,
                SocketAddr::V6(_) => TcpSocket::new_v6()?,
            };
            // A restart need not wait for connections of the process before.
            socket.set_reuseaddr(true)?;
            socket.bind(address)?;
            socket.listen(BACKLOG)
        };
        match bind() {
            Ok(listener) => return Ok(listener),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Removes the socket that a process that is gone has left behind; one that somebody listens on stays, and so does
/// whatever is no socket: a path that was mistyped must not cost a file.
fn remove_stale(path: &Path) -> io::Result<()> {
    use std::{
        io::ErrorKind,
        os::unix::{fs::FileTypeExt, net::UnixStream},
    };
    match std::fs::metadata(path) {
        Ok(found) if !found.file_type().is_socket() => {
            let message = "something is there that is no socket; it is left alone";
            return Err(io::Error::new(ErrorKind::AlreadyExists, message));
        }
        _ => {}
    }
    let dead =
        UnixStream::connect(path).is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused);
    if dead {
        let _ = std::fs::remove_file(path);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(flavor = "current_thread")]
    async fn the_socket_of_another_process_is_not_removed() {
        let name = format!("ogive-listener-{}.sock", std::process::id());
        let path = std::env::temp_dir().join(name);
        let listen = format!("unix://{}", path.display());
        for closes in [true, false] {
            let before = Listener::bind(&listen).await.unwrap();
            // Whoever deploys the next one makes room for it.
            std::fs::remove_file(&path).unwrap();
            let after = Listener::bind(&listen).await.unwrap();
            match closes {
                true => assert!(before.close().is_empty()),
                false => drop(before),
            }
            let client = UnixStream::connect(&path).await;
            assert!(client.is_ok(), "{client:?}");
            assert_eq!(after.close().len(), 1);
            assert!(!path.exists());
        }
    }
}
