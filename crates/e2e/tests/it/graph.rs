//! The demo graph, served: mock subgraphs and a gateway on ports of their own.

use std::{fs, net::SocketAddr, path::PathBuf, sync::Arc, thread::JoinHandle};

use ogive_base::SourceId;
use ogive_config::{Config, Url};
use ogive_federation::{ReadOptions, read_supergraph};
use ogive_gateway::{
    Background, Gateway, GatewayOptions, LoadedPolicies, SchemaState,
    listen::{listener_tls, serve_options},
    shared::observe,
};
use ogive_mock::{Server, Service, assemble, config::Config as MockConfig};
use ogive_server::{Bound, Drained, ServeOptions};
use tokio::sync::oneshot;

/// A file of the demo graph.
pub(crate) fn demo_file(name: &str) -> String {
    let path = demo_folder().join(name);
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn demo_folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/demo")
}

/// A configuration text.
pub(crate) fn config(yaml: &str) -> Config {
    ogive_config::load(SourceId(0), yaml, &|_| None).unwrap_or_else(|e| panic!("{e:#?}"))
}

/// The state of a supergraph text.
pub(crate) fn state(supergraph: &str, config: &Config) -> SchemaState {
    let supergraph = read_supergraph(supergraph, SourceId(0), &ReadOptions::default())
        .unwrap_or_else(|e| panic!("{e:#?}"));
    SchemaState::new(supergraph, config).0
}

/// A gateway on a port of its own.
pub(crate) struct Served {
    pub(crate) address: SocketAddr,
    pub(crate) gateway: Arc<Gateway>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<Drained>>,
    pub(crate) background: Option<Background>,
}

impl Served {
    pub(crate) fn start(state: SchemaState, config: &Config) -> Served {
        let options = GatewayOptions::load(config).unwrap_or_else(|e| panic!("{e}"));
        let telemetry = observe::telemetry(config, None).unwrap_or_else(|e| panic!("{e}"));
        let gateway = Arc::new(Gateway::new(state, options).observed_by(telemetry));
        let background =
            Background::start(config, Arc::clone(&gateway)).unwrap_or_else(|e| panic!("{e}"));
        let (stop, stopped) = oneshot::channel();
        let (tell, bound) = std::sync::mpsc::channel();
        let options = ServeOptions {
            workers: config.http.workers.unwrap_or(2.try_into().unwrap()),
            ..serve_options(config)
        };
        let serving = Arc::clone(&gateway);
        // A unix socket if one is configured, else a port of its own.
        let listen = if config.listen.0.starts_with("unix:") {
            config.listen.0.clone()
        } else {
            "127.0.0.1:0".to_owned()
        };
        let mode = config.listen_mode.0;
        let tls = listener_tls(config).unwrap_or_else(|e| panic!("{e}"));
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let bound = Bound::bind_with(&listen, mode).await.unwrap();
                let bound = bound.with_tls(tls);
                let nowhere = SocketAddr::from(([0, 0, 0, 0], 0));
                tell.send(bound.address().unwrap_or(nowhere)).unwrap();
                let shutdown = async {
                    let _ = stopped.await;
                };
                bound.serve(serving, options, shutdown).await.unwrap()
            })
        });
        Served {
            address: bound.recv().unwrap(),
            gateway,
            stop: Some(stop),
            thread: Some(thread),
            background: Some(background),
        }
    }
    /// Begins to drain.
    pub(crate) fn begin_stop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
    }
    /// Waits until everything has stopped.
    pub(crate) fn stopped(&mut self) -> Drained {
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.begin_stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The demo graph with its gateway.
pub(crate) struct Graph {
    pub(crate) served: Served,
    pub(crate) service: Arc<Service>,
    config: Config,
    sdl: String,
    _mock: Server,
}

impl Graph {
    pub(crate) fn start() -> Graph {
        Graph::with("")
    }
    /// With a configuration; subgraph URLs it does not override point to the mock.
    pub(crate) fn with(yaml: &str) -> Graph {
        Graph::changed(yaml, &[])
    }
    /// The same with another supergraph: the first text of each pair replaced by the second, everywhere.
    pub(crate) fn changed(yaml: &str, changes: &[(&str, &str)]) -> Graph {
        Graph::altered(yaml, changes, |_| {})
    }
    /// The same with options that no configuration has.
    pub(crate) fn altered(
        yaml: &str,
        changes: &[(&str, &str)],
        alter: impl FnOnce(&mut SchemaState),
    ) -> Graph {
        let mock_config = MockConfig::parse(&demo_file("mock.yaml"), &demo_folder()).unwrap();
        let service = Arc::new(
            assemble(&mock_config)
                .unwrap_or_else(|e| panic!("{e}"))
                .service,
        );
        let mock = Server::start(Arc::clone(&service), "127.0.0.1:0", 1).unwrap();
        let mut config = config(yaml);
        for name in service.names() {
            config
                .override_subgraph_url
                .entry(name.to_owned())
                .or_insert_with(|| Url(mock.url(name)));
        }
        let sdl = changes
            .iter()
            .fold(demo_file("supergraph.graphql"), |sdl, (from, to)| {
                assert!(sdl.contains(from), "{from}");
                sdl.replace(from, to)
            });
        let mut state = state(&sdl, &config);
        alter(&mut state);
        Graph {
            served: Served::start(state, &config),
            service,
            config,
            sdl,
            _mock: mock,
        }
    }
    pub(crate) fn address(&self) -> SocketAddr {
        self.served.address
    }
    /// Reads what the configuration names again, and serves the same with it; an error if that cannot be used.
    pub(crate) fn reload(&self) -> Result<(), String> {
        let options = GatewayOptions::load(&self.config)?;
        let state = state(&self.sdl, &self.config);
        self.served.gateway.replace_all(state, options);
        Ok(())
    }
    /// Serves the same with another configuration.
    pub(crate) fn reload_as(&self, yaml: &str) -> Result<(), String> {
        let mut changed = config(yaml);
        let urls = &self.config.override_subgraph_url;
        changed.override_subgraph_url.clone_from(urls);
        let options = GatewayOptions::load(&changed)?;
        let state = state(&self.sdl, &changed);
        self.served.gateway.replace_all(state, options);
        Ok(())
    }
    /// Serves the same with policies that an engine decides.
    pub(crate) fn reload_with(&self, policies: &str, engine: LoadedPolicies) {
        let text =
            format!("authorization: {{ directives: enforce, policies: {{ {policies} }} }}\n");
        let mut changed = self.config.clone();
        changed.authorization = config(&text).authorization;
        let options = GatewayOptions::load_with(&changed, |_| Ok(engine));
        let options = options.unwrap_or_else(|e| panic!("{e}"));
        let served = &self.served.gateway;
        served.replace_all(state(&self.sdl, &changed), options);
    }
}
