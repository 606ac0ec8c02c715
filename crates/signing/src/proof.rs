//! All ways by which the gateway proves to one subgraph who it is.

use std::time::SystemTime;

use bytes::Bytes;
use http::HeaderMap;
use ogive_transport::{Ready, Refused, SignError, Signer, Signing, Unsigned};
use tokio::time::Instant;

use crate::{Aws, Bearer, Hmac, MessageSignature};

/// The ways of one subgraph, in the order in which they are gone: the body first, a message signature last, so that it
/// can cover what the others add.
#[derive(Debug, Default)]
pub struct Proof {
    /// Signs query and variables.
    pub hmac: Option<Hmac>,
    /// Signs as AWS wants it.
    pub aws: Option<Aws>,
    /// Adds a token; not beside `aws`, which needs the same header.
    pub bearer: Option<Bearer>,
    /// Signs the message.
    pub message: Option<MessageSignature>,
    /// Why nothing can be signed. Then no request is sent.
    pub unusable: Option<String>,
}

impl Proof {
    async fn headers(&self, request: Unsigned<'_>) -> Result<HeaderMap, SignError> {
        if let Some(why) = &self.unusable {
            return Err(SignError(why.clone()));
        }
        if self.hmac.is_some() && request.body.is_none() {
            return Err(SignError(
                "requests with files cannot be signed by `hmac`".into(),
            ));
        }
        let mut added = HeaderMap::new();
        if let Some(aws) = &self.aws {
            added = aws.sign(request, SystemTime::now())?;
        }
        if let Some(bearer) = &self.bearer {
            added.extend(bearer.sign()?);
        }
        if let Some(message) = &self.message {
            let both;
            let mut request = request;
            if !added.is_empty() {
                let mut headers = request.headers.clone();
                headers.extend(added.clone());
                both = headers;
                request.headers = &both;
            }
            added.extend(message.sign(request, SystemTime::now()).await?);
        }
        Ok(added)
    }

    async fn wait(&self) -> Result<(), SignError> {
        if let Some(aws) = &self.aws {
            aws.ready().await?;
        }
        if let Some(bearer) = &self.bearer {
            bearer.ready().await?;
        }
        Ok(())
    }
}

impl Signer for Proof {
    fn body(&self, body: &Bytes) -> Result<Option<Bytes>, SignError> {
        match &self.hmac {
            None => Ok(None),
            Some(hmac) => hmac.sign(body).map(Some),
        }
    }

    fn ready(&self) -> Ready<'_> {
        Box::pin(self.wait())
    }

    fn refresh(&self) -> Result<bool, SignError> {
        self.message
            .as_ref()
            .map_or(Ok(false), MessageSignature::refresh)
    }

    fn reads_headers(&self) -> bool {
        self.aws.is_some() || self.message.is_some()
    }

    fn sign<'a>(&'a self, request: Unsigned<'a>) -> Signing<'a> {
        Box::pin(self.headers(request))
    }

    fn refused(&self, began: Instant) -> Refused<'_> {
        Box::pin(async move {
            match &self.bearer {
                Some(bearer) => bearer.refused(began).await,
                None => false,
            }
        })
    }
}
