//! Real-socket tests: a gateway and mock subgraphs in one process, talked to over TCP. The tests are in `tests/it`;
//! those that spawn the `ogive` binary are in `crates/cli/tests/it`, where cargo builds it for them.
