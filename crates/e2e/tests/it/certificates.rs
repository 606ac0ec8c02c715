//! Certificates made for one test, and a client that checks them.

use std::{
    fs,
    net::{SocketAddr, TcpStream},
    path::PathBuf,
    sync::Arc,
};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, StreamOwned,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};

use crate::http_client::{Connection, connect};

/// An authority that a test trusts, or not.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub(crate) pem: String,
}

/// A certificate and its key in PEM.
#[derive(Clone)]
pub(crate) struct Issued {
    pub(crate) chain: String,
    pub(crate) key: String,
}

impl Authority {
    pub(crate) fn new() -> Authority {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "test");
        let pem = params.self_signed(&key).unwrap().pem();
        Authority {
            issuer: Issuer::new(params, key),
            pem,
        }
    }
    pub(crate) fn issue(&self, name: &str) -> Issued {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Issued {
            chain: certificate.pem(),
            key: key.serialize_pem(),
        }
    }
}

/// A folder of files for one test, removed again.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("ogive-e2e-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
    pub(crate) fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
    pub(crate) fn write(&self, name: &str, text: &str) -> String {
        fs::write(self.0.join(name), text).unwrap();
        self.path(name)
    }
    /// The keys `certificate_chain` and `key`.
    pub(crate) fn identity(&self, name: &str, issued: &Issued) -> String {
        format!(
            "certificate_chain: '{}', key: '{}'",
            self.write(&format!("{name}.pem"), &issued.chain),
            self.write(&format!("{name}.key"), &issued.key)
        )
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Connects to `localhost` and shakes hands. `protocols` is what the client offers; the error is that of the handshake
/// or of the first byte after it, because TLS 1.3 servers refuse clients late.
pub(crate) fn tls(
    address: SocketAddr,
    authority: &Authority,
    identity: Option<&Issued>,
    protocols: &[&str],
) -> Result<StreamOwned<ClientConnection, TcpStream>, String> {
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(authority.pem.as_bytes()).unwrap())
        .unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let mut config = match identity {
        None => builder.with_no_client_auth(),
        Some(issued) => builder
            .with_client_auth_cert(
                vec![CertificateDer::from_pem_slice(issued.chain.as_bytes()).unwrap()],
                PrivateKeyDer::from_pem_slice(issued.key.as_bytes()).unwrap(),
            )
            .unwrap(),
    };
    config.alpn_protocols = protocols.iter().map(|p| p.as_bytes().to_vec()).collect();
    let mut connection =
        ClientConnection::new(Arc::new(config), "localhost".try_into().unwrap()).unwrap();
    let mut stream = connect(address);
    while connection.is_handshaking() {
        connection
            .complete_io(&mut stream)
            .map_err(|error| error.to_string())?;
    }
    Ok(StreamOwned::new(connection, stream))
}

/// One request over TLS; the status, or why there is none.
pub(crate) fn ask(
    address: SocketAddr,
    authority: &Authority,
    identity: Option<&Issued>,
) -> Result<u16, String> {
    use std::io::{Read, Write};
    let mut stream = tls(address, authority, identity, &["http/1.1"])?;
    let request = b"GET /health HTTP/1.1\r\nhost: a\r\n\r\n";
    stream.write_all(request).map_err(|e| e.to_string())?;
    let mut first = [0; 12];
    stream.read_exact(&mut first).map_err(|e| e.to_string())?;
    let text = String::from_utf8_lossy(&first).into_owned();
    Ok(text[9..].parse().unwrap())
}

/// A connection with TLS around HTTP/1.1.
pub(crate) fn open(address: SocketAddr, authority: &Authority) -> Connection {
    Connection::over(tls(address, authority, None, &["http/1.1"]).unwrap())
}
