//! Answers in parts (`@defer`): clients in a closed loop that note when the first part was there and when the last.
//!
//! The form of 2022 is asked for, as it is the one that most gateways know. A whole answer put together of its parts is
//! compared before the load, and the number of bytes under it.

use std::{
    cell::{Cell, RefCell},
    io,
    net::SocketAddr,
    rc::Rc,
    time::{Duration, Instant},
};

use hdrhistogram::Histogram;
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::LocalSet,
};

use super::{RequestMaker, Tally};
use crate::{
    Error, Result,
    check::Report,
    events::protocol::Chunks,
    process,
    record::{Run, Verdict},
    stage::{self, Plot, Stage},
    usage::Sampler,
    verify::{self, Difference, Rule},
};

/// What is accepted.
const ACCEPT: &str = "multipart/mixed;deferSpec=20220824, application/json;q=0.5";
/// What is in every part but those of other forms; the first one that has it is whole.
const HAS_NEXT: &[u8] = b"\"hasNext\":";
/// Longest time in microseconds that is told apart: a minute.
const LONGEST: u64 = 60_000_000;
/// Number of the checking request.
const CHECK: u64 = 900_000_000;

/// An answer in parts.
#[derive(Debug, Default)]
struct Parts {
    /// All parts with what is between them.
    body: Vec<u8>,
    /// From the question to the first part.
    first: Duration,
    /// To the end.
    whole: Duration,
}

/// Compares an answer that is put together of its parts.
pub fn check(plot: &Plot<'_>, stage: &Stage) -> Result<Report> {
    let maker = stage::request_maker(plot, stage.address)?;
    let (address, patience) = (stage.address, plot.scenario.load.timeout.0);
    let request = request(&maker, CHECK);
    let asked = on_thread(&plot.placement.load, move || async move {
        let mut connection = Connection::open(address).await?;
        let asking = connection.ask(&request, patience);
        asking.await
    })?;
    let parts = asked.map_err(|error| Error::Answer(format!("no answer in parts: {error}")))?;
    let mut report = Report {
        n: 1,
        bytes: Some(parts.body.len()),
        ..Report::default()
    };
    let whole = match put_together(&parts.body) {
        Ok(whole) => whole,
        Err(wrong) => {
            report.wrong = Some(wrong);
            return Ok(report);
        }
    };
    // Whoever knows nothing of `@defer` (here without arguments) gives the same answer at once.
    let question = String::from_utf8_lossy(&maker.body(CHECK)).replace("@defer", "");
    let expected = stage.expected(question.as_bytes())?;
    match verify::compare(&expected, whole.to_string().as_bytes(), Rule::Same) {
        Err(Difference::Value(wrong)) => report.wrong = Some(wrong),
        // Deferred fields come last, so order says nothing here.
        Err(Difference::Order(_)) | Ok(()) => {}
    }
    Ok(report)
}

/// Runs the load.
pub fn measure(
    plot: &Plot<'_>,
    stage: &Stage,
    clients: usize,
    duration: Duration,
    run: &mut Run,
) -> Result<()> {
    let checked = check(plot, stage)?;
    run.checked.before = checked.n;
    run.checked.bytes = checked.bytes;
    if let Some(wrong) = checked.wrong {
        run.verdict = Verdict::Disqualified(format!("a wrong answer before the load: {wrong}"));
        return Ok(());
    }
    let maker = stage::request_maker(plot, stage.address)?;
    let load = |duration: Duration| Load {
        address: stage.address,
        maker: maker.clone(),
        patience: plot.scenario.load.timeout.0,
        clients,
        duration,
        length: checked.bytes,
    };
    let (warm, measured) = (load(plot.scenario.load.warmup.0), load(duration));
    on_thread(&plot.placement.load, move || warm.make())?;
    let sampler = Sampler::start(stage.gateway.id(), plot.placement.load.clone());
    let made = on_thread(&plot.placement.load, move || measured.make());
    run.usage = Some(sampler.finish());
    let (tally, whole, wall) = made?;
    let result = tally.finish("builtin", wall);
    if result.answered == 0 {
        run.verdict = Verdict::Failed(format!("no answer in parts: {:?}", result.failures));
    }
    run.checked.odd = result.odd as u32;
    run.load = Some(result);
    run.whole_ms = (!whole.is_empty()).then(|| whole.value_at_quantile(0.5) as f64 / 1e3);
    Ok(())
}

fn on_thread<T: Send + 'static, F: Future<Output = T>>(
    cpus: &[usize],
    work: impl FnOnce() -> F + Send + 'static,
) -> Result<T> {
    process::on_cpus(cpus, move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(Error::system("the load generator could not be started"))?;
        Ok(runtime.block_on(work()))
    })?
}

struct Load {
    address: SocketAddr,
    maker: RequestMaker,
    patience: Duration,
    clients: usize,
    duration: Duration,
    length: Option<usize>,
}

struct State {
    load: Load,
    start: Instant,
    end: Instant,
    next: Cell<u64>,
    last: Cell<Instant>,
    tally: RefCell<Tally>,
    whole: RefCell<Histogram<u64>>,
}

impl Load {
    async fn make(self) -> (Tally, Histogram<u64>, Duration) {
        let histogram = || Histogram::new_with_bounds(1, LONGEST, 3).expect("the bounds are right");
        let start = Instant::now();
        let (clients, end) = (self.clients, start + self.duration);
        let state = Rc::new(State {
            load: self,
            start,
            end,
            next: Cell::new(1),
            last: Cell::new(start),
            tally: RefCell::new(Tally::new(false)),
            whole: RefCell::new(histogram()),
        });
        let local = LocalSet::new();
        for _ in 0..clients {
            let state = Rc::clone(&state);
            local.spawn_local(async move { state.client().await });
        }
        local.await;
        let wall = state.last.get().max(end) - start;
        let tally = state.tally.replace(Tally::new(false));
        let whole = state.whole.replace(histogram());
        (tally, whole, wall)
    }
}

impl State {
    async fn client(&self) {
        let mut connection = None;
        while Instant::now() < self.end {
            let n = self.next.replace(self.next.get() + 1);
            let request = request(&self.load.maker, n);
            let asked = async {
                if connection.is_none() {
                    connection = Some(Connection::open(self.load.address).await?);
                }
                match &mut connection {
                    Some(connection) => connection.ask(&request, self.load.patience).await,
                    None => Err(io::ErrorKind::NotConnected.into()),
                }
            };
            let answer = asked.await;
            let now = Instant::now();
            self.last.set(now);
            match answer {
                Ok(parts) => self.note(&parts, now - self.start),
                Err(error) => {
                    self.fail(&error, now - self.start);
                    connection = None;
                    // A gateway that refuses everything is asked again, but not without a pause.
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            }
        }
    }
}

impl State {
    fn note(&self, parts: &Parts, at: Duration) {
        let length = parts.body.len();
        let odd = self.load.length.is_some_and(|usual| usual != length);
        let mut tally = self.tally.borrow_mut();
        tally.answer(at, parts.first, parts.first, length, odd);
        let micros = parts.whole.as_micros() as u64;
        self.whole.borrow_mut().saturating_record(micros);
    }

    fn fail(&self, error: &io::Error, at: Duration) {
        let mut tally = self.tally.borrow_mut();
        tally.failure(at, &error.to_string(), None);
    }
}

fn request(maker: &RequestMaker, n: u64) -> Vec<u8> {
    let text = String::from_utf8_lossy(&maker.make(n).bytes).into_owned();
    let accept = format!("accept: {ACCEPT}\r\n");
    text.replacen("accept: application/json\r\n", &accept, 1)
        .into_bytes()
}

struct Connection {
    stream: TcpStream,
    raw: Vec<u8>,
}

impl Connection {
    async fn open(address: SocketAddr) -> io::Result<Connection> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let raw = Vec::with_capacity(16 << 10);
        Ok(Connection { stream, raw })
    }

    async fn ask(&mut self, request: &[u8], patience: Duration) -> io::Result<Parts> {
        let asking = tokio::time::timeout(patience, self.parts(request));
        asking
            .await
            .map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?
    }

    async fn parts(&mut self, request: &[u8]) -> io::Result<Parts> {
        let start = Instant::now();
        self.stream.write_all(request).await?;
        self.head().await?;
        let (mut parts, mut chunks) = (Parts::default(), Chunks::default());
        loop {
            chunks.take(&mut self.raw, &mut parts.body).map_err(other)?;
            let has_part = || parts.body.windows(HAS_NEXT.len()).any(|w| w == HAS_NEXT);
            if parts.first.is_zero() && has_part() {
                parts.first = start.elapsed();
            }
            if chunks.ended {
                parts.whole = start.elapsed();
                return if parts.first.is_zero() {
                    Err(other("an answer without parts"))
                } else {
                    Ok(parts)
                };
            }
            self.fill().await?;
        }
    }

    async fn head(&mut self) -> io::Result<()> {
        loop {
            let mut headers = [httparse::EMPTY_HEADER; 64];
            let mut head = httparse::Response::new(&mut headers);
            if let httparse::Status::Complete(end) = head.parse(&self.raw).map_err(other)? {
                let status = head.code.unwrap_or(0);
                if status != 200 {
                    return Err(other(format!("status {status}")));
                }
                let mut headers = head.headers.iter();
                if !headers.any(|h| h.name.eq_ignore_ascii_case("transfer-encoding")) {
                    return Err(other("an answer in one piece"));
                }
                self.raw.drain(..end);
                return Ok(());
            }
            self.fill().await?;
        }
    }

    async fn fill(&mut self) -> io::Result<()> {
        match self.stream.read_buf(&mut self.raw).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}

fn other(error: impl ToString) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error.to_string())
}

/// The answer that parts in the form of 2022 make together.
fn put_together(body: &[u8]) -> std::result::Result<Value, String> {
    let text = String::from_utf8_lossy(body);
    let mut whole: Option<Value> = None;
    let mut n_deferred = 0;
    for part in text.split("\r\n\r\n").skip(1) {
        // What follows is the next delimiter.
        let mut values = serde_json::Deserializer::from_str(part).into_iter::<Value>();
        let Some(Ok(mut part)) = values.next() else {
            return Err(format!("a part that is no JSON: {part}"));
        };
        let Some(whole) = &mut whole else {
            if let Some(members) = part.as_object_mut() {
                members.remove("hasNext");
            }
            whole = Some(part);
            continue;
        };
        for deferred in part["incremental"].as_array_mut().into_iter().flatten() {
            n_deferred += 1;
            let path = deferred["path"].take();
            let mut place = &mut whole["data"];
            for step in path.as_array().into_iter().flatten() {
                place = match step.as_u64() {
                    Some(index) => &mut place[index as usize],
                    None => &mut place[step.as_str().unwrap_or_default()],
                };
            }
            merge(place, deferred["data"].take());
        }
    }
    match (whole, n_deferred) {
        (None, _) => Err("no part".into()),
        (Some(_), 0) => Err("nothing was deferred".into()),
        (Some(whole), _) => Ok(whole),
    }
}

fn merge(place: &mut Value, more: Value) {
    match (place, more) {
        (Value::Object(place), Value::Object(more)) => {
            for (name, value) in more {
                merge(place.entry(name).or_insert(Value::Null), value);
            }
        }
        (Value::Array(place), Value::Array(more)) if place.len() == more.len() => {
            for (place, value) in place.iter_mut().zip(more) {
                merge(place, value);
            }
        }
        (place, more) => *place = more,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parts_make_a_whole() {
        let part =
            |value: Value| format!("\r\n---\r\ncontent-type: application/json\r\n\r\n{value}");
        let first = part(json!({"data": {"user": {"id": "1"}}, "hasNext": true}));
        let deferred = json!({"path": ["user"], "data": {"name": "A"}});
        let second = part(json!({"incremental": [deferred], "hasNext": false}));
        let body = format!("{first}{second}\r\n-----\r\n");
        assert_eq!(
            put_together(body.as_bytes()),
            Ok(json!({"data": {"user": {"id": "1", "name": "A"}}}))
        );
        let alone = format!("{first}\r\n-----\r\n");
        assert!(put_together(alone.as_bytes()).is_err());
    }
}
