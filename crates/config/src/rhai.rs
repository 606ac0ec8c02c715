//! The options of `rhai`: scripts at the stages of a request. Apollo Router's words, and what bounds them.

use std::num::NonZeroUsize;

use crate::{ByteSize, Duration, decode::section, scalars::nonzero};

section! {
    /// `rhai`
    pub struct RhaiOptions {
        /// The folder of the scripts; without it there are none.
        pub scripts: Option<String> = None,
        /// The script in it that has the entry points: `router_service`, `supergraph_service`, `execution_service`,
        /// `subgraph_service`.
        pub main: String = "main.rhai".to_owned(),
        /// What one call of a script may need.
        pub limits: RhaiLimits = RhaiLimits::default(),
    }

    /// `rhai.limits`
    pub struct RhaiLimits {
        /// Most operations.
        pub operations: NonZeroUsize = nonzero(500_000),
        /// Longest time.
        pub timeout: Duration = Duration::milliseconds(100),
        /// Most calls within one another.
        pub depth: NonZeroUsize = nonzero(64),
        /// Largest text; a list has at most a sixteenth of that as items, an object a sixty-fourth as members. At most 1 MiB
        /// counts for each 100 ms of `timeout`, so that one operation does not outlast it.
        pub memory: ByteSize = ByteSize(1 << 20),
    }
}
