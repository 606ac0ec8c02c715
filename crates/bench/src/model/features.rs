//! The operability table: what a gateway offers beside speed (`bench/features.toml`), seed 004's last table as data.

use std::{collections::BTreeMap, path::Path};

use serde::Deserialize;

use crate::Result;

/// Rows of capabilities by gateway.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Features {
    /// Where the cells come from and what they mean.
    pub note: String,
    /// Gateways in the order of the columns.
    pub gateways: Vec<String>,
    /// Rows.
    #[serde(default)]
    pub row: Vec<Row>,
}

/// One capability.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// What it is.
    pub title: String,
    /// What each gateway offers; a gateway that is not named is unknown.
    pub cells: BTreeMap<String, String>,
}

impl Features {
    pub(crate) fn read(path: &Path) -> Result<Features> {
        super::read_toml(path)
    }
}
