//! WebAssembly components on real sockets: where they are called, what they may change, and what becomes of a request when they
//! end it, fail, or never end. Tests of the feature `components`; what they say of faults is in the documentation of every
//! build.

#[cfg(feature = "components")]
mod guest;
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
