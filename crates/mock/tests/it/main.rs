//! Tests of the mock as its users see it: published scenarios, engine cases from files, generation, real sockets.

mod cases;
mod data;
mod demo;
mod federation;
mod generate;
mod http;
mod scenarios;
mod support;
