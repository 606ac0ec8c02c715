//! Overload: how many requests run at a time follows from how long they take, and when that is too many, those of low
//! classes are refused first.
//!
//! While a gateway or what is behind it keeps up, more requests at a time take no longer; beyond that they only wait for one
//! another. So the limit is raised while requests take about as long as they do idle, and lowered in the proportion in which
//! they take longer (the gradient). What they take idle is learnt while there are few, and never while the limit is
//! reached, or else a long overload would pass for normal; at the least limit nothing can be waited for but the work itself,
//! so there it is learnt, too.
//!
//! Only requests for which a subgraph was asked say how long requests take. What is refused, and what the gateway answers by
//! itself (`{ __typename }`, introspection), takes so much less that a few of them among others would make these look slow;
//! subscriptions and answers in parts go on behind what is measured. Of those that failed, and those whose clients have
//! left, nobody knows how long they would have taken: they count where they took too long already, or else clients with less
//! patience than requests take would keep an overload from being seen.
//!
//! A request is refused when its head has come, but has its place, and takes time, only when all of it has: how long that
//! takes is up to its client, and so is all of a request with files.
//!
//! Classes share the limit from the top. What higher ones need at a time is known from how many of them come (Little's
//! law); of that, what they do not use yet is kept free of lower ones, and always a small part, for those that come all at
//! once. Under overload the lower ones thus are refused before the higher ones feel it, and none waits.
//!
//! A client that has just been answered and asks again at once finds the place that it has left. A client that was refused
//! comes back after `retry-after`, and finds a place free only by luck. So while requests of a class find no place, each of
//! them draws a lot before it may have one of the upper half of the places. The part of lots that win follows from how many
//! winners find no place, so that places are free when winners come. Then each attempt of each client has the same chance.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use ogive_config::Config;
use ogive_edge::error::RequestError;
use ogive_selectors::Condition;
use ogive_telemetry::codes;

use crate::{
    admit::latency_sample::LatencySample,
    shared::selectors::{Selected, is_met},
};

/// What part of the limit is kept for all classes but the lowest together at least, as a fraction.
const KEPT_MIN: f64 = 0.3;
/// How long latencies are averaged at least...
const WINDOW: Duration = Duration::from_millis(100);
/// ... and over how many requests.
const WINDOW_REQUESTS: u64 = 20;
/// What part of a new limit is taken over at a time, as a fraction.
const STEP: f64 = 0.2;
/// The same for a lower one: what is let in beyond it waits.
const STEP_DOWN: f64 = 0.5;
/// What part of those that may have a place finds none, as a fraction, if the part of lots that win is right.
const BLOCKED: f64 = 0.15;
/// The smallest part of lots that win, as a fraction.
const WINS_MIN: f64 = 0.001;

/// What a configuration asks for.
#[derive(Clone, PartialEq, Debug)]
pub struct OverloadOptions {
    tolerance: f64,
    least: usize,
    most: usize,
    retry_after: u64,
    /// By name, the highest first.
    classes: Vec<(String, Option<Condition>)>,
}

impl OverloadOptions {
    /// `None` if it is off.
    pub fn new(config: &Config) -> Option<Self> {
        let overload = &config.traffic_shaping.router.overload;
        overload.enabled.then(|| OverloadOptions {
            tolerance: f64::from(overload.latency_percent.max(101)) / 100.0,
            least: overload.concurrency_min.get(),
            most: overload
                .concurrency_max
                .get()
                .max(overload.concurrency_min.get()),
            retry_after: overload.retry_after.0.as_secs().max(1),
            classes: {
                let classes = overload.classes.iter();
                let rows = classes.map(|class| (class.name.clone(), class.when.clone()));
                rows.collect()
            },
        })
    }

    /// How many places are kept for a class in any case.
    fn least_kept(&self, limit: f64) -> f64 {
        limit * KEPT_MIN / self.classes.len().max(1) as f64
    }
}

/// How many may run, of one process.
#[derive(Debug)]
pub(crate) struct Overload {
    options: OverloadOptions,
    started: Instant,
    running: AtomicUsize,
    limit: AtomicUsize,
    /// The highest first; the last are those of no class.
    classes: Vec<Class>,
    /// Of the window that is open.
    taken: AtomicU64,
    finished: AtomicU64,
    /// Most that ran at a time in it.
    most: AtomicUsize,
    judged: Mutex<Judged>,
}

/// What one class does and is to have.
#[derive(Debug, Default)]
struct Class {
    running: AtomicUsize,
    /// How many came in the window that is open, refused ones too.
    came: AtomicU64,
    /// How many of it are to find a place at a time.
    kept: AtomicUsize,
    lots: Lots,
}

/// The lots that requests of one class draw under overload.
#[derive(Debug)]
struct Lots {
    /// The part of them that win, of `u32::MAX`.
    win: AtomicU32,
    drawn: AtomicU64,
    /// Requests that may have a place, in the window that is open...
    winners: AtomicUsize,
    /// ... and those of them that found none.
    blocked: AtomicUsize,
}

/// What is known from windows that are over.
#[derive(Debug)]
struct Judged {
    limit: f64,
    /// What a request takes if it waits for no other, in nanoseconds; 0: not known.
    idle: f64,
    /// From how many windows, as far as that matters.
    learnt: u32,
    /// When the open window began, in nanoseconds.
    since: u64,
}

/// A request that was let in, until it is dropped.
#[derive(Debug)]
pub(crate) struct Running {
    overload: Arc<Overload>,
    class: usize,
    /// Since when it has a place; `None`: it is still coming.
    since: Option<u64>,
    sample: LatencySample,
}

impl Running {
    /// All of it has come: it takes its place, if it has none. What passes from now on is not its client's time, and a
    /// client that leaves from now on leaves because it waits.
    pub(crate) fn begin(&mut self) -> Result<(), RequestError> {
        if self.since.is_none() {
            if !self.overload.begin(self.class) {
                return Err(self.overload.refusal());
            }
            self.since = Some(self.overload.now());
            self.sample = LatencySample::AtLeast;
        }
        Ok(())
    }
    /// Files come while it runs: it takes the time that they take.
    pub(crate) fn has_files(&mut self) {
        self.sample = LatencySample::None;
    }
    /// It has its answer.
    pub(crate) fn answered(&mut self, sample: LatencySample) {
        if self.sample != LatencySample::None {
            self.sample = sample;
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let Some(since) = self.since else { return };
        let now = self.overload.now();
        if self.overload.counts(self.sample, now.saturating_sub(since)) {
            self.overload.finish(self.class, since, now);
        } else {
            self.overload.leave(self.class);
        }
    }
}

/// What the options ask for; what was there before goes on if they ask for the same.
pub(crate) fn overload(
    options: Option<&OverloadOptions>,
    before: Option<Arc<Overload>>,
) -> Option<Arc<Overload>> {
    let options = options?;
    let before = before.filter(|before| before.options == *options);
    Some(before.unwrap_or_else(|| Arc::new(Overload::new(options.clone()))))
}

impl Default for Lots {
    fn default() -> Self {
        Lots {
            win: AtomicU32::new(u32::MAX),
            drawn: AtomicU64::new(0),
            winners: AtomicUsize::new(0),
            blocked: AtomicUsize::new(0),
        }
    }
}

impl Lots {
    fn draw(&self) -> bool {
        // The numbers of SplitMix64: each is as likely as any other, whatever rhythm clients have.
        let nth = self.drawn.fetch_add(1, Ordering::Relaxed);
        let mut lot = nth.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        lot = (lot ^ (lot >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        lot = (lot ^ (lot >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((lot ^ (lot >> 31)) >> 32) as u32 <= self.win.load(Ordering::Relaxed)
    }

    /// Ends a window: fewer lots win if more winners than should found no place.
    fn adjust(&self) {
        let blocked = self.blocked.swap(0, Ordering::Relaxed) as f64;
        let winners = self.winners.swap(0, Ordering::Relaxed) as f64;
        if winners == 0.0 {
            return;
        }
        let room = BLOCKED - (blocked / winners).min(1.0);
        // More win at once when there is room: places that are free are wasted.
        let change = 1.0 + if room > 0.0 { 2.0 * room } else { room };
        let most = f64::from(u32::MAX);
        let win = f64::from(self.win.load(Ordering::Relaxed)) * change;
        self.win
            .store(win.clamp(most * WINS_MIN, most) as u32, Ordering::Relaxed);
    }
}

impl Class {
    /// How many places it is to find free.
    fn unused(&self) -> usize {
        let running = self.running.load(Ordering::Relaxed);
        self.kept.load(Ordering::Relaxed).saturating_sub(running)
    }
}

impl Overload {
    fn new(options: OverloadOptions) -> Self {
        // Half way, on a scale where twice as many is one step.
        let limit = (options.least as f64 * options.most as f64).sqrt();
        Overload {
            started: Instant::now(),
            running: AtomicUsize::new(0),
            limit: AtomicUsize::new(limit as usize),
            classes: {
                let kept = options.least_kept(limit).ceil() as usize;
                let class = |_| Class {
                    kept: AtomicUsize::new(kept),
                    ..Class::default()
                };
                (0..=options.classes.len()).map(class).collect()
            },
            taken: AtomicU64::new(0),
            finished: AtomicU64::new(0),
            most: AtomicUsize::new(0),
            judged: Mutex::new(Judged {
                limit,
                idle: 0.0,
                learnt: 0,
                since: 0,
            }),
            options,
        }
    }

    fn now(&self) -> u64 {
        self.started.elapsed().as_nanos() as u64
    }

    /// Lets a request in whose head has come, or refuses it. It has no place yet: many that never come as a whole would leave
    /// none to others.
    pub(crate) fn enter(
        self: &Arc<Self>,
        request: &impl Selected,
    ) -> Result<Running, RequestError> {
        let mut classes = self.options.classes.iter();
        let is_of = |(_, when): &(String, Option<Condition>)| {
            when.as_ref().is_none_or(|when| is_met(when, request))
        };
        let class = classes.position(is_of);
        let class = class.unwrap_or(self.options.classes.len());
        if !self.may_enter(class) {
            return Err(self.refusal());
        }
        Ok(Running {
            overload: Arc::clone(self),
            class,
            since: None,
            sample: LatencySample::None,
        })
    }

    /// Whether there is a place for one of a class, and its lot wins if it needs one.
    fn may_enter(&self, class: usize) -> bool {
        let running = self.running.load(Ordering::Relaxed);
        let places = self.places(class);
        let wins = self.classes.get(class).is_none_or(|class| {
            let wins = running < places / 2 || class.lots.draw();
            if wins {
                class.lots.winners.fetch_add(1, Ordering::Relaxed);
            }
            if wins && running >= places {
                class.lots.blocked.fetch_add(1, Ordering::Relaxed);
            }
            wins
        });
        let may = wins && running < places;
        if !may {
            self.note(class, running + 1);
        }
        may
    }

    fn refusal(&self) -> RequestError {
        let message = "the gateway is overloaded: retry later";
        RequestError {
            retry_after: Some(self.options.retry_after),
            ..RequestError::http(codes::REQUEST_OVERLOADED, message)
        }
    }

    /// How many may run at a time for one of a class to begin; 0 is the highest.
    fn places(&self, class: usize) -> usize {
        let limit = self.limit.load(Ordering::Relaxed);
        let higher = self.classes.iter().take(class);
        let kept: usize = higher.map(Class::unused).sum();
        limit.saturating_sub(kept).max(1)
    }

    /// Notes that one of a class came, and how many would run with it.
    fn note(&self, class: usize, running: usize) {
        self.most.fetch_max(running, Ordering::Relaxed);
        if let Some(class) = self.classes.get(class) {
            class.came.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Whether a request of a class may run.
    fn begin(&self, class: usize) -> bool {
        let places = self.places(class);
        let before = self.running.fetch_add(1, Ordering::Relaxed);
        self.note(class, before + 1);
        let may = before < places;
        if !may {
            self.running.fetch_sub(1, Ordering::Relaxed);
        }
        if let Some(class) = self.classes.get(class) {
            let counted = if may {
                &class.running
            } else {
                &class.lots.blocked
            };
            counted.fetch_add(1, Ordering::Relaxed);
        }
        may
    }

    /// A request is over.
    fn leave(&self, class: usize) {
        self.running.fetch_sub(1, Ordering::Relaxed);
        if let Some(class) = self.classes.get(class) {
            class.running.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Whether how long a request took is learnt from.
    fn counts(&self, sample: LatencySample, took: u64) -> bool {
        match sample {
            LatencySample::None => false,
            LatencySample::AtLeast => {
                let judged = self.judged.lock().unwrap_or_else(PoisonError::into_inner);
                judged.idle > 0.0 && took as f64 > judged.idle * self.options.tolerance
            }
            LatencySample::Whole => true,
        }
    }

    fn finish(&self, class: usize, since: u64, now: u64) {
        self.leave(class);
        self.taken
            .fetch_add(now.saturating_sub(since), Ordering::Relaxed);
        let finished = self.finished.fetch_add(1, Ordering::Relaxed) + 1;
        if finished < WINDOW_REQUESTS {
            return;
        }
        // Whoever comes meanwhile leaves it to this one.
        if let Ok(mut judged) = self.judged.try_lock() {
            self.judge(&mut judged, now);
        }
    }

    /// Ends the window if it is over.
    fn judge(&self, judged: &mut Judged, now: u64) {
        if now.saturating_sub(judged.since) < WINDOW.as_nanos() as u64 {
            return;
        }
        let elapsed = (now - judged.since) as f64;
        judged.since = now;
        let finished = self.finished.swap(0, Ordering::Relaxed).max(1);
        let taken = self.taken.swap(0, Ordering::Relaxed) as f64 / finished as f64;
        let most = self.most.swap(0, Ordering::Relaxed) as f64;
        let least = self.options.least as f64;
        let is_few = most < judged.limit / 2.0;
        if judged.idle == 0.0 || taken < judged.idle || is_few || judged.limit <= least {
            // In steps: a few that were quick by chance are no measure for all. The first windows count alike.
            judged.learnt = judged.learnt.saturating_add(1);
            let step = STEP.max(1.0 / f64::from(judged.learnt));
            judged.idle += (taken - judged.idle) * step;
        }
        let usual = taken.min(judged.idle * self.options.tolerance);
        self.keep(judged.limit, usual / elapsed);
        if is_few {
            // Nobody asks for more.
            return;
        }
        let gradient = (judged.idle * self.options.tolerance / taken.max(1.0)).clamp(0.5, 1.0);
        let aim = judged.limit * gradient + judged.limit.sqrt();
        let step = if aim < judged.limit { STEP_DOWN } else { STEP };
        let limit = judged.limit + (aim - judged.limit) * step;
        judged.limit = limit.clamp(least, self.options.most as f64);
        self.limit.store(judged.limit as usize, Ordering::Relaxed);
    }

    /// Keeps places for each class as it needs them: as many as came, each for a part of the window, and those that come
    /// together by chance. Lots win as often as there is room.
    fn keep(&self, limit: f64, part: f64) {
        let least = self.options.least_kept(limit);
        for class in &self.classes {
            let at_a_time = class.came.swap(0, Ordering::Relaxed) as f64 * part;
            let needed = (at_a_time + 2.0 * at_a_time.sqrt()).clamp(least, limit);
            let before = class.kept.load(Ordering::Relaxed) as f64;
            let kept = needed.max(before + (needed - before) * STEP);
            class.kept.store(kept.ceil() as usize, Ordering::Relaxed);
            class.lots.adjust();
        }
    }

    /// How many may run at a time, and how many do.
    #[cfg(test)]
    fn state(&self) -> (usize, usize) {
        let running = self.running.load(Ordering::Relaxed);
        (self.limit.load(Ordering::Relaxed), running)
    }

    #[cfg(test)]
    fn idle(&self) -> f64 {
        self.judged.lock().unwrap().idle
    }
}

#[cfg(test)]
mod fairness;

#[cfg(test)]
mod tests {
    use super::*;

    /// Requests take about so long if nobody waits, and so many run at a time before anybody does.
    const IDLE: u64 = 10_000_000;
    const PLACES: u64 = 40;

    fn overload(classes: usize) -> Overload {
        Overload::new(OverloadOptions {
            tolerance: 1.5,
            least: 4,
            most: 1_000,
            retry_after: 1,
            classes: vec![Default::default(); classes],
        })
    }

    /// Clients of each class come, some in each step of a millisecond. Gives how many of each class were answered, how many
    /// came, and the longest time that one took after the first part of the run.
    fn run(overload: &Overload, per_step: &[f64], steps: u64) -> (Vec<u64>, Vec<u64>, u64) {
        run_at(PLACES, overload, per_step, steps)
    }

    fn run_at(
        places: u64,
        overload: &Overload,
        per_step: &[f64],
        steps: u64,
    ) -> (Vec<u64>, Vec<u64>, u64) {
        const STEP: u64 = 1_000_000;
        let mut answered = vec![0; per_step.len()];
        let mut came = vec![0; per_step.len()];
        let mut due = vec![0.0; per_step.len()];
        // When a place is free again.
        let mut places = vec![0_u64; places as usize];
        let mut running: Vec<(u64, u64, usize)> = Vec::new();
        let (mut longest, mut chance) = (0, 1_u64);
        for step in 0..steps {
            let now = step * STEP;
            running.sort_unstable();
            while running.first().is_some_and(|(end, ..)| *end <= now) {
                let (end, since, class) = running.remove(0);
                overload.finish(class, since, end);
                if step > steps / 2 {
                    longest = longest.max(end - since);
                }
            }
            for (class, rate) in per_step.iter().enumerate() {
                due[class] += rate;
                while due[class] >= 1.0 {
                    due[class] -= 1.0;
                    came[class] += u64::from(step > steps / 2);
                    if !overload.begin(class) {
                        continue;
                    }
                    answered[class] += u64::from(step > steps / 2);
                    let place = places.iter_mut().min().unwrap();
                    chance = chance
                        .wrapping_mul(6_364_136_223_846_793_005)
                        .wrapping_add(1);
                    *place = now.max(*place) + IDLE / 2 + (chance >> 33) % IDLE;
                    running.push((*place, now, class));
                }
            }
        }
        for (end, since, class) in running {
            overload.finish(class, since, end);
        }
        (answered, came, longest)
    }

    #[test]
    fn at_five_times_capacity_high_classes_are_answered_and_low_ones_refused() {
        let overload = overload(2);
        // Four are answered per millisecond at most.
        run(&overload, &[0.3, 0.3, 0.4], 5_000);
        assert!((IDLE as f64 * 0.9..IDLE as f64 * 1.2).contains(&overload.idle()));
        let (answered, came, longest) = run(&overload, &[2.0, 8.0, 10.0], 40_000);
        let all: u64 = answered.iter().sum();
        // All that can be answered is, and of the highest class everybody.
        assert!(all >= 20_000 * 4 * 9 / 10, "{answered:?} of {came:?}");
        assert!(
            answered[0] >= came[0] * 99 / 100,
            "{answered:?} of {came:?}"
        );
        assert!(answered[1] > 4 * answered[2], "{answered:?}");
        assert!(longest <= 3 * IDLE, "{longest}");
    }

    /// The highest class alone asks for half of what there is, and finds it although lower ones come all the time.
    #[test]
    fn places_are_kept_for_a_high_class_as_it_needs_them() {
        let overload = overload(2);
        run_at(16, &overload, &[0.05, 0.05, 0.1], 5_000);
        let (answered, came, longest) = run_at(16, &overload, &[0.8, 2.4, 4.8], 40_000);
        assert!(
            answered[0] >= came[0] * 99 / 100,
            "{answered:?} of {came:?}"
        );
        let all: u64 = answered.iter().sum();
        assert!(all >= 20_000 * 16 / 10 * 9 / 10, "{answered:?} of {came:?}");
        assert!(longest <= 3 * IDLE, "{longest}");
    }

    /// One whose head has come.
    fn let_in(overload: &Arc<Overload>) -> Running {
        Running {
            overload: Arc::clone(overload),
            class: 0,
            since: None,
            sample: LatencySample::None,
        }
    }

    /// Whoever sends what is refused at once, or needs no subgraph, tells nothing of what others take.
    #[test]
    fn only_what_a_subgraph_has_answered_is_a_sample() {
        let overload = Arc::new(overload(0));
        let finished = || overload.finished.load(Ordering::Relaxed);
        let answered = |sample, has_files: bool| {
            let mut running = let_in(&overload);
            running.begin().unwrap();
            if has_files {
                running.has_files();
            }
            running.answered(sample);
        };
        (0..WINDOW_REQUESTS * 2).for_each(|_| answered(LatencySample::None, false));
        answered(LatencySample::Whole, true);
        assert_eq!(finished(), 0);
        answered(LatencySample::Whole, false);
        assert_eq!(finished(), 1);
        assert_eq!(overload.state().1, 0);
    }

    /// Found by a reviewer: of an overload in which all clients leave before they have their answers nothing was seen.
    #[test]
    fn a_client_that_has_waited_too_long_is_a_sample() {
        let overload = Arc::new(overload(0));
        let counts = |took| overload.counts(LatencySample::AtLeast, took);
        assert!(!counts(u64::MAX), "nobody knows yet what is long");
        overload.judged.lock().unwrap().idle = IDLE as f64;
        assert!(!counts(IDLE), "it had no reason to leave");
        assert!(counts(2 * IDLE));
        let mut running = let_in(&overload);
        running.begin().unwrap();
        assert_eq!(running.sample, LatencySample::AtLeast, "it may leave now");
    }

    /// Found by a reviewer: whoever sent bodies slowly made all others look slow, and left them no place.
    #[test]
    fn a_request_has_a_place_and_takes_time_when_all_of_it_has_come() {
        let overload = Arc::new(overload(0));
        let (limit, _) = overload.state();
        let coming: Vec<Running> = (0..2 * limit).map(|_| let_in(&overload)).collect();
        assert_eq!(overload.state().1, 0);
        let came = std::iter::repeat_with(|| overload.now()).find(|now| *now > 0);
        let mut running: Vec<Running> = coming.into_iter().skip(limit - 1).collect();
        assert!(running[0].begin().is_ok() && running[0].begin().is_ok());
        assert!(running[0].since >= came);
        let begun = running.iter_mut().map(|one| one.begin().is_ok());
        assert_eq!(begun.filter(|may| *may).count(), limit);
        assert_eq!(overload.state().1, limit);
        drop(running);
        assert_eq!(overload.state().1, 0);
    }

    /// Found by an attacker: whoever came first said what all others take.
    #[test]
    fn the_first_window_is_one_of_several() {
        let overload = overload(0);
        for (nth, takes) in [1, 9_001, 9_001].into_iter().enumerate() {
            for _ in 0..WINDOW_REQUESTS {
                assert!(overload.begin(0));
                let since = 2 * (nth as u64 + 1) * WINDOW.as_nanos() as u64;
                overload.finish(0, since, since + takes);
            }
        }
        assert_eq!(overload.idle() as u64, 6_001);
    }

    #[test]
    fn a_window_of_quick_requests_changes_what_is_normal_by_a_step_only() {
        let overload = overload(0);
        let window = |from: u64, takes: u64| {
            for _ in 0..WINDOW_REQUESTS {
                assert!(overload.begin(0));
                overload.finish(0, from, from + takes);
            }
        };
        for nth in 0..10 {
            window(
                3 * nth * WINDOW.as_nanos() as u64,
                2 * WINDOW.as_nanos() as u64,
            );
        }
        let before = overload.idle();
        window(50 * WINDOW.as_nanos() as u64, 1);
        assert!(overload.idle() > before * 0.7, "{}", overload.idle());
    }

    #[test]
    fn nobody_is_refused_while_there_is_room_and_the_limit_follows_what_changes() {
        let overload = overload(0);
        let (answered, came, _) = run(&overload, &[3.5], 20_000);
        assert_eq!(answered, came);
        // A long overload does not pass for normal.
        run(&overload, &[30.0], 60_000);
        assert!(overload.idle() < IDLE as f64 * 1.3, "{}", overload.idle());
        let (limit, _) = overload.state();
        assert!((30..=80).contains(&limit), "{limit}");
    }
}
