//! Requests through the whole gateway, on one thread and without a network: a client at one end of a pipe in memory,
//! hyper's server at the other, the gateway behind it, and subgraphs on unix sockets, which is the nearest to memory that
//! the transport speaks.
//!
//! What the client and the subgraphs do is counted with everything else, so they do as little as they can: the client
//! knows how long the answer is, a subgraph answers by comparing the request with those it has seen. The kernel's part is
//! not counted. An operation over several subgraphs is not among the scenarios: in which order their answers are there
//! makes it differ by 6 %.

use std::{
    cell::RefCell,
    convert::Infallible,
    fs,
    path::{Path, PathBuf},
    rc::Rc,
    sync::Arc,
};

use anyhow::{Context as _, Result, bail, ensure};
use hyper::{Request, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use ogive_base::{Peer, Reservation, SourceId};
use ogive_config::Config;
use ogive_edge::receive::{ReceiveLimits, from_json};
use ogive_gateway::{Gateway, GatewayOptions, SchemaState, WorkerState, prepare::prepare};
use ogive_mock::Subgraph;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex},
    net::{UnixListener, UnixStream},
    runtime::{Builder, LocalOptions, LocalRuntime},
};

use crate::graph::Graph;

/// Bytes that the pipe to the client holds: more than any answer here.
const PIPE: usize = 1 << 20;
/// Requests before any is counted: plans, connections and what is learned of an operation are there then.
const WARM: usize = 40;

/// A body as clients send it.
fn body(graph: &Graph) -> String {
    let query = serde_json::Value::from(&*graph.operation);
    format!(r#"{{"query":{query},"variables":{}}}"#, graph.variables)
}

fn state(graph: Graph, yaml: &str) -> Result<(SchemaState, Config)> {
    let config = ogive_config::load(SourceId(0), yaml, &|_| None);
    let config = config.map_err(|errors| anyhow::anyhow!("{errors:?}"))?;
    Ok((SchemaState::new(graph.supergraph, &config).0, config))
}

/// The body of a known operation's request, up to what the plan is looked up with.
pub fn prepare_hit(graph: Graph) -> Result<Box<dyn Fn() -> Result<()>>> {
    let body = body(&graph);
    let (state, _) = state(graph, "")?;
    let (memory, limits) = (Reservation::new(&Arc::default()), ReceiveLimits::default());
    let run = move || {
        let request = from_json(body.as_bytes(), &limits);
        let request = request.map_err(|error| anyhow::anyhow!("{error:?}"))?;
        let prepared = prepare(&state, &request, &memory);
        let prepared = prepared.map_err(|error| anyhow::anyhow!("{error:?}"))?;
        anyhow::Ok(std::hint::black_box(prepared).cached)
    };
    run()?;
    Ok(Box::new(move || {
        ensure!(run()?, "the operation is not known");
        Ok(())
    }))
}

/// The same with a script.
pub fn end_to_end_scripted(graph: Graph, script: &str) -> Result<Box<dyn Fn() -> Result<()>>> {
    let folder = Folder::new("scripts")?;
    fs::write(folder.0.join("main.rhai"), script)?;
    // Under callgrind, or on a busy machine, a call may take longer than it usually may.
    let yaml = format!(
        "rhai: {{ scripts: '{}', limits: {{ timeout: 60s }} }}\n",
        folder.0.display()
    );
    end_to_end(graph, &yaml)
}

/// One request after another over one connection. `more`: further configuration.
pub fn end_to_end(graph: Graph, more: &str) -> Result<Box<dyn Fn() -> Result<()>>> {
    // As a worker's.
    let runtime = Builder::new_current_thread()
        .enable_all()
        .build_local(LocalOptions::default())?;
    let sockets = Folder::new("sockets")?;
    let mut yaml = format!("{more}override_subgraph_url:\n");
    for (name, engine) in graph.engines()? {
        let path = sockets.0.join(&name);
        yaml.push_str(&format!(
            "  {name}: 'unix://{}?path=/graphql'\n",
            path.display()
        ));
        runtime.block_on(async {
            let listener = UnixListener::bind(&path)?;
            tokio::task::spawn_local(subgraph(listener, Rc::new(engine)));
            anyhow::Ok(())
        })?;
    }
    let body = body(&graph);
    let (state, config) = state(graph, &yaml)?;
    let options = GatewayOptions::load(&config).map_err(anyhow::Error::msg)?;
    let gateway = Arc::new(Gateway::new(state, options));
    let (client, server) = duplex(PIPE);
    runtime.spawn_local(serve(gateway, server));
    let request = format!(
        "POST /graphql HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut client = Client {
        stream: client,
        request: request.into_bytes(),
        answer: Vec::new(),
    };
    runtime.block_on(client.learn())?;
    let whole = RefCell::new((runtime, client, sockets));
    let run = move || {
        let (runtime, client, _) = &mut *whole.borrow_mut();
        ask(runtime, client)
    };
    for _ in 0..WARM {
        run()?;
    }
    Ok(Box::new(run))
}

fn ask(runtime: &LocalRuntime, client: &mut Client) -> Result<()> {
    runtime.block_on(client.ask())
}

/// The connection to the client, as a worker of the gateway serves it.
async fn serve(gateway: Arc<Gateway>, stream: DuplexStream) {
    let worker = Rc::new(WorkerState::new());
    let service = service_fn(move |request: Request<Incoming>| {
        let (gateway, worker) = (Arc::clone(&gateway), Rc::clone(&worker));
        async move { Ok::<_, Infallible>(gateway.handle(request, Peer::Unix, &worker).await) }
    });
    // A clock would be looked at for it.
    let _ = http1::Builder::new()
        .auto_date_header(false)
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

struct Client {
    stream: DuplexStream,
    request: Vec<u8>,
    /// The first one; every other has to be the same.
    answer: Vec<u8>,
}

impl Client {
    /// Asks once, and reads as far as the answer says.
    async fn learn(&mut self) -> Result<()> {
        self.stream.write_all(&self.request).await?;
        let (mut answer, mut all) = (Vec::new(), usize::MAX);
        while answer.len() < all {
            ensure!(self.stream.read_buf(&mut answer).await? > 0, "no answer");
            if let Some((head, length)) = framing(&answer) {
                all = head + length;
            }
        }
        let text = String::from_utf8_lossy(&answer);
        if !text.starts_with("HTTP/1.1 200") || text.contains("\"errors\"") {
            bail!("{}", text.chars().take(2_000).collect::<String>());
        }
        self.answer = answer;
        Ok(())
    }
    async fn ask(&mut self) -> Result<()> {
        self.stream.write_all(&self.request).await?;
        let mut answer = Vec::with_capacity(self.answer.len());
        while answer.len() < self.answer.len() {
            ensure!(self.stream.read_buf(&mut answer).await? > 0, "no answer");
            // Another answer may be shorter: nothing comes behind it.
            ensure!(
                self.answer.starts_with(&answer),
                "another answer than before"
            );
        }
        Ok(())
    }
}

/// Where the body of a message begins and how long it is, if its head is there.
fn framing(message: &[u8]) -> Option<(usize, usize)> {
    let head = message.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let text = std::str::from_utf8(&message[..head]).ok()?.to_lowercase();
    let length = text.split("content-length:").nth(1)?;
    Some((head, length.split_whitespace().next()?.parse().ok()?))
}

/// Requests and answers, heads included.
type Seen = RefCell<Vec<(Vec<u8>, Vec<u8>)>>;

async fn subgraph(listener: UnixListener, engine: Rc<Subgraph>) {
    let seen: Rc<Seen> = Rc::default();
    while let Ok((stream, _)) = listener.accept().await {
        let (engine, seen) = (Rc::clone(&engine), Rc::clone(&seen));
        tokio::task::spawn_local(async move {
            // The gateway may close a connection at any time.
            let _ = answer(stream, &engine, &seen).await;
        });
    }
}

async fn answer(mut stream: UnixStream, engine: &Subgraph, seen: &Seen) -> Result<()> {
    let mut request = Vec::with_capacity(64 << 10);
    while stream.read_buf(&mut request).await? > 0 {
        let known = |seen: &Seen| {
            let seen = seen.borrow();
            let found = seen.iter().find(|(known, _)| *known == request);
            found.map(|(_, answer)| answer.clone())
        };
        let answer = match known(seen) {
            Some(answer) => answer,
            None => {
                let Some((head, length)) = framing(&request) else {
                    continue;
                };
                if request.len() < head + length {
                    continue;
                }
                let body = engine.execute_body(&request[head..], &Default::default());
                let mut answer = format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
                    body.body.len()
                )
                .into_bytes();
                answer.extend_from_slice(&body.body);
                let new = (request.clone(), answer.clone());
                seen.borrow_mut().push(new);
                answer
            }
        };
        stream.write_all(&answer).await?;
        request.clear();
    }
    Ok(())
}

/// A folder of our own that goes with us.
struct Folder(PathBuf);

impl Folder {
    fn new(what: &str) -> Result<Folder> {
        let name = format!("ogive-icount-{}-{what}", std::process::id());
        let folder: &Path = &std::env::temp_dir().join(name);
        // Left behind by a process that had the same number.
        let _ = fs::remove_dir_all(folder);
        fs::create_dir(folder).with_context(|| folder.display().to_string())?;
        Ok(Folder(folder.to_owned()))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
