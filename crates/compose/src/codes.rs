//! Codes of composition errors and hints, under the names people know, each with one sentence of meaning.
//!
//! A code never changes its meaning; message texts may. [`explain`] gives the page `ogive explain CODE` shows, with a bad
//! and a good example; [`table`] writes `docs/composition-codes.md`.

mod hints;
mod merge_errors;
mod pages;
mod subgraph_errors;
mod texts;

pub use pages::{ELSEWHERE, Example, ExampleFile, Kind, Page, explain, pages, table};

/// How loud a hint is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Level {
    /// Probably not what was meant.
    Warn,
    /// Worth knowing.
    Info,
    /// Only of interest while looking for something.
    Debug,
}

/// One row of [`ERRORS`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ErrorCode {
    /// The code.
    pub code: &'static str,
    /// What it means.
    pub summary: &'static str,
}

/// One row of [`HINTS`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HintCode {
    /// The code.
    pub code: &'static str,
    /// How loud it is.
    pub level: Level,
    /// What it means.
    pub summary: &'static str,
}

macro_rules! errors {
    ($($name:ident $summary:literal)*) => {
        $(#[doc = $summary] pub const $name: &str = stringify!($name);)*
        /// Every error code.
        pub const ERRORS: &[ErrorCode] = &[$(ErrorCode { code: $name, summary: $summary }),*];
    };
}
macro_rules! hints {
    ($($name:ident $level:ident $summary:literal)*) => {
        /// Hints: things that compose, and deserve a word.
        pub mod hint {
            use super::HintCode;
            $(#[doc = $summary] pub const $name: HintCode = HintCode { code: stringify!($name), level: super::Level::$level, summary: $summary };)*
        }
        /// Every hint code.
        pub const HINTS: &[HintCode] = &[$(hint::$name),*];
    };
}

errors! {
    INVALID_GRAPHQL "A subgraph or the merged schema violates the GraphQL specification."
    DIRECTIVE_DEFINITION_INVALID "A federation directive is defined by a subgraph in an incompatible way."
    TYPE_DEFINITION_INVALID "A federation type is defined by a subgraph in an incompatible way."
    INVALID_LINK_DIRECTIVE_USAGE "An application of `@link` makes no sense."
    INVALID_LINK_IDENTIFIER "A link's URL or version cannot be read."
    UNKNOWN_LINK_VERSION "A subgraph links a version of the link specification that does not exist."
    UNKNOWN_FEDERATION_LINK_VERSION "A subgraph links a version of the federation specification that is not known."
    LINK_IMPORT_NAME_MISMATCH "A directive is imported under different names by different subgraphs."
    EVENT_SOURCE_INVALID "A root field of an event subgraph is not bound to a message broker as it should be."
    INVALID_SUBGRAPH_NAME "A subgraph has a name that is reserved."
    ROOT_QUERY_USED "A type is named `Query` but is not the query root type."
    ROOT_MUTATION_USED "A type is named `Mutation` but is not the mutation root type."
    ROOT_SUBSCRIPTION_USED "A type is named `Subscription` but is not the subscription root type."
    KEY_INVALID_FIELDS "The fields of a `@key` cannot be read or do not exist."
    PROVIDES_INVALID_FIELDS "The fields of a `@provides` cannot be read or do not exist."
    REQUIRES_INVALID_FIELDS "The fields of a `@requires` cannot be read or do not exist."
    KEY_INVALID_FIELDS_TYPE "The fields of a `@key` are not a string."
    PROVIDES_INVALID_FIELDS_TYPE "The fields of a `@provides` are not a string."
    REQUIRES_INVALID_FIELDS_TYPE "The fields of a `@requires` are not a string."
    KEY_UNSUPPORTED_ON_INTERFACE "A `@key` stands on an interface, which needs federation v2.3."
    PROVIDES_UNSUPPORTED_ON_INTERFACE "A `@provides` stands on a field of an interface."
    REQUIRES_UNSUPPORTED_ON_INTERFACE "A `@requires` stands on a field of an interface."
    KEY_DIRECTIVE_IN_FIELDS_ARG "The fields of a `@key` apply a directive."
    PROVIDES_DIRECTIVE_IN_FIELDS_ARG "The fields of a `@provides` apply a directive."
    REQUIRES_DIRECTIVE_IN_FIELDS_ARG "The fields of a `@requires` apply a directive."
    KEY_FIELDS_HAS_ARGS "The fields of a `@key` take arguments."
    PROVIDES_FIELDS_HAS_ARGS "The fields of a `@provides` take arguments."
    KEY_FIELDS_SELECT_INVALID_TYPE "The fields of a `@key` select an interface or union."
    PROVIDES_FIELDS_MISSING_EXTERNAL "A field of a `@provides` is not `@external`."
    REQUIRES_FIELDS_MISSING_EXTERNAL "A field of a `@requires` is not `@external`."
    PROVIDES_ON_NON_OBJECT_FIELD "A `@provides` stands on a field that has no sub-fields."
    EXTERNAL_UNUSED "An `@external` field is used by no `@key`, `@requires`, `@provides` or interface."
    EXTERNAL_ON_INTERFACE "A field of an interface is `@external`."
    EXTERNAL_MISSING_ON_BASE "A field is `@external` in every subgraph that defines it."
    EXTERNAL_TYPE_MISMATCH "An `@external` field has a type that does not fit its definitions."
    EXTERNAL_ARGUMENT_MISSING "An `@external` field lacks an argument of its definitions."
    EXTERNAL_ARGUMENT_TYPE_MISMATCH "An argument of an `@external` field has a type that does not fit its definitions."
    EXTERNAL_ARGUMENT_DEFAULT_MISMATCH "An argument of an `@external` field has another default than its definitions."
    EXTERNAL_COLLISION_WITH_ANOTHER_DIRECTIVE "An `@external` field carries a directive that makes no sense there."
    MERGED_DIRECTIVE_APPLICATION_ON_EXTERNAL "An `@external` field carries a directive that is merged into the supergraph."
    TYPE_WITH_ONLY_UNUSED_EXTERNAL "A federation 1 type is left without fields once unused external ones are gone."
    EXTENSION_WITH_NO_BASE "A type is extended everywhere and defined nowhere."
    TYPE_KIND_MISMATCH "A type is of different kinds in different subgraphs."
    FIELD_TYPE_MISMATCH "A field has incompatible types in different subgraphs."
    FIELD_ARGUMENT_TYPE_MISMATCH "An argument has incompatible types in different subgraphs."
    FIELD_ARGUMENT_DEFAULT_MISMATCH "An argument has different defaults in different subgraphs."
    INPUT_FIELD_DEFAULT_MISMATCH "An input field has different defaults in different subgraphs."
    REQUIRED_ARGUMENT_MISSING_IN_SOME_SUBGRAPH "An argument is required in one subgraph and missing in another."
    REQUIRED_INPUT_FIELD_MISSING_IN_SOME_SUBGRAPH "An input field is required in one subgraph and missing in another."
    EMPTY_MERGED_INPUT_TYPE "No input field is common to all subgraphs that define an input type."
    EMPTY_MERGED_ENUM_TYPE "No value is common to all subgraphs that define an enum used for input."
    ENUM_VALUE_MISMATCH "An enum used for input and output has different values in different subgraphs."
    INTERFACE_FIELD_NO_IMPLEM "An implementation lacks a field of its interface."
    NO_QUERIES "No subgraph defines a query."
    INVALID_FIELD_SHARING "A field is resolved by several subgraphs and not shareable in all of them."
    INVALID_SHAREABLE_USAGE "`@shareable` stands where it means nothing."
    DIRECTIVE_COMPOSITION_ERROR "A directive named by `@composeDirective` cannot be composed."
    OVERRIDE_FROM_SELF_ERROR "An `@override` names its own subgraph."
    OVERRIDE_SOURCE_HAS_OVERRIDE "An `@override` takes a field that is itself an override."
    OVERRIDE_COLLISION_WITH_ANOTHER_DIRECTIVE "An `@override` meets `@external`, `@requires` or `@provides`."
    OVERRIDE_ON_INTERFACE "An `@override` stands on a field of an interface."
    OVERRIDE_LABEL_INVALID "The label of an `@override` is neither a name nor a percentage."
    INTERFACE_OBJECT_USAGE_ERROR "An `@interfaceObject` is used in a wrong way."
    INTERFACE_KEY_NOT_ON_IMPLEMENTATION "An implementation lacks a key of its interface."
    INTERFACE_KEY_MISSING_IMPLEMENTATION_TYPE "A subgraph with a keyed interface does not know all its implementations."
    REFERENCED_INACCESSIBLE "Something visible is of an inaccessible type."
    DEFAULT_VALUE_USES_INACCESSIBLE "A visible default value uses something inaccessible."
    QUERY_ROOT_TYPE_INACCESSIBLE "The query root type is inaccessible."
    REQUIRED_INACCESSIBLE "A required argument or input field is inaccessible while its owner is visible."
    IMPLEMENTED_BY_INACCESSIBLE "A visible interface field is implemented by an inaccessible one."
    DISALLOWED_INACCESSIBLE "Something that cannot be hidden is inaccessible."
    ONLY_INACCESSIBLE_CHILDREN "A visible type has inaccessible members only."
    CONTEXT_NAME_INVALID "The name of a `@context` is no name."
    CONTEXT_NOT_SET "A `@fromContext` names a context that nothing sets."
    CONTEXT_INVALID_SELECTION "The selection of a `@fromContext` cannot be read or does not fit."
    NO_CONTEXT_IN_SELECTION "A `@fromContext` names no context or selects nothing."
    CONTEXT_NO_RESOLVABLE_KEY "A type with contextual arguments has no resolvable key."
    CONTEXTUAL_ARGUMENT_NOT_CONTEXTUAL_IN_ALL_SUBGRAPHS "An argument is filled from context in one subgraph and required in another."
    COST_APPLIED_TO_INTERFACE_FIELD "A `@cost` stands on a field of an interface."
    LIST_SIZE_APPLIED_TO_NON_LIST "A `@listSize` stands on a field that is no list."
    LIST_SIZE_INVALID_ASSUMED_SIZE "The assumed size of a `@listSize` is negative."
    LIST_SIZE_INVALID_SLICING_ARGUMENT "A slicing argument of a `@listSize` is unknown or no integer."
    LIST_SIZE_INVALID_SIZED_FIELD "A sized field of a `@listSize` is unknown or no list."
    AUTH_REQUIREMENTS_APPLIED_ON_INTERFACE "An authorisation directive stands on an interface, its field or an interface object."
    MISSING_TRANSITIVE_AUTH_REQUIREMENTS "A field requires protected data without asking for the same authorisation."
    SATISFIABILITY_ERROR "Some queries of the supergraph cannot be resolved by the subgraphs."
    SHAREABLE_HAS_MISMATCHED_RUNTIME_TYPES "A shared field of an abstract type has no possible type in common."
    MAX_VALIDATION_SUBGRAPH_PATHS_EXCEEDED "Checking satisfiability needs more memory than allowed."
    INVALID_TAG_NAME "The name of a `@tag` has characters it must not have."
    CACHE_TAG_INVALID_FORMAT "The format of a `@cacheTag` cannot be read."
}

hints! {
    INCONSISTENT_DEFAULT_VALUE_PRESENCE Warn "A default value exists in some subgraphs only and is dropped."
    INCONSISTENT_INPUT_OBJECT_FIELD Warn "An input field exists in some subgraphs only and is dropped."
    INCONSISTENT_ENUM_VALUE_FOR_INPUT_ENUM Warn "A value of an input enum exists in some subgraphs only and is dropped."
    INCONSISTENT_EXECUTABLE_DIRECTIVE_PRESENCE Warn "An executable directive exists in some subgraphs only and is dropped."
    INCONSISTENT_EXECUTABLE_DIRECTIVE_REPEATABLE Warn "An executable directive is repeatable in some subgraphs only."
    INCONSISTENT_EXECUTABLE_DIRECTIVE_LOCATIONS Warn "An executable directive has different locations in different subgraphs."
    NO_EXECUTABLE_DIRECTIVE_INTERSECTION Warn "An executable directive has no location common to all subgraphs and is dropped."
    INCONSISTENT_DESCRIPTION Warn "An element is described differently by different subgraphs."
    INCONSISTENT_ARGUMENT_PRESENCE Warn "An optional argument exists in some subgraphs only and is dropped."
    FROM_SUBGRAPH_DOES_NOT_EXIST Warn "An `@override` names a subgraph that does not exist."
    INCONSISTENT_NON_REPEATABLE_DIRECTIVE_ARGUMENTS Warn "A directive is applied with different arguments by different subgraphs."
    DIRECTIVE_COMPOSITION_WARN Warn "A directive is composed in an unexpected way."
    INCONSISTENT_RUNTIME_TYPES_FOR_SHAREABLE_RETURN Warn "A shared field of an abstract type has different possible types in different subgraphs."
    INCONSISTENT_BUT_COMPATIBLE_FIELD_TYPE Info "A field has different, compatible types in different subgraphs."
    INCONSISTENT_BUT_COMPATIBLE_ARGUMENT_TYPE Info "An argument or input field has different, compatible types in different subgraphs."
    INCONSISTENT_ENTITY Info "A type has a key in some subgraphs only."
    OVERRIDDEN_FIELD_CAN_BE_REMOVED Info "An overridden field is not used any more."
    OVERRIDE_DIRECTIVE_CAN_BE_REMOVED Info "An `@override` has nothing left to override."
    OVERRIDE_MIGRATION_IN_PROGRESS Info "A field is being migrated by a progressive `@override`."
    MERGED_NON_REPEATABLE_DIRECTIVE_ARGUMENTS Info "Different arguments of a directive were merged."
    DIRECTIVE_COMPOSITION_INFO Info "A custom directive is not composed as one might expect."
    IMPLICITLY_UPGRADED_FEDERATION_VERSION Info "A subgraph uses a feature of a newer federation version than it links."
    CONTEXTUAL_ARGUMENT_NOT_CONTEXTUAL_IN_ALL_SUBGRAPHS Info "An argument is filled from context in some subgraphs only."
    INCONSISTENT_OBJECT_VALUE_TYPE_FIELD Debug "A field of a value type exists in some subgraphs only."
    INCONSISTENT_INTERFACE_VALUE_TYPE_FIELD Debug "A field of an interface exists in some subgraphs only."
    INCONSISTENT_UNION_MEMBER Debug "A member of a union exists in some subgraphs only."
    INCONSISTENT_ENUM_VALUE_FOR_OUTPUT_ENUM Debug "A value of an output enum exists in some subgraphs only."
    UNUSED_ENUM_TYPE Debug "An enum is used by nothing."
}

/// The hint of that code.
pub fn hint_code(code: &str) -> Option<&'static HintCode> {
    HINTS.iter().find(|h| h.code == code)
}
