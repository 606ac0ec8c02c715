//! Arguments that are filled from objects above (`@fromContext`, planner rule 29).

use std::num::NonZeroU32;

use ogive_execute::RequestLimits;
use ogive_plan::{Cond, ContextValue, FetchId, Plan};

use crate::{
    fixture::{Builder, ENTITIES, lookup},
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
