//! nulls
