//! What is wrong with the root fields of an event subgraph, and how their directives go to the supergraph.

use ogive_schema::{AppliedDirective, ConstValue, FieldId, OperationKind};

use crate::{
    codes,
    event_vocabulary::{BINDINGS, FILTER, RESULT},
    report::Report,
    subgraph::Subgraph,
};

/// Most levels of conditions of one filter.
const FILTER_DEPTH_MAX: usize = 8;

/// The arguments of an application as the supergraph has them: defaults of the subgraph's own definition included.
pub(crate) fn arguments(sub: &Subgraph, applied: &AppliedDirective) -> Vec<(Box<str>, ConstValue)> {
    let name = |symbol| Box::from(sub.schema.name(symbol));
    let mut out: Vec<(Box<str>, ConstValue)> = applied
        .args
        .iter()
        .map(|(symbol, value)| (name(*symbol), value.clone()))
        .collect();
    let definition = sub.schema.directive_by_name(sub.schema.name(applied.name));
    let args = definition.map(|id| sub.schema.directive_defs[id].args.clone());
    for arg in args.into_iter().flatten() {
        let row = &sub.schema.inputs[arg];
        let key: Box<str> = name(row.name);
        if let Some(default) = &row.default
            && !out.iter().any(|(known, _)| *known == key)
        {
            out.push((key, default.clone()));
        }
    }
    out
}

/// Checks the root fields of an event subgraph.
pub(crate) fn check(sub: &Subgraph, report: &mut Report) {
    if !sub.events {
        return;
    }
    for kind in [
        OperationKind::Query,
        OperationKind::Mutation,
        OperationKind::Subscription,
    ] {
        let Some(root) = sub.schema.root(kind) else {
            continue;
        };
        for field in &sub.schema.types[root].fields {
            for problem in problems(sub, kind, *field) {
                let about = sub.coordinate(*field);
                let place = sub.place(sub.schema.fields[*field].span);
                report.error(
                    codes::EVENT_SOURCE_INVALID,
                    &about,
                    format!("`{about}` of the event subgraph `{}`: {problem}", sub.name),
                    &[(place, String::new())],
                );
            }
        }
    }
}

fn problems(sub: &Subgraph, kind: OperationKind, field: FieldId) -> Vec<String> {
    let row = &sub.schema.fields[field];
    let mut found = Vec::new();
    let mut bound = 0;
    for applied in &row.directives {
        let name = sub.schema.name(applied.name);
        let args = arguments(sub, applied);
        if name == FILTER {
            let condition = args.iter().find(|(name, _)| **name == *"condition");
            match condition {
                Some((_, condition)) => filter_problems(sub, field, condition, 0, &mut found),
                None => found.push(format!("`@{FILTER}` needs `condition`")),
            }
            if kind != OperationKind::Subscription {
                found.push(format!("`@{FILTER}` is for fields of subscriptions"));
            }
            continue;
        }
        let binding = BINDINGS.iter().find(|(known, ..)| *known == name);
        let Some((_, _, channels, of)) = binding else {
            continue;
        };
        bound += 1;
        if *of != kind {
            found.push(format!("`@{name}` is for fields of `{}`", root_word(*of)));
        }
        let value = args.iter().find(|(name, _)| **name == **channels);
        let texts = match value.map(|(_, value)| value) {
            Some(ConstValue::List(list)) => list.as_slice(),
            Some(one) => std::slice::from_ref(one),
            None => &[],
        };
        if texts.is_empty() {
            found.push(format!("`{channels}` names nothing"));
        }
        for text in texts.iter().filter_map(ConstValue::as_str) {
            template_problems(sub, field, text, &mut found);
        }
    }
    match bound {
        0 => found.push("a root field of an event subgraph is bound to a broker by a directive: nobody would answer it".into()),
        1 => {}
        _ => found.push("a field is bound to one broker".into()),
    }
    if kind == OperationKind::Mutation {
        let ty = row.ty.id;
        let has_success = sub.schema.types[ty]
            .fields
            .iter()
            .any(|f| sub.schema.field_name(*f) == "success");
        if !has_success {
            found.push(format!("what publishes returns `{RESULT}!`"));
        }
    }
    found
}

fn root_word(kind: OperationKind) -> &'static str {
    match kind {
        OperationKind::Query => "Query",
        OperationKind::Mutation => "Mutation",
        OperationKind::Subscription => "Subscription",
    }
}

/// What is between braces names arguments.
fn template_problems(sub: &Subgraph, field: FieldId, text: &str, found: &mut Vec<String>) {
    let mut rest = text;
    if text.is_empty() {
        found.push("a name of a subject, channel or topic is empty".into());
    }
    while let Some(at) = rest.find("{{") {
        let Some(len) = rest[at..].find("}}") else {
            found.push(format!("`{text}` opens braces that it does not close"));
            return;
        };
        let inner = rest[at + 2..at + len].trim();
        let mut path = inner.split('.');
        let (scope, arg) = (path.next(), path.next());
        let args = &sub.schema.fields[field].args;
        let is_known = |name: &str| {
            let mut names = args
                .iter()
                .map(|arg| sub.schema.name(sub.schema.inputs[*arg].name));
            names.any(|known| known == name)
        };
        if scope != Some("args") || !arg.is_some_and(is_known) {
            found.push(format!(
                "`{{{{ {inner} }}}}` is no argument of the field: write `{{{{ args.NAME }}}}`"
            ));
        }
        rest = &rest[at + len + 2..];
    }
}

fn filter_problems(
    sub: &Subgraph,
    field: FieldId,
    condition: &ConstValue,
    depth: usize,
    found: &mut Vec<String>,
) {
    let ConstValue::Object(members) = condition else {
        found.push("a condition has one of `AND`, `OR`, `NOT`, `IN`".into());
        return;
    };
    if depth == FILTER_DEPTH_MAX {
        found.push(format!(
            "a condition is at most {FILTER_DEPTH_MAX} levels deep"
        ));
        return;
    }
    let [(name, value)] = members.as_slice() else {
        found.push("a condition has one of `AND`, `OR`, `NOT`, `IN`".into());
        return;
    };
    match (&**name, value) {
        ("AND" | "OR", ConstValue::List(list)) => {
            if list.is_empty() {
                found.push(format!("`{name}` has no condition"));
            }
            for one in list {
                filter_problems(sub, field, one, depth + 1, found);
            }
        }
        ("AND" | "OR" | "NOT", one) => filter_problems(sub, field, one, depth + 1, found),
        (_, ConstValue::Object(members)) => {
            let values = members.iter().find(|(name, _)| **name == *"values");
            let values = match values.map(|(_, values)| values) {
                Some(ConstValue::List(list)) => list.as_slice(),
                Some(one) => std::slice::from_ref(one),
                None => &[],
            };
            for text in values
                .iter()
                .filter_map(ConstValue::as_str)
                .filter(|text| !text.is_empty())
            {
                template_problems(sub, field, text, found);
            }
        }
        _ => found.push(format!("`{name}` has no condition")),
    }
}
