//! What a gateway does beside answering requests: endpoints for the operator on addresses of their own, and sending
//! metrics and spans to collectors, on one thread; and looking for better plans, on another one ([`crate::schema::refine`]).

pub(crate) mod certificates;
pub(crate) mod documents;
pub(crate) mod export;
pub(crate) mod gauges;
pub(crate) mod revocation;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use ogive_config::Config;
use ogive_edge::health::{asks_readiness, health};
use ogive_server::operator::OperatorListener;
use ogive_telemetry::metrics::text;
use tokio::{sync::Notify, task::LocalSet};

use crate::{
    Gateway, ResponseBody,
    background::{export::Exporter, revocation::keep_judging},
    schema::refine::Refiner,
    usage::report,
};

/// How long the last metrics and spans may take to be sent.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);

/// How often it is looked whether failures were left out of the log that nothing follows.
const SETTLE_INTERVAL: Duration = Duration::from_secs(5);

/// What answers on one address.
#[derive(Clone, Debug, Default)]
struct Paths {
    metrics: Option<String>,
    live: Option<String>,
    ready: Option<String>,
}

/// The threads.
#[derive(Debug)]
pub struct Background {
    refiner: Refiner,
    thread: Option<std::thread::JoinHandle<()>>,
    stop: Arc<Notify>,
    metrics: Option<SocketAddr>,
    health: Option<SocketAddr>,
}

/// Why what goes on beside requests cannot begin, for the operator.
#[derive(Debug)]
pub enum StartError {
    /// An address cannot be listened on; its key is named.
    Address {
        /// The sentence.
        message: String,
    },
    /// Anything else.
    Other(String),
}

impl std::fmt::Display for StartError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            StartError::Address { message } | StartError::Other(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for StartError {}

const METRICS_LISTEN: &str = "telemetry.exporters.metrics.prometheus.listen";
const HEALTH_LISTEN: &str = "health_check.listen";

impl Background {
    /// Binds what a configuration asks for and begins. The error is for the operator.
    pub fn start(config: &Config, gateway: Arc<Gateway>) -> Result<Self, StartError> {
        let mut wanted: Vec<(String, Paths)> = Vec::new();
        let mut add = |listen: &str, change: &dyn Fn(&mut Paths)| {
            let at = wanted.iter().position(|(known, _)| known == listen);
            let at = at.unwrap_or_else(|| {
                wanted.push((listen.to_owned(), Paths::default()));
                wanted.len() - 1
            });
            change(&mut wanted[at].1);
        };
        let prometheus = &config.telemetry.exporters.metrics.prometheus;
        if prometheus.enabled {
            add(&prometheus.listen.0, &|paths| {
                paths.metrics = Some(prometheus.path.0.clone());
            });
        }
        let check = &config.health_check;
        if let Some(listen) = check.listen.as_ref().filter(|_| check.enabled) {
            add(&listen.0, &|paths| {
                paths.live = Some(check.path.0.clone());
                paths.ready = Some(check.readiness_path.0.clone());
            });
        }
        let (mut metrics, mut health) = (None, None);
        let mut bound = Vec::new();
        for (listen, paths) in wanted {
            let listener = OperatorListener::bind(&listen).map_err(|error| {
                let keys = match (&paths.metrics, &paths.live) {
                    (Some(_), None) => METRICS_LISTEN.to_owned(),
                    (None, _) => HEALTH_LISTEN.to_owned(),
                    (Some(_), Some(_)) => format!("{METRICS_LISTEN}` and `{HEALTH_LISTEN}"),
                };
                let message = format!("cannot listen on {listen} (`{keys}`): {error}");
                StartError::Address { message }
            })?;
            let address = listener.address();
            metrics = metrics.or(paths.metrics.is_some().then_some(address));
            health = health.or(paths.live.is_some().then_some(address));
            bound.push((listener, paths));
        }
        let exporter = Exporter::new(config, Arc::clone(&gateway)).map_err(StartError::Other)?;
        let refiner = Refiner::start(Arc::clone(&gateway)).map_err(StartError::Other)?;
        let tls_interval = config.tls.reload_interval.0;
        let stop = Arc::new(Notify::new());
        let stopping = Arc::clone(&stop);
        let run = move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .max_blocking_threads(2)
                .build();
            match runtime {
                Ok(runtime) => {
                    runtime.block_on(run(gateway, bound, exporter, tls_interval, stopping));
                    // Whoever looks up the collector's name must not hold up the end.
                    runtime.shutdown_background();
                }
                Err(error) => tracing::error!(%error, "telemetry cannot be started"),
            }
        };
        let thread = std::thread::Builder::new()
            .name("ogive-telemetry".to_owned())
            .spawn(run)
            .map_err(|error| StartError::Other(format!("cannot start a thread: {error}")))?;
        Ok(Background {
            refiner,
            thread: Some(thread),
            stop,
            metrics,
            health,
        })
    }
    /// The thread that looks for better plans.
    pub fn refiner(&self) -> &Refiner {
        &self.refiner
    }
    /// Where metrics can be scraped.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics
    }
    /// Where health is answered, if that is an address of its own.
    pub fn health_address(&self) -> Option<SocketAddr> {
        self.health
    }
}

impl Drop for Background {
    /// Sends what is left, for at most [`FLUSH_TIMEOUT`].
    fn drop(&mut self) {
        self.stop.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

async fn run(
    gateway: Arc<Gateway>,
    bound: Vec<(OperatorListener, Paths)>,
    exporter: Exporter,
    tls_interval: Duration,
    stop: Arc<Notify>,
) {
    for (listener, paths) in bound {
        let gateway = Arc::clone(&gateway);
        tokio::spawn(async move {
            let serving = listener.serve(move |request| answer(request, &gateway, &paths));
            let error = serving.await;
            tracing::error!(%error, "an address for the operator is lost");
        });
    }
    tokio::spawn(certificates::keep_up_to_date(
        Arc::clone(&gateway),
        tls_interval,
    ));
    let judging = LocalSet::new();
    judging.spawn_local(keep_judging(Arc::clone(&gateway)));
    judging.spawn_local(documents::keep_up_to_date(Arc::clone(&gateway)));
    let (usage_of, resource) = (Arc::clone(&gateway), exporter.resource.clone());
    let failing = Arc::clone(&gateway);
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(SETTLE_INTERVAL).await;
            failing.telemetry().failures.settle();
        }
    });
    let ended = Arc::new(Notify::new());
    let mut counting = tokio::spawn(report::run(usage_of, resource, Arc::clone(&ended)));
    let told = Arc::new(Notify::new());
    let mut exporting = tokio::spawn(exporter.run(Arc::clone(&told)));
    judging.run_until(stop.notified()).await;
    documents::finish(&gateway);
    told.notify_one();
    ended.notify_one();
    if tokio::time::timeout(FLUSH_TIMEOUT, &mut counting)
        .await
        .is_err()
    {
        tracing::warn!("the last usage could not be told in time");
    }
    if tokio::time::timeout(FLUSH_TIMEOUT, &mut exporting)
        .await
        .is_err()
    {
        tracing::warn!("the last metrics and spans could not be sent in time");
    }
}

fn answer(request: &Request<()>, gateway: &Gateway, paths: &Paths) -> Response<ResponseBody> {
    let is = |path: &Option<String>| path.as_deref() == Some(request.uri().path());
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut response = Response::new(ResponseBody::default());
        *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
        let allow = HeaderValue::from_static("GET, HEAD");
        response.headers_mut().insert(header::ALLOW, allow);
        return response;
    }
    if is(&paths.live) {
        let ready = asks_readiness(request.uri().query());
        return health(!ready || gateway.is_ready());
    }
    if is(&paths.ready) {
        return health(gateway.is_ready());
    }
    let metrics = gateway.telemetry().metrics.as_ref();
    if let Some(metrics) = metrics.filter(|_| is(&paths.metrics)) {
        let families = metrics.snapshot(gateway.gauges());
        let body = Bytes::from(text::write(&families));
        let mut response = Response::new(ResponseBody::from(body));
        let kind = HeaderValue::from_static(text::CONTENT_TYPE);
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        return response;
    }
    let mut response = Response::new(ResponseBody::default());
    *response.status_mut() = StatusCode::NOT_FOUND;
    response
}
