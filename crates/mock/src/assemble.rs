//! From a config to a service: reads the files it names, builds subgraphs, shares what can be shared.
//!
//! All subgraphs without data share one generator, so that they agree on every value; subgraphs with the same data
//! file share its rows.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use ogive_base::FastMap;
use ogive_files::Pipes;

use crate::{
    config::{Config, Sdl},
    data::{Data, DataError},
    fault::{Fault, unknown_coordinate},
    generate::Generator,
    model::{Model, SdlError},
    resolver::Source,
    service::Service,
    subgraph::Subgraph,
};

/// Largest file of SDL or data.
const FILE_BYTES_MAX: u64 = 1 << 30;

/// Why a config cannot be served.
#[derive(Debug)]
pub enum AssembleError {
    /// A file cannot be read.
    File(PathBuf, std::io::Error),
    /// An SDL is wrong.
    Sdl(SdlError),
    /// A data file is wrong.
    Data(PathBuf, DataError),
    /// A fault names a field the subgraph does not have: subgraph, coordinate.
    Fault(String, String),
}

impl std::fmt::Display for AssembleError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            AssembleError::File(path, error) => write!(f, "{}: {error}", path.display()),
            AssembleError::Sdl(error) => write!(f, "{error}"),
            AssembleError::Data(path, error) => write!(f, "{}: {error}", path.display()),
            AssembleError::Fault(subgraph, coordinate) => {
                write!(
                    f,
                    "the subgraph \"{subgraph}\" has no field \"{coordinate}\" to fail"
                )
            }
        }
    }
}

impl std::error::Error for AssembleError {}

/// A service and what is odd about its files.
#[derive(Debug)]
pub struct Assembled {
    /// Ready to be served.
    pub service: Service,
    /// One sentence each.
    pub warnings: Vec<String>,
}

/// Builds the service a config describes.
pub fn assemble(config: &Config) -> Result<Assembled, AssembleError> {
    let mut models = Vec::new();
    for subgraph in &config.subgraphs {
        let (name, sdl) = match &subgraph.sdl {
            Sdl::File(path) => (path.display().to_string(), read(path)?),
            Sdl::Text(text) => (subgraph.name.clone(), text.clone()),
        };
        let model = Model::from_sdl(&name, &sdl, subgraph.options.federation);
        models.push(model.map_err(AssembleError::Sdl)?);
    }
    for (subgraph, model) in config.subgraphs.iter().zip(&models) {
        let coordinates = subgraph
            .settings
            .faults
            .iter()
            .filter_map(Fault::coordinate);
        if let Some(wrong) = unknown_coordinate(&model.schema, coordinates) {
            let name = subgraph.name.clone();
            return Err(AssembleError::Fault(name, wrong.to_string()));
        }
    }
    let mut warnings = Vec::new();
    let mut files: FastMap<&Path, Arc<Data>> = FastMap::default();
    for path in config.subgraphs.iter().filter_map(|s| s.data.as_deref()) {
        if files.contains_key(path) {
            continue;
        }
        let data = Data::parse(&read(path)?);
        let data = data.map_err(|e| AssembleError::Data(path.to_path_buf(), e))?;
        let users = || {
            let pairs = config.subgraphs.iter().zip(&models);
            pairs.filter(|(s, _)| s.data.as_deref() == Some(path))
        };
        let known = |name: &str| users().any(|(_, m)| m.schema.type_by_name(name).is_some());
        for name in data.unknown_types(known) {
            let path = path.display();
            warnings.push(format!(
                "{path} has a type \"{name}\" that no subgraph knows"
            ));
        }
        files.insert(path, Arc::new(data));
    }
    let all: Vec<&Model> = models.iter().collect();
    let generator = Arc::new(Generator::new(&all, config.generate.clone()));
    let mut service = Service::new();
    for (subgraph, model) in config.subgraphs.iter().zip(models) {
        let data = subgraph.data.as_deref().and_then(|path| files.get(path));
        let source = match data {
            Some(data) => Source::Data(data.clone()),
            None => Source::Generated(generator.clone()),
        };
        let served = Subgraph::from_model(model, source, subgraph.options);
        service.add(&subgraph.name, served, subgraph.settings.clone());
    }
    Ok(Assembled { service, warnings })
}

fn read(path: &Path) -> Result<String, AssembleError> {
    ogive_files::read_text(path, FILE_BYTES_MAX, Pipes::Read)
        .map_err(|e| AssembleError::File(path.to_path_buf(), e))
}
