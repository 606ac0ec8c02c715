//! One run: stage, answers before, warm-up, load with measuring beside it, answers during and after, verdict.

use std::{
    path::Path,
    sync::mpsc,
    time::{Duration, Instant},
};

use rustix::process::Signal;

use crate::{
    Error, Result, check, events,
    load::{Job, Kept, Outcome, Tool, parts},
    model::{EventAction, Reload, Shape},
    places::Places,
    record::{Run, Step, Subgraphs, Verdict},
    stage::{self, Plot, Prepared, Stage},
    units::Time,
    usage::{self, Measured, Sampler},
};

/// How long a gateway rests between its start and the look at its idle memory.
const REST: Duration = Duration::from_millis(100);
/// How often answers are checked beside an external load generator, which keeps none.
const PROBE_EVERY: Duration = Duration::from_secs(1);

/// A gateway that was measured and may be measured again.
#[derive(Debug)]
pub struct Live {
    stage: Stage,
    /// Number of the next request.
    next: u64,
    /// Bytes of a right answer.
    bytes: Option<usize>,
}

/// Runs a gateway in a scenario once. An error of the gateway is a verdict; only the lab's own errors are errors.
/// With `keep`, it is left running there after a good run, and one that was left running is measured again without a
/// new start and warm-up.
pub fn run(
    plot: &Plot<'_>,
    tool: &Tool,
    round: u32,
    keep: Option<&mut Option<Live>>,
) -> Result<Run> {
    let mut run = blank(plot, round);
    if let Err(error) = try_run(plot, tool, &mut run, keep) {
        run.verdict = match error {
            Error::Stopped => return Err(Error::Stopped),
            Error::File { .. } | Error::Model { .. } | Error::System { .. } => return Err(error),
            other => Verdict::Failed(portable(plot, &other.to_string())),
        };
    }
    Ok(run)
}

/// Checks a gateway in a scenario before the first round.
pub fn check_only(plot: &Plot<'_>) -> Result<Run> {
    let mut run = blank(plot, 0);
    let checked = Stage::set(plot).and_then(|stage| {
        note_stage(plot, &mut run, &stage);
        stage.reset_counts()?;
        let report = match plot.scenario.load.shape {
            Shape::Parts { .. } => parts::check(plot, &stage)?,
            _ if plot.scenario.subscribers.is_some() => events::run::check(plot, &stage)?,
            _ => check::check(plot, &stage)?,
        };
        run.checked.before = report.n;
        run.checked.bytes = report.bytes;
        run.flags.extend(report.flags);
        if let Some(wrong) = report.wrong {
            run.verdict = Verdict::Disqualified(format!("a wrong answer: {wrong}"));
        }
        Ok(())
    });
    match checked {
        Ok(()) => {}
        Err(
            error @ (Error::File { .. }
            | Error::Model { .. }
            | Error::System { .. }
            | Error::Stopped),
        ) => {
            return Err(error);
        }
        Err(error) => run.verdict = Verdict::Failed(portable(plot, &error.to_string())),
    }
    Ok(run)
}

/// The check of a scenario that asks the same of the same stage, noted for this one. Its answers were counted there.
pub fn checked_elsewhere(plot: &Plot<'_>, other: &Run) -> Run {
    Run {
        verdict: other.verdict.clone(),
        flags: other.flags.clone(),
        command: other.command.clone(),
        memory_limit: other.memory_limit.clone(),
        ..blank(plot, 0)
    }
}

/// A run of which nothing is known yet.
pub fn blank(plot: &Plot<'_>, round: u32) -> Run {
    let (_, note) = plot.gateway.mode(plot.scenario.mode);
    let (scenario, gateway) = (&plot.scenario.name, &plot.gateway.name);
    Run {
        notes: note
            .into_iter()
            .chain(stage::source_spec(plot).and_then(|spec| spec.note.clone()))
            .chain(plot.placement.note.clone())
            .collect(),
        ..Run::blank(scenario, gateway, round, plot.placement.gateway.clone())
    }
}

/// A text without the folders of this machine, so that results can be given to others.
fn portable(plot: &Plot<'_>, text: &str) -> String {
    let binary = plot.installed.binary.as_deref();
    let places = [
        (plot.work, "{work}"),
        (plot.gateway.folder.as_path(), "{here}"),
        (plot.installed.folder.as_path(), "{install}"),
        (plot.lab.root.as_path(), "{lab}"),
    ];
    let binary = binary.map(|path| (path, "{binary}"));
    Places::new(places.into_iter().chain(binary)).hide(text)
}

fn note_stage(plot: &Plot<'_>, run: &mut Run, stage: &Stage) {
    run.command = stage
        .command
        .iter()
        .map(|part| portable(plot, part))
        .collect();
    run.ready_ms = Some(stage.ready.as_secs_f64() * 1e3);
    run.memory_limit = stage.gateway.memory_limit.map(str::to_owned);
}

fn try_run(
    plot: &Plot<'_>,
    tool: &Tool,
    run: &mut Run,
    mut keep: Option<&mut Option<Live>>,
) -> Result<()> {
    if let Shape::Starts { count } = plot.scenario.load.shape {
        return starts(plot, count, run);
    }
    if let Shape::Parts { clients, duration } = plot.scenario.load.shape {
        let stage = rested(plot, run)?;
        return parts::measure(plot, &stage, clients, duration.0, run);
    }
    if let Some(subscribers) = plot.scenario.subscribers {
        let stage = rested(plot, run)?;
        return events::run::measure(plot, &stage, subscribers, run);
    }
    let kept = keep.as_mut().and_then(|place| place.take());
    let Some(mut live) = (match kept {
        Some(live) => Some(live),
        None => start(plot, run)?,
    }) else {
        return Ok(());
    };
    measure_live(plot, tool, run, &mut live)?;
    // What still has requests to work on would take time from the next.
    let is_idle = |load: &crate::load::LoadResult| load.unfinished == 0;
    let idle = run.load.iter().all(is_idle) && run.steps.iter().all(|step| is_idle(&step.load));
    if let (Some(place), true, Verdict::Ok) = (keep, idle, &run.verdict) {
        *place = Some(live);
    }
    Ok(())
}

/// Starts a gateway and looks at its memory.
fn rested(plot: &Plot<'_>, run: &mut Run) -> Result<Stage> {
    let stage = Stage::set(plot)?;
    note_stage(plot, run, &stage);
    std::thread::sleep(REST);
    run.idle_pss = Some(usage::pss(stage.gateway.id()));
    Ok(stage)
}

/// Starts a gateway, compares an answer and warms it up; `None`: the answer was wrong.
fn start(plot: &Plot<'_>, run: &mut Run) -> Result<Option<Live>> {
    let stage = rested(plot, run)?;
    let before = check::answers(plot, &stage, 1)?;
    run.checked.before = before.n;
    run.flags.extend(before.flags);
    if let Some(wrong) = before.wrong {
        run.verdict = Verdict::Disqualified(format!("a wrong answer before the load: {wrong}"));
        return Ok(None);
    }
    let mut job = job(plot, &stage, before.bytes)?;
    warm_up(plot, &mut job)?;
    Ok(Some(Live {
        stage,
        next: job.first,
        bytes: before.bytes,
    }))
}

fn measure_live(plot: &Plot<'_>, tool: &Tool, run: &mut Run, live: &mut Live) -> Result<()> {
    let stage = &mut live.stage;
    run.checked.bytes = live.bytes;
    run.memory_limit = stage.gateway.memory_limit.map(str::to_owned);
    let mut job = job(plot, stage, live.bytes)?;
    job.first = live.next;
    stage.reset_counts()?;
    let mut n_requests = 0;
    let mut kept: Vec<Kept> = Vec::new();
    let mut odd: Vec<Kept> = Vec::new();
    let shapes = match &plot.scenario.load.shape {
        Shape::Rates { rates, each } => rates
            .iter()
            .map(|rate| Shape::Rate {
                rate: *rate,
                duration: *each,
            })
            .collect(),
        shape => vec![shape.clone()],
    };
    let several = matches!(plot.scenario.load.shape, Shape::Rates { .. });
    for shape in shapes {
        job.shape = shape;
        let (outcome, measured) = measure(plot, tool, &job, stage)?;
        // Those that were sent: who waits in line to the end asks nothing of subgraphs.
        n_requests += outcome.next.saturating_sub(job.first);
        if *tool != Tool::Builtin {
            // Answers taken beside the load were requests, too.
            n_requests += outcome.sampled.len() as u64;
        }
        job.first = outcome.next;
        kept.extend(outcome.sampled);
        odd.extend(outcome.odd);
        match job.shape {
            Shape::Rate { rate, .. } if several => run.steps.push(Step {
                rate,
                load: outcome.result,
                usage: measured,
            }),
            _ => {
                run.load = Some(outcome.result);
                run.usage = Some(measured);
            }
        }
    }
    let counts = stage.counts()?;
    run.subgraphs = Some(Subgraphs {
        requests: counts.requests,
        per_request: counts.requests as f64 / n_requests.max(1) as f64,
        bytes: counts.bytes,
    });
    if let Some(status) = stage.gateway.ended() {
        let words = portable(plot, &stage.gateway.last_words());
        run.verdict = Verdict::Failed(format!("ended with {status} under load:\n{words}"));
        return Ok(());
    }
    run.checked.during = kept.len() as u32;
    run.checked.odd = odd.len() as u32;
    live.next = job.first;
    check::judge_all(plot, stage, &kept, &mut run.checked, &mut run.verdict)?;
    check::judge_all(plot, stage, &odd, &mut run.checked, &mut run.verdict)?;
    let mut loads = run.load.iter().chain(run.steps.iter().map(|s| &s.load));
    if loads.any(|load| load.unfinished > 0) {
        // It still works on what nobody waits for any more: an answer now would only tell how long that takes.
        judge_failures(run);
        return Ok(());
    }
    let after = check::answers(plot, stage, 1)?;
    run.checked.after = after.n;
    if let (Some(wrong), Verdict::Ok) = (after.wrong, &run.verdict) {
        run.checked.wrong += 1;
        run.verdict = Verdict::Disqualified(format!("a wrong answer after the load: {wrong}"));
    }
    judge_failures(run);
    Ok(())
}

/// A gateway that answers next to nothing has no latency to speak of.
fn judge_failures(run: &mut Run) {
    let nothing =
        |load: &crate::load::LoadResult| load.answered == 0 && load.failed + load.unfinished > 0;
    let all_failed = match &run.load {
        Some(load) => nothing(load),
        None => !run.steps.is_empty() && run.steps.iter().all(|step| nothing(&step.load)),
    };
    if all_failed && run.verdict == Verdict::Ok {
        let load = run
            .load
            .as_ref()
            .or(run.steps.first().map(|step| &step.load));
        let kinds = load.map(|load| {
            let mut kinds: Vec<String> = load.failures.keys().cloned().collect();
            if load.unfinished > 0 {
                kinds.push(format!("{} still waited at the end", load.unfinished));
            }
            kinds.join(", ")
        });
        run.verdict = Verdict::Failed(format!(
            "no request was answered in time: {}",
            kinds.unwrap_or_default()
        ));
    }
}

fn job(plot: &Plot<'_>, stage: &Stage, length: Option<usize>) -> Result<Job> {
    let load = &plot.scenario.load;
    Ok(Job {
        address: stage.address,
        request: stage::request_maker(plot, stage.address)?,
        shape: load.shape.clone(),
        timeout: load.timeout.0,
        keep_alive: load.keep_alive,
        connections_max: load.connections_max,
        drain: load.drain(),
        cpus: plot.placement.load.clone(),
        length,
        first: 1,
        work: plot.work.to_path_buf(),
    })
}

/// Most clients of a warm-up.
const WARM_CLIENTS: usize = 16;

/// Warms up with a few clients that ask as fast as they are answered, whatever the load is like: compilers and caches
/// see as many requests as there can be in the time, and no backlog is left for the load that is measured.
fn warm_up(plot: &Plot<'_>, job: &mut Job) -> Result<()> {
    let duration = plot.scenario.load.warmup;
    let clients = match plot.scenario.load.shape {
        _ if duration.0.is_zero() => return Ok(()),
        Shape::Starts { .. }
        | Shape::Events { .. }
        | Shape::Burst { .. }
        | Shape::Idle { .. }
        | Shape::Parts { .. } => return Ok(()),
        Shape::Clients { clients, .. } => clients.min(WARM_CLIENTS),
        Shape::Rate { .. } | Shape::Rates { .. } | Shape::Ramp { .. } => WARM_CLIENTS,
    };
    let mut warm = job.clone();
    warm.shape = Shape::Clients {
        clients,
        duration,
        pause: Time::default(),
    };
    job.first = Tool::Builtin.run(&warm)?.next;
    Ok(())
}

/// Puts the load on and measures beside it.
fn measure(plot: &Plot<'_>, tool: &Tool, job: &Job, stage: &Stage) -> Result<(Outcome, Measured)> {
    let sampler = Sampler::start(stage.gateway.id(), plot.placement.load.clone());
    let (done, told) = mpsc::channel::<()>();
    let probes = *tool != Tool::Builtin;
    std::thread::scope(|scope| {
        let beside = scope.spawn(move || {
            crate::process::pin(&job.cpus);
            beside(plot, job, stage, probes, &told)
        });
        let outcome = tool.run(job);
        let measured = sampler.finish();
        drop(done);
        let probed = beside
            .join()
            .map_err(|_| Error::program("ogive bench", "a thread of the lab panicked"))??;
        let mut outcome = outcome?;
        outcome.sampled.extend(probed);
        Ok((outcome, measured))
    })
}

/// What happens beside the load: events at their times, and answers taken where the generator keeps none.
fn beside(
    plot: &Plot<'_>,
    job: &Job,
    stage: &Stage,
    probes: bool,
    told: &mpsc::Receiver<()>,
) -> Result<Vec<Kept>> {
    let start = Instant::now();
    let whole = job.shape.duration();
    let mut events: Vec<_> = plot
        .scenario
        .events
        .iter()
        .map(|e| (whole.mul_f64(e.at.clamp(0.0, 1.0)), e.action))
        .collect();
    events.sort_by_key(|(at, _)| *at);
    let mut events = events.into_iter().peekable();
    let mut kept = Vec::new();
    let mut n = 0;
    loop {
        let next = match (events.peek(), probes) {
            (Some((at, _)), true) => (*at).min(PROBE_EVERY * (n + 1)),
            (Some((at, _)), false) => *at,
            (None, true) => PROBE_EVERY * (n + 1),
            (None, false) => Duration::MAX,
        };
        let pause = next.saturating_sub(start.elapsed());
        if told.recv_timeout(pause) != Err(mpsc::RecvTimeoutError::Timeout) {
            return Ok(kept);
        }
        match events.next_if(|(at, _)| *at <= start.elapsed()) {
            Some((_, EventAction::Reload)) => {
                stage.replace_supergraph(n + 1)?;
                if plot.gateway.spec.reload == Reload::Hangup {
                    stage.gateway.signal(Signal::HUP);
                }
            }
            None => {
                n += 1;
                let number = 800_000_000 + u64::from(n);
                let request = job.request.make(number);
                if let Ok(answer) = stage.ask(&request.bytes, job.timeout) {
                    kept.push(Kept {
                        request: job.request.body(number),
                        answer: answer.body,
                        status: answer.status,
                    });
                }
            }
        }
    }
}

fn starts(plot: &Plot<'_>, count: usize, run: &mut Run) -> Result<()> {
    // The right answer is asked for once, from a gateway that is then ended.
    let right = {
        let stage = rested(plot, run)?;
        let report = check::answers(plot, &stage, 1)?;
        run.checked.before = report.n;
        if let Some(wrong) = report.wrong {
            run.verdict = Verdict::Disqualified(format!("a wrong answer: {wrong}"));
            return Ok(());
        }
        report.bytes
    };
    let prepared = Prepared::new(plot)?;
    for _ in 0..count {
        let is_right =
            |answer: &crate::http::Answer| answer.status == 200 && Some(answer.length) == right;
        let time = prepared.first_answer(plot, &is_right)?;
        run.starts_ms.push(time.as_secs_f64() * 1e3);
    }
    Ok(())
}

/// The folder of a run's files and logs.
pub fn work_folder(campaign: &Path, scenario: &str, gateway: &str) -> std::path::PathBuf {
    campaign.join("work").join(scenario).join(gateway)
}
