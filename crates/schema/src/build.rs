//! SDL to [`Schema`].

use ogive_base::Diagnostic;
use ogive_syntax::Document;

use crate::Schema;

/// What to check while building.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuildOptions {
    /// Check every type system validation rule (specification 3); off only for schemas that were checked before.
    pub validate: bool,
    /// Refuse a schema without query root.
    pub require_query: bool,
    /// Most diagnostics before giving up; default 100.
    pub errors_max: u32,
}

impl Default for BuildOptions {
    fn default() -> Self {
        BuildOptions {
            validate: true,
            require_query: true,
            errors_max: 100,
        }
    }
}

/// A schema and everything that was wrong with it.
#[derive(Clone, Debug, Default)]
pub struct Built {
    /// What could be built; use it only if `errors` is empty.
    pub schema: Schema,
    /// Violations, in document order.
    pub errors: Vec<Diagnostic>,
}

/// Builds one schema from one or more documents (definitions and extensions in any order), adding the specified
/// scalars, directives and introspection types. O(n log n) in the documents.
pub fn build(documents: &[&Document], options: &BuildOptions) -> Built {
    let _ = (documents, options);
    todo!()
}
