//! AST to canonical source text, in the layout GraphQL tools agree on.
//!
//! Two-space indentation; one definition, member or selection per line; values on one line; arguments on one
//! line unless that makes the field longer than [`ARGUMENTS_LINE_MAX`], argument definitions unless one spans
//! lines. Block strings stay block strings. Comments are not part of the AST and are lost.
//!
//! Invariants: printing what was parsed from a printed text gives that text again; nothing recurses.
//! The tests in `tests/it/printing.rs` hold both.

use ogive_base::Span;

use crate::ast::*;

mod strings;

pub use strings::write_string;

/// Longest `alias: field(arguments)` on one line, in UTF-16 code units like everyone counts.
const ARGUMENTS_LINE_MAX: usize = 80;

/// Prints a whole document, definitions separated by one empty line, two-space indentation,
/// `print(parse(print(d))) == print(d)`. Ends with a line end unless there is nothing to print.
pub fn print_document(document: &Document) -> String {
    let mut printer = Printer::new(document, document.source().len() + 64);
    let mut swallows_braces = false;
    for (i, definition) in document.definitions.iter().enumerate() {
        if i > 0 {
            printer.out.push_str("\n\n");
        }
        printer.definition(definition, !swallows_braces);
        swallows_braces = would_swallow_braces(definition);
    }
    if !printer.out.is_empty() {
        printer.out.push('\n');
    }
    printer.out
}

/// Prints one definition without trailing newline.
pub fn print_definition(document: &Document, definition: &Definition) -> String {
    let mut printer = Printer::new(document, 256);
    printer.definition(definition, true);
    printer.out
}

/// Prints one value on one line.
pub fn print_value(document: &Document, value: &Value) -> String {
    let mut printer = Printer::new(document, 32);
    printer.block_strings = false;
    printer.value(value);
    printer.out
}

/// Prints one type reference, e.g. `[Int!]!`.
pub fn print_type_ref(document: &Document, ty: &TypeRef) -> String {
    ty.wrapping.display(document.name(ty.name))
}

/// Whether a `{` after `definition` would be read as its body: then a query must not be printed in short form.
fn would_swallow_braces(definition: &Definition) -> bool {
    match definition {
        Definition::Operation(_) | Definition::Fragment(_) | Definition::Directive(_) => false,
        Definition::Schema(d) => d.root_types.is_empty(),
        Definition::Type(d) => match d.kind {
            TypeDefinitionKind::Scalar | TypeDefinitionKind::Union { .. } => false,
            TypeDefinitionKind::Object { fields, .. }
            | TypeDefinitionKind::Interface { fields, .. } => fields.is_empty(),
            TypeDefinitionKind::Enum { values } => values.is_empty(),
            TypeDefinitionKind::InputObject { fields } => fields.is_empty(),
        },
    }
}

struct Printer<'a> {
    doc: &'a Document,
    out: String,
    /// Levels of two spaces before the next line.
    indent: usize,
    /// Whether block strings may be printed as such.
    block_strings: bool,
}

/// The rest of a list or object whose opening bracket is printed.
enum OpenValue<'a> {
    List(std::slice::Iter<'a, Value>),
    Object(std::slice::Iter<'a, ObjectField>),
}

impl<'a> Printer<'a> {
    fn new(doc: &'a Document, capacity: usize) -> Self {
        Printer {
            doc,
            out: String::with_capacity(capacity),
            indent: 0,
            block_strings: true,
        }
    }

    fn definition(&mut self, definition: &Definition, shorthand: bool) {
        match definition {
            Definition::Operation(d) => self.operation(d, shorthand),
            Definition::Fragment(d) => self.fragment(d),
            Definition::Schema(d) => self.schema(d),
            Definition::Directive(d) => self.directive_definition(d),
            Definition::Type(d) => self.type_definition(d),
        }
    }

    // Operations.

    fn operation(&mut self, d: &OperationDefinition, shorthand: bool) {
        self.description(d.description);
        let bare = d.name.is_none() && d.variables.is_empty() && d.directives.is_empty();
        let shorthand =
            shorthand && bare && d.kind == OperationKind::Query && d.description.is_none();
        if !shorthand {
            self.out.push_str(d.kind.as_str());
            self.out.push(' ');
            if let Some(name) = d.name {
                self.name(name);
            }
            self.variables(d.variables);
            self.directives(d.directives);
            if !bare {
                // A directive without name before it has its space already.
                self.space();
            }
        }
        self.selection_set(d.selection_set);
    }

    fn fragment(&mut self, d: &FragmentDefinition) {
        self.description(d.description);
        self.out.push_str("fragment ");
        self.name(d.name);
        self.out.push_str(" on ");
        self.name(d.type_condition);
        self.directives(d.directives);
        self.space();
        self.selection_set(d.selection_set);
    }

    fn variables(&mut self, variables: List<VariableDefinition>) {
        let doc = self.doc;
        let described = |v: &VariableDefinition| v.description.is_some();
        self.definitions_in_parens(&doc[variables], described, |printer, v| {
            printer.description(v.description);
            printer.out.push('$');
            printer.name(v.name);
            printer.out.push_str(": ");
            printer.type_ref(&v.ty);
            printer.default_value(&v.default);
            printer.directives(v.directives);
        });
    }

    fn selection_set(&mut self, set: SelectionSet) {
        let doc = self.doc;
        let mut open = Vec::new();
        let mut items = doc[set.items].iter();
        self.open_brace();
        loop {
            let Some(selection) = items.next() else {
                self.close_brace();
                match open.pop() {
                    Some(outer) => items = outer,
                    None => return,
                }
                continue;
            };
            self.line();
            if let Some(inner) = self.selection(selection) {
                self.space();
                self.open_brace();
                open.push(std::mem::replace(&mut items, doc[inner.items].iter()));
            }
        }
    }

    /// A selection up to its selection set.
    fn selection(&mut self, selection: &Selection) -> Option<SelectionSet> {
        match selection {
            Selection::Field(field) => {
                let start = self.out.len();
                if let Some(alias) = field.alias {
                    self.name(alias);
                    self.out.push_str(": ");
                }
                self.name(field.name);
                self.field_arguments(field.arguments, start);
                self.directives(field.directives);
                field.selection_set
            }
            Selection::Spread(spread) => {
                self.out.push_str("...");
                self.name(spread.name);
                self.directives(spread.directives);
                None
            }
            Selection::Inline(inline) => {
                self.out.push_str("...");
                if let Some(on) = inline.type_condition {
                    self.out.push_str(" on ");
                    self.name(on);
                }
                self.directives(inline.directives);
                Some(inline.selection_set)
            }
        }
    }

    /// Arguments of the field printed from `start` on: on one line if it is not too long.
    fn field_arguments(&mut self, arguments: List<Argument>, start: usize) {
        let open = self.out.len();
        self.arguments(arguments);
        let field = &self.out[start..];
        if field.len() <= ARGUMENTS_LINE_MAX
            || field.encode_utf16().count() <= ARGUMENTS_LINE_MAX
            || arguments.is_empty()
        {
            return;
        }
        self.out.truncate(open);
        self.out.push('(');
        self.indent += 1;
        let doc = self.doc;
        for argument in &doc[arguments] {
            self.line();
            self.argument(argument);
        }
        self.indent -= 1;
        self.line();
        self.out.push(')');
    }

    fn arguments(&mut self, arguments: List<Argument>) {
        if arguments.is_empty() {
            return;
        }
        let doc = self.doc;
        self.out.push('(');
        for (i, argument) in doc[arguments].iter().enumerate() {
            if i > 0 {
                self.out.push_str(", ");
            }
            self.argument(argument);
        }
        self.out.push(')');
    }

    fn argument(&mut self, argument: &Argument) {
        self.name(argument.name);
        self.out.push_str(": ");
        self.value(&argument.value);
    }

    fn directives(&mut self, directives: List<Directive>) {
        let doc = self.doc;
        for directive in &doc[directives] {
            self.space();
            self.out.push('@');
            self.name(directive.name);
            self.arguments(directive.arguments);
        }
    }

    // Values and types.

    fn value(&mut self, value: &Value) {
        let mut open = Vec::new();
        let mut next = self.open_value(value);
        // The innermost open list or object; its children are written until one opens another.
        while let Some(mut inner) = next.take().or_else(|| open.pop()) {
            let (child, close) = match &mut inner {
                OpenValue::List(items) => (items.next(), ']'),
                OpenValue::Object(fields) => {
                    let field = fields.next();
                    if let Some(field) = field {
                        self.separate('{');
                        self.name(field.name);
                        self.out.push_str(": ");
                    }
                    (field.map(|field| &field.value), '}')
                }
            };
            let Some(child) = child else {
                self.out.push(close);
                continue;
            };
            if close == ']' {
                self.separate('[');
            }
            open.push(inner);
            next = self.open_value(child);
        }
    }

    /// A comma, unless the last thing printed is the opening bracket.
    fn separate(&mut self, bracket: char) {
        if !self.out.ends_with(bracket) {
            self.out.push_str(", ");
        }
    }

    /// Prints a leaf whole and of a list or object the opening bracket.
    fn open_value(&mut self, value: &Value) -> Option<OpenValue<'a>> {
        let doc = self.doc;
        match value.kind {
            ValueKind::Variable(name) => {
                self.out.push('$');
                self.name(name);
            }
            ValueKind::Int | ValueKind::Float | ValueKind::Enum => self.text(value.span),
            ValueKind::String { block } => self.string(StringValue {
                span: value.span,
                block,
            }),
            ValueKind::Boolean(true) => self.out.push_str("true"),
            ValueKind::Boolean(false) => self.out.push_str("false"),
            ValueKind::Null => self.out.push_str("null"),
            ValueKind::List(items) => {
                self.out.push('[');
                return Some(OpenValue::List(doc[items].iter()));
            }
            ValueKind::Object(fields) => {
                self.out.push('{');
                return Some(OpenValue::Object(doc[fields].iter()));
            }
        }
        None
    }

    fn default_value(&mut self, default: &Option<Value>) {
        if let Some(default) = default {
            self.out.push_str(" = ");
            self.value(default);
        }
    }

    fn type_ref(&mut self, ty: &TypeRef) {
        let doc = self.doc;
        // Writing to a string cannot fail.
        let _ = ty.wrapping.write(doc.name(ty.name), &mut self.out);
    }

    // Type system.

    fn schema(&mut self, d: &SchemaDefinition) {
        self.description(d.description);
        self.extend(d.extend);
        self.out.push_str("schema");
        self.directives(d.directives);
        let doc = self.doc;
        self.members(&doc[d.root_types], |printer, root| {
            printer.out.push_str(root.kind.as_str());
            printer.out.push_str(": ");
            printer.name(root.ty);
        });
    }

    fn type_definition(&mut self, d: &TypeDefinition) {
        let doc = self.doc;
        self.description(d.description);
        self.extend(d.extend);
        self.out.push_str(match d.kind {
            TypeDefinitionKind::Scalar => "scalar ",
            TypeDefinitionKind::Object { .. } => "type ",
            TypeDefinitionKind::Interface { .. } => "interface ",
            TypeDefinitionKind::Union { .. } => "union ",
            TypeDefinitionKind::Enum { .. } => "enum ",
            TypeDefinitionKind::InputObject { .. } => "input ",
        });
        self.name(d.name);
        match d.kind {
            TypeDefinitionKind::Scalar => self.directives(d.directives),
            TypeDefinitionKind::Object { interfaces, fields }
            | TypeDefinitionKind::Interface { interfaces, fields } => {
                self.names(" implements ", interfaces, " & ");
                self.directives(d.directives);
                self.members(&doc[fields], Self::field_definition);
            }
            TypeDefinitionKind::Union { members } => {
                self.directives(d.directives);
                self.names(" = ", members, " | ");
            }
            TypeDefinitionKind::Enum { values } => {
                self.directives(d.directives);
                self.members(&doc[values], |printer, value| {
                    printer.description(value.description);
                    printer.name(value.name);
                    printer.directives(value.directives);
                });
            }
            TypeDefinitionKind::InputObject { fields } => {
                self.directives(d.directives);
                self.members(&doc[fields], Self::input_value);
            }
        }
    }

    fn directive_definition(&mut self, d: &DirectiveDefinition) {
        self.description(d.description);
        self.out.push_str("directive @");
        self.name(d.name);
        self.argument_definitions(d.arguments);
        if d.repeatable {
            self.out.push_str(" repeatable");
        }
        self.names(" on ", d.locations, " | ");
    }

    fn field_definition(&mut self, field: &FieldDefinition) {
        self.description(field.description);
        self.name(field.name);
        self.argument_definitions(field.arguments);
        self.out.push_str(": ");
        self.type_ref(&field.ty);
        self.directives(field.directives);
    }

    fn argument_definitions(&mut self, arguments: List<InputValueDefinition>) {
        let doc = self.doc;
        let described = |a: &InputValueDefinition| a.description.is_some();
        self.definitions_in_parens(&doc[arguments], described, Self::input_value);
    }

    fn input_value(&mut self, input: &InputValueDefinition) {
        self.description(input.description);
        self.name(input.name);
        self.out.push_str(": ");
        self.type_ref(&input.ty);
        self.default_value(&input.default);
        self.directives(input.directives);
    }

    // Layout.

    /// `(a, b)`, or one per line if any is described or spans lines.
    fn definitions_in_parens<T>(
        &mut self,
        items: &[T],
        described: impl Fn(&T) -> bool,
        print: impl Fn(&mut Self, &T),
    ) {
        if items.is_empty() {
            return;
        }
        let start = self.out.len();
        if !items.iter().any(described) {
            self.out.push('(');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    self.out.push_str(", ");
                }
                print(self, item);
            }
            self.out.push(')');
            if !self.out[start..].contains('\n') {
                return;
            }
            self.out.truncate(start);
        }
        self.out.push('(');
        self.indent += 1;
        for item in items {
            self.line();
            print(self, item);
        }
        self.indent -= 1;
        self.line();
        self.out.push(')');
    }

    /// ` { .. }` with one member per line; nothing if there is none.
    fn members<T>(&mut self, members: &[T], print: impl Fn(&mut Self, &T)) {
        if members.is_empty() {
            return;
        }
        self.space();
        self.open_brace();
        for member in members {
            self.line();
            print(self, member);
        }
        self.close_brace();
    }

    fn names(&mut self, before: &str, names: List<Name>, separator: &str) {
        let doc = self.doc;
        for (i, name) in doc[names].iter().enumerate() {
            self.out.push_str(if i == 0 { before } else { separator });
            self.name(*name);
        }
    }

    fn extend(&mut self, extend: bool) {
        if extend {
            self.out.push_str("extend ");
        }
    }

    /// A description and the line end after it.
    fn description(&mut self, description: Option<StringValue>) {
        if let Some(description) = description {
            self.string(description);
            self.line();
        }
    }

    fn open_brace(&mut self) {
        self.out.push('{');
        self.indent += 1;
    }

    fn close_brace(&mut self) {
        self.indent -= 1;
        self.line();
        self.out.push('}');
    }

    /// Begins a new line.
    fn line(&mut self) {
        self.out.push('\n');
        self.indentation();
    }

    fn indentation(&mut self) {
        for _ in 0..self.indent {
            self.out.push_str("  ");
        }
    }

    /// A space, unless there is one.
    fn space(&mut self) {
        if !self.out.ends_with(' ') {
            self.out.push(' ');
        }
    }

    fn name(&mut self, name: Name) {
        self.text(name.span());
    }

    fn text(&mut self, span: Span) {
        let doc = self.doc;
        self.out.push_str(doc.text(span));
    }
}

#[cfg(test)]
mod tests;
