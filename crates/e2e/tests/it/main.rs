//! A gateway and its subgraphs over real sockets. No sleeps: tests wait for what they need to see.
#![allow(clippy::unwrap_used, reason = "a failed expectation is a failed test")]

mod abstract_types;
mod answers;
mod audit;
mod authorization;
mod bad_input;
mod certificates;
mod codes;
mod compression;
mod connections;
mod crowds;
mod demand_control;
mod edge;
mod endings;
mod faults;
mod five_stops;
mod graph;
mod headers;
mod http2;
mod http_client;
mod identity;
mod incremental;
mod measured;
mod network;
mod refine;
mod resilience;
mod reuse;
mod scenarios;
mod sharing;
mod subgraph_authentication;
mod subgraph_faults;
mod subscriptions;
mod telemetry;
mod tls;
mod toxic;
mod uploads;
