//! Telemetry of the four gateways in our words.

use ogive_yaml::{Node, Value};

use super::{
    attributes::apollo_event,
    convert::{duration, same, text_map},
    nodes::{at, dotted, plain, scalar, text},
    rules::Walk,
    why::OFF,
};

const METRICS: &str = "telemetry.exporters.metrics.otlp";
const TRACES: &str = "telemetry.exporters.tracing.otlp";

/// Apollo's `otlp` of traces or metrics, whose keys are ours but for a few.
pub(crate) fn apollo_otlp(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    let target = dotted(path);
    let traces = target == TRACES;
    let Value::Map(entries) = &node.value else {
        return;
    };
    for (key, value) in entries {
        let mut from = path.to_vec();
        from.push(key.text.clone());
        match &*key.text {
            "enabled" | "protocol" => copy(walk, &from, &format!("{target}.{}", key.text), value),
            "endpoint" => endpoint(walk, &from, &target, value),
            "http" | "grpc" => {
                let Value::Map(entries) = &value.value else {
                    walk.unsupported(&from, "only headers have a counterpart");
                    continue;
                };
                for (key, value) in entries {
                    let from = [&*from, std::slice::from_ref(&key.text)].concat();
                    match &*key.text {
                        "headers" | "metadata" => {
                            let headers = text_map(walk.format, value);
                            walk.try_put(&from, &format!("{target}.headers"), headers);
                        }
                        _ => walk.unsupported(&from, "only headers have a counterpart"),
                    }
                }
            }
            "batch_processor" => batch(walk, &from, &target, traces, value),
            "temporality" => match scalar(value) {
                Some("cumulative") => walk.not_needed(&from, "it always is so here"),
                _ => walk.unsupported(&from, "metrics are cumulative"),
            },
            _ => walk.unsupported(&from, "this key is not known to the migration"),
        }
    }
    if at(node, "enabled").and_then(scalar) == Some("true") {
        let why = "Apollo Router speaks gRPC with collectors by default";
        walk.implied(&format!("{target}.protocol"), "grpc", why);
        if at(node, "protocol").and_then(scalar) != Some("http") {
            let why = "the usual port of collectors for gRPC";
            walk.implied(&format!("{target}.endpoint"), "http://127.0.0.1:4317", why);
        }
    }
}

/// The formats of trace context that Hive Router, Grafbase Gateway and Cosmo Router name as we do.
pub(crate) fn propagation(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    const KNOWN: [&str; 5] = ["trace_context", "baggage", "b3", "jaeger", "datadog"];
    let Value::Map(entries) = &node.value else {
        return walk.unsupported(path, "it is not a mapping");
    };
    for (key, value) in entries.iter().filter(|(_, value)| !value.is_null()) {
        let from = [path, std::slice::from_ref(&key.text)].concat();
        if KNOWN.contains(&&*key.text) {
            let target = format!("telemetry.exporters.tracing.propagation.{}", key.text);
            copy(walk, &from, &target, value);
        } else {
            walk.unsupported(&from, "collectors translate other formats");
        }
    }
}

fn copy(walk: &mut Walk<'_>, from: &[String], target: &str, value: &Node) {
    walk.try_put(from, target, same(walk.format, value))
}

fn endpoint(walk: &mut Walk<'_>, from: &[String], target: &str, value: &Node) {
    match scalar(value) {
        Some("default") | None => walk.not_needed(from, "the default holds"),
        Some(found) => {
            let found = match super::environment::environment(walk.format, found) {
                Ok(found) => found,
                Err(why) => return walk.unsupported(from, &why),
            };
            let url = if found.contains("://") || found.starts_with("${") {
                found
            } else {
                format!("http://{found}")
            };
            walk.put(from, &format!("{target}.endpoint"), text(url), "");
        }
    }
}

fn batch(walk: &mut Walk<'_>, path: &[String], target: &str, traces: bool, node: &Node) {
    let Value::Map(entries) = &node.value else {
        return;
    };
    for (key, value) in entries {
        let mut from = path.to_vec();
        from.push(key.text.clone());
        let name = match (&*key.text, traces) {
            ("scheduled_delay", true) => "batch_processor.scheduled_delay",
            ("scheduled_delay", false) => "interval",
            ("max_export_batch_size", true) => "batch_processor.max_export_batch_size",
            ("max_queue_size", true) => "batch_processor.max_queue_size",
            ("max_export_timeout", _) => "timeout",
            _ => {
                let why = "one message is sent at a time";
                walk.not_needed(&from, why);
                continue;
            }
        };
        let value = match name {
            "interval" | "timeout" | "batch_processor.scheduled_delay" => {
                duration(walk.format, value)
            }
            _ => same(walk.format, value),
        };
        walk.try_put(&from, &format!("{target}.{name}"), value)
    }
}

/// What is read of an exporter.
const EXPORTER: [&str; 11] = [
    "kind", "exporter", "enabled", "disabled", "port", "path", "protocol", "endpoint", "headers",
    "http", "grpc",
];

/// Lists of exporters, of Hive's (`kind`, `enabled`) and Cosmo's kind (`exporter`, `disabled`): the first of a kind.
pub(crate) fn exporters(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    let Value::List(items) = &node.value else {
        return;
    };
    let traces = path.iter().any(|part| part == "tracing");
    let mut used: Vec<&str> = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let mut from = path.to_vec();
        from.push(index.to_string());
        let get = |name: &str| at(item, name).and_then(scalar);
        let kind = match (get("kind"), get("exporter")) {
            (Some("prometheus"), _) if !traces => "prometheus",
            (Some("otlp"), _) | (None, _) => "otlp",
            _ => {
                walk.unsupported(&from, "exporters are `otlp` and `prometheus`");
                continue;
            }
        };
        if get("enabled") == Some("false") || get("disabled") == Some("true") {
            walk.not_needed(&from, OFF);
            continue;
        }
        if let Value::Map(entries) = &item.value {
            for (key, value) in entries {
                let from = [&*from, std::slice::from_ref(&key.text)].concat();
                match &*key.text {
                    "http" => walk.others(&from, value, &["headers"]),
                    "grpc" => walk.others(&from, value, &["metadata"]),
                    known if EXPORTER.contains(&known) => {}
                    _ => walk.unsupported(&from, "exporters have no such setting here"),
                }
            }
        }
        if used.contains(&kind) {
            walk.unsupported(&from, "there is one exporter of a kind");
            continue;
        }
        used.push(kind);
        if kind == "prometheus" {
            let base = "telemetry.exporters.metrics.prometheus";
            walk.put(&from, &format!("{base}.enabled"), plain("true"), "");
            if let Some(port) = get("port") {
                let listen = text(format!("0.0.0.0:{port}"));
                walk.put(&from, &format!("{base}.listen"), listen, "");
            }
            if let Some(path) = get("path") {
                walk.put(&from, &format!("{base}.path"), text(path), "");
            }
            continue;
        }
        let base = if traces { TRACES } else { METRICS };
        walk.put(&from, &format!("{base}.enabled"), plain("true"), "");
        if let Some(protocol) = get("protocol").or(get("exporter")) {
            let protocol = if protocol.contains("grpc") {
                "grpc"
            } else {
                "http"
            };
            walk.put(&from, &format!("{base}.protocol"), plain(protocol), "");
        }
        if let Some(found) = get("endpoint") {
            let mut url = match super::environment::environment(walk.format, found) {
                Ok(url) => url,
                Err(why) => {
                    walk.unsupported(&from, &why);
                    continue;
                }
            };
            // Cosmo writes the path apart.
            if let Some(path) = get("path").filter(|_| get("exporter") != Some("grpc")) {
                url = format!("{}{path}", url.trim_end_matches('/'));
            }
            walk.put(&from, &format!("{base}.endpoint"), text(url), "");
        }
        let headers = ["headers", "http.headers", "grpc.metadata"];
        for headers in headers.iter().filter_map(|name| at(item, name)) {
            match text_map(walk.format, headers) {
                Ok(headers) if matches!(&headers.value, Value::Map(all) if all.is_empty()) => {}
                Ok(headers) => walk.put(&from, &format!("{base}.headers"), headers, ""),
                Err(why) => walk.unsupported(&from, &why),
            }
        }
    }
}

/// Grafbase's `exporters.otlp` for everything, or for one of the two.
pub(crate) fn grafbase_otlp(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    let targets: &[&str] = match path.get(1).map(String::as_str) {
        Some("metrics") => &[METRICS],
        Some("tracing") => &[TRACES],
        _ => &[METRICS, TRACES],
    };
    let Value::Map(entries) = &node.value else {
        return;
    };
    for target in targets {
        for (key, value) in entries {
            let mut from = path.to_vec();
            from.push(key.text.clone());
            match &*key.text {
                "enabled" | "protocol" => {
                    copy(walk, &from, &format!("{target}.{}", key.text), value);
                }
                "endpoint" => endpoint(walk, &from, target, value),
                "timeout" => walk.try_put(
                    &from,
                    &format!("{target}.timeout"),
                    duration(walk.format, value),
                ),
                "headers" => walk.try_put(
                    &from,
                    &format!("{target}.headers"),
                    text_map(walk.format, value),
                ),
                "batch_export" => batch(walk, &from, target, *target == TRACES, value),
                _ => {
                    let why = "this key is not known to the migration";
                    walk.unsupported(&from, why);
                }
            }
        }
        if at(node, "enabled").and_then(scalar) == Some("true") {
            let why = "Grafbase Gateway speaks gRPC with collectors by default";
            walk.implied(&format!("{target}.protocol"), "grpc", why);
        }
    }
}

/// Apollo's `telemetry.instrumentation.events`: lines of the log for requests and answers. Here a request is one line of
/// the access log, written when it is answered, and errors are logged whatever is set.
pub(crate) fn apollo_events(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    const ACCESS_LOG: &str = "telemetry.access_log.enabled";
    let Value::Map(stages) = &node.value else {
        return walk.unsupported(path, "it is not a mapping");
    };
    for (stage, events) in stages {
        let of_stage = [path, std::slice::from_ref(&stage.text)].concat();
        let Value::Map(entries) = &events.value else {
            walk.unsupported(&of_stage, "it is not a mapping");
            continue;
        };
        for (event, value) in entries {
            let from = [&*of_stage, std::slice::from_ref(&event.text)].concat();
            let level = at(value, "level").unwrap_or(value);
            let client = matches!(&*stage.text, "router" | "supergraph");
            match (&*event.text, scalar(level)) {
                ("request" | "response" | "error", Some("off") | None) => {
                    walk.not_needed(&from, OFF);
                }
                ("request" | "response", Some(_)) if client => {
                    let note = match at(value, "condition") {
                        Some(_) => "a line for every request: there are no conditions",
                        None => "one line per request, written when it is answered",
                    };
                    walk.put(&from, ACCESS_LOG, plain("true"), note);
                    if let Some(attributes) = at(value, "attributes") {
                        let from = [&*from, &["attributes".to_owned()]].concat();
                        apollo_event(walk, &from, attributes);
                    }
                }
                ("request" | "response", Some(_)) => {
                    let why = "requests to subgraphs are spans of the trace; `telemetry.access_log` counts them";
                    walk.unsupported(&from, why);
                }
                ("error", Some(_)) => walk.not_needed(&from, "errors are logged anyway"),
                _ => {
                    let why = "events have fixed names; choose `telemetry.access_log.fields`";
                    walk.unsupported(&from, why);
                }
            }
        }
    }
}
