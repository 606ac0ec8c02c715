//! `ogive diff`: what changed between two graphs.

use anyhow::Result;
use clap::ValueEnum;
use ogive_workshop::diff::{Change, Impact, diff};
use serde_json::{Value, json};

use crate::{
    graphs,
    inputs::MoreArguments,
    terminal::{self, Found},
};

/// Arguments of `ogive diff`.
#[derive(clap::Args)]
#[command(
    after_help = "A graph is a supergraph file, a supergraph.yaml, a folder of SDL files, or NAME=FILE.\n\
                  API changes are what clients notice; ownership changes are who resolves what, keys and subgraphs.\n\
                  `ogive explain CODE` says what each change means.\n\n\
                  Exit codes: 0 compared, 1 --fail-on holds or a graph does not compose, 2 the arguments are wrong, 3 an \
                  input cannot be read."
)]
pub(crate) struct Arguments {
    /// The graph before
    before: String,
    /// The graph after
    after: String,
    #[command(flatten)]
    more: MoreArguments,
    /// How changes are written
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Which changes make the exit code 1
    #[arg(long, value_enum, default_value_t = FailOn::Never)]
    fail_on: FailOn,
    /// Leave ownership changes out
    #[arg(long)]
    api_only: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A list for people
    Text,
    /// One JSON object: `{"changes": […], "breaking": 0, "dangerous": 0, "safe": 0}`
    Json,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FailOn {
    /// None
    Never,
    /// Breaking ones
    Breaking,
    /// Dangerous ones too
    Dangerous,
    /// Any
    Any,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let before = graphs::graph(std::slice::from_ref(&arguments.before), &arguments.more)?;
    let after = graphs::graph(std::slice::from_ref(&arguments.after), &arguments.more)?;
    let mut changes = diff(&before.supergraph, &after.supergraph);
    changes.retain(|c| !(arguments.api_only && c.ownership));
    match arguments.format {
        Format::Text => terminal::print(&text(&changes)),
        Format::Json => {
            let list: Vec<Value> = changes.iter().map(change_json).collect();
            let count = |impact| changes.iter().filter(|c| c.kind.impact == impact).count();
            let value = json!({
                "changes": list,
                "breaking": count(Impact::Breaking),
                "dangerous": count(Impact::Dangerous),
                "safe": count(Impact::Safe),
            });
            terminal::print(&value.to_string());
        }
    }
    let worst = changes.iter().map(|c| c.kind.impact).min();
    let fails = match arguments.fail_on {
        FailOn::Never => false,
        FailOn::Breaking => worst == Some(Impact::Breaking),
        FailOn::Dangerous => worst.is_some_and(|w| w <= Impact::Dangerous),
        FailOn::Any => worst.is_some(),
    };
    if fails {
        return Err(Found.into());
    }
    Ok(())
}

/// A change for tools.
pub(crate) fn change_json(change: &Change) -> Value {
    json!({
        "code": change.kind.code,
        "impact": change.kind.impact.as_str(),
        "coordinate": change.coordinate,
        "message": change.message,
        "deprecated": change.deprecated,
        "area": if change.ownership { "ownership" } else { "api" },
    })
}

fn text(changes: &[Change]) -> String {
    if changes.is_empty() {
        return "no changes".into();
    }
    let mut out = String::new();
    for (ownership, title) in [(false, "API"), (true, "Ownership")] {
        let mut rows = changes
            .iter()
            .filter(|c| c.ownership == ownership)
            .peekable();
        if rows.peek().is_none() {
            continue;
        }
        out.push_str(title);
        out.push('\n');
        for change in rows {
            out.push_str(&format!(
                "  {:<9}  {:<26} {}\n",
                change.kind.impact.as_str(),
                change.kind.code,
                change.message
            ));
            if let Some(reason) = &change.deprecated {
                out.push_str(&format!("{:40}it was deprecated: {reason}\n", ""));
            }
        }
        out.push('\n');
    }
    let counts = [Impact::Breaking, Impact::Dangerous, Impact::Safe].map(|impact| {
        let n = changes.iter().filter(|c| c.kind.impact == impact).count();
        format!("{n} {}", impact.as_str())
    });
    out.push_str(&counts.join(", "));
    out
}
