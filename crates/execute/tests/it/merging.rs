//! merging
