//! Operations as data that can be generated, repaired, shrunk and printed.
//!
//! Reading order: this file (the data and its text), [`conflicts`] (field merging), [`generate`], [`features`], [`defer`], [`stream`],
//! [`conditions`].

pub mod conditions;
pub mod conflicts;
pub mod defer;
pub mod features;
pub mod generate;
pub mod stream;

use std::fmt::Write;

/// The operation to run where a document has several.
pub const RUN: &str = "Op";

/// One operation with its fragments and variable values.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Op {
    /// Mutation instead of query.
    pub mutation: bool,
    /// Its name.
    pub name: Option<String>,
    /// Variables; those that nothing uses are not printed.
    pub variables: Vec<Variable>,
    /// Named fragments. A fragment spreads only fragments before it, so there are no cycles; unused ones are not
    /// printed.
    pub fragments: Vec<Fragment>,
    /// The root selection set.
    pub selections: Vec<Sel>,
    /// Further operations of the document, as text. Then this one is named `Op`.
    pub others: Vec<String>,
}

/// One variable.
#[derive(Clone, Debug, PartialEq)]
pub struct Variable {
    /// Its name without `$`.
    pub name: String,
    /// Its type as text.
    pub ty: String,
    /// Its default as GraphQL text.
    pub default: Option<String>,
    /// The value sent, as JSON text.
    pub value: Option<String>,
}

/// A named fragment.
#[derive(Clone, Debug, PartialEq)]
pub struct Fragment {
    /// Its name.
    pub name: String,
    /// Its type condition.
    pub on: String,
    /// Its selections.
    pub selections: Vec<Sel>,
}

/// One selection.
#[derive(Clone, Debug, PartialEq)]
pub enum Sel {
    /// A field.
    Field(Field),
    /// An inline fragment.
    Inline {
        /// Type condition.
        on: Option<String>,
        /// Conditions.
        directives: Vec<Directive>,
        /// Selections.
        selections: Vec<Sel>,
    },
    /// A fragment spread.
    Spread {
        /// Index into [`Op::fragments`].
        fragment: usize,
        /// Conditions.
        directives: Vec<Directive>,
    },
}

/// One field.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Field {
    /// Alias.
    pub alias: Option<String>,
    /// Name.
    pub name: String,
    /// Arguments.
    pub args: Vec<(String, Val)>,
    /// Conditions.
    pub directives: Vec<Directive>,
    /// Sub-selections; empty for leaves. An emptied composite field is printed with `__typename`.
    pub selections: Vec<Sel>,
    /// Whether the value is composite.
    pub composite: bool,
}

impl Field {
    /// Alias or name.
    pub fn key(&self) -> &str {
        self.alias.as_deref().unwrap_or(&self.name)
    }
}

/// A directive of a selection.
#[derive(Clone, Debug, PartialEq)]
pub enum Directive {
    /// `@skip` or `@include`.
    Condition {
        /// `skip` instead of `include`.
        skip: bool,
        /// The condition.
        condition: Val,
    },
    /// `@defer`, on fragments.
    Defer {
        /// The label.
        label: Option<String>,
        /// Its `if`.
        condition: Option<Val>,
    },
    /// `@stream`, on lists.
    Stream {
        /// The label.
        label: Option<String>,
        /// Its `initialCount`.
        initial: Option<Val>,
        /// Its `if`.
        condition: Option<Val>,
    },
}

/// An argument's value.
#[derive(Clone, Debug, PartialEq)]
pub enum Val {
    /// A literal without variables.
    Text(String),
    /// A variable, by index into [`Op::variables`].
    Var(usize),
    /// A list that may hold variables.
    List(Vec<Val>),
    /// An object that may hold variables.
    Object(Vec<(String, Val)>),
}

impl Op {
    /// The document.
    pub fn document(&self) -> String {
        let (variables, fragments) = self.used();
        let mut out = String::new();
        for other in &self.others {
            out.push_str(other);
            out.push_str("\n\n");
        }
        out.push_str(if self.mutation { "mutation" } else { "query" });
        if !self.others.is_empty() {
            let _ = write!(out, " {RUN}");
        } else if let Some(name) = &self.name {
            let _ = write!(out, " {name}");
        }
        let mut first = true;
        for (i, variable) in self.variables.iter().enumerate() {
            if !variables[i] {
                continue;
            }
            out.push_str(if first { "(" } else { ", " });
            first = false;
            let _ = write!(out, "${}: {}", variable.name, variable.ty);
            if let Some(default) = &variable.default {
                let _ = write!(out, " = {default}");
            }
        }
        if !first {
            out.push(')');
        }
        self.selection_set(&self.selections, 1, &mut out);
        out.push('\n');
        for (i, fragment) in self.fragments.iter().enumerate() {
            if fragments[i] {
                let _ = write!(out, "\nfragment {} on {}", fragment.name, fragment.on);
                self.selection_set(&fragment.selections, 1, &mut out);
                out.push('\n');
            }
        }
        out
    }

    /// The request's `variables` as JSON text.
    pub fn variables_json(&self) -> String {
        let (used, _) = self.used();
        let members: Vec<String> = self
            .variables
            .iter()
            .enumerate()
            .filter(|(i, _)| used[*i])
            .filter_map(|(_, v)| Some(format!("\"{}\":{}", v.name, v.value.as_ref()?)))
            .collect();
        format!("{{{}}}", members.join(","))
    }

    /// Which variables and fragments the operation reaches.
    pub fn used(&self) -> (Vec<bool>, Vec<bool>) {
        let mut variables = vec![false; self.variables.len()];
        let mut fragments = vec![false; self.fragments.len()];
        let mut todo: Vec<&[Sel]> = vec![&self.selections];
        while let Some(selections) = todo.pop() {
            for selection in selections {
                match selection {
                    Sel::Field(field) => {
                        for (_, value) in &field.args {
                            value.mark(&mut variables);
                        }
                        mark_all(&field.directives, &mut variables);
                        todo.push(&field.selections);
                    }
                    Sel::Inline {
                        directives,
                        selections,
                        ..
                    } => {
                        mark_all(directives, &mut variables);
                        todo.push(selections);
                    }
                    Sel::Spread {
                        fragment,
                        directives,
                    } => {
                        mark_all(directives, &mut variables);
                        if !fragments[*fragment] {
                            fragments[*fragment] = true;
                            todo.push(&self.fragments[*fragment].selections);
                        }
                    }
                }
            }
        }
        (variables, fragments)
    }

    /// Every selection set of the operation and its fragments, to be changed.
    pub fn for_each_set(&mut self, f: &mut dyn FnMut(&mut Vec<Sel>)) {
        visit(&mut self.selections, f);
        for fragment in &mut self.fragments {
            visit(&mut fragment.selections, f);
        }
    }

    fn selection_set(&self, selections: &[Sel], depth: usize, out: &mut String) {
        out.push_str(" {\n");
        let indent = "  ".repeat(depth);
        if selections.is_empty() {
            let _ = writeln!(out, "{indent}__typename");
        }
        for selection in selections {
            out.push_str(&indent);
            match selection {
                Sel::Field(field) => {
                    if let Some(alias) = &field.alias {
                        let _ = write!(out, "{alias}: ");
                    }
                    out.push_str(&field.name);
                    for (i, (name, value)) in field.args.iter().enumerate() {
                        out.push_str(if i == 0 { "(" } else { ", " });
                        let _ = write!(out, "{name}: ");
                        self.value(value, out);
                    }
                    if !field.args.is_empty() {
                        out.push(')');
                    }
                    self.directives(&field.directives, out);
                    if field.composite {
                        self.selection_set(&field.selections, depth + 1, out);
                    }
                }
                Sel::Inline {
                    on,
                    directives,
                    selections,
                } => {
                    out.push_str("...");
                    if let Some(on) = on {
                        let _ = write!(out, " on {on}");
                    }
                    self.directives(directives, out);
                    self.selection_set(selections, depth + 1, out);
                }
                Sel::Spread {
                    fragment,
                    directives,
                } => {
                    let _ = write!(out, "...{}", self.fragments[*fragment].name);
                    self.directives(directives, out);
                }
            }
            out.push('\n');
        }
        out.push_str(&"  ".repeat(depth - 1));
        out.push('}');
    }

    fn directives(&self, directives: &[Directive], out: &mut String) {
        for directive in directives {
            match directive {
                Directive::Condition { skip, condition } => {
                    out.push_str(if *skip {
                        " @skip(if: "
                    } else {
                        " @include(if: "
                    });
                    self.value(condition, out);
                    out.push(')');
                }
                Directive::Defer { label, condition } => {
                    out.push_str(" @defer");
                    self.arguments(label.as_deref(), &[("if", condition)], out);
                }
                Directive::Stream {
                    label,
                    initial,
                    condition,
                } => {
                    out.push_str(" @stream");
                    let values = [("initialCount", initial), ("if", condition)];
                    self.arguments(label.as_deref(), &values, out);
                }
            }
        }
    }

    fn arguments(&self, label: Option<&str>, values: &[(&str, &Option<Val>)], out: &mut String) {
        let label = label.map(|label| format!("label: \"{label}\""));
        let values = values.iter().filter_map(|(name, value)| {
            let mut text = format!("{name}: ");
            self.value(value.as_ref()?, &mut text);
            Some(text)
        });
        let arguments: Vec<String> = label.into_iter().chain(values).collect();
        if !arguments.is_empty() {
            let _ = write!(out, "({})", arguments.join(", "));
        }
    }

    fn value(&self, value: &Val, out: &mut String) {
        match value {
            Val::Text(text) => out.push_str(text),
            Val::Var(i) => {
                out.push('$');
                out.push_str(&self.variables[*i].name);
            }
            Val::List(items) => {
                out.push('[');
                for (i, item) in items.iter().enumerate() {
                    if i > 0 {
                        out.push_str(", ");
                    }
                    self.value(item, out);
                }
                out.push(']');
            }
            Val::Object(fields) => {
                out.push('{');
                for (i, (name, value)) in fields.iter().enumerate() {
                    if i > 0 {
                        out.push_str(", ");
                    }
                    let _ = write!(out, "{name}: ");
                    self.value(value, out);
                }
                out.push('}');
            }
        }
    }
}

impl Val {
    fn mark(&self, used: &mut [bool]) {
        match self {
            Val::Text(_) => {}
            Val::Var(i) => used[*i] = true,
            Val::List(items) => items.iter().for_each(|v| v.mark(used)),
            Val::Object(fields) => fields.iter().for_each(|(_, v)| v.mark(used)),
        }
    }
}

fn mark_all(directives: &[Directive], used: &mut [bool]) {
    for directive in directives {
        match directive {
            Directive::Condition { condition, .. }
            | Directive::Defer {
                condition: Some(condition),
                ..
            } => condition.mark(used),
            Directive::Defer { .. } => {}
            Directive::Stream {
                initial, condition, ..
            } => {
                let values = initial.iter().chain(condition);
                values.for_each(|value| value.mark(used));
            }
        }
    }
}

fn visit(selections: &mut Vec<Sel>, f: &mut dyn FnMut(&mut Vec<Sel>)) {
    f(selections);
    for selection in selections {
        match selection {
            Sel::Field(field) => visit(&mut field.selections, f),
            Sel::Inline { selections, .. } => visit(selections, f),
            Sel::Spread { .. } => {}
        }
    }
}
