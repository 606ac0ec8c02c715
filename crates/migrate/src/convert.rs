//! Values of other configurations in our words.

use ogive_base::Span;
use ogive_config::{Duration, parse_byte_size};
use ogive_yaml::{Node, Value};

use super::{
    Format,
    environment::{environment, referenced, refers},
    nodes::{list, map, plain, scalar, set, set_key, text},
};

/// A value, or why there is no such value here.
pub(crate) type Convert = fn(Format, &Node) -> Result<Node, String>;

/// The value as it is; references to the environment are brought into our form.
pub(crate) fn same(format: Format, node: &Node) -> Result<Node, String> {
    if let Value::List(items) = &node.value {
        let items: Result<Vec<Node>, String> = items.iter().map(|n| same(format, n)).collect();
        return items.map(list);
    }
    if let Some(reference) = referenced(format, node) {
        return Ok(text(reference));
    }
    match &node.value {
        Value::Scalar { text: found, plain } => {
            let expanded = environment(format, found)?;
            Ok(Node {
                span: Span::default(),
                value: Value::Scalar {
                    plain: *plain && expanded == *found,
                    text: expanded,
                },
            })
        }
        _ => Err("its value has a form that is not known to the migration".into()),
    }
}

/// [`same`] for a value that may contain mappings. The caller has decoded it, so its nesting is bounded.
pub(crate) fn whole(format: Format, node: &Node) -> Result<Node, String> {
    match &node.value {
        Value::Map(entries) => {
            let mut out = map();
            for (key, value) in entries {
                set_key(&mut out, &key.text, whole(format, value)?);
            }
            Ok(out)
        }
        Value::List(items) => {
            let items: Result<Vec<Node>, String> = items.iter().map(|n| whole(format, n)).collect();
            items.map(list)
        }
        Value::Scalar { .. } => same(format, node),
    }
}

/// A duration in any of the four ways to write one.
pub(crate) fn duration(format: Format, node: &Node) -> Result<Node, String> {
    if let Some(reference) = elsewhere(format, node)? {
        return Ok(reference);
    }
    let found = scalar(node).ok_or("its value is not a duration")?;
    let ms = milliseconds(found).ok_or_else(|| format!("`{found}` is not a duration"))?;
    let duration = Duration(std::time::Duration::from_millis(ms));
    if duration > Duration::MAX {
        return Err("the longest duration here is `24h`".into());
    }
    Ok(plain(duration.to_string()))
}

/// A value that comes from the environment.
pub(crate) fn elsewhere(format: Format, node: &Node) -> Result<Option<Node>, String> {
    if let Some(reference) = referenced(format, node) {
        return Ok(Some(text(reference)));
    }
    let found = scalar(node).map(|found| environment(format, found));
    Ok(found.transpose()?.filter(|found| refers(found)).map(text))
}

/// A whole number of seconds.
pub(crate) fn seconds(format: Format, node: &Node) -> Result<Node, String> {
    let found = scalar(node).ok_or("its value is no number of seconds")?;
    match found.parse::<u64>() {
        Ok(n) => duration(format, &plain(format!("{n}s"))),
        Err(_) => duration(format, node),
    }
}

/// `1m30s`, `1h`, `250ms`, `30 s`, `5sec`: numbers and units, added up.
fn milliseconds(found: &str) -> Option<u64> {
    let mut rest = found.trim();
    let mut total: f64 = 0.0;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let number: f64 = rest[..digits].parse().ok()?;
        rest = rest[digits..].trim_start();
        let letters = rest
            .find(|c: char| !c.is_alphabetic())
            .unwrap_or(rest.len());
        let factor = match &rest[..letters] {
            "ns" => 1e-6,
            "us" | "µs" => 1e-3,
            "ms" | "millis" | "msec" => 1.0,
            "s" | "sec" | "secs" | "second" | "seconds" => 1e3,
            "m" | "min" | "mins" | "minute" | "minutes" => 6e4,
            "h" | "hr" | "hour" | "hours" => 3.6e6,
            "d" | "day" | "days" => 8.64e7,
            _ => return None,
        };
        rest = rest[letters..].trim_start();
        total += number * factor;
    }
    Some(total.round() as u64)
}

/// A number of bytes in any of the four ways to write one.
pub(crate) fn size(format: Format, node: &Node) -> Result<Node, String> {
    if let Some(reference) = elsewhere(format, node)? {
        return Ok(reference);
    }
    let found = scalar(node).ok_or("its value is no number of bytes")?;
    let word: String = found.split_whitespace().collect();
    let digits = word.len() - word.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = word.split_at(digits);
    let unit = match &*unit.to_ascii_lowercase() {
        "" | "b" => "",
        "k" | "kb" => "kB",
        "m" | "mb" => "MB",
        "g" | "gb" => "GB",
        "ki" | "kib" => "KiB",
        "mi" | "mib" => "MiB",
        "gi" | "gib" => "GiB",
        _ => return Err(format!("`{found}` is no number of bytes")),
    };
    let size = format!("{number}{unit}");
    parse_byte_size(&size).map_err(|_| format!("`{found}` is no number of bytes"))?;
    Ok(plain(size))
}

/// A list of texts, or one.
pub(crate) fn texts(format: Format, node: &Node) -> Result<Node, String> {
    match &node.value {
        Value::List(_) => same(format, node),
        _ => same(format, node).map(|one| list(vec![one])),
    }
}

/// The path of a file, or those of several that are one text together.
pub(crate) fn files(format: Format, node: &Node) -> Result<Node, String> {
    let Value::List(items) = &node.value else {
        return same(format, node);
    };
    let paths: Option<Vec<&str>> = items.iter().map(scalar).collect();
    match paths.as_deref() {
        Some([one]) => environment(format, one).map(text),
        Some(several) if !several.iter().any(|path| path.contains('$')) => {
            let texts = several.iter().map(|path| format!("${{file.{path}}}"));
            Ok(text(texts.collect::<Vec<_>>().join("\n")))
        }
        _ => Err("put the certificates into one file and name that".into()),
    }
}

/// A mapping of names to texts.
pub(crate) fn text_map(format: Format, node: &Node) -> Result<Node, String> {
    let Value::Map(entries) = &node.value else {
        return Err("its value is not a mapping".into());
    };
    let mut out = map();
    for (key, value) in entries {
        // Apollo writes lists of values for headers.
        let value = match &value.value {
            Value::List(items) if items.len() == 1 => &items[0],
            _ => value,
        };
        let single = || format!("`{}` has no single value", key.text);
        let value = same(format, value).ok().filter(|_| !value.is_null());
        let value = value.as_ref().and_then(scalar).ok_or_else(single)?;
        set_key(&mut out, &key.text, text(value));
    }
    Ok(out)
}

/// The opposite of a switch.
pub(crate) fn negated(_: Format, node: &Node) -> Result<Node, String> {
    match scalar(node) {
        Some("true") => Ok(plain("false")),
        Some("false") => Ok(plain("true")),
        _ => Err("its value is neither `true` nor `false`".into()),
    }
}

/// A fraction as a whole number of percents.
pub(crate) fn percent(_: Format, node: &Node) -> Result<Node, String> {
    let found = scalar(node).and_then(|t| t.parse::<f64>().ok());
    let share = found.filter(|f| (0.0..=1.0).contains(f));
    let share = share.ok_or("its value is no fraction between 0 and 1")?;
    Ok(plain(format!("{}", (share * 100.0).round())))
}

/// An address; gateways in Go may leave the host out.
pub(crate) fn address(format: Format, node: &Node) -> Result<Node, String> {
    let found = scalar(node).ok_or("its value is no address")?;
    let all = found.strip_prefix('*').unwrap_or(found);
    if all.starts_with(':') {
        return Ok(text(format!("0.0.0.0{all}")));
    }
    if let Some(path) = found.strip_prefix("unix:") {
        let path = path.trim_start_matches("//");
        return Ok(text(format!("unix://{path}")));
    }
    same(format, &text(found))
}

/// TOML as the tree that YAML gives. Its nesting is bounded by the parser.
pub(crate) fn from_toml(found: &str) -> Result<Node, (Span, String)> {
    let table: toml::Table = found.parse().map_err(|error: toml::de::Error| {
        let span = error.span().unwrap_or(0..0);
        let span = Span::new(span.start as u32, span.end as u32);
        (span, error.message().to_owned())
    })?;
    Ok(toml_node(&toml::Value::Table(table)))
}

fn toml_node(value: &toml::Value) -> Node {
    match value {
        toml::Value::String(found) => text(found.clone()),
        toml::Value::Array(items) => list(items.iter().map(toml_node).collect()),
        toml::Value::Table(entries) => {
            let mut out = map();
            for (key, value) in entries {
                set_key(&mut out, key, toml_node(value));
            }
            out
        }
        toml::Value::Integer(number) => plain(number.to_string()),
        toml::Value::Float(number) => plain(number.to_string()),
        toml::Value::Boolean(on) => plain(on.to_string()),
        toml::Value::Datetime(time) => text(time.to_string()),
    }
}

/// Message brokers of Cosmo's `events.providers`, whose keys are ours.
pub(crate) fn brokers(format: Format, node: &Node) -> Result<Node, String> {
    const KNOWN: [&str; 16] = [
        "id",
        "url",
        "urls",
        "brokers",
        "authentication",
        "token",
        "user_info",
        "username",
        "password",
        "sasl_plain",
        "sasl_scram",
        "mechanism",
        "tls",
        "enabled",
        "cluster_enabled",
        "fetch_max_wait",
    ];
    match &node.value {
        Value::List(items) => {
            let items: Result<Vec<Node>, String> =
                items.iter().map(|item| brokers(format, item)).collect();
            items.map(list)
        }
        Value::Map(entries) => {
            let mut out = map();
            for (key, value) in entries {
                match key.text.as_str() {
                    "cluster_enabled" if scalar(value) == Some("true") => {
                        return Err("one server of Redis is heard, not a cluster".to_owned());
                    }
                    // How long a fetch waits has no counterpart.
                    "cluster_enabled" | "fetch_max_wait" => {}
                    known if KNOWN.contains(&known) => {
                        set(&mut out, known, brokers(format, value)?)
                    }
                    other => {
                        return Err(format!(
                            "`{other}` has no counterpart here: see `events.providers`"
                        ));
                    }
                }
            }
            Ok(out)
        }
        Value::Scalar { .. } => same(format, node),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_of_all_kinds() {
        for (found, ms) in [
            ("30s", 30_000),
            ("1m30s", 90_000),
            ("5m0s", 300_000),
            ("250ms", 250),
            ("1hour", 3_600_000),
            ("1.5s", 1_500),
            ("10 sec", 10_000),
        ] {
            assert_eq!(milliseconds(found), Some(ms), "{found}");
        }
        for found in ["", "30", "s", "5 parsecs"] {
            assert_eq!(milliseconds(found), None, "{found}");
        }
    }

    #[test]
    fn files_that_are_one_text() {
        let file = |name: &str| text(name);
        let several = files(Format::Hive, &list(vec![file("a.pem"), file("b.pem")])).unwrap();
        assert_eq!(scalar(&several), Some("${file.a.pem}\n${file.b.pem}"));
        let one = files(Format::Hive, &list(vec![file("a.pem")])).unwrap();
        assert_eq!(scalar(&one), Some("a.pem"));
        assert!(files(Format::Hive, &list(vec![file("a"), file("${B}")])).is_err());
    }
}
