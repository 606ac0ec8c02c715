//! One error of a response, and where it is.

use std::borrow::Cow;

use bytes::Bytes;
use ogive_failure::ErrorCode;
use ogive_json::write_string;

/// One step of a client path.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum PathStep<'p> {
    Key(&'p str),
    Index(u32),
}

pub(crate) type Path<'p> = Vec<PathStep<'p>>;

/// One entry of the response's `errors`.
#[derive(Clone, Debug)]
pub(crate) struct GraphqlError<'p> {
    pub(crate) message: Cow<'static, str>,
    pub(crate) path: Option<Path<'p>>,
    pub(crate) code: Cow<'static, str>,
    /// Name of the subgraph to blame, if it may be told.
    pub(crate) service: Option<&'p str>,
    /// Further members of `extensions`, as JSON without braces, each followed by a comma. Shared by all places of one
    /// error.
    pub(crate) extensions: Bytes,
    /// The code that operators are told instead.
    pub(crate) own_code: Option<Cow<'static, str>>,
    /// What operators are told instead of the message.
    pub(crate) cause: Option<Cow<'static, str>>,
    /// What kind of value is wrong, for operators. Not the value: it may be anything, also what nobody may log.
    pub(crate) value: Option<Box<str>>,
    /// The subgraph to blame, where that is not the one whose answer is read.
    pub(crate) subgraph: Option<u32>,
    /// Whether the subgraph reported it itself.
    pub(crate) is_reported: bool,
    /// Whether it may be why anything of its answer is null: the subgraph did not say where it belongs.
    pub(crate) is_unplaced: bool,
}

impl<'p> GraphqlError<'p> {
    pub(crate) fn new(code: ErrorCode, message: impl Into<Cow<'static, str>>) -> Self {
        GraphqlError {
            message: message.into(),
            path: None,
            code: Cow::Borrowed(code.as_str()),
            service: None,
            extensions: Bytes::new(),
            own_code: None,
            cause: None,
            value: None,
            subgraph: None,
            is_reported: false,
            is_unplaced: false,
        }
    }
    /// Whether another one says the same, wherever it is.
    pub(crate) fn is_alike(&self, other: &GraphqlError<'_>) -> bool {
        self.code == other.code && self.message == other.message && self.service == other.service
    }
    pub(crate) fn at(mut self, path: Path<'p>) -> Self {
        self.path = (!path.is_empty()).then_some(path);
        self
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"message\":");
        write_string(out, &self.message);
        if let Some(path) = &self.path {
            out.extend_from_slice(b",\"path\":[");
            for (i, step) in path.iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                match step {
                    PathStep::Key(key) => write_string(out, key),
                    PathStep::Index(index) => out.extend_from_slice(index.to_string().as_bytes()),
                }
            }
            out.push(b']');
        }
        out.extend_from_slice(b",\"extensions\":{");
        out.extend_from_slice(&self.extensions);
        out.extend_from_slice(b"\"code\":");
        write_string(out, &self.code);
        if let Some(service) = self.service {
            out.extend_from_slice(b",\"service\":");
            write_string(out, service);
        }
        out.extend_from_slice(b"}}");
    }
}
