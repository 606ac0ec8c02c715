//! Adversarial families: shapes of graph that make planners slow or their plans long, each with a size.
//!
//! Supergraphs are written directly, because composition is not what is measured.

use crate::cases::Case;

/// Writes formatted text behind a string.
macro_rules! put {
    ($text:expr, $($arguments:tt)*) => {
        $text.push_str(&format!($($arguments)*))
    };
}

/// Each family at a realistic and at a large size.
pub fn all() -> Vec<Case> {
    let mut cases = vec![typical()];
    cases.extend([10, 40].map(key_ring));
    cases.extend([20, 60, 200].map(key_mesh));
    cases.extend([10, 40].map(requires_ladder));
    cases.extend([20, 70].map(implementers));
    cases.extend([10, 50].map(paths));
    cases.extend([(5, 3), (7, 4), (10, 4)].map(|(subgraphs, depth)| web(subgraphs, depth)));
    cases
}

/// A family with its sizes, the last about ten times what is found in practice.
pub struct Family {
    /// What grows.
    pub name: &'static str,
    /// Sizes, growing.
    pub sizes: &'static [usize],
    /// The member of a size.
    pub member: fn(usize) -> Case,
}

/// What the chart of growth shows.
pub const GROWING: &[Family] = &[
    Family {
        name: "key ring: subgraphs",
        sizes: &[10, 20, 40, 80, 120],
        member: key_ring,
    },
    Family {
        name: "key mesh: subgraphs, each with 3 keys",
        sizes: &[25, 50, 100, 200, 400],
        member: key_mesh,
    },
    Family {
        name: "shared mesh: subgraphs, each value in two",
        sizes: &[25, 50, 100, 200, 400],
        member: shared_mesh,
    },
    Family {
        name: "@requires ladder: steps",
        sizes: &[8, 15, 30, 60],
        member: requires_ladder,
    },
    Family {
        name: "interface: alike entities",
        sizes: &[70, 140, 350, 700],
        member: implementers,
    },
    Family {
        name: "interface: differing entities",
        sizes: &[35, 70, 140, 350, 700],
        member: differing,
    },
    Family {
        name: "one entity: paths",
        sizes: &[50, 100, 200, 500],
        member: paths,
    },
    Family {
        name: "mutation: root fields",
        sizes: &[25, 50, 100, 200, 500],
        member: mutations,
    },
    Family {
        name: "wide selection: fields",
        sizes: &[100, 200, 500, 1000, 2000],
        member: wide,
    },
    Family {
        name: "like many-plans: places",
        sizes: &[85, 341, 1365, 5461],
        member: places,
    },
    Family {
        name: "fragments: each spread twice",
        sizes: &[10, 25, 50, 100, 200],
        member: fragments,
    },
];

/// Inputs beyond a limit.
pub fn refused() -> Vec<Case> {
    let linked = "type Thing @join__type(graph: S0) {\n  link: Thing\n  leaf: Int\n}\n";
    let bomb = |n: usize| {
        let sdl = supergraph(1, "thing: Thing @join__field(graph: S0)") + linked;
        let mut query = String::from("{ thing { ...f0 } }");
        for i in 0..n {
            let next = i + 1;
            put!(
                query,
                " fragment f{i} on Thing {{ a: link {{ ...f{next} }} b: link {{ ...f{next} }} }}"
            );
        }
        put!(query, " fragment f{n} on Thing {{ leaf }}");
        Case::one(
            format!("bomb of {n} fragments, each spread twice under two names"),
            sdl,
            query,
        )
    };
    let deep = |n: usize| {
        let sdl = supergraph(1, "thing: Thing @join__field(graph: S0)") + linked;
        let query = format!("{{ thing {} leaf {} }}", "{ link".repeat(n), "}".repeat(n));
        let query = query.replacen("link leaf", "link { leaf }", 1);
        Case::one(format!("{n} levels"), sdl, query)
    };
    let mut ladder = requires_ladder(200);
    ladder.name = "@requires ladder of 200 steps".to_owned();
    let mut wide = web(7, 8);
    wide.name = "like many-plans, 87,381 places".to_owned();
    vec![bomb(20), bomb(200), deep(1_000), ladder, wide]
}

/// What most operations are like: twenty fields of three subgraphs.
fn typical() -> Case {
    let mut sdl = supergraph(
        3,
        "me: User @join__field(graph: S0)\n  products(first: Int): [Product!]! @join__field(graph: S1)",
    );
    sdl.push_str(
        "type User @join__type(graph: S0, key: \"id\") @join__type(graph: S2, key: \"id\") {\n  id: ID!\n  \
         name: String @join__field(graph: S0)\n  email: String @join__field(graph: S0)\n  \
         reviews: [Review!]! @join__field(graph: S2)\n}\n\
         type Product @join__type(graph: S1, key: \"sku\") @join__type(graph: S2, key: \"sku\") {\n  sku: ID!\n  \
         title: String @join__field(graph: S1)\n  price: Int @join__field(graph: S1)\n  \
         weight: Int @join__field(graph: S1)\n  maker: Maker @join__field(graph: S1)\n  \
         reviews: [Review!]! @join__field(graph: S2)\n}\n\
         type Maker @join__type(graph: S1) {\n  name: String\n  country: String\n}\n\
         type Review @join__type(graph: S2) {\n  stars: Int\n  text: String\n  product: Product\n  author: User\n}\n",
    );
    Case::one(
        "typical: 20 fields, 3 subgraphs",
        sdl,
        "query Home($n: Int) { me { id name email reviews { stars text product { title price } } } \
         products(first: $n) { sku title price weight maker { name country } reviews { stars author { name } } } }"
            .to_owned(),
    )
}

/// A mesh over one key in which two subgraphs know each value.
fn shared_mesh(n: usize) -> Case {
    let mut sdl = supergraph(n, "thing: Thing @join__field(graph: S0)");
    sdl.push_str(&entity("Thing", n));
    for i in 0..n {
        put!(
            sdl,
            "  f{i}: String @join__field(graph: S{i}) @join__field(graph: S{})\n",
            (i + 1) % n
        );
    }
    sdl.push_str("}\n");
    Case::one(
        format!("shared mesh, {n} subgraphs"),
        sdl,
        ask("thing", "f", n),
    )
}

/// An interface whose members each have a field of their own in another subgraph, asked for in a fragment.
fn differing(n: usize) -> Case {
    let mut sdl = supergraph(2, "items: [Item!]! @join__field(graph: S0)");
    sdl.push_str("interface Item @join__type(graph: S0) {\n  id: ID!\n  label: String\n}\n");
    let mut query = String::from("{ items { label");
    for i in 0..n {
        put!(
            sdl,
            "type Item{i} implements Item @join__implements(graph: S0, interface: \"Item\") \
                 @join__type(graph: S0, key: \"id\") @join__type(graph: S1, key: \"id\") {{\n  id: ID!\n  \
                 label: String @join__field(graph: S0)\n  near{i}: Int @join__field(graph: S0)\n  \
                 own{i}: Int @join__field(graph: S1)\n}}\n"
        );
        put!(query, " ... on Item{i} {{ near{i} own{i} }}");
    }
    query.push_str(" } }");
    Case::one(format!("interface of {n} differing entities"), sdl, query)
}

/// Root fields of a mutation, each with a value of another subgraph.
fn mutations(n: usize) -> Case {
    let mut sdl = supergraph(2, "nothing: Int @join__field(graph: S0)").replacen(
        "query: Query",
        "query: Query mutation: Mutation",
        1,
    );
    sdl.push_str(
        "type Mutation @join__type(graph: S0) @join__type(graph: S1) {\n  \
         add(n: Int): Thing @join__field(graph: S0)\n}\n\
         type Thing @join__type(graph: S0, key: \"id\") @join__type(graph: S1, key: \"id\") {\n  id: ID!\n  \
         near: Int @join__field(graph: S0)\n  far: Int @join__field(graph: S1)\n}\n",
    );
    let mut query = String::from("mutation {");
    for i in 0..n {
        put!(query, " m{i}: add(n: {i}) {{ near far }}");
    }
    query.push_str(" }");
    Case::one(format!("{n} mutations"), sdl, query)
}

/// One object with many values over three subgraphs, some of them in two.
fn wide(n: usize) -> Case {
    let mut sdl = supergraph(3, "thing: Thing @join__field(graph: S0)");
    sdl.push_str(&entity("Thing", 3));
    for i in 0..n {
        let (a, b) = (i % 3, i / 3 % 3);
        put!(sdl, "  f{i}: String @join__field(graph: S{a})");
        if a != b {
            put!(sdl, " @join__field(graph: S{b})");
        }
        sdl.push('\n');
    }
    sdl.push_str("}\n");
    Case::one(
        format!("{n} values of one object"),
        sdl,
        ask("thing", "f", n),
    )
}

/// As the published scenario, of the depth that has about so many object-valued places.
fn places(n: usize) -> Case {
    let depth = (2..).find(|depth| 4_usize.pow(*depth) > n).unwrap_or(2);
    web(7, depth as usize - 1)
}

/// Fragments that spread the next one twice in the same place: twice as much at every step unless it is noticed.
fn fragments(n: usize) -> Case {
    let sdl = supergraph(1, "thing: Thing @join__field(graph: S0)")
        + "type Thing @join__type(graph: S0) {\n  link: Thing\n  leaf: Int\n}\n";
    let mut query = String::from("{ thing { ...f0 } }");
    for i in 0..n {
        let next = i + 1;
        put!(
            query,
            " fragment f{i} on Thing {{ a{i}: leaf ...f{next} ... on Thing {{ ...f{next} }} }}"
        );
    }
    put!(query, " fragment f{n} on Thing {{ leaf }}");
    Case::one(format!("{n} fragments"), sdl, query)
}

/// Subgraph `i` knows keys `i` and `i + 1` of one entity and owns one field of it: the far side is half a ring away.
fn key_ring(n: usize) -> Case {
    let mut sdl = supergraph(n, "thing: Thing @join__field(graph: S0)");
    sdl.push_str("type Thing");
    for i in 0..n {
        for key in [i, (i + 1) % n] {
            put!(sdl, " @join__type(graph: S{i}, key: \"k{key}\")");
        }
    }
    sdl.push_str(" {\n");
    for i in 0..n {
        let before = (i + n - 1) % n;
        put!(
            sdl,
            "  k{i}: ID! @join__field(graph: S{before}) @join__field(graph: S{i})\n  \
                 f{i}: String @join__field(graph: S{i})\n"
        );
    }
    sdl.push_str("}\n");
    Case::one(
        format!("key ring, {n} subgraphs"),
        sdl,
        ask("thing", "f", n),
    )
}

/// Every subgraph knows three keys of one entity and owns one field of it.
fn key_mesh(n: usize) -> Case {
    let mut sdl = supergraph(n, "thing: Thing @join__field(graph: S0)");
    sdl.push_str("type Thing");
    for i in 0..n {
        for key in ["a", "b", "c"] {
            put!(sdl, " @join__type(graph: S{i}, key: \"{key}\")");
        }
    }
    sdl.push_str(" {\n  a: ID!\n  b: ID!\n  c: ID!\n");
    for i in 0..n {
        put!(sdl, "  f{i}: String @join__field(graph: S{i})\n");
    }
    sdl.push_str("}\n");
    Case::one(
        format!("key mesh, {n} subgraphs, 3 keys"),
        sdl,
        ask("thing", "f", n),
    )
}

/// Field `i` requires field `i - 1`, which another of three subgraphs owns; the top is asked for.
fn requires_ladder(n: usize) -> Case {
    let mut sdl = supergraph(3, "thing: Thing @join__field(graph: S0)");
    sdl.push_str(&entity("Thing", 3));
    for i in 0..n {
        put!(sdl, "  f{i}: String @join__field(graph: S{}", i % 3);
        if i > 0 {
            put!(sdl, ", requires: \"f{}\"", i - 1);
        }
        sdl.push(')');
        if i + 1 < n {
            put!(
                sdl,
                " @join__field(graph: S{}, external: true)",
                (i + 1) % 3
            );
        }
        sdl.push('\n');
    }
    sdl.push_str("}\n");
    Case::one(
        format!("@requires ladder, {n} steps"),
        sdl,
        format!("{{ thing {{ f{} }} }}", n - 1),
    )
}

/// An interface whose members are entities with fields in two further subgraphs.
fn implementers(n: usize) -> Case {
    let mut sdl = supergraph(3, "items: [Item!]! @join__field(graph: S0)");
    sdl.push_str(
        "interface Item @join__type(graph: S0) @join__type(graph: S1) @join__type(graph: S2) {\n  id: ID!\n  \
         label: String @join__field(graph: S0)\n  price: Int @join__field(graph: S1)\n  \
         stock: Int @join__field(graph: S2)\n}\n",
    );
    for i in 0..n {
        put!(sdl, "type Item{i} implements Item");
        for s in 0..3 {
            put!(
                sdl,
                " @join__implements(graph: S{s}, interface: \"Item\") @join__type(graph: S{s}, key: \"id\")"
            );
        }
        sdl.push_str(
            " {\n  id: ID!\n  label: String @join__field(graph: S0)\n  price: Int @join__field(graph: S1)\n  \
             stock: Int @join__field(graph: S2)\n}\n",
        );
    }
    Case::one(
        format!("interface of {n} entities"),
        sdl,
        "{ items { label price stock } }".to_owned(),
    )
}

/// One entity reached along `n` paths at two depths, its fields in two further subgraphs.
fn paths(n: usize) -> Case {
    let mut sdl = supergraph(3, "page: Page @join__field(graph: S0)");
    sdl.push_str("type Page @join__type(graph: S0) {\n");
    for i in 0..n {
        let ty = if i % 2 == 0 { "Product" } else { "Shelf" };
        put!(sdl, "  p{i}: {ty}\n");
    }
    sdl.push_str("}\ntype Shelf @join__type(graph: S0) {\n  products: [Product]\n}\n");
    sdl.push_str(
        "type Product @join__type(graph: S0, key: \"id\") @join__type(graph: S1, key: \"id\") \
         @join__type(graph: S2, key: \"id\") {\n  id: ID!\n  name: String @join__field(graph: S1)\n  \
         stock: Int @join__field(graph: S2)\n}\n",
    );
    let mut query = String::from("{ page {");
    for i in 0..n {
        let wanted = if i % 2 == 0 {
            "name stock"
        } else {
            "products { name stock }"
        };
        put!(query, " p{i} {{ {wanted} }}");
    }
    query.push_str(" } }");
    Case::one(format!("one entity on {n} paths"), sdl, query)
}

/// As the published many-plans scenario: one entity that links to itself, links and leaves each in some of the
/// subgraphs, four links and four leaves asked for at every place.
fn web(subgraphs: usize, depth: usize) -> Case {
    let mut random = Random(0x0061_7661 + subgraphs as u64);
    let mut sdl = supergraph(subgraphs, "node: Node @join__field(graph: S0)");
    sdl.push_str(&entity("Node", subgraphs));
    for field in 0..subgraphs {
        for (name, ty) in [("n", "Node"), ("f", "String")] {
            put!(sdl, "  {name}{field}: {ty}");
            for i in 0..subgraphs {
                if i == field || random.below(2) == 0 {
                    put!(sdl, " @join__field(graph: S{i})");
                }
            }
            sdl.push('\n');
        }
    }
    sdl.push_str("}\n");
    let mut query = String::from("{ node {");
    // Open places: how deep each still goes; a `None` closes one.
    let mut open: Vec<Option<usize>> = Vec::new();
    let mut visit = |level: usize, query: &mut String, open: &mut Vec<Option<usize>>| {
        let first = random.below(subgraphs);
        open.push(None);
        for k in 0..4 {
            let field = (first + k) % subgraphs;
            if level == 0 {
                put!(query, " f{field}");
            } else {
                open.push(Some(field * 100 + level - 1));
            }
        }
    };
    visit(depth, &mut query, &mut open);
    while let Some(next) = open.pop() {
        match next {
            None => query.push_str(" }"),
            Some(code) => {
                put!(query, " n{} {{", code / 100);
                visit(code % 100, &mut query, &mut open);
            }
        }
    }
    query.push_str(" }");
    Case::one(
        format!("like many-plans, {subgraphs} subgraphs, depth {depth}"),
        sdl,
        query,
    )
}

/// The head of an entity that every one of `n` subgraphs knows by its id.
fn entity(name: &str, n: usize) -> String {
    let mut sdl = format!("type {name}");
    for i in 0..n {
        put!(sdl, " @join__type(graph: S{i}, key: \"id\")");
    }
    sdl.push_str(" {\n  id: ID!\n");
    sdl
}

/// An operation that asks one root field for numbered fields.
fn ask(root: &str, prefix: &str, n: usize) -> String {
    let mut query = format!("{{ {root} {{");
    for i in 0..n {
        put!(query, " {prefix}{i}");
    }
    query.push_str(" } }");
    query
}

/// The head of a supergraph of `n` subgraphs, with a query type.
fn supergraph(n: usize, query: &str) -> String {
    let mut sdl = String::from(HEAD);
    sdl.push_str("enum join__Graph {\n");
    for i in 0..n {
        put!(
            sdl,
            "  S{i} @join__graph(name: \"s{i}\", url: \"http://s{i}\")\n"
        );
    }
    sdl.push_str("}\ntype Query");
    for i in 0..n {
        put!(sdl, " @join__type(graph: S{i})");
    }
    put!(sdl, " {{\n  {query}\n}}\n");
    sdl
}

/// The vocabulary every supergraph of join v0.3 begins with.
const HEAD: &str = r#"schema
  @link(url: "https://specs.apollo.dev/link/v1.0")
  @link(url: "https://specs.apollo.dev/join/v0.3", for: EXECUTION)
{
  query: Query
}
directive @join__enumValue(graph: join__Graph!) repeatable on ENUM_VALUE
directive @join__field(graph: join__Graph, requires: join__FieldSet, provides: join__FieldSet, type: String, external: Boolean, override: String, usedOverridden: Boolean) repeatable on FIELD_DEFINITION | INPUT_FIELD_DEFINITION
directive @join__graph(name: String!, url: String!) on ENUM_VALUE
directive @join__implements(graph: join__Graph!, interface: String!) repeatable on OBJECT | INTERFACE
directive @join__type(graph: join__Graph!, key: join__FieldSet, extension: Boolean! = false, resolvable: Boolean! = true, isInterfaceObject: Boolean! = false) repeatable on OBJECT | INTERFACE | UNION | ENUM | INPUT_OBJECT | SCALAR
directive @join__unionMember(graph: join__Graph!, member: String!) repeatable on UNION
directive @link(url: String, as: String, for: link__Purpose, import: [link__Import]) repeatable on SCHEMA
scalar join__FieldSet
scalar link__Import
enum link__Purpose {
  SECURITY
  EXECUTION
}
"#;

/// A seeded generator (splitmix64): the same graphs everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n as u64) as usize
    }
}
