//! Who tells operators what went wrong: of requests to subgraphs, and of requests that were refused.
//!
//! Everything ends in [`Telemetry::failed`], which writes one line and counts one; here it gets the names that lead from
//! it to the request: subgraph, operation, ids.

use http::StatusCode;
use ogive_edge::error::RequestError;
use ogive_execute::FailureReport;
use ogive_failure::{ErrorCode, codes};
use ogive_telemetry::{FailureLine, Record, Telemetry, Urgency, failures::urgency};
use ogive_transport::Reporter;

use crate::shared::stage_observer::StageObserver;

/// Tells what goes wrong while one operation is executed.
pub(crate) struct Telling<'a> {
    pub(crate) telemetry: &'a Telemetry,
    pub(crate) observer: Option<&'a dyn StageObserver>,
    /// Name of the operation.
    pub(crate) operation: Option<&'a str>,
}

impl Reporter for Telling<'_> {
    fn failed(&self, subgraph: &str, failure: &FailureReport<'_>) {
        if let Some(observer) = self.observer {
            observer.failed(failure);
        }
        let (what, urgency) = judge(failure);
        self.telemetry.failed(&FailureLine {
            what,
            urgency,
            subgraph,
            code: failure.code,
            cause: failure.cause,
            operation: self.operation,
            path: failure.path,
            places: failure.places,
            status: failure.status,
            answer: failure.answer,
            record: self.observer.and_then(StageObserver::record),
        });
    }
}

/// What a failure is called, and how urgent it is. An error that a subgraph reports is its own affair, unless it could
/// not understand the gateway or was not well itself.
fn judge(failure: &FailureReport<'_>) -> (&'static str, Urgency) {
    let code = ErrorCode::find(failure.code);
    if failure.is_reported {
        let is_ours = matches!(
            code,
            Some(codes::GRAPHQL_PARSE_FAILED | codes::GRAPHQL_VALIDATION_FAILED)
        );
        let is_unwell = failure.status.is_some_and(|status| status >= 500);
        let urgency = if is_ours || is_unwell {
            Urgency::Warn
        } else {
            Urgency::Info
        };
        return ("a subgraph reported an error", urgency);
    }
    match code {
        Some(codes::EVENT_INCOMPLETE | codes::EVENT_MALFORMED) => {
            ("an event cannot be used", Urgency::Warn)
        }
        Some(codes::SUBREQUEST_MISSING_ENTITY) => {
            ("a subgraph does not know an entity", Urgency::Info)
        }
        Some(codes::UNAUTHORIZED_FIELD_OR_TYPE) => ("a field was refused", Urgency::Debug),
        code => (
            "a request to a subgraph failed",
            code.map_or(Urgency::Warn, urgency),
        ),
    }
}

/// Tells of a refused request.
pub(crate) fn refused(telemetry: &Telemetry, record: Option<&Record>, error: &RequestError) {
    let Some(first) = error.errors.first() else {
        return;
    };
    if let Some(record) = record {
        record.refused(first.code.as_str());
    }
    telemetry.failed(&FailureLine {
        cause: error.cause.as_deref().unwrap_or(&first.message),
        status: Some(error.status),
        record,
        ..FailureLine::new(REFUSED, urgency(first.code), first.code.as_str())
    });
}

/// Tells of a request that nobody looked into.
pub(crate) fn turned_away(
    telemetry: &Telemetry,
    record: &Record,
    status: StatusCode,
    code: &'static str,
) {
    record.refused(code);
    // Codes that are none of the table are limits that clients exceed.
    let urgency = ErrorCode::find(code).map_or(Urgency::Debug, urgency);
    telemetry.failed(&FailureLine {
        status: Some(status.as_u16()),
        record: Some(record),
        ..FailureLine::new(REFUSED, urgency, code)
    });
}

/// Tells of a request that ended in a panic, which has a line of its own.
pub(crate) fn panicked(telemetry: &Telemetry, record: Option<&Record>) {
    if let Some(record) = record {
        record.refused(codes::INTERNAL_SERVER_ERROR.as_str());
    }
    let what = "a request ended in a panic; the process goes on";
    telemetry.failed(&FailureLine {
        status: Some(500),
        record,
        ..FailureLine::new(what, Urgency::Error, codes::INTERNAL_SERVER_ERROR.as_str())
    });
}

const REFUSED: &str = "a request was refused";
