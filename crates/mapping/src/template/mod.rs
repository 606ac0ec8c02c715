//! Templates of requests: text with `{expressions}` in it, for URLs and values of headers.
//!
//! A template is cut into pieces when it is read. Values are put in only between pieces, encoded for their place, so no
//! value can change what the template says around it.

mod header;
mod pieces;
mod url;

use std::fmt;

use ogive_base::{Diagnostic, Span};

use crate::run::Failure;

pub use header::{HeaderTemplate, parse_header_template};
pub use url::{UrlLayer, UrlTemplate, build_url, parse_url_template};

/// Code of a URL that is none, or has an expression where none may be.
pub const INVALID_URL: &str = "CONNECTORS_INVALID_URL";
/// Code of a value of a header that cannot be sent.
pub const INVALID_HEADER: &str = "CONNECTORS_INVALID_HEADER";

/// What reading a template gives.
#[derive(Clone, Debug)]
pub struct ReadTemplate<T> {
    /// The template; `None` if there are errors.
    pub template: Option<T>,
    /// Errors and warnings.
    pub diagnostics: Vec<Diagnostic>,
}

/// Why a request cannot be made of these values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestError {
    /// An expression failed.
    Failure(Failure),
    /// An expression gave a list or an object where text is put in.
    NotText(Span),
    /// The parameters of a query are no object, or a parameter is one or holds one.
    NotParameters,
    /// The segments of a path are no list of scalars.
    NotSegments,
    /// A value would make a segment of the path `.` or `..`, which changes the path.
    DotSegment,
    /// The value of a header would have a control character, such as a line break.
    ControlCharacter,
    /// The URL or the value of a header is longer than allowed.
    TooLong,
    /// No layer has a scheme and a host.
    NoOrigin,
}

impl From<Failure> for RequestError {
    fn from(failure: Failure) -> Self {
        RequestError::Failure(failure)
    }
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            RequestError::Failure(failure) => return failure.fmt(f),
            RequestError::NotText(_) => "an expression in a template gave a list or an object",
            RequestError::NotParameters => {
                "`queryParams` gave no object whose members are scalars or lists of scalars"
            }
            RequestError::NotSegments => "`path` gave no list of scalars",
            RequestError::DotSegment => "a value would make a segment of the path `.` or `..`",
            RequestError::ControlCharacter => "a value would put a control character into a header",
            RequestError::TooLong => "the URL or the value of a header is too long",
            RequestError::NoOrigin => "the URL has no scheme and host",
        };
        f.write_str(text)
    }
}

impl std::error::Error for RequestError {}
