//! The options of `tls`.

use std::collections::BTreeMap;

use crate::{Config, Duration, decode::section};

section! {
    /// `tls`
    pub struct TlsOptions {
        /// The listener; not set: no TLS.
        pub supergraph: Option<TlsListenerOptions> = None,
        /// Subgraphs with `https` URLs.
        pub subgraph: TlsSubgraphsOptions = TlsSubgraphsOptions::default(),
        /// How often all files are looked at; new connections use what has changed.
        pub reload_interval: Duration = Duration::seconds(10),
    }

    /// `tls.supergraph`
    pub struct TlsListenerOptions {
        /// The gateway's certificate, followed by those that lead to its authority.
        pub certificate_chain: String = String::new(),
        /// The certificate's private key.
        pub key: String = String::new(),
        /// Client certificates (mTLS); not set: clients are not asked for one.
        pub client_authentication: Option<TlsClientsOptions> = None,
    }

    /// `tls.supergraph.client_authentication`
    pub struct TlsClientsOptions {
        /// Authorities whose certificates are taken.
        pub certificate_authorities: String = String::new(),
        /// Whether a client without a certificate is refused; default yes.
        pub required: bool = true,
    }

    /// `tls.subgraph`
    pub struct TlsSubgraphsOptions {
        /// Every subgraph.
        pub all: TlsSubgraphOptions = TlsSubgraphOptions::default(),
        /// By subgraph name; what is not set here is taken from `all`.
        pub subgraphs: BTreeMap<String, TlsSubgraphOptions> = BTreeMap::new(),
    }

    /// `tls.subgraph.all` and `tls.subgraph.subgraphs.<name>`
    pub struct TlsSubgraphOptions {
        /// Authorities to trust; default: those that the operating system trusts.
        pub certificate_authorities: Option<String> = None,
        /// What to show subgraphs that ask for a certificate (mTLS).
        pub client_authentication: Option<TlsIdentityOptions> = None,
        /// Name that the subgraph's certificate must be for; default: the host of its URL.
        pub server_name: Option<String> = None,
        /// Whether any certificate is taken; default no. Whoever is on the way can then read and change everything;
        /// every start warns about it.
        pub insecure_skip_verify: Option<bool> = None,
    }

    /// `tls.subgraph.all.client_authentication` and `tls.subgraph.subgraphs.<name>.client_authentication`
    pub struct TlsIdentityOptions {
        /// The gateway's certificate towards subgraphs, followed by those that lead to its authority.
        pub certificate_chain: String = String::new(),
        /// The certificate's private key.
        pub key: String = String::new(),
    }
}

impl Config {
    /// The TLS options of one subgraph: its own, else those of `all`.
    pub fn subgraph_tls(&self, subgraph: &str) -> TlsSubgraphOptions {
        let all = &self.tls.subgraph.all;
        let Some(own) = self.tls.subgraph.subgraphs.get(subgraph) else {
            return all.clone();
        };
        fn pick<T: Clone>(own: &Option<T>, all: &Option<T>) -> Option<T> {
            own.as_ref().or(all.as_ref()).cloned()
        }
        TlsSubgraphOptions {
            certificate_authorities: pick(
                &own.certificate_authorities,
                &all.certificate_authorities,
            ),
            client_authentication: pick(&own.client_authentication, &all.client_authentication),
            server_name: pick(&own.server_name, &all.server_name),
            insecure_skip_verify: pick(&own.insecure_skip_verify, &all.insecure_skip_verify),
        }
    }
}
