//! The line of the access log at the end of a subscription, or of an answer in parts.

use std::sync::{Arc, OnceLock};

use http::Response;
use ogive_server::ResponseBody;
use ogive_telemetry::{Telemetry, access::StartLine};

use crate::subscribe::queue::{StreamEnd, StreamStep};

/// In the extensions of the answer to a subscription, where whoever logs the answer leaves what the end repeats of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct EndLine(Arc<OnceLock<StartLine>>);

impl EndLine {
    pub(crate) fn set(&self, opened: StartLine) {
        // There is one answer.
        let _ = self.0.set(opened);
    }
}

/// An answer whose end is logged, too, if there is a line for it.
pub(crate) fn ending(
    mut response: Response<ResponseBody>,
    line: Option<EndLine>,
) -> Response<ResponseBody> {
    if let Some(line) = line {
        response.extensions_mut().insert(line);
    }
    response
}

/// Counts the events that a client is sent, and logs the end when it is dropped.
#[derive(Debug)]
pub(crate) struct EndLog {
    telemetry: Arc<Telemetry>,
    line: EndLine,
    events: u64,
    end: &'static str,
}

impl EndLog {
    pub(crate) fn new(telemetry: Arc<Telemetry>, line: EndLine) -> Self {
        EndLog {
            telemetry,
            line,
            events: 0,
            // Nothing ends it but the client until something else does.
            end: "left",
        }
    }
    /// So many more were sent.
    pub(crate) fn sent(&mut self, events: u64) {
        self.events += events;
    }
    /// How it ended.
    pub(crate) fn end(&mut self, end: &'static str) {
        self.end = end;
    }
    pub(crate) fn note(&mut self, step: &StreamStep) {
        match step {
            StreamStep::Event(_) => self.events += 1,
            StreamStep::End(end) => {
                self.end = match end {
                    StreamEnd::Complete => "complete",
                    StreamEnd::Failed(_) | StreamEnd::Refused(_) => "failed",
                    StreamEnd::Overflow => "overflow",
                    StreamEnd::Expired => "expired",
                    StreamEnd::Revoked(_) => "revoked",
                    StreamEnd::Reload => "reload",
                    StreamEnd::Drain => "drain",
                };
            }
        }
    }
}

impl Drop for EndLog {
    fn drop(&mut self) {
        if let (Some(log), Some(opened)) = (&self.telemetry.access, self.line.0.get()) {
            log.ended(opened, self.events, self.end);
        }
    }
}
