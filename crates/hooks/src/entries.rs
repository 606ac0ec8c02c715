//! The context of a request: named JSON values that the gateway and the coprocessor leave for later stages.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use serde_json::value::RawValue;

use crate::error::CoprocessorError;

/// Most bytes of names and values of one request's context.
pub const CONTEXT_BYTES_MAX: usize = 1 << 20;

/// The claims of a token that was judged.
pub const JWT_CLAIMS: &str = "apollo::authentication::jwt_claims";
/// By policy, whether it holds; null while nobody has decided.
pub const REQUIRED_POLICIES: &str = "apollo::authorization::required_policies";
/// The name of the operation.
pub const OPERATION_NAME: &str = "apollo::supergraph::operation_name";
/// Its kind.
pub const OPERATION_KIND: &str = "apollo::supergraph::operation_kind";
/// What the operation is estimated to cost.
pub const COST_ESTIMATED: &str = "apollo::demand_control::estimated_cost";
/// What its answer did cost.
pub const COST_ACTUAL: &str = "apollo::demand_control::actual_cost";
/// Which limit of costs it exceeds, as a code; `COST_OK` if none.
pub const COST_RESULT: &str = "apollo::demand_control::result";
/// How costs are counted.
pub const COST_STRATEGY: &str = "apollo::demand_control::strategy";
/// The name of the client.
pub const CLIENT_NAME: &str = "apollo::telemetry::client_name";
/// The version of the client.
pub const CLIENT_VERSION: &str = "apollo::telemetry::client_version";

/// Names, and what they were before version 2.0 of the router that the protocol is from.
const DEPRECATED: [(&str, &str); 10] = [
    (JWT_CLAIMS, "apollo_authentication::JWT::claims"),
    (
        REQUIRED_POLICIES,
        "apollo_authorization::policies::required",
    ),
    (OPERATION_NAME, "operation_name"),
    (OPERATION_KIND, "operation_kind"),
    (COST_ESTIMATED, "cost.estimated"),
    (COST_ACTUAL, "cost.actual"),
    (COST_RESULT, "cost.result"),
    (COST_STRATEGY, "cost.strategy"),
    (CLIENT_NAME, "apollo_telemetry::client_name"),
    (CLIENT_VERSION, "apollo_telemetry::client_version"),
];

/// Entries that belong to one operation, also where several come in one request.
pub const OF_OPERATION: [&str; 7] = [
    OPERATION_NAME,
    OPERATION_KIND,
    REQUIRED_POLICIES,
    COST_ESTIMATED,
    COST_ACTUAL,
    COST_RESULT,
    COST_STRATEGY,
];

/// Which entries a stage is told.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum ContextSelection {
    /// None.
    #[default]
    Nothing,
    /// All.
    All,
    /// All, under their names from before version 2.0.
    Deprecated,
    /// Those of these names.
    Selective(Vec<Box<str>>),
}

impl ContextSelection {
    /// What an entry is called towards the coprocessor; `None` if it is not told.
    pub fn shown<'n>(&self, name: &'n str) -> Option<&'n str> {
        match self {
            ContextSelection::Nothing => None,
            ContextSelection::All => Some(name),
            ContextSelection::Deprecated => {
                let old = DEPRECATED.iter().find(|(new, _)| *new == name);
                Some(old.map_or(name, |(_, old)| old))
            }
            ContextSelection::Selective(names) => {
                names.iter().any(|known| **known == *name).then_some(name)
            }
        }
    }
    /// What the coprocessor calls an entry, as the gateway knows it.
    pub fn known<'n>(&self, name: &'n str) -> &'n str {
        let new = DEPRECATED.iter().find(|(_, old)| *old == name);
        match (self, new) {
            (ContextSelection::Deprecated, Some((new, _))) => new,
            _ => name,
        }
    }
}

type Entries = BTreeMap<Arc<str>, Arc<RawValue>>;

/// The entries of one request. A copy shares them until one of both is changed.
#[derive(Clone, Debug, Default)]
pub struct ContextEntries {
    /// `None` while there are none: nothing is allocated for them.
    entries: Option<Arc<Entries>>,
    bytes: usize,
}

impl ContextEntries {
    fn find(&self, name: &str) -> Option<&Arc<RawValue>> {
        self.entries.as_ref()?.get(name)
    }
    /// The value of an entry, as it is written.
    pub fn get(&self, name: &str) -> Option<&RawValue> {
        self.find(name).map(|value| &**value)
    }
    /// Whether an entry is there and is the very value that it was in `before`: it was not written since.
    pub fn is_untouched(&self, name: &str, before: &ContextEntries) -> bool {
        let (now, before) = (self.find(name), before.find(name));
        now.zip(before)
            .is_some_and(|(now, before)| Arc::ptr_eq(now, before))
    }
    /// Sets an entry. What would be too much altogether is refused.
    pub fn set(&mut self, name: &str, value: Box<RawValue>) -> Result<(), CoprocessorError> {
        let before = self
            .find(name)
            .map_or(0, |old| name.len() + old.get().len());
        let bytes = self.bytes - before + name.len() + value.get().len();
        if bytes > CONTEXT_BYTES_MAX {
            return Err(CoprocessorError::Context(CONTEXT_BYTES_MAX));
        }
        self.bytes = bytes;
        Arc::make_mut(self.entries.get_or_insert_default()).insert(name.into(), value.into());
        Ok(())
    }
    /// Removes an entry.
    pub fn remove(&mut self, name: &str) {
        // Looked for first: what is shared is copied only to be changed.
        if self.find(name).is_some()
            && let Some(entries) = &mut self.entries
            && let Some(value) = Arc::make_mut(entries).remove(name)
        {
            self.bytes -= name.len() + value.get().len();
        }
    }
    /// The entries that belong to one operation, as its own begin.
    pub fn of_operation(&self) -> ContextEntries {
        let mut own = ContextEntries::default();
        own.take_operation(self);
        own
    }
    /// Replaces the entries that belong to one operation by those of `own`.
    pub fn take_operation(&mut self, own: &ContextEntries) {
        for name in OF_OPERATION {
            match own.get(name) {
                // There is always room: these were within the same limit.
                Some(value) => drop(self.set(name, value.to_owned())),
                None => self.remove(name),
            }
        }
    }
    /// Takes over what a coprocessor says, all of it or nothing: a null removes an entry, what is not mentioned stays.
    pub fn merge(
        &mut self,
        selection: &ContextSelection,
        said: BTreeMap<String, Box<RawValue>>,
    ) -> Result<(), CoprocessorError> {
        self.check(selection, &said)?;
        // As it is checked: an entry that is said twice counts once.
        let said = said
            .into_iter()
            .map(|(name, value)| (Box::from(selection.known(&name)), value));
        let said: BTreeMap<Box<str>, Box<RawValue>> = said.collect();
        // What goes makes room for what comes, in whichever order they are said.
        for name in said.keys() {
            self.remove(name);
        }
        for (name, value) in said {
            if value.get() != "null" {
                self.set(&name, value)?;
            }
        }
        Ok(())
    }
    /// Bytes of all names and values.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
    /// Whether there is room for what a coprocessor says.
    pub fn check(
        &self,
        selection: &ContextSelection,
        said: &BTreeMap<String, Box<RawValue>>,
    ) -> Result<(), CoprocessorError> {
        let kept = |name: &str| self.find(name).map_or(0, |v| name.len() + v.get().len());
        // An entry may be said twice, as it is and as it was called once: the second one counts.
        let said = said
            .iter()
            .map(|(name, value)| (selection.known(name), value.get()));
        let said: BTreeMap<&str, &str> = said.collect();
        let mut bytes = self.bytes;
        for (name, value) in said {
            bytes -= kept(name);
            if value != "null" {
                bytes += name.len() + value.len();
            }
        }
        if bytes > CONTEXT_BYTES_MAX {
            return Err(CoprocessorError::Context(CONTEXT_BYTES_MAX));
        }
        Ok(())
    }
    /// The names and values of all entries.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &RawValue)> {
        let entries = self.entries.iter().flat_map(|entries| entries.iter());
        entries.map(|(name, value)| (&**name, &**value))
    }
}

/// Adds to what a coprocessor says that entries which it was told and leaves out are removed.
pub fn remove_left_out(
    selection: &ContextSelection,
    told: &[Box<str>],
    said: &mut BTreeMap<String, Box<RawValue>>,
) {
    let mentioned: BTreeSet<&str> = said.keys().map(|name| selection.known(name)).collect();
    let left_out = told.iter().filter(|name| !mentioned.contains(&***name));
    let removed = left_out.map(|name| {
        let shown = selection.shown(name).unwrap_or(name);
        (shown.to_owned(), RawValue::NULL.to_owned())
    });
    let removed: Vec<_> = removed.collect();
    said.extend(removed);
}

/// The value of an entry as a stage sees it. At an operation (`own`), entries that belong to one operation are those of `own`
/// alone: what was removed there is not there, whatever the request has.
pub fn visible<'e>(
    shared: &'e ContextEntries,
    own: Option<&'e ContextEntries>,
    name: &str,
) -> Option<&'e RawValue> {
    match own {
        Some(own) if OF_OPERATION.contains(&name) => own.get(name),
        _ => shared.get(name),
    }
}

/// The entries that one of this name is in, by the rule of [`visible`].
pub fn home<'e>(
    shared: &'e mut ContextEntries,
    own: Option<&'e mut ContextEntries>,
    name: &str,
) -> &'e mut ContextEntries {
    match own {
        Some(own) if OF_OPERATION.contains(&name) => own,
        _ => shared,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::MessageContext;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    fn written(entries: &ContextEntries, selection: &ContextSelection) -> String {
        let mut out = Vec::new();
        let own = None;
        MessageContext {
            entries,
            own,
            selection,
        }
        .write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn entries_are_told_as_selected_and_values_keep_every_digit() {
        let mut entries = ContextEntries::default();
        entries.set("a", raw("12345678901234567890.10")).unwrap();
        entries.set(JWT_CLAIMS, raw("{\"z\":1,\"a\":2}")).unwrap();
        let all = "{\"entries\":{\"a\":12345678901234567890.10,\"apollo::authentication::jwt_claims\":{\"z\":1,\"a\":2}}}";
        assert_eq!(written(&entries, &ContextSelection::All), all);
        let old = "{\"entries\":{\"a\":12345678901234567890.10,\"apollo_authentication::JWT::claims\":{\"z\":1,\"a\":2}}}";
        assert_eq!(written(&entries, &ContextSelection::Deprecated), old);
        let some = ContextSelection::Selective(vec!["a".into(), "b".into()]);
        assert_eq!(
            written(&entries, &some),
            "{\"entries\":{\"a\":12345678901234567890.10}}"
        );
        assert_eq!(
            written(&entries, &ContextSelection::Nothing),
            "{\"entries\":{}}"
        );
    }

    #[test]
    fn nulls_remove_and_what_is_not_mentioned_stays() {
        let mut entries = ContextEntries::default();
        for name in ["a", "b", JWT_CLAIMS] {
            entries.set(name, raw("1")).unwrap();
        }
        let said = [
            ("a", "null"),
            ("c", "3"),
            ("apollo_authentication::JWT::claims", "2"),
        ];
        let said = said.map(|(name, value)| (name.to_owned(), raw(value)));
        entries
            .merge(&ContextSelection::Deprecated, said.into())
            .unwrap();
        assert!(entries.get("a").is_none());
        assert_eq!(entries.get("b").unwrap().get(), "1");
        assert_eq!(entries.get("c").unwrap().get(), "3");
        assert_eq!(entries.get(JWT_CLAIMS).unwrap().get(), "2");
    }

    #[test]
    fn a_context_has_a_limit_and_what_is_removed_makes_room() {
        let mut entries = ContextEntries::default();
        let large = raw(&format!("\"{}\"", "x".repeat(CONTEXT_BYTES_MAX / 2)));
        entries.set("a", large.clone()).unwrap();
        let refused = entries.set("b", large.clone()).unwrap_err();
        assert_eq!(refused, CoprocessorError::Context(CONTEXT_BYTES_MAX));
        entries.set("a", large.clone()).unwrap();
        let said = [
            ("a", raw("null")),
            ("b", large.clone()),
            ("c", large.clone()),
        ];
        let said = said.map(|(name, value)| (name.to_owned(), value)).into();
        let refused = entries.merge(&ContextSelection::All, said).unwrap_err();
        assert_eq!(refused, CoprocessorError::Context(CONTEXT_BYTES_MAX));
        assert!(
            entries.get("a").is_some(),
            "nothing of what is too much is taken over"
        );
        entries.remove("a");
        entries.set("b", large).unwrap();
    }

    #[test]
    fn all_or_nothing_is_taken_over_in_whichever_order_it_is_said() {
        let of = |bytes: usize| raw(&format!("\"{}\"", "x".repeat(bytes)));
        let said = |all: &[(&str, Box<RawValue>)]| -> BTreeMap<String, Box<RawValue>> {
            let all = all.iter().cloned();
            all.map(|(name, value)| (name.to_owned(), value)).collect()
        };
        let most = CONTEXT_BYTES_MAX - 1000;
        let mut entries = ContextEntries::default();
        entries.set("b", of(most)).unwrap();
        let swapped = said(&[("a", of(most)), ("b", raw("1"))]);
        entries.merge(&ContextSelection::All, swapped).unwrap();
        assert_eq!(entries.get("b").unwrap().get(), "1");
        // Two names of one entry are one entry, however much it was before.
        let mut entries = ContextEntries::default();
        entries.set(JWT_CLAIMS, of(most / 2)).unwrap();
        let before = entries.bytes();
        let twice = said(&[
            (JWT_CLAIMS, raw("1")),
            ("apollo_authentication::JWT::claims", raw("2")),
            ("a", of(most)),
        ]);
        entries.merge(&ContextSelection::Deprecated, twice).unwrap();
        assert_eq!(entries.get(JWT_CLAIMS).unwrap().get(), "2");
        assert!(entries.bytes() > before);
        // The one that does not count may be as large as it likes.
        let larger = said(&[
            (JWT_CLAIMS, of(most)),
            ("apollo_authentication::JWT::claims", raw("2")),
        ]);
        entries
            .merge(&ContextSelection::Deprecated, larger)
            .unwrap();
        assert_eq!(entries.get(JWT_CLAIMS).unwrap().get(), "2");
        let too_much = said(&[
            (JWT_CLAIMS, raw("null")),
            ("apollo_authentication::JWT::claims", of(1000)),
        ]);
        let refused = entries.merge(&ContextSelection::Deprecated, too_much);
        assert_eq!(refused, Err(CoprocessorError::Context(CONTEXT_BYTES_MAX)));
        assert_eq!(
            entries.get(JWT_CLAIMS).unwrap().get(),
            "2",
            "nothing is taken over"
        );
    }

    #[test]
    fn what_an_operation_has_removed_is_not_there_whatever_its_request_has() {
        let mut shared = ContextEntries::default();
        for name in ["a", REQUIRED_POLICIES] {
            shared.set(name, raw("1")).unwrap();
        }
        let mut own = shared.of_operation();
        assert!(own.get("a").is_none());
        assert!(visible(&shared, Some(&own), REQUIRED_POLICIES).is_some());
        home(&mut shared, Some(&mut own), REQUIRED_POLICIES).remove(REQUIRED_POLICIES);
        assert!(visible(&shared, Some(&own), REQUIRED_POLICIES).is_none());
        assert!(visible(&shared, None, REQUIRED_POLICIES).is_some());
        let told = MessageContext {
            entries: &shared,
            own: Some(&own),
            selection: &ContextSelection::All,
        };
        let names: Vec<&str> = told.names().collect();
        assert_eq!(names, ["a"]);
        shared.take_operation(&own);
        assert!(shared.get(REQUIRED_POLICIES).is_none() && shared.get("a").is_some());
    }

    #[test]
    fn what_is_left_out_of_an_answer_is_removed_if_it_was_told() {
        let mut entries = ContextEntries::default();
        for name in ["a", "b", JWT_CLAIMS] {
            entries.set(name, raw("1")).unwrap();
        }
        let selection = ContextSelection::Deprecated;
        let told: Vec<Box<str>> = ["a", JWT_CLAIMS].map(Box::from).into();
        let mut said = BTreeMap::from([("c".to_owned(), raw("3"))]);
        remove_left_out(&selection, &told, &mut said);
        entries.merge(&selection, said).unwrap();
        let left: Vec<&str> = entries.iter().map(|(name, _)| name).collect();
        assert_eq!(
            left,
            ["b", "c"],
            "`b` was not told, so nothing is said of it"
        );
        // By either of its names an entry is mentioned.
        for name in [JWT_CLAIMS, "apollo_authentication::JWT::claims"] {
            let mut said = BTreeMap::from([(name.to_owned(), raw("2"))]);
            remove_left_out(&selection, &[JWT_CLAIMS.into()], &mut said);
            assert_eq!(said.len(), 1, "{name}");
        }
    }
}
