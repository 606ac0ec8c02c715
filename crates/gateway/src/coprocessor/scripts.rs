//! Scripts at the stages of a request: lent what a stage is about, before a coprocessor is told of it on the way in, and after
//! it on the way out.
//!
//! A call has a [turn](ogive_coprocessor::worker_time) in the worker. One that is not done then is made again on a thread beside
//! the workers ([`HookThreads`](crate::shared::hook_threads::HookThreads)), so neighbours wait for it as long as a turn at most.

use std::{sync::Arc, time::Instant};

use http::{HeaderMap, StatusCode};
use ogive_coprocessor::{
    CallMode, Control, Message, MessageBody, ReplyBody, Stage,
    headers::{Peer, kept},
};
use ogive_edge::error::RequestError;
use ogive_script::{
    Exchange, Hook as ScriptHook, Outcome, ScriptError, Scripts, exchange::Members,
};
use ogive_telemetry::{Hook, HookOutcome, codes};

use super::{
    body,
    change::Change,
    lent_context::LentContext,
    run::{CoprocessorRun, OperationCoprocessor},
};

impl CoprocessorRun<'_> {
    /// Calls what a script has registered for a stage. `None` if that is nothing.
    pub(crate) async fn call_script(
        &self,
        scripts: &Arc<Scripts>,
        operation: Option<&OperationCoprocessor<'_>>,
        message: &Message<'_>,
    ) -> Result<Option<Change>, RequestError> {
        let stage = message.stage;
        let subgraph = message.service_name.unwrap_or_default();
        let hook = match scripts.hook(stage, subgraph) {
            Ok(Some(hook)) => hook,
            Ok(None) => return Ok(None),
            Err(error) => return Err(self.script_failed(stage, &error)),
        };
        let since = Instant::now();
        let in_turn = match hook.mode() {
            CallMode::Turn => self.lend_context(operation, |lent| {
                let exchange = self.lent(scripts, message);
                let (lent, said) = call(scripts, &hook, (exchange, lent), CallMode::Turn);
                (lent, Some(said).filter(is_done))
            }),
            CallMode::Whole => None,
        };
        let (exchange, outcome) = match in_turn {
            Some(said) => said,
            None => {
                let (exchange, scripts) = (self.lent(scripts, message), Arc::clone(scripts));
                let call = move |lent| call(&scripts, &hook, (exchange, lent), CallMode::Whole);
                let threads = &self.stages.script_threads;
                self.lend_context_beside(operation, threads, call).await
            }
        };
        let ended = match &outcome {
            Ok(None) => HookOutcome::Continue,
            Ok(Some(_)) => HookOutcome::Break,
            Err(_) => HookOutcome::Failed,
        };
        self.called(Hook::Script, stage, ended, since);
        match outcome {
            Ok(None) => Ok(Some(change(exchange, message))),
            Ok(Some(ended)) => Ok(Some(ending(ended))),
            Err(error) => Err(self.script_failed(stage, &error)),
        }
    }

    /// What a stage lends, but for the context.
    fn lent(&self, scripts: &Scripts, message: &Message<'_>) -> Exchange {
        let mut exchange = Exchange::new(message.stage);
        exchange.id.clone_from(&self.id);
        exchange.is_primary = !message.is_later_part;
        exchange.has_next = message.has_next.unwrap_or(false);
        if exchange.is_primary {
            exchange.headers = message.headers.cloned().unwrap_or_default();
        }
        let head = self.head();
        exchange.method = head.method.as_str().to_owned();
        exchange.uri = message.uri.or(message.path).unwrap_or(head.path).to_owned();
        if message.stage == Stage::SubgraphRequest {
            exchange.client.clone_from(head.headers);
            exchange.client_uri = head.path.to_owned();
        }
        let id = message.subgraph_request_id;
        exchange.subgraph_request_id = id.unwrap_or_default().to_owned();
        exchange.subgraph = message.service_name.unwrap_or_default().to_owned();
        exchange.status = message.status_code.unwrap_or(200);
        if let (true, Some(MessageBody::Json(json))) = (scripts.looks_at_bodies(), message.body) {
            exchange.body = Members::read(json).unwrap_or_default();
        }
        exchange
    }

    /// The error ends the request, and whoever refuses that tells the operator why.
    pub(crate) fn script_failed(
        &self,
        stage: Stage,
        error: &dyn std::fmt::Display,
    ) -> RequestError {
        RequestError {
            status: StatusCode::INTERNAL_SERVER_ERROR.as_u16(),
            cause: Some(self.cause(stage, error)),
            ..RequestError::http(codes::SCRIPT_FAILED, "the request could not be processed")
        }
    }
}

/// What a call has made of an exchange, and what came of it.
type Called = (Exchange, Result<Option<Outcome>, ScriptError>);

/// Calls a hook with what it is lent.
fn call(
    scripts: &Scripts,
    hook: &ScriptHook,
    (mut exchange, lent): (Exchange, LentContext),
    mode: CallMode,
) -> (LentContext, Called) {
    exchange.context = lent.request;
    exchange.own = lent.own;
    let (mut exchange, outcome) = scripts.call(hook, exchange, mode);
    let lent = LentContext {
        request: std::mem::take(&mut exchange.context),
        own: exchange.own.take(),
    };
    (lent, (exchange, outcome))
}

fn is_done((_, outcome): &Called) -> bool {
    *outcome != Err(ScriptError::Unfinished)
}

/// What a script has made of what it was lent.
fn change(exchange: Exchange, message: &Message<'_>) -> Change {
    let peer = match message.stage {
        Stage::SubgraphRequest | Stage::SubgraphResponse => Peer::Subgraph,
        _ => Peer::Client,
    };
    let none = HeaderMap::new();
    let before = message.headers.unwrap_or(&none);
    let headers = exchange.headers;
    let status = exchange.has_new_status.then_some(exchange.status);
    Change {
        control: Control::Continue,
        break_code: codes::SCRIPT_BREAK,
        headers: exchange
            .has_new_headers
            .then(|| kept(before, headers, peer)),
        body: exchange.body.changed().map(ReplyBody::Json),
        status_code: status.and_then(|status| StatusCode::from_u16(status).ok()),
        uri: exchange.has_new_uri.then_some(exchange.uri),
    }
}

/// What a script ends a request with.
fn ending(ended: Outcome) -> Change {
    let status = StatusCode::from_u16(ended.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let message = ended.message.unwrap_or_else(|| {
        let reason = status.canonical_reason();
        reason.unwrap_or("the request was ended").to_owned()
    });
    let body = ended.body;
    let body = body.unwrap_or_else(|| body::error(&message, codes::SCRIPT_BREAK).into());
    Change {
        control: Control::Break(status),
        break_code: codes::SCRIPT_BREAK,
        headers: None,
        body: Some(ReplyBody::Json(body)),
        status_code: None,
        uri: None,
    }
}
