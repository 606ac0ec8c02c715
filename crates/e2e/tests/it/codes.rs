//! Every code that a crate can put into a response is in the one table.

use ogive_telemetry::codes::find;

#[test]
fn codes_of_the_executor_and_the_transport_are_in_the_table() {
    for row in ogive_execute::codes::CODES {
        assert!(find(row.code).is_some(), "{} is missing", row.code);
    }
}
