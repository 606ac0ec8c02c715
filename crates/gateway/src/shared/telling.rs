//! Who is told of calls that are made where something is decided (by components, or a service of policies), and of those that
//! failed.

use std::time::Instant;

use ogive_failure::ErrorCode;
use ogive_telemetry::{FailureLine, Hook, HookOutcome, Record, Telemetry, Urgency};

use crate::shared::{
    context::{OperationContext, RequestContext},
    stage_observer::{StageEvent, StageObserver},
};

/// Who is told.
#[derive(Clone, Copy, Default)]
pub struct Telling<'a> {
    telemetry: Option<&'a Telemetry>,
    record: Option<&'a Record>,
    observer: Option<&'a dyn StageObserver>,
    is_of_request: bool,
}

impl<'a> Telling<'a> {
    /// Of calls that no request makes.
    pub(crate) fn of(telemetry: &'a Telemetry) -> Self {
        Telling {
            telemetry: Some(telemetry),
            ..Telling::default()
        }
    }
    /// Of calls for a request.
    pub(crate) fn of_request(context: RequestContext<'a>) -> Self {
        Telling {
            telemetry: Some(context.telemetry),
            record: context.record,
            observer: context.worker.observer(),
            is_of_request: true,
        }
    }
    /// Of calls for an operation.
    pub(crate) fn of_operation(context: &'a OperationContext<'_>) -> Self {
        Telling {
            telemetry: context.telemetry(),
            record: context.record(),
            observer: context.observer(),
            is_of_request: true,
        }
    }
    /// Whether a request asks, whose client waits for it.
    pub(crate) fn is_of_request(self) -> bool {
        self.is_of_request
    }
    /// Notes a call that began at `since`.
    pub(crate) fn called(self, hook: (Hook, &'static str), outcome: HookOutcome, since: Instant) {
        let Some(telemetry) = self.telemetry else {
            return;
        };
        let call = telemetry.hook_called(self.record, hook, outcome, since);
        if let Some(observer) = self.observer {
            observer.passed(&StageEvent::Hook(&call));
        }
    }
    /// Tells of a call that failed while the request goes on: only refusals are told elsewhere.
    pub(crate) fn failed(self, cause: &str, message: &'static str, code: ErrorCode) {
        if let Some(telemetry) = self.telemetry {
            telemetry.failed(&FailureLine {
                cause,
                record: self.record,
                ..FailureLine::new(message, Urgency::Warn, code.as_str())
            });
        }
    }
}
