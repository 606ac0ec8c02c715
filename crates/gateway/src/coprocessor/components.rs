//! WebAssembly components at the stages of a request: lent what a stage is about, before scripts on the way in and after them on
//! the way out.
//!
//! A call has a [turn](ogive_coprocessor::worker_time) in the worker. One that is not done then is made again on a thread of the
//! component ([`HookThreads`](crate::shared::hook_threads::HookThreads)), so neighbours wait for it as long as a turn at most.
//! Calls of a component that sends requests to other hosts always run on its threads.

use std::{sync::Arc, time::Instant};

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use ogive_component::{CallError, Exchange, Plugin};
use ogive_coprocessor::{
    CallMode, Control, Message, ReplyBody, Stage,
    headers::{Peer, kept},
};
use ogive_edge::error::RequestError;
use ogive_telemetry::{FailureLine, HookOutcome, Urgency, codes};

use super::{
    body,
    change::Change,
    lent_context::LentContext,
    plugins::LoadedPlugin,
    run::{CoprocessorRun, OperationCoprocessor},
};

impl CoprocessorRun<'_> {
    /// Calls the hook of a component. `None` if it failed and the request goes on all the same.
    pub(crate) async fn call_component(
        &self,
        of: &LoadedPlugin,
        operation: Option<&OperationCoprocessor<'_>>,
        message: &Message<'_>,
    ) -> Result<Option<Change>, RequestError> {
        let (stage, plugin, since) = (message.stage, &of.plugin, Instant::now());
        if of.is_busy() {
            self.called(of.hook, stage, HookOutcome::Failed, since);
            let busy = CallError::Busy(plugin.options().limits.instances);
            return self
                .component_failed(plugin, stage, &busy, false)
                .map(|()| None);
        }
        let body = message.body.filter(|_| plugin.looks_at_body(stage));
        let copied = body.map_or(0, |body| body.bytes().len());
        self.memory.grow(copied)?;
        let in_turn = match plugin.mode(stage) {
            CallMode::Turn => self.lend_context(operation, |lent| {
                let exchange = self.lent_to(plugin, message);
                let (lent, said) = call(plugin, (exchange, lent), CallMode::Turn);
                (lent, Some(said).filter(is_done))
            }),
            CallMode::Whole => None,
        };
        let (exchange, outcome) = match in_turn {
            Some(said) => said,
            None => {
                let (exchange, plugin) = (self.lent_to(plugin, message), Arc::clone(plugin));
                let call = move |lent| call(&plugin, (exchange, lent), CallMode::Whole);
                self.lend_context_beside(operation, &of.threads, call).await
            }
        };
        self.memory.shrink(copied);
        let ended = match &outcome {
            Ok(()) if exchange.changes.ending.is_some() => HookOutcome::Break,
            Ok(()) => HookOutcome::Continue,
            Err(_) => HookOutcome::Failed,
        };
        self.called(of.hook, stage, ended, since);
        match outcome {
            Ok(()) => Ok(Some(change(exchange, message))),
            Err(error) => self
                .component_failed(plugin, stage, &error, exchange.changes.ends)
                .map(|()| None),
        }
    }

    /// What a stage lends, but for the context.
    fn lent_to(&self, plugin: &Plugin, message: &Message<'_>) -> Exchange {
        let mut exchange = Exchange::new(message.stage);
        exchange.id.clone_from(&self.id);
        exchange.is_first = !message.is_later_part;
        exchange.has_next = message.has_next.unwrap_or(false);
        if exchange.is_first {
            exchange.headers = message.headers.cloned().unwrap_or_default();
        }
        let head = self.head();
        exchange.method = head.method.as_str().to_owned();
        exchange.uri = message.uri.or(message.path).unwrap_or(head.path).to_owned();
        exchange.subgraph = message.service_name.unwrap_or_default().to_owned();
        exchange.status = message.status_code.unwrap_or(200);
        if plugin.looks_at_body(message.stage) {
            exchange.body = message
                .body
                .map(|body| Bytes::copy_from_slice(body.bytes()));
        }
        exchange
    }

    /// `ends`: it had asked for an end, so the request does not go on whatever else is wrong.
    /// The error ends the request, and whoever refuses that tells the operator why; if it goes on, that is told here, but for
    /// calls that are not made because of what was told before.
    pub(super) fn component_failed(
        &self,
        plugin: &Plugin,
        stage: Stage,
        error: &CallError,
        ends: bool,
    ) -> Result<(), RequestError> {
        let options = plugin.options();
        let cause = self.cause(stage, &format_args!("`{}`: {error}", options.name));
        if ends || !options.goes_on {
            return Err(RequestError {
                status: StatusCode::INTERNAL_SERVER_ERROR.as_u16(),
                cause: Some(cause),
                ..RequestError::http(codes::PLUGIN_FAILED, "the request could not be processed")
            });
        }
        if *error != CallError::Ejected {
            self.telemetry.failed(&FailureLine {
                cause: &cause,
                record: self.record,
                ..FailureLine::new(
                    "a plug-in failed, and the request goes on",
                    Urgency::Warn,
                    codes::PLUGIN_FAILED.as_str(),
                )
            });
        }
        Ok(())
    }
}

/// What a call has made of an exchange, and what came of it.
type Called = (Exchange, Result<(), CallError>);

/// Calls a component with what it is lent.
fn call(
    plugin: &Plugin,
    (mut exchange, lent): (Exchange, LentContext),
    mode: CallMode,
) -> (LentContext, Called) {
    exchange.context = lent.request;
    exchange.own = lent.own;
    let (mut exchange, outcome) = plugin.call(exchange, mode);
    let lent = LentContext {
        request: std::mem::take(&mut exchange.context),
        own: exchange.own.take(),
    };
    (lent, (exchange, outcome))
}

fn is_done((_, outcome): &Called) -> bool {
    *outcome != Err(CallError::Unfinished)
}

/// What a component has made of what it was lent.
fn change(exchange: Exchange, message: &Message<'_>) -> Change {
    let (stage, changes) = (message.stage, exchange.changes);
    let peer = match stage {
        Stage::SubgraphRequest | Stage::SubgraphResponse => Peer::Subgraph,
        _ => Peer::Client,
    };
    let none = HeaderMap::new();
    if let Some(ending) = changes.ending {
        let body = if ending.body.is_empty() {
            let reason = ending.status.canonical_reason();
            body::error(
                reason.unwrap_or("the request was ended"),
                codes::PLUGIN_BREAK,
            )
            .into()
        } else if body::is_json(&ending.body) {
            ending.body.into()
        } else {
            body::error(&ending.body, codes::PLUGIN_BREAK).into()
        };
        let headers = kept(&none, ending.headers, peer);
        return Change {
            control: Control::Break(ending.status),
            break_code: codes::PLUGIN_BREAK,
            headers: (!headers.is_empty()).then_some(headers),
            body: Some(ReplyBody::Json(body)),
            status_code: None,
            uri: None,
        };
    }
    let before = message.headers.unwrap_or(&none);
    let headers = exchange.headers;
    let status = changes.status.then_some(exchange.status);
    Change {
        control: Control::Continue,
        break_code: codes::PLUGIN_BREAK,
        headers: changes.headers.then(|| kept(before, headers, peer)),
        body: changes.body.map(|body| {
            if stage.body_is_text() {
                ReplyBody::Text(String::from_utf8_lossy(&body).into_owned())
            } else {
                ReplyBody::Json(body)
            }
        }),
        status_code: status.and_then(|status| StatusCode::from_u16(status).ok()),
        uri: changes.uri.then_some(exchange.uri),
    }
}
