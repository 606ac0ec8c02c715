//! A supergraph that restricts what the gateway would show anyway is refused.

use ogive_base::SourceId;
use ogive_federation::{ReadOptions, read_supergraph};
use ogive_gateway::authorization::check;

use crate::graph::sdl;

fn checked(changes: &[(&str, &str)], yaml: &str) -> Result<(), String> {
    let link = [(
        "{ query: Query }",
        "@link(url: \"https://specs.apollo.dev/authenticated/v0.1\", for: SECURITY)\n\
             @link(url: \"https://specs.apollo.dev/requiresScopes/v0.1\", as: \"scoped\", for: SECURITY) { query: Query }\n\
             directive @authenticated on FIELD_DEFINITION | OBJECT\n\
             directive @scoped(scopes: [[String!]!]!) on FIELD_DEFINITION | OBJECT\n",
    )];
    let all: Vec<(&str, &str)> = link.iter().chain(changes).copied().collect();
    let sdl = sdl(&all);
    let supergraph = read_supergraph(&sdl, SourceId(0), &ReadOptions::default()).unwrap();
    let config = ogive_config::load(SourceId(0), yaml, &|_| None).unwrap();
    check(&supergraph, &config)
}

#[test]
fn restrictions_that_are_not_enforced_are_refused() {
    assert_eq!(
        checked(&[], ""),
        Ok(()),
        "the directives are defined, not used"
    );
    let field = [("city: String", "city: String @authenticated")];
    assert_eq!(
        checked(&field, "").unwrap_err(),
        "the supergraph restricts `Warehouse.city` with `@authenticated`, which this gateway does not enforce"
    );
    // Directives go by the names that the document gives them.
    let both = [
        field[0],
        (
            "type Warehouse @",
            "type Warehouse @scoped(scopes: [[\"read\"]]) @",
        ),
    ];
    assert_eq!(
        checked(&both, "").unwrap_err(),
        "the supergraph restricts `Warehouse` with `@scoped` and one more type or field, which this gateway does \
         not enforce"
    );
    assert_eq!(
        checked(&both, "authorization: { directives: ignore }"),
        Ok(())
    );
}
