//! Every `extensions.code` this crate gives to an error. Codes are stable: clients match on them.
//! A transport brings codes of its own ([`TransportError::code`](crate::TransportError::code)), and a subgraph error
//! that has a code keeps it.

/// No usable HTTP answer: the connection failed or the status is not 2xx.
pub const SUBREQUEST_HTTP_ERROR: &str = "SUBREQUEST_HTTP_ERROR";
/// The answer is no GraphQL response, or not to what was asked.
pub const SUBREQUEST_MALFORMED_RESPONSE: &str = "SUBREQUEST_MALFORMED_RESPONSE";
/// A value does not fit its field's type.
pub const SUBREQUEST_INVALID_VALUE: &str = "SUBREQUEST_INVALID_VALUE";
/// A subgraph cannot be subscribed to.
pub const SUBREQUEST_NO_EVENTS: &str = "SUBREQUEST_NO_EVENTS";
/// An object's concrete type is not one the field can have.
pub const SUBREQUEST_UNEXPECTED_TYPE: &str = "SUBREQUEST_UNEXPECTED_TYPE";
/// Two subgraphs answered the same list with different lengths.
pub const SUBREQUEST_LIST_MISMATCH: &str = "SUBREQUEST_LIST_MISMATCH";
/// A subgraph reported an error, and what it said is kept from the client.
pub const SUBREQUEST_GRAPHQL_ERROR: &str = "SUBREQUEST_GRAPHQL_ERROR";
/// A subgraph knows nothing of an entity that another one refers to. Nothing is wrong with the response.
pub const SUBREQUEST_MISSING_ENTITY: &str = "SUBREQUEST_MISSING_ENTITY";
/// A subgraph reported an error without a code.
pub const DOWNSTREAM_SERVICE_ERROR: &str = "DOWNSTREAM_SERVICE_ERROR";
/// A client wants less than no items of a list at first (`@stream`).
pub const INVALID_INITIAL_COUNT: &str = "INVALID_INITIAL_COUNT";
/// A non-nullable field has no value, and no other error says why.
pub const NON_NULL_VIOLATION: &str = "NON_NULL_VIOLATION";
/// A subgraph answer, or a request to one, exceeds a limit.
pub const EXECUTION_LIMIT_EXCEEDED: &str = "EXECUTION_LIMIT_EXCEEDED";
/// There are more errors than the response may carry.
pub const ERRORS_TRUNCATED: &str = "ERRORS_TRUNCATED";
/// The caller may not see a field, or an object of its type.
pub const UNAUTHORIZED_FIELD_OR_TYPE: &str = "UNAUTHORIZED_FIELD_OR_TYPE";

/// What a client reads of a request to a subgraph that failed, if it may not see why; the code says more.
pub(crate) const MASKED_MESSAGE: &str = "A request to a subgraph failed.";

/// A row of the code table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeInfo {
    /// The code.
    pub code: &'static str,
    /// What it means to somebody who reads a response.
    pub meaning: &'static str,
    /// What an operator can do.
    pub remedy: &'static str,
}

/// All codes, in alphabetical order.
pub const CODES: &[CodeInfo] = &[
    CodeInfo {
        code: DOWNSTREAM_SERVICE_ERROR,
        meaning: "A subgraph reported an error and gave it no code.",
        remedy: "ScanPartial at the subgraph's log; let the subgraph set `extensions.code`.",
    },
    CodeInfo {
        code: ERRORS_TRUNCATED,
        meaning: "More errors occurred than the response may carry; the rest is left out.",
        remedy: "Fix the errors shown; raise `errors_max` if all are wanted.",
    },
    CodeInfo {
        code: EXECUTION_LIMIT_EXCEEDED,
        meaning: "A subgraph answer, what would have to be sent to a subgraph, or the response exceeds a limit.",
        remedy: "Ask for less, for example with pagination, or raise the limit named in the message.",
    },
    CodeInfo {
        code: INVALID_INITIAL_COUNT,
        meaning: "The variable of `initialCount` of a `@stream` is negative or null.",
        remedy: "Send 0 or more.",
    },
    CodeInfo {
        code: NON_NULL_VIOLATION,
        meaning: "A subgraph answered null, or nothing, for a field that the schema calls non-null.",
        remedy: "Make the field nullable or let the subgraph always answer it.",
    },
    CodeInfo {
        code: SUBREQUEST_GRAPHQL_ERROR,
        meaning: "A subgraph reported an error, and what it said is kept from the client.",
        remedy: "ScanPartial for it in the log, which has what the subgraph said.",
    },
    CodeInfo {
        code: SUBREQUEST_HTTP_ERROR,
        meaning: "A subgraph could not be reached, or its HTTP status says failure.",
        remedy: "Check that the subgraph is up and its URL is right.",
    },
    CodeInfo {
        code: SUBREQUEST_INVALID_VALUE,
        meaning: "A subgraph answered a value that does not fit the field's type.",
        remedy: "Compare the subgraph's schema with the one it was composed from.",
    },
    CodeInfo {
        code: SUBREQUEST_LIST_MISMATCH,
        meaning: "Two subgraphs answered the same list with different lengths, so items cannot be matched.",
        remedy: "Make both subgraphs answer the same list, or give the item type a `@key`.",
    },
    CodeInfo {
        code: SUBREQUEST_MALFORMED_RESPONSE,
        meaning: "A subgraph's answer is not JSON, no GraphQL response, or lacks what was asked.",
        remedy: "Check that the URL is a GraphQL endpoint and what the subgraph answers to the request in the trace.",
    },
    CodeInfo {
        code: SUBREQUEST_MISSING_ENTITY,
        meaning: "A subgraph answered null for an entity that another one refers to. Only operators are told.",
        remedy: "Nothing, if references may lead nowhere; otherwise compare the data of both subgraphs.",
    },
    CodeInfo {
        code: SUBREQUEST_NO_EVENTS,
        meaning: "A subscription cannot be opened, because nothing is set up by which this subgraph sends events.",
        remedy: "Name the subgraph's protocol in the section `subscription` of the configuration.",
    },
    CodeInfo {
        code: SUBREQUEST_UNEXPECTED_TYPE,
        meaning: "A subgraph answered an object whose type the field cannot have.",
        remedy: "Compare the subgraph's schema with the one it was composed from; check `__resolveReference`.",
    },
    CodeInfo {
        code: UNAUTHORIZED_FIELD_OR_TYPE,
        meaning: "The schema shows a field or a type to some callers only (`@authenticated`, `@requiresScopes`, `@policy`), and this caller is none of them.",
        remedy: "Ask as somebody who has the scopes or policies, or leave the field out; see `authorization` in the configuration.",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_is_sorted_and_unique() {
        assert!(CODES.windows(2).all(|pair| pair[0].code < pair[1].code));
    }
}
