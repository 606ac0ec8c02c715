//! What the functions of a file use: chains of members such as `request.body.query`, calls that hand variables on, and what they
//! register as hooks.

use std::collections::{BTreeMap, BTreeSet};

use rhai::{AST, ASTNode, Expr, FnPtr, Stmt};

/// The definition of one function.
#[derive(Clone, Debug, Default)]
pub(crate) struct Definition {
    pub(crate) name: String,
    pub(crate) parameters: Vec<String>,
    pub(crate) chains: Vec<MemberPath>,
    /// Calls of functions by name, with the variables among their arguments.
    pub(crate) calls: Vec<(String, Vec<Option<String>>)>,
    /// `map_request` or `map_response`, and the function that it registers.
    pub(crate) hooks: Vec<(String, String)>,
    /// Variables that may be something else than they were at first.
    pub(crate) reused: BTreeSet<String>,
    /// Functions that variables hold.
    pointers: BTreeMap<String, String>,
}

/// Members of a variable, from the outermost on, as far as they are known by name.
#[derive(Clone, Debug)]
pub(crate) struct MemberPath {
    pub(crate) root: String,
    pub(crate) members: Vec<String>,
    /// Whether something else comes behind them, such as a call or an index.
    pub(crate) goes_on: bool,
    /// Whether it is set.
    pub(crate) is_set: bool,
    pub(crate) at: rhai::Position,
}

/// Those of a file.
pub(crate) fn functions(ast: &AST) -> Vec<Definition> {
    let mut all = Vec::new();
    for function in ast.iter_functions() {
        let (name, arity) = (function.name, function.params.len());
        // Copying with a filter copies all of them (Rhai 1.27).
        let mut only = ast.clone_functions_only();
        only.retain_functions(|_, _, known, parameters| known == name && parameters == arity);
        let mut out = Definition {
            name: name.to_owned(),
            parameters: function
                .params
                .iter()
                .map(|one| (*one).to_owned())
                .collect(),
            ..Definition::default()
        };
        out.read(&only);
        all.push(out);
    }
    all
}

impl Definition {
    fn read(&mut self, ast: &AST) {
        ast.walk(&mut |path: &[ASTNode<'_>]| {
            match path.last() {
                Some(ASTNode::Stmt(stmt)) => self.statement(stmt),
                Some(ASTNode::Expr(expr)) => self.expression(expr),
                _ => {}
            }
            true
        });
    }
    fn statement(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Var(of, ..) => {
                let (name, value) = (of.0.name.to_string(), &of.1);
                if let Some(to) = self.pointer(value) {
                    self.pointers.insert(name.clone(), to);
                }
                self.reused.insert(name);
            }
            Stmt::For(of, ..) => {
                self.reused.insert(of.0.name.to_string());
                self.reused
                    .extend(of.1.iter().map(|name| name.name.to_string()));
            }
            Stmt::TryCatch(of, ..) => {
                if let Expr::Variable(name, ..) = &of.expr {
                    self.reused.insert(name.1.to_string());
                }
            }
            Stmt::Assignment(of) => match &of.1.lhs {
                Expr::Variable(name, ..) => {
                    self.reused.insert(name.1.to_string());
                }
                target => self.chains.extend(chain(target).map(|chain| MemberPath {
                    is_set: true,
                    ..chain
                })),
            },
            Stmt::FnCall(call, _) => self.call(call),
            _ => {}
        }
    }
    fn expression(&mut self, expr: &Expr) {
        match expr {
            Expr::Dot(..) | Expr::Index(..) => self.chains.extend(chain(expr)),
            Expr::FnCall(call, _) => self.call(call),
            Expr::MethodCall(call, _) if matches!(&*call.name, "map_request" | "map_response") => {
                if let Some(to) = call.args.first().and_then(|given| self.pointer(given)) {
                    self.hooks.push((call.name.to_string(), to));
                }
            }
            _ => {}
        }
    }
    fn call(&mut self, call: &rhai::FnCallExpr) {
        if call.namespace.is_empty() {
            let variable = |given: &Expr| match given {
                Expr::Variable(of, ..) => Some(of.1.to_string()),
                _ => None,
            };
            let given = call.args.iter().map(variable).collect();
            self.calls.push((call.name.to_string(), given));
        }
    }
    /// The function that an expression stands for.
    fn pointer(&self, expr: &Expr) -> Option<String> {
        let mut found = None;
        expr.walk(&mut Vec::new(), &mut |path: &[ASTNode<'_>]| {
            let Some(ASTNode::Expr(expr)) = path.last() else {
                return true;
            };
            let next = match expr {
                Expr::DynamicConstant(value, _) => {
                    let pointer = value.clone().try_cast::<FnPtr>();
                    pointer.map(|to| to.fn_name().to_owned())
                }
                Expr::FnCall(call, _) if call.name == "Fn" => match call.args.first() {
                    Some(Expr::StringConstant(name, _)) => Some(name.to_string()),
                    _ => None,
                },
                Expr::Variable(of, ..) => self.pointers.get(of.1.as_str()).cloned(),
                _ => None,
            };
            found = found.take().or(next);
            found.is_none()
        });
        found
    }
}

/// The members of a variable that an expression names, if it does.
fn chain(expr: &Expr) -> Option<MemberPath> {
    let (Expr::Dot(of, ..) | Expr::Index(of, ..)) = expr else {
        return None;
    };
    let Expr::Variable(root, _, at) = &of.lhs else {
        return None;
    };
    let mut out = MemberPath {
        root: root.1.to_string(),
        members: Vec::new(),
        goes_on: false,
        is_set: false,
        at: *at,
    };
    if !root.2.is_empty() {
        return None;
    }
    let mut rest = of_members(expr);
    while let Some(next) = rest {
        let (name, then) = match next {
            Expr::Property(name, _) => (name, None),
            Expr::Dot(of, ..) | Expr::Index(of, ..) => match &of.lhs {
                Expr::Property(name, _) => (name, Some(next)),
                _ => break,
            },
            _ => break,
        };
        out.members.push(name.2.to_string());
        let Some(then) = then else {
            return Some(out);
        };
        rest = of_members(then);
    }
    out.goes_on = true;
    Some(out)
}

/// What stands behind the point, if there is one.
fn of_members(expr: &Expr) -> Option<&Expr> {
    match expr {
        Expr::Dot(of, ..) => Some(&of.rhs),
        _ => None,
    }
}
