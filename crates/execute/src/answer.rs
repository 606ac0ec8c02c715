//! What becomes of a subgraph's answer: its data goes to the store, its errors to client paths, and whatever did not
//! come is marked as failed, so that it turns null without a second error.
//!
//! Policy: an answer whose HTTP status is not 2xx gives errors only. `_entities` lists must have exactly one item per
//! representation, because otherwise items cannot be told apart; a list of another length is refused as a whole. A
//! null item is no error by itself: its fields are null.
//!
//! Look here for: [`absorb`] (entry), `Envelope` (the outer object), `map_path` (subgraph path to client path).

use std::{borrow::Cow, ops::Range};

use bytes::Bytes;
use ogive_base::id::Id;
use ogive_json::{Kind, ScanError, Scanner};
use ogive_plan::{Fetch, FetchId, ShapeId};

use crate::{
    codes,
    errors::{Errors, GraphqlError, Path, PathStep, Stage},
    limits::{ExecuteLimits, ExecuteOptions},
    request::Gathered,
    scan::{Reader, Stop, applies, fail_fields},
    store::{LimitReached, RecordId, Store, Value},
    transport::{SubgraphResponse, TransportError},
};

/// What an answer is read with.
pub(crate) struct Absorb<'s, 'p> {
    pub(crate) store: &'s mut Store<'p>,
    pub(crate) errors: &'s mut Errors<'p>,
    pub(crate) options: ExecuteOptions,
    pub(crate) fetch_id: FetchId,
    pub(crate) fetch: &'p Fetch,
    pub(crate) gathered: &'s Gathered,
    /// Whether the root part was asked.
    pub(crate) root: bool,
    /// Bytes that further answers may have.
    pub(crate) bytes_left: usize,
}

/// Where the parts of a GraphQL response stand.
#[derive(Debug, Default)]
struct Envelope {
    data: Option<(Kind, Range<usize>)>,
    errors: Option<(Kind, Range<usize>)>,
    /// Values of the look-ups' response keys.
    lookups: Vec<Option<(Kind, Range<usize>)>>,
}

/// One entry of a subgraph's `errors`.
#[derive(Debug, Default)]
struct SubgraphError<'a> {
    message: Option<Cow<'a, str>>,
    path: Option<Vec<Step<'a>>>,
    code: Option<Cow<'a, str>>,
    /// Other extensions, as JSON members each followed by a comma.
    extensions: Vec<u8>,
}

/// One step of a subgraph's error path.
#[derive(Debug, PartialEq)]
enum Step<'a> {
    Key(Cow<'a, str>),
    Index(u32),
}

/// Takes in the result of a fetch.
pub(crate) fn absorb(mut this: Absorb<'_, '_>, result: Result<SubgraphResponse, TransportError>) {
    let response = match result {
        Ok(response) => response,
        Err(error) => return this.fail_fetch(GraphqlError::new(error.code, error.message)),
    };
    let limits = *this.store.limits();
    if let Err(limit) = check_size(&response.body, &limits, this.bytes_left) {
        return this.fail_fetch(too_large(limit));
    }
    let body = response.body;
    let envelope = Envelope::read(&body, this.fetch, &limits);
    if !(200..300).contains(&response.status) {
        let errors = match &envelope {
            Ok(envelope) => this.read_errors(&body, envelope).unwrap_or_default(),
            Err(_) => Vec::new(),
        };
        let n_errors = errors.len();
        let path = this.affected_path();
        for error in errors {
            let error = this.client_error(error).at(path.clone());
            this.push(error);
        }
        if n_errors > 0 {
            return this.mark_failed();
        }
        let message = format!(
            "The subgraph answered with HTTP status {}.",
            response.status
        );
        return this.fail_fetch(GraphqlError::new(codes::SUBREQUEST_HTTP_ERROR, message));
    }
    match envelope {
        Ok(envelope) => this.absorb_envelope(&body, &envelope),
        Err(error) => {
            let message = format!("The subgraph's answer is not a GraphQL response: {error}.");
            this.fail_fetch(malformed(message));
        }
    }
}

fn check_size(body: &Bytes, limits: &ExecuteLimits, left: usize) -> Result<(), LimitReached> {
    // Ranges of answers are stored as 32-bit numbers.
    if body.len() > limits.answer_bytes_max.min(u32::MAX as usize) {
        return Err(LimitReached("answer_bytes_max"));
    }
    if body.len() > left {
        return Err(LimitReached("answers_bytes_max"));
    }
    Ok(())
}

/// The error for a fetch that reached a limit.
pub(crate) fn too_large<'p>(limit: LimitReached) -> GraphqlError<'p> {
    let message = format!("The limit {} was reached.", limit.0);
    GraphqlError::new(codes::EXECUTION_LIMIT_EXCEEDED, message)
}

fn malformed<'p>(message: impl Into<Cow<'static, str>>) -> GraphqlError<'p> {
    GraphqlError::new(codes::SUBREQUEST_MALFORMED_RESPONSE, message)
}

impl Envelope {
    /// Validates the whole body and finds the parts.
    fn read(body: &Bytes, fetch: &Fetch, limits: &ExecuteLimits) -> Result<Self, ScanError> {
        let mut scanner = Scanner::with_depth_max(body, limits.depth_max);
        let mut envelope = Envelope {
            lookups: vec![None; fetch.lookups.len()],
            ..Envelope::default()
        };
        let mut more = scanner.begin_object()?;
        while more {
            let key = scanner.key()?;
            let kind = scanner.peek()?;
            if key.is("data") && envelope.data.is_none() {
                let start = scanner.position();
                if kind == Kind::Object {
                    envelope.read_data(&mut scanner, fetch)?;
                } else {
                    scanner.skip_value()?;
                }
                envelope.data = Some((kind, start..scanner.position()));
            } else {
                let range = scanner.skip_value()?;
                if key.is("errors") && envelope.errors.is_none() {
                    envelope.errors = Some((kind, range));
                }
            }
            more = scanner.next_member()?;
        }
        scanner.finish()?;
        Ok(envelope)
    }

    fn read_data(&mut self, scanner: &mut Scanner<'_>, fetch: &Fetch) -> Result<(), ScanError> {
        let mut more = scanner.begin_object()?;
        while more {
            let key = scanner.key()?;
            let kind = scanner.peek()?;
            let range = scanner.skip_value()?;
            let lookup = fetch
                .lookups
                .iter()
                .position(|lookup| key.is(&lookup.response_key));
            if let Some(found) = lookup.and_then(|at| self.lookups.get_mut(at))
                && found.is_none()
            {
                *found = Some((kind, range));
            }
            more = scanner.next_member()?;
        }
        Ok(())
    }
}

impl<'p> Absorb<'_, 'p> {
    fn absorb_envelope(&mut self, body: &Bytes, envelope: &Envelope) {
        self.store.keep_answer(self.fetch_id, body.clone());
        let (errors, errors_malformed) = match self.read_errors(body, envelope) {
            Some(errors) => (errors, false),
            None => (Vec::new(), true),
        };
        if errors_malformed {
            self.push(malformed(
                "The subgraph's answer has a malformed list of errors.",
            ));
        }
        // What the subgraph explained needs no further explanation.
        let explained = !errors.is_empty();
        let mut nulls = Vec::new();
        if matches!(envelope.data, Some((Kind::Object, _))) {
            if let Err(stop) = self.absorb_data(body, envelope, explained, &mut nulls) {
                let error = match stop {
                    Stop::Limit(limit) => too_large(limit),
                    Stop::Malformed => malformed("The subgraph's answer is malformed."),
                };
                self.fail_fetch(error);
            }
        } else {
            if !explained {
                let path = self.affected_path();
                self.push(malformed("The subgraph's answer has no data.").at(path));
            }
            self.mark_failed();
        }
        let has_data = matches!(envelope.data, Some((Kind::Object, _)));
        for error in errors {
            if self.errors.is_full() {
                // Counted, but not worth the work.
                self.push(self.client_error(error));
                continue;
            }
            self.distribute(error, has_data, &nulls);
        }
    }

    /// Reads root fields and look-ups. `nulls` receives (look-up, representation) of items that are null, in order.
    fn absorb_data(
        &mut self,
        body: &Bytes,
        envelope: &Envelope,
        explained: bool,
        nulls: &mut Vec<(usize, u32)>,
    ) -> Result<(), Stop> {
        let limits = *self.store.limits();
        let text = Scanner::with_depth_max(body, limits.depth_max);
        let gathered = self.gathered;
        if let (true, Some(root), Some((_, data))) = (self.root, &self.fetch.root, &envelope.data) {
            let mut reader = self.reader();
            reader.read_into(&mut text.within(data.clone()), root.shape, Store::ROOT)?;
        }
        for (at, lookup) in gathered.lookups.iter().enumerate() {
            let n_items = lookup.n_representations;
            if n_items == 0 {
                continue;
            }
            let Some(Some((Kind::Array, range))) = envelope.lookups.get(at) else {
                let nothing =
                    matches!(envelope.lookups.get(at), Some(Some((Kind::Null, _)) | None));
                if nothing && explained {
                    self.mark_lookup_failed(at);
                } else {
                    self.fail_lookup(at, "The subgraph did not answer a list of entities.");
                }
                continue;
            };
            let Some(items) = items(text.within(range.clone()), n_items)? else {
                let message = "The subgraph's list of entities has another length than asked.";
                self.fail_lookup(at, message);
                continue;
            };
            let mut waiting = lookup.instances.as_slice();
            for (item, (kind, range)) in items.into_iter().enumerate() {
                let n = waiting.partition_point(|w| w.representation as usize <= item);
                let (mine, rest) = waiting.split_at(n);
                waiting = rest;
                if kind == Kind::Null {
                    nulls.push((at, item as u32));
                    continue;
                }
                for instance in mine {
                    let target = &self.fetch.lookups[at].targets[usize::from(instance.target)];
                    let mut scanner = text.within(range.clone());
                    let mut reader = self.reader();
                    if !reader.read_into(&mut scanner, target.shape, instance.record)? {
                        fail_fields(self.store, target.shape, instance.record);
                    }
                }
            }
        }
        Ok(())
    }

    fn reader(&mut self) -> Reader<'_, 'p> {
        let service = self.service();
        Reader::new(self.store, self.errors, self.fetch_id, service)
    }

    /// The subgraph's errors; `None` if the list is malformed.
    fn read_errors<'a>(
        &self,
        body: &'a Bytes,
        envelope: &Envelope,
    ) -> Option<Vec<SubgraphError<'a>>> {
        let range = match &envelope.errors {
            None | Some((Kind::Null, _)) => return Some(Vec::new()),
            Some((Kind::Array, range)) => range.clone(),
            Some(_) => return None,
        };
        let text = Scanner::with_depth_max(body, self.store.limits().depth_max);
        let mut errors = Vec::new();
        let mut scanner = text.within(range);
        let mut more = scanner.begin_array().ok()?;
        // One more than may be shown, so that it is known that some were left out.
        while more && errors.len() <= self.store.limits().errors_max {
            errors.push(SubgraphError::read(&mut scanner, self.options).ok()?);
            more = scanner.next_item().ok()?;
        }
        Some(errors)
    }

    /// Maps one subgraph error to the client paths it concerns.
    fn distribute(&mut self, error: SubgraphError<'_>, has_data: bool, nulls: &[(usize, u32)]) {
        let path = error.path.as_deref().unwrap_or_default();
        let lookup = match path.first() {
            Some(Step::Key(key)) => self
                .fetch
                .lookups
                .iter()
                .position(|lookup| *lookup.response_key == **key),
            _ => None,
        };
        let gathered = self.gathered;
        match (lookup, path) {
            (Some(at), [_, Step::Index(item), rest @ ..]) => {
                let lookup = &self.fetch.lookups[at];
                let mut paths = Vec::new();
                for instance in gathered.lookups[at].waiting_for(*item) {
                    let shape = lookup.targets[usize::from(instance.target)].shape;
                    if nulls.binary_search(&(at, *item)).is_ok() {
                        fail_fields(self.store, shape, instance.record);
                    }
                    if paths.len() < self.store.limits().errors_max {
                        paths.push(self.map_path(shape, instance.record, rest));
                    }
                }
                paths.dedup();
                let error = self.client_error(error);
                if paths.is_empty() {
                    let path = self.affected_by_lookup(at);
                    return self.push(error.at(path));
                }
                for path in paths {
                    self.push(error.clone().at(path));
                }
            }
            (Some(at), _) => {
                let path = self.affected_by_lookup(at);
                let error = self.client_error(error);
                self.push(error.at(path));
            }
            (None, [Step::Key(_), ..]) if self.root => {
                let path = match &self.fetch.root {
                    Some(root) => self.map_path(root.shape, Store::ROOT, path),
                    None => Vec::new(),
                };
                let error = self.client_error(error);
                self.push(error.at(path));
            }
            _ => {
                let path = if has_data {
                    Vec::new()
                } else {
                    self.affected_path()
                };
                let error = self.client_error(error);
                self.push(error.at(path));
            }
        }
    }

    /// The client path of `steps` below a record. It ends where clients see nothing any more.
    fn map_path(&self, shape: ShapeId, record: RecordId, steps: &[Step<'_>]) -> Path<'p> {
        let plan = self.store.plan();
        let mut path = self.store.path(record);
        let (mut shape, mut record) = (&plan.shapes[shape], Some(record));
        let mut steps = steps.iter().peekable();
        while let Some(Step::Key(key)) = steps.next() {
            let ty = record.and_then(|record| self.store.known_type(record));
            let named = || shape.fields.iter().filter(|field| *field.key == **key);
            let field = named()
                .find(|field| applies(field, ty))
                .or_else(|| named().next().filter(|_| ty.is_none()));
            let Some(field) = field else {
                break;
            };
            let slot = &plan.layouts[shape.layout].slots[usize::from(field.slot)];
            let Some(client_key) = slot.client_key.as_deref() else {
                break;
            };
            path.push(PathStep::Key(client_key));
            let mut value = record.map_or(Value::Absent, |r| self.store.value(r, field.slot));
            for _ in 0..slot.lists {
                let Some(Step::Index(index)) = steps.peek() else {
                    break;
                };
                steps.next();
                path.push(PathStep::Index(*index));
                value = match value {
                    Value::List(list) => self.store.item(list, *index),
                    _ => Value::Absent,
                };
            }
            let Some(child) = field.shape else {
                break;
            };
            shape = &plan.shapes[child];
            record = match value {
                Value::Record(record) => Some(record),
                _ => None,
            };
        }
        path
    }

    fn client_error(&self, error: SubgraphError<'_>) -> GraphqlError<'p> {
        let mut message = match error.message {
            Some(message) => message.into_owned(),
            None => "The subgraph reported an error without a message.".to_owned(),
        };
        let max = self.store.limits().error_message_bytes_max;
        if message.len() > max {
            message.truncate(message.floor_char_boundary(max));
        }
        let code = match error.code {
            Some(code) => Cow::Owned(code.into_owned()),
            None => Cow::Borrowed(codes::DOWNSTREAM_SERVICE_ERROR),
        };
        GraphqlError {
            message: Cow::Owned(message),
            path: None,
            code,
            service: None,
            extensions: error.extensions,
        }
    }

    /// Reports an error that concerns everything this fetch was to bring.
    pub(crate) fn fail_fetch(&mut self, error: GraphqlError<'p>) {
        let path = self.affected_path();
        self.push(error.at(path));
        self.mark_failed();
    }
    fn fail_lookup(&mut self, lookup: usize, message: &'static str) {
        let path = self.affected_by_lookup(lookup);
        self.push(malformed(message).at(path));
        self.mark_lookup_failed(lookup);
    }
    fn mark_failed(&mut self) {
        if let (true, Some(root)) = (self.root, &self.fetch.root) {
            fail_fields(self.store, root.shape, Store::ROOT);
        }
        for at in 0..self.gathered.lookups.len() {
            self.mark_lookup_failed(at);
        }
    }
    fn mark_lookup_failed(&mut self, lookup: usize) {
        for instance in &self.gathered.lookups[lookup].instances {
            let target = &self.fetch.lookups[lookup].targets[usize::from(instance.target)];
            fail_fields(self.store, target.shape, instance.record);
        }
    }

    /// The longest client path below which everything lies that this fetch was to bring.
    fn affected_path(&self) -> Path<'p> {
        let mut common = None;
        if let (true, Some(root)) = (self.root, &self.fetch.root) {
            let plan = self.store.plan();
            let shape = &plan.shapes[root.shape];
            for field in &shape.fields {
                let slot = &plan.layouts[shape.layout].slots[usize::from(field.slot)];
                if let Some(key) = slot.client_key.as_deref() {
                    narrow(&mut common, vec![PathStep::Key(key)]);
                }
            }
        }
        for at in 0..self.gathered.lookups.len() {
            if self.gathered.lookups[at].n_representations > 0 {
                narrow(&mut common, self.affected_by_lookup(at));
            }
        }
        common.unwrap_or_default()
    }
    fn affected_by_lookup(&self, lookup: usize) -> Path<'p> {
        let mut common = None;
        for instance in &self.gathered.lookups[lookup].instances {
            narrow(&mut common, self.store.path(instance.record));
            if common.as_ref().is_some_and(Vec::is_empty) {
                break;
            }
        }
        common.unwrap_or_default()
    }

    fn service(&self) -> Option<&'p str> {
        let name = self
            .store
            .plan()
            .subgraphs
            .get(self.fetch.subgraph as usize);
        name.filter(|_| self.options.error_service_names)
            .map(|name| &**name)
    }
    fn push(&mut self, mut error: GraphqlError<'p>) {
        error.service = self.service();
        let stage = Stage::Fetch(self.fetch_id.index() as u32);
        self.errors.push(stage, error);
    }
}

/// Shortens `common` to what it shares with `path`.
fn narrow<'p>(common: &mut Option<Path<'p>>, path: Path<'p>) {
    match common {
        None => *common = Some(path),
        Some(common) => {
            let same = common.iter().zip(&path).take_while(|(a, b)| a == b).count();
            common.truncate(same);
        }
    }
}

/// The items of the array the scanner stands before, if there are exactly `n`.
fn items(mut scanner: Scanner<'_>, n: u32) -> Result<Option<Vec<(Kind, Range<usize>)>>, ScanError> {
    let mut items = Vec::with_capacity(n as usize);
    let mut more = scanner.begin_array()?;
    while more {
        if items.len() == n as usize {
            return Ok(None);
        }
        let kind = scanner.peek()?;
        items.push((kind, scanner.skip_value()?));
        more = scanner.next_item()?;
    }
    Ok((items.len() == n as usize).then_some(items))
}

impl<'a> SubgraphError<'a> {
    /// Reads one entry; whatever in it is malformed is left out.
    fn read(scanner: &mut Scanner<'a>, options: ExecuteOptions) -> Result<Self, ScanError> {
        let mut error = SubgraphError::default();
        if scanner.peek()? != Kind::Object {
            scanner.skip_value()?;
            return Ok(error);
        }
        let mut more = scanner.begin_object()?;
        while more {
            let key = scanner.key()?;
            match scanner.peek()? {
                Kind::String if key.is("message") => {
                    error.message = Some(scanner.string()?.unescape());
                }
                Kind::Array if key.is("path") => error.path = Step::read_path(scanner)?,
                Kind::Object if key.is("extensions") => error.read_extensions(scanner, options)?,
                _ => drop(scanner.skip_value()?),
            }
            more = scanner.next_member()?;
        }
        Ok(error)
    }

    fn read_extensions(
        &mut self,
        scanner: &mut Scanner<'a>,
        options: ExecuteOptions,
    ) -> Result<(), ScanError> {
        let mut more = scanner.begin_object()?;
        while more {
            let key = scanner.key()?;
            let kind = scanner.peek()?;
            if key.is("code") && kind == Kind::String {
                self.code = Some(scanner.string()?.unescape());
            } else {
                let range = scanner.skip_value()?;
                let ours = key.is("code") || (key.is("service") && options.error_service_names);
                if options.subgraph_error_extensions && !ours {
                    let out = &mut self.extensions;
                    out.push(b'"');
                    out.extend_from_slice(key.raw());
                    out.extend_from_slice(b"\":");
                    out.extend_from_slice(&scanner.text()[range]);
                    out.push(b',');
                }
            }
            more = scanner.next_member()?;
        }
        Ok(())
    }
}

impl<'a> Step<'a> {
    /// Reads a path; `None` if a step is neither a string nor a small whole number.
    fn read_path(scanner: &mut Scanner<'a>) -> Result<Option<Vec<Self>>, ScanError> {
        let mut path = Some(Vec::new());
        let mut more = scanner.begin_array()?;
        while more {
            let step = match scanner.peek()? {
                Kind::String => Some(Step::Key(scanner.string()?.unescape())),
                Kind::Number => {
                    let range = scanner.number()?.range;
                    let text = std::str::from_utf8(&scanner.text()[range]).ok();
                    text.and_then(|text| text.parse().ok()).map(Step::Index)
                }
                _ => {
                    scanner.skip_value()?;
                    None
                }
            };
            match (&mut path, step) {
                (Some(path), Some(step)) => path.push(step),
                _ => path = None,
            }
            more = scanner.next_item()?;
        }
        Ok(path)
    }
}
