//! The differential test.

use std::collections::BTreeMap;

use ogive_testkit::{
    differential::Bench,
    graph::generate::{GraphOptions, generate},
    ops,
};

#[test]
fn gateway_equals_monolith() {
    let n: u64 = std::env::var("OGIVE_DIFF_OPERATIONS").ok().and_then(|v| v.parse().ok()).unwrap_or(200);
    let base: u64 = std::env::var("OGIVE_DIFF_SEED").ok().and_then(|v| v.parse().ok()).unwrap_or(0);
    let mut kinds: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut ok = 0;
    for g in 0..n.div_ceil(20) {
        let seed = base + g;
        let model = generate(seed, &GraphOptions::default());
        let bench = match Bench::new(&model, seed) { Ok(b) => b, Err(e) => { kinds.entry("bench".into()).or_default().push(e); continue; } };
        for i in 0..20 {
            let op = ops::generate::generate(&model, seed * 1000 + i, &Default::default());
            let r = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| bench.compare(&op, i)));
            match r {
                Ok(Ok(_)) => ok += 1,
                Ok(Err(m)) => kinds.entry(m.kind).or_default().push(format!("seed {seed} op {i}\n{}\n{}\n{}", op.document(), op.variables_json(), m.report)),
                Err(_) => kinds.entry("panic".into()).or_default().push(format!("seed {seed} op {i}")),
            }
        }
    }
    println!("ok {ok}");
    for (k, v) in &kinds { println!("== {k}: {}", v.len()); }
    if let Ok(k) = std::env::var("KIND") { for v in &kinds[&k][..1] { println!("{v}"); } }
    assert!(kinds.is_empty());
}
