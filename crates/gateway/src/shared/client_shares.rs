//! What clients have of the tables that all of them share: no more than `limits.client_share` of each table. How it is counted
//! is [`ogive_base::shares`].

use std::net::IpAddr;

use ogive_base::{Share, ShareLimits, Shares, Shortage};
use ogive_config::Client;
use ogive_failure::ErrorCode;

use crate::{options::GatewayOptions, shared::error::RequestError};

/// What was taken of one table, by client.
pub(crate) type ClientShares = Shares<IpAddr>;

/// What one client has taken.
pub(crate) type ClientShare = Share<IpAddr>;

impl GatewayOptions {
    /// Whose share something is of; `None` if nobody can tell.
    pub(crate) fn counted(&self, client: Option<Client>) -> Option<IpAddr> {
        self.proxies.counted(client?)
    }
    /// How much of this all clients and each of them may have.
    pub(crate) fn share_of(&self, all: usize) -> ShareLimits {
        ShareLimits::of(all, self.client_share)
    }
}

/// Refuses a client for whom there is nothing more of `what`.
pub(crate) fn refused(code: ErrorCode, shortage: Shortage, what: &str) -> RequestError {
    let message = match shortage {
        Shortage::All => format!("{what} limit reached; retry later"),
        Shortage::Own => {
            format!("{what} limit of one client reached; end others of this client first")
        }
    };
    RequestError {
        retry_after: Some(1),
        ..RequestError::http(code, message)
    }
}
