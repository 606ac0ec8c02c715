//! The one traversal: visits every node once with its type information and calls the rules.
//!
//! Invariants: within a node, rules run in the reference implementation's order, checks on entering before the
//! children, checks on leaving after them, so messages come out in the order clients know. Recursion follows the
//! syntactic nesting and stops at [`DEPTH_MAX`].

use ogive_base::{Diagnostic, Span};
use ogive_schema::{DirectiveLocation, OperationKind, Schema, Type, TypeId, Wrapping};
use ogive_syntax::{
    Document,
    ast::{
        Argument, Definition, Directive, Field, FragmentDefinition, FragmentSpread, InlineFragment,
        List, OperationDefinition, Selection, SelectionSet, Value, ValueKind, VariableDefinition,
    },
};

use super::{
    DEPTH_MAX, ValidationLimits, arguments,
    context::{Args, Context, Position},
    definitions::{self, Definitions},
    directives, fields,
    fragments::{self, Cycles},
    incremental, input, introspection, literal,
    merge::Merge,
    subscription, values,
    variables::{self, Scope, Usage},
};

/// The state of the traversal.
pub(super) struct Walk<'a> {
    pub(super) cx: Context<'a>,
    definitions: Definitions<'a>,
    introspection: introspection::Depth,
    cycles: Cycles,
    merge: Merge<'a>,
    /// Variable usages of each fragment definition, as `cx.fragments`.
    fragment_usages: Vec<Vec<Usage<'a>>>,
    /// Operations with what they use, and where in `cx.out` their variables' messages belong.
    scopes: Vec<Scope<'a>>,
    /// Usages of the definition being visited.
    usages: Vec<Usage<'a>>,
    /// Labels of deferred fragments and streamed lists.
    labels: incremental::Labels,
    /// Why nothing else was looked at, if so.
    refused: Option<Diagnostic>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(
        schema: &'a Schema,
        document: &'a Document,
        limits: &'a ValidationLimits,
    ) -> Self {
        let cx = Context::new(schema, document, limits);
        Walk {
            definitions: Definitions::new(&cx),
            introspection: introspection::Depth::default(),
            cycles: Cycles::default(),
            merge: Merge::default(),
            fragment_usages: Vec::new(),
            scopes: Vec::new(),
            usages: Vec::new(),
            labels: incremental::Labels::default(),
            refused: None,
            cx,
        }
    }

    /// Visits the whole document.
    pub(super) fn document(&mut self) {
        let most = self.cx.limits.selections_max;
        if self.cx.doc.selection_count() > most as usize {
            let message = format!("Document has more than {most} selections.");
            let start = self.cx.doc.definitions.first();
            let place = start.map_or(Span::new(0, 0), Definition::span);
            self.refused = Some(self.cx.too_complex(place, message));
            return;
        }
        if let Some(deep) = self.cx.deepest_above(DEPTH_MAX) {
            let message = format!("Document is nested more than {DEPTH_MAX} levels deep.");
            self.refused = Some(self.cx.too_complex(deep, message));
            return;
        }
        self.merge = Merge::check(&mut self.cx);
        definitions::executable(&mut self.cx);
        let document = self.cx.doc;
        for definition in &document.definitions {
            match definition {
                Definition::Operation(operation) => self.operation(operation),
                Definition::Fragment(fragment) => self.fragment(fragment),
                Definition::Type(_) | Definition::Schema(_) | Definition::Directive(_) => {}
            }
        }
        fragments::unused(&mut self.cx);
        self.merge.finish(&mut self.cx);
    }

    /// Runs the rules that need the whole document, and gives the diagnostics in order.
    pub(super) fn finish(mut self) -> (Vec<Diagnostic>, u32) {
        if let Some(refusal) = self.refused {
            return (vec![refusal], 0);
        }
        variables::check(&mut self.cx, &self.scopes, &self.fragment_usages);
        let is_cut_off = self.cx.is_full();
        let Context {
            mut out, limits, ..
        } = self.cx;
        let most = limits.errors_max as usize;
        if is_cut_off {
            out.truncate(most);
            out.push(Diagnostic::error(
                super::CODE,
                "Too many validation errors, error limit reached. Validation aborted.",
            ));
        }
        (out, self.merge.steps())
    }

    fn operation(&mut self, operation: &'a OperationDefinition) {
        self.definitions.operation(&mut self.cx, operation);
        let root = self.cx.schema.root(operation.kind);
        if operation.kind == OperationKind::Subscription {
            subscription::check(&mut self.cx, operation);
            incremental::subscription(&mut self.cx, operation);
        }
        variables::unique(&mut self.cx, operation.variables);
        directives::unique(&mut self.cx, operation.directives);
        let document = self.cx.doc;
        for variable in &document[operation.variables] {
            self.variable(variable);
        }
        let location = match operation.kind {
            OperationKind::Query => DirectiveLocation::Query,
            OperationKind::Mutation => DirectiveLocation::Mutation,
            OperationKind::Subscription => DirectiveLocation::Subscription,
        };
        self.directives(operation.directives, location, None);
        self.selection_set(&operation.selection_set, self.cx.composite(root));
        self.scopes.push(Scope {
            operation,
            usages: std::mem::take(&mut self.usages),
            place: self.cx.out.len(),
        });
    }

    fn variable(&mut self, variable: &'a VariableDefinition) {
        variables::input_type(&mut self.cx, variable);
        directives::unique(&mut self.cx, variable.directives);
        definitions::known_type(&mut self.cx, variable.ty.name);
        if let Some(default) = &variable.default {
            let ty = self.cx.type_ref(&variable.ty);
            let position = Position {
                ty: ty.filter(|ty| self.cx.schema.types[ty.id].kind.is_input()),
                ..Position::default()
            };
            self.value(default, position, true);
        }
        self.directives(
            variable.directives,
            DirectiveLocation::VariableDefinition,
            None,
        );
    }

    fn fragment(&mut self, fragment: &'a FragmentDefinition) {
        let document = self.cx.doc;
        let index = self.fragment_usages.len();
        fragments::condition(&mut self.cx, Some(fragment.name), fragment.type_condition);
        self.definitions.fragment(&mut self.cx, fragment);
        self.cycles.check(&mut self.cx, index);
        directives::unique(&mut self.cx, fragment.directives);
        definitions::known_type(&mut self.cx, fragment.type_condition);
        self.directives(
            fragment.directives,
            DirectiveLocation::FragmentDefinition,
            None,
        );
        let ty = self
            .cx
            .schema
            .type_by_name(document.name(fragment.type_condition));
        self.selection_set(&fragment.selection_set, self.cx.composite(ty));
        self.fragment_usages.push(std::mem::take(&mut self.usages));
    }

    fn selection_set(&mut self, set: &'a SelectionSet, parent: Option<TypeId>) {
        self.merge.explain(&mut self.cx, set);
        self.selections(set, parent);
    }

    fn selections(&mut self, set: &'a SelectionSet, parent: Option<TypeId>) {
        let document = self.cx.doc;
        for selection in &document[set.items] {
            match selection {
                Selection::Field(field) => self.field(field, parent),
                Selection::Spread(spread) => self.spread(spread, parent),
                Selection::Inline(inline) => self.inline(inline, parent),
            }
        }
    }

    fn field(&mut self, field: &'a Field, parent: Option<TypeId>) {
        let document = self.cx.doc;
        let found = self.cx.field(parent, document.name(field.name));
        let ty = found.and_then(|f| self.cx.field_type(f));
        fields::leaf(&mut self.cx, field, ty);
        if found.is_none() {
            fields::unknown(&mut self.cx, field, parent);
        }
        directives::unique(&mut self.cx, field.directives);
        arguments::unique(&mut self.cx, field.arguments);
        self.introspection.check(&mut self.cx, field);
        let args = found.map(|f| self.cx.field_args(f));
        for argument in &document[field.arguments] {
            if let (Some(args), Some(parent)) = (args, parent) {
                arguments::known_on_field(&mut self.cx, argument, args, parent, field);
            }
            self.argument(argument, args);
        }
        self.directives(field.directives, DirectiveLocation::Field, args);
        if !field.directives.is_empty() {
            incremental::field(&mut self.cx, field, parent, ty);
        }
        if let Some(set) = &field.selection_set {
            self.selection_set(set, self.cx.composite(ty.map(|t| t.id)));
        }
        if let Some(args) = args {
            arguments::required_on_field(&mut self.cx, field, args);
        }
    }

    fn spread(&mut self, spread: &'a FragmentSpread, parent: Option<TypeId>) {
        fragments::known(&mut self.cx, spread);
        fragments::possible_spread(&mut self.cx, spread, parent);
        directives::unique(&mut self.cx, spread.directives);
        self.directives(spread.directives, DirectiveLocation::FragmentSpread, None);
        incremental::fragment(&mut self.cx, spread.directives, parent);
    }

    fn inline(&mut self, inline: &'a InlineFragment, parent: Option<TypeId>) {
        let mut ty = parent;
        if let Some(condition) = inline.type_condition {
            fragments::condition(&mut self.cx, None, condition);
            ty = self.cx.schema.type_by_name(self.cx.text(condition));
            ty = self.cx.composite(ty);
            fragments::possible_inline(&mut self.cx, inline, ty, parent);
        }
        directives::unique(&mut self.cx, inline.directives);
        if let Some(condition) = inline.type_condition {
            definitions::known_type(&mut self.cx, condition);
        }
        self.directives(inline.directives, DirectiveLocation::InlineFragment, None);
        incremental::fragment(&mut self.cx, inline.directives, parent);
        // Its selections merge into the set around it, where their conflicts are reported.
        self.selections(&inline.selection_set, ty);
    }

    /// `outer` are the arguments of the field the directives stand on, if any.
    fn directives(
        &mut self,
        list: List<Directive>,
        location: DirectiveLocation,
        outer: Option<Args<'a>>,
    ) {
        let document = self.cx.doc;
        for directive in &document[list] {
            let name = document.name(directive.name);
            let found = self.cx.schema.directive_by_name(name);
            if found.is_none() && incremental::is_known(name) {
                self.incremental(directive, location);
                continue;
            }
            directives::known(&mut self.cx, directive, found, location);
            let args = found.map(|d| self.cx.directive_args(d));
            if let Some(args) = args {
                arguments::known_on_directive(&mut self.cx, directive, args);
            }
            arguments::unique(&mut self.cx, directive.arguments);
            for argument in &document[directive.arguments] {
                self.argument(argument, args.or(outer));
            }
            if let Some(args) = args {
                arguments::required_on_directive(&mut self.cx, directive, args);
            }
        }
    }

    /// A `@defer` or `@stream` that the schema does not define.
    fn incremental(&mut self, directive: &'a Directive, location: DirectiveLocation) {
        incremental::check(&mut self.cx, &mut self.labels, directive, location);
        arguments::unique(&mut self.cx, directive.arguments);
        let document = self.cx.doc;
        for argument in &document[directive.arguments] {
            let position = incremental::position(&self.cx, directive, argument);
            self.value(&argument.value, position, true);
        }
    }

    fn argument(&mut self, argument: &'a Argument, args: Option<Args<'a>>) {
        let found = args.and_then(|args| self.cx.arg(args, self.cx.text(argument.name)));
        let position = Position {
            ty: found.map(|input| input.ty),
            has_default: found.is_some_and(|input| input.has_default),
            object: None,
        };
        self.value(&argument.value, position, true);
    }

    /// `check` is off below a value that was already refused as a whole, or that a custom scalar accepts as it is.
    fn value(&mut self, value: &'a Value, position: Position, mut check: bool) {
        let document = self.cx.doc;
        match value.kind {
            ValueKind::Variable(name) => self.usages.push(Usage {
                name: document.name(name),
                span: value.span,
                position,
            }),
            ValueKind::List(items) => {
                let item = position.ty.map(item_type);
                if check && !position.ty.is_some_and(|ty| ty.wrapping.is_list()) {
                    values::leaf(&mut self.cx, value, item);
                    check = false;
                }
                let inside = Position {
                    ty: item,
                    has_default: false,
                    object: None,
                };
                for item in &document[items] {
                    self.value(item, inside, check);
                }
            }
            ValueKind::Object(entries) => {
                let object = input::object_type(&self.cx, position.ty);
                if check && !input::object(&mut self.cx, value, entries, position.ty, object) {
                    check = false;
                }
                self.object_fields(entries, object, check);
            }
            _ if check => values::leaf(&mut self.cx, value, position.ty),
            _ => {}
        }
    }

    fn object_fields(
        &mut self,
        entries: List<ogive_syntax::ast::ObjectField>,
        object: Option<TypeId>,
        check: bool,
    ) {
        let document = self.cx.doc;
        let mut seen = literal::Seen::default();
        for entry in &document[entries] {
            let name = document.name(entry.name);
            let found = object.and_then(|o| self.cx.schema.input_field_by_name(o, name));
            let found = found.map(|id| self.cx.input(id));
            if check
                && found.is_none()
                && let Some(object) = object
            {
                input::unknown_field(&mut self.cx, entry, object);
            }
            if let Some(first) = seen.insert(name, entry.name.span()) {
                self.cx.report(&[first, entry.name.span()], |_| {
                    format!("There can be only one input field named \"{name}\".")
                });
            }
            let inside = Position {
                ty: found.map(|f| f.ty),
                has_default: found.is_some_and(|f| f.has_default),
                object,
            };
            self.value(&entry.value, inside, check);
        }
    }
}

/// What the items of a list literal are checked against where `ty` is expected: the item type, or the type itself
/// without non-null where no list is expected.
fn item_type(ty: Type) -> Type {
    let wrapping: Wrapping = ty.wrapping.nullable();
    Type {
        id: ty.id,
        wrapping: wrapping.item().unwrap_or(wrapping),
    }
}
