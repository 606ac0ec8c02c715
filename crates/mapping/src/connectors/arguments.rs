//! Arguments of directives, and fields of objects in them: taken by name, so that those that are left are unknown.

use ogive_base::Span;
use ogive_syntax::ast::{Directive, Document, Value, ValueKind};

use super::Reader;
use crate::{
    compile::{Environment, compile},
    origin::{Located, locate_string},
    parse::parse,
    program::Program,
    version::Version,
};

/// Values by name.
pub(super) struct Arguments<'d> {
    shown: &'static str,
    left: Vec<(&'d str, Span, Value)>,
}

impl<'d> Arguments<'d> {
    pub(super) fn of_directive(
        document: &'d Document,
        directive: Directive,
        shown: &'static str,
    ) -> Self {
        let all = document[directive.arguments].iter();
        let left = all.map(|one| (document.name(one.name), one.span, one.value));
        Arguments {
            shown,
            left: left.collect(),
        }
    }
    /// The fields of an object; reports a value that is none.
    pub(super) fn of_object(
        reader: &mut Reader<'d>,
        value: &Value,
        shown: &'static str,
    ) -> Option<Self> {
        let ValueKind::Object(fields) = value.kind else {
            reader.report(value.span, format!("{shown} has to be an object"));
            return None;
        };
        let document = reader.document;
        let all = document[fields].iter();
        let left = all.map(|one| (document.name(one.name), one.span, one.value));
        Some(Arguments {
            shown,
            left: left.collect(),
        })
    }

    /// The value with that name; null is none.
    pub(super) fn take(&mut self, name: &str) -> Option<Value> {
        let at = self.left.iter().position(|(found, ..)| *found == name)?;
        let (_, _, value) = self.left.remove(at);
        (value.kind != ValueKind::Null).then_some(value)
    }
    /// Reports what nothing has taken.
    pub(super) fn finish(self, reader: &mut Reader<'d>) {
        for (name, span, _) in self.left {
            let shown = ogive_base::bounded(name, 60);
            reader.report(span, format!("{} has no argument `{shown}`", self.shown));
        }
    }
}

impl<'d> Reader<'d> {
    /// The text of a string, and where it stands.
    pub(super) fn text(&mut self, value: &Value, shown: &str) -> Option<Located> {
        let Some(string) = value.as_string() else {
            self.report(value.span, format!("{shown} has to be a string"));
            return None;
        };
        let token = self.document.text(string.span);
        let source = self.document.source_id();
        Some(locate_string(source, token, string.span.start))
    }
    pub(super) fn required_text(
        &mut self,
        value: Option<Value>,
        span: Span,
        whose: &str,
        name: &str,
    ) -> Option<String> {
        let Some(value) = value else {
            self.report(span, format!("`{whose}` needs `{name}`"));
            return None;
        };
        self.text(&value, &format!("`{name}`"))
            .map(|located| located.text)
    }
    pub(super) fn boolean(&mut self, value: &Value, shown: &str) -> Option<bool> {
        match value.kind {
            ValueKind::Boolean(truth) => Some(truth),
            _ => {
                self.report(value.span, format!("{shown} has to be `true` or `false`"));
                None
            }
        }
    }
    /// Reports something that the linked version does not have.
    pub(super) fn needs(&mut self, version: Version, span: Span, shown: &str) {
        if self.version < version {
            self.report(span, format!("{shown} needs {version}"));
        }
    }

    /// A mapping in a string; `None` if it has errors, which are reported.
    pub(super) fn mapping(&mut self, value: &Value, environment: &Environment) -> Option<Program> {
        let located = self.text(value, environment.place)?;
        let origin = &located.origin;
        let parsed = parse(&located.text, origin, self.version, self.limits);
        if !parsed.diagnostics.is_empty() {
            self.diagnostics.extend(parsed.diagnostics);
            return None;
        }
        let compiled = compile(&parsed.mapping, origin, environment);
        self.diagnostics.extend(compiled.diagnostics);
        compiled.program
    }
}
