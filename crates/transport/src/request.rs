//! The seam to the executor: one client request's view of the subgraphs.

mod cached;
mod cached_entities;
mod hooked;
mod serviced;
mod subscribe;

use std::{
    cell::{Cell, OnceCell},
    future::Future,
    pin::{Pin, pin},
    rc::Rc,
};

use http::{HeaderMap, HeaderName, HeaderValue};
use ogive_base::Reservation;
use ogive_cache::{ClockStamp, ResponseCache};
use ogive_execute::{
    ErrorRules, EventStreamFuture, Failure, FailureReport, RequestLimits, StreamScan,
    SubgraphRequest, Transport, TransportFuture,
};
use ogive_failure::{ErrorCode, codes};
use tokio::time::Instant;

use crate::{
    Answered, CallerContext, Client, Collected, Endpoint, FetchAdmission, FetchHook, Observer,
    Reporter, ResponseHeaderRules,
    answer::Exchanged,
    balance::{Chosen, Replicas},
    budget::Budget,
    cache_control,
    coalescing::{Coalesced, SharingScope},
    error::{
        BREAKER_OPEN, HTTP_ERROR, REDIRECT, REQUEST_MEMORY, TIMEOUT, failed,
        is_no_fault_of_subgraph, over_budget,
    },
    exchange::{Outcome, RequestKey, SharedOutcome},
    extensions::extended,
    headers::is_hop_by_hop,
    http1::request::{Headers, binds},
    response_headers::FixedRules,
    sign::{self, CREDENTIALS_UNAVAILABLE, Renewal},
    upload::{Attachment, Files},
};

/// A request that may be sent more than once.
struct Prepared<'p> {
    endpoint: &'p Endpoint,
    outgoing: &'p Outgoing<'p>,
    request: SubgraphRequest,
    deadline: Instant,
    /// Whether the subgraph is to blame if nothing has come by then: see [`RequestTransport::time_for`].
    is_own_time: bool,
    /// Its number with the observer.
    watched: Option<u32>,
    /// Who looks at the answer while it arrives.
    ahead: Option<StreamScan<'p>>,
}

/// Lends a worker's [`Client`] to the execution of one client request. Header rules run at most once per subgraph.
pub struct RequestTransport<'a> {
    client: &'a Client,
    endpoints: &'a [Endpoint],
    client_headers: &'a HeaderMap,
    caller: Option<&'a dyn CallerContext>,
    deadline: Option<Instant>,
    began: Instant,
    outgoing: Box<[OnceCell<Outgoing<'a>>]>,
    /// What the answers' headers add to the client's response; `None` where no endpoint has rules for them.
    collected: Option<Collected>,
    observer: Option<&'a dyn Observer>,
    files: Option<&'a dyn Files>,
    budget: Budget<'a>,
    /// Bytes of objects that the executor holds.
    store: Cell<usize>,
    reporter: Option<&'a dyn Reporter>,
    /// Whether an answer was made for this client alone.
    personal: Cell<bool>,
    /// Who looks at every request.
    hook: Option<&'a dyn FetchHook>,
    /// Requests that it has looked at.
    hooked: Cell<u32>,
    /// Who says how often subgraphs are asked.
    admission: Option<&'a dyn FetchAdmission>,
    /// Whether it has refused a request.
    is_limited: Cell<bool>,
    /// What clients are told of errors.
    error_rules: Option<&'a dyn ErrorRules>,
    /// Where answers are kept across requests.
    cache: Option<&'a ResponseCache>,
    /// Whether a mutation was sent: entries from before it are not used.
    has_mutated: Cell<bool>,
}

/// A request's body while it is under way, as the process counts it.
struct Sent<'a>(Option<&'a Reservation>, usize);

impl Drop for Sent<'_> {
    fn drop(&mut self) {
        if let Some(memory) = self.0 {
            memory.shrink(self.1);
        }
    }
}

/// What one client request sends to a subgraph besides bodies.
struct Outgoing<'a> {
    /// Where it goes.
    endpoint: &'a Endpoint,
    headers: HeaderMap,
    /// A header that cannot say what it has to; then nothing is sent.
    unsayable: Option<HeaderName>,
    /// Members of the extensions of its body.
    extensions: Option<Box<[u8]>>,
    /// What its answers add to the client's response, if that depends on the client's request.
    answers: Option<FixedRules>,
    /// See [`Headers::binds`].
    binds: bool,
    /// Endpoint and headers as bytes; made when somebody asks for it.
    fingerprint: OnceCell<Rc<[u8]>>,
}

impl Outgoing<'_> {
    /// What becomes of the headers of answers.
    fn rules(&self) -> &ResponseHeaderRules {
        let settled = self.answers.as_ref().map(|settled| &settled.rules);
        settled.unwrap_or(&self.endpoint.response_headers)
    }

    fn identity(
        &self,
        client: &Client,
        endpoint: &Endpoint,
        observer: Option<&dyn Observer>,
    ) -> Rc<[u8]> {
        let bytes = self.fingerprint.get_or_init(|| {
            let mut bytes = client.scratch.borrow_mut();
            bytes.clear();
            // An endpoint belongs to one schema under one configuration, and lives as long as requests to it do.
            bytes.extend_from_slice(&(std::ptr::from_ref(endpoint) as u64).to_ne_bytes());
            for (name, value) in &self.headers {
                bytes.extend_from_slice(name.as_str().as_bytes());
                bytes.push(b':');
                bytes.extend_from_slice(&(value.len() as u64).to_ne_bytes());
                bytes.extend_from_slice(value.as_bytes());
            }
            if let Some(extensions) = &self.extensions {
                // No header begins like this.
                bytes.push(b'{');
                bytes.extend_from_slice(&(extensions.len() as u64).to_ne_bytes());
                bytes.extend_from_slice(extensions);
            }
            if let Some(answers) = &self.answers {
                // No header begins like this.
                bytes.push(b'}');
                bytes.extend_from_slice(&(answers.identity.len() as u64).to_ne_bytes());
                bytes.extend_from_slice(&answers.identity);
            }
            if let Some(observer) = observer {
                // No header begins like this.
                bytes.push(b':');
                observer.identity(&mut bytes);
            }
            Rc::from(&**bytes)
        });
        Rc::clone(bytes)
    }
}

impl<'a> RequestTransport<'a> {
    /// `endpoints` by subgraph index; `deadline` ends every exchange, whatever the subgraph's own timeout.
    pub fn new(
        client: &'a Client,
        endpoints: &'a [Endpoint],
        client_headers: &'a HeaderMap,
        deadline: Option<Instant>,
    ) -> Self {
        RequestTransport {
            client,
            endpoints,
            client_headers,
            caller: None,
            deadline,
            began: Instant::now(),
            outgoing: endpoints.iter().map(|_| OnceCell::new()).collect(),
            collected: endpoints
                .iter()
                .any(|endpoint| !endpoint.response_headers.is_empty())
                .then(Collected::default),
            observer: None,
            files: None,
            budget: Budget::new(usize::MAX),
            store: Cell::new(0),
            reporter: None,
            personal: Cell::new(false),
            hook: None,
            hooked: Cell::new(0),
            admission: None,
            is_limited: Cell::new(false),
            error_rules: None,
            cache: None,
            has_mutated: Cell::new(false),
        }
    }

    /// Keeps answers across requests there, as far as endpoints ask for it.
    #[must_use]
    pub fn kept_in(self, cache: Option<&'a ResponseCache>) -> Self {
        RequestTransport { cache, ..self }
    }

    /// Tells clients of errors what these rules make of them.
    #[must_use]
    pub fn rewritten_by(self, error_rules: Option<&'a dyn ErrorRules>) -> Self {
        RequestTransport {
            error_rules,
            ..self
        }
    }

    /// Asks `admission` before anything is sent.
    #[must_use]
    pub fn admitted_by(self, admission: Option<&'a dyn FetchAdmission>) -> Self {
        RequestTransport { admission, ..self }
    }

    /// Whether a request was not sent because there were too many, of this client perhaps: others may have some left.
    pub fn is_limited(&self) -> bool {
        self.is_limited.get()
    }

    /// Lets `hook` look at every request and every answer.
    #[must_use]
    pub fn hooked_by(self, hook: Option<&'a dyn FetchHook>) -> Self {
        RequestTransport { hook, ..self }
    }

    /// Holds at most so many bytes of answers; what does not fit fails. Default: no limit besides those of the endpoints.
    #[must_use]
    pub fn within(self, bytes_max: usize) -> Self {
        let budget = Budget::new(bytes_max);
        RequestTransport { budget, ..self }
    }

    /// Counts what it holds there, too. Bytes that the request holds already count as those of answers. Comes after
    /// [`within`](Self::within).
    #[must_use]
    pub fn counted_in(self, memory: Option<&'a Reservation>, held: usize) -> Self {
        let budget = self.budget.of_process(memory, held);
        RequestTransport { budget, ..self }
    }

    /// Takes headers that say who asks from there.
    #[must_use]
    pub fn asked_by(self, caller: Option<&'a dyn CallerContext>) -> Self {
        RequestTransport { caller, ..self }
    }

    /// Tells `observer` of every request.
    #[must_use]
    pub fn observed_by(self, observer: Option<&'a dyn Observer>) -> Self {
        RequestTransport { observer, ..self }
    }

    /// Tells `reporter` of everything that goes wrong. Without one it goes into the log, and nobody knows of which request.
    #[must_use]
    pub fn reporting_to(self, reporter: Option<&'a dyn Reporter>) -> Self {
        RequestTransport { reporter, ..self }
    }

    /// Sends the client's files along. A request with files is sent once, to whoever it is for, and has until the
    /// deadline of this client request.
    #[must_use]
    pub fn with_files(self, files: Option<&'a dyn Files>) -> Self {
        RequestTransport { files, ..self }
    }

    /// The most bytes of answers that were held at a time, arriving ones included.
    pub fn held_most(&self) -> usize {
        self.budget.peak()
    }

    /// Whether an answer was larger than its endpoint's `response_bytes_max`, and let pass.
    pub fn had_large_answer(&self) -> bool {
        self.budget.has_large_answer()
    }

    /// Whether an answer was made for this client alone, so that nothing made of it may be shared.
    pub fn is_personal(&self) -> bool {
        self.personal.get()
    }

    /// The headers for the response, and for those who share it if theirs are others. `errors`: whether it has any.
    /// `by_caller`: whether it depends on who asks. Where it does, where a subgraph that was asked may be sent headers of
    /// the client, or where one answered for this client alone, no cache may give it to others; nor may one that is told
    /// nothing, if it depends on who asks.
    pub fn response_headers(
        &self,
        errors: bool,
        by_caller: bool,
    ) -> (HeaderMap, Option<HeaderMap>) {
        let by_caller = by_caller || self.tells_who_asks();
        let Some(collected) = &self.collected else {
            let mut headers = HeaderMap::new();
            if by_caller {
                cache_control::forbid(&mut headers);
            }
            return (headers, None);
        };
        let of = |echoes| {
            let mut headers = collected.merge_with(errors, echoes);
            if cache_control::speaks(&headers) {
                let asked = self.endpoints.iter().zip(&self.outgoing);
                let asked = asked.filter(|(_, outgoing)| outgoing.get().is_some());
                // What was made for one client is nobody else's, whatever another header of it says.
                let (mut copies, mut sources) = (by_caller || self.personal.get(), Vec::new());
                for (endpoint, _) in asked {
                    copies |= endpoint.headers.copies() || !endpoint.extensions.is_empty();
                    sources.extend(endpoint.headers.sources(self.client_headers));
                    sources.extend(endpoint.extensions.sources().cloned());
                    let told = endpoint.response_headers.sources();
                    copies |= !told.is_empty();
                    sources.extend(told);
                    let (headers, by_caller) = endpoint.decided_by();
                    copies |= by_caller || !headers.is_empty();
                    sources.extend(headers);
                }
                cache_control::settle(&mut headers, copies, sources);
            } else if by_caller {
                cache_control::forbid(&mut headers);
            }
            headers
        };
        (of(true), collected.has_echoes().then(|| of(false)))
    }
}

impl RequestTransport<'_> {
    /// A subgraph, and what this client request sends to it. Fails if a header rule would have to leave out what a claim says,
    /// because no header can say it: a subgraph must not take the caller for another one.
    fn outgoing(&self, subgraph: u32) -> Result<(&Endpoint, &Outgoing<'_>), Failure> {
        let usual = self.endpoints.get(subgraph as usize);
        let outgoing = self.outgoing.get(subgraph as usize);
        let (Some(usual), Some(outgoing)) = (usual, outgoing) else {
            let detail = format!("no endpoint for subgraph {subgraph}");
            let message = "the subgraph is not known";
            return Err(Failure::new(HTTP_ERROR, message, detail));
        };
        let outgoing = outgoing.get_or_init(|| {
            let endpoint = usual.chosen(self.client_headers, self.caller);
            let headers = endpoint.headers.apply(self.client_headers, self.caller);
            // What a claim says by a header is not the client's to say by a member of `extensions` either.
            let believed = endpoint.headers.believed(self.client_headers);
            let rules = &endpoint.headers;
            Outgoing {
                endpoint,
                unsayable: rules.unsayable(self.client_headers, self.caller).cloned(),
                extensions: endpoint.extensions.apply(&believed, self.caller),
                answers: endpoint
                    .response_headers
                    .settled(self.client_headers, self.caller),
                binds: binds(&headers),
                headers,
                fingerprint: OnceCell::new(),
            }
        });
        match &outgoing.unsayable {
            None => Ok((outgoing.endpoint, outgoing)),
            Some(name) => Err(failed(
                HTTP_ERROR,
                &outgoing.endpoint.name,
                "the request to the subgraph could not be made",
                format!("the header `{name}` cannot say what the claim for it says"),
            )),
        }
    }

    /// Until when a request that is sent now has to be answered, and whether the subgraph is to blame if it is not: it has
    /// all of its own timeout, or nearly all the time of the whole client request, where that is less. Another subgraph that
    /// was slow says nothing about this one.
    fn time_for(&self, endpoint: &Endpoint, now: Instant) -> (Instant, bool) {
        let own = now + endpoint.traffic.timeout;
        let Some(deadline) = self.deadline.filter(|deadline| *deadline < own) else {
            return (own, true);
        };
        let whole = deadline.saturating_duration_since(self.began);
        let left = deadline.saturating_duration_since(now);
        (deadline, left * 10 >= whole * 9)
    }

    /// Whether a subgraph was told who asks, or what the client is told of its answer depends on that.
    fn tells_who_asks(&self) -> bool {
        let mut asked = self.endpoints.iter().zip(&self.outgoing);
        asked.any(|(endpoint, outgoing)| {
            let tells = endpoint.headers.claims()
                || endpoint.extensions.claims()
                || endpoint.response_headers.claims();
            outgoing.get().is_some() && (tells || endpoint.decided_by().1)
        })
    }

    /// Everything that decides what a subgraph is sent for this client request besides bodies, and who asks, as bytes
    /// that are equal only if all of it is.
    pub fn identity(&self, subgraph: u32) -> Option<Rc<[u8]>> {
        let (endpoint, outgoing) = self.outgoing(subgraph).ok()?;
        Some(outgoing.identity(self.client, endpoint, self.observer))
    }

    /// Sends a request, or joins an equal one that is under way. `after`: the last invalidation before which no joined
    /// request may have been sent, because its answer is about to be kept.
    async fn shared(&self, request: &Prepared<'_>, after: Option<ClockStamp>) -> Outcome {
        let Prepared {
            endpoint, outgoing, ..
        } = request;
        let asked = &request.request;
        if !asked.idempotent
            || !endpoint.traffic.deduplicate_query
            || self.client.personal.knows((&*endpoint.name, &*asked.body))
        {
            return Box::pin(self.tries(request)).await;
        }
        let identity = outgoing.identity(self.client, endpoint, self.observer);
        let key = RequestKey {
            identity: match after {
                None => identity,
                Some(stamp) => stamped(&identity, stamp),
            },
            body: asked.body.clone(),
        };
        let lead =
            || -> Pin<Box<dyn Future<Output = SharedOutcome> + '_>> { Box::pin(self.led(request)) };
        let queries = &self.client.queries;
        // Not named first: a future that is moved has room in two places.
        match queries
            .join_until(request.deadline, key, lead, |shared| shared.scope)
            .await
        {
            Coalesced::Led(shared) => shared.outcome,
            Coalesced::Joined(shared) => shared.outcome.map(Exchanged::for_others),
            Coalesced::Alone => Box::pin(self.tries(request)).await,
            Coalesced::TooLate => Err(too_slow(endpoint)),
        }
    }

    /// Sends a request that others may join.
    async fn led(&self, request: &Prepared<'_>) -> SharedOutcome {
        let outcome = self.tries(request).await;
        let by_client = self.deadline == Some(request.deadline);
        let scope = match &outcome {
            Ok(exchanged) if exchanged.personal => {
                let (name, body) = (&*request.endpoint.name, &*request.request.body);
                self.client.personal.note((name, body));
                SharingScope::Personal
            }
            // The subgraph was told how little time this client had left.
            Ok(exchanged)
                if by_client
                    && request.endpoint.traffic.deadline_header.is_some()
                    && !(200..300).contains(&exchanged.response.status) =>
            {
                SharingScope::OwnAffair
            }
            Err(error) if matches!(error.code, REQUEST_MEMORY | codes::REQUEST_RATE_LIMITED) => {
                SharingScope::OwnAffair
            }
            // The client's time was over, not the subgraph's.
            Err(error)
                if matches!(error.code, TIMEOUT | CREDENTIALS_UNAVAILABLE)
                    && by_client
                    && Instant::now() >= request.deadline =>
            {
                SharingScope::OwnAffair
            }
            _ => SharingScope::Everybody,
        };
        SharedOutcome { outcome, scope }
    }

    /// Whether a request may be sent.
    async fn admit(
        &self,
        admission: &dyn FetchAdmission,
        endpoint: &Endpoint,
    ) -> Result<(), Failure> {
        let admitted = admission.admit(&endpoint.name).await;
        if admitted.is_err() {
            self.is_limited.set(true);
        }
        admitted
    }

    /// The only try of a request with files.
    async fn uploaded(
        &self,
        endpoint: &Endpoint,
        outgoing: &Outgoing<'_>,
        attachment: Attachment<'_>,
        (deadline, watched): (Instant, Option<u32>),
    ) -> Outcome {
        let replicas = replicas(endpoint)?;
        if let Some(admission) = self.admission {
            self.admit(admission, endpoint).await?;
        }
        sign::ready(endpoint, deadline).await?;
        let health = &*endpoint.health;
        let permit = health.admit(endpoint.traffic.breaker);
        let permit = permit.ok_or_else(|| left_alone(endpoint))?;
        let chosen = replicas.choose(None);
        let headers = self.headers(endpoint, outgoing, (deadline, watched));
        let upload = self.client.upload(
            endpoint,
            chosen.address(),
            headers.into_map(),
            attachment,
            &self.budget,
        );
        let Ok(exchanged) = tokio::time::timeout_at(deadline, upload).await else {
            // Says nothing about the subgraph: the client decides how fast its files come.
            return Err(failed(
                TIMEOUT,
                &endpoint.name,
                "the upload took too long",
                "no whole answer before the time for requests with files was over",
            ));
        };
        // What the client did wrong says nothing about the subgraph.
        if exchanged
            .as_ref()
            .err()
            .is_none_or(|e| is_of_subgraph(e.code))
        {
            chosen.done(is_well(&exchanged));
            permit.done(is_well(&exchanged));
        }
        exchanged
    }

    /// What is sent besides the body.
    fn headers<'h>(
        &self,
        endpoint: &Endpoint,
        common: &'h Outgoing<'_>,
        (deadline, watched): (Instant, Option<u32>),
    ) -> Headers<'h> {
        let mut headers = HeaderMap::new();
        if let Some(name) = &endpoint.traffic.deadline_header
            && !is_hop_by_hop(name)
        {
            let left = deadline.saturating_duration_since(Instant::now());
            headers.insert(name, HeaderValue::from(left.as_millis() as u64));
        }
        if let (Some(observer), Some(number)) = (self.observer, watched) {
            observer.sending(number, &mut headers);
            observer.sent(number, &common.headers);
        }
        Headers {
            common: &common.headers,
            own: headers,
            binds: common.binds,
        }
    }

    /// One try at one replica.
    async fn one(&self, request: &Prepared<'_>, chosen: Chosen<'_>) -> Result<Exchanged, Failure> {
        let endpoint = request.endpoint;
        let sent = (request.deadline, request.watched);
        let headers = self.headers(endpoint, request.outgoing, sent);
        let echoes = if endpoint.response_headers.is_empty() {
            Vec::new()
        } else {
            headers.own.keys().cloned().collect()
        };
        let asked = &request.request;
        let exchanged = {
            // Pinned first: a future that goes into another one is copied.
            let exchange = pin!(self.client.exchange(
                endpoint,
                chosen.address(),
                headers,
                (asked.body.clone(), asked.idempotent),
                (&self.budget, request.ahead),
            ));
            match tokio::time::timeout_at(request.deadline, exchange).await {
                Ok(Ok(exchanged)) => Ok(Exchanged {
                    echoes,
                    ..exchanged
                }),
                Ok(failed) => failed,
                Err(_) => Err(too_slow(endpoint)),
            }
        };
        if let Some(is_well) = verdict(request, &exchanged) {
            chosen.done(is_well);
        }
        exchanged
    }

    /// One try, and a second one beside it if it takes longer than most.
    async fn hedged(
        &self,
        request: &Prepared<'_>,
        (replicas, chosen): (&Replicas, Chosen<'_>),
    ) -> Result<Exchanged, Failure> {
        let hedge = request.endpoint.traffic.hedge;
        match hedge.filter(|_| request.request.idempotent) {
            None => self.one(request, chosen).await,
            Some(hedge) => Box::pin(self.two(request, (replicas, chosen), hedge)).await,
        }
    }

    /// Whether a second try may be sent: there is a budget for those, and it counts in the rates as any other.
    async fn may_hedge(&self, endpoint: &Endpoint) -> bool {
        if !endpoint.health.withdraw_hedge() {
            return false;
        }
        let Some(admission) = self.admission else {
            return true;
        };
        let is_admitted = admission.admit(&endpoint.name).await.is_ok();
        if !is_admitted {
            endpoint.health.give_back_hedge();
        }
        is_admitted
    }

    /// One try, and after some time a second one beside it.
    async fn two(
        &self,
        request: &Prepared<'_>,
        (replicas, chosen): (&Replicas, Chosen<'_>),
        hedge: crate::Hedge,
    ) -> Result<Exchanged, Failure> {
        let health = &*request.endpoint.health;
        let (began, at) = (Instant::now(), chosen.index());
        let after = health.hedge_after(&hedge);
        let mut first = pin!(self.one(request, chosen));
        let in_time = match after {
            None => Some(first.as_mut().await),
            Some(after) => tokio::time::timeout(after, first.as_mut()).await.ok(),
        };
        let exchanged = match in_time {
            Some(exchanged) => exchanged,
            None if self.may_hedge(request.endpoint).await => {
                tracing::debug!(subgraph = &*request.endpoint.name, "asking a second time");
                let chosen = replicas.choose(Some(at));
                let mut second = pin!(self.one(request, chosen));
                let (exchanged, other) = tokio::select! {
                    exchanged = first.as_mut() => (exchanged, second.as_mut()),
                    exchanged = second.as_mut() => (exchanged, first.as_mut()),
                };
                if is_well(&exchanged) {
                    exchanged
                } else {
                    other.await
                }
            }
            None => first.as_mut().await,
        };
        if is_well(&exchanged) {
            health.answered(began.elapsed());
        }
        exchanged
    }

    /// Waits until a try may be sent: there is what proves the gateway, and rates have some left.
    async fn ready(&self, request: &Prepared<'_>) -> Result<(), Failure> {
        let endpoint = request.endpoint;
        if endpoint.signer.is_some() {
            sign::ready(endpoint, request.deadline).await?;
        }
        match self.admission {
            Some(admission) => self.admit(admission, endpoint).await,
            None => Ok(()),
        }
    }

    /// Sends a request, and once more if it failed, may succeed and policy and budget allow it.
    async fn tries(&self, request: &Prepared<'_>) -> Outcome {
        let endpoint = request.endpoint;
        let replicas = match replicas(endpoint) {
            Ok(replicas) => replicas,
            Err(error) => return Box::pin(self.serviced(request, error)).await,
        };
        let idempotent = request.request.idempotent;
        let (traffic, health) = (&endpoint.traffic, &*endpoint.health);
        let retry = traffic.retry.filter(|_| idempotent);
        if let Some(retry) = &retry {
            health.deposit(retry);
        }
        let mut attempt = 0;
        let mut avoid = None;
        let mut renewal = Renewal::of(endpoint);
        let mut is_withdrawn = false;
        loop {
            let mut ready = Ok(());
            if endpoint.signer.is_some() || self.admission.is_some() {
                ready = Box::pin(self.ready(request)).await;
            }
            let admit = |()| {
                let permit = health.admit(traffic.breaker);
                permit.ok_or_else(|| left_alone(endpoint))
            };
            let permit = match ready.and_then(admit) {
                Ok(permit) => permit,
                Err(refused) => {
                    if is_withdrawn {
                        health.give_back();
                    }
                    return Err(refused);
                }
            };
            is_withdrawn = false;
            let chosen = replicas.choose(avoid);
            avoid = Some(chosen.index());
            let exchanged = self.hedged(request, (replicas, chosen)).await;
            let verdict = verdict(request, &exchanged);
            if verdict.is_some_and(|is_well| permit.done(is_well)) {
                tracing::warn!(subgraph = &*endpoint.name, "the circuit breaker opens");
            }
            if let (Some(renewal), Ok(exchanged)) = (&mut renewal, &exchanged)
                && renewal
                    .helps(exchanged.response.status, request.deadline)
                    .await
                && idempotent
            {
                continue;
            }
            let (may_retry, at_least) = match &exchanged {
                Ok(e) => (
                    matches!(e.response.status, 429 | 502 | 503 | 504),
                    e.retry_after,
                ),
                Err(e) => (e.may_retry, None),
            };
            let wait = retry
                .filter(|retry| may_retry && attempt < retry.attempts)
                .and_then(|retry| health.withdraw(&retry, attempt))
                .map(|wait| wait.max(at_least.unwrap_or_default()));
            let Some(wait) = wait else {
                return exchanged;
            };
            // An answer that comes too late helps nobody. (A subgraph may ask for longer than clocks can say.)
            if wait >= request.deadline.saturating_duration_since(Instant::now()) {
                health.give_back();
                return exchanged;
            }
            is_withdrawn = true;
            attempt += 1;
            tracing::debug!(
                subgraph = &*endpoint.name,
                attempt,
                ?wait,
                "trying once more"
            );
            tokio::time::sleep(wait).await;
        }
    }
}

/// An identity of requests that are sent after this invalidation and before the next one.
fn stamped(identity: &[u8], stamp: ClockStamp) -> Rc<[u8]> {
    let (epoch, number) = (stamp.epoch.to_ne_bytes(), stamp.number.to_ne_bytes());
    // No header begins like this.
    Rc::from([identity, b"@", &epoch, &number].concat())
}

fn replicas(endpoint: &Endpoint) -> Result<&Replicas, Failure> {
    let replicas = endpoint.replicas.as_ref();
    replicas.map(|replicas| &**replicas).map_err(|error| {
        failed(
            HTTP_ERROR,
            &endpoint.name,
            "the subgraph's URL cannot be used",
            format!("subgraph `{}`: {error}", endpoint.name),
        )
    })
}

fn too_slow(endpoint: &Endpoint) -> Failure {
    failed(
        TIMEOUT,
        &endpoint.name,
        "the subgraph took too long",
        format!("no whole answer within {:?}", endpoint.traffic.timeout),
    )
}

fn left_alone(endpoint: &Endpoint) -> Failure {
    failed(
        BREAKER_OPEN,
        &endpoint.name,
        "the subgraph has failed too often and is left alone for a while",
        "its circuit breaker is open",
    )
}

/// Whether an error is the subgraph's, not the client's.
fn is_of_subgraph(code: ErrorCode) -> bool {
    matches!(code, HTTP_ERROR | TIMEOUT | REDIRECT)
}

/// What a request says about its subgraph: nothing, if only the client's time was over.
fn verdict(request: &Prepared<'_>, exchanged: &Outcome) -> Option<bool> {
    let is_cut = |error: &Failure| {
        error.code == TIMEOUT && !request.is_own_time && Instant::now() >= request.deadline
    };
    let says = !exchanged.as_ref().is_err_and(is_cut);
    says.then(|| is_well(exchanged))
}

fn is_well(exchanged: &Result<Exchanged, Failure>) -> bool {
    match exchanged {
        Ok(exchanged) => exchanged.response.status < 500,
        Err(error) => is_no_fault_of_subgraph(error),
    }
}

impl RequestTransport<'_> {
    fn sent<'a>(
        &'a self,
        mut request: SubgraphRequest,
        ahead: Option<StreamScan<'a>>,
    ) -> TransportFuture<'a> {
        if let Some(hook) = self.hook {
            return Box::pin(self.hooked(hook, request));
        }
        Box::pin(async move {
            let (endpoint, outgoing) = self.outgoing(request.subgraph)?;
            if let Some(extensions) = &outgoing.extensions {
                request.body = extended(&request.body, extensions);
            }
            let memory = self.budget.process();
            if let Some(memory) = memory {
                memory.count(request.body.len());
            }
            let _sent = Sent(memory, request.body.len());
            let now = Instant::now();
            let (deadline, is_own_time) = self.time_for(endpoint, now);
            let number = self.collected.as_ref().map_or(0, Collected::sent);
            let watched = self.observer.map(|o| o.asked(request.subgraph));
            let attachment = self.files.and_then(|files| files.attach(&request.body));
            let result = match attachment {
                // What comes too late helps nobody.
                _ if deadline <= now => Err(too_slow(endpoint)),
                None => {
                    let request = Prepared {
                        endpoint,
                        outgoing,
                        request,
                        deadline,
                        is_own_time,
                        watched,
                        ahead,
                    };
                    match &endpoint.cache {
                        None => self.shared(&request, None).await,
                        Some(policy) => Box::pin(self.cached(policy, &request)).await,
                    }
                }
                Some(attachment) => {
                    let deadline = self.deadline.unwrap_or(deadline);
                    let uploaded =
                        self.uploaded(endpoint, outgoing, attachment, (deadline, watched));
                    Box::pin(uploaded).await
                }
            };
            if let Some(files) = self.files {
                self.budget.hold_beside(files.held());
            }
            // Answers that were joined count for everybody who holds them.
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
            if let Ok(exchanged) = &result {
                if exchanged.personal {
                    self.personal.set(true);
                }
                if let Some(collected) = &self.collected {
                    let headers = (&exchanged.headers, &*exchanged.echoes);
                    collected.came(number, outgoing.rules(), headers);
                }
            }
            result.map(|exchanged| exchanged.response)
        })
    }
}

impl Transport for RequestTransport<'_> {
    fn send(&self, request: SubgraphRequest) -> TransportFuture<'_> {
        self.sent(request, None)
    }

    fn send_scanned<'a>(
        &'a self,
        request: SubgraphRequest,
        ahead: StreamScan<'a>,
    ) -> TransportFuture<'a> {
        self.sent(request, Some(ahead))
    }

    fn subscribe(&self, request: SubgraphRequest) -> EventStreamFuture<'_> {
        Box::pin(self.subscribed(request, None))
    }

    fn request_limits(&self, subgraph: u32) -> RequestLimits {
        let endpoint = self.endpoints.get(subgraph as usize);
        let limits = endpoint.map_or_else(RequestLimits::default, |e| e.traffic.request_limits);
        RequestLimits {
            // Files cannot be sent a second time.
            split_retry: limits.split_retry && self.files.is_none(),
            ..limits
        }
    }

    fn holds(&self, bytes: usize) {
        if let Some(memory) = self.budget.process() {
            match (bytes, self.store.replace(bytes)) {
                (more, less) if more >= less => memory.count(more - less),
                (less, more) => memory.shrink(more - less),
            }
        }
    }

    fn shows_errors(&self, subgraph: u32) -> bool {
        let endpoint = self.endpoints.get(subgraph as usize);
        // Of whom nothing is known nothing is shown.
        endpoint.is_some_and(|endpoint| endpoint.shows_errors)
    }

    fn names_service(&self, subgraph: u32) -> bool {
        // Where errors are shown, and nowhere else.
        let endpoint = self.endpoints.get(subgraph as usize);
        endpoint.is_some_and(|endpoint| endpoint.shows_errors && endpoint.service.is_none())
    }

    fn error_rules(&self) -> Option<&dyn ErrorRules> {
        self.error_rules
    }

    fn failed(&self, failure: &FailureReport<'_>) {
        let endpoint = failure
            .subgraph
            .and_then(|at| self.endpoints.get(at as usize));
        let subgraph = endpoint.map_or("", |endpoint| &*endpoint.name);
        let failure = &told_by(endpoint, failure);
        match self.reporter {
            Some(reporter) => reporter.failed(subgraph, failure),
            None => tracing::warn!(
                subgraph,
                code = failure.code,
                cause = failure.cause,
                "a request to a subgraph failed"
            ),
        }
    }
}

/// A failure as whoever is to blame tells it: what stands in for a service is part of the gateway, and no subgraph reports
/// what is wrong with it.
pub fn told_by<'f>(endpoint: Option<&Endpoint>, failure: &FailureReport<'f>) -> FailureReport<'f> {
    let is_own = endpoint.is_some_and(|endpoint| endpoint.service.is_some());
    FailureReport {
        is_reported: failure.is_reported && !is_own,
        ..failure.clone()
    }
}
