//! A gateway that listens.

use std::{fmt, future::Future, net::SocketAddr, sync::Arc};

use ogive_gateway::{
    Background,
    listen::{listener_tls, serve_options},
};
use ogive_server::Bound;

use crate::{Error, Gateway};

/// A gateway that listens, and answers as soon as it serves.
pub struct BoundGateway {
    gateway: Arc<Gateway>,
    bound: Bound,
    background: Background,
}

/// Changes what a gateway serves while it does.
#[derive(Clone)]
pub struct GatewayReload(Arc<Gateway>);

impl fmt::Debug for BoundGateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoundGateway").finish_non_exhaustive()
    }
}

impl fmt::Debug for GatewayReload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GatewayReload")
    }
}

impl GatewayReload {
    /// Serves new requests with another supergraph; those under way keep theirs. If it cannot be used nothing changes.
    pub fn replace_supergraph(&self, sdl: &str) -> Result<(), Error> {
        self.0.replace(sdl)
    }
}

impl Gateway {
    /// Begins to listen where the configuration says (`listen`). On a runtime of tokio with I/O and time.
    pub async fn listen(self) -> Result<BoundGateway, Error> {
        let gateway = self;
        let config = &gateway.config;
        let tls = listener_tls(config).map_err(|error| Error::Configuration(error.to_string()))?;
        let bound = Bound::bind_with(&config.listen.0, config.listen_mode.0).await;
        let bound = bound.map_err(|error| {
            Error::Serve(format!(
                "`{}` cannot be listened on: {error}",
                config.listen.0
            ))
        })?;
        let background = Background::start(config, Arc::clone(&gateway.gateway));
        let background = background.map_err(|error| Error::Serve(error.to_string()))?;
        Ok(BoundGateway {
            bound: bound.with_tls(tls),
            gateway: Arc::new(gateway),
            background,
        })
    }
}

impl BoundGateway {
    /// Where; `None` on a unix socket.
    pub fn address(&self) -> Option<SocketAddr> {
        self.bound.address()
    }
    /// What changes the gateway while it serves.
    pub fn reloading(&self) -> GatewayReload {
        GatewayReload(Arc::clone(&self.gateway))
    }
    /// Answers until `shutdown` is done, and what is under way then.
    pub async fn serve(self, shutdown: impl Future<Output = ()>) -> Result<(), Error> {
        let authentication = self.gateway.gateway.authentication();
        if let Some(authentication) = authentication {
            authentication.ready().await.map_err(Error::Serve)?;
        }
        self.gateway
            .gateway
            .documents_ready()
            .await
            .map_err(Error::Serve)?;
        let gateway = Arc::clone(&self.gateway.gateway);
        let options = serve_options(&self.gateway.config);
        let options = options.within_memory(gateway.memory().limit());
        let served = self.bound.serve(gateway, options, shutdown).await;
        drop(self.background);
        self.gateway.gateway.telemetry().finish();
        served
            .map(drop)
            .map_err(|error| Error::Serve(error.to_string()))
    }
}
