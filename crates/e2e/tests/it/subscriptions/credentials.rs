//! What the end of a credential does to what goes on by it, and to those who share that.

use super::{
    Streamed,
    over_http::{ADDED, Client, MULTIPART, SSE, event},
};
use crate::http_client::post_with;

/// Believes this machine about who asks.
pub(super) const TRUSTED: &str =
    "authorization: { claims: { header: x-claims, trusted: [127.0.0.1] } }\n";

/// What a proxy says of a caller whose credential ends then.
pub(super) fn until(exp: &str) -> String {
    format!("x-claims: {{\"claims\":{{\"sub\":\"ida\",\"exp\":{exp}}}}}\r\n")
}

#[test]
fn a_credential_that_ends_in_no_year_is_refused_and_breaks_nobodys_subscription() {
    let graph = Streamed::with(TRUSTED);
    let address = graph.served.address;
    for exp in ["1e19", "1e300", "253402300800", "-1", "\"soon\""] {
        let refused = Client::with(address, SSE, ADDED, &until(exp));
        let head = &refused.head;
        assert!(head.starts_with("HTTP/1.1 400"), "{exp}: {head}");
    }
    let last = until("253402300799");
    let mut first = Client::with(address, SSE, ADDED, &last);
    let mut source = graph.feed.opened();
    let mut second = Client::subscribe(address, MULTIPART, ADDED);
    graph.wait_for_open(2);
    source.add("1");
    first.until(&event("1"));
    second.until("text of 1");
    assert!(graph.feed.is_quiet());
}

#[test]
fn strangers_do_not_subscribe_where_queries_or_mutations_need_somebody_who_is_known() {
    for word in ["query", "mutation", "subscription", "introspection"] {
        let graph = Streamed::with(&format!(
            "authorization: {{ require_authentication_for: [{word}], claims: {{ header: x-claims, trusted: [127.0.0.1] }} }}\n"
        ));
        let address = graph.served.address;
        let known = Client::with(address, SSE, ADDED, "x-claims: {}\r\n");
        assert!(known.head.starts_with("HTTP/1.1 200"), "{}", known.head);
        let wanted = if word == "introspection" { 200 } else { 401 };
        for claims in ["", "x-claims: {\"authenticated\":false}\r\n"] {
            let stranger = Client::with(address, MULTIPART, ADDED, claims);
            let head = &stranger.head;
            let wanted = format!("HTTP/1.1 {wanted}");
            assert!(head.starts_with(&wanted), "{word}: {head}");
        }
        let query = post_with(address, "{ping}", &[]).status;
        assert_eq!(query == 401, word == "query", "{word}");
    }
}
