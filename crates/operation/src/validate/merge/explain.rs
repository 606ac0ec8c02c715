//! Conflicts in the words and the order that clients know.
//!
//! The reference implementation compares pairs: the fields of a selection set with each other, with those of every
//! fragment it spreads, and those of the fragments with each other, each pair of fragments once per document. Its
//! messages follow from that order, so this does the same, but only for documents that are invalid anyway, and within
//! [`super::EXPLAIN_STEPS_MAX`].
//!
//! Chains of fragments are followed with explicit stacks; recursion happens only when the sub-selections of two
//! fields are compared, and stops at [`DEPTH_MAX`].

use ogive_base::{FastMap, Span};
use ogive_syntax::ast::SelectionSet;

use super::{
    super::{DEPTH_MAX, context::Context},
    Conflict, EXPLAIN_STEPS_MAX,
    table::Table,
};

/// Length at which a reason is cut off.
const REASON_LEN_MAX: usize = 1000;

/// Most places named on each side of a conflict.
const PLACES_MAX: usize = 20;

/// Two fields that conflict, with everything below them that does.
struct Found {
    response: u32,
    reason: Reason,
    a: Vec<u32>,
    b: Vec<u32>,
}

enum Reason {
    Text(String),
    Below(Vec<(u32, Reason)>),
}

/// The fields of one selection set by response name, in order of first appearance.
#[derive(Default)]
struct Groups {
    order: Vec<Vec<u32>>,
    index: FastMap<u32, usize>,
}

pub(super) struct Explain<'a> {
    table: Table<'a>,
    /// Sets by the place of their opening brace.
    by_place: FastMap<u32, u32>,
    groups: FastMap<u32, std::rc::Rc<Groups>>,
    /// Pairs of fragments compared before; `false` if also for fields that can meet.
    fragments: FastMap<(u32, u32), bool>,
    /// Selection sets compared with fragments before, likewise.
    fields: FastMap<(u32, u32), bool>,
    steps: u32,
    reported: bool,
}

impl<'a> Explain<'a> {
    pub(super) fn new(table: Table<'a>) -> Self {
        Explain {
            by_place: table.places.iter().copied().zip(0..).collect(),
            table,
            groups: FastMap::default(),
            fragments: FastMap::default(),
            fields: FastMap::default(),
            steps: 0,
            reported: false,
        }
    }

    pub(super) fn has_reported(&self) -> bool {
        self.reported
    }

    /// Reports the conflicts within one selection set.
    pub(super) fn selection_set(&mut self, cx: &mut Context<'a>, set: &SelectionSet) {
        let Some(set) = self.by_place.get(&set.span.start).copied() else {
            return;
        };
        let mut found = Vec::new();
        let groups = self.groups(set);
        // More than could be reported are not looked for.
        let most = (cx.limits.errors_max as usize + 1).saturating_sub(cx.out.len());
        for rows in &groups.order {
            for (i, a) in rows.iter().enumerate() {
                for b in &rows[i + 1..] {
                    if found.len() >= most || self.steps > EXPLAIN_STEPS_MAX {
                        break;
                    }
                    found.extend(self.pair(cx, false, *a, *b, 0));
                }
                if found.len() >= most || self.steps > EXPLAIN_STEPS_MAX {
                    break;
                }
            }
        }
        let spreads = self.table.sets[set as usize].spreads.clone();
        for (i, fragment) in spreads.iter().enumerate() {
            self.fields_and_fragment(cx, &mut found, false, set, *fragment, 0);
            for other in &spreads[i + 1..] {
                self.two_fragments(cx, &mut found, false, *fragment, *other, 0);
            }
        }
        for conflict in found {
            self.reported = true;
            let places: Vec<Span> = self.spans(conflict.a.iter().chain(&conflict.b));
            cx.report(&places, |cx| {
                let name = self.response(cx, conflict.a[0]);
                format!(
                    "Fields \"{name}\" conflict because {}. Use different aliases on the fields to fetch both if this was intentional.",
                    self.words(cx, &conflict.reason)
                )
            });
        }
    }

    /// Reports one pair without looking for others.
    pub(super) fn report_plainly(&self, cx: &mut Context<'a>, conflict: Conflict) {
        let Conflict { a, b } = conflict;
        cx.report(&self.spans([a, b].iter()), |cx| {
            let name = self.response(cx, a);
            let reason = self
                .call_conflict(cx, a, b)
                .filter(|_| self.can_meet(a, b))
                .or_else(|| self.shape_conflict(cx, a, b))
                .unwrap_or_default();
            format!(
                "Fields \"{name}\" conflict because {reason}. Use different aliases on the fields to fetch both if this was intentional."
            )
        });
    }

    fn spans<'r>(&self, rows: impl Iterator<Item = &'r u32>) -> Vec<Span> {
        rows.map(|row| self.table.row(*row).field.span).collect()
    }

    fn response(&self, cx: &Context<'a>, row: u32) -> &'a str {
        cx.text(self.table.row(row).field.response_key())
    }

    /// The reason in words, cut off at [`REASON_LEN_MAX`].
    fn words(&self, cx: &Context<'a>, reason: &Reason) -> String {
        let mut out = String::new();
        self.write_words(cx, reason, &mut out);
        if out.len() > REASON_LEN_MAX {
            // Names and type names are ASCII.
            out.truncate(REASON_LEN_MAX);
            out.push_str("...");
        }
        out
    }

    fn write_words(&self, cx: &Context<'a>, reason: &Reason, out: &mut String) {
        match reason {
            Reason::Text(text) => out.push_str(text),
            Reason::Below(reasons) => {
                for (i, (row, reason)) in reasons.iter().enumerate() {
                    if out.len() > REASON_LEN_MAX {
                        return;
                    }
                    if i > 0 {
                        out.push_str(" and ");
                    }
                    out.push_str("subfields \"");
                    out.push_str(self.response(cx, *row));
                    out.push_str("\" conflict because ");
                    self.write_words(cx, reason, out);
                }
            }
        }
    }

    fn groups(&mut self, set: u32) -> std::rc::Rc<Groups> {
        let table = &self.table;
        let made = self.groups.entry(set).or_insert_with(|| {
            let mut groups = Groups::default();
            for row in table.sets[set as usize].rows.clone() {
                let response = table.rows[row as usize].response;
                let at = *groups.index.entry(response).or_insert_with(|| {
                    groups.order.push(Vec::new());
                    groups.order.len() - 1
                });
                groups.order[at].push(row);
            }
            std::rc::Rc::new(groups)
        });
        made.clone()
    }

    /// Counts a step; `false` when there are none left.
    fn step(&mut self) -> bool {
        self.steps = self.steps.saturating_add(1);
        self.steps <= EXPLAIN_STEPS_MAX
    }

    fn can_meet(&self, a: u32, b: u32) -> bool {
        let (a, b) = (self.table.row(a), self.table.row(b));
        a.parent == b.parent || a.object.is_none() || b.object.is_none()
    }

    fn call_conflict(&self, cx: &Context<'a>, a: u32, b: u32) -> Option<String> {
        let (a, b) = (self.table.row(a), self.table.row(b));
        if a.call.name != b.call.name {
            let (a, b) = (cx.text(a.field.name), cx.text(b.field.name));
            return Some(format!("\"{a}\" and \"{b}\" are different fields"));
        }
        if a.call.arguments != b.call.arguments {
            return Some("they have differing arguments".to_owned());
        }
        (a.call != b.call).then(|| "they have differing stream directives".to_owned())
    }

    fn shape_conflict(&self, cx: &Context<'a>, a: u32, b: u32) -> Option<String> {
        let (a, b) = (self.table.row(a), self.table.row(b));
        (a.shape? != b.shape?).then(|| {
            let (a, b) = (cx.display(a.ty?), cx.display(b.ty?));
            Some(format!("they return conflicting types \"{a}\" and \"{b}\""))
        })?
    }

    /// Compares two fields of one response name. `apart`: they are below fields that never meet.
    fn pair(&mut self, cx: &Context<'a>, apart: bool, a: u32, b: u32, depth: u32) -> Option<Found> {
        if !self.step() || depth > DEPTH_MAX {
            return None;
        }
        let apart = apart || !self.can_meet(a, b);
        let text = if apart {
            None
        } else {
            self.call_conflict(cx, a, b)
        };
        let text = text.or_else(|| self.shape_conflict(cx, a, b));
        let (row_a, row_b) = (self.table.row(a), self.table.row(b));
        if let Some(text) = text {
            return Some(Found {
                response: a,
                reason: Reason::Text(text),
                a: vec![a],
                b: vec![b],
            });
        }
        let below = self.sub_selections(cx, apart, row_a.set?, row_b.set?, depth + 1);
        if below.is_empty() {
            return None;
        }
        let mut found = Found {
            response: a,
            reason: Reason::Below(Vec::new()),
            a: vec![a],
            b: vec![b],
        };
        let mut reasons = Vec::new();
        for conflict in below {
            extend(&mut found.a, &conflict.a);
            extend(&mut found.b, &conflict.b);
            reasons.push((conflict.response, conflict.reason));
        }
        found.reason = Reason::Below(reasons);
        Some(found)
    }

    fn sub_selections(
        &mut self,
        cx: &Context<'a>,
        apart: bool,
        a: u32,
        b: u32,
        depth: u32,
    ) -> Vec<Found> {
        let mut found = Vec::new();
        self.between(cx, &mut found, apart, a, b, depth);
        let spreads_a = self.table.sets[a as usize].spreads.clone();
        let spreads_b = self.table.sets[b as usize].spreads.clone();
        for fragment in &spreads_b {
            self.fields_and_fragment(cx, &mut found, apart, a, *fragment, depth);
        }
        for fragment in &spreads_a {
            self.fields_and_fragment(cx, &mut found, apart, b, *fragment, depth);
        }
        for fragment_a in &spreads_a {
            for fragment_b in &spreads_b {
                self.two_fragments(cx, &mut found, apart, *fragment_a, *fragment_b, depth);
            }
        }
        found
    }

    /// Compares the fields written in two selection sets.
    fn between(
        &mut self,
        cx: &Context<'a>,
        found: &mut Vec<Found>,
        apart: bool,
        a: u32,
        b: u32,
        depth: u32,
    ) {
        let (groups_a, groups_b) = (self.groups(a), self.groups(b));
        for rows_a in &groups_a.order {
            let response = self.table.row(rows_a[0]).response;
            let Some(at) = groups_b.index.get(&response) else {
                continue;
            };
            for a in rows_a {
                for b in &groups_b.order[*at] {
                    found.extend(self.pair(cx, apart, *a, *b, depth));
                }
            }
        }
    }

    /// Compares the fields of a selection set with those of a fragment and of all it spreads.
    fn fields_and_fragment(
        &mut self,
        cx: &Context<'a>,
        found: &mut Vec<Found>,
        apart: bool,
        set: u32,
        fragment: u32,
        depth: u32,
    ) {
        let mut pending = vec![fragment];
        while let Some(fragment) = pending.pop() {
            if !self.step() {
                return;
            }
            if !note(&mut self.fields, (set, fragment), apart) || set == fragment {
                continue;
            }
            self.between(cx, found, apart, set, fragment, depth);
            pending.extend(self.table.sets[fragment as usize].spreads.iter().rev());
        }
    }

    /// Compares the fields of two fragments and of all they spread.
    fn two_fragments(
        &mut self,
        cx: &Context<'a>,
        found: &mut Vec<Found>,
        apart: bool,
        a: u32,
        b: u32,
        depth: u32,
    ) {
        let mut pending = vec![(a, b)];
        while let Some((a, b)) = pending.pop() {
            if !self.step() {
                return;
            }
            if a == b || !note(&mut self.fragments, (a.min(b), a.max(b)), apart) {
                continue;
            }
            self.between(cx, found, apart, a, b, depth);
            let spreads = |set: u32| self.table.sets[set as usize].spreads.iter().rev();
            pending.extend(spreads(a).map(|inner| (*inner, b)));
            pending.extend(spreads(b).map(|inner| (a, *inner)));
        }
    }
}

/// Adds places up to [`PLACES_MAX`]. Where not all fit, the innermost ones do: they come last.
fn extend(places: &mut Vec<u32>, more: &[u32]) {
    let room = PLACES_MAX.saturating_sub(places.len());
    places.extend(&more[more.len().saturating_sub(room)..]);
}

/// Remembers a comparison; `false` if it was made before. One for fields that can meet covers both kinds.
fn note(made: &mut FastMap<(u32, u32), bool>, pair: (u32, u32), apart: bool) -> bool {
    match made.get_mut(&pair) {
        Some(before) if !*before || apart => false,
        Some(before) => {
            *before = apart;
            true
        }
        None => {
            made.insert(pair, apart);
            true
        }
    }
}
