//! The requests of a batch, side by side: each passes the stages as if it had come alone.

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    task::Poll,
};

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
                        observer: None,
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

/// Waits for all; their number is limited by what was received.
async fn join_all<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    enum Slot<F: Future> {
        Running(Pin<Box<F>>),
        Done(Option<F::Output>),
    }
    let mut slots: Vec<Slot<F>> = futures.map(|f| Slot::Running(Box::pin(f))).collect();
    // An output is only ever moved out whole.
    poll_fn(|cx| {
        let mut waiting = false;
        for slot in &mut slots {
            if let Slot::Running(future) = slot {
                match future.as_mut().poll(cx) {
                    Poll::Ready(output) => *slot = Slot::Done(Some(output)),
                    Poll::Pending => waiting = true,
                }
            }
        }
        if waiting {
            Poll::Pending
        } else {
            Poll::Ready(())
        }
    })
    .await;
    let outputs = slots.into_iter().filter_map(|slot| match slot {
        Slot::Done(output) => output,
        Slot::Running(_) => None,
    });
    outputs.collect()
}
