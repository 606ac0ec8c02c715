//! Subgraphs that answer as they are told to, well or badly.

pub(crate) use ogive_testbase::subgraph::{Reply, StubSubgraph as Toxic, answer};
