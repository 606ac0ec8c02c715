//! No key is swallowed: one that nobody knows is named wherever it stands, below a section that is brought over, too.

use std::{fs, path::PathBuf};

use ogive_base::SourceId;
use ogive_config::{decode::Errors, yaml};
use ogive_yaml::{Key, Node, Value};

use super::{
    Format, Migration, Verdict, convert,
    nodes::{dotted, plain},
    walked,
};

/// A key that no gateway has.
const UNKNOWN: &str = "zzq";

fn parsed(format: Format, text: &str) -> Node {
    match format {
        Format::Grafbase => convert::from_toml(text).unwrap(),
        _ => yaml::parse(text, &mut Errors::new(SourceId(0))).unwrap(),
    }
}

/// The samples: their names, whose they are, and what they say.
fn samples() -> Vec<(String, Format, Node)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut found = Vec::new();
    for folder in [folder.clone(), folder.join("wide")] {
        for file in fs::read_dir(folder).unwrap() {
            let file = file.unwrap().path();
            let name = file.file_name().unwrap().to_string_lossy().into_owned();
            let mut formats = Format::ALL.into_iter();
            let format = formats.find(|format| name.starts_with(format.word()));
            if let Some(format) = format.filter(|_| !name.ends_with(".out")) {
                let root = parsed(format, &fs::read_to_string(&file).unwrap());
                found.push((name, format, root));
            }
        }
    }
    assert!(found.len() > Format::ALL.len());
    found
}

/// The paths of everything but the root.
fn paths(root: &Node) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    let mut open = vec![(Vec::new(), root)];
    while let Some((path, node)) = open.pop() {
        let below = |part: &str| [&path[..], &[part.to_owned()]].concat();
        match &node.value {
            Value::Map(entries) => {
                open.extend(entries.iter().map(|(key, node)| (below(&key.text), node)));
            }
            Value::List(items) => {
                let items = items.iter().enumerate();
                open.extend(items.map(|(index, node)| (below(&index.to_string()), node)));
            }
            Value::Scalar { .. } => {}
        }
        if !path.is_empty() {
            all.push(path);
        }
    }
    all
}

fn place<'n>(root: &'n mut Node, path: &[String]) -> &'n mut Node {
    path.iter().fold(root, |node, part| match &mut node.value {
        Value::Map(entries) => {
            let found = entries.iter_mut().find(|(key, _)| key.text == *part);
            &mut found.unwrap().1
        }
        Value::List(items) => &mut items[part.parse::<usize>().unwrap()],
        Value::Scalar { .. } => panic!("{path:?}"),
    })
}

/// The tree with a key more in the mapping at a path, if it is one.
fn with_unknown(root: &Node, path: &[String]) -> Option<Node> {
    let mut root = root.clone();
    let place = place(&mut root, path);
    let Value::Map(entries) = &mut place.value else {
        return None;
    };
    let key = Key {
        span: place.span,
        text: UNKNOWN.to_owned(),
    };
    entries.push((key, plain("true")));
    Some(root)
}

/// Whether the key is named, or brought over as a name of the operator's, or stands in a section that is named as a whole.
fn is_named(migration: &Migration, path: &[String]) -> bool {
    let path = dotted(path);
    let is_above = |from: &str| {
        let rest = path.strip_prefix(from);
        !from.is_empty() && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let whole = |verdict| matches!(verdict, Verdict::NotNeeded | Verdict::Unsupported);
    let result = migration.yaml.lines().filter(|line| !line.starts_with('#'));
    migration.report.iter().any(|row| {
        row.from.contains(UNKNOWN)
            || row.note.contains(UNKNOWN)
            || (whole(row.verdict) && is_above(&row.from))
    }) || result.into_iter().any(|line| line.contains(UNKNOWN))
}

/// What has no value, or one of another kind than is expected, has a line, too.
#[test]
fn keys_are_named_whatever_they_say() {
    for (format, text, from) in [
        (Format::Apollo, "cors: { policies: [] }", "cors.policies"),
        (
            Format::Apollo,
            "headers: { all: { request: [] } }",
            "headers.all.request",
        ),
        (
            Format::Apollo,
            "headers: { all: { request: x } }",
            "headers.all.request",
        ),
        (
            Format::Apollo,
            "headers: { all: { request: [ {} ] } }",
            "headers.all.request.0",
        ),
        (
            Format::Apollo,
            "telemetry: { exporters: { tracing: { otlp: x } } }",
            "telemetry.exporters.tracing.otlp",
        ),
        (
            Format::Apollo,
            "include_subgraph_errors: { all: {} }",
            "include_subgraph_errors.all",
        ),
        (Format::Apollo, "limits: { router: {} }", "limits.router"),
        (
            Format::Hive,
            "telemetry: { tracing: { exporters: x } }",
            "telemetry.tracing.exporters",
        ),
        (Format::Hive, "error_masking: {}", "error_masking"),
        (Format::Hive, "override_labels: {}", "override_labels"),
        (
            Format::Cosmo,
            "access_logs: { router: { fields: [] } }",
            "access_logs.router.fields",
        ),
        (
            Format::Cosmo,
            "traffic_shaping: { all: { retry: {} } }",
            "traffic_shaping.all.retry",
        ),
        (
            Format::Grafbase,
            "[telemetry.exporters]\notlp = 1",
            "telemetry.exporters.otlp",
        ),
        (
            Format::Grafbase,
            "[gateway.rate_limit.global]",
            "gateway.rate_limit.global",
        ),
    ] {
        let migration = walked(format, &parsed(format, text));
        let is_named = migration.report.iter().any(|row| row.from == from);
        assert!(is_named, "{text}\n{}", migration.report_text());
    }
}

#[test]
fn unknown_keys_are_named_wherever_they_stand() {
    let mut swallowed = Vec::new();
    for (name, format, root) in samples() {
        let everywhere = paths(&root).into_iter().chain([Vec::new()]);
        for path in everywhere {
            let Some(root) = with_unknown(&root, &path) else {
                continue;
            };
            if !is_named(&walked(format, &root), &path) {
                swallowed.push(format!("{name}: {}", path.join(".")));
            }
        }
    }
    assert!(swallowed.is_empty(), "{}", swallowed.join("\n"));
}
