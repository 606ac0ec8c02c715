//! The generators themselves; tests of other crates include this file.
#![allow(
    unreachable_pub,
    dead_code,
    clippy::unwrap_used,
    clippy::needless_range_loop,
    reason = "included by tests; indices name entities and subgraphs"
)]

use std::fmt::Write;

use ogive_testbase::Rng;

/// Subgraphs by name.
pub type Set = Vec<(String, String)>;

/// Set `i` of a seed: split, faulty and free ones in turn.
pub fn set(seed: u64, i: usize) -> Set {
    let mut rng = Rng::new(seed.wrapping_mul(1_000_003).wrapping_add(i as u64));
    match i % 3 {
        0 => split(&mut rng),
        1 => {
            let mut set = split(&mut rng);
            fault(&mut rng, &mut set);
            set
        }
        _ => free(&mut rng),
    }
}

const NAMES: [&str; 6] = ["alpha", "beta", "gamma", "delta", "eps", "zeta"];
const LEAVES: [&str; 6] = ["Int", "String", "Boolean", "Float", "ID", "Color"];

fn link(rng: &mut Rng) -> String {
    let version = *rng.pick(&["2.3", "2.3", "2.5", "2.7", "2.9"]);
    format!(
        "extend schema @link(url: \"https://specs.apollo.dev/federation/v{version}\", import: [\"@key\", \"@shareable\", \"@external\", \"@requires\", \"@provides\", \"@override\", \"@tag\", \"@inaccessible\", \"@interfaceObject\"])\n"
    )
}

/// Entities, values, an interface, a union, an enum and an input object, owned at random.
fn split(rng: &mut Rng) -> Set {
    let n = 2 + rng.below(3);
    let legacy: Vec<bool> = (0..n).map(|_| rng.chance(15)).collect();
    let mut out: Vec<String> = legacy
        .iter()
        .map(|old| if *old { String::new() } else { link(rng) })
        .collect();
    let mut query: Vec<String> = vec![String::new(); n];
    let entities = 2 + rng.below(3);
    let keys: Vec<&str> = (0..entities)
        .map(|_| *rng.pick(&["id", "id", "code", "id code"]))
        .collect();
    for e in 0..entities {
        let owner = rng.below(n);
        let keyed = |fields: &mut String| {
            for key in keys[e].split(' ') {
                let _ = write!(fields, " {key}: ID!");
            }
        };
        let implements = if rng.chance(40) && e < 2 {
            " implements Node"
        } else {
            ""
        };
        for s in 0..n {
            if s != owner && !rng.chance(45) {
                continue;
            }
            let implements = if s == owner { implements } else { "" };
            let extend = if s != owner && (legacy[s] || rng.chance(30)) {
                "extend "
            } else {
                ""
            };
            let mut fields = String::new();
            keyed(&mut fields);
            if !implements.is_empty() && !keys[e].contains("id") {
                fields.push_str(" id: ID!");
            }
            for f in 0..1 + rng.below(3) {
                let _ = write!(fields, " f{s}{f}: {}", field_type(rng, entities));
            }
            if s != owner && rng.chance(25) {
                let _ = write!(
                    fields,
                    " own: Int @external calc{s}: Int @requires(fields: \"own\")"
                );
            }
            if s == owner {
                fields.push_str(" own: Int");
            }
            let tag = if rng.chance(10) {
                " @tag(name: \"t\")"
            } else {
                ""
            };
            let _ = writeln!(
                out[s],
                "{extend}type E{e}{implements} @key(fields: \"{}\"){tag} {{{fields} }}",
                keys[e]
            );
        }
        let _ = write!(
            query[owner],
            " e{e}(id: ID, color: Color): E{e} list{e}: [E{e}!]!"
        );
        if !implements.is_empty() {
            let _ = writeln!(out[owner], "interface Node {{ id: ID! }}");
        }
    }
    let mut nodes = vec![false; n];
    for s in 0..n {
        // Every subgraph mentions what all of them may refer to.
        let blocks: Vec<&str> = out[s].lines().collect();
        nodes[s] = blocks.contains(&"interface Node { id: ID! }");
        let mut lines: Vec<&str> = Vec::new();
        for line in blocks {
            if line != "interface Node { id: ID! }" || !lines.contains(&line) {
                lines.push(line);
            }
        }
        let mut sdl = lines.join("\n");
        let _ = writeln!(sdl, "\nenum Color {{ RED GREEN }}");
        let value = if legacy[s] { "" } else { " @shareable" };
        let _ = writeln!(sdl, "type Money{value} {{ amount: Float! unit: String }}");
        let _ = writeln!(sdl, "input Filter {{ text: String = \"x\" color: Color }}");
        for e in 0..entities {
            if !sdl.contains(&format!("type E{e} ")) {
                let (ext, resolvable) = if legacy[s] {
                    ("extend ", "")
                } else {
                    ("", ", resolvable: false")
                };
                let external = if legacy[s] { " @external" } else { "" };
                let fields: String = keys[e]
                    .split(' ')
                    .map(|k| format!(" {k}: ID!{external}"))
                    .collect();
                let _ = writeln!(
                    sdl,
                    "{ext}type E{e} @key(fields: \"{}\"{resolvable}) {{{fields} }}",
                    keys[e]
                );
            }
        }
        if nodes[s] {
            let _ = write!(query[s], " node{s}: Node");
        }
        if !legacy[s] {
            extras(rng, s, n, &mut sdl, &mut query[s], &keys, &legacy);
        }
        let shared = if legacy[s] { "" } else { " @shareable" };
        let _ = write!(
            query[s],
            " version: String{shared} q{s}(filter: Filter): Money"
        );
        let _ = writeln!(sdl, "type Query {{{} }}", query[s]);
        out[s] = sdl;
    }
    NAMES
        .iter()
        .zip(out)
        .map(|(name, sdl)| ((*name).to_owned(), sdl))
        .collect()
}

/// Rarer features, each now and then: interface objects, provided fields, overrides, mutations, unions, nested keys,
/// authorisation, costs, deprecation, descriptions, uneven enums and inputs.
fn extras(
    rng: &mut Rng,
    s: usize,
    n: usize,
    sdl: &mut String,
    query: &mut String,
    keys: &[&str],
    legacy: &[bool],
) {
    let other = NAMES[(s + 1) % n];
    if rng.chance(25) {
        let _ = writeln!(
            sdl,
            "interface Media @key(fields: \"id\") {{ id: ID! title: String @deprecated }}\ntype Book implements Media @key(fields: \"id\") {{ id: ID! title: String @shareable }}\ntype Film implements Media @key(fields: \"id\") {{ id: ID! title: String @shareable }}"
        );
        query.push_str(" media: [Media] @shareable");
    } else if rng.chance(15) {
        let _ = writeln!(
            sdl,
            "type Media @interfaceObject @key(fields: \"id\") {{ id: ID! rating{s}: Int }}"
        );
        if rng.chance(40) {
            let _ = write!(query, " rated{s}: Media");
        }
    }
    if rng.chance(20) {
        let _ = writeln!(
            sdl,
            "type Box @key(fields: \"inner {{ id }}\") {{ inner: Inner! @shareable w{s}: Int }}\ntype Inner @shareable {{ id: ID! }}"
        );
        let _ = write!(query, " box{s}: Box");
    }
    if rng.chance(20) {
        let member = if rng.chance(30) { " | Extra" } else { "" };
        let _ = writeln!(
            sdl,
            "union Any = Left | Right{member}\ntype Left @shareable {{ l: Int }}\ntype Right @shareable {{ r: Int }}"
        );
        if !member.is_empty() {
            let _ = writeln!(sdl, "type Extra @shareable {{ x: Int }}");
        }
        query.push_str(" any: Any @shareable");
    }
    if rng.chance(15) && !keys[0].contains(' ') {
        let key = keys[0];
        let _ = writeln!(
            sdl,
            "type Prov{s} @key(fields: \"pid\") {{ pid: ID! of: Pal @provides(fields: \"nick\") }}\ntype Pal @key(fields: \"{key}\") {{ {key}: ID! nick: String @external }}"
        );
        let _ = write!(query, " prov{s}: Prov{s}");
    } else if rng.chance(40) {
        let key = keys[0].split(' ').next().unwrap_or("id");
        let _ = writeln!(
            sdl,
            "type Pal @key(fields: \"{key}\") {{ {key}: ID! nick: String @shareable p{s}: Int }}"
        );
        let _ = write!(query, " pal{s}: Pal");
    }
    if rng.chance(15) && !legacy[(s + 1) % n] {
        let _ = write!(query, " moved: Int @override(from: \"{other}\")");
    } else if rng.chance(8) {
        query.push_str(" moved: Int");
    }
    if rng.chance(15) {
        let _ = writeln!(
            sdl,
            "type Mutation {{ do{s}(a: Int = {}): Money same: Money @shareable }}",
            rng.below(3)
        );
    }
    if rng.chance(15) {
        let _ = writeln!(sdl, "type Subscription {{ on{s}: Money }}");
    }
    if rng.chance(20) {
        let value = *rng.pick(&["MORE", "MORE @inaccessible", "@deprecated"]);
        let value = if value == "@deprecated" { "" } else { value };
        let _ = writeln!(
            sdl,
            "enum Uneven {{ ONE @deprecated(reason: \"r{}\") {value} }}\ninput Wide {{ a: Int b{}: Int c: Uneven }}",
            rng.below(2),
            rng.below(2)
        );
        let _ = write!(
            query,
            " wide(w: Wide, extra{}: Int): Int @shareable",
            rng.below(2)
        );
        if rng.chance(30) {
            let _ = write!(query, " uneven{s}: Uneven");
        }
    }
    if rng.chance(20) {
        let _ = writeln!(
            sdl,
            "directive @exec{} on FIELD{}",
            rng.below(2),
            if rng.chance(50) { " | QUERY" } else { "" }
        );
    }
    if rng.chance(20) {
        let _ = writeln!(
            sdl,
            "\"described {}\"\ntype Doc @shareable {{ \"text {}\" text(n: Int): String @tag(name: \"t{}\") hidden: Int @inaccessible }}",
            rng.below(2),
            rng.below(2),
            rng.below(2)
        );
        query.push_str(" doc: Doc @shareable");
    }
    if rng.chance(15)
        && (sdl.contains("federation/v2.5")
            || sdl.contains("federation/v2.7")
            || sdl.contains("federation/v2.9"))
    {
        *sdl = sdl.replacen(
            "\"@tag\"",
            "\"@tag\", \"@authenticated\", \"@requiresScopes\"",
            1,
        );
        let scope = *rng.pick(&["a", "b"]);
        let _ = writeln!(
            sdl,
            "type Secret @shareable @requiresScopes(scopes: [[\"{scope}\"], [\"c\"]]) {{ s: Int @authenticated }}"
        );
        query.push_str(" secret: Secret @shareable");
    }
    if rng.chance(15) && sdl.contains("federation/v2.9") {
        *sdl = sdl.replacen("\"@tag\"", "\"@tag\", \"@cost\", \"@listSize\"", 1);
        let _ = writeln!(
            sdl,
            "type Costly @shareable @cost(weight: {}) {{ c: [Int] @listSize(assumedSize: {}) @cost(weight: 3) }}",
            rng.below(3),
            rng.below(9)
        );
        query.push_str(" costly: Costly @shareable");
    }
}

fn field_type(rng: &mut Rng, entities: usize) -> String {
    let base = match rng.below(10) {
        0..=4 => (*rng.pick(&LEAVES)).to_owned(),
        5 => "Money".to_owned(),
        _ => format!("E{}", rng.below(entities)),
    };
    match rng.below(5) {
        0 => format!("[{base}!]!"),
        1 => format!("{base}!"),
        2 => format!("[{base}]"),
        _ => base,
    }
}

/// One edit of one subgraph, of a kind people make.
fn fault(rng: &mut Rng, set: &mut Set) {
    const EDITS: [(&str, &str); 26] = [
        (" own: Int }", " }"),
        (" own: Int }", " own: String }"),
        (" own: Int }", " own: Int! }"),
        ("type Money @shareable", "type Money"),
        ("amount: Float!", "amount: Float"),
        ("amount: Float!", "amount: String"),
        ("amount: Float!", "amount(x: Int!): Float!"),
        ("amount: Float!", "amount(x: Int): Float!"),
        ("RED GREEN", "RED"),
        ("RED GREEN", "RED BLUE"),
        ("RED GREEN", "RED GREEN @inaccessible"),
        ("text: String = \"x\"", "text: String = \"y\""),
        ("text: String = \"x\"", "text: String"),
        ("text: String = \"x\"", "text: String!"),
        (" color: Color }", " }"),
        (" color: Color }", " color: Color! }"),
        ("version: String @shareable", "version: String"),
        ("version: String @shareable", "version: Int @shareable"),
        ("@key(fields: \"id\")", "@key(fields: \"nope\")"),
        ("@key(fields: \"id\")", ""),
        (" own: Int @external", " own: Int"),
        (
            "(filter: Filter): Money",
            "(filter: Filter): Money @provides(fields: \"amount\")",
        ),
        (
            "version: String @shareable",
            "version: String @shareable @override(from: \"alpha\")",
        ),
        ("enum Color", "type Color"),
        ("unit: String", "unit: String @inaccessible"),
        ("type Money", "\"\"\"Described\"\"\"\ntype Money"),
    ];
    for _ in 0..20 {
        let (from, to) = *rng.pick(&EDITS);
        let s = rng.below(set.len());
        if set[s].1.contains(from) {
            set[s].1 = set[s].1.replacen(from, to, 1);
            return;
        }
    }
}

/// Subgraphs over a few names, as they come.
fn free(rng: &mut Rng) -> Set {
    let n = 2 + rng.below(2);
    let table: Vec<usize> = (0..12).map(|_| rng.below(36)).collect();
    let common: Vec<usize> = (0..4).map(|_| rng.below(9)).collect();
    (0..n)
        .map(|s| {
            let mut sdl = if rng.chance(10) { String::new() } else { link(rng) };
            let old = sdl.is_empty();
            // Kinds mostly agree; a type is missing now and then.
            let kinds: Vec<usize> = common
                .iter()
                .map(|k| match rng.below(40) {
                    0 => rng.below(9),
                    1..=8 => 9,
                    _ => *k,
                })
                .collect();
            let mut used: Vec<&str> = vec!["Int", "String"];
            let names = ["A", "B", "C", "D"];
            for (name, kind) in names.iter().zip(&kinds) {
                if *kind < 9 {
                    used.push(name);
                }
            }
            let composite = |rng: &mut Rng| -> String {
                let name = *rng.pick(&used);
                let wrap = *rng.pick(&["", "", "!", "[]"]);
                if wrap == "[]" { format!("[{name}]") } else { format!("{name}{wrap}") }
            };
            for (name, kind) in names.iter().zip(&kinds) {
                let share = |rng: &mut Rng| if !old && rng.chance(98) { " @shareable" } else { "" };
                match kind {
                    0..=4 => {
                        let key = if rng.chance(65) { " @key(fields: \"id\")" } else { "" };
                        let mut fields = String::from(" id: ID!");
                        fields.push_str(share(rng));
                        let at = names.iter().position(|n| n == name).unwrap() * 3;
                        for f in 0..3 {
                            if rng.chance(40) {
                                continue;
                            }
                            // The type of a field is mostly the same everywhere.
                            let code = if rng.chance(4) { rng.below(36) } else { table[at + f] };
                            let base = ["Int", "String", "A", "B", "C", "D"][code % 6];
                            if !used.contains(&base) {
                                continue;
                            }
                            let ty = match code / 6 {
                                0 => format!("[{base}]"),
                                1 => format!("{base}!"),
                                _ => base.to_owned(),
                            };
                            let _ = write!(fields, " x{f}: {ty}{}", share(rng));
                        }
                        if rng.chance(15) {
                            let _ = write!(fields, " ext: Int @external r{s}: Int @requires(fields: \"ext\")");
                        } else if rng.chance(40) {
                            fields.push_str(" ext: Int");
                        }
                        let _ = writeln!(sdl, "type {name}{key} {{{fields} }}");
                    }
                    5 => {
                        let _ = writeln!(sdl, "interface {name} {{ id: ID! }}\ntype {name}Impl{s} implements {name} {{ id: ID! }}");
                    }
                    6 => {
                        let _ = writeln!(sdl, "union {name} = {name}One\ntype {name}One {{ a: Int{} }}", share(rng));
                    }
                    7 => {
                        let _ = writeln!(sdl, "enum {name} {{ P Q{} }}", if rng.chance(50) { " R" } else { "" });
                    }
                    8 => {
                        let _ = writeln!(sdl, "scalar {name}");
                    }
                    _ => {}
                }
            }
            let mut query = format!(" q{s}: {}", composite(rng));
            if rng.chance(50) {
                let _ = write!(query, " shared: {}{}", composite(rng), if old { "" } else { " @shareable" });
            }
            let _ = writeln!(sdl, "type Query {{{query} }}");
            (NAMES[s].to_owned(), sdl)
        })
        .collect()
}
