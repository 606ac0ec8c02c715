//! The config file of `ogive mock`: which subgraphs, what data, how they behave. Keys are strict.

use std::path::{Path, PathBuf};

use ogive_base::FastMap;
use serde_json::{Map, Value};

use crate::{
    data::expr::text_of, delay::Delay, events::EventSchedule, fault::Fault,
    generate::GeneratorOptions, service::Settings, subgraph::Options, yaml,
};

/// What to serve.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// `listen: 127.0.0.1:4200`
    pub listen: Option<String>,
    /// `workers: 2`
    pub workers: Option<usize>,
    /// How to generate what no data file gives.
    pub generate: GeneratorOptions,
    /// Subgraphs in file order.
    pub subgraphs: Vec<SubgraphConfig>,
}

/// One subgraph to serve.
#[derive(Clone, Debug)]
pub struct SubgraphConfig {
    /// Its name, as in the URL.
    pub name: String,
    /// Its SDL.
    pub sdl: Sdl,
    /// Path of its data file; generated data without one.
    pub data: Option<PathBuf>,
    /// Its behaviour.
    pub settings: Settings,
    /// Its strictness.
    pub options: Options,
}

impl SubgraphConfig {
    /// A subgraph with generated data that behaves well.
    pub fn new(name: &str, sdl: Sdl) -> SubgraphConfig {
        SubgraphConfig {
            name: name.to_string(),
            sdl,
            data: None,
            settings: Settings::default(),
            options: Options::default(),
        }
    }
}

/// Where an SDL comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sdl {
    /// A file.
    File(PathBuf),
    /// The text itself.
    Text(String),
}

/// A config that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// Path of keys; empty for syntax errors.
    pub place: String,
    /// What is wrong.
    pub message: String,
}

impl std::fmt::Display for ConfigError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.place.is_empty() {
            write!(f, "{}", self.message)
        } else {
            write!(f, "{}: {}", self.place, self.message)
        }
    }
}

impl std::error::Error for ConfigError {}

/// What applies to every subgraph unless it says otherwise.
#[derive(Clone, Debug, Default)]
struct Defaults {
    data: Option<PathBuf>,
    settings: Settings,
    options: Options,
}

impl Config {
    /// Reads a config text; paths in it are relative to `folder`.
    pub fn parse(text: &str, folder: &Path) -> Result<Config, ConfigError> {
        let value = yaml::read(text).map_err(|e| error("", e.to_string()))?;
        let Value::Object(file) = value else {
            return Err(error("", "expected a mapping with \"subgraphs\""));
        };
        let mut config = Config::default();
        let mut defaults = Defaults::default();
        for (key, value) in &file {
            match key.as_str() {
                "listen" => config.listen = Some(text_of(value)),
                "workers" => config.workers = Some(integer(key, value)? as usize),
                "generate" => config.generate = generate(value)?,
                "subgraphs" => {}
                _ if behaviour(key, key, value, folder, &mut defaults)? => {}
                _ => {
                    return Err(error(
                        key,
                        "unknown key; known are listen, workers, generate, subgraphs, data, delay, faults, events, cache, \
                         record, headers, validate, strict_external",
                    ));
                }
            }
        }
        let Some(Value::Object(subgraphs)) = file.get("subgraphs") else {
            return Err(error(
                "subgraphs",
                "expected a mapping of names to SDL files",
            ));
        };
        for (name, value) in subgraphs {
            config
                .subgraphs
                .push(subgraph(name, value, folder, &defaults)?);
        }
        Ok(config)
    }
}

fn subgraph(
    name: &str,
    value: &Value,
    folder: &Path,
    defaults: &Defaults,
) -> Result<SubgraphConfig, ConfigError> {
    let place = format!("subgraphs.{name}");
    let mut own = defaults.clone();
    let mut sdl = None;
    match value {
        Value::String(path) => sdl = Some(folder.join(path)),
        Value::Object(map) => {
            for (key, value) in map {
                let place = format!("{place}.{key}");
                match key.as_str() {
                    "sdl" => sdl = Some(folder.join(text_of(value))),
                    _ if behaviour(&place, key, value, folder, &mut own)? => {}
                    _ => {
                        return Err(error(
                            &place,
                            "unknown key; known are sdl, data, delay, faults, events, cache, record, headers, validate, \
                             strict_external",
                        ));
                    }
                }
            }
        }
        _ => return Err(error(&place, "expected an SDL file or a mapping")),
    }
    Ok(SubgraphConfig {
        name: name.to_string(),
        sdl: Sdl::File(sdl.ok_or_else(|| error(&place, "has no \"sdl\""))?),
        data: own.data,
        settings: own.settings,
        options: own.options,
    })
}

/// Keys that stand at the top and at a subgraph. `false`: not one of them.
fn behaviour(
    place: &str,
    key: &str,
    value: &Value,
    folder: &Path,
    into: &mut Defaults,
) -> Result<bool, ConfigError> {
    match key {
        "data" => into.data = (!value.is_null()).then(|| folder.join(text_of(value))),
        "delay" => {
            into.settings.delay = Delay::parse(&text_of(value)).map_err(|m| error(place, m))?;
        }
        "faults" => {
            let Value::Array(items) = value else {
                return Err(error(place, "expected a list"));
            };
            into.settings.faults = items
                .iter()
                .map(|item| Fault::parse(&text_of(item)).map_err(|m| error(place, m)))
                .collect::<Result<_, _>>()?;
        }
        "cache" => match value {
            Value::Bool(on) => into.settings.cache = *on,
            other => into.settings.cache_bytes_max = integer(place, other)? as usize,
        },
        "events" => {
            let script = EventSchedule::read(value);
            into.settings.events = script.map_err(|(key, what)| {
                let place = if key.is_empty() {
                    place.to_owned()
                } else {
                    format!("{place}.{key}")
                };
                error(&place, what)
            })?;
        }
        "record" => into.settings.record = boolean(place, value)?,
        "headers" => into.settings.headers = boolean(place, value)?,
        "validate" => into.options.validate = boolean(place, value)?,
        "strict_external" => into.options.strict_external = boolean(place, value)?,
        _ => return Ok(false),
    }
    Ok(true)
}

fn generate(value: &Value) -> Result<GeneratorOptions, ConfigError> {
    let Value::Object(map) = value else {
        return Err(error("generate", "expected a mapping"));
    };
    let mut options = GeneratorOptions::default();
    for (key, value) in map {
        let place = format!("generate.{key}");
        let number = || integer(&place, value).map(|n| n.min(u64::from(u32::MAX)) as u32);
        match key.as_str() {
            "seed" => options.seed = integer(&place, value)?,
            "population" => options.population = number()?,
            "list_min" => options.list_min = number()?,
            "list_max" => options.list_max = number()?,
            "count_max" => options.count_max = number()?,
            "null_per_mille" => options.null_per_mille = number()?,
            "error_per_mille" => options.error_per_mille = number()?,
            "wild" => options.wild = boolean(&place, value)?,
            "check_representations" => options.check_representations = boolean(&place, value)?,
            "lengths" => options.lengths = ranges(&place, value)?,
            "texts" => options.texts = ranges(&place, value)?,
            _ => {
                return Err(error(
                    &place,
                    "unknown key; known are seed, population, list_min, list_max, count_max, null_per_mille, error_per_mille, \
                     wild, check_representations, lengths, texts",
                ));
            }
        }
    }
    Ok(options)
}

/// `{ Node.floats: 0..64 }`
fn ranges(place: &str, value: &Value) -> Result<FastMap<String, (u32, u32)>, ConfigError> {
    let Value::Object(map): &Value = value else {
        return Err(error(place, "expected a mapping of coordinates to ranges"));
    };
    let map: &Map<String, Value> = map;
    let mut found = FastMap::default();
    for (coordinate, range) in map {
        let text = text_of(range);
        let (low, high) = text.split_once("..").unwrap_or((&text, &text));
        match (low.trim().parse::<u32>(), high.trim().parse::<u32>()) {
            (Ok(low), Ok(high)) if low <= high => {
                found.insert(coordinate.clone(), (low, high));
            }
            _ => {
                let place = format!("{place}.{coordinate}");
                return Err(error(
                    &place,
                    format!("\"{text}\" is no range such as 0..64"),
                ));
            }
        }
    }
    Ok(found)
}

fn integer(place: &str, value: &Value) -> Result<u64, ConfigError> {
    value
        .as_u64()
        .ok_or_else(|| error(place, format!("expected a whole number, not {value}")))
}

fn boolean(place: &str, value: &Value) -> Result<bool, ConfigError> {
    value
        .as_bool()
        .ok_or_else(|| error(place, format!("expected true or false, not {value}")))
}

fn error(place: &str, message: impl Into<String>) -> ConfigError {
    ConfigError {
        place: place.to_string(),
        message: message.into(),
    }
}
