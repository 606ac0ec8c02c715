//! TLS: what each side shows and what it trusts, read from PEM files and read again when they change.
//!
//! A file that cannot be used when it is read again changes nothing: what was loaded before goes on, and the operator
//! is told.

use std::{
    fmt,
    hash::{DefaultHasher, Hash, Hasher},
    path::PathBuf,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};

use ogive_files::Pipes;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, ServerConfig,
    SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject},
    server::WebPkiClientVerifier,
};

/// When HTTP/2 is spoken with a subgraph.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Http2 {
    /// If both sides agree on it during the TLS handshake; never without TLS.
    #[default]
    Enable,
    /// Never.
    Disable,
    /// Always, without TLS from the first byte on (prior knowledge, RFC 9113, section 3.3).
    Only,
}

/// Most bytes of a PEM file.
const PEM_BYTES_MAX: u64 = 16 << 20;

/// Certificates or a key in PEM.
#[derive(Clone, PartialEq, Eq)]
pub enum Pem {
    /// In a file.
    File(PathBuf),
    /// As text.
    Text(String),
}

impl Pem {
    /// PEM text as it is; anything else is the path of a file.
    pub fn new(text: &str) -> Self {
        if text.trim_start().starts_with("-----BEGIN") {
            Pem::Text(text.to_owned())
        } else {
            Pem::File(text.into())
        }
    }
    /// The PEM itself.
    ///
    /// # Errors
    ///
    /// If its file cannot be read.
    pub fn read(&self) -> Result<Vec<u8>, TlsError> {
        match self {
            Pem::Text(text) => Ok(text.clone().into_bytes()),
            Pem::File(path) => {
                let read = ogive_files::read(path, PEM_BYTES_MAX, Pipes::Refused);
                read.map_err(|error| TlsError(format!("`{}`: {error}", path.display())))
            }
        }
    }
}

/// Never shows a key.
impl fmt::Debug for Pem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pem::File(path) => path.fmt(f),
            Pem::Text(_) => f.write_str("PEM"),
        }
    }
}

/// Why TLS cannot be used, for operators.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TlsError(pub String);

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::error::Error for TlsError {}

impl From<rustls::Error> for TlsError {
    fn from(error: rustls::Error) -> Self {
        TlsError(error.to_string())
    }
}

/// A certificate chain, the leaf first, and its key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Identity {
    /// The chain.
    pub chain: Pem,
    /// The key.
    pub key: Pem,
}

/// What holds towards a subgraph.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ClientTlsOptions {
    /// Whom to trust; default: those the operating system trusts.
    pub authorities: Option<Pem>,
    /// What to show.
    pub identity: Option<Identity>,
    /// Name that the subgraph's certificate must be for; default: the host of its URL.
    pub server_name: Option<String>,
    /// Whether any certificate is taken. Then anybody on the way can read and change everything.
    pub insecure_skip_verify: bool,
}

/// What holds towards clients.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServerTlsOptions {
    /// What to show.
    pub identity: Identity,
    /// Whose certificates clients may show; default: they are not asked.
    pub client_authorities: Option<Pem>,
    /// Whether a client without a certificate is refused.
    pub client_required: bool,
    /// Whether HTTP/2 is offered.
    pub http2: bool,
}

/// TLS towards one subgraph.
#[derive(Debug)]
pub struct ClientTls {
    options: ClientTlsOptions,
    http2: Http2,
    loaded: Mutex<Loaded<ClientConfig>>,
}

/// TLS towards clients.
#[derive(Debug)]
pub struct ServerTls {
    options: ServerTlsOptions,
    loaded: Mutex<Loaded<ServerConfig>>,
}

/// When a certificate is good, in seconds since 1970.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Validity {
    /// Its first second.
    pub begins: u64,
    /// Its last second.
    pub ends: u64,
}

#[derive(Debug)]
struct Loaded<C> {
    config: Arc<C>,
    /// Of everything that was read.
    hash: u64,
    /// Of the certificate that is shown, if it can be told.
    validity: Option<Validity>,
}

impl<C> Clone for Loaded<C> {
    fn clone(&self) -> Self {
        Loaded {
            config: Arc::clone(&self.config),
            hash: self.hash,
            validity: self.validity,
        }
    }
}

impl ClientTls {
    /// Reads what the options name.
    pub fn load(options: ClientTlsOptions, http2: Http2) -> Result<Self, TlsError> {
        let read = options.read()?;
        let loaded = Mutex::new(Loaded {
            config: Arc::new(options.config(&read, http2)?),
            hash: read.hash,
            validity: None,
        });
        Ok(ClientTls {
            options,
            http2,
            loaded,
        })
    }
    /// Reads the files again; tells whether anything has changed.
    pub fn refresh(&self) -> Result<bool, TlsError> {
        let read = self.options.read()?;
        if read.hash == current(&self.loaded).hash {
            return Ok(false);
        }
        let config = Arc::new(self.options.config(&read, self.http2)?);
        replace(&self.loaded, config, read.hash, None);
        Ok(true)
    }
    /// What connections are made with, and a number that is another one for every other configuration.
    pub fn current(&self) -> (Arc<ClientConfig>, u64) {
        let loaded = current(&self.loaded);
        (loaded.config, loaded.hash)
    }
    /// The name to ask for and to check.
    pub fn server_name(&self, host: &str) -> Result<ServerName<'static>, TlsError> {
        let name = self.options.server_name.as_deref().unwrap_or(host);
        ServerName::try_from(name.to_owned())
            .map_err(|_| TlsError(format!("`{name}` is no name that a certificate can be for")))
    }
}

impl ServerTls {
    /// Reads what the options name.
    pub fn load(options: ServerTlsOptions) -> Result<Self, TlsError> {
        let read = options.read()?;
        let loaded = Mutex::new(Loaded {
            config: Arc::new(options.config(&read)?),
            hash: read.hash,
            validity: read.validity(),
        });
        Ok(ServerTls { options, loaded })
    }
    /// Reads the files again; tells whether anything has changed. Connections that are open go on as they are.
    pub fn refresh(&self) -> Result<bool, TlsError> {
        let read = self.options.read()?;
        if read.hash == current(&self.loaded).hash {
            return Ok(false);
        }
        let config = Arc::new(self.options.config(&read)?);
        replace(&self.loaded, config, read.hash, read.validity());
        Ok(true)
    }
    /// What new connections are served with.
    pub fn config(&self) -> Arc<ServerConfig> {
        current(&self.loaded).config
    }
    /// When the certificate is good that clients are shown; `None` if it does not say so as others do.
    pub fn validity(&self) -> Option<Validity> {
        current(&self.loaded).validity
    }
}

fn current<C>(loaded: &Mutex<Loaded<C>>) -> Loaded<C> {
    loaded
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .clone()
}

fn replace<C>(loaded: &Mutex<Loaded<C>>, config: Arc<C>, hash: u64, validity: Option<Validity>) {
    *loaded.lock().unwrap_or_else(PoisonError::into_inner) = Loaded {
        config,
        hash,
        validity,
    };
}

/// The bytes of all files.
struct Read {
    authorities: Option<Vec<u8>>,
    identity: Option<(Vec<u8>, Vec<u8>)>,
    hash: u64,
}

fn read(
    authorities: Option<&Pem>,
    identity: Option<&Identity>,
    more: impl Hash,
) -> Result<Read, TlsError> {
    let authorities = authorities.map(Pem::read).transpose()?;
    let identity = identity
        .map(|identity| Ok::<_, TlsError>((identity.chain.read()?, identity.key.read()?)))
        .transpose()?;
    let mut hasher = DefaultHasher::new();
    (&authorities, &identity, more).hash(&mut hasher);
    Ok(Read {
        authorities,
        identity,
        hash: hasher.finish(),
    })
}

type Shown = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

impl Read {
    fn shown(&self) -> Result<Option<Shown>, TlsError> {
        let Some((chain, key)) = &self.identity else {
            return Ok(None);
        };
        let key = PrivateKeyDer::from_pem_slice(key)
            .map_err(|error| TlsError(format!("the key is no PEM key: {error}")))?;
        Ok(Some((certificates(chain)?, key)))
    }
    fn validity(&self) -> Option<Validity> {
        let (chain, _) = self.identity.as_ref()?;
        validity(certificates(chain).ok()?.first()?)
    }
}

/// The last second of the year 9999, which is later than any certificate ends but for those that never do (RFC 5280,
/// section 4.1.2.5).
const LATEST: Duration = Duration::from_secs(253_402_300_799);

/// When a certificate is good. Whoever checks certificates says so of those that are not good yet or any more, and
/// looks at that first; so it is asked at the ends of time.
fn validity(certificate: &CertificateDer<'static>) -> Option<Validity> {
    let mut roots = RootCertStore::empty();
    // Somebody must be trusted; who it is does not matter.
    roots.add(certificate.clone()).ok()?;
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider());
    let verifier = verifier.build().ok()?;
    let name = ServerName::try_from("localhost").ok()?;
    let wrong = |time: Duration| {
        let time = UnixTime::since_unix_epoch(time);
        let checked = verifier.verify_server_cert(certificate, &[], &name, &[], time);
        match checked {
            Err(rustls::Error::InvalidCertificate(error)) => Some(error),
            _ => None,
        }
    };
    let ends = match wrong(LATEST)? {
        CertificateError::ExpiredContext { not_after, .. } => not_after.as_secs(),
        _ => return None,
    };
    let begins = match wrong(Duration::ZERO) {
        Some(CertificateError::NotValidYetContext { not_before, .. }) => not_before.as_secs(),
        _ => 0,
    };
    Some(Validity { begins, ends })
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let found = found.map_err(|error| TlsError(format!("the certificates are no PEM: {error}")))?;
    if found.is_empty() {
        return Err(TlsError("there is no certificate in it".into()));
    }
    Ok(found)
}

fn roots(pem: &[u8]) -> Result<Arc<RootCertStore>, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(pem)? {
        roots.add(certificate)?;
    }
    Ok(Arc::new(roots))
}

/// What the operating system trusts; read once, and only if somebody needs it.
fn system_roots() -> Result<Arc<RootCertStore>, TlsError> {
    static ROOTS: OnceLock<Arc<RootCertStore>> = OnceLock::new();
    let roots = ROOTS.get_or_init(|| {
        let found = rustls_native_certs::load_native_certs();
        for error in &found.errors {
            tracing::warn!(%error, "a certificate that the system trusts cannot be read");
        }
        let mut roots = RootCertStore::empty();
        // Systems carry a few old ones that no library reads; the others are enough.
        roots.add_parsable_certificates(found.certs);
        Arc::new(roots)
    });
    if roots.is_empty() {
        return Err(TlsError(
            "the operating system trusts nobody: install its certificates, or name authorities"
                .into(),
        ));
    }
    Ok(Arc::clone(roots))
}

fn provider() -> Arc<CryptoProvider> {
    static PROVIDER: OnceLock<Arc<CryptoProvider>> = OnceLock::new();
    Arc::clone(PROVIDER.get_or_init(|| Arc::new(ring::default_provider())))
}

impl ClientTlsOptions {
    fn read(&self) -> Result<Read, TlsError> {
        read(
            self.authorities.as_ref(),
            self.identity.as_ref(),
            (&self.server_name, self.insecure_skip_verify),
        )
    }
    fn config(&self, read: &Read, http2: Http2) -> Result<ClientConfig, TlsError> {
        let builder = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()?;
        let builder = if self.insecure_skip_verify {
            builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(TrustEverybody))
        } else {
            builder.with_root_certificates(match &read.authorities {
                Some(pem) => roots(pem)?,
                None => system_roots()?,
            })
        };
        let mut config = match read.shown()? {
            Some((chain, key)) => builder.with_client_auth_cert(chain, key)?,
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols = match http2 {
            Http2::Enable => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
            Http2::Disable => vec![b"http/1.1".to_vec()],
            Http2::Only => vec![b"h2".to_vec()],
        };
        Ok(config)
    }
}

impl ServerTlsOptions {
    fn read(&self) -> Result<Read, TlsError> {
        read(self.client_authorities.as_ref(), Some(&self.identity), ())
    }
    fn config(&self, read: &Read) -> Result<ServerConfig, TlsError> {
        let builder = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()?;
        let builder = match &read.authorities {
            None => builder.with_no_client_auth(),
            Some(pem) => {
                let verifier = WebPkiClientVerifier::builder_with_provider(roots(pem)?, provider());
                let verifier = if self.client_required {
                    verifier
                } else {
                    verifier.allow_unauthenticated()
                };
                let verifier = verifier
                    .build()
                    .map_err(|error| TlsError(error.to_string()))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let Some((chain, key)) = read.shown()? else {
            return Err(TlsError("there is no certificate".into()));
        };
        let mut config = builder.with_single_cert(chain, key)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        if self.http2 {
            config.alpn_protocols.insert(0, b"h2".to_vec());
        }
        Ok(config)
    }
}

/// Takes any certificate: the switch that operators are warned about.
#[derive(Debug)]
struct TrustEverybody;

impl ServerCertVerifier for TrustEverybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }
    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }
    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }
    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        provider()
            .signature_verification_algorithms
            .supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    use super::*;

    #[test]
    fn when_a_certificate_is_good() {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let mut shown = |from, to| {
            (params.not_before, params.not_after) = (from, to);
            let chain = params.self_signed(&key).unwrap().pem();
            let tls = ServerTls::load(ServerTlsOptions {
                identity: Identity {
                    chain: Pem::Text(chain),
                    key: Pem::Text(key.serialize_pem()),
                },
                client_authorities: None,
                client_required: false,
                http2: true,
            });
            tls.unwrap().validity()
        };
        assert_eq!(
            shown(date_time_ymd(2020, 1, 1), date_time_ymd(2020, 3, 1)),
            Some(Validity {
                begins: 1_577_836_800,
                ends: 1_583_020_800,
            })
        );
        let future = shown(date_time_ymd(2100, 1, 1), date_time_ymd(2100, 1, 2)).unwrap();
        assert_eq!(future.ends - future.begins, 86_400);
    }
}
