//! Validation of executable documents (specification section 5).
//!
//! One traversal with type information ([`walk`]) drives every rule; the rules themselves live in one file per
//! family and are called in the order in which clients of the reference implementation see their messages.
//! Field merging is decided beforehand over a table of all fields ([`merge`]); rules that need the fragments an
//! operation reaches ([`variables`]) run after the traversal and put their messages where the operation ended.
//!
//! Invariants: messages and first positions equal the reference implementation's (npm `graphql` 16), except where
//! the specification is stricter (`tests/cases/differences.json` lists every such case); work is linear in the
//! document up to the named limits; recursion follows the syntactic nesting only, which [`DEPTH_MAX`] bounds.
//!
//! Reading order: [`context`], [`walk`], then any rule family. Tests: `tests/it/corpus.rs`, `tests/it/oracle.rs`.

use ogive_base::Diagnostic;
use ogive_failure::codes;
use ogive_schema::Schema;
use ogive_syntax::Document;

mod arguments;
mod context;
mod definitions;
mod directives;
mod fields;
mod fragments;
mod incremental;
mod input;
mod introspection;
mod literal;
mod merge;
mod subscription;
mod values;
mod variables;
mod walk;

/// Deepest syntactic nesting that is validated; the parser's default limit is below it.
pub const DEPTH_MAX: u32 = 256;

/// The code of every violation.
pub const CODE: &str = codes::GRAPHQL_VALIDATION_FAILED.as_str();

/// The code of a document that would take too long to validate.
pub const CODE_TOO_COMPLEX: &str = codes::VALIDATION_TOO_COMPLEX.as_str();

/// Limits on validation work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValidationLimits {
    /// Most diagnostics before giving up; default 100.
    pub errors_max: u32,
    /// Most steps of the field-merging rule; default 500,000.
    pub merge_steps_max: u32,
    /// Most selections of a document (fields, spreads and inline fragments), counted before anything else is looked at;
    /// default 50,000, as many as the normal form may have fields.
    pub selections_max: u32,
    /// Whether messages name what the client may have meant; default true. Who does not answer introspection should not.
    pub suggestions: bool,
}

impl Default for ValidationLimits {
    fn default() -> Self {
        ValidationLimits {
            errors_max: 100,
            merge_steps_max: 500_000,
            selections_max: 50_000,
            suggestions: true,
        }
    }
}

/// Checks every rule of specification section 5 on an executable document. An empty result means valid.
/// Messages are those clients know from the reference implementation; the code is `GRAPHQL_VALIDATION_FAILED`.
pub fn validate(
    schema: &Schema,
    document: &Document,
    limits: &ValidationLimits,
) -> Vec<Diagnostic> {
    validate_counting(schema, document, limits).0
}

/// As [`validate`]; also says how many steps field merging took, which tests hold against the document's size.
#[doc(hidden)]
pub fn validate_counting(
    schema: &Schema,
    document: &Document,
    limits: &ValidationLimits,
) -> (Vec<Diagnostic>, u32) {
    let mut walk = walk::Walk::new(schema, document, limits);
    walk.document();
    walk.finish()
}
