//! FetchPasses that can start, and answers that were not looked at: of one pass, or of several (see `streams`).

use std::{collections::VecDeque, future::Future, pin::pin, task::Poll};

use ogive_base::{FastMap, id::Id as _};
use ogive_plan::{FetchId, Plan};

use crate::{
    incremental::delivery::Delivery,
    run::{Prepared, Run},
    store::Source,
    transport::{Failure, SubgraphResponse},
};

type Answer = (Source, Result<SubgraphResponse, Failure>);

/// See the module documentation.
pub(crate) struct FetchPasses<'p> {
    plan: &'p Plan,
    /// With the pass they are of.
    ready: Vec<(u32, FetchId)>,
    /// FetchPasses all of whose representations are under way elsewhere, until something is answered.
    parked: Vec<(u32, FetchId)>,
    /// What came while a payload was sent.
    arrived: VecDeque<Answer>,
    /// Whether nothing was under way: then everything counts as complete.
    is_idle: bool,
    /// By pass and fetch; nothing if there is only one pass, which the run counts by itself.
    passes: Vec<Vec<Progress>>,
    /// Which pass a request is of.
    sent: FastMap<Source, u32>,
}

/// Where a fetch stands in a pass.
#[derive(Clone, Copy)]
struct Progress {
    waits_for: u32,
    unanswered: u32,
}

impl<'p> FetchPasses<'p> {
    pub(crate) fn new(plan: &'p Plan, passes: u32) -> Self {
        let ids = plan.fetches.ids();
        let first = |fetch: &FetchId| plan.fetches[*fetch].dependencies.is_empty();
        let first: Vec<FetchId> = ids.filter(first).collect();
        let of_pass = |pass: u32| first.iter().rev().map(move |fetch| (pass, *fetch));
        let progress = plan.fetches.iter().map(|(_, fetch)| Progress {
            waits_for: fetch.dependencies.len() as u32,
            unanswered: 0,
        });
        let progress: Vec<Progress> = progress.collect();
        FetchPasses {
            plan,
            // Popped from the end: the first pass goes first.
            ready: (0..passes).rev().flat_map(of_pass).collect(),
            parked: Vec::new(),
            arrived: VecDeque::new(),
            is_idle: false,
            passes: if passes > 1 {
                vec![progress; passes as usize]
            } else {
                Vec::new()
            },
            sent: FastMap::default(),
        }
    }

    /// Sends what can be sent.
    pub(crate) fn start(&mut self, run: &mut Run<'_>, delivery: &mut Delivery<'_>) {
        while let Some((pass, fetch)) = self.ready.pop() {
            if !self.passes.is_empty() {
                self.start_in_pass(pass, fetch, run, delivery);
                continue;
            }
            match run.prepare(fetch) {
                Prepared::Sent => {}
                Prepared::Done => self.done(0, fetch, run, delivery),
                Prepared::Wait => self.parked.push((pass, fetch)),
            }
        }
    }

    fn start_in_pass(
        &mut self,
        pass: u32,
        fetch: FetchId,
        run: &mut Run<'_>,
        delivery: &mut Delivery<'_>,
    ) {
        let row = &self.plan.fetches[fetch];
        let narrowed = delivery.streams.narrowed(run.store(), row, pass);
        let Some(narrowed) = narrowed else {
            return self.done(pass, fetch, run, delivery);
        };
        let before = run.requests_of(fetch);
        let prepared = run.prepare_narrowed(fetch, pass == 0, narrowed);
        let after = run.requests_of(fetch);
        let parts = before.0..after.0;
        self.sent
            .extend(parts.map(|part| (Source::new(fetch, part), pass)));
        let progress = &mut self.passes[pass as usize][fetch.index()];
        progress.unanswered = after.1 - before.1;
        match prepared {
            Prepared::Wait => self.parked.push((pass, fetch)),
            Prepared::Sent | Prepared::Done if progress.unanswered > 0 => {}
            Prepared::Sent | Prepared::Done => self.done(pass, fetch, run, delivery),
        }
    }

    /// A fetch has all its answers in a pass.
    fn done(&mut self, pass: u32, fetch: FetchId, run: &mut Run<'_>, delivery: &mut Delivery<'_>) {
        let complete = delivery.groups.complete(pass, fetch);
        if self.passes.is_empty() {
            let mut ready = Vec::new();
            run.complete(fetch, &mut ready);
            self.ready.extend(ready.into_iter().map(|fetch| (0, fetch)));
            return;
        }
        for pass in complete.rev() {
            for successor in self.plan.fetches[fetch].successors.iter().rev() {
                let progress = &mut self.passes[pass as usize][successor.index()];
                progress.waits_for = progress.waits_for.saturating_sub(1);
                if progress.waits_for == 0 {
                    self.ready.push((pass, *successor));
                }
            }
        }
    }

    /// Takes the next answer in; false if there is none, and everything was told.
    pub(crate) async fn take_in(&mut self, run: &mut Run<'_>, delivery: &mut Delivery<'_>) -> bool {
        let next = match self.arrived.pop_front() {
            None => run.in_flight.next().await,
            arrived => arrived,
        };
        let Some((source, result)) = next else {
            let is_first = !std::mem::replace(&mut self.is_idle, true);
            delivery.groups.complete_all();
            return is_first;
        };
        let fetch = source.fetch();
        let before = run.requests_of(fetch);
        let is_complete = run.absorb(source, result);
        if self.passes.is_empty() {
            if is_complete {
                self.done(0, fetch, run, delivery);
            }
        } else {
            let pass = self.sent.remove(&source).unwrap_or_default();
            let after = run.requests_of(fetch);
            // What failed as a whole may be asked again in parts.
            let parts = before.0..after.0;
            self.sent
                .extend(parts.map(|part| (Source::new(fetch, part), pass)));
            let progress = &mut self.passes[pass as usize][fetch.index()];
            progress.unanswered = (progress.unanswered + after.1).saturating_sub(before.1);
            if progress.unanswered == 0 {
                self.done(pass, fetch, run, delivery);
            }
        }
        self.ready.append(&mut self.parked);
        true
    }

    /// Waits for a payload to be taken, and keeps the answers that come meanwhile.
    pub(crate) async fn while_sending(
        &mut self,
        run: &mut Run<'_>,
        sending: impl Future<Output = bool>,
    ) -> bool {
        let mut sending = pin!(sending);
        std::future::poll_fn(|context| {
            if let Poll::Ready(is_taken) = sending.as_mut().poll(context) {
                return Poll::Ready(is_taken);
            }
            while let Poll::Ready(Some(answer)) = pin!(run.in_flight.next()).poll(context) {
                self.arrived.push_back(answer);
            }
            Poll::Pending
        })
        .await
    }
}
