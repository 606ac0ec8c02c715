//! The checker, which is the compiler: one pass over a mapping finds mistakes, what is read and what is given, and
//! writes the program.
//!
//! [`Compiler`] walks expressions with what is [`Known`] of values: their shape, and the place of an input that they come
//! from. It recurses over expressions, whose depth the parser bounds.

mod compare;
mod environment;
mod methods;
mod objects;
mod paths;

use ogive_base::{Diagnostic, FastSet, IdVec, Severity, Span};
use ogive_json::write_string;

use crate::{
    ast::{ExprId, ExprKind, FallbackOperator, Mapping, Root},
    diagnostics::DiagnosticList,
    kinds::Kinds,
    need::{NeedId, Needs},
    origin::Origin,
    program::{Node, NodeId, Program, Rows, Text},
    shape::{Shape, ShapeId, Shapes},
    variable::Variable,
};

pub use environment::Environment;

/// Code of a method or variable that does not exist, or not here.
pub const UNKNOWN_NAME: &str = "CONNECTORS_UNKNOWN_NAME";
/// Code of a value of a kind that cannot stand where it stands.
pub const WRONG_TYPE: &str = "CONNECTORS_WRONG_TYPE";
/// Code of a selected field that the type does not have.
pub const FIELD_NOT_FOUND: &str = "SELECTED_FIELD_NOT_FOUND";
/// Code of a group of fields for a field whose type has none.
pub const GROUP_IS_NOT_OBJECT: &str = "GROUP_SELECTION_IS_NOT_OBJECT";
/// Code of something that works, but not with every version.
pub const NEWER_THAN_LINK: &str = "CONNECTORS_NEWER_THAN_LINK";

/// What compiling a mapping gives.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The program; `None` if there are errors.
    pub program: Option<Program>,
    /// The shape of what the program gives.
    pub gives: ShapeId,
    /// All shapes.
    pub shapes: Shapes,
    /// Errors and warnings, in the order of the text.
    pub diagnostics: Vec<Diagnostic>,
}

/// Checks a mapping in its environment and compiles it.
pub fn compile(mapping: &Mapping, origin: &Origin, environment: &Environment) -> Compiled {
    let mut compiler = Compiler::new(mapping, origin, environment);
    let (root, root_selects, known) = compiler.root();
    compiler.expect_target(known.shape, mapping.exprs[mapping.root.expr()].span);
    let fails = compiler.diagnostics.has_errors();
    let program = Program {
        origin: origin.clone(),
        texts: compiler.texts,
        nodes: compiler.nodes,
        operands: compiler.operands,
        entries: compiler.entries,
        steps: compiler.steps,
        needs: compiler.needs,
        body: compiler.body,
        variables: compiler.variables,
        root,
        root_selects,
        locals: compiler.locals_max,
    };
    Compiled {
        program: (!fails).then_some(program),
        gives: known.shape,
        shapes: compiler.shapes,
        diagnostics: compiler.diagnostics.into_vec(),
    }
}

/// What is known of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Known {
    shape: ShapeId,
    /// The place it comes from, if it comes from one as it is: as the value there, an item of it, or a list of items.
    need: Option<NeedId>,
}

impl Known {
    /// A value that is made by the program.
    fn made(shape: ShapeId) -> Self {
        Known { shape, need: None }
    }
}

/// What names mean where an expression stands.
#[derive(Clone, Copy)]
struct Scope {
    /// `$`; `None` where there is none.
    dollar: Option<Known>,
    /// `@`.
    at: Option<Known>,
}

struct Compiler<'m> {
    mapping: &'m Mapping,
    origin: &'m Origin,
    environment: &'m Environment,
    shapes: Shapes,
    needs: Needs,
    body: NeedId,
    variables: [Option<NeedId>; Variable::COUNT],
    /// Variables that `->as` bound, innermost last. Those of a path end with it.
    locals: Vec<Local<'m>>,
    locals_max: usize,
    texts: Vec<u8>,
    nodes: IdVec<NodeId, Node>,
    operands: Vec<NodeId>,
    entries: Vec<crate::program::EntryNode>,
    steps: Vec<crate::program::StepNode>,
    /// What was compared: a shape that is given, a target, and where. Types refer to each other, so most pairs come often.
    compared: FastSet<(ShapeId, ShapeId, Span)>,
    diagnostics: DiagnosticList,
}

/// A variable that `->as` bound.
struct Local<'m> {
    name: &'m str,
    slot: u32,
    known: Known,
}

impl<'m> Compiler<'m> {
    fn new(mapping: &'m Mapping, origin: &'m Origin, environment: &'m Environment) -> Self {
        let mut needs = Needs::default();
        let body = needs.add_root();
        Compiler {
            mapping,
            origin,
            environment,
            shapes: environment.shapes.clone(),
            needs,
            body,
            variables: [None; Variable::COUNT],
            locals: Vec::new(),
            locals_max: 0,
            texts: Vec::new(),
            nodes: IdVec::new(),
            operands: Vec::new(),
            entries: Vec::new(),
            steps: Vec::new(),
            compared: FastSet::default(),
            diagnostics: DiagnosticList::new(environment.diagnostics_max),
        }
    }

    fn root(&mut self) -> (NodeId, bool, Known) {
        let body = Known {
            shape: self.environment.body.unwrap_or(Shapes::UNKNOWN),
            need: Some(self.body),
        };
        let dollar = self.environment.body.is_some().then_some(body);
        let scope = Scope { dollar, at: dollar };
        match self.mapping.root {
            Root::Selection(expr) => {
                let (node, known) = self.expr(expr, scope);
                let shape = match dollar {
                    Some(dollar) => self.shapes.mapped_over(dollar.shape, known.shape),
                    None => known.shape,
                };
                (node, true, Known::made(shape))
            }
            Root::Value(expr) => {
                let (node, known) = self.used(expr, scope);
                (node, false, known)
            }
        }
    }

    /// Compiles an expression whose value is used as a whole.
    fn used(&mut self, expr: ExprId, scope: Scope) -> (NodeId, Known) {
        let (node, known) = self.expr(expr, scope);
        self.mark_used(known);
        (node, known)
    }
    fn mark_used(&mut self, known: Known) {
        if let Some(need) = known.need {
            self.needs.mark_used(need);
        }
    }

    fn expr(&mut self, id: ExprId, scope: Scope) -> (NodeId, Known) {
        let mapping = self.mapping;
        let expr = &mapping.exprs[id];
        let (node, known) = match &expr.kind {
            ExprKind::Null | ExprKind::Invalid => (Node::Null, Known::made(Shapes::NULL)),
            ExprKind::Bool(value) => (Node::Bool(*value), Known::made(Shapes::BOOL)),
            ExprKind::Number(number) => {
                let text = self.add_text(number.as_bytes());
                (Node::Number(text), Known::made(Shapes::NUMBER))
            }
            ExprKind::String(string) => {
                let shape = self.shapes.add(Shape::Literal(string.clone()));
                (Node::String(self.add_string(string)), Known::made(shape))
            }
            ExprKind::List(items) => {
                let mut nodes = Vec::with_capacity(items.len());
                let mut shapes = Vec::with_capacity(items.len());
                for item in items {
                    let (node, known) = self.used(*item, scope);
                    nodes.push(node);
                    shapes.push(known.shape);
                }
                let item = self.shapes.one_of(shapes);
                let shape = self.shapes.add(Shape::List(item));
                (Node::List(self.add_operands(&nodes)), Known::made(shape))
            }
            ExprKind::Object(entries) => self.object(entries, scope),
            ExprKind::Path(path) => self.path(path, scope),
            ExprKind::Fallback(fallback) => {
                self.fallback(fallback.operator, &fallback.operands, scope)
            }
        };
        (self.nodes.push(node), known)
    }

    fn fallback(
        &mut self,
        operator: FallbackOperator,
        operands: &[ExprId],
        scope: Scope,
    ) -> (Node, Known) {
        let mut nodes = Vec::with_capacity(operands.len());
        let mut all: Vec<Known> = Vec::with_capacity(operands.len());
        for (index, operand) in operands.iter().enumerate() {
            let (node, known) = self.expr(*operand, scope);
            let is_last = index + 1 == operands.len();
            let is_dropped = operator == FallbackOperator::Nullish && known.shape == Shapes::NULL;
            if is_last || !is_dropped {
                all.push(known);
            }
            nodes.push(node);
        }
        let known = self.join(&all);
        let rows = self.add_operands(&nodes);
        (Node::Fallback(operator, rows), known)
    }

    /// What is known of a value that is one of several.
    fn join(&mut self, all: &[Known]) -> Known {
        let shape = self
            .shapes
            .one_of(all.iter().map(|known| known.shape).collect());
        let first = all.first().and_then(|known| known.need);
        let is_same = all.iter().all(|known| known.need == first);
        if !is_same {
            // Where it comes from cannot be followed any more.
            for known in all {
                self.mark_used(*known);
            }
        }
        Known {
            shape,
            need: first.filter(|_| is_same),
        }
    }

    // Tables.

    fn add_text(&mut self, json: &[u8]) -> Text {
        let start = self.texts.len() as u32;
        self.texts.extend_from_slice(json);
        Text {
            start,
            end: self.texts.len() as u32,
        }
    }
    fn add_string(&mut self, text: &str) -> Text {
        let start = self.texts.len() as u32;
        write_string(&mut self.texts, text);
        Text {
            start,
            end: self.texts.len() as u32,
        }
    }
    fn add_operands(&mut self, nodes: &[NodeId]) -> Rows {
        Rows::append(&mut self.operands, nodes.iter().copied())
    }

    // Diagnostics.

    fn report(&mut self, code: &'static str, span: Span, message: impl Into<String>) {
        self.report_with(code, span, message, |diagnostic| diagnostic);
    }
    fn report_with(
        &mut self,
        code: &'static str,
        span: Span,
        message: impl Into<String>,
        complete: impl FnOnce(Diagnostic) -> Diagnostic,
    ) {
        let label = self.origin.span(span);
        let diagnostic = Diagnostic::error(code, message).label(self.origin.source(), label, "");
        self.diagnostics.push(complete(diagnostic));
    }
    fn warn(&mut self, code: &'static str, span: Span, message: impl Into<String>) {
        self.report_with(code, span, message, |mut diagnostic| {
            diagnostic.severity = Severity::Warning;
            diagnostic
        });
    }
    /// Reports a value whose kind can never be one of `expected`.
    fn expect_kinds(&mut self, shape: ShapeId, expected: Kinds, span: Span, what: &str) {
        let found = self.shapes.kinds(shape);
        if !found.meets(expected) {
            self.report(
                WRONG_TYPE,
                span,
                format!("{what} expects {expected}, found {found}"),
            );
        }
    }
}
