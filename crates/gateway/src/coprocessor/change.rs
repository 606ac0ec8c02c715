//! What a stage makes of something, read and checked before anything is changed.

use http::{HeaderMap, StatusCode};
use ogive_coprocessor::{
    Control, CoprocessorError, Reply, ReplyBody, Stage,
    headers::{Peer, of_break, replaced},
};

/// What a stage makes of something, read and checked; `None` of what stays.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) control: Control,
    pub(crate) headers: Option<HeaderMap>,
    pub(crate) body: Option<ReplyBody>,
    pub(crate) status_code: Option<StatusCode>,
    pub(crate) uri: Option<String>,
}

impl Change {
    /// What a reply says to somebody who had these headers.
    pub(crate) fn of(
        reply: Reply,
        before: &HeaderMap,
        stage: Stage,
    ) -> Result<Self, CoprocessorError> {
        let peer = match stage {
            Stage::SubgraphRequest | Stage::SubgraphResponse => Peer::Subgraph,
            _ => Peer::Client,
        };
        let ends = reply.control != Control::Continue;
        // What a request ends with has nothing of it.
        let echo = (!stage.is_response()).then_some(before);
        let headers = reply.headers.map(|said| {
            if ends {
                of_break(echo, &said, peer)
            } else {
                replaced(before, &said, peer)
            }
        });
        Ok(Change {
            control: reply.control,
            headers: headers.transpose()?,
            body: reply.body,
            status_code: reply.status_code,
            uri: reply.uri,
        })
    }
}
