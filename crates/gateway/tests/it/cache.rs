//! The operation cache and what happens to it when the schema changes.

use ogive_config::Config;

use crate::setup::{gateway_with, post, state};

#[tokio::test(flavor = "current_thread")]
async fn operations_are_kept_by_text_and_name() {
    let gateway = gateway_with("");
    for body in [
        r#"{"query":"query A {__typename} query B {b: __typename}","operationName":"A"}"#,
        r#"{"query":"query A {__typename} query B {b: __typename}","operationName":"B"}"#,
        r#"{"query":"query A {__typename} query B {b: __typename}","operationName":"A"}"#,
        r#"{"query":"{ __typename }"}"#,
        r#"{"query":"{__typename}"}"#,
    ] {
        assert_eq!(post(&gateway, "", body).await.status, 200);
    }
    assert_eq!(gateway.state().operations.len(), 4);
    post(&gateway, "", r#"{"query":"{nope}"}"#).await;
    assert_eq!(
        gateway.state().operations.len(),
        4,
        "refused documents are not kept"
    );
    let body = r#"{"query":"query A {__typename} query B {b: __typename}","operationName":"B"}"#;
    assert_eq!(
        post(&gateway, "", body).await.body,
        r#"{"data":{"b":"Query"}}"#
    );
    gateway.replace(state(&Config::default()));
    assert_eq!(gateway.state().operations.len(), 0);
}

#[tokio::test(flavor = "current_thread")]
async fn the_cache_is_bounded_and_can_be_off() {
    let gateway = gateway_with("query_planning: { cache: { size: 5 } }");
    for i in 0..50 {
        post(
            &gateway,
            "",
            format!(r#"{{"query":"{{a{i}: __typename}}"}}"#),
        )
        .await;
    }
    assert!(gateway.state().operations.len() <= 5);
    let gateway = gateway_with("query_planning: { cache: { enabled: false } }");
    let answer = post(&gateway, "", r#"{"query":"{__typename}"}"#).await;
    assert_eq!(answer.status, 200);
    assert!(gateway.state().operations.is_empty());
}

/// Once a cache is a sixteenth full, what comes once is not kept, and what comes twice is.
#[tokio::test(flavor = "current_thread")]
async fn operations_that_come_once_do_not_fill_memory() {
    let gateway = gateway_with("query_planning: { cache: { size: 80 } }");
    let ask = async |i: usize| {
        let body = format!(r#"{{"query":"query A{{a{i}:me{{id}}}}"}}"#);
        assert_eq!(post(&gateway, "", body).await.status, 200);
    };
    for i in 0..400 {
        ask(i).await;
    }
    let state = gateway.state();
    let kept = (state.operations.len(), state.plans.len());
    assert!(kept.0 <= 7 && kept.1 <= 7, "{kept:?}");
    for i in 1_000..1_020 {
        ask(i).await;
        ask(i).await;
    }
    let made = state.plans.counts().planner;
    for i in 1_000..1_020 {
        ask(i).await;
    }
    assert_eq!(state.plans.counts().planner, made, "all of them are known");
}
