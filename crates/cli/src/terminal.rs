//! Writing to people: results to standard output, everything else to standard error, colour only on terminals.

use std::{
    fmt,
    io::{self, IsTerminal, Write},
    sync::OnceLock,
};

/// A message that is complete as it is: printed without a prefix.
#[derive(Debug)]
pub(crate) struct Rendered(pub(crate) String);

impl fmt::Display for Rendered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Rendered {}

/// Inputs that cannot be read: complete as it is, with an exit code of its own.
#[derive(Debug)]
pub(crate) struct Unreadable(pub(crate) String);

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unreadable {}

/// Errors were found and written already; only the exit code is left to say so.
#[derive(Debug)]
pub(crate) struct Found;

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("errors were found")
    }
}

impl std::error::Error for Found {}

/// The code a process ends with after an error.
pub(crate) fn exit_code(error: &anyhow::Error) -> u8 {
    if error.is::<Unreadable>() { 3 } else { 1 }
}

/// An error with a remedy, in the form of the diagnostics.
pub(crate) fn error(message: impl fmt::Display, remedy: &str) -> anyhow::Error {
    written("", &message, remedy)
}

/// The same with a code that `ogive explain` knows.
pub(crate) fn coded(code: &str, message: impl fmt::Display, remedy: &str) -> anyhow::Error {
    written(&format!("[{code}]"), &message, remedy)
}

fn written(code: &str, message: &dyn fmt::Display, remedy: &str) -> anyhow::Error {
    let (red, blue, bold, plain) = if colour() {
        ("\x1b[1;31m", "\x1b[1;34m", "\x1b[1m", "\x1b[0m")
    } else {
        ("", "", "", "")
    };
    Rendered(format!(
        "{red}error{code}{plain}{bold}: {message}{plain}\n  {blue}={plain} {bold}help{plain}: {remedy}"
    ))
    .into()
}

/// Whether standard error is a terminal that wants colour.
pub(crate) fn colour() -> bool {
    io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}

/// Why a result could not be written, the first time.
static UNWRITTEN: OnceLock<io::Error> = OnceLock::new();

/// Writes a result. A reader that has had enough (`| head`) is no error; any other failure is one at the end
/// ([`written_all`]).
pub(crate) fn print(text: &str) {
    let write = || {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        if !text.ends_with('\n') {
            out.write_all(b"\n")?;
        }
        out.flush()
    };
    if let Err(error) = write()
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        let _ = UNWRITTEN.set(error);
    }
}

/// An error if a result could not be written.
pub(crate) fn written_all() -> anyhow::Result<()> {
    match UNWRITTEN.get() {
        None => Ok(()),
        Some(why) => Err(error(
            format_args!("cannot write to standard output: {why}"),
            "free some space, or write to another place",
        )),
    }
}

/// Writes a remark; through the log once there is one, because nobody may read it.
pub(crate) fn remark(text: &str) {
    if ogive_telemetry::log::remark(text) {
        return;
    }
    let mut out = io::stderr().lock();
    let _ = writeln!(out, "{text}");
}

/// Writes why the command failed.
pub(crate) fn fail(error: &anyhow::Error) {
    if error.is::<Found>() {
        return;
    }
    if let Some(unreadable) = error.downcast_ref::<Unreadable>() {
        return remark(&unreadable.0);
    }
    match error.downcast_ref::<Rendered>() {
        Some(rendered) => remark(&rendered.0),
        None => remark(&format!("error: {error:#}")),
    }
}
