//! Limits that are only measured: `limits.warn_only`.
//!
//! Whoever is about to lower a limit wants to know first whom it would hit. So every limit can be told to let pass what
//! exceeds it, with a line in the log and a number in `ogive.limits.exceeded`. A limit that keeps one client from taking
//! the process away from all others is not given up for that: it still holds at a ceiling ([`Measured`]).

use std::time::Duration;

/// Declares the limits with their keys.
macro_rules! limits {
    ($( $(#[doc = $doc:literal])* $limit:ident = $key:literal, )*) => {
        /// A limit that can be only measured, by its key; those of `limits` without their section.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Limit { $( $(#[doc = $doc])* $limit, )* }
        impl Limit {
            /// Every limit.
            pub const ALL: &[Limit] = &[$( Limit::$limit, )*];
            /// Every key.
            pub const WORDS: &[&str] = &[$($key),*];
            /// The key.
            pub fn word(self) -> &'static str {
                match self { $( Limit::$limit => $key, )* }
            }
        }
    };
}

limits! {
    /// `limits.max_depth`
    Depth = "max_depth",
    /// `limits.max_height`
    Height = "max_height",
    /// `limits.max_aliases`
    Aliases = "max_aliases",
    /// `limits.max_root_fields`
    RootFields = "max_root_fields",
    /// `limits.max_directives`
    Directives = "max_directives",
    /// `limits.max_variables_size`
    Variables = "max_variables_size",
    /// `limits.parser_max_tokens`
    Tokens = "parser_max_tokens",
    /// `limits.http_max_request_bytes`
    Body = "http_max_request_bytes",
    /// `limits.http1_max_request_headers`
    Headers = "http1_max_request_headers",
    /// `limits.http1_max_request_buf_size`
    HeaderSize = "http1_max_request_buf_size",
    /// `limits.max_request_memory`
    RequestMemory = "max_request_memory",
    /// `http.connections_max`
    Connections = "http.connections_max",
    /// `http.connections_per_client_max`
    ClientConnections = "http.connections_per_client_max",
    /// `http.header_read_timeout`
    HeaderTimeout = "http.header_read_timeout",
    /// `http.body_read_timeout`
    BodyTimeout = "http.body_read_timeout",
    /// `batching.maximum_size`
    Batch = "batching.maximum_size",
    /// `traffic_shaping.router.concurrency_limit`
    Concurrency = "traffic_shaping.router.concurrency_limit",
    /// `response_max_bytes` of every subgraph
    Response = "traffic_shaping.response_max_bytes",
}

/// A limit, and where it holds in any case.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Measured<T> {
    /// Which one.
    pub which: Limit,
    /// Beyond it is noted; beyond it is refused, unless it is only measured.
    pub limit: T,
    /// Beyond it is refused; the limit itself, unless it is only measured.
    pub ceiling: T,
}

impl<T: PartialOrd> Measured<T> {
    /// Whether anything can have to be noted: who finds out by looking at the clock need not, otherwise.
    pub fn is_only_measured(&self) -> bool {
        self.ceiling > self.limit
    }
    /// Whether so much has to be noted: it is beyond a limit that is only measured.
    pub fn is_exceeded_by(&self, found: &T) -> bool {
        self.is_only_measured() && *found > self.limit
    }
}

/// The limits that are only measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WarnOnly(u32);

/// How many times a limit that is only measured may be exceeded, if it protects the process.
const CEILING_FACTOR: u32 = 10;

impl WarnOnly {
    /// What `true` says, as in Apollo Router: the limits on operations. None of them protects the process alone.
    pub const OPERATIONS: WarnOnly = WarnOnly((1 << (Limit::Variables as u32 + 1)) - 1);
    /// These limits.
    pub fn of(limits: &[Limit]) -> WarnOnly {
        WarnOnly(limits.iter().fold(0, |all, limit| all | 1 << *limit as u32))
    }
    /// Whether exceeding a limit has no consequences.
    pub fn holds_for(self, limit: Limit) -> bool {
        self.0 & (1 << limit as u32) != 0
    }
    /// A limit on a number, and where it holds in any case: there, or, if it is only measured, at ten times the number and
    /// not below `default`.
    pub fn size(self, which: Limit, limit: usize, default: usize) -> Measured<usize> {
        let ceiling = if self.holds_for(which) {
            limit.saturating_mul(CEILING_FACTOR as usize).max(default)
        } else {
            limit
        };
        Measured {
            which,
            limit,
            ceiling,
        }
    }
    /// The same for a time.
    pub fn time(self, which: Limit, limit: Duration, default: Duration) -> Measured<Duration> {
        let ceiling = if self.holds_for(which) {
            limit.saturating_mul(CEILING_FACTOR).max(default)
        } else {
            limit
        };
        Measured {
            which,
            limit,
            ceiling,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ceilings_are_ten_times_the_limit_and_never_below_the_default() {
        let warn = WarnOnly::of(&[Limit::Body]);
        assert_eq!(warn.size(Limit::Body, 500, 2_000).ceiling, 5_000);
        assert_eq!(warn.size(Limit::Body, 100, 2_000).ceiling, 2_000);
        assert_eq!(warn.size(Limit::Body, usize::MAX, 1).ceiling, usize::MAX);
        assert!(warn.size(Limit::Body, 100, 0).is_exceeded_by(&101));
        let strict = warn.size(Limit::Batch, 100, 2_000);
        assert_eq!(strict.ceiling, 100);
        assert!(!strict.is_exceeded_by(&101), "it is refused instead");
    }

    #[test]
    fn true_is_about_operations() {
        assert!(WarnOnly::OPERATIONS.holds_for(Limit::Depth));
        assert!(WarnOnly::OPERATIONS.holds_for(Limit::Variables));
        assert!(!WarnOnly::OPERATIONS.holds_for(Limit::Tokens));
        assert!(!WarnOnly::OPERATIONS.holds_for(Limit::Response));
    }
}
