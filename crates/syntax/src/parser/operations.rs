//! Operations, fragments, selection sets, arguments and directives (specification 2.3 to 2.8, 2.10, 2.12).

use super::{Failed, Head, Parser, Step};
use crate::{Span, ast::*, lexer::TokenKind};

/// The explicit stack of nested selection sets.
#[derive(Default)]
pub(super) struct Scratch {
    /// Finished selections of all open selection sets, innermost last.
    items: Vec<Selection>,
    open: Vec<OpenSet>,
}

/// A selection set whose `}` was not read yet.
#[derive(Clone, Copy)]
struct OpenSet {
    /// Where its `{` is.
    start: u32,
    /// Its first selection on the scratch stack.
    first: usize,
    /// The selection it belongs to; `None` for the outermost one.
    owner: Option<Selection>,
}

/// What one selection turned out to be.
enum Selected {
    Whole(Selection),
    /// The next token is the `{` of its selection set.
    WithSet(Selection),
}

impl Parser<'_> {
    pub(super) fn shorthand_query(&mut self) -> Step<Definition> {
        let selection_set = self.selection_set()?;
        Ok(Definition::Operation(OperationDefinition {
            span: selection_set.span,
            description: None,
            kind: OperationKind::Query,
            name: None,
            variables: List::EMPTY,
            directives: List::EMPTY,
            selection_set,
            shorthand: true,
        }))
    }

    /// The whole text as the inside of one selection set.
    pub(super) fn bare_selection_set(&mut self) {
        let Ok(selection_set) = self.selections(TokenKind::Eof) else {
            return;
        };
        self.doc
            .definitions
            .push(Definition::Operation(OperationDefinition {
                span: selection_set.span,
                description: None,
                kind: OperationKind::Query,
                name: None,
                variables: List::EMPTY,
                directives: List::EMPTY,
                selection_set,
                shorthand: true,
            }));
    }

    pub(super) fn operation(&mut self, head: Head, kind: OperationKind) -> Step<Definition> {
        self.bump();
        let name = if self.at(TokenKind::Name) {
            Some(self.name()?)
        } else {
            None
        };
        let variables = self.variable_definitions()?;
        let directives = self.directives(false)?;
        let selection_set = self.selection_set()?;
        Ok(Definition::Operation(OperationDefinition {
            span: self.span_from(head.start),
            description: head.description,
            kind,
            name,
            variables,
            directives,
            selection_set,
            shorthand: false,
        }))
    }

    pub(super) fn fragment(&mut self, head: Head) -> Step<Definition> {
        self.bump();
        if self.at_keyword("on") {
            return Err(self.unexpected());
        }
        let name = self.name()?;
        self.expect_keyword("on")?;
        let type_condition = self.name()?;
        let directives = self.directives(false)?;
        let selection_set = self.selection_set()?;
        Ok(Definition::Fragment(FragmentDefinition {
            span: self.span_from(head.start),
            description: head.description,
            name,
            type_condition,
            directives,
            selection_set,
        }))
    }

    fn variable_definitions(&mut self) -> Step<List<VariableDefinition>> {
        if !self.eat(TokenKind::ParenL) {
            return Ok(List::EMPTY);
        }
        let first = self.doc.variables.len();
        loop {
            let variable = self.variable_definition()?;
            self.doc.variables.push(variable);
            if self.eat(TokenKind::ParenR) {
                return Ok(List::new(first, self.doc.variables.len() - first));
            }
        }
    }

    fn variable_definition(&mut self) -> Step<VariableDefinition> {
        let start = self.token.start;
        let description = self.description();
        self.expect(TokenKind::Dollar)?;
        let name = self.name()?;
        self.expect(TokenKind::Colon)?;
        let ty = self.type_ref()?;
        let default = self.default_value()?;
        let directives = self.directives(true)?;
        Ok(VariableDefinition {
            span: self.span_from(start),
            description,
            name,
            ty,
            default,
            directives,
        })
    }

    /// `{ .. }`
    fn selection_set(&mut self) -> Step<SelectionSet> {
        if !self.at(TokenKind::BraceL) {
            return Err(self.expected(TokenKind::BraceL.describe()));
        }
        self.selections(TokenKind::BraceR)
    }

    /// Selections up to `close`, which is `}` (then the next token is the `{`) or the end of the text.
    fn selections(&mut self, close: TokenKind) -> Step<SelectionSet> {
        let (depth, first, opened) = (
            self.depth,
            self.selections.items.len(),
            self.selections.open.len(),
        );
        let set = self.selections_in(close);
        self.depth = depth;
        self.selections.items.truncate(first);
        self.selections.open.truncate(opened);
        set
    }

    fn selections_in(&mut self, outer_close: TokenKind) -> Step<SelectionSet> {
        self.enter()?;
        let mut set = OpenSet {
            start: self.token.start,
            first: self.selections.items.len(),
            owner: None,
        };
        let mut close = outer_close;
        if outer_close == TokenKind::BraceR {
            self.bump();
        } else {
            set.start = 0;
        }
        if self.doc.selections.capacity() == 0 {
            // Selections with a short name, their white space and part of a brace pair.
            self.doc.selections.reserve(self.text.len() / 24 + 4);
        }
        loop {
            let start = self.token.start;
            match self.selection() {
                Ok(Selected::Whole(selection)) => self.selections.items.push(selection),
                Ok(Selected::WithSet(owner)) => {
                    self.enter()?;
                    self.selections.open.push(set);
                    set = OpenSet {
                        start: self.token.start,
                        first: self.selections.items.len(),
                        owner: Some(owner),
                    };
                    close = TokenKind::BraceR;
                    self.bump();
                    continue;
                }
                Err(Failed) => self.recover_in_braces(start, set.start, close)?,
            }
            while self.at(close) {
                if close == TokenKind::BraceR {
                    self.bump();
                }
                let items = &mut self.selections.items;
                let from = self.doc.selections.len();
                self.doc
                    .selections
                    .extend_from_slice(items.get(set.first..).unwrap_or(&[]));
                items.truncate(set.first);
                let finished = SelectionSet {
                    span: Span::new(set.start, self.prev_end),
                    items: List::new(from, self.doc.selections.len() - from),
                };
                let Some(mut owner) = set.owner else {
                    return Ok(finished);
                };
                match &mut owner {
                    Selection::Field(field) => {
                        field.span.end = finished.span.end;
                        field.selection_set = Some(finished);
                    }
                    Selection::Inline(inline) => {
                        inline.span.end = finished.span.end;
                        inline.selection_set = finished;
                    }
                    Selection::Spread(_) => {}
                }
                items.push(owner);
                self.depth -= 1;
                let Some(outer) = self.selections.open.pop() else {
                    return Ok(finished);
                };
                set = outer;
                if set.owner.is_none() {
                    close = outer_close;
                }
            }
        }
    }

    /// One selection up to, but without, its selection set.
    #[inline]
    fn selection(&mut self) -> Step<Selected> {
        let start = self.token.start;
        if self.at(TokenKind::Spread) {
            return self.spread_or_inline(start);
        }
        let mut name = self.name()?;
        let mut alias = None;
        if self.eat(TokenKind::Colon) {
            alias = Some(name);
            name = self.name()?;
        }
        let arguments = self.arguments(false)?;
        let directives = self.directives(false)?;
        let field = Selection::Field(Field {
            span: self.span_from(start),
            alias,
            name,
            arguments,
            directives,
            selection_set: None,
        });
        Ok(if self.at(TokenKind::BraceL) {
            Selected::WithSet(field)
        } else {
            Selected::Whole(field)
        })
    }

    fn spread_or_inline(&mut self, start: u32) -> Step<Selected> {
        self.bump();
        let mut type_condition = None;
        if self.at(TokenKind::Name) {
            if !self.eat_keyword("on") {
                let name = self.name()?;
                let directives = self.directives(false)?;
                return Ok(Selected::Whole(Selection::Spread(FragmentSpread {
                    span: self.span_from(start),
                    name,
                    directives,
                })));
            }
            type_condition = Some(self.name()?);
        }
        let directives = self.directives(false)?;
        let inline = Selection::Inline(InlineFragment {
            span: self.span_from(start),
            type_condition,
            directives,
            // Filled in at its `}`.
            selection_set: SelectionSet {
                span: Span::new(self.prev_end, self.prev_end),
                items: List::EMPTY,
            },
        });
        if self.at(TokenKind::BraceL) {
            Ok(Selected::WithSet(inline))
        } else {
            Err(self.expected(TokenKind::BraceL.describe()))
        }
    }

    /// `(name: value ..)` if there is one.
    #[inline]
    pub(super) fn arguments(&mut self, constant: bool) -> Step<List<Argument>> {
        if self.at(TokenKind::ParenL) {
            self.some_arguments(constant)
        } else {
            Ok(List::EMPTY)
        }
    }

    fn some_arguments(&mut self, constant: bool) -> Step<List<Argument>> {
        self.bump();
        let first = self.doc.arguments.len();
        loop {
            let start = self.token.start;
            let name = self.name()?;
            self.expect(TokenKind::Colon)?;
            let value = self.value(constant)?;
            let span = self.span_from(start);
            self.doc.arguments.push(Argument { span, name, value });
            if self.eat(TokenKind::ParenR) {
                return Ok(List::new(first, self.doc.arguments.len() - first));
            }
        }
    }

    /// `@name(args)` any number of times.
    #[inline]
    pub(super) fn directives(&mut self, constant: bool) -> Step<List<Directive>> {
        if self.at(TokenKind::At) {
            self.some_directives(constant)
        } else {
            Ok(List::EMPTY)
        }
    }

    fn some_directives(&mut self, constant: bool) -> Step<List<Directive>> {
        let first = self.doc.directives.len();
        while self.at(TokenKind::At) {
            let start = self.token.start;
            self.bump();
            let name = self.name()?;
            let arguments = self.arguments(constant)?;
            let span = self.span_from(start);
            self.doc.directives.push(Directive {
                span,
                name,
                arguments,
            });
        }
        Ok(List::new(first, self.doc.directives.len() - first))
    }
}
