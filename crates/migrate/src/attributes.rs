//! Attributes of spans, metrics and log lines of Apollo Router and Cosmo Router, in our words. What looks at something that no
//! [selector](ogive_config::selectors) looks at, or would show a credential, is named as unsupported.

use ogive_base::SourceId;
use ogive_config::{
    ACCESS_LOG_FIELDS, ATTRIBUTE_PLACES, Attribute, AttributeSource, Config, INSTRUMENTS,
    credentials::CredentialHeaders, decode::Errors, is_label, is_name,
};
use ogive_selectors::Selector;
use ogive_yaml::{Node, Value};

use super::{
    Format,
    convert::{same, text_map},
    headers::claim,
    nodes::{at, map, scalar, set, text},
    rules::Walk,
};

/// The stages of Apollo Router that are our places, in their order.
const STAGES: [&str; 3] = ["router", "supergraph", "subgraph"];

/// What spans and metrics say anyway.
const STANDARD: [&str; 14] = [
    "error.type",
    "graphql.document.type",
    "graphql.operation.name",
    "graphql.operation.type",
    "http.request.method",
    "http.response.body.size",
    "http.response.status_code",
    "http.route",
    "server.address",
    "subgraph.graphql.operation.name",
    "subgraph.graphql.operation.type",
    "subgraph.name",
    "url.path",
    "url.scheme",
];

/// What stands below `telemetry.instrumentation.spans.STAGE`.
pub(crate) fn span(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    let Value::Map(entries) = &node.value else {
        return walk.unsupported(path, "it is not a mapping");
    };
    for (key, value) in entries {
        let from = [path, std::slice::from_ref(&key.text)].concat();
        match &*key.text {
            "attributes" => apollo(walk, &from, value),
            _ => walk.unsupported(&from, "spans have fixed names"),
        }
    }
}

/// Metrics of what operations cost, which have Apollo Router's names.
const COSTS: [&str; 3] = ["cost.actual", "cost.delta", "cost.estimated"];

/// What stands below `telemetry.instrumentation.instruments.STAGE`.
pub(crate) fn instruments(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    let place = STAGES.iter().position(|stage| path[3] == *stage);
    let (metric, _) = INSTRUMENTS[place.unwrap_or_default()];
    let Value::Map(entries) = &node.value else {
        return walk.unsupported(path, "it is not a mapping");
    };
    for (key, value) in entries {
        let from = [path, std::slice::from_ref(&key.text)].concat();
        match (scalar(value), at(value, "attributes")) {
            (Some("true"), _) if key.text == metric || COSTS.contains(&key.text.as_str()) => {
                walk.not_needed(&from, "it is there anyway");
            }
            (Some("false"), _) if COSTS.contains(&key.text.as_str()) => {
                walk.not_needed(&from, "metrics of costs are there with `demand_control`");
            }
            (None, Some(attributes)) if key.text == metric => {
                walk.others(&from, value, &["attributes"]);
                let from = [&*from, &["attributes".to_owned()]].concat();
                apollo(walk, &from, attributes);
            }
            _ => walk.unsupported(&from, "metrics have fixed names"),
        }
    }
}

/// Attributes of a span or of a metric.
fn apollo(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    let place = STAGES.iter().position(|stage| path[3] == *stage);
    let place = place.unwrap_or_default();
    let Value::Map(entries) = &node.value else {
        return walk.unsupported(path, "it is not a mapping");
    };
    for (name, value) in entries {
        let from = [path, std::slice::from_ref(&name.text)].concat();
        match scalar(value) {
            Some("true") if STANDARD.contains(&name.text.as_str()) => {
                walk.not_needed(&from, "it is there anyway");
            }
            Some("false") => walk.unsupported(&from, "what is there anyway cannot be left out"),
            Some(_) => walk.unsupported(&from, "there is no such attribute"),
            None => {
                let parts: Vec<&str> = from.iter().map(String::as_str).collect();
                put(walk, &from, &parts, place, value);
            }
        }
    }
}

/// Attributes of an event of Apollo's, which is a line of our access log.
pub(crate) fn apollo_event(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    let Value::Map(entries) = &node.value else {
        return walk.unsupported(path, "it is not a mapping");
    };
    for (name, value) in entries {
        let from = [path, std::slice::from_ref(&name.text)].concat();
        match scalar(value) {
            Some(_) => walk.unsupported(&from, "choose `telemetry.access_log.fields`"),
            None => put(
                walk,
                &from,
                &["telemetry", "access_log", "attributes", &name.text],
                0,
                value,
            ),
        }
    }
}

/// Writes one attribute, if its selector has a counterpart and shows no credential.
fn put(walk: &mut Walk<'_>, from: &[String], target: &[&str], place: usize, value: &Node) {
    let mut errors = Errors::new(SourceId(0));
    let read = Attribute::decode_at(value, ATTRIBUTE_PLACES[place], &mut errors);
    let Some(read) = read.filter(|_| errors.is_empty()) else {
        return walk.unsupported(from, "there is no such selector here");
    };
    if let AttributeSource::Selector(
        Selector::RequestHeader(name)
        | Selector::ResponseHeader(name)
        | Selector::SubgraphRequestHeader(name),
    ) = &read.from
        && CredentialHeaders::of(&Config::default()).has(name)
    {
        return walk.unsupported(from, "it would show a credential");
    }
    let writes = ["coprocessor", "rhai"];
    if matches!(
        &read.from,
        AttributeSource::Selector(Selector::RequestContext(_))
    ) && !writes.iter().any(|key| at(walk.root, key).is_some())
    {
        return walk.unsupported(
            from,
            "nothing writes to the context: neither `coprocessor` nor `rhai` is set",
        );
    }
    let name = target.last().copied().unwrap_or_default();
    let why = match target {
        _ if !is_name(name) => "attributes cannot be called so here",
        ["telemetry", "access_log", ..] if ACCESS_LOG_FIELDS.contains(&name) => {
            "it is a field of its own here: list it in `telemetry.access_log.fields`, or give another name to something else"
        }
        ["telemetry", "instrumentation", "instruments", ..] if !is_label(name, place) => {
            "Prometheus knows no such label, or the metric has it anyway"
        }
        _ => "",
    };
    if !why.is_empty() {
        return walk.unsupported(from, why);
    }
    match text_map(walk.format, value) {
        Ok(value) => walk.put_at(from, target, value),
        Err(why) => walk.unsupported(from, &why),
    }
}

/// Cosmo's lists of `{ key, default, value_from }`: of the access log, or of everything.
pub(crate) fn cosmo(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    let Value::List(items) = &node.value else {
        return walk.unsupported(path, "it is not a list");
    };
    let targets: &[&[&str]] = match (path[0].as_str(), path.get(1).map(String::as_str)) {
        ("access_logs", _) => &[&["telemetry", "access_log", "attributes"]],
        (_, Some("tracing")) => &[SPANS],
        (_, Some("metrics")) => &[METRICS],
        _ => &[SPANS, METRICS],
    };
    for (number, item) in items.iter().enumerate() {
        let from = [path, &[number.to_string()]].concat();
        walk.others(&from, item, &["key", "default", "value_from"]);
        if let Some(source) = at(item, "value_from") {
            let from = [&*from, &["value_from".to_owned()]].concat();
            walk.others(&from, source, &SOURCES);
        }
        let Some(name) = at(item, "key").and_then(scalar) else {
            walk.unsupported(&from, "it has no key");
            continue;
        };
        let Some(attribute) = cosmo_attribute(walk, item) else {
            walk.unsupported(&from, "there is no such selector here");
            continue;
        };
        for target in targets {
            let target = [*target, &[name]].concat();
            put(walk, &from, &target, 0, &attribute);
        }
    }
}

const SPANS: &[&str] = &[
    "telemetry",
    "instrumentation",
    "spans",
    "router",
    "attributes",
];
const METRICS: &[&str] = &[
    "telemetry",
    "instrumentation",
    "instruments",
    "router",
    INSTRUMENTS[0].0,
    "attributes",
];

/// Cosmo's list of `{ key, value }`, which is a mapping here.
pub(crate) fn cosmo_resource(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    let Value::List(items) = &node.value else {
        return walk.unsupported(path, "it is not a list");
    };
    for (number, item) in items.iter().enumerate() {
        let from = [path, &[number.to_string()]].concat();
        walk.others(&from, item, &["key", "value"]);
        let value = at(item, "value").map(|value| same(walk.format, value));
        match (at(item, "key").and_then(scalar), value) {
            (Some(name), Some(Ok(value))) => {
                walk.put_at(&from, &["telemetry", "resource", name], value);
            }
            _ => walk.unsupported(&from, "it has no key or no value"),
        }
    }
}

/// What an attribute of Cosmo's can say.
const SOURCES: [&str; 4] = [
    "request_header",
    "response_header",
    "context_field",
    "expression",
];

/// An attribute of Cosmo's as one of ours.
fn cosmo_attribute(walk: &Walk<'_>, item: &Node) -> Option<Node> {
    let mut out = map();
    let default = at(item, "default").and_then(scalar);
    let get = |name: &str| at(item, name).and_then(scalar);
    if let Some(header) = get("value_from.request_header") {
        set(&mut out, "request_header", text(header));
    } else if let Some(header) = get("value_from.response_header") {
        set(&mut out, "response_header", text(header));
    } else if let Some(field) = get("value_from.context_field") {
        let word = match field {
            "operation_name" => "operation_name",
            "operation_type" => "operation_kind",
            _ => return None,
        };
        set(&mut out, word, text("true"));
    } else if let Some(expression) = get("value_from.expression") {
        let known = super::tokens::cosmo_knows(walk);
        let path = claim(Format::Cosmo, expression).filter(|_| known)?;
        set(&mut out, "jwt_claim", text(path));
    } else if at(item, "value_from").is_none() {
        set(&mut out, "static", text(default?));
        return Some(out);
    } else {
        return None;
    }
    if let Some(default) = default.filter(|default| !default.is_empty()) {
        set(&mut out, "default", text(default));
    }
    Some(out)
}
