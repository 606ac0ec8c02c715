//! What stands here in a build without an engine for components: nobody has one.

use std::{sync::Arc, time::Duration};

use ogive_coprocessor::Stage;

use crate::{CallError, exchange::Exchange, options::PluginOptions, outgoing::Sender};

/// Nobody has one.
#[derive(Debug)]
pub(crate) enum Pool {}

impl Pool {
    pub(crate) fn start(
        _: &PluginOptions,
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
    pub(crate) fn call(
        &self,
        _: &mut Exchange,
    ) -> Result<(Result<(), CallError>, Duration), CallError> {
        match *self {}
    }
}
