//! Modules form no import cycle larger than a file and its own children.
//!
//! An import of a name that another module only hands on (`pub use`) counts as one of the module that defines it, so a
//! crate's root may gather names without tying everything together.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use syn::{
    Item, Path, UseTree,
    visit::{self, Visit},
};

use super::{Crate, SourceFile, attributes, is_test};

/// How many times a name may be handed on before it counts where it is.
const HANDED_ON_MAX: usize = 8;

/// Says which modules of a crate import one another in a circle.
pub(crate) fn check(krate: &Crate) -> Vec<String> {
    let graph = Graph::of(krate);
    let mut wrong = Vec::new();
    let mut told = BTreeSet::new();
    // Siblings, whatever their parent does; then everything, where a parent and its children may know each other.
    let siblings = graph.without(|from, to| is_within(from, to) || is_within(to, from));
    let all = graph.without(|from, to| from.path.is_empty() || to.path.is_empty());
    for (edges, may_be_family) in [(siblings, false), (all, true)] {
        for circle in circles(&edges) {
            let is_family = circle.iter().any(|head| {
                let head = &krate.files[*head];
                circle.iter().all(|at| is_within(&krate.files[*at], head))
            });
            if (is_family && may_be_family) || circle.iter().any(|at| told.contains(at)) {
                continue;
            }
            told.extend(circle.iter().copied());
            let way = shortest(&edges, &circle);
            let names = way.iter().map(|at| &*krate.files[*at].shown);
            wrong.push(format!(
                "crate `{}`: {} modules import one another in a circle: {}",
                krate.name,
                circle.len(),
                names.collect::<Vec<_>>().join(" -> ")
            ));
        }
    }
    wrong
}

/// Whether a file is another one or among its children.
fn is_within(file: &SourceFile, parent: &SourceFile) -> bool {
    file.path.starts_with(&parent.path)
}

type Edges = Vec<BTreeSet<usize>>;

struct Graph<'c> {
    krate: &'c Crate,
    edges: Edges,
}

impl<'c> Graph<'c> {
    fn of(krate: &'c Crate) -> Self {
        let modules: BTreeMap<&[String], usize> = krate
            .files
            .iter()
            .enumerate()
            .map(|(at, file)| (&*file.path, at))
            .collect();
        let mut read: Vec<Imports> = Vec::new();
        for file in &krate.files {
            let mut imports = Imports::default();
            imports.items(&file.items, &file.path);
            read.push(imports);
        }
        let names = Names {
            modules,
            read: &read,
        };
        let edges = read.iter().enumerate().map(|(at, imports)| {
            let paths = imports
                .paths
                .iter()
                .filter_map(|path| names.definition(path, HANDED_ON_MAX));
            paths.filter(|to| *to != at).collect()
        });
        Graph {
            krate,
            edges: edges.collect(),
        }
    }
    fn without(&self, left_out: impl Fn(&SourceFile, &SourceFile) -> bool) -> Edges {
        let files = &self.krate.files;
        let edges = self.edges.iter().enumerate().map(|(from, all)| {
            let kept = all
                .iter()
                .filter(|to| !left_out(&files[from], &files[**to]));
            kept.copied().collect()
        });
        edges.collect()
    }
}

/// Finds the file that defines a name.
struct Names<'a> {
    modules: BTreeMap<&'a [String], usize>,
    read: &'a [Imports],
}

impl Names<'_> {
    fn definition(&self, path: &[String], handed_on: usize) -> Option<usize> {
        let known = (0..=path.len())
            .rev()
            .find_map(|n| Some((n, *self.modules.get(&path[..n])?)));
        let (length, module) = known?;
        let Some(name) = path.get(length) else {
            return Some(module);
        };
        let next = self.read[module].bound.get(name).filter(|_| handed_on > 0);
        let found = next.and_then(|next| self.definition(next, handed_on - 1));
        Some(found.unwrap_or(module))
    }
}

/// What one file imports.
#[derive(Default)]
struct Imports {
    /// From the root of the crate.
    paths: BTreeSet<Vec<String>>,
    /// Names that `use` makes known here, and what they stand for.
    bound: BTreeMap<String, Vec<String>>,
    /// The module that is being read.
    here: Vec<String>,
}

impl Imports {
    fn items(&mut self, items: &[Item], here: &[String]) {
        self.here = here.to_vec();
        for item in items {
            self.visit_item(item);
        }
    }
    /// The same path from the root of the crate; `None` if it is of another crate, or only of names that are known here.
    fn absolute(&self, path: &[String]) -> Option<Vec<String>> {
        let mut names = path.iter().peekable();
        let mut from = match names.next()?.as_str() {
            "crate" => Vec::new(),
            "self" => self.here.clone(),
            "super" => self.here[..self.here.len().checked_sub(1)?].to_vec(),
            _ => return None,
        };
        while names.next_if(|name| *name == "super").is_some() {
            from.pop()?;
        }
        from.extend(names.cloned());
        Some(from)
    }
    fn import(&mut self, tree: &UseTree, before: &mut Vec<String>) {
        match tree {
            UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.import(&path.tree, before);
                before.pop();
            }
            UseTree::Group(group) => group
                .items
                .iter()
                .for_each(|tree| self.import(tree, before)),
            UseTree::Glob(_) => self.add(before, None),
            UseTree::Name(name) if name.ident == "self" => {
                self.add(before, before.last().cloned());
            }
            UseTree::Name(name) => {
                self.add_name(before, &name.ident.to_string(), &name.ident.to_string())
            }
            UseTree::Rename(rename) => {
                self.add_name(
                    before,
                    &rename.ident.to_string(),
                    &rename.rename.to_string(),
                );
            }
        }
    }
    fn add_name(&mut self, before: &mut Vec<String>, name: &str, known_as: &str) {
        before.push(name.to_owned());
        self.add(before, Some(known_as.to_owned()));
        before.pop();
    }
    fn add(&mut self, path: &[String], known_as: Option<String>) {
        // `use child::Name` in the file that declares the child.
        let absolute = self.absolute(path).unwrap_or_else(|| {
            let mut relative = self.here.clone();
            relative.extend_from_slice(path);
            relative
        });
        if let Some(name) = known_as {
            self.bound.insert(name, absolute.clone());
        }
        self.paths.insert(absolute);
    }
}

impl<'ast> Visit<'ast> for Imports {
    fn visit_item(&mut self, item: &'ast Item) {
        if is_test(attributes(item)) {
            return;
        }
        match item {
            Item::Use(item) => self.import(&item.tree, &mut Vec::new()),
            Item::Mod(module) => {
                let name = module.ident.to_string();
                self.here.push(name);
                let inner = module.content.iter().flat_map(|(_, items)| items);
                inner.for_each(|item| self.visit_item(item));
                self.here.pop();
            }
            _ => visit::visit_item(self, item),
        }
    }
    fn visit_path(&mut self, path: &'ast Path) {
        let names: Vec<String> = path.segments.iter().map(|s| s.ident.to_string()).collect();
        if let Some(absolute) = self.absolute(&names) {
            self.paths.insert(absolute);
        }
        visit::visit_path(self, path);
    }
}

/// Groups of files that all reach one another.
fn circles(edges: &Edges) -> Vec<Vec<usize>> {
    let reach: Vec<BTreeSet<usize>> = (0..edges.len()).map(|from| reached(edges, from)).collect();
    let mut seen = BTreeSet::new();
    let mut out = Vec::new();
    for at in 0..edges.len() {
        if seen.contains(&at) || !reach[at].contains(&at) {
            continue;
        }
        let circle = reach[at]
            .iter()
            .copied()
            .filter(|to| reach[*to].contains(&at));
        let circle: Vec<usize> = circle.collect();
        seen.extend(circle.iter().copied());
        out.push(circle);
    }
    out
}

/// What is reached from a file in one step or more.
fn reached(edges: &Edges, from: usize) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    let mut next: Vec<usize> = edges[from].iter().copied().collect();
    while let Some(at) = next.pop() {
        if found.insert(at) {
            next.extend(&edges[at]);
        }
    }
    found
}

/// The shortest way around through the first file of a circle.
fn shortest(edges: &Edges, circle: &[usize]) -> Vec<usize> {
    let start = circle[0];
    let mut before = BTreeMap::new();
    let mut queue = VecDeque::from([start]);
    while let Some(at) = queue.pop_front() {
        for to in edges[at].iter().filter(|to| circle.contains(to)) {
            if *to == start {
                let mut way = vec![start, at];
                let mut at = at;
                while at != start {
                    at = before[&at];
                    way.push(at);
                }
                if way.len() == 3 && way[1] == start {
                    way.pop();
                }
                way.reverse();
                return way;
            }
            if !before.contains_key(to) && *to != start {
                before.insert(*to, at);
                queue.push_back(*to);
            }
        }
    }
    circle.to_vec()
}

#[cfg(test)]
mod tests {
    use super::{super::planted, *};

    #[test]
    fn a_planted_cycle_is_refused_and_shown() {
        let krate = planted(&[
            ("", "mod a; mod b; mod c;"),
            ("a", "use crate::b::B; pub struct A;"),
            ("b", "pub struct B; fn f() { crate::c::run() }"),
            ("c", "use super::a; pub fn run() {}"),
        ]);
        assert_eq!(
            check(&krate),
            [
                "crate `planted`: 3 modules import one another in a circle: a.rs -> b.rs -> c.rs -> a.rs"
            ]
        );
    }

    #[test]
    fn a_file_and_its_children_may_know_each_other_but_children_not() {
        let family = [
            ("", "mod a;"),
            ("a", "mod b; mod c; use b::B; pub struct A;"),
            ("a/b", "use super::A; pub struct B;"),
            ("a/c", "use super::b::B; use crate::a::A;"),
        ];
        assert_eq!(check(&planted(&family)), Vec::<String>::new());
        let mut quarrel = family;
        quarrel[2].1 = "use super::c; pub struct B;";
        assert_eq!(check(&planted(&quarrel)).len(), 1);
    }

    #[test]
    fn what_is_handed_on_counts_where_it_is_defined() {
        let krate = planted(&[
            ("", "mod a; mod b; pub use a::A; pub use b::B;"),
            ("a", "pub struct A;"),
            ("b", "use crate::A; pub struct B;"),
        ]);
        assert_eq!(check(&krate), Vec::<String>::new());
    }

    #[test]
    fn tests_may_import_anything() {
        let krate = planted(&[
            ("", "mod a; mod b;"),
            (
                "a",
                "#[cfg(test)] mod tests { use crate::b::B; } pub struct A;",
            ),
            ("b", "use crate::a::A; pub struct B;"),
        ]);
        assert_eq!(check(&krate), Vec::<String>::new());
    }
}
