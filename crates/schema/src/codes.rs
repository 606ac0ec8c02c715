//! Stable codes of the diagnostics of this crate, one per family of rules.
//!
//! A code never changes its meaning; message texts may. Messages follow the reference implementation where it
//! has one, because clients and people know them.

/// A type, field, argument, value, directive, root operation type or schema is defined more than once.
pub const DUPLICATE_DEFINITION: &str = "DUPLICATE_DEFINITION";
/// A name is used as a type but no such type is defined.
pub const UNKNOWN_TYPE: &str = "UNKNOWN_TYPE";
/// A name begins with `__`, which is reserved for introspection.
pub const RESERVED_NAME: &str = "RESERVED_NAME";
/// A type without fields, members or values, or a directive without locations.
pub const EMPTY_DEFINITION: &str = "EMPTY_DEFINITION";
/// An input type in an output position or the reverse.
pub const INVALID_TYPE_POSITION: &str = "INVALID_TYPE_POSITION";
/// An object or interface does not conform to an interface it declares.
pub const INVALID_IMPLEMENTATION: &str = "INVALID_IMPLEMENTATION";
/// A union member is no object type, or listed twice.
pub const INVALID_UNION_MEMBER: &str = "INVALID_UNION_MEMBER";
/// Interfaces, required input fields, default values or directive definitions that lead back to themselves.
pub const CIRCULAR_DEFINITION: &str = "CIRCULAR_DEFINITION";
/// A `@oneOf` input object has a required field or a default value.
pub const INVALID_ONE_OF: &str = "INVALID_ONE_OF";
/// A directive is applied that is not defined.
pub const UNKNOWN_DIRECTIVE: &str = "UNKNOWN_DIRECTIVE";
/// A directive stands where its definition does not allow it.
pub const MISPLACED_DIRECTIVE: &str = "MISPLACED_DIRECTIVE";
/// A directive that is not repeatable stands twice at one location.
pub const REPEATED_DIRECTIVE: &str = "REPEATED_DIRECTIVE";
/// An argument of an applied directive is unknown, missing, given twice or of the wrong type.
pub const INVALID_DIRECTIVE_ARGUMENT: &str = "INVALID_DIRECTIVE_ARGUMENT";
/// A default value does not fit its type.
pub const INVALID_DEFAULT_VALUE: &str = "INVALID_DEFAULT_VALUE";
/// A root operation type is missing, no object type, or shared.
pub const INVALID_ROOT_TYPE: &str = "INVALID_ROOT_TYPE";
/// A required argument or input field is deprecated.
pub const INVALID_DEPRECATION: &str = "INVALID_DEPRECATION";
/// An extension of something undefined or of another kind.
pub const INVALID_EXTENSION: &str = "INVALID_EXTENSION";
/// An operation or fragment stands in a type system document.
pub const EXECUTABLE_DEFINITION: &str = "EXECUTABLE_DEFINITION";
/// The schema has more types, fields or other elements than the limits of [`mod@crate::build`] allow.
pub const SCHEMA_TOO_LARGE: &str = "SCHEMA_TOO_LARGE";
