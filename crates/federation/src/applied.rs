//! The directives of a supergraph's schema, as join and its companions apply them: their names in this document, the
//! names of their arguments, and how the applications of one are found.

use ogive_base::Symbol;
use ogive_schema::{AppliedDirective, Schema};

use crate::{
    Links,
    vocabulary::{Spec, join},
};

macro_rules! words {
    ($($field:ident = $text:literal),* $(,)?) => {
        /// Argument names of join directives as symbols of the schema; `None` for words it never uses.
        pub(crate) struct Words { $(pub(crate) $field: Option<Symbol>),* }
        impl Words {
            pub(crate) fn new(schema: &Schema) -> Words {
                Words { $($field: schema.names.get($text)),* }
            }
        }
    };
}

words! {
    graph = "graph", key = "key", extension = "extension", resolvable = "resolvable",
    is_interface_object = "isInterfaceObject", requires = "requires", provides = "provides", ty = "type",
    external = "external", over = "override", label = "overrideLabel", used_overridden = "usedOverridden",
    context_arguments = "contextArguments", interface = "interface", member = "member",
}

/// Names of the join directives in this document.
pub(crate) struct JoinNames {
    pub(crate) ty: Option<Symbol>,
    pub(crate) owner: Option<Symbol>,
    pub(crate) field: Option<Symbol>,
    pub(crate) implements: Option<Symbol>,
    pub(crate) union_member: Option<Symbol>,
    pub(crate) enum_value: Option<Symbol>,
    /// `@context`, which is no join directive.
    pub(crate) context: Option<Symbol>,
}

impl JoinNames {
    pub(crate) fn new(schema: &Schema, links: &Links) -> JoinNames {
        let name = |element: &str| schema.names.get(&links.directive(Spec::Join, element)?);
        JoinNames {
            ty: name(join::TYPE),
            owner: name(join::OWNER),
            field: name(join::FIELD),
            implements: name(join::IMPLEMENTS),
            union_member: name(join::UNION_MEMBER),
            enum_value: name(join::ENUM_VALUE),
            context: links
                .directive(Spec::Context, Spec::Context.name())
                .and_then(|name| schema.names.get(&name)),
        }
    }
}

/// The applications of one directive, in order.
pub(crate) fn applied(
    list: &[AppliedDirective],
    name: Option<Symbol>,
) -> impl Iterator<Item = &AppliedDirective> + Clone {
    list.iter().filter(move |d| Some(d.name) == name)
}
