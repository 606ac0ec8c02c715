//! `ogive demo`
/// Arguments of `ogive demo`.
#[derive(clap::Args)]
pub(crate) struct Arguments {}
pub(crate) fn run(_: Arguments) -> anyhow::Result<()> {
    Ok(())
}
