//! How a connection is made: to one server, to a cluster, or by way of sentinels.

use std::time::Duration;

use redis::{
    AsyncConnectionConfig, Client, ClientTlsConfig, ConnectionAddr, ConnectionInfo,
    IntoConnectionInfo, RedisError, RedisFuture, TlsCertificates, TlsMode,
    aio::{ConnectionLike, MultiplexedConnection},
    cluster::ClusterClient,
    cluster_async::ClusterConnection,
    sentinel::{SentinelClient, SentinelClientBuilder, SentinelServerType},
};
use tokio::sync::Mutex;

use crate::options::{StoreOptions, StoreTls, Topology};

/// How long connecting may take at least; nobody waits for it longer than for an answer.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// What makes connections.
pub(crate) enum Source {
    Single(Client),
    Cluster(ClusterClient),
    Sentinel(Mutex<SentinelClient>),
}

/// A connection that many use at a time.
#[derive(Clone)]
pub(crate) enum Connection {
    Single(MultiplexedConnection),
    Cluster(ClusterConnection),
}

impl ConnectionLike for Connection {
    fn req_packed_command<'a>(&'a mut self, cmd: &'a redis::Cmd) -> RedisFuture<'a, redis::Value> {
        match self {
            Connection::Single(c) => c.req_packed_command(cmd),
            Connection::Cluster(c) => c.req_packed_command(cmd),
        }
    }
    fn req_packed_commands<'a>(
        &'a mut self,
        cmd: &'a redis::Pipeline,
        offset: usize,
        count: usize,
    ) -> RedisFuture<'a, Vec<redis::Value>> {
        match self {
            Connection::Single(c) => c.req_packed_commands(cmd, offset, count),
            Connection::Cluster(c) => c.req_packed_commands(cmd, offset, count),
        }
    }
    fn get_db(&self) -> i64 {
        0
    }
}

impl Source {
    /// What options name. Fails if they make no sense.
    pub(crate) fn new(options: &StoreOptions) -> Result<Self, RedisError> {
        let infos: Result<Vec<ConnectionInfo>, RedisError> =
            options.urls.iter().map(|url| info(url, options)).collect();
        let infos = infos?;
        let no_url =
            || RedisError::from((redis::ErrorKind::InvalidClientConfig, "no URL of Redis"));
        let first = infos.first().cloned().ok_or_else(no_url)?;
        let certificates = certificates(&options.tls);
        let is_encrypted = matches!(first.addr(), ConnectionAddr::TcpTls { .. });
        Ok(match &options.topology {
            Topology::Single if is_encrypted => {
                Source::Single(Client::build_with_tls(first, certificates)?)
            }
            Topology::Single => Source::Single(Client::open(first)?),
            Topology::Cluster => {
                let mut builder = ClusterClient::builder(infos)
                    .connection_timeout(CONNECT_TIMEOUT)
                    .response_timeout(options.timeout)
                    .retries(1);
                if is_encrypted {
                    builder = builder.certs(certificates);
                }
                if let Some(username) = &options.username {
                    builder = builder.username(username);
                }
                if let Some(password) = &options.password {
                    builder = builder.password(password);
                }
                Source::Cluster(builder.build()?)
            }
            Topology::Sentinel(name) => {
                // URLs say who asks the sentinels, and the server, too, unless the options say it.
                let settings = first.redis_settings().clone();
                let url = options.urls.first().map_or("", String::as_str);
                let of_sentinel = url.into_connection_info()?.redis_settings().clone();
                let addresses = infos.into_iter().map(|info| info.addr().clone());
                let kind = SentinelServerType::Master;
                let mut builder = SentinelClientBuilder::new(addresses, name.clone(), kind)?;
                if let Some(username) = settings.username() {
                    builder = builder.set_client_to_redis_username(username);
                }
                if let Some(password) = settings.password() {
                    builder = builder.set_client_to_redis_password(password);
                }
                if let Some(username) = of_sentinel.username() {
                    builder = builder.set_client_to_sentinel_username(username);
                }
                if let Some(password) = of_sentinel.password() {
                    builder = builder.set_client_to_sentinel_password(password);
                }
                builder = builder.set_client_to_redis_db(settings.db());
                if is_encrypted {
                    builder = builder
                        .set_client_to_redis_tls_mode(TlsMode::Secure)
                        .set_client_to_sentinel_tls_mode(TlsMode::Secure)
                        .set_client_to_redis_certificates(certificates.clone())
                        .set_client_to_sentinel_certificates(certificates);
                }
                Source::Sentinel(Mutex::new(builder.build()?))
            }
        })
    }

    /// A new connection.
    pub(crate) async fn connect(&self, timeout: Duration) -> Result<Connection, RedisError> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_TIMEOUT))
            .set_response_timeout(Some(timeout));
        Ok(match self {
            Source::Single(client) => {
                let connected = client.get_multiplexed_async_connection_with_config(&config);
                Connection::Single(connected.await?)
            }
            Source::Cluster(client) => Connection::Cluster(client.get_async_connection().await?),
            Source::Sentinel(client) => {
                let mut client = client.lock().await;
                let connected = client.get_async_connection_with_config(&config);
                Connection::Single(connected.await?)
            }
        })
    }
}

fn info(url: &str, options: &StoreOptions) -> Result<ConnectionInfo, RedisError> {
    let info = url.into_connection_info()?;
    let mut settings = info.redis_settings().clone();
    if let Some(username) = &options.username {
        settings = settings.set_username(username);
    }
    if let Some(password) = &options.password {
        settings = settings.set_password(password);
    }
    Ok(info.set_redis_settings(settings))
}

fn certificates(tls: &StoreTls) -> TlsCertificates {
    let identity = tls.identity.clone();
    TlsCertificates {
        client_tls: identity.map(|(client_cert, client_key)| ClientTlsConfig {
            client_cert,
            client_key,
        }),
        root_cert: tls.authorities.clone(),
    }
}
