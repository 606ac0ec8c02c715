//! What a configuration asks for that cannot be had on this machine, though every value is fine by itself: files that
//! are missing, certificates that do not fit their keys, manifests that cannot be read, URLs that nobody can ask.
//!
//! A start fails at the first of these; whoever checks a configuration wants all of them. Nothing is written and nobody
//! is asked.

use http::{HeaderMap, HeaderName, HeaderValue};
use ogive_config::{
    Config, KeySetUrl, SupergraphOptions, TlsSubgraphOptions, WhenKeysMissing, is_loopback,
    without_secrets,
};
use ogive_identity::{api_keys::ApiKeys, jwk::KeySet};
use ogive_telemetry::{access::Field, log};
use ogive_transport::{Http2, Source};

use crate::{
    background::export,
    documents::{Manifest, trusted},
    hooks::{components, settings::HookSettings},
    listen::listener_tls,
    schema::{brokers, signers::proof},
    shared::shared_state::store_options,
    tls,
};

/// One of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// The key, part by part; an index for an item of a list.
    pub at: Vec<String>,
    /// What is wrong with it.
    pub message: String,
    /// What to do, where that is not plain.
    pub help: Option<&'static str>,
}

/// A URL for the supergraph that can be asked.
#[derive(Debug)]
pub struct SupergraphUrl {
    /// What is sent along.
    pub headers: HeaderMap,
    /// What the operator had better know.
    pub warning: Option<&'static str>,
}

/// Looks at where the supergraph is fetched from, if it is.
///
/// Whoever is on the way to a URL over plain http can read the key that is sent to it, and answer in its place, which is
/// to choose where everything is asked.
pub fn supergraph_url(options: &SupergraphOptions) -> Result<SupergraphUrl, Problem> {
    let refuse = |at: &[&str], message: String, help| Problem {
        at: at.iter().map(|part| (*part).to_owned()).collect(),
        message,
        help,
    };
    let mut usable = SupergraphUrl {
        headers: HeaderMap::new(),
        warning: None,
    };
    let Some(url) = options.url.as_ref().map(|url| url.0.as_str()) else {
        return Ok(usable);
    };
    let (at, shown) = (["supergraph", "url"], without_secrets(url));
    for (name, value) in &options.headers {
        let header = HeaderName::from_bytes(name.as_bytes())
            .ok()
            .zip(HeaderValue::from_str(value).ok());
        let Some((header, value)) = header else {
            let message =
                format!("`supergraph.headers` has `{name}`, which cannot be sent as a header");
            return Err(refuse(&["supergraph", "headers", name], message, None));
        };
        usable.headers.insert(header, value);
    }
    let is_open = url.starts_with("http://") && !is_loopback(&shown) && !options.allow_plain_http;
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if is_open && (!options.headers.is_empty() || authority.contains('@') || url.contains('?')) {
        let message = format!(
            "`supergraph.url` would send its key to `{shown}` for everybody on the way to read"
        );
        let help =
            "use https; or, if nobody is on the way, set `supergraph.allow_plain_http: true`";
        return Err(refuse(&at, message, Some(help)));
    }
    if let Err(why) = Source::new(url, Http2::Disable) {
        return Err(refuse(
            &at,
            format!("`{shown}` cannot be asked: {why}"),
            None,
        ));
    }
    if is_open {
        usable.warning = Some(
            "whoever is on the way to `supergraph.url` can change the supergraph, and so where everything is asked: use \
             https, or set `supergraph.allow_plain_http: true` if nobody is",
        );
    }
    Ok(usable)
}

/// All of them.
pub fn problems(config: &Config) -> Vec<Problem> {
    let mut found = Vec::new();
    let mut problem = |at: &[&str], message: String| {
        found.push(Problem {
            at: at.iter().map(|part| (*part).to_owned()).collect(),
            message,
            help: None,
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
    for (index, source) in persisted.sources.iter().enumerate() {
        if let Err(error) = trusted::check_source(source) {
            let index = index.to_string();
            problem(&["persisted_queries", "sources", &index], error);
        }
    }
    of_urls(config, &mut problem);
    of_access_log(config, &mut problem);
    for (key, error) in export::problems(config) {
        problem(key, error);
    }
    found.extend(of_files(config));
    // Subgraphs that are composed win over a URL, which is never asked then.
    if config.supergraph.subgraphs.is_none() {
        found.extend(supergraph_url(&config.supergraph).err());
    }
    found
}

/// Those that keep a gateway from serving: a key set that is waited for may be missing.
pub fn refused_files(config: &Config) -> Vec<Problem> {
    let waits = config.authentication.router.jwt.when_missing == WhenKeysMissing::Wait;
    let mut found = of_files(config);
    found.retain(|problem| !(waits && problem.at.iter().any(|part| part == "jwks")));
    found
}

/// What is wrong with files that requests need: key sets and API keys, certificates, keys of what is signed, scripts, components.
fn of_files(config: &Config) -> Vec<Problem> {
    let mut found = Vec::new();
    let mut problem = |at: &[&str], message: String| {
        found.push(Problem {
            at: at.iter().map(|part| (*part).to_owned()).collect(),
            message,
            help: None,
        });
    };
    let jwt = &config.authentication.router.jwt;
    for (index, set) in jwt.jwks.iter().enumerate() {
        if let Some(KeySetUrl::File(path)) = &set.url
            && let Err(error) = KeySet::check(path.as_ref())
        {
            let index = index.to_string();
            let at = ["authentication", "router", "jwt", "jwks", &index, "url"];
            problem(&at, error);
        }
    }
    if let Some(keys) = &config.authentication.router.api_keys
        && let Err(error) = ApiKeys::check(keys.file.as_ref())
    {
        problem(&["authentication", "router", "api_keys", "file"], error);
    }
    if let Err(error) = listener_tls(config) {
        problem(&["tls", "supergraph"], error.to_string());
    }
    if let Err(error) = HookSettings::with_scripts(config) {
        problem(&["rhai", "scripts"], error);
    }
    if let Err(error) = components::load(config) {
        problem(&["plugins"], error);
    }
    if let Err(error) = store_options(config) {
        problem(&["store", "redis", "tls"], error);
    }
    if let Err(error) = brokers::settings(config) {
        problem(&["events", "providers"], error);
    }
    of_subgraphs(config, &mut problem);
    found
}

/// What is wrong with certificates towards subgraphs, and with the keys of what is signed for them.
fn of_subgraphs(config: &Config, problem: &mut dyn FnMut(&[&str], String)) {
    let of_subgraphs = &config.tls.subgraph;
    // A name that nobody has stands for all others.
    if let Err(error) = tls::subgraph_tls(config, "", Http2::Enable) {
        let message = with_files(error.to_string(), config.subgraph_tls(""));
        problem(&["tls", "subgraph", "all"], message);
    }
    for name in of_subgraphs.subgraphs.keys() {
        if let Err(error) = tls::subgraph_tls(config, name, Http2::Enable) {
            let message = with_files(error.to_string(), config.subgraph_tls(name));
            problem(&["tls", "subgraph", "subgraphs", name], message);
        }
    }
    let proved = &config.authentication.subgraph;
    if let Err(error) = proof(&proved.all) {
        problem(&["authentication", "subgraph", "all"], error);
    }
    for (name, own) in &proved.subgraphs {
        if let Err(error) = proof(own) {
            problem(&["authentication", "subgraph", "subgraphs", name], error);
        }
    }
}

/// What is wrong, with the files that it may be wrong with.
fn with_files(message: String, tls: TlsSubgraphOptions) -> String {
    let identity = tls.client_authentication;
    let identity = identity.map(|identity| [identity.certificate_chain, identity.key]);
    let all = tls.certificate_authorities.into_iter();
    let files = all.chain(identity.into_iter().flatten());
    // Certificates may stand in the configuration itself.
    let is_named = |file: &String| !file.contains("-----BEGIN") && !message.contains(&**file);
    let files: Vec<String> = files
        .filter(is_named)
        .map(|file| format!("`{file}`"))
        .collect();
    match files.as_slice() {
        [] => message,
        files => format!("{message}; its files are {}", files.join(", ")),
    }
}

/// What is wrong with the URLs of subgraphs.
fn of_urls(config: &Config, problem: &mut dyn FnMut(&[&str], String)) {
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
    let rules = config.override_subgraph_urls.iter();
    let by_rule = rules.flat_map(|(name, rules)| {
        let urls = rules.iter().enumerate();
        let urls = urls.filter_map(|(index, rule)| Some((index, rule.url.as_ref()?)));
        urls.map(move |(index, url)| (vec!["override_subgraph_urls", name], Some(index), url))
    });
    for (path, index, url) in overridden.chain(replicas).chain(by_rule) {
        if let Err(error) = ogive_transport::address::Address::parse(&url.0) {
            let index = index.map(|index| index.to_string());
            let path: Vec<&str> = path.into_iter().chain(index.as_deref()).collect();
            problem(
                &path,
                format!("`{}` cannot be asked: {error}", without_secrets(&url.0)),
            );
        }
    }
}

/// What is wrong with the access log.
fn of_access_log(config: &Config, problem: &mut dyn FnMut(&[&str], String)) {
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
        // One that is not there is not made for this.
        let path = std::path::Path::new(path);
        if path.exists()
            && let Err(error) = ogive_files::append(path, 0)
        {
            let message = format!("cannot write the access log `{}`: {error}", path.display());
            problem(&["telemetry", "access_log", "path"], message);
        }
    }
}
