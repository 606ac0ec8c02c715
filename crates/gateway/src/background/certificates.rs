//! Keeps the certificates towards subgraphs, and the keys that requests to them are signed with, up to date while the
//! process runs.

use std::{convert::Infallible, sync::Arc, time::Duration};

use ogive_server::certificates::{INTERVAL_MIN, log};
use ogive_transport::Endpoint;

use crate::Gateway;

/// Looks at all files every `interval` and lets new connections use what has changed. What cannot be used is logged and
/// changes nothing.
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
                if let Ok(Some(tls)) = &endpoint.tls {
                    log(&endpoint.name, tls.refresh());
                }
                let whose = &*endpoint.name;
                match endpoint.signer.as_ref().map(|signer| signer.refresh()) {
                    None | Some(Ok(false)) => {}
                    Some(Ok(true)) => tracing::info!(whose, "the key of signatures has changed"),
                    Some(Err(error)) => tracing::error!(
                        whose,
                        "the key of signatures cannot be used, going on with the one before: {error}"
                    ),
                }
            }
        });
        // A panic there was reported where it happened.
        let _ = looking.await;
    }
}
