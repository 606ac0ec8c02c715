//! A gateway of one's own: a stage that asks for a key, a subgraph in the same process, and a policy. `cargo run -p ogive --example
//! own_gateway` serves it at <http://127.0.0.1:4000/graphql>.

use ogive::{Caller, Gateway, PolicyEngine, Request, Stages, SubgraphTransport, WorkerFuture};
use serde_json::{Value, json};

/// Lets nobody in without a key, and tells clients who has answered.
struct Keys;

impl Stages for Keys {
    fn call(&self, mut message: Value) -> WorkerFuture<'_, Result<Value, String>> {
        Box::pin(async move {
            match message["stage"].as_str() {
                Some("RouterRequest") if message["headers"]["x-key"][0] != "secret" => {
                    message["control"] = json!({"break": 401});
                    message["body"] = json!({"errors": [{"message": "no key"}]})
                        .to_string()
                        .into();
                }
                Some("RouterResponse") => message["headers"]["x-answered-by"] = json!(["own"]),
                _ => {}
            }
            Ok(message)
        })
    }
}

/// The subgraph `people`, without a network.
struct People;

impl SubgraphTransport for People {
    fn send(&self, request: Request) -> WorkerFuture<'_, Result<Vec<u8>, String>> {
        Box::pin(async move {
            let text = String::from_utf8_lossy(&request.body);
            let mut me = json!({});
            for (field, value) in [("name", "Ida"), ("salary", "a lot")] {
                if text.contains(field) {
                    me[field] = value.into();
                }
            }
            Ok(json!({"data": {"me": me}}).to_string().into_bytes())
        })
    }
}

/// Salaries are for those who claim to be the boss.
struct Bosses;

impl PolicyEngine for Bosses {
    fn holds(&self, policy: &str, caller: Caller<'_>, _: &str) -> bool {
        policy == "boss"
            && caller
                .claims()
                .get("role")
                .is_some_and(|role| role == "boss")
    }
}

/// The gateway, to listen at an address.
pub(crate) fn gateway(listen: &str) -> Result<Gateway, ogive::Error> {
    Gateway::builder()
        .configuration(format!(
            "listen: {listen}\n\
             coprocessor:\n  url: http://in.process/\n  router: {{ request: {{ headers: true }}, response: {{ headers: true }} }}\n\
             authorization: {{ directives: enforce, claims: {{ header: x-claims, trusted: [127.0.0.1] }} }}\n"
        ))
        .supergraph(include_str!("supergraph.graphql"))
        .stages(Keys)
        .transport("people", People)
        .policies(Bosses)
        .build()
}

#[allow(dead_code, reason = "a test has it as a module")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let listening = gateway("127.0.0.1:4000")?.listen().await?;
        Ok(listening.serve(std::future::pending()).await?)
    })
}
