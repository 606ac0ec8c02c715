//! Large answers are looked at while they arrive, whatever frames them, and read as if nobody had.

use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use ogive_execute::{
    ExecuteInput, ExecuteLimits, ExecuteOptions, ExecuteOutput, Transport, execute,
};
use ogive_plan::{Granted, Plan};
use ogive_transport::{Client, Endpoint, HeaderRules, RequestTransport, Retry, Traffic};

use crate::{
    fixture::Builder,
    server::{Act, Server},
};

/// A list of objects, and a name behind it.
pub(crate) fn plan() -> Plan {
    let mut b = Builder::new(&["a"], &["Query", "Row"]);
    let rows = b.object(Plan::ROOT, "rows", "[Row!]", &["Row"]);
    b.leaf(rows, "n", "Int!");
    b.leaf(rows, "text", "String");
    b.leaf(Plan::ROOT, "name", "String");
    let row = b.shape(rows, &[("n", None), ("text", None)]);
    b.root(0, "{}", &[("rows", Some(row)), ("name", None)]);
    b.build()
}

/// An answer with so many rows of 59 bytes or so, and what the client gets of it.
pub(crate) fn answer(rows: usize) -> String {
    let rows = (0..rows).map(|n| format!(r#"{{"n":{n},"text":"{n:040}"}}"#));
    let rows: Vec<String> = rows.collect();
    format!(r#"{{"data":{{"rows":[{}],"name":"x"}}}}"#, rows.join(","))
}

async fn executed(plan: &Plan, acts: Vec<Act>, traffic: Traffic) -> ExecuteOutput {
    let server = Server::start(vec![acts]).await;
    let url = format!("http://{}/", server.address);
    let endpoints = [Endpoint::new("a", &url, traffic, HeaderRules::default())];
    let (client, headers) = (Client::new(), HeaderMap::new());
    let transport = RequestTransport::new(&client, &endpoints, &headers, None);
    let input = ExecuteInput {
        costs: None,
        operation_names: None,
        variables: &[],
        granted: &Granted::default(),
        locals: &[],
        limits: ExecuteLimits::default(),
        options: ExecuteOptions::default(),
        error_extensions: &[],
    };
    let transport: &dyn Transport = &transport;
    execute(plan, input, transport).await
}

fn text(output: ExecuteOutput) -> Bytes {
    output.body.into_bytes()
}

fn leaked(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

#[tokio::test]
async fn large_answers_are_looked_at_while_they_arrive() {
    let (plan, body) = (plan(), answer(30_000));
    let sized = |status: &str, body: &str| {
        let length = body.len();
        format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n\r\n{body}")
    };
    let chunks = body.as_bytes().chunks(100_003).map(|chunk| {
        let chunk = std::str::from_utf8(chunk).unwrap();
        format!("{:x}\r\n{chunk}\r\n", chunk.len())
    });
    let chunked = format!(
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{}0\r\n\r\n",
        chunks.collect::<String>()
    );
    for answer in [sized("200 OK", &body), chunked] {
        let acts = vec![Act::Answer(leaked(answer))];
        let output = executed(&plan, acts, Traffic::default()).await;
        assert!(
            output.stats.streamed_bytes > 256 << 10,
            "{:?}",
            output.stats
        );
        assert!(text(output) == body, "what passes is what came");
    }
    // Of what failed nothing is known when it is tried again, and damage is found.
    let traffic = Traffic {
        retry: Some(Retry {
            attempts: 1,
            backoff: Duration::ZERO,
            backoff_max: Duration::ZERO,
            budget_percent: 100,
            budget_per_second: 0,
        }),
        ..Traffic::default()
    };
    let damaged = body.replace("\"n\":29990,", "\"n\":29990;");
    for (first, second) in [("503 No", &body), ("503 No", &damaged)] {
        let acts = vec![
            Act::Answer(leaked(sized(first, &body))),
            Act::Answer(leaked(sized("200 OK", second))),
        ];
        let output = executed(&plan, acts, traffic.clone()).await;
        assert!(
            output.stats.streamed_bytes > 256 << 10,
            "{:?}",
            output.stats
        );
        if *second == body {
            assert!(text(output) == body)
        } else {
            assert_eq!(output.errors, 2)
        }
    }
    // What has to be decoded is read when it is whole.
    let encoded = format!(
        "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let output = executed(
        &plan,
        vec![Act::Answer(leaked(encoded))],
        Traffic::default(),
    )
    .await;
    assert_eq!((output.stats.streamed_bytes, output.errors), (0, 2));
}
