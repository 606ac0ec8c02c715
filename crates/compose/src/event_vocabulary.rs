//! The directives of event subgraphs: schemas without a service, whose root fields are bound to subjects, channels and
//! topics of message brokers, as Cosmo writes them (`@edfs__natsSubscribe` and its like, `@openfed__subscriptionFilter`).
//!
//! They are read as they are written: definitions may be left out, and the key fields of entities may be `@external`
//! although the event brings them. The supergraph carries each application as `@join__directive`.

use ogive_schema::OperationKind;
use ogive_syntax::{Document, ast::Definition};

use crate::spec::Vocabulary;

/// The directive that filters events.
pub(crate) const FILTER: &str = "openfed__subscriptionFilter";
/// What a mutation that publishes returns.
pub(crate) const RESULT: &str = "edfs__PublishResult";

/// Directives that bind a root field: name, definition, the argument with the channels, and whose fields it binds.
pub(crate) const BINDINGS: [(&str, &str, &str, OperationKind); 7] = [
    (
        "edfs__natsRequest",
        "(subject: String!, providerId: String! = \"default\")",
        "subject",
        OperationKind::Query,
    ),
    (
        "edfs__natsPublish",
        "(subject: String!, providerId: String! = \"default\")",
        "subject",
        OperationKind::Mutation,
    ),
    (
        "edfs__natsSubscribe",
        "(subjects: [String!]!, providerId: String! = \"default\", streamConfiguration: edfs__NatsStreamConfiguration)",
        "subjects",
        OperationKind::Subscription,
    ),
    (
        "edfs__kafkaPublish",
        "(topic: String!, providerId: String! = \"default\")",
        "topic",
        OperationKind::Mutation,
    ),
    (
        "edfs__kafkaSubscribe",
        "(topics: [String!]!, providerId: String! = \"default\")",
        "topics",
        OperationKind::Subscription,
    ),
    (
        "edfs__redisPublish",
        "(channel: String!, providerId: String! = \"default\")",
        "channel",
        OperationKind::Mutation,
    ),
    (
        "edfs__redisSubscribe",
        "(channels: [String!]!, providerId: String! = \"default\")",
        "channels",
        OperationKind::Subscription,
    ),
];

/// Types of the directives' arguments, which are no part of the graph.
const INPUTS: [(&str, &str); 5] = [
    (
        "edfs__NatsStreamConfiguration",
        "input edfs__NatsStreamConfiguration { consumerInactiveThreshold: Int! = 30 consumerName: String! streamName: String! }",
    ),
    ("edfs__StreamConfiguration", ""),
    (
        "openfed__SubscriptionFilterValue",
        "scalar openfed__SubscriptionFilterValue",
    ),
    (
        "openfed__SubscriptionFieldCondition",
        "input openfed__SubscriptionFieldCondition { fieldPath: String! values: [openfed__SubscriptionFilterValue]! }",
    ),
    (
        "openfed__SubscriptionFilterCondition",
        "input openfed__SubscriptionFilterCondition { AND: [openfed__SubscriptionFilterCondition!] IN: openfed__SubscriptionFieldCondition NOT: openfed__SubscriptionFilterCondition OR: [openfed__SubscriptionFilterCondition!] }",
    ),
];

/// Whether a directive is one of these.
pub(crate) fn is_event_directive(name: &str) -> bool {
    name == FILTER || BINDINGS.iter().any(|(known, ..)| *known == name)
}

/// Adds the definitions that an event subgraph leaves out. Says whether it is one.
pub(crate) fn bring(doc: &Document, vocabulary: &mut Vocabulary) -> bool {
    let applies = |name: &str| {
        let mut types = doc
            .definitions
            .iter()
            .filter_map(|definition| match definition {
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
            vocabulary
                .definitions
                .push((name.into(), is_directive, text));
        }
    };
    for (name, args, ..) in BINDINGS {
        add(
            name,
            true,
            format!("directive @{name}{args} on FIELD_DEFINITION"),
        );
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
        add(
            RESULT,
            false,
            format!("type {RESULT} {{ success: Boolean! }}"),
        );
    }
    let inputs = INPUTS.iter().map(|(name, _)| Box::from(*name));
    vocabulary.types.extend(inputs);
    true
}
