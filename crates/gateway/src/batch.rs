//! The requests of a batch, side by side: each passes the stages as if it had come alone.

use futures_util::future::join_all;
use http::Response;
use ogive_base::Reservation;
use ogive_server::ResponseBody;

use crate::{
    admit::not_acceptable,
    gateway::{Gateway, Serving},
    operation::{OperationInput, REQUEST_BYTES},
    receive::{
        GraphqlRequest,
        uploads::{Entry, Uploads},
    },
    respond::{refusal::refused, respond_batch},
    shared::context::RequestContext,
    shared::error::RequestError,
    shared::media::Media,
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
        if let Some(run) = context.coprocessor {
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
                    let _admitted = self.admit_entry(&serving.options, context, at)?;
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
