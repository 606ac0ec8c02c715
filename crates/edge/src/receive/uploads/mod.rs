//! Files that clients send along (GraphQL multipart request specification), at stop 1 and on their way through stop 4.
//!
//! A request comes as the fields `operations` and `map` followed by the files. The first two are read at once; where
//! `map` says that a file belongs, the variables get a token that only this request knows. A request to a subgraph
//! whose variables hold tokens is sent as multipart, too ([`outgoing`]), and the files go from connection to connection
//! while they arrive ([`incoming`]). Files come in one after another, so requests that want some queue for them ([`read_queue`]),
//! the one with the earliest file first. A file is kept, within a limit, only if one behind it is wanted first or if
//! more than one request wants it.

mod incoming;
mod outgoing;
mod read_queue;

use std::{
    cell::{Cell, RefCell},
    hash::{BuildHasher, RandomState},
    pin::pin,
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::{HeaderMap, header, request::Parts};
use multer::Multipart;
use ogive_base::{FastMap, OutOfMemory, Reservation, bounded_name};
use ogive_config::Config;
use ogive_execute::ExecuteLimits;
use ogive_failure::ErrorCode;
use ogive_json::{Kind, Node, Tree, tree};
use ogive_limits::Limit;
use ogive_plan::Plan;
use ogive_schema::{Schema, TypeKind};
use ogive_syntax::{Document, ast::OperationDefinition};
use ogive_telemetry::codes;

use crate::{
    error::{RequestError, no_memory},
    json_value,
    measured::{Exceeded, note},
    receive::{ReceiveLimits, Received, RequestBody, growing::Arriving, note_batch, received},
};
use incoming::{Chunks, Collected};
use ogive_server::{
    drain_body::{linger, read_refused},
    offload::{LIGHT_BODY, Offload},
};
use read_queue::ReadQueue;

/// What clients may send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UploadOptions {
    /// Most files of one request; default 10.
    pub files_max: usize,
    /// Largest file in bytes; default 50 MiB.
    pub file_bytes_max: usize,
    /// Largest body in bytes; default 200 MiB.
    pub request_bytes_max: usize,
    /// Most bytes of files kept; default 1 MiB.
    pub kept_bytes_max: usize,
    /// How long the whole request may take; default 300 s.
    pub timeout: Duration,
    /// Longest pause of the client; default 30 s.
    pub pause_max: Duration,
}

impl UploadOptions {
    /// The options that a configuration asks for; `None` if uploads are off.
    pub fn new(config: &Config) -> Option<Self> {
        let uploads = &config.file_uploads;
        uploads.enabled.then(|| UploadOptions {
            files_max: uploads.max_files.get(),
            file_bytes_max: uploads.max_file_size.0,
            request_bytes_max: uploads.max_request_size.0,
            // Files count in the memory of a request, see `Files::held`.
            kept_bytes_max: config
                .limits
                .max_request_memory
                .map_or(usize::MAX, |memory| {
                    let warn_only = config.limits.warn_only;
                    let default = ExecuteLimits::default().answers_bytes_max;
                    let memory = warn_only.size(Limit::RequestMemory, memory.0, default);
                    memory.ceiling
                })
                .min(uploads.buffer_size.0),
            timeout: uploads.timeout.0,
            pause_max: config.http.body_read_timeout.0,
        })
    }
}

/// Why what a client sends cannot be passed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    code: ErrorCode,
    message: String,
}

impl From<OutOfMemory> for Refusal {
    fn from(_: OutOfMemory) -> Self {
        refusal(codes::GATEWAY_MEMORY_LIMIT, "there is no memory for it")
    }
}

impl From<Refusal> for RequestError {
    fn from(refusal: Refusal) -> Self {
        if refusal.code == codes::GATEWAY_MEMORY_LIMIT {
            return no_memory();
        }
        RequestError::http(refusal.code, refusal.message)
    }
}

fn refusal(code: ErrorCode, message: impl Into<String>) -> Refusal {
    Refusal {
        code,
        message: message.into(),
    }
}

fn invalid(message: impl Into<String>) -> Refusal {
    refusal(codes::INVALID_GRAPHQL_REQUEST, message)
}

/// The files of one HTTP request.
pub struct Uploads {
    options: UploadOptions,
    /// Stands for files in variables, followed by a space and the file's number. Nobody else can know it.
    token: String,
    files: RefCell<Vec<File>>,
    by_key: FastMap<Box<str>, usize>,
    targets: Vec<Target>,
    /// What is still to come; `None` while somebody reads, and once it cannot be read any more.
    multipart: RefCell<Option<Multipart<'static>>>,
    collected: Collected,
    kept_bytes: Cell<usize>,
    /// Counts them.
    memory: Reservation,
    /// The first thing that was wrong with what the client sent.
    failed: RefCell<Option<Refusal>>,
    answered: Cell<bool>,
    readers: ReadQueue,
}

/// One file of `map`.
struct File {
    state: State,
    /// Whether several requests may want it.
    keep: bool,
}

enum State {
    Coming,
    Kept(incoming::FileContent),
    /// It has been passed on.
    Gone,
}

/// Where a file belongs.
struct Target {
    /// Of a batch.
    entry: Option<usize>,
    /// A variable, and what follows.
    path: Vec<Box<str>>,
}

/// The files of a request, and which entry of a batch is meant.
#[derive(Clone, Copy)]
pub struct Entry<'a> {
    /// Files of the whole HTTP request.
    pub uploads: &'a Uploads,
    /// Index of the entry in its batch; `None` outside a batch.
    pub at: Option<usize>,
}

impl<'a> Entry<'a> {
    /// The files of a request that is no batch.
    pub fn only(uploads: &'a Uploads) -> Self {
        Entry { uploads, at: None }
    }
}

/// Whether a request's body is `multipart/form-data`.
pub fn is_multipart(headers: &HeaderMap) -> bool {
    let value = headers.get(header::CONTENT_TYPE);
    let text = value.and_then(|v| v.to_str().ok()).unwrap_or_default();
    let name = text.split(';').next().unwrap_or_default().trim();
    name.eq_ignore_ascii_case("multipart/form-data")
}

/// Reads a request up to its first file.
pub async fn receive<B: RequestBody>(
    parts: &Parts,
    body: B,
    options: &UploadOptions,
    limits: &ReceiveLimits,
    document_id: Option<&str>,
    (offload, arriving): (&Offload, Arriving<'_>),
    exceeded: &mut Exceeded,
) -> Result<(Received, Uploads), RequestError> {
    let memory = arriving.memory;
    let headers = &parts.headers;
    let boundary = match boundary(headers) {
        Ok(boundary) => boundary,
        Err(error) => {
            read_refused(headers, body).await;
            return Err(error);
        }
    };
    let announced = headers
        .get(header::CONTENT_LENGTH)
        .and_then(|v| v.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|bytes| bytes > options.request_bytes_max as u64) {
        if !headers.contains_key(header::EXPECT) {
            linger(pin!(body)).await;
        }
        return Err(incoming::too_large(options.request_bytes_max).into());
    }
    let collected = Collected::default();
    let chunks = Chunks::new(body, options.request_bytes_max, collected.clone());
    let mut multipart = Multipart::new(chunks, boundary);
    let bytes_max = limits.body.ceiling;
    let began = Instant::now();
    let reading = async {
        let operations = incoming::text(
            (&mut multipart, &collected),
            "operations",
            bytes_max,
            arriving,
        )
        .await?;
        let map = incoming::text((&mut multipart, &collected), "map", bytes_max, arriving).await?;
        Ok::<_, Refusal>((operations, map))
    };
    let read = match tokio::time::timeout(limits.body_timeout.ceiling, reading).await {
        Ok(read) => read,
        Err(_) => Err(refusal(
            codes::REQUEST_TIMEOUT,
            "the request's body did not arrive in time",
        )),
    };
    let placed = match read {
        Ok((operations, map)) => {
            note(&limits.body_timeout, &began.elapsed(), exceeded);
            note(&limits.body, &operations.len().max(map.len()), exceeded);
            let limits = (*options, *limits);
            placed(operations, map, limits, document_id, (offload, memory)).await
        }
        Err(refusal) => Err(refusal.into()),
    };
    match placed {
        Ok((received, placed)) => {
            note_batch(&received, limits, exceeded);
            let memory = memory.beside();
            let body = (multipart, collected);
            Ok((received, Uploads::new(*options, placed, body, memory)))
        }
        Err(error) => {
            incoming::linger(multipart, &collected).await;
            Err(error)
        }
    }
}

/// Reads `operations` and `map`, like any other body: what is large is read on another thread.
async fn placed(
    operations: Bytes,
    map: Bytes,
    (options, limits): (UploadOptions, ReceiveLimits),
    document_id: Option<&str>,
    (offload, memory): (&Offload, &Reservation),
) -> Result<(Received, Placed), RequestError> {
    let bytes = operations.len() + map.len();
    // Their tables, and the operations with tokens in them.
    let about = bytes * (tree::BYTES_PER_TEXT_BYTE + 1);
    memory.grow(about)?;
    let id = document_id.map(str::to_owned);
    let work = move || {
        let placed = Placed::of(&operations, &map, &options)?;
        let received = received(&placed.operations, &limits, id.as_deref())?;
        Ok((received, placed))
    };
    let done = if bytes <= LIGHT_BODY {
        work()
    } else {
        offload.run(work).await
    };
    memory.shrink(about);
    done
}

/// What stands between the fields.
fn boundary(headers: &HeaderMap) -> Result<String, RequestError> {
    if headers.contains_key(header::CONTENT_ENCODING) {
        let message = "a body with files must not be encoded as a whole";
        return Err(RequestError::http(codes::UNSUPPORTED_MEDIA_TYPE, message));
    }
    let content_type = headers.get(header::CONTENT_TYPE);
    let content_type = content_type.and_then(|v| v.to_str().ok());
    let boundary = multer::parse_boundary(content_type.unwrap_or_default());
    let message = "`content-type: multipart/form-data` has no `boundary`";
    boundary.map_err(|_| invalid(message).into())
}

/// Most values that are passed over on the way to places of files, all of them together.
const STEPS_MAX: usize = 10_000_000;

/// What `operations` and `map` say about files.
struct Placed {
    /// The operations, with tokens where files belong.
    operations: Bytes,
    token: String,
    /// Of every file: whether several requests may want it.
    keep: Vec<bool>,
    by_key: FastMap<Box<str>, usize>,
    targets: Vec<Target>,
}

impl Placed {
    fn of(operations: &[u8], map: &[u8], options: &UploadOptions) -> Result<Self, Refusal> {
        let (whole, map) = (read("operations", operations)?, read("map", map)?);
        if map.root().kind() != Kind::Object {
            return Err(invalid("`map` is not a JSON object"));
        }
        let files = map.root().members().count();
        if files > options.files_max {
            return Err(refusal(
                codes::UPLOAD_TOO_MANY_FILES,
                format!(
                    "the request has {files} files, more than the {} allowed",
                    options.files_max
                ),
            ));
        }
        // Keys of their own for every process and every call, so nobody can guess what comes out.
        let (one, other) = (RandomState::new(), RandomState::new());
        let mut placed = Placed {
            operations: Bytes::new(),
            token: format!("file {:016x}{:016x}", one.hash_one(1), other.hash_one(2)),
            keep: Vec::new(),
            by_key: FastMap::default(),
            targets: Vec::new(),
        };
        let mut steps = STEPS_MAX;
        // Where nulls stand that make room for tokens, and of which file.
        let mut places: FastMap<usize, usize> = FastMap::default();
        for (file, (key, paths)) in map.root().members().enumerate() {
            let wrong = || invalid("a value of `map` is not a list of paths");
            if paths.kind() != Kind::Array {
                return Err(wrong());
            }
            let mut entries = Vec::new();
            for path in paths.items() {
                let path = path.string().ok_or_else(wrong)?;
                let (target, at) = target(whole.root(), &path, &mut steps)?;
                if places.insert(at, file).is_some() {
                    return Err(nowhere(&path));
                }
                entries.push(target.entry);
                placed.targets.push(target);
            }
            entries.dedup();
            placed.keep.push(entries.len() > 1);
            let key = key.unescape().into_owned().into_boxed_str();
            if placed.by_key.insert(key, file).is_some() {
                return Err(invalid("`map` has the same file twice"));
            }
        }
        let mut places: Vec<(usize, usize)> = places.into_iter().collect();
        places.sort_unstable();
        let mut out =
            Vec::with_capacity(operations.len() + places.len() * (placed.token.len() + 8));
        let mut from = 0;
        for (at, file) in places {
            out.extend_from_slice(&operations[from..at]);
            out.extend_from_slice(format!("\"{} {file}\"", placed.token).as_bytes());
            from = at + "null".len();
        }
        out.extend_from_slice(&operations[from..]);
        placed.operations = out.into();
        Ok(placed)
    }
}

fn read<'t>(name: &str, text: &'t [u8]) -> Result<Tree<'t>, Refusal> {
    Tree::read(text, json_value::DEPTH_MAX)
        .map_err(|error| invalid(format!("`{name}` is not JSON: {error}")))
}

fn nowhere(path: &str) -> Refusal {
    let shown = bounded_name(path);
    invalid(format!(
        "`map` says that a file belongs at `{shown}`, where `operations` has no null: write `variables.NAME`"
    ))
}

/// Where a path leads, and where in the text the null stands there. Takes from `steps` what it passes over.
fn target(operations: Node<'_>, path: &str, steps: &mut usize) -> Result<(Target, usize), Refusal> {
    let nowhere = || nowhere(path);
    let mut step = |values: usize| {
        *steps = steps.checked_sub(values)?;
        Some(())
    };
    let mut segments = path.split('.');
    let mut entry = None;
    let mut at = operations;
    if at.kind() == Kind::Array {
        let index = segments.next().and_then(|segment| segment.parse().ok());
        let index: usize = index.ok_or_else(nowhere)?;
        entry = Some(index);
        let below = step(index).and_then(|()| at.items().nth(index));
        at = below.ok_or_else(nowhere)?;
    }
    if segments.next() != Some("variables") {
        return Err(nowhere());
    }
    at = at.get("variables").ok_or_else(nowhere)?;
    let mut path: Vec<Box<str>> = Vec::new();
    for segment in segments {
        let below = match at.kind() {
            Kind::Object => step(at.members().count()).and_then(|()| at.get(segment)),
            Kind::Array => segment
                .parse()
                .ok()
                .and_then(|index| step(index).and_then(|()| at.items().nth(index))),
            _ => None,
        };
        at = below.ok_or_else(nowhere)?;
        path.push(segment.into());
    }
    if path.is_empty() || !at.is_null() {
        return Err(nowhere());
    }
    Ok((Target { entry, path }, at.range().start))
}

impl Uploads {
    fn new(
        options: UploadOptions,
        placed: Placed,
        (multipart, collected): (Multipart<'static>, Collected),
        memory: Reservation,
    ) -> Self {
        let files = placed.keep.into_iter().map(|keep| File {
            state: State::Coming,
            keep,
        });
        Uploads {
            options,
            token: placed.token,
            files: RefCell::new(files.collect()),
            by_key: placed.by_key,
            targets: placed.targets,
            multipart: RefCell::new(Some(multipart)),
            collected,
            kept_bytes: Cell::new(0),
            memory,
            failed: RefCell::default(),
            answered: Cell::new(false),
            readers: ReadQueue::default(),
        }
    }

    /// The numbers of the files whose tokens a text holds, in order.
    fn tokens<'t>(&'t self, text: &'t [u8]) -> impl Iterator<Item = (usize, usize)> + 't {
        let found = memchr::memmem::find_iter(text, self.token.as_bytes());
        found.filter_map(|at| {
            let digits = text.get(at + self.token.len() + 1..)?;
            let end = digits.iter().position(|b| !b.is_ascii_digit())?;
            let file = std::str::from_utf8(&digits[..end]).ok()?.parse().ok()?;
            Some((at, file))
        })
    }

    /// What was wrong with the files, if no subgraph has answered anything: then the request as a whole has failed.
    pub fn refused(&self) -> Option<RequestError> {
        let failed = self.failed.borrow().clone();
        failed.filter(|_| !self.answered.get()).map(Into::into)
    }

    /// Reads what nobody wants, so that the answer is read.
    pub async fn linger(&self) {
        let multipart = self.multipart.borrow_mut().take();
        if let Some(multipart) = multipart {
            incoming::linger(multipart, &self.collected).await;
        }
    }
}

impl Entry<'_> {
    /// Its operation is begun: what is kept of its files may use the whole limit.
    pub fn run(&self) {
        self.uploads.memory.run();
    }
    /// How long the request may take.
    pub fn time(&self) -> Duration {
        self.uploads.options.timeout
    }

    /// Refuses files where the schema has no place for one: they are values of custom scalars.
    pub fn check(
        &self,
        schema: &Schema,
        document: &Document,
        definition: &OperationDefinition,
    ) -> Result<(), RequestError> {
        const BUILT_IN: [&str; 5] = ["Int", "Float", "String", "Boolean", "ID"];
        let targets = self.uploads.targets.iter();
        for target in targets.filter(|target| target.entry == self.at) {
            let Some((name, rest)) = target.path.split_first() else {
                continue;
            };
            let mut variables = document[definition.variables].iter();
            let variable = variables.find(|v| document.name(v.name) == &**name);
            // One that is not declared is ignored with whatever it holds.
            let Some(variable) = variable else { continue };
            let mut ty = schema.type_by_name(document.name(variable.ty.name));
            // Names never begin with a digit, so what does is a place in a list.
            let fields = rest
                .iter()
                .filter(|s| !s.starts_with(|c: char| c.is_ascii_digit()));
            for field in fields {
                let input = ty.and_then(|ty| schema.input_field_by_name(ty, field));
                ty = input.map(|input| schema.inputs[input].ty.id);
            }
            let fits = ty.is_some_and(|ty| {
                schema.types[ty].kind == TypeKind::Scalar
                    && !BUILT_IN.contains(&schema.type_name(ty))
            });
            if !fits {
                let message = format!(
                    "`map` sends a file to `{}`, which is not of a scalar type that can be one, such as `Upload`",
                    target.path.join(".")
                );
                return Err(RequestError::graphql(
                    codes::VALIDATION_INVALID_TYPE_VARIABLE,
                    message,
                ));
            }
        }
        Ok(())
    }

    /// Marks files that several requests of a plan may want.
    pub fn plan(&self, plan: &Plan, variables: &[Option<Box<str>>]) {
        let held: Vec<Vec<usize>> = variables
            .iter()
            .map(|value| {
                let text = value.as_deref().unwrap_or_default();
                let tokens = self.uploads.tokens(text.as_bytes());
                tokens.map(|(_, file)| file).collect()
            })
            .collect();
        let mut wanted = vec![0_u32; self.uploads.files.borrow().len()];
        for fetch in plan.fetches.as_slice() {
            // Look-ups may be sent in several requests.
            let times = if fetch.lookups.is_empty() { 1 } else { 2 };
            for variable in &fetch.variables {
                let files = held.get(variable.variable as usize).into_iter().flatten();
                for file in files {
                    if let Some(wanted) = wanted.get_mut(*file) {
                        *wanted += times;
                    }
                }
            }
        }
        let mut files = self.uploads.files.borrow_mut();
        for (file, wanted) in files.iter_mut().zip(wanted) {
            file.keep |= wanted > 1;
        }
    }
}

/// How to tell a client that its files came too late or in the wrong order.
fn out_of_order(what: &str, options: &UploadOptions) -> Refusal {
    refusal(
        codes::UPLOAD_OUT_OF_ORDER,
        format!(
            "{what}, and more than {} bytes of files cannot be kept: send files in the order in which they are used",
            options.kept_bytes_max
        ),
    )
}

/// An empty piece of a body.
const NOTHING: Bytes = Bytes::new();
