//! What clients have of the tables that all of them share: no more than `limits.client_share` of each table. How it is counted
//! is [`ogive_base::shares`].

use std::net::IpAddr;

use ogive_base::{Share, Shares, Shortage};
use ogive_failure::ErrorCode;

use crate::error::RequestError;

/// What was taken of one table, by client.
pub type ClientShares = Shares<IpAddr>;

/// What one client has taken.
pub type ClientShare = Share<IpAddr>;

/// Refuses a client for whom there is nothing more of `what`.
pub fn refused(code: ErrorCode, shortage: Shortage, what: &str) -> RequestError {
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
