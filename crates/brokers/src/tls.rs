//! TLS towards brokers.

use std::sync::Arc;

use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};

use crate::settings::TlsSettings;

/// What a library is given.
pub(crate) fn client(settings: &TlsSettings) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    match &settings.authorities {
        Some(pem) => {
            for certificate in certificates(pem)? {
                roots.add(certificate).map_err(|error| error.to_string())?;
            }
        }
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    if roots.is_empty() {
        return Err("there is no authority to trust".to_owned());
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots);
    match &settings.identity {
        None => Ok(builder.with_no_client_auth()),
        Some((chain, key)) => {
            let key =
                PrivateKeyDer::from_pem_slice(key).map_err(|error| format!("its key: {error}"))?;
            let config = builder.with_client_auth_cert(certificates(chain)?, key);
            config.map_err(|error| error.to_string())
        }
    }
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let found = found.map_err(|error| format!("a certificate: {error}"))?;
    if found.is_empty() {
        return Err("there is no certificate in it".to_owned());
    }
    Ok(found)
}
