//! A stage: the subgraph server, the server with all data that answers are compared with, and one gateway before the
//! subgraphs, all as processes of their own on addresses nobody else uses.

use std::{
    collections::BTreeMap,
    fs, io,
    net::{Ipv4Addr, SocketAddr, TcpListener},
    ops::Range,
    path::{Path, PathBuf},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    Error, Result, http,
    install::Installed,
    load::{RequestMaker, request::Parts},
    machine::Placement,
    model::{Gateway, Graph, Lab, ModeSpec, Role, Scenario, federation_1},
    process::{Process, Program},
    template::{SubgraphPlace, Values},
};

/// How long servers of the lab may take to start.
const SERVER_PATIENCE: Duration = Duration::from_secs(60);
/// How often a server that starts is asked.
const ASK_EVERY: Duration = Duration::from_millis(3);
/// How long one such question may take.
const ASK_PATIENCE: Duration = Duration::from_secs(2);
/// Ports of servers: below those that Linux gives to whoever asks for any.
const PORTS: Range<u16> = 20_000..32_000;
/// Name of the server with all data, and of its one subgraph.
const MONOLITH: &str = "monolith";

/// Commands of the lab's own servers.
#[derive(Clone, Debug)]
pub struct Servers {
    /// Serves subgraphs; the path of a configuration file is appended.
    pub mock: Vec<String>,
    /// Serves REST; address and delay are appended.
    pub rest: Vec<String>,
    /// Sends events; its address is appended.
    pub events: Vec<String>,
}

impl Servers {
    /// Those of the `ogive` program.
    pub fn of(ogive: &Path) -> Servers {
        let ogive = ogive.display().to_string();
        Servers {
            mock: vec![ogive.clone(), "mock".into(), "--config".into()],
            rest: vec![ogive.clone(), "bench".into(), "rest-services".into()],
            events: vec![ogive, "bench".into(), "event-source".into()],
        }
    }
}

/// What a stage is built from.
#[derive(Clone, Copy, Debug)]
pub struct Plot<'a> {
    /// Everything known.
    pub lab: &'a Lab,
    /// Commands of servers.
    pub servers: &'a Servers,
    /// The scenario.
    pub scenario: &'a Scenario,
    /// The gateway.
    pub gateway: &'a Gateway,
    /// Where it is installed.
    pub installed: &'a Installed,
    /// Who gets which CPUs.
    pub placement: &'a Placement,
    /// Folder for files and logs of this run.
    pub work: &'a Path,
    /// Whether subgraphs keep what they were asked.
    pub record: bool,
}

/// Running servers.
#[derive(Debug)]
pub struct Stage {
    /// The gateway.
    pub gateway: Process,
    /// Where it serves.
    pub address: SocketAddr,
    /// Start to ready.
    pub ready: Duration,
    /// Its command.
    pub command: Vec<String>,
    /// The supergraph file it was given.
    pub supergraph: PathBuf,
    subgraphs: Server,
    monolith: Server,
    /// The last answer of the server with all data, and to what: most scenarios ask the same again and again.
    right: Mutex<(Vec<u8>, Vec<u8>)>,
}

#[derive(Debug)]
struct Server {
    /// Ends when the stage does.
    _process: Process,
    address: SocketAddr,
}

/// Counters of the subgraph server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests.
    pub requests: u64,
    /// Bytes of answers.
    pub bytes: u64,
}

/// Servers and everything to start the gateway with, so that it can be started more than once.
#[derive(Debug)]
pub struct Prepared {
    subgraphs: Server,
    monolith: Server,
    program: Program,
    values: Values,
    port: u16,
}

impl Stage {
    /// Starts everything and waits until the gateway is ready.
    pub fn set(plot: &Plot<'_>) -> Result<Stage> {
        Prepared::new(plot)?.start(plot)
    }

    /// Asks the gateway; not while it is measured.
    pub fn ask(&self, request: &[u8], patience: Duration) -> Result<http::Answer> {
        http::once(self.address, request, patience).map_err(|error| {
            let message = format!("the gateway did not answer within {patience:?}: {error}");
            Error::Answer(message)
        })
    }

    /// The right answer to the body of a request.
    pub fn expected(&self, body: &[u8]) -> Result<Vec<u8>> {
        {
            let right = self.right.lock().unwrap_or_else(PoisonError::into_inner);
            if right.0 == body {
                return Ok(right.1.clone());
            }
        }
        let answer = self.ask_monolith(body)?;
        let mut right = self.right.lock().unwrap_or_else(PoisonError::into_inner);
        *right = (body.to_vec(), answer.clone());
        Ok(answer)
    }

    fn ask_monolith(&self, body: &[u8]) -> Result<Vec<u8>> {
        let path = format!("/graphql/{MONOLITH}");
        let body = String::from_utf8_lossy(body);
        let request = http::post(&path, self.monolith.address, "", &body);
        let answer =
            http::once(self.monolith.address, &request, SERVER_PATIENCE).map_err(|error| {
                Error::Answer(format!("the server with all data did not answer: {error}"))
            })?;
        Ok(answer.body)
    }

    /// Where the subgraphs are, or the source of events.
    pub fn upstream(&self) -> SocketAddr {
        self.subgraphs.address
    }

    /// Counters of the subgraph server.
    pub fn counts(&self) -> Result<Counts> {
        let stats = self.subgraph_json("/stats")?;
        let number = |name: &str| stats["total"][name].as_u64().unwrap_or(0);
        Ok(Counts {
            requests: number("requests"),
            bytes: number("bytes_out"),
        })
    }

    /// Sets the counters to 0.
    pub fn reset_counts(&self) -> Result<()> {
        let request = http::post("/stats/reset", self.subgraphs.address, "", "");
        http::once(self.subgraphs.address, &request, SERVER_PATIENCE)
            .map_err(Error::system("the subgraph server did not answer"))?;
        Ok(())
    }

    /// What subgraphs were asked: headers by request. Empty unless the stage records.
    pub fn recorded_headers(&self) -> Result<Vec<BTreeMap<String, String>>> {
        let requests = self.subgraph_json("/requests")?;
        let headers = |request: &Value| {
            let pairs = request["headers"].as_array().into_iter().flatten();
            pairs
                .filter_map(|pair| {
                    Some((
                        pair[0].as_str()?.to_ascii_lowercase(),
                        pair[1].as_str()?.to_owned(),
                    ))
                })
                .collect()
        };
        Ok(requests
            .as_array()
            .into_iter()
            .flatten()
            .map(headers)
            .collect())
    }

    /// Puts a new supergraph in place: the old one with another description of its first root type.
    pub fn replace_supergraph(&self, n: u32) -> Result<()> {
        let path = &self.supergraph;
        let text = fs::read_to_string(path).map_err(Error::file(path))?;
        let base = match text.split_once("\n\"\"\"Revision ") {
            Some((before, after)) => format!(
                "{before}\n{}",
                after.split_once('\n').map_or("", |(_, rest)| rest)
            ),
            None => text,
        };
        let new = base.replacen(
            "\ntype Query",
            &format!("\n\"\"\"Revision {n}\"\"\"\ntype Query"),
            1,
        );
        let temporary = path.with_extension("new");
        fs::write(&temporary, new).map_err(Error::file(&temporary))?;
        fs::rename(&temporary, path).map_err(Error::file(path))
    }

    fn subgraph_json(&self, path: &str) -> Result<Value> {
        let address = self.subgraphs.address;
        let answer = http::once(address, &http::get(path, address), SERVER_PATIENCE)
            .map_err(Error::system("the subgraph server did not answer"))?;
        serde_json::from_slice(&answer.body)
            .map_err(|error| Error::Answer(format!("{path} of the subgraph server: {error}")))
    }
}

impl Prepared {
    /// Starts the servers and writes the gateway's files.
    pub fn new(plot: &Plot<'_>) -> Result<Prepared> {
        fs::create_dir_all(plot.work).map_err(Error::file(plot.work))?;
        let graph = plot.lab.graph(&plot.scenario.graph)?;
        let rest = plot.gateway.can(Role::Rest) && plot.scenario.roles.contains(&Role::Rest);
        let subgraphs = if rest {
            rest_services(plot)?
        } else if plot.scenario.subscribers.is_some() {
            event_source(plot)?
        } else {
            subgraph_server(plot, graph)?
        };
        let monolith = monolith(plot, graph)?;
        let port = free_port()?;
        let values = values(plot, graph, &subgraphs, port)?;
        let program = program(plot, &values)?;
        Ok(Prepared {
            subgraphs,
            monolith,
            program,
            values,
            port,
        })
    }

    fn launch(&self, plot: &Plot<'_>) -> Result<(Process, Duration)> {
        let start = Instant::now();
        let mut process = Process::start(&self.program)?;
        let address = local(self.port);
        let health = &plot.gateway.spec.health;
        let question = match (&health.path, &plot.gateway.spec.request.get) {
            (Some(path), _) | (None, Some(path)) => http::get(path, address),
            (None, None) => http::post(
                &path_of(plot.gateway),
                address,
                "",
                "{\"query\":\"{__typename}\"}",
            ),
        };
        wait(&mut process, address, &question, health.timeout.0)
            .map_err(|message| Error::program(&plot.gateway.spec.title, message))?;
        Ok((process, start.elapsed()))
    }

    /// Starts the gateway.
    pub fn start(self, plot: &Plot<'_>) -> Result<Stage> {
        let (gateway, ready) = self.launch(plot)?;
        let supergraph = self.values.names.get("supergraph").map(PathBuf::from);
        Ok(Stage {
            gateway,
            address: local(self.port),
            ready,
            command: self.program.command,
            supergraph: supergraph.unwrap_or_default(),
            subgraphs: self.subgraphs,
            monolith: self.monolith,
            right: Mutex::default(),
        })
    }

    /// Starts the gateway, waits for its first right answer and ends it again.
    pub fn first_answer(
        &self,
        plot: &Plot<'_>,
        is_right: &dyn Fn(&http::Answer) -> bool,
    ) -> Result<Duration> {
        let maker = request_maker(plot, local(self.port))?;
        let request = maker.make(0).bytes;
        let start = Instant::now();
        let mut process = Process::start(&self.program)?;
        let patience = plot.gateway.spec.health.timeout.0;
        loop {
            if let Ok(answer) = http::once(local(self.port), &request, patience)
                && is_right(&answer)
            {
                return Ok(start.elapsed());
            }
            if process.ended().is_some() || start.elapsed() > patience {
                return Err(Error::program(
                    &plot.gateway.spec.title,
                    process.last_words(),
                ));
            }
            std::thread::sleep(ASK_EVERY);
        }
    }
}

/// Requests of a scenario to one address.
pub fn request_maker(plot: &Plot<'_>, address: SocketAddr) -> Result<RequestMaker> {
    let graph = plot.lab.graph(&plot.scenario.graph)?;
    let operation = graph.operation(&plot.scenario.operation)?;
    Ok(RequestMaker::new(&Parts {
        address,
        path: &path_of(plot.gateway),
        get: plot.gateway.spec.request.get.as_deref(),
        operation: &operation,
        variables: &plot.scenario.variables,
        fresh: plot.scenario.fresh,
        authorization: plot.scenario.authorization,
        keep_alive: plot.scenario.load.keep_alive,
    }))
}

/// The path that operations are sent to.
pub fn path_of(gateway: &Gateway) -> String {
    gateway
        .spec
        .request
        .path
        .clone()
        .unwrap_or_else(|| "/graphql".into())
}

fn local(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

/// None that the system gives to whoever asks for any: it could do so before the server that is started listens.
fn free_port() -> Result<u16> {
    static ASKED: AtomicU32 = AtomicU32::new(0);
    let number = PORTS.end - PORTS.start;
    // Other processes of the lab begin elsewhere.
    let first = std::process::id().wrapping_mul(97);
    let mut last = Err(io::ErrorKind::AddrInUse.into());
    for _ in 0..number {
        let asked = ASKED.fetch_add(1, Ordering::Relaxed);
        let port = PORTS.start + (first.wrapping_add(asked) % u32::from(number)) as u16;
        last = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map(|_| port);
        if last.is_ok() {
            break;
        }
    }
    last.map_err(Error::system("no free port"))
}

fn wait(
    process: &mut Process,
    address: SocketAddr,
    question: &[u8],
    patience: Duration,
) -> Result<(), String> {
    let start = Instant::now();
    let mut last = String::from("nothing listens");
    loop {
        match http::once(address, question, ASK_PATIENCE) {
            Ok(answer) if (200..300).contains(&answer.status) => return Ok(()),
            Ok(answer) => last = format!("status {}", answer.status),
            Err(error) if error.kind() != io::ErrorKind::ConnectionRefused => {
                last = error.to_string()
            }
            Err(_) => {}
        }
        if let Some(status) = process.ended() {
            let complaint = process.complaint().unwrap_or_default();
            return Err(format!(
                "ended with {status} while starting: {complaint}\n{}",
                process.last_words()
            ));
        }
        if start.elapsed() > patience {
            return Err(format!(
                "not ready after {patience:?} ({last}):\n{}",
                process.last_words()
            ));
        }
        std::thread::sleep(ASK_EVERY);
    }
}

fn server(plot: &Plot<'_>, name: &str, command: Vec<String>, port: u16) -> Result<Server> {
    let mut process = Process::start(&Program {
        command,
        folder: plot.work.to_path_buf(),
        log: plot.work.join(format!("{name}.log")),
        cpus: plot.placement.load.clone(),
        ..Program::default()
    })?;
    let address = local(port);
    wait(
        &mut process,
        address,
        &http::get("/health", address),
        SERVER_PATIENCE,
    )
    .map_err(|message| Error::program(name, message))?;
    Ok(Server {
        _process: process,
        address,
    })
}

fn mock(
    plot: &Plot<'_>,
    graph: &Graph,
    name: &str,
    port: u16,
    subgraphs: Value,
    more: Value,
) -> Result<Server> {
    let mut config = json!({ "listen": format!("127.0.0.1:{port}"), "subgraphs": subgraphs });
    if let Some(data) = &graph.data {
        config["data"] = json!(data);
    }
    if graph.generate.is_object() {
        config["generate"] = graph.generate.clone();
    }
    for (key, value) in more.as_object().into_iter().flatten() {
        config[key] = value.clone();
    }
    let path = plot.work.join(format!("{name}.json"));
    fs::write(&path, config.to_string()).map_err(Error::file(&path))?;
    let mut command = plot.servers.mock.clone();
    command.push(path.display().to_string());
    server(plot, name, command, port)
}

fn subgraph_server(plot: &Plot<'_>, graph: &Graph) -> Result<Server> {
    let behaviour = &plot.scenario.subgraphs;
    let mut subgraphs = json!({});
    for (name, sdl) in &graph.subgraphs {
        let mut one = json!({ "sdl": sdl });
        if let Some(delay) = behaviour.delays.get(name).or(behaviour.delay.as_ref()) {
            one["delay"] = json!(delay);
        }
        if let Some(faults) = behaviour.faults.get(name) {
            one["faults"] = json!(faults);
        }
        subgraphs[name] = one;
    }
    let more = json!({ "workers": behaviour.workers.unwrap_or(1), "record": plot.record });
    mock(plot, graph, "subgraphs", free_port()?, subgraphs, more)
}

fn monolith(plot: &Plot<'_>, graph: &Graph) -> Result<Server> {
    let mut one = json!({ "sdl": graph.monolith() });
    if !plot.scenario.expect.faults.is_empty() {
        one["faults"] = json!(plot.scenario.expect.faults);
    }
    // Generated values follow from all schemas together, so the others are there too.
    let mut subgraphs = json!({ MONOLITH: one });
    for (name, sdl) in &graph.subgraphs {
        subgraphs[name] = json!({ "sdl": sdl });
    }
    mock(
        plot,
        graph,
        MONOLITH,
        free_port()?,
        subgraphs,
        json!({ "cache": false }),
    )
}

fn rest_services(plot: &Plot<'_>) -> Result<Server> {
    let port = free_port()?;
    let delay = plot
        .scenario
        .subgraphs
        .delay
        .clone()
        .unwrap_or_else(|| "0ms".into());
    let mut command = plot.servers.rest.clone();
    command.extend([format!("127.0.0.1:{port}"), delay]);
    server(plot, "rest", command, port)
}

fn event_source(plot: &Plot<'_>) -> Result<Server> {
    let port = free_port()?;
    let mut command = plot.servers.events.clone();
    command.push(format!("127.0.0.1:{port}"));
    server(plot, "events", command, port)
}

fn values(plot: &Plot<'_>, graph: &Graph, subgraphs: &Server, port: u16) -> Result<Values> {
    let base = format!("http://{}", subgraphs.address);
    let write = |name: &str, text: &str| {
        let path = plot.work.join(name);
        fs::write(&path, text).map_err(Error::file(&path))?;
        Ok::<_, Error>(path.display().to_string())
    };
    let mut values = Values::default();
    let mut sdls = Vec::new();
    for (name, path) in &graph.subgraphs {
        let sdl = fs::read_to_string(path).map_err(Error::file(path))?;
        sdls.push((name.clone(), sdl));
    }
    if plot.gateway.spec.federation_1 {
        sdls = federation_1(&sdls);
    }
    for (name, sdl) in sdls {
        values.subgraphs.push(SubgraphPlace {
            url: format!("{base}/graphql/{name}"),
            sdl: write(&format!("{name}.subgraph.graphql"), &sdl)?,
            name,
        });
    }
    let list = json!(values.subgraphs).to_string();
    values.set("subgraphs", write("subgraphs-list.json", &list)?);
    values.set(
        "supergraph",
        write("supergraph.graphql", &graph.supergraph(&base)?)?,
    );
    values.set("monolith", graph.monolith().display().to_string());
    values.set("upstream", subgraphs.address.to_string());
    let first = graph.subgraphs.first().map_or("", |(name, _)| name);
    values.set("first", first);
    values.set("port", port.to_string());
    values.set("work", plot.work.display().to_string());
    values.set("here", plot.gateway.folder.display().to_string());
    values.set("install", plot.installed.folder.display().to_string());
    values.set("cores", plot.placement.gateway.len().max(1).to_string());
    let memory = plot
        .scenario
        .limits
        .memory
        .map_or(1024, |size| size.0 >> 20);
    values.set("memory_mib", memory.to_string());
    if let Some(binary) = &plot.installed.binary {
        values.set("binary", binary.display().to_string());
    }
    for (name, value) in &plot.gateway.spec.vars {
        values.set(name, value);
    }
    for (name, value) in &plot.gateway.mode(plot.scenario.mode).0.vars {
        values.set(name, value);
    }
    for (name, value) in source_spec(plot).iter().flat_map(|spec| &spec.vars) {
        values.set(name, value);
    }
    Ok(values)
}

/// What the gateway is set to for the source of a scenario of events.
pub fn source_spec<'a>(plot: &Plot<'a>) -> Option<&'a ModeSpec> {
    let source = plot.scenario.subscribers?.source;
    plot.gateway.spec.subscriptions.sources.get(&source)
}

fn program(plot: &Plot<'_>, values: &Values) -> Result<Program> {
    let spec = &plot.gateway.spec;
    let (mode, _) = plot.gateway.mode(plot.scenario.mode);
    for name in &spec.start.files {
        let from = plot.gateway.folder.join(name);
        let text = fs::read_to_string(&from).map_err(Error::file(&from))?;
        let to = plot.work.join(from.file_name().unwrap_or_default());
        fs::write(&to, values.file(&text)).map_err(Error::file(&to))?;
    }
    let modules = plot.installed.folder.join("node_modules");
    if modules.is_dir() {
        let link = plot.work.join("node_modules");
        let _ = fs::remove_file(&link);
        std::os::unix::fs::symlink(&modules, &link).map_err(Error::file(&link))?;
    }
    let filled = |text: &str| {
        values.argument(text).map_err(|message| Error::Model {
            path: plot.gateway.folder.join("gateway.toml"),
            message,
        })
    };
    let all = |texts: &[String]| {
        texts
            .iter()
            .map(|text| filled(text))
            .collect::<Result<Vec<_>>>()
    };
    let mut env = BTreeMap::new();
    let of_source = source_spec(plot).cloned().unwrap_or_default();
    let all_env = spec.start.env.iter().chain(&mode.env).chain(&of_source.env);
    for (name, value) in all_env {
        env.insert(name.clone(), filled(value)?);
    }
    for command in &spec.start.prepare {
        crate::process::output(&all(command)?, plot.work, &env)?;
    }
    let mut command = all(&spec.start.command)?;
    command.extend(all(&mode.args)?);
    command.extend(all(&of_source.args)?);
    Ok(Program {
        command,
        env,
        folder: plot.work.to_path_buf(),
        log: plot.work.join("gateway.log"),
        cpus: plot.placement.gateway.clone(),
        memory: plot.scenario.limits.memory.map(|size| size.0),
    })
}
