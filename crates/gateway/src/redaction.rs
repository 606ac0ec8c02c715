//! Fields that the configuration keeps from all callers but some (`authorization.redact`), as restrictions of the supergraph.
//!
//! A rule that names what is not there keeps nothing from anybody, while its author believes that it does: such a supergraph is
//! not served ([`check`]).

use ogive_config::{AuthorizationDirectives, Config, RedactionRule, nearest};
use ogive_federation::{Requirement, Supergraph};
use ogive_schema::{FieldId, Schema};

/// The scalars of which a mask is a value.
const MASKED: [&str; 2] = ["String", "ID"];

/// Checks that a supergraph has the fields of all rules, and that masks are values of theirs.
pub fn check(supergraph: &Supergraph, config: &Config) -> Result<(), String> {
    if config.authorization.directives != AuthorizationDirectives::Enforce {
        return Ok(());
    }
    let schema = &supergraph.schema;
    for rule in &config.authorization.redact {
        for coordinate in &rule.fields {
            let Some(field) = find(schema, coordinate) else {
                return Err(unknown(schema, coordinate));
            };
            let ty = schema.fields[field].ty;
            let is_text = MASKED.contains(&schema.type_name(ty.id)) && ty.wrapping.lists() == 0;
            if rule.mask.is_some() && !is_text {
                return Err(format!(
                    "`authorization.redact` has a mask for the field `{coordinate}`, whose type is `{}`: a mask is a value of \
                     `String` and `ID` alone",
                    schema.display_type(ty)
                ));
            }
        }
    }
    Ok(())
}

/// Restricts the fields of all rules; what is not there is told.
pub(crate) fn restrict(supergraph: &mut Supergraph, config: &Config, notes: &mut Vec<String>) {
    let schema = &supergraph.schema;
    for (index, rule) in config.authorization.redact.iter().enumerate() {
        // No alternative is for nobody.
        let policy = rule.unless.as_ref().map(|_| RedactionRule::policy(index));
        let alternatives = policy.map(|policy| vec![policy.into_boxed_str()]);
        let requirement = Requirement {
            policies: Some(alternatives.into_iter().collect()),
            mask: rule.mask.as_deref().map(Into::into),
            ..Requirement::default()
        };
        for coordinate in &rule.fields {
            let Some(field) = find(schema, coordinate) else {
                notes.push(unknown(schema, coordinate));
                continue;
            };
            let restrictions = &mut supergraph.restrictions;
            restrictions.restrict(schema, field, requirement.clone());
        }
    }
}

/// A field by its coordinate.
fn find(schema: &Schema, coordinate: &str) -> Option<FieldId> {
    let (ty, name) = coordinate.split_once('.')?;
    schema.field_by_name(schema.type_by_name(ty)?, name)
}

/// What is said of a coordinate that leads nowhere.
fn unknown(schema: &Schema, coordinate: &str) -> String {
    let (ty, name) = coordinate.split_once('.').unwrap_or((coordinate, ""));
    let meant = match schema.type_by_name(ty) {
        Some(id) => {
            let fields = schema.types[id].fields.iter();
            let names = fields.map(|field| schema.name(schema.fields[*field].name));
            nearest(name, names).map(|name| format!("{ty}.{name}"))
        }
        None => {
            let names = schema.types().map(|(id, _)| schema.type_name(id));
            nearest(ty, names).map(|ty| format!("{ty}.{name}"))
        }
    };
    let meant = meant.map_or_else(String::new, |meant| format!("; did you mean `{meant}`?"));
    format!(
        "`authorization.redact` mentions the field `{coordinate}`, which the supergraph does not have{meant}"
    )
}
