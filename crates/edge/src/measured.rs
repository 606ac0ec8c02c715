//! What becomes of requests beyond a limit that is only measured (`limits.warn_only`): a line in the log, and a word that is
//! counted.

use std::fmt::Debug;

use ogive_limits::{Limit, Measured};
use ogive_telemetry::{Record, Telemetry, codes};

/// Codes of limits that are exceeded and only measured.
pub type Exceeded = Vec<&'static str>;

/// The code of a limit: that of the refusal, if it has one of its own.
pub fn code(limit: Limit) -> &'static str {
    let code = match limit {
        Limit::Depth => codes::MAX_DEPTH_LIMIT,
        Limit::Height => codes::MAX_HEIGHT_LIMIT,
        Limit::Aliases => codes::MAX_ALIASES_LIMIT,
        Limit::RootFields => codes::MAX_ROOT_FIELDS_LIMIT,
        Limit::Directives => codes::MAX_DIRECTIVES_LIMIT,
        Limit::Variables => codes::MAX_VARIABLES_SIZE_LIMIT,
        Limit::Tokens => codes::MAX_TOKENS_LIMIT,
        Limit::Body => codes::REQUEST_TOO_LARGE,
        Limit::Headers => return codes::limits::HEADERS,
        Limit::HeaderSize => return codes::limits::HEADER_SIZE,
        Limit::RequestMemory => codes::REQUEST_MEMORY_LIMIT,
        Limit::Connections => return codes::limits::CONNECTIONS,
        Limit::ClientConnections => return codes::limits::CLIENT_CONNECTIONS,
        Limit::HeaderTimeout => return codes::limits::HEADER_TIMEOUT,
        Limit::BodyTimeout => codes::REQUEST_TIMEOUT,
        Limit::Batch => codes::BATCH_LIMIT_EXCEEDED,
        Limit::Concurrency => codes::REQUEST_CONCURRENCY_LIMITED,
        Limit::Response => return codes::limits::RESPONSE_SIZE,
    };
    code.as_str()
}

/// Notes what is beyond a limit that is only measured, each limit once.
pub fn note<T: PartialOrd + Debug>(measured: &Measured<T>, found: &T, exceeded: &mut Exceeded) {
    let code = code(measured.which);
    if measured.is_exceeded_by(found) && !exceeded.contains(&code) {
        log(measured.which, found, &measured.limit);
        exceeded.push(code);
    }
}

/// Counts limits that are exceeded and only measured, of the process and of a request.
pub fn count<'c>(
    telemetry: &Telemetry,
    record: Option<&Record>,
    codes: impl IntoIterator<Item = &'c &'static str>,
) {
    for code in codes {
        if let Some(metrics) = &telemetry.metrics {
            metrics.exceeded(code);
        }
        if let Some(record) = record {
            record.exceeded(code);
        }
    }
}

/// Writes the line.
pub fn log(which: Limit, found: &dyn Debug, limit: &dyn Debug) {
    let (code, key) = (code(which), which.word());
    tracing::warn!(
        code,
        key,
        ?found,
        ?limit,
        "a limit that is only measured is exceeded"
    );
}
