//! Reading supergraphs, seen from outside.

mod cases;
mod damage;
mod overrides;
mod requests;
mod scale;
mod scenarios;
