//! The listening socket: TCP, or a unix socket whose file goes with it.

use std::{
    fs::{File, TryLockError},
    io,
    net::SocketAddr,
    os::{
        fd::OwnedFd,
        unix::fs::{MetadataExt, PermissionsExt},
    },
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use ogive_base::Peer;
use ogive_net::Socket;
use tokio::net::{TcpListener, TcpSocket, TcpStream, UnixListener, UnixStream};

/// Connections that the operating system holds until they are accepted; it may have a lower limit of its own. With the
/// usual 128 a burst of clients waits for retransmissions of a second each.
const BACKLOG: u32 = 4_096;

/// What is listened on.
#[derive(Debug)]
pub(crate) enum Listener {
    Tcp(TcpListener, SocketAddr),
    /// The file goes first: as long as the socket is there, its number is nobody else's.
    Unix(SocketFile, UnixListener),
}

/// A client's connection on its way to another thread.
pub(crate) enum Accepted {
    /// With the address that it came from, which the socket itself does not know any more once the client has left.
    Tcp(std::net::TcpStream, SocketAddr),
    Unix(std::os::unix::net::UnixStream),
}

/// The file of a unix socket; removed with it, unless another process has put its own there meanwhile.
#[derive(Debug)]
pub(crate) struct SocketFile {
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

/// Longest wait for others that begin or end to listen in the same folder; each of them takes a moment.
const FOLDER_WAIT: Duration = Duration::from_secs(5);
/// How often it is looked whether they are done.
const FOLDER_PAUSE: Duration = Duration::from_millis(2);

/// Nobody else begins or ends to listen in a folder as long as this is held: two processes that find the same dead
/// socket would both remove what is there, the second of them the new socket of the first. The lock is one on the folder
/// itself, so no file is left behind, and it is gone with its process.
///
/// `None`: folders cannot be locked there, or not by us.
fn lock_folder(path: &Path) -> io::Result<Option<File>> {
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let Ok(folder) = File::open(folder) else {
        return Ok(None);
    };
    let since = Instant::now();
    loop {
        match folder.try_lock() {
            Ok(()) => return Ok(Some(folder)),
            Err(TryLockError::Error(_)) => return Ok(None),
            Err(TryLockError::WouldBlock) if since.elapsed() > FOLDER_WAIT => {
                let message = "another process holds a lock on the socket's folder";
                return Err(io::Error::new(io::ErrorKind::WouldBlock, message));
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(FOLDER_PAUSE),
        }
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let _alone = lock_folder(&self.path);
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
    /// `HOST:PORT`, or `unix://` and a path, whose file has this mode.
    pub(crate) async fn bind(listen: &str, mode: u32) -> io::Result<Listener> {
        if let Some(path) = listen.strip_prefix("unix://") {
            let path = Path::new(path);
            let _alone = lock_folder(path)?;
            remove_stale(path)?;
            let listener = UnixListener::from_std(bind_unix(path, mode)?)?;
            return Ok(Listener::Unix(SocketFile::new(path), listener));
        }
        let listener = bind_tcp(listen).await?;
        let address = listener.local_addr()?;
        Ok(Listener::Tcp(listener, address))
    }
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        match self {
            Listener::Tcp(_, address) => Some(*address),
            Listener::Unix(..) => None,
        }
    }
    /// As a client would write it, without a path.
    pub(crate) fn url(&self, tls: bool) -> String {
        match self {
            Listener::Tcp(_, address) if tls => format!("https://{address}"),
            Listener::Tcp(_, address) => format!("http://{address}"),
            Listener::Unix(file, _) => format!("unix://{}", file.path.display()),
        }
    }
    pub(crate) async fn accept(&self) -> io::Result<Accepted> {
        match self {
            // The stream leaves this thread's reactor for the worker's.
            Listener::Tcp(listener, _) => {
                let (stream, address) = listener.accept().await?;
                Ok(Accepted::Tcp(stream.into_std()?, address))
            }
            Listener::Unix(_, listener) => {
                let (stream, _) = listener.accept().await?;
                stream.into_std().map(Accepted::Unix)
            }
        }
    }
    /// Closes the socket. Gives the connections that the operating system has accepted already: their clients believe
    /// to be served.
    pub(crate) fn close(self) -> Vec<Accepted> {
        let mut accepted = Vec::new();
        match self {
            Listener::Tcp(listener, _) => {
                if let Ok(listener) = listener.into_std() {
                    while let Ok((stream, address)) = listener.accept() {
                        if stream.set_nonblocking(true).is_ok() {
                            accepted.push(Accepted::Tcp(stream, address));
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
    /// Who is at the other end.
    pub(crate) fn peer(&self) -> Peer {
        match self {
            Accepted::Tcp(_, address) => Peer::Tcp(*address),
            Accepted::Unix(_) => Peer::Unix,
        }
    }
    /// Joins the reactor of this thread. Says who is at the other end, too.
    pub(crate) fn join(self) -> io::Result<(Socket, Peer)> {
        let peer = self.peer();
        match self {
            Accepted::Tcp(stream, _) => {
                let stream = TcpStream::from_std(stream)?;
                // Answers are written whole; waiting for more would only delay them.
                let _ = stream.set_nodelay(true);
                Ok((Socket::Tcp(stream), peer))
            }
            Accepted::Unix(stream) => {
                let stream = UnixStream::from_std(stream)?;
                Ok((Socket::Unix(stream), peer))
            }
        }
    }
}

/// Binds a path. Nobody else can connect before the file has its mode: it is made with less than that, where the system
/// can do so, and there is nothing to connect to before it listens.
fn bind_unix(path: &Path, mode: u32) -> io::Result<std::os::unix::net::UnixListener> {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, bind, listen, socket};

    let socket = socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
    rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::CLOEXEC)?;
    // Linux makes the file with the socket's own mode, as far as the umask lets it.
    let socket = File::from(socket);
    let _ = socket.set_permissions(PermissionsExt::from_mode(mode & 0o700));
    let socket = OwnedFd::from(socket);
    bind(&socket, &SocketAddrUnix::new(path)?)?;
    let made = std::fs::set_permissions(path, PermissionsExt::from_mode(mode));
    let listening = made.and_then(|()| Ok(listen(&socket, BACKLOG as i32)?));
    if let Err(error) = listening {
        let _ = std::fs::remove_file(path);
        return Err(error);
    }
    let listener = std::os::unix::net::UnixListener::from(socket);
    listener.set_nonblocking(true)?;
    Ok(listener)
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
    use std::sync::Barrier;

    use super::*;

    /// Eight at a time, all of whom find the socket of a process that is gone.
    #[test]
    fn of_many_that_start_at_once_one_listens() {
        let folder = std::env::temp_dir().join(format!("ogive-at-once-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("ogive.sock");
        let listen = format!("unix://{}", path.display());
        for _ in 0..25 {
            drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
            let (begin, end) = (Barrier::new(8), Barrier::new(8));
            let run = || {
                let mut runtime = tokio::runtime::Builder::new_current_thread();
                let runtime = runtime.enable_io().build().unwrap();
                begin.wait();
                let bound = runtime.block_on(Listener::bind(&listen, 0o600));
                end.wait();
                match bound {
                    // Whoever listens is the one that clients reach.
                    Ok(listener) => {
                        let client = std::os::unix::net::UnixStream::connect(&path);
                        assert!(client.is_ok(), "{client:?}");
                        let _within = runtime.enter();
                        // Those that looked whether somebody listens have connected, too.
                        assert!(!listener.close().is_empty());
                        true
                    }
                    Err(error) => {
                        // On a busy machine the others may take longer than one waits for them.
                        let kinds = [io::ErrorKind::AddrInUse, io::ErrorKind::WouldBlock];
                        assert!(kinds.contains(&error.kind()), "{error}");
                        false
                    }
                }
            };
            let listening = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..8).map(|_| scope.spawn(run)).collect();
                let ended = threads.into_iter().map(|thread| thread.join().unwrap());
                ended.filter(|listens| *listens).count()
            });
            assert_eq!(listening, 1);
            assert!(!path.exists());
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[tokio::test(flavor = "current_thread")]
    async fn the_socket_of_another_process_is_not_removed() {
        let name = format!("ogive-listener-{}.sock", std::process::id());
        let path = std::env::temp_dir().join(name);
        let listen = format!("unix://{}", path.display());
        for closes in [true, false] {
            let before = Listener::bind(&listen, 0o600).await.unwrap();
            // Whoever deploys the next one makes room for it.
            std::fs::remove_file(&path).unwrap();
            let after = Listener::bind(&listen, 0o600).await.unwrap();
            if closes {
                assert!(before.close().is_empty())
            } else {
                drop(before)
            }
            let client = UnixStream::connect(&path).await;
            assert!(client.is_ok(), "{client:?}");
            assert_eq!(after.close().len(), 1);
            assert!(!path.exists());
        }
    }
}
