//! WebAssembly components on real sockets: where they are called, what they may change, and what becomes of a request when they
//! end it, fail, or never end. Tests of the feature `components`; what they say of faults is in the documentation of every
//! build.

#[cfg(feature = "components")]
mod callers;
#[cfg(feature = "components")]
mod conditions;
#[cfg(feature = "components")]
mod decisions;
#[cfg(all(feature = "components", target_os = "linux"))]
mod executable_memory;
#[cfg(feature = "components")]
pub(crate) mod guest;
#[cfg(feature = "components")]
mod requests;
#[cfg(feature = "components")]
mod stages;

/// What a component does (in text format), and what the client gets if it does that at the stage of a client's request, and at a
/// stage of a subgraph.
pub(crate) const COMPONENT_FAULTS: [(&str, &str, &str, &str); 13] = [
    (
        "never ends",
        "(loop $again (br $again)) (i32.const 0)",
        FAILED,
        FAILED_FETCH,
    ),
    ("traps", "(unreachable)", FAILED, FAILED_FETCH),
    (
        "recurses without end",
        "(call $deep (i32.const 1))",
        FAILED,
        FAILED_FETCH,
    ),
    (
        "asks for a gigabyte of memory",
        "(if (i32.eq (memory.grow (i32.const 16384)) (i32.const -1)) (then (unreachable))) (i32.const 0)",
        FAILED,
        FAILED_FETCH,
    ),
    (
        "writes a header that it is not permitted to",
        "(call $set_header @\"x-user\" @\"admin\" ) (i32.const 0)",
        FAILED,
        FAILED_FETCH,
    ),
    (
        "reads a header that it is not permitted to",
        "(call $header @\"authorization\" (i32.const 32)) (i32.const 0)",
        FAILED,
        FAILED_FETCH,
    ),
    (
        "writes an entry of the context that it is not permitted to",
        "(call $set @\"apollo::authentication::jwt_claims\" @\"{}\" ) (i32.const 0)",
        FAILED,
        FAILED_FETCH,
    ),
    (
        "leaves more than 1 MiB in the context",
        "(drop (memory.grow (i32.const 32))) (memory.fill (i32.const 131072) (i32.const 49) (i32.const 2000000)) \
         (call $set @\"stages\" (i32.const 131072) (i32.const 2000000)) (i32.const 0)",
        FAILED,
        FAILED_FETCH,
    ),
    (
        "ends with a status that is none",
        "(call $end (i32.const 99) @\"\" ) (i32.const 0)",
        FAILED,
        FAILED_FETCH,
    ),
    (
        "says that it failed",
        "(i32.store8 (i32.const 64) (i32.const 1)) (i32.const 64)",
        FAILED,
        FAILED_FETCH,
    ),
    (
        "ends with a status",
        "(call $end (i32.const 403) @\"no\" ) (i32.const 0)",
        "403 PLUGIN_BREAK",
        "200 PLUGIN_BREAK",
    ),
    (
        "asks a host that it is not permitted to, and ends with a status",
        "(call $ask @\"http://169.254.169.254/latest/meta-data/\" ) (call $end (i32.const 403) @\"no\" ) (i32.const 0)",
        "403 PLUGIN_BREAK",
        "200 PLUGIN_BREAK",
    ),
    (
        "asks other hosts again and again",
        "(loop $again (call $ask @\"https://products.test/\" ) (br $again)) (i32.const 0)",
        FAILED,
        FAILED_FETCH,
    ),
];

const FAILED: &str = "500 PLUGIN_FAILED";
const FAILED_FETCH: &str = "200 PLUGIN_FAILED";

/// What a component does where it decides something (in text format), and what the client gets if it does that where it says
/// who asks, where it says which policies hold, and where it says what is counted together.
pub(crate) const DECISION_FAULTS: [(&str, [&str; 4]); 11] = [
    (
        "never ends",
        [
            "(loop $again (br $again)) (i32.const 0)",
            NOBODY,
            UNDECIDED,
            FAILED,
        ],
    ),
    ("traps", ["(unreachable)", NOBODY, UNDECIDED, FAILED]),
    (
        "recurses without end",
        ["(call $deep (i32.const 1))", NOBODY, UNDECIDED, FAILED],
    ),
    (
        "asks for a gigabyte of memory",
        [
            "(if (i32.eq (memory.grow (i32.const 16384)) (i32.const -1)) (then (unreachable))) (i32.const 0)",
            NOBODY,
            UNDECIDED,
            FAILED,
        ],
    ),
    (
        "says what is outside of its memory",
        [
            "(call $said (i32.const 1) (i32.const 16) (i32.const -1))",
            NOBODY,
            UNDECIDED,
            FAILED,
        ],
    ),
    (
        "says two megabytes",
        [
            "(drop (memory.grow (i32.const 32))) (call $said (i32.const 1) (i32.const 16) (i32.const 2000000))",
            NOBODY,
            UNDECIDED,
            FAILED,
        ],
    ),
    (
        "writes a header",
        [
            "(call $set_header @\"x-in\" @\"1\" ) (call $unknown)",
            NOBODY,
            UNDECIDED,
            FAILED,
        ],
    ),
    (
        "reads a header that it is not permitted to",
        [
            "(call $header @\"authorization\" (i32.const 32)) (call $unknown)",
            NOBODY,
            UNDECIDED,
            FAILED,
        ],
    ),
    (
        "writes an entry of the context",
        [
            "(call $set @\"stages\" @\"1\" ) (call $unknown)",
            NOBODY,
            UNDECIDED,
            FAILED,
        ],
    ),
    (
        "ends the request",
        [
            "(call $end (i32.const 200) @\"{'data':{}}\" ) (call $unknown)",
            NOBODY,
            UNDECIDED,
            FAILED,
        ],
    ),
    (
        "says that it failed",
        [
            "(i32.store8 (i32.const 64) (i32.const 1)) (i32.const 64)",
            NOBODY,
            UNDECIDED,
            FAILED,
        ],
    ),
];

/// What components say of who asks that cannot be claims of anybody, each with what the client gets.
pub(crate) const CLAIM_FAULTS: [(&str, &str, &str); 8] = [
    (
        "claims that are no JSON",
        "(call $claims @\"{'sub'\" )",
        NOBODY,
    ),
    (
        "claims that are no object",
        "(call $claims @\"['ida']\" )",
        NOBODY,
    ),
    (
        "claims with a member twice",
        "(call $claims @\"{'sub':'a','sub':'b'}\" )",
        NOBODY,
    ),
    (
        "claims whose `exp` is a text",
        "(call $claims @\"{'exp':'never'}\" )",
        NOBODY,
    ),
    (
        "claims of 100 kB",
        "(drop (memory.grow (i32.const 4))) (memory.fill (i32.const 131072) (i32.const 49) (i32.const 100000)) \
         (call $claims (i32.const 131072) (i32.const 100000))",
        NOBODY,
    ),
    (
        "claims that have ended",
        "(call $claims @\"{'sub':'ida','exp':1}\" )",
        "401 TOKEN_EXPIRED",
    ),
    (
        "a verdict that is none",
        "(call $said (i32.const 9) (i32.const 0) (i32.const 0))",
        NOBODY,
    ),
    (
        "that it is refused",
        "(call $refused @\"no\" )",
        "401 CREDENTIALS_REFUSED",
    ),
];

const NOBODY: &str = "503 AUTHENTICATION_UNAVAILABLE";
const UNDECIDED: &str = "503 POLICIES_UNAVAILABLE";
