//! An exchange while a script has it.

use std::{
    ops::{Deref, DerefMut},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::{Body, Exchange, Members};

/// A handle on an exchange that a script has.
#[derive(Clone, Debug)]
pub(crate) struct Lent(pub(crate) Arc<Mutex<LentExchange>>);

impl Lent {
    pub(crate) fn look(&self) -> MutexGuard<'_, LentExchange> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An exchange, and its body as far as the script has looked at it.
#[derive(Debug)]
pub(crate) struct LentExchange {
    exchange: Exchange,
    /// The members of the body, read when the script looks at the first one.
    body: Option<Members>,
}

impl LentExchange {
    pub(crate) fn new(exchange: Exchange) -> Self {
        LentExchange {
            exchange,
            body: None,
        }
    }
    /// The members of the body; none of what is no JSON object.
    pub(crate) fn body(&mut self) -> &mut Members {
        let body = &self.exchange.body;
        self.body.get_or_insert_with(|| match body {
            Some(Body::Json(json)) => Members::read(json).unwrap_or_default(),
            Some(Body::Text(_)) | None => Members::default(),
        })
    }
    /// The exchange as the script leaves it.
    pub(crate) fn into_exchange(self) -> Exchange {
        let mut exchange = self.exchange;
        if let Some(json) = self.body.and_then(|body| body.changed()) {
            exchange.body = Some(Body::Json(json));
            exchange.changes.body = true;
        }
        exchange
    }
}

impl Deref for LentExchange {
    type Target = Exchange;

    fn deref(&self) -> &Exchange {
        &self.exchange
    }
}

impl DerefMut for LentExchange {
    fn deref_mut(&mut self) -> &mut Exchange {
        &mut self.exchange
    }
}
