//! Rules between definitions.

use crate::build::Builder;

pub(crate) fn validate(builder: &mut Builder<'_>, require_query: bool) {
    let _ = (builder, require_query);
}
