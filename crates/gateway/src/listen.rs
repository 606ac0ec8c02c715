//! How to listen and serve, as the configuration asks for it.

use std::{fmt, num::NonZeroUsize, sync::Arc};

use ogive_config::Config;
use ogive_net::{Identity, Pem, ServerTls, ServerTlsOptions, tls::TlsError};
use ogive_server::{ServeOptions, tls::warn_of_end};

/// Why `tls.supergraph` cannot be used. For the operator.
#[derive(Debug)]
pub enum ListenerTlsError {
    /// A key that it needs is not there.
    Missing(&'static str),
    /// A certificate or key cannot be used.
    Unusable(TlsError),
}

/// The options of the server that a configuration asks for.
pub fn serve_options(config: &Config) -> ServeOptions {
    let http = &config.http;
    ServeOptions {
        workers: http
            .workers
            .unwrap_or_else(|| std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)),
        connections_max: http.connections_max.get(),
        connections_per_client_max: http.connections_per_client_max().get(),
        trusted_proxies: http.trusted_proxies.as_slice().into(),
        header_read_timeout: http.header_read_timeout.0,
        headers_max: config.limits.http1_max_request_headers.get(),
        // Smaller heads than this are a browser's everyday.
        header_bytes_max: config.limits.http1_max_request_buf_size.0.max(8 << 10),
        write_timeout: http.write_timeout.0,
        http2: http.http2.enabled,
        http2_streams_max: http.http2.max_concurrent_streams.max(1),
        http2_resets_max: http.http2.max_reset_streams,
        tls_interval: config.tls.reload_interval.0,
        drain_delay: http.drain_delay.0,
        drain_idle_timeout: http.drain_idle_timeout.0,
        drain_timeout: http.connection_shutdown_timeout.0,
        warn_only: config.limits.warn_only,
    }
}

/// TLS of the listener; `None` if it has none.
pub fn listener_tls(config: &Config) -> Result<Option<Arc<ServerTls>>, ListenerTlsError> {
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
            return Err(ListenerTlsError::Missing(key));
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
    let tls = tls.map_err(ListenerTlsError::Unusable)?;
    warn_of_end(&tls);
    Ok(Some(Arc::new(tls)))
}

impl fmt::Display for ListenerTlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListenerTlsError::Missing(key) => write!(f, "`tls.supergraph.{key}` is missing"),
            ListenerTlsError::Unusable(error) => {
                write!(f, "`tls.supergraph` cannot be used: {error}")
            }
        }
    }
}

impl std::error::Error for ListenerTlsError {}

#[cfg(test)]
mod tests {
    use super::*;

    /// Limits that are only measured hold at ten times themselves, and not below the default that the server knows.
    #[test]
    fn the_server_has_the_defaults_of_the_configuration() {
        assert_eq!(serve_options(&Config::default()), ServeOptions::default());
    }
}
