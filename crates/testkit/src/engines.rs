//! The monolith and the subgraphs: the mock engine over a [`World`].

use std::sync::{Arc, Mutex, PoisonError};

use ogive_mock::{CustomObject, CustomSource, CustomValue, Federation, Options, Source, Subgraph};
use serde_json::{Map, Value as Json, json};

use crate::{
    graph::{Sub, print},
    world::{Object, Value, World},
};

/// Everything that answers requests in one graph.
#[derive(Debug)]
pub struct Engines {
    /// One engine per subgraph, over its own SDL, with its name.
    subgraphs: Vec<(String, Subgraph)>,
    /// The engine over the merged schema.
    pub monolith: Subgraph,
}

impl Engines {
    /// Engines over one world.
    pub fn new(world: &Arc<World>) -> Result<Engines, String> {
        let model = world.model();
        let subgraphs = (0..model.subgraphs.len())
            .map(|sub| {
                let sdl = print::subgraph_sdl(model, sub);
                let source = Source::Custom(Arc::new(At {
                    world: world.clone(),
                    sub: Some(sub),
                }));
                let name = &model.subgraphs[sub];
                let engine = Subgraph::new(name, &sdl, source, Options::default())
                    .map_err(|e| format!("{e:?}\n{sdl}"))?;
                Ok((name.clone(), engine))
            })
            .collect::<Result<Vec<_>, String>>()?;
        let source = Source::Custom(Arc::new(At {
            world: world.clone(),
            sub: None,
        }));
        Ok(Engines {
            subgraphs,
            monolith: monolith(world, source)?,
        })
    }

    /// Engines that others made.
    pub(crate) fn of(names: [&str; 2], subgraphs: Vec<Subgraph>, monolith: Subgraph) -> Engines {
        let names = names.into_iter().map(str::to_owned);
        Engines {
            subgraphs: names.zip(subgraphs).collect(),
            monolith,
        }
    }

    /// The engine of a subgraph.
    pub fn subgraph(&self, name: &str) -> Option<&Subgraph> {
        let mut all = self.subgraphs.iter();
        all.find(|(own, _)| own == name).map(|(_, engine)| engine)
    }
}

fn monolith(world: &World, source: Source) -> Result<Subgraph, String> {
    let options = Options {
        federation: Federation::Off,
        ..Options::default()
    };
    let sdl = print::merged_sdl(world.model());
    Subgraph::new("monolith", &sdl, source, options).map_err(|e| format!("{e:?}\n{sdl}"))
}

/// One call of a resolver: type, field, coerced arguments, and the value it gave. An object is
/// `{"__typename": ...}`, an error `{"$error": ...}`.
pub type Call = (String, String, Map<String, Json>, Json);

/// A monolith that writes down every call, so that another executor can be given the same values.
#[derive(Debug)]
pub struct Recorder {
    /// The engine.
    pub monolith: Subgraph,
    calls: Arc<Mutex<Vec<Call>>>,
}

impl Recorder {
    /// A recording monolith over a world.
    pub fn new(world: &Arc<World>) -> Result<Recorder, String> {
        let calls = Arc::new(Mutex::new(Vec::new()));
        let source = Source::Custom(Arc::new(Recording {
            at: At {
                world: world.clone(),
                sub: None,
            },
            calls: calls.clone(),
        }));
        Ok(Recorder {
            monolith: monolith(world, source)?,
            calls,
        })
    }
    /// The calls since the last time, in order.
    pub fn take(&self) -> Vec<Call> {
        std::mem::take(&mut *self.calls.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[derive(Debug)]
struct Recording {
    at: At,
    calls: Arc<Mutex<Vec<Call>>>,
}

impl CustomSource for Recording {
    fn field(
        &self,
        ty: &str,
        object: Option<&CustomObject>,
        field: &str,
        arguments: &Map<String, Json>,
    ) -> CustomValue {
        let value = self.at.field(ty, object, field, arguments);
        self.calls
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push((
                ty.to_owned(),
                field.to_owned(),
                arguments.clone(),
                plain(&value),
            ));
        value
    }
    fn entity(&self, representation: &Map<String, Json>) -> CustomValue {
        self.at.entity(representation)
    }
}

fn plain(value: &CustomValue) -> Json {
    match value {
        CustomValue::Null => Json::Null,
        CustomValue::Leaf(json) => json.clone(),
        CustomValue::List(items) => Json::Array(items.iter().map(plain).collect()),
        CustomValue::Object { ty, .. } => json!({"__typename": &**ty}),
        CustomValue::Error(message) => json!({"$error": message}),
    }
}

/// A world as one subgraph, or the monolith, sees it.
#[derive(Debug)]
struct At {
    world: Arc<World>,
    sub: Option<Sub>,
}

impl CustomSource for At {
    fn field(
        &self,
        ty: &str,
        object: Option<&CustomObject>,
        field: &str,
        arguments: &Map<String, Json>,
    ) -> CustomValue {
        let root;
        let object = match object.and_then(|o| o.downcast_ref::<Object>()) {
            Some(object) => object,
            None => {
                root = self.world.root(ty);
                &root
            }
        };
        self.custom(self.world.field(self.sub, object, field, arguments))
    }

    fn entity(&self, representation: &Map<String, Json>) -> CustomValue {
        match self.sub {
            Some(sub) => self.custom(self.world.entity(sub, representation)),
            None => CustomValue::Error("a monolith has no entities".to_owned()),
        }
    }
}

impl At {
    fn custom(&self, value: Value) -> CustomValue {
        match value {
            Value::Null => CustomValue::Null,
            Value::Leaf(json) => CustomValue::Leaf(json),
            Value::List(items) => {
                CustomValue::List(items.into_iter().map(|v| self.custom(v)).collect())
            }
            Value::Object(object) => CustomValue::Object {
                ty: match self.sub {
                    Some(sub) => self.world.type_in(sub, &object),
                    None => object.ty.clone(),
                },
                object: Arc::new(object),
            },
            Value::Error(message) => CustomValue::Error(message),
        }
    }
}
