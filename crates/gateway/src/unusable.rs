//! What a configuration asks for that cannot be had on this machine, though every value is fine by itself: files that
//! are missing, certificates that do not fit their keys, manifests that cannot be read, URLs that nobody can ask.
//!
//! A start fails at the first of these; whoever checks a configuration wants all of them. Nothing is written and nobody
//! is asked.

use ogive_config::Config;
use ogive_telemetry::{access::Field, log};
use ogive_transport::Http2;

use crate::{background::export, documents::Manifest, tls};

/// One of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// The key, part by part; an index for an item of a list.
    pub at: Vec<String>,
    /// What is wrong with it.
    pub message: String,
}

/// All of them.
pub fn problems(config: &Config) -> Vec<Problem> {
    let mut found = Vec::new();
    let mut problem = |at: &[&str], message: String| {
        found.push(Problem {
            at: at.iter().map(|part| (*part).to_owned()).collect(),
            message,
        });
    };
    for (key, refusal) in config.refusals() {
        problem(key, refusal);
    }
    if let Err(error) = log::check(&config.log.filter) {
        problem(&["log", "filter"], error.to_string());
    }
    let persisted = &config.persisted_queries;
    for (index, path) in persisted.local_manifests.iter().enumerate() {
        if let Err(error) = Manifest::read(std::slice::from_ref(path)) {
            let index = index.to_string();
            problem(&["persisted_queries", "local_manifests", &index], error);
        }
    }
    if let Err(error) = tls::listener_tls(config) {
        problem(&["tls", "supergraph"], error);
    }
    let of_subgraphs = &config.tls.subgraph;
    // A name that nobody has stands for all others.
    if let Err(error) = tls::subgraph_tls(config, "", Http2::Enable) {
        problem(&["tls", "subgraph", "all"], error.to_string());
    }
    for name in of_subgraphs.subgraphs.keys() {
        if let Err(error) = tls::subgraph_tls(config, name, Http2::Enable) {
            problem(&["tls", "subgraph", "subgraphs", name], error.to_string());
        }
    }
    let urls = config.traffic_shaping.subgraphs.iter();
    let replicas = urls.flat_map(|(name, own)| {
        let urls = own.urls.iter().flatten().enumerate();
        urls.map(move |(index, url)| {
            (
                vec!["traffic_shaping", "subgraphs", name, "urls"],
                Some(index),
                url,
            )
        })
    });
    let overridden = config.override_subgraph_url.iter();
    let overridden = overridden.map(|(name, url)| (vec!["override_subgraph_url", name], None, url));
    for (path, index, url) in overridden.chain(replicas) {
        if let Err(error) = ogive_transport::endpoint::Address::parse(&url.0) {
            let index = index.map(|index| index.to_string());
            let path: Vec<&str> = path.into_iter().chain(index.as_deref()).collect();
            problem(&path, format!("`{}` cannot be asked: {error}", url.0));
        }
    }
    let access = &config.telemetry.access_log;
    for (index, word) in access.fields.iter().enumerate() {
        if Field::parse(word).is_none() {
            let known: Vec<&str> = Field::ALL.iter().map(|f| f.word()).collect();
            let message = format!(
                "`{word}` is no field of the access log; there are {}",
                known.join(", ")
            );
            problem(
                &["telemetry", "access_log", "fields", &index.to_string()],
                message,
            );
        }
    }
    if let Some(path) = access.path.as_deref().filter(|_| access.enabled) {
        let folder = std::path::Path::new(path).parent();
        let folder = folder.filter(|folder| !folder.as_os_str().is_empty());
        if folder.is_some_and(|folder| !folder.is_dir()) {
            let message = format!("cannot write the access log `{path}`: its folder is not there");
            problem(&["telemetry", "access_log", "path"], message);
        }
    }
    for (key, error) in export::problems(config) {
        problem(&["telemetry", "exporters", key, "otlp"], error);
    }
    found
}
