//! Tests of the lab itself.

mod files;
