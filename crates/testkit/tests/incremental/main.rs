//! Answers in parts: random graphs, operations, `@defer` and `@stream`; put together, the parts are the whole answer, which the
//! monolith has. Where conditions name variables, what comes first is what comes first where they have the values themselves.
//!
//! `OGIVE_DEFER_OPERATIONS` sets how many operations to run (default 1,000), `OGIVE_DEFER_SEED` where to start.

use ogive_execute::incremental::{IncrementalForm, Payload};
use ogive_testkit::{
    differential::Bench,
    graph::generate::{GraphOptions, generate},
    incremental::{Assembled, agrees},
    ops::{
        self,
        conditions::{condition, decided, whole},
        defer::defer,
        features::features,
        generate::OpOptions,
        stream::stream,
    },
    pipeline::{Gateway, labels_are_on},
    rng::mix,
};
use serde_json::Value as Json;

/// Operations per graph.
const PER_GRAPH: u64 = 16;

fn number(name: &str, default: u64) -> u64 {
    let value = std::env::var(name).ok();
    value.map_or(default, |text| text.parse().expect("a number"))
}

#[derive(Default)]
struct Counts {
    operations: u64,
    deferring: u64,
    payloads: u64,
    announced: u64,
    failed: u64,
    items: u64,
    errors: u64,
    decided: u64,
}

#[test]
fn parts_put_together_are_the_whole_answer() {
    let operations = number("OGIVE_DEFER_OPERATIONS", 1_000);
    let base = number("OGIVE_DEFER_SEED", 1);
    let mut counts = Counts::default();
    for g in 0..operations.div_ceil(PER_GRAPH) {
        let seed = mix(base.wrapping_add(g).wrapping_mul(7)) >> 16;
        let faults = if g % 3 == 0 { 25 } else { 0 };
        let options = GraphOptions {
            uniform: faults > 0,
            through_objects: faults > 0,
            ..GraphOptions::default()
        };
        let model = generate(seed, &options);
        let bench = Bench::with_faults(&model, seed, faults).expect("a graph");
        for i in 0..PER_GRAPH.min(operations - g * PER_GRAPH) {
            let seed = mix(seed ^ i);
            let op = ops::generate::generate(&model, seed, &OpOptions::default());
            if features(&model, &op).contains("introspection") {
                continue;
            }
            let mut deferred = op.clone();
            // Some operations have the one, some the other, most both.
            if i % 4 != 1 {
                defer(&mut deferred, mix(seed ^ 0xdefe));
            }
            if i % 4 != 2 {
                stream(&mut deferred, &model, mix(seed ^ 0x57e4));
            }
            if i % 2 == 0 {
                condition(&mut deferred, mix(seed ^ 0xc04d));
            }
            let texts = Texts {
                whole: whole(&deferred).document(),
                decided: (i % 2 == 0 && faults == 0).then(|| {
                    let decided = decided(&deferred);
                    (decided.document(), decided.variables_json())
                }),
                deferred: deferred.document(),
                variables: deferred.variables_json(),
            };
            for form in [IncrementalForm::Distinct, IncrementalForm::Repeated] {
                if let Err(e) = compare(&bench, &texts, seed, form, &mut counts) {
                    let (document, variables) = (&texts.deferred, &texts.variables);
                    panic!("{form:?}, seed {seed}\n{document}\n{variables}\n{e}");
                }
            }
        }
    }
    println!(
        "{} answers, {} of them in parts: {} payloads, {} groups and lists of which {} failed, {} items, {} errors; {} in parts with conditions",
        counts.operations,
        counts.deferring,
        counts.payloads,
        counts.announced,
        counts.failed,
        counts.items,
        counts.errors,
        counts.decided
    );
    assert!(
        counts.deferring * 3 > counts.operations,
        "too little is deferred"
    );
    assert!(
        counts.decided > 0 || operations < 100,
        "nothing has conditions"
    );
    assert!(counts.items > 0 || operations < 1_000, "no item came later");
    assert!(counts.failed > 0 || operations < 1_000, "no group failed");
}

/// An operation as it is sent.
struct Texts {
    deferred: String,
    variables: String,
    /// Without what makes it come in parts.
    whole: String,
    /// With values in the place of variables in conditions, and the variables that are left.
    decided: Option<(String, String)>,
}

/// What comes first: the values, and what is announced with them.
fn first_part(payloads: &[Payload]) -> (Option<Json>, Vec<String>) {
    let first = payloads.first();
    let initial = first.and_then(|payload| payload.initial.as_ref());
    let data = initial.and_then(|initial| initial.data.clone());
    let data = data.map(|data| serde_json::from_slice(&data.into_bytes()).expect("JSON"));
    let announced = first.into_iter().flat_map(|payload| &payload.pending);
    let announced = announced.map(|group| {
        let path = String::from_utf8_lossy(&group.path);
        format!("{path} {}", group.label.as_deref().unwrap_or_default())
    });
    let mut announced: Vec<String> = announced.collect();
    announced.sort();
    (data, announced)
}

fn compare(
    bench: &Bench,
    texts: &Texts,
    seed: u64,
    form: IncrementalForm,
    counts: &mut Counts,
) -> Result<(), String> {
    let Texts {
        deferred: document,
        variables,
        whole,
        decided,
    } = texts;
    let gateway = Gateway::new(&bench.schemas, &bench.engines);
    let prepared = gateway.prepare_in_parts(document, variables, seed)?;
    bench.world.label(labels_are_on(seed));
    let (data, errors) = bench.expected(whole, variables)?;
    bench.world.reset();
    bench.world.forget();
    let (payloads, complaints, _) = gateway.execute_in_parts(&prepared, form, seed)?;
    // A monolith has but one value for what several subgraphs may serve.
    if bench.world.is_ambiguous() || bench.world.is_disputed() {
        return Ok(());
    }
    let context = |e: String| {
        format!(
            "{e}\nexpected {data}\n{payloads:#?}\n{}",
            gateway.plan_text(&prepared)
        )
    };
    if let Some(complaint) = complaints.first() {
        return Err(context(format!("a subgraph complains: {complaint}")));
    }
    let assembled = Assembled::of(&payloads, form).map_err(context)?;
    let whole: Json = serde_json::from_str(&data).map_err(|e| e.to_string())?;
    agrees(&whole, &assembled).map_err(context)?;
    if errors.is_some() && assembled.errors.is_empty() {
        return Err(context("no error is told".to_owned()));
    }
    if errors.is_none() && !assembled.errors.is_empty() {
        return Err(context(format!("errors: {:?}", assembled.errors)));
    }
    if let Some((document, variables)) = decided {
        let prepared = gateway.prepare_in_parts(document, variables, seed)?;
        bench.world.reset();
        bench.world.forget();
        let (other, ..) = gateway.execute_in_parts(&prepared, form, seed)?;
        let (mut now, mut then) = (first_part(&payloads), first_part(&other));
        // Where nothing at all is deferred, groups are not repeated either.
        if form == IncrementalForm::Repeated && other.len() == 1 {
            (now.1, then.1) = (Vec::new(), Vec::new());
        }
        if now != then && !bench.world.is_ambiguous() {
            return Err(context(format!("first {now:?}\nwith values {then:?}")));
        }
        counts.decided += u64::from(other.len() > 1);
    }
    counts.operations += 1;
    counts.deferring += u64::from(payloads.len() > 1);
    counts.payloads += payloads.len() as u64;
    counts.announced += assembled.announced as u64;
    counts.failed += assembled.failed.len() as u64;
    counts.items += assembled.items as u64;
    counts.errors += assembled.errors.len() as u64;
    Ok(())
}
