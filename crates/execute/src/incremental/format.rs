//! Payloads as JSON, in both forms.
//!
//! | form | initial | later |
//! |---|---|---|
//! | [`IncrementalForm::Distinct`], the current draft | `data`, `errors`, `pending`, `hasNext` | `pending`, `incremental` (`id`, `subPath`, `data` or `items`, `errors`), `completed` (`id`, `errors`), `hasNext` |
//! | [`IncrementalForm::Repeated`], of 2022 | `data`, `errors`, `hasNext` | `incremental` (`path`, `label`, `data` or `items`, `errors`), `hasNext` |

use ogive_json::write_string;

use crate::{
    incremental::{GroupData, GroupValues, IncrementalForm, InitialData, Payload},
    output::ResponseBody,
};

impl Payload {
    /// The payload as a JSON object.
    pub fn to_json(&self, form: IncrementalForm) -> Vec<u8> {
        let mut out = Vec::new();
        if let Some(initial) = &self.initial {
            initial.write(&mut out);
        }
        if form == IncrementalForm::Distinct {
            self.write_pending(&mut out);
        }
        list(
            b"\"incremental\":",
            &self.incremental,
            &mut out,
            |group, out| {
                group.write(form, out);
            },
        );
        if form == IncrementalForm::Distinct {
            list(
                b"\"completed\":",
                &self.completed,
                &mut out,
                |completed, out| {
                    begin(out, b"\"id\":\"");
                    out.extend_from_slice(completed.id.to_string().as_bytes());
                    out.push(b'"');
                    if let Some(errors) = &completed.errors {
                        out.extend_from_slice(b",\"errors\":");
                        out.extend_from_slice(errors);
                    }
                    out.push(b'}');
                },
            );
        }
        member(&mut out, b"\"hasNext\":");
        out.extend_from_slice(if self.has_next { b"true}" } else { b"false}" });
        out
    }

    fn write_pending(&self, out: &mut Vec<u8>) {
        list(b"\"pending\":", &self.pending, out, |pending, out| {
            begin(out, b"\"id\":\"");
            out.extend_from_slice(pending.id.to_string().as_bytes());
            out.extend_from_slice(b"\",\"path\":");
            out.extend_from_slice(&pending.path);
            label(pending.label.as_deref(), out);
            out.push(b'}');
        });
    }
}

impl InitialData {
    /// A whole response as a JSON object, where nothing follows.
    pub fn to_json(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write(&mut out);
        out.push(b'}');
        out
    }
    fn write(&self, out: &mut Vec<u8>) {
        member(out, b"\"data\":");
        body(self.data.as_ref(), out);
        if let Some(errors) = &self.errors {
            out.extend_from_slice(b",\"errors\":");
            out.extend_from_slice(errors);
        }
    }
}

impl GroupData {
    fn write(&self, form: IncrementalForm, out: &mut Vec<u8>) {
        match form {
            IncrementalForm::Distinct => {
                begin(out, b"\"id\":\"");
                out.extend_from_slice(self.id.to_string().as_bytes());
                out.push(b'"');
                if let Some(path) = &self.sub_path {
                    out.extend_from_slice(b",\"subPath\":");
                    out.extend_from_slice(path);
                }
            }
            IncrementalForm::Repeated => {
                begin(out, b"\"path\":");
                out.extend_from_slice(&self.path);
                label(self.label.as_deref(), out);
            }
        }
        match &self.data {
            GroupValues::Object(data) => {
                out.extend_from_slice(b",\"data\":");
                body(Some(data), out);
            }
            GroupValues::NoObject => out.extend_from_slice(b",\"data\":null"),
            GroupValues::NoItems => out.extend_from_slice(b",\"items\":null"),
            GroupValues::Items(items) => {
                out.extend_from_slice(b",\"items\":[");
                for (at, item) in items.iter().enumerate() {
                    if at > 0 {
                        out.push(b',');
                    }
                    body(Some(item), out);
                }
                out.push(b']');
            }
        }
        if let Some(errors) = &self.errors {
            out.extend_from_slice(b",\"errors\":");
            out.extend_from_slice(errors);
        }
        out.push(b'}');
    }
}

/// Begins an object with a member.
fn begin(out: &mut Vec<u8>, key: &[u8]) {
    out.push(b'{');
    out.extend_from_slice(key);
}
/// Begins a member of the outermost object.
fn member(out: &mut Vec<u8>, key: &[u8]) {
    out.push(if out.is_empty() { b'{' } else { b',' });
    out.extend_from_slice(key);
}
/// Writes a member that is a list, unless there is nothing in it.
fn list<T>(key: &[u8], items: &[T], out: &mut Vec<u8>, write: impl Fn(&T, &mut Vec<u8>)) {
    if items.is_empty() {
        return;
    }
    member(out, key);
    for (at, item) in items.iter().enumerate() {
        out.push(if at == 0 { b'[' } else { b',' });
        write(item, out);
    }
    out.push(b']');
}
fn label(label: Option<&str>, out: &mut Vec<u8>) {
    if let Some(label) = label {
        out.extend_from_slice(b",\"label\":");
        write_string(out, label);
    }
}
fn body(body: Option<&ResponseBody>, out: &mut Vec<u8>) {
    let Some(body) = body else {
        return out.extend_from_slice(b"null");
    };
    out.reserve(body.len() + 64);
    for piece in body.segments() {
        out.extend_from_slice(&piece);
    }
}
