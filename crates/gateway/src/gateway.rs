//! The pipeline behind one HTTP request, independent of sockets.

use std::{
    fmt::Display,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use arc_swap::ArcSwap;
use http::{HeaderValue, Method, Request, Response, StatusCode, header, request::Parts};
use hyper::body::{Body, Bytes};
use ogive_config::Config;
use ogive_telemetry::{codes, spans, stop_span};
use ogive_transport::Client;
use tracing::Instrument;

use crate::{
    body::ResponseBody,
    error::{RequestError, internal},
    execute::execute,
    expose::{ExposeOptions, Exposed, add_plan, dry_run},
    graphiql,
    media::{Accept, Media, accept},
    panic::contained,
    plan::plan,
    prepare::prepare,
    receive::{ReceiveLimits, receive},
    respond::{refuse, respond, respond_with},
    state::SchemaState,
};

/// A gateway: one schema at a time, any number of workers.
#[derive(Debug)]
pub struct Gateway {
    state: ArcSwap<SchemaState>,
    options: GatewayOptions,
    draining: AtomicBool,
}

/// What does not change with the schema.
#[derive(Clone, Debug, PartialEq)]
pub struct GatewayOptions {
    /// Path of the GraphQL endpoint.
    pub graphql_path: String,
    /// Path of GraphiQL; `None` if it is off.
    pub homepage_path: Option<String>,
    /// Paths of liveness and readiness; `None` if they are off.
    pub health_paths: Option<(String, String)>,
    /// Limits on what is received.
    pub receive: ReceiveLimits,
    /// Whether clients may see plans.
    pub expose: ExposeOptions,
    /// The operation GraphiQL starts with.
    pub graphiql_query: Option<String>,
}

impl GatewayOptions {
    /// The options that a configuration asks for.
    pub fn new(config: &Config) -> Self {
        let health = &config.health_check;
        GatewayOptions {
            graphql_path: config.http.graphql_endpoint.0.clone(),
            homepage_path: config
                .homepage
                .enabled
                .then(|| config.homepage.path.0.clone()),
            health_paths: health
                .enabled
                .then(|| (health.path.0.clone(), health.readiness_path.0.clone())),
            receive: ReceiveLimits {
                body_bytes_max: config.limits.http_max_request_bytes.0,
                body_timeout: config.http.body_read_timeout.0,
            },
            expose: ExposeOptions::new(config),
            graphiql_query: None,
        }
    }
}

impl Gateway {
    /// A gateway that serves `state`.
    pub fn new(state: SchemaState, options: GatewayOptions) -> Self {
        Gateway {
            state: ArcSwap::from_pointee(state),
            options,
            draining: AtomicBool::new(false),
        }
    }
    /// The schema that new requests are served with.
    pub fn state(&self) -> Arc<SchemaState> {
        self.state.load_full()
    }
    /// Serves new requests with another schema; requests in flight keep theirs.
    pub fn replace(&self, state: SchemaState) {
        self.state.store(Arc::new(state));
    }
    /// What does not change with the schema.
    pub fn options(&self) -> &GatewayOptions {
        &self.options
    }
    /// Reports "not ready" from now on.
    pub fn start_draining(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    /// Answers one HTTP request. `client` belongs to the calling thread. Dropping the future stops all work for the
    /// request, upstream requests included.
    pub async fn handle<B>(&self, request: Request<B>, client: &Client) -> Response<ResponseBody>
    where
        B: Body,
        B::Error: Display,
    {
        let (parts, body) = request.into_parts();
        let media = match accept(&parts.headers) {
            Accept::Graphql(media) => media,
            Accept::Html | Accept::Nothing => Media::Json,
        };
        match contained(self.route(parts, body, client)).await {
            Some(response) => response,
            None => {
                tracing::error!("a request ended in a panic; the process goes on");
                refuse(&internal(), media)
            }
        }
    }

    async fn route<B>(&self, parts: Parts, body: B, client: &Client) -> Response<ResponseBody>
    where
        B: Body,
        B::Error: Display,
    {
        let path = parts.uri.path();
        let options = &self.options;
        if path == options.graphql_path {
            let browser = parts.method == Method::GET && accept(&parts.headers) == Accept::Html;
            // A page that links back to the endpoint with `?query=` is still a page.
            if !browser || options.homepage_path.is_none() {
                return self.graphql(parts, body, client).await;
            }
        }
        if !matches!(parts.method, Method::GET | Method::HEAD) {
            return refuse(&not_found_or_allowed(path, options), media_of(&parts));
        }
        if let Some((live, ready)) = &options.health_paths {
            if path == live {
                return health(true);
            }
            if path == ready {
                return health(!self.draining.load(Ordering::Relaxed));
            }
        }
        if let Some(homepage) = &options.homepage_path {
            if path == homepage || path == options.graphql_path {
                return graphiql::page(&options.graphql_path, options.graphiql_query.as_deref());
            }
            if let Some(asset) = graphiql::asset(path) {
                return asset;
            }
        }
        refuse(&not_found_or_allowed(path, options), media_of(&parts))
    }

    /// The five stops.
    async fn graphql<B>(&self, parts: Parts, body: B, client: &Client) -> Response<ResponseBody>
    where
        B: Body,
        B::Error: Display,
    {
        let Accept::Graphql(media) = accept(&parts.headers) else {
            let message = "the `accept` header admits neither `application/graphql-response+json` nor \
                           `application/json`";
            return refuse(
                &RequestError::http(codes::NOT_ACCEPTABLE, message),
                Media::Json,
            );
        };
        match self.five_stops(&parts, body, media, client).await {
            Ok(response) => response,
            Err(error) => {
                let _span = stop_span!(spans::RESPOND).entered();
                if let Some(first) = error.errors.first() {
                    tracing::debug!(
                        code = first.code,
                        message = first.message,
                        "request refused"
                    );
                }
                refuse(&error, media)
            }
        }
    }

    async fn five_stops<B>(
        &self,
        parts: &Parts,
        body: B,
        media: Media,
        client: &Client,
    ) -> Result<Response<ResponseBody>, RequestError>
    where
        B: Body,
        B::Error: Display,
    {
        let request = receive(parts, body, &self.options.receive)
            .instrument(stop_span!(spans::RECEIVE))
            .await?;
        let state = self.state();
        let prepared = stop_span!(spans::PREPARE).in_scope(|| prepare(&state, &request))?;
        let span = stop_span!(spans::PLAN, plan.source = tracing::field::Empty);
        let found = plan(&state, &prepared.operation)
            .instrument(span.clone())
            .await;
        let (planned, source) = found?;
        span.record(spans::PLAN_SOURCE, source.as_str());
        drop(span);
        let exposed = self.options.expose.asked(&parts.headers);
        if exposed == Exposed::DryRun {
            return Ok(respond_with(dry_run(&planned.plan).into(), media));
        }
        let output = execute(&state, prepared, &planned, &parts.headers, client, false)
            .instrument(stop_span!(spans::EXECUTE))
            .await?;
        Ok(stop_span!(spans::RESPOND).in_scope(|| match exposed {
            Exposed::WithResponse => {
                let body = add_plan(&planned.plan, &output.body.into_bytes());
                respond_with(body.into(), media)
            }
            _ => respond(output, media),
        }))
    }
}

fn media_of(parts: &Parts) -> Media {
    match accept(&parts.headers) {
        Accept::Graphql(media) => media,
        Accept::Html | Accept::Nothing => Media::Json,
    }
}

fn not_found_or_allowed(path: &str, options: &GatewayOptions) -> RequestError {
    let known = options
        .health_paths
        .iter()
        .flat_map(|(live, ready)| [live, ready])
        .chain(&options.homepage_path)
        .any(|p| p == path);
    if known {
        return RequestError {
            allow: Some("GET, HEAD"),
            ..RequestError::http(codes::METHOD_NOT_ALLOWED, "use GET here")
        };
    }
    RequestError::http(
        codes::NOT_FOUND,
        format!(
            "nothing is served here; the GraphQL endpoint is {}",
            options.graphql_path
        ),
    )
}

fn health(up: bool) -> Response<ResponseBody> {
    let (status, text) = if up {
        (StatusCode::OK, r#"{"status":"UP"}"#)
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, r#"{"status":"DOWN"}"#)
    };
    let mut response = Response::new(ResponseBody::from(Bytes::from_static(text.as_bytes())));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/json; charset=utf-8"),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
