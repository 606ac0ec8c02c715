//! The reference of all options, made from their declarations: what `docs/configuration.md` shows.

use std::{collections::BTreeMap, num::NonZeroUsize};

use crate::{
    ByteSize, Config, CorsPolicy, Duration, HeaderName, HeaderRule, LabelShare, Listen, LogFormat,
    Path, Pattern, PlanProfile, Ratio, ResponseHeaderRule, Url,
};

/// One option of the whole configuration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OptionRow {
    /// Dotted path, such as `limits.parser_max_tokens`; `<name>` stands for any key.
    pub path: String,
    /// What kind of value it takes.
    pub kind: String,
    /// Its default as it would be written; empty if there is none.
    pub default: String,
    /// Documentation in one paragraph.
    pub doc: String,
}

/// What the kind of a section is called.
const SECTION: &str = "section";

/// Every option, in order of documentation.
pub fn options() -> Vec<OptionRow> {
    let mut rows = rows();
    rows.retain(|row| row.kind != SECTION);
    rows
}

/// Every option, and before those of a section that may be left out what it means that it is there.
pub fn rows() -> Vec<OptionRow> {
    let mut rows = Vec::new();
    Config::default().describe("", &[], &mut rows);
    rows
}

/// The only section that has a key of that name, if its name has several words, so that it is hardly another thing there.
pub(crate) fn section_of(key: &str) -> Option<String> {
    if !key.contains('_') {
        return None;
    }
    let section = |row: OptionRow| {
        let (section, last) = row.path.rsplit_once('.')?;
        (last == key).then(|| section.to_owned())
    };
    let mut found = options().into_iter().filter_map(section);
    found.next().filter(|_| found.next().is_none())
}

/// A type of options that can say what it is.
pub(crate) trait Describe {
    /// Appends the rows of this value, which is a default.
    fn describe(&self, path: &str, doc: &[&str], rows: &mut Vec<OptionRow>);
}

/// Joins a section's path and a key.
pub(crate) fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

fn row(path: &str, kind: &str, default: String, doc: &[&str], rows: &mut Vec<OptionRow>) {
    let doc: Vec<&str> = doc.iter().map(|line| line.trim()).collect();
    rows.push(OptionRow {
        path: path.to_owned(),
        kind: kind.to_owned(),
        default,
        doc: doc.join(" "),
    });
}

/// The row of an option that takes one of some words.
pub(crate) fn word(
    path: &str,
    words: &[&str],
    default: &str,
    doc: &[&str],
    rows: &mut Vec<OptionRow>,
) {
    let kind = format!("`{}`", words.join("`, `"));
    row(path, &kind, default.to_owned(), doc, rows);
}

macro_rules! leaf {
    ($($ty:ty, $kind:literal, |$value:ident| $show:expr;)*) => {$(
        impl Describe for $ty {
            fn describe(&self, path: &str, doc: &[&str], rows: &mut Vec<OptionRow>) {
                let $value = self;
                row(path, $kind, $show, doc, rows);
            }
        }
    )*};
}

leaf! {
    bool, "true or false", |v| v.to_string();
    u32, "number", |v| v.to_string();
    NonZeroUsize, "number", |v| v.to_string();
    String, "text", |v| v.clone();
    crate::SecretText, "text", |_v| String::new();
    Duration, "duration", |v| v.to_string();
    ByteSize, "size", |v| v.to_string();
    Listen, "`HOST:PORT` or a unix socket", |v| v.0.clone();
    crate::FileMode, "mode of a file", |v| format!("0{:03o}", v.0);
    Path, "path", |v| v.0.clone();
    Url, "URL", |v| v.0.clone();
    Ratio, "share", |v| v.0.to_string();
    LogFormat, "`text` or `json`", |v| format!("{v:?}").to_lowercase();
    HeaderName, "header name", |v| v.0.clone();
    LabelShare, "`true`, `false` or percentage", |v| format!("{}%", v.0);
    crate::Percent, "percentage", |v| format!("{}%", v.0);
    PlanProfile, "`critical-path`, `fewest-requests`, `least-load`", |v| match v {
        PlanProfile::CriticalPath => "critical-path".to_owned(),
        PlanProfile::FewestRequests => "fewest-requests".to_owned(),
        PlanProfile::LeastLoad => "least-load".to_owned(),
    };
    crate::Buckets, "list of numbers", |v| {
        let seconds = v.0.iter().map(|ns| (*ns as f64 / 1e9).to_string());
        format!("[{}]", seconds.collect::<Vec<_>>().join(", "))
    };
    crate::ContextWord, "`true`, `false`, `all`, `deprecated` or selection", |_v| "false".to_owned();
    ogive_limits::WarnOnly, "`true`, `false` or list of limits", |_v| "false".to_owned();
    Vec<HeaderName>, "list of texts", |v| {
        let names: Vec<&str> = v.iter().map(|name| &*name.0).collect();
        format!("[{}]", names.join(", "))
    };
    Vec<HeaderRule>, "list of rules", |_v| String::new();
    Vec<crate::TokenSourceRule>, "list of rules", |_v| String::new();
    Vec<crate::NamedHeader>, "list of rules", |_v| String::new();
    Vec<crate::TokenAlgorithm>, "list of texts", |_v| String::new();
    Vec<crate::OperationWord>, "list of texts", |_v| String::new();
    crate::KeySetUrl, "URL", |_v| String::new();
    crate::PolicyCondition, "condition", |_v| String::new();
    ogive_selectors::Condition, "condition", |_v| String::new();
    crate::HookCondition, "condition", |_v| String::new();
    crate::SubgraphCondition, "condition", |_v| String::new();
    crate::LabelSelector, "header name or selector", |_v| String::new();
    Vec<ogive_selectors::Selector>, "list of rules", |_v| String::new();
    crate::ClaimNames, "text or list of texts", |v| if v.0.is_empty() { String::new() } else { format!("[{}]", v.0.join(", ")) };
    Vec<ResponseHeaderRule>, "list of rules", |_v| String::new();
    Vec<String>, "list of texts", |v| if v.is_empty() { String::new() } else { format!("[{}]", v.join(", ")) };
    Vec<Url>, "list of URLs", |_v| String::new();
    Vec<ogive_base::PeerRange>, "list of texts", |_v| String::new();
    Vec<Pattern>, "list of regular expressions", |_v| String::new();
}

/// Kinds of options that have no default of their own.
pub(crate) trait Sample {
    fn sample() -> Self;
}
macro_rules! sample {
    ($($ty:ty = $value:expr;)*) => {$(
        impl Sample for $ty {
            fn sample() -> Self { $value }
        }
    )*};
}
sample! {
    NonZeroUsize = NonZeroUsize::MIN;
    String = String::new();
    Path = Path("/".into());
    Duration = Duration::seconds(0);
    ByteSize = ByteSize(0);
    Url = Url(String::new());
    crate::EventProtocolWord = crate::EventProtocolWord::Auto;
    crate::EventSourceOptions = crate::EventSourceOptions::default();
    Listen = Listen(String::new());
    bool = false;
    u32 = 0;
    HeaderName = HeaderName(String::new());
    LabelShare = LabelShare(0.0);
    crate::RequestExtensions = crate::RequestExtensions::default();
    crate::LabelSelector = crate::LabelSelector(ogive_selectors::Selector::ClientName);
    crate::RateLimitOptions = crate::RateLimitOptions::default();
    crate::RedisOptions = crate::RedisOptions::default();
    crate::RedisTlsOptions = crate::RedisTlsOptions::default();
    crate::UsageHiveOptions = crate::UsageHiveOptions::default();
    crate::UsageOtlpOptions = crate::UsageOtlpOptions::default();
    crate::DocumentS3Options = crate::DocumentS3Options::default();
    crate::DocumentHiveOptions = crate::DocumentHiveOptions::default();
    crate::RetryOptions = crate::RetryOptions::default();
    crate::CircuitBreakerOptions = crate::CircuitBreakerOptions::default();
    crate::HedgeOptions = crate::HedgeOptions::default();
    crate::OutlierEjectionOptions = crate::OutlierEjectionOptions::default();
    crate::TlsListenerOptions = crate::TlsListenerOptions::default();
    crate::TlsClientsOptions = crate::TlsClientsOptions::default();
    crate::TlsIdentityOptions = crate::TlsIdentityOptions::default();
    crate::TlsSubgraphOptions = crate::TlsSubgraphOptions::default();
    crate::Http2Word = crate::Http2Word::Enable;
    Vec<Url> = Vec::new();
    crate::CompressionWord = crate::CompressionWord::Gzip;
    crate::BatchingWord = crate::BatchingWord::All;
    crate::ReuseWord = crate::ReuseWord::All;
    crate::SubgraphExecution = crate::SubgraphExecution::default();
    Vec<String> = Vec::new();
    Vec<HeaderName> = Vec::new();
    crate::SubgraphCacheRule = crate::SubgraphCacheRule::default();
    crate::PrivateIdOptions = crate::PrivateIdOptions::default();
    crate::HeaderSection = crate::HeaderSection::default();
    crate::SubgraphTraffic = crate::SubgraphTraffic::default();
    crate::SubgraphCostOptions = crate::SubgraphCostOptions::default();
    crate::ActualCostMode = crate::ActualCostMode::ByResponseShape;
    crate::DemandControlMode = crate::DemandControlMode::Measure;
    crate::SubgraphAuthentication = crate::SubgraphAuthentication::default();
    crate::AwsSigV4Options = crate::AwsSigV4Options::default();
    crate::AwsChainOptions = crate::AwsChainOptions::default();
    crate::AwsHardcodedOptions = crate::AwsHardcodedOptions::default();
    crate::AwsRoleOptions = crate::AwsRoleOptions::default();
    crate::HmacOptions = crate::HmacOptions::default();
    crate::MessageSignatureOptions = crate::MessageSignatureOptions::default();
    crate::BearerOptions = crate::BearerOptions::default();
    crate::ApiKeyOptions = crate::ApiKeyOptions::default();
    crate::ClientCertificateOptions = crate::ClientCertificateOptions::default();
    crate::IntrospectionOptions = crate::IntrospectionOptions::default();
    crate::PolicyServiceOptions = crate::PolicyServiceOptions::default();
    crate::CedarOptions = crate::CedarOptions::default();
    ogive_selectors::Condition = ogive_selectors::Condition::All(Vec::new());
    crate::HookCondition = crate::HookCondition(ogive_selectors::Condition::All(Vec::new()));
    crate::PolicyCondition = crate::PolicyCondition(ogive_selectors::Condition::All(Vec::new()));
    crate::SubgraphCondition = crate::SubgraphCondition(ogive_selectors::Condition::All(Vec::new()));
    Vec<crate::SubgraphUrlRule> = Vec::new();
    crate::RefusedWord = crate::RefusedWord::Mutations;
    crate::KeySetUrl = crate::KeySetUrl::File(String::new());
    Vec<crate::TokenAlgorithm> = Vec::new();
    crate::BrokerUserOptions = crate::BrokerUserOptions::default();
    crate::BrokerTlsOptions = crate::BrokerTlsOptions::default();
    crate::KafkaScramOptions = crate::KafkaScramOptions::default();
}

impl Describe for Vec<CorsPolicy> {
    fn describe(&self, path: &str, _: &[&str], rows: &mut Vec<OptionRow>) {
        CorsPolicy::default().describe(&format!("{path}[]"), &[], rows);
    }
}

impl Describe for Vec<crate::RateLimitRule> {
    fn describe(&self, path: &str, _: &[&str], rows: &mut Vec<OptionRow>) {
        let start = rows.len();
        crate::RateLimitRule::default().describe(&format!("{path}[]"), &[], rows);
        for row in &mut rows[start..] {
            row.default.clear();
        }
    }
}

impl Describe for Vec<crate::SubgraphRateRule> {
    fn describe(&self, path: &str, _: &[&str], rows: &mut Vec<OptionRow>) {
        let start = rows.len();
        crate::SubgraphRateRule::default().describe(&format!("{path}[]"), &[], rows);
        for row in &mut rows[start..] {
            row.default.clear();
        }
    }
}

impl Describe for Vec<crate::RateOverride> {
    fn describe(&self, path: &str, _: &[&str], rows: &mut Vec<OptionRow>) {
        crate::RateOverride::default().describe(&format!("{path}[]"), &[], rows);
    }
}

impl Describe for Vec<crate::OverloadClass> {
    fn describe(&self, path: &str, _: &[&str], rows: &mut Vec<OptionRow>) {
        crate::OverloadClass::default().describe(&format!("{path}[]"), &[], rows);
    }
}

impl Describe for Vec<crate::OperationRuleOptions> {
    fn describe(&self, path: &str, _: &[&str], rows: &mut Vec<OptionRow>) {
        let start = rows.len();
        crate::OperationRuleOptions::default().describe(&format!("{path}[]"), &[], rows);
        for row in &mut rows[start..] {
            row.default.clear();
        }
    }
}

impl Describe for Vec<crate::ErrorRule> {
    fn describe(&self, path: &str, _: &[&str], rows: &mut Vec<OptionRow>) {
        crate::ErrorRule::default().describe(&format!("{path}[]"), &[], rows);
    }
}

impl Describe for Vec<crate::RedactionRule> {
    fn describe(&self, path: &str, _: &[&str], rows: &mut Vec<OptionRow>) {
        crate::RedactionRule::default().describe(&format!("{path}[]"), &[], rows);
    }
}

impl Describe for Vec<crate::SubgraphUrlRule> {
    fn describe(&self, path: &str, _: &[&str], rows: &mut Vec<OptionRow>) {
        crate::SubgraphUrlRule::default().describe(&format!("{path}[]"), &[], rows);
    }
}

impl Describe for Vec<crate::StaticResponseOptions> {
    fn describe(&self, path: &str, _: &[&str], rows: &mut Vec<OptionRow>) {
        let start = rows.len();
        crate::StaticResponseOptions::default().describe(&format!("{path}[]"), &[], rows);
        for row in &mut rows[start..] {
            row.default.clear();
        }
    }
}

impl Describe for Vec<crate::PluginSection> {
    fn describe(&self, path: &str, _: &[&str], rows: &mut Vec<OptionRow>) {
        let start = rows.len();
        crate::PluginSection::default().describe(&format!("{path}[]"), &[], rows);
        for row in &mut rows[start..] {
            row.default.clear();
        }
    }
}

impl Describe for Vec<crate::JwksOptions> {
    fn describe(&self, path: &str, _: &[&str], rows: &mut Vec<OptionRow>) {
        let start = rows.len();
        crate::JwksOptions::default().describe(&format!("{path}[]"), &[], rows);
        for row in &mut rows[start..] {
            row.default.clear();
        }
    }
}

macro_rules! lists {
    ($($ty:ty),*) => {$(
        impl Describe for Vec<$ty> {
            fn describe(&self, path: &str, _: &[&str], rows: &mut Vec<OptionRow>) {
                let start = rows.len();
                <$ty>::default().describe(&format!("{path}[]"), &[], rows);
                for row in &mut rows[start..] {
                    row.default.clear();
                }
            }
        }
    )*};
}

lists! { crate::NatsProviderOptions, crate::KafkaProviderOptions, crate::RedisProviderOptions,
crate::DocumentSourceOptions, crate::DocumentClientRule }

impl<T: Describe + Sample> Describe for Option<T> {
    fn describe(&self, path: &str, doc: &[&str], rows: &mut Vec<OptionRow>) {
        if let Some(value) = self {
            return value.describe(path, doc, rows);
        }
        let start = rows.len();
        T::sample().describe(path, doc, rows);
        let is_section = rows.get(start).is_some_and(|first| first.path != path);
        for row in &mut rows[start..] {
            row.default.clear();
        }
        if is_section {
            row(path, SECTION, String::new(), doc, rows);
            rows[start..].rotate_right(1);
        }
    }
}

impl<T: Describe + Sample> Describe for BTreeMap<String, T> {
    fn describe(&self, path: &str, doc: &[&str], rows: &mut Vec<OptionRow>) {
        let start = rows.len();
        T::sample().describe(&join(path, "<name>"), doc, rows);
        for row in &mut rows[start..] {
            row.default.clear();
        }
    }
}
