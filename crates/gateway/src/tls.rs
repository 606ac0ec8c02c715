//! TLS as the configuration asks for it, towards clients and subgraphs, and keeping it up to date.

use std::{sync::Arc, time::Duration};

use ogive_config::{Config, TlsIdentityOptions};
use ogive_transport::{
    ClientTls, ClientTlsOptions, Endpoint, EndpointError, Http2, Identity, Pem, ServerTls,
    ServerTlsOptions,
};

use crate::Gateway;

/// Shortest time between two looks at the files.
const INTERVAL_MIN: Duration = Duration::from_millis(10);

/// TLS of the listener; `None` if it has none. The error is for the operator.
pub fn listener_tls(config: &Config) -> Result<Option<Arc<ServerTls>>, String> {
    let Some(options) = &config.tls.supergraph else {
        return Ok(None);
    };
    let clients = options.client_authentication.as_ref();
    for (key, value) in [
        ("certificate_chain", Some(&options.certificate_chain)),
        ("key", Some(&options.key)),
        (
            "client_authentication.certificate_authorities",
            clients.map(|clients| &clients.certificate_authorities),
        ),
    ] {
        if value.is_some_and(String::is_empty) {
            return Err(format!("`tls.supergraph.{key}` is missing"));
        }
    }
    let tls = ServerTls::load(ServerTlsOptions {
        identity: Identity {
            chain: Pem::new(&options.certificate_chain),
            key: Pem::new(&options.key),
        },
        client_authorities: clients.map(|clients| Pem::new(&clients.certificate_authorities)),
        client_required: clients.is_some_and(|clients| clients.required),
        http2: config.http.http2.enabled,
    });
    tls.map(|tls| Some(Arc::new(tls)))
        .map_err(|error| format!("`tls.supergraph` cannot be used: {error}"))
}

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

/// Looks at all files every `interval` and lets new connections use what has changed. What cannot be used is logged and
/// changes nothing.
pub(crate) async fn keep_up_to_date(
    gateway: &Gateway,
    listener: Option<Arc<ServerTls>>,
    interval: Duration,
) {
    loop {
        tokio::time::sleep(interval.max(INTERVAL_MIN)).await;
        let state = gateway.state();
        let has_tls = |endpoint: &Endpoint| matches!(endpoint.tls, Ok(Some(_)));
        if listener.is_none() && !state.endpoints.iter().any(has_tls) {
            continue;
        }
        let listener = listener.clone();
        let looking = tokio::task::spawn_blocking(move || {
            if let Some(tls) = listener {
                tell("the listener", tls.refresh());
            }
            for endpoint in &state.endpoints {
                if let Ok(Some(tls)) = &endpoint.tls {
                    tell(&endpoint.name, tls.refresh());
                }
            }
        });
        // A panic there was reported where it happened.
        let _ = looking.await;
    }
}

fn tell(whose: &str, refreshed: Result<bool, ogive_transport::TlsError>) {
    match refreshed {
        Ok(false) => {}
        Ok(true) => tracing::info!(whose, "certificates have changed"),
        Err(error) => tracing::error!(
            whose,
            "certificates cannot be used, going on with those before: {error}"
        ),
    }
}
