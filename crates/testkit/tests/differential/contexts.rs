//! Arguments that are filled from objects above: the gateway equals the monolith.

use ogive_testkit::{
    contexts::{ContextBench, operation},
    rng::Rng,
};

const GRAPHS: u64 = 30;
const OPERATIONS: u64 = 25;

#[test]
fn values_from_above_are_those_of_the_monolith() {
    let mut parted = 0;
    for seed in 0..GRAPHS {
        let bench = ContextBench::new(seed).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        let mut rng = Rng::new(seed);
        for at in 0..OPERATIONS {
            let text = operation(&mut rng);
            let answer = bench.compare(&text, at % 2 == 0, seed * OPERATIONS + at);
            let answer = answer.unwrap_or_else(|e| panic!("seed {seed}, operation {at}:\n{e}"));
            let values = answer
                .requests
                .iter()
                .filter(|(_, body)| body.contains("_Item_quote_u"));
            parted += u32::from(values.count() > 1);
        }
    }
    // Otherwise hardly any operation had different values above.
    assert!(parted > 100, "{parted}");
}
