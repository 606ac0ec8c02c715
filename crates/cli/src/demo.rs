//! `ogive demo`: the graph of `examples/demo` in one process: four subgraphs on real sockets, the gateway before them,
//! GraphiQL in the browser. Needs no files and no network.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use http::HeaderMap;
use ogive_base::{Reservation, SourceId, Sources};
use ogive_config::{Config, Url};
use ogive_execute::{SubgraphRequest, Transport};
use ogive_federation::{ReadOptions, Supergraph, read_supergraph};
use ogive_gateway::{
    Gateway, GatewayOptions, GraphqlRequest, SchemaState, listen::serve_options, plan,
};
use ogive_mock::{Data, Model, Options, Server, Service, Settings, Source, Subgraph};
use ogive_server::{Bound, ServeOptions};
use ogive_transport::{Client, Endpoint, HeaderRules, RequestTransport, Traffic};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::{environment, load, serve_arguments, serving, terminal};

const SUPERGRAPH: &str = include_str!("../../../examples/demo/supergraph.graphql");
/// The query that needs all four subgraphs.
pub(crate) const QUERY: &str = include_str!("../../../examples/demo/query.graphql");
const DATA: &str = include_str!("../../../examples/demo/data.yaml");
const SUBGRAPHS: [(&str, &str); 4] = [
    (
        "accounts",
        include_str!("../../../examples/demo/accounts.graphql"),
    ),
    (
        "inventory",
        include_str!("../../../examples/demo/inventory.graphql"),
    ),
    (
        "products",
        include_str!("../../../examples/demo/products.graphql"),
    ),
    (
        "reviews",
        include_str!("../../../examples/demo/reviews.graphql"),
    ),
];

/// A query that fits into one line.
const SHORT_QUERY: &str = "{ me { name } topProducts(first: 2) { name inStock reviews(first: 1) { stars author { username } } } }";

/// A subscription that fits into one line.
const SUBSCRIPTION: &str = "subscription { reviewAdded { stars title product { name } } }";

/// Where the demo is served without `--listen`.
const LISTEN: &str = "127.0.0.1:4000";

/// Arguments of `ogive demo`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Answer one query, show the answer and its plan, and exit
    #[arg(long, conflicts_with = "listen")]
    once: bool,
    /// Address to serve on; OGIVE_LISTEN stands for it [default: 127.0.0.1:4000]
    #[arg(short, long, value_name = "HOST:PORT")]
    listen: Option<String>,
    /// What to log: error, warn, info, debug, trace, or a list such as info,ogive_transport=debug
    #[arg(long, value_name = "FILTER", default_value = "warn")]
    log: String,
}

pub(crate) fn run(arguments: Arguments) -> Result<()> {
    let subgraphs = start_subgraphs()?;
    let mut config = Config::default();
    // There is nothing to hide here, and GraphiQL needs the schema.
    config.supergraph.introspection = true;
    config.include_subgraph_errors.all = true;
    config.subscription.enabled = true;
    let given = arguments.listen.clone();
    let listen = if arguments.once {
        Some("127.0.0.1:0".to_owned())
    } else {
        given.or_else(|| environment::text(environment::LISTEN))
    };
    config.listen = serving::parse_listen(listen.as_deref().unwrap_or(LISTEN))?;
    route(&mut config, &subgraphs);
    serving::start_log(&config, Some(&arguments.log))?;
    let gateway = Arc::new(gateway(&config)?);
    serving::runtime()?.block_on(async {
        let bound = serving::bind(&config.listen, config.listen_mode).await?;
        let options = serve_options(&config).within_memory(gateway.memory().limit());
        if arguments.once {
            once(bound, gateway, options).await
        } else {
            let announce = |bound: &Bound| terminal::print(&welcome(bound, &subgraphs));
            serving::serve(bound, gateway, options, announce).await
        }
    })
}

/// Serves the demo's subgraphs on a port of their own.
pub(crate) fn start_subgraphs() -> Result<Server> {
    Server::start(Arc::new(service()?), "127.0.0.1:0", 1)
        .context("the demo's subgraphs could not be started")
}

/// Lets a configuration point to them.
pub(crate) fn route(config: &mut Config, subgraphs: &Server) {
    for (name, _) in SUBGRAPHS {
        let url = Url(subgraphs.url(name));
        config.override_subgraph_url.insert(name.into(), url);
    }
}

/// The demo's supergraph.
pub(crate) fn supergraph() -> Result<Supergraph> {
    let mut sources = Sources::new();
    sources.add("examples/demo/supergraph.graphql", SUPERGRAPH);
    read_supergraph(SUPERGRAPH, SourceId(0), &ReadOptions::default())
        .map_err(|errors| load::render(errors, &sources, "this is a bug in the demo"))
}

fn service() -> Result<Service> {
    let data = Data::parse(DATA).context("the demo's data")?;
    let source = Source::Data(data.into());
    let mut service = Service::new();
    for (name, sdl) in SUBGRAPHS {
        let options = Options::default();
        let model = Model::from_sdl(name, sdl, options.federation).map_err(|error| {
            load::render(
                error.diagnostics,
                &error.sources,
                "this is a bug in the demo",
            )
        })?;
        let subgraph = Subgraph::from_model(model, source.clone(), options);
        service.add(name, subgraph, Settings::default());
    }
    Ok(service)
}

fn gateway(config: &Config) -> Result<Gateway> {
    let (state, notes) = SchemaState::new(supergraph()?, config);
    for note in notes {
        tracing::warn!("{note}");
    }
    let options = GatewayOptions {
        graphiql_query: Some(QUERY.to_owned()),
        ..GatewayOptions::new(&serve_arguments::with_work_shown(config))
    };
    Ok(Gateway::new(state, options))
}

fn welcome(bound: &Bound, subgraphs: &Server) -> String {
    let server = bound.url();
    let mut text = format!(
        "Harbour & Pine, a small shop: {} subgraphs behind one gateway\n\n",
        SUBGRAPHS.len()
    );
    let mut line = |what: &str, url: String| text.push_str(&format!("  {what:<10} {url}\n"));
    line("GraphiQL", format!("{server}/"));
    line("GraphQL", format!("{server}/graphql"));
    for (name, _) in SUBGRAPHS {
        line(name, subgraphs.url(name));
    }
    let body = json!({ "query": SHORT_QUERY });
    let subscription = json!({ "query": SUBSCRIPTION });
    text.push_str(&format!(
        "\nOpen GraphiQL in a browser, or paste:\n\n  curl {server}/graphql -H 'content-type: application/json' \\\n    \
         -d '{body}'\n\nor hear of every review that is posted, in GraphiQL, too:\n\n  \
         curl -N {server}/graphql -H 'accept: text/event-stream' -H 'content-type: application/json' \\\n    \
         -d '{subscription}'\n\nStop with Ctrl-C."
    ));
    text
}

/// Asks the served gateway one question, as a client would.
async fn once(bound: Bound, gateway: Arc<Gateway>, options: ServeOptions) -> Result<()> {
    let url = format!("{}/graphql", bound.url());
    let (stop, stopped) = oneshot::channel::<()>();
    let asking = async {
        let answer = ask(&url).await;
        // The receiver lives until the server has stopped.
        let _ = stop.send(());
        answer
    };
    let shutdown = async {
        let _ = stopped.await;
    };
    let serving = ogive_gateway::serve::serve(bound, Arc::clone(&gateway), options, shutdown);
    let (served, answer) = tokio::join!(serving, asking);
    served?;
    let answer = answer?;
    let state = gateway.state();
    let request = GraphqlRequest {
        query: QUERY.to_owned(),
        ..GraphqlRequest::default()
    };
    let prepared =
        ogive_gateway::prepare::prepare(&state, &request, &Reservation::new(&Arc::default()));
    let plan = prepared.and_then(|prepared| plan::plan_now(&state, &prepared.operation));
    let (planned, _) = plan.map_err(|error| anyhow::anyhow!("{}", error.errors[0].message))?;
    terminal::print(&format!(
        "== query ==\n{}\n\n== answer ==\n{answer:#}\n\n== plan ==\n{}",
        QUERY.trim(),
        ogive_plan::text(&planned.plan)
    ));
    if answer.get("errors").is_some() {
        bail!("the answer has errors");
    }
    Ok(())
}

async fn ask(url: &str) -> Result<Value> {
    let endpoint = [Endpoint::new(
        "gateway",
        url,
        Traffic::default(),
        HeaderRules::default(),
    )];
    let (client, headers) = (Client::new(), HeaderMap::new());
    let transport = RequestTransport::new(&client, &endpoint, &headers, None);
    let body = json!({ "query": QUERY }).to_string();
    let request = SubgraphRequest {
        subgraph: 0,
        body: Bytes::from(body),
        idempotent: true,
    };
    let response = transport
        .send(request)
        .await
        .map_err(|error| anyhow::anyhow!("{}", error.detail))?;
    serde_json::from_slice(&response.body).context("the gateway's answer is not JSON")
}
