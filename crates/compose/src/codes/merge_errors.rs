//! Pages of errors about what subgraphs say together: merging, overrides, visibility, context, cost, satisfiability.

use super::texts::{Text, texts};

/// Texts by code.
pub(super) static TEXTS: &[(&str, Text)] = texts! {
    TYPE_KIND_MISMATCH {
        "One name stands for an object in one subgraph and for an interface, enum or other kind in another. Nothing can be both."
        "Make it the same kind everywhere, or rename one."
        "type_kind_mismatch/bad" ["a" "b"]
        "type_kind_mismatch/good" ["a" "b"]
    }
    FIELD_TYPE_MISMATCH {
        "Subgraphs may return different types for a field if one includes the other (nullability, lists of such, interfaces and unions). These have nothing in common."
        "Return the same type everywhere, or types of which one includes the others."
        "field_type_mismatch/bad" ["a" "b"]
        "field_type_mismatch/good" ["a" "b"]
    }
    FIELD_ARGUMENT_TYPE_MISMATCH {
        "A client's argument goes to every subgraph that resolves the field, so its types must agree but for nullability."
        "Use the same type everywhere."
        "field_argument_type_mismatch/bad" ["a" "b"]
        "field_argument_type_mismatch/good" ["a" "b"]
    }
    FIELD_ARGUMENT_DEFAULT_MISMATCH {
        "With different defaults the meaning of leaving the argument out would depend on the subgraph asked."
        "Use the same default everywhere."
        "field_argument_default_mismatch/bad" ["a" "b"]
        "field_argument_default_mismatch/good" ["a" "b"]
    }
    INPUT_FIELD_DEFAULT_MISMATCH {
        "With different defaults the meaning of leaving the input field out would depend on the subgraph asked."
        "Use the same default everywhere."
        "input_field_default_mismatch/bad" ["a" "b"]
        "input_field_default_mismatch/good" ["a" "b"]
    }
    REQUIRED_ARGUMENT_MISSING_IN_SOME_SUBGRAPH {
        "Arguments some subgraph does not know are dropped from the supergraph, and this one is required by another subgraph, which could then never be asked."
        "Add the argument everywhere, or make it optional."
        "required_argument_missing_in_some_subgraph/bad" ["a" "b"]
        "required_argument_missing_in_some_subgraph/good" ["a" "b"]
    }
    REQUIRED_INPUT_FIELD_MISSING_IN_SOME_SUBGRAPH {
        "Input fields some subgraph does not know are dropped from the supergraph, and this one is required by another subgraph, which would refuse every value."
        "Add the input field everywhere, or make it optional."
        "required_input_field_missing_in_some_subgraph/bad" ["a" "b"]
        "required_input_field_missing_in_some_subgraph/good" ["a" "b"]
    }
    EMPTY_MERGED_INPUT_TYPE {
        "The supergraph keeps the input fields all subgraphs know, so that every subgraph understands every value. Here none is left."
        "Agree on at least one input field, or rename one of the types."
        "empty_merged_input_type/bad" ["a" "b"]
        "empty_merged_input_type/good" ["a" "b"]
    }
    EMPTY_MERGED_ENUM_TYPE {
        "Of an enum used for input the supergraph keeps the values all subgraphs know. Here none is left."
        "Agree on at least one value, or rename one of the enums."
        "empty_merged_enum_type/bad" ["a" "b"]
        "empty_merged_enum_type/good" ["a" "b"]
    }
    ENUM_VALUE_MISMATCH {
        "An enum that is both returned and accepted must have the same values everywhere: a value one subgraph returns may be sent to any other."
        "Add the value everywhere, or mark it `@inaccessible` until all subgraphs know it."
        "enum_value_mismatch/bad" ["a" "b"]
        "enum_value_mismatch/good" ["a" "b"]
    }
    INTERFACE_FIELD_NO_IMPLEM {
        "The merged interface has the fields of all subgraphs; a type that implements it lacks one of them."
        "Add the field to the type in a subgraph that can resolve it, or remove it from the interface."
        "interface_field_no_implem/bad" ["a" "b"]
        "interface_field_no_implem/good" ["a" "b"]
    }
    NO_QUERIES {
        "A GraphQL schema needs a query root type with at least one field."
        "Add a field to `type Query` in one subgraph."
        "no_queries/bad" ["a"]
        "no_queries/good" ["a"]
    }
    INVALID_FIELD_SHARING {
        "By default one subgraph resolves a field. Several do here, and at least one does not say that this is meant."
        "Mark it `@shareable` in all of them if they return the same; else keep it in one, rename one, or move it with `@override`."
        "invalid_field_sharing/bad" ["a" "b"]
        "invalid_field_sharing/good" ["a" "b"]
    }
    INVALID_SHAREABLE_USAGE {
        "`@shareable` is about who resolves a field. Fields of interfaces are resolved nowhere."
        "Put `@shareable` on the fields of the implementations."
        "invalid_shareable_usage/bad" ["a"]
        "invalid_shareable_usage/good" ["a"]
    }
    DIRECTIVE_COMPOSITION_ERROR {
        "`@composeDirective` names a directive that is not defined, belongs to no linked specification of one's own, belongs to federation itself, or is linked in incompatible versions or under different names."
        "Define the directive, link a specification that imports it, in one major version and under one name everywhere."
        "directive_composition_error/bad" ["a"]
        "directive_composition_error/good" ["a"]
    }
    OVERRIDE_FROM_SELF_ERROR {
        "`@override(from:)` names the subgraph the field is taken from; a subgraph cannot take a field from itself."
        "Name the other subgraph."
        "override_from_self_error/bad" ["a"]
        "override_from_self_error/good" ["a" "b"]
    }
    OVERRIDE_SOURCE_HAS_OVERRIDE {
        "Two subgraphs take over one field, one from the other. Which one resolves it would depend on the order of reading."
        "Let one subgraph take the field from where it is really resolved, and remove the other `@override`."
        "override_source_has_override/bad" ["a" "b" "c"]
        "override_source_has_override/good" ["a" "b" "c"]
    }
    OVERRIDE_COLLISION_WITH_ANOTHER_DIRECTIVE {
        "`@override` takes over the resolving of a field. It cannot stand beside `@external`, and the field it takes must not need `@requires` or give `@provides` in the subgraph it is taken from."
        "Remove one of the two, or give the field a new name."
        "override_collision_with_another_directive/bad" ["a" "b"]
        "override_collision_with_another_directive/good" ["a" "b"]
    }
    OVERRIDE_ON_INTERFACE {
        "Fields of interfaces are not resolved anywhere, so there is nothing to take over."
        "Put `@override` on the field in the implementations."
        "override_on_interface/bad" ["a" "b"]
        "override_on_interface/good" ["a" "b"]
    }
    OVERRIDE_LABEL_INVALID {
        "The label of a progressive `@override` is a name (letters, digits and `_ - : . /`, beginning with a letter) or `percent(x)` with x from 0 to 100 and at most eight decimals."
        "Correct the label."
        "override_label_invalid/bad" ["a" "b"]
        "override_label_invalid/good" ["a" "b"]
    }
    INTERFACE_OBJECT_USAGE_ERROR {
        "An `@interfaceObject` stands for an interface that another subgraph defines with the same key. Here there is no key, no such interface, or the subgraph defines implementations too."
        "Give it a key of the interface, and define the interface and its implementations elsewhere."
        "interface_object_usage_error/bad" ["a"]
        "interface_object_usage_error/good" ["a" "b"]
    }
    INTERFACE_KEY_NOT_ON_IMPLEMENTATION {
        "A key of an interface must identify every implementation, so each of them needs it too."
        "Add the key to the implementation."
        "interface_key_not_on_implementation/bad" ["a"]
        "interface_key_not_on_implementation/good" ["a"]
    }
    INTERFACE_KEY_MISSING_IMPLEMENTATION_TYPE {
        "A subgraph with a key on an interface is asked which implementation a key belongs to, so it must know all of them."
        "Define the missing implementations with the key in that subgraph, or remove the interface's key."
        "interface_key_missing_implementation_type/bad" ["a" "b"]
        "interface_key_missing_implementation_type/good" ["a" "b"]
    }
    REFERENCED_INACCESSIBLE {
        "Clients see a field, argument or input field whose type they must not see."
        "Mark the field `@inaccessible` too, or make the type visible."
        "referenced_inaccessible/bad" ["a"]
        "referenced_inaccessible/good" ["a"]
    }
    DEFAULT_VALUE_USES_INACCESSIBLE {
        "Clients see a default value that uses an enum value or input field they must not see."
        "Choose a visible default, or make what it uses visible."
        "default_value_uses_inaccessible/bad" ["a"]
        "default_value_uses_inaccessible/good" ["a"]
    }
    QUERY_ROOT_TYPE_INACCESSIBLE {
        "Without a query root type there is nothing a client could ask."
        "Mark single fields `@inaccessible` instead."
        "query_root_type_inaccessible/bad" ["a"]
        "query_root_type_inaccessible/good" ["a"]
    }
    REQUIRED_INACCESSIBLE {
        "Clients must give an argument or input field they cannot see."
        "Give it a default, make it optional, or hide its owner."
        "required_inaccessible/bad" ["a"]
        "required_inaccessible/good" ["a"]
    }
    IMPLEMENTED_BY_INACCESSIBLE {
        "A visible field or argument of an interface is hidden in a visible implementation, which would then not implement it."
        "Hide both, or neither."
        "implemented_by_inaccessible/bad" ["a"]
        "implemented_by_inaccessible/good" ["a"]
    }
    DISALLOWED_INACCESSIBLE {
        "Built-in elements and arguments of composed directives cannot be hidden: tools that read the schema need them."
        "Remove `@inaccessible`."
        "disallowed_inaccessible/bad" ["a"]
        "disallowed_inaccessible/good" ["a"]
    }
    ONLY_INACCESSIBLE_CHILDREN {
        "All fields, values or members of a visible type are hidden, which would leave an empty type."
        "Mark the type `@inaccessible` too, or make one member visible."
        "only_inaccessible_children/bad" ["a"]
        "only_inaccessible_children/good" ["a"]
    }
    CONTEXT_NAME_INVALID {
        "The name of a context is made of letters and digits; `_` separates subgraph and context in the supergraph."
        "Rename the context."
        "context_name_invalid/bad" ["a"]
        "context_name_invalid/good" ["a"]
    }
    CONTEXT_NOT_SET {
        "`@fromContext` names a context that no type on the way sets in this subgraph."
        "Put `@context(name:)` on a type above, or correct the name."
        "context_not_set/bad" ["a"]
        "context_not_set/good" ["a"]
    }
    CONTEXT_INVALID_SELECTION {
        "After the context's name follows the field to take, selected on every type that sets the context. This selection does not parse, selects several fields, or gives a type the argument cannot take."
        "Select one field of a fitting type, with a type condition per type if they differ."
        "context_invalid_selection/bad" ["a"]
        "context_invalid_selection/good" ["a"]
    }
    NO_CONTEXT_IN_SELECTION {
        "The `field` of `@fromContext` is `$context { field }`. The context or the selection is missing."
        "Write it as `\"$context { field }\"`."
        "no_context_in_selection/bad" ["a"]
        "no_context_in_selection/good" ["a"]
    }
    CONTEXT_NO_RESOLVABLE_KEY {
        "A field with contextual arguments is fetched by entering its type anew, which needs a resolvable key in that subgraph."
        "Add a `@key` to the type."
        "context_no_resolvable_key/bad" ["a"]
        "context_no_resolvable_key/good" ["a"]
    }
    CONTEXTUAL_ARGUMENT_NOT_CONTEXTUAL_IN_ALL_SUBGRAPHS {
        "An argument filled from context is not part of the supergraph. Another subgraph that resolves the field takes it as an ordinary argument: a required one can never be given (error), an optional one is dropped (hint)."
        "Use `@fromContext` for it everywhere, give it a default, or resolve the field in one subgraph."
        "contextual_argument_not_contextual_in_all_subgraphs/bad" ["a" "b"]
        "contextual_argument_not_contextual_in_all_subgraphs/good" ["a" "b"]
    }
    COST_APPLIED_TO_INTERFACE_FIELD {
        "Costs of fields of interfaces are computed from the implementations."
        "Put `@cost` on the field in the implementations."
        "cost_applied_to_interface_field/bad" ["a"]
        "cost_applied_to_interface_field/good" ["a"]
    }
    LIST_SIZE_APPLIED_TO_NON_LIST {
        "`@listSize` estimates how long a list will be, and the field returns none."
        "Remove it, or name the list below it with `sizedFields`."
        "list_size_applied_to_non_list/bad" ["a"]
        "list_size_applied_to_non_list/good" ["a"]
    }
    LIST_SIZE_INVALID_ASSUMED_SIZE {
        "The assumed size is negative."
        "Write a size of 0 or more."
        "list_size_invalid_assumed_size/bad" ["a"]
        "list_size_invalid_assumed_size/good" ["a"]
    }
    LIST_SIZE_INVALID_SLICING_ARGUMENT {
        "A slicing argument holds the length of the list, so it must be an argument of the field and of type `Int` or `Int!`."
        "Name such an argument."
        "list_size_invalid_slicing_argument/bad" ["a"]
        "list_size_invalid_slicing_argument/good" ["a"]
    }
    LIST_SIZE_INVALID_SIZED_FIELD {
        "A sized field holds the list, so it must be a field of the type returned and return a list."
        "Name such a field."
        "list_size_invalid_sized_field/bad" ["a"]
        "list_size_invalid_sized_field/good" ["a"]
    }
    AUTH_REQUIREMENTS_APPLIED_ON_INTERFACE {
        "Requirements of an interface are derived from its implementations; on an interface object they would be ambiguous."
        "Put the directive on the implementations or their fields."
        "auth_requirements_applied_on_interface/bad" ["a"]
        "auth_requirements_applied_on_interface/good" ["a"]
    }
    MISSING_TRANSITIVE_AUTH_REQUIREMENTS {
        "A field that uses protected data through `@requires` or `@fromContext` would hand it to clients who may not read it."
        "Put at least the same authorisation on the field."
        "missing_transitive_auth_requirements/bad" ["a" "b"]
        "missing_transitive_auth_requirements/good" ["a" "b"]
    }
    SATISFIABILITY_ERROR {
        "The supergraph offers a query that no sequence of subgraph requests can answer: the query leads to an object in one subgraph, and the field lives in another that cannot be entered from there."
        "Give the type a key both subgraphs know, or resolve the field in the first one too and mark it `@shareable`. The message shows the smallest failing query and what stands in the way."
        "satisfiability_error/bad" ["a" "b"]
        "satisfiability_error/good" ["a" "b" "c"]
    }
    SHAREABLE_HAS_MISMATCHED_RUNTIME_TYPES {
        "Subgraphs that share a field must be able to return the same things. For this interface or union they have no object type in common."
        "Let them know the same object types, or resolve the field in one subgraph."
        "shareable_has_mismatched_runtime_types/bad" ["a" "b"]
        "shareable_has_mismatched_runtime_types/good" ["a" "b"]
    }
    MAX_VALIDATION_SUBGRAPH_PATHS_EXCEEDED {
        "Checking satisfiability visits each type with each set of places one can be at; this graph has more of those than the limit allows."
        "Raise the limit, or unify the keys by which the subgraphs share entities."
        "max_validation_subgraph_paths_exceeded/bad" ["a"]
        "max_validation_subgraph_paths_exceeded/good" ["a"]
    }
    INVALID_TAG_NAME {
        "Names of tags are made of letters, digits and `_ - /` and have at most 128 characters, so that contracts can list them."
        "Rename the tag."
        "invalid_tag_name/bad" ["a"]
        "invalid_tag_name/good" ["a"]
    }
    CACHE_TAG_INVALID_FORMAT {
        "The format of a `@cacheTag` is text with `{$args.name}` (on root fields) or `{$key.name}` (on entities). This one has unbalanced braces, another variable, or a name that does not exist."
        "Write `{$args.…}` with an argument of the field, or `{$key.…}` with a field of every key."
        "cache_tag_invalid_format/bad" ["a"]
        "cache_tag_invalid_format/good" ["a"]
    }
};
