//! The options of `subscription.client.single_connection`.

use std::num::NonZeroUsize;

use crate::{Duration, decode::section, scalars::nonzero};

section! {
    /// `subscription.client.single_connection`
    pub struct SingleConnectionOptions {
        /// Whether clients may have many operations answered in one stream of server-sent events (the single connection mode of
        /// graphql-sse): a token by `PUT`, the stream by `GET`, operations by `POST`, an end by `DELETE`.
        pub enabled: bool = true,
        /// Most such streams at a time, those that are only reserved included; one client has `limits.client_share` of them at
        /// most. One more takes the place of the oldest that the same client has reserved and not opened; if there is none it
        /// is refused with `SUBSCRIPTIONS_LIMITED`.
        pub max_streams: NonZeroUsize = nonzero(10_000),
        /// Most operations at a time in one stream; more are refused one by one.
        pub max_operations_per_stream: NonZeroUsize = nonzero(100),
        /// How long a client may take from the token to the stream.
        pub reservation_timeout: Duration = Duration::seconds(10),
    }
}
