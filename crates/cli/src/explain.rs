//! `ogive explain`: one operation at each of the five stops, or the page of a code.

use std::path::PathBuf;

use anyhow::Result;
use http::{HeaderMap, HeaderName, HeaderValue};
use ogive_files::Pipes;
use ogive_gateway::{
    ExplainInput, Gateway, GatewayOptions, SchemaState, WorkerState,
    identify::explain_token::explain_token,
};
use ogive_workshop::pages;

use crate::{demo, load, operation::OperationArguments, serving, terminal};

/// Arguments of `ogive explain`.
#[derive(clap::Args)]
#[command(
    mut_arg("document", |document| document.required_unless_present_any(["demo", "token"])),
    after_help = "With a code instead of a file, as in `ogive explain INVALID_FIELD_SHARING`: what it means, what to do, and a \
                  bad and a good example; `ogive explain codes` lists all.\n\n\
                  Nothing is sent to subgraphs without --execute. With it, the URLs of the supergraph are asked, or \
                  those of `override_subgraph_url` in the configuration."
)]
pub(crate) struct Arguments {
    /// Supergraph SDL file
    #[arg(short, long, value_name = "FILE")]
    supergraph: Option<PathBuf>,
    /// Use the graph of `ogive demo`, and its query if no other is named; goes with --execute, too
    #[arg(long, conflicts_with_all = ["supergraph", "config"])]
    demo: bool,
    #[command(flatten)]
    operation: OperationArguments,
    /// Configuration file, for subgraph URLs, timeouts and headers
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Ask the subgraphs, and show every request and answer
    #[arg(long)]
    execute: bool,
    /// A header of the client's request, such as 'authorization: Bearer x'; may be repeated
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
    headers: Vec<String>,
    /// A token to judge as the configuration says, and to ask with if an operation is named; - reads it from standard input
    #[arg(long, value_name = "TOKEN", requires = "config")]
    token: Option<String>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if arguments.supergraph.is_none()
        && let Some(code) = arguments.operation.code()
    {
        if code == "codes" {
            let rows = pages::all().into_iter();
            let rows: Vec<String> = rows
                .map(|(code, text)| format!("{code:<52} {text}"))
                .collect();
            terminal::print(&rows.join("\n"));
            return Ok(());
        }
        let page = pages::page(&code)
            .map_err(|help| terminal::error(format_args!("there is no code `{code}`"), &help))?;
        terminal::print(&page);
        return Ok(());
    }
    if let (Some(token), Some(config), false) = (
        &arguments.token,
        &arguments.config,
        arguments.operation.is_named(),
    ) {
        let (config, token) = (load::config(config)?, read_token(token)?);
        let judged = explain_token(&config, token.trim());
        let (text, _) = serving::runtime()?.block_on(judged);
        terminal::print(&text);
        return Ok(());
    }
    if arguments.supergraph.is_none() && !arguments.demo {
        return Err(terminal::error(
            "no supergraph to explain with",
            "name one with `--supergraph FILE`, or take the demo's with `--demo`",
        ));
    }
    let request = arguments.operation.request(demo::QUERY)?;
    let mut config = match &arguments.config {
        Some(path) => load::config(path)?,
        None => load::config_text("the environment", "", &mut Vec::new())?,
    };
    let headers = headers(&arguments.headers)?;
    let token = arguments.token.as_deref().map(read_token).transpose()?;
    let (supergraph, _subgraphs) = match &arguments.supergraph {
        Some(path) => (load::supergraph(path, Pipes::Read)?, None),
        None => {
            let subgraphs = demo::start_subgraphs()?;
            demo::route(&mut config, &subgraphs);
            (demo::supergraph()?, Some(subgraphs))
        }
    };
    let (state, notes) = SchemaState::new(supergraph, &config);
    for note in notes {
        terminal::remark(&format!("note: {note}"));
    }
    let options = GatewayOptions::load_with(&config, crate::cedar::read)
        .map_err(|error| terminal::error(error, "correct it, or explain without --config"))?;
    let text = serving::runtime()?.block_on(async {
        let caller = match &token {
            Some(token) => Some(explain_token(&config, token.trim()).await),
            None => None,
        };
        let input = ExplainInput {
            request,
            headers,
            caller,
            is_executed: arguments.execute,
            has_timings: arguments.execute,
        };
        let gateway = Gateway::new(state, options);
        gateway.explain(input, &WorkerState::new()).await
    });
    terminal::print(&text);
    Ok(())
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
