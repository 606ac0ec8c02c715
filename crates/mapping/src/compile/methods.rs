//! Calls of methods: whether they exist, what they accept, what they give.

use ogive_base::Span;

use super::{Compiler, Known, NEWER_THAN_LINK, Scope, UNKNOWN_NAME, WRONG_TYPE};
use crate::{
    ast::{ExprId, ExprKind, MethodCall},
    kinds::Kinds,
    method::{METHODS, Method},
    program::{NodeId, Rows},
    shape::{Shape, ShapeId, Shapes},
};

impl<'m> Compiler<'m> {
    /// The method of a call, if it exists and has as many arguments.
    pub(super) fn known_method(&mut self, call: &MethodCall, span: Span) -> Option<Method> {
        let shown = ogive_base::bounded(&call.name, 40);
        let Some(method) = Method::from_name(&call.name) else {
            let names = METHODS.map(|info| info.name);
            let help = format!("methods are {}", names.join(", "));
            self.report_with(
                UNKNOWN_NAME,
                span,
                format!("unknown method `->{shown}`"),
                |diagnostic| diagnostic.help(help),
            );
            return None;
        };
        let info = method.info();
        if self.mapping.version < info.since {
            let message = format!(
                "`->{shown}` is documented from {} on; this schema links {}",
                info.since, self.mapping.version
            );
            self.warn(NEWER_THAN_LINK, span, message);
        }
        let found = call.arguments.len();
        let (fewest, most) = (info.arguments_min, info.arguments_max);
        if found < fewest || found > most {
            let expected = match (fewest, most) {
                (0, 0) => "no arguments".to_owned(),
                (1, 1) => "one argument".to_owned(),
                (fewest, usize::MAX) => format!("at least {fewest}"),
                (fewest, most) => format!("{fewest} to {most} arguments"),
            };
            let message = format!("`->{shown}` takes {expected}, found {found}");
            self.report(WRONG_TYPE, span, message);
            return None;
        }
        Some(method)
    }

    /// Compiles the arguments of a call; says what the call gives.
    pub(super) fn call(
        &mut self,
        method: Method,
        call: &'m MethodCall,
        span: Span,
        of: Known,
        scope: Scope,
    ) -> (Rows, Known) {
        let info = method.info();
        let shown = format!("`->{}`", info.name);
        self.expect_kinds(of.shape, info.takes, span, &shown);
        if method == Method::Match {
            return self.match_call(call, of, scope);
        }
        // Each item is `@` in turn, or the value itself is.
        let at = match method {
            Method::Map | Method::Filter | Method::Find => Known {
                shape: self.shapes.item(of.shape),
                ..of
            },
            _ => of,
        };
        let at = Scope {
            at: Some(at),
            ..scope
        };
        let mut nodes = Vec::with_capacity(call.arguments.len());
        let mut known = Vec::with_capacity(call.arguments.len());
        for (index, argument) in call.arguments.iter().enumerate() {
            let (node, argument_known) = self.expr(*argument, at);
            let passes = matches!(method, Method::Echo | Method::Map);
            if !passes {
                self.mark_used(argument_known);
            }
            let argument_span = self.mapping.exprs[*argument].span;
            let what = format!("{shown} as its argument");
            let expected = match method {
                Method::Split if index > 0 => Kinds::NUMBER,
                _ => info.argument,
            };
            self.expect_kinds(argument_known.shape, expected, argument_span, &what);
            nodes.push(node);
            known.push(argument_known);
        }
        let given = self.given(method, of, known.first().copied());
        (self.add_operands(&nodes), given)
    }

    /// What a call gives.
    fn given(&mut self, method: Method, of: Known, argument: Option<Known>) -> Known {
        let item = Known {
            shape: self.item_of(of.shape),
            ..of
        };
        match method {
            Method::Echo => return argument.unwrap_or(of),
            Method::Map => {
                let made = argument.unwrap_or(of);
                let shape = self.shapes.add(Shape::List(made.shape));
                return Known {
                    shape,
                    need: made.need,
                };
            }
            Method::Filter | Method::Slice if self.shapes.kinds(of.shape).meets(Kinds::LIST) => {
                return of;
            }
            Method::First | Method::Last | Method::Find => return item,
            Method::Get => {
                // Of an object it is a member, which has another place.
                self.mark_used(of);
                return Known::made(Shapes::UNKNOWN);
            }
            Method::As => return of,
            _ => {}
        }
        self.mark_used(of);
        Known::made(self.made_shape(method))
    }

    /// The shape of what a method makes anew.
    fn made_shape(&mut self, method: Method) -> ShapeId {
        match method {
            Method::Add
            | Method::Sub
            | Method::Mul
            | Method::Div
            | Method::Mod
            | Method::ParseInt
            | Method::Size => Shapes::NUMBER,
            Method::And
            | Method::Or
            | Method::Not
            | Method::Eq
            | Method::Ne
            | Method::Gt
            | Method::Gte
            | Method::Lt
            | Method::Lte
            | Method::In
            | Method::Contains => Shapes::BOOL,
            Method::JoinNotNull
            | Method::JsonStringify
            | Method::ToString
            | Method::Trim
            | Method::TrimStart
            | Method::TrimEnd
            | Method::Slice => Shapes::STRING,
            Method::Split => self.shapes.add(Shape::List(Shapes::STRING)),
            Method::Entries => {
                let fields = [("key", Shapes::STRING), ("value", Shapes::UNKNOWN)];
                let entry = self.shapes.add_object(None, &fields);
                self.shapes.add(Shape::List(entry))
            }
            _ => Shapes::UNKNOWN,
        }
    }
    /// The shape of an item of a list.
    fn item_of(&self, shape: ShapeId) -> ShapeId {
        match self.shapes.get(shape) {
            Shape::List(item) => *item,
            _ => Shapes::UNKNOWN,
        }
    }

    /// `->match([candidate, result], …)`.
    fn match_call(&mut self, call: &'m MethodCall, of: Known, scope: Scope) -> (Rows, Known) {
        let at = Scope {
            at: Some(of),
            ..scope
        };
        self.mark_used(of);
        let mut nodes: Vec<NodeId> = Vec::with_capacity(call.arguments.len() * 2);
        let mut results = Vec::with_capacity(call.arguments.len());
        for argument in &call.arguments {
            let Some((candidate, result)) = self.pair(*argument) else {
                let span = self.mapping.exprs[*argument].span;
                self.report_with(WRONG_TYPE, span, "`->match` takes pairs", |diagnostic| {
                    diagnostic.help("write `[candidate, result]`")
                });
                continue;
            };
            nodes.push(self.used(candidate, at).0);
            let (node, known) = self.expr(result, at);
            nodes.push(node);
            results.push(known);
        }
        let known = self.join(&results);
        (self.add_operands(&nodes), known)
    }
    fn pair(&self, argument: ExprId) -> Option<(ExprId, ExprId)> {
        match &self.mapping.exprs[argument].kind {
            ExprKind::List(items) => match items.as_slice() {
                [candidate, result] => Some((*candidate, *result)),
                _ => None,
            },
            _ => None,
        }
    }
}
