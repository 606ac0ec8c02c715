//! What a stage makes of something, read and checked before anything is changed.

use http::{HeaderMap, StatusCode};
use ogive_coprocessor::{
    Control, CoprocessorError, Message, MessageBody, Reply, ReplyBody, Stage,
    headers::{Peer, of_break, replaced},
};
use ogive_failure::{ErrorCode, codes};

/// What a stage makes of something, read and checked; `None` of what stays.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) control: Control,
    /// The code of an end that says none.
    pub(crate) break_code: ErrorCode,
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
            break_code: codes::COPROCESSOR_BREAK,
            headers: headers.transpose()?,
            body: reply.body,
            status_code: reply.status_code,
            uri: reply.uri,
        })
    }

    /// What was said first, and then this. What a request ends with has nothing of what was made of it before: that is the
    /// request's own, which its client is not told.
    pub(crate) fn after(first: Option<Change>, then: Change) -> Change {
        let Some(first) = first else {
            return then;
        };
        if then.control != Control::Continue {
            return then;
        }
        Change {
            control: then.control,
            break_code: then.break_code,
            headers: then.headers.or(first.headers),
            body: then.body.or(first.body),
            status_code: then.status_code.or(first.status_code),
            uri: then.uri.or(first.uri),
        }
    }

    /// A message as it is after this.
    pub(crate) fn shown<'m>(&'m self, message: Message<'m>) -> Message<'m> {
        Message {
            headers: self.headers.as_ref().or(message.headers),
            body: match &self.body {
                Some(ReplyBody::Json(json)) if !message.stage.body_is_text() => {
                    Some(MessageBody::Json(json))
                }
                Some(ReplyBody::Json(text)) => Some(MessageBody::Text(text)),
                Some(ReplyBody::Text(text)) => Some(MessageBody::Text(text.as_bytes())),
                None => message.body,
            },
            status_code: self
                .status_code
                .map(|code| code.as_u16())
                .or(message.status_code),
            uri: self.uri.as_deref().or(message.uri),
            ..message
        }
    }
}
