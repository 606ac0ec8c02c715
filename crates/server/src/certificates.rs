//! Keeps the listener's certificates up to date while the server runs.
//!
//! The files are looked at every now and then; when one has changed, new connections use it. Whoever renews certificates
//! needs no restart and no signal.

use std::{convert::Infallible, future::pending, sync::Arc, time::Duration};

use ogive_net::ServerTls;

use crate::{
    service::Service,
    tls::{DAY, now, warn_of_end},
};

/// Shortest time between two looks at the files.
pub const INTERVAL_MIN: Duration = Duration::from_millis(10);

/// Looks at the files every `interval` and lets new connections use what has changed. What cannot be used changes nothing,
/// and the service is told of it. Once a day the certificate is warned of if it ends soon.
pub(crate) async fn keep_up_to_date(
    service: &Arc<impl Service>,
    tls: Option<Arc<ServerTls>>,
    interval: Duration,
) -> Infallible {
    let Some(tls) = tls else {
        return pending().await;
    };
    let mut day = now() / DAY;
    loop {
        tokio::time::sleep(interval.max(INTERVAL_MIN)).await;
        let (tls, service) = (Arc::clone(&tls), Arc::clone(service));
        let is_due = day != now() / DAY;
        day = now() / DAY;
        let looking = tokio::task::spawn_blocking(move || {
            let refreshed = tls.refresh();
            let is_another = matches!(refreshed, Ok(true));
            service.looked_at_certificates(refreshed);
            if is_due || is_another {
                warn_of_end(&tls);
            }
        });
        // A panic there was reported where it happened.
        let _ = looking.await;
    }
}
