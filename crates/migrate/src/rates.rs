//! Rates of subgraphs, and those of Cosmo Router, which count requests to subgraphs, too.

use ogive_yaml::{Node, Value};

use super::{
    Verdict,
    convert::{duration, same},
    headers,
    nodes::{at, dotted, is_on, map, one, plain, quoted, scalar, set, text},
    redis,
    rules::Walk,
    tokens,
    why::OFF,
};

/// How a rate is called that has no name elsewhere.
const NAME: &str = "subgraph";

/// So much in so much time: `capacity` and `interval`, or `limit` and `duration`.
pub(crate) fn of_subgraph(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    let target = match path {
        [_, all, _] if all == "all" => "traffic_shaping.all.rate_limits".to_owned(),
        [.., name, _] => format!("traffic_shaping.subgraphs.{}.rate_limits", quoted(name)),
        _ => return walk.unsupported(path, "it is of no subgraph"),
    };
    let Value::Map(entries) = &node.value else {
        return walk.unsupported(path, "it is not a mapping");
    };
    let known = ["capacity", "interval", "limit", "duration"];
    if let Some((key, _)) = entries.iter().find(|(key, _)| !known.contains(&&*key.text)) {
        return walk.unsupported(path, &format!("`{}` is not known here", key.text));
    }
    let either = |one: &str, other: &str| at(node, one).or_else(|| at(node, other));
    let (Some(capacity), Some(interval)) =
        (either("capacity", "limit"), either("interval", "duration"))
    else {
        return walk.unsupported(path, "it does not say how much in how much time");
    };
    let format = walk.format;
    match (same(format, capacity), duration(format, interval)) {
        (Ok(capacity), Ok(interval)) => {
            let mut rate = map();
            set(&mut rate, "name", text(NAME));
            set(&mut rate, "capacity", capacity);
            set(&mut rate, "interval", interval);
            walk.put(path, &target, one(rate), "");
        }
        (Err(why), _) | (_, Err(why)) => walk.unsupported(path, &why),
    }
}

/// Grafbase's `gateway.rate_limit.global`: in memory, or in Redis.
pub(crate) fn grafbase(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    const RATE: &str = "traffic_shaping.router.rate_limit";
    let Value::Map(entries) = &node.value else {
        return walk.unsupported(path, "it is not a mapping");
    };
    let mut rate = map();
    set(&mut rate, "name", text("global"));
    for (key, value) in entries {
        let from = [path, std::slice::from_ref(&key.text)].concat();
        let (name, value) = match &*key.text {
            "limit" => ("capacity", same(walk.format, value)),
            "duration" => ("interval", duration(walk.format, value)),
            _ => {
                walk.unsupported(&from, "there is no such setting here");
                continue;
            }
        };
        match value {
            Ok(value) => set(&mut rate, name, value),
            Err(why) => walk.unsupported(&from, &why),
        }
    }
    let shared = walk.text("gateway.rate_limit.storage") == Some("redis")
        && at(walk.root, "gateway.rate_limit.redis").is_some();
    if shared {
        set(&mut rate, "storage", plain("redis"));
        let note = "operations that are valid are counted, by all processes together";
        return walk.put(path, &format!("{RATE}s"), one(rate), note);
    }
    for name in ["capacity", "interval"] {
        if let Some(value) = at(&rate, name) {
            walk.put(path, &format!("{RATE}.{name}"), value.clone(), "");
        }
    }
}

const SUBGRAPHS: &str = "traffic_shaping.all.rate_limits";

/// Cosmo's `rate_limit`: one count for the requests to all subgraphs together.
pub(crate) fn cosmo(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    let Value::Map(entries) = &node.value else {
        return walk.unsupported(path, "it is not a mapping");
    };
    if !at(node, "enabled").is_some_and(is_on) {
        return walk.not_needed(path, OFF);
    }
    let Some(mut rate) = simple_rate(walk, path, node) else {
        return walk.unsupported(path, "it does not say how much in how much time");
    };
    for (key, value) in entries {
        let from = [path, std::slice::from_ref(&key.text)].concat();
        match &*key.text {
            "enabled" => walk.not_needed(&from, "rates are limited where they are set"),
            "strategy" if scalar(value) == Some("simple") => {
                walk.not_needed(&from, "there is one strategy");
            }
            "simple_strategy" => strategy(walk, &from, value),
            "storage" if redis::cosmo(walk, &from, value) => {
                set(&mut rate, "storage", plain("redis"));
            }
            "storage" => {}
            "key_suffix_expression" => key_of(walk, &from, value, &mut rate),
            "debug" => walk.not_needed(&from, "`RateLimit` headers and the log say what is left"),
            "error_extension_code" => walk.not_needed(&from, "the code is `REQUEST_RATE_LIMITED`"),
            _ => walk.unsupported(&from, "there is no such setting here"),
        }
    }
    let note = match at(&rate, "storage") {
        Some(_) => "counted for each subgraph by itself; there for all of them together",
        None => {
            "counted for each subgraph by itself, and by each process until `store.redis` and `storage: redis` are set; there for all of them together"
        }
    };
    let from = [path, &["simple_strategy".to_owned()]].concat();
    walk.put(&from, SUBGRAPHS, one(rate), note);
}

/// How much in how much time.
fn simple_rate(walk: &Walk<'_>, path: &[String], node: &Node) -> Option<Node> {
    let strategy = at(node, "simple_strategy")?;
    let mut rate = map();
    set(&mut rate, "name", text(dotted(path)));
    set(
        &mut rate,
        "capacity",
        same(walk.format, at(strategy, "rate")?).ok()?,
    );
    let interval = duration(walk.format, at(strategy, "period")?).ok()?;
    set(&mut rate, "interval", interval);
    Some(rate)
}

/// What else the strategy says.
fn strategy(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    let Value::Map(entries) = &node.value else {
        return;
    };
    for (key, value) in entries {
        let from = [path, std::slice::from_ref(&key.text)].concat();
        match &*key.text {
            "rate" | "period" => {}
            "burst" => walk.not_needed(&from, "a burst is as large as the rate of one period"),
            "reject_exceeding_requests" if is_on(value) => {
                let why = "fields of a subgraph over its rate are null; other fields are answered";
                walk.row(&from, None, Verdict::NotNeeded, why);
            }
            "reject_exceeding_requests" => walk.not_needed(&from, "it is so here, too"),
            "reject_status_code" | "hide_stats_from_response_extension" => {
                walk.not_needed(&from, "the response is 200, with `REQUEST_RATE_LIMITED` for the fields");
            }
            "overrides" => walk.unsupported(
                &from,
                "write `overrides: [{ matching: CONDITION, capacity: N }]` by hand: conditions look at claims and headers, not at the text of a key",
            ),
            _ => walk.unsupported(&from, "there is no such setting here"),
        }
    }
}

/// Whose requests are counted together.
fn key_of(walk: &mut Walk<'_>, path: &[String], node: &Node, rate: &mut Node) {
    const BY_HAND: &str = "until `traffic_shaping.all.rate_limits[].key` is set by hand (`jwt_claim`, `request_header`, `client_address`, ...), all clients share the one rate";
    let expression = scalar(node).unwrap_or_default().trim();
    let header = expression.strip_prefix("request.header.Get(");
    let header = header.and_then(|rest| rest.strip_suffix(')'));
    let header = header.map(|name| name.trim_matches(['\'', '"']));
    let is_name = |name: &&str| {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        !name.is_empty() && name.chars().all(is_part)
    };
    let mut selector = map();
    match (
        headers::claim(walk.format, expression),
        header.filter(is_name),
    ) {
        _ if expression.is_empty() => return walk.not_needed(path, "it is empty"),
        (Some(claim), _) if tokens::cosmo_knows(walk) => {
            set(&mut selector, "jwt_claim", text(claim));
        }
        (None, Some(name)) => set(&mut selector, "request_header", text(name)),
        _ => return walk.unsupported(path, BY_HAND),
    }
    set(rate, "key", one(selector));
    walk.row(path, Some(SUBGRAPHS), Verdict::Renamed, "");
}
