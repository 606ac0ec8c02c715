//! `@defer` and `@stream`: what is refused, and which fields are reached through deferred fragments only.

use ogive_operation::{NormaliseLimits, Operation, describe, normalise, validate};

use crate::files::{document, schema_of};

const PETS: &str = "type Query { dog: Dog pet: Pet dogs: [Dog] } type Mutation { rename: Dog all: [Dog] } \
    type Subscription { born: Dog } interface Pet { name: String } \
    type Dog implements Pet { name: String barks: Boolean owner: Owner } type Cat implements Pet { name: String } \
    type Owner { name: String age: Int }";

fn refusals(text: &str) -> Vec<String> {
    let found = validate(&schema_of(PETS), &document(text), &Default::default());
    found.into_iter().map(|d| d.message).collect()
}

#[test]
fn deferred_fragments_are_valid_without_a_definition() {
    for text in [
        "{ dog { ... @defer { name } } }",
        "{ dog { ...F @defer(label: \"later\", if: true) ... @defer(label: \"other\") { barks } } } fragment F on Dog { name }",
        "query ($late: Boolean!) { dog { ... on Dog @defer(if: $late) { name } } }",
        // The argument has a default, so the variable may be absent.
        "query ($late: Boolean) { dog { ... @defer(if: $late) { name } } }",
        "mutation { ... @defer(if: false) { __typename } }",
    ] {
        assert_eq!(refusals(text), Vec::<String>::new(), "{text}");
    }
}

#[test]
fn what_the_draft_refuses_is_refused() {
    for (text, message) in [
        (
            "{ dog { name @defer } }",
            "Directive \"@defer\" may not be used on FIELD.",
        ),
        (
            "query @defer { dog { name } }",
            "Directive \"@defer\" may not be used on QUERY.",
        ),
        (
            "{ dog { ... @defer @defer(label: \"x\") { name } } }",
            "The directive \"@defer\" can only be used once at this location.",
        ),
        (
            "{ dog { ... @defer(label: \"x\") { name } ... @defer(label: \"x\") { barks } } }",
            "There can be only one deferred fragment labelled \"x\".",
        ),
        (
            "query ($l: String) { dog { ... @defer(label: $l) { name } } }",
            "Argument \"label\" of directive \"@defer\" must be a static string.",
        ),
        (
            "{ dog { ... @defer(label: 1) { name } } }",
            "String cannot represent a non string value: 1",
        ),
        (
            "{ dog { ... @defer(if: \"yes\") { name } } }",
            "Boolean cannot represent a non boolean value: \"yes\"",
        ),
        (
            "{ dog { ... @defer(if: null) { name } } }",
            "Expected value of type \"Boolean!\", found null.",
        ),
        (
            "{ dog { ... @defer(when: true) { name } } }",
            "Unknown argument \"when\" on directive \"@defer\".",
        ),
        (
            "query ($n: Int!) { dog { ... @defer(if: $n) { name } } }",
            "Variable \"$n\" of type \"Int!\" used in position expecting type \"Boolean!\".",
        ),
        (
            "mutation { ... @defer { __typename } }",
            "Directive \"@defer\" may not be used on root mutation type \"Mutation\".",
        ),
    ] {
        assert_eq!(refusals(text), [message], "{text}");
    }
}

#[test]
fn streamed_lists_are_valid_without_a_definition() {
    for text in [
        "{ dogs @stream { name } }",
        "query ($n: Int!, $if: Boolean) { dogs @stream(initialCount: $n, if: $if, label: \"dogs\") { name } }",
        "{ dogs @stream(initialCount: 2) { name } ... { dogs @stream(initialCount: 2) { barks } } }",
        "mutation { all @stream(if: false) { name } }",
        "subscription ($if: Boolean!) { born { ... @defer(if: $if) { name } } }",
    ] {
        assert_eq!(refusals(text), Vec::<String>::new(), "{text}");
    }
}

#[test]
fn what_the_draft_refuses_of_streams_is_refused() {
    for (text, message) in [
        (
            "{ dog @stream { name } }",
            "Directive \"@stream\" cannot be used on non-list field \"Query.dog\".",
        ),
        (
            "{ ... @stream { dogs { name } } }",
            "Directive \"@stream\" may not be used on INLINE_FRAGMENT.",
        ),
        (
            "{ dogs @stream @stream { name } }",
            "The directive \"@stream\" can only be used once at this location.",
        ),
        (
            "{ dogs @stream(label: \"x\") { ... @defer(label: \"x\") { name } } }",
            "There can be only one deferred fragment or streamed field labelled \"x\".",
        ),
        (
            "query ($l: String) { dogs @stream(label: $l) { name } }",
            "Argument \"label\" of directive \"@stream\" must be a static string.",
        ),
        (
            "{ dogs @stream(initialCount: \"1\") { name } }",
            "Int cannot represent non-integer value: \"1\"",
        ),
        (
            "{ dogs @stream(initialCount: -1) { name } }",
            "Argument \"initialCount\" of directive \"@stream\" must not be negative.",
        ),
        (
            "{ dogs @stream(first: 1) { name } }",
            "Unknown argument \"first\" on directive \"@stream\".",
        ),
        (
            "{ dogs @stream { name } dogs { barks } }",
            "Fields \"dogs\" conflict because they have differing stream directives. Use different aliases on the fields to fetch both if this was intentional.",
        ),
        (
            "{ dogs @stream { name } ... { dogs @stream(initialCount: 1) { barks } } }",
            "Fields \"dogs\" conflict because they have differing stream directives. Use different aliases on the fields to fetch both if this was intentional.",
        ),
        (
            "mutation { all @stream { name } }",
            "Directive \"@stream\" may not be used on root mutation type \"Mutation\".",
        ),
        (
            "subscription { born { ...F } } fragment F on Dog { ... @defer { name } }",
            "Directive \"@defer\" is not supported in subscriptions. It can be switched off by `if: false`.",
        ),
    ] {
        assert_eq!(refusals(text), [message], "{text}");
    }
}

#[test]
fn streamed_lists_are_kept_with_their_arguments() {
    let text = "query ($n: Int!, $y: Boolean!) { dogs @stream(initialCount: $n, if: $y, label: \"l\") { name } b: dogs @stream(initialCount: 3) { name } c: dogs @stream(if: false) { name } }";
    let operation = normal(text, true);
    let mut streams: Vec<_> = operation.deferral.streams.iter().collect();
    streams.sort_by_key(|(field, _)| **field);
    let found: Vec<_> = streams
        .iter()
        .map(|(_, s)| {
            (
                s.label.as_deref(),
                s.initial_count,
                s.initial_variable,
                s.variable,
            )
        })
        .collect();
    assert_eq!(
        found,
        [(Some("l"), 0, Some(0), Some(1)), (None, 3, None, None)]
    );
    assert!(normal(text, false).deferral.streams.is_empty());
}

fn normal(text: &str, deferral: bool) -> Operation {
    let schema = schema_of(PETS);
    assert_eq!(refusals(text), Vec::<String>::new(), "{text}");
    let document = document(text);
    let limits = NormaliseLimits {
        deferral,
        ..NormaliseLimits::default()
    };
    let operation = document.operations().next().unwrap();
    normalise(&schema, &document, operation, &limits).unwrap()
}

/// The fields of the normal form, indented.
fn fields(text: &str) -> Vec<String> {
    let text = describe(&schema_of(PETS), &normal(text, true));
    text.lines()
        .skip(1)
        .map(|line| line[2..].to_owned())
        .collect()
}

#[test]
fn what_is_reached_elsewhere_too_is_not_deferred() {
    assert_eq!(
        fields("{ dog { name ... @defer { name barks owner { name } } owner { age } } }"),
        [
            "dog",
            "  name",
            "  name again in 0",
            "  barks deferred 0",
            "  owner",
            "    name deferred 0",
            "    age",
            "  owner again"
        ]
    );
    // The same fragment, deferred and not.
    assert_eq!(
        fields("{ dog { ...F @defer ...F } } fragment F on Dog { name }"),
        ["dog", "  name", "  name again"]
    );
    // For dogs only it is reached without delay.
    assert_eq!(
        fields("{ pet { ...F @defer ... on Dog { ...F } } } fragment F on Pet { name }"),
        [
            "pet",
            "  name on Dog",
            "  name on Cat deferred 0",
            "  name on Dog again"
        ]
    );
}

#[test]
fn groups_form_a_tree() {
    let text = "{ dog { ... @defer(label: \"a\") { name ... @defer(label: \"b\") { name barks } } ... @defer(label: \"c\") { barks } } }";
    assert_eq!(
        fields(text),
        [
            "dog",
            "  name deferred 0",
            "  name deferred 0 again in 1",
            "  barks deferred 1 deferred 2",
            "  barks deferred 1 deferred 2 again in 2"
        ]
    );
    let groups = normal(text, true).deferral.groups;
    let found: Vec<_> = groups
        .iter()
        .map(|(_, group)| (group.label.as_deref(), group.parent.map(|p| p.0)))
        .collect();
    assert_eq!(
        found,
        [(Some("a"), None), (Some("b"), Some(0)), (Some("c"), None)]
    );
}

#[test]
fn a_variable_is_kept_and_a_constant_is_not() {
    let text = "query ($x: Boolean!, $y: Boolean!) { dog { ... @defer(if: $y) { name @skip(if: $x) } ... @defer(if: false) { barks } } }";
    assert_eq!(fields(text), ["dog", "  name if !$x deferred 0", "  barks"]);
    let groups = normal(text, true).deferral.groups;
    assert_eq!(groups.as_slice()[0].variable, Some(1));
}

/// Fields are collected after `@skip` and `@include`.
#[test]
fn what_counts_only_under_a_condition_is_in_a_group_of_its_own() {
    // Outside of the deferred fragment, where it may not count.
    assert_eq!(
        fields(
            "query ($x: Boolean!) { dog { ... @defer { name owner { name } } name @include(if: $x) owner @include(if: $x) { age } } }"
        ),
        [
            "dog",
            "  name deferred 0 conditional 1 if $x",
            "  owner deferred 0 conditional 1 if $x",
            "    name deferred 0",
            "    age if $x conditional 1 if $x",
            "  name if $x deferred 0 conditional 1 if $x again in 1",
            "  owner if $x deferred 0 conditional 1 if $x again in 1",
        ]
    );
    // In a fragment that may not be there, and in one that is.
    assert_eq!(
        fields(
            "query ($x: Boolean!) { dog { ... @include(if: $x) @defer { name barks } ... @defer { name } } }"
        ),
        [
            "dog",
            "  name if $x deferred 1 conditional 2 if $x",
            "  barks if $x deferred 0",
            "  name deferred 1 conditional 2 if $x again in 1",
        ]
    );
    // Under the same condition everywhere, or always there anyway, it needs none.
    assert_eq!(
        fields(
            "query ($x: Boolean!) { dog { ... @defer { name @skip(if: $x) barks barks @skip(if: $x) } name @skip(if: $x) } }"
        ),
        [
            "dog",
            "  name if !$x",
            "  barks deferred 0",
            "  name if !$x again",
        ]
    );
}

#[test]
fn without_being_asked_for_it_is_as_though_absent() {
    let schema = schema_of(PETS);
    let with = normal("{ dog { ... @defer { name owner { age } } barks } }", false);
    let without = normal("{ dog { name owner { age } barks } }", false);
    assert_eq!(describe(&schema, &with), describe(&schema, &without));
    assert!(with.deferral.groups.is_empty() && with.deferral.fields.is_empty());
}
