//! Requests at which a [`crate::FetchHook`] looks. Each has headers of its own, so equal requests are shared only
//! if what is really sent is equal.

use std::{cell::OnceCell, sync::Arc};

use ogive_execute::{Failure, SubgraphRequest, SubgraphResponse};
use tokio::time::Instant;

use crate::{
    Answered, Collected, Endpoint, FetchAnswer, FetchDecision, FetchHook, FetchRequest,
    RequestTransport,
    address::{Address, Target},
    answer::Exchanged,
    balance::Replicas,
    error::{HTTP_ERROR, failed, over_budget},
    extensions::extended,
    http1::request::binds,
};

use super::{Outgoing, Prepared, Sent, too_slow};

impl RequestTransport<'_> {
    /// Sends a request that `hook` looks at.
    pub(super) async fn hooked(
        &self,
        hook: &dyn FetchHook,
        mut request: SubgraphRequest,
    ) -> Result<SubgraphResponse, Failure> {
        let (endpoint, outgoing) = self.outgoing(request.subgraph)?;
        let number = self.hooked.get();
        self.hooked.set(number.wrapping_add(1));
        let asked = FetchRequest {
            subgraph: &endpoint.name,
            url: url_of(endpoint),
            headers: outgoing.headers.clone(),
            body: match &outgoing.extensions {
                None => request.body.clone(),
                Some(extensions) => extended(&request.body, extensions),
            },
        };
        let place = self.collected.as_ref().map_or(0, Collected::sent);
        let exchanged = match hook.request(number, asked).await? {
            FetchDecision::Answer(answer) => return self.taken_over(endpoint, answer),
            FetchDecision::Send { headers, body, url } => {
                request.body = body;
                let own = Outgoing {
                    endpoint,
                    binds: binds(&headers),
                    // They are in the body.
                    extensions: None,
                    unsayable: None,
                    answers: None,
                    headers,
                    fingerprint: OnceCell::new(),
                };
                match url {
                    None => self.exchanged(endpoint, &own, request).await?,
                    Some(url) => {
                        let elsewhere = elsewhere(endpoint, &url)?;
                        self.exchanged(&elsewhere, &own, request).await?
                    }
                }
            }
        };
        let before = exchanged.response.body.len();
        let answer = FetchAnswer {
            status: exchanged.response.status,
            headers: exchanged.headers,
            body: exchanged.response.body,
        };
        let answer = hook.response(number, &endpoint.name, answer).await?;
        // What is there instead counts as what was there would.
        let more = answer.body.len().saturating_sub(before);
        if more > 0 && !self.budget.take(more) {
            return Err(over_budget(&endpoint.name, &self.budget));
        }
        if let Some(collected) = &self.collected {
            let headers = (&answer.headers, &*exchanged.echoes);
            collected.came(place, outgoing.rules(), headers);
        }
        Ok(SubgraphResponse {
            status: answer.status,
            body: answer.body,
        })
    }

    /// The answer of a hook instead of a subgraph.
    fn taken_over(
        &self,
        endpoint: &Endpoint,
        answer: FetchAnswer,
    ) -> Result<SubgraphResponse, Failure> {
        if !self.budget.take(answer.body.len()) {
            return Err(over_budget(&endpoint.name, &self.budget));
        }
        Ok(SubgraphResponse {
            status: answer.status,
            body: answer.body,
        })
    }

    async fn exchanged(
        &self,
        endpoint: &Endpoint,
        outgoing: &Outgoing<'_>,
        request: SubgraphRequest,
    ) -> Result<Exchanged, Failure> {
        let memory = self.budget.process();
        if let Some(memory) = memory {
            memory.count(request.body.len());
        }
        let _sent = Sent(memory, request.body.len());
        let now = Instant::now();
        let (deadline, is_own_time) = self.time_for(endpoint, now);
        if deadline <= now {
            return Err(too_slow(endpoint));
        }
        let watched = self.observer.map(|o| o.asked(request.subgraph));
        let attachment = self.files.and_then(|files| files.attach(&request.body));
        let result = match attachment {
            Some(attachment) => {
                let deadline = self.deadline.unwrap_or(deadline);
                self.uploaded(endpoint, outgoing, attachment, (deadline, watched))
                    .await
            }
            None => {
                let request = Prepared {
                    endpoint,
                    outgoing,
                    request,
                    deadline,
                    is_own_time,
                    watched,
                    ahead: None,
                };
                match &endpoint.cache {
                    None => self.shared(&request, None).await,
                    Some(policy) => Box::pin(self.cached(policy, &request)).await,
                }
            }
        };
        if let Some(files) = self.files {
            self.budget.hold_beside(files.held());
        }
        let result = result.and_then(|exchanged| {
            if self.budget.take(exchanged.response.body.len()) {
                Ok(exchanged)
            } else {
                Err(over_budget(&endpoint.name, &self.budget))
            }
        });
        if let (Some(files), Ok(_)) = (self.files, &result) {
            files.answered();
        }
        if let (Some(observer), Some(number)) = (self.observer, watched) {
            let answered = match &result {
                Ok(e) => Answered::Status(e.response.status, e.response.body.len()),
                Err(error) => Answered::Failed(error.code),
            };
            if let Ok(exchanged) = &result {
                observer.answered_with(number, &exchanged.headers);
            }
            observer.answered(number, answered);
        }
        if result.as_ref().is_ok_and(|exchanged| exchanged.personal) {
            self.personal.set(true);
        }
        result
    }
}

/// Where a subgraph is asked; the first of several places.
pub(super) fn url_of(endpoint: &Endpoint) -> Option<String> {
    let address = endpoint.replicas.as_ref().ok()?.addresses().next()?;
    Some(match &address.target {
        Target::Tcp(..) => {
            let scheme = if address.https { "https" } else { "http" };
            let host = address.host.to_str().unwrap_or_default();
            format!("{scheme}://{host}{}", address.path)
        }
        Target::Unix(socket) => format!("unix://{}?path={}", socket.display(), address.path),
    })
}

/// The same subgraph at another place: any `http` or `https` URL, with the TLS of this subgraph. What proves the gateway to
/// the subgraph is not for another host. Nobody else joins a request to it, as it is known by its address in memory.
pub(super) fn elsewhere(endpoint: &Endpoint, url: &str) -> Result<Endpoint, Failure> {
    let unusable = |why: String| {
        let what = "the URL that it is sent to instead cannot be used";
        failed(HTTP_ERROR, &endpoint.name, what, why)
    };
    let address = Address::parse(url).map_err(|error| unusable(error.to_string()))?;
    let Target::Tcp(host, _) = &address.target else {
        return Err(unusable("it is not an http or https URL".into()));
    };
    let is_known = |known: &Address| matches!(&known.target, Target::Tcp(name, _) if name == host);
    let known = endpoint.replicas.as_ref().ok();
    let is_known = known.is_some_and(|known| known.addresses().any(is_known));
    let replicas = Replicas::new(vec![address], None);
    let replicas = replicas.ok_or_else(|| unusable("it has no URL".into()))?;
    let mut elsewhere = endpoint.clone();
    elsewhere.replicas = Ok(Arc::new(replicas));
    elsewhere.traffic.deduplicate_query = false;
    elsewhere.cache = None;
    // What fails there says nothing of the subgraph.
    elsewhere.health = Arc::default();
    elsewhere.signer = elsewhere.signer.filter(|_| is_known);
    Ok(elsewhere)
}
