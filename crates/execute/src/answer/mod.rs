//! What becomes of a subgraph's answer: its data goes to the store, its errors to client paths, and whatever did not
//! come is marked as failed, so that it turns null without a second error.
//!
//! Policy: an answer whose HTTP status is not 2xx gives errors only. `_entities` lists must have exactly one item per
//! representation, because otherwise items cannot be told apart; a list of another length is refused as a whole. A
//! null item is no error by itself: its fields are null.
//!
//! Whatever goes wrong here is told to operators when the answer has been read ([`crate::failure_report`]).
//!
//! Start here for: [`absorb`] (entry), `absorb_body`, `distribute_all` (subgraph path to client path, with [`places`]).

mod places;
mod value_places;

use std::{
    borrow::Cow,
    cell::{Cell, OnceCell},
};

use bytes::Bytes;
use ogive_base::FastSet;
use ogive_failure::codes;
use ogive_json::{Kind, Scanner};
use ogive_plan::{Fetch, FetchId, LayoutId, Lookup, ShapeId};

use self::places::{PathEnd, Places};
use crate::{
    condition::Conditions,
    envelope::{Envelope, Part, Step, SubgraphError, find_lookups},
    errors::{Errors, Stage},
    failure_report::FailureReport,
    gather::{Gathered, Instance},
    graphql_error::GraphqlError,
    limits::{ExecuteLimits, ExecuteOptions},
    reuse::{Entities, ReuseState},
    scan::{
        Reader,
        entities::{Data, Lookups, Outcome, SentLookups},
        fail_fields,
        lookups::read_entity,
        partial::{Hints, PartialMatch, ReaderHints},
    },
    stop::{KeyComparisons, LimitReached, Stop},
    store::{RawRange, RecordId, Source, Store},
    transport::{Failure, SubgraphResponse},
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
    /// Who learns of everything that goes wrong.
    pub(crate) failed: &'s dyn Fn(&FailureReport<'_>),
    pub(crate) source: Source,
    /// The fetch of the plan, of which the answered one may be a part.
    pub(crate) whole: FetchId,
    /// Whether this is the only answer.
    pub(crate) is_only: bool,
    pub(crate) fetch: &'p Fetch,
    pub(crate) gathered: &'s Gathered,
    /// What was found out about the answer while it arrived.
    pub(crate) head: Option<Box<PartialMatch<'p>>>,
    /// Where to say what others can reuse.
    pub(crate) entities: Option<&'s mut Entities>,
    /// Whether the root part was asked.
    pub(crate) root: bool,
    /// Bytes that further answers may have.
    pub(crate) bytes_left: usize,
    /// How many objects may still be looked at for the places of errors; none before the first.
    pub(crate) looks_left: Cell<Option<usize>>,
    /// What fetches behind this one bring: of which objects, and as what. Found out when it is asked for.
    pub(crate) dependents: OnceCell<Vec<(LayoutId, ShapeId)>>,
}

/// Takes in the result of a fetch.
pub(crate) fn absorb(this: &mut Absorb<'_, '_>, result: Result<SubgraphResponse, Failure>) {
    match result {
        Ok(response) => {
            this.absorb_response(&response);
            if this.errors.has_news() {
                this.tell(Some((response.status, &response.body)));
            }
        }
        Err(error) => {
            let shown = this.shows_errors.then_some(error.message);
            this.fail_fetch(GraphqlError {
                cause: Some(Cow::Owned(error.detail)),
                ..GraphqlError::new(error.code, shown_or_masked(shown))
            });
            this.tell(None);
        }
    }
}

/// What a client reads of a request to a subgraph that failed, if it may not see why; the code says more.
const MASKED_MESSAGE: &str = "A request to a subgraph failed.";

/// A message that only those see who may see what is wrong with subgraphs.
fn shown_or_masked(shown: Option<String>) -> Cow<'static, str> {
    shown.map_or(Cow::Borrowed(MASKED_MESSAGE), Cow::Owned)
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
    let (plan, limits) = (reader.store.plan(), reader.store.limits());
    // Many entities are of the same answer.
    let (mut read_from, mut answer) = (None, Bytes::new());
    for (at, (lookup, asked)) in gathered.lookups.iter().zip(&fetch.lookups).enumerate() {
        let (mut of_target, mut reuse_sources) = (None, &[][..]);
        for (held, instance) in &lookup.held {
            if of_target != Some(instance.target) {
                of_target = Some(instance.target);
                let target = usize::from(instance.target);
                reuse_sources = plan.reusable().sources.of(whole, at, target);
            }
            let store = &mut *reader.store;
            let layout = store.layout(*held);
            let reuse_source = reuse_sources
                .iter()
                .find(|reuse_source| reuse_source.layout == layout);
            let (theirs, ours) = (store.slots(*held), store.slots(instance.record));
            for (from, to) in reuse_source
                .iter()
                .flat_map(|reuse_source| &reuse_source.values)
            {
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
            reader.duplicates.restart();
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
    fn absorb_response(&mut self, response: &SubgraphResponse) {
        let (limits, body) = (self.store.limits(), &response.body);
        if let Err(limit) = check_size(body, limits, self.bytes_left) {
            return self.fail_fetch(too_large(limit));
        }
        if (200..300).contains(&response.status) {
            return self.absorb_body(body);
        }
        let (errors, beyond) = match Envelope::read(body, limits) {
            Ok(envelope) => envelope
                .errors(body, limits, self.options, self.error_extensions)
                .unwrap_or_default(),
            Err(_) => Default::default(),
        };
        if errors.is_empty() {
            let message = format!(
                "The subgraph answered with HTTP status {}.",
                response.status
            );
            let shown = self.shows_errors.then(|| message.clone());
            return self.fail_fetch(GraphqlError {
                cause: Some(Cow::Owned(message)),
                ..GraphqlError::new(codes::SUBREQUEST_HTTP_ERROR, shown_or_masked(shown))
            });
        }
        self.mark_failed();
        self.distribute_all((errors, beyond), &mut FastSet::default());
    }

    /// Tells operators what is new, with the answer it comes from.
    pub(crate) fn tell(&mut self, answer: Option<(u16, &Bytes)>) {
        let answer = answer.map(|(status, body)| (status, &**body));
        for noted in self.errors.take_news() {
            (self.failed)(&noted.failure(Some(self.fetch.subgraph), answer));
        }
    }

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
        let limits = self.store.limits();
        let before = (self.store.begin(), self.errors.mark());
        let mut data = Data::new(self.fetch.lookups.len());
        let read = Envelope::read_with(body, limits, |scanner| self.read_data(scanner, &mut data));
        let read = match read {
            Ok(envelope) => Ok((envelope, None)),
            // What was read so far stays, provided that the answer is well-formed.
            Err(Stop::Limit(limit)) => {
                Envelope::read(body, limits).map(|envelope| (envelope, Some(limit)))
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
                let error = Envelope::read(sent, limits).err().unwrap_or(error);
                let message = format!("The subgraph's answer is not a GraphQL response: {error}.");
                let shown = self.shows_errors.then(|| message.clone());
                return self.fail_fetch(GraphqlError {
                    cause: Some(Cow::Owned(message)),
                    ..malformed(shown_or_masked(shown))
                });
            }
        };
        self.store.commit();
        self.place_kept();
        let errors = envelope.errors(body, limits, self.options, self.error_extensions);
        let wrong = match errors {
            Some(_) => "The subgraph's answer has no data.",
            None => "The subgraph's answer has a malformed list of errors.",
        };
        let is_malformed = errors.is_none();
        let (errors, beyond) = errors.unwrap_or_default();
        // What the subgraph explained needs no further explanation.
        let explained = !errors.is_empty();
        let has_data = envelope.has_data();
        if let Some(limit) = limit {
            self.fail_fetch(too_large(limit));
        } else if has_data {
            if is_malformed {
                self.place_unplaced(None, vec![malformed(wrong)]);
            }
            self.explain_outcomes(&data.outcomes, explained);
        } else if explained {
            self.mark_failed();
        } else {
            self.fail_fetch(malformed(wrong));
        }
        if let (None, false, Some(entities)) = (limit, explained, &mut self.entities) {
            for (ticket, range) in data.entities {
                let entity = RawRange::unchecked(self.source, range);
                entities.settle(ticket, ReuseState::Answered(self.source, entity));
            }
            if has_data && self.is_only {
                entities.answered_well(self.source.fetch());
            }
        }
        if explained || beyond > 0 {
            self.distribute_all((errors, beyond), &mut data.nulls);
        }
        if !explained && has_data && !data.nulls.is_empty() {
            self.note_missing(&data.nulls);
        }
    }

    /// Notes entities that the subgraph does not know. Nothing is wrong with the response, but references lead nowhere.
    fn note_missing(&mut self, nulls: &FastSet<(usize, u32)>) {
        let Some((at, item)) = nulls.iter().min().copied() else {
            return;
        };
        let waiting = self.gathered.lookups[at].waiting_for(item).first();
        let path = waiting.and_then(|instance| self.store.visible_path(instance.record));
        let message = "The subgraph does not know an entity that another one refers to.";
        let error = GraphqlError::new(codes::SUBREQUEST_MISSING_ENTITY, message);
        let error = error.at(path.unwrap_or_default());
        let places = u32::try_from(nulls.len()).unwrap_or(u32::MAX);
        self.errors.note(&error, places);
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
                let lookups = find_lookups(
                    scanner,
                    self.fetch,
                    &mut KeyComparisons::new(self.store.limits()),
                )?;
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
    fn asked(&self) -> SentLookups<'s> {
        let facts = &self.store.plan().derived().lookups[self.whole];
        SentLookups {
            lookups: &self.fetch.lookups,
            facts,
            gathered: &self.gathered.lookups,
        }
    }

    /// ScanPartial-ups whose answer is `data` itself, of those that were sent.
    fn reentries(&self) -> impl Iterator<Item = usize> + use<'_, 'p> {
        let lookups = self.fetch.lookups.iter().zip(&self.gathered.lookups);
        let sent =
            lookups.map(|(lookup, gathered)| lookup.is_reentry() && gathered.n_representations > 0);
        sent.enumerate().filter(|(_, sent)| *sent).map(|(at, _)| at)
    }

    /// The re-entries that asked for the root field under this response key.
    fn reentries_of(&self, key: &str) -> Vec<usize> {
        let plan = self.store.plan();
        let asked = |at: &usize| {
            let mut targets = self.fetch.lookups[*at].targets.iter();
            targets.any(|t| plan.shapes[t.shape].fields.iter().any(|f| *f.key == *key))
        };
        self.reentries().filter(asked).collect()
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
            let mut places = self.places();
            for (lookup, asked) in gathered.lookups.iter().zip(&self.fetch.lookups) {
                for instance in lookup.known() {
                    let shape = asked.targets[usize::from(instance.target)].shape;
                    fail_fields(self.store, shape, instance.record);
                    if self.may_look() {
                        self.affected_of(shape, instance.record, &mut places);
                    }
                }
            }
            self.push_at(too_large(limit), places);
        }
        self.place_kept();
        if self.errors.has_news() {
            self.tell(None);
        }
    }

    /// Reports errors of objects where something is null because of them.
    fn place_kept(&mut self) {
        for kept in self.errors.take_kept() {
            let mut places = self.places();
            if !self.errors.is_full() {
                self.affected_of(kept.shape, kept.record, &mut places);
            }
            self.push_at(GraphqlError::new(kept.code, kept.message), places);
        }
    }

    fn reader(&mut self) -> Reader<'_, 'p> {
        let service = self.service();
        let conditions = self.conditions.for_patterns();
        let is_counted = self.store.counted.is_some();
        let mut reader = Reader::new(self.store, self.errors, self.source, service, conditions);
        reader.known = match self.head.as_mut() {
            Some(head) => Hints::Known(ReaderHints {
                head,
                received: None,
            }),
            None if is_counted => Hints::Counted,
            None => Hints::Nothing,
        };
        reader
    }

    /// Tells what the subgraph reports, and how many errors there are beyond.
    fn distribute_all(
        &mut self,
        (errors, beyond): (Vec<SubgraphError<'_>>, usize),
        nulls: &mut FastSet<(usize, u32)>,
    ) {
        let mut unplaced: Vec<(Option<usize>, Vec<GraphqlError<'p>>)> = Vec::new();
        for error in errors {
            if self.errors.is_full() {
                // Counted and told, but not worth the work.
                let error = self.client_error(error);
                self.push(error);
                continue;
            }
            let places = self.places_of(error.path.as_deref().unwrap_or_default(), nulls);
            let error = self.client_error(error);
            match places {
                Ok(places) => self.push_at(error, places),
                Err(lookup) => match unplaced.iter_mut().find(|(of, _)| *of == lookup) {
                    Some((_, errors)) => errors.push(error),
                    None => unplaced.push((lookup, vec![error])),
                },
            }
        }
        for (lookup, errors) in unplaced {
            self.place_unplaced(lookup, errors);
        }
        self.errors.leave_out(beyond);
    }

    /// Tells errors that do not say where they belong, but perhaps the look-up: the first of them wherever something is
    /// null that no other error of this answer explains, others where that begins.
    fn place_unplaced(&mut self, lookup: Option<usize>, errors: Vec<GraphqlError<'p>>) {
        let mut places = match lookup {
            None => self.affected(),
            Some(at) => {
                let mut places = self.places();
                self.affected_by(at, &mut places);
                places
            }
        };
        places.list.retain(|path| !self.errors.explains(path));
        places.is_guess = true;
        for error in errors {
            let rest = Places::guess(places.list.first().cloned());
            self.push_at(error, std::mem::replace(&mut places, rest));
        }
    }

    /// The places that one error of the subgraph concerns. If its path leads to a value, or nowhere: the look-up that it
    /// names all the same.
    fn places_of(
        &mut self,
        path: &[Step<'_>],
        nulls: &mut FastSet<(usize, u32)>,
    ) -> Result<Places<'p>, Option<usize>> {
        let Some(Step::Key(key)) = path.first() else {
            return Err(None);
        };
        let mut lookups = self.fetch.lookups.iter();
        let is_of = |lookup: &Lookup| !lookup.is_reentry() && *lookup.response_key == **key;
        if let Some(at) = lookups.position(is_of) {
            return self.places_in_lookup(at, path, nulls);
        }
        let mut places = self.places();
        let mut is_known = false;
        if let Some(root) = self.fetch.root.as_ref().filter(|_| self.root) {
            is_known = self.add_place((root.shape, Store::ROOT), path, &mut places);
        }
        // One value for all that asked, the root itself perhaps among them.
        let gathered = self.gathered;
        for at in self.reentries_of(key) {
            is_known = true;
            for instance in gathered.lookups[at].instances.iter() {
                if !self.may_look() {
                    break;
                }
                let target = &self.fetch.lookups[at].targets[usize::from(instance.target)];
                let object = (target.shape, instance.record);
                if !self.add_place(object, path, &mut places) {
                    self.affected_of(target.shape, instance.record, &mut places);
                }
            }
        }
        if is_known { Ok(places) } else { Err(None) }
    }

    /// The same of a path that begins with the key of a look-up.
    fn places_in_lookup(
        &mut self,
        at: usize,
        path: &[Step<'_>],
        nulls: &mut FastSet<(usize, u32)>,
    ) -> Result<Places<'p>, Option<usize>> {
        let (gathered, lookup) = (self.gathered, &self.fetch.lookups[at]);
        let (waiting, rest) = match path {
            [_, Step::Index(item), rest @ ..] => (gathered.lookups[at].waiting_for(*item), rest),
            _ => Default::default(),
        };
        if waiting.is_empty() {
            // It is not known whose it is.
            return Err(Some(at));
        }
        let shape = |instance: &Instance| lookup.targets[usize::from(instance.target)].shape;
        if nulls.remove(&(at, waiting[0].representation)) {
            for instance in waiting {
                fail_fields(self.store, shape(instance), instance.record);
            }
        }
        let mut places = self.places();
        for instance in waiting {
            if !self.may_look() {
                break;
            }
            let object = (shape(instance), instance.record);
            if rest.is_empty() || !self.add_place(object, rest, &mut places) {
                // All of it.
                self.affected_of(object.0, object.1, &mut places);
            }
        }
        Ok(places)
    }

    /// Adds the place of `steps` below an object; says whether they lead to something that is null.
    fn add_place(
        &mut self,
        (shape, record): (ShapeId, RecordId),
        steps: &[Step<'_>],
        places: &mut Places<'p>,
    ) -> bool {
        match self.map_path(shape, record, steps) {
            PathEnd::Place(path) => places.add(path),
            PathEnd::Hidden(needed) => self.affected_by_lack(needed, places),
            PathEnd::Nowhere => return false,
        }
        true
    }

    fn client_error(&self, error: SubgraphError<'_>) -> GraphqlError<'p> {
        let limits = self.store.limits();
        let said = error.message.as_deref();
        let said = said.unwrap_or("The subgraph reported an error without a message.");
        let said = clip(said, limits.error_message_bytes_max).to_owned();
        let code = match error.code {
            Some(code) => Cow::Owned(clip(&code, limits.error_code_bytes_max).to_owned()),
            None => Cow::Borrowed(codes::DOWNSTREAM_SERVICE_ERROR.as_str()),
        };
        if !self.shows_errors {
            let message = "The subgraph reported an error.";
            return GraphqlError {
                own_code: Some(code),
                cause: Some(Cow::Owned(said)),
                is_reported: true,
                ..GraphqlError::new(codes::SUBREQUEST_GRAPHQL_ERROR, message)
            };
        }
        GraphqlError {
            code,
            extensions: error.extensions.into(),
            is_reported: true,
            ..GraphqlError::new(codes::DOWNSTREAM_SERVICE_ERROR, said)
        }
    }

    /// Reports an error that concerns everything this fetch was to bring.
    pub(crate) fn fail_fetch(&mut self, error: GraphqlError<'p>) {
        self.mark_failed();
        let places = self.affected();
        self.push_at(error, places);
    }
    fn fail_lookup(&mut self, lookup: usize, message: &'static str) {
        self.mark_lookup_failed(lookup);
        let mut places = self.places();
        self.affected_by(lookup, &mut places);
        self.push_at(malformed(message), places);
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

    fn service(&self) -> Option<&'p str> {
        let name = self
            .store
            .plan()
            .subgraphs
            .get(self.fetch.subgraph as usize);
        name.filter(|_| self.options.error_service_names)
            .map(|name| &**name)
    }
    /// Reports an error at some places; without a path if there is none.
    fn push_at(&mut self, mut error: GraphqlError<'p>, places: Places<'p>) {
        error.is_unplaced = places.is_guess;
        if places.list.is_empty() {
            return self.push(error);
        }
        for path in places.list {
            self.push(error.clone().at(path));
        }
        self.errors.leave_out(places.beyond);
    }
    fn push(&mut self, mut error: GraphqlError<'p>) {
        error.service = self.service();
        let stage = Stage::Fetch(self.source.rank());
        self.errors.push(stage, error);
    }
}
