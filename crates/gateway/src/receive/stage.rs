//! Stop 1 as a stage: who may not ask is refused first, then the body is read, with files or without.

use std::pin::pin;

use ogive_base::Reservation;
use ogive_server::drain_body::read_refused;
use ogive_telemetry::{Record, spans, stop_span};
use tracing::Instrument;

use crate::{
    gateway::{Gateway, Serving},
    receive::{
        Received, RequestBody,
        growing::{Arriving, ClientBytes},
        receive,
        uploads::{self, Uploads},
    },
    shared::context::{Identity, RequestContext},
    shared::error::RequestError,
    shared::measured::Exceeded,
};

impl Gateway {
    /// Where it is counted what arrives of a client.
    pub(crate) fn arriving<'a>(
        &'a self,
        serving: &'a Serving,
        identity: &Identity,
        memory: &'a Reservation,
    ) -> Arriving<'a> {
        let client = ClientBytes {
            all: &self.arriving,
            client: identity.client,
            proxies: &serving.options.proxies,
            most: serving.options.share_of(self.memory.limit()).each,
        };
        Arriving {
            memory,
            client: Some(client),
        }
    }

    /// Stop 1. Whoever may not ask has nothing read.
    pub(crate) async fn receive<B: RequestBody>(
        &self,
        serving: &Serving,
        context: RequestContext<'_>,
        body: B,
        memory: &Reservation,
        document_id: Option<&str>,
    ) -> (Result<Received, RequestError>, Option<Box<Uploads>>) {
        let parts = context.parts;
        let from = context.record.map(Record::now);
        let mut exceeded = Exceeded::new();
        let received = 'received: {
            let checked = serving.options.csrf.check(parts);
            let required = serving.options.caller_required;
            if let Err(error) =
                checked.and_then(|()| context.identity.check(required, serving.options.challenge))
            {
                Box::pin(read_refused(&parts.headers, body)).await;
                break 'received (Err(error), None);
            }
            let limits = &serving.options.receive;
            let arriving = self.arriving(serving, context.identity, memory);
            let means = (&self.offload, arriving);
            let span = stop_span!(spans::RECEIVE);
            let options = serving.options.uploads.as_ref();
            match options.filter(|_| uploads::is_multipart(&parts.headers)) {
                // In a box, because it takes much room, and room is moved with every request.
                Some(options) => {
                    let received = Box::pin(uploads::receive(
                        parts,
                        body,
                        options,
                        limits,
                        document_id,
                        means,
                        &mut exceeded,
                    ));
                    match received.instrument(span).await {
                        Ok((received, uploads)) => (Ok(received), Some(Box::new(uploads))),
                        Err(error) => (Err(error), None),
                    }
                }
                None => {
                    let noted = &mut exceeded;
                    let received = pin!(receive(parts, body, limits, document_id, means, noted));
                    (received.instrument(span).await, None)
                }
            }
        };
        self.exceeded(context.record, exceeded.iter());
        if let (Some(record), Some(from)) = (context.record, from) {
            record.received(from);
        }
        received
    }
}
