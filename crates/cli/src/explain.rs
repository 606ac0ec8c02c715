//! `ogive explain`: one operation at each of the five stops, or the page of a code.

use std::{net::IpAddr, sync::Arc};

use anyhow::Result;
use http::{HeaderMap, HeaderName, HeaderValue};
use ogive_base::Peer;
use ogive_gateway::{
    ExplainInput, Gateway, GatewayOptions, SchemaState, authorize,
    identify::explain_token::explain_token, redaction,
};
use ogive_workshop::pages;

use crate::{
    demo, load, operation::OperationArguments, serve_arguments::refuse_missing_files, serving,
    supergraph_input::SupergraphArguments, terminal,
};

/// Arguments of `ogive explain`.
#[derive(clap::Args)]
#[command(
    mut_arg("document", |document| document.required_unless_present_any(["demo", "token"])),
    after_help = "With a code instead of a file, as in `ogive explain INVALID_FIELD_SHARING`: what it means, what to do, and a \
                  bad and a good example; `ogive explain codes` lists all.\n\n\
                  Nothing is sent to subgraphs without --execute. With it, the URLs of the supergraph are asked, or \
                  those of `override_subgraph_url` in the configuration. Of a subscription the first event is shown.\n\n\
                  The configuration is found as by `ogive serve`: --config, OGIVE_CONFIG, or `ogive.yaml` in the working \
                  directory; so is the supergraph.\n\n\
                  Exit codes: 0 the request is not refused, 1 it is, or something cannot be read, `ogive serve` would not \
                  start, or hooks that are only called with --execute decide."
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    graph: SupergraphArguments,
    /// Use the graph of `ogive demo`, and its query if no other is named; goes with --execute, too
    #[arg(long, conflicts_with_all = ["supergraph", "config"])]
    demo: bool,
    #[command(flatten)]
    operation: OperationArguments,
    /// Ask the subgraphs, and show every request and answer
    #[arg(long)]
    execute: bool,
    /// A header of the client's request, such as 'authorization: Bearer x'; may be repeated
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
    headers: Vec<String>,
    /// A token to judge as the configuration says, and to ask with if an operation is named; - reads it from standard input
    #[arg(long, value_name = "TOKEN")]
    token: Option<String>,
    /// Where the request comes from: an address, or `unix`; what proxies say counts if they are trusted
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    peer: String,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if !arguments.graph.is_named()
        && let Some(code) = arguments.operation.code()
    {
        return explain_code(&code);
    }
    let runtime = serving::runtime()?;
    let token = arguments.token.as_deref().map(read_token).transpose()?;
    if let Some(token) = token.as_deref().filter(|_| !arguments.asks_something()) {
        let config = arguments.graph.config(&runtime)?;
        let (text, caller) = runtime.block_on(explain_token(&config, token.trim()));
        terminal::print(&text);
        return caller.map(|_| ()).ok_or_else(|| terminal::Found.into());
    }
    let request = arguments.operation.request(demo::QUERY)?;
    let headers = headers(&arguments.headers)?;
    let peer = peer(&arguments.peer)?;
    let (mut config, supergraph) = arguments.graph.read(&runtime, arguments.demo)?;
    // Goes on until it is dropped.
    let subgraphs = arguments.demo.then(demo::start_subgraphs).transpose()?;
    if let Some(subgraphs) = &subgraphs {
        demo::route(&mut config, subgraphs);
    }
    let served = authorize::check(&supergraph, &config);
    let served = served.and_then(|()| redaction::check(&supergraph, &config));
    if let Err(what) = &served {
        terminal::remark(&format!(
            "warning: `ogive serve` does not serve this: {what}"
        ));
    }
    let (state, notes) = SchemaState::new(supergraph, &config);
    for note in notes {
        terminal::remark(&format!("note: {note}"));
    }
    refuse_missing_files(&config)?;
    let options = GatewayOptions::load_with(&config, crate::cedar::read);
    let mut options =
        options.map_err(|error| terminal::error(error, "correct it in the configuration"))?;
    for note in options.notes() {
        terminal::remark(&format!("note: {note}"));
    }
    if !arguments.execute {
        // Whoever only looks takes nothing from what processes share.
        options.store = None;
    }
    let explained = runtime.block_on(async {
        let input = ExplainInput {
            request,
            headers,
            token: token.map(|token| token.trim().to_owned()),
            peer,
            is_executed: arguments.execute,
            has_timings: arguments.execute,
        };
        Arc::new(Gateway::new(state, options)).explain(input).await
    });
    // A name that is looked up must not hold up the end.
    runtime.shutdown_background();
    terminal::print(&explained.text);
    if explained.is_undecided {
        terminal::remark(
            "not decided: coprocessors, scripts and components may still refuse the request; --execute calls them",
        );
    }
    if explained.is_refused || explained.is_undecided || served.is_err() {
        return Err(terminal::Found.into());
    }
    Ok(())
}

impl Arguments {
    /// Whether there is an operation to explain.
    fn asks_something(&self) -> bool {
        self.demo || self.operation.is_named()
    }
}

/// The page of a code.
fn explain_code(code: &str) -> Result<()> {
    if code == "codes" {
        let rows = pages::all().into_iter();
        let rows: Vec<String> = rows
            .map(|(code, text)| format!("{code:<52} {text}"))
            .collect();
        terminal::print(&rows.join("\n"));
        return Ok(());
    }
    let page = pages::page(code)
        .map_err(|help| terminal::error(format_args!("there is no code `{code}`"), &help))?;
    terminal::print(&page);
    Ok(())
}

/// Where a request comes from.
fn peer(text: &str) -> Result<Peer> {
    if text == "unix" {
        return Ok(Peer::Unix);
    }
    let address: Result<IpAddr, _> = text.parse();
    address
        .map(|address| Peer::Tcp((address, 0).into()))
        .map_err(|_| {
            terminal::error(
                format_args!("`--peer {text}` is no address"),
                "write an address such as 10.0.0.7, or `unix`",
            )
        })
}

fn read_token(token: &str) -> Result<String> {
    match token {
        "-" => load::read("-".as_ref(), "token", "write it to standard input"),
        token => Ok(token.to_owned()),
    }
}

fn headers(texts: &[String]) -> Result<HeaderMap> {
    let mut headers = HeaderMap::new();
    for text in texts {
        let parsed = text.split_once(':').and_then(|(name, value)| {
            let name = HeaderName::from_bytes(name.trim().as_bytes()).ok()?;
            Some((name, HeaderValue::from_str(value.trim()).ok()?))
        });
        let (name, value) = parsed.ok_or_else(|| {
            terminal::error(
                format_args!("`{text}` is no header"),
                "write `--header 'name: value'`",
            )
        })?;
        headers.append(name, value);
    }
    Ok(headers)
}
