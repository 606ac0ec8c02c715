//! The operations of a front end: every document of its files, each operation of them with the fragments that it spreads,
//! wherever those are written.
//!
//! A fragment is looked for by its name, as all tools do: in the document itself, in its file, and then in all files, where
//! there may be one of that name only. Expressions between definitions (`${Fragment}`) therefore need not be understood;
//! those within definitions cannot be, and are said to be there.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use ogive_base::{Diagnostic, SourceId, Sources, Span};
use ogive_syntax::{
    Document, Limits,
    ast::{Definition, FragmentDefinition, OperationDefinition, OperationKind, Selection},
    parse, print_definition,
};

use crate::{
    client_form::sent_by_apollo,
    codes,
    embedded::Embedded,
    form::{form, undescribed},
    javascript::{ScanOptions, scan},
    source_tree::{FileKind, SourceFile, SourceTree, TreeError, Visit},
};

/// Most operations.
pub const OPERATIONS_MAX: usize = 200_000;
/// Most diagnostics.
const DIAGNOSTICS_MAX: usize = 1_000;

/// How operations are found.
#[derive(Clone, Debug)]
pub struct ExtractOptions {
    /// Names of functions that take documents.
    pub tags: Vec<String>,
    /// Whether operations are as Apollo Client sends them, or as they are written.
    pub as_sent_by_apollo: bool,
    /// Whether every operation needs a name of its own, as manifests do. Without it, an operation may have no name, and
    /// different operations may have one name.
    pub unique_names: bool,
}

impl Default for ExtractOptions {
    fn default() -> Self {
        ExtractOptions {
            tags: vec!["gql".into(), "graphql".into()],
            as_sent_by_apollo: false,
            unique_names: true,
        }
    }
}

/// Operations of one name, each with its [`form`].
type Namesakes = Vec<(FoundOperation, Option<String>)>;

/// What an operation without a name is called.
pub const UNNAMED: &str = "(unnamed)";

/// An operation of a front end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FoundOperation {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: OperationKind,
    /// The operation and its fragments, in order of their names, as a client sends them.
    pub text: String,
    /// The same as it is written, for messages that point into it ([`Extraction::place`]).
    pub written: String,
    /// Where parts of what is written begin: there, and which document and where in it.
    pieces: Vec<(u32, u32, u32)>,
    /// The file.
    pub source: SourceId,
    /// Where it begins there.
    pub span: Span,
}

/// What was found.
#[derive(Debug, Default)]
pub struct Extraction {
    /// In order of their names.
    pub operations: Vec<FoundOperation>,
    /// How many fragments there are.
    pub fragments: usize,
    /// How many files were read.
    pub files: usize,
    /// What is wrong, in order of files.
    pub diagnostics: Vec<Diagnostic>,
    /// The files with documents in them.
    pub sources: Sources,
    parts: Vec<Part>,
}

impl Extraction {
    /// Whether a file at or below a path holds an operation or a fragment.
    pub fn holds(&self, path: &Path) -> bool {
        self.parts.iter().any(|part| {
            let document = &part.document;
            let has_any =
                document.operations().next().is_some() || document.fragments().next().is_some();
            let source = self.sources.get(part.source);
            has_any && source.is_some_and(|source| Path::new(&*source.name).starts_with(path))
        })
    }

    /// Where a byte of what is written of an operation is: which file, and where in it.
    pub fn place(&self, operation: &FoundOperation, at: u32) -> (SourceId, u32) {
        let after = operation
            .pieces
            .partition_point(|(start, _, _)| *start <= at);
        let piece = after.checked_sub(1).and_then(|i| operation.pieces.get(i));
        match piece
            .and_then(|(start, part, from)| Some((start, self.parts.get(*part as usize)?, from)))
        {
            Some((start, part, from)) => (part.source, part.embedded.place(from + (at - start))),
            None => (operation.source, operation.span.start),
        }
    }
}

/// Finds the operations of a tree.
pub fn extract(tree: &SourceTree, options: &ExtractOptions) -> Result<Extraction, TreeError> {
    let mut collector = Collector::new(options.clone());
    collector.add_tree(tree)?;
    Ok(collector.finish())
}

/// A document of a file.
#[derive(Debug)]
struct Part {
    source: SourceId,
    embedded: Embedded,
    document: Document,
}

/// Takes files one by one.
pub struct Collector {
    options: ExtractOptions,
    out: Extraction,
    parts: Vec<Part>,
}

impl Collector {
    /// Nothing yet.
    pub fn new(options: ExtractOptions) -> Self {
        Collector {
            options,
            out: Extraction::default(),
            parts: Vec::new(),
        }
    }

    fn say(&mut self, diagnostic: Diagnostic) {
        if self.out.diagnostics.len() < DIAGNOSTICS_MAX {
            self.out.diagnostics.push(diagnostic);
        }
    }

    /// Adds the documents of a tree. A file that cannot be taken is an error: its operations are not known.
    pub fn add_tree(&mut self, tree: &SourceTree) -> Result<(), TreeError> {
        tree.visit(|visit| match visit {
            Visit::Read(file) => self.add(file),
            Visit::LeftOut(path, why) => {
                let message = format!("`{}` cannot be read: {why}", path.display());
                let error = Diagnostic::error(codes::FILE_LEFT_OUT, message);
                self.say(error.help("correct the file, or name it in an `.ignore` file"));
            }
        })
    }

    /// Adds the documents of a file.
    pub fn add(&mut self, file: SourceFile) {
        self.out.files += 1;
        let mut found = Vec::new();
        let (mut dynamic, mut unterminated) = (Vec::new(), Vec::new());
        match file.kind {
            FileKind::Graphql => found.push(Embedded::whole(&file.text)),
            FileKind::Script { .. } | FileKind::Component => {
                if !self.may_have_documents(&file.text) {
                    return;
                }
                for (from, text, jsx) in programs(&file) {
                    let tags = &self.options.tags;
                    let scanned = scan(text, &ScanOptions { jsx, tags });
                    let moved = |span: Span| Span::new(span.start + from, span.end + from);
                    dynamic.extend(scanned.dynamic.into_iter().map(moved));
                    unterminated.extend(scanned.unterminated.into_iter().map(moved));
                    found.extend(scanned.documents.into_iter().map(|d| d.moved(from)));
                }
            }
        }
        if found.is_empty() && dynamic.is_empty() && unterminated.is_empty() {
            return;
        }
        let source = self
            .out
            .sources
            .add(file.path.display().to_string(), file.text);
        for span in dynamic {
            let message =
                "this document is put together when the program runs: it cannot be known before";
            let error = Diagnostic::error(codes::DYNAMIC_DOCUMENT, message);
            let error = error.label(source, span, "");
            self.say(error.help("write the document as one literal"));
        }
        for span in unterminated {
            let error = Diagnostic::error(codes::UNTERMINATED_LITERAL, "this literal does not end");
            self.say(error.label(source, span, "").help("close it"));
        }
        for embedded in found {
            self.document(embedded, source, file.kind == FileKind::Graphql);
        }
    }

    /// Whether it is worth looking for documents in a program.
    fn may_have_documents(&self, text: &str) -> bool {
        let tags = self.options.tags.iter();
        let mut words = tags
            .map(String::as_str)
            .chain(["graphql", "GraphQL", "GRAPHQL"]);
        words.any(|word| text.contains(word))
    }

    fn document(&mut self, embedded: Embedded, source: SourceId, is_file: bool) {
        let first = first_word(&embedded.text);
        let executable = matches!(
            first,
            "{" | "query" | "mutation" | "subscription" | "fragment"
        );
        if first.is_empty()
            || (embedded.doubtful && !executable)
            || (!executable && is_schema(first))
        {
            return;
        }
        let substitutions = embedded.substitutions_within();
        for substitution in &substitutions {
            let message = "an expression within a definition is only known when the program runs";
            let error = Diagnostic::error(codes::DYNAMIC_DOCUMENT, message);
            let help = "write fragments and spread them, or variables; `${…}` can only stand between definitions";
            self.say(error.label(source, substitution.span, "").help(help));
        }
        if !substitutions.is_empty() {
            return;
        }
        let parsed = parse(embedded.text.as_str(), source, &Limits::default());
        if !parsed.errors.is_empty() && embedded.doubtful && first == "{" {
            return;
        }
        if !parsed.errors.is_empty() {
            for mut error in parsed.errors {
                for label in &mut error.labels {
                    label.span = embedded.span(label.span);
                }
                if error.help.is_none() {
                    let what = if is_file {
                        "document"
                    } else {
                        "document in the program"
                    };
                    error.help = Some(format!("correct the {what}"));
                }
                self.say(error);
            }
            return;
        }
        self.out.fragments += parsed.document.fragments().count();
        self.parts.push(Part {
            source,
            embedded,
            document: parsed.document,
        });
    }

    /// Puts operations and fragments together.
    pub fn finish(mut self) -> Extraction {
        let mut known: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (at, part) in self.parts.iter().enumerate() {
            for fragment in part.document.fragments() {
                let name = part.document.name(fragment.name).to_owned();
                known.entry(name).or_default().push(at);
            }
        }
        let mut found: BTreeMap<String, Namesakes> = BTreeMap::new();
        let mut said = Vec::new();
        let operations = self.parts.iter().enumerate().flat_map(|(at, part)| {
            let operations = part.document.operations();
            operations.map(move |operation| (at, operation))
        });
        for (count, (at, operation)) in operations.enumerate() {
            if count >= OPERATIONS_MAX {
                let message = format!("there are more than {OPERATIONS_MAX} operations");
                let error = Diagnostic::error(codes::TOO_MANY_OPERATIONS, message);
                said.push(error.help("name fewer folders"));
                break;
            }
            match self.whole(at, operation, &known) {
                Ok(operation) => said.extend(self.add_operation(operation, &mut found)),
                Err(errors) => said.extend(errors),
            }
        }
        for diagnostic in said {
            self.say(diagnostic);
        }
        let found = found.into_values().flatten();
        self.out.operations = found.map(|(operation, _)| operation).collect();
        let place = |d: &Diagnostic| d.labels.first().map(|l| (l.source, l.span.start));
        self.out.diagnostics.sort_by_key(|d| place(d));
        self.out.diagnostics.dedup();
        self.out.parts = self.parts;
        self.out
    }

    /// Adds an operation, unless an equal one is there. Returns what is wrong with its name.
    fn add_operation(
        &self,
        operation: FoundOperation,
        found: &mut BTreeMap<String, Namesakes>,
    ) -> Option<Diagnostic> {
        let form = form(&operation.text);
        let namesakes = found.entry(operation.name.clone()).or_default();
        if namesakes.iter().any(|(_, other)| *other == form) {
            return None;
        }
        if let Some((other, _)) = namesakes.first().filter(|_| self.options.unique_names) {
            let message = format!("two operations are called `{}`", operation.name);
            let error = Diagnostic::error(codes::DUPLICATE_OPERATION, message)
                .label(operation.source, operation.span, "")
                .label(other.source, other.span, "the other one");
            let help = "rename one of them: what is known of operations is known by their names";
            return Some(error.help(help));
        }
        namesakes.push((operation, form));
        None
    }

    /// An operation with its fragments.
    fn whole(
        &self,
        at: usize,
        operation: &OperationDefinition,
        known: &BTreeMap<String, Vec<usize>>,
    ) -> Result<FoundOperation, Vec<Diagnostic>> {
        let part = &self.parts[at];
        let span = part
            .embedded
            .span(Span::new(operation.span.start, operation.span.start + 1));
        let name = match operation.name {
            Some(name) => part.document.name(name).to_owned(),
            None if self.options.unique_names => {
                let message = "this operation has no name";
                let error = Diagnostic::error(codes::UNNAMED_OPERATION, message);
                let help =
                    "name it: manifests, traces and metrics tell operations apart by their names";
                return Err(vec![error.label(part.source, span, "").help(help)]);
            }
            None => UNNAMED.to_owned(),
        };
        let mut errors = Vec::new();
        let mut taken: BTreeMap<String, (usize, FragmentDefinition)> = BTreeMap::new();
        let mut open: Vec<(usize, String, Span)> = spreads(&part.document, operation.selection_set)
            .map(|(name, span)| (at, name, span))
            .collect();
        let mut seen = BTreeSet::new();
        while let Some((from, wanted, place)) = open.pop() {
            if !seen.insert(wanted.clone()) {
                continue;
            }
            match self.fragment(from, &wanted, place, known) {
                Ok((part, fragment)) => {
                    let document = &self.parts[part].document;
                    taken.insert(wanted, (part, *fragment));
                    let more = spreads(document, fragment.selection_set);
                    open.extend(more.map(|(name, span)| (part, name, span)));
                }
                Err(error) => errors.push(*error),
            }
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        let fragments = taken.into_values();
        let fragments = fragments.map(|(part, fragment)| (part, Definition::Fragment(fragment)));
        let own = (at, Definition::Operation(*operation));
        let (mut text, mut written, mut pieces) = (String::new(), String::new(), Vec::new());
        for (at, definition) in std::iter::once(own).chain(fragments) {
            if !text.is_empty() {
                text.push_str("\n\n");
                written.push_str("\n\n");
            }
            let (document, span) = (&self.parts[at].document, definition.span());
            pieces.push((written.len() as u32, at as u32, span.start));
            written.push_str(document.text(span));
            text.push_str(&printed(document, &definition));
        }
        Ok(FoundOperation {
            name,
            kind: operation.kind,
            text: if self.options.as_sent_by_apollo {
                sent_by_apollo(&text)
            } else {
                text
            },
            written,
            pieces,
            source: part.source,
            span,
        })
    }

    /// The fragment of a name, as it is seen from a document.
    fn fragment(
        &self,
        from: usize,
        name: &str,
        place: Span,
        known: &BTreeMap<String, Vec<usize>>,
    ) -> Result<(usize, &FragmentDefinition), Box<Diagnostic>> {
        let own = &self.parts[from];
        let label = |error: Diagnostic| error.label(own.source, own.embedded.span(place), "");
        let none = Vec::new();
        let all = known.get(name).unwrap_or(&none);
        let in_file = |at: &&usize| self.parts[**at].source == own.source;
        let candidates: Vec<usize> = if all.contains(&from) {
            vec![from]
        } else if all.iter().any(|at| in_file(&at)) {
            all.iter().filter(in_file).copied().collect()
        } else {
            all.clone()
        };
        let in_part = |at: usize| {
            let document = &self.parts[at].document;
            let mut fragments = document.fragments();
            fragments.find(|fragment| document.name(fragment.name) == name)
        };
        let mut found = candidates
            .iter()
            .filter_map(|at| Some((*at, in_part(*at)?)));
        let Some(first) = found.next() else {
            let message = format!("the fragment `{name}` is nowhere");
            let error = label(Diagnostic::error(codes::UNKNOWN_FRAGMENT, message));
            let help = "name the folder that it is in, too, or correct the name";
            return Err(Box::new(error.help(help)));
        };
        let text = |(at, fragment): (usize, &FragmentDefinition)| {
            printed(&self.parts[at].document, &Definition::Fragment(*fragment))
        };
        let one = text(first);
        match found.find(|other| text(*other) != one) {
            None => Ok(first),
            Some(other) => {
                let message =
                    format!("there are several fragments `{name}`, and they are not the same");
                let mut error = label(Diagnostic::error(codes::AMBIGUOUS_FRAGMENT, message));
                for (at, fragment) in [first, other] {
                    let part = &self.parts[at];
                    let span = part.embedded.span(fragment.name.span());
                    error = error.label(part.source, span, "one of them");
                }
                Err(Box::new(error.help("rename one of them")))
            }
        }
    }
}

fn printed(document: &Document, definition: &Definition) -> String {
    let definition = undescribed(definition).unwrap_or(*definition);
    print_definition(document, &definition)
}

/// Fragments that a selection spreads, in order.
fn spreads(
    document: &Document,
    set: ogive_syntax::ast::SelectionSet,
) -> impl Iterator<Item = (String, Span)> {
    let mut out = Vec::new();
    let mut open = vec![set];
    while let Some(set) = open.pop() {
        for selection in &document[set.items] {
            match selection {
                Selection::Field(field) => open.extend(field.selection_set),
                Selection::Inline(inline) => open.push(inline.selection_set),
                Selection::Spread(spread) => {
                    out.push((document.name(spread.name).to_owned(), spread.name.span()));
                }
            }
        }
    }
    out.into_iter()
}

/// The first token of a document, if it is a word or a brace.
fn first_word(text: &str) -> &str {
    let mut rest = text.trim_start_matches('\u{feff}');
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\n', '\r', ',']);
        if let Some(comment) = rest.strip_prefix('#') {
            rest = &comment[comment.find(['\n', '\r']).unwrap_or(comment.len())..];
        } else if let Some(block) = rest.strip_prefix("\"\"\"") {
            // A description: what it describes counts.
            match block.find("\"\"\"") {
                Some(end) => rest = &block[end + 3..],
                None => return "\"",
            }
        } else {
            break;
        }
    }
    let word = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    match word.unwrap_or(rest.len()) {
        0 => rest
            .chars()
            .next()
            .map_or("", |first| &rest[..first.len_utf8()]),
        length => &rest[..length],
    }
}

fn is_schema(word: &str) -> bool {
    const WORDS: [&str; 9] = [
        "type",
        "schema",
        "extend",
        "interface",
        "union",
        "enum",
        "input",
        "scalar",
        "directive",
    ];
    WORDS.contains(&word) || word == "\""
}

/// The programs of a file, where they begin, and whether they may have JSX in them.
fn programs(file: &SourceFile) -> Vec<(u32, &str, bool)> {
    let FileKind::Script { jsx } = file.kind else {
        return scripts(&file.text);
    };
    vec![(0, &file.text, jsx)]
}

/// What stands in `<script>` of a page, and before it between lines of `---`.
fn scripts(text: &str) -> Vec<(u32, &str, bool)> {
    let mut out = Vec::new();
    if let Some(rest) = text.strip_prefix("---")
        && let Some(end) = rest.find("\n---")
    {
        out.push((3, &rest[..end], false));
    }
    // Of the same length, so that places are the same.
    let lower = text.to_ascii_lowercase();
    let mut at = 0;
    while let Some(found) = lower[at..].find("<script") {
        let open = at + found;
        let Some(end) = tag_end(&lower[open..]).map(|end| open + end) else {
            return out;
        };
        let close = lower[end..]
            .find("</script")
            .map_or(text.len(), |c| end + c);
        let attributes = &lower[open..end];
        let jsx = attributes.contains("tsx") || attributes.contains("jsx");
        out.push((end as u32, &text[end..close], jsx));
        at = close;
    }
    out
}

/// Where an opening tag ends, whatever its attributes say.
fn tag_end(text: &str) -> Option<usize> {
    let mut quote = None;
    for (at, byte) in text.bytes().enumerate() {
        match (byte, quote) {
            (b'>', None) => return Some(at + 1),
            (b'"' | b'\'', None) => quote = Some(byte),
            (_, Some(open)) if byte == open => quote = None,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests;
