//! What stands here in a build without an engine for components: nobody has one.

use std::{sync::Arc, time::Duration};

use super::{
    decide::{PolicyQuestion, Verdict},
    options::ComponentOptions,
    outgoing::Sender,
};
use crate::{CallError, CallMode, Exchange, Stage};

/// Nobody has one.
#[derive(Debug)]
pub(crate) enum Pool {}

/// What came of a call, and how long it took; or why there was none.
pub(crate) type CallResult<T> = Result<(Result<T, CallError>, Duration), CallError>;

impl Pool {
    pub(crate) fn start(
        _: &ComponentOptions,
        _: &[u8],
        _: Option<Arc<dyn Sender>>,
    ) -> Result<(Self, Vec<Stage>), String> {
        Err(
            "this build has no engine for components: take a released one, or build it with `--features components`"
                .to_owned(),
        )
    }
    pub(crate) fn sends_requests(&self) -> bool {
        match *self {}
    }
    pub(crate) fn call(&self, _: &mut Exchange, _: CallMode) -> CallResult<()> {
        match *self {}
    }
    pub(crate) fn authenticate(&self, _: &mut Exchange, _: CallMode) -> CallResult<Verdict> {
        match *self {}
    }
    pub(crate) fn policies(
        &self,
        _: &mut Exchange,
        _: &PolicyQuestion,
        _: CallMode,
    ) -> CallResult<Vec<String>> {
        match *self {}
    }
    pub(crate) fn rate_key(&self, _: &mut Exchange, _: CallMode) -> CallResult<Option<String>> {
        match *self {}
    }
}
