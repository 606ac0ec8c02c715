//! The 71 rules of `docs/planner-rules.md` as the differential test sees them: how an operation is known to exercise
//! each, or why none can.

/// How the differential test meets a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meets {
    /// An operation exercises it if this holds.
    When(&'static str),
    /// No operation of this harness can exercise it, for this reason.
    Never(&'static str),
}

use Meets::{Never, When};

/// One row per rule, rule 1 first.
pub const RULES: [Meets; 71] = [
    When("the plan looks an entity up by a key"),
    When("the plan looks up an entity that has several keys"),
    When("a representation has several key members, a nested one or a list"),
    When("the plan looks up an entity of which some subgraph has a key that is not resolvable"),
    When("a look-up depends on a look-up"),
    When("a look-up's place has several concrete types"),
    When("a key that may be null is sent with its spare"),
    When(
        "an answer brought several entities, which are told apart by index, or a subgraph did not know one",
    ),
    When("a look-up is below a list of entities out of a small pool"),
    When("a representation has no member but its type"),
    When("a field of a value type is selected"),
    When("a value type that several subgraphs answer is selected"),
    When("a field that is external somewhere is selected"),
    Never("federation 1 supergraphs are not generated; plans in r14-federation-1"),
    When("a field that several subgraphs resolve is selected"),
    When("a field with @provides is selected"),
    When("a representation carries a required value"),
    When("a field is selected whose @requires names a field with @requires"),
    When("a field is selected whose @requires has arguments"),
    When("a field is selected whose @requires has a type condition"),
    When("a representation carries a null"),
    When("two fields are selected of which each requires something of the other's subgraph"),
    When("a field with @requires is selected under a condition"),
    When("a field with @override is selected"),
    When("a field with a progressive @override is selected, its label on or off"),
    When(
        "an entity with an overridden key member is looked up where the member was, or that member is selected",
    ),
    When("a field is selected on a type that has something inaccessible"),
    Never("authorisation is not generated: it prunes by request headers, which a monolith has not"),
    Never("contexts are not generated"),
    When("a field with @tag, @cost or @listSize is selected"),
    When("the supergraph is of another version of join than v0.3"),
    When("the plan asks for a __typename that decides something"),
    When("a type condition narrows the types"),
    When(
        "an abstract type, enum or argument is selected that some of its subgraphs define with less",
    ),
    When("an interface field is selected whose implementers have it in different subgraphs"),
    When("a request asks several concrete types for one field at once"),
    When("a union or interface is selected whose members differ between subgraphs"),
    When("one response key stands for different fields of different types"),
    When("the plan looks up an object behind an interface that has a key"),
    When("a look-up goes by the name of an interface"),
    When("so it does with a required value, or where several subgraphs have that interface object"),
    When("a value has a concrete type that clients must not see"),
    When("a look-up carries only some of the types at its place"),
    When("a field is selected twice under one response key"),
    When("values are fetched in another order than the response has them"),
    When("a fragment is spread"),
    When("a variable decides over a selection"),
    When("conditions made a request of the plan superfluous"),
    When("introspection or __typename of the root is selected"),
    When("several subgraphs are asked for query roots"),
    When("a mutation has several root fields"),
    When("the operation is a mutation"),
    Never(
        "subscriptions are a stream, which a monolith answers event by event; see docs/planner-rules.md",
    ),
    When("a field that leads back to the query root is selected"),
    Never("one answer at a time: @defer and @stream are not generated"),
    When("a variable is used in an argument"),
    When("an argument is given as literal, list, object or null"),
    When("a custom scalar is selected"),
    When("the document has several operations"),
    Never("about HTTP; ogive-e2e"),
    When("the answer has an error with a path"),
    When("an error nulls more than its own field"),
    Never("the world is consistent: no two subgraphs differ; execute/tests/it/merging.rs"),
    When("a value is an enum value or of a type that clients must not see"),
    When("something internal (a representation or an alias) is on the wire"),
    When("a request fails on the way"),
    Never("about what the gateway shows of plans; gateway/tests/it/bundle.rs"),
    When("the plan leaves a field null because not every subgraph knows the member"),
    When(
        "a list of members that differ, or an interface's own field, is selected that several subgraphs could serve",
    ),
    When("an object of an interface that nothing implements is selected"),
    When("the plan asks for an object of the client's once more, for what a field set needs of it"),
];

/// Pairs of rules that no operation can exercise together, and why.
pub const IMPOSSIBLE: [(usize, usize, &str); 2] = [
    (50, 51, "an operation is a query or a mutation"),
    (50, 52, "an operation is a query or a mutation"),
];
