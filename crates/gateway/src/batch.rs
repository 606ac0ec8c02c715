//! The requests of a batch, side by side: each passes the stages as if it had come alone.

use futures_util::future::join_all;
use http::Response;
use ogive_base::Reservation;
use ogive_edge::{
    error::RequestError,
    media::Media,
    receive::{
        GraphqlRequest,
        uploads::{Entry, Uploads},
    },
};
use ogive_server::ResponseBody;

use crate::{
    admit::{Admit, rates::Admitted},
    gateway::{Gateway, Serving},
    negotiate::not_acceptable,
    operation::{OperationInput, REQUEST_BYTES},
    respond::{refusal::refused, respond_batch},
    shared::context::RequestContext,
};

/// A batch, and what its requests have in common.
pub(crate) struct Batch<'a> {
    pub(crate) requests: Vec<Result<GraphqlRequest, RequestError>>,
    pub(crate) uploads: Option<&'a Uploads>,
    /// What the client reads.
    pub(crate) media: Media,
    /// What counts the memory that all of them take.
    pub(crate) memory: Reservation,
}

impl Gateway {
    /// Answers them in their order.
    pub(crate) async fn answer_batch(
        &self,
        serving: &Serving,
        context: RequestContext<'_>,
        batch: Batch<'_>,
    ) -> Response<ResponseBody> {
        let Batch {
            requests,
            uploads,
            media,
            memory,
        } = batch;
        if matches!(media, Media::Stream(_)) {
            return refused(context, &not_acceptable(context.parts), Media::Json);
        }
        if let Some(run) = context.hooks {
            run.is_batch.set(true);
        }
        let entries = requests.into_iter().enumerate().map(|(at, request)| {
            let memory = memory.beside();
            let files = uploads.map(|uploads| Entry {
                uploads,
                at: Some(at),
            });
            async move {
                let answer = async {
                    let mut request = request?;
                    let _admitted = admit_entry(&serving.pipeline.admit, context, at)?;
                    memory.grow(REQUEST_BYTES)?;
                    let input = OperationInput {
                        request: &mut request,
                        media,
                        files,
                        memory,
                        // All of them share the body.
                        body_bytes: 0,
                    };
                    self.operation(serving, context, input).await
                };
                let response = answer.await;
                response.unwrap_or_else(|error| refused(context, &error, media))
            }
        });
        let entries = join_all(entries).await;
        // What they hold is copied.
        let _ = memory.set(entries.iter().map(|entry| entry.body().len()).sum());
        let mut response = respond_batch(entries, media);
        response.body_mut().hold(memory);
        response
    }
}

/// Admits an entry of a batch: each of them costs as much as a request of its own. The first one was admitted with the
/// request.
fn admit_entry(
    admit: &Admit,
    context: RequestContext<'_>,
    at: usize,
) -> Result<Option<Admitted>, RequestError> {
    if at == 0 {
        return Ok(None);
    }
    // By what the client has sent, like the first one, whatever a coprocessor has made of it since.
    let context = match context.hooks {
        Some(run) => RequestContext {
            parts: run.origin.0,
            identity: run.origin.1,
            ..context
        },
        None => context,
    };
    let admitted = admit.run(context).and_then(|mut admitted| {
        admit.charge_caller(context, &mut admitted)?;
        Ok(Some(admitted))
    });
    // A list is answered with one head, which says nothing of the rate of one entry.
    admitted.map_err(|error| RequestError {
        rate: None,
        ..error
    })
}
