//! What is taken from the environment: arguments of `ogive serve` and `ogive dev`, and values over those of the
//! configuration. Names are told, values never.

use std::path::PathBuf;

use ogive_config::{Override, PREFIX};

/// `--config`
pub(crate) const CONFIG: &str = "OGIVE_CONFIG";
/// `--supergraph`
pub(crate) const SUPERGRAPH: &str = "OGIVE_SUPERGRAPH";
/// `--listen`
pub(crate) const LISTEN: &str = "OGIVE_LISTEN";
/// `--log`
pub(crate) const LOG: &str = "OGIVE_LOG";

/// The text of a variable; one that is empty counts as not set.
pub(crate) fn text(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|text| !text.is_empty())
}

/// The path of a variable.
pub(crate) fn path(name: &str) -> Option<PathBuf> {
    let value = std::env::var_os(name)?;
    (!value.is_empty()).then(|| value.into())
}

/// Values over those of the configuration, in order of their names.
pub(crate) fn overrides() -> Vec<Override> {
    let all = std::env::vars_os();
    let texts = all.filter_map(|(name, value)| {
        let name = name
            .into_string()
            .ok()
            .filter(|name| name.starts_with(PREFIX))?;
        // What is no text is no value of any key, and is refused as such.
        Some((name, value.to_string_lossy().into_owned()))
    });
    let mut overrides: Vec<Override> = texts.collect();
    overrides.sort();
    overrides
}

/// Their names.
pub(crate) fn override_names() -> Vec<String> {
    overrides().into_iter().map(|(name, _)| name).collect()
}
