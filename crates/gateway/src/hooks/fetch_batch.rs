//! Requests to subgraphs that begin together, told in one message.
//!
//! Whoever comes first waits until everybody else has come who is about to, which is the end of this turn of the execution, and
//! asks for all. There are no barriers: a request that begins later is told of in a message of its own, or with those that begin
//! with it.

use bytes::Bytes;
use ogive_hooks::{CoprocessorError, Message, Reply, reply::split};
use tokio::{sync::oneshot, task::yield_now};

use super::{
    message_batch::{BatchSender, PendingMessage},
    run::OperationHooks,
    settings::StageSettings,
};

/// Most requests that are told of in one message.
const MESSAGES_MAX: usize = 100;

impl OperationHooks<'_> {
    /// Tells of a request together with those that begin with it, and reads what is said of it.
    pub(super) async fn told_in_batch(
        &self,
        settings: &StageSettings,
        message: &Message<'_>,
        json: Vec<u8>,
    ) -> Result<Reply, CoprocessorError> {
        let (sender, said) = oneshot::channel();
        if self.batch.push((json, sender)) {
            let lead = BatchSender::of(&self.batch);
            yield_now().await;
            self.tell_all(settings, lead.take()).await;
        }
        // Whoever asks for all was given up.
        let gone = |_| CoprocessorError::Unanswered("nobody has asked it".to_owned());
        let text = said.await.map_err(gone)??;
        Reply::read_in_list(&text, message)
    }

    async fn tell_all(&self, settings: &StageSettings, mut waiting: Vec<PendingMessage>) {
        while !waiting.is_empty() {
            let rest = waiting.split_off(waiting.len().min(MESSAGES_MAX));
            let (messages, askers): (Vec<_>, Vec<_>) = waiting.into_iter().unzip();
            match self.answers(settings, &messages).await {
                Ok(all) => {
                    for (asker, said) in askers.into_iter().zip(all) {
                        let _ = asker.send(Ok(said));
                    }
                }
                Err(error) => {
                    for asker in askers {
                        let _ = asker.send(Err(error.clone()));
                    }
                }
            }
            waiting = rest;
        }
    }

    async fn answers(
        &self,
        settings: &StageSettings,
        messages: &[Vec<u8>],
    ) -> Result<Vec<Bytes>, CoprocessorError> {
        let run = self.run;
        let bytes: usize = messages.iter().map(|json| json.len() + 1).sum();
        // The messages themselves are counted by those who have written them.
        run.memory
            .grow(bytes)
            .map_err(|_| CoprocessorError::Memory)?;
        let mut list = Vec::with_capacity(bytes + 1);
        for json in messages {
            list.push(if list.is_empty() { b'[' } else { b',' });
            list.extend_from_slice(json);
        }
        list.push(b']');
        let coprocessor = &run.stages.coprocessor;
        let asked = coprocessor.exchange(run.client, settings.url, (list, &run.memory));
        let answer = asked.await;
        run.memory.shrink(bytes);
        split(&answer?, messages.len())
    }
}
