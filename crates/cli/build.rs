//! Tells the program which commit it was built from. Without git, or outside a checkout, it is built all the same and
//! only knows its version; `OGIVE_COMMIT` says the commit where the sources came without one.

use std::{env, path::Path, process::Command};

fn main() {
    println!("cargo::rerun-if-env-changed=OGIVE_COMMIT");
    let given = env::var("OGIVE_COMMIT").ok();
    let commit = match given.filter(|commit| is_hash(commit)) {
        Some(commit) => commit,
        None => checkout().unwrap_or_default(),
    };
    let short = commit.get(..12).unwrap_or(&commit);
    println!("cargo::rustc-env=OGIVE_BUILT_FROM={short}");
    fold_equal_functions();
}

/// Has the linker keep one of several functions with the same instructions, which makes the program 3 % smaller. Only the
/// linker that the compiler brings for this target is sure to know the option.
fn fold_equal_functions() {
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|found| found == value);
    if is("TARGET", "x86_64-unknown-linux-gnu")
        && is("PROFILE", "release")
        && env::var_os("RUSTC_LINKER").is_none()
    {
        println!("cargo::rustc-link-arg-bins=-Wl,--icf=all");
    }
}

/// The commit of the checkout that this package is in, if it is one.
fn checkout() -> Option<String> {
    // Sources in a folder of another project's repository are not of that commit.
    git(&["ls-files", "--error-unmatch", "build.rs"])?;
    for name in ["HEAD", "packed-refs"] {
        watch(&git(&["rev-parse", "--git-path", name])?);
    }
    if let Some(branch) = git(&["symbolic-ref", "--quiet", "HEAD"]) {
        watch(&git(&["rev-parse", "--git-path", &branch])?);
    }
    git(&["rev-parse", "HEAD"]).filter(|commit| is_hash(commit))
}

fn watch(path: &str) {
    // A file that is not there would have the program built anew every time.
    if Path::new(path).exists() {
        println!("cargo::rerun-if-changed={path}");
    }
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

fn is_hash(text: &str) -> bool {
    (7..=64).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_hexdigit())
}
