//! `ogive lint`: what composes and could be better.

use std::path::PathBuf;

use anyhow::Result;
use ogive_base::Severity;
use ogive_workshop::{
    lint::{RULES, lint},
    load,
    report::{self, Origins},
};
use serde_json::{Value, json};

use crate::{
    check::read_checks,
    compose::Format,
    inputs::{self, MoreArguments, load_all},
    terminal::{self, Found},
};

/// Arguments of `ogive lint`.
#[derive(clap::Args)]
#[command(after_help = inputs::HELP)]
pub(crate) struct Arguments {
    /// Subgraphs; see below for every form
    #[arg(value_name = "SUBGRAPH", required_unless_present = "rules")]
    subgraphs: Vec<String>,
    #[command(flatten)]
    more: MoreArguments,
    /// Levels of rules, and what they leave alone [default: checks.yaml, if it is there]
    #[arg(long, value_name = "FILE")]
    checks: Option<PathBuf>,
    /// How findings are written
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// List every rule with its level
    #[arg(long)]
    rules: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if arguments.rules {
        let rows: Vec<String> = RULES
            .iter()
            .map(|r| {
                format!(
                    "{:<30} {:<8} {}",
                    r.id,
                    format!("{:?}", r.level).to_lowercase(),
                    r.summary
                )
            })
            .collect();
        terminal::print(&rows.join("\n"));
        return Ok(());
    }
    let checks = read_checks(arguments.checks.as_deref())?;
    let loaded = load_all(&arguments.more.inputs(&arguments.subgraphs)?)?;
    let found = lint(&loaded, &checks).map_err(inputs::refused)?;
    let (sources, origins) = (load::sources(&loaded), Origins::new(&loaded));
    match arguments.format {
        Format::Text if found.is_empty() => terminal::print("nothing to complain about"),
        Format::Text => {
            terminal::remark(&report::text(&found, &sources, terminal::colour()));
            terminal::remark(&format!("\n{}", report::summary(&found)));
        }
        Format::Json => {
            let list: Vec<Value> = found
                .iter()
                .map(|d| report::json(d, &sources, &origins))
                .collect();
            terminal::print(&json!({ "findings": list }).to_string());
        }
        Format::Sarif => terminal::print(&report::sarif(&found, &sources, &origins).to_string()),
        Format::Github => terminal::print(&report::github(&found, &sources, &origins)),
    }
    if found.iter().any(|d| d.severity == Severity::Error) {
        Err(Found.into())
    } else {
        Ok(())
    }
}
