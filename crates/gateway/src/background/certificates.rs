//! Keeping TLS up to date while the process runs.

use std::{sync::Arc, time::Duration};

use ogive_transport::{Endpoint, ServerTls};

use crate::{
    Gateway,
    tls::{DAY, now, warn_of_end},
};

/// Shortest time between two looks at the files.
const INTERVAL_MIN: Duration = Duration::from_millis(10);

/// Looks at all files every `interval` and lets new connections use what has changed. What cannot be used is logged and
/// changes nothing. Once a day the listener's certificate is warned of if it ends soon.
pub(crate) async fn keep_up_to_date(
    gateway: &Gateway,
    listener: Option<Arc<ServerTls>>,
    interval: Duration,
) {
    let mut day = now() / DAY;
    loop {
        tokio::time::sleep(interval.max(INTERVAL_MIN)).await;
        let state = gateway.state();
        let has_tls = |endpoint: &Endpoint| matches!(endpoint.tls, Ok(Some(_)));
        if listener.is_none() && !state.endpoints.iter().any(has_tls) {
            continue;
        }
        let listener = listener.clone();
        let is_due = day != now() / DAY;
        day = now() / DAY;
        let looking = tokio::task::spawn_blocking(move || {
            if let Some(tls) = listener {
                let refreshed = tls.refresh();
                let is_another = matches!(refreshed, Ok(true));
                tell("the listener", refreshed);
                if is_due || is_another {
                    warn_of_end(&tls);
                }
            }
            for endpoint in &state.endpoints {
                if let Ok(Some(tls)) = &endpoint.tls {
                    tell(&endpoint.name, tls.refresh());
                }
            }
        });
        // A panic there was reported where it happened.
        let _ = looking.await;
    }
}

fn tell(whose: &str, refreshed: Result<bool, ogive_transport::TlsError>) {
    match refreshed {
        Ok(false) => {}
        Ok(true) => tracing::info!(whose, "certificates have changed"),
        Err(error) => tracing::error!(
            whose,
            "certificates cannot be used, going on with those before: {error}"
        ),
    }
}
