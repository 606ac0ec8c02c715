//! What people read: numbers summed up over rounds ([`summary`]), as Markdown ([`markdown`]), as one HTML page with
//! charts ([`html`], [`svg`]), as the chart and section of a README ([`banner`]), and two campaigns side by side
//! ([`compare`]).

pub mod banner;
pub mod compare;
pub mod html;
pub mod markdown;
pub mod summary;
pub mod svg;

use std::{fs, path::Path};

pub use summary::{Row, ScenarioSummary, Spread, Summary};

use crate::{Error, Result, model::Features, record};

/// Sums a campaign up and writes `report.md`, `report.html`, `report.json` and `charts/*.svg` into its folder.
pub fn write(folder: &Path, features: Option<&Features>) -> Result<Summary> {
    let (campaign, runs) = record::read(folder)?;
    let summary = Summary::new(campaign, &runs);
    let keep = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text).map_err(Error::file(&path))
    };
    keep("report.md", &markdown::render(&summary, features))?;
    keep("report.html", &html::render(&summary, features))?;
    let charts = folder.join("charts");
    fs::create_dir_all(&charts).map_err(Error::file(&charts))?;
    for (name, chart) in html::files(&summary) {
        keep(&format!("charts/{name}.svg"), &chart)?;
    }
    record::write_json(&folder.join("report.json"), &summary)?;
    Ok(summary)
}
