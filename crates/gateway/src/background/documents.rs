//! Keeps trusted documents up to date: asks their sources, lets those end whose time is over, and writes down what is asked
//! for that is none of them.

use std::{convert::Infallible, pin::pin, sync::Arc, time::Duration};

use tokio::{sync::Notify, task::JoinSet};

use crate::{
    documents::{Trusted, epoch::seconds_since_1970, trusted::DocumentSource},
    gateway::Gateway,
};

/// Longest wait until it is looked again whether a document has ended.
const LOOK_MAX: Duration = Duration::from_secs(3_600);

/// Follows what the gateway trusts. Runs in a [`LocalSet`](tokio::task::LocalSet).
pub(crate) async fn keep_up_to_date(gateway: Arc<Gateway>) -> Infallible {
    loop {
        let mut changed = pin!(gateway.documents_changed.notified());
        // From now on, so that no reload is missed while sources are begun.
        changed.as_mut().enable();
        let trusted = gateway.options().documents.trusted.clone();
        let mut asking = JoinSet::new();
        let other = Arc::new(Notify::new());
        if let Some(trusted) = &trusted {
            for source in &trusted.sources {
                asking.spawn_local(ask(
                    Arc::clone(source),
                    Arc::clone(trusted),
                    Arc::clone(&other),
                ));
            }
            asking.spawn_local(end(Arc::clone(trusted), other));
            asking.spawn_local(write_down(Arc::clone(trusted)));
        }
        changed.await;
        // What is under way of the ones before is given up; the next ones have what these had.
        drop(asking);
        if let Some(trusted) = trusted {
            trusted.unknown().write();
        }
    }
}

/// Writes down what is left.
pub(crate) fn finish(gateway: &Gateway) {
    if let Some(trusted) = &gateway.options().documents.trusted {
        trusted.unknown().write();
    }
}

/// Asks a source again and again.
async fn ask(source: Arc<DocumentSource>, trusted: Arc<Trusted>, other: Arc<Notify>) {
    // It was made once before.
    let Ok(mut poller) = source.poller() else {
        return;
    };
    let taking = Arc::clone(&source);
    let take = Arc::new(move |from: &str, text: &str| {
        if taking.take(from, text)? {
            trusted.refresh();
            other.notify_one();
        }
        // The source keeps it itself, with what was replaced.
        Ok(false)
    });
    let first = poller.fetch(&take).await;
    poller.went(first.clone());
    source.was_tried(first);
    poller.run(take).await;
}

/// Leaves documents out as soon as they have ended.
async fn end(trusted: Arc<Trusted>, other: Arc<Notify>) {
    loop {
        let ends = trusted.documents().ends();
        let wait = ends.map_or(LOOK_MAX, |ends| {
            Duration::from_secs(ends.saturating_sub(seconds_since_1970()))
        });
        // Another manifest may end earlier.
        let _ = tokio::time::timeout(wait.min(LOOK_MAX), other.notified()).await;
        if ends.is_some_and(|ends| ends <= seconds_since_1970()) {
            let trusted = Arc::clone(&trusted);
            // All documents are read, and the thread of this runtime accepts connections.
            let _ = tokio::task::spawn_blocking(move || trusted.refresh()).await;
        }
    }
}

/// Writes down what is asked for and not trusted.
async fn write_down(trusted: Arc<Trusted>) {
    loop {
        let unknown = trusted.unknown();
        if !unknown.is_written() {
            return;
        }
        tokio::time::sleep(unknown.interval()).await;
        let writing = tokio::task::spawn_blocking(move || unknown.write());
        let _ = writing.await;
    }
}
