//! `ogive introspect`: the schema of a running subgraph, as SDL.

use std::{fs, path::PathBuf};

use anyhow::Result;
use ogive_config::without_secrets;
use ogive_workshop::introspect::{Answer, introspect};

use crate::{inputs, serving, terminal};

/// Arguments of `ogive introspect`.
#[derive(clap::Args)]
#[command(
    after_help = "Asks for `{ _service { sdl } }`, which federated subgraphs answer, else for standard introspection.\n\n\
                  Exit codes: 0 the schema is written, 2 the arguments are wrong, 3 the subgraph does not tell it."
)]
pub(crate) struct Arguments {
    /// Where the subgraph is served
    #[arg(value_name = "URL")]
    url: String,
    /// A header to send, such as 'authorization: Bearer x'; may be repeated
    #[arg(short = 'H', long = "header", value_name = "NAME: VALUE")]
    headers: Vec<String>,
    /// Write the schema to a file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let headers: Result<Vec<(String, String)>> = arguments
        .headers
        .iter()
        .map(|h| inputs::header(h))
        .collect();
    let headers = headers?;
    let asking = introspect(&arguments.url, &headers, None);
    let answer = serving::runtime()?.block_on(asking);
    let why = match answer {
        Ok(Answer::Sdl { sdl, .. }) => return write(arguments, &sdl),
        Ok(Answer::NotModified) => "it answers 304".to_owned(),
        Err(why) => why,
    };
    Err(terminal::Unreadable(format!(
        "error: {} does not tell its schema: {why}\n  help: check the address and the headers it wants; it has to \
         answer `{{ _service {{ sdl }} }}` or introspection",
        without_secrets(&arguments.url)
    ))
    .into())
}

fn write(arguments: &Arguments, sdl: &str) -> Result<()> {
    let sdl = sdl.trim_end();
    match &arguments.output {
        None => {
            terminal::print(sdl);
            Ok(())
        }
        Some(path) => fs::write(path, format!("{sdl}\n")).map_err(|error| {
            terminal::error(
                format_args!("cannot write `{}`: {error}", path.display()),
                "check that the folder exists and may be written to",
            )
        }),
    }
}
