//! What a path leads to: the GraphQL endpoint, pages for people, health.

pub mod static_responses;

use std::sync::atomic::Ordering;

use http::{HeaderName, Method, Response, StatusCode, request::Parts};
use ogive_base::Client;
use ogive_edge::{
    cors::Cors,
    dev_diagnostics,
    error::RequestError,
    graphiql,
    health::{asks_readiness, health},
    media::{Accept, accept, asks_for_websocket},
};
use ogive_telemetry::codes;

use crate::{gateway::Gateway, options::GatewayOptions};
use ogive_server::ResponseBody;

/// Who answers a request.
pub(crate) enum Destination<'p> {
    /// The five stops; with the id of a document, if the path has one.
    Graphql(Option<&'p str>),
    /// The subscription of this id, of which a subgraph has something to say.
    Callback(&'p str),
    /// Nobody any more.
    Answered(Response<ResponseBody>),
    /// Nobody at all.
    Refused(RequestError),
}

impl Gateway {
    /// Whether a request is about health.
    pub(crate) fn is_about_health(&self, parts: &Parts) -> bool {
        let options = self.options();
        let paths = options.health_paths.iter();
        let mut paths = paths.flat_map(|(live, ready)| [live, ready]);
        paths.any(|path| path == parts.uri.path())
            && matches!(parts.method, Method::GET | Method::HEAD)
    }

    /// Who answers a request. Whatever is no GraphQL is answered at once.
    pub(crate) fn destination<'p>(
        &self,
        options: &GatewayOptions,
        parts: &'p Parts,
    ) -> Destination<'p> {
        let path = parts.uri.path();
        if options.cors.is_on()
            && path.starts_with(&options.graphql_path)
            && Cors::is_preflight(parts)
        {
            let mut response = Response::new(ResponseBody::default());
            *response.status_mut() = StatusCode::NO_CONTENT;
            return Destination::Answered(response);
        }
        // With the endpoint at `/` every path is one of a document.
        if let Some(id) = document_path(options, path).filter(|_| !is_own(options, path)) {
            return Destination::Graphql(Some(id));
        }
        if path == options.graphql_path {
            let browser = parts.method == Method::GET && accept(&parts.headers) == Accept::Html;
            // A page that links back to the endpoint with `?query=` is still a page.
            if !browser || options.homepage_path.is_none() {
                return Destination::Graphql(None);
            }
        }
        // Over HTTP/2 it is one by then, too.
        let is_get = parts.method == Method::GET;
        if is_get && asks_for_websocket(&parts.headers) && options.is_websocket(path) {
            return Destination::Graphql(None);
        }
        if let Some(id) = options.callback_id(path) {
            return Destination::Callback(id);
        }
        match self.page(options, parts) {
            Ok(response) => Destination::Answered(response),
            Err(error) => Destination::Refused(error),
        }
    }

    /// The answer to a request that is no GraphQL.
    fn page(
        &self,
        options: &GatewayOptions,
        parts: &Parts,
    ) -> Result<Response<ResponseBody>, RequestError> {
        let path = parts.uri.path();
        if !matches!(parts.method, Method::GET | Method::HEAD) {
            return Err(not_found_or_allowed(path, options));
        }
        if asks_for_websocket(&parts.headers) {
            return Err(no_websockets());
        }
        if let Some((live, ready)) = &options.health_paths {
            if path == live {
                let up = !asks_readiness(parts.uri.query()) || self.is_ready();
                return Ok(health(up));
            }
            if path == ready {
                return Ok(health(self.is_ready()));
            }
        }
        if let Some(diagnostics) = options
            .dev_diagnostics
            .as_ref()
            .filter(|_| path == dev_diagnostics::PATH)
        {
            return Ok(diagnostics.answer());
        }
        if let Some(homepage) = &options.homepage_path {
            if path == homepage || path == options.graphql_path {
                return Ok(graphiql::page(
                    &options.graphql_path,
                    options.graphiql_query.as_deref(),
                    options.dev_diagnostics.is_some(),
                ));
            }
            if path == graphiql::STATE {
                return Ok(self.offered(options));
            }
            if let Some(asset) = graphiql::asset(path) {
                return Ok(asset);
            }
        }
        Err(not_found_or_allowed(path, options))
    }

    /// What GraphiQL can show of this gateway.
    fn offered(&self, options: &GatewayOptions) -> Response<ResponseBody> {
        let schema = format!(
            "{:x}-{}",
            self.started,
            self.replaced.load(Ordering::Relaxed)
        );
        graphiql::offered(
            &schema,
            self.state().options.introspection,
            options.expose.header.as_ref().map(HeaderName::as_str),
            options.observe.open_trace(),
        )
    }
}

/// Whether what is asked for is GraphiQL, or what it shows of the gateway. Its assets are the same everywhere.
pub(crate) fn is_for_people(options: &GatewayOptions, parts: &Parts) -> bool {
    let path = parts.uri.path();
    let Some(homepage) = &options.homepage_path else {
        return path == dev_diagnostics::PATH;
    };
    path == homepage
        || path == options.graphql_path
        || [graphiql::STATE, dev_diagnostics::PATH].contains(&path)
}

/// The id in the path behind the GraphQL endpoint, where trusted documents are served.
fn document_path<'p>(options: &GatewayOptions, path: &'p str) -> Option<&'p str> {
    options.documents.trusted.as_ref()?;
    let id = path.strip_prefix(&*options.graphql_path)?;
    let id = if options.graphql_path.ends_with('/') {
        id
    } else {
        id.strip_prefix('/')?
    };
    (!id.is_empty() && !id.contains('/')).then_some(id)
}

/// The answer that the configuration fixes; `None`: there is none. What holds of the endpoint holds of the documents below it.
pub(crate) fn static_response(
    options: &GatewayOptions,
    parts: &Parts,
    client: Client,
) -> Option<Response<ResponseBody>> {
    let fixed = options.static_responses.as_ref()?;
    let endpoint = document_path(options, parts.uri.path()).map(|_| &*options.graphql_path);
    fixed.find(parts, client, &options.observe, endpoint)
}

/// Whether a path is one that the gateway has something at besides GraphQL.
fn is_own(options: &GatewayOptions, path: &str) -> bool {
    let has_graphiql = options.homepage_path.is_some();
    is_page(options, path)
        || (has_graphiql && (path == graphiql::STATE || graphiql::asset(path).is_some()))
        || (options.dev_diagnostics.is_some() && path == dev_diagnostics::PATH)
        || options.is_websocket(path)
        || options.callback_id(path).is_some()
}

/// Whether something is shown there to whoever asks with `GET`: health, or GraphiQL.
fn is_page(options: &GatewayOptions, path: &str) -> bool {
    let health = options.health_paths.iter();
    let mut pages = health
        .flat_map(|(live, ready)| [live, ready])
        .chain(&options.homepage_path);
    pages.any(|page| page == path)
}

fn not_found_or_allowed(path: &str, options: &GatewayOptions) -> RequestError {
    if is_page(options, path) {
        return RequestError {
            allow: Some("GET, HEAD"),
            ..RequestError::http(
                codes::METHOD_NOT_ALLOWED,
                format!(
                    "use GET here; the GraphQL endpoint is {}, and takes POST",
                    options.graphql_path
                ),
            )
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

pub(crate) fn no_websockets() -> RequestError {
    RequestError::http(
        codes::SUBSCRIPTIONS_NOT_SUPPORTED,
        "there are no WebSockets here: send queries and mutations by POST",
    )
}
