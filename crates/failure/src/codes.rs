//! Every value of `extensions.code` that the gateway itself puts into a response.
//!
//! Words are those clients already switch on (Apollo Server, Apollo Router). Codes of subgraph errors pass through
//! and are not listed. `status` is the HTTP status when the whole request fails with the code; a client that asked for
//! `application/json` by name gets 200 for well-formed requests instead, as GraphQL over HTTP wants it.

use std::fmt;

/// Who has to act.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// The client's request.
    Client,
    /// A subgraph's answer, or that there was none.
    Subgraph,
    /// The gateway.
    Gateway,
}

impl Origin {
    /// As the documentation calls it.
    pub fn as_str(self) -> &'static str {
        match self {
            Origin::Client => "client",
            Origin::Subgraph => "subgraph",
            Origin::Gateway => "gateway",
        }
    }
}

/// Whether a failure passes by itself.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Passing {
    /// The same request may be answered later, though nobody has changed anything.
    Transient,
    /// Somebody has to change something.
    Lasting,
}

/// What is known of a code.
struct Row {
    code: &'static str,
    status: u16,
    origin: Origin,
    passing: Passing,
    meaning: &'static str,
    remedy: &'static str,
}

/// What `ogive.limits.exceeded` calls limits whose refusal has no code of its own: a connection that is closed, a bare HTTP
/// status, or a code that says other things, too.
pub mod limits {
    /// `http.connections_max`
    pub const CONNECTIONS: &str = "CONNECTIONS_LIMIT";
    /// `http.connections_per_client_max`
    pub const CLIENT_CONNECTIONS: &str = "CLIENT_CONNECTIONS_LIMIT";
    /// `http.header_read_timeout`
    pub const HEADER_TIMEOUT: &str = "HEADER_TIMEOUT";
    /// `limits.http1_max_request_headers`
    pub const HEADERS: &str = "HEADERS_LIMIT";
    /// `limits.http1_max_request_buf_size`
    pub const HEADER_SIZE: &str = "HEADER_SIZE_LIMIT";
    /// `response_max_bytes` of a subgraph
    pub const RESPONSE_SIZE: &str = "RESPONSE_SIZE_LIMIT";
}

macro_rules! codes {
    ($( $name:ident $status:literal $origin:ident $passing:ident $meaning:literal $remedy:literal )*) => {
        /// The codes, each a row of the table.
        #[allow(
            non_camel_case_types,
            clippy::upper_case_acronyms,
            reason = "a variant is called as its code is written"
        )]
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum ErrorCode {
            $( #[doc = $meaning] $name, )*
        }
        pub use ErrorCode::*;
        impl ErrorCode {
            /// All of them, sorted by their words.
            pub const ALL: &[ErrorCode] = &[$( ErrorCode::$name, )*];
        }
        const ROWS: &[Row] = &[$( Row {
            code: stringify!($name),
            status: $status,
            origin: Origin::$origin,
            passing: Passing::$passing,
            meaning: $meaning,
            remedy: $remedy,
        }, )*];
    };
}

codes! {
    AUTHENTICATION_UNAVAILABLE 503 Gateway Transient
        "It cannot be said who asks: the keys of the token's issuer have not come yet, whoever judges it does not answer, or a component that does failed."
        "Come back after the seconds of `retry-after`; the log says which key set cannot be fetched, which issuer does not answer or which component failed, and why."
    AUTHORIZATION_CHANGED 200 Gateway Transient
        "What the caller of a subscription, or of an answer in parts, may see is not what it was when that began."
        "Ask again: it is judged anew. See `authorization.revocation`."
    BATCHING_NOT_ENABLED 400 Client Lasting
        "The request is a list of requests, and `batching.enabled` is off."
        "Send one request at a time, or switch batching on."
    BATCH_LIMIT_EXCEEDED 422 Client Lasting
        "The list holds more requests than `batching.maximum_size`."
        "Send fewer at a time, or raise the limit."
    CIRCUIT_BREAKER_OPEN 200 Subgraph Transient
        "The subgraph failed too often and is left alone for a while; the fields concerned are null."
        "Look at the subgraph; see `traffic_shaping`'s `circuit_breaker`."
    CONNECTIONS_LIMITED 503 Gateway Transient
        "All connections, or all WebSockets, that the gateway may have are taken and busy, or all that one client may have."
        "Come back after the seconds of `retry-after`; see `http.connections_max` and `http.connections_per_client_max`, and for WebSockets `subscription.client.websocket.max_connections` and `limits.client_share`."
    COPROCESSOR_BREAK 400 Gateway Lasting
        "The coprocessor ended the request without a GraphQL response of its own; the status is the one it chose."
        "Ask whoever runs the coprocessor; the message is theirs."
    COPROCESSOR_FAILED 500 Gateway Transient
        "The coprocessor did not answer in time, or not in the words of the protocol; at the stages of subgraphs the fields concerned are null."
        "The log says at which stage and why; see `coprocessor.on_error`."
    COST_ACTUAL_TOO_EXPENSIVE 400 Client Lasting
        "The operation was estimated to cost no more than it may, but its answer cost more than `demand_control.strategy.static_estimated.max`."
        "Ask for fewer or shorter lists; let `@listSize` say how long lists are."
    COST_ESTIMATED_TOO_EXPENSIVE 400 Client Lasting
        "The operation is estimated to cost more than `demand_control.strategy.static_estimated.max`."
        "Ask for fewer or shorter lists; `ogive cost --fields` says what costs how much."
    COST_QUERY_PARSE_FAILURE 400 Client Lasting
        "The cost cannot be estimated: a field with `@listSize(requireOneSlicingArgument: true)` is not given exactly one slicing argument."
        "Give the field one of its slicing arguments."
    COST_TOO_MANY_ENTITIES 400 Client Lasting
        "The operation would look up more entities than `demand_control.strategy.static_estimated.max_entities`."
        "Ask for fewer or shorter lists of objects that several subgraphs know."
    COST_TOO_MANY_SUBGRAPH_REQUESTS 400 Client Lasting
        "The plan of the operation has more requests than `demand_control.strategy.static_estimated.max_subgraph_requests`."
        "Ask for fields of fewer subgraphs; `ogive plan` shows the requests."
    CREDENTIALS_REFUSED 401 Client Lasting
        "A component that says who asks (`authentication.router.components`) refused what came with the request."
        "Send other credentials; the log of the gateway has the reason that the component gave."
    CSRF_ERROR 400 Client Lasting
        "A web page of another origin could have made a browser send this request."
        "Send `content-type: application/json` or a header of `csrf.required_headers`, such as `apollo-require-preflight: true`."
    DOWNSTREAM_SERVICE_ERROR 200 Subgraph Lasting
        "A subgraph reported an error and gave it no code, and `include_subgraph_errors` shows its errors."
        "Look at the subgraph's log; let the subgraph set `extensions.code`."
    ERRORS_TRUNCATED 200 Subgraph Lasting
        "More errors occurred than the response may carry; the rest is left out."
        "Fix the errors shown."
    EVENT_ARGUMENT_INVALID 200 Client Lasting
        "An argument cannot be part of the name of a subject, channel or topic: it is no scalar, is empty, or has a separator, a wildcard or white space in it."
        "Send an argument that is one plain word."
    EVENT_BROKER_ERROR 200 Subgraph Transient
        "A message broker could not be reached, or nobody answered a request over it."
        "See the gateway's log for the cause; see `events.providers`."
    EVENT_INCOMPLETE 200 Subgraph Lasting
        "An event does not carry what its schema promises: its `__typename`, a key or another field that may not be null. The subscription goes on."
        "Publish events with the key fields of their entity and, where several types can be meant, `__typename`."
    EVENT_MALFORMED 200 Subgraph Lasting
        "An event of a message broker is no JSON, or larger than `response_max_bytes`. The subscription goes on."
        "Look at what publishes on the subject, channel or topic; `ogive explain` names it."
    EVENT_PROVIDER_UNKNOWN 200 Subgraph Lasting
        "A field is bound to a message broker that the configuration does not have."
        "Add it to `events.providers` under the `providerId` of the schema."
    EXECUTION_LIMIT_EXCEEDED 200 Subgraph Lasting
        "A subgraph's answer, what would have to be sent to a subgraph, or the response exceeds a limit."
        "Ask for less, for example with pagination."
    GATEWAY_MEMORY_LIMIT 503 Gateway Transient
        "The requests under way hold as much memory as new ones may add to: three quarters of `limits.max_memory`, or all but a thirty-second for small ones."
        "Come back after the seconds of `retry-after`; give the process more memory, or raise the limit."
    GATEWAY_TIMEOUT 200 Subgraph Transient
        "A subgraph, or the request as a whole, took longer than its timeout; the fields concerned are null."
        "Look for the slow subgraph, or raise `traffic_shaping`'s timeouts."
    GRAPHQL_PARSE_FAILED 400 Client Lasting
        "The document is not GraphQL, or exceeds the limits on tokens and depth."
        "Fix the document at the location given."
    GRAPHQL_UNKNOWN_OPERATION_NAME 400 Client Lasting
        "The document holds no operation of that name, or several and no name was given."
        "Send `operationName`."
    GRAPHQL_VALIDATION_FAILED 400 Client Lasting
        "The document breaks a validation rule of the specification or does not fit the schema."
        "Fix the document at the locations given."
    INTERNAL_SERVER_ERROR 500 Gateway Lasting
        "The gateway failed in a way it should not. Details are in its log."
        "Report it with the log lines."
    INTROSPECTION_DISABLED 400 Client Lasting
        "The operation asks for `__schema` or `__type`, and `supergraph.introspection` is off."
        "Read the schema elsewhere, or switch introspection on."
    INVALID_API_KEY 401 Client Lasting
        "The API key that came with the request is not in the file of keys, or has expired."
        "Ask with a key that the gateway knows; see `authentication.router.api_keys`."
    INVALID_CLAIMS 400 Client Lasting
        "The header in which a trusted proxy says who the caller is holds no claims, or is there more than once."
        "Let the proxy send the header of `authorization.claims.header` once, as JSON such as `{\"scopes\": [\"user:read\"]}`."
    INVALID_CLIENT_CERTIFICATE 401 Client Lasting
        "The client certificate does not hold any more, or has not exactly one name of the kind that `authentication.router.client_certificate.sub_from` asks for."
        "Connect with another certificate, or let `sub_from` name a kind that certificates have once."
    INVALID_CREDENTIALS 400 Client Lasting
        "It cannot be told which token is meant: a header or cookie is there twice, has no token, or another prefix."
        "Send one token, as `authorization: Bearer TOKEN` unless `authentication.router.jwt` says otherwise."
    INVALID_GRAPHQL_REQUEST 400 Client Lasting
        "The HTTP request holds no well-formed GraphQL request."
        "Send a JSON object with at least `query`, a string."
    INVALID_INITIAL_COUNT 200 Client Lasting
        "The variable of `initialCount` of a `@stream` is negative."
        "Send 0 or more."
    INVALID_TOKEN 401 Client Lasting
        "The token cannot be read, its signature is not good, its key or algorithm is none that is allowed, or its issuer says that it does not hold."
        "Get a new one; `www-authenticate` says what is wrong, and `ogive explain --token` which key set was asked."
    MAX_ALIASES_LIMIT 400 Client Lasting
        "The operation has more aliases than `limits.max_aliases`."
        "Use fewer aliases, or raise the limit."
    MAX_DEPTH_LIMIT 400 Client Lasting
        "The operation is nested too deeply, or deeper than `limits.max_depth`."
        "Nest less, or raise the limit."
    MAX_DIRECTIVES_LIMIT 400 Client Lasting
        "The document has more directives than `limits.max_directives`."
        "Use fewer directives, or raise the limit."
    MAX_HEIGHT_LIMIT 400 Client Lasting
        "The operation has more fields than `limits.max_height`."
        "Select fewer fields, or raise the limit."
    MAX_PARSE_DEPTH 400 Client Lasting
        "The document is nested deeper than `limits.parser_max_recursion`."
        "Nest less, or raise the limit."
    MAX_ROOT_FIELDS_LIMIT 400 Client Lasting
        "The operation has more fields at its root than `limits.max_root_fields`."
        "Send several operations, or raise the limit."
    MAX_SOURCE_BYTES 400 Client Lasting
        "The document is larger than `limits.http_max_request_bytes`."
        "Send less, or raise the limit."
    MAX_TOKENS_LIMIT 400 Client Lasting
        "The document has more lexical tokens than `limits.parser_max_tokens`."
        "Ask for less, or raise the limit."
    MAX_VARIABLES_SIZE_LIMIT 400 Client Lasting
        "The variables of the request are larger than `limits.max_variables_size`."
        "Send less, or raise the limit."
    METHOD_NOT_ALLOWED 405 Client Lasting
        "The HTTP method is not allowed here; mutations need POST."
        "Use a method of the `allow` header."
    NON_NULL_VIOLATION 200 Subgraph Lasting
        "A subgraph answered null, or nothing, for a field that the schema calls non-null."
        "Make the field nullable, or let the subgraph always answer it."
    NOT_ACCEPTABLE 406 Client Lasting
        "The `accept` header admits no media type the gateway can answer with."
        "Accept `application/graphql-response+json` or `application/json`."
    NOT_FOUND 404 Client Lasting
        "Nothing is served at this path."
        "Use the path of the GraphQL endpoint."
    OPERATIONS_LIMITED 503 Client Transient
        "A WebSocket has as many operations as `subscription.client.websocket.max_operations_per_connection` allows, or a stream of many operations as `subscription.client.single_connection.max_operations_per_stream` does."
        "Wait until one of them is over, or open another connection."
    OPERATION_REFUSED 403 Client Lasting
        "A rule of the configuration refuses the operation for what it is, such as a mutation, one without a name, or one that is listed."
        "Ask in another way: the message says what is refused, `limits.operation_rules` for whom."
    OPERATION_TOO_LARGE 400 Client Lasting
        "The operation selects more fields, or more under conditions, fragments expanded, than the gateway is willing to plan."
        "Ask for less, or in several operations."
    PERSISTED_QUERIES_UNAVAILABLE 503 Gateway Transient
        "The request names a document that is fetched when it is asked for, and whoever has it does not answer."
        "Come back after the seconds of `retry-after`; see the log of the gateway."
    PERSISTED_QUERY_HASH_MISMATCH 400 Client Lasting
        "The document sent along is not the one with this SHA-256."
        "Send the SHA-256 of the document's bytes in lower-case hexadecimal."
    PERSISTED_QUERY_ID_REQUIRED 400 Client Lasting
        "The document is known but was not asked for by its id, and `persisted_queries.require_id` is on."
        "Send the id instead of the document."
    PERSISTED_QUERY_NOT_FOUND 200 Client Lasting
        "No document of this SHA-256 has been sent before."
        "Send the document along with it, once; clients of automatic persisted queries do so by themselves."
    PERSISTED_QUERY_NOT_IN_LIST 400 Client Lasting
        "No manifest has a document of this id."
        "Publish the client's manifest before the client."
    PERSISTED_QUERY_NOT_SUPPORTED 200 Client Lasting
        "The request names a document by its SHA-256, and `apq.enabled` is off."
        "Send documents; clients of automatic persisted queries do so by themselves."
    PLANNING_QUEUE_FULL 503 Gateway Transient
        "`query_planning.max_waiting` operations that nobody has asked for before wait to be validated and planned."
        "Come back after the seconds of `retry-after`; register operations, or raise the limit."
    PLUGIN_BREAK 400 Gateway Lasting
        "A WebAssembly component ended the request; the status is the one it chose."
        "Ask whoever wrote the component; the message is theirs."
    PLUGIN_FAILED 500 Gateway Lasting
        "A WebAssembly component failed, needed more than `plugins[].limits` allows, or did what it is not permitted to do; at the stages of subgraphs the fields concerned are null."
        "The log says which one, at which stage and why; `on_error: continue` lets requests go on without it."
    POLICIES_UNAVAILABLE 503 Gateway Transient
        "The operation asks for what a policy decides about, and the service that decides policies does not answer, or the component that does failed."
        "Come back after the seconds of `retry-after`; the log says why; see `authorization.policies`."
    QUERY_NOT_IN_SAFELIST 400 Client Lasting
        "The document is in no manifest, and `persisted_queries.mode` is `require`."
        "Add the operation to a manifest."
    QUERY_PLANNING_FAILED 500 Gateway Lasting
        "No plan was found for a valid operation."
        "Report it with supergraph and operation; a composed supergraph should make every operation possible."
    QUERY_PLAN_TOO_LARGE 400 Client Lasting
        "Planning the operation exceeds a limit."
        "Ask for less, or in several operations."
    REQUEST_CONCURRENCY_LIMITED 503 Gateway Transient
        "More requests at a time than `traffic_shaping.router.concurrency_limit`."
        "Come back after the seconds of `retry-after`."
    REQUEST_MEMORY_LIMIT 200 Subgraph Lasting
        "The answers of subgraphs to one request are larger than `limits.max_request_memory` altogether, or than what is left of `limits.max_memory`; the fields concerned are null. A request whose variables alone need more is refused with 413."
        "Ask for less, for example with pagination, or raise the limit."
    REQUEST_OVERLOADED 503 Gateway Transient
        "So many requests run at a time that they take longer for it, and those of lower classes are refused first (`traffic_shaping.router.overload`)."
        "Come back after the seconds of `retry-after`; give requests that matter more a higher class."
    REQUEST_RATE_LIMITED 429 Client Transient
        "The client asks more often than `traffic_shaping.router.rate_limit` or one of `traffic_shaping.router.rate_limits` allows. Beside data: a subgraph would be asked more often than its `rate_limits` allow, and the fields concerned are null."
        "Come back after the seconds of `retry-after`. Without it: of an operation that costs more than the rate ever has ask for less; of a null field ask again later."
    REQUEST_TIMEOUT 408 Client Transient
        "The request's body did not arrive in time."
        "Send it faster, or raise `http.body_read_timeout`."
    REQUEST_TOO_LARGE 413 Client Lasting
        "The request's body is larger than `limits.http_max_request_bytes`."
        "Send less, or raise the limit."
    SCHEMA_NOT_LOADED 503 Gateway Transient
        "There is no supergraph yet: its source has not answered since the start, and `supergraph.when_missing` is `wait`."
        "Come back after the seconds of `retry-after`; look at the source of the supergraph."
    SCRIPT_BREAK 400 Gateway Lasting
        "A script ended the request; the status is the one it chose."
        "Ask whoever wrote the script; the message is theirs."
    SCRIPT_FAILED 500 Gateway Lasting
        "A script failed, or needed more than `rhai.limits` allows; at the stages of subgraphs the fields concerned are null."
        "The log says at which stage and why."
    SUBGRAPH_COST_ESTIMATED_TOO_EXPENSIVE 200 Client Lasting
        "What the operation asks of a subgraph is estimated to cost more than `demand_control.strategy.static_estimated.subgraph` allows; the subgraph was not asked, and the fields concerned are null."
        "Ask for fewer or shorter lists of fields of this subgraph."
    SUBREQUEST_CREDENTIALS_UNAVAILABLE 200 Subgraph Transient
        "The gateway cannot prove to the subgraph who it is: no token or no credentials are to be had, or the request cannot be signed. The subgraph was not asked; the fields concerned are null."
        "Look at the log, which says who gave no token and why; see `authentication.subgraph`."
    SUBREQUEST_GRAPHQL_ERROR 200 Subgraph Lasting
        "A subgraph reported an error, and what it said is kept from clients (`include_subgraph_errors`)."
        "Look for the request in the gateway's log, which has what the subgraph said, and its code."
    SUBREQUEST_HTTP_ERROR 200 Subgraph Transient
        "A subgraph could not be reached or did not answer with a usable HTTP response."
        "See the gateway's log, which has the cause, the status and the beginning of the answer."
    SUBREQUEST_INVALID_VALUE 200 Subgraph Lasting
        "A subgraph answered a value that does not fit the field's type."
        "Compare the subgraph's schema with the one it was composed from."
    SUBREQUEST_LIST_MISMATCH 200 Subgraph Lasting
        "Two subgraphs answered the same list with different lengths, so that items cannot be matched."
        "Make both subgraphs answer the same list, or give the item type a `@key`."
    SUBREQUEST_MALFORMED_RESPONSE 200 Subgraph Lasting
        "A subgraph answered with something that is not a GraphQL response to the request."
        "See the gateway's log, which has the cause and the beginning of the answer."
    SUBREQUEST_MISSING_ENTITY 200 Subgraph Lasting
        "A subgraph answered null for an entity that another one refers to. Only log and metrics say so: the response is as it should be."
        "Nothing, if references may lead nowhere; otherwise compare the data of both subgraphs."
    SUBREQUEST_NO_EVENTS 200 Subgraph Lasting
        "A subscription cannot be opened, because nothing is set up by which this subgraph sends events."
        "Name the subgraph's protocol in the section `subscription` of the configuration."
    SUBREQUEST_REDIRECT 200 Subgraph Lasting
        "A subgraph answered with a redirect, which is never followed: it could lead requests and credentials elsewhere."
        "Correct the subgraph's URL; the gateway's log has the one it points to."
    SUBREQUEST_STREAM_LOST 200 Subgraph Transient
        "The events of a subgraph stopped without a word that the subscription is over: the connection failed, or a heartbeat was not answered. While it is opened again only log and metrics say so; there may have been events that nobody got."
        "See the gateway's log for the cause; see `subscription.max_reconnect_attempts` and `subscription.reconnect_delay`."
    SUBREQUEST_STREAM_MALFORMED 200 Subgraph Lasting
        "A subgraph does not keep to the protocol of its events: it answers something else, speaks another one, sends more than it may, or what nobody can read."
        "See the gateway's log for what it sent; check `subscription.mode.passthrough` and `response_max_bytes`."
    SUBREQUEST_STREAM_OVERFLOW 200 Subgraph Transient
        "The events of one subscription were not taken for so long that they held up others on the same connection to the subgraph."
        "Subscribe again; if it happens often, look for what holds the client up."
    SUBREQUEST_STREAM_REFUSED 200 Subgraph Lasting
        "A subgraph does not let the gateway subscribe: 401 or 403, a close with 4401 or 4403, or `connection_error`."
        "Check the credentials that header rules and `connection_init` give it."
    SUBREQUEST_UNEXPECTED_TYPE 200 Subgraph Lasting
        "A subgraph answered an object whose type the field cannot have."
        "Compare the subgraph's schema with the one it was composed from."
    SUBSCRIPTIONS_LIMITED 503 Gateway Transient
        "There are as many subscriptions, or streams of them, as the configuration allows, or one client has its share of them (`limits.client_share`)."
        "Come back after the seconds of `retry-after`, or raise the limit."
    SUBSCRIPTIONS_NOT_SUPPORTED 400 Client Lasting
        "Subscriptions are not served (`subscription.enabled`), over no protocol: POST, GET, WebSocket, `text/event-stream`; or not in this place, such as a batch. With a WebSocket or an `accept` header that admits nothing else the status is 400 or 406."
        "Send a query or a mutation, and accept `application/json`; or switch subscriptions on."
    SUBSCRIPTION_OVERFLOW 200 Client Transient
        "The client has not taken the events of a subscription: more wait than `subscription.queue_capacity` or `subscription.queue_bytes` allow. What waited was sent; the subscription has ended."
        "Subscribe again, read faster or ask for less; or let events be dropped (`subscription.on_overflow`)."
    SUBSCRIPTION_SCHEMA_RELOAD 200 Gateway Transient
        "The subscription has ended because another schema or configuration is served."
        "Subscribe again."
    SUBSCRIPTION_SHUTDOWN 200 Gateway Transient
        "The subscription has ended because the process stops."
        "Subscribe again; another process answers."
    TOKEN_EXPIRED 401 Client Lasting
        "The token has expired (`exp`)."
        "Get a new one; `authentication.router.jwt.clock_skew` allows for clocks that differ."
    TOKEN_NOT_YET_VALID 401 Client Lasting
        "The token does not hold yet, or was issued in the future (`nbf`, `iat`)."
        "Come back later; `authentication.router.jwt.clock_skew` allows for clocks that differ."
    UNAUTHENTICATED 401 Client Lasting
        "Nobody is known to ask, and `authorization.require_authentication` wants somebody."
        "Send a token or a key."
    UNAUTHORIZED_FIELD_OR_TYPE 403 Client Lasting
        "The schema shows a field or a type to some callers only (`@authenticated`, `@requiresScopes`, `@policy`), and this caller is none of them. The field is null; with `authorization.reject_unauthorized` the whole operation is refused."
        "Ask as somebody who has the scopes or policies, or leave the field out."
    UNKNOWN_ISSUER 401 Client Lasting
        "The token is of an issuer (`iss`) for which there is no key set."
        "Name the issuer in `authentication.router.jwt.jwks[].issuers`, if its tokens are to count."
    UNSUPPORTED_MEDIA_TYPE 415 Client Lasting
        "The request's body is of a media type the gateway does not read."
        "Send `content-type: application/json`."
    UPLOAD_FILE_MISSING 400 Client Lasting
        "The body ended, or its time was over, before a file came that its `map` names."
        "Send every file of `map`, in its order."
    UPLOAD_OUT_OF_ORDER 400 Client Lasting
        "A file is wanted before another one that comes first, or a second time, and the other one is larger than `file_uploads.buffer_size` allows to keep."
        "Send files in the order in which the operation uses them, ask one subgraph for each, or raise the limit."
    UPLOAD_TOO_LARGE 413 Client Lasting
        "A file is larger than `file_uploads.max_file_size`, or the body larger than `file_uploads.max_request_size`."
        "Send smaller files, or raise the limit."
    UPLOAD_TOO_MANY_FILES 413 Client Lasting
        "The request has more files than `file_uploads.max_files`."
        "Send fewer at a time, or raise the limit."
    VALIDATION_INVALID_TYPE_VARIABLE 400 Client Lasting
        "A variable is missing or its value does not fit its type."
        "Fix the variables."
    VALIDATION_TOO_COMPLEX 400 Client Lasting
        "The document has too many selections, or comparing fields that answer the same response key exceeds a limit."
        "Select fewer fields, above all under the same keys."
    WRONG_AUDIENCE 401 Client Lasting
        "The token is for somebody else (`aud`)."
        "Get one for this gateway; see `authentication.router.jwt.jwks[].audiences`."
}

impl ErrorCode {
    /// The code of that word; `None` for those that only subgraphs use.
    pub fn find(word: &str) -> Option<ErrorCode> {
        let at = ROWS.binary_search_by(|row| row.code.cmp(word)).ok()?;
        Some(ErrorCode::ALL[at])
    }
    const fn row(self) -> &'static Row {
        &ROWS[self as usize]
    }
    /// The word.
    pub const fn as_str(self) -> &'static str {
        self.row().code
    }
    /// The HTTP status when the whole request fails with it.
    pub fn status(self) -> u16 {
        self.row().status
    }
    /// Who has to act.
    pub fn origin(self) -> Origin {
        self.row().origin
    }
    /// Whether the same request may be answered later, though nobody has changed anything.
    pub fn is_transient(self) -> bool {
        self.row().passing == Passing::Transient
    }
    /// What happened.
    pub fn meaning(self) -> &'static str {
        self.row().meaning
    }
    /// What to do.
    pub fn remedy(self) -> &'static str {
        self.row().remedy
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl PartialEq<&str> for ErrorCode {
    fn eq(&self, word: &&str) -> bool {
        self.as_str() == *word
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_found_by_their_words() {
        assert!(ROWS.is_sorted_by(|a, b| a.code < b.code));
        for code in ErrorCode::ALL {
            assert_eq!(ErrorCode::find(code.as_str()), Some(*code));
            assert_eq!(format!("{code:?}"), code.as_str());
        }
        assert_eq!(ErrorCode::find("NOPE"), None);
    }

    #[test]
    fn refusals_that_pass_are_those_after_which_clients_come_back() {
        for code in ErrorCode::ALL {
            let is_temporary = matches!(code.status(), 408 | 429 | 503);
            assert!(code.is_transient() || !is_temporary, "{code}");
        }
    }

    /// The page of the documentation; `BLESS=1` rewrites it.
    #[test]
    fn the_page_of_codes_is_up_to_date() {
        let mut page = include_str!("codes_page.md").to_owned();
        for code in ErrorCode::ALL {
            let passes = if code.is_transient() { "yes" } else { "" };
            page.push_str(&format!(
                "| `{code}` | {} | {} | {passes} | {} | {} |\n",
                code.status(),
                code.origin().as_str(),
                code.meaning(),
                code.remedy()
            ));
        }
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors.md");
        ogive_testbase::assert_recorded(path, &page);
    }
}
