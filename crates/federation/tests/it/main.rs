//! Reading supergraphs, seen from outside.

mod scenarios;
