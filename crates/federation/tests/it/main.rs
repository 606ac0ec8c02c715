//! Reading supergraphs, seen from outside.

mod cases;
mod overrides;
mod scale;
mod scenarios;
