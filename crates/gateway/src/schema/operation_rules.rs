//! Rules about what operations are (`limits.operation_rules`), for one schema; the stage that asks them is
//! [`operation_rules`](crate::operation_rules).

use ogive_base::SourceId;
use ogive_config::{Config, OperationRuleOptions, RefusedWord};
use ogive_federation::Supergraph;
use ogive_operation::{ArgValue, FieldRef, NormaliseLimits, Operation, normalise, validate};
use ogive_schema::{ConstValue, OperationKind};
use ogive_selectors::Condition;
use ogive_syntax::{
    Limits,
    ast::{Definition, OperationDefinition},
    parse,
};

use crate::schema::canonical::{ComparedFields, canonical};

/// The rules of a configuration, for one schema.
#[derive(Debug)]
pub struct OperationRules {
    pub(crate) rules: Vec<OperationRule>,
}

/// One of them.
#[derive(Debug)]
pub(crate) struct OperationRule {
    pub(crate) refuse: RefusedWord,
    pub(crate) when: Option<Condition>,
    pub(crate) unless: Option<Condition>,
    pub(crate) message: Box<str>,
    pub(crate) warn_only: bool,
    /// Canonical forms of what is listed.
    forms: Vec<Box<[u8]>>,
}

/// What an operation is, as far as rules ask.
#[derive(Debug)]
pub struct OperationFacts {
    introspects: bool,
    has_literals: bool,
    form: Box<[u8]>,
}

impl OperationRules {
    /// Those that a configuration asks for; `None` if there are none. A document that is not valid under the schema can be
    /// nobody's operation; the notes name it.
    pub(crate) fn new(
        supergraph: &Supergraph,
        compared: &ComparedFields,
        config: &Config,
        notes: &mut Vec<String>,
    ) -> Option<Self> {
        let rules = config.limits.operation_rules.iter();
        let rules: Vec<OperationRule> = rules
            .filter_map(|options| rule(options, (supergraph, compared), notes))
            .collect();
        (!rules.is_empty()).then_some(OperationRules { rules })
    }
}

fn rule(
    options: &OperationRuleOptions,
    (supergraph, compared): (&Supergraph, &ComparedFields),
    notes: &mut Vec<String>,
) -> Option<OperationRule> {
    let refuse = options.refuse?;
    let mut forms = Vec::new();
    for document in &options.documents {
        match operation_of(supergraph, document) {
            Some(operation) => forms.push(canonical(supergraph, compared, &operation).key),
            None => notes.push(format!(
                "`limits.operation_rules` lists a document that is no operation of this schema: `{}`",
                ogive_base::bounded_name(document)
            )),
        }
    }
    let message = match options.message.as_str() {
        "" => format!("{} are not allowed here", words(refuse)),
        message => message.to_owned(),
    };
    Some(OperationRule {
        refuse,
        when: options.when.clone(),
        unless: options.unless.clone(),
        message: message.into(),
        warn_only: options.warn_only,
        forms,
    })
}

fn words(refuse: RefusedWord) -> &'static str {
    match refuse {
        RefusedWord::Mutations => "mutations",
        RefusedWord::Subscriptions => "subscriptions",
        RefusedWord::Anonymous => "operations without a name",
        RefusedWord::Literals => "numbers and texts in place of variables",
        RefusedWord::Introspection => "`__schema` and `__type`",
        RefusedWord::Documents => "operations like this one",
    }
}

/// The only operation of a document.
fn operation_of(supergraph: &Supergraph, document: &str) -> Option<Operation> {
    let parsed = parse(document, SourceId(0), &Limits::default());
    if !parsed.errors.is_empty() {
        return None;
    }
    let document = parsed.document;
    let mut operations = document.definitions.iter().filter_map(|d| match d {
        Definition::Operation(operation) => Some(*operation),
        _ => None,
    });
    let (operation, None) = (operations.next()?, operations.next()) else {
        return None;
    };
    let limits = NormaliseLimits::default();
    if !validate(&supergraph.api, &document, &Default::default()).is_empty() {
        return None;
    }
    normalise(&supergraph.api, &document, &operation, &limits).ok()
}

impl OperationFacts {
    /// Those of an operation in normal form.
    pub(crate) fn of(
        rules: &OperationRules,
        supergraph: &Supergraph,
        compared: &ComparedFields,
        operation: &Operation,
    ) -> Self {
        let fields = operation.fields.as_slice();
        let mut arguments = fields.iter().flat_map(|field| &field.args);
        let is_listed = rules.rules.iter().any(|rule| !rule.forms.is_empty());
        OperationFacts {
            introspects: fields
                .iter()
                .any(|field| matches!(field.field, FieldRef::Schema | FieldRef::Type)),
            has_literals: arguments.any(|argument| is_literal(&argument.value))
                || (operation.variables.iter())
                    .any(|variable| variable.default.as_ref().is_some_and(is_literal_constant)),
            form: if is_listed {
                canonical(supergraph, compared, operation).key
            } else {
                Box::default()
            },
        }
    }
}

/// Whether a value has a number or a text in it that a variable could be.
fn is_literal(value: &ArgValue) -> bool {
    match value {
        ArgValue::Variable(_) => false,
        ArgValue::Const(value) => is_literal_constant(value),
        ArgValue::List(items) => items.iter().any(is_literal),
        ArgValue::Object(members) => members.iter().any(|(_, value)| is_literal(value)),
    }
}

fn is_literal_constant(value: &ConstValue) -> bool {
    match value {
        ConstValue::Null | ConstValue::Boolean(_) | ConstValue::Enum(_) => false,
        ConstValue::Int(_) | ConstValue::Float(_) | ConstValue::String(_) => true,
        ConstValue::List(items) => items.iter().any(is_literal_constant),
        ConstValue::Object(members) => members.iter().any(|(_, value)| is_literal_constant(value)),
    }
}

impl OperationRule {
    /// Whether it is about an operation, whoever asks.
    pub(crate) fn is_about(
        &self,
        definition: &OperationDefinition,
        facts: &OperationFacts,
    ) -> bool {
        match self.refuse {
            RefusedWord::Mutations => definition.kind == OperationKind::Mutation,
            RefusedWord::Subscriptions => definition.kind == OperationKind::Subscription,
            RefusedWord::Anonymous => definition.name.is_none(),
            RefusedWord::Literals => facts.has_literals,
            RefusedWord::Introspection => facts.introspects,
            RefusedWord::Documents => self.forms.contains(&facts.form),
        }
    }
}
