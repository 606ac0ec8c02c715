//! What every schema has without declaring it: the specified scalars and directives and the introspection types
//! (specification 3.5, 3.13, 4.2), as rows with fixed ids.
//!
//! Invariants: [`install`] runs on an empty schema, so the ids below hold in every schema and every view.
//! An unreferenced `Int`, `Float` or `ID` is withheld from lists and name maps (specification 3.5: built-in scalars
//! that are not referenced must not be included) but keeps its row.

use ogive_base::Span;
use ogive_syntax::ast::Wrapping;

use crate::types::*;

/// `String`
pub const STRING: TypeId = TypeId(0);
/// `Boolean`
pub const BOOLEAN: TypeId = TypeId(1);
/// `Int`
pub const INT: TypeId = TypeId(2);
/// `Float`
pub const FLOAT: TypeId = TypeId(3);
/// `ID`
pub const ID: TypeId = TypeId(4);
/// `__Schema`
pub const INTROSPECTION_SCHEMA: TypeId = TypeId(5);
/// `__Type`
pub const INTROSPECTION_TYPE: TypeId = TypeId(6);
/// Number of built-in types; the first type of a document has this id.
pub const TYPES: u32 = 13;

/// `@include`
pub const INCLUDE: DirectiveId = DirectiveId(0);
/// `@skip`
pub const SKIP: DirectiveId = DirectiveId(1);
/// `@deprecated`
pub const DEPRECATED: DirectiveId = DirectiveId(2);
/// `@specifiedBy`
pub const SPECIFIED_BY: DirectiveId = DirectiveId(3);
/// `@oneOf`
pub const ONE_OF: DirectiveId = DirectiveId(4);

/// Reason of `@deprecated` without one.
pub const DEPRECATED_REASON: &str = "No longer supported";

const SCALARS: [(&str, &str); 5] = [
    ("String", "Text: a sequence of Unicode scalar values."),
    ("Boolean", "`true` or `false`."),
    ("Int", "A signed 32-bit integer."),
    (
        "Float",
        "A signed double-precision number (IEEE 754), finite.",
    ),
    (
        "ID",
        "A unique identifier, serialized as a string and not meant to be read by people. \
         A string or an integer is accepted as input.",
    ),
];

/// Name, type, takes `includeDeprecated`, description.
type FieldRow = (&'static str, &'static str, bool, &'static str);

enum Members {
    Fields(&'static [FieldRow]),
    Values(&'static [(&'static str, &'static str)]),
}

/// In id order: `INTROSPECTION_SCHEMA` is the first.
const INTROSPECTION: [(&str, &str, Members); 8] = [
    (
        "__Schema",
        "The type system of this service: its types, directives and root operation types.",
        Members::Fields(&[
            ("description", "String", false, "What the schema is for."),
            (
                "types",
                "[__Type!]!",
                false,
                "Every named type of the schema.",
            ),
            ("queryType", "__Type!", false, "The root type of queries."),
            (
                "mutationType",
                "__Type",
                false,
                "The root type of mutations, if they are supported.",
            ),
            (
                "subscriptionType",
                "__Type",
                false,
                "The root type of subscriptions, if they are supported.",
            ),
            (
                "directives",
                "[__Directive!]!",
                false,
                "Every directive of the schema.",
            ),
        ]),
    ),
    (
        "__Type",
        "A named type, or a list or non-null around another type. Which fields are not null depends on `kind`.",
        Members::Fields(&[
            ("kind", "__TypeKind!", false, "Which kind of type it is."),
            (
                "name",
                "String",
                false,
                "The name, null for lists and non-nulls.",
            ),
            ("description", "String", false, "What the type stands for."),
            (
                "specifiedByURL",
                "String",
                false,
                "Where a custom scalar is specified.",
            ),
            (
                "fields",
                "[__Field!]",
                true,
                "The fields of an object or interface.",
            ),
            (
                "interfaces",
                "[__Type!]",
                false,
                "The interfaces an object or interface implements.",
            ),
            (
                "possibleTypes",
                "[__Type!]",
                false,
                "The object types a value of this interface or union can have.",
            ),
            (
                "enumValues",
                "[__EnumValue!]",
                true,
                "The values of an enum.",
            ),
            (
                "inputFields",
                "[__InputValue!]",
                true,
                "The input fields of an input object.",
            ),
            (
                "ofType",
                "__Type",
                false,
                "The type inside a list or non-null.",
            ),
            (
                "isOneOf",
                "Boolean",
                false,
                "Whether exactly one field of an input object must be given.",
            ),
        ]),
    ),
    (
        "__TypeKind",
        "The kinds of `__Type`.",
        Members::Values(&[
            ("SCALAR", "A scalar."),
            (
                "OBJECT",
                "An object type: `fields` and `interfaces` are set.",
            ),
            (
                "INTERFACE",
                "An interface: `fields`, `interfaces` and `possibleTypes` are set.",
            ),
            ("UNION", "A union: `possibleTypes` is set."),
            ("ENUM", "An enum: `enumValues` is set."),
            ("INPUT_OBJECT", "An input object: `inputFields` is set."),
            ("LIST", "A list: `ofType` is set."),
            ("NON_NULL", "A non-null: `ofType` is set."),
        ]),
    ),
    (
        "__Field",
        "A field of an object or interface.",
        Members::Fields(&[
            ("name", "String!", false, "Its name."),
            ("description", "String", false, "What it returns."),
            ("args", "[__InputValue!]!", true, "Its arguments."),
            ("type", "__Type!", false, "The type of its value."),
            (
                "isDeprecated",
                "Boolean!",
                false,
                "Whether it should no longer be used.",
            ),
            (
                "deprecationReason",
                "String",
                false,
                "Why it should no longer be used.",
            ),
        ]),
    ),
    (
        "__InputValue",
        "An argument of a field or directive, or a field of an input object.",
        Members::Fields(&[
            ("name", "String!", false, "Its name."),
            ("description", "String", false, "What it means."),
            ("type", "__Type!", false, "The type of values it takes."),
            (
                "defaultValue",
                "String",
                false,
                "The value used when none is given, in GraphQL notation.",
            ),
            (
                "isDeprecated",
                "Boolean!",
                false,
                "Whether it should no longer be used.",
            ),
            (
                "deprecationReason",
                "String",
                false,
                "Why it should no longer be used.",
            ),
        ]),
    ),
    (
        "__EnumValue",
        "A value of an enum.",
        Members::Fields(&[
            ("name", "String!", false, "Its name."),
            ("description", "String", false, "What it means."),
            (
                "isDeprecated",
                "Boolean!",
                false,
                "Whether it should no longer be used.",
            ),
            (
                "deprecationReason",
                "String",
                false,
                "Why it should no longer be used.",
            ),
        ]),
    ),
    (
        "__Directive",
        "A directive this service knows.",
        Members::Fields(&[
            ("name", "String!", false, "Its name without `@`."),
            ("description", "String", false, "What it does."),
            (
                "isRepeatable",
                "Boolean!",
                false,
                "Whether it may be repeated at one location.",
            ),
            (
                "locations",
                "[__DirectiveLocation!]!",
                false,
                "Where it may stand.",
            ),
            ("args", "[__InputValue!]!", true, "Its arguments."),
        ]),
    ),
    (
        "__DirectiveLocation",
        "The places where a directive can stand.",
        Members::Values(&[
            ("QUERY", "On a query operation."),
            ("MUTATION", "On a mutation operation."),
            ("SUBSCRIPTION", "On a subscription operation."),
            ("FIELD", "On a field of a selection set."),
            ("FRAGMENT_DEFINITION", "On a fragment definition."),
            ("FRAGMENT_SPREAD", "On a fragment spread."),
            ("INLINE_FRAGMENT", "On an inline fragment."),
            ("VARIABLE_DEFINITION", "On a variable definition."),
            ("SCHEMA", "On the schema definition."),
            ("SCALAR", "On a scalar definition."),
            ("OBJECT", "On an object type definition."),
            ("FIELD_DEFINITION", "On a field definition."),
            ("ARGUMENT_DEFINITION", "On an argument definition."),
            ("INTERFACE", "On an interface definition."),
            ("UNION", "On a union definition."),
            ("ENUM", "On an enum definition."),
            ("ENUM_VALUE", "On an enum value definition."),
            ("INPUT_OBJECT", "On an input object definition."),
            ("INPUT_FIELD_DEFINITION", "On an input field definition."),
        ]),
    ),
];

/// Adds the built-in rows to an empty schema.
pub(crate) fn install(schema: &mut Schema) {
    debug_assert!(schema.types.is_empty(), "fixed ids need an empty schema");
    for (name, description) in SCALARS {
        add_type(schema, name, description, TypeKind::Scalar);
    }
    for (name, description, members) in &INTROSPECTION {
        let kind = match members {
            Members::Fields(_) => TypeKind::Object,
            Members::Values(_) => TypeKind::Enum,
        };
        add_type(schema, name, description, kind);
    }
    for (name, _, members) in &INTROSPECTION {
        let parent = schema.type_by_name(name).expect("added by the loop above");
        match members {
            Members::Fields(rows) => {
                for row in *rows {
                    add_field(schema, parent, row);
                }
            }
            Members::Values(rows) => {
                for (name, description) in *rows {
                    let name = schema.names.intern(name);
                    let id = schema.enum_values.push(EnumValueDef {
                        name,
                        parent,
                        description: Some((*description).into()),
                        span: Span::default(),
                        directives: Vec::new(),
                        deprecated: None,
                    });
                    schema.types[parent].enum_values.push(id);
                }
            }
        }
    }
    install_directives(schema);
}

fn add_type(schema: &mut Schema, name: &str, description: &str, kind: TypeKind) {
    let name = schema.names.intern(name);
    let id = schema.types.push(TypeDef {
        name,
        kind,
        description: Some(description.into()),
        span: Span::default(),
        directives: Vec::new(),
        fields: Vec::new(),
        input_fields: Vec::new(),
        enum_values: Vec::new(),
        interfaces: Vec::new(),
        members: Vec::new(),
        possible: Default::default(),
        one_of: false,
        specified_by: None,
        built_in: true,
    });
    schema.type_list.push(id);
    schema.types_by_name.insert(name, id);
}

fn add_field(schema: &mut Schema, parent: TypeId, row: &FieldRow) {
    let (name, ty, include_deprecated, description) = row;
    let args = if *include_deprecated {
        vec![add_input(
            schema,
            "includeDeprecated",
            Type {
                id: BOOLEAN,
                wrapping: Wrapping::NON_NULL,
            },
            Some(ConstValue::Boolean(false)),
            "Whether to list deprecated ones too.",
        )]
    } else {
        Vec::new()
    };
    let name = schema.names.intern(name);
    let ty = read_type(schema, ty);
    let id = schema.fields.push(FieldDef {
        name,
        parent,
        ty,
        args,
        description: Some((*description).into()),
        span: Span::default(),
        directives: Vec::new(),
        deprecated: None,
    });
    schema.types[parent].fields.push(id);
    schema.fields_by_name.insert((parent, name), id);
}

fn add_input(
    schema: &mut Schema,
    name: &str,
    ty: Type,
    default: Option<ConstValue>,
    description: &str,
) -> InputId {
    let name = schema.names.intern(name);
    schema.inputs.push(InputDef {
        name,
        ty,
        default,
        description: Some(description.into()),
        span: Span::default(),
        directives: Vec::new(),
        deprecated: None,
    })
}

/// Reads one of the notations of the tables above: `T`, `T!`, `[T!]`, `[T!]!`.
fn read_type(schema: &Schema, text: &str) -> Type {
    let name = text.trim_matches(['[', ']', '!']);
    let mut wrapping = Wrapping::NULLABLE;
    if text.starts_with('[') {
        wrapping = Wrapping::NON_NULL.list_of().unwrap_or(wrapping);
    }
    if text.ends_with('!') {
        wrapping = wrapping.non_null();
    }
    Type {
        id: schema.type_by_name(name).unwrap_or(STRING),
        wrapping,
    }
}

fn install_directives(schema: &mut Schema) {
    use DirectiveLocation::*;
    let boolean = Type {
        id: BOOLEAN,
        wrapping: Wrapping::NON_NULL,
    };
    let string = Type {
        id: STRING,
        wrapping: Wrapping::NON_NULL,
    };
    let selections = [Field, FragmentSpread, InlineFragment];

    let condition = add_input(schema, "if", boolean, None, "Select when true.");
    let what = "Selects a field or fragment only if the argument is true.";
    add_directive(schema, "include", what, vec![condition], &selections);

    let condition = add_input(schema, "if", boolean, None, "Leave out when true.");
    let what = "Leaves a field or fragment out if the argument is true.";
    add_directive(schema, "skip", what, vec![condition], &selections);

    let reason = add_input(
        schema,
        "reason",
        string,
        Some(ConstValue::String(DEPRECATED_REASON.into())),
        "Why, and what to use instead; Markdown (CommonMark).",
    );
    let places = [
        FieldDefinition,
        ArgumentDefinition,
        InputFieldDefinition,
        EnumValue,
    ];
    let what = "Marks an element of the schema that should no longer be used.";
    add_directive(schema, "deprecated", what, vec![reason], &places);

    let url = add_input(schema, "url", string, None, "Where the specification is.");
    let what = "Names the specification of a custom scalar.";
    add_directive(schema, "specifiedBy", what, vec![url], &[Scalar]);

    let what = "Requires exactly one field of an input object to be given and not null.";
    add_directive(schema, "oneOf", what, Vec::new(), &[InputObject]);
}

impl Schema {
    /// Lists `@defer` and `@stream` in introspection, for services that answer in parts. Operations may use them without a
    /// definition, by rules of their own, so they get no name here. Of a directive that the schema defines by one of these
    /// names nothing changes.
    pub fn list_incremental_directives(&mut self) {
        use DirectiveLocation::*;
        let ty = |id, wrapping| Type { id, wrapping };
        let (boolean, text) = (
            ty(BOOLEAN, Wrapping::NON_NULL),
            ty(STRING, Wrapping::NULLABLE),
        );
        let yes = || Some(ConstValue::Boolean(true));
        let label = "Names this part of the answer; unique in the document.";
        if self.directive_by_name("defer").is_none() {
            let args = vec![
                add_input(self, "if", boolean, yes(), "Deferred when true."),
                add_input(self, "label", text, None, label),
            ];
            let what = "Allows a fragment to be answered after the rest.";
            list_directive(self, "defer", what, args, &[FragmentSpread, InlineFragment]);
        }
        if self.directive_by_name("stream").is_none() {
            let count = ty(INT, Wrapping::NON_NULL);
            let none = Some(ConstValue::Int("0".into()));
            let args = vec![
                add_input(self, "if", boolean, yes(), "Streamed when true."),
                add_input(self, "label", text, None, label),
                add_input(
                    self,
                    "initialCount",
                    count,
                    none,
                    "How many items come at once.",
                ),
            ];
            let what = "Allows the items of a list to be answered one after another.";
            list_directive(self, "stream", what, args, &[Field]);
            // It may have been withheld, as nothing referred to it.
            let name = self.types[INT].name;
            self.types_by_name.insert(name, INT);
            if let Err(at) = self.type_list.binary_search(&INT) {
                self.type_list.insert(at, INT);
            }
        }
    }
}

fn add_directive(
    schema: &mut Schema,
    name: &str,
    description: &str,
    args: Vec<InputId>,
    locations: &[DirectiveLocation],
) {
    let id = list_directive(schema, name, description, args, locations);
    let name = schema.directive_defs[id].name;
    schema.directives_by_name.insert(name, id);
}

/// Adds a directive that no document can name.
fn list_directive(
    schema: &mut Schema,
    name: &str,
    description: &str,
    args: Vec<InputId>,
    locations: &[DirectiveLocation],
) -> DirectiveId {
    let name = schema.names.intern(name);
    let id = schema.directive_defs.push(DirectiveDef {
        name,
        args,
        locations: locations.to_vec(),
        repeatable: false,
        description: Some(description.into()),
        span: Span::default(),
        built_in: true,
    });
    schema.directive_list.push(id);
    id
}
