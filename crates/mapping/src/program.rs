//! A compiled mapping: flat tables that a run walks.

use std::ops::Range;

use ogive_base::{IdVec, Span, define_id};

use crate::{
    ast::FallbackOperator,
    method::Method,
    need::{NeedId, Needs},
    origin::Origin,
    variable::Variable,
};

define_id! {
    /// One instruction of a [`Program`].
    pub(crate) struct NodeId;
}

/// A compiled mapping. Made by [`crate::compile()`], run by [`Program::run`].
#[derive(Clone, Debug)]
pub struct Program {
    pub(crate) origin: Origin,
    /// JSON of constants and keys.
    pub(crate) texts: Vec<u8>,
    pub(crate) nodes: IdVec<NodeId, Node>,
    /// Operands of lists, fallbacks and calls, those of one beside one another.
    pub(crate) operands: Vec<NodeId>,
    pub(crate) entries: Vec<EntryNode>,
    pub(crate) steps: Vec<StepNode>,
    pub(crate) needs: Needs,
    /// Places of the body.
    pub(crate) body: NeedId,
    /// Places of variables that are read.
    pub(crate) variables: [Option<NeedId>; Variable::COUNT],
    pub(crate) root: NodeId,
    /// Whether the root is a list of entries, which maps over the body.
    pub(crate) root_selects: bool,
    /// How many variables `->as` binds.
    pub(crate) locals: usize,
}

/// A run of rows of one of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rows {
    pub(crate) start: u32,
    pub(crate) len: u32,
}

impl Rows {
    pub(crate) const NONE: Rows = Rows { start: 0, len: 0 };

    /// Appends rows to a table.
    pub(crate) fn append<T>(table: &mut Vec<T>, rows: impl IntoIterator<Item = T>) -> Rows {
        let start = table.len();
        table.extend(rows);
        Rows {
            start: start as u32,
            len: (table.len() - start) as u32,
        }
    }
    pub(crate) fn range(self) -> Range<usize> {
        self.start as usize..(self.start + self.len) as usize
    }
}

/// A run of bytes of [`Program::texts`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Text {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

#[derive(Clone, Debug)]
pub(crate) enum Node {
    Null,
    Bool(bool),
    Number(Text),
    String(Text),
    List(Rows),
    Object(ObjectNode),
    Path(PathNode),
    Fallback(FallbackOperator, Rows),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct ObjectNode {
    pub(crate) entries: Rows,
    /// Whether members of other objects are added, so that keys may be equal.
    pub(crate) merges: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryNode {
    pub(crate) span: Span,
    pub(crate) kind: EntryRole,
    pub(crate) value: NodeId,
}

/// What becomes of an entry's value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum EntryRole {
    /// It is a member with this key.
    Named(Text),
    /// It is the whole object: the only entry.
    Whole,
    /// Its members are added; null adds none.
    Merged,
    /// Its members are added; null makes the whole object null.
    Spread,
}

#[derive(Clone, Debug)]
pub(crate) struct PathNode {
    pub(crate) root: RootNode,
    pub(crate) root_span: Span,
    pub(crate) optional: bool,
    pub(crate) steps: Rows,
    pub(crate) selection: Option<SelectionNode>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct SelectionNode {
    /// An [`Node::Object`].
    pub(crate) object: NodeId,
    /// What it reads of its `$`.
    pub(crate) need: NeedId,
}

/// A key that is read of a value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyNode {
    pub(crate) text: Text,
    /// Its place among the keys that are read of the value, if the value comes from an input; a guess otherwise.
    pub(crate) slot: u32,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum RootNode {
    Dollar,
    At,
    Variable(Variable),
    Local(u32),
    /// A key of `$`.
    Key(KeyNode),
    Node(NodeId),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct StepNode {
    pub(crate) span: Span,
    pub(crate) optional: bool,
    pub(crate) kind: StepRole,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum StepRole {
    Key(KeyNode),
    Call(Method, Rows),
    /// `->as($name)` or `->as($name, expression)`.
    Bind(u32, Option<NodeId>),
}

impl Program {
    /// Where the mapping stands in the schema document.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }
    /// Whether a variable is read.
    pub fn reads_variable(&self, variable: Variable) -> bool {
        self.variables[variable.index()].is_some()
    }
    /// Paths that are read of a variable, as keys with dots between them; an empty path is the whole value. Of `$this`
    /// and `$batch` these are the fields that a connector needs.
    pub fn variable_paths(&self, variable: Variable) -> Vec<String> {
        let need = self.variables[variable.index()];
        need.map(|need| self.needs.paths(need)).unwrap_or_default()
    }
    /// Paths that are read of the body, as keys with dots between them; an empty path is the whole body.
    pub fn body_paths(&self) -> Vec<String> {
        self.needs.paths(self.body)
    }
    pub(crate) fn text(&self, text: Text) -> &[u8] {
        &self.texts[text.start as usize..text.end as usize]
    }
}
