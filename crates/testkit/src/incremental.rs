//! Answers in parts: put together as clients do, with everything refused that a client could stumble over.

use ogive_execute::incremental::{GroupData, GroupValues, IncrementalForm, Payload};
use serde_json::{Map, Value as Json};

/// An answer that comes in parts.
#[derive(Debug, Default)]
pub struct Assembled {
    /// `data` so far.
    pub data: Json,
    /// All errors so far.
    pub errors: Vec<Json>,
    /// Paths of groups that failed.
    pub failed: Vec<Vec<Json>>,
    /// Groups that were announced and are not complete: number and path.
    pending: Vec<(u32, Vec<Json>)>,
    /// How many groups and lists were announced.
    pub announced: usize,
    /// How many items came later.
    pub items: usize,
    has_next: bool,
}

fn json(bytes: &[u8]) -> Result<Json, String> {
    serde_json::from_slice(bytes).map_err(|e| format!("{e}: {}", String::from_utf8_lossy(bytes)))
}
fn list(bytes: &[u8]) -> Result<Vec<Json>, String> {
    match json(bytes)? {
        Json::Array(items) => Ok(items),
        other => Err(format!("not a list: {other}")),
    }
}

impl Assembled {
    /// Puts all payloads together.
    pub fn of(payloads: &[Payload], form: IncrementalForm) -> Result<Assembled, String> {
        let mut all = Assembled {
            has_next: true,
            ..Assembled::default()
        };
        for (at, payload) in payloads.iter().enumerate() {
            let added = all.add(payload, form);
            added.map_err(|e| format!("payload {at}: {e}\n{payload:?}"))?;
        }
        if all.has_next {
            return Err("there is no last payload".to_owned());
        }
        match all.pending.as_slice() {
            [] => Ok(all),
            pending => Err(format!("never completed: {pending:?}")),
        }
    }

    fn add(&mut self, payload: &Payload, form: IncrementalForm) -> Result<(), String> {
        if !self.has_next {
            return Err("it comes after the last one".to_owned());
        }
        self.has_next = payload.has_next;
        if let Some(initial) = &payload.initial {
            if !self.data.is_null() {
                return Err("it is a second initial response".to_owned());
            }
            if let Some(data) = &initial.data {
                self.data = json(&data.clone().into_bytes())?;
            } else if initial.errors.is_none() || payload.has_next {
                return Err("null without errors, or with something that follows".to_owned());
            }
            self.take_errors(initial.errors.as_deref())?;
        }
        for pending in &payload.pending {
            let path = list(&pending.path)?;
            if self.pending.iter().any(|(id, _)| *id == pending.id) {
                return Err(format!("announced twice: {pending:?}"));
            }
            self.pending.push((pending.id, path));
            self.announced += 1;
        }
        for group in &payload.incremental {
            self.put(group, form)?;
        }
        // Its object may come with the payload that announces it.
        for pending in &payload.pending {
            let place = self.at(&list(&pending.path)?);
            if !place.is_some_and(|place| place.is_object() || place.is_array()) {
                return Err(format!("nothing is at the path of {pending:?}"));
            }
        }
        for completed in &payload.completed {
            let known = self.pending.iter().position(|(id, _)| *id == completed.id);
            let known = known.ok_or_else(|| format!("not pending: {completed:?}"))?;
            let (_, path) = self.pending.remove(known);
            if completed.errors.is_some() {
                self.take_errors(completed.errors.as_deref())?;
                self.failed.push(path);
            }
        }
        let is_empty = payload.completed.is_empty() && payload.incremental.is_empty();
        if payload.initial.is_none() && is_empty {
            return Err("it has nothing".to_owned());
        }
        Ok(())
    }

    fn take_errors(&mut self, errors: Option<&[u8]>) -> Result<(), String> {
        let Some(errors) = errors else { return Ok(()) };
        let errors = list(errors)?;
        if errors.is_empty() {
            return Err("an empty list of errors".to_owned());
        }
        self.errors.extend(errors);
        Ok(())
    }

    fn put(&mut self, group: &GroupData, form: IncrementalForm) -> Result<(), String> {
        let known = self.pending.iter().find(|(id, _)| *id == group.id);
        let (_, start) = known.ok_or("values of a group that is not pending")?;
        let mut path = start.clone();
        if let Some(rest) = &group.sub_path {
            path.extend(list(rest)?);
        }
        let told = list(&group.path)?;
        let data = match &group.data {
            GroupValues::Items(items) => return self.put_items(group, &path, items, form),
            GroupValues::Object(data) => data,
            GroupValues::NoObject | GroupValues::NoItems => {
                let begins = told.starts_with(&path);
                return match form {
                    IncrementalForm::Repeated if begins => Ok(()),
                    _ => Err(format!("no values at {told:?}")),
                };
            }
        };
        if path != told {
            return Err(format!("{path:?} is not {told:?}"));
        }
        self.take_errors(group.errors.as_deref())?;
        let data = json(&data.clone().into_bytes())?;
        let Some(place) = at_mut(&mut self.data, &path) else {
            return Err(format!("there is nothing at {path:?}"));
        };
        let (Json::Object(there), Json::Object(new)) = (place, data) else {
            return Err("no object".to_owned());
        };
        match form {
            IncrementalForm::Distinct => {
                for (key, value) in new {
                    if let Some(before) = there.insert(key, value) {
                        return Err(format!("{before} is sent twice"));
                    }
                }
                Ok(())
            }
            IncrementalForm::Repeated => merge(there, new),
        }
    }

    fn put_items(
        &mut self,
        group: &GroupData,
        path: &[Json],
        items: &[ogive_execute::ResponseBody],
        form: IncrementalForm,
    ) -> Result<(), String> {
        self.take_errors(group.errors.as_deref())?;
        let told = list(&group.path)?;
        let Some(Json::Array(there)) = at_mut(&mut self.data, path) else {
            return Err(format!("no list is at {path:?}"));
        };
        let start = match (form, told.split_last()) {
            (IncrementalForm::Distinct, _) if told == path => there.len(),
            (IncrementalForm::Repeated, Some((at, of))) if of == path => {
                at.as_u64().ok_or("no index")? as usize
            }
            _ => return Err(format!("{path:?} is not {told:?}")),
        };
        if items.is_empty() {
            return Err("no items".to_owned());
        }
        for (at, item) in (start..).zip(items) {
            let item = json(&item.clone().into_bytes())?;
            self.items += 1;
            let len = there.len();
            match there.get_mut(at) {
                Some(before) => merge_value(before, item)?,
                None if at == len => there.push(item),
                None => return Err(format!("item {at} of {len}")),
            }
        }
        Ok(())
    }

    fn at(&self, path: &[Json]) -> Option<&Json> {
        let mut value = &self.data;
        for step in path {
            value = match step {
                Json::String(key) => value.get(key)?,
                step => value.get(step.as_u64()? as usize)?,
            };
        }
        Some(value)
    }
}

fn at_mut<'j>(mut value: &'j mut Json, path: &[Json]) -> Option<&'j mut Json> {
    for step in path {
        value = match step {
            Json::String(key) => value.get_mut(key)?,
            step => value.get_mut(step.as_u64()? as usize)?,
        };
    }
    Some(value)
}

/// What is there must not change, apart from what null bubbles to.
fn merge(there: &mut Map<String, Json>, new: Map<String, Json>) -> Result<(), String> {
    for (key, value) in new {
        match there.get_mut(&key) {
            None => {
                there.insert(key, value);
            }
            Some(before) => merge_value(before, value)?,
        }
    }
    Ok(())
}
fn merge_value(there: &mut Json, new: Json) -> Result<(), String> {
    match (there, new) {
        (Json::Object(there), Json::Object(new)) => merge(there, new),
        // Of a list that is streamed, each group begins anew.
        (Json::Array(there), Json::Array(new)) => {
            for (at, new) in new.into_iter().enumerate() {
                match there.get_mut(at) {
                    Some(there) => merge_value(there, new)?,
                    None => there.push(new),
                }
            }
            Ok(())
        }
        // One of them has less of it, and that is where null could not stay.
        (_, Json::Null) => Ok(()),
        (there @ Json::Null, new) => {
            *there = new;
            Ok(())
        }
        (there, new) if *there == new => Ok(()),
        (there, new) => Err(format!("{there} becomes {new}")),
    }
}

/// Whether an answer in parts is the whole one, given the groups that failed: null is null in both, but in parts it takes no
/// more with it than the group that it is in.
pub fn agrees(whole: &Json, parts: &Assembled) -> Result<(), String> {
    let mut path = Vec::new();
    same(whole, parts, &parts.data, &mut path)
}

fn same(whole: &Json, parts: &Assembled, part: &Json, path: &mut Vec<Json>) -> Result<(), String> {
    match (whole, part) {
        // What failed in one part takes nothing of others with it. In the form of 2022 that may be inside of a group that does
        // not fail, while another group has the same object without what failed.
        (Json::Null, _) if part.is_null() || !parts.errors.is_empty() => Ok(()),
        (Json::Object(all), Json::Object(some)) => {
            if let Some(key) = some.keys().find(|key| !all.contains_key(*key)) {
                return Err(format!("{key} is too much at {path:?}"));
            }
            for (key, value) in all {
                path.push(Json::from(key.as_str()));
                match some.get(key) {
                    Some(other) => same(value, parts, other, path)?,
                    None if parts.failed.iter().any(|failed| path.starts_with(failed)) => {}
                    None => return Err(format!("nothing is at {path:?}")),
                }
                path.pop();
            }
            Ok(())
        }
        // The rest of a list that failed.
        (Json::Array(all), Json::Array(some))
            if all.len() == some.len()
                || all.len() > some.len() && parts.failed.iter().any(|failed| failed == path) =>
        {
            for (at, (value, other)) in all.iter().zip(some).enumerate() {
                path.push(Json::from(at));
                same(value, parts, other, path)?;
                path.pop();
            }
            Ok(())
        }
        (all, some) if all == some => Ok(()),
        (all, some) => Err(format!("{all} is {some} at {path:?}")),
    }
}
