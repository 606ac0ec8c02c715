//! TLS towards subgraphs, as the configuration asks for it.

use std::sync::Arc;

use ogive_config::{Config, TlsIdentityOptions};
use ogive_transport::{ClientTls, ClientTlsOptions, EndpointError, Http2, Identity, Pem};

/// TLS towards one subgraph, whose URL is `https`.
pub(crate) fn subgraph_tls(
    config: &Config,
    name: &str,
    http2: Http2,
) -> Result<Option<Arc<ClientTls>>, EndpointError> {
    let options = config.subgraph_tls(name);
    let insecure = options.insecure_skip_verify.unwrap_or(false);
    if insecure {
        tracing::warn!(
            subgraph = name,
            "`insecure_skip_verify`: the subgraph's certificate is NOT checked; whoever is on the way to it can read \
             and change every request and answer"
        );
    }
    let identity = options.client_authentication.map(|identity| {
        let TlsIdentityOptions {
            certificate_chain,
            key,
        } = identity;
        Identity {
            chain: Pem::new(&certificate_chain),
            key: Pem::new(&key),
        }
    });
    let tls = ClientTls::load(
        ClientTlsOptions {
            authorities: options.certificate_authorities.as_deref().map(Pem::new),
            identity,
            server_name: options.server_name,
            insecure_skip_verify: insecure,
        },
        http2,
    );
    tls.map(|tls| Some(Arc::new(tls)))
        .map_err(|error| EndpointError::Tls(error.to_string()))
}
