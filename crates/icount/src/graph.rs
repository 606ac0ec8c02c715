//! Graphs of the benchmark lab, planned by the product and answered by the mock's engine, once; runs that are measured
//! get the recorded answers.

use std::{
    cell::{Cell, RefCell},
    future::Future,
    path::{Path, PathBuf},
    pin::pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use anyhow::{Context as _, Result, anyhow, bail};
use bytes::Bytes;
use ogive_base::SourceId;
use ogive_execute::{
    ExecuteInput, ExecuteLimits, ExecuteOptions, ExecuteOutput, StreamScan, SubgraphRequest,
    SubgraphResponse, Transport, TransportFuture, execute,
};
use ogive_federation::{ReadOptions, Supergraph, read_supergraph};
use ogive_json::Tree;
use ogive_mock::{Data, Generator, GeneratorOptions, Model, Options, Source, Subgraph};
use ogive_operation::{NormaliseLimits, coerce_variables, normalise};
use ogive_plan::{Granted, Plan};
use ogive_planner::{PlanOptions, plan};
use ogive_syntax::{Limits, parse};

/// A graph and one of its operations.
#[derive(Debug)]
pub struct Graph {
    /// The supergraph as the gateway reads it.
    pub supergraph: Supergraph,
    /// The operation's text.
    pub operation: String,
    /// Its variables, as JSON.
    pub variables: String,
    folder: PathBuf,
}

impl Graph {
    /// Reads `bench/graphs/<name>` and its operation `<operation>`.
    pub fn read(name: &str, operation: &str, variables: &str) -> Result<Graph> {
        let graphs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench/graphs");
        let folder = Path::new(graphs).join(name);
        let read = |path: PathBuf| {
            std::fs::read_to_string(&path).with_context(|| path.display().to_string())
        };
        let text = read(folder.join("supergraph.graphql"))?;
        let supergraph = read_supergraph(&text, SourceId(0), &ReadOptions::default())
            .map_err(|errors| anyhow!("{name}: {errors:?}"))?;
        Ok(Graph {
            supergraph,
            operation: read(folder.join(format!("operations/{operation}.graphql")))?,
            variables: variables.to_owned(),
            folder,
        })
    }

    /// Plans the operation: parse, normalise, plan.
    pub fn plan(&self) -> Result<(Plan, Vec<Option<Box<str>>>)> {
        let parsed = parse(self.operation.as_str(), SourceId(0), &Limits::default());
        let operation = parsed
            .document
            .operations()
            .next()
            .context("no operation")?;
        let api = &self.supergraph.api;
        let input = Tree::read(self.variables.as_bytes(), 128)?;
        let input = Some(input.root());
        let variables = coerce_variables(api, &parsed.document, operation, input, true)
            .map_err(|errors| anyhow!("{errors:?}"))?;
        let operation = normalise(
            api,
            &parsed.document,
            operation,
            &NormaliseLimits::default(),
        )
        .map_err(|errors| anyhow!("{errors:?}"))?;
        let plan = plan(&self.supergraph, &operation, &PlanOptions::default())
            .map_err(|error| anyhow!("{error}"))?;
        Ok((plan, variables.values))
    }

    /// The engines of all subgraphs, over the graph's data file or generated values.
    pub(crate) fn engines(&self) -> Result<Vec<(String, Subgraph)>> {
        let mut sdls = Vec::new();
        for entry in std::fs::read_dir(self.folder.join("subgraphs"))? {
            let path = entry?.path();
            let name = path.file_stem().and_then(|stem| stem.to_str());
            let name = name.context("a subgraph's file name")?.to_owned();
            sdls.push((name, std::fs::read_to_string(&path)?));
        }
        sdls.sort();
        let mut models = Vec::new();
        for (name, sdl) in &sdls {
            models.push(
                Model::from_sdl(name, sdl, Options::default().federation)
                    .map_err(|error| anyhow!("{error:?}"))?,
            );
        }
        let source = match std::fs::read_to_string(self.folder.join("data.json")) {
            Ok(text) => Source::Data(Arc::new(
                Data::parse(&text).map_err(|error| anyhow!("{error:?}"))?,
            )),
            Err(_) => {
                let mut options = GeneratorOptions {
                    seed: 1,
                    ..GeneratorOptions::default()
                };
                for field in ["floats", "ints", "strings"] {
                    options.lengths.insert(format!("Node.{field}"), (21, 64));
                }
                for field in ["string", "strings"] {
                    options.texts.insert(format!("Node.{field}"), (0, 128));
                }
                let models: Vec<&Model> = models.iter().collect();
                Source::Generated(Arc::new(Generator::new(&models, options)))
            }
        };
        let names = sdls.into_iter().map(|(name, _)| name);
        Ok(names
            .zip(models)
            .map(|(name, model)| {
                let options = Options::default();
                (name, Subgraph::from_model(model, source.clone(), options))
            })
            .collect())
    }

    /// Plans the operation and records what the subgraphs answer.
    pub fn prepare(&self) -> Result<Prepared> {
        self.prepare_with(ExecuteOptions::default())
    }
    /// The same for an execution with options.
    pub fn prepare_with(&self, options: ExecuteOptions) -> Result<Prepared> {
        let (plan, variables) = self.plan()?;
        let recorder = Recorder {
            plan: &plan,
            engines: self.engines()?,
            answers: RefCell::default(),
        };
        let granted = Granted::default();
        let input = input(&variables, &granted, options);
        let output = drive(execute(&plan, input, &recorder))?;
        if output.errors > 0 {
            let body = output.body.into_bytes();
            bail!("{}", String::from_utf8_lossy(&body[..body.len().min(2000)]));
        }
        let answers = recorder.answers.into_inner();
        Ok(Prepared {
            plan,
            variables,
            options,
            answers,
        })
    }
    /// Plans the operation and reads what [`Prepared::write_answers`] wrote.
    pub fn prepare_from(&self, path: &Path, options: ExecuteOptions) -> Result<Prepared> {
        let (plan, variables) = self.plan()?;
        let mut rest = Bytes::from(std::fs::read(path)?);
        let mut next = || {
            let length = rest.split_to(size_of::<u64>().min(rest.len()));
            let length = u64::from_le_bytes(length.as_ref().try_into()?);
            anyhow::Ok(rest.split_to((length as usize).min(rest.len())))
        };
        let mut answers = Vec::new();
        // The number of answers comes first.
        let count = next()?;
        for _ in 0..u64::from_le_bytes(count.as_ref().try_into()?) {
            answers.push((next()?, next()?));
        }
        Ok(Prepared {
            plan,
            variables,
            options,
            answers,
        })
    }
}

/// A planned operation with recorded answers.
#[derive(Debug)]
pub struct Prepared {
    /// The plan.
    pub plan: Plan,
    pub(crate) variables: Vec<Option<Box<str>>>,
    pub(crate) options: ExecuteOptions,
    /// Request and answer bodies in the order of sending.
    pub answers: Vec<(Bytes, Bytes)>,
}

impl Prepared {
    /// Writes the recorded answers to a file.
    pub fn write_answers(&self, path: &Path) -> Result<()> {
        let mut out = Vec::new();
        let mut add = |bytes: &[u8]| {
            out.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
            out.extend_from_slice(bytes);
        };
        add(&(self.answers.len() as u64).to_le_bytes());
        for (request, answer) in &self.answers {
            add(request);
            add(answer);
        }
        Ok(std::fs::write(path, out)?)
    }

    /// Executes the plan over the recorded answers.
    pub fn run(&self) -> Result<ExecuteOutput> {
        self.run_in_pieces(usize::MAX)
    }
    /// The same, and answers are looked at whenever so many bytes more of them have come.
    pub fn run_in_pieces(&self, piece: usize) -> Result<ExecuteOutput> {
        let transport = Canned {
            answers: &self.answers,
            next: Cell::new(0),
            piece,
        };
        let granted = Granted::default();
        let input = input(&self.variables, &granted, self.options);
        drive(execute(&self.plan, input, &transport))
    }
}

pub(crate) fn input<'a>(
    variables: &'a [Option<Box<str>>],
    granted: &'a Granted,
    options: ExecuteOptions,
) -> ExecuteInput<'a> {
    ExecuteInput {
        costs: None,
        operation_names: None,
        error_extensions: &[],
        variables,
        granted,
        locals: &[],
        limits: ExecuteLimits::default(),
        options,
    }
}

/// Polls a future that is always ready.
pub fn drive<F: Future>(future: F) -> Result<F::Output> {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..1000 {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return Ok(output);
        }
    }
    bail!("the execution hangs")
}

/// Asks the engines, and remembers.
struct Recorder<'p> {
    plan: &'p Plan,
    engines: Vec<(String, Subgraph)>,
    answers: RefCell<Vec<(Bytes, Bytes)>>,
}

impl Transport for Recorder<'_> {
    fn send(&self, request: SubgraphRequest) -> TransportFuture<'_> {
        let name = &*self.plan.subgraphs[request.subgraph as usize];
        let engine = self.engines.iter().find(|(known, _)| known == name);
        let body = match engine {
            Some((_, engine)) => engine.execute_body(&request.body, &Default::default()).body,
            None => Vec::new(),
        };
        let body = Bytes::from(body);
        self.answers.borrow_mut().push((request.body, body.clone()));
        Box::pin(std::future::ready(Ok(SubgraphResponse {
            status: 200,
            body,
        })))
    }
}

/// Gives recorded answers.
struct Canned<'a> {
    answers: &'a [(Bytes, Bytes)],
    next: Cell<usize>,
    /// Bytes that come at a time.
    piece: usize,
}

impl Canned<'_> {
    fn next(&self, request: &SubgraphRequest) -> Bytes {
        let at = self.next.get();
        self.next.set(at + 1);
        // Requests come in the order of the recording, because nothing is random.
        match self.answers.get(at) {
            Some((sent, answer)) if sent.len() == request.body.len() => answer.clone(),
            _ => Bytes::new(),
        }
    }
}

impl Transport for Canned<'_> {
    fn send_scanned<'a>(
        &'a self,
        request: SubgraphRequest,
        ahead: StreamScan<'a>,
    ) -> TransportFuture<'a> {
        let body = self.next(&request);
        if body.len() > self.piece {
            let mut arriving = ahead.begin();
            let mut came = StreamScan::BYTES_MIN;
            while let Some(so_far) = body.get(..came) {
                arriving.look(so_far);
                came += self.piece;
            }
            arriving.whole(&body);
        }
        Box::pin(std::future::ready(Ok(SubgraphResponse {
            status: 200,
            body,
        })))
    }

    fn send(&self, request: SubgraphRequest) -> TransportFuture<'_> {
        let body = self.next(&request);
        Box::pin(std::future::ready(Ok(SubgraphResponse {
            status: 200,
            body,
        })))
    }
}
