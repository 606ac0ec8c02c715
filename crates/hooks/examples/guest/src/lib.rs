//! A component in Rust that sets a header of every request to a subgraph; how it is built says `docs/components.md`. It is no
//! member of the workspace, because it is built for another target.

wit_bindgen::generate!({
    inline: "package my:plugin; world plugin { include ogive:hooks/imports@1.1.0; export ogive:hooks/subgraph-request@1.1.0; }",
    path: "wit",
    generate_all,
});

use exports::ogive::hooks::subgraph_request::Guest;
use ogive::hooks::exchange;

struct Component;

impl Guest for Component {
    fn handle() -> Result<(), String> {
        exchange::set_header("x-tenant", "gold");
        Ok(())
    }
}

export!(Component);
