//! What running requests teach the planner: which subgraphs are slow.
//!
//! Every answer of a subgraph moves its running average. Every so many answers the averages are put into steps, each
//! twice as slow as the one below; if some subgraph has moved to another step, a new *epoch* begins, with a snapshot for
//! the planner ([`Measured`]). Plans of another epoch are made anew in the background ([`crate::schema::refine`]), and serve
//! until then. A subgraph leaves its step only when it is well beyond the edge, so plans do not go back and forth.

use std::{
    cell::RefCell,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use arc_swap::ArcSwap;
use http::HeaderMap;
use ogive_config::Config;
use ogive_planner::Measured;
use ogive_transport::{Answered, Observer};

/// The slowest step; it has no upper edge.
const STEP_MAX: u8 = 12;
/// Upper edge of the fastest step, in microseconds.
const STEP_MICROS: u64 = 2_000;
/// Weight of the newest answer in the average: one part of so many.
const WEIGHT: u64 = 16;
/// Answers of a subgraph before it counts.
const ANSWERS_MIN: u64 = 16;

/// One snapshot.
#[derive(Debug, Default)]
pub struct Epoch {
    /// Grows by one with every new snapshot.
    pub number: u64,
    /// What the planner gets; nothing before the first.
    pub measured: Option<Arc<Measured>>,
}

/// What was learnt with one schema; as large as its list of subgraphs.
#[derive(Debug)]
pub struct Feedback {
    /// Answers between two looks at the averages; `None`: nothing is learnt.
    every: Option<u64>,
    names: Box<[Box<str>]>,
    averages: Box<[Average]>,
    answers: AtomicU64,
    epoch: ArcSwap<Epoch>,
    /// One look at a time.
    looking: Mutex<()>,
}

#[derive(Debug, Default)]
struct Average {
    micros: AtomicU64,
    answers: AtomicU64,
}

impl Feedback {
    /// Nothing learnt yet about these subgraphs.
    pub fn new<'n>(config: &Config, names: impl Iterator<Item = &'n str>) -> Self {
        let feedback = &config.query_planning.feedback;
        let names: Box<[Box<str>]> = names.map(Into::into).collect();
        Feedback {
            every: feedback.enabled.then(|| feedback.answers.get() as u64),
            averages: names.iter().map(|_| Average::default()).collect(),
            names,
            answers: AtomicU64::new(0),
            epoch: ArcSwap::default(),
            looking: Mutex::default(),
        }
    }
    /// Whether anything is learnt.
    pub fn is_on(&self) -> bool {
        self.every.is_some()
    }
    /// The newest snapshot.
    pub fn epoch(&self) -> Arc<Epoch> {
        self.epoch.load_full()
    }
    /// The number of the newest snapshot.
    pub(crate) fn number(&self) -> u64 {
        self.epoch.load().number
    }
    /// Answers of a subgraph so far.
    pub fn answers_of(&self, subgraph: u32) -> u64 {
        let average = self.averages.get(subgraph as usize);
        average.map_or(0, |a| a.answers.load(Ordering::Relaxed))
    }

    /// A subgraph has answered.
    pub fn answered(&self, subgraph: u32, took: Duration) {
        let (Some(every), Some(average)) = (self.every, self.averages.get(subgraph as usize))
        else {
            return;
        };
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX) / WEIGHT;
        let first = average.answers.fetch_add(1, Ordering::Relaxed) == 0;
        let next = |old: u64| {
            if first {
                Some(micros * WEIGHT)
            } else {
                Some(old - old / WEIGHT + micros)
            }
        };
        let _ = average
            .micros
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        if self.answers.fetch_add(1, Ordering::Relaxed) % every == every - 1 {
            self.look();
        }
    }

    /// Begins a new epoch if a subgraph has left its step.
    fn look(&self) {
        let _one = self.looking.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.epoch();
        let old = before.measured.as_deref();
        let step_of = |(at, average): (usize, &Average)| {
            let old = old.map_or(0, |measured| measured.slowness_of(at as u32));
            if average.answers.load(Ordering::Relaxed) < ANSWERS_MIN {
                old
            } else {
                step(old, average.micros.load(Ordering::Relaxed))
            }
        };
        let slowness: Vec<u8> = self.averages.iter().enumerate().map(step_of).collect();
        let same = match old {
            Some(measured) => measured.slowness == slowness,
            None => slowness.iter().all(|step| *step == 0),
        };
        if same {
            return;
        }
        let number = before.number + 1;
        tracing::debug!(epoch = number, ?slowness, "subgraphs changed their pace");
        let measured = Measured {
            slowness,
            ..Measured::default()
        };
        self.epoch.store(Arc::new(Epoch {
            number,
            measured: Some(Arc::new(measured)),
        }));
    }

    /// Goes on with what was learnt under the schema before, if the subgraphs are the same; else forgets it, with a
    /// number of its own, so that plans that rest on it are made anew.
    pub(crate) fn go_on(&mut self, before: &Feedback) {
        let epoch = before.epoch();
        if self.names != before.names || self.every != before.every {
            if epoch.number > 0 {
                self.epoch.store(Arc::new(Epoch {
                    number: epoch.number + 1,
                    measured: None,
                }));
            }
            return;
        }
        for (now, then) in self.averages.iter().zip(&before.averages) {
            let copy = |to: &AtomicU64, from: &AtomicU64| {
                to.store(from.load(Ordering::Relaxed), Ordering::Relaxed);
            };
            copy(&now.micros, &then.micros);
            copy(&now.answers, &then.answers);
        }
        self.epoch.store(epoch);
    }
}

/// The step of an average, given the one before: it stays unless the average is a quarter beyond its edges.
fn step(old: u8, micros: u64) -> u8 {
    let upper = |step: u8| {
        if step >= STEP_MAX {
            u64::MAX
        } else {
            STEP_MICROS << step
        }
    };
    let lower = match old {
        0 => 0,
        step => upper(step - 1),
    };
    let stays = micros <= upper(old).saturating_add(upper(old) / 4) && micros >= lower - lower / 4;
    if stays {
        old
    } else {
        (0..STEP_MAX)
            .find(|s| micros <= upper(*s))
            .unwrap_or(STEP_MAX)
    }
}

/// Times the requests of one operation, and passes everything on.
pub(crate) struct Timed<'a> {
    feedback: &'a Feedback,
    next: Option<&'a dyn Observer>,
    /// By number: the number of the next observer, the subgraph, and when it was asked.
    asked: RefCell<Vec<(u32, u32, Instant)>>,
}

impl<'a> Timed<'a> {
    pub(crate) fn new(feedback: &'a Feedback, next: Option<&'a dyn Observer>) -> Self {
        Timed {
            feedback,
            next,
            asked: RefCell::default(),
        }
    }
}

impl Observer for Timed<'_> {
    fn asked(&self, subgraph: u32) -> u32 {
        let theirs = self.next.map_or(0, |next| next.asked(subgraph));
        let mut asked = self.asked.borrow_mut();
        asked.push((theirs, subgraph, Instant::now()));
        asked.len() as u32 - 1
    }
    fn sending(&self, number: u32, headers: &mut HeaderMap) {
        let asked = self.asked.borrow();
        if let (Some(next), Some((theirs, ..))) = (self.next, asked.get(number as usize)) {
            next.sending(*theirs, headers);
        }
    }
    fn sent(&self, number: u32, headers: &HeaderMap) {
        let asked = self.asked.borrow();
        if let (Some(next), Some((theirs, ..))) = (self.next, asked.get(number as usize)) {
            next.sent(*theirs, headers);
        }
    }
    fn answered_with(&self, number: u32, headers: &HeaderMap) {
        let asked = self.asked.borrow();
        if let (Some(next), Some((theirs, ..))) = (self.next, asked.get(number as usize)) {
            next.answered_with(*theirs, headers);
        }
    }
    fn identity(&self, to: &mut Vec<u8>) {
        if let Some(next) = self.next {
            next.identity(to);
        }
    }
    fn answered(&self, number: u32, answered: Answered) {
        let asked = self.asked.borrow();
        let Some((theirs, subgraph, since)) = asked.get(number as usize) else {
            return;
        };
        // A refusal can be fast and an end of patience slow; neither says how fast answers are.
        if let Answered::Status(200, _) = answered {
            self.feedback.answered(*subgraph, since.elapsed());
        }
        if let Some(next) = self.next {
            next.answered(*theirs, answered);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_left_only_well_beyond_its_edges() {
        assert_eq!(step(0, 1_999), 0);
        // 2 ms is the edge; the average has to be beyond 2.5 ms, and then below 1.5 ms.
        assert_eq!(step(0, 2_400), 0);
        assert_eq!(step(0, 2_600), 1);
        assert_eq!(step(1, 2_400), 1);
        assert_eq!(step(1, 1_600), 1);
        assert_eq!(step(1, 1_400), 0);
        assert_eq!(step(0, 100_000), 6);
        assert_eq!(step(0, u64::MAX), STEP_MAX);
        assert_eq!(step(STEP_MAX, u64::MAX), STEP_MAX);
        assert_eq!(step(STEP_MAX, 0), 0);
    }
}
