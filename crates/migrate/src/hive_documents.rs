//! Where Hive Router has persisted documents: a file, Hive's CDN, or an object store of `storages`.

use ogive_yaml::{Node, Value};

use super::{
    convert::same,
    nodes::{at, list, map, scalar, set},
    rules::Walk,
};

/// `persisted_documents.storage`
pub(crate) fn storage(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    let known: &[&str] = match at(node, "type").and_then(scalar) {
        Some("file") => &["type", "path", "watch"],
        Some("hive") => &["type", "endpoint", "key", "request_timeout"],
        _ => &["type", "storage_id", "location", "poll_interval"],
    };
    walk.others(path, node, known);
    let made = match at(node, "type").and_then(scalar) {
        Some("file") => return file(walk, path, node),
        Some("hive") => hive(walk, node),
        Some("storage") => object(walk, node),
        _ => Err("of its kinds `file`, `hive` and `storage` are known".to_owned()),
    };
    match made {
        Ok((source, note)) => {
            walk.put(path, "persisted_queries.sources", list(vec![source]), note);
        }
        Err(why) => walk.unsupported(path, &why),
    }
}

fn file(walk: &mut Walk<'_>, path: &[String], node: &Node) {
    let Some(found) = at(node, "path") else {
        return walk.unsupported(path, "it names no file");
    };
    match same(walk.format, found) {
        Ok(found) => {
            let target = "persisted_queries.local_manifests";
            let note = "`hot_reload.enabled` watches it";
            walk.put(path, target, list(vec![found]), note);
            if at(node, "watch").is_some() {
                let from = [path, &["watch".to_owned()]].concat();
                walk.not_needed(&from, note);
            }
        }
        Err(why) => walk.unsupported(path, &why),
    }
}

/// Copies a key into a source, if it is there.
fn copy(
    walk: &Walk<'_>,
    from: &Node,
    key: &str,
    source: &mut Node,
    target: &str,
) -> Result<bool, String> {
    let Some(found) = at(from, key) else {
        return Ok(false);
    };
    // Of several endpoints, Hive Router queries the first one while it answers.
    let found = match &found.value {
        Value::List(items) => items.first().ok_or("it names no endpoint")?,
        _ => found,
    };
    let mut value = same(walk.format, found)?;
    // Where the supergraph is, documents are beside it.
    if let Some(base) = scalar(&value).and_then(|url| url.strip_suffix("/supergraph")) {
        value = super::nodes::text(base);
    }
    set(source, target, value);
    Ok(true)
}

fn hive(walk: &Walk<'_>, node: &Node) -> Result<(Node, &'static str), String> {
    let mut source = map();
    // The supergraph's are meant where it names none of its own.
    let own = copy(walk, node, "endpoint", &mut source, "hive.endpoint")?;
    if !own
        && !copy(
            walk,
            walk.root,
            "supergraph.endpoint",
            &mut source,
            "hive.endpoint",
        )?
    {
        return Err(
            "its endpoint is not in the file: set `persisted_queries.sources[].hive.endpoint`"
                .into(),
        );
    }
    let own = copy(walk, node, "key", &mut source, "hive.token")?;
    if !own && !copy(walk, walk.root, "supergraph.key", &mut source, "hive.token")? {
        return Err(
            "its key is not in the file: set `persisted_queries.sources[].hive.token`".into(),
        );
    }
    copy(
        walk,
        node,
        "request_timeout",
        &mut source,
        "request_timeout",
    )?;
    Ok((
        source,
        "each document is fetched when a client first sends its id",
    ))
}

fn object(walk: &Walk<'_>, node: &Node) -> Result<(Node, &'static str), String> {
    let id = at(node, "storage_id").and_then(scalar).unwrap_or_default();
    let storage = at(walk.root, "storages").and_then(|all| at(all, id));
    let storage = storage.ok_or("`storages` has no such storage")?;
    if at(storage, "type").and_then(scalar) != Some("s3") {
        return Err("of `storages` those with `type: s3` are known".into());
    }
    let mut source = map();
    copy(walk, node, "location", &mut source, "s3.key")?;
    for key in ["bucket", "region", "endpoint"] {
        copy(walk, storage, key, &mut source, &format!("s3.{key}"))?;
    }
    copy(walk, node, "poll_interval", &mut source, "poll_interval")?;
    copy(walk, storage, "allow_http", &mut source, "allow_plain_http")?;
    let given = [
        ("credentials.access_key_id", "s3.access_key_id"),
        ("credentials.secret_access_key", "s3.secret_access_key"),
    ];
    for (key, target) in given {
        copy(walk, storage, key, &mut source, target)?;
    }
    Ok((
        source,
        "credentials that are not given are found as AWS has them in the environment",
    ))
}
