//! Load: what is sent, when, and what is noted about each answer.
//!
//! The built-in generator ([`builtin`]) needs nothing installed and is the default. Its open loop notes latency from
//! the moment a request was due, not from when it could be sent, so a gateway that stalls pays for everyone who would
//! have asked meanwhile (no coordinated omission). [`k6`], [`oha`], [`wrk`] and [`vegeta`] drive the tools of the
//! published benchmarks.

pub mod builtin;
pub mod k6;
pub mod oha;
pub mod parts;
pub mod request;
pub mod tally;
pub mod vegeta;
pub mod wrk;

use std::{net::SocketAddr, path::PathBuf, time::Duration};

pub use request::{Request, RequestMaker};
pub use tally::{LoadResult, Second, Tally};

use crate::{Error, Result, model::Shape};

/// One load to put on one server.
#[derive(Clone, Debug)]
pub struct Job {
    /// Where to.
    pub address: SocketAddr,
    /// What.
    pub request: RequestMaker,
    /// How much, and when.
    pub shape: Shape,
    /// How long a request may take.
    pub timeout: Duration,
    /// Whether connections are used again.
    pub keep_alive: bool,
    /// Most connections of an open loop.
    pub connections_max: usize,
    /// How long answers are waited for after the end.
    pub drain: Duration,
    /// CPUs of the generator.
    pub cpus: Vec<usize>,
    /// Bytes a right answer has, where all have the same.
    pub length: Option<usize>,
    /// Number of the first request, so that unique values stay unique over several loads.
    pub first: u64,
    /// Folder for scripts and outputs of external tools.
    pub work: PathBuf,
}

/// A request and its answer, kept to be checked later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The operation that was asked, as the body of a POST.
    pub request: Vec<u8>,
    /// The body that came back.
    pub answer: Vec<u8>,
    /// Its status.
    pub status: u16,
}

/// What a load came to.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Numbers.
    pub result: LoadResult,
    /// Answers taken at times, to be checked.
    pub sampled: Vec<Kept>,
    /// Answers that looked odd, to be checked.
    pub odd: Vec<Kept>,
    /// Number of the next request.
    pub next: u64,
}

/// Who makes the load.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Tool {
    /// [`builtin`]
    #[default]
    Builtin,
    /// [`k6`]
    K6(PathBuf),
    /// [`oha`]
    Oha(PathBuf),
    /// [`wrk`]
    Wrk(PathBuf),
    /// [`vegeta`]
    Vegeta(PathBuf),
}

impl Tool {
    /// Its name.
    pub fn name(&self) -> &'static str {
        match self {
            Tool::Builtin => "builtin",
            Tool::K6(_) => "k6",
            Tool::Oha(_) => "oha",
            Tool::Wrk(_) => "wrk",
            Tool::Vegeta(_) => "vegeta",
        }
    }

    /// Why it cannot make this load, if so.
    pub fn refuses(&self, job: &Job) -> Option<&'static str> {
        let varies = job.request.varies();
        match (self, &job.shape) {
            (Tool::Builtin, _) => None,
            (
                _,
                Shape::Starts { .. }
                | Shape::Rates { .. }
                | Shape::Events { .. }
                | Shape::Burst { .. }
                | Shape::Idle { .. }
                | Shape::Parts { .. },
            ) => Some("only the built-in generator makes this load"),
            (Tool::K6(_), _) => None,
            (Tool::Oha(_) | Tool::Vegeta(_), _) if varies => {
                Some("the tool sends the same request every time")
            }
            (Tool::Oha(_), Shape::Clients { pause, .. }) if pause.0.is_zero() => None,
            (Tool::Oha(_), Shape::Rate { .. }) => None,
            (Tool::Wrk(_), Shape::Clients { pause, .. }) if pause.0.is_zero() => None,
            (Tool::Vegeta(_), Shape::Rate { .. }) => None,
            _ => Some("the tool cannot make this shape of load"),
        }
    }

    /// Makes the load and waits for its end.
    pub fn run(&self, job: &Job) -> Result<Outcome> {
        if let Some(reason) = self.refuses(job) {
            return Err(Error::program(self.name(), reason));
        }
        match self {
            Tool::Builtin => builtin::run(job),
            Tool::K6(path) => k6::run(path, job),
            Tool::Oha(path) => oha::run(path, job),
            Tool::Wrk(path) => wrk::run(path, job),
            Tool::Vegeta(path) => vegeta::run(path, job),
        }
    }
}

/// Writes a file for a tool.
pub(crate) fn write(job: &Job, name: &str, text: &[u8]) -> Result<PathBuf> {
    let path = job.work.join(name);
    std::fs::write(&path, text).map_err(Error::file(&path))?;
    Ok(path)
}
