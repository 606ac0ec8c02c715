//! How large an operation may be: depth, height, aliases, root fields, directives; and its variables.
//!
//! Operations are measured on the normal form, where fragments are expanded and equal selections merged, so that neither
//! hiding a selection in fragments nor repeating it changes anything. That happens once per operation, before it is kept;
//! which limits it exceeds that are only measured is kept with it, so that every request for it is counted.

use ogive_base::BitSet;
use ogive_config::LimitOptions;
use ogive_edge::{
    error::RequestError,
    json_value::JsonObject,
    measured::{Exceeded, log, note},
};
use ogive_failure::ErrorCode;
use ogive_limits::{Limit, Measured, WarnOnly};
use ogive_operation::{FieldRef, Operation};
use ogive_schema::Schema;
use ogive_syntax::Document;
use ogive_telemetry::codes;

/// Limits on one operation; `None` is no limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OperationLimits {
    /// Nested fields.
    pub depth: Option<u32>,
    /// Fields.
    pub height: Option<u32>,
    /// Aliases.
    pub aliases: Option<u32>,
    /// Fields of the root.
    pub root_fields: Option<u32>,
    /// Directives of the document.
    pub directives: Option<u32>,
    /// Bytes of the variables as JSON.
    pub variables: Option<usize>,
    /// Lexical tokens, if they are only measured; the parser refuses what is beyond the ceiling.
    pub tokens: Option<Measured<usize>>,
    /// Whether introspection counts against `depth`.
    pub count_introspection: bool,
    /// Which of them are only measured.
    pub warn_only: WarnOnly,
}

/// How large an operation is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Measures {
    /// Nested fields.
    pub depth: u32,
    /// Fields, each response key of a place once.
    pub height: u32,
    /// Response keys that are not the field's name.
    pub aliases: u32,
    /// Fields of the root.
    pub root_fields: u32,
}

impl OperationLimits {
    /// The limits that a configuration asks for.
    pub fn new(limits: &LimitOptions) -> Self {
        OperationLimits {
            depth: limits.max_depth,
            height: limits.max_height,
            aliases: limits.max_aliases,
            root_fields: limits.max_root_fields,
            directives: limits.max_directives,
            variables: limits.max_variables_size.map(|size| size.0),
            tokens: limits
                .warn_only
                .holds_for(Limit::Tokens)
                .then(|| tokens(limits)),
            count_introspection: limits.count_introspection,
            warn_only: limits.warn_only,
        }
    }

    /// Checks the limit on what is written. Before validation, whose errors could fill pages.
    pub fn check_document(
        &self,
        document: &Document,
        exceeded: &mut Exceeded,
    ) -> Result<(), RequestError> {
        if let Some(tokens) = &self.tokens {
            note(tokens, &(document.token_count() as usize), exceeded);
        }
        let count = u32::try_from(document.directive_count()).unwrap_or(u32::MAX);
        let which = Limit::Directives;
        let limit = (which, codes::MAX_DIRECTIVES_LIMIT);
        self.one(limit, self.directives, count, "directives", exceeded)
    }

    /// Checks the limits on what is meant.
    pub fn check_operation(
        &self,
        schema: &Schema,
        operation: &Operation,
        exceeded: &mut Exceeded,
    ) -> Result<(), RequestError> {
        let limits = [self.depth, self.height, self.aliases, self.root_fields];
        if limits.iter().all(Option::is_none) {
            return Ok(());
        }
        let found = measure(schema, operation, self.count_introspection);
        let roots = (self.root_fields, found.root_fields, "root fields");
        for (which, code, (limit, found, what)) in [
            (
                Limit::Depth,
                codes::MAX_DEPTH_LIMIT,
                (self.depth, found.depth, "nested fields"),
            ),
            (
                Limit::Height,
                codes::MAX_HEIGHT_LIMIT,
                (self.height, found.height, "fields"),
            ),
            (
                Limit::Aliases,
                codes::MAX_ALIASES_LIMIT,
                (self.aliases, found.aliases, "aliases"),
            ),
            (Limit::RootFields, codes::MAX_ROOT_FIELDS_LIMIT, roots),
        ] {
            self.one((which, code), limit, found, what, exceeded)?;
        }
        Ok(())
    }

    /// Checks the limit on variables. Gives the code if it is exceeded and only measured.
    pub fn check_variables(
        &self,
        variables: &JsonObject,
    ) -> Result<Option<&'static str>, RequestError> {
        let Some(limit) = self.variables.filter(|_| !variables.is_empty()) else {
            return Ok(None);
        };
        // White space counts for nothing, and there seldom is any.
        if variables.text().len() <= limit || variables.compact().len() <= limit {
            return Ok(None);
        }
        let code = codes::MAX_VARIABLES_SIZE_LIMIT;
        if self.warn_only.holds_for(Limit::Variables) {
            log(Limit::Variables, &"more", &limit);
            return Ok(Some(code.as_str()));
        }
        let message = format!("the variables are larger than the {limit} bytes allowed");
        Err(RequestError::graphql(code, message))
    }

    fn one(
        &self,
        (which, code): (Limit, ErrorCode),
        limit: Option<u32>,
        found: u32,
        what: &str,
        exceeded: &mut Exceeded,
    ) -> Result<(), RequestError> {
        let Some(limit) = limit.filter(|limit| found > *limit) else {
            return Ok(());
        };
        if self.warn_only.holds_for(which) {
            // Beyond it even if it is 0, which has no ceiling above it.
            if !exceeded.contains(&code.as_str()) {
                log(which, &found, &limit);
                exceeded.push(code.as_str());
            }
            return Ok(());
        }
        Err(RequestError::graphql(
            code,
            format!("the operation has {found} {what}, more than the {limit} allowed"),
        ))
    }
}

/// The limit on tokens.
pub(crate) fn tokens(limits: &LimitOptions) -> Measured<usize> {
    let default = LimitOptions::default().parser_max_tokens as usize;
    let limit = limits.parser_max_tokens as usize;
    limits.warn_only.size(Limit::Tokens, limit, default)
}

/// Measures an operation; fields below `__schema` and `__type` have no depth unless `introspection` counts.
pub fn measure(schema: &Schema, operation: &Operation, introspection: bool) -> Measures {
    let mut out = Measures::default();
    // Selection sets of introspection. Those above come before those below.
    let mut told = BitSet::new();
    for (id, set) in operation.selection_sets.iter() {
        let above = set.parent.map(|field| &operation.fields[field]);
        let is_told = above.is_some_and(|field| {
            matches!(field.field, FieldRef::Schema | FieldRef::Type)
                || told.contains(field.parent.0)
        });
        if is_told {
            told.insert(id.0);
        }
        // One response key can be several nodes, each for other concrete types.
        let mut keys: Vec<_> = set
            .fields
            .iter()
            .map(|f| operation.fields[*f].key)
            .collect();
        keys.sort_unstable();
        keys.dedup();
        let count = keys.len() as u32;
        out.height = out.height.saturating_add(count);
        if count > 0 && (introspection || !is_told) {
            out.depth = out.depth.max(set.depth + 1);
        }
        if id == operation.root {
            out.root_fields = count;
        }
        let mut aliased: Vec<_> = set
            .fields
            .iter()
            .map(|f| &operation.fields[*f])
            .filter(|field| {
                let name = match field.field {
                    FieldRef::Field(id) => schema.field_name(id),
                    FieldRef::Typename => "__typename",
                    FieldRef::Schema => "__schema",
                    FieldRef::Type => "__type",
                };
                operation.keys[field.key] != *name
            })
            .map(|field| field.key)
            .collect();
        aliased.sort_unstable();
        aliased.dedup();
        out.aliases = out.aliases.saturating_add(aliased.len() as u32);
    }
    out
}
