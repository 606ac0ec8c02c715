//! The options of `usage`: which clients ask for what.

use std::{collections::BTreeMap, num::NonZeroUsize};

use crate::{ByteSize, Duration, OtlpProtocol, SecretText, Url, decode::section, scalars::nonzero};

section! {
    /// `usage`
    pub struct UsageOptions {
        /// Whether it is counted which client asks which operation, how often, with how many errors, how long it took and what
        /// it cost. Default no.
        pub enabled: bool = false,
        /// How often what was counted is written down and told.
        pub interval: Duration = Duration::seconds(60),
        /// Most pairs of operation and client that are told apart between two times; what is beyond them is counted together. A
        /// pair counts once for each worker that serves it.
        pub rows_max: NonZeroUsize = nonzero(10_000),
        /// Most bytes of operations that are kept between two times; what is beyond them is counted together.
        pub memory_max: ByteSize = ByteSize(16 << 20),
        /// A file: one JSON object per line, of an operation and a client. `ogive check --usage` reads it.
        pub file: UsageFileOptions = UsageFileOptions::default(),
        /// Hive's usage reporting.
        pub hive: Option<UsageHiveOptions> = None,
        /// A collector of OpenTelemetry: one log record for each operation and client.
        pub otlp: Option<UsageOtlpOptions> = None,
    }

    /// `usage.otlp`
    pub struct UsageOtlpOptions {
        /// The collector; with `protocol: http` the path is that of `/v1/logs` unless it has one.
        pub endpoint: Url = Url("http://127.0.0.1:4318".into()),
        /// `http` (protobuf) or `grpc`.
        pub protocol: OtlpProtocol = OtlpProtocol::Http,
        /// Headers to send along, such as a key.
        pub headers: BTreeMap<String, String> = BTreeMap::new(),
        /// How long the collector may take.
        pub timeout: Duration = Duration::seconds(10),
    }

    /// `usage.file`
    pub struct UsageFileOptions {
        /// Where it is; not set: none is written.
        pub path: Option<String> = None,
        /// From this size on it is begun anew, and the one before is kept as `PATH.1`.
        pub max_size: ByteSize = ByteSize(64 << 20),
    }

    /// `usage.hive`
    pub struct UsageHiveOptions {
        /// Where it is told.
        pub endpoint: Url = Url("https://app.graphql-hive.com/usage".into()),
        /// The access token of the target.
        pub token: SecretText = SecretText::default(),
        /// Most executions that are told at a time: of more, a part that is as large for each operation and client.
        pub executions_max: NonZeroUsize = nonzero(10_000),
        /// How long an answer may take.
        pub timeout: Duration = Duration::seconds(10),
    }
}
