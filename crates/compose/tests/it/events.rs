//! Fields that are bound to message brokers.

use crate::{run, sub};

#[test]
fn filters_that_cannot_be_read_are_refused() {
    let filtered = |condition: &str| {
        let sdl = format!(
            "type Subscription {{ changed(t: ID!): User! @edfs__redisSubscribe(channels: [\"users\"])\n\
             @openfed__subscriptionFilter(condition: {condition}) }}\n\
             type User @key(fields: \"id\", resolvable: false) {{ id: ID! @external }}"
        );
        let users = "type Query { me: User } type User @key(fields: \"id\") { id: ID! }";
        let composed = run(&[sub("events", &sdl), sub("users", users)]);
        let mut errors = composed.errors.iter();
        errors.any(|error| error.code == "EVENT_SOURCE_INVALID")
    };
    let tenant = "{ IN: { fieldPath: \"id\", values: [\"{{ args.t }}\"] } }";
    assert!(!filtered(tenant));
    assert!(!filtered(&format!(
        "{{ AND: [{tenant}, {{ NOT: {tenant} }}] }}"
    )));
    for nothing in [
        "{ NOT: null }",
        "{ AND: [] }",
        "{ IN: null }",
        "{ OR: null }",
    ] {
        assert!(filtered(nothing), "{nothing}");
        assert!(
            filtered(&format!("{{ AND: [{tenant}, {nothing}] }}")),
            "{nothing}"
        );
    }
}
