//! Paths: their roots, steps and selections.

use ogive_base::Span;

use super::{Compiler, Known, Local, Scope, UNKNOWN_NAME, WRONG_TYPE};
use crate::{
    ast::{ExprId, ExprKind, MethodCall, Path, PathRoot, Step, StepKind},
    method::Method,
    program::{KeyNode, Node, PathNode, RootNode, Rows, SelectionNode, StepNode, StepRole},
    shape::{Shape, ShapeId, Shapes},
    variable::Variable,
};

impl<'m> Compiler<'m> {
    pub(super) fn path(&mut self, path: &'m Path, scope: Scope) -> (Node, Known) {
        let locals = self.locals.len();
        let (root, mut known) = self.path_root(path, scope);
        let mut steps = Vec::with_capacity(path.steps.len());
        for step in &path.steps {
            let (kind, next) = self.step(step, known, scope);
            known = next;
            if let Some(kind) = kind {
                steps.push(StepNode {
                    span: step.span,
                    optional: step.optional,
                    kind,
                });
            }
        }
        let selection = path.selection.map(|object| {
            let (node, selected) = self.selection(object, known);
            known = selected;
            node
        });
        self.locals.truncate(locals);
        let node = PathNode {
            root,
            root_span: path.root_span,
            optional: path.optional,
            steps: Rows::append(&mut self.steps, steps),
            selection,
        };
        (Node::Path(node), known)
    }

    fn path_root(&mut self, path: &'m Path, scope: Scope) -> (RootNode, Known) {
        let span = path.root_span;
        match &path.root {
            PathRoot::Dollar => {
                let known = self.dollar(scope, span, "`$`");
                (RootNode::Dollar, known)
            }
            PathRoot::At => {
                let known = scope.at.unwrap_or_else(|| self.dollar(scope, span, "`@`"));
                (RootNode::At, known)
            }
            PathRoot::Key(key) => {
                let shown = format!("`{}`, a key of the response,", ogive_base::bounded(key, 40));
                let dollar = self.dollar(scope, span, &shown);
                let (node, known) = self.key(dollar, key, span);
                (RootNode::Key(node), known)
            }
            PathRoot::Variable(name) => self.variable(name, span),
            PathRoot::Group(expr) => {
                let (node, known) = self.expr(*expr, scope);
                (RootNode::Node(node), known)
            }
        }
    }

    fn dollar(&mut self, scope: Scope, span: Span, shown: &str) -> Known {
        if let Some(dollar) = scope.dollar {
            return dollar;
        }
        let place = self.environment.place;
        self.report_with(
            UNKNOWN_NAME,
            span,
            format!("{shown} does not exist in {place}: there is no response yet"),
            |diagnostic| diagnostic.help("begin with a variable, such as `$args` or `$this`"),
        );
        Known::made(Shapes::UNKNOWN)
    }

    fn variable(&mut self, name: &str, span: Span) -> (RootNode, Known) {
        let local = self.locals.iter().rev().find(|local| local.name == name);
        if let Some(local) = local {
            return (RootNode::Local(local.slot), local.known);
        }
        let unknown = Known::made(Shapes::UNKNOWN);
        let Some(variable) = Variable::from_name(name) else {
            let names = Variable::ALL.map(|variable| format!("`${}`", variable.name()));
            let help = format!(
                "variables are {}, and those that `->as` binds earlier in the path",
                names.join(", ")
            );
            let shown = ogive_base::bounded(name, 40);
            self.report_with(
                UNKNOWN_NAME,
                span,
                format!("unknown variable `${shown}`"),
                |diagnostic| diagnostic.help(help),
            );
            return (RootNode::Dollar, unknown);
        };
        let root = RootNode::Variable(variable);
        if self.mapping.version < variable.since() {
            let message = format!("`${name}` needs {}", variable.since());
            self.report(UNKNOWN_NAME, span, message);
            return (root, unknown);
        }
        let Some(shape) = self.environment.variable(variable) else {
            let place = self.environment.place;
            let message = format!("`${name}` does not exist in {place}");
            self.report(UNKNOWN_NAME, span, message);
            return (root, unknown);
        };
        let need = self.variables[variable.index()];
        let need = need.unwrap_or_else(|| self.needs.add_root());
        self.variables[variable.index()] = Some(need);
        let need = Some(need);
        (root, Known { shape, need })
    }

    fn step(&mut self, step: &'m Step, known: Known, scope: Scope) -> (Option<StepRole>, Known) {
        match &step.kind {
            StepKind::Key(key) => {
                let (node, next) = self.key(known, key, step.span);
                (Some(StepRole::Key(node)), next)
            }
            StepKind::Method(call) => match self.known_method(call, step.span) {
                Some(Method::As) => self.bind(call, step.span, known, scope),
                Some(method) => {
                    let (rows, next) = self.call(method, call, step.span, known, scope);
                    (Some(StepRole::Call(method, rows)), next)
                }
                None => (None, Known::made(Shapes::UNKNOWN)),
            },
        }
    }

    /// The value of a key: of each item, if the value is a list.
    fn key(&mut self, of: Known, key: &str, span: Span) -> (KeyNode, Known) {
        let shape = self.key_shape(of.shape, key, span, 8);
        let child = of.need.map(|need| self.needs.child(need, key));
        let node = KeyNode {
            text: self.add_string(key),
            slot: child.map_or(0, |child| child.slot),
        };
        let need = child.map(|child| child.need);
        (node, Known { shape, need })
    }
    fn key_shape(&mut self, of: ShapeId, key: &str, span: Span, depth: u32) -> ShapeId {
        let shown = ogive_base::bounded(key, 40);
        match self.shapes.get(of) {
            _ if depth == 0 => Shapes::UNKNOWN,
            Shape::Unknown => Shapes::UNKNOWN,
            Shape::List(item) => {
                let item = self.key_shape(*item, key, span, depth - 1);
                self.shapes.add(Shape::List(item))
            }
            Shape::Each(item) => {
                let item = self.key_shape(*item, key, span, depth - 1);
                self.shapes.add(Shape::Each(item))
            }
            Shape::Object(object) => match object.field(key) {
                Some(field) => field.shape,
                None if object.open => Shapes::UNKNOWN,
                None => {
                    let whose = object.name.as_deref().unwrap_or("this object");
                    let message = format!("`{whose}` has no field `{shown}`");
                    self.report(WRONG_TYPE, span, message);
                    Shapes::UNKNOWN
                }
            },
            // One of them may have it.
            Shape::OneOf(_) => Shapes::UNKNOWN,
            Shape::Null
            | Shape::Bool
            | Shape::Number
            | Shape::String
            | Shape::Literal(_)
            | Shape::Scalar => {
                let kinds = self.shapes.kinds(of);
                let message = format!("`{shown}` is read of {kinds}, which has no fields");
                self.report(WRONG_TYPE, span, message);
                Shapes::UNKNOWN
            }
        }
    }

    /// `{ … }` behind a path.
    fn selection(&mut self, object: ExprId, of: Known) -> (SelectionNode, Known) {
        let item = Known {
            shape: self.shapes.item(of.shape),
            // Values that come from nowhere are read by a tree of their own.
            need: of.need.or_else(|| Some(self.needs.add_root())),
        };
        let scope = Scope {
            dollar: Some(item),
            at: Some(item),
        };
        let (node, known) = self.expr(object, scope);
        let shape = self.shapes.mapped_over(of.shape, known.shape);
        let selection = SelectionNode {
            object: node,
            need: item.need.unwrap_or(self.body),
        };
        (selection, Known::made(shape))
    }

    /// `->as($name)`, `->as($name, expression)`.
    fn bind(
        &mut self,
        call: &'m MethodCall,
        span: Span,
        known: Known,
        scope: Scope,
    ) -> (Option<StepRole>, Known) {
        let name = call
            .arguments
            .first()
            .and_then(|first| self.bare_variable(*first));
        let Some(name) = name else {
            self.report_with(
                WRONG_TYPE,
                span,
                "`->as` needs a variable to bind as its first argument",
                |diagnostic| diagnostic.help("write `->as($name)`"),
            );
            return (None, known);
        };
        if Variable::from_name(name).is_some() {
            let message = format!("`->as` cannot bind `${name}`, which exists already");
            self.report(UNKNOWN_NAME, span, message);
        }
        let at = Scope {
            at: Some(known),
            ..scope
        };
        let bound = call.arguments.get(1).map(|value| self.expr(*value, at));
        let slot = self.locals.len() as u32;
        self.locals.push(Local {
            name,
            slot,
            known: bound.map_or(known, |(_, known)| known),
        });
        self.locals_max = self.locals_max.max(self.locals.len());
        let value = bound.map(|(node, _)| node);
        (Some(StepRole::Bind(slot, value)), known)
    }
    /// The name of an expression that is a variable and nothing else.
    fn bare_variable(&self, expr: ExprId) -> Option<&'m str> {
        let mapping = self.mapping;
        match &mapping.exprs[expr].kind {
            ExprKind::Path(Path {
                root: PathRoot::Variable(name),
                steps,
                selection: None,
                optional: false,
                ..
            }) if steps.is_empty() => Some(name),
            _ => None,
        }
    }
}
