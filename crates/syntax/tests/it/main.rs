//! Tests of the public interface: limits, errors, nesting, files, print fixpoint.

mod limits;
