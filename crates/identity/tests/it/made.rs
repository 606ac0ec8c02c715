//! Keys and tokens that tests make, and files and servers that they are in.

use std::{
    fs,
    io::{Read, Write},
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread::JoinHandle,
};

use ogive_identity::base64url;
use ring::{
    rand::SystemRandom,
    signature::{Ed25519KeyPair, KeyPair},
};
use serde_json::{Value, json};

/// A folder that goes when this does.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("ogive-identity-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
    /// Writes a file, which nobody sees half written.
    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        let temporary = self.0.join(format!("{name}.new"));
        fs::write(&temporary, text).unwrap();
        fs::rename(&temporary, &path).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A key of Ed25519.
pub(crate) struct Made {
    pub(crate) kid: String,
    pair: Ed25519KeyPair,
}

impl Made {
    pub(crate) fn new(kid: &str) -> Self {
        let random = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Made {
            kid: kid.into(),
            pair: Ed25519KeyPair::from_pkcs8(random.as_ref()).unwrap(),
        }
    }
    pub(crate) fn jwk(&self) -> Value {
        let x = base64url::encode(self.pair.public_key().as_ref());
        json!({ "kty": "OKP", "crv": "Ed25519", "kid": self.kid, "x": x })
    }
    /// A token with these claims.
    pub(crate) fn token(&self, claims: &Value) -> String {
        self.signed(
            &json!({ "alg": "EdDSA", "kid": self.kid }).to_string(),
            &claims.to_string(),
        )
    }
    pub(crate) fn signed(&self, header: &str, claims: &str) -> String {
        let encode = |text: &str| base64url::encode(text.as_bytes());
        let signed = format!("{}.{}", encode(header), encode(claims));
        let signature = base64url::encode(self.pair.sign(signed.as_bytes()).as_ref());
        format!("{signed}.{signature}")
    }
}

/// The text of a set.
pub(crate) fn jwks(keys: &[&Made]) -> String {
    let keys: Vec<Value> = keys.iter().map(|key| key.jwk()).collect();
    json!({ "keys": keys }).to_string()
}

/// Claims that hold.
pub(crate) fn claims(issuer: &str) -> Value {
    let end = ogive_identity::key_source::now() + 600;
    json!({ "iss": issuer, "sub": "ida", "exp": end })
}

/// An HTTP server that answers every request with the same bytes, until it is told to answer with others.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    answer: Arc<Mutex<Option<String>>>,
    requests: Arc<Mutex<Vec<String>>>,
    stop: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    pub(crate) fn new(answer: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let answer = Arc::new(Mutex::new(Some(answer.to_owned())));
        let (requests, stop) = (
            Arc::new(Mutex::new(Vec::new())),
            Arc::new(AtomicUsize::new(0)),
        );
        let (answers, noted, stopped) = (
            Arc::clone(&answer),
            Arc::clone(&requests),
            Arc::clone(&stop),
        );
        let thread = std::thread::spawn(move || {
            let mut silent = Vec::new();
            for stream in listener.incoming() {
                if stopped.load(Ordering::Acquire) > 0 {
                    return;
                }
                let Ok(mut stream) = stream else { continue };
                let (mut head, mut buffer) = (Vec::new(), [0; 4096]);
                while !head.ends_with(b"\r\n\r\n") {
                    match stream.read(&mut buffer) {
                        Ok(0) | Err(_) => break,
                        Ok(n) => head.extend_from_slice(&buffer[..n]),
                    }
                }
                let head = String::from_utf8_lossy(&head).into_owned();
                if head.is_empty() {
                    continue;
                }
                noted.lock().unwrap().push(head);
                // Without an answer it closes the connection.
                if let Some(answer) = &*answers.lock().unwrap() {
                    let _ = stream.write_all(answer.as_bytes());
                    // With an empty one it says nothing, and stays.
                    if answer.is_empty() {
                        silent.push(stream);
                    }
                }
            }
        });
        Server {
            address,
            answer,
            requests,
            stop,
            thread: Some(thread),
        }
    }
    /// One that answers with JSON.
    pub(crate) fn json(body: &str) -> Self {
        Server::new(&ok(body, ""))
    }
    pub(crate) fn url(&self) -> String {
        format!("http://{}/jwks", self.address)
    }
    pub(crate) fn answer(&self, answer: Option<String>) {
        *self.answer.lock().unwrap() = answer;
    }
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(1, Ordering::Release);
        let _ = std::net::TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// An answer with a body.
pub(crate) fn ok(body: &str, headers: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n{headers}\r\n{body}",
        body.len()
    )
}
