//! `ogive check`: whether these subgraphs may replace what serves now.

use std::{
    path::{Path, PathBuf},
    time::SystemTime,
};

use anyhow::Result;
use clap::ValueEnum;
use ogive_compose::ContractFilter;
use ogive_config::checks::{self, Checks, ContractChecks, Date};
use ogive_federation::Supergraph;
use ogive_files::Pipes;
use ogive_workshop::{
    check::{BrokenOperation, CheckOptions, Outcome, Use, Verdict, check},
    inputs::{expansion, read_text},
    usage::{ClientUse, Usage},
};
use serde_json::{Value, json};

use crate::{
    diff::change_json,
    graphs::{self, Graph},
    inputs::{self, SubgraphArguments},
    load,
    terminal::{self, Found},
};

/// The file of checks that is read when none is named.
const DEFAULT_CHECKS: &str = "checks.yaml";

/// Arguments of `ogive check`.
#[derive(clap::Args)]
#[command(
    after_help = "Composes, compares with the baseline, and fails on breaking changes that are not waived.\n\
                  With --operations, changes that no operation meets pass, and operations that become invalid fail.\n\
                  An operation that cannot be checked fails the check.\n\
                  checks.yaml holds waivers, contracts to check too, and lint rules; see docs/compose.md.\n\n\
                  Exit codes: 0 check passed, 1 check failed, 2 the arguments are wrong, 3 an input cannot be read."
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    subgraphs: SubgraphArguments,
    /// What serves now: a supergraph file, a supergraph.yaml or a folder of SDL files
    #[arg(short, long, value_name = "GRAPH")]
    baseline: String,
    /// What clients send: a folder or file, read as by `ogive operations`, a JSON manifest of persisted queries, or - for
    /// standard input; may be repeated
    #[arg(long, value_name = "PATH")]
    operations: Vec<PathBuf>,
    /// What gateways have counted: the file of `usage.file`, or - for standard input; says which clients a change hits
    #[arg(long, value_name = "FILE", conflicts_with = "operations")]
    usage: Option<PathBuf>,
    /// Waivers, contracts and lint rules [default: checks.yaml, if it is there]
    #[arg(long, value_name = "FILE")]
    checks: Option<PathBuf>,
    /// Let what was deprecated go, if no operation is known to use it
    #[arg(long)]
    deprecated_may_go: bool,
    /// Pass although some operations cannot be checked: those that the baseline does not answer either, and requests that a
    /// gateway has counted without their operation
    #[arg(long)]
    allow_unchecked: bool,
    /// How the outcome is written
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people
    Text,
    /// One JSON object
    Json,
    /// Workflow commands of GitHub Actions
    Github,
}

/// Reads the file of checks that is named, or the one that is there.
pub(crate) fn read_checks(path: Option<&Path>) -> Result<Checks> {
    let path = match path {
        Some(path) => path,
        None if Path::new(DEFAULT_CHECKS).is_file() => Path::new(DEFAULT_CHECKS),
        None => return Ok(Checks::default()),
    };
    let text = read_text(path, "file of checks", Pipes::Read).map_err(inputs::refused)?;
    if load::says_nothing(&text) {
        return Err(terminal::error(
            format_args!("the file of checks `{}` is empty", path.display()),
            "write its waivers, contracts and lint rules, or leave the file out",
        ));
    }
    let (sources, id) = load::source(path, &text);
    checks::load(id, &text, expansion()).map_err(|errors| {
        load::render(
            errors,
            &sources,
            "see docs/compose.md for what the file may say",
        )
    })
}

/// What the file of checks says of one contract.
pub(crate) fn filter(contract: &ContractChecks) -> ContractFilter {
    ContractFilter {
        include: contract.include.clone(),
        exclude: contract.exclude.clone(),
        hide_unreachable: contract.hide_unreachable,
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let checks = read_checks(arguments.checks.as_deref())?;
    let before = graphs::graph(
        std::slice::from_ref(&arguments.baseline),
        &Default::default(),
    )?;
    let after = graphs::composed(&arguments.subgraphs.load()?)?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let today = now.ok().map(|d| Date::of_unix_seconds(d.as_secs()));
    let judge = |before: &Supergraph, after: &Supergraph, allow_unchecked| -> Result<Outcome> {
        let usage = usage(arguments, before)?;
        let options = CheckOptions {
            usage: usage.as_ref(),
            waivers: &checks.waivers,
            today,
            deprecated_may_go: arguments.deprecated_may_go,
            allow_unchecked,
        };
        Ok(check(before, after, &options))
    };
    let whole = judge(
        &before.supergraph,
        &after.supergraph,
        arguments.allow_unchecked,
    )?;
    let mut outcomes = vec![(None, whole)];
    for contract in &checks.contracts {
        let filter = filter(contract);
        let old = variant(&before, &contract.name, &filter)?;
        let new = variant(&after, &contract.name, &filter)?;
        // An operation that a contract does not answer is one of other clients.
        outcomes.push((Some(&*contract.name), judge(&old, &new, true)?));
    }
    match arguments.format {
        Format::Text => {
            for (contract, outcome) in &outcomes {
                terminal::print(&text(*contract, outcome, &checks));
            }
        }
        Format::Json => {
            let list: Vec<Value> = outcomes
                .iter()
                .map(|(c, o)| to_json(*c, o, &checks))
                .collect();
            let passes = outcomes.iter().all(|(_, o)| o.passes());
            terminal::print(&json!({ "passes": passes, "graphs": list }).to_string());
        }
        Format::Github => {
            for (contract, outcome) in &outcomes {
                github(*contract, outcome);
            }
        }
    }
    if outcomes.iter().all(|(_, o)| o.passes()) {
        Ok(())
    } else {
        Err(Found.into())
    }
}

/// What clients send, if the arguments say.
fn usage(arguments: &Arguments, before: &Supergraph) -> Result<Option<Usage>> {
    let is_standard_input = |path: &Path| path.as_os_str() == "-";
    let usage = match (&arguments.usage, arguments.operations.as_slice()) {
        (Some(path), _) if is_standard_input(path) => {
            let text = load::standard_input("usage")?;
            Usage::read_counted(&text, "standard input", &before.api)
        }
        (Some(path), _) => {
            let text = read_text(path, "usage", Pipes::Read).map_err(inputs::refused)?;
            Usage::read_counted(&text, &path.display().to_string(), &before.api)
        }
        (None, []) => return Ok(None),
        (None, [path]) if is_standard_input(path) => {
            let text = load::standard_input("operations")?;
            Usage::read_text(&text, "standard input", &before.api)
        }
        (None, paths) => Usage::read(paths, &before.api),
    };
    usage.map(Some).map_err(inputs::refused)
}

/// Most clients that are named of an operation.
const CLIENTS_MAX: usize = 5;

/// Who asks an operation.
fn clients(used: &Use) -> String {
    let named = used.clients.iter().take(CLIENTS_MAX).map(|client| {
        let name = match client.name.as_str() {
            "" => "an unnamed client",
            name => name,
        };
        let version = match client.version.as_str() {
            "" => String::new(),
            version => format!(" {version}"),
        };
        match client.requests {
            1 => format!("{name}{version}: 1 request"),
            count => format!("{name}{version}: {count} requests"),
        }
    });
    let mut named: Vec<String> = named.collect();
    if let Some(more) = used.clients.len().checked_sub(CLIENTS_MAX + 1) {
        named.push(format!("{} more", more + 1));
    }
    named.join(", ")
}

/// A contract of a graph.
fn variant(graph: &Graph, name: &str, filter: &ContractFilter) -> Result<Supergraph> {
    let Some(composed) = &graph.composed else {
        return Err(terminal::error(
            format_args!("the contract `{name}` cannot be made from a supergraph file"),
            "give the subgraphs of the baseline: a supergraph.yaml or a folder",
        ));
    };
    let contract = composed.contract(filter).unwrap_or_default();
    match &contract.supergraph_sdl {
        Some(sdl) => load::supergraph_text(&format!("contract {name}"), sdl),
        None => Err(load::render(
            contract.errors,
            &composed.sources,
            "correct the tags, or the contract in the file of checks",
        )),
    }
}

fn verdict(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Fails => "fails".into(),
        Verdict::Waived { until, reason } => format!("waived until {until}: {reason}"),
        Verdict::Unused => "passes: no known operation meets it".into(),
        Verdict::WasDeprecated => "passes: it was deprecated".into(),
        Verdict::Passes => "passes".into(),
    }
}

fn text(contract: Option<&str>, outcome: &Outcome, checks: &Checks) -> String {
    let mut out = String::new();
    if let Some(contract) = contract {
        out.push_str(&format!("\ncontract {contract}\n"));
    }
    for judged in &outcome.changes {
        let change = &judged.change;
        out.push_str(&format!(
            "{:<9}  {:<26} {}\n",
            change.kind.impact.as_str(),
            change.kind.code,
            change.message
        ));
        let mut more = |text: String| out.push_str(&format!("{:38}{text}\n", ""));
        if let Some(reason) = &change.deprecated {
            more(format!("it was deprecated: {reason}"));
        }
        if !judged.used_by.is_empty() {
            let uses = judged.used_by.iter();
            let uses: Vec<String> = uses.map(|u| format!("{} ({})", u.name, u.place)).collect();
            more(format!("used by {}", uses.join(", ")));
            for used in judged
                .used_by
                .iter()
                .filter(|used| !used.clients.is_empty())
            {
                more(format!("{} is asked by {}", used.name, clients(used)));
            }
        }
        if judged.verdict != Verdict::Passes {
            more(verdict(&judged.verdict));
        }
    }
    for broken in &outcome.broken {
        out.push_str(&format!(
            "operation  {} fails: {}: {}\n",
            broken.name, broken.place, broken.message
        ));
    }
    for cost in outcome.costs.iter().filter(|_| contract.is_none()) {
        out.push_str(&format!(
            "cost       {} ({}): {} before, {} after\n",
            cost.name, cost.place, cost.before, cost.after
        ));
    }
    for invalid in outcome.invalid.iter().filter(|_| contract.is_none()) {
        out.push_str(&format!(
            "unchecked  {}: the baseline does not answer this operation: {}: {}\n",
            invalid.name, invalid.place, invalid.message
        ));
    }
    if contract.is_none() && outcome.unattributed_requests > 0 {
        out.push_str(&format!(
            "unchecked  {} whose operation the gateway did not record: raise `usage.rows_max` or `usage.memory_max`\n",
            counted(outcome.unattributed_requests, "request")
        ));
    }
    for expired in &outcome.expired {
        let waiver = &checks.waivers[*expired];
        out.push_str(&format!(
            "waiver     for {} expired on {}\n",
            waiver.coordinate, waiver.until
        ));
    }
    for idle in outcome.idle.iter().filter(|_| contract.is_none()) {
        let waiver = &checks.waivers[*idle];
        out.push_str(&format!(
            "waiver     for {} is not needed any more\n",
            waiver.coordinate
        ));
    }
    if let Some(operations) = outcome.operations {
        out.push_str(&format!(
            "{} known, {} broken, {} not checked\n",
            counted(operations as u64, "operation"),
            outcome.broken.len(),
            outcome.invalid.len(),
        ));
    }
    out.push_str(match (outcome.changes.is_empty(), outcome.passes()) {
        (true, true) => "check passed: no changes",
        (false, true) => "check passed",
        (_, false) if contract.is_none() && !outcome.is_complete() => {
            "check failed (--allow-unchecked accepts operations that cannot be checked)"
        }
        (_, false) => "check failed",
    });
    out
}

/// A number of things, in words.
fn counted(number: u64, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

fn to_json(contract: Option<&str>, outcome: &Outcome, checks: &Checks) -> Value {
    let changes: Vec<Value> = outcome
        .changes
        .iter()
        .map(|judged| {
            let mut value = change_json(&judged.change);
            value["verdict"] = match &judged.verdict {
                Verdict::Fails => "fails",
                Verdict::Waived { .. } => "waived",
                Verdict::Unused => "unused",
                Verdict::WasDeprecated => "deprecated",
                Verdict::Passes => "passes",
            }
            .into();
            if let Verdict::Waived { until, reason } = &judged.verdict {
                value["waiver"] = json!({ "until": until.to_string(), "reason": reason });
            }
            let names: Vec<&String> = judged.used_by.iter().map(|u| &u.name).collect();
            value["used_by"] = json!(names);
            let uses = judged.used_by.iter();
            let uses: Vec<Value> = uses
                .map(|u| {
                    let client = |c: &ClientUse| {
                        json!({ "name": c.name, "version": c.version, "requests": c.requests })
                    };
                    let clients: Vec<Value> = u.clients.iter().map(client).collect();
                    json!({ "operation": u.name, "place": u.place, "clients": clients })
                })
                .collect();
            value["uses"] = json!(uses);
            value
        })
        .collect();
    let operations = |list: &[BrokenOperation]| -> Vec<Value> {
        list.iter()
            .map(|b| json!({ "operation": b.name, "place": b.place, "message": b.message }))
            .collect()
    };
    let costs = outcome.costs.iter().map(|cost| {
        let (name, place) = (&cost.name, &cost.place);
        json!({ "operation": name, "place": place, "before": cost.before, "after": cost.after })
    });
    let costs: Vec<Value> = costs.collect();
    let waivers = |list: &[usize]| -> Vec<&String> {
        list.iter()
            .map(|i| &checks.waivers[*i].coordinate)
            .collect()
    };
    json!({
        "contract": contract,
        "passes": outcome.passes(),
        "operations": outcome.operations,
        "changes": changes,
        "broken_operations": operations(&outcome.broken),
        "invalid_operations": operations(&outcome.invalid),
        "unattributed_requests": outcome.unattributed_requests,
        "cost_changes": costs,
        "expired_waivers": waivers(&outcome.expired),
        "idle_waivers": waivers(&outcome.idle),
    })
}

fn github(contract: Option<&str>, outcome: &Outcome) {
    let graph = contract.map_or(String::new(), |c| format!(" (contract {c})"));
    for judged in &outcome.changes {
        let level = match judged.verdict {
            Verdict::Fails => "error",
            Verdict::Passes if judged.change.kind.impact == ogive_workshop::diff::Impact::Safe => {
                continue;
            }
            _ => "warning",
        };
        let change = &judged.change;
        terminal::print(&format!(
            "::{level} title={}::{}{graph}: {}",
            change.kind.code,
            change.message,
            verdict(&judged.verdict)
        ));
    }
    for broken in &outcome.broken {
        terminal::print(&format!(
            "::error title=OPERATION_BROKEN::the operation {} fails{graph}: {}: {}",
            broken.name,
            broken.place,
            broken.message.replace('\n', "%0A")
        ));
    }
    let level = if outcome.allow_unchecked {
        "warning"
    } else {
        "error"
    };
    for invalid in outcome.invalid.iter().filter(|_| contract.is_none()) {
        terminal::print(&format!(
            "::{level} title=OPERATION_INVALID::the operation {} cannot be checked, because the baseline does not answer it: {}: {}",
            invalid.name,
            invalid.place,
            invalid.message.replace('\n', "%0A")
        ));
    }
    if contract.is_none() && outcome.unattributed_requests > 0 {
        terminal::print(&format!(
            "::{level} title=OPERATION_INVALID::{} cannot be checked, because the gateway did not record the operation",
            counted(outcome.unattributed_requests, "request")
        ));
    }
}
