//! A request whose token was proved before, through the stage that finds out who asks.

use std::{
    pin::pin,
    task::{Context, Poll, Waker},
};

use anyhow::{Context as _, Result, ensure};
use ogive_base::{Peer, SourceId};
use ogive_gateway::{Gateway, GatewayOptions, SchemaState, WorkerState};
use ogive_testbase::subgraph::StubSubgraph;

use crate::graph::Graph;

/// As identity providers make them, in three lines: what it is, what it claims, its signature.
const TOKEN: [&str; 3] = [
    "eyJhbGciOiJIUzI1NiIsInR5cCI6ImF0K2p3dCIsImtpZCI6ImdhdGUifQ",
    "eyJpc3MiOiJodHRwczovL2lzc3Vlci5leGFtcGxlLmNvbS9yZWFsbXMvc2hvcCIsImF1ZCI6WyJodHRwczovL2dyYXBocWwuZXhhbXBsZS5jb20iLCJhY2NvdW50Il0sInN1YiI6ImY4YjdjMWRlLTBkMGYtNGE2Yy05YTA3LTZmMWZkMWI5ZDFiNSIsImF6cCI6IndlYiIsInNjb3BlIjoib3BlbmlkIHByb2ZpbGUgZW1haWwgb3JkZXJzLnJlYWQgb3JkZXJzLndyaXRlIiwicmVhbG1fYWNjZXNzIjp7InJvbGVzIjpbImN1c3RvbWVyIiwib2ZmbGluZV9hY2Nlc3MiLCJ1bWFfYXV0aG9yaXphdGlvbiJdfSwic2lkIjoiNGY4YzFhMWUtN2QxYi00ZWUzLThiMGUtMGNiZjUwYTBhMmYwIiwiZW1haWxfdmVyaWZpZWQiOnRydWUsIm5hbWUiOiJab2UgUXVpbGwiLCJwcmVmZXJyZWRfdXNlcm5hbWUiOiJ6b2UiLCJlbWFpbCI6InpvZUBleGFtcGxlLmNvbSIsImlhdCI6MTcwMDAwMDAwMH0",
    "1MWBrv-r0ghzA5e8fyi7UEqm0BB0F-3IZABr0fule04",
];
const KEYS: &str = r#"{"keys":[{"kty":"oct","kid":"gate","k":"YSBzZWNyZXQgb2YgdGhlIGluc3RydWN0aW9uIGdhdGUsIDMyKw"}]}"#;

/// Finds out who asks, again and again.
pub fn identify_known_token(graph: Graph) -> Result<Box<dyn Fn() -> Result<()>>> {
    // By URL and for an hour: a file would be looked at beside what is counted.
    let issuer = StubSubgraph::answering(200, "", KEYS);
    let yaml = format!(
        "authentication: {{ router: {{ jwt: {{ last_known_good: '', jwks: [{{ url: '{}', algorithms: [HS256], \
         audiences: ['https://graphql.example.com'], poll_interval: 1h, allow_missing_exp: true }}] }} }} }}",
        issuer.url()
    );
    let config = ogive_config::load(SourceId(0), &yaml, &|_| None);
    let config = config.map_err(|errors| anyhow::anyhow!("{errors:?}"))?;
    let state = SchemaState::new(graph.supergraph, &config).0;
    let gateway = Gateway::new(state, GatewayOptions::new(&config));
    let request = http::Request::post("/graphql")
        .header("authorization", format!("Bearer {}", TOKEN.join(".")))
        .header("content-type", "application/json")
        .header("user-agent", "gate")
        .body(())?;
    let (parts, ()) = request.into_parts();
    let worker = WorkerState::new();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let caller = runtime.block_on(gateway.caller_of(&parts, Peer::Unix, &worker));
    let caller = caller.context("the token is not good")?;
    ensure!(caller.granted.scopes.len() == 5, "{caller:?}");
    drop(issuer);
    Ok(Box::new(move || {
        let identified = pin!(gateway.caller_of(&parts, Peer::Unix, &worker));
        // Who is known is known at once.
        match identified.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(caller) => {
                let caller = std::hint::black_box(caller).context("nobody is known")?;
                ensure!(caller.granted.authenticated);
                Ok(())
            }
            Poll::Pending => anyhow::bail!("the token is not known"),
        }
    }))
}
