//! Directives (specification 5.7): defined, in valid locations, unique per location.

use ogive_base::{FastMap, Span};
use ogive_schema::{DirectiveId, DirectiveLocation};
use ogive_syntax::ast::{Directive, List};

use super::{context::Context, incremental};

/// Directives are defined (5.7.1) and in valid locations (5.7.2).
pub(super) fn known(
    cx: &mut Context<'_>,
    directive: &Directive,
    found: Option<DirectiveId>,
    location: DirectiveLocation,
) {
    let name = cx.text(directive.name);
    match found {
        None => cx.report(&[directive.span], |_| {
            format!("Unknown directive \"@{name}\".")
        }),
        Some(id) if !cx.schema.directive_defs[id].locations.contains(&location) => {
            let location = location.as_str();
            cx.report(&[directive.span], |_| {
                format!("Directive \"@{name}\" may not be used on {location}.")
            });
        }
        Some(_) => {}
    }
}

/// Directives are unique per location (5.7.3), unless repeatable.
pub(super) fn unique(cx: &mut Context<'_>, list: List<Directive>) {
    if list.len() < 2 {
        return;
    }
    let mut seen: FastMap<&str, Span> = FastMap::default();
    for directive in &cx.doc[list] {
        let name = cx.text(directive.name);
        match cx.schema.directive_by_name(name) {
            Some(id) if cx.schema.directive_defs[id].repeatable => continue,
            None if !incremental::is_known(name) => continue,
            _ => {}
        }
        if let Some(first) = seen.get(name) {
            cx.report(&[*first, directive.span], |_| {
                format!("The directive \"@{name}\" can only be used once at this location.")
            });
        } else {
            seen.insert(name, directive.span);
        }
    }
}
