//! What stands here in a build without an engine for scripts: no script can be read.

use std::{fmt, path::PathBuf};

use super::{Limits, ProgramError};
use crate::{CallError, CallMode, Exchange, HookEngine, Stage};

/// Scripts that were read, of which there are none.
#[derive(Clone, PartialEq, Debug)]
pub enum Program {}

/// Scripts under one schema, of which there are none.
#[derive(Debug)]
pub enum Scripts {}

/// Refuses scripts.
pub fn check(program: &Program) -> Result<Vec<Box<dyn fmt::Display>>, ProgramError> {
    match *program {}
}

/// Refuses scripts.
pub fn require_offered(program: &Program) -> Result<(), ProgramError> {
    match *program {}
}

impl Program {
    /// Refuses scripts.
    pub fn read(_: &str, _: &str, _: Limits) -> Result<Self, ProgramError> {
        let why = "this build has no engine for scripts: take a released one, or build it with `--features scripts`";
        Err(ProgramError(why.to_owned()))
    }
    /// No file, because none is read.
    pub fn watched(_: &str, _: &str) -> Vec<PathBuf> {
        Vec::new()
    }
    /// Whether the scripts look at requests to subgraphs.
    pub fn is_at_subgraphs(&self) -> bool {
        match *self {}
    }
    /// Whether the scripts may look at the context.
    pub fn looks_at_context(&self) -> bool {
        match *self {}
    }
    /// What of the scripts does not do what it seems to.
    pub fn warnings(&self) -> Vec<String> {
        match *self {}
    }
}

impl Scripts {
    /// Runs the entry points.
    pub fn start(
        program: &Program,
        _: impl Fn() -> String + Send + Sync + 'static,
    ) -> Result<Self, ProgramError> {
        match *program {}
    }
    /// Runs the entry point of these subgraphs.
    pub fn enter<'n>(&self, _: impl Iterator<Item = &'n str>) -> Result<(), ProgramError> {
        match *self {}
    }
    /// Whether anything may be called at a stage.
    pub fn has(&self, _: Stage) -> bool {
        match *self {}
    }
    /// Whether a script looks at bodies.
    pub fn looks_at_bodies(&self) -> bool {
        match *self {}
    }
}

impl HookEngine for Scripts {
    fn mode(&self, _: &Exchange) -> Option<CallMode> {
        match *self {}
    }
    fn call(&self, _: Exchange, _: CallMode) -> Result<Exchange, CallError> {
        match *self {}
    }
}
