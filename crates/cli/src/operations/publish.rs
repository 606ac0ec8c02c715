//! `ogive operations publish`: checks, and then the manifest and the plans of a release, both or none.
//!
//! What is written follows from what is read alone: equal operations and an equal supergraph give equal bytes. Only with
//! `--keep` the day counts, which `SOURCE_DATE_EPOCH` can fix.

use std::{
    path::{Path, PathBuf},
    time::{SystemTime, UNIX_EPOCH},
};

use anyhow::Result;
use ogive_documents::{ManifestEntry, manifest};
use ogive_gateway::schema::bundle::BundleBuilder;

use super::{InputArguments, JudgementArguments, gather::gather, judgement::judge, write};
use crate::{load, operation::refused, terminal};

const DAY_SECONDS: u64 = 86_400;

/// Arguments of `ogive operations publish`.
#[derive(clap::Args)]
pub(super) struct PublishArguments {
    #[command(flatten)]
    input: InputArguments,
    #[command(flatten)]
    judge: JudgementArguments,
    /// The manifest to write, for `persisted_queries.local_manifests`
    #[arg(short, long, value_name = "FILE")]
    manifest: PathBuf,
    /// The plans to write, for `ogive serve --plans`
    #[arg(short, long, value_name = "FILE")]
    plans: Option<PathBuf>,
    /// Days for which the manifest still lists what the one before lists and this release has not: for versions of an app
    /// that are in use
    #[arg(long, value_name = "DAYS", default_value_t = 0)]
    keep: u64,
}

pub(super) fn run(arguments: &PublishArguments) -> Result<()> {
    let gathered = gather(&arguments.input)?;
    let judged = judge(&gathered, &arguments.judge)?;
    let failed = (0..gathered.operations.len()).any(|at| !judged.passes(at));
    if failed {
        terminal::print(&judged.report(&gathered));
        return judged.into_result();
    }
    let new = gathered.entries();
    let count = new.len();
    let entries = with_kept(arguments, new)?;
    let mut builder = BundleBuilder::new(&judged.state);
    let mut unanswered = Vec::new();
    let mut entries_in_order: Vec<&ManifestEntry> = entries.iter().collect();
    entries_in_order.sort();
    for entry in entries_in_order {
        let name = entry.name.as_deref();
        let label = name.unwrap_or(&entry.id);
        match builder.add(label, &entry.text, name) {
            Ok(_) => {}
            Err(error) if entry.expires.is_none() => {
                let place = gathered.operations.iter().find(|o| o.entry == *entry);
                return Err(refused(&error, place.map_or(label, |o| &o.place)));
            }
            // What an old version asks for may be gone by now; whoever still sends it is told.
            Err(_) => unanswered.push(label.to_owned()),
        }
    }
    let bundle = builder.finish();
    let manifest = manifest::write(&entries, arguments.input.format.manifest());
    // The plans first: a gateway that has them and not the manifest yet lacks nothing.
    let plans = arguments.plans.as_ref().map(|path| (path, bundle.encode()));
    if let Some((path, bytes)) = &plans {
        write(path, bytes)?;
    }
    write(&arguments.manifest, &manifest)?;
    for label in &unanswered {
        terminal::remark(&format!(
            "warning: {label}, which is only kept for old versions, is not answered any more"
        ));
    }
    let kept = entries.len() - count;
    let kept = match kept {
        0 => String::new(),
        kept => format!(", {kept} kept of those before"),
    };
    let plans = plans.map_or(String::new(), |(path, bytes)| {
        let (count, bytes) = (bundle.plans.len(), bytes.len());
        format!("\n{count} plans, {bytes} bytes: {}", path.display())
    });
    terminal::print(&format!(
        "{count} operations{kept}, {} bytes: {}{plans}",
        manifest.len(),
        arguments.manifest.display(),
    ));
    Ok(())
}

/// The operations, and those of the manifest before that live on.
fn with_kept(arguments: &PublishArguments, new: Vec<ManifestEntry>) -> Result<Vec<ManifestEntry>> {
    if arguments.keep == 0 || !arguments.manifest.exists() {
        return Ok(new);
    }
    if arguments.input.format != super::Format::Apollo {
        return Err(terminal::error(
            "`--keep` needs `--format apollo`: no other manifest says how long an operation lives",
            "leave one of them out; a gateway keeps what is replaced by itself with `persisted_queries.sources`",
        ));
    }
    let before = before(&arguments.manifest)?;
    let now = now()?;
    let until = now.saturating_add(arguments.keep.saturating_mul(DAY_SECONDS));
    Ok(manifest::with_replaced(new, &before, now, until))
}

fn before(path: &Path) -> Result<Vec<ManifestEntry>> {
    let text = load::read(path, "manifest", "check `--manifest`")?;
    manifest::read(text.as_bytes(), None).map_err(|error| {
        terminal::error(
            format_args!(
                "the manifest before, `{}`, cannot be used: {error}",
                path.display()
            ),
            "remove it, or name another file with `--manifest`",
        )
    })
}

/// Seconds since 1970.
fn now() -> Result<u64> {
    if let Ok(text) = std::env::var("SOURCE_DATE_EPOCH") {
        return text.parse().map_err(|_| {
            terminal::error(
                "`SOURCE_DATE_EPOCH` is no number of seconds",
                "set it to seconds since 1970, or not at all",
            )
        });
    }
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    Ok(since.map_or(0, |since| since.as_secs()))
}
