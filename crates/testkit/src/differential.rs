//! The differential test: one operation, answered by the monolith and by the gateway, must agree to the byte.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::{Map, Value as Json};

use crate::{
    engines::Engines,
    faults::{Fault, FaultKind},
    graph::Model,
    ops::{Op, RUN, features::features},
    pipeline::{Answer, Gateway, Mode, labels_are_on, split},
    schemas::Schemas,
    world::World,
};

/// A graph made ready to answer operations.
#[derive(Debug)]
pub struct Bench {
    /// Its data.
    pub world: Arc<World>,
    /// Its schemas, read by the product.
    pub schemas: Schemas,
    /// Its engines.
    pub engines: Engines,
}

/// How one operation went wrong.
#[derive(Clone, Debug)]
pub struct Mismatch {
    /// A few words that stay the same while shrinking: what kind of failure it is.
    pub kind: String,
    /// The whole story.
    pub report: String,
    /// The request that failed.
    pub lost: Option<Fault>,
}

impl Bench {
    /// Prepares a graph under a seed.
    pub fn new(model: &Model, seed: u64) -> Result<Bench, String> {
        Self::with_faults(model, seed, 0)
    }

    /// The same with resolvers that fail, this many of 1,000.
    pub fn with_faults(model: &Model, seed: u64, faults_per_mille: u64) -> Result<Bench, String> {
        let world = Arc::new(World::with_faults(model, seed, faults_per_mille));
        Ok(Bench {
            schemas: Schemas::read(model)?,
            engines: Engines::new(&world)?,
            world,
        })
    }

    /// What the monolith answers: `data` and `errors`.
    pub fn expected(
        &self,
        document: &str,
        variables: &str,
    ) -> Result<(String, Option<String>), String> {
        let variables: Map<String, Json> =
            serde_json::from_str(variables).map_err(|e| format!("variables: {e}"))?;
        self.world.reset();
        let answer = self.engines.monolith.execute(
            document,
            operation_name(document),
            &variables,
            &Default::default(),
        );
        split(&answer.body)
    }

    /// What the gateway answers.
    pub fn actual(&self, document: &str, variables: &str, seed: u64) -> Result<Answer, String> {
        self.world.reset();
        self.world.label(labels_are_on(seed));
        Gateway::new(&self.schemas, &self.engines).answer(document, variables, seed, None)
    }

    /// Runs an operation again while one of its requests fails: what is left must be the whole answer with values made
    /// null, and an error at each of them or below it (unless values are computed from others). Answers how many requests were sent.
    pub fn compare_without(
        &self,
        op: &Op,
        seed: u64,
        whole: &Answer,
        fails: Fault,
    ) -> Result<usize, Mismatch> {
        // What a subgraph computes from a required value that never came is its own affair.
        let computes = features(self.world.model(), op).contains("field with @requires");
        let op = (&*op.document(), &*op.variables_json(), computes);
        self.compare_without_text(op, seed, whole, fails)
    }

    /// The same for document, variables, and whether values are computed from others.
    pub fn compare_without_text(
        &self,
        (document, variables, computes): (&str, &str, bool),
        seed: u64,
        whole: &Answer,
        fails: Fault,
    ) -> Result<usize, Mismatch> {
        let fail = |report: String| Mismatch {
            kind: "a request that fails".to_owned(),
            report: format!(
                "request {fails} of {:?}\n{report}\n{}",
                whole.requests, whole.plan
            ),
            lost: Some(fails),
        };
        self.world.reset();
        self.world.label(labels_are_on(seed));
        let answer = Gateway::new(&self.schemas, &self.engines)
            .answer(document, variables, seed, Some(fails))
            .map_err(fail)?;
        // Those who were asked for one union do not agree about it, and one of them is not heard any more.
        if self.world.is_ambiguous() {
            return Ok(answer.requests.len());
        }
        let read = |text: &str| serde_json::from_str::<Json>(text).unwrap_or_default();
        let (all, some) = (read(&whole.data), read(&answer.data));
        let errors = answer.errors.as_deref().map(read).unwrap_or_default();
        let story = || format!("whole: {}\nleft:  {}", whole.data, answer.data);
        if !computes && !is_nulled(&all, &some) {
            return Err(fail(format!(
                "it is not the answer with nulls\n{}",
                story()
            )));
        }
        if answer.data != whole.data && answer.errors.is_none() {
            return Err(fail(format!("there is no error\n{}", story())));
        }
        let is_whole = |error: &Json| error["extensions"]["code"] != "ERRORS_TRUNCATED";
        let paths = errors.as_array().into_iter().flatten();
        let complete = paths.clone().all(is_whole);
        let paths: Vec<&[Json]> = paths
            .filter_map(|error| error["path"].as_array().map(Vec::as_slice))
            .collect();
        let silent = find_null((&all, &some), &mut Vec::new(), &|place| {
            paths.iter().any(|path| path.starts_with(place))
        });
        if let (Some(place), false, true) = (silent, computes, complete) {
            return Err(fail(format!(
                "no error is told at {place:?} or below\n{errors}\n{}",
                story()
            )));
        }
        // What is asked again on its own takes nothing else with it.
        let elsewhere = find_null((&all, &some), &mut Vec::new(), &|place| {
            let mut failed = answer.failed_roots.iter();
            place
                .first()
                .is_none_or(|first| failed.any(|key| first == key))
        });
        if let (Some(place), FaultKind::Root, false) =
            (elsewhere, fails.kind, answer.failed_roots.is_empty())
        {
            return Err(fail(format!(
                "{:?} fail and take {place:?} with them\n{errors}\n{}",
                answer.failed_roots,
                story()
            )));
        }
        let told = nulled(&answer.data, answer.errors.as_deref());
        if let Some(place) = told.iter().find(|place| place.ends_with(NOT_NULL)) {
            let errors = answer.errors.as_deref().unwrap_or("none");
            return Err(fail(format!(
                "an error is told at {place}\n{errors}\n{}",
                story()
            )));
        }
        if let Some(complaint) = answer.complaints.first() {
            return Err(fail(format!("a subgraph complains: {complaint}")));
        }
        Ok(answer.requests.len())
    }

    /// Holds one operation against the monolith.
    pub fn compare(&self, op: &Op, seed: u64) -> Result<Answer, Mismatch> {
        self.compare_text(&op.document(), &op.variables_json(), seed)
    }

    /// Holds one operation against the monolith.
    pub fn compare_text(
        &self,
        document: &str,
        variables: &str,
        seed: u64,
    ) -> Result<Answer, Mismatch> {
        self.compare_in(document, variables, seed, &[Mode::by_seed(seed)])
    }

    /// The same in several modes, planned once. Gives the answer in the first of them.
    pub fn compare_in(
        &self,
        document: &str,
        variables: &str,
        seed: u64,
        modes: &[Mode],
    ) -> Result<Answer, Mismatch> {
        let fail = |kind: &str, report: String| Mismatch {
            kind: kind.to_owned(),
            report: format!("{kind}\n{report}"),
            lost: None,
        };
        let (data, errors) = self
            .expected(document, variables)
            .map_err(|e| fail("the monolith fails", e))?;
        if let Some(errors) = &errors
            && !self.world.has_faults()
            && !self.world.is_disputed()
        {
            return Err(fail("the monolith has errors", errors.clone()));
        }
        let stopped = |e: String| {
            let stop = e.split(':').next().unwrap_or_default();
            // Plans are refused for several reasons.
            let words = |line: &str| line.split('`').step_by(2).collect::<Vec<_>>().join("_");
            let why = match (stop, e.lines().next()) {
                ("plan", Some(line)) => words(line),
                _ => stop.to_owned(),
            };
            fail(&format!("the gateway fails at {why}"), e)
        };
        let gateway = Gateway::new(&self.schemas, &self.engines);
        let prepared = gateway
            .prepare(document, variables, seed)
            .map_err(stopped)?;
        let mut first = None;
        self.world.label(labels_are_on(seed));
        for mode in modes {
            self.world.reset();
            self.world.forget();
            let answer = gateway.execute(&prepared, *mode, seed, None);
            if self.world.is_ambiguous() {
                // One union, served by different subgraphs at different places: a monolith has but one value for it.
                first = first.or_else(|| answer.ok());
                continue;
            }
            let answer = answer.map_err(|e| stopped(format!("{e}\n{mode:?}")))?;
            let (data, errors) = if self.world.is_disputed() {
                self.expected(document, variables)
                    .map_err(|e| fail("the monolith fails", e))?
            } else {
                (data.clone(), errors.clone())
            };
            self.agree(&answer, &data, errors.as_deref(), *mode)?;
            first.get_or_insert(answer);
        }
        Ok(first.unwrap_or_default())
    }

    /// Holds an answer against the monolith's.
    fn agree(
        &self,
        answer: &Answer,
        data: &str,
        errors: Option<&str>,
        mode: Mode,
    ) -> Result<(), Mismatch> {
        let fail = |kind: &str, report: String| Mismatch {
            kind: kind.to_owned(),
            report: format!("{kind}, {mode:?}\n{report}"),
            lost: None,
        };
        let context = || {
            let requests: Vec<String> = answer
                .requests
                .iter()
                .map(|(name, body)| format!("{name} <- {body}"))
                .collect();
            format!(
                "{}\nexpected: {data}\nactual:   {}\nerrors:   {}\n{}\n\n{}",
                first_difference(data, &answer.data),
                answer.data,
                answer.errors.as_deref().unwrap_or("none"),
                requests.join("\n"),
                answer.plan
            )
        };
        if let Some(complaint) = answer.complaints.first() {
            let kind = format!("a subgraph complains: {}", anonymous(complaint));
            return Err(fail(&kind, format!("{complaint}\n{}", context())));
        }
        if answer.data != data {
            return Err(fail("data differs", context()));
        }
        if nulled(data, answer.errors.as_deref()) != nulled(data, errors) {
            let wanted = errors.unwrap_or("none");
            return Err(fail(
                "errors differ",
                format!("expected errors: {wanted}\n{}", context()),
            ));
        }
        Ok(())
    }
}

/// The operation to run, which a document of several has to name.
pub fn operation_name(document: &str) -> Option<&'static str> {
    let head = |kind: &str| document.contains(&format!("{kind} {RUN}"));
    (head("query") || head("mutation")).then_some(RUN)
}

/// Whether `some` is `all` with values made null: the same keys in the same order, lists of the same length.
fn is_nulled(all: &Json, some: &Json) -> bool {
    match (all, some) {
        (_, Json::Null) => true,
        (Json::Array(a), Json::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_nulled(a, b))
        }
        (Json::Object(a), Json::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .zip(b)
                    .all(|((k, a), (l, b))| k == l && is_nulled(a, b))
        }
        (a, b) => a == b,
    }
}

/// The first place that has become null, of those that are not as they should be.
fn find_null(
    (all, some): (&Json, &Json),
    place: &mut Vec<Json>,
    is_right: &dyn Fn(&[Json]) -> bool,
) -> Option<Vec<Json>> {
    let mut below = |step: Json, pair| {
        place.push(step);
        let found = find_null(pair, place, is_right);
        place.pop();
        found
    };
    match (all, some) {
        (Json::Null, _) => None,
        (_, Json::Null) => (!is_right(place)).then(|| place.clone()),
        (Json::Array(all), Json::Array(some)) => {
            let mut pairs = all.iter().zip(some).enumerate();
            pairs.find_map(|(at, pair)| below(Json::from(at), pair))
        }
        (Json::Object(all), Json::Object(some)) => all
            .iter()
            .find_map(|(key, value)| below(Json::from(&**key), (value, some.get(key)?))),
        _ => None,
    }
}

/// What is said of a place with a value that an error names.
const NOT_NULL: &str = " is not null";

/// The places that errors made null. Several errors below one null place count once: an executor may stop at the
/// first or report them all (specification 6.4.4).
fn nulled(data: &str, errors: Option<&str>) -> BTreeSet<String> {
    let data: Json = serde_json::from_str(data).unwrap_or_default();
    let errors: Vec<Json> = errors
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default();
    let mut out = BTreeSet::new();
    for error in &errors {
        let mut place = String::new();
        let mut value = &data;
        for segment in error["path"].as_array().into_iter().flatten() {
            value = match (value, segment) {
                (Json::Object(map), Json::String(key)) => map.get(key).unwrap_or(&Json::Null),
                (Json::Array(items), Json::Number(index)) => index
                    .as_u64()
                    .and_then(|i| items.get(i as usize))
                    .unwrap_or(&Json::Null),
                _ => break,
            };
            place.push_str(&format!("/{segment}"));
        }
        if !value.is_null() && !place.is_empty() {
            place.push_str(NOT_NULL);
        }
        out.insert(place);
    }
    out
}

/// The neighbourhood of the first byte that differs.
fn first_difference(expected: &str, actual: &str) -> String {
    let at = expected
        .bytes()
        .zip(actual.bytes())
        .position(|(a, b)| a != b)
        .unwrap_or_else(|| expected.len().min(actual.len()));
    if at == expected.len() && at == actual.len() {
        return String::new();
    }
    let window = |text: &str| {
        let bytes = text.as_bytes();
        let start = at.saturating_sub(60).min(bytes.len());
        let end = (at + 60).min(bytes.len());
        String::from_utf8_lossy(&bytes[start..end]).into_owned()
    };
    format!(
        "first difference at byte {at}:\n  expected ...{}...\n  actual   ...{}...",
        window(expected),
        window(actual)
    )
}

/// The first line of a message without the names in it, so that messages of one kind are equal.
fn anonymous(message: &str) -> String {
    let line = message.lines().next().unwrap_or_default();
    let line = line.split_once(": ").map_or(line, |(_, rest)| rest);
    line.split('"').step_by(2).collect::<Vec<_>>().join("_")
}
