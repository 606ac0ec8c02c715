//! Who asks, by token or key, on real sockets.

mod attributes;
mod callers;
mod certificates;
mod introspection;
#[path = "../../../../identity/tests/it/made.rs"]
pub(crate) mod made;
pub(crate) mod opaque;
pub(crate) mod policies;
pub(crate) mod providers;
mod rotation;
mod secrecy;
pub(crate) mod services;

use serde_json::Value;

use crate::{
    authorization::RESTRICTED,
    graph::Graph,
    http_client::{Answer, post_with},
};
use made::{Folder, Made, jwks};

/// An issuer of tokens, with one key.
pub(crate) const ISSUER: &str = "https://issuer.example";

/// A gateway that knows the key of one issuer from a file.
pub(crate) struct Known {
    pub(crate) graph: Graph,
    pub(crate) key: Made,
    _folder: Folder,
}

impl Known {
    /// `more` is further YAML below `jwt`, in one line; `yaml` is further configuration.
    pub(crate) fn with(more: &str, yaml: &str) -> Known {
        let (folder, key) = (Folder::new(), Made::new("1"));
        let path = folder.write("jwks.json", &jwks(&[&key]));
        let jwks = format!(
            "jwks: [{{ url: 'file://{}', request_timeout: 60s, issuers: ['{ISSUER}'], audiences: [us] }}]",
            path.display()
        );
        let yaml = format!("authentication: {{ router: {{ jwt: {{ {jwks}{more} }} }} }}\n{yaml}");
        Known {
            graph: Graph::changed(&yaml, RESTRICTED),
            key,
            _folder: folder,
        }
    }
    /// A token with further claims, or others.
    pub(crate) fn token(&self, more: Value) -> String {
        self.key.token(&claims(more))
    }
    pub(crate) fn ask(&self, query: &str, headers: &[(&str, &str)]) -> Answer {
        post_with(self.graph.address(), query, headers)
    }
    /// Asks with a token.
    pub(crate) fn bear(&self, query: &str, token: &str) -> Answer {
        self.ask(query, &[("authorization", &format!("Bearer {token}"))])
    }
}

/// Claims that hold, and further ones.
pub(crate) fn claims(more: Value) -> Value {
    let mut claims = made::claims(ISSUER);
    claims["aud"] = "us".into();
    for (name, value) in more.as_object().unwrap() {
        claims[name.as_str()] = value.clone();
    }
    claims
}
