//! How much is held while many clients wait for the second half of a big answer, as resident memory of this process.

use std::{
    cell::{Cell, RefCell},
    future::Future,
    pin::Pin,
    task::{Context, Poll, Waker},
};

use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use ogive_execute::{
    Failure, SubgraphRequest, SubgraphResponse, Transport, TransportFuture, execute,
};

use crate::graph::{Graph, Prepared, input};

/// Clients at a time.
const CLIENTS: usize = 10;
/// What all of them may hold when everybody waits, in MiB.
const HELD_MIB_MAX: f64 = 150.0;
/// What one may hold.
const HELD_BY_ONE_MIB_MAX: f64 = 40.0;

/// Executes the operation of `execute-held` for one client and for ten, all of whom wait for their second subgraph at the
/// same time; says how much memory that takes. An error if it is more than it may be.
pub fn big_response() -> Result<String> {
    let prepared = Graph::read("big-response", "held", "{}")?.prepare()?;
    prepared.plan.derived();
    let mut out = String::new();
    for (clients, most) in [(1, HELD_BY_ONE_MIB_MAX), (CLIENTS, HELD_MIB_MAX)] {
        let held = hold(&prepared, clients)?;
        out.push_str(&format!(
            "{clients:>3} clients wait for the second subgraph: {held:.1} MiB (most {most:.0})\n"
        ));
        ensure!(held <= most, "{out}");
    }
    Ok(out)
}

type Running<'p> = Pin<Box<dyn Future<Output = ogive_execute::ExecuteOutput> + 'p>>;

fn hold(prepared: &Prepared, clients: usize) -> Result<f64> {
    let transports: Vec<Slow<'_>> = (0..clients).map(|_| Slow::new(&prepared.answers)).collect();
    let granted = ogive_plan::Granted::default();
    let mut running: Vec<Running<'_>> = transports
        .iter()
        .map(|transport| {
            let input = input(&prepared.variables, &granted, prepared.options);
            let run = execute(&prepared.plan, input, transport);
            Box::pin(run) as Running<'_>
        })
        .collect();
    let before = resident()?;
    let mut context = Context::from_waker(Waker::noop());
    for run in &mut running {
        ensure!(run.as_mut().poll(&mut context).is_pending(), "did not wait");
    }
    let waiting = resident()?;
    for (run, transport) in running.iter_mut().zip(&transports) {
        transport.open();
        let Poll::Ready(output) = run.as_mut().poll(&mut context) else {
            anyhow::bail!("still waits");
        };
        ensure!(output.errors == 0 && output.body.len() > 7_000_000);
    }
    Ok((waiting - before) / f64::from(1 << 20))
}

/// Resident memory in bytes.
fn resident() -> Result<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let words = line.and_then(|line| line.split_whitespace().nth(1));
    Ok(words.context("no VmRSS")?.parse::<f64>()? * 1024.0)
}

/// Answers the first request at once, each time with bytes of its own; the others when it is told to.
struct Slow<'a> {
    answers: &'a [(Bytes, Bytes)],
    next: Cell<usize>,
    open: Cell<bool>,
    waiting: RefCell<Option<Waker>>,
}

impl<'a> Slow<'a> {
    fn new(answers: &'a [(Bytes, Bytes)]) -> Self {
        Slow {
            answers,
            next: Cell::new(0),
            open: Cell::new(false),
            waiting: RefCell::new(None),
        }
    }
    fn open(&self) {
        self.open.set(true);
        if let Some(waker) = self.waiting.borrow_mut().take() {
            waker.wake();
        }
    }
}

impl Transport for Slow<'_> {
    fn send(&self, _: SubgraphRequest) -> TransportFuture<'_> {
        let at = self.next.get();
        self.next.set(at + 1);
        Box::pin(std::future::poll_fn(move |context| {
            if at > 0 && !self.open.get() {
                *self.waiting.borrow_mut() = Some(context.waker().clone());
                return Poll::Pending;
            }
            let answer = self.answers.get(at).map_or(&[][..], |(_, answer)| answer);
            Poll::Ready(Ok::<_, Failure>(SubgraphResponse {
                status: 200,
                body: Bytes::copy_from_slice(answer),
            }))
        }))
    }
}
