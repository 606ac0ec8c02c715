//! Attributes of log lines, spans and metrics, as the configuration asks for them: which selector each is, and where what it
//! says is noted.
//!
//! Composed when a configuration is swapped; without any there are no rules, and nothing is looked at. Whatever is known is
//! noted as soon as it is: who asks when that is proved ([`AttributeRules::note_caller`]), what is asked when the operation
//! is done ([`AttributeRules::note_operation`]), how it is answered at the end ([`AttributeRules::note_response`]). The first
//! to know counts.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use http::{HeaderMap, Response};
use ogive_config::{Attribute, AttributeSource, Config};
use ogive_identity::Caller;
use ogive_selectors::Selector;
use ogive_server::ResponseBody;
use ogive_telemetry::{
    Call, Operation, Record,
    attributes::{AttributeName, Attributes, Signal, kept_name},
};

/// Attributes of one place.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    names: Arc<[AttributeName]>,
    /// In the order of the names; `None` of those that always say the same.
    from: Vec<Option<Selector>>,
}

impl Rules {
    fn new<'c>(all: impl IntoIterator<Item = (Signal, &'c String, &'c Attribute)>) -> Self {
        let all = all.into_iter().map(|(signal, name, attribute)| {
            let (default, from) = match &attribute.from {
                AttributeSource::Static(text) => (Some(text), None),
                AttributeSource::Selector(from) => (attribute.default.as_ref(), Some(from.clone())),
            };
            let name = AttributeName {
                name: kept_name(name),
                signal,
                default: default.map(|text| text.as_str().into()),
            };
            (name, from)
        });
        let (names, from): (Vec<AttributeName>, Vec<_>) = all.unzip();
        Rules {
            names: names.into(),
            from,
        }
    }
    fn is_empty(&self) -> bool {
        self.from.is_empty()
    }
    /// Notes what is known and was not before.
    fn note<'v>(&self, to: &mut Attributes, find: impl Fn(&Selector) -> Option<Cow<'v, str>>) {
        for (number, from) in self.from.iter().enumerate() {
            if let Some(from) = from
                && !to.has(number)
                && let Some(value) = find(from)
            {
                to.note(number, &value);
            }
        }
    }
}

/// All attributes of a configuration.
#[derive(Clone, Debug, Default)]
pub(crate) struct AttributeRules {
    request: Rules,
    operation: Rules,
    subgraph: Rules,
}

/// Whether attributes look at headers of subgraphs' answers.
pub(crate) fn looks_at_answers(config: &Config) -> bool {
    let rules = AttributeRules::new(config);
    rules.is_some_and(|rules| {
        let is_header = |from: &Selector| matches!(from, Selector::ResponseHeader(_));
        rules.subgraph.from.iter().flatten().any(is_header)
    })
}

impl AttributeRules {
    /// Those that a configuration asks for; `None` if there are none.
    pub(crate) fn new(config: &Config) -> Option<Arc<Self>> {
        let telemetry = &config.telemetry;
        let (spans, instruments) = (
            &telemetry.instrumentation.spans,
            &telemetry.instrumentation.instruments,
        );
        let exporters = &telemetry.exporters;
        let is_counted = exporters.metrics.prometheus.enabled || exporters.metrics.otlp.enabled;
        let is_traced = exporters.tracing.otlp.enabled;
        let of = |signal, all| {
            let is_shown = match signal {
                Signal::Span => is_traced,
                _ => is_counted,
            };
            of(signal, all).filter(move |_| is_shown)
        };
        let log = telemetry.access_log.attributes.0.iter();
        let log = log.filter(|_| telemetry.access_log.enabled);
        let request = log
            .map(|(name, attribute)| (Signal::Log, name, attribute))
            .chain(of(Signal::Span, &spans.router.attributes.0))
            .chain(of(Signal::Metric, &instruments.router.0.0));
        let operation = of(Signal::Span, &spans.supergraph.attributes.0)
            .chain(of(Signal::Metric, &instruments.supergraph.0.0));
        let subgraph = of(Signal::Span, &spans.subgraph.attributes.0)
            .chain(of(Signal::Metric, &instruments.subgraph.0.0));
        let rules = AttributeRules {
            request: Rules::new(request),
            operation: Rules::new(operation),
            subgraph: Rules::new(subgraph),
        };
        let all = [&rules.request, &rules.operation, &rules.subgraph];
        let is_none = all.into_iter().all(Rules::is_empty);
        (!is_none).then(|| Arc::new(rules))
    }

    /// A request begins.
    pub(crate) fn begin(&self, record: &mut Record) {
        if !self.request.is_empty() {
            record.with_attributes(&self.request.names);
        }
    }

    /// It is known who asks.
    pub(crate) fn note_caller(&self, record: &Record, caller: &Caller) {
        record.note(|noted| {
            self.request.note(noted, |from| match from {
                Selector::JwtClaim(claim) => caller.scalar(claim),
                _ => None,
            });
        });
    }

    /// An operation is done, or goes on behind its response; `find` says what is known of who asks, and how.
    pub(crate) fn note_operation<'v>(
        &self,
        record: &Record,
        operation: &mut Operation,
        (goes_on, subgraph): (bool, impl Fn(u32) -> String),
        find: impl Fn(&Selector) -> Option<Cow<'v, str>>,
    ) {
        let has_errors = operation.errors > 0 || operation.code.is_some();
        // Of an answer that goes on behind its response nobody knows yet that it has none.
        let has_errors = (has_errors || !goes_on).then_some(has_errors);
        let (name, kind) = (operation.name.clone(), operation.kind);
        let find = |from: &Selector| match from {
            Selector::OperationName => name.as_deref().map(|name| name.to_owned().into()),
            Selector::OperationKind => (!kind.is_empty()).then(|| kind.into()),
            Selector::OnGraphqlError => Some(has_errors?.to_string().into()),
            _ => find(from),
        };
        record.note(|noted| {
            self.request.note(noted, |from| match from {
                // Other operations of the request may have errors.
                Selector::OnGraphqlError => has_errors?.then(|| "true".into()),
                // Hooks of the response write there, too.
                Selector::RequestContext(_) => None,
                _ => find(from),
            });
        });
        if !self.operation.is_empty() {
            let mut noted = Attributes::new(&self.operation.names);
            self.operation.note(&mut noted, find);
            operation.attributes = Some(Box::new(noted));
        }
        if self.subgraph.is_empty() {
            return;
        }
        for call in &mut operation.calls {
            let status = call.status.map(|status| status.to_string());
            let mut noted = self.take(call);
            self.subgraph.note(&mut noted, |from| match from {
                Selector::SubgraphName => Some(subgraph(call.subgraph).into()),
                Selector::ResponseStatus => status.clone().map(Cow::Owned),
                // Of the subgraph, and noted when they came.
                Selector::ResponseHeader(_) | Selector::SubgraphRequestHeader(_) => None,
                _ => find(from),
            });
            call.attributes = Some(noted);
        }
    }

    fn take(&self, call: &mut Call) -> Box<Attributes> {
        let noted = call.attributes.take();
        noted.unwrap_or_else(|| Box::new(Attributes::new(&self.subgraph.names)))
    }

    /// A request to a subgraph has these headers, or its answer has them.
    pub(crate) fn note_headers(&self, call: &mut Call, headers: &HeaderMap, is_answer: bool) {
        if self.subgraph.is_empty() {
            return;
        }
        let mut noted = self.take(call);
        self.subgraph
            .note(&mut noted, |from| match (from, is_answer) {
                (Selector::SubgraphRequestHeader(name), false)
                | (Selector::ResponseHeader(name), true) => header(headers, name),
                _ => None,
            });
        call.attributes = Some(noted);
    }

    /// What a coprocessor or a script has left in the context, as `entry` says it.
    pub(crate) fn note_entries<'v>(
        &self,
        record: &Record,
        entry: impl Fn(&str) -> Option<Cow<'v, str>>,
    ) {
        record.note(|noted| {
            self.request.note(noted, |from| match from {
                Selector::RequestContext(name) => entry(name),
                _ => None,
            });
        });
    }

    /// The response is ready. Whoever was refused before it was known who asks is known by what its head says.
    pub(crate) fn note_response<'v>(
        &self,
        record: &Record,
        head: impl Fn(&Selector) -> Option<Cow<'v, str>>,
        response: &Response<ResponseBody>,
    ) {
        let goes_on = response.body().is_in_parts();
        record.note(|noted| {
            self.request.note(noted, |from| match from {
                Selector::ResponseHeader(name) => header(response.headers(), name),
                Selector::ResponseStatus => Some(response.status().as_u16().to_string().into()),
                Selector::RequestMethod => Some(record.method.to_owned().into()),
                Selector::OnGraphqlError if record.code().is_some() => Some("true".into()),
                Selector::OnGraphqlError => (!goes_on).then(|| "false".into()),
                _ => head(from),
            });
        });
    }
}

fn of(
    signal: Signal,
    all: &BTreeMap<String, Attribute>,
) -> impl Iterator<Item = (Signal, &String, &Attribute)> {
    all.iter()
        .map(move |(name, attribute)| (signal, name, attribute))
}

fn header(headers: &HeaderMap, name: &str) -> Option<Cow<'static, str>> {
    Some(headers.get(name)?.to_str().ok()?.to_owned().into())
}
