//! What a mapping says: expressions in one flat table.

use ogive_base::{IdVec, Span, define_id};

use crate::version::Version;

define_id! {
    /// One expression of a [`Mapping`].
    pub struct ExprId;
}

/// A parsed mapping. Spans are byte offsets of its text.
#[derive(Clone, Debug)]
pub struct Mapping {
    /// The version whose syntax it is written in.
    pub version: Version,
    /// All expressions; those inside another come before it.
    pub exprs: IdVec<ExprId, Expr>,
    /// What is evaluated.
    pub root: Root,
}

/// What a mapping is as a whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Root {
    /// A list of entries, applied to `$`: to each item of it if it is a list.
    Selection(ExprId),
    /// One expression.
    Value(ExprId),
}

impl Root {
    /// The expression.
    pub fn expr(self) -> ExprId {
        match self {
            Root::Selection(expr) | Root::Value(expr) => expr,
        }
    }
}

/// One expression and where it stands.
#[derive(Clone, Debug)]
pub struct Expr {
    /// Where it stands.
    pub span: Span,
    /// What it is.
    pub kind: ExprKind,
}

/// What an expression is.
#[derive(Clone, Debug)]
pub enum ExprKind {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, as JSON.
    Number(Box<str>),
    /// A string: the text it denotes.
    String(Box<str>),
    /// `[a, b]`.
    List(Vec<ExprId>),
    /// `{ a b: c }`, or entries without braces at the top.
    Object(Vec<Entry>),
    /// A root and steps from it.
    Path(Path),
    /// `a ?? b`, `a ?! b`.
    Fallback(Fallback),
    /// Something that could not be parsed; a diagnostic says why.
    Invalid,
}

/// A path with all it has behind it.
#[derive(Clone, Debug)]
pub struct Path {
    /// Where it begins.
    pub root: PathRoot,
    /// Where the root stands.
    pub root_span: Span,
    /// `?` behind the root.
    pub optional: bool,
    /// The steps.
    pub steps: Vec<Step>,
    /// `{ … }` at the end: always an [`ExprKind::Object`].
    pub selection: Option<ExprId>,
}

/// Where a path begins.
#[derive(Clone, Debug)]
pub enum PathRoot {
    /// `$`.
    Dollar,
    /// `@`.
    At,
    /// `$name`.
    Variable(Box<str>),
    /// A key of `$`.
    Key(Box<str>),
    /// `$(…)`, or a literal with steps behind it.
    Group(ExprId),
}

/// One step of a path.
#[derive(Clone, Debug)]
pub struct Step {
    /// Where it stands.
    pub span: Span,
    /// `?` behind it.
    pub optional: bool,
    /// What it does.
    pub kind: StepKind,
}

/// What a step does.
#[derive(Clone, Debug)]
pub enum StepKind {
    /// `.key`.
    Key(Box<str>),
    /// `->method(…)`.
    Method(MethodCall),
}

/// A call of a method.
#[derive(Clone, Debug)]
pub struct MethodCall {
    /// The name, without `->`.
    pub name: Box<str>,
    /// The arguments.
    pub arguments: Vec<ExprId>,
}

/// `a ?? b ?? c` or `a ?! b ?! c`.
#[derive(Clone, Debug)]
pub struct Fallback {
    /// The operator between all operands.
    pub operator: FallbackOperator,
    /// At least two.
    pub operands: Vec<ExprId>,
}

/// When the next operand of a fallback is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FallbackOperator {
    /// `??`: when the value is null or missing.
    Nullish,
    /// `?!`: when the value is missing.
    Missing,
}

/// One entry of an object.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Where it stands.
    pub span: Span,
    /// What becomes of its value.
    pub kind: EntryKind,
    /// Its value.
    pub value: ExprId,
}

/// What becomes of an entry's value.
#[derive(Clone, Debug)]
pub enum EntryKind {
    /// It is the member with this key.
    Named(Box<str>),
    /// A path without a name. Alone it is the whole value; beside others its members are added.
    Unnamed,
    /// `...`: its members are added; a null makes the whole object null.
    Spread,
}
