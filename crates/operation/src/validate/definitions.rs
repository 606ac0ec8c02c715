//! Definitions as a whole (specification 5.1, 5.2.1, 5.2.2, 5.5.1.1) and the types they name (5.5.1.2).

use ogive_base::{FastMap, FastSet, Span};
use ogive_syntax::{
    Name,
    ast::{Definition, FragmentDefinition, OperationDefinition},
};

use super::context::Context;

/// Names of operations and fragments seen so far.
pub(super) struct Definitions<'a> {
    operations: usize,
    operation_names: FastMap<&'a str, Span>,
    fragment_names: FastMap<&'a str, Span>,
}

impl<'a> Definitions<'a> {
    pub(super) fn new(cx: &Context<'a>) -> Self {
        Definitions {
            operations: cx.doc.operations().count(),
            operation_names: FastMap::default(),
            fragment_names: FastMap::default(),
        }
    }

    /// Operation name uniqueness, lone anonymous operation, operation type existence.
    pub(super) fn operation(&mut self, cx: &mut Context<'a>, operation: &OperationDefinition) {
        if cx.schema.root(operation.kind).is_none() {
            let kind = operation.kind.as_str();
            cx.report(&[operation.span], |_| {
                format!("The {kind} operation is not supported by the schema.")
            });
        }
        match operation.name {
            Some(name) => {
                let text = cx.text(name);
                if let Some(first) = self.operation_names.get(text) {
                    cx.report(&[*first, name.span()], |_| {
                        format!("There can be only one operation named \"{text}\".")
                    });
                } else {
                    self.operation_names.insert(text, name.span());
                }
            }
            None if self.operations > 1 => cx.report(&[operation.span], |_| {
                "This anonymous operation must be the only defined operation.".to_owned()
            }),
            None => {}
        }
    }

    /// Fragment name uniqueness.
    pub(super) fn fragment(&mut self, cx: &mut Context<'a>, fragment: &FragmentDefinition) {
        let text = cx.text(fragment.name);
        if let Some(first) = self.fragment_names.get(text) {
            cx.report(&[*first, fragment.name.span()], |_| {
                format!("There can be only one fragment named \"{text}\".")
            });
        } else {
            self.fragment_names.insert(text, fragment.name.span());
        }
    }
}

/// Executable definitions (5.1.1).
pub(super) fn executable(cx: &mut Context<'_>) {
    let doc = cx.doc;
    for definition in &doc.definitions {
        let what = match definition {
            Definition::Operation(_) | Definition::Fragment(_) => continue,
            Definition::Schema(_) => "schema".to_owned(),
            Definition::Directive(d) => format!("\"{}\"", doc.name(d.name)),
            Definition::Type(t) => format!("\"{}\"", doc.name(t.name)),
        };
        cx.report(&[definition.span()], |_| {
            format!("The {what} definition is not executable.")
        });
    }
}

/// A type that the document names must exist (5.5.1.2, 5.8.2). Types which the document defines itself are
/// refused as definitions, not as unknown.
pub(super) fn known_type(cx: &mut Context<'_>, name: Name) {
    let text = cx.text(name);
    if cx.schema.type_by_name(text).is_some() {
        return;
    }
    let doc = cx.doc;
    let defined: FastSet<&str> = doc
        .definitions
        .iter()
        .filter_map(|d| match d {
            Definition::Type(t) if !t.extend => Some(doc.name(t.name)),
            _ => None,
        })
        .collect();
    if defined.contains(text) {
        return;
    }
    cx.report(&[name.span()], |cx| {
        let known = cx.schema.types().map(|(_, ty)| cx.schema.name(ty.name));
        let hint = cx.did_you_mean(None, text, known);
        format!("Unknown type \"{text}\".{hint}")
    });
}
