//! `ogive operations`: the operations of a front end, from its source files to what a gateway trusts.
//!
//! `extract` finds them and writes a manifest, `check` says whether a supergraph answers them and what they cost, `publish`
//! does both and writes the manifest and the plans in one step.

mod gather;
mod judgement;
mod publish;

use std::path::PathBuf;

use anyhow::Result;
use clap::ValueEnum;
use ogive_documents::{ManifestEntry, ManifestFormat, manifest};
use ogive_files::kept::{Readers, keep};

use crate::{
    operations::{
        gather::{Gathered, gather},
        judgement::{JudgementArguments, judge},
    },
    terminal,
};

/// Arguments of `ogive operations`.
#[derive(clap::Args)]
#[command(
    after_help = "Found are documents in .graphql and .gql files, in templates tagged with gql or graphql, in what these are \
                  called with, and behind /* GraphQL */, in JavaScript, TypeScript, Vue, Svelte and Astro. Fragments are found \
                  by their names, in whichever file. What .gitignore names, node_modules and tests are left out.\n\
                  A walk through all of it: docs/trusted-documents.md."
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Write a manifest of the operations in source files
    Extract(ExtractArguments),
    /// Say whether a supergraph answers the operations, and what they cost
    Check(CheckArguments),
    /// Check the operations, and write their manifest and their plans in one step
    Publish(publish::PublishArguments),
}

/// Where operations are, and how a client sends them.
#[derive(clap::Args)]
struct InputArguments {
    /// Folders with source files, source files, or .json manifests
    #[arg(value_name = "PATH", default_value = ".")]
    paths: Vec<PathBuf>,
    /// Another function that takes documents, besides gql and graphql; may be repeated
    #[arg(long = "tag", value_name = "NAME")]
    tags: Vec<String>,
    /// What to leave out, a pattern as in .gitignore; may be repeated
    #[arg(long, value_name = "PATTERN")]
    exclude: Vec<String>,
    /// Read tests and stories, too
    #[arg(long)]
    tests: bool,
    /// How the manifest is written
    #[arg(long, value_enum, default_value_t = Format::Apollo)]
    format: Format,
    /// Do not add __typename, as Apollo Client does, for clients that send what is written
    #[arg(long)]
    as_written: bool,
    /// The client that these operations are of, for gateways that tell clients apart
    #[arg(long, value_name = "NAME")]
    client_name: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Apollo's persisted query manifest; operations as Apollo Client sends them
    Apollo,
    /// Relay's persisted queries: one object of id and document
    Relay,
    /// The same for `hive app:create`
    Hive,
}

impl Format {
    fn manifest(self) -> ManifestFormat {
        match self {
            Format::Apollo => ManifestFormat::Apollo,
            Format::Relay | Format::Hive => ManifestFormat::Map,
        }
    }
}

/// Arguments of `ogive operations extract`.
#[derive(clap::Args)]
struct ExtractArguments {
    #[command(flatten)]
    input: InputArguments,
    /// The file to write; standard output unless named
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Arguments of `ogive operations check`.
#[derive(clap::Args)]
struct CheckArguments {
    #[command(flatten)]
    input: InputArguments,
    #[command(flatten)]
    judge: JudgementArguments,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    match &arguments.command {
        Command::Extract(arguments) => extract(arguments),
        Command::Check(arguments) => check(arguments),
        Command::Publish(arguments) => publish::run(arguments),
    }
}

fn extract(arguments: &ExtractArguments) -> Result<()> {
    let input = &arguments.input;
    let gathered = gather(input)?;
    let bytes = manifest::write(&gathered.entries(), input.format.manifest());
    match &arguments.output {
        Some(path) => write(path, &bytes)?,
        None => terminal::print(&String::from_utf8_lossy(&bytes)),
    }
    terminal::remark(&gathered.summary());
    Ok(())
}

fn check(arguments: &CheckArguments) -> Result<()> {
    let gathered = gather(&arguments.input)?;
    let judged = judge(&gathered, &arguments.judge)?;
    terminal::print(&judged.report(&gathered));
    judged.into_result()
}

/// Written beside and moved into place, so that nobody reads half a file.
fn write(path: &std::path::Path, bytes: &[u8]) -> Result<()> {
    keep(path, bytes, Readers::Anybody).map_err(|error| {
        terminal::error(
            format_args!("cannot write `{}`: {error}", path.display()),
            "name a file in a folder that can be written",
        )
    })
}

impl Gathered {
    /// What a manifest lists.
    fn entries(&self) -> Vec<ManifestEntry> {
        self.operations.iter().map(|o| o.entry.clone()).collect()
    }
}
