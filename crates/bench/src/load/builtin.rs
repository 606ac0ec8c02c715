//! The built-in generator: closed and open loops on one thread.
//!
//! Why open loops: clients of a real service do not wait for each other. Requests become due at fixed times, a pacing
//! thread hands them over, and each is sent at once on an idle connection, on a new one up to a limit, or waits in
//! line. Latency counts from when it was due.
//!
//! Answers up to [`KEEP_ALWAYS`] are copied and those whose length is odd are kept to be checked after the load; of
//! larger ones only samples, and whole ones again once something was odd. Nothing is parsed here.

use std::{
    cell::{Cell, RefCell},
    collections::VecDeque,
    rc::Rc,
    time::{Duration, Instant},
};

use tokio::{sync::mpsc, task::LocalSet};

use super::{Job, Kept, Outcome, Tally};
use crate::{
    Error, Result,
    http::{Answer, Connection},
    model::{Shape, Stage},
    process,
};

/// Longest answer that is always copied.
const KEEP_ALWAYS: usize = 128 << 10;
/// How often an answer is sampled at most.
const SAMPLE_EVERY: Duration = Duration::from_millis(500);
/// Most samples of one load.
const SAMPLES_MAX: usize = 64;
/// Most odd answers kept.
const ODD_MAX: usize = 32;
/// Most bytes of kept answers.
const KEPT_BYTES_MAX: usize = 96 << 20;
/// How often a ramp is looked at.
const RAMP_TICK: Duration = Duration::from_millis(50);
/// How long a client waits after a failed connection before it tries again.
const CONNECT_PAUSE: Duration = Duration::from_millis(20);

/// Makes a load and waits for its end.
pub fn run(job: &Job) -> Result<Outcome> {
    let job = job.clone();
    process::on_cpus(&job.cpus.clone(), move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(Error::system("the load generator could not be started"))?;
        let local = LocalSet::new();
        let outcome = local.block_on(&runtime, drive(job));
        Ok(outcome)
    })?
}

struct State {
    job: Job,
    start: Instant,
    end: Instant,
    tally: RefCell<Tally>,
    next: RefCell<u64>,
    kept: RefCell<KeptAnswers>,
    /// Idle connections of an open loop, the last used on top.
    idle: RefCell<Vec<Connection>>,
    line: RefCell<VecDeque<Instant>>,
    n_busy: RefCell<usize>,
    /// When the last answer came.
    last: Cell<Instant>,
}

#[derive(Default)]
struct KeptAnswers {
    sampled: Vec<Kept>,
    odd: Vec<Kept>,
    next_sample: Duration,
    bytes: usize,
}

async fn drive(job: Job) -> Outcome {
    let start = Instant::now();
    let open_loop = matches!(job.shape, Shape::Rate { .. });
    let state = Rc::new(State {
        start,
        end: start + job.shape.duration(),
        tally: RefCell::new(Tally::new(open_loop)),
        next: RefCell::new(job.first),
        kept: RefCell::default(),
        idle: RefCell::default(),
        line: RefCell::default(),
        n_busy: RefCell::new(0),
        last: Cell::new(start),
        job,
    });
    match state.job.shape.clone() {
        Shape::Clients { clients, pause, .. } => ramp(&state, clients, &[], pause.0).await,
        Shape::Ramp {
            start,
            stages,
            pause,
        } => ramp(&state, start, &stages, pause.0).await,
        Shape::Rate { rate, .. } => paced(&state, rate).await,
        // Made of several loads by the caller.
        Shape::Rates { .. } | Shape::Starts { .. } => {}
        // Loads of their own (`crate::events`, `crate::load::parts`).
        Shape::Events { .. } | Shape::Burst { .. } | Shape::Idle { .. } | Shape::Parts { .. } => {}
    }
    // Answers that came after the end count, and so does the time they took: who falls behind is not as fast as asked.
    let wall = state.last.get().max(state.end) - start;
    let kept = state.kept.take();
    let tally = state.tally.replace(Tally::new(false));
    Outcome {
        result: tally.finish("builtin", wall),
        sampled: kept.sampled,
        odd: kept.odd,
        next: *state.next.borrow(),
    }
}

/// How many clients there are to be.
fn clients_at(start: usize, stages: &[Stage], at: Duration) -> usize {
    let (mut from, mut rest) = (start as f64, at);
    for stage in stages {
        let to = stage.to as f64;
        if rest < stage.over.0 {
            let part = rest.as_secs_f64() / stage.over.0.as_secs_f64();
            return (from + (to - from) * part).round() as usize;
        }
        rest -= stage.over.0;
        from = to;
    }
    from as usize
}

async fn ramp(state: &Rc<State>, start: usize, stages: &[Stage], pause: Duration) {
    let stages: Rc<[Stage]> = stages.into();
    let mut clients: Vec<Option<Client>> = Vec::new();
    while Instant::now() < state.end {
        let wanted = clients_at(start, &stages, state.start.elapsed());
        if clients.len() < wanted {
            clients.resize_with(wanted, || None);
        }
        for (i, client) in clients.iter_mut().enumerate().take(wanted) {
            if client.as_ref().is_none_or(|(task, _)| task.is_finished()) {
                let (state, stages) = (state.clone(), stages.clone());
                let since = Rc::new(Cell::new(Instant::now()));
                let told = since.clone();
                let task = tokio::task::spawn_local(async move {
                    let wanted = |at: Instant| {
                        at < state.end && clients_at(start, &stages, at - state.start) > i
                    };
                    closed_loop(&state, wanted, pause, &told).await;
                });
                *client = Some((task, since));
            }
        }
        let next = (Instant::now() + RAMP_TICK).min(state.end);
        tokio::time::sleep_until(next.into()).await;
    }
    let deadline = Instant::now() + state.job.drain;
    for (mut client, since) in clients.into_iter().flatten() {
        if tokio::time::timeout_at(deadline.into(), &mut client)
            .await
            .is_err()
        {
            client.abort();
            // Whoever still waits has waited this long at least.
            let waited = since.get().elapsed();
            state.tally.borrow_mut().unfinished(waited);
        }
    }
}

/// A client and when it sent its last request.
type Client = (tokio::task::JoinHandle<()>, Rc<Cell<Instant>>);

async fn closed_loop(
    state: &State,
    wanted: impl Fn(Instant) -> bool,
    pause: Duration,
    since: &Cell<Instant>,
) {
    let mut connection = None;
    let mut answer = Answer::default();
    while wanted(Instant::now()) {
        let due = Instant::now();
        since.set(due);
        let connected = state.ask(due, &mut connection, &mut answer).await;
        if !connected {
            tokio::time::sleep(CONNECT_PAUSE).await;
        }
        if !pause.is_zero() {
            tokio::time::sleep(pause).await;
        }
    }
}

async fn paced(state: &Rc<State>, rate: f64) {
    let (send, mut receive) = mpsc::unbounded_channel::<Instant>();
    let (start, end) = (state.start, state.end);
    let cpus = state.job.cpus.clone();
    // A thread, because the timers of the runtime are only exact to a millisecond.
    let pacer = std::thread::spawn(move || {
        process::pin(&cpus);
        for n in 0u64.. {
            let due = start + Duration::from_secs_f64(n as f64 / rate);
            if due >= end {
                return;
            }
            let early = due.saturating_duration_since(Instant::now());
            if !early.is_zero() {
                std::thread::sleep(early);
            }
            if send.send(due).is_err() {
                return;
            }
        }
    });
    let mut tasks = tokio::task::JoinSet::new();
    while let Some(due) = receive.recv().await {
        if *state.n_busy.borrow() >= state.job.connections_max {
            state.line.borrow_mut().push_back(due);
            continue;
        }
        *state.n_busy.borrow_mut() += 1;
        let state = state.clone();
        tasks.spawn_local(async move { one_after_the_other(&state, due).await });
        while tasks.try_join_next().is_some() {}
    }
    let _ = pacer.join();
    let deadline = Instant::now() + state.job.drain;
    let drained = async { while tasks.join_next().await.is_some() {} };
    let _ = tokio::time::timeout_at(deadline.into(), drained).await;
    let n_busy = tasks.len();
    tasks.abort_all();
    let mut tally = state.tally.borrow_mut();
    let now = Instant::now();
    for due in state.line.borrow_mut().drain(..) {
        tally.unfinished(now - due);
    }
    for _ in 0..n_busy {
        // At least: they may have been due earlier.
        tally.unfinished(state.job.drain);
    }
}

/// Sends a due request, then whatever stands in line.
async fn one_after_the_other(state: &State, first: Instant) {
    let mut connection = state.idle.borrow_mut().pop();
    let mut answer = Answer::default();
    let mut due = Some(first);
    while let Some(at) = due {
        state.ask(at, &mut connection, &mut answer).await;
        due = state.line.borrow_mut().pop_front();
    }
    if let Some(connection) = connection {
        state.idle.borrow_mut().push(connection);
    }
    *state.n_busy.borrow_mut() -= 1;
}

impl State {
    /// Sends the next request and notes what comes of it. `false`: there was no connection.
    async fn ask(
        &self,
        due: Instant,
        connection: &mut Option<Connection>,
        answer: &mut Answer,
    ) -> bool {
        let n = {
            let mut next = self.next.borrow_mut();
            *next += 1;
            *next - 1
        };
        let request = self.job.request.make(n);
        let keep = self.keeps(due - self.start);
        let sent = Instant::now();
        let asking = async {
            let open = match connection
                .take()
                .filter(|c| self.job.keep_alive && c.is_open())
            {
                Some(open) => open,
                None => Connection::open(self.job.address)
                    .await
                    .map_err(|e| (true, e))?,
            };
            let open = connection.insert(open);
            open.ask(&request.bytes, keep, answer)
                .await
                .map_err(|e| (false, e))
        };
        let patience = (due + self.job.timeout).max(sent + Duration::from_millis(1));
        let asked = tokio::time::timeout_at(patience.into(), asking).await;
        let now = Instant::now();
        let at = now - self.start;
        let mut tally = self.tally.borrow_mut();
        match asked {
            Err(_) => {
                *connection = None;
                tally.failure(at, "time-out", Some(now - due));
                return true;
            }
            Ok(Err((connecting, error))) => {
                *connection = None;
                let what = if connecting {
                    "connecting"
                } else {
                    "connection lost"
                };
                tally.failure(at, &format!("{what}: {}", error.kind()), None);
                return !connecting;
            }
            Ok(Ok(())) => {}
        }
        let odd = self
            .job
            .length
            .is_some_and(|length| length != answer.length);
        if answer.status == 200 {
            self.last.set(now);
            tally.answer(at, now - due, now - sent, answer.length, odd);
        } else {
            tally.failure(at, &format!("status {}", answer.status), None);
        }
        drop(tally);
        let odd = odd || answer.status != 200;
        self.keep(n, answer, odd, keep, due - self.start);
        true
    }

    /// Whether an answer is to be copied.
    fn keeps(&self, at: Duration) -> bool {
        let kept = self.kept.borrow();
        let small = self.job.length.is_some_and(|length| length <= KEEP_ALWAYS);
        // Something was odd, but what it was has not been kept: keep the next ones.
        let missed = self.tally.borrow().n_odd() > 0 && kept.odd.len() < ODD_MAX;
        small || missed || at >= kept.next_sample
    }

    fn keep(&self, n: u64, answer: &Answer, odd: bool, whole: bool, at: Duration) {
        let mut kept = self.kept.borrow_mut();
        if !whole || kept.bytes + answer.body.len() > KEPT_BYTES_MAX {
            return;
        }
        let item = || Kept {
            // Not what was sent: a server asked by GET answers what the operation would.
            request: self.job.request.body(n),
            answer: answer.body.clone(),
            status: answer.status,
        };
        if odd {
            if kept.odd.len() < ODD_MAX {
                kept.odd.push(item());
                kept.bytes += answer.body.len();
            }
        } else if at >= kept.next_sample && kept.sampled.len() < SAMPLES_MAX {
            let apart = self.job.shape.duration() / SAMPLES_MAX as u32;
            kept.next_sample = at + SAMPLE_EVERY.max(apart);
            kept.sampled.push(item());
            kept.bytes += answer.body.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Time;

    #[test]
    fn clients_follow_the_stages() {
        let stage = |to, over| Stage {
            to,
            over: Time::seconds(over),
        };
        let stages = [stage(100, 10), stage(100, 10), stage(0, 5)];
        let at = |s: u64| clients_at(50, &stages, Duration::from_secs(s));
        assert_eq!(
            [at(0), at(5), at(10), at(15), at(20), at(24), at(25)],
            [50, 75, 100, 100, 100, 20, 0]
        );
        assert_eq!(clients_at(8, &[], Duration::from_secs(99)), 8);
    }
}
