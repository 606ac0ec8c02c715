//! Single requests to other servers than subgraphs: collectors of telemetry, places where a schema is kept. They are
//! seldom, so every one has a connection of its own.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri, header, uri};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;

use crate::{
    ClientTls, Fetched, Http2,
    client::USER_AGENT,
    connect::{open, speak_http1, speak_http2},
    endpoint::Address,
    error::chain,
    pool::Sender,
    tls::ClientTlsOptions,
};

/// A place to ask.
#[derive(Debug)]
pub struct Source {
    address: Address,
    tls: Option<ClientTls>,
    http2: Http2,
    /// How long one request may take altogether; default 10 s.
    pub timeout: Duration,
    /// Most bytes of an answer; default 16 MiB.
    pub body_bytes_max: usize,
}

impl Source {
    /// The place of a URL. Certificates are checked by the authorities that the operating system trusts. With
    /// [`Http2::Only`] everything but TLS is HTTP/2, too. The error is for the operator.
    pub fn new(url: &str, http2: Http2) -> Result<Self, String> {
        let address = Address::parse(url).map_err(|error| error.to_string())?;
        let tls = match address.https {
            true => {
                // With TLS both sides agree on a version.
                let tls = ClientTls::load(ClientTlsOptions::default(), Http2::Enable);
                Some(tls.map_err(|error| error.to_string())?)
            }
            false => None,
        };
        Ok(Source {
            address,
            tls,
            http2,
            timeout: Duration::from_secs(10),
            body_bytes_max: 16 << 20,
        })
    }
    /// The path of the URL, with its query string.
    pub fn path(&self) -> &str {
        self.address.path.as_str()
    }
    /// Asks for `path` instead of the URL's.
    pub fn set_path(&mut self, path: &str) {
        if let Ok(path) = path.parse() {
            self.address.path = path;
        }
    }

    /// Sends one request and reads the whole answer. The error is for the operator.
    pub async fn send(
        &self,
        method: Method,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Fetched, String> {
        let exchange = self.exchange(method, headers, body);
        match tokio::time::timeout(self.timeout, exchange).await {
            Ok(answer) => answer,
            Err(_) => Err(format!("no whole answer within {:?}", self.timeout)),
        }
    }

    async fn exchange(
        &self,
        method: Method,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Fetched, String> {
        let stream = open(&self.address, self.tls.as_ref()).await?;
        let http2 = stream.agreed_on_http2() || (!self.address.https && self.http2 == Http2::Only);
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.headers_mut() = headers;
        let headers = request.headers_mut();
        headers.entry(header::USER_AGENT).or_insert(USER_AGENT);
        let sender = match http2 {
            true => {
                *request.uri_mut() = self.absolute()?;
                speak_http2(stream).await
            }
            false => {
                headers.insert(header::HOST, self.address.host.clone());
                *request.uri_mut() = self.address.path.clone().into();
                speak_http1(stream).await
            }
        };
        let answer = match sender.map_err(|error| chain(&error))? {
            Sender::Http1(mut sender) => sender.send_request(request).await,
            Sender::Http2(mut sender) => sender.send_request(request).await,
        };
        self.read(answer.map_err(|error| chain(&error))?).await
    }

    /// HTTP/2 names the host in the URL.
    fn absolute(&self) -> Result<Uri, String> {
        let mut parts = uri::Parts::default();
        parts.scheme = Some(match self.address.https {
            true => uri::Scheme::HTTPS,
            false => uri::Scheme::HTTP,
        });
        let host: &HeaderValue = &self.address.host;
        parts.authority = uri::Authority::try_from(host.as_bytes()).ok();
        parts.path_and_query = Some(self.address.path.clone());
        Uri::from_parts(parts).map_err(|error| error.to_string())
    }

    async fn read(&self, answer: Response<Incoming>) -> Result<Fetched, String> {
        let (head, mut body) = answer.into_parts();
        let mut headers = head.headers;
        let mut whole = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| chain(&error))?;
            match frame.into_data() {
                Ok(data) if whole.len() + data.len() > self.body_bytes_max => {
                    return Err(format!(
                        "the answer is larger than {} bytes",
                        self.body_bytes_max
                    ));
                }
                Ok(data) => whole.extend_from_slice(&data),
                Err(frame) => headers.extend(frame.into_trailers().unwrap_or_default()),
            }
        }
        Ok(Fetched {
            status: head.status.as_u16(),
            headers,
            body: whole.freeze(),
        })
    }
}
