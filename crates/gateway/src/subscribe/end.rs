//! The line of the access log at the end of a subscription.

use std::sync::{Arc, OnceLock};

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
    pub(crate) fn note(&mut self, step: &StreamStep) {
        match step {
            StreamStep::Event(_) => self.events += 1,
            StreamStep::End(end) => {
                self.end = match end {
                    StreamEnd::Complete => "complete",
                    StreamEnd::Failed(_) => "failed",
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
