//! The words that options take, each a list of its own.

use ogive_yaml::Node;

use crate::decode::{Decode, Errors};

/// Declares the words an option takes.
macro_rules! words {
    ($(
        $(#[doc = $doc:literal])*
        pub enum $name:ident { $( $(#[doc = $word_doc:literal])* $variant:ident = $word:literal, )* }
    )*) => {$(
        $(#[doc = $doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum $name { $( $(#[doc = $word_doc])* $variant, )* }
        impl $name {
            /// Every word.
            pub const WORDS: &'static [&'static str] = &[$($word),*];
            /// The word.
            pub fn word(self) -> &'static str {
                match self { $( $name::$variant => $word, )* }
            }
        }
        impl crate::decode::Decode for $name {
            fn decode(
                node: &ogive_yaml::Node,
                errors: &mut crate::decode::Errors,
            ) -> Option<Self> {
                match errors.scalar(node, "a word")? {
                    $( $word => Some($name::$variant), )*
                    other => {
                        let known = Self::WORDS.join("`, `");
                        errors.invalid(node.span, format!("expected one of `{known}`, found `{other}`"), "");
                        None
                    }
                }
            }
        }
        impl crate::reference::Describe for $name {
            fn describe(&self, path: &str, doc: &[&str], rows: &mut Vec<crate::reference::OptionRow>) {
                crate::reference::word(path, Self::WORDS, self.word(), doc, rows);
            }
        }
    )*};
}
pub(crate) use words;

/// What plans make small first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PlanProfile {
    /// Waves.
    CriticalPath,
    /// Requests.
    FewestRequests,
    /// Work of subgraphs.
    LeastLoad,
}

/// How log lines are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object per line.
    Json,
}

words! {
    /// Whose requests are counted together.
    pub enum RateLimitKey {
        /// Everybody's.
        Global = "global",
        /// Those of one address.
        Ip = "ip",
        /// Those with the same value of a header.
        Header = "header",
        /// Those of callers with the same value of a claim.
        Claim = "claim",
        /// Those for operations of one name.
        Operation = "operation",
        /// Those of clients that say they are called the same.
        ClientName = "client_name",
    }

    /// Where a proxy names the client.
    pub enum ClientAddressHeader {
        /// What most proxies write.
        XForwardedFor = "x-forwarded-for",
        /// RFC 7239.
        Forwarded = "forwarded",
    }

    /// What becomes of a header that several answers have.
    pub enum HeaderAlgorithm {
        /// That of the request that was sent first.
        First = "first",
        /// That of the request that was sent last.
        Last = "last",
        /// All of them, as one list.
        Append = "append",
    }

    /// How export requests travel.
    pub enum OtlpProtocol {
        /// HTTP/1.1 with protobuf bodies.
        Http = "http",
        /// gRPC over HTTP/2.
        Grpc = "grpc",
    }

    /// Encodings.
    pub enum CompressionWord {
        /// `gzip`
        Gzip = "gzip",
        /// `br`
        Br = "br",
        /// `zstd`
        Zstd = "zstd",
    }

    /// What need not be asked again within one query.
    pub enum ReuseWord {
        /// Nothing.
        Off = "off",
        /// The same entity for the same fields of the same subgraph.
        Entities = "entities",
        /// That, and leaves of the entity that the subgraph has answered anywhere.
        All = "all",
    }

    /// What becomes of operations that cost too much.
    pub enum DemandControlMode {
        /// They are answered, and counted.
        Measure = "measure",
        /// They are refused.
        Enforce = "enforce",
    }

    /// Who counts a rate, or keeps a document.
    pub enum StorageWord {
        /// Each process by itself.
        Local = "local",
        /// All processes together.
        Redis = "redis",
    }

    /// What Redis is made of.
    pub enum RedisMode {
        /// One server, or one address for all.
        Single = "single",
        /// A cluster.
        Cluster = "cluster",
        /// Sentinels that know where the server is.
        Sentinel = "sentinel",
    }

    /// What is taken from a rate for an operation.
    pub enum RateCharge {
        /// 1.
        Request = "request",
        /// What it is estimated to cost.
        EstimatedCost = "estimated_cost",
        /// The same, and what it did not cost is given back.
        ActualCost = "actual_cost",
    }

    /// How it is counted what operations did cost.
    pub enum ActualCostMode {
        /// From the lists of the answer.
        ByResponseShape = "by_response_shape",
    }

    /// What may share one request to a subgraph.
    pub enum BatchingWord {
        /// Nothing.
        Off = "off",
        /// The same look-up at several paths.
        Paths = "paths",
        /// All look-ups of a wave, and root fields.
        All = "all",
    }

    /// What becomes of directives that say who may see what.
    pub enum AuthorizationDirectives {
        /// A supergraph that has them is not served.
        Refuse = "refuse",
        /// They mean nothing.
        Ignore = "ignore",
        /// They are enforced.
        Enforce = "enforce",
    }

    /// Kinds of operations.
    pub enum OperationWord {
        /// Queries.
        Query = "query",
        /// Mutations.
        Mutation = "mutation",
        /// Subscriptions.
        Subscription = "subscription",
        /// Operations that ask for `__schema` or `__type`.
        Introspection = "introspection",
        /// The page of GraphiQL.
        Graphiql = "graphiql",
    }

    /// What introspection shows.
    pub enum IntrospectionWord {
        /// Everything, to everybody.
        All = "all",
        /// What the caller may see.
        Authorized = "authorized",
    }

    /// What becomes of a start without a supergraph.
    pub enum WhenMissing {
        /// It fails.
        Fail = "fail",
        /// The process serves once there is one.
        Wait = "wait",
    }

    /// Forms of answers in parts, as Apollo counts them.
    pub enum IncrementalFormat {
        /// The one of 2022.
        V01 = "v0.1",
        /// The current one.
        V02 = "v0.2",
    }

    /// When HTTP/2 is spoken with a subgraph.
    pub enum Http2Word {
        /// If both sides agree.
        Enable = "enable",
        /// Never.
        Disable = "disable",
        /// Always.
        Only = "http2only",
    }

    /// What becomes of documents that no manifest lists.
    pub enum PersistedMode {
        /// They are served.
        Allow = "allow",
        /// They are served and logged.
        Log = "log",
        /// They are refused.
        Require = "require",
    }
}

impl Decode for PlanProfile {
    fn decode(node: &Node, errors: &mut Errors) -> Option<Self> {
        match errors.scalar(node, "`critical-path`, `fewest-requests` or `least-load`")? {
            "critical-path" => Some(PlanProfile::CriticalPath),
            "fewest-requests" => Some(PlanProfile::FewestRequests),
            "least-load" => Some(PlanProfile::LeastLoad),
            other => {
                errors.invalid(
                    node.span,
                    format!(
                        "expected `critical-path`, `fewest-requests` or `least-load`, found `{other}`"
                    ),
                    "",
                );
                None
            }
        }
    }
}

impl Decode for LogFormat {
    fn decode(node: &Node, errors: &mut Errors) -> Option<Self> {
        match errors.scalar(node, "`text` or `json`")? {
            "text" => Some(LogFormat::Text),
            "json" => Some(LogFormat::Json),
            other => {
                errors.invalid(
                    node.span,
                    format!("expected `text` or `json`, found `{other}`"),
                    "",
                );
                None
            }
        }
    }
}
