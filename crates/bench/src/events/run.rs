//! One run of a load of events: subscribers come, an event goes through to each, then what is measured begins.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use serde_json::Value;
use tokio::task::LocalSet;

use super::{
    FIRST, payload, read_payload,
    subscriber::{Clients, Question},
};
use crate::{
    Error, Result,
    check::Report,
    http,
    load::LoadResult,
    model::{EventProtocol, Shape, Subscribers},
    process,
    record::{Delivery, Run, Verdict},
    stage::{self, Plot, Stage},
    usage::{self, Measured, Sampler},
    verify::{self, Difference, Rule},
};

/// Most subscribers of a check.
const CHECK_SUBSCRIBERS: usize = 3;
/// Events of a check.
const CHECK_EVENTS: u64 = 5;
/// Subscribers who come and go before memory is looked at.
const WARM_SUBSCRIBERS: usize = 10;
/// How often the first event is sent, at most.
const PRIMES_MAX: u32 = 150;
/// How long each of these is waited for.
const PRIME: Duration = Duration::from_millis(200);
/// How often it is looked whether everything has come.
const LOOK: Duration = Duration::from_millis(5);
/// Who gets nothing for so long gets nothing any more.
const QUIET: Duration = Duration::from_secs(10);
/// How long a gateway rests before its memory is looked at.
const REST: Duration = Duration::from_millis(500);
/// Events per second of a warm-up, where the load says none.
const WARM_RATE: f64 = 10.0;

/// What is needed to run a load, wherever it runs.
#[derive(Clone, Debug)]
struct Order {
    question: Question,
    n: usize,
    shape: Shape,
    warmup: Duration,
    drain: Duration,
    gateway: u32,
    source: SocketAddr,
    cpus: Vec<usize>,
}

/// What came of it.
#[derive(Debug, Default)]
struct Outcome {
    load: LoadResult,
    usage: Measured,
    delivery: Delivery,
    kept: Vec<Vec<u8>>,
    end: Option<String>,
}

/// Checks that events come as they were sent, with a few subscribers.
pub fn check(plot: &Plot<'_>, stage: &Stage) -> Result<Report> {
    let Some(mut subscribers) = plot.scenario.subscribers else {
        return Ok(Report::default());
    };
    subscribers.count = subscribers.count.min(CHECK_SUBSCRIBERS);
    let mut order = order(plot, stage, subscribers)?;
    order.warmup = Duration::ZERO;
    order.shape = Shape::Burst {
        events: CHECK_EVENTS,
        within: crate::units::Time::seconds(10),
    };
    let outcome = perform(order)?;
    let mut report = Report::default();
    judge(&outcome, &mut report);
    let delivery = outcome.delivery;
    if report.wrong.is_none() && delivery.delivered < delivery.wanted {
        let end = outcome.end.unwrap_or_default();
        report.wrong = Some(format!(
            "{} of {} events came to {} subscribers {end}",
            delivery.delivered, delivery.wanted, delivery.subscribers
        ));
    }
    Ok(report)
}

/// Runs a load and notes what came of it.
pub fn measure(
    plot: &Plot<'_>,
    stage: &Stage,
    subscribers: Subscribers,
    run: &mut Run,
) -> Result<()> {
    let outcome = perform(order(plot, stage, subscribers)?)?;
    let mut report = Report::default();
    judge(&outcome, &mut report);
    run.checked.during = report.n;
    run.checked.bytes = report.bytes;
    if let Some(wrong) = report.wrong {
        run.checked.wrong += 1;
        run.verdict = Verdict::Disqualified(format!("a wrong event: {wrong}"));
    }
    let delivery = outcome.delivery;
    if delivery.delivered == 0 && run.verdict == Verdict::Ok {
        run.verdict = Verdict::Failed("no event came".into());
    }
    if delivery.told > 0 {
        run.notes.push(format!(
            "{} of {} subscribers were told; the first end: {}",
            delivery.told,
            delivery.subscribers,
            outcome.end.as_deref().unwrap_or("none")
        ));
    }
    if delivery.disordered > 0 {
        let flag = format!("{} events out of order, or twice", delivery.disordered);
        run.flags.push(flag);
    }
    run.load = Some(outcome.load);
    run.usage = Some(outcome.usage);
    run.delivery = Some(delivery);
    Ok(())
}

fn order(plot: &Plot<'_>, stage: &Stage, subscribers: Subscribers) -> Result<Order> {
    let graph = plot.lab.graph(&plot.scenario.graph)?;
    let operation = graph.operation(&plot.scenario.operation)?;
    let words: Vec<&str> = operation.split_whitespace().collect();
    let own = &plot.gateway.spec.subscriptions.websocket_path;
    let path = match (subscribers.client, own) {
        (EventProtocol::Websocket, Some(path)) => path.clone(),
        _ => stage::path_of(plot.gateway),
    };
    let load = &plot.scenario.load;
    Ok(Order {
        question: Question {
            address: stage.address,
            protocol: subscribers.client,
            path,
            query: words.join(" "),
            distinct: subscribers.distinct,
        },
        n: subscribers.count,
        shape: load.shape.clone(),
        warmup: load.warmup.0,
        drain: load.drain(),
        gateway: stage.gateway.id(),
        source: stage.upstream(),
        cpus: plot.placement.load.clone(),
    })
}

/// Compares events that were kept with those that were sent.
fn judge(outcome: &Outcome, report: &mut Report) {
    for message in &outcome.kept {
        report.n += 1;
        report.bytes = Some(message.len());
        let Some((n, at)) = read_payload(message) else {
            continue;
        };
        let text = String::from_utf8_lossy(message);
        let answer = match text.lines().find_map(|line| line.strip_prefix("data:")) {
            Some(data) => data.trim().to_owned(),
            None => {
                let message: Value = serde_json::from_str(&text).unwrap_or_default();
                message["payload"].to_string()
            }
        };
        let expected = payload(n, at, false);
        let found = verify::compare(expected.as_bytes(), answer.as_bytes(), Rule::Same);
        match found {
            Err(Difference::Value(wrong)) => {
                report.wrong = Some(wrong);
                return;
            }
            Err(Difference::Order(flag)) if !report.flags.contains(&flag) => {
                report.flags.push(flag);
            }
            _ => {}
        }
    }
}

fn perform(order: Order) -> Result<Outcome> {
    process::on_cpus(&order.cpus.clone(), move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(Error::system("the subscribers could not be started"))?;
        LocalSet::new().block_on(&runtime, drive(&order))
    })?
}

async fn drive(order: &Order) -> Result<Outcome> {
    let mut rss_before = None;
    if let Shape::Idle { .. } = order.shape {
        // Code and tables that come with the first subscribers are no memory of later ones.
        let few = present(order, order.n.min(WARM_SUBSCRIBERS)).await?;
        few.leave();
        let start = Instant::now();
        while stats(order, "GET", "/stats").await?.open > 0 && start.elapsed() < QUIET {
            tokio::time::sleep(LOOK).await;
        }
        tokio::time::sleep(REST).await;
        rss_before = Some(usage::tree(order.gateway).rss);
    }
    let clients = present(order, order.n).await?;
    if !order.warmup.is_zero() {
        let rate = match order.shape {
            Shape::Events { rate, .. } => rate,
            _ => WARM_RATE,
        };
        let events = (rate * order.warmup.as_secs_f64()).ceil() as u64;
        let last = emit(order, events, rate).await? + events - 1;
        tokio::time::sleep(order.warmup).await;
        settle(&clients, order, last, order.drain).await;
    }
    let mut bytes_each = None;
    let sampler = Sampler::start(order.gateway, order.cpus.clone());
    if let (Shape::Idle { duration }, Some(before)) = (&order.shape, rss_before) {
        tokio::time::sleep(duration.0).await;
        let after = usage::tree(order.gateway).rss;
        bytes_each = Some(after.saturating_sub(before) as f64 / order.n.max(1) as f64);
    }
    let (events, rate, within) = match order.shape {
        Shape::Events { rate, duration } => {
            let events = (rate * duration.0.as_secs_f64()).ceil() as u64;
            (events.max(1), rate, duration.0 + order.drain)
        }
        Shape::Burst { events, within } => (events.max(1), 0.0, within.0),
        // One at the end shows that everybody is still there.
        _ => (1, 0.0, order.drain),
    };
    let stats = stats(order, "GET", "/stats").await?;
    clients.reset(stats.next);
    let start = Instant::now();
    let last = emit(order, events, rate).await? + events - 1;
    settle(&clients, order, last, within).await;
    let usage = sampler.finish();
    let mut outcome = count(&clients, events, start);
    outcome.usage = usage;
    outcome.delivery.upstreams = stats.open;
    outcome.delivery.bytes_each = bytes_each;
    clients.leave();
    Ok(outcome)
}

/// So many subscribers, each of whom has got an event.
async fn present(order: &Order, n: usize) -> Result<Clients> {
    let clients = Clients::open(&order.question, n).await;
    let clients = clients.map_err(Error::Answer)?;
    for _ in 0..PRIMES_MAX {
        let last = emit(order, 1, 0.0).await?;
        let start = Instant::now();
        while start.elapsed() < PRIME {
            if let Some(end) = clients.first_end() {
                return Err(Error::Answer(format!("a subscriber was ended: {end}")));
            }
            // Also of those before: an event may be under way to whoever came last.
            if clients.n_beyond(FIRST) == n && clients.n_beyond(last) == n {
                return Ok(clients);
            }
            tokio::time::sleep(LOOK).await;
        }
    }
    let n_there = clients.n_beyond(FIRST);
    Err(Error::Answer(format!(
        "{n_there} of {n} subscribers got an event within {:?}",
        PRIME * PRIMES_MAX
    )))
}

/// Waits until everybody has got this event, or nobody gets any more.
async fn settle(clients: &Clients, order: &Order, last: u64, most: Duration) {
    let start = Instant::now();
    let pause = match order.shape {
        Shape::Events { rate, .. } => Duration::from_secs_f64(1.0 / rate.max(0.1)),
        _ => Duration::ZERO,
    };
    while clients.n_beyond(last) < order.n && start.elapsed() < most {
        let came = clients.deliveries.last.get().max(start);
        if came.elapsed() > QUIET + pause {
            return;
        }
        tokio::time::sleep(LOOK).await;
    }
}

fn count(clients: &Clients, events: u64, start: Instant) -> Outcome {
    let mut delivery = Delivery {
        subscribers: clients.received.len() as u64,
        events,
        wanted: events * clients.received.len() as u64,
        ..Delivery::default()
    };
    for received in clients.received.iter() {
        let received = received.borrow();
        delivery.delivered += received.counted;
        delivery.disordered += received.disordered;
        if received.told {
            delivery.told += 1;
        } else {
            delivery.silent += events.saturating_sub(received.counted);
        }
    }
    let wall = clients
        .deliveries
        .last
        .get()
        .saturating_duration_since(start);
    let fresh = crate::load::Tally::new(false);
    let tally = clients.deliveries.tally.replace(fresh);
    let mut load = tally.finish("builtin", wall);
    let lost = delivery.wanted.saturating_sub(delivery.delivered);
    if lost > 0 {
        load.failed = lost;
        load.failures.insert("did not come".into(), lost);
    }
    Outcome {
        load,
        delivery,
        kept: clients.deliveries.kept.take(),
        end: clients.first_end(),
        ..Outcome::default()
    }
}

/// What the source says about itself.
struct Stats {
    open: u64,
    next: u64,
}

/// Has the source send events; the number of the first.
async fn emit(order: &Order, events: u64, rate: f64) -> Result<u64> {
    let path = format!("/emit?events={events}&rate={rate}");
    Ok(stats(order, "POST", &path).await?.next)
}

async fn stats(order: &Order, method: &str, path: &str) -> Result<Stats> {
    let address = order.source;
    let request = match method {
        "GET" => http::get(path, address),
        _ => http::post(path, address, "", ""),
    };
    let failed = || Error::system("the source of events did not answer");
    let mut connection = http::Connection::open(address).await.map_err(failed())?;
    let mut answer = http::Answer::default();
    let asked = connection.ask(&request, true, &mut answer).await;
    asked.map_err(failed())?;
    let stats: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let number = |name: &str| stats[name].as_u64().unwrap_or(0);
    Ok(Stats {
        open: number("open"),
        next: number("next"),
    })
}
