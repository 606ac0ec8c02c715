//! `@cacheTag`: where it stands and what its format names.
//!
//! A format is text with variables in braces: `{$args.name}` on fields of the query root type, `{$key.name}` on
//! entities, where the name must be part of every resolvable key.

use ogive_base::Span;
use ogive_schema::{ConstValue, OperationKind, TypeId};

use crate::{codes, fields::Item, report::Report, spec::Word, subgraph::Subgraph};

pub(super) fn validate(sub: &Subgraph, report: &mut Report) {
    if sub.words[Word::CacheTag as usize].is_none() {
        return;
    }
    let query = sub.schema.root(OperationKind::Query);
    for ty in sub.merged_types() {
        for (format, span) in formats(sub, &sub.schema.types[ty].directives) {
            let known = |object: &str, path: &str| object == "key" && in_every_key(sub, ty, path);
            let about = sub.schema.type_name(ty).to_owned();
            judge(
                sub,
                &about,
                format,
                span,
                &known,
                "{$key.…}` with a field of every key",
                report,
            );
        }
        for field in &sub.schema.types[ty].fields {
            for (format, span) in formats(sub, &sub.schema.fields[*field].directives) {
                let args = &sub.schema.fields[*field].args;
                let known = |object: &str, path: &str| {
                    let name = path.split('.').next().unwrap_or_default();
                    object == "args"
                        && query == Some(ty)
                        && sub.schema.arg_by_name(args, name).is_some()
                };
                let about = sub.coordinate(*field);
                judge(
                    sub,
                    &about,
                    format,
                    span,
                    &known,
                    "{$args.…}` with an argument of the query",
                    report,
                );
            }
        }
    }
}

fn formats<'a>(
    sub: &'a Subgraph,
    directives: &'a [ogive_schema::AppliedDirective],
) -> impl Iterator<Item = (&'a str, Span)> {
    directives
        .iter()
        .filter(|d| sub.word_of(d) == Some(Word::CacheTag))
        .filter_map(|d| {
            let format = sub.arg(d, "format").and_then(ConstValue::as_str)?;
            Some((format, d.span))
        })
}

fn judge(
    sub: &Subgraph,
    about: &str,
    format: &str,
    span: Span,
    known: &dyn Fn(&str, &str) -> bool,
    remedy: &str,
    report: &mut Report,
) {
    if let Some(problem) = problem(format, known) {
        report.error_help(
            codes::CACHE_TAG_INVALID_FORMAT,
            about,
            format!("`@cacheTag(format: \"{format}\")` on `{about}`: {problem}"),
            format!("write text and `{remedy}"),
            &[(sub.place(span), String::new())],
        );
    }
}

/// The first thing wrong with a format.
fn problem(format: &str, known: &dyn Fn(&str, &str) -> bool) -> Option<String> {
    if format.is_empty() {
        return Some("it is empty".into());
    }
    let mut rest = format;
    while let Some(at) = rest.find(['{', '}']) {
        if rest[at..].starts_with('}') {
            return Some("`}` without `{`".into());
        }
        let Some(end) = rest[at..].find('}') else {
            return Some("`{` without `}`".into());
        };
        let variable = &rest[at + 1..at + end];
        let fits = variable
            .strip_prefix('$')
            .and_then(|v| v.split_once('.'))
            .is_some_and(|(object, path)| known(object, path));
        if !fits {
            return Some(format!("`{{{variable}}}` names nothing that is known here"));
        }
        rest = &rest[at + end + 1..];
    }
    None
}

/// Whether `a.b` is selected by every resolvable key of a type, of which there is one at least.
fn in_every_key(sub: &Subgraph, ty: TypeId, path: &str) -> bool {
    let selects = |items: &[Item]| {
        let mut items = items;
        for name in path.split('.') {
            let found = items.iter().find_map(|item| match item {
                Item::Field {
                    field: Some(f),
                    sub: inner,
                    ..
                } if sub.schema.field_name(*f) == name => Some(inner),
                _ => None,
            });
            match found {
                Some(inner) => items = inner,
                None => return false,
            }
        }
        items.is_empty()
    };
    let mut keys = sub.types[ty]
        .keys
        .iter()
        .filter(|k| k.resolvable)
        .peekable();
    keys.peek().is_some() && keys.all(|k| selects(&k.items))
}
