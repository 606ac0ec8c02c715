//! What one execution may use, and what it may tell.

/// Bounds of one execution. Reaching one ends the fetch concerned with an error, never the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExecuteLimits {
    /// Objects in the response store, counted over all fetches.
    pub records_max: u32,
    /// Slots and list items of composite fields in the response store (16 bytes each).
    pub values_max: u32,
    /// Bytes of one subgraph answer. Values above 4 GiB count as 4 GiB.
    pub answer_bytes_max: usize,
    /// Bytes of all subgraph answers together.
    pub answers_bytes_max: usize,
    /// Bytes of answers that are read again in one operation: because several objects wait for the same entity, because
    /// an object does not begin with the name of its type, or because another subgraph answered the same list. And bytes of
    /// representations that are written for one look-up, those included that turn out to be known; and of those of objects
    /// elsewhere that may have what it asks for, which is asked where they are more.
    pub rescanned_bytes_max: u64,
    /// Bytes of one subgraph request.
    pub request_bytes_max: usize,
    /// Objects and lists open at a time in a subgraph answer.
    pub depth_max: u32,
    /// Errors in the response; one more says that some were left out.
    pub errors_max: usize,
    /// Places at which one failed request is told; one more says that some were left out.
    pub failure_paths_max: usize,
    /// Bytes of one error message of a subgraph; the rest is cut off.
    pub error_message_bytes_max: usize,
    /// Bytes of the code of one error of a subgraph; the rest is cut off.
    pub error_code_bytes_max: usize,
    /// Bytes of other extensions of one error of a subgraph, as JSON; members that do not fit are left out.
    pub error_extension_bytes_max: usize,
    /// Bytes of the response, errors not counted. It is looked at now and then, so a response may be some more.
    pub response_bytes_max: usize,
    /// Bytes of representations that are remembered so that they need not be asked again; those beyond are.
    pub reuse_bytes_max: usize,
    /// Groups (`@defer`) that one operation is answered in, each object counted on its own. Where the initial response has
    /// more, nothing is deferred; a group that more come to light in fails.
    pub deferred_groups_max: usize,
    /// Items of a streamed list whose look-ups are sent together, behind those that are answered at first; of what follows twice
    /// as many each time.
    pub stream_window: u32,
    /// Bytes of items of streamed lists that leave together; a larger item leaves alone.
    pub stream_chunk_bytes: usize,
    /// Comparisons of keys of one answer that nobody asked for, or that come far from where they are expected, with those
    /// that somebody asked for; and of names of types that cannot be.
    pub key_comparisons_max: u64,
}

impl Default for ExecuteLimits {
    fn default() -> Self {
        ExecuteLimits {
            records_max: 2_000_000,
            values_max: 16_000_000,
            answer_bytes_max: 128 << 20,
            answers_bytes_max: 256 << 20,
            rescanned_bytes_max: 1 << 30,
            request_bytes_max: 64 << 20,
            depth_max: 128,
            errors_max: 1_000,
            failure_paths_max: 100,
            error_message_bytes_max: 4 << 10,
            error_code_bytes_max: 256,
            error_extension_bytes_max: 32 << 10,
            response_bytes_max: 256 << 20,
            reuse_bytes_max: 64 << 20,
            deferred_groups_max: 10_000,
            stream_window: 50,
            stream_chunk_bytes: 64 << 10,
            key_comparisons_max: 1 << 28,
        }
    }
}

/// What may be reused inside one operation; a greater value allows more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reuse {
    /// Nothing: every look-up is sent.
    Off,
    /// Answers of identical entity look-ups.
    #[default]
    Entities,
    /// Those, and leaves that the same subgraph has brought for the same entity in any other way.
    All,
}

/// What the response says about subgraphs, and what the caller wants to know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExecuteOptions {
    /// Passes all `extensions` of subgraph errors on, not only their `code`.
    pub subgraph_error_extensions: bool,
    /// Names the subgraph in `extensions.service` of errors it caused.
    pub error_service_names: bool,
    /// What may be reused inside one operation.
    pub reuse: Reuse,
    /// Whether fetches may be sent in two parts, where the second one is likely to have nothing to ask; only with
    /// [`Reuse::All`]. What came of it is in [`ExecuteStats`](crate::ExecuteStats).
    pub prefetch: bool,
    /// Records every fetch in [`ExecuteOutput::trace`](crate::ExecuteOutput::trace).
    pub trace: bool,
}
