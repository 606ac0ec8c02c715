//! What becomes of a subgraph's answer: its data goes to the store, its errors to client paths, and whatever did not
//! come is marked as failed, so that it turns null without a second error.
//!
//! Policy: an answer whose HTTP status is not 2xx gives errors only. `_entities` lists must have exactly one item per
//! representation, because otherwise items cannot be told apart; a list of another length is refused as a whole. A
//! null item is no error by itself: its fields are null.
//!
//! Look here for: [`absorb`] (entry), `absorb_data`, `distribute` and `map_path` (subgraph path to client path).

use std::borrow::Cow;

use bytes::Bytes;
use ogive_base::{FastSet, id::Id};
use ogive_json::{Kind, Scanner};
use ogive_plan::{Fetch, FetchId, ShapeId};

use crate::{
    codes,
    envelope::{Envelope, Step, SubgraphError, items},
    errors::{Errors, GraphqlError, Path, PathStep, Stage},
    limits::{ExecuteLimits, ExecuteOptions},
    request::{Gathered, Instance},
    scan::{Reader, Stop, applies, fail_fields},
    store::{LimitReached, RecordId, Store, Value},
    transport::{SubgraphResponse, TransportError},
};

/// What an answer is read with, and where it goes.
pub(crate) struct Absorb<'s, 'p> {
    pub(crate) store: &'s mut Store<'p>,
    pub(crate) errors: &'s mut Errors<'p>,
    pub(crate) options: ExecuteOptions,
    /// Whether the client may see what this subgraph says about its errors.
    pub(crate) shows_errors: bool,
    pub(crate) fetch_id: FetchId,
    pub(crate) fetch: &'p Fetch,
    pub(crate) gathered: &'s Gathered,
    /// Whether the root part was asked.
    pub(crate) root: bool,
    /// Bytes that further answers may have.
    pub(crate) bytes_left: usize,
    /// By look-up: the place all of its records share, once it was asked for.
    pub(crate) shared_places: Vec<Option<Path<'p>>>,
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
            Ok(envelope) => envelope
                .errors(&body, &limits, this.options)
                .unwrap_or_default(),
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

impl<'p> Absorb<'_, 'p> {
    fn absorb_envelope(&mut self, body: &Bytes, envelope: &Envelope) {
        self.store.keep_answer(self.fetch_id, body.clone());
        let (errors, errors_malformed) =
            match envelope.errors(body, self.store.limits(), self.options) {
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
        let mut nulls = FastSet::default();
        if envelope.has_data() {
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
        let has_data = envelope.has_data();
        for error in errors {
            if self.errors.is_full() {
                // Counted, but not worth the work.
                self.push(self.client_error(error));
                continue;
            }
            self.distribute(error, has_data, &mut nulls);
        }
    }

    /// Reads root fields and look-ups. `nulls` receives (look-up, representation) of items that are null.
    fn absorb_data(
        &mut self,
        body: &Bytes,
        envelope: &Envelope,
        explained: bool,
        nulls: &mut FastSet<(usize, u32)>,
    ) -> Result<(), Stop> {
        let limits = *self.store.limits();
        let text = Scanner::with_depth_max(body, limits.depth_max);
        let gathered = self.gathered;
        if let (true, Some(root), Some(data)) = (self.root, &self.fetch.root, &envelope.data) {
            let mut reader = self.reader();
            reader.read_into(
                &mut text.within(data.range.clone()),
                root.shape,
                Store::ROOT,
            )?;
        }
        let mut scanned = 0;
        for (at, lookup) in gathered.lookups.iter().enumerate() {
            let n_items = lookup.n_representations;
            if n_items == 0 {
                continue;
            }
            let part = envelope.lookups.get(at).and_then(Option::as_ref);
            let kind = part.map_or(Kind::Null, |part| part.kind);
            let Some(part) = part.filter(|_| kind == Kind::Array) else {
                if kind == Kind::Null && explained {
                    self.mark_lookup_failed(at);
                } else {
                    self.fail_lookup(at, "The subgraph did not answer a list of entities.");
                }
                continue;
            };
            let Some(items) = items(text.within(part.range.clone()), n_items)? else {
                let message = "The subgraph's list of entities has another length than asked.";
                self.fail_lookup(at, message);
                continue;
            };
            let mut waiting = lookup.instances.as_slice();
            for (item, part) in items.into_iter().enumerate() {
                let n = waiting.partition_point(|w| w.representation as usize <= item);
                let (mine, rest) = waiting.split_at(n);
                waiting = rest;
                if part.kind == Kind::Null {
                    nulls.insert((at, item as u32));
                    continue;
                }
                // The first reading was paid for with the bytes of the answer.
                scanned += part.range.len() as u64 * (mine.len() as u64).saturating_sub(1);
                if scanned > limits.rescanned_bytes_max {
                    return Err(LimitReached("rescanned_bytes_max").into());
                }
                for instance in mine {
                    let target = &self.fetch.lookups[at].targets[usize::from(instance.target)];
                    let mut scanner = text.within(part.range.clone());
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

    /// Maps one subgraph error to the client paths it concerns.
    fn distribute(
        &mut self,
        error: SubgraphError<'_>,
        has_data: bool,
        nulls: &mut FastSet<(usize, u32)>,
    ) {
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
                let waiting = gathered.lookups[at].waiting_for(*item);
                let shape =
                    |instance: &Instance| lookup.targets[usize::from(instance.target)].shape;
                if nulls.remove(&(at, *item)) {
                    for instance in waiting {
                        fail_fields(self.store, shape(instance), instance.record);
                    }
                }
                let shown = waiting.iter().take(self.store.limits().errors_max);
                let mut paths: Vec<_> = shown
                    .map(|instance| self.map_path(shape(instance), instance.record, rest))
                    .collect();
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
        if !self.shows_errors {
            let message = "The subgraph reported an error.";
            return GraphqlError::new(codes::DOWNSTREAM_SERVICE_ERROR, message);
        }
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
    fn affected_path(&mut self) -> Path<'p> {
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
    fn affected_by_lookup(&mut self, lookup: usize) -> Path<'p> {
        if let Some(Some(place)) = self.shared_places.get(lookup) {
            return place.clone();
        }
        let mut common = None;
        for instance in &self.gathered.lookups[lookup].instances {
            narrow(&mut common, self.store.path(instance.record));
            if common.as_ref().is_some_and(Vec::is_empty) {
                break;
            }
        }
        let place = common.unwrap_or_default();
        self.shared_places.resize(self.gathered.lookups.len(), None);
        self.shared_places[lookup] = Some(place.clone());
        place
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
