//! What can go wrong in the lab itself. What goes wrong with a gateway is not an error but a verdict
//! ([`crate::record::Verdict`]).

use std::{io, path::PathBuf};

/// The lab's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why the lab could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file could not be read or written.
    #[error("{}", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file of the model does not mean anything.
    #[error("{}: {message}", path.display())]
    Model {
        /// Which file.
        path: PathBuf,
        /// What is wrong in it.
        message: String,
    },
    /// No such gateway, scenario, graph or tool.
    #[error("no {kind} `{name}`; there is: {known}")]
    Unknown {
        /// What was looked for.
        kind: &'static str,
        /// Its name.
        name: String,
        /// What there is.
        known: String,
    },
    /// Something could not be installed.
    #[error("{name} cannot be installed: {message}")]
    Install {
        /// The gateway or tool.
        name: String,
        /// Why, and what to do.
        message: String,
    },
    /// A program could not be started or did not do its work.
    #[error("{program}: {message}")]
    Program {
        /// Which program.
        program: String,
        /// What happened.
        message: String,
    },
    /// Something the lab needs of the operating system failed.
    #[error("{what}")]
    System {
        /// What was tried.
        what: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// An answer to the lab's own requests was not what it must be.
    #[error("{0}")]
    Answer(String),
    /// Not everything fits into the time given.
    #[error(
        "{needed} are needed for everything even if each load takes only {least}; {wanted} were given: raise --budget, lower --rounds, or name fewer gateways (-g) and scenarios (-s)"
    )]
    Budget {
        /// What was given.
        wanted: String,
        /// What is needed.
        needed: String,
        /// The shortest load.
        least: String,
    },
    /// The folder holds something else.
    #[error(
        "{} holds another campaign ({difference}): name another folder with --out, or give the command it was begun with",
        folder.display()
    )]
    Another {
        /// The folder.
        folder: PathBuf,
        /// What differs.
        difference: String,
    },
    /// The user stopped the lab.
    #[error("stopped; what was measured so far is kept")]
    Stopped,
}

impl Error {
    pub(crate) fn file(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Error {
        let path = path.into();
        move |source| Error::File { path, source }
    }
    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> Error {
        move |source| Error::System { what, source }
    }
    pub(crate) fn program(program: impl Into<String>, message: impl Into<String>) -> Error {
        Error::Program {
            program: program.into(),
            message: message.into(),
        }
    }
}
