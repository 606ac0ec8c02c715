//! Pages of errors about single subgraphs: documents, links, field sets, `@external`.

use super::texts::{Text, texts};

/// Texts by code.
pub(super) static TEXTS: &[(&str, Text)] = texts! {
    INVALID_GRAPHQL {
        "The text does not parse, names something that does not exist, or breaks another rule of the GraphQL specification; or each subgraph is fine and the merged schema is not, as when an implementation's merged field no longer fits its interface."
        "Fix what the message names. If the merged schema is meant, bring the definitions of the subgraphs together."
        "invalid_graphql/bad" ["a"]
        "invalid_graphql/good" ["a"]
    }
    DIRECTIVE_DEFINITION_INVALID {
        "A subgraph may repeat the definition of a directive it links, and may leave out optional arguments and locations. This definition adds an argument or location, or changes a type, so applications would mean something else than the specification says."
        "Delete the definition, which the link brings anyway, or write it as the message shows."
        "directive_definition_invalid/bad" ["a"]
        "directive_definition_invalid/good" ["a"]
    }
    TYPE_DEFINITION_INVALID {
        "A type of a linked specification, such as `link__Import` or `federation__FieldSet`, is defined as something else than the specification's scalar or enum."
        "Delete the definition, which the link brings anyway, or write it as the message shows."
        "type_definition_invalid/bad" ["a"]
        "type_definition_invalid/good" ["a"]
    }
    INVALID_LINK_DIRECTIVE_USAGE {
        "A link imports an element its specification or version does not have, links one specification twice, gives two links one name, or has an argument of the wrong shape."
        "Follow the suggestion in the message: correct the name, link a newer version, or rename with `as`."
        "invalid_link_directive_usage/bad" ["a"]
        "invalid_link_directive_usage/good" ["a"]
    }
    INVALID_LINK_IDENTIFIER {
        "The URL of a link is the specification's identity followed by a version such as `v2.9`. Here it is no URL, or its last segment looks like a version and is none."
        "Write `https://…/name/vMAJOR.MINOR`."
        "invalid_link_identifier/bad" ["a"]
        "invalid_link_identifier/good" ["a"]
    }
    UNKNOWN_LINK_VERSION {
        "There is one version of the link specification, v1.0."
        "Link `https://specs.apollo.dev/link/v1.0`, or leave that link out."
        "unknown_link_version/bad" ["a"]
        "unknown_link_version/good" ["a"]
    }
    UNKNOWN_FEDERATION_LINK_VERSION {
        "Composition knows what each listed federation version brings; another one might change the meaning of anything."
        "Link one of the versions the message lists."
        "unknown_federation_link_version/bad" ["a"]
        "unknown_federation_link_version/good" ["a"]
    }
    LINK_IMPORT_NAME_MISMATCH {
        "A directive that is merged into the supergraph needs one name there. Subgraphs import it under different names."
        "Import it under the same name in every subgraph."
        "link_import_name_mismatch/bad" ["a" "b"]
        "link_import_name_mismatch/good" ["a" "b"]
    }
    EVENT_SOURCE_INVALID {
        "Root fields of a subgraph that is bound to message brokers have one directive each that says where they are published, asked or heard: `@edfs__natsSubscribe` and its like. Here one has none, several, one for another kind of operation, a template that names no argument, or a filter that is none."
        "Follow the message: bind the field, name an argument as `{{ args.NAME }}`, or move the field to a subgraph with a service."
        "event_source_invalid/bad" ["events" "users"]
        "event_source_invalid/good" ["events" "users"]
    }
    INVALID_SUBGRAPH_NAME {
        "The name is reserved (`_` and names that cannot be told apart from it), or two subgraphs have it."
        "Give each subgraph a name of its own."
        "invalid_subgraph_name/bad" ["_"]
        "invalid_subgraph_name/good" ["products"]
    }
    ROOT_QUERY_USED {
        "In the supergraph the query root type is called `Query`. This subgraph names its query root type otherwise and has an unrelated type called `Query`, so the two would be merged."
        "Rename the unrelated type, or make it the query root type."
        "root_query_used/bad" ["a"]
        "root_query_used/good" ["a"]
    }
    ROOT_MUTATION_USED {
        "In the supergraph the mutation root type is called `Mutation`. This subgraph names its mutation root type otherwise and has an unrelated type called `Mutation`."
        "Rename the unrelated type, or make it the mutation root type."
        "root_mutation_used/bad" ["a"]
        "root_mutation_used/good" ["a"]
    }
    ROOT_SUBSCRIPTION_USED {
        "In the supergraph the subscription root type is called `Subscription`. This subgraph names its subscription root type otherwise and has an unrelated type called `Subscription`."
        "Rename the unrelated type, or make it the subscription root type."
        "root_subscription_used/bad" ["a"]
        "root_subscription_used/good" ["a"]
    }
    KEY_INVALID_FIELDS {
        "The `fields` of `@key` are a selection set without its braces, over the type it stands on. This one does not parse, or selects a field that type does not have, or selects nothing of a field that has sub-fields."
        "Correct the spelling or add the field; select sub-fields in braces: `\"owner { id }\"`."
        "key_invalid_fields/bad" ["a"]
        "key_invalid_fields/good" ["a"]
    }
    PROVIDES_INVALID_FIELDS {
        "The `fields` of `@provides` are a selection set without its braces, over the type the field returns. This one does not parse, or selects a field that type does not have, or selects nothing of a field that has sub-fields."
        "Correct the spelling or add the field; select sub-fields in braces: `\"owner { id }\"`."
        "provides_invalid_fields/bad" ["a"]
        "provides_invalid_fields/good" ["a" "b"]
    }
    REQUIRES_INVALID_FIELDS {
        "The `fields` of `@requires` are a selection set without its braces, over the type the field belongs to. This one does not parse, or selects a field that type does not have, or selects nothing of a field that has sub-fields."
        "Correct the spelling or add the field; select sub-fields in braces: `\"owner { id }\"`."
        "requires_invalid_fields/bad" ["a"]
        "requires_invalid_fields/good" ["a" "b"]
    }
    KEY_INVALID_FIELDS_TYPE {
        "The `fields` of `@key` are one string. Lists and bare names were accepted by federation 1 only."
        "Write one string: `@key(fields: \"id\")`."
        "key_invalid_fields_type/bad" ["a"]
        "key_invalid_fields_type/good" ["a"]
    }
    PROVIDES_INVALID_FIELDS_TYPE {
        "The `fields` of `@provides` are one string. Lists and bare names were accepted by federation 1 only."
        "Write one string: `@provides(fields: \"name\")`."
        "provides_invalid_fields_type/bad" ["a" "b"]
        "provides_invalid_fields_type/good" ["a" "b"]
    }
    REQUIRES_INVALID_FIELDS_TYPE {
        "The `fields` of `@requires` are one string. Lists and bare names were accepted by federation 1 only."
        "Write one string: `@requires(fields: \"price\")`."
        "requires_invalid_fields_type/bad" ["a" "b"]
        "requires_invalid_fields_type/good" ["a" "b"]
    }
    KEY_UNSUPPORTED_ON_INTERFACE {
        "Keys of interfaces came with federation v2.3, where they let other subgraphs extend the interface with `@interfaceObject`."
        "Link federation v2.3 or newer, or put the key on the implementations."
        "key_unsupported_on_interface/bad" ["a"]
        "key_unsupported_on_interface/good" ["a"]
    }
    PROVIDES_UNSUPPORTED_ON_INTERFACE {
        "`@provides` says what one resolver returns in addition, and a field of an interface has no resolver of its own."
        "Put `@provides` on the field in the implementations."
        "provides_unsupported_on_interface/bad" ["a" "b"]
        "provides_unsupported_on_interface/good" ["a" "b"]
    }
    REQUIRES_UNSUPPORTED_ON_INTERFACE {
        "`@requires` says what one resolver needs, and a field of an interface has no resolver of its own."
        "Put `@requires` on the field in the implementations."
        "requires_unsupported_on_interface/bad" ["a" "b"]
        "requires_unsupported_on_interface/good" ["a" "b"]
    }
    KEY_DIRECTIVE_IN_FIELDS_ARG {
        "The `fields` of `@key` must be had always; a directive such as `@skip` or `@include` would make that depend on a request."
        "Remove the directive from the field set."
        "key_directive_in_fields_arg/bad" ["a"]
        "key_directive_in_fields_arg/good" ["a"]
    }
    PROVIDES_DIRECTIVE_IN_FIELDS_ARG {
        "The `fields` of `@provides` must be had always; a directive such as `@skip` or `@include` would make that depend on a request."
        "Remove the directive from the field set."
        "provides_directive_in_fields_arg/bad" ["a" "b"]
        "provides_directive_in_fields_arg/good" ["a" "b"]
    }
    REQUIRES_DIRECTIVE_IN_FIELDS_ARG {
        "The `fields` of `@requires` must be had always; a directive such as `@skip` or `@include` would make that depend on a request."
        "Remove the directive from the field set."
        "requires_directive_in_fields_arg/bad" ["a" "b"]
        "requires_directive_in_fields_arg/good" ["a" "b"]
    }
    KEY_FIELDS_HAS_ARGS {
        "A key identifies an object; the value of a field with arguments depends on them, so it cannot be part of one."
        "Use a field without arguments."
        "key_fields_has_args/bad" ["a"]
        "key_fields_has_args/good" ["a"]
    }
    PROVIDES_FIELDS_HAS_ARGS {
        "Which arguments a client will give is not known when a field is provided, so a field with arguments cannot be."
        "Provide fields without arguments only."
        "provides_fields_has_args/bad" ["a" "b"]
        "provides_fields_has_args/good" ["a" "b"]
    }
    KEY_FIELDS_SELECT_INVALID_TYPE {
        "A key selects a field of interface or union type. Its values have no single shape, so they cannot be sent as a representation."
        "Select fields of object or leaf types."
        "key_fields_select_invalid_type/bad" ["a"]
        "key_fields_select_invalid_type/good" ["a"]
    }
    PROVIDES_FIELDS_MISSING_EXTERNAL {
        "`@provides` is about fields another subgraph resolves, which are declared `@external` here. This one is resolved here anyway."
        "Mark the field `@external`, or remove `@provides`."
        "provides_fields_missing_external/bad" ["a"]
        "provides_fields_missing_external/good" ["a" "b"]
    }
    REQUIRES_FIELDS_MISSING_EXTERNAL {
        "`@requires` fetches fields from other subgraphs, which are declared `@external` here. This one is resolved here, so the resolver can read it itself."
        "Mark the field `@external`, or remove `@requires`."
        "requires_fields_missing_external/bad" ["a"]
        "requires_fields_missing_external/good" ["a" "b"]
    }
    PROVIDES_ON_NON_OBJECT_FIELD {
        "`@provides` lists sub-fields, and the field returns a leaf, which has none."
        "Remove `@provides`, or put it on a field that returns an object."
        "provides_on_non_object_field/bad" ["a"]
        "provides_on_non_object_field/good" ["a" "b"]
    }
    EXTERNAL_UNUSED {
        "`@external` declares a field for the use of a key, `@requires`, `@provides` or an interface. Nothing uses this one, so it is either a leftover or was meant to be resolved here."
        "Delete the field, or remove `@external` if this subgraph resolves it."
        "external_unused/bad" ["a" "b"]
        "external_unused/good" ["a" "b"]
    }
    EXTERNAL_ON_INTERFACE {
        "Fields of interfaces are not resolved anywhere; `@external` says something about who resolves a field."
        "Put `@external` on the field in the implementations."
        "external_on_interface/bad" ["a"]
        "external_on_interface/good" ["a"]
    }
    EXTERNAL_MISSING_ON_BASE {
        "Every subgraph that mentions the field says another one resolves it."
        "Define the field without `@external` in the subgraph that resolves it."
        "external_missing_on_base/bad" ["a" "b"]
        "external_missing_on_base/good" ["a" "b"]
    }
    EXTERNAL_TYPE_MISMATCH {
        "An `@external` field is a copy of its definition elsewhere and must have the same type as the merged field."
        "Declare it with the type the message shows."
        "external_type_mismatch/bad" ["a" "b"]
        "external_type_mismatch/good" ["a" "b"]
    }
    EXTERNAL_ARGUMENT_MISSING {
        "An `@external` field is a copy of its definition elsewhere and must have all its arguments."
        "Add the argument."
        "external_argument_missing/bad" ["a" "b"]
        "external_argument_missing/good" ["a" "b"]
    }
    EXTERNAL_ARGUMENT_TYPE_MISMATCH {
        "An argument of an `@external` field has a type that does not fit the definition elsewhere."
        "Declare the argument with the type of the definition."
        "external_argument_type_mismatch/bad" ["a" "b"]
        "external_argument_type_mismatch/good" ["a" "b"]
    }
    EXTERNAL_ARGUMENT_DEFAULT_MISMATCH {
        "An argument of an `@external` field has another default than the definition elsewhere."
        "Declare the argument with the default of the definition."
        "external_argument_default_mismatch/bad" ["a" "b"]
        "external_argument_default_mismatch/good" ["a" "b"]
    }
    EXTERNAL_COLLISION_WITH_ANOTHER_DIRECTIVE {
        "`@external` says the field is not resolved here, `@provides` says what its resolver returns; both cannot hold."
        "Remove one of the two."
        "external_collision_with_another_directive/bad" ["a" "b"]
        "external_collision_with_another_directive/good" ["a" "b"]
    }
    MERGED_DIRECTIVE_APPLICATION_ON_EXTERNAL {
        "`@external` declares a field another subgraph resolves. Directives that become part of the supergraph belong to the definition, or it would be unclear who decides."
        "Move the directive to the subgraph that resolves the field."
        "merged_directive_application_on_external/bad" ["a" "b"]
        "merged_directive_application_on_external/good" ["a" "b"]
    }
    TYPE_WITH_ONLY_UNUSED_EXTERNAL {
        "Unused `@external` fields of federation 1 subgraphs are dropped. Nothing is left of this type, and something refers to it."
        "Delete the type, or make its fields part of a key."
        "type_with_only_unused_external/bad" ["a" "b"]
        "type_with_only_unused_external/good" ["a" "b"]
    }
    EXTENSION_WITH_NO_BASE {
        "Every mention of the type is an extension, so no subgraph owns it: mostly a misspelt name, or the owning subgraph is missing from the list."
        "Define the type in the subgraph it belongs to, or correct the name."
        "extension_with_no_base/bad" ["a"]
        "extension_with_no_base/good" ["a" "b"]
    }
};
