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
    /// The same of a bound, of which 0 means that there is none.
    Bound(&'static str, Convert),
    /// Not needed, because of this.
    Drop(&'static str),
    /// Unsupported, because of this.
    No(&'static str),
    /// Something of its own.
    Call(fn(&mut Walk<'_>, &[String], &Node)),
    /// A section of which this says whether it is done with as a whole; else its keys have rules of their own.
    Gate(fn(&mut Walk<'_>, &[String], &Node) -> bool),
}

/// The same name here.
pub(crate) const fn keep(path: &'static str) -> Rule {
    to(path, path)
}
/// Another name here.
pub(crate) const fn to(from: &'static str, target: &'static str) -> Rule {
    with(from, target, super::convert::same)
}
/// Another form, too.
pub(crate) const fn with(from: &'static str, target: &'static str, convert: Convert) -> Rule {
    noted(from, target, convert, "")
}
/// With something to say about it.
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
/// A bound by another name, unless it is 0.
pub(crate) const fn bound(from: &'static str, target: &'static str, convert: Convert) -> Rule {
    Rule {
        from,
        action: Action::Bound(target, convert),
    }
}
/// Not needed here.
pub(crate) const fn unneeded(from: &'static str, why: &'static str) -> Rule {
    Rule {
        from,
        action: Action::Drop(why),
    }
}
/// Nothing like it here.
pub(crate) const fn no(from: &'static str, why: &'static str) -> Rule {
    Rule {
        from,
        action: Action::No(why),
    }
}
/// Something of its own.
pub(crate) const fn call(from: &'static str, action: fn(&mut Walk<'_>, &[String], &Node)) -> Rule {
    Rule {
        from,
        action: Action::Call(action),
    }
}

/// A section that may be off as a whole.
pub(crate) const fn gate(
    from: &'static str,
    is_done: fn(&mut Walk<'_>, &[String], &Node) -> bool,
) -> Rule {
    Rule {
        from,
        action: Action::Gate(is_done),
    }
}
/// Says of a section that is plainly off that it is not needed: for [`gate`].
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

    /// Names what no line is about, neither about it nor about what is above or below it.
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

    /// Writes a value and says so.
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
    /// Two keys of theirs may be one here. If they say different things, the smaller bound holds, and what is shown to
    /// nobody; of anything else what comes last.
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
    /// The same by keys that may have dots in them.
    pub(crate) fn put_at(&mut self, from: &[String], target: &[&str], value: Node) {
        let verdict = if from == target {
            Verdict::Kept
        } else {
            Verdict::Renamed
        };
        set_path(&mut self.tree, target.iter().copied(), value);
        self.row(from, Some(&dotted(target)), verdict, "");
    }
    /// Appends an item to a list and says so.
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
    /// Says something more about the last line of the report.
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
    /// Writes what the other gateway does without being told, unless the file said something else.
    pub(crate) fn implied(&mut self, target: &str, value: &str, why: &str) {
        if get_mut(&mut self.tree, target).is_some() {
            return;
        }
        set(&mut self.tree, target, plain(value));
        self.row(&[], Some(target), Verdict::Added, why);
    }
    /// The same for a list of texts.
    pub(crate) fn implied_list(&mut self, target: &str, values: &[&str], why: &str) {
        if get_mut(&mut self.tree, target).is_none() {
            let items = values.iter().map(|value| text(*value)).collect();
            set(&mut self.tree, target, list(items));
            self.row(&[], Some(target), Verdict::Added, why);
        }
    }
    /// Appends an item to a list that the file did not ask for.
    pub(crate) fn implied_item(&mut self, target: &str, value: Node, why: &str) {
        self.push(&[], target, value, false);
        if let Some(row) = self.report.last_mut() {
            row.verdict = Verdict::Added;
            why.clone_into(&mut row.note);
        }
    }
    /// Whether something was written there.
    pub(crate) fn has(&mut self, target: &str) -> bool {
        get_mut(&mut self.tree, target).is_some()
    }
    /// Whether that is written there.
    pub(crate) fn says(&mut self, target: &str, value: &Node) -> bool {
        let there = get_mut(&mut self.tree, target).map(|node| super::write::flow(node));
        there == Some(super::write::flow(value))
    }
    /// A value that goes to this path, or the reason why it cannot.
    pub(crate) fn try_put(&mut self, from: &[String], target: &str, value: Result<Node, String>) {
        match value {
            Ok(value) => self.put(from, target, value, ""),
            Err(why) => self.unsupported(from, &why),
        }
    }
    /// A bound, which is none here where it is none there.
    pub(crate) fn bound(&mut self, from: &[String], target: &str, node: &Node, convert: Convert) {
        if is_zero(node) {
            let why = "0 means none there; the default here holds";
            return self.row(from, None, Verdict::Unsupported, why);
        }
        self.try_put(from, target, convert(self.format, node));
    }
    /// A key that nothing needs here.
    pub(crate) fn not_needed(&mut self, from: &[String], why: &str) {
        self.row(from, None, Verdict::NotNeeded, why);
    }
    /// A key that nothing here answers to.
    pub(crate) fn unsupported(&mut self, from: &[String], why: &str) {
        if protections::holds(self.format, from) {
            self.lost(from, why)
        } else {
            self.row(from, None, Verdict::Unsupported, why)
        }
    }
    /// A key that nobody knows. It may have protected something, unless it is about what is told of requests.
    pub(crate) fn unknown(&mut self, from: &[String]) {
        const WHY: &str = "this key is not known to the migration";
        if protections::may_hold(self.format, from) {
            self.lost(from, WHY);
        } else {
            self.row(from, None, Verdict::Unsupported, WHY);
        }
    }
    /// Names the keys of a mapping that are none of these, so that none is swallowed.
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
    /// A key that protected something which nothing protects here.
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
    /// Takes back what was written there.
    pub(crate) fn unset(&mut self, target: &str) {
        take(&mut self.tree, target);
    }
    /// A line of the report.
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

/// Whether it is a section that its switch says is off, or that switch.
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
