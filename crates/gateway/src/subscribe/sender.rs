//! Operations that come in other ways than as a request each: over a WebSocket, or for a stream that is open already. Each
//! is made a request of its own, so it passes all stages.

use std::{
    future::Future,
    pin::{Pin, pin},
    rc::Rc,
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, request::Parts};
use http_body_util::Full;
use ogive_edge::error::RequestError;
use ogive_execute::incremental::IncrementalForm;
use ogive_identity::Caller;
use ogive_server::{ClientCertificate, ResponseBody, parts::PartStream};
use serde_json::{Map, Value};

use crate::{
    gateway::Gateway,
    identify::credential::Credential,
    schema::access::UpgradeAccess,
    shared::{context::Identity, worker::WorkerState},
    subscribe::{SubscriberSlot, owner::expires_after, sources::Subscriber},
};

/// Who sends operations, and what the head of each of them is.
pub(crate) struct OperationSender {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) worker: Rc<WorkerState>,
    pub(crate) identity: Identity,
    /// By what that was found out.
    pub(crate) upgrade_access: UpgradeAccess,
    pub(crate) template: HeaderMap,
    /// The form of answers in parts that the client has named.
    pub(crate) form: Option<IncrementalForm>,
    /// What the client showed when it connected.
    pub(crate) certificate: Option<ClientCertificate>,
}

/// What becomes of an operation's request.
pub(crate) enum Answer {
    Whole(Bytes),
    Stream(Box<Subscriber>),
    /// With what holds their memory.
    Parts(PartStream, ResponseBody),
    /// Nobody knows any more who asks.
    Outdated,
}

/// An operation on its way.
pub(crate) type PendingAnswer = Pin<Box<dyn Future<Output = Answer>>>;

impl OperationSender {
    /// Sends an operation through all stages.
    pub(crate) fn send(&self, payload: &str) -> PendingAnswer {
        let (gateway, worker) = (Arc::clone(&self.gateway), Rc::clone(&self.worker));
        let (identity, slot) = (self.identity.clone(), SubscriberSlot::with_parts(self.form));
        let upgrade_access = self.upgrade_access.clone();
        let parts = self.head(Some(slot.clone()));
        let body = Full::new(Bytes::copy_from_slice(payload.as_bytes()));
        Box::pin(async move {
            let asked_by = (&identity, &upgrade_access);
            let answering = pin!(gateway.answer_operation(&parts, body, asked_by, &worker));
            let Some(answer) = answering.await else {
                return Answer::Outdated;
            };
            let subscriber = slot.take(&answer);
            let mut body = answer.into_body();
            match (subscriber, body.take_parts()) {
                (Some(subscriber), _) => Answer::Stream(Box::new(subscriber)),
                (None, Some(parts)) => Answer::Parts(parts, body),
                (None, None) => Answer::Whole(body.to_vec().into()),
            }
        })
    }
    /// Who asks, with these headers beside those of the template, and that they may ask anything.
    pub(crate) async fn introduce(
        &mut self,
        headers: HeaderMap,
    ) -> Result<Option<Arc<Caller>>, RequestError> {
        let mut parts = self.head(None);
        parts.headers.extend(headers.clone());
        let introduced = self
            .gateway
            .introduced(&parts, &self.identity, &self.worker);
        let caller = Box::pin(introduced).await?;
        self.template.extend(headers);
        Ok(caller)
    }
    /// How long this caller counts if it is only said by whoever upgraded the connection; tokens and keys are judged with
    /// each operation.
    pub(crate) fn said_until(&self, caller: Option<&Arc<Caller>>) -> Option<Duration> {
        let said = self.identity.caller().ok()??;
        let caller = caller.filter(|caller| Arc::ptr_eq(caller, &said))?;
        expires_after(caller)
    }
    /// Whether it is known no longer who asks, because that is found out otherwise now.
    pub(crate) fn is_outdated(&self) -> bool {
        !self
            .upgrade_access
            .is(&self.gateway.options().upgrade_access)
    }
    /// By what operations go on from now on.
    pub(crate) fn credential(&self) -> Option<Arc<Credential>> {
        let authentication = self.gateway.authentication()?;
        let credential = authentication.credential(&self.head(None), &self.identity);
        credential.map(Arc::new)
    }
    /// The head of an operation's request.
    pub(crate) fn head(&self, slot: Option<SubscriberSlot>) -> Parts {
        let mut request = Request::new(());
        *request.method_mut() = Method::POST;
        let path = self.gateway.options().graphql_path.clone();
        *request.uri_mut() = path.parse().unwrap_or_default();
        *request.headers_mut() = self.template.clone();
        let extensions = request.extensions_mut();
        if let Some(certificate) = &self.certificate {
            extensions.insert(certificate.clone());
        }
        if let Some(slot) = slot {
            extensions.insert(slot);
        }
        request.into_parts().0
    }
}

/// The headers that the payload of a message has, of those that it may have.
pub(crate) fn headers_in(payload: &str, names: &[HeaderName]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    let Ok(payload) = serde_json::from_str::<Map<String, Value>>(payload) else {
        return headers;
    };
    let inner = payload.get("headers").and_then(Value::as_object);
    for name in names {
        let in_map = |map: &Map<String, Value>| {
            let mut found = map
                .iter()
                .filter(|(key, _)| key.eq_ignore_ascii_case(name.as_str()));
            found.find_map(|(_, value)| HeaderValue::from_str(value.as_str()?).ok())
        };
        if let Some(mut value) = inner.and_then(in_map).or_else(|| in_map(&payload)) {
            value.set_sensitive(true);
            headers.insert(name.clone(), value);
        }
    }
    headers
}
