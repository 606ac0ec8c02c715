//! leaves
