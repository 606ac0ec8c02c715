//! Which supergraph, under which configuration: the arguments that commands about operations share. Both are found and read as
//! by `ogive serve`, the environment and the working directory included.

use std::path::PathBuf;

use anyhow::Result;
use ogive_config::Config;
use ogive_federation::Supergraph;
use tokio::runtime::Runtime;

use crate::{demo, load, serve, serve_arguments};

/// Where they are.
#[derive(clap::Args)]
pub(crate) struct SupergraphArguments {
    /// Supergraph SDL file; wins over `supergraph.path` of the configuration
    #[arg(short, long, value_name = "FILE")]
    supergraph: Option<PathBuf>,
    /// Configuration file; without it `ogive.yaml` is read if the working directory has one
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl SupergraphArguments {
    /// Whether a supergraph is named as an argument.
    pub(crate) fn is_named(&self) -> bool {
        self.supergraph.is_some()
    }
    /// The configuration and the supergraph; the demo's if that is asked for.
    pub(crate) fn read(&self, runtime: &Runtime, demo: bool) -> Result<(Config, Supergraph)> {
        if demo {
            let config = load::config_text("the environment", "", &mut Vec::new())?;
            return Ok((config, demo::supergraph()?));
        }
        serve::look(runtime, self.arguments())
    }
    /// The configuration alone.
    pub(crate) fn config(&self, runtime: &Runtime) -> Result<Config> {
        serve::look_at_config(runtime, self.arguments())
    }
    fn arguments(&self) -> serve_arguments::Arguments {
        serve_arguments::Arguments::only_looking(self.supergraph.clone(), self.config.clone())
    }
}
