//! Graphs: subgraph schemas, their supergraph, one server with all of it (the source of expected answers), data and
//! operations. All are ours; shapes and sizes follow the published scenarios.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde::Deserialize;
use serde_json::Value;

use crate::{Error, Result};

/// Where supergraph files say their subgraphs are; the lab puts the real address in.
const PLACEHOLDER: &str = "http://127.0.0.1:4200/";

/// A line of an operation that becomes a fresh alias, or nothing.
pub const FRESH: &str = "# fresh alias";

/// A folder of `bench/graphs`.
#[derive(Clone, Debug)]
pub struct Graph {
    /// Its name.
    pub name: String,
    /// Its folder.
    pub folder: PathBuf,
    /// One line about it.
    pub title: String,
    /// Its data; generated data without.
    pub data: Option<PathBuf>,
    /// How to generate, as the mock server's configuration says it.
    pub generate: Value,
    /// Names and SDL files of its subgraphs, in order of names.
    pub subgraphs: Vec<(String, PathBuf)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    title: String,
    data: Option<PathBuf>,
    #[serde(default)]
    generate: Value,
}

impl Graph {
    pub(crate) fn read(folder: &Path) -> Result<Graph> {
        let file: File = super::read_toml(&folder.join("graph.toml"))?;
        let subgraphs = super::entries(&folder.join("subgraphs"))?;
        Ok(Graph {
            name: super::file_name(folder),
            folder: folder.to_path_buf(),
            title: file.title,
            data: file.data.map(|path| folder.join(path)),
            generate: file.generate,
            subgraphs: subgraphs
                .into_iter()
                .map(|path| (super::file_name(&path), path))
                .collect(),
        })
    }

    /// The one server's schema.
    pub fn monolith(&self) -> PathBuf {
        self.folder.join("monolith.graphql")
    }

    /// The supergraph with the address of the subgraph server put in.
    pub fn supergraph(&self, base: &str) -> Result<String> {
        let text = read(&self.folder.join("supergraph.graphql"))?;
        Ok(text.replace(PLACEHOLDER, &format!("{base}/")))
    }

    /// The text of an operation.
    pub fn operation(&self, name: &str) -> Result<String> {
        read(
            &self
                .folder
                .join("operations")
                .join(format!("{name}.graphql")),
        )
    }
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).map_err(Error::file(path))
}
