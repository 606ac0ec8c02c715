//! A supergraph of two subgraphs with an entity, in variations; and random operations on it.

use ogive_base::{SourceId, Sources};
use ogive_config::Config;
use ogive_federation::{ReadOptions, read_supergraph};
use ogive_gateway::SchemaState;
use ogive_testbase::Rng;

const HEAD: &str = r#"
schema
  @link(url: "https://specs.apollo.dev/link/v1.0")
  @link(url: "https://specs.apollo.dev/join/v0.3", for: EXECUTION)
{ query: Query }

directive @join__field(graph: join__Graph, requires: join__FieldSet, provides: join__FieldSet, type: String, external: Boolean, override: String, usedOverridden: Boolean) repeatable on FIELD_DEFINITION | INPUT_FIELD_DEFINITION
directive @join__graph(name: String!, url: String!) on ENUM_VALUE
directive @join__implements(graph: join__Graph!, interface: String!) repeatable on OBJECT | INTERFACE
directive @join__type(graph: join__Graph!, key: join__FieldSet, extension: Boolean! = false, resolvable: Boolean! = true, isInterfaceObject: Boolean! = false) repeatable on OBJECT | INTERFACE | UNION | ENUM | INPUT_OBJECT | SCALAR
directive @link(url: String, as: String, for: link__Purpose, import: [link__Import]) repeatable on SCHEMA

scalar join__FieldSet
scalar link__Import
enum link__Purpose { SECURITY EXECUTION }
"#;

const BODY: &str = r#"
enum join__Graph { CATALOG @join__graph(name: "catalog", url: "") STOCK @join__graph(name: "stock", url: "") }

type Query @join__type(graph: CATALOG) @join__type(graph: STOCK) {
  product(id: ID!): Product @join__field(graph: CATALOG)
  find(filter: Filter, tags: [String!], first: Int = 10): [Product!]! @join__field(graph: CATALOG)
  thing(kind: Kind): Thing @join__field(graph: CATALOG)
  warehouse: Warehouse @join__field(graph: STOCK)
}
interface Thing @join__type(graph: CATALOG) { id: ID! name(upper: Boolean): String }
type Product implements Thing
  @join__implements(graph: CATALOG, interface: "Thing")
  @join__type(graph: CATALOG, key: "id") @join__type(graph: STOCK, key: "id")
{
  id: ID!
  name(upper: Boolean): String @join__field(graph: CATALOG)
  price(in: Kind, at: Date): Float @join__field(graph: CATALOG) @join__field(graph: STOCK, external: true)
  stock(min: Int): Int @join__field(graph: STOCK)
  shipping(by: String): Float @join__field(graph: STOCK, requires: "price")
}
type Book implements Thing
  @join__implements(graph: CATALOG, interface: "Thing")
  @join__type(graph: CATALOG)
{ id: ID! name(upper: Boolean): String pages(min: Int!): Int }
type Warehouse @join__type(graph: STOCK) { city: String products: [Product] }
input Filter @join__type(graph: CATALOG) { text: String kind: Kind min: Float not: Filter limit: Int! = 3 }
enum Kind @join__type(graph: CATALOG) { NEW USED }
scalar Date @join__type(graph: CATALOG)
"#;

/// The supergraph, with `from` replaced by `to` for every pair.
pub(crate) fn sdl(changes: &[(&str, &str)]) -> String {
    let sdl = format!("{HEAD}{BODY}");
    changes.iter().fold(sdl, |sdl, (from, to)| {
        assert!(sdl.contains(from), "{from}");
        sdl.replace(from, to)
    })
}

pub(crate) fn state(changes: &[(&str, &str)], yaml: &str) -> SchemaState {
    let sdl = sdl(changes);
    let mut sources = Sources::new();
    sources.add("supergraph.graphql", sdl.as_str());
    let supergraph = read_supergraph(&sdl, SourceId(0), &ReadOptions::default())
        .unwrap_or_else(|errors| panic!("{}", errors[0].render(&sources, false)));
    let config: Config = ogive_config::load(SourceId(0), yaml, &|_| None).unwrap();
    SchemaState::new(supergraph, &config).0
}

/// A selection as a list of fields, so that it can be written in several ways.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) alias: Option<String>,
    pub(crate) name: &'static str,
    /// Argument and, by index into the literals of its type, value.
    pub(crate) args: Vec<(&'static str, &'static [&'static str], usize)>,
    pub(crate) condition: Option<&'static str>,
    pub(crate) fields: Vec<Field>,
}

type Choice = (
    &'static str,
    &'static [(&'static str, &'static [&'static str])],
    &'static str,
);

// Literals of one list differ pairwise, so that equal positions mean equal values.
const IDS: &[&str] = &["1", "\"a\"", "\"b\\n\"", "7"];
const TEXTS: &[&str] = &["\"x\"", "\"\"\"block\"\"\"", "null", "\"ü\\u00e9\""];
const NUMBERS: &[&str] = &["1", "-2", "0", "2147483647"];
const KINDS: &[&str] = &["NEW", "USED"];
const FLAGS: &[&str] = &["true", "false"];
const DATES: &[&str] = &["\"2024-01-01\"", "\"2025-01-01\""];
const TAGS: &[&str] = &["[\"a\"]", "[]", "\"single\"", "[\"a\", \"b\"]"];
const FILTERS: &[&str] = &[
    "{text: \"x\"}",
    "{min: 1, not: {kind: USED}}",
    "{}",
    "{limit: 4, min: 1.5e3}",
];

const QUERY: &[Choice] = &[
    ("product", &[("id", IDS)], "Product"),
    (
        "find",
        &[("filter", FILTERS), ("tags", TAGS), ("first", NUMBERS)],
        "Product",
    ),
    ("warehouse", &[], "Warehouse"),
];
const PRODUCT: &[Choice] = &[
    ("id", &[], ""),
    ("name", &[("upper", FLAGS)], ""),
    ("price", &[("in", KINDS), ("at", DATES)], ""),
    ("stock", &[("min", NUMBERS)], ""),
    ("shipping", &[("by", TEXTS)], ""),
    ("__typename", &[], ""),
];
const WAREHOUSE: &[Choice] = &[("city", &[], ""), ("products", &[], "Product")];

pub(crate) fn random_fields(random: &mut Rng, ty: &str) -> Vec<Field> {
    let choices = match ty {
        "Query" => QUERY,
        "Product" => PRODUCT,
        _ => WAREHOUSE,
    };
    let n = 1 + random.below(4);
    (0..n)
        .map(|at| {
            let (name, args, child) = *random.pick(choices);
            let args = args
                .iter()
                .filter(|(name, _)| *name == "id" || random.below(2) == 0);
            let args: Vec<_> = args.map(|(name, values)| (*name, *values)).collect();
            Field {
                alias: Some(format!("a{at}")),
                name,
                args: args
                    .into_iter()
                    .map(|(name, values)| (name, values, random.below(values.len())))
                    .collect(),
                condition: *random.pick(&[
                    None,
                    None,
                    None,
                    Some("@include(if: $on)"),
                    Some("@skip(if: $off)"),
                ]),
                fields: match child {
                    "" => Vec::new(),
                    child => random_fields(random, child),
                },
            }
        })
        .collect()
}
