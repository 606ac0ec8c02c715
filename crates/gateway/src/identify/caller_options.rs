//! How claims are read, as the configuration asks for it.

use ogive_config::{ClaimNames, JwtOptions};
use ogive_identity::CallerOptions;

pub(crate) fn caller_options(jwt: &JwtOptions) -> CallerOptions {
    let names = |names: &ClaimNames| names.0.iter().map(|name| name.as_str().into()).collect();
    CallerOptions {
        scopes: names(&jwt.scopes_claim),
        policies: names(&jwt.policies_claim),
    }
}
