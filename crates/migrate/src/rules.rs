//! The walk over a foreign tree by a table of rules.
//!
//! A rule is about the keys of one path, in which `*` stands for any key, and about everything below for which there is
//! no rule of its own.

use std::collections::HashSet;

use ogive_config::parse_byte_size;
use ogive_yaml::{Node, Value};

use super::{
    Format, Lost, ReportRow, Verdict,
    convert::Convert,
    nodes::{
        at, dotted, found, get_mut, is_on, keys, list, map, plain, quoted, scalar, set, set_path,
        take, text,
    },
    protections,
    why::OFF,
};

/// What is to become of a key.
#[derive(Clone, Copy)]
pub(crate) struct Rule {
    pub(crate) from: &'static str,
    pub(crate) action: Action,
}

#[derive(Clone, Copy)]
pub(crate) enum Action {
    /// The value goes to this path, where `*` stands for the keys that `*` of the source matched, in order.
    To(&'static str, Convert, &'static str),
    /// [`Action::To`] for a bound, where 0 means unbounded.
    Bound(&'static str, Convert),
    /// Not needed, because of this.
    Drop(&'static str),
    /// Unsupported, because of this.
    No(&'static str),
    /// A function converts the key.
    Call(fn(&mut Walk<'_>, &[String], &Node)),
    /// A function handles the whole section and returns true, or returns false: then the rules of its keys apply.
    Gate(fn(&mut Walk<'_>, &[String], &Node) -> bool),
}

/// A rule for a key that has this name here, too.
pub(crate) const fn keep(path: &'static str) -> Rule {
    to(path, path)
}
/// A rule for a key that has another name here.
pub(crate) const fn to(from: &'static str, target: &'static str) -> Rule {
    with(from, target, super::convert::same)
}
/// A rule for a key that has another name and another form here.
pub(crate) const fn with(from: &'static str, target: &'static str, convert: Convert) -> Rule {
    noted(from, target, convert, "")
}
/// [`with`] with a note for the report.
pub(crate) const fn noted(
    from: &'static str,
    target: &'static str,
    convert: Convert,
    note: &'static str,
) -> Rule {
    Rule {
        from,
        action: Action::To(target, convert, note),
    }
}
/// A rule for a bound, where 0 means unbounded.
pub(crate) const fn bound(from: &'static str, target: &'static str, convert: Convert) -> Rule {
    Rule {
        from,
        action: Action::Bound(target, convert),
    }
}
/// A rule for a key that is not needed here, because of `why`.
pub(crate) const fn unneeded(from: &'static str, why: &'static str) -> Rule {
    Rule {
        from,
        action: Action::Drop(why),
    }
}
/// A rule for a key without a counterpart; `why` says what to do instead.
pub(crate) const fn no(from: &'static str, why: &'static str) -> Rule {
    Rule {
        from,
        action: Action::No(why),
    }
}
/// A rule for a key that a function converts.
pub(crate) const fn call(from: &'static str, action: fn(&mut Walk<'_>, &[String], &Node)) -> Rule {
    Rule {
        from,
        action: Action::Call(action),
    }
}

/// A rule for a section; `is_done` returns whether it handled the whole section.
pub(crate) const fn gate(
    from: &'static str,
    is_done: fn(&mut Walk<'_>, &[String], &Node) -> bool,
) -> Rule {
    Rule {
        from,
        action: Action::Gate(is_done),
    }
}
/// For [`gate`]: reports a section that is switched off as not needed.
pub(crate) fn off(walk: &mut Walk<'_>, path: &[String], node: &Node) -> bool {
    let is_off = is_off(path, node);
    if is_off {
        walk.not_needed(path, OFF);
    }
    is_off
}

/// The walk, and what it has made so far.
pub(crate) struct Walk<'n> {
    pub(crate) format: Format,
    /// The whole foreign tree.
    pub(crate) root: &'n Node,
    tree: Node,
    report: Vec<ReportRow>,
    lost: Vec<Lost>,
}

impl<'n> Walk<'n> {
    pub(crate) fn new(format: Format, root: &'n Node) -> Self {
        Walk {
            format,
            root,
            tree: map(),
            report: Vec::new(),
            lost: Vec::new(),
        }
    }

    pub(crate) fn run(&mut self, table: &[Rule]) {
        let mut open: Vec<(Vec<String>, &'n Node)> = vec![(Vec::new(), self.root)];
        while let Some((path, node)) = open.pop() {
            let rule = table.iter().find(|rule| matches(rule.from, &path));
            let below = table.iter().any(|rule| is_below(rule.from, &path));
            let general = || {
                let shorter = (1..path.len()).rev();
                let mut found = shorter.filter_map(|n| {
                    let rule = table.iter().find(|rule| matches(rule.from, &path[..n]))?;
                    matches!(rule.action, Action::Drop(_) | Action::No(_)).then_some(rule)
                });
                found.next()
            };
            match (
                rule.or_else(|| if below { None } else { general() }),
                &node.value,
            ) {
                (Some(_), _) if node.is_null() => self.not_needed(&path, NO_VALUE),
                (
                    Some(Rule {
                        action: Action::Gate(is_done),
                        ..
                    }),
                    Value::Map(_),
                ) if is_done(self, &path, node) => {}
                (found, Value::Map(entries))
                    if !entries.is_empty()
                        && (below || found.is_none())
                        && !matches!(
                            found,
                            Some(Rule {
                                action: Action::To(..) | Action::Bound(..) | Action::Call(_),
                                ..
                            })
                        ) =>
                {
                    for (key, value) in entries.iter().rev() {
                        let mut below = path.clone();
                        below.push(key.text.clone());
                        open.push((below, value));
                    }
                }
                (Some(rule), _) => self.apply(rule, &path, node),
                (None, _) if path.is_empty() => {}
                (None, Value::Map(_)) => {
                    self.not_needed(&path, EMPTY);
                }
                (None, _) => self.unknown(&path),
            }
        }
    }

    /// Reports keys that have no row, neither for themselves nor for a key above or below them.
    pub(crate) fn rest(&mut self) {
        let named: HashSet<String> = self.report.iter().map(|row| row.from.clone()).collect();
        let above = |path: &String| -> Vec<String> {
            let keys = keys(path);
            (1..keys.len()).map(|end| dotted(&keys[..end])).collect()
        };
        let above: HashSet<String> = named.iter().flat_map(above).collect();
        let mut open: Vec<(Vec<String>, &'n Node)> = vec![(Vec::new(), self.root)];
        while let Some((path, node)) = open.pop() {
            let own = dotted(&path);
            if !own.is_empty() && named.contains(&own) {
                continue;
            }
            let below = |part: &str| [&path[..], &[part.to_owned()]].concat();
            match &node.value {
                _ if path.is_empty() && node.is_null() => {}
                Value::Map(entries) if !entries.is_empty() => {
                    let entries = entries.iter().rev();
                    open.extend(entries.map(|(key, node)| (below(&key.text), node)));
                }
                Value::List(items) if !items.is_empty() => {
                    let items = items.iter().enumerate().rev();
                    open.extend(items.map(|(index, node)| (below(&index.to_string()), node)));
                }
                _ if path.is_empty() || above.contains(&own) => {}
                Value::Scalar { .. } if node.is_null() => self.not_needed(&path, NO_VALUE),
                Value::Scalar { .. } => self.unknown(&path),
                _ => self.not_needed(&path, EMPTY),
            }
        }
    }

    fn apply(&mut self, rule: &Rule, path: &[String], node: &Node) {
        match rule.action {
            Action::Drop(why) => self.not_needed(path, why),
            Action::No(_) if is_off(path, node) => self.not_needed(path, OFF),
            Action::No(why) => self.unsupported(path, why),
            Action::Call(action) => action(self, path, node),
            Action::Gate(_) => match node.value {
                Value::Map(_) => self.not_needed(path, EMPTY),
                _ => self.unknown(path),
            },
            Action::Bound(target, convert) => {
                let target = filled(target, rule.from, path);
                self.bound(path, &target, node, convert);
            }
            Action::To(target, convert, note) => {
                let target = filled(target, rule.from, path);
                match convert(self.format, node) {
                    Ok(value) => self.put(path, &target, value, note),
                    Err(why) => self.unsupported(path, &why),
                }
            }
        }
    }

    /// Writes a value and reports it.
    pub(crate) fn put(&mut self, from: &[String], target: &str, value: Node, note: &str) {
        let (value, said) = self.settled(target, value);
        let note = said.as_deref().unwrap_or(note);
        let verdict = if dotted(from) == target && note.is_empty() {
            Verdict::Kept
        } else {
            Verdict::Renamed
        };
        set(&mut self.tree, target, value);
        self.row(from, Some(target), verdict, note);
    }
    /// Two foreign keys may be one key here. If their values differ, the smaller bound holds, and of two switches that show
    /// something the one that is off; of other values the last one holds.
    fn settled(&mut self, target: &str, value: Node) -> (Node, Option<String>) {
        let Some(earlier) = get_mut(&mut self.tree, target).cloned() else {
            return (value, None);
        };
        let (Some(one), Some(other)) = (scalar(&earlier), scalar(&value)) else {
            return (value, None);
        };
        if one == other {
            return (value, None);
        }
        let rows = self.report.iter().rev();
        let from = rows.filter(|row| row.to.as_deref() == Some(target));
        let from = from.map(|row| row.from.clone()).next();
        let from = from.unwrap_or_default();
        let (keep, why) = match (amount(one), amount(other)) {
            (Some(one), Some(other)) => (one < other, "the smaller of the two holds"),
            _ if SHOWS.contains(&target) || target.ends_with(".insecure_skip_verify") => {
                (one == "false", "it is off where one says so")
            }
            _ => (false, "this one counts"),
        };
        let note = format!("`{from}` says `{one}`, and this `{other}`: {why}");
        (if keep { earlier } else { value }, Some(note))
    }
    /// [`Walk::put`] with the target as a list of keys, which may contain dots.
    pub(crate) fn put_at(&mut self, from: &[String], target: &[&str], value: Node) {
        let verdict = if from == target {
            Verdict::Kept
        } else {
            Verdict::Renamed
        };
        set_path(&mut self.tree, target.iter().copied(), value);
        self.row(from, Some(&dotted(target)), verdict, "");
    }
    /// Appends an item to a list and reports it.
    pub(crate) fn push(&mut self, from: &[String], target: &str, value: Node, kept: bool) {
        match get_mut(&mut self.tree, target) {
            Some(Node {
                value: Value::List(items),
                ..
            }) => items.push(value),
            _ => set(&mut self.tree, target, list(vec![value])),
        }
        let verdict = if kept {
            Verdict::Kept
        } else {
            Verdict::Renamed
        };
        self.row(from, Some(target), verdict, "");
    }
    /// Adds a note to the last row of the report.
    pub(crate) fn note(&mut self, note: &str) {
        if let Some(row) = self.report.last_mut() {
            if !row.note.is_empty() {
                row.note.push_str("; ");
            }
            row.note.push_str(note);
        }
    }
    /// Refuses operations of a kind.
    pub(crate) fn refuse(&mut self, from: &[String], what: &str) {
        let mut rule = map();
        set(&mut rule, "refuse", plain(what));
        self.push(from, "limits.operation_rules", rule, false);
    }
    /// Writes the other gateway's default, unless the file sets the key.
    pub(crate) fn implied(&mut self, target: &str, value: &str, why: &str) {
        if get_mut(&mut self.tree, target).is_some() {
            return;
        }
        set(&mut self.tree, target, plain(value));
        self.row(&[], Some(target), Verdict::Added, why);
    }
    /// [`Walk::implied`] for a list of texts.
    pub(crate) fn implied_list(&mut self, target: &str, values: &[&str], why: &str) {
        if get_mut(&mut self.tree, target).is_none() {
            let items = values.iter().map(|value| text(*value)).collect();
            set(&mut self.tree, target, list(items));
            self.row(&[], Some(target), Verdict::Added, why);
        }
    }
    /// Appends an item that is not in the file to a list.
    pub(crate) fn implied_item(&mut self, target: &str, value: Node, why: &str) {
        self.push(&[], target, value, false);
        if let Some(row) = self.report.last_mut() {
            row.verdict = Verdict::Added;
            why.clone_into(&mut row.note);
        }
    }
    /// Whether the result has a value at this path.
    pub(crate) fn has(&mut self, target: &str) -> bool {
        get_mut(&mut self.tree, target).is_some()
    }
    /// Whether the result has this value at this path.
    pub(crate) fn says(&mut self, target: &str, value: &Node) -> bool {
        let there = get_mut(&mut self.tree, target).map(|node| super::write::flow(node));
        there == Some(super::write::flow(value))
    }
    /// Writes a value, or reports why it cannot be brought over.
    pub(crate) fn try_put(&mut self, from: &[String], target: &str, value: Result<Node, String>) {
        match value {
            Ok(value) => self.put(from, target, value, ""),
            Err(why) => self.unsupported(from, &why),
        }
    }
    /// Writes a bound; 0, which means unbounded, is left out.
    pub(crate) fn bound(&mut self, from: &[String], target: &str, node: &Node, convert: Convert) {
        if is_zero(node) {
            let why = "0 means none there; the default here holds";
            return self.row(from, None, Verdict::Unsupported, why);
        }
        self.try_put(from, target, convert(self.format, node));
    }
    /// Reports a key that is not needed here.
    pub(crate) fn not_needed(&mut self, from: &[String], why: &str) {
        self.row(from, None, Verdict::NotNeeded, why);
    }
    /// Reports a key without a counterpart, as lost if it protected something.
    pub(crate) fn unsupported(&mut self, from: &[String], why: &str) {
        if protections::holds(self.format, from) {
            self.lost(from, why)
        } else {
            self.row(from, None, Verdict::Unsupported, why)
        }
    }
    /// Reports a key that no table knows. It counts as a lost protection unless its section is about telemetry or pages.
    pub(crate) fn unknown(&mut self, from: &[String]) {
        const WHY: &str = "this key is not known to the migration";
        if protections::may_hold(self.format, from) {
            self.lost(from, WHY);
        } else {
            self.row(from, None, Verdict::Unsupported, WHY);
        }
    }
    /// Reports the keys of a mapping that are not in `known`.
    pub(crate) fn others(&mut self, path: &[String], node: &Node, known: &[&str]) {
        let Value::Map(entries) = &node.value else {
            return;
        };
        for (key, _) in entries {
            if !known.contains(&&*key.text) {
                self.unknown(&[path, std::slice::from_ref(&key.text)].concat());
            }
        }
    }
    /// Reports a key that protected something which nothing protects here.
    pub(crate) fn lost(&mut self, from: &[String], why: &str) {
        self.row(from, None, Verdict::Unsupported, why);
        if let Some(row) = self.report.last_mut() {
            row.protection = true;
        }
        self.lost.push(Lost {
            value: found(self.root, from).cloned(),
            path: dotted(from),
            why: why.to_owned(),
        });
    }
    /// Removes the value at this path of the result.
    pub(crate) fn unset(&mut self, target: &str) {
        take(&mut self.tree, target);
    }
    /// Adds a row to the report.
    pub(crate) fn row(
        &mut self,
        from: &[String],
        target: Option<&str>,
        verdict: Verdict,
        note: &str,
    ) {
        self.report.push(ReportRow {
            from: dotted(from),
            to: target.map(str::to_owned),
            verdict,
            protection: false,
            note: note.to_owned(),
        });
    }
    /// The scalar at a path of the foreign tree.
    pub(crate) fn text(&self, path: &str) -> Option<&'n str> {
        scalar(at(self.root, path)?)
    }
    /// Whether a switch of the foreign tree that protects something is on. One whose value comes from elsewhere
    /// counts as on.
    pub(crate) fn is_on(&self, path: &str) -> bool {
        at(self.root, path).is_some_and(is_on)
    }

    pub(crate) fn done(self) -> (Node, Vec<ReportRow>, Vec<Lost>) {
        (self.tree, self.report, self.lost)
    }
}

const EMPTY: &str = "it is empty";
const NO_VALUE: &str = "it has no value, so the default holds";

/// Switches of which two keys may speak, and that show something.
const SHOWS: [&str; 2] = ["include_subgraph_errors.all", "supergraph.introspection"];

/// A number, or a number of bytes.
fn amount(text: &str) -> Option<u64> {
    match text.parse() {
        Ok(number) => Some(number),
        Err(_) => parse_byte_size(text).ok().map(|size| size.0 as u64),
    }
}

/// Whether a bound is 0, whatever its unit.
fn is_zero(node: &Node) -> bool {
    scalar(node).is_some_and(|text| {
        let unit = text.trim_start_matches(['0', '.']);
        unit.len() < text.len() && unit.trim().chars().all(char::is_alphabetic)
    })
}

/// Whether the node is a section that is switched off, or a switch that is off.
fn is_off(path: &[String], node: &Node) -> bool {
    let switch = match path.last() {
        Some(last) if last == "enabled" => Some(node),
        _ => at(node, "enabled"),
    };
    switch.and_then(scalar) == Some("false")
}

fn matches(pattern: &str, path: &[String]) -> bool {
    let mut parts = pattern.split('.');
    for key in path {
        match parts.next() {
            Some(part) if part == "*" || part == key => {}
            _ => return false,
        }
    }
    !path.is_empty() && parts.next().is_none()
}

/// Whether a rule is about something strictly below a path.
fn is_below(pattern: &str, path: &[String]) -> bool {
    let mut parts = pattern.split('.');
    let begins = path
        .iter()
        .all(|key| parts.next().is_some_and(|part| part == "*" || part == key));
    begins && parts.next().is_some()
}

fn filled(target: &str, pattern: &str, path: &[String]) -> String {
    let mut found = pattern
        .split('.')
        .zip(path)
        .filter(|(part, _)| *part == "*")
        .map(|(_, key)| quoted(key));
    let parts = target.split('.').map(|part| match part {
        "*" => found.next().unwrap_or("*".into()),
        part => part.into(),
    });
    parts.collect::<Vec<_>>().join(".")
}
