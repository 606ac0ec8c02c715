//! What codes mean that have no table where they are raised: of configurations, type systems, supergraphs that are read, limits
//! that are only counted, played subgraphs and the command line.

use ogive_config::codes as config;
use ogive_documents::codes as documents;
use ogive_failure::codes::limits;
use ogive_schema::codes as schema;

use crate::codes;

/// A code, what happened, and what to do.
pub(super) type Row = (&'static str, &'static str, &'static str);

/// Who reports codes, with an article, and the codes.
pub(super) const ROWS: [(&str, &[Row]); 7] = [
    ("a code of the command line", COMMAND_LINE),
    ("an error in a configuration", CONFIGURATION),
    ("an error in a supergraph", SUPERGRAPH),
    ("an error in a schema", SCHEMA),
    ("a limit, in metrics and in the access log", LIMITS),
    ("an error in the answers of `ogive mock`", MOCK),
    (
        "what `ogive operations` says of the sources of an app",
        DOCUMENTS,
    ),
];

const DOCUMENTS: &[Row] = &[
    (
        documents::UNKNOWN_FRAGMENT,
        "An operation spreads a fragment that none of the files has.",
        "Correct its name, or let the command read the folder that has it, too.",
    ),
    (
        documents::AMBIGUOUS_FRAGMENT,
        "Two fragments have one name and are not the same, so it is not known which is meant.",
        "Give one of them another name.",
    ),
    (
        documents::DUPLICATE_OPERATION,
        "Two operations have one name and are not the same.",
        "Give one of them another name.",
    ),
    (
        documents::UNNAMED_OPERATION,
        "An operation has no name, so no manifest, metric or log can tell what it is.",
        "Give it a name: `query Products { ... }`.",
    ),
    (
        documents::DYNAMIC_DOCUMENT,
        "A part of a document is only known when the program runs, so the document is in no manifest.",
        "Write the document as one text, and let variables and fragments say what differs.",
    ),
    (
        documents::UNTERMINATED_LITERAL,
        "A text or template of a source file is not closed, so what comes after it cannot be read.",
        "Close it.",
    ),
    (
        documents::FILE_LEFT_OUT,
        "A file is too large or cannot be read, so its operations are not known.",
        "Do as the message says, or leave the file out by name: with `--exclude`, or in an `.ignore` file.",
    ),
    (
        documents::TOO_MANY_OPERATIONS,
        "The files have more operations than the command can take.",
        "Name fewer folders, and run the command once for each.",
    ),
];

const COMMAND_LINE: &[Row] = &[
    (
        codes::UNREADABLE_INPUT,
        "A file or folder that a command was given cannot be read.",
        "Check the path, the permissions, and that the text is UTF-8.",
    ),
    (
        codes::INVALID_INPUT,
        "The inputs of a command contradict each other or say too little.",
        "Do as the message says; `ogive compose --help` lists every form of input.",
    ),
    (
        codes::NO_SUPERGRAPH,
        "Neither an argument nor the configuration says what to serve.",
        "Name a supergraph with `--supergraph FILE` or `supergraph.path`, or subgraphs with `--subgraphs`; `ogive demo` needs none.",
    ),
    (
        codes::SUPERGRAPH_RESTRICTED,
        "The supergraph shows some of its types and fields to some callers only (`@authenticated`, `@requiresScopes`, `@policy`), and `authorization.directives` is `refuse`, as it is unless it is set. To serve it could show everybody what was meant for some.",
        "Set `authorization.directives: enforce`, and say how callers are known: `authentication.router` for tokens, API keys and certificates, `authorization.claims` for a proxy that knows them.",
    ),
    (
        codes::REDACTION_UNUSABLE,
        "A rule of `authorization.redact` names a field that the supergraph does not have, so it would keep nothing from anybody, or has a mask for a field whose type is neither `String` nor `ID`. At a reload the supergraph from before serves on.",
        "Correct the rule, or take it out if the field is gone for good.",
    ),
    (
        codes::ADDRESS_UNUSABLE,
        "The process cannot listen on an address: another one listens there, the address is not this machine's, or the port needs a privilege.",
        "Choose another address in the key or the argument that the message names, or end the other process; port 0 picks a free one.",
    ),
    (
        codes::INVALID_ARGUMENT,
        "An argument of a command has a value that it cannot have.",
        "Do as the message says; `ogive help COMMAND` lists what there is.",
    ),
    (
        codes::SUBGRAPH_UNREACHABLE,
        "A running subgraph was asked for its schema and did not tell it: it cannot be reached, refuses, or answers neither `_service` nor introspection.",
        "Start the subgraph, check its URL and the headers it wants, or give its schema as a file.",
    ),
    (
        codes::SUBGRAPH_FROM_CACHE,
        "A running subgraph did not tell its schema, so the one it told last is used. Its fields fail while it is down.",
        "Start the subgraph; it is asked again by itself.",
    ),
    (
        codes::SUBGRAPH_WITHOUT_URL,
        "A subgraph that is only a schema file goes into the supergraph without a URL: a gateway can plan for it and not ask it.",
        "Say where it is served: `--url NAME=URL`, `routing_url` in a list of subgraphs, or `override_subgraph_url` in the configuration of the gateway. `ogive dev` plays such subgraphs itself.",
    ),
];

const CONFIGURATION: &[Row] = &[
    (
        config::SYNTAX,
        "The text of a configuration is not YAML.",
        "Correct the place that is shown; most often an indentation, a missing space after `:`, or a quote without its end.",
    ),
    (
        config::UNKNOWN_KEY,
        "A configuration has a key that no option has, or has it in another place.",
        "Take the key that is suggested, or look it up in `ogive config defaults` or docs/configuration.md.",
    ),
    (
        config::DUPLICATE_KEY,
        "A configuration has the same key twice in one place.",
        "Remove one of them.",
    ),
    (
        config::INVALID_VALUE,
        "A value of a configuration has the wrong type, is outside of its range, or contradicts another one.",
        "Write a value of the form that the message names; durations and sizes need a unit, as in `5s` and `2MiB`.",
    ),
    (
        config::EXPANSION,
        "A `${env.NAME}` or `${file.PATH}` of a configuration cannot be expanded.",
        "Set the variable, check the file, or give a default: `${env.NAME:-default}`.",
    ),
    (
        config::LIMIT,
        "A configuration is larger or nested deeper than any sensible one.",
        "Check that this is the right file; 1 MiB and 32 levels are allowed.",
    ),
    (
        config::UNUSABLE,
        "A value of a configuration is fine by itself and cannot be used on this machine: a file that is missing, a certificate that does not fit its key, a URL that cannot be asked.",
        "Correct the value, or put in place what it names.",
    ),
];

const SUPERGRAPH: &[Row] = &[
    (
        "EMPTY_SUPERGRAPH",
        "The file of a supergraph is empty.",
        "Compose it again; its writer may have been interrupted.",
    ),
    (
        "NOT_A_SUPERGRAPH",
        "The file is a schema, but no supergraph: it does not say which subgraph resolves what.",
        "Give the output of a composition; `ogive compose` makes one from subgraphs.",
    ),
    (
        "UNSUPPORTED_JOIN_VERSION",
        "A supergraph follows a version of the join specification that is not known.",
        "Compose it with a version of the composition that is known, or with `ogive compose`.",
    ),
    (
        "UNKNOWN_EXECUTION_FEATURE",
        "A supergraph links a feature `for: EXECUTION` or `for: SECURITY` that is not supported, so that serving it would be wrong.",
        "Compose it without the feature.",
    ),
    (
        "NO_SUBGRAPHS",
        "A supergraph has no enum that names its subgraphs.",
        "Compose it again.",
    ),
    (
        "TOO_MANY_SUBGRAPHS",
        "A supergraph has more subgraphs than can be served.",
        "Merge subgraphs, or serve several graphs.",
    ),
    (
        "SUBGRAPH_WITHOUT_NAME",
        "A value of the enum of subgraphs says neither the name nor the URL of its subgraph.",
        "Compose the supergraph again.",
    ),
    (
        "DUPLICATE_SUBGRAPH",
        "Two subgraphs of a supergraph have the same name.",
        "Give every subgraph a name of its own and compose again.",
    ),
    (
        "UNKNOWN_SUBGRAPH",
        "A `@join__` directive of a supergraph names a subgraph that is not in its enum of subgraphs.",
        "Compose the supergraph again; do not edit it by hand.",
    ),
    (
        "TYPE_WITHOUT_SUBGRAPH",
        "A type of a supergraph has no `@join__type`, so that no subgraph defines it.",
        "Compose the supergraph again; do not edit it by hand.",
    ),
    (
        "FIELD_OUTSIDE_TYPE",
        "A field of a supergraph is said to be of a subgraph that does not define its type.",
        "Compose the supergraph again; do not edit it by hand.",
    ),
    (
        "FIELD_WITHOUT_SUBGRAPH",
        "A warning: no subgraph resolves a field of a supergraph, so that operations that ask for it cannot be planned.",
        "Compose the supergraph again; do not edit it by hand.",
    ),
];

const SCHEMA: &[Row] = &[
    (
        schema::DUPLICATE_DEFINITION,
        "A type, field, argument, value, directive, root operation type or the schema is defined more than once.",
        "Remove or rename one of the two.",
    ),
    (
        schema::UNKNOWN_TYPE,
        "A name is used as a type, and no such type is defined.",
        "Define the type, or correct the name.",
    ),
    (
        schema::RESERVED_NAME,
        "A name begins with `__`, which is reserved for introspection.",
        "Choose another name.",
    ),
    (
        schema::EMPTY_DEFINITION,
        "A type has no fields, members or values, or a directive no locations.",
        "Give it at least one, or remove it.",
    ),
    (
        schema::INVALID_TYPE_POSITION,
        "An input type stands where an output type has to, or the reverse.",
        "Fields return scalars, enums, objects, interfaces and unions; arguments and input fields take scalars, enums and input objects.",
    ),
    (
        schema::INVALID_IMPLEMENTATION,
        "An object or interface does not conform to an interface that it declares.",
        "Give it every field of the interface, with a type that fits and the same arguments.",
    ),
    (
        schema::INVALID_UNION_MEMBER,
        "A member of a union is no object type, or is listed twice.",
        "List object types, each once.",
    ),
    (
        schema::CIRCULAR_DEFINITION,
        "Interfaces, required input fields, default values or definitions of directives lead back to themselves.",
        "Break the circle: make one of the input fields nullable, or remove one reference.",
    ),
    (
        schema::INVALID_ONE_OF,
        "A `@oneOf` input object has a required field or a default value.",
        "Make all of its fields nullable, without defaults.",
    ),
    (
        schema::UNKNOWN_DIRECTIVE,
        "A directive is applied that is not defined.",
        "Define or import it (`@link(import: [...])`), or correct the name.",
    ),
    (
        schema::MISPLACED_DIRECTIVE,
        "A directive stands where its definition does not allow it.",
        "Move it to one of its locations, or add the location to its definition.",
    ),
    (
        schema::REPEATED_DIRECTIVE,
        "A directive that is not repeatable stands twice in one place.",
        "Remove one of them, or define it as `repeatable`.",
    ),
    (
        schema::INVALID_DIRECTIVE_ARGUMENT,
        "An argument of an applied directive is unknown, missing, given twice or of the wrong type.",
        "Write the arguments as the definition of the directive has them.",
    ),
    (
        schema::INVALID_DEFAULT_VALUE,
        "A default value does not fit its type.",
        "Correct the value or the type.",
    ),
    (
        schema::INVALID_ROOT_TYPE,
        "A root operation type is missing, is no object type, or is that of another operation, too.",
        "Define `type Query`, or name an object type in `schema { query: ... }`.",
    ),
    (
        schema::INVALID_DEPRECATION,
        "A required argument or input field is deprecated.",
        "Make it nullable or give it a default first.",
    ),
    (
        schema::INVALID_EXTENSION,
        "An extension is of a type that is not defined, or that is of another kind.",
        "Define the type, or extend it as what it is.",
    ),
    (
        schema::EXECUTABLE_DEFINITION,
        "An operation or a fragment stands among definitions of types.",
        "Move it to a file of operations.",
    ),
    (
        schema::SCHEMA_TOO_LARGE,
        "A schema has more types, fields or other elements than are allowed.",
        "Split the graph, or check that this is the right file.",
    ),
];

/// A refusal for one of them has no code of its own, or no body that could carry one.
const LIMITS: &[Row] = &[
    (
        limits::CONNECTIONS,
        "More connections than `http.connections_max`.",
        "Raise the key, or look for clients that keep connections without need.",
    ),
    (
        limits::CLIENT_CONNECTIONS,
        "More connections of one client than `http.connections_per_client_max`.",
        "Raise the key; if clients come through a proxy, name it in `http.trusted_proxies`.",
    ),
    (
        limits::HEADER_TIMEOUT,
        "The head of a request did not arrive within `http.header_read_timeout`.",
        "Send it faster, or raise the key.",
    ),
    (
        limits::HEADERS,
        "A request has more headers than `limits.http1_max_request_headers`; it is answered with 431.",
        "Send fewer, or raise the key.",
    ),
    (
        limits::HEADER_SIZE,
        "The head of a request is larger than `limits.http1_max_request_buf_size`; it is answered with 431.",
        "Send less, cookies above all, or raise the key.",
    ),
    (
        limits::RESPONSE_SIZE,
        "The answer of a subgraph is larger than its `response_max_bytes`.",
        "Ask for less, for example with pagination, or raise `traffic_shaping.all.response_max_bytes`.",
    ),
];

const MOCK: &[Row] = &[
    (
        "BAD_REQUEST",
        "A played subgraph was sent something that is no GraphQL request, or a subscription.",
        "Send a JSON object with `query`.",
    ),
    (
        "BAD_USER_INPUT",
        "A played subgraph was sent variables that do not fit their types.",
        "Correct the variables.",
    ),
    (
        "OPERATION_RESOLUTION_FAILURE",
        "A played subgraph finds no operation to execute: none of that name, several without a name, or of a kind that its schema does not have.",
        "Send `operationName`, or an operation of another kind.",
    ),
];
