//! The text of a request: its parts under one header with the variables in use.

use ogive_base::{FastMap, Symbol};
use ogive_operation::CondId;
use ogive_plan::{Gate, Lookup, OperationKind, Segment, VariableUse};

use crate::emit::{
    Emitter,
    lookups::LookupList,
    plan_cond, print,
    selection::{Chunk, Piece},
    tables::Positions,
};

/// A top-level part of a request: the root selection, or one `_entities` field.
pub(crate) struct Part {
    /// What the gates of its text name; none of a root selection that is all of a request.
    pub(crate) lookup: Option<u16>,
    pub(crate) pieces: Vec<Piece>,
}

impl Emitter<'_> {
    /// One `_entities` field over a list of representations; `taken` are response keys of the request's root fields.
    pub(crate) fn lookup_part(
        &mut self,
        index: usize,
        list: LookupList,
        taken: &[Symbol],
    ) -> (Part, Lookup) {
        let tree = self.tree;
        let (mut response_key, variable) = match index {
            0 => ("_entities".to_string(), "representations".to_string()),
            n => (format!("_e{n}"), format!("representations{n}")),
        };
        while taken.iter().any(|t| self.names[*t] == *response_key) {
            response_key.insert(0, '_');
        }
        let variable = self.free_name(variable);
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        if response_key != "_entities" {
            text.push_str(&response_key);
            text.push(':');
        }
        text.push_str("_entities(representations:$");
        text.push_str(&variable);
        text.push_str("){");
        let mut pieces = Vec::with_capacity(2 + 3 * list.selections.len());
        pieces.push(self.selections.text(CondId::TRUE, &text));
        for (ty, question) in &list.selections {
            print::fragment_head(tree.schema().type_name(*ty), &mut text);
            pieces.push(self.selections.text(question.cond, &text));
            pieces.push(Piece {
                cond: CondId::TRUE,
                chunk: Chunk::Selection(question.selection),
            });
            pieces.push(self.selections.close(question.cond));
        }
        pieces.push(self.selections.close(CondId::TRUE));
        self.text = text;
        let part = Part {
            lookup: Some(index as u16),
            pieces,
        };
        let lookup = Lookup {
            response_key: response_key.into(),
            variable: variable.into(),
            targets: list.targets,
        };
        (part, lookup)
    }

    /// A variable name the client does not use.
    pub(super) fn free_name(&self, mut name: String) -> String {
        while self.variables.contains(name.as_str()) {
            name.insert(0, '_');
        }
        name
    }

    /// The whole request: header with the variables in use, then the parts.
    pub(crate) fn assemble(
        &mut self,
        kind: OperationKind,
        parts: Vec<Part>,
        lookups: &[Lookup],
    ) -> (Vec<Segment>, Vec<VariableUse>) {
        let tree = self.tree;
        let mut uses: Vec<(u32, Vec<Gate>)> = Vec::new();
        let mut use_index: FastMap<u32, usize> = FastMap::default();
        let mut body = std::mem::take(&mut self.pool.body);
        for part in parts {
            self.selections
                .write(&part.pieces, |text, cond, variables| {
                    let gate = gate(part.lookup, cond);
                    for variable in variables {
                        let at = *use_index.entry(*variable).or_insert_with(|| {
                            uses.push((*variable, Vec::new()));
                            uses.len() - 1
                        });
                        uses[at].1.push(gate.unwrap_or(Gate {
                            lookup: None,
                            cond: plan_cond(CondId::TRUE),
                        }));
                    }
                    body.push(text, gate.as_slice());
                });
        }
        uses.sort_by_key(|(v, _)| *v);
        let uses: Vec<VariableUse> = uses
            .into_iter()
            .map(|(variable, gates)| VariableUse {
                variable,
                gates: any_of(gates),
            })
            .collect();
        let mut segments = std::mem::take(&mut self.pool.request);
        segments.push(kind.as_str(), &[]);
        let mut headers: Vec<(String, Vec<Gate>)> = lookups
            .iter()
            .enumerate()
            .filter(|(_, l)| !l.is_reentry())
            .map(|(i, l)| {
                let text = ["$", &*l.variable, ":[_Any!]! "].concat();
                let gates = gate(Some(i as u16), CondId::TRUE).into_iter().collect();
                (text, gates)
            })
            .collect();
        headers.extend(self.context_headers(lookups));
        for usage in &uses {
            let variable = &tree.op.variables[usage.variable as usize];
            let ty = tree.schema().display_type(variable.ty);
            let mut text = ["$", &*variable.name, ":", &*ty].concat();
            if let Some(default) = &variable.default {
                text.push('=');
                print::constant(default, &mut text);
            }
            text.push(' ');
            headers.push((text, usage.gates.clone()));
        }
        if !headers.is_empty() {
            let any = if headers.iter().any(|(_, g)| g.is_empty()) {
                Vec::new()
            } else {
                any_of(
                    headers
                        .iter()
                        .flat_map(|(_, g)| g.iter().copied())
                        .collect(),
                )
            };
            segments.push("(", &any);
            let mut escaped = String::new();
            for (text, gates) in headers {
                escaped.clear();
                print::escape(&text, &mut escaped);
                segments.push(&escaped, &gates);
            }
            segments.push(")", &any);
        }
        segments.push("{", &[]);
        segments.append(&mut body);
        segments.push("}", &[]);
        let finished = segments.finish();
        (self.pool.body, self.pool.request) = (body, segments);
        (finished, uses)
    }
}

/// The gate of a piece; `None` if it is always written.
pub(crate) fn gate(lookup: Option<u16>, cond: CondId) -> Option<Gate> {
    (lookup.is_some() || cond != CondId::TRUE).then(|| Gate {
        lookup,
        cond: plan_cond(cond),
    })
}

/// Gates of which any must be open; none if one of them always is.
pub(crate) fn any_of(all: Vec<Gate>) -> Vec<Gate> {
    let mut seen: Positions<(Option<u16>, u32)> = Positions::default();
    let mut out: Vec<Gate> = Vec::new();
    for gate in all {
        if gate.lookup.is_none() && gate.cond == plan_cond(CondId::TRUE) {
            return Vec::new();
        }
        let key = (gate.lookup, gate.cond.0);
        if seen.find(key).is_none() {
            seen.push(key);
            out.push(gate);
        }
    }
    out
}

/// Request text while it is written: neighbours under the same gates are one segment.
#[derive(Default)]
pub(crate) struct Text {
    text: String,
    /// Gates of each segment and where it ends; the last one goes on.
    segments: Vec<(Vec<Gate>, usize)>,
}

impl Text {
    /// Appends text that is escaped already.
    fn push(&mut self, text: &str, gates: &[Gate]) {
        match self.segments.last_mut() {
            Some((of_last, _)) if *of_last == *gates => {}
            last => {
                if let Some((_, end)) = last {
                    *end = self.text.len();
                }
                self.segments.push((gates.to_vec(), 0));
            }
        }
        self.text.push_str(text);
    }
    /// Appends all of `other`, which is empty afterwards.
    fn append(&mut self, other: &mut Text) {
        let mut start = 0;
        let ends = other.segments.len();
        for (at, (gates, end)) in other.segments.drain(..).enumerate() {
            let end = if at + 1 == ends {
                other.text.len()
            } else {
                end
            };
            self.push(&other.text[start..end], &gates);
            start = end;
        }
        other.text.clear();
    }
    /// The segments; it is empty afterwards.
    fn finish(&mut self) -> Vec<Segment> {
        let mut start = 0;
        let ends = self.segments.len();
        let mut out = Vec::with_capacity(ends);
        for (at, (gates, end)) in self.segments.drain(..).enumerate() {
            let end = if at + 1 == ends { self.text.len() } else { end };
            let text = self.text[start..end].into();
            out.push(Segment { text, gates });
            start = end;
        }
        self.text.clear();
        out
    }
}
