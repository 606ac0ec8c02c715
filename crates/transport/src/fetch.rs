//! One request outside the hot path, for a schema: a connection of its own, no retries, and the head of the answer.

use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode, header};
use http_body_util::Full;
use ogive_execute::Failure;

use crate::{
    Encoding, Endpoint,
    answer::{Intake, decoded},
    budget::Budget,
    client,
    connect::{connect, speak_http2},
    error::{HTTP_ERROR, TIMEOUT, chain, failed},
    exchange::tls_of,
    http1::framing::HeaderScope,
    http1::request::{self, Headers},
    http1::{Connection, OutgoingRequest},
    over_hyper::{self, fit_http2},
    resolve::Names,
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
) -> Result<Fetched, Failure> {
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
) -> Result<Fetched, Failure> {
    let fail = |detail: String| {
        let what = "the connection failed before an answer came";
        failed(HTTP_ERROR, &endpoint.name, what, detail)
    };
    let replicas = endpoint.replicas.as_ref();
    let replicas = replicas.map_err(|error| fail(error.to_string()))?;
    let address = replicas.addresses().next();
    let address = address.ok_or_else(|| fail("it has no URL".into()))?;
    let (stream, http2) = connect(
        endpoint,
        address,
        tls_of(endpoint, address)?,
        &Names::default(),
    )
    .await?;
    let budget = Budget::new(usize::MAX);
    let intake = Intake::new(endpoint, &budget);
    let no_redirect = |status: StatusCode, headers: &HeaderMap| match headers.get(header::LOCATION)
    {
        Some(to) if status.is_redirection() => Err(fail(format!("{status} to {to:?}"))),
        _ => Ok(()),
    };
    let (status, headers, body) = if http2 {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.headers_mut() = headers;
        fit_http2(&mut request, address);
        let mut sender = speak_http2(stream).await.map_err(|e| fail(chain(&e)))?;
        let response = sender.send_request(request).await;
        let (head, body) = response.map_err(|error| fail(chain(&error)))?.into_parts();
        no_redirect(head.status, &head.headers)?;
        let body = over_hyper::read_body(intake, body).await;
        (head.status, head.headers, body)
    } else {
        let mut connection = Connection::new(stream);
        let headers = Headers {
            common: &headers,
            own: HeaderMap::new(),
            binds: false,
        };
        let length = Some(body.len());
        let asked = OutgoingRequest {
            head: &|out| request::write(out, ("POST", address), &[], &headers, length),
            body: &body,
            is_head: false,
            wanted: HeaderScope::All,
        };
        let head = connection.ask(asked).await;
        let head = head.map_err(|why| fail(why.to_string()))?;
        no_redirect(head.status, &head.headers)?;
        let body = client::read_body(intake, &mut connection).await;
        (head.status, head.headers, body)
    };
    let body = body?;
    let body = match Encoding::of(&headers) {
        Ok(None) => body,
        Ok(Some(encoding)) => decoded(endpoint, encoding, &body, &budget).await?,
        Err(name) => {
            let what = "the answer is in an encoding that is not supported";
            let detail = format!("content-encoding `{name}`");
            return Err(failed(HTTP_ERROR, &endpoint.name, what, detail));
        }
    };
    Ok(Fetched {
        status: status.as_u16(),
        headers,
        body,
    })
}
