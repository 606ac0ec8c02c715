//! What the lab knows: gateways, graphs and scenarios, each a file or folder under `bench/`. Keys are strict.

mod features;
mod federation_1;
mod gateway;
mod graph;
mod scenario;
mod selection;

pub use features::Features;
pub use federation_1::federation_1;
pub use gateway::{
    Estimate, EventProtocol, Gateway, Health, Install, Mode, ModeSpec, Reload, RequestForm, Role,
    Spec, Start, Subscriptions, Version,
};
pub use graph::{FRESH, Graph};
pub use scenario::{
    Authorization, Event, EventAction, Expect, Fresh, Goal, Limits, Load, Quick, Scenario, Shape,
    Stage, Subgraphs, Subscribers,
};
pub use selection::{Change, Selection, Tier};

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde::de::DeserializeOwned;

use crate::{Error, Result};

/// Everything under one `bench` folder.
#[derive(Clone, Debug)]
pub struct Lab {
    /// The folder.
    pub root: PathBuf,
    /// Gateways by name.
    pub gateways: Vec<Gateway>,
    /// Load generators that can be installed.
    pub tools: Vec<Gateway>,
    /// Scenarios by name.
    pub scenarios: Vec<Scenario>,
    /// Graphs by name.
    pub graphs: Vec<Graph>,
    /// What gateways can do beside being fast.
    pub features: Features,
}

impl Lab {
    /// Reads a `bench` folder and checks that its parts fit together.
    pub fn read(root: &Path) -> Result<Lab> {
        let root = fs::canonicalize(root).map_err(Error::file(root))?;
        let mut lab = Lab {
            gateways: Vec::new(),
            tools: Vec::new(),
            scenarios: Vec::new(),
            graphs: Vec::new(),
            features: Features::read(&root.join("features.toml"))?,
            root,
        };
        for folder in folders(&lab.root.join("gateways"))? {
            lab.gateways.push(Gateway::read(&folder)?);
        }
        for folder in folders(&lab.root.join("tools"))? {
            lab.tools.push(Gateway::read(&folder)?);
        }
        for folder in folders(&lab.root.join("graphs"))? {
            lab.graphs.push(Graph::read(&folder)?);
        }
        for path in entries(&lab.root.join("scenarios"))? {
            if path.extension().is_some_and(|e| e == "toml") {
                let scenario = Scenario::read(&path)?;
                let graph = lab.graph(&scenario.graph)?;
                scenario.check(graph, &path)?;
                lab.scenarios.push(scenario);
            }
        }
        Ok(lab)
    }

    /// A gateway or a tool.
    pub fn gateway(&self, name: &str) -> Result<&Gateway> {
        let all = || self.gateways.iter().chain(&self.tools);
        find("gateway", name, all(), |g| &g.name)
    }
    /// A scenario.
    pub fn scenario(&self, name: &str) -> Result<&Scenario> {
        find("scenario", name, self.scenarios.iter(), |s| &s.name)
    }
    /// A graph.
    pub fn graph(&self, name: &str) -> Result<&Graph> {
        find("graph", name, self.graphs.iter(), |g| &g.name)
    }
}

fn find<'a, T: 'a>(
    kind: &'static str,
    name: &str,
    mut all: impl Iterator<Item = &'a T> + Clone,
    name_of: impl Fn(&T) -> &str,
) -> Result<&'a T> {
    let known = all.clone();
    all.find(|item| name_of(item) == name)
        .ok_or_else(|| Error::Unknown {
            kind,
            name: name.to_owned(),
            known: known
                .map(|item| name_of(item).to_owned())
                .collect::<Vec<_>>()
                .join(", "),
        })
}

/// Reads a TOML file strictly.
pub(crate) fn read_toml<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let text = fs::read_to_string(path).map_err(Error::file(path))?;
    toml::from_str(&text).map_err(|error| Error::Model {
        path: path.to_path_buf(),
        message: error.to_string(),
    })
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(Error::file(folder))? {
        paths.push(entry.map_err(Error::file(folder))?.path());
    }
    paths.sort();
    Ok(paths)
}

fn folders(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut paths = entries(folder)?;
    paths.retain(|path| path.is_dir());
    Ok(paths)
}

fn file_name(path: &Path) -> String {
    let name = path.file_stem().unwrap_or_default();
    name.to_string_lossy().into_owned()
}
