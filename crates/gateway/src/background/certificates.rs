//! Keeps the certificates towards subgraphs, and the keys that requests to them are signed with, up to date while the
//! process runs.

use std::{convert::Infallible, sync::Arc, time::Duration};

use ogive_server::certificates::INTERVAL_MIN;
use ogive_sources::{SourceEvent, SourceKind, SourceResult};
use ogive_transport::Endpoint;

use crate::Gateway;

/// Looks at all files every `interval` and lets new connections use what has changed. What cannot be used changes nothing.
pub(crate) async fn keep_up_to_date(gateway: Arc<Gateway>, interval: Duration) -> Infallible {
    loop {
        tokio::time::sleep(interval.max(INTERVAL_MIN)).await;
        let state = gateway.state();
        let has_files =
            |endpoint: &Endpoint| matches!(endpoint.tls, Ok(Some(_))) || endpoint.signer.is_some();
        if !state.endpoints.iter().any(has_files) {
            continue;
        }
        let looking = tokio::task::spawn_blocking(move || {
            for endpoint in &state.endpoints {
                let from = &*endpoint.name;
                if let Ok(Some(tls)) = &endpoint.tls {
                    let refreshed = tls.refresh().map_err(|error| error.to_string());
                    refreshed_source(SourceKind::Certificates, from, refreshed);
                }
                if let Some(signer) = &endpoint.signer {
                    let refreshed = signer.refresh().map_err(|error| error.to_string());
                    refreshed_source(SourceKind::SigningKey, from, refreshed);
                }
            }
        });
        // A panic there was reported where it happened.
        let _ = looking.await;
    }
}

/// Tells what became of a look at somebody's files.
pub(crate) fn refreshed_source(kind: SourceKind, from: &str, refreshed: Result<bool, String>) {
    let result = match &refreshed {
        Ok(false) => SourceResult::Same,
        Ok(true) => SourceResult::Taken,
        Err(why) => SourceResult::Kept(why),
    };
    SourceEvent { kind, from, result }.tell();
}
