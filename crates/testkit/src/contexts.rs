//! Graphs with `@context` and `@fromContext`: several types set one context, one type sets several, and look-ups with and
//! without values from above go to one subgraph. A monolith, which knows what is above every object, says what is right.

use std::sync::Arc;

use ogive_mock::{CustomObject, CustomSource, CustomValue, Federation, Options, Source, Subgraph};
use serde_json::{Map, Value as Json, json};

use crate::{
    engines::Engines,
    pipeline::{Answer, Gateway, Mode, split},
    rng::{Rng, mix},
    schemas::{Schemas, schema, supergraph},
};

/// A graph that answers operations.
#[derive(Debug)]
pub struct ContextBench {
    schemas: Schemas,
    engines: Engines,
}

const JOIN: &str = r#"schema
  @link(url: "https://specs.apollo.dev/link/v1.0")
  @link(url: "https://specs.apollo.dev/join/v0.5", for: EXECUTION)
  @link(url: "https://specs.apollo.dev/context/v0.1", for: SECURITY) {
  query: Query
}
directive @context(name: String!) repeatable on INTERFACE | OBJECT | UNION
directive @link(url: String, as: String, for: link__Purpose, import: [link__Import]) repeatable on SCHEMA
directive @join__enumValue(graph: join__Graph!) repeatable on ENUM_VALUE
directive @join__field(graph: join__Graph, requires: join__FieldSet, provides: join__FieldSet, type: String, external: Boolean, override: String, usedOverridden: Boolean, overrideLabel: String, contextArguments: [join__ContextArgument!]) repeatable on FIELD_DEFINITION | INPUT_FIELD_DEFINITION
directive @join__graph(name: String!, url: String!) on ENUM_VALUE
directive @join__implements(graph: join__Graph!, interface: String!) repeatable on OBJECT | INTERFACE
directive @join__type(graph: join__Graph!, key: join__FieldSet, extension: Boolean! = false, resolvable: Boolean! = true, isInterfaceObject: Boolean! = false) repeatable on OBJECT | INTERFACE | UNION | ENUM | INPUT_OBJECT | SCALAR
directive @join__unionMember(graph: join__Graph!, member: String!) repeatable on UNION
input join__ContextArgument { name: String! type: String! context: String! selection: join__FieldValue! }
scalar join__FieldSet
scalar join__FieldValue
scalar link__Import
enum link__Purpose { SECURITY EXECUTION }
enum join__Graph { ANT @join__graph(name: "ant", url: "") BEE @join__graph(name: "bee", url: "") }
"#;

const ANT: &str = r#"
type Query { yards: [Yard!]! shops: [Shop!]! others: [Other!]! }
type Yard @key(fields: "id") { id: ID! item: Item items: [Item!] shop: Shop }
type Shop @key(fields: "id") { id: ID! item: Item extra: Extra }
type Item @key(fields: "id") { id: ID! part: Item }
type Extra @key(fields: "id") { id: ID! }
type Other @key(fields: "id") { id: ID! }
"#;

fn bee(unit: &str) -> String {
    format!(
        r#"
type Yard @key(fields: "id") @context(name: "scope") {{ id: ID! unit: Int }}
type Shop @key(fields: "id") @context(name: "scope") @context(name: "zone") {{ id: ID! unit: Int area: String! }}
type Item @key(fields: "id") {{
  id: ID!
  quote(u: {unit} @fromContext(field: "$scope ... on Yard {{ unit }} ... on Shop {{ unit }}")): String
  plain: String
}}
type Extra @key(fields: "id") {{ id: ID! fee(z: String! @fromContext(field: "$zone {{ area }}")): String }}
type Other @key(fields: "id") {{ id: ID! note: String }}
"#
    )
}

const MERGED: &str = "
type Query { yards: [Yard!]! shops: [Shop!]! others: [Other!]! }
type Yard { id: ID! item: Item items: [Item!] shop: Shop unit: Int }
type Shop { id: ID! item: Item extra: Extra unit: Int area: String! }
type Item { id: ID! part: Item quote: String plain: String }
type Extra { id: ID! fee: String }
type Other { id: ID! note: String }
";

fn supergraph_text(unit: &str) -> String {
    let key = r#"@join__type(graph: ANT, key: "id") @join__type(graph: BEE, key: "id")"#;
    let (ant, bee) = ("@join__field(graph: ANT)", "@join__field(graph: BEE)");
    format!(
        r#"{JOIN}
type Query @join__type(graph: ANT) @join__type(graph: BEE) {{ yards: [Yard!]! {ant} shops: [Shop!]! {ant} others: [Other!]! {ant} }}
type Yard {key} @context(name: "bee__scope") {{ id: ID! item: Item {ant} items: [Item!] {ant} shop: Shop {ant} unit: Int {bee} }}
type Shop {key} @context(name: "bee__scope") @context(name: "bee__zone") {{ id: ID! item: Item {ant} extra: Extra {ant} unit: Int {bee} area: String! {bee} }}
type Item {key} {{
  id: ID!
  part: Item {ant}
  quote: String @join__field(graph: BEE, contextArguments: [{{ context: "bee__scope", name: "u", type: "{unit}", selection: "... on Yard {{ unit }} ... on Shop {{ unit }}" }}])
  plain: String {bee}
}}
type Extra {key} {{
  id: ID!
  fee: String @join__field(graph: BEE, contextArguments: [{{ context: "bee__zone", name: "z", type: "String!", selection: "{{ area }}" }}])
}}
type Other {key} {{ id: ID! note: String {bee} }}
"#
    )
}

/// An object, and what is above it.
#[derive(Debug)]
struct Node {
    ty: String,
    id: String,
    above: Option<Arc<Node>>,
}

/// The data: all of it follows from a seed.
#[derive(Debug)]
struct Data {
    seed: u64,
    /// Whether a quote needs a unit.
    needs_unit: bool,
    /// Whether it is known what is above an object.
    is_monolith: bool,
}

impl Data {
    fn number(&self, id: &str, field: &str) -> u64 {
        let bytes = id.bytes().chain(field.bytes());
        bytes.fold(mix(self.seed), |all, byte| mix(all ^ u64::from(byte)))
    }
    fn unit(&self, id: &str) -> Json {
        match self.number(id, "unit") % 4 {
            3 => Json::Null,
            unit => json!(unit),
        }
    }
    fn area(&self, id: &str) -> Json {
        json!(format!("area {}", self.number(id, "area") % 3))
    }

    /// The value that the nearest object above has for a context.
    fn value_above(&self, node: &Node, types: &[&str], value: impl Fn(&str) -> Json) -> Json {
        let mut above = node.above.as_ref();
        while let Some(at) = above {
            if types.contains(&&*at.ty) {
                return value(&at.id);
            }
            above = at.above.as_ref();
        }
        Json::Null
    }

    fn resolve(&self, node: &Arc<Node>, field: &str, arguments: &Map<String, Json>) -> CustomValue {
        let id = &node.id;
        // Objects of a small pool, so that one of them is below several others.
        let one = |ty: &str, salt: &str| {
            let n = self.number(id, salt) % 5;
            match n {
                4 => CustomValue::Null,
                n => object(ty, format!("{ty} {n}"), Some(node)),
            }
        };
        let argument = |name: &str| arguments.get(name).cloned().unwrap_or_default();
        match field {
            "id" => CustomValue::Leaf(json!(id)),
            "yards" => self.some("Yard", node),
            "shops" => self.some("Shop", node),
            "others" => self.some("Other", node),
            "item" => one("Item", "item"),
            "part" => one("Item", "part"),
            "shop" => one("Shop", "shop"),
            "extra" => one("Extra", "extra"),
            "items" => {
                let salts = ["a", "b", "c"].iter();
                let n = self.number(id, "items") % 4;
                let salts = salts.take(n as usize);
                let items = salts.map(|salt| one("Item", salt));
                CustomValue::List(
                    items
                        .filter(|item| !matches!(item, CustomValue::Null))
                        .collect(),
                )
            }
            "unit" => leaf(self.unit(id)),
            "area" => leaf(self.area(id)),
            "plain" | "note" => leaf(json!(format!("{field} of {id}"))),
            "quote" => {
                let unit = if self.is_monolith {
                    self.value_above(node, &["Yard", "Shop"], |id| self.unit(id))
                } else {
                    argument("u")
                };
                if unit.is_null() && self.needs_unit {
                    return CustomValue::Null;
                }
                leaf(json!(format!("quote of {id} for {unit}")))
            }
            "fee" => {
                let area = if self.is_monolith {
                    self.value_above(node, &["Shop"], |id| self.area(id))
                } else {
                    argument("z")
                };
                leaf(json!(format!("fee of {id} in {area}")))
            }
            other => CustomValue::Error(format!("no field {other}")),
        }
    }

    fn some(&self, ty: &str, root: &Arc<Node>) -> CustomValue {
        let n = 1 + self.number(ty, "list") % 3;
        let all = (0..n).map(|at| object(ty, format!("{ty} {at}"), Some(root)));
        CustomValue::List(all.collect())
    }
}

fn leaf(value: Json) -> CustomValue {
    match value {
        Json::Null => CustomValue::Null,
        value => CustomValue::Leaf(value),
    }
}

fn object(ty: &str, id: String, above: Option<&Arc<Node>>) -> CustomValue {
    CustomValue::Object {
        ty: ty.into(),
        object: Arc::new(Arc::new(Node {
            ty: ty.to_owned(),
            id,
            above: above.cloned(),
        })),
    }
}

impl CustomSource for Data {
    fn field(
        &self,
        ty: &str,
        object: Option<&CustomObject>,
        field: &str,
        arguments: &Map<String, Json>,
    ) -> CustomValue {
        match object.and_then(|object| object.downcast_ref::<Arc<Node>>()) {
            Some(node) => self.resolve(node, field, arguments),
            None => {
                let root = Node {
                    ty: ty.to_owned(),
                    id: String::new(),
                    above: None,
                };
                self.resolve(&Arc::new(root), field, arguments)
            }
        }
    }
    fn entity(&self, representation: &Map<String, Json>) -> CustomValue {
        let text = |name: &str| representation.get(name).and_then(Json::as_str);
        match (text("__typename"), text("id")) {
            (Some(ty), Some(id)) => object(ty, id.to_owned(), None),
            _ => CustomValue::Error(format!("no key: {representation:?}")),
        }
    }
}

impl ContextBench {
    /// The graph of a seed.
    pub fn new(seed: u64) -> Result<ContextBench, String> {
        let needs_unit = seed.is_multiple_of(2);
        let unit = if needs_unit { "Int!" } else { "Int" };
        let engine = |name: &str, sdl: &str, is_monolith: bool| {
            let data = Data {
                seed,
                needs_unit,
                is_monolith,
            };
            let options = Options {
                federation: if is_monolith {
                    Federation::Off
                } else {
                    Options::default().federation
                },
                ..Options::default()
            };
            Subgraph::new(name, sdl, Source::Custom(Arc::new(data)), options)
                .map_err(|e| format!("{e:?}\n{sdl}"))
        };
        let link = r#"extend schema @link(url: "https://specs.apollo.dev/federation/v2.8", import: ["@key", "@context", "@fromContext"])"#;
        let subgraphs = vec![
            engine("ant", &format!("{link}{ANT}"), false)?,
            engine("bee", &format!("{link}{}", bee(unit)), false)?,
        ];
        Ok(ContextBench {
            schemas: Schemas {
                supergraph: supergraph(&supergraph_text(unit))?,
                merged: schema("merged", MERGED)?,
            },
            engines: Engines::of(["ant", "bee"], subgraphs, engine("monolith", MERGED, true)?),
        })
    }

    /// Holds an operation against the monolith; the error is the whole story.
    pub fn compare(&self, operation: &str, on: bool, seed: u64) -> Result<Answer, String> {
        let variables = json!({ "on": on });
        let variables = variables.as_object().cloned().unwrap_or_default();
        let monolith = &self.engines.monolith;
        let whole = monolith.execute(operation, None, &variables, &Default::default());
        let (expected, errors) = split(&whole.body)?;
        if let Some(errors) = errors {
            return Err(format!("the monolith has errors: {errors}\n{operation}"));
        }
        let gateway = Gateway::new(&self.schemas, &self.engines);
        let prepared = gateway.prepare(operation, &format!("{{\"on\":{on}}}"), seed)?;
        let answer = gateway.execute(&prepared, Mode::by_seed(seed), seed, None)?;
        let is_right =
            answer.data == expected && answer.errors.is_none() && answer.complaints.is_empty();
        if is_right {
            return Ok(answer);
        }
        Err(format!(
            "{operation}\nexpected: {expected}\nactual:   {}\nerrors:   {:?}\ncomplaints: {:?}\nrequests: {:#?}\n{}",
            answer.data, answer.errors, answer.complaints, answer.requests, answer.plan
        ))
    }
}

/// An operation with a condition of the variable `on`.
pub fn operation(rng: &mut Rng) -> String {
    let mut text = "query($on: Boolean!) { __typename".to_owned();
    if rng.below(3) > 0 {
        text += &format!(" yards {}", yard(rng));
    }
    if rng.below(3) > 0 {
        text += &format!(" shops {}", shop(rng));
    }
    if rng.below(3) > 0 {
        text += " others { note }";
    }
    if rng.below(3) == 0 {
        text += &format!(" again: yards {}", yard(rng));
    }
    text + " all: others { id note @include(if: $on) } }"
}

fn yard(rng: &mut Rng) -> String {
    let mut text = "{ id".to_owned();
    for field in ["item", "items"] {
        if rng.below(2) == 0 {
            text += &format!(" {field} {}", item(rng, 1));
        }
    }
    if rng.below(3) == 0 {
        text += &format!(" shop {}", shop(rng));
    }
    if rng.below(4) == 0 {
        text += " unit";
    }
    text + " }"
}

fn shop(rng: &mut Rng) -> String {
    let mut text = "{ __typename".to_owned();
    if rng.below(3) > 0 {
        text += &format!(" item {}", item(rng, 1));
    }
    if rng.below(2) == 0 {
        text += " extra { fee }";
    }
    if rng.below(4) == 0 {
        text += " area";
    }
    text + " }"
}

fn item(rng: &mut Rng, depth: u32) -> String {
    let mut text = "{ id".to_owned();
    text += match rng.below(5) {
        0 => " plain",
        1 => " quote plain",
        2 => " quote @include(if: $on)",
        _ => " quote",
    };
    if depth < 3 && rng.below(4) == 0 {
        text += &format!(" part {}", item(rng, depth + 1));
    }
    text + " }"
}
