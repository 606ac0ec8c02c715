//! What Apollo Client makes of a document before it sends it: `__typename` is added to every selection but those of roots,
//! what only concerns the client is taken out, and what remains is printed.
//!
//! Selections are changed as text, at places that the parser gives, and what comes out is parsed again: the tree has no
//! room for nodes that nobody wrote.

use ogive_syntax::{
    Document, Limits, SourceId,
    ast::{Definition, Directive, Field, List, Selection, SelectionSet},
    parse, print_definition,
};

/// Directives that are never sent.
const OWN_DIRECTIVES: [&str; 3] = ["connection", "nonreactive", "unmask"];
/// What marks a field that no server has.
const CLIENT_FIELD: &str = "client";
const TYPENAME: &str = "__typename";

/// The document as Apollo Client sends it. A text that is no document stays as it is.
pub fn sent_by_apollo(text: &str) -> String {
    let parsed = parse(text, SourceId(0), &Limits::default());
    if !parsed.errors.is_empty() {
        return text.to_owned();
    }
    let mut changes = Changes {
        document: &parsed.document,
        cuts: Vec::new(),
        additions: Vec::new(),
    };
    for definition in &parsed.document.definitions {
        match definition {
            Definition::Operation(operation) => {
                changes.directives(operation.directives);
                changes.selections(operation.selection_set, true);
            }
            Definition::Fragment(fragment) => {
                changes.directives(fragment.directives);
                changes.selections(fragment.selection_set, false);
            }
            _ => {}
        }
    }
    let changed = changes.apply();
    let parsed = parse(changed.as_str(), SourceId(0), &Limits::default());
    if !parsed.errors.is_empty() {
        // Nothing of a selection is left: whoever validates it says so.
        return text.to_owned();
    }
    print(&parsed.document)
}

/// All definitions, one empty line between them.
pub(crate) fn print(document: &Document) -> String {
    let definitions = document.definitions.iter();
    let printed: Vec<String> = definitions.map(|d| print_definition(document, d)).collect();
    printed.join("\n\n")
}

struct Changes<'a> {
    document: &'a Document,
    /// Bytes to take out.
    cuts: Vec<(u32, u32)>,
    /// Where `__typename` is added.
    additions: Vec<u32>,
}

impl Changes<'_> {
    fn selections(&mut self, set: SelectionSet, is_root: bool) {
        let document = self.document;
        let mut open = vec![(set, is_root)];
        while let Some((set, is_root)) = open.pop() {
            let items = &document[set.items];
            let is_meta = |selection: &Selection| match selection {
                Selection::Field(field) => document.name(field.name).starts_with("__"),
                _ => false,
            };
            if !is_root && !items.iter().any(is_meta) {
                self.additions.push(set.span.end - 1);
            }
            for selection in items {
                match selection {
                    Selection::Field(field) if self.is_of_client(field) => {
                        self.cuts.push((field.span.start, field.span.end));
                    }
                    Selection::Field(field) => {
                        self.directives(field.directives);
                        open.extend(field.selection_set.map(|set| (set, false)));
                    }
                    Selection::Spread(spread) => self.directives(spread.directives),
                    Selection::Inline(inline) => {
                        self.directives(inline.directives);
                        open.push((inline.selection_set, false));
                    }
                }
            }
        }
    }

    fn is_of_client(&self, field: &Field) -> bool {
        let mut directives = self.document[field.directives].iter();
        directives.any(|directive| self.document.name(directive.name) == CLIENT_FIELD)
    }

    fn directives(&mut self, directives: List<Directive>) {
        let document = self.document;
        for directive in &document[directives] {
            if OWN_DIRECTIVES.contains(&document.name(directive.name)) {
                self.cuts.push((directive.span.start, directive.span.end));
            }
        }
    }

    fn apply(mut self) -> String {
        let additions = self.additions.iter().map(|at| (*at, *at));
        let mut changes: Vec<(u32, u32)> = additions.collect();
        changes.append(&mut self.cuts);
        changes.sort_unstable();
        let source = self.document.source();
        let mut out = String::with_capacity(source.len() * 2);
        let mut at = 0;
        for (start, end) in changes {
            out.push_str(&source[at..start as usize]);
            if start == end {
                out.push(' ');
                out.push_str(TYPENAME);
            }
            out.push(' ');
            at = end as usize;
        }
        out.push_str(&source[at..]);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typename_is_added_and_what_is_for_the_client_is_gone() {
        let sent = sent_by_apollo(
            "query A($x: Int) { me { id local @client { x } ...F @nonreactive ... on B { c @connection(key: \"k\") { d __typename } } } \
             __schema { types { name } } } fragment F on User { friends { id } }",
        );
        assert_eq!(
            sent,
            "query A($x: Int) {\n  me {\n    id\n    ...F\n    ... on B {\n      c {\n        d\n        __typename\n      }\n      \
             __typename\n    }\n    __typename\n  }\n  __schema {\n    types {\n      name\n      __typename\n    }\n    \
             __typename\n  }\n}\n\nfragment F on User {\n  friends {\n    id\n    __typename\n  }\n  __typename\n}"
        );
        assert_eq!(sent_by_apollo(&sent), sent);
        assert_eq!(sent_by_apollo("{a"), "{a");
        assert_eq!(sent_by_apollo("{a @client}"), "{a @client}");
    }
}
