//! Stop 1 of 5 as a stage; what it does is [`ogive_edge::receive`]. Who may not ask is refused first, then the body is read, with
//! files or without.

use std::{pin::pin, sync::Arc};

use ogive_base::{MemoryBudget, Reservation};
use ogive_edge::{
    client_shares::ClientShares,
    error::RequestError,
    measured::Exceeded,
    receive::{
        Received, RequestBody,
        growing::{Arriving, ClientBytes},
        receive,
        uploads::{self, Uploads},
    },
};
use ogive_server::{drain_body::read_refused, offload::Offload};
use ogive_telemetry::{Record, spans, stop_span};
use tracing::Instrument;

use crate::{
    options::GatewayOptions,
    shared::{context::RequestContext, identity::Identity, stage::Stage},
};

/// Reads the body of a request, with its files.
#[derive(Debug)]
pub(crate) struct Receive {
    pub(crate) options: Arc<GatewayOptions>,
    pub(crate) offload: Arc<Offload>,
    /// Memory of the process, and how much of it arrives, by client.
    pub(crate) memory: Arc<MemoryBudget>,
    pub(crate) arriving: Arc<ClientShares>,
}

impl Stage for Receive {
    const NAME: &'static str = "receive";
    const DOES: &'static str = "read the body: one request or a batch, with its files";
}

impl Receive {
    /// Where it is counted what arrives of a client.
    pub(crate) fn arriving<'a>(
        &'a self,
        identity: &Identity,
        memory: &'a Reservation,
    ) -> Arriving<'a> {
        let client = ClientBytes {
            all: &self.arriving,
            client: identity.client,
            proxies: &self.options.proxies,
            most: self.options.share_of(self.memory.limit()).each,
        };
        Arriving {
            memory,
            client: Some(client),
        }
    }

    /// Reads the body, unless the request fails the CSRF check or lacks a caller that the configuration requires.
    pub(crate) async fn run<B: RequestBody>(
        &self,
        context: RequestContext<'_>,
        body: B,
        memory: &Reservation,
        document_id: Option<&str>,
    ) -> (Result<Received, RequestError>, Option<Box<Uploads>>) {
        let (options, parts) = (&*self.options, context.parts);
        let from = context.record.map(Record::now);
        let mut exceeded = Exceeded::new();
        let received = 'received: {
            let checked = options.csrf.check(parts);
            let required = options.caller_required;
            if let Err(error) =
                checked.and_then(|()| context.identity.check(required, options.challenge))
            {
                Box::pin(read_refused(&parts.headers, body)).await;
                break 'received (Err(error), None);
            }
            let limits = &options.receive;
            let arriving = self.arriving(context.identity, memory);
            let means = (&*self.offload, arriving);
            let span = stop_span!(spans::RECEIVE);
            let files = options.uploads.as_ref();
            match files.filter(|_| uploads::is_multipart(&parts.headers)) {
                // Boxed: keeps the common future small.
                Some(files) => {
                    let received = Box::pin(uploads::receive(
                        parts,
                        body,
                        files,
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
        context.count_exceeded(&exceeded);
        if let (Some(record), Some(from)) = (context.record, from) {
            record.received(from);
        }
        received
    }
}
