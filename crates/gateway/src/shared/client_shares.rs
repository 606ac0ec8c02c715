//! What clients have of the tables that all of them share: no more than `limits.client_share` of each table. How it is counted
//! is [`ogive_base::shares`].

use std::net::IpAddr;

use ogive_base::{Share, ShareLimits, Shares};

use crate::options::GatewayOptions;

/// What was taken of one table, by client.
pub(crate) type ClientShares = Shares<IpAddr>;

/// What one client has taken.
pub(crate) type ClientShare = Share<IpAddr>;

impl GatewayOptions {
    /// How much of this all clients and each of them may have.
    pub(crate) fn share_of(&self, all: usize) -> ShareLimits {
        ShareLimits::of(all, self.client_share)
    }
}
