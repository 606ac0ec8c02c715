//! How large an operation may be: depth, height, aliases, root fields, directives.
//!
//! Measured on the normal form, where fragments are expanded and equal selections merged, so that neither hiding a
//! selection in fragments nor repeating it changes anything. Measured once per operation, before it is kept.

use ogive_config::LimitOptions;
use ogive_operation::{FieldRef, Operation};
use ogive_schema::Schema;
use ogive_syntax::Document;
use ogive_telemetry::codes;

use crate::error::RequestError;

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
    /// Whether exceeding a limit is only logged.
    pub warn_only: bool,
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
            warn_only: limits.warn_only,
        }
    }

    /// Checks the limit on what is written. Before validation, whose errors could fill pages.
    pub fn check_document(&self, document: &Document) -> Result<(), RequestError> {
        let count = document.directive_count();
        self.one(
            self.directives,
            count as u32,
            codes::MAX_DIRECTIVES_LIMIT,
            "directives",
        )
    }

    /// Checks the limits on what is meant.
    pub fn check_operation(
        &self,
        schema: &Schema,
        operation: &Operation,
    ) -> Result<(), RequestError> {
        if self
            .depth
            .or(self.height)
            .or(self.aliases)
            .or(self.root_fields)
            .is_none()
        {
            return Ok(());
        }
        let found = measure(schema, operation);
        self.one(
            self.depth,
            found.depth,
            codes::MAX_DEPTH_LIMIT,
            "nested fields",
        )?;
        self.one(self.height, found.height, codes::MAX_HEIGHT_LIMIT, "fields")?;
        self.one(
            self.aliases,
            found.aliases,
            codes::MAX_ALIASES_LIMIT,
            "aliases",
        )?;
        self.one(
            self.root_fields,
            found.root_fields,
            codes::MAX_ROOT_FIELDS_LIMIT,
            "root fields",
        )
    }

    fn one(
        &self,
        limit: Option<u32>,
        found: u32,
        code: &'static str,
        what: &str,
    ) -> Result<(), RequestError> {
        match limit {
            Some(limit) if found > limit && self.warn_only => {
                tracing::warn!(code, found, limit, "an operation exceeds a limit");
                Ok(())
            }
            Some(limit) if found > limit => Err(RequestError::graphql(
                code,
                format!("the operation has {found} {what}, more than the {limit} allowed"),
            )),
            _ => Ok(()),
        }
    }
}

/// Measures an operation.
pub fn measure(schema: &Schema, operation: &Operation) -> Measures {
    let mut out = Measures::default();
    for (id, set) in operation.selection_sets.iter() {
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
        if count > 0 {
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
