//! Answers that are fixed in the configuration (`static_responses`): given before anything is read, counted or asked.

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header, request::Parts,
};
use ogive_base::Client;
use ogive_config::{Config, StaticResponseOptions};
use ogive_selectors::Condition;
use ogive_server::ResponseBody;

use crate::shared::{
    observe_options::ObserveOptions, operation_values::RequestValues, selectors::is_met,
};

/// All of them, in their order.
#[derive(Clone, PartialEq, Debug)]
pub struct StaticResponses(Vec<StaticResponse>);

#[derive(Clone, PartialEq, Debug)]
struct StaticResponse {
    /// `None`: every path.
    path: Option<Box<str>>,
    methods: Vec<Method>,
    when: Option<Condition>,
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

impl StaticResponses {
    /// Those of a configuration; `None` if there are none.
    pub fn new(config: &Config) -> Option<Self> {
        let all: Vec<_> = config.static_responses.iter().map(made).collect();
        (!all.is_empty()).then_some(StaticResponses(all))
    }

    /// The answer to a request; `None`: it goes on. `endpoint` is that of GraphQL, if the path is one of a document below it.
    pub(crate) fn find(
        &self,
        parts: &Parts,
        client: Client,
        observe: &ObserveOptions,
        endpoint: Option<&str>,
    ) -> Option<Response<ResponseBody>> {
        let path = parts.uri.path();
        let is_at = |known: &str| known == path || endpoint == Some(known);
        let values = RequestValues {
            headers: &parts.headers,
            caller: None,
            client: Some(client),
            observe,
        };
        let found = self.0.iter().find(|one| {
            one.path.as_ref().is_none_or(|known| is_at(known))
                && one.methods.contains(&parts.method)
                && one.when.as_ref().is_none_or(|when| is_met(when, &values))
        })?;
        let mut response = Response::new(ResponseBody::from(found.body.clone()));
        *response.status_mut() = found.status;
        *response.headers_mut() = found.headers.clone();
        Some(response)
    }
}

/// The configuration was checked when it was read, so nothing is lost here.
fn made(options: &StaticResponseOptions) -> StaticResponse {
    let methods = options.methods.iter();
    let methods = methods.filter_map(|method| method.to_ascii_uppercase().parse().ok());
    let methods: Vec<Method> = methods.collect();
    let mut headers = HeaderMap::new();
    if !options.body.is_empty() {
        let text = HeaderValue::from_static("text/plain; charset=utf-8");
        headers.insert(header::CONTENT_TYPE, text);
    }
    for (name, value) in &options.headers {
        let name = HeaderName::from_bytes(name.as_bytes());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_str(value)) {
            headers.insert(name, value);
        }
    }
    let status = u16::try_from(options.status).ok();
    let status = status.and_then(|status| StatusCode::from_u16(status).ok());
    StaticResponse {
        path: options.path.as_ref().map(|path| path.0.as_str().into()),
        methods: if methods.is_empty() {
            vec![Method::GET, Method::HEAD]
        } else {
            methods
        },
        when: options.when.clone(),
        status: status.unwrap_or_default(),
        headers,
        body: Bytes::from(options.body.clone()),
    }
}
