//! Who asks: the client behind proxies.

pub mod proxies;
