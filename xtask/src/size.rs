//! The size of the released binary, plain and compressed.

use std::{
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};

/// Most bytes of the binary.
const PLAIN_MAX: u64 = 42_000_000;
/// Most bytes of the binary as `xz -9e` compresses it.
const COMPRESSED_MAX: u64 = 16_000_000;

/// Fails if the binary is larger than it may be. Without `xz`, only the plain size counts.
pub(crate) fn check(binary: &Path) -> Result<()> {
    let plain = std::fs::metadata(binary)
        .with_context(|| binary.display().to_string())?
        .len();
    println!("{plain} bytes, at most {PLAIN_MAX}");
    let compressed = compressed(binary)?;
    match compressed {
        None => println!("xz is not installed: the compressed size is unknown"),
        Some(bytes) => println!("{bytes} bytes as xz, at most {COMPRESSED_MAX}"),
    }
    if plain > PLAIN_MAX || compressed.unwrap_or(0) > COMPRESSED_MAX {
        bail!("the binary is too large");
    }
    Ok(())
}

fn compressed(binary: &Path) -> Result<Option<u64>> {
    let child = Command::new("xz")
        .args(["--stdout", "-9e", "--threads=1"])
        .arg(binary)
        .stdout(Stdio::piped())
        .spawn();
    let Ok(mut child) = child else {
        return Ok(None);
    };
    let mut out = child.stdout.take().context("no output of xz")?;
    let bytes = std::io::copy(&mut out, &mut std::io::sink())?;
    if !child.wait()?.success() {
        bail!("xz failed");
    }
    Ok(Some(bytes))
}
