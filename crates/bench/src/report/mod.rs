//! What people read: numbers summed up over rounds ([`summary`]), as Markdown ([`markdown`]), as one HTML page with
//! charts ([`html`], [`svg`]), and two campaigns side by side ([`compare`]).

pub mod compare;
pub mod html;
pub mod markdown;
pub mod summary;
pub mod svg;

use std::{fs, path::Path};

pub use summary::{Row, ScenarioSummary, Spread, Summary};

use crate::{Error, Result, model::Features, record};

/// Sums a campaign up and writes `report.md`, `report.html` and `report.json` into its folder.
pub fn write(folder: &Path, features: Option<&Features>) -> Result<Summary> {
    let (campaign, runs) = record::read(folder)?;
    let summary = Summary::new(campaign, &runs);
    let keep = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text).map_err(Error::file(&path))
    };
    keep("report.md", &markdown::render(&summary, features))?;
    keep("report.html", &html::render(&summary, features))?;
    record::write_json(&folder.join("report.json"), &summary)?;
    Ok(summary)
}
