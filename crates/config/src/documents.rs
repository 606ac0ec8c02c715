//! The options of `persisted_queries`: which documents are trusted, where they come from, and what becomes of others.

use std::{collections::BTreeMap, num::NonZeroUsize, path::Path};

use ogive_base::Span;

use crate::{
    Config, Duration, PersistedMode, SecretText, Url, WhenMissing,
    decode::{Errors, section},
    scalars::nonzero,
};

section! {
    /// `persisted_queries`
    pub struct PersistedQueriesOptions {
        /// Whether ids are looked up: in `documentId`, `id` or `doc_id` of body or query string, in
        /// `extensions.persistedQuery.sha256Hash`, and in the path behind the GraphQL endpoint. `sha256:HASH` finds a
        /// document by its SHA-256, whatever its id is.
        pub enabled: bool = false,
        /// What becomes of documents that are not in a manifest: `allow` serves them, `log` serves and logs them,
        /// `require` refuses them. How a document is written does not count: white space, commas, comments, descriptions,
        /// the order of its definitions.
        pub mode: PersistedMode = PersistedMode::Allow,
        /// With `require`: whether a known document must be asked for by its id, too.
        pub require_id: bool = false,
        /// Whether what `mode` and `require_id` would refuse is served and logged instead.
        pub warn_only: bool = false,
        /// Whether documents that are in no manifest are logged, each once, whether they are served or refused. `mode: log` and
        /// `warn_only` log them in any case.
        pub log_unknown: bool = false,
        /// Files, or folders of them: manifests of Apollo, of Cosmo, of Relay and Hive (a JSON object of id to document), or
        /// `ID.graphql`.
        pub local_manifests: Vec<String> = Vec::new(),
        /// Manifests from elsewhere, besides those files.
        pub sources: Vec<DocumentSourceOptions> = Vec::new(),
        /// Other rules for some clients, by the name they give (`telemetry.clients.name_headers`). Anybody can give any
        /// name: a rule may well ask for more than `mode`, and one that asks for less is for everybody.
        pub clients: Vec<DocumentClientRule> = Vec::new(),
        /// Where documents go that no manifest lists, with `log_unknown`, `mode: log` or `warn_only`.
        pub unknown: UnknownDocumentsOptions = UnknownDocumentsOptions::default(),
    }

    /// `persisted_queries.sources[]`
    pub struct DocumentSourceOptions {
        /// A file or folder, as in `local_manifests`. Of `path`, `url`, `s3` and `hive`, one is set.
        pub path: Option<String> = None,
        /// A URL of a manifest. It is asked again and again; `etag` and `last-modified` spare fetching what has not changed.
        pub url: Option<Url> = None,
        /// A manifest in an object store that speaks S3.
        pub s3: Option<DocumentS3Options> = None,
        /// App deployments of Hive: documents that clients ask for by `APP~VERSION~HASH`, each fetched when it is asked for
        /// the first time.
        pub hive: Option<DocumentHiveOptions> = None,
        /// The client whose documents these are, by the name it gives; not set: all clients'. A manifest of Apollo's may name
        /// a client for each operation (`clientName`).
        pub client_name: Option<String> = None,
        /// Headers to send along with `url`, such as a key.
        pub headers: BTreeMap<String, String> = BTreeMap::new(),
        /// How often `url` or `s3` is asked; one that fails is asked less and less often, every five minutes at the least.
        pub poll_interval: Duration = Duration::seconds(60),
        /// How long it may take to answer.
        pub request_timeout: Duration = Duration::seconds(10),
        /// For how many days documents are served that the last manifest lists and the next one does not, for versions of an
        /// app that are in use. 0, the default, is not at all. An operation of Apollo's format may say its own end (`expires`,
        /// seconds since 1970); one that is withdrawn ends by then, if that is earlier.
        pub keep_days: u32 = 0,
        /// File that the documents of `url` or `s3` are kept in, and taken from until there is an answer after a start.
        /// It is used for the same place and `client_name` only.
        /// Not set: none, and what `keep_days` keeps ends with the process.
        pub last_known_good: Option<String> = None,
        /// What becomes of a start when there is no manifest and none is kept: `fail` ends the process, `wait` serves without
        /// its documents until it comes.
        pub when_missing: WhenMissing = WhenMissing::Fail,
        /// Whether `url`, or the endpoint of `s3` or `hive`, may be an `http://` one of another machine. Whoever is on the way
        /// can trust documents, and read the key.
        pub allow_plain_http: bool = false,
    }

    /// `persisted_queries.sources[].s3`
    pub struct DocumentS3Options {
        /// The bucket.
        pub bucket: String = String::new(),
        /// The object in it.
        pub key: String = String::new(),
        /// The region; default `us-east-1`.
        pub region: String = "us-east-1".into(),
        /// The store, if it is not Amazon's: the bucket is the first part of its path.
        pub endpoint: Option<Url> = None,
        /// Who asks; default: what is found in the environment, as for subgraphs
        /// (`authentication.subgraph.all.aws_sig_v4.default_chain`).
        pub access_key_id: Option<String> = None,
        /// Their secret.
        pub secret_access_key: SecretText = SecretText::default(),
    }

    /// `persisted_queries.sources[].hive`
    pub struct DocumentHiveOptions {
        /// The CDN endpoint of the target, such as `https://cdn.graphql-hive.com/artifacts/v1/TARGET`.
        pub endpoint: Url = Url("https://cdn.graphql-hive.com".into()),
        /// The CDN access token.
        pub token: SecretText = SecretText::default(),
        /// Most documents that are kept in memory; those asked for least go first.
        pub max_documents: NonZeroUsize = nonzero(10_000),
        /// How long it is believed that there is no document of an id.
        pub missing_ttl: Duration = Duration::seconds(60),
    }

    /// `persisted_queries.clients[]`
    pub struct DocumentClientRule {
        /// The name that the client gives.
        pub name: String = String::new(),
        /// In place of `persisted_queries.mode`.
        pub mode: PersistedMode = PersistedMode::Require,
        /// In place of `persisted_queries.require_id`.
        pub require_id: bool = false,
    }

    /// `persisted_queries.unknown`
    pub struct UnknownDocumentsOptions {
        /// A file: a manifest of Apollo's format with all documents that were asked for and are in no manifest, and how often.
        /// `ogive check --operations` and `ogive operations` read it. Not set: they are only logged, each once.
        pub file: Option<String> = None,
        /// Most documents that are told apart.
        pub max: NonZeroUsize = nonzero(1_000),
        /// How often the file is written, if there is anything new.
        pub interval: Duration = Duration::seconds(10),
    }
}

impl DocumentSourceOptions {
    /// Which of the four it is, if it is one.
    pub fn kind(&self) -> Option<&'static str> {
        let all = [
            ("path", self.path.is_some()),
            ("url", self.url.is_some()),
            ("s3", self.s3.is_some()),
            ("hive", self.hive.is_some()),
        ];
        let mut set = all.iter().filter(|(_, is_set)| *is_set);
        match (set.next(), set.next()) {
            (Some((name, _)), None) => Some(name),
            _ => None,
        }
    }
}

/// What is wrong although every key is fine by itself.
pub(crate) fn check(at: Span, config: &Config, errors: &mut Errors) {
    let persisted = &config.persisted_queries;
    let sources = &persisted.sources;
    for source in sources {
        if let Some((kind, key)) = without_effect(source) {
            errors.invalid(
                at,
                format!("`{key}` does nothing for a source with `{kind}`"),
                "leave it out",
            );
        }
    }
    let mut written: Vec<&str> = Vec::new();
    let kept = sources
        .iter()
        .filter_map(|source| source.last_known_good.as_deref());
    for path in persisted.unknown.file.as_deref().into_iter().chain(kept) {
        if written.contains(&path) {
            errors.invalid(
                at,
                format!("`{path}` is written by two"),
                "give each source, and `unknown.file`, a file of its own",
            );
        }
        written.push(path);
        let read = sources.iter().filter_map(|source| source.path.as_ref());
        let mut read = persisted.local_manifests.iter().chain(read);
        if read.any(|read| Path::new(path).starts_with(read)) {
            errors.invalid(
                at,
                format!("`{path}` is written by the gateway, and read as a manifest"),
                "what anybody has sent would be trusted; write it to another folder",
            );
        }
    }
}

/// A key that is set and says nothing for this kind of source.
fn without_effect(source: &DocumentSourceOptions) -> Option<(&'static str, &'static str)> {
    let kind = source.kind()?;
    let unset = DocumentSourceOptions::default();
    let asked = kind != "path";
    let polled = asked && kind != "hive";
    let keys = [
        ("headers", kind == "url", source.headers != unset.headers),
        (
            "poll_interval",
            polled,
            source.poll_interval != unset.poll_interval,
        ),
        (
            "request_timeout",
            asked,
            source.request_timeout != unset.request_timeout,
        ),
        ("keep_days", polled, source.keep_days != unset.keep_days),
        ("last_known_good", polled, source.last_known_good.is_some()),
        (
            "when_missing",
            polled,
            source.when_missing != unset.when_missing,
        ),
        ("allow_plain_http", asked, source.allow_plain_http),
    ];
    let useless = |(_, has_effect, is_set): &(&str, bool, bool)| !has_effect && *is_set;
    keys.into_iter().find(useless).map(|(key, ..)| (kind, key))
}

#[cfg(test)]
mod tests {
    use ogive_base::SourceId;

    #[test]
    fn what_a_source_cannot_do_is_refused() {
        for (options, why) in [
            ("sources: [{ path: a.json, keep_days: 3 }]", "`keep_days`"),
            (
                "sources: [{ hive: { token: k }, poll_interval: 3s }]",
                "`poll_interval`",
            ),
            (
                "sources: [{ s3: { bucket: b, key: k }, headers: { a: b } }]",
                "`headers`",
            ),
            (
                "local_manifests: [a/], unknown: { file: a/u.json }",
                "read as a manifest",
            ),
            (
                "sources: [{ path: a }, { url: 'https://b.example', last_known_good: a/kept }]",
                "read as a manifest",
            ),
            (
                "sources: [{ url: 'https://a.example', last_known_good: k }, { url: 'https://b.example', last_known_good: k }]",
                "written by two",
            ),
            (
                "sources: [{ url: 'https://a.example', last_known_good: k, keep_days: 3 }]",
                "",
            ),
            (
                "local_manifests: [a.json], unknown: { file: a.json.unknown }",
                "",
            ),
        ] {
            let text = format!("persisted_queries: {{ enabled: true, {options} }}");
            let errors = crate::load(SourceId(0), &text, &|_| None)
                .err()
                .unwrap_or_default();
            let found: Vec<&str> = errors.iter().map(|error| &*error.message).collect();
            let found = found.join("\n");
            assert!(
                found.contains(why) && found.is_empty() == why.is_empty(),
                "{text}: {found}"
            );
        }
    }
}
