//! What every rule shares: schema and document, fragments by name, field and argument look-up with the
//! introspection meta-fields, and the list of diagnostics.

use ogive_base::{BitSet, Diagnostic, FastMap, Span};
use ogive_schema::{DirectiveId, InputId, OperationKind, Schema, Type, TypeId, Wrapping, suggest};
use ogive_syntax::{
    Document, Name,
    ast::{Definition, FragmentDefinition, Selection, SelectionSet, ValueKind},
};

use super::{CODE, CODE_TOO_COMPLEX, ValidationLimits};
use crate::{coerce::MESSAGES_BYTES_MAX, ir::FieldRef};

/// The arguments of a field or directive.
#[derive(Clone, Copy)]
pub(super) enum Args<'a> {
    Rows(&'a [InputId]),
    /// `name: String!` of `__type`, which has no row.
    TypeName,
}

/// One argument definition or input field.
#[derive(Clone, Copy)]
pub(super) struct Input<'a> {
    pub(super) name: &'a str,
    pub(super) ty: Type,
    pub(super) has_default: bool,
}

impl Input<'_> {
    pub(super) fn is_required(&self) -> bool {
        self.ty.wrapping.is_non_null() && !self.has_default
    }
}

/// Where a value stands: what is expected there.
#[derive(Clone, Copy, Default)]
pub(super) struct Position {
    /// The expected type; `None` if unknown.
    pub(super) ty: Option<Type>,
    /// Whether the place has a default of its own.
    pub(super) has_default: bool,
    /// The type of the input object whose field it is.
    pub(super) object: Option<TypeId>,
}

/// A fragment spread somewhere inside a definition.
#[derive(Clone, Copy)]
pub(super) struct Spread<'a> {
    pub(super) name: &'a str,
    /// The whole spread.
    pub(super) span: Span,
    /// Index of the fragment, if there is one of that name.
    pub(super) fragment: Option<usize>,
}

/// Types of the meta-fields; `None` only in a schema without introspection types.
struct MetaTypes {
    string: Option<TypeId>,
    schema: Option<TypeId>,
    ty: Option<TypeId>,
}

pub(super) struct Context<'a> {
    pub(super) schema: &'a Schema,
    pub(super) doc: &'a Document,
    pub(super) limits: &'a ValidationLimits,
    /// Fragment definitions in document order.
    pub(super) fragments: Vec<&'a FragmentDefinition>,
    /// Index into `fragments`; of several with one name, the last.
    fragments_by_name: FastMap<&'a str, usize>,
    /// The spreads inside each fragment definition, outer selection sets first.
    spreads: Vec<Vec<Spread<'a>>>,
    meta: MetaTypes,
    /// Violations so far, in the order in which they are reported.
    pub(super) out: Vec<Diagnostic>,
    /// Bytes of their messages, which have names that are as long as clients write them.
    words: usize,
}

impl<'a> Context<'a> {
    pub(super) fn new(schema: &'a Schema, doc: &'a Document, limits: &'a ValidationLimits) -> Self {
        let mut fragments = Vec::new();
        let mut fragments_by_name = FastMap::default();
        for definition in &doc.definitions {
            if let Definition::Fragment(fragment) = definition {
                fragments_by_name.insert(doc.name(fragment.name), fragments.len());
                fragments.push(fragment);
            }
        }
        let mut cx = Context {
            schema,
            doc,
            limits,
            fragments,
            fragments_by_name,
            spreads: Vec::new(),
            meta: MetaTypes {
                string: schema.type_by_name("String"),
                schema: schema.type_by_name("__Schema"),
                ty: schema.type_by_name("__Type"),
            },
            out: Vec::new(),
            words: 0,
        };
        cx.spreads = cx
            .fragments
            .iter()
            .map(|fragment| cx.spreads_in(&fragment.selection_set))
            .collect();
        cx
    }

    /// All spreads in a selection set and below: those of one set in order, then those of the sets below it,
    /// last set first. Messages depend on that order.
    pub(super) fn spreads_in(&self, set: &'a SelectionSet) -> Vec<Spread<'a>> {
        let mut found = Vec::new();
        let mut sets = vec![set];
        while let Some(set) = sets.pop() {
            for selection in &self.doc[set.items] {
                match selection {
                    Selection::Spread(spread) => {
                        let name = self.text(spread.name);
                        found.push(Spread {
                            name,
                            span: spread.span,
                            fragment: self.fragment(name),
                        });
                    }
                    Selection::Field(field) => sets.extend(&field.selection_set),
                    Selection::Inline(inline) => sets.push(&inline.selection_set),
                }
            }
        }
        found
    }

    /// The spreads inside fragment `index`, in the order of [`spreads_in`](Self::spreads_in).
    pub(super) fn spreads_of(&self, index: usize) -> &[Spread<'a>] {
        &self.spreads[index]
    }

    /// The fragments that these spreads reach, directly or not, in the order in which a depth-first search that
    /// takes the last fragment first finds them. Marks them in `seen` and counts the spreads it looks at.
    pub(super) fn reach(
        &self,
        spreads: &[Spread<'a>],
        seen: &mut BitSet,
        steps: &mut u32,
    ) -> Vec<usize> {
        let mut order = Vec::new();
        let mut pending: Vec<usize> = Vec::new();
        let mut visit = |spreads: &[Spread<'a>], pending: &mut Vec<usize>| {
            *steps = steps.saturating_add(spreads.len() as u32);
            for spread in spreads {
                if let Some(fragment) = spread.fragment
                    && seen.insert(fragment as u32)
                {
                    order.push(fragment);
                    pending.push(fragment);
                }
            }
        };
        visit(spreads, &mut pending);
        while let Some(fragment) = pending.pop() {
            visit(self.spreads_of(fragment), &mut pending);
        }
        order
    }

    /// Somewhere that is nested more than `most` levels deep, if anything is.
    pub(super) fn deepest_above(&self, most: u32) -> Option<Span> {
        let doc = self.doc;
        let mut sets = Vec::new();
        let mut values = Vec::new();
        for definition in &doc.definitions {
            match definition {
                Definition::Operation(operation) => {
                    sets.push((&operation.selection_set, 1));
                    values.extend(
                        doc[operation.variables]
                            .iter()
                            .filter_map(|v| Some((v.default.as_ref()?, 1))),
                    );
                }
                Definition::Fragment(fragment) => sets.push((&fragment.selection_set, 1)),
                _ => {}
            }
        }
        while let Some((set, depth)) = sets.pop() {
            if depth > most {
                return Some(set.span);
            }
            for selection in &doc[set.items] {
                let (inner, directives) = match selection {
                    Selection::Field(field) => {
                        values.extend(doc[field.arguments].iter().map(|a| (&a.value, depth + 1)));
                        (field.selection_set.as_ref(), field.directives)
                    }
                    Selection::Inline(inline) => (Some(&inline.selection_set), inline.directives),
                    Selection::Spread(spread) => (None, spread.directives),
                };
                sets.extend(inner.map(|set| (set, depth + 1)));
                for directive in &doc[directives] {
                    values.extend(
                        doc[directive.arguments]
                            .iter()
                            .map(|a| (&a.value, depth + 1)),
                    );
                }
            }
        }
        while let Some((value, depth)) = values.pop() {
            if depth > most {
                return Some(value.span);
            }
            match value.kind {
                ValueKind::List(items) => values.extend(doc[items].iter().map(|v| (v, depth + 1))),
                ValueKind::Object(fields) => {
                    values.extend(doc[fields].iter().map(|f| (&f.value, depth + 1)));
                }
                _ => {}
            }
        }
        None
    }

    /// Names like the one that was written, for the end of a message; nothing where names of the schema are not told.
    pub(super) fn did_you_mean<'n>(
        &self,
        kind: Option<&str>,
        written: &str,
        names: impl IntoIterator<Item = &'n str>,
    ) -> String {
        if self.limits.suggestions {
            suggest::did_you_mean(kind, &suggest::suggestions(written, names))
        } else {
            String::new()
        }
    }

    pub(super) fn text(&self, name: Name) -> &'a str {
        self.doc.name(name)
    }

    /// Index of the fragment of that name.
    pub(super) fn fragment(&self, name: &str) -> Option<usize> {
        self.fragments_by_name.get(name).copied()
    }

    /// Whether further violations would only be cut off again.
    pub(super) fn is_full(&self) -> bool {
        self.out.len() > self.limits.errors_max as usize || self.is_full_of_words()
    }

    /// Whether there are too many bytes of messages, however few messages.
    pub(super) fn is_full_of_words(&self) -> bool {
        self.words > MESSAGES_BYTES_MAX
    }

    /// Reports a violation at `places`, the primary one first. `message` is only made if it will be kept.
    pub(super) fn report(&mut self, places: &[Span], message: impl FnOnce(&Self) -> String) {
        if self.is_full() {
            return;
        }
        let diagnostic = self.violation(places, message(self));
        self.words += diagnostic.message.len();
        self.out.push(diagnostic);
    }

    pub(super) fn violation(&self, places: &[Span], message: String) -> Diagnostic {
        self.diagnostic(CODE, places, message)
    }

    /// Says that a limit of this implementation was met.
    pub(super) fn too_complex(&self, place: Span, message: String) -> Diagnostic {
        self.diagnostic(CODE_TOO_COMPLEX, &[place], message)
            .help("split the operation, or spread fewer fragments in the same places")
    }

    fn diagnostic(&self, code: &'static str, places: &[Span], message: String) -> Diagnostic {
        let source = self.doc.source_id();
        places
            .iter()
            .fold(Diagnostic::error(code, message), |d, span| {
                d.label(source, *span, "")
            })
    }

    /// The field `name` of `parent`, meta-fields included.
    pub(super) fn field(&self, parent: Option<TypeId>, name: &str) -> Option<FieldRef> {
        let parent = parent?;
        if name.starts_with("__") {
            let is_query_root = self.schema.root(OperationKind::Query) == Some(parent);
            match name {
                "__typename" if self.schema.types[parent].kind.is_composite() => {
                    return Some(FieldRef::Typename);
                }
                "__schema" if is_query_root => return Some(FieldRef::Schema),
                "__type" if is_query_root => return Some(FieldRef::Type),
                _ => {}
            }
        }
        self.schema.field_by_name(parent, name).map(FieldRef::Field)
    }

    pub(super) fn field_type(&self, field: FieldRef) -> Option<Type> {
        let (id, wrapping) = match field {
            FieldRef::Field(id) => return Some(self.schema.fields[id].ty),
            FieldRef::Typename => (self.meta.string?, Wrapping::NON_NULL),
            FieldRef::Schema => (self.meta.schema?, Wrapping::NON_NULL),
            FieldRef::Type => (self.meta.ty?, Wrapping::NULLABLE),
        };
        Some(Type { id, wrapping })
    }

    pub(super) fn field_args(&self, field: FieldRef) -> Args<'a> {
        match field {
            FieldRef::Field(id) => Args::Rows(&self.schema.fields[id].args),
            FieldRef::Typename | FieldRef::Schema => Args::Rows(&[]),
            FieldRef::Type => Args::TypeName,
        }
    }

    pub(super) fn directive_args(&self, directive: DirectiveId) -> Args<'a> {
        Args::Rows(&self.schema.directive_defs[directive].args)
    }

    pub(super) fn input(&self, id: InputId) -> Input<'a> {
        let row = &self.schema.inputs[id];
        Input {
            name: self.schema.name(row.name),
            ty: row.ty,
            has_default: row.default.is_some(),
        }
    }

    pub(super) fn arg(&self, args: Args<'a>, name: &str) -> Option<Input<'a>> {
        match args {
            Args::Rows(rows) => self.schema.arg_by_name(rows, name).map(|id| self.input(id)),
            Args::TypeName => self.arg_list(args).find(|input| input.name == name),
        }
    }

    pub(super) fn arg_list(&self, args: Args<'a>) -> impl Iterator<Item = Input<'a>> {
        let (rows, meta) = match args {
            Args::Rows(rows) => (rows, None),
            Args::TypeName => (&[][..], self.meta.string),
        };
        let meta = meta.map(|id| Input {
            name: "name",
            ty: Type {
                id,
                wrapping: Wrapping::NON_NULL,
            },
            has_default: false,
        });
        rows.iter().map(|id| self.input(*id)).chain(meta)
    }

    /// A named type under the wrapping of a type reference of the document.
    pub(super) fn type_ref(&self, ty: &ogive_syntax::ast::TypeRef) -> Option<Type> {
        Some(Type {
            id: self.schema.type_by_name(self.text(ty.name))?,
            wrapping: ty.wrapping,
        })
    }

    /// The type of that name if it is composite.
    pub(super) fn composite(&self, ty: Option<TypeId>) -> Option<TypeId> {
        ty.filter(|id| self.schema.types[*id].kind.is_composite())
    }

    /// A type as the document wrote it, known or not.
    pub(super) fn display(&self, ty: Type) -> String {
        self.schema.display_type(ty)
    }
}

/// Names that appear more than once, in order of first appearance, with all their places.
pub(super) fn duplicates<'a>(
    names: impl ExactSizeIterator<Item = (&'a str, Span)>,
) -> Vec<(&'a str, Vec<Span>)> {
    if names.len() < 2 {
        return Vec::new();
    }
    let mut index: FastMap<&str, usize> = FastMap::default();
    let mut groups: Vec<(&str, Vec<Span>)> = Vec::new();
    for (name, span) in names {
        let at = *index.entry(name).or_insert_with(|| {
            groups.push((name, Vec::new()));
            groups.len() - 1
        });
        groups[at].1.push(span);
    }
    groups.retain(|(_, places)| places.len() > 1);
    groups
}
