//! One request outside the hot path, for a schema: a connection of its own, no retries, and the head of the answer.

use bytes::Bytes;
use http::{HeaderMap, Method, Request, header};
use http_body_util::Full;
use ogive_execute::TransportError;

use crate::{
    Encoding, Endpoint,
    budget::Budget,
    client::{decoded, fit, read_body, tls_of},
    connect::connect,
    error::{HTTP_ERROR, TIMEOUT, chain, failed},
    pool::Sender,
};

/// A whole answer.
#[derive(Clone, Debug)]
pub struct Fetched {
    /// Its status.
    pub status: u16,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body, decoded.
    pub body: Bytes,
}

/// Posts one request to the endpoint's first replica and reads the whole answer within its `timeout`; redirects are
/// not followed. The endpoint's header rules do not apply: `headers` is what is sent.
pub async fn fetch(
    endpoint: &Endpoint,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Fetched, TransportError> {
    let exchange = exchange(endpoint, headers, body);
    match tokio::time::timeout(endpoint.traffic.timeout, exchange).await {
        Ok(fetched) => fetched,
        Err(_) => Err(failed(
            TIMEOUT,
            &endpoint.name,
            "the answer took too long",
            format!("no whole answer within {:?}", endpoint.traffic.timeout),
        )),
    }
}

async fn exchange(
    endpoint: &Endpoint,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Fetched, TransportError> {
    let fail = |detail: String| {
        let what = "the connection failed before an answer came";
        failed(HTTP_ERROR, &endpoint.name, what, detail)
    };
    let replicas = endpoint.replicas.as_ref();
    let replicas = replicas.map_err(|error| fail(error.to_string()))?;
    let address = replicas.addresses().next();
    let address = address.ok_or_else(|| fail("it has no URL".into()))?;
    let mut sender = connect(endpoint, address, tls_of(endpoint, address)?).await?;
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = Method::POST;
    *request.headers_mut() = headers;
    fit(&mut request, address, &sender);
    let response = match &mut sender {
        Sender::Http1(sender) => sender.try_send_request(request).await,
        Sender::Http2(sender) => sender.try_send_request(request).await,
    };
    let response = response.map_err(|refused| fail(chain(&refused.into_error())))?;
    let (parts, body) = response.into_parts();
    if parts.status.is_redirection()
        && let Some(to) = parts.headers.get(header::LOCATION)
    {
        return Err(fail(format!("{} to {to:?}", parts.status)));
    }
    let budget = Budget::new(usize::MAX);
    let body = read_body(endpoint, body, &budget)
        .await
        .map_err(|e| e.error)?;
    let body = match Encoding::of(&parts.headers) {
        Ok(None) => body,
        Ok(Some(encoding)) => decoded(endpoint, encoding, &body, &budget).await?,
        Err(name) => {
            let what = "the answer is in an encoding that is not supported";
            let detail = format!("content-encoding `{name}`");
            return Err(failed(HTTP_ERROR, &endpoint.name, what, detail));
        }
    };
    Ok(Fetched {
        status: parts.status.as_u16(),
        headers: parts.headers,
        body,
    })
}
