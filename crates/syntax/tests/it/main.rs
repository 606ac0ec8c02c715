//! Tests of the public interface: files with their expected outcome, limits, spans, printing.

mod cases;
mod limits;
mod printing;
