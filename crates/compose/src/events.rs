//! Event subgraphs: schemas without a service, whose root fields are bound to subjects, channels and topics of message
//! brokers by Cosmo's directives (`@edfs__natsSubscribe` and its like, `@openfed__subscriptionFilter`).
//!
//! They are read as they are written: definitions may be left out, and the key fields of entities may be `@external`
//! although the event brings them. The supergraph carries each application as `@join__directive`.

use ogive_schema::{AppliedDirective, ConstValue, FieldId, OperationKind, TypeId};
use ogive_syntax::{Document, ast::Definition};

use crate::{codes, fields, report::Report, spec::Vocabulary, subgraph::Subgraph};

/// The directive that filters events.
pub(crate) const FILTER: &str = "openfed__subscriptionFilter";
/// What a mutation that publishes returns.
const RESULT: &str = "edfs__PublishResult";

/// Directives that bind a root field: name, definition, the argument with the channels, and whose fields it binds.
const BINDINGS: [(&str, &str, &str, OperationKind); 7] = [
    ("edfs__natsRequest", "(subject: String!, providerId: String! = \"default\")", "subject", OperationKind::Query),
    ("edfs__natsPublish", "(subject: String!, providerId: String! = \"default\")", "subject", OperationKind::Mutation),
    (
        "edfs__natsSubscribe",
        "(subjects: [String!]!, providerId: String! = \"default\", streamConfiguration: edfs__NatsStreamConfiguration)",
        "subjects",
        OperationKind::Subscription,
    ),
    ("edfs__kafkaPublish", "(topic: String!, providerId: String! = \"default\")", "topic", OperationKind::Mutation),
    ("edfs__kafkaSubscribe", "(topics: [String!]!, providerId: String! = \"default\")", "topics", OperationKind::Subscription),
    ("edfs__redisPublish", "(channel: String!, providerId: String! = \"default\")", "channel", OperationKind::Mutation),
    ("edfs__redisSubscribe", "(channels: [String!]!, providerId: String! = \"default\")", "channels", OperationKind::Subscription),
];

/// Types of the directives' arguments, which are no part of the graph.
const INPUTS: [(&str, &str); 5] = [
    (
        "edfs__NatsStreamConfiguration",
        "input edfs__NatsStreamConfiguration { consumerInactiveThreshold: Int! = 30 consumerName: String! streamName: String! }",
    ),
    ("edfs__StreamConfiguration", ""),
    ("openfed__SubscriptionFilterValue", "scalar openfed__SubscriptionFilterValue"),
    (
        "openfed__SubscriptionFieldCondition",
        "input openfed__SubscriptionFieldCondition { fieldPath: String! values: [openfed__SubscriptionFilterValue]! }",
    ),
    (
        "openfed__SubscriptionFilterCondition",
        "input openfed__SubscriptionFilterCondition { AND: [openfed__SubscriptionFilterCondition!] IN: openfed__SubscriptionFieldCondition NOT: openfed__SubscriptionFilterCondition OR: [openfed__SubscriptionFilterCondition!] }",
    ),
];

/// Most levels of conditions of one filter.
const FILTER_DEPTH_MAX: usize = 8;

/// Whether a directive is one of these.
pub(crate) fn is_event_directive(name: &str) -> bool {
    name == FILTER || BINDINGS.iter().any(|(known, ..)| *known == name)
}

/// Adds the definitions that an event subgraph leaves out. Says whether it is one.
pub(crate) fn bring(doc: &Document, vocabulary: &mut Vocabulary) -> bool {
    let applies = |name: &str| {
        let mut types = doc.definitions.iter().filter_map(|definition| match definition {
            Definition::Type(ty) => Some(ty),
            _ => None,
        });
        types.any(|ty| {
            let fields = match &ty.kind {
                ogive_syntax::ast::TypeDefinitionKind::Object { fields, .. } => *fields,
                _ => return false,
            };
            doc[fields].iter().any(|field| {
                let mut applied = doc[field.directives].iter();
                applied.any(|directive| doc.name(directive.name) == name)
            })
        })
    };
    if !BINDINGS.iter().any(|(name, ..)| applies(name)) {
        return false;
    }
    let defined = |name: &str, is_directive: bool| {
        doc.definitions.iter().any(|definition| match definition {
            Definition::Directive(d) => is_directive && doc.name(d.name) == name,
            Definition::Type(d) => !is_directive && !d.extend && doc.name(d.name) == name,
            _ => false,
        })
    };
    let mut add = |name: &str, is_directive: bool, text: String| {
        if !text.is_empty() && !defined(name, is_directive) {
            vocabulary.definitions.push((name.into(), is_directive, text));
        }
    };
    for (name, args, ..) in BINDINGS {
        add(name, true, format!("directive @{name}{args} on FIELD_DEFINITION"));
    }
    let condition = "(condition: openfed__SubscriptionFilterCondition!) on FIELD_DEFINITION";
    add(FILTER, true, format!("directive @{FILTER}{condition}"));
    for (name, text) in INPUTS {
        add(name, false, text.to_owned());
    }
    let publishes = |(name, _, _, kind): &(&str, &str, &str, OperationKind)| {
        *kind == OperationKind::Mutation && applies(name)
    };
    if BINDINGS.iter().any(publishes) {
        add(RESULT, false, format!("type {RESULT} {{ success: Boolean! }}"));
    }
    let inputs = INPUTS.iter().map(|(name, _)| Box::from(*name));
    vocabulary.types.extend(inputs);
    true
}

/// Gives a subgraph that was read the meaning that its directives have.
pub(crate) fn settle(sub: &mut Subgraph) {
    for (name, ..) in BINDINGS {
        if let Some(id) = sub.schema.directive_by_name(name) {
            sub.machinery_directives.insert(id.0);
        }
    }
    if let Some(id) = sub.schema.directive_by_name(FILTER) {
        sub.machinery_directives.insert(id.0);
    }
    if let Some(ty) = sub.schema.type_by_name(RESULT) {
        sub.types[ty].defined = true;
        for field in sub.schema.types[ty].fields.clone() {
            // Every event subgraph has it.
            sub.fields[field].shareable = true;
        }
    }
    // The event brings the key, whatever is written on it.
    let types: Vec<TypeId> = sub.merged_types().collect();
    for ty in types {
        let mut keys: Vec<FieldId> = Vec::new();
        for key in &sub.types[ty].keys {
            fields::each_field(&key.items, &mut |field, _| keys.push(field));
        }
        for field in keys {
            let info = &mut sub.fields[field];
            info.external = false;
            info.marked_external = None;
            info.external_by_type = false;
        }
    }
}

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
    for kind in [OperationKind::Query, OperationKind::Mutation, OperationKind::Subscription] {
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
            if let Some((_, condition)) = condition {
                filter_problems(sub, field, condition, 0, &mut found);
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
        let has_success = sub.schema.types[ty].fields.iter().any(|f| sub.schema.field_name(*f) == "success");
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
            let mut names = args.iter().map(|arg| sub.schema.name(sub.schema.inputs[*arg].name));
            names.any(|known| known == name)
        };
        if scope != Some("args") || !arg.is_some_and(is_known) {
            found.push(format!("`{{{{ {inner} }}}}` is no argument of the field: write `{{{{ args.NAME }}}}`"));
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
        return;
    };
    if depth == FILTER_DEPTH_MAX {
        found.push(format!("a condition is at most {FILTER_DEPTH_MAX} levels deep"));
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
            for text in values.iter().filter_map(ConstValue::as_str).filter(|text| !text.is_empty()) {
                template_problems(sub, field, text, found);
            }
        }
        _ => {}
    }
}
