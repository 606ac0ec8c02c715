//! The record of a request: begun with its head, ended with its response, logged, counted and traced from there.

use std::fmt::Debug;

use http::{Method, Response, request::Parts};
use ogive_base::Peer;
use ogive_edge::measured::{code, count, log};
use ogive_limits::Measured;
use ogive_server::ResponseBody;
use ogive_telemetry::{Record, access::Finished};

use crate::{
    gateway::Gateway,
    hooks::body::note_break,
    options::GatewayOptions,
    shared::{failures, identity::Identity, operation_values::RequestValues},
    subscribe::end::EndLine,
};

impl Gateway {
    /// Ends the record of a request.
    pub(crate) fn end(
        &self,
        options: &GatewayOptions,
        record: &Record,
        parts: &Parts,
        identity: &Identity,
        response: &mut Response<ResponseBody>,
    ) {
        note_break(record, response);
        if let Some(rules) = &options.observe.attributes {
            let known = identity.caller.as_deref();
            let head = RequestValues {
                headers: &parts.headers,
                caller: known.and_then(|known| known.as_deref().ok()),
                client: Some(identity.client),
                observe: &options.observe,
            };
            rules.note_response(record, |from| head.find(from), response);
        }
        let (status, bytes) = (response.status().as_u16(), response.body().len() as u64);
        let operations = record.finish(status, bytes);
        let name = options.observe.request_id.as_ref();
        if let (Some(name), Some(id)) = (name, &record.request_id) {
            response.headers_mut().insert(name, id.clone());
        }
        if let Some(log) = &self.telemetry.access {
            let finished = Finished {
                status,
                bytes,
                address: identity.client.address(),
                headers: &parts.headers,
                operations: &operations,
            };
            log.log(record, &finished);
            if let Some(line) = response.extensions_mut().remove::<EndLine>() {
                line.set(log.opened(record, &finished));
            }
        }
    }

    /// Notes a request that was refused before anybody looked into it.
    pub(crate) fn log_refused(
        &self,
        parts: &Parts,
        peer: Peer,
        response: &mut Response<ResponseBody>,
        code: &'static str,
    ) {
        let serving = self.serving.load_full();
        let observe = &serving.options.observe;
        if !(self.telemetry.is_on() || observe.is_on()) {
            return;
        }
        let record = self.record(&serving.options, parts);
        failures::turned_away(&self.telemetry, &record, response.status(), code);
        let identity = Identity {
            client: serving.options.proxies.client(&parts.headers, peer),
            ..Identity::of(peer)
        };
        self.end(&serving.options, &record, parts, &identity, response);
    }

    /// The record of a GraphQL request, if anybody wants one.
    pub(crate) fn begin(
        &self,
        options: &GatewayOptions,
        parts: &Parts,
        identity: &Identity,
    ) -> Option<Record> {
        let observe = &options.observe;
        let wanted = (self.telemetry.is_on() || observe.is_on())
            && parts.uri.path().starts_with(&options.graphql_path)
            && parts.method != Method::OPTIONS;
        wanted.then(|| {
            let mut record = self.record(options, parts);
            record.counted_for = options.counted(Some(identity.client));
            record
        })
    }
    /// A record whose id is the client's or a new one.
    pub(crate) fn record(&self, options: &GatewayOptions, parts: &Parts) -> Record {
        let observe = &options.observe;
        let id = observe.id_of(&parts.headers, || self.telemetry.new_id());
        let mut record = self.telemetry.begin(parts, id, false);
        record.client = observe.client_of(&parts.headers);
        // The id of a subscription is a secret, and would be another name for each.
        if let Some(id) = options.callback_id(parts.uri.path()) {
            let path = record.path.strip_suffix(id).unwrap_or_default();
            record.path = path.into();
        }
        if let Some(rules) = &observe.attributes {
            rules.begin(&mut record);
        }
        record
    }

    /// Counts limits that are exceeded and only measured.
    pub(crate) fn exceeded<'c>(
        &self,
        record: Option<&Record>,
        codes: impl Iterator<Item = &'c &'static str>,
    ) {
        count(&self.telemetry, record, codes);
    }

    /// Notes what of a connection is beyond a limit that is only measured.
    pub(crate) fn note_exceeded<T: PartialOrd + Debug>(&self, measured: &Measured<T>, found: &T) {
        if measured.is_exceeded_by(found) {
            log(measured.which, found, &measured.limit);
            count(&self.telemetry, None, [&code(measured.which)]);
        }
    }
}
