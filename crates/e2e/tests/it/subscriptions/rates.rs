//! Rates of subgraphs that are asked for every event.

use super::{
    GRAPH, Streamed,
    credentials::TRUSTED,
    over_http::{ADDED, Client, MULTIPART, SSE, event},
};

fn rate(key: &str) -> String {
    format!(
        "traffic_shaping: {{ subgraphs: {{ texts: {{ rate_limits: [{{ name: one, capacity: 1, interval: 1h, key: [{key}] }}] }} }} }}\n"
    )
}

const BY_TENANT: &str = "{ jwt_claim: tenant }";

fn of_tenant(graph: &Streamed, tenant: &str) -> Client {
    let claims = format!("x-claims: {{\"claims\":{{\"tenant\":\"{tenant}\"}}}}\r\n");
    Client::with(graph.served.address, SSE, ADDED, &claims)
}

#[test]
fn events_are_not_empty_because_somebody_else_has_nothing_left() {
    let graph = Streamed::with(&format!("{TRUSTED}{}", rate(BY_TENANT)));
    let mut acme = of_tenant(&graph, "acme");
    let mut source = graph.feed.opened();
    let mut second = of_tenant(&graph, "acme");
    graph.wait_for_open(2);
    assert!(graph.feed.is_quiet(), "one tenant shares");
    let mut other = of_tenant(&graph, "other");
    let mut other_source = graph.feed.opened();
    source.add("1");
    source.add("2");
    for acme in [&mut acme, &mut second] {
        acme.until(&event("1"));
        acme.until("REQUEST_RATE_LIMITED");
    }
    other_source.add("1");
    other.until(&event("1"));
}

#[test]
fn a_rate_that_a_reload_brings_is_shared_by_those_whom_it_counts_together() {
    for (key, goes_on) in [("", true), (BY_TENANT, false)] {
        let graph = Streamed::with(&format!("  reload_window: 0s\n{TRUSTED}"));
        let mut acme = of_tenant(&graph, "acme");
        let mut source = graph.feed.opened();
        let other = of_tenant(&graph, "other");
        graph.wait_for_open(2);
        graph.reload_as(&GRAPH, &format!("{}{}", graph.yaml, rate(key)));
        if goes_on {
            source.add("1");
            acme.until(&event("1"));
            // Whoever comes now shares it, too.
            let _third = Client::subscribe(graph.served.address, MULTIPART, ADDED);
            graph.wait_for_open(3);
            assert!(graph.feed.is_quiet());
        } else {
            for client in [acme, other] {
                assert!(!client.rest().contains("complete"));
            }
        }
    }
}
