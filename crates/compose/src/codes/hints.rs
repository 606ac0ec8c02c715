//! Pages of hints.

use super::texts::{Text, texts};

/// Texts by code.
pub(super) static TEXTS: &[(&str, Text)] = texts! {
    INCONSISTENT_DEFAULT_VALUE_PRESENCE {
        "Some subgraphs give a default and others do not. The supergraph has none, so leaving the value out means what each subgraph makes of it."
        "Give the same default everywhere."
        "inconsistent_default_value_presence/hint" ["a" "b"]
        "inconsistent_default_value_presence/good" ["a" "b"]
    }
    INCONSISTENT_INPUT_OBJECT_FIELD {
        "The supergraph keeps the input fields all subgraphs know; this one is dropped, so clients cannot use it."
        "Add the input field to every subgraph that defines the type."
        "inconsistent_input_object_field/hint" ["a" "b"]
        "inconsistent_input_object_field/good" ["a" "b"]
    }
    INCONSISTENT_ENUM_VALUE_FOR_INPUT_ENUM {
        "Of an enum used for input only, the supergraph keeps the values all subgraphs know; this one is dropped."
        "Add the value to every subgraph that defines the enum."
        "inconsistent_enum_value_for_input_enum/hint" ["a" "b"]
        "inconsistent_enum_value_for_input_enum/good" ["a" "b"]
    }
    INCONSISTENT_EXECUTABLE_DIRECTIVE_PRESENCE {
        "A directive clients put into operations must be understood by every subgraph; this one is not, and is dropped."
        "Define it in every subgraph."
        "inconsistent_executable_directive_presence/hint" ["a" "b"]
        "inconsistent_executable_directive_presence/good" ["a" "b"]
    }
    INCONSISTENT_EXECUTABLE_DIRECTIVE_REPEATABLE {
        "The directive is repeatable in some subgraphs only; in the supergraph it is not."
        "Make it repeatable everywhere or nowhere."
        "inconsistent_executable_directive_repeatable/hint" ["a" "b"]
        "inconsistent_executable_directive_repeatable/good" ["a" "b"]
    }
    INCONSISTENT_EXECUTABLE_DIRECTIVE_LOCATIONS {
        "The supergraph keeps the locations all subgraphs allow."
        "Allow the same locations everywhere."
        "inconsistent_executable_directive_locations/hint" ["a" "b"]
        "inconsistent_executable_directive_locations/good" ["a" "b"]
    }
    NO_EXECUTABLE_DIRECTIVE_INTERSECTION {
        "No location is allowed by all subgraphs, so the directive is dropped."
        "Agree on at least one location."
        "no_executable_directive_intersection/hint" ["a" "b"]
        "no_executable_directive_intersection/good" ["a" "b"]
    }
    INCONSISTENT_DESCRIPTION {
        "The supergraph takes the description most subgraphs give, or the first one."
        "Use one description, or write it in one subgraph only."
        "inconsistent_description/hint" ["a" "b"]
        "inconsistent_description/good" ["a" "b"]
    }
    INCONSISTENT_ARGUMENT_PRESENCE {
        "The supergraph keeps the arguments all subgraphs know; this one is dropped, so clients cannot use it."
        "Add the argument in every subgraph that resolves the field."
        "inconsistent_argument_presence/hint" ["a" "b"]
        "inconsistent_argument_presence/good" ["a" "b"]
    }
    FROM_SUBGRAPH_DOES_NOT_EXIST {
        "`@override(from:)` names no subgraph of this composition, so it changes nothing: mostly a misspelt name, or the subgraph is gone."
        "Correct the name, or remove `@override`."
        "from_subgraph_does_not_exist/hint" ["a" "b"]
        "from_subgraph_does_not_exist/good" ["a" "b"]
    }
    INCONSISTENT_NON_REPEATABLE_DIRECTIVE_ARGUMENTS {
        "A directive can stand only once, and subgraphs apply it with different arguments. The arguments used most often win."
        "Use the same arguments everywhere."
        "inconsistent_non_repeatable_directive_arguments/hint" ["a" "b"]
        "inconsistent_non_repeatable_directive_arguments/good" ["a" "b"]
    }
    DIRECTIVE_COMPOSITION_WARN {
        "A subgraph that does not compose the directive itself calls it by another name, which will be an error once it does."
        "Import it under the same name everywhere."
        "directive_composition_warn/hint" ["a" "b"]
        "directive_composition_warn/good" ["a" "b"]
    }
    INCONSISTENT_RUNTIME_TYPES_FOR_SHAREABLE_RETURN {
        "Subgraphs that share a field do not know the same object types, so what a client gets may depend on the subgraph asked."
        "Let them know the same object types."
        "inconsistent_runtime_types_for_shareable_return/hint" ["a" "b"]
        "inconsistent_runtime_types_for_shareable_return/good" ["a" "b"]
    }
    INCONSISTENT_BUT_COMPATIBLE_FIELD_TYPE {
        "The types differ and one includes the others; the supergraph uses the most general one."
        "Use one type everywhere if the difference is not meant."
        "inconsistent_but_compatible_field_type/hint" ["a" "b"]
        "inconsistent_but_compatible_field_type/good" ["a" "b"]
    }
    INCONSISTENT_BUT_COMPATIBLE_ARGUMENT_TYPE {
        "The types differ and one includes the others; the supergraph uses the strictest one."
        "Use one type everywhere if the difference is not meant."
        "inconsistent_but_compatible_argument_type/hint" ["a" "b"]
        "inconsistent_but_compatible_argument_type/good" ["a" "b"]
    }
    INCONSISTENT_ENTITY {
        "The type has a key in some subgraphs only; from the others one can leave but not come back."
        "Add the key everywhere, or rename one of the types if they are not the same thing."
        "inconsistent_entity/hint" ["a" "b"]
        "inconsistent_entity/good" ["a" "b"]
    }
    OVERRIDDEN_FIELD_CAN_BE_REMOVED {
        "Another subgraph took the field over and nothing here uses it any more."
        "Delete the field here; the `@override` may follow."
        "overridden_field_can_be_removed/hint" ["a" "b"]
        "overridden_field_can_be_removed/good" ["a" "b"]
    }
    OVERRIDE_DIRECTIVE_CAN_BE_REMOVED {
        "The subgraph named by `@override` does not have the field, so the migration is over."
        "Remove `@override`."
        "override_directive_can_be_removed/hint" ["a" "b"]
        "override_directive_can_be_removed/good" ["a" "b"]
    }
    OVERRIDE_MIGRATION_IN_PROGRESS {
        "The field has a progressive `@override`: which subgraph resolves it depends on the label."
        "Nothing; remove the label when the migration is over."
        "override_migration_in_progress/hint" ["a" "b"]
        "override_migration_in_progress/good" ["a" "b"]
    }
    MERGED_NON_REPEATABLE_DIRECTIVE_ARGUMENTS {
        "Subgraphs apply a directive with different arguments, and there is a rule to merge them: the highest cost, the longest list, all authorisation."
        "Use the same arguments everywhere if the difference is not meant."
        "merged_non_repeatable_directive_arguments/hint" ["a" "b"]
        "merged_non_repeatable_directive_arguments/good" ["a" "b"]
    }
    DIRECTIVE_COMPOSITION_INFO {
        "`@composeDirective` names a directive that is composed anyway, or a specification is linked in incompatible versions that nobody composes."
        "Remove `@composeDirective`, or link one major version everywhere."
        "directive_composition_info/hint" ["a"]
        "directive_composition_info/good" ["a"]
    }
    IMPLICITLY_UPGRADED_FEDERATION_VERSION {
        "The subgraph links a specification that belongs to a newer federation version than the one it links, and is read as that newer version."
        "Link the newer federation version."
        "implicitly_upgraded_federation_version/hint" ["a"]
        "implicitly_upgraded_federation_version/good" ["a"]
    }
    CONTEXTUAL_ARGUMENT_NOT_CONTEXTUAL_IN_ALL_SUBGRAPHS {
        "An argument filled from context is not part of the supergraph. Another subgraph that resolves the field takes it as an ordinary argument: a required one can never be given (error), an optional one is dropped (hint)."
        "Use `@fromContext` for it everywhere, give it a default, or resolve the field in one subgraph."
        "contextual_argument_not_contextual_in_all_subgraphs/hint" ["a" "b"]
        "contextual_argument_not_contextual_in_all_subgraphs/good" ["a" "b"]
    }
    INCONSISTENT_OBJECT_VALUE_TYPE_FIELD {
        "A type without keys has the field in some subgraphs only. It can be asked for only where those subgraphs return the type."
        "Add the field everywhere if the difference is not meant."
        "inconsistent_object_value_type_field/hint" ["a" "b"]
        "inconsistent_object_value_type_field/good" ["a" "b"]
    }
    INCONSISTENT_INTERFACE_VALUE_TYPE_FIELD {
        "The interface has the field in some subgraphs only; the supergraph's interface has it."
        "Add the field everywhere if the difference is not meant."
        "inconsistent_interface_value_type_field/hint" ["a" "b"]
        "inconsistent_interface_value_type_field/good" ["a" "b"]
    }
    INCONSISTENT_UNION_MEMBER {
        "The union has the member in some subgraphs only; the supergraph's union has it."
        "Add the member everywhere if the difference is not meant."
        "inconsistent_union_member/hint" ["a" "b"]
        "inconsistent_union_member/good" ["a" "b"]
    }
    INCONSISTENT_ENUM_VALUE_FOR_OUTPUT_ENUM {
        "The enum is only returned, and some subgraphs do not know this value; the supergraph has it."
        "Add the value everywhere if the difference is not meant."
        "inconsistent_enum_value_for_output_enum/hint" ["a" "b"]
        "inconsistent_enum_value_for_output_enum/good" ["a" "b"]
    }
    UNUSED_ENUM_TYPE {
        "Nothing returns or accepts the enum. It is merged like one that is only returned."
        "Delete it, or use it."
        "unused_enum_type/hint" ["a"]
        "unused_enum_type/good" ["a"]
    }
};
