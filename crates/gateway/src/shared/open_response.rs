//! Responses behind whose head something comes, as those see them who look at responses before they leave.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::Response;
use ogive_server::ResponseBody;

/// In the extensions of a response to a subscription whose events are not its body, as over a WebSocket. A hook that puts another
/// response in its place takes it away, and the subscription is given up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OpenSubscription;

/// In the extensions of a response in parts while its first part has not left: that part, a JSON text.
#[derive(Clone, Debug)]
pub(crate) struct FirstPart {
    json: Arc<Mutex<Bytes>>,
    /// Whether others follow.
    pub(crate) has_next: bool,
}

impl FirstPart {
    pub(crate) fn new(json: Bytes, has_next: bool) -> Self {
        FirstPart {
            json: Arc::new(Mutex::new(json)),
            has_next,
        }
    }
    /// As it is now.
    pub(crate) fn json(&self) -> Bytes {
        let json = self.json.lock().unwrap_or_else(PoisonError::into_inner);
        json.clone()
    }
    pub(crate) fn set(&self, json: Bytes) {
        *self.json.lock().unwrap_or_else(PoisonError::into_inner) = json;
    }
}

/// Whether something comes behind its head.
pub(crate) fn goes_on(response: &Response<ResponseBody>) -> bool {
    response.body().is_in_parts() || response.extensions().get::<OpenSubscription>().is_some()
}
