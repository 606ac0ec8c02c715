//! Arguments that are filled from objects above (`@fromContext`, planner rule 29).

use std::num::NonZeroU32;

use ogive_execute::RequestLimits;
use ogive_plan::{Cond, ContextValue, FetchId, Plan};

use crate::{
    fixture::{Builder, ENTITIES, lookup, lookup_as},
    script::{Script, Setup, ok, run_with, text},
};

/// `{ shops { goods { price } } }`: prices depend on the currency of the shop.
fn shops(required: bool) -> Plan {
    let mut b = Builder::new(&["shops", "prices"], &["Query", "Shop", "Good"]);
    let shops = b.object(Plan::ROOT, "shops", "[Shop]", &["Shop"]);
    b.hidden(shops, "currency");
    let goods = b.object(shops, "goods", "[Good]", &["Good"]);
    b.hidden(goods, "id");
    b.leaf(goods, "price", "Int");
    let good = b.shape(goods, &[("id", None)]);
    let shop = b.shape(shops, &[("currency", None), ("goods", Some(good))]);
    b.root(0, "{shops{currency goods{id}}}", &[("shops", Some(shop))]);
    let price = b.shape(goods, &[("price", None)]);
    let mut target = b.target(goods, &["id"], price);
    target.contexts.push(ContextValue {
        variable: "currency".into(),
        layout: shops,
        members: vec![b.member(shops, "currency", false, Vec::new())],
        required,
        cond: Cond::TRUE,
    });
    b.fetch(1, ENTITIES, &[FetchId(0)], vec![lookup(vec![target])]);
    b.build()
}

/// Variables of each request for prices.
fn asked(script: &Script) -> Vec<String> {
    let of_prices = script.sent().into_iter().filter(|(s, _)| *s == 1);
    of_prices
        .map(|(_, body)| {
            let json: serde_json::Value = serde_json::from_str(&body).unwrap();
            let all = json["variables"]["representations"].as_array().unwrap();
            let ids: Vec<String> = all.iter().map(|r| r["id"].to_string()).collect();
            format!("{} {}", json["variables"]["currency"], ids.join(" "))
        })
        .collect()
}

#[test]
fn objects_with_different_values_above_are_asked_by_different_requests() {
    let script = Script::new(vec![
        vec![ok(r#"{"data":{"shops":[
            {"currency":"EUR","goods":[{"id":1},{"id":2}]},{"currency":"USD","goods":[{"id":1}]},
            {"currency":"EUR","goods":[{"id":2},{"id":3}]}]}}"#)],
        vec![
            ok(r#"{"data":{"_entities":[{"price":10},{"price":20},{"price":30}]}}"#),
            ok(r#"{"data":{"_entities":[{"price":11}]}}"#),
        ],
    ]);
    let output = run_with(&shops(true), &Setup::default(), &script);
    assert_eq!(asked(&script), [r#""EUR" 1 2 3"#, r#""USD" 1"#]);
    assert_eq!(script.in_flight_max.get(), 2, "at the same time");
    assert_eq!(
        text(output),
        concat!(
            r#"{"data":{"shops":[{"goods":[{"price":10},{"price":20}]},{"goods":[{"price":11}]},"#,
            r#"{"goods":[{"price":20},{"price":30}]}]}}"#
        )
    );
}

#[test]
fn one_value_is_one_request() {
    let mut script = Script::new(vec![
        vec![ok(r#"{"data":{"shops":[
            {"currency":"EUR","goods":[{"id":1}]},{"currency":"EUR","goods":[{"id":2}]}]}}"#)],
        vec![
            ok(r#"{"data":{"_entities":[{"price":10}]}}"#),
            ok(r#"{"data":{"_entities":[{"price":20}]}}"#),
        ],
    ]);
    // Unless the subgraph takes one object at a time.
    script.limits = RequestLimits {
        representations_max: NonZeroU32::new(1),
        ..RequestLimits::default()
    };
    run_with(&shops(true), &Setup::default(), &script);
    assert_eq!(asked(&script), [r#""EUR" 1"#, r#""EUR" 2"#]);
    let script = Script::new(vec![
        vec![ok(r#"{"data":{"shops":[
            {"currency":"EUR","goods":[{"id":1}]},{"currency":"EUR","goods":[{"id":2}]}]}}"#)],
        vec![ok(r#"{"data":{"_entities":[{"price":10},{"price":20}]}}"#)],
    ]);
    run_with(&shops(true), &Setup::default(), &script);
    assert_eq!(asked(&script), [r#""EUR" 1 2"#]);
}

#[test]
fn without_a_value_that_must_be_there_nothing_is_asked() {
    let shops_of = || ok(r#"{"data":{"shops":[{"currency":null,"goods":[{"id":1}]}]}}"#);
    let script = Script::new(vec![vec![shops_of()], vec![]]);
    let output = run_with(&shops(true), &Setup::default(), &script);
    assert_eq!(
        text(output),
        r#"{"data":{"shops":[{"goods":[{"price":null}]}]}}"#
    );
    let script = Script::new(vec![
        vec![shops_of()],
        vec![ok(r#"{"data":{"_entities":[{"price":5}]}}"#)],
    ]);
    let output = run_with(&shops(false), &Setup::default(), &script);
    assert_eq!(asked(&script), ["null 1"]);
    assert_eq!(
        text(output),
        r#"{"data":{"shops":[{"goods":[{"price":5}]}]}}"#
    );
}

#[test]
fn so_many_values_above_that_each_would_be_a_request_are_refused() {
    for (values, sent) in [(1_024, 1_024), (1_025, 0)] {
        let shops_of: Vec<String> = (0..values)
            .map(|at| format!(r#"{{"currency":"{at}","goods":[{{"id":1}}]}}"#))
            .collect();
        let first = format!(r#"{{"data":{{"shops":[{}]}}}}"#, shops_of.join(","));
        let prices = || ok(r#"{"data":{"_entities":[{"price":10}]}}"#);
        let script = Script::new(vec![
            vec![ok(&first)],
            (0..sent).map(|_| prices()).collect(),
        ]);
        let output = run_with(&shops(true), &Setup::default(), &script);
        assert_eq!(script.sent().len(), 1 + sent);
        let text = text(output);
        assert_eq!(text.contains("The limit parts_max was reached."), sent == 0);
        assert_eq!(text.contains(r#""price":10"#), sent > 0);
    }
}

/// `{ shops { goods { price } } others { note } }`: a note needs no currency. Both are looked up in one list or in two.
fn shops_and_others(in_one_list: bool) -> Plan {
    let mut b = Builder::new(&["shops", "prices"], &["Query", "Shop", "Good", "Other"]);
    let shops = b.object(Plan::ROOT, "shops", "[Shop]", &["Shop"]);
    b.hidden(shops, "currency");
    let good = b.object(shops, "good", "Good", &["Good"]);
    b.hidden(good, "id");
    b.leaf(good, "price", "Int");
    let others = b.object(Plan::ROOT, "others", "[Other]", &["Other"]);
    b.hidden(others, "id");
    b.leaf(others, "note", "String");
    let of_good = b.shape(good, &[("id", None)]);
    let shop = b.shape(shops, &[("currency", None), ("good", Some(of_good))]);
    let other = b.shape(others, &[("id", None)]);
    let keys = [("shops", Some(shop)), ("others", Some(other))];
    b.root(0, "{shops{currency good{id}} others{id}}", &keys);
    let price = b.shape(good, &[("price", None)]);
    let mut prices = b.target(good, &["id"], price);
    prices.contexts.push(ContextValue {
        variable: "currency".into(),
        layout: shops,
        members: vec![b.member(shops, "currency", false, Vec::new())],
        required: true,
        cond: Cond::TRUE,
    });
    let note = b.shape(others, &[("note", None)]);
    let notes = b.target(others, &["id"], note);
    let lookups = if in_one_list {
        vec![lookup(vec![notes, prices])]
    } else {
        vec![
            lookup_as("_entities", "representations", vec![prices]),
            lookup_as("_e1", "representations1", vec![notes]),
        ]
    };
    b.fetch(1, ENTITIES, &[FetchId(0)], lookups);
    if in_one_list {
        // The planner makes no such plan.
        b.build_unchecked()
    } else {
        b.build()
    }
}

const SHOPS_AND_OTHERS: &str = r#"{"data":{
    "shops":[{"currency":"EUR","good":{"id":1}},{"currency":"USD","good":{"id":2}}],
    "others":[{"id":7},{"id":8},{"id":9}]}}"#;
const PRICES_AND_NOTES: &str = concat!(
    r#"{"data":{"shops":[{"good":{"price":10}},{"good":{"price":20}}],"#,
    r#""others":[{"note":"a"},{"note":"b"},{"note":"c"}]}}"#
);

#[test]
fn what_needs_no_value_from_above_takes_none_from_others_in_its_list() {
    let first = r#"{"data":{"_entities":[{"note":"a"},{"note":"b"},{"note":"c"},{"price":10}]}}"#;
    let script = Script::new(vec![
        vec![ok(SHOPS_AND_OTHERS)],
        vec![ok(first), ok(r#"{"data":{"_entities":[{"price":20}]}}"#)],
    ]);
    let output = run_with(&shops_and_others(true), &Setup::default(), &script);
    assert_eq!(asked(&script), [r#""EUR" 7 8 9 1"#, r#""USD" 2"#]);
    assert_eq!(text(output), PRICES_AND_NOTES);
}

#[test]
fn a_list_without_values_from_above_goes_with_the_first_of_them() {
    let first =
        r#"{"data":{"_entities":[{"price":10}],"_e1":[{"note":"a"},{"note":"b"},{"note":"c"}]}}"#;
    let script = Script::new(vec![
        vec![ok(SHOPS_AND_OTHERS)],
        vec![ok(first), ok(r#"{"data":{"_entities":[{"price":20}]}}"#)],
    ]);
    let output = run_with(&shops_and_others(false), &Setup::default(), &script);
    assert_eq!(asked(&script), [r#""EUR" 1"#, r#""USD" 2"#]);
    assert_eq!(text(output), PRICES_AND_NOTES);
}

#[test]
fn lists_with_the_same_values_above_are_asked_together() {
    let mut plan = shops_and_others(false);
    // Another question about the same goods.
    let prices = plan.fetches[FetchId(1)].lookups[0].clone();
    plan.fetches[FetchId(1)].lookups[1] = lookup_as("_e1", "representations1", prices.targets);
    let entity = |price| format!(r#"{{"data":{{"_entities":[{price}],"_e1":[{price}]}}}}"#);
    let script = Script::new(vec![
        vec![ok(SHOPS_AND_OTHERS)],
        vec![
            ok(&entity(r#"{"price":10}"#)),
            ok(&entity(r#"{"price":20}"#)),
        ],
    ]);
    run_with(&plan, &Setup::default(), &script);
    assert_eq!(asked(&script), [r#""EUR" 1"#, r#""USD" 2"#]);
}
