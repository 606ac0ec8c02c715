//! Restrictions a supergraph states and this gateway does not enforce (planner rule 28): `@authenticated`,
//! `@requiresScopes` and `@policy`.
//!
//! Serving such a supergraph would show everybody what its authors meant for some. So it is refused, unless the
//! configuration says that the restrictions are somebody else's business.

use ogive_config::{AuthorizationDirectives, Config};
use ogive_federation::{Supergraph, vocabulary::Spec};
use ogive_schema::AppliedDirective;

/// Checks that nothing is restricted, or that the configuration ignores it. The error says what is, and what to do.
pub fn check(supergraph: &Supergraph, config: &Config) -> Result<(), String> {
    if config.authorization.directives == AuthorizationDirectives::Ignore {
        return Ok(());
    }
    match restricted(supergraph).as_slice() {
        [] => Ok(()),
        [first, rest @ ..] => {
            let more = match rest.len() {
                0 => String::new(),
                1 => " and one more type or field".to_owned(),
                n => format!(" and {n} more types and fields"),
            };
            Err(format!(
                "the supergraph restricts {first}{more}, which this gateway does not enforce"
            ))
        }
    }
}

/// What is restricted, by which directive.
fn restricted(supergraph: &Supergraph) -> Vec<String> {
    let schema = &supergraph.schema;
    let names: Vec<String> = [Spec::Authenticated, Spec::RequiresScopes, Spec::Policy]
        .into_iter()
        .filter_map(|spec| supergraph.links.directive(spec, spec.name()))
        .collect();
    let by = |directives: &[AppliedDirective]| {
        let applied = directives.iter().map(|d| schema.name(d.name));
        applied
            .filter_map(|applied| names.iter().find(|name| **name == *applied))
            .next()
            .cloned()
    };
    let mut out = Vec::new();
    for (ty, def) in schema.types() {
        if let Some(name) = by(&def.directives) {
            out.push(format!("`{}` with `@{name}`", schema.type_name(ty)));
        }
        for field in &def.fields {
            if let Some(name) = by(&schema.fields[*field].directives) {
                out.push(format!(
                    "`{}` with `@{name}`",
                    schema.field_coordinate(*field)
                ));
            }
        }
    }
    out
}
