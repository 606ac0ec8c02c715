//! A transport that answers from a script, and an executor that polls until done.

use std::{
    cell::{Cell, RefCell},
    future::Future,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use bytes::Bytes;
use ogive_execute::{
    ErrorCode, ExecuteInput, ExecuteLimits, ExecuteOptions, ExecuteOutput, Failure, FailureReport,
    RequestLimits, SubgraphRequest, SubgraphResponse, Transport, TransportFuture, execute,
};
use ogive_plan::{Granted, Plan};

/// One scripted answer.
pub(crate) struct Answer {
    /// How often its future says "not yet".
    delay: u32,
    result: Result<SubgraphResponse, Failure>,
}

/// Status 200 with this body.
pub(crate) fn ok(body: &str) -> Answer {
    status(200, body)
}
pub(crate) fn status(status: u16, body: &str) -> Answer {
    Answer {
        delay: 0,
        result: Ok(SubgraphResponse {
            status,
            body: Bytes::from(body.to_owned()),
        }),
    }
}
pub(crate) fn unreachable() -> Answer {
    Answer {
        delay: 0,
        result: Err(Failure::new(
            ErrorCode::SUBREQUEST_HTTP_ERROR,
            "The subgraph could not be reached.",
            "connection refused",
        )),
    }
}
impl Answer {
    pub(crate) fn after(mut self, polls: u32) -> Self {
        self.delay = polls;
        self
    }
}

/// Answers the requests to each subgraph in the order in which they come.
pub(crate) struct Script {
    answers: RefCell<Vec<Vec<Answer>>>,
    pub(crate) requests: RefCell<Vec<(u32, String)>>,
    pub(crate) idempotent: RefCell<Vec<bool>>,
    pub(crate) done: RefCell<Vec<u32>>,
    pub(crate) in_flight_max: Cell<u32>,
    in_flight: Cell<u32>,
    pub(crate) limits: RequestLimits,
    /// Code and number of places of what was told to operators.
    pub(crate) failures: RefCell<Vec<(String, u32)>>,
}

impl Script {
    /// `answers` by subgraph.
    pub(crate) fn new(answers: Vec<Vec<Answer>>) -> Self {
        Script {
            answers: RefCell::new(answers),
            requests: RefCell::default(),
            idempotent: RefCell::default(),
            done: RefCell::default(),
            in_flight_max: Cell::new(0),
            in_flight: Cell::new(0),
            limits: RequestLimits::default(),
            failures: RefCell::default(),
        }
    }
    pub(crate) fn sent(&self) -> Vec<(u32, String)> {
        self.requests.borrow().clone()
    }
}

struct Scripted<'a> {
    script: &'a Script,
    subgraph: u32,
    answer: Option<Answer>,
}

impl Future for Scripted<'_> {
    type Output = Result<SubgraphResponse, Failure>;
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let answer = self.answer.as_mut().expect("polled after it was done");
        if answer.delay > 0 {
            answer.delay -= 1;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let result = self.answer.take().unwrap().result;
        self.script.in_flight.set(self.script.in_flight.get() - 1);
        self.script.done.borrow_mut().push(self.subgraph);
        Poll::Ready(result)
    }
}

impl Transport for Script {
    fn request_limits(&self, _: u32) -> RequestLimits {
        self.limits
    }
    fn failed(&self, failure: &FailureReport<'_>) {
        let row = (failure.code.to_owned(), failure.places);
        self.failures.borrow_mut().push(row);
    }
    fn send(&self, request: SubgraphRequest) -> TransportFuture<'_> {
        let subgraph = request.subgraph as usize;
        let body = String::from_utf8(request.body.to_vec()).unwrap();
        serde_json::from_str::<serde_json::Value>(&body).expect("request bodies are JSON");
        self.requests.borrow_mut().push((request.subgraph, body));
        self.idempotent.borrow_mut().push(request.idempotent);
        self.in_flight.set(self.in_flight.get() + 1);
        self.in_flight_max
            .set(self.in_flight_max.get().max(self.in_flight.get()));
        let answers = &mut self.answers.borrow_mut()[subgraph];
        assert!(!answers.is_empty(), "unexpected request to {subgraph}");
        Box::pin(Scripted {
            script: self,
            subgraph: request.subgraph,
            answer: Some(answers.remove(0)),
        })
    }
}

/// How to run a plan.
#[derive(Default)]
pub(crate) struct Setup {
    pub(crate) variables: Vec<Option<Box<str>>>,
    pub(crate) granted: Granted,
    pub(crate) locals: Vec<Bytes>,
    pub(crate) limits: ExecuteLimits,
    pub(crate) options: ExecuteOptions,
}

pub(crate) fn run_with(plan: &Plan, setup: &Setup, script: &Script) -> ExecuteOutput {
    let input = ExecuteInput {
        costs: None,
        operation_names: None,
        error_extensions: &[],
        variables: &setup.variables,
        granted: &setup.granted,
        locals: &setup.locals,
        limits: setup.limits,
        options: setup.options,
    };
    let output = block_on(execute(plan, input, script));
    assert!(
        script.answers.borrow().iter().all(Vec::is_empty),
        "answers left over; sent: {:#?}",
        script.sent()
    );
    output
}

/// Runs a plan and returns the response's text.
pub(crate) fn run(plan: &Plan, answers: Vec<Vec<Answer>>) -> String {
    text(run_with(plan, &Setup::default(), &Script::new(answers)))
}

pub(crate) fn text(output: ExecuteOutput) -> String {
    let n_errors = output.errors;
    let text = String::from_utf8(output.body.into_bytes().to_vec()).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).expect("responses are JSON");
    let errors = json
        .get("errors")
        .map_or(0, |errors| errors.as_array().unwrap().len());
    assert_eq!(errors, n_errors, "{text}");
    text
}

struct Woken(AtomicBool);
impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}

/// Polls only when woken, so that a lost wake-up is a failed test and no endless loop.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let woken = Arc::new(Woken(AtomicBool::new(true)));
    let waker = Waker::from(Arc::clone(&woken));
    let mut future = pin!(future);
    loop {
        assert!(woken.0.swap(false, Ordering::AcqRel), "nobody will wake us");
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
    }
}
