//! What the process that composes the schema has to say to people in front of GraphiQL: a JSON document at
//! [`PATH`], served in development only, and shown above the editor.

use std::sync::Arc;

use arc_swap::ArcSwap;
use bytes::Bytes;
use http::{HeaderValue, Response, header};

use ogive_server::ResponseBody;

/// Where it is served.
pub const PATH: &str = "/__ogive/composition";

/// The document; clones share it.
#[derive(Clone, Debug)]
pub struct DevDiagnostics(Arc<ArcSwap<Bytes>>);

impl DevDiagnostics {
    /// Says `json`.
    pub fn new(json: impl Into<Bytes>) -> Self {
        DevDiagnostics(Arc::new(ArcSwap::from_pointee(json.into())))
    }
    /// Says something else from now on.
    pub fn set(&self, json: impl Into<Bytes>) {
        self.0.store(Arc::new(json.into()));
    }
    /// The response that shows them.
    pub fn answer(&self) -> Response<ResponseBody> {
        let body = Bytes::clone(&self.0.load());
        let mut response = Response::new(ResponseBody::from(body));
        let headers = response.headers_mut();
        let json = HeaderValue::from_static("application/json; charset=utf-8");
        headers.insert(header::CONTENT_TYPE, json);
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }
}
