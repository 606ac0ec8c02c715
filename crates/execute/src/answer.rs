//! What becomes of a subgraph's answer: its data goes to the store, its errors to client paths, and whatever did not
//! come is marked as failed, so that it turns null without a second error.
//!
//! Policy: an answer whose HTTP status is not 2xx gives errors only. `_entities` lists must have exactly one item per
//! representation, because otherwise items cannot be told apart; a list of another length is refused as a whole. A
//! null item is no error by itself: its fields are null.
//!
//! Look here for: [`absorb`] (entry), `absorb_body`, `distribute` and `map_path` (subgraph path to client path).

use std::borrow::Cow;

use bytes::Bytes;
use ogive_base::FastSet;
use ogive_json::{Kind, Scanner};
use ogive_plan::{Fetch, FetchId, ShapeId};

use crate::{
    ahead::{self, HeadStart},
    codes,
    condition::Conditions,
    envelope::{Envelope, InVain, Part, Step, SubgraphError, find_lookups},
    errors::{Errors, GraphqlError, Path, PathStep, Stage},
    limits::{ExecuteLimits, ExecuteOptions},
    lookups::{Asked, Data, Lookups, Outcome, read_entity},
    request::{Gathered, Instance},
    reuse::{Entities, Known},
    scan::{Reader, Stop, applies, fail_fields},
    store::{LimitReached, RawRange, RecordId, Source, Store, Value},
    transport::{MaskedError, SubgraphResponse, TransportError},
};

/// What an answer is read with, and where it goes.
pub(crate) struct Absorb<'s, 'p> {
    pub(crate) store: &'s mut Store<'p>,
    pub(crate) errors: &'s mut Errors<'p>,
    pub(crate) conditions: &'s Conditions,
    pub(crate) options: ExecuteOptions,
    /// Members of `extensions` that the client may see of them, besides `code`.
    pub(crate) error_extensions: &'s [Box<str>],
    /// Whether the client may see what this subgraph says about its errors.
    pub(crate) shows_errors: bool,
    /// Who learns of errors that the client may not see.
    pub(crate) masked: &'s dyn Fn(MaskedError<'_>),
    pub(crate) source: Source,
    /// The fetch of the plan, of which the answered one may be a part.
    pub(crate) whole: FetchId,
    /// Whether this is the only answer.
    pub(crate) is_only: bool,
    pub(crate) fetch: &'p Fetch,
    pub(crate) gathered: &'s Gathered,
    /// What was found out about the answer while it arrived.
    pub(crate) head: Option<Box<HeadStart<'p>>>,
    /// Where to say what others can reuse.
    pub(crate) entities: Option<&'s mut Entities>,
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
    if (200..300).contains(&response.status) {
        return this.absorb_body(&body);
    }
    let (errors, beyond) = match Envelope::read(&body, &limits) {
        Ok(envelope) => envelope
            .errors(&body, &limits, this.options, this.error_extensions)
            .unwrap_or_default(),
        Err(_) => Default::default(),
    };
    let n_errors = errors.len();
    let path = this.affected_path();
    for error in errors {
        this.tell_masked(&error);
        let error = this.client_error(error).at(path.clone());
        this.push(error);
    }
    this.errors.leave_out(beyond);
    if n_errors > 0 {
        return this.mark_failed();
    }
    let message = format!(
        "The subgraph answered with HTTP status {}.",
        response.status
    );
    this.fail_fetch(GraphqlError::new(codes::SUBREQUEST_HTTP_ERROR, message));
}

/// Whether an answer is a GraphQL response whose data is null because of an error somewhere in it. (Where the request
/// itself was refused there is no `data` at all, and asking again in pieces would be refused, too.) Only small ones
/// are looked at: a response without data has nothing to be large of.
pub(crate) fn failed_as_a_whole(response: &SubgraphResponse, limits: &ExecuteLimits) -> bool {
    // Of duplicate members the first counts: data that is an object is not null.
    response.body.len() <= FAILURE_BYTES_MAX
        && !response.body.starts_with(b"{\"data\":{")
        && Envelope::read(&response.body, limits).is_ok_and(|envelope| {
            let errors = envelope.errors(&response.body, limits, ExecuteOptions::default(), &[]);
            envelope.has_null_data() && errors.is_some_and(|(errors, _)| !errors.is_empty())
        })
}

/// Largest answer that is looked at for whether it says no more than that a request failed.
const FAILURE_BYTES_MAX: usize = 64 << 10;

/// As much of a text as fits into so many bytes.
fn clip(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
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

/// Reads entities of earlier answers into the records that would have asked for them, and gives them values of objects
/// of other places. One reader serves all of them.
fn read_reused(
    reader: &mut Reader<'_, '_>,
    (whole, fetch): (FetchId, &Fetch),
    gathered: &Gathered,
) -> Result<(), LimitReached> {
    let (plan, limits) = (reader.store.plan(), *reader.store.limits());
    // Many entities are of the same answer.
    let (mut read_from, mut answer) = (None, Bytes::new());
    for (at, (lookup, asked)) in gathered.lookups.iter().zip(&fetch.lookups).enumerate() {
        let (mut of_target, mut donors) = (None, &[][..]);
        for (held, instance) in &lookup.held {
            if of_target != Some(instance.target) {
                of_target = Some(instance.target);
                let target = usize::from(instance.target);
                donors = plan.reusable().donors.of(whole, at, target);
            }
            let store = &mut *reader.store;
            let layout = store.layout(*held);
            let donor = donors.iter().find(|donor| donor.layout == layout);
            let (theirs, ours) = (store.slots(*held), store.slots(instance.record));
            for (from, to) in donor.iter().flat_map(|donor| &donor.values) {
                let value = store.get(theirs, *from);
                store.put(ours, *to, value);
            }
        }
        for (answered, range, instance) in &lookup.reused {
            reader.store.rescan(u64::from(range.len))?;
            if read_from != Some(*answered) {
                read_from = Some(*answered);
                answer = reader.store.answer(*answered);
                reader.source = *answered;
                // What is known is known of another text.
                reader.forget();
            }
            reader.twins.restart();
            let shape = asked.targets[usize::from(instance.target)].shape;
            let start = range.start as usize;
            let text = Scanner::with_depth_max(&answer, limits.depth_max);
            let mut scanner = text.within(start..start + range.len as usize);
            match reader.read_into(&mut scanner, shape, instance.record) {
                Ok(true) => {}
                // It was read before, so it is not malformed.
                Ok(false) | Err(Stop::Malformed(_)) => {
                    fail_fields(reader.store, shape, instance.record);
                }
                Err(Stop::Limit(limit)) => return Err(limit),
            }
        }
    }
    Ok(())
}

fn malformed<'p>(message: impl Into<Cow<'static, str>>) -> GraphqlError<'p> {
    GraphqlError::new(codes::SUBREQUEST_MALFORMED_RESPONSE, message)
}

impl<'s, 'p> Absorb<'s, 'p> {
    /// Reads the whole answer in one pass. If it turns out to be no GraphQL response, nothing of it stays.
    fn absorb_body(&mut self, sent: &Bytes) {
        // What is printed for people is rewritten first: reading is fastest without white space.
        let spaced = ogive_json::is_spaced(sent);
        if spaced {
            self.head = None;
        }
        let compact = spaced.then(|| ogive_json::compact(sent).map(Bytes::from));
        let body = &compact.flatten().unwrap_or_else(|| sent.clone());
        self.store.keep_answer(self.source, body.clone());
        let limits = *self.store.limits();
        let before = (self.store.begin(), self.errors.mark());
        let mut data = Data::new(self.fetch.lookups.len());
        let read = Envelope::read_with(body, &limits, |scanner| self.read_data(scanner, &mut data));
        let read = match read {
            Ok(envelope) => Ok((envelope, None)),
            // What was read so far stays, provided that the answer is well-formed.
            Err(Stop::Limit(limit)) => {
                Envelope::read(body, &limits).map(|envelope| (envelope, Some(limit)))
            }
            Err(Stop::Malformed(error)) => Err(error),
        };
        let (envelope, limit) = match read {
            Ok(read) => read,
            Err(error) => {
                self.store.roll_back(before.0);
                self.store.commit();
                self.errors.roll_back(before.1);
                // Positions are those of the answer as it was sent.
                let error = Envelope::read(sent, &limits).err().unwrap_or(error);
                let message = format!("The subgraph's answer is not a GraphQL response: {error}.");
                return self.fail_fetch(malformed(message));
            }
        };
        self.store.commit();
        let errors = envelope.errors(body, &limits, self.options, self.error_extensions);
        if errors.is_none() {
            let message = "The subgraph's answer has a malformed list of errors.";
            self.push(malformed(message));
        }
        let (errors, beyond) = errors.unwrap_or_default();
        // What the subgraph explained needs no further explanation.
        let explained = !errors.is_empty();
        let has_data = envelope.has_data();
        if let Some(limit) = limit {
            self.fail_fetch(too_large(limit));
        } else if has_data {
            self.explain_outcomes(&data.outcomes, explained);
        } else {
            if !explained {
                let path = self.affected_path();
                self.push(malformed("The subgraph's answer has no data.").at(path));
            }
            self.mark_failed();
        }
        if let (None, false, Some(entities)) = (limit, explained, &mut self.entities) {
            for (ticket, range) in data.entities {
                let entity = RawRange::unchecked(self.source, range);
                entities.settle(ticket, Known::Answered(self.source, entity));
            }
            if has_data && self.is_only {
                entities.answered_well(self.source.fetch());
            }
        }
        for error in errors {
            if self.errors.is_full() {
                // Counted, but not worth the work.
                self.errors.leave_out(1);
                continue;
            }
            self.tell_masked(&error);
            self.distribute(error, has_data, &mut data.nulls);
        }
        self.errors.leave_out(beyond);
    }

    /// Reads the value of `data`.
    fn read_data(&mut self, scanner: &mut Scanner<'_>, data: &mut Data) -> Result<Part, Stop> {
        let kind = scanner.peek()?;
        let start = scanner.position();
        if kind != Kind::Object {
            return Ok(Part::read(scanner)?);
        }
        match self.fetch.root.as_ref().filter(|_| self.root) {
            None if self.reentries().next().is_none() => {
                let asked = self.asked();
                Lookups::new(asked, data).read(&mut self.reader(), scanner)?;
            }
            Some(root) if self.gathered.n_representations() == 0 => {
                let mut reader = self.reader();
                reader.is_single = true;
                if !reader.read_into(scanner, root.shape, Store::ROOT)? {
                    scanner.skip_value()?;
                }
            }
            // Root fields and look-ups in one request are rare enough to be read twice.
            root => {
                let whole = scanner.clone();
                let lookups =
                    find_lookups(scanner, self.fetch, &mut InVain::new(self.store.limits()))?;
                if let Some(root) = root {
                    self.reader()
                        .read_into(&mut whole.clone(), root.shape, Store::ROOT)?;
                }
                let (gathered, fetch) = (self.gathered, self.fetch);
                for at in self.reentries().collect::<Vec<_>>() {
                    let (targets, waiting) =
                        (&fetch.lookups[at].targets, &gathered.lookups[at].instances);
                    let mut scanner = whole.clone();
                    scanner.peek()?;
                    read_entity(&mut self.reader(), &mut scanner, targets, waiting)?;
                    data.outcomes[at] = Outcome::Read;
                }
                let asked = self.asked();
                let mut reader = self.reader();
                let mut reading = Lookups::new(asked, data);
                for (at, part) in lookups.into_iter().enumerate() {
                    if let Some(part) = part {
                        let scanner = &mut whole.within(part.range);
                        reading.read_one(&mut reader, scanner, at)?;
                    }
                }
            }
        }
        let range = start..scanner.position();
        Ok(Part { kind, range })
    }

    /// What was asked.
    fn asked(&self) -> Asked<'s> {
        let facts = &self.store.plan().derived().lookups[self.whole];
        Asked {
            lookups: &self.fetch.lookups,
            facts,
            gathered: &self.gathered.lookups,
        }
    }

    /// Look-ups whose answer is `data` itself, of those that were sent.
    fn reentries(&self) -> impl Iterator<Item = usize> + use<'_, 'p> {
        let lookups = self.fetch.lookups.iter().zip(&self.gathered.lookups);
        let sent =
            lookups.map(|(lookup, gathered)| lookup.is_reentry() && gathered.n_representations > 0);
        sent.enumerate().filter(|(_, sent)| *sent).map(|(at, _)| at)
    }

    /// The re-entry that asked for the root field under this response key.
    fn reentry_of(&self, key: &str) -> Option<usize> {
        let plan = self.store.plan();
        self.reentries().find(|at| {
            let mut targets = self.fetch.lookups[*at].targets.iter();
            targets.any(|t| plan.shapes[t.shape].fields.iter().any(|f| *f.key == *key))
        })
    }

    /// Says what is wrong with the look-ups' values.
    fn explain_outcomes(&mut self, outcomes: &[Outcome], explained: bool) {
        let gathered = self.gathered;
        for (at, outcome) in outcomes.iter().enumerate() {
            match outcome {
                _ if gathered.lookups[at].n_representations == 0 => {}
                Outcome::Read => {}
                Outcome::Null if explained => self.mark_lookup_failed(at),
                Outcome::Null | Outcome::NoList => {
                    self.fail_lookup(at, "The subgraph did not answer a list of entities.");
                }
                Outcome::WrongLength => {
                    let message = "The subgraph's list of entities has another length than asked.";
                    self.fail_lookup(at, message);
                }
            }
        }
    }

    /// Takes in what earlier answers have for this fetch.
    pub(crate) fn absorb_reused(&mut self) {
        let (asked, gathered) = ((self.whole, self.fetch), self.gathered);
        let read = read_reused(&mut self.reader(), asked, gathered);
        if let Err(limit) = read {
            self.fail_fetch(too_large(limit));
        }
    }

    fn reader(&mut self) -> Reader<'_, 'p> {
        let service = self.service();
        let conditions = self.conditions.for_patterns();
        let mut reader = Reader::new(self.store, self.errors, self.source, service, conditions);
        reader.known = self
            .head
            .as_mut()
            .map(|head| ahead::Known { head, so_far: None });
        reader
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
                .position(|lookup| !lookup.is_reentry() && *lookup.response_key == **key),
            _ => None,
        };
        let of_root = |key: &str| {
            let root = self.fetch.root.as_ref().filter(|_| self.root);
            let plan = self.store.plan();
            root.is_some_and(|r| plan.shapes[r.shape].fields.iter().any(|f| *f.key == *key))
        };
        let reentry = match path.first() {
            Some(Step::Key(key)) if lookup.is_none() && !of_root(key) => self.reentry_of(key),
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
                let shown = waiting.iter().take(self.errors.room());
                self.errors.leave_out(waiting.len() - shown.len());
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
            (None, path) if let Some(at) = reentry => {
                let lookup = &self.fetch.lookups[at];
                let waiting = gathered.lookups[at].instances.iter();
                let n_waiting = waiting.len();
                let shown = waiting.take(self.errors.room());
                self.errors.leave_out(n_waiting - shown.len());
                let paths: Vec<_> = shown
                    .map(|instance| {
                        let target = &lookup.targets[usize::from(instance.target)];
                        self.map_path(target.shape, instance.record, path)
                    })
                    .collect();
                let error = self.client_error(error);
                for path in paths {
                    self.push(error.clone().at(path));
                }
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

    /// Tells of an error before the client learns no more than that there was one.
    fn tell_masked(&self, error: &SubgraphError<'_>) {
        if self.shows_errors {
            return;
        }
        let max = self.store.limits().error_message_bytes_max;
        let mut path = String::new();
        for step in error.path.iter().flatten() {
            if path.len() >= max {
                break;
            }
            if !path.is_empty() {
                path.push('.');
            }
            match step {
                Step::Key(key) => path.push_str(clip(key, max)),
                Step::Index(index) => path.push_str(&index.to_string()),
            }
        }
        (self.masked)(MaskedError {
            code: error.code.as_deref().map(|code| clip(code, max)),
            message: clip(error.message.as_deref().unwrap_or_default(), max),
            path,
        });
    }

    fn client_error(&self, error: SubgraphError<'_>) -> GraphqlError<'p> {
        if !self.shows_errors {
            let message = "The subgraph reported an error.";
            return GraphqlError::new(codes::DOWNSTREAM_SERVICE_ERROR, message);
        }
        let message = error.message.as_deref();
        let message = message.unwrap_or("The subgraph reported an error without a message.");
        let message = clip(message, self.store.limits().error_message_bytes_max).to_owned();
        let code = match error.code {
            Some(code) => {
                let max = self.store.limits().error_code_bytes_max;
                Cow::Owned(clip(&code, max).to_owned())
            }
            None => Cow::Borrowed(codes::DOWNSTREAM_SERVICE_ERROR),
        };
        GraphqlError {
            message: Cow::Owned(message),
            path: None,
            code,
            service: None,
            extensions: error.extensions.into(),
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
        for instance in self.gathered.lookups[lookup].instances.iter() {
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
        for instance in self.gathered.lookups[lookup].instances.iter() {
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
        let stage = Stage::Fetch(self.source.rank());
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
