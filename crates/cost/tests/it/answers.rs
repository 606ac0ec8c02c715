//! What answers did cost.

use ogive_cost::{AnswerCosts, Scratch, Settings, compile};

use super::{prepare, shop};

fn actual(query: &str, body: &str) -> u64 {
    let graph = shop();
    let (operation, variables) = prepare(&graph, query, "{}");
    let settings = Settings {
        fields: true,
        ..Settings::default()
    };
    let (schema, costs) = (&graph.schema, &graph.graph.costs);
    let program = compile(schema, costs, &operation, &settings);
    let answer_costs = AnswerCosts::new(&operation);
    let scratch = &mut Scratch::default();
    let of = (schema, costs);
    answer_costs.cost(&program, of, &variables, scratch, body.as_bytes())
}

#[test]
fn items_of_an_answer_count_and_what_is_null_does_not() {
    let query = "{ plain { id author { id } } grid { id } one { id } }";
    // A book costs 3, an author 5, a toy 1.
    let one = r#"{"data":{"plain":[{"id":1,"author":{"id":2}},{"id":3,"author":null},null],"grid":[[{"id":4}],[{"id":5},{"id":6}]],"one":null}}"#;
    let toy = actual("{ grid { id } }", r#"{"data":{"grid":[[{"id":1}]]}}"#);
    assert_eq!(actual(query, one), 3 + 5 + 3 + 3 * toy);
    assert_eq!(actual(query, r#"{"errors":[],"data":null}"#), 0);
    assert_eq!(actual(query, "no answer"), 0);
}

#[test]
fn arguments_are_paid_once_for_each_object_and_members_in_any_order_count() {
    let query = "{ number(big: true) one { id label } }";
    let body = r#"{"data":{"one":{"label":"a","id":1},"number":7}}"#;
    assert_eq!(actual(query, body), 6 + 3 + 2);
    let rename = "mutation { rename(name: \"a\") { id } }";
    let toy = actual("{ grid { id } }", r#"{"data":{"grid":[[{"id":1}]]}}"#);
    assert_eq!(actual(rename, r#"{"data":{"rename":{"id":1}}}"#), 10 + toy);
}
