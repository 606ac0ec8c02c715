//! The stages of an HTTP request and its response.

use std::{
    cell::{Cell, OnceCell},
    rc::Rc,
    sync::Arc,
};

use bytes::Bytes;
use http::{HeaderMap, Method, Response, header, request::Parts};
use http_body_util::Full;
use ogive_base::Reservation;
use ogive_edge::{
    error::RequestError,
    measured::Exceeded,
    media::Media,
    receive::{
        Received, RequestBody,
        uploads::{self, Uploads},
        whole_body,
    },
};
use ogive_hooks::{
    Body, ContextEntries, Exchange, Stage,
    entries::{CLIENT_NAME, CLIENT_VERSION, JWT_CLAIMS},
};
use ogive_identity::Caller;
use ogive_server::{ResponseBody, drain_body::read_refused};
use ogive_transport::first_text;
use serde_json::{Value, value::RawValue};

use super::values::entry_of;
use super::{
    body::break_response,
    operation::without_connection,
    run::{HookRun, request_head},
    settings::HookState,
};
use crate::{
    admit::rates::Admitted,
    gateway::{Gateway, Serving},
    respond::refusal::refused,
    shared::{
        context::{Identity, RequestContext},
        open_response::goes_on,
    },
    subscribe::{SubscriberSlot, owner::ends_at},
};

/// How a request goes on.
enum Onward<B> {
    /// With the body that comes.
    Arriving(B),
    /// With this body.
    Whole(Bytes),
    /// Not at all: a hook ends it with this response.
    Ended(Box<Response<ResponseBody>>),
}

/// A request as a coprocessor has left it.
pub(crate) struct HookedRequest<'a> {
    run: HookRun<'a>,
    /// Its head, if a stage has looked at it.
    parts: Option<Parts>,
    /// Who asks, if it says so.
    identity: Option<Identity>,
}

impl HookedRequest<'_> {
    /// What later stages know of it.
    pub(crate) fn context<'s>(&'s self, before: RequestContext<'s>) -> RequestContext<'s> {
        RequestContext {
            parts: self.parts.as_ref().unwrap_or(before.parts),
            identity: self.identity.as_ref().unwrap_or(before.identity),
            hooks: Some(&self.run),
            ..before
        }
    }
}

/// What the first stage needs of a request besides its head and body.
pub(crate) struct FirstStage<'a> {
    /// The media type that the client reads.
    media: Media,
    /// What counts the memory of the request.
    memory: &'a Reservation,
    /// The id of a trusted document that the URL names.
    document_id: Option<&'a str>,
    /// The request's place among those that are served.
    admitted: &'a mut Admitted,
}

impl<'a> FirstStage<'a> {
    pub(crate) fn new(
        media: Media,
        memory: &'a Reservation,
        document_id: Option<&'a str>,
        admitted: &'a mut Admitted,
    ) -> Self {
        FirstStage {
            media,
            memory,
            document_id,
            admitted,
        }
    }
}

/// What is received of a request, with its files, or why nothing is.
type ReceivedOrNot = (Result<Received, RequestError>, Option<Box<Uploads>>);

/// Notes what hooks have left in the context, once nobody writes there any more.
fn note_context(context: RequestContext<'_>, run: &HookRun<'_>) {
    if let (Some(record), Some(rules)) = (context.record, &run.observe.attributes) {
        rules.note_entries(record, |name| entry_of(run, None, name));
    }
}

impl Gateway {
    /// Stop 1 of a request of which a coprocessor is told, from where it is known who asks.
    pub(crate) async fn receive_changed<'a, B: RequestBody>(
        &'a self,
        serving: &'a Serving,
        served: &'a HookState,
        context: RequestContext<'a>,
        input: FirstStage<'_>,
        body: B,
    ) -> Result<(Box<HookedRequest<'a>>, ReceivedOrNot), Box<Response<ResponseBody>>> {
        let FirstStage {
            media,
            memory,
            document_id,
            admitted,
        } = input;
        // As the client sent it, whatever a hook makes of it: that may be the media type, too.
        if let Err(error) = serving.options.csrf.check_changeable(context.parts) {
            read_refused(&context.parts.headers, body).await;
            return Err(Box::new(refused(context, &error, media)));
        }
        let run = self.begin_hooks(serving, served, context, memory);
        // Without the scripts nobody knows who is to be kept out.
        if let Some(Err(error)) = &served.scripts {
            let error = run.script_failed(Stage::RouterRequest, error);
            read_refused(&context.parts.headers, body).await;
            return Err(Box::new(refused(context, &error, media)));
        }
        let noted = run.entries.borrow().clone();
        let mut parts = None;
        // Whose credentials are not believed gets no further anyway.
        let onward = if run.is_on(Stage::RouterRequest) && context.identity.caller().is_ok() {
            let means = (memory, admitted);
            let asking = self.router_request(serving, context, &run, &mut parts, means, body);
            match Box::pin(asking).await {
                Ok(onward) => onward,
                Err(error) => return Err(Box::new(refused(context, &error, media))),
            }
        } else {
            Onward::Arriving(body)
        };
        if let Onward::Ended(mut ended) = onward {
            note_context(context, &run);
            run.hold(&mut ended);
            return Err(ended);
        }
        // Reading claims costs more than all else, and most hooks leave them alone.
        let is_untouched = run.entries.borrow().is_untouched(JWT_CLAIMS, &noted);
        drop(noted);
        let identity = if is_untouched || !run.uses_context {
            None
        } else {
            changed_caller(&run, context.identity)
        };
        if let Some(identity) = &identity {
            let caller = identity.caller().ok().flatten();
            if let (Some(record), Some(caller)) = (context.record, &caller)
                && let Some(rules) = &run.observe.attributes
            {
                // However it ends: it may not come to an operation.
                rules.note_caller(record, caller);
            }
            let _ = run.changed.set(caller);
        }
        let changed = Box::new(HookedRequest {
            run,
            parts,
            identity,
        });
        let (context, id) = (changed.context(context), document_id);
        let received = match onward {
            Onward::Arriving(body) => {
                Box::pin(self.receive(serving, context, body, memory, id)).await
            }
            Onward::Whole(bytes) => {
                let body = Full::new(bytes);
                Box::pin(self.receive(serving, context, body, memory, id)).await
            }
            Onward::Ended(ended) => return Err(ended),
        };
        Ok((changed, received))
    }

    /// What the stages of a request share.
    pub(crate) fn begin_hooks<'a>(
        &'a self,
        serving: &'a Serving,
        served: &'a HookState,
        context: RequestContext<'a>,
        memory: &Reservation,
    ) -> HookRun<'a> {
        let stages = &*served.stages;
        let run = HookRun {
            stages,
            client: &context.worker.client,
            sdl: served.told_sdl(&serving.state.supergraph),
            id: hex(self.telemetry.new_id()),
            origin: (context.parts, context.identity),
            entries: Rc::new(ContextEntries::default().into()),
            memory: memory.beside(),
            address: context.identity.client,
            asked_by: context.identity.caller().ok().flatten(),
            changed: OnceCell::new(),
            head: OnceCell::new(),
            sent: Rc::default(),
            uses_context: stages.uses_context() || serving.options.observe.attributes.is_some(),
            observe: &serving.options.observe,
            is_batch: Cell::new(false),
            telemetry: &self.telemetry,
            record: context.record,
            worker: context.worker,
            has_errors: Cell::new(false),
            scripts: served
                .scripts
                .as_ref()
                .and_then(|scripts| scripts.as_ref().ok()),
        };
        note_caller(&run, context.identity);
        note_client(&run, &context.parts.headers);
        run
    }

    /// Tells of the response that a request has.
    pub(crate) async fn tell_answer(
        &self,
        context: RequestContext<'_>,
        run: &HookRun<'_>,
        mut response: Response<ResponseBody>,
        media: Media,
    ) -> Response<ResponseBody> {
        let told = run.answered(None, Stage::RouterResponse, &mut response);
        let told = told.await;
        note_context(context, run);
        let mut response = match told {
            Ok(()) => response,
            Err(error) => refused(context, &error, media),
        };
        if goes_on(&response) {
            run.sent_head(&response);
        }
        run.hold(&mut response);
        response
    }

    /// Lets the hooks of the first stage see a request.
    async fn router_request<B: RequestBody>(
        &self,
        serving: &Serving,
        context: RequestContext<'_>,
        run: &HookRun<'_>,
        changed: &mut Option<Parts>,
        (memory, admitted): (&Reservation, &mut Admitted),
        body: B,
    ) -> Result<Onward<B>, RequestError> {
        let (stage, parts) = (Stage::RouterRequest, context.parts);
        let is_told = run.looks_at_body(stage)
            && parts.method == Method::POST
            && !uploads::is_multipart(&parts.headers);
        let mut onward = if is_told {
            let (limits, mut exceeded) = (&serving.options.receive, Exceeded::new());
            let arriving = self.arriving(serving, context.identity, memory);
            let whole = whole_body(&parts.headers, body, limits, arriving, &mut exceeded);
            let whole = Box::pin(whole).await?;
            admitted.begin()?;
            self.exceeded(context.record, exceeded.iter());
            let parts = changed.insert(parts.clone());
            parts.headers.remove(header::CONTENT_ENCODING);
            parts.headers.remove(header::CONTENT_LENGTH);
            Onward::Whole(whole)
        } else {
            Onward::Arriving(body)
        };
        let parts = changed.as_ref().unwrap_or(parts);
        // Over a WebSocket every answer is a response of GraphQL.
        let is_graphql = parts.extensions.get::<SubscriberSlot>().is_some();
        let head = Arc::new(request_head(parts, Arc::new(parts.headers.clone())));
        let mut exchange = Exchange {
            body: match &onward {
                Onward::Whole(bytes) => Some(Body::Text(bytes.clone())),
                _ => None,
            },
            ..Exchange::of(stage, Arc::clone(&run.id), Arc::clone(&head))
        };
        let asked = run.ask(None, &mut exchange, |_| Ok(())).await;
        let ended = match (asked, exchange.changes.ending.take()) {
            (Err(error), _) => Some(Err(error)),
            (Ok(_), Some(ending)) => {
                let response = break_response(*ending, is_graphql);
                Some(Ok(Onward::Ended(Box::new(response))))
            }
            (Ok(_), None) => None,
        };
        if let Some(ended) = ended {
            // Read, so that the connection can be used again.
            if let Onward::Arriving(body) = onward {
                read_refused(&parts.headers, body).await;
            }
            return ended;
        }
        let changes = &exchange.changes;
        // What a hook was not told it does not replace.
        if let (Onward::Whole(bytes), Some(said)) = (&mut onward, exchange.body)
            && changes.body
        {
            *bytes = said.into_bytes();
        }
        let _ = run.head.set(if changes.headers {
            let headers = without_connection(Arc::unwrap_or_clone(exchange.headers));
            let parts = changed.get_or_insert_with(|| context.parts.clone());
            parts.headers.clone_from(&headers);
            Arc::new(request_head(parts, headers.into()))
        } else {
            head
        });
        Ok(onward)
    }
}

/// The 32 digits of an id. Formatting it costs ten times as much.
fn hex(id: u128) -> Arc<str> {
    let mut shift = 128;
    let digits = [(); 32].map(|()| {
        shift -= 4;
        b"0123456789abcdef"[(id >> shift) as usize & 0xf]
    });
    std::str::from_utf8(&digits).unwrap_or_default().into()
}

/// Leaves the claims of a caller in the context.
fn note_caller(run: &HookRun<'_>, identity: &Identity) {
    if let Ok(Some(caller)) = identity.caller()
        && caller.granted.authenticated
    {
        run.note(JWT_CLAIMS, &caller.claims);
    }
}

/// Leaves in the context what the client says it is called.
fn note_client(run: &HookRun<'_>, headers: &HeaderMap) {
    let (names, versions) = (&run.observe.client_names, &run.observe.client_versions);
    for (entry, from) in [(CLIENT_NAME, names), (CLIENT_VERSION, versions)] {
        if let Some(said) = first_text(headers, from) {
            run.note(entry, &said);
        }
    }
}

/// Lets a caller keep what is granted beside the claims (API keys, certificates, trusted proxies): as long as it is of the
/// same subject, and the claims that name scopes or policies say what they said.
fn keep_granted(caller: &mut Caller, known: &Caller, read: &Caller) {
    let (now, before) = (caller.claims.get("sub"), known.claims.get("sub"));
    // Who has no subject is nobody in particular, and not the same nobody twice.
    if now.is_none() || now != before {
        return;
    }
    let (granted, read) = (&mut caller.granted, &read.granted);
    if granted.scopes == read.scopes {
        granted.scopes.clone_from(&known.granted.scopes);
    }
    if granted.policies == read.policies {
        granted.policies.clone_from(&known.granted.policies);
    }
}

/// Who asks after a coprocessor has changed the claims; `None` if it has not.
fn changed_caller(run: &HookRun<'_>, identity: &Identity) -> Option<Identity> {
    let before = identity.caller().ok()?;
    let known = before
        .as_ref()
        .filter(|caller| caller.granted.authenticated);
    let entry = run.entry(JWT_CLAIMS);
    let said: Option<Value> = entry.as_deref().map(RawValue::get).and_then(|text| {
        ogive_json::read_value(text.as_bytes(), 128, ogive_json::Strictness::Strict).ok()
    });
    let caller = match (said, known) {
        (Some(Value::Object(claims)), Some(known)) if claims == known.claims => return None,
        (Some(Value::Object(claims)), known) => {
            let mut caller = Caller::proved(claims, run.stages.caller_options());
            if let Some(known) = known {
                // The credential ends when it does, whatever is said of it.
                caller.end = ends_at(known);
                let read = Caller::proved(known.claims.clone(), run.stages.caller_options());
                keep_granted(&mut caller, known, &read);
            }
            Some(Ok(Arc::new(caller)))
        }
        (_, None) => return None,
        // Claims that are gone, or are none any more, are nobody's.
        (_, Some(_)) => None,
    };
    let mut identity = identity.clone();
    identity.caller = caller.map(Box::new);
    Some(identity)
}

#[cfg(test)]
mod tests {
    use ogive_identity::CallerOptions;
    use serde_json::json;

    use super::*;

    fn caller(claims: Value) -> Caller {
        let Value::Object(claims) = claims else {
            panic!("{claims}");
        };
        Caller::proved(claims, &CallerOptions::default())
    }

    #[test]
    fn what_is_granted_beside_claims_is_that_of_the_same_subject_whose_scopes_nobody_changes() {
        let read = caller(json!({ "sub": "key", "plan": "free" }));
        let mut known = read.clone();
        known.granted.scopes = vec!["write".into()];
        known.granted.policies = vec!["staff".into()];
        for (claims, scopes, policies) in [
            (json!({ "sub": "key", "plan": "gold" }), &["write"][..], 1),
            (json!({ "sub": "key", "scope": "read" }), &["read"], 1),
            (json!({ "sub": "another" }), &[], 0),
            (json!({ "plan": "gold" }), &[], 0),
            (json!({ "sub": "another", "scope": "read" }), &["read"], 0),
        ] {
            let mut changed = caller(claims.clone());
            keep_granted(&mut changed, &known, &read);
            let granted: Vec<&str> = changed.granted.scopes.iter().map(|s| &**s).collect();
            assert_eq!(granted, scopes, "{claims}");
            assert_eq!(changed.granted.policies.len(), policies, "{claims}");
        }
        let read = caller(json!({ "plan": "free" }));
        let mut known = read.clone();
        known.granted.scopes = vec!["write".into()];
        let mut changed = caller(json!({ "plan": "gold" }));
        keep_granted(&mut changed, &known, &read);
        assert!(
            changed.granted.scopes.is_empty(),
            "nobody says that it is the same one"
        );
    }
}
