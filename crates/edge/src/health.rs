//! Health: whether the process lives, and whether it is ready for requests.

use http::{HeaderValue, Response, StatusCode, header};
use hyper::body::Bytes;

use ogive_server::ResponseBody;

/// Whether liveness is asked for readiness instead, as Apollo Router is: `/health?ready`.
pub fn asks_readiness(query: Option<&str>) -> bool {
    let mut pairs = query.unwrap_or_default().split('&');
    pairs.any(|pair| {
        let key = pair.split('=').next().unwrap_or_default();
        key.eq_ignore_ascii_case("ready")
    })
}

/// The response to a health check.
pub fn health(up: bool) -> Response<ResponseBody> {
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
