//! `ogive graph why Type.field`: which subgraphs resolve a field, by which keys they are entered and from where.
//!
//! Positions are pairs of subgraph and type; from the roots on, a breadth-first walk follows fields inside a subgraph
//! and keys between subgraphs, so the way shown is a shortest one. Keys count as known in a subgraph if it resolves
//! their fields; finer rules (composed keys, `@provides`) are the planner's, whose plans `ogive plan` shows.

use std::{collections::VecDeque, fmt::Write};

use ogive_base::{FastMap, IdVec, escape_markup};
use ogive_federation::{FieldSetId, SubgraphId, Supergraph, field_set::write_field_set};
use ogive_schema::{FieldId, OperationKind, TypeId};
use serde_json::{Value, json};

/// What was found about a field.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Why {
    /// `Type.field`
    pub coordinate: String,
    /// Its type.
    pub ty: String,
    /// Whether clients see it.
    pub visible: bool,
    /// Subgraphs that resolve it, in order of their names.
    pub resolvers: Vec<Resolver>,
    /// Subgraphs that mention it without resolving it, and why they do not.
    pub mentions: Vec<(String, String)>,
}

/// A subgraph that resolves the field.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Resolver {
    /// Its name.
    pub subgraph: String,
    /// `@requires` of the field.
    pub requires: Option<String>,
    /// Further remarks, such as `@override`.
    pub remarks: Vec<String>,
    /// Keys by which it is entered, each with the subgraphs that know its fields.
    pub entries: Vec<(String, Vec<String>)>,
    /// A shortest way from a root; empty if there is none.
    pub way: Vec<Step>,
}

/// One step of a way.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// A field, in a subgraph.
    Field {
        /// `Type.field`
        coordinate: String,
        /// Where.
        subgraph: String,
    },
    /// A key, into another subgraph.
    Key {
        /// The type.
        ty: String,
        /// Its fields.
        fields: String,
        /// Into where.
        subgraph: String,
    },
}

/// Looks a field up; the error says what is there instead.
pub fn why(graph: &Supergraph, coordinate: &str) -> Result<Why, String> {
    let schema = &graph.schema;
    let (ty, field) = coordinate
        .split_once('.')
        .ok_or("write it as Type.field, such as Query.me")?;
    let near = |name: &str, all: Vec<&str>| {
        let found = ogive_schema::suggest::suggestions(name, all);
        found
            .first()
            .map_or(String::new(), |n| format!("; did you mean `{n}`?"))
    };
    let parent = schema.type_by_name(ty).ok_or_else(|| {
        let types = schema.types().filter(|(_, t)| !t.built_in);
        let all = types.map(|(id, _)| schema.type_name(id)).collect();
        format!("the graph has no type `{ty}`{}", near(ty, all))
    })?;
    let id = schema.field_by_name(parent, field).ok_or_else(|| {
        let fields = schema.types[parent].fields.iter();
        let all = fields.map(|f| schema.field_name(*f)).collect();
        format!("`{ty}` has no field `{field}`{}", near(field, all))
    })?;
    let reach = Reach::new(graph);
    let mut found = Why {
        coordinate: schema.field_coordinate(id),
        ty: schema.display_type(schema.fields[id].ty),
        visible: graph
            .api
            .type_by_name(ty)
            .is_some_and(|t| graph.api.field_by_name(t, field).is_some()),
        resolvers: Vec::new(),
        mentions: Vec::new(),
    };
    for source in &graph.graph.fields[id].sources {
        let subgraph = source.subgraph;
        let name = graph.subgraphs[subgraph].name.to_string();
        if source.used_overridden {
            found
                .mentions
                .push((name, "overridden by another subgraph".into()));
            continue;
        }
        if source.external && !graph.graph.fields[id].resolvers.contains(subgraph.0) {
            found.mentions.push((
                name,
                "`@external`: for keys, `@requires` and `@provides` only".into(),
            ));
            continue;
        }
        let mut remarks = Vec::new();
        if let Some((from, label)) = source.overrides {
            let from = &graph.subgraphs[from].name;
            remarks.push(match label {
                None => format!("overrides `{from}`"),
                Some(label) => format!(
                    "overrides `{from}` for requests with the label `{}`",
                    graph.graph.override_labels[label as usize]
                ),
            });
        }
        let entered = match source.via_interface_object {
            Some(interface) => {
                remarks.push(format!(
                    "as `@interfaceObject` of `{}`",
                    schema.type_name(interface)
                ));
                interface
            }
            None => parent,
        };
        found.resolvers.push(Resolver {
            subgraph: name,
            requires: source.requires.map(|set| set_text(graph, set, parent)),
            remarks,
            entries: reach.entries(entered, subgraph),
            way: reach.way(entered, subgraph, id),
        });
    }
    found.resolvers.sort_by(|a, b| a.subgraph.cmp(&b.subgraph));
    Ok(found)
}

fn set_text(graph: &Supergraph, set: FieldSetId, ty: TypeId) -> String {
    let mut out = String::new();
    let possible = &graph.schema.types[ty].possible;
    let sets: &IdVec<FieldSetId, _> = &graph.graph.field_sets;
    write_field_set(&graph.schema, sets, set, possible, &mut out);
    out
}

type Position = (SubgraphId, TypeId);

/// How one comes to a position.
#[derive(Clone, Copy)]
enum By {
    Root,
    Field(Position, FieldId),
    Key(Position, FieldSetId),
}

/// Every position that can be reached.
struct Reach<'g> {
    graph: &'g Supergraph,
    by: FastMap<Position, By>,
}

impl<'g> Reach<'g> {
    fn new(graph: &'g Supergraph) -> Self {
        let mut reach = Reach {
            graph,
            by: FastMap::default(),
        };
        let mut open = VecDeque::new();
        let kinds = [
            OperationKind::Query,
            OperationKind::Mutation,
            OperationKind::Subscription,
        ];
        for root in kinds.into_iter().filter_map(|k| graph.schema.root(k)) {
            for source in &graph.graph.types[root].sources {
                let position = (source.subgraph, root);
                reach.by.insert(position, By::Root);
                open.push_back(position);
            }
        }
        while let Some(position) = open.pop_front() {
            for (next, by) in reach.steps(position) {
                if !reach.by.contains_key(&next) {
                    reach.by.insert(next, by);
                    open.push_back(next);
                }
            }
        }
        reach
    }

    fn resolves(&self, subgraph: SubgraphId, field: FieldId) -> bool {
        let row = self.graph.graph.field_source(field, subgraph);
        row.is_some_and(|s| !s.external && !s.used_overridden)
            || self.graph.graph.fields[field]
                .resolvers
                .contains(subgraph.0)
    }

    fn knows(&self, subgraph: SubgraphId, set: FieldSetId) -> bool {
        self.graph.graph.field_sets[set]
            .items
            .iter()
            .all(|i| i.field.is_none_or(|f| self.resolves(subgraph, f)))
    }

    fn steps(&self, at: Position) -> Vec<(Position, By)> {
        let (subgraph, ty) = at;
        let schema = &self.graph.schema;
        let mut out = Vec::new();
        for field in &schema.types[ty].fields {
            if !self.resolves(subgraph, *field) {
                continue;
            }
            let row = self.graph.graph.field_source(*field, subgraph);
            let value = row
                .and_then(|s| s.ty)
                .unwrap_or(schema.fields[*field].ty)
                .id;
            if !schema.types[value].kind.is_composite() {
                continue;
            }
            out.push(((subgraph, value), By::Field(at, *field)));
            if let Some(source) = self.graph.graph.type_source(value, subgraph) {
                for possible in source.possible.iter().map(TypeId) {
                    out.push(((subgraph, possible), By::Field(at, *field)));
                }
            }
        }
        for source in &self.graph.graph.types[ty].sources {
            for key in source.keys.iter().filter(|k| k.resolvable) {
                if source.subgraph != subgraph && self.knows(subgraph, key.fields) {
                    out.push(((source.subgraph, ty), By::Key(at, key.fields)));
                }
            }
        }
        out
    }

    fn entries(&self, ty: TypeId, subgraph: SubgraphId) -> Vec<(String, Vec<String>)> {
        let Some(source) = self.graph.graph.type_source(ty, subgraph) else {
            return Vec::new();
        };
        let mut out = Vec::new();
        for key in source.keys.iter().filter(|k| k.resolvable) {
            let from = self.graph.graph.types[ty].sources.iter();
            let from = from
                .map(|s| s.subgraph)
                .filter(|s| *s != subgraph && self.by.contains_key(&(*s, ty)))
                .filter(|s| self.knows(*s, key.fields));
            let mut from: Vec<String> = from
                .map(|s| self.graph.subgraphs[s].name.to_string())
                .collect();
            from.sort();
            out.push((set_text(self.graph, key.fields, ty), from));
        }
        out
    }

    fn way(&self, ty: TypeId, subgraph: SubgraphId, field: FieldId) -> Vec<Step> {
        let schema = &self.graph.schema;
        let name = |s: SubgraphId| self.graph.subgraphs[s].name.to_string();
        let mut at = (subgraph, ty);
        let mut out = vec![Step::Field {
            coordinate: schema.field_coordinate(field),
            subgraph: name(subgraph),
        }];
        loop {
            match self.by.get(&at) {
                None => return Vec::new(),
                Some(By::Root) => break,
                Some(By::Field(from, field)) => {
                    out.push(Step::Field {
                        coordinate: schema.field_coordinate(*field),
                        subgraph: name(from.0),
                    });
                    at = *from;
                }
                Some(By::Key(from, set)) => {
                    out.push(Step::Key {
                        ty: schema.type_name(at.1).to_owned(),
                        fields: set_text(self.graph, *set, at.1),
                        subgraph: name(at.0),
                    });
                    at = *from;
                }
            }
        }
        out.reverse();
        out
    }
}

impl Why {
    /// For people.
    pub fn text(&self) -> String {
        let mut out = format!("{}: {}\n", self.coordinate, self.ty);
        let mut line = |text: String| {
            out.push_str(&text);
            out.push('\n');
        };
        if !self.visible {
            line("  hidden from clients".into());
        }
        if self.resolvers.is_empty() {
            line("  no subgraph resolves it".into());
        }
        for resolver in &self.resolvers {
            line(format!("\nresolved by {}", resolver.subgraph));
            for remark in &resolver.remarks {
                line(format!("  {remark}"));
            }
            if let Some(requires) = &resolver.requires {
                line(format!(
                    "  needs {{ {requires} }} from other subgraphs first (@requires)"
                ));
            }
            for (key, from) in &resolver.entries {
                line(if from.is_empty() {
                    format!(
                        "  entered by {{ {key} }}, which no other subgraph that is reached knows"
                    )
                } else {
                    format!("  entered by {{ {key} }} from {}", from.join(", "))
                });
            }
            if resolver.entries.is_empty() {
                line("  no key leads into it here".into());
            }
            if resolver.way.is_empty() {
                line("  cannot be reached from a root".into());
            } else {
                let way: Vec<String> = resolver.way.iter().map(Step::text).collect();
                line(format!("  reached by {}", way.join(" → ")));
            }
        }
        for (subgraph, why) in &self.mentions {
            line(format!("\nnot resolved by {subgraph}\n  {why}"));
        }
        out
    }

    /// For tools.
    pub fn json(&self) -> Value {
        let resolvers: Vec<Value> = self
            .resolvers
            .iter()
            .map(|r| {
                let entries: Vec<Value> = r
                    .entries
                    .iter()
                    .map(|(key, from)| json!({ "key": key, "from": from }))
                    .collect();
                let way: Vec<Value> = r.way.iter().map(Step::json).collect();
                json!({ "subgraph": r.subgraph, "requires": r.requires, "remarks": r.remarks, "entries": entries, "way": way })
            })
            .collect();
        let mentions: Vec<Value> = self
            .mentions
            .iter()
            .map(|(subgraph, why)| json!({ "subgraph": subgraph, "why": why }))
            .collect();
        json!({
            "coordinate": self.coordinate,
            "type": self.ty,
            "visible": self.visible,
            "resolvers": resolvers,
            "mentions": mentions,
        })
    }

    /// Subgraphs, and the edges between them: from, to, key.
    fn edges(&self) -> (Vec<&str>, Vec<(&str, &str, &str)>) {
        let mut nodes: Vec<&str> = Vec::new();
        let mut edges = Vec::new();
        for resolver in &self.resolvers {
            for (key, from) in &resolver.entries {
                for from in from {
                    edges.push((&**from, &*resolver.subgraph, &**key));
                }
            }
        }
        let ends = edges.iter().flat_map(|(from, to, _)| [*from, *to]);
        let all = ends.chain(self.resolvers.iter().map(|r| &*r.subgraph));
        for name in all {
            if !nodes.contains(&name) {
                nodes.push(name);
            }
        }
        nodes.sort_unstable();
        (nodes, edges)
    }
    fn resolves(&self, subgraph: &str) -> bool {
        self.resolvers.iter().any(|r| r.subgraph == subgraph)
    }

    /// For Graphviz.
    pub fn dot(&self) -> String {
        let (nodes, edges) = self.edges();
        let mut out = format!(
            "digraph why {{\n  rankdir=LR;\n  label=\"{}\";\n",
            self.coordinate
        );
        for node in nodes {
            let style = if self.resolves(node) {
                ", style=bold"
            } else {
                ""
            };
            let _ = writeln!(out, "  \"{node}\" [shape=box{style}];");
        }
        for (from, to, key) in edges {
            let _ = writeln!(out, "  \"{from}\" -> \"{to}\" [label=\"{{ {key} }}\"];");
        }
        out.push_str("}\n");
        out
    }

    /// For Mermaid.
    pub fn mermaid(&self) -> String {
        let (nodes, edges) = self.edges();
        let mut out = String::from("flowchart LR\n");
        let at = |name: &str| nodes.iter().position(|n| *n == name).unwrap_or(0);
        for (index, node) in nodes.iter().enumerate() {
            let open = if self.resolves(node) {
                ("[[", "]]")
            } else {
                ("[", "]")
            };
            let _ = writeln!(out, "  s{index}{}\"{node}\"{}", open.0, open.1);
        }
        for (from, to, key) in &edges {
            let _ = writeln!(out, "  s{} -->|\"{key}\"| s{}", at(from), at(to));
        }
        out
    }

    /// A picture: subgraphs that lead there on the left, those that resolve the field on the right.
    pub fn svg(&self) -> String {
        const ROW: usize = 64;
        let (nodes, edges) = self.edges();
        let right: Vec<&str> = nodes.iter().copied().filter(|n| self.resolves(n)).collect();
        let left: Vec<&str> = nodes
            .iter()
            .copied()
            .filter(|n| edges.iter().any(|(from, ..)| from == n))
            .collect();
        let rows = left.len().max(right.len()).max(1);
        let height = 60 + rows * ROW;
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"720\" height=\"{height}\" font-family=\"sans-serif\" font-size=\"14\">\n\
             <text x=\"20\" y=\"28\" font-weight=\"bold\">{}: {}</text>\n",
            escape_markup(&self.coordinate),
            escape_markup(&self.ty)
        );
        let y = |list: &[&str], name: &str| {
            72 + ROW * list.iter().position(|n| *n == name).unwrap_or(0)
        };
        for (at, (from, to, key)) in edges.iter().enumerate() {
            let (y1, y2) = (y(&left, from), y(&right, to));
            // Labels of parallel lines would lie on each other in the middle.
            let part = 30 + at * 20 % 50;
            let (x, y) = (
                210 + 300 * part / 100,
                (y1 * (100 - part) + y2 * part) / 100,
            );
            let _ = writeln!(
                out,
                "<line x1=\"210\" y1=\"{y1}\" x2=\"510\" y2=\"{y2}\" stroke=\"#888\"/>\
                 <text x=\"{x}\" y=\"{}\" text-anchor=\"middle\" font-size=\"12\" fill=\"#555\">{{ {} }}</text>",
                y - 4,
                escape_markup(key)
            );
        }
        for (x, list, stroke) in [(30, &left, 1), (510, &right, 2)] {
            for name in list.iter() {
                let y = y(list, name);
                let _ = writeln!(
                    out,
                    "<rect x=\"{x}\" y=\"{}\" width=\"180\" height=\"36\" rx=\"6\" fill=\"#fff\" stroke=\"#225\" stroke-width=\"{stroke}\"/>\
                     <text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                    y - 18,
                    x + 90,
                    y + 5,
                    escape_markup(name)
                );
            }
        }
        out.push_str("</svg>\n");
        out
    }
}

impl Step {
    fn text(&self) -> String {
        match self {
            Step::Field {
                coordinate,
                subgraph,
            } => format!("{coordinate} in {subgraph}"),
            Step::Key {
                ty,
                fields,
                subgraph,
            } => format!("{ty} by {{ {fields} }} into {subgraph}"),
        }
    }
    fn json(&self) -> Value {
        match self {
            Step::Field {
                coordinate,
                subgraph,
            } => json!({ "field": coordinate, "subgraph": subgraph }),
            Step::Key {
                ty,
                fields,
                subgraph,
            } => json!({ "type": ty, "key": fields, "subgraph": subgraph }),
        }
    }
}
