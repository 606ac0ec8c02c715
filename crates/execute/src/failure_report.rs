//! What went wrong, as operators are told of it.
//!
//! Every error of a response goes through `Errors::push`, which notes it here, too; so there is no answer with errors of
//! which nothing is told. What happens again and again in one answer is one failure in several places, and what happens
//! beside twice [`NOTED_MAX`] other things is left out.

use std::borrow::Cow;

use ogive_failure::Failure;

use crate::graphql_error::{GraphqlError, PathStep};

/// Most failures of one answer that are told apart by what happened; those beyond are told apart by code.
const NOTED_MAX: usize = 10;
/// Longest path of a failure in bytes.
const PATH_BYTES_MAX: usize = 200;

/// Something that went wrong while an operation was executed: a null, a missing answer, an error in the response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailureReport<'a> {
    /// Index of the subgraph to blame; `None` if it is none, or nobody knows.
    pub subgraph: Option<u32>,
    /// What kind of failure: the client's `extensions.code`, or the subgraph's own if the subgraph reported it.
    pub code: &'a str,
    /// Whether the subgraph itself reported it, as GraphQL wants it.
    pub is_reported: bool,
    /// What happened, for operators: it may name hosts, and hold what the subgraph says.
    pub cause: &'a str,
    /// Where in the client's response, steps separated by dots; of several places, the first. Empty if that is not known.
    pub path: &'a str,
    /// In how many places.
    pub places: u32,
    /// The HTTP status of the answer, if there was one.
    pub status: Option<u16>,
    /// The answer, if that is what is wrong; of an answer that has been read, only those who report nothing themselves. Of one
    /// value that is wrong, what kind of value it is.
    pub answer: Option<&'a [u8]>,
}

impl<'a> FailureReport<'a> {
    /// That of a request without an answer.
    pub fn of(subgraph: u32, failure: &'a Failure) -> Self {
        FailureReport {
            subgraph: Some(subgraph),
            code: failure.code.as_str(),
            is_reported: false,
            cause: &failure.detail,
            path: "",
            places: 1,
            status: None,
            answer: None,
        }
    }
}

/// A failure whose answer is still at hand.
#[derive(Clone, Debug)]
pub(crate) struct FailureRecord {
    pub(crate) subgraph: Option<u32>,
    code: Cow<'static, str>,
    is_reported: bool,
    cause: Cow<'static, str>,
    path: String,
    places: u32,
    /// What kind of value is wrong, of an answer that has been read.
    value: Option<Box<str>>,
}

impl FailureRecord {
    /// Notes an error in so many places, with others like it.
    pub(crate) fn note(all: &mut Vec<FailureRecord>, error: &GraphqlError<'_>, places: u32) {
        let cause = error.cause.as_ref().unwrap_or(&error.message);
        let code = error.own_code.as_ref().unwrap_or(&error.code);
        let same = |noted: &&mut FailureRecord| noted.code == *code && noted.cause == *cause;
        if let Some(noted) = all.iter_mut().find(same) {
            noted.places = noted.places.saturating_add(places);
            return;
        }
        let alike = |noted: &&mut FailureRecord| noted.code == *code;
        if all.len() >= NOTED_MAX
            && let Some(noted) = all.iter_mut().find(alike)
        {
            noted.places = noted.places.saturating_add(places);
            return;
        }
        // Codes are the subgraph's, too; one answer does not need more kinds of them.
        if all.len() >= 2 * NOTED_MAX {
            return;
        }
        all.push(FailureRecord {
            subgraph: error.subgraph,
            code: code.clone(),
            is_reported: error.is_reported,
            cause: cause.clone(),
            path: dotted(error.path.as_deref().unwrap_or_default()),
            places,
            value: error.value.clone(),
        });
    }

    /// The failure, with what is known of the answer.
    pub(crate) fn failure<'a>(
        &'a self,
        subgraph: Option<u32>,
        answer: Option<(u16, &'a [u8])>,
    ) -> FailureReport<'a> {
        FailureReport {
            subgraph: self.subgraph.or(subgraph),
            code: &self.code,
            is_reported: self.is_reported,
            cause: &self.cause,
            path: &self.path,
            places: self.places,
            status: answer.map(|(status, _)| status),
            answer: answer.map(|(_, body)| body).filter(|_| !self.is_reported),
        }
    }

    /// The failure of what was found when the response was written. `status`: that of all answers of a subgraph, if they
    /// have one.
    pub(crate) fn of_value(&self, status: impl FnOnce(u32) -> Option<u16>) -> FailureReport<'_> {
        FailureReport {
            status: self.subgraph.and_then(status),
            answer: self.value.as_deref().map(str::as_bytes),
            ..self.failure(None, None)
        }
    }
}

fn dotted(path: &[PathStep<'_>]) -> String {
    let mut out = String::new();
    for step in path {
        if !out.is_empty() {
            out.push('.');
        }
        match step {
            PathStep::Key(key) => out.push_str(&ogive_base::foreign::bounded_name(key)),
            PathStep::Index(index) => out.push_str(&index.to_string()),
        }
        if out.len() >= PATH_BYTES_MAX {
            return ogive_base::foreign::bounded(&out, PATH_BYTES_MAX).into_owned();
        }
    }
    out
}
