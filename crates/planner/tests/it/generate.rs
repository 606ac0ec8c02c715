//! Small supergraphs and operations from a seed: entities with several keys, values that one or more subgraphs answer,
//! `@requires`, `@provides`, a union, and links between all of it.
//!
//! Only what a composed supergraph could contain is made, though not everything in it can be reached: callers skip
//! operations that no plan answers. The same seed gives the same text on every machine.

use std::fmt::Write as _;

use ogive_testbase::Rng;

/// A subset of `of`, never empty unless `of` is; each member with that chance.
fn subset(random: &mut Rng, of: u32, percent: usize) -> u32 {
    let mut out = 0;
    for bit in bits(of) {
        if random.chance(percent) {
            out |= 1 << bit;
        }
    }
    let members: Vec<usize> = bits(of).collect();
    if out == 0 && !members.is_empty() {
        out = 1 << members[random.below(members.len())];
    }
    out
}

fn bits(mask: u32) -> impl Iterator<Item = usize> {
    (0..32).filter(move |b| mask & (1 << b) != 0)
}

/// A scalar field; sets of subgraphs are bit masks.
#[derive(Clone)]
pub(crate) struct Leaf {
    pub(crate) providers: u32,
    /// The one provider needs another leaf of the type first.
    pub(crate) requires: Option<usize>,
}

/// A field to an entity.
#[derive(Clone)]
pub(crate) struct Link {
    target: usize,
    list: bool,
    providers: u32,
    /// The subgraph brings this leaf of the target along.
    provides: Option<(usize, usize)>,
}

/// An entity type.
#[derive(Clone)]
pub(crate) struct Entity {
    pub(crate) present: u32,
    /// Subgraphs that can be entered by each key, and those that know its field.
    keys: [(u32, u32); 2],
    pub(crate) leaves: Vec<Leaf>,
    links: Vec<Link>,
}

/// A supergraph.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) subgraphs: usize,
    pub(crate) entities: Vec<Entity>,
    roots: Vec<Link>,
    /// Subgraphs that answer the root field of the union type.
    union: u32,
}

/// A field of an operation, or a type condition.
#[derive(Clone)]
pub(crate) struct Selected {
    text: String,
    below: Vec<Selected>,
}

const KEYS: [&str; 2] = ["id", "no"];

impl World {
    /// Two to four subgraphs, one to three types.
    pub(crate) fn random(random: &mut Rng) -> World {
        let subgraphs = 2 + random.below(3);
        let everywhere = (1u32 << subgraphs) - 1;
        let count = 1 + random.below(3);
        let mut entities: Vec<Entity> = (0..count)
            .map(|_| {
                let present = subset(random, everywhere, 80);
                let keys = [70, 35].map(|percent| {
                    let known = subset(random, present, percent);
                    (subset(random, known, 75), known)
                });
                Entity {
                    present,
                    keys,
                    leaves: Vec::new(),
                    links: Vec::new(),
                }
            })
            .collect();
        for entity in &mut entities {
            for _ in 0..2 + random.below(3) {
                let mut leaf = Leaf {
                    providers: subset(random, entity.present, 35),
                    requires: None,
                };
                let only = leaf.providers.count_ones() == 1;
                if only && !entity.leaves.is_empty() && random.chance(30) {
                    let needed = random.below(entity.leaves.len());
                    if entity.leaves[needed].providers & leaf.providers == 0 {
                        leaf.requires = Some(needed);
                    }
                }
                entity.leaves.push(leaf);
            }
        }
        for t in 0..count {
            for _ in 0..random.below(3) {
                let both = random.below(count);
                let shared = entities[t].present & entities[both].present;
                if let Some(link) = Self::link(&entities, both, shared, random) {
                    entities[t].links.push(link);
                }
            }
        }
        let roots = (0..1 + random.below(3))
            .filter_map(|_| {
                let target = random.below(count);
                Self::link(&entities, target, entities[target].present, random)
            })
            .collect();
        let union = match count {
            1 => 0,
            _ => subset(random, entities[0].present & entities[1].present, 50),
        };
        World {
            subgraphs,
            entities,
            roots,
            union,
        }
    }

    fn link(entities: &[Entity], target: usize, shared: u32, random: &mut Rng) -> Option<Link> {
        let providers = subset(random, shared, 30);
        let from = bits(providers).next()?;
        let leaf = random.below(entities[target].leaves.len());
        let lacks = entities[target].leaves[leaf].providers & (1 << from) == 0;
        Some(Link {
            target,
            list: random.chance(40),
            providers,
            provides: (lacks && random.chance(40)).then_some((from, leaf)),
        })
    }

    /// The types, without join definitions. `order` is the order in which subgraphs are declared.
    pub(crate) fn sdl(&self, order: &[usize]) -> String {
        let mut out = String::from("enum join__Graph {");
        for s in order {
            let _ = write!(out, " S{s} @join__graph(name: \"s{s}\", url: \"\")");
        }
        out.push_str(" }\ntype Query");
        for s in order {
            let _ = write!(out, " @join__type(graph: S{s})");
        }
        out.push_str(" {\n");
        for (i, root) in self.roots.iter().enumerate() {
            self.write_link(&mut out, &format!("r{i}"), root);
        }
        for s in bits(self.union) {
            if s == bits(self.union).next().unwrap_or_default() {
                out.push_str("  either: [Either]");
            }
            let _ = write!(out, " @join__field(graph: S{s})");
        }
        out.push_str("\n}\n");
        if self.union != 0 {
            out.push_str("union Either");
            for s in bits(self.union) {
                let _ = write!(
                    out,
                    " @join__type(graph: S{s}) @join__unionMember(graph: S{s}, member: \"T0\") @join__unionMember(graph: S{s}, member: \"T1\")"
                );
            }
            out.push_str(" = T0 | T1\n");
        }
        for (t, entity) in self.entities.iter().enumerate() {
            let _ = write!(out, "type T{t}");
            for s in bits(entity.present) {
                let keys: Vec<&str> = (0..2)
                    .filter(|k| entity.keys[*k].0 & (1 << s) != 0)
                    .map(|k| KEYS[k])
                    .collect();
                if keys.is_empty() {
                    let _ = write!(out, " @join__type(graph: S{s})");
                }
                for key in keys {
                    let _ = write!(out, " @join__type(graph: S{s}, key: \"{key}\")");
                }
            }
            out.push_str(" {\n");
            for (key, (_, known)) in entity.keys.iter().enumerate() {
                let _ = write!(out, "  {}: ID!", KEYS[key]);
                for s in bits(*known) {
                    let _ = write!(out, " @join__field(graph: S{s})");
                }
                out.push('\n');
            }
            for (i, leaf) in entity.leaves.iter().enumerate() {
                let _ = write!(out, "  f{i}: Int");
                for s in bits(leaf.providers) {
                    let requires = leaf
                        .requires
                        .map(|r| format!(", requires: \"f{r}\""))
                        .unwrap_or_default();
                    let _ = write!(out, " @join__field(graph: S{s}{requires})");
                }
                for s in bits(self.external(t, i) & !leaf.providers) {
                    let _ = write!(out, " @join__field(graph: S{s}, external: true)");
                }
                out.push('\n');
            }
            for (i, link) in entity.links.iter().enumerate() {
                self.write_link(&mut out, &format!("l{i}"), link);
            }
            out.push_str("}\n");
        }
        out
    }

    fn write_link(&self, out: &mut String, name: &str, link: &Link) {
        let ty = if link.list {
            format!("[T{}]", link.target)
        } else {
            format!("T{}", link.target)
        };
        let _ = write!(out, "  {name}: {ty}");
        for s in bits(link.providers) {
            let provides = match link.provides {
                Some((from, leaf)) if from == s => format!(", provides: \"f{leaf}\""),
                _ => String::new(),
            };
            let _ = write!(out, " @join__field(graph: S{s}{provides})");
        }
        out.push('\n');
    }

    /// Subgraphs that name a leaf without resolving it.
    fn external(&self, t: usize, leaf: usize) -> u32 {
        let mut out = 0;
        for other in &self.entities[t].leaves {
            if other.requires == Some(leaf) {
                out |= other.providers;
            }
        }
        let links = self.entities.iter().flat_map(|e| &e.links);
        for link in links.chain(&self.roots).filter(|l| l.target == t) {
            if let Some((from, provided)) = link.provides
                && provided == leaf
            {
                out |= 1 << from;
            }
        }
        out
    }

    /// An operation of at most three levels.
    pub(crate) fn operation(&self, random: &mut Rng) -> Vec<Selected> {
        let mut out = Vec::new();
        for (i, root) in self.roots.iter().enumerate() {
            if out.is_empty() || random.chance(60) {
                out.push(Selected {
                    text: format!("r{i}"),
                    below: self.selection(root.target, 2, random),
                });
            }
        }
        if self.union != 0 && (out.is_empty() || random.chance(30)) {
            let below = (0..2)
                .map(|t| Selected {
                    text: format!("... on T{t}"),
                    below: self.selection(t, 0, random),
                })
                .collect();
            out.push(Selected {
                text: "either".into(),
                below,
            });
        }
        out
    }

    fn selection(&self, t: usize, deeper: usize, random: &mut Rng) -> Vec<Selected> {
        let entity = &self.entities[t];
        let mut out = Vec::new();
        let leaf = |text: String| Selected {
            text,
            below: Vec::new(),
        };
        for i in 0..entity.leaves.len() {
            if random.chance(45) {
                out.push(leaf(format!("f{i}")));
            }
        }
        for (i, link) in entity.links.iter().enumerate() {
            if deeper > 0 && random.chance(60) {
                out.push(Selected {
                    text: format!("l{i}"),
                    below: self.selection(link.target, deeper - 1, random),
                });
            }
        }
        if out.is_empty() {
            out.push(leaf("id".into()));
        }
        out
    }
}

/// How an operation is written.
#[derive(Clone, Copy, Default)]
pub(crate) struct Form {
    /// Fields in reverse order.
    pub(crate) reversed: bool,
    /// Every field in an inline fragment.
    pub(crate) wrapped: bool,
    /// `__typename` in every selection set.
    pub(crate) typename: bool,
}

/// The text of an operation.
pub(crate) fn text(fields: &[Selected], form: Form) -> String {
    let mut out = String::from("{ ");
    let mut ordered: Vec<&Selected> = fields.iter().collect();
    if form.reversed {
        ordered.reverse();
    }
    for field in ordered {
        if form.wrapped {
            out.push_str("... { ");
        }
        out.push_str(&field.text);
        out.push(' ');
        if !field.below.is_empty() {
            out.push_str(&text(&field.below, form));
        }
        if form.wrapped {
            out.push_str("} ");
        }
    }
    if form.typename {
        out.push_str("__typename ");
    }
    out.push_str("} ");
    out
}
