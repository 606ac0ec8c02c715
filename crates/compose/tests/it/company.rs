//! Graphs of the size and kind that companies have, from a seed.
//!
//! Most subgraphs are small, and a few hold most of the types. Most are still written in the way of federation 1.
//! Entities of others are extended, in the old way and in the new. Value types, enums and inputs are copied from team to
//! team and have drifted apart, which is what hints are about.

use std::fmt::Write as _;

use ogive_testbase::Rng;

use crate::Owned;

/// Nouns; numbers make more of them.
const NOUNS: [&str; 12] = [
    "Account", "Booking", "Carrier", "Depot", "Estimate", "Fleet", "Garage", "Harbour", "Invoice",
    "Journey", "Kiosk", "Locker",
];
/// How many types of its own a subgraph has: many have few.
const SIZES: [usize; 12] = [0, 0, 1, 1, 2, 2, 4, 6, 10, 16, 24, 60];
const LEAVES: [&str; 7] = ["String", "Int", "Float", "Boolean", "ID", "DateTime", "URL"];
/// Types that teams copy.
const VALUES: [&str; 8] = [
    "Address", "Contact", "Image", "Money", "PageInfo", "Period", "Point", "Rating",
];
const LINK: &str = "extend schema @link(url: \"https://specs.apollo.dev/federation/v2.3\", import: [\"@key\", \
                    \"@shareable\", \"@external\", \"@requires\", \"@provides\", \"@override\", \"@tag\"])\n\n";

/// An entity that others may extend.
struct Entity {
    name: String,
    owner: usize,
    leaves: usize,
}

/// So many subgraphs; the biggest size is asked of `large` of them at least.
pub(crate) fn company(seed: u64, subgraphs: usize, large: usize) -> Vec<Owned> {
    let mut rng = Rng::new(seed);
    let names: Vec<String> = (0..subgraphs)
        .map(|s| format!("{}-{s}", rng.pick(&NOUNS).to_lowercase()))
        .collect();
    let mut entities: Vec<Entity> = Vec::new();
    let mut out: Vec<Owned> = Vec::new();
    for (s, name) in names.iter().enumerate() {
        let mut team = Team {
            s,
            // The last one too, so that later subgraphs override fields of all.
            new: rng.chance(12) || s + 1 == subgraphs,
            rng: rng.fork(s as u64),
            sdl: String::new(),
            query: vec![format!("team{s}: String")],
        };
        let size = if s < large {
            SIZES[SIZES.len() - 1]
        } else {
            *rng.pick(&SIZES)
        };
        team.write(size, &mut entities, &names);
        out.push(Owned {
            name: name.clone(),
            sdl: team.sdl,
        });
    }
    out
}

/// One subgraph while it is written.
struct Team {
    s: usize,
    /// Whether it is written in the way of federation 2.
    new: bool,
    rng: Rng,
    sdl: String,
    query: Vec<String>,
}

impl Team {
    fn write(&mut self, size: usize, entities: &mut Vec<Entity>, names: &[String]) {
        if self.new {
            self.sdl.push_str(LINK);
        }
        self.sdl.push_str("scalar DateTime\nscalar URL\n\n");
        self.extensions(entities, names);
        if self.rng.chance(60) || size > 10 {
            for _ in 0..=size / 12 {
                self.entity(entities);
            }
        }
        for i in 0..size {
            self.own_type(i);
        }
        self.values();
        let (extend, fields) = (
            if self.new { "" } else { "extend " },
            self.query.join("\n  "),
        );
        let _ = writeln!(self.sdl, "{extend}type Query {{\n  {fields}\n}}");
    }

    fn leaf(&mut self) -> String {
        let ty = *self.rng.pick(&LEAVES);
        match self.rng.below(6) {
            0 => format!("{ty}!"),
            1 => format!("[{ty}!]"),
            _ => ty.to_owned(),
        }
    }

    /// Entities of earlier teams get fields.
    fn extensions(&mut self, entities: &[Entity], names: &[String]) {
        let mut used: Vec<usize> = Vec::new();
        for _ in 0..self.rng.below(4).min(entities.len()) {
            let at = self.rng.below(entities.len());
            if used.contains(&at) {
                continue;
            }
            used.push(at);
            let Entity {
                name,
                owner,
                leaves,
            } = &entities[at];
            let (s, ty) = (self.s, self.leaf());
            let (open, id) = match (self.new, self.rng.chance(70)) {
                (true, _) => (format!("type {name} @key(fields: \"id\")"), "id: ID!"),
                (false, true) => (
                    format!("type {name} @extends @key(fields: \"id\")"),
                    "id: ID! @external",
                ),
                (false, false) => (
                    format!("extend type {name} @key(fields: \"id\")"),
                    "id: ID! @external",
                ),
            };
            let _ = write!(self.sdl, "{open} {{\n  {id}\n  byTeam{s}: {ty}\n");
            match self.rng.below(5) {
                0 | 1 => {
                    let _ = write!(
                        self.sdl,
                        "  leaf0: Int @external\n  worked{s}: String @requires(fields: \"leaf0\")\n"
                    );
                }
                // Moved here; its owner may take it out.
                2 if self.new && *leaves > 1 => {
                    let from = &names[*owner];
                    let _ = writeln!(
                        self.sdl,
                        "  leaf{}: String @override(from: \"{from}\")",
                        leaves - 1
                    );
                }
                _ => {}
            }
            self.sdl.push_str("}\n\n");
            self.query.push(format!("of{s}{name}: {name}"));
        }
    }

    fn entity(&mut self, entities: &mut Vec<Entity>) {
        let name = format!("{}{}", self.rng.pick(&NOUNS), entities.len());
        let leaves = 2 + self.rng.below(9);
        let second = if self.rng.chance(20) {
            " @key(fields: \"code\")"
        } else {
            ""
        };
        let _ = write!(
            self.sdl,
            "\"\"\"\n{name}, of team {}.\n\"\"\"\ntype {name} @key(fields: \"id\"){second} {{\n  id: ID!\n  code: String!\n  leaf0: Int\n",
            self.s
        );
        for i in 1..leaves {
            // Fields that may move keep one type.
            let ty = if i + 1 == leaves {
                "String".to_owned()
            } else {
                self.leaf()
            };
            let _ = writeln!(self.sdl, "  leaf{i}: {ty}");
        }
        self.sdl.push_str("}\n\n");
        let argument = if self.rng.chance(50) {
            "(id: ID!)"
        } else {
            "(first: Int = 10)"
        };
        self.query.push(format!("the{name}{argument}: {name}"));
        entities.push(Entity {
            name,
            owner: self.s,
            leaves,
        });
    }

    /// A type that no other team knows.
    fn own_type(&mut self, i: usize) {
        let name = format!("{}{i}OfTeam{}", self.rng.pick(&NOUNS), self.s);
        let fields = 2 + self.rng.below(12);
        match self.rng.below(10) {
            0 | 1 => {
                let _ = writeln!(
                    self.sdl,
                    "enum {name}Kind {{ ON OFF {} }}",
                    name.to_uppercase()
                );
                let _ = writeln!(self.sdl, "type {name} {{ kind: {name}Kind! }}\n");
            }
            2 | 3 => {
                let mut list = String::new();
                for f in 0..fields {
                    let (ty, default) = (*self.rng.pick(&LEAVES), self.rng.chance(10));
                    let _ = writeln!(list, "  f{f}: {ty}{}", if default { " = null" } else { "" });
                }
                let _ = writeln!(self.sdl, "input {name}Input {{\n{list}}}");
                let _ = writeln!(
                    self.sdl,
                    "type {name} {{ took(input: {name}Input): Boolean }}\n"
                );
            }
            4 => {
                let _ = writeln!(
                    self.sdl,
                    "interface {name}Like {{ id: ID! label: String }}\n\
                     type {name} implements {name}Like {{ id: ID! label: String more: Int }}\n\
                     type {name}Other implements {name}Like {{ id: ID! label: String less: Int }}\n"
                );
                self.query.push(format!("like{name}: {name}Like"));
            }
            5 => {
                let _ = writeln!(
                    self.sdl,
                    "type {name}Done {{ at: DateTime }}\ntype {name}Failed {{ why: String }}\n\
                     union {name}Result = {name}Done | {name}Failed\ntype {name} {{ result: {name}Result! }}\n"
                );
            }
            _ => {
                let _ = writeln!(
                    self.sdl,
                    "\"\"\"\n{name} is known to team {} only.\n\"\"\"\ntype {name} {{",
                    self.s
                );
                for f in 0..fields {
                    let ty = self.leaf();
                    let old = self.rng.chance(8);
                    let _ = writeln!(
                        self.sdl,
                        "  f{f}: {ty}{}",
                        if old {
                            " @deprecated(reason: \"use another\")"
                        } else {
                            ""
                        }
                    );
                }
                self.sdl.push_str("}\n\n");
            }
        }
        self.query.push(format!("a{name}: {name}"));
    }

    /// What teams copy from each other, and some have changed since.
    fn values(&mut self) {
        let shareable = if self.new { " @shareable" } else { "" };
        for name in VALUES {
            if !self.rng.chance(20) {
                continue;
            }
            let words = if self.rng.chance(10) {
                "is copied"
            } else {
                "is shared"
            };
            let _ = write!(
                self.sdl,
                "\"\"\"\n{name} {words}.\n\"\"\"\ntype {name}{shareable} {{\n"
            );
            for field in ["at", "by", "label", "size"] {
                let must = if self.rng.chance(5) { "!" } else { "" };
                let argument = if self.rng.chance(4) {
                    "(short: Boolean)"
                } else {
                    ""
                };
                let _ = writeln!(self.sdl, "  {field}{argument}: String{must}");
            }
            let _ = write!(self.sdl, "  kind: {name}Kind\n  one: One{name}\n}}\n\n");
            let (more, member) = (self.rng.chance(10), self.rng.chance(10));
            let _ = writeln!(
                self.sdl,
                "enum {name}Kind {{ GOOD BAD{} }}\nunion One{name} = {name}{}",
                if more { " UGLY" } else { "" },
                if member { " | Nothing" } else { "" }
            );
            if member && !self.sdl.contains("type Nothing") {
                let _ = writeln!(self.sdl, "type Nothing{shareable} {{ why: String }}");
            }
            let offset = if self.rng.chance(10) {
                " offset: Int"
            } else {
                ""
            };
            let _ = writeln!(
                self.sdl,
                "input {name}Filter {{ first: Int after: String{offset} }}\n"
            );
            let s = self.s;
            self.query
                .push(format!("some{name}{s}(filter: {name}Filter): {name}"));
        }
        if self.rng.chance(5) {
            self.sdl
                .push_str("directive @trace(of: String) on QUERY | FIELD\n\n");
        }
    }
}
