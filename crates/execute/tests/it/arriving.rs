//! Answers that are looked at while they arrive: wherever they are cut, what the client sees is what it would have seen.

use bytes::{Bytes, BytesMut};
use ogive_execute::{
    ExecuteInput, ExecuteLimits, ExecuteOptions, ExecuteOutput, StreamScan, SubgraphRequest,
    SubgraphResponse, Transport, TransportFuture, execute,
};
use ogive_plan::{Granted, Plan};
use ogive_testbase::Rng;
use serde_json::{Value, json};

use crate::{
    fixture::Builder,
    passing::{change, piece_by_piece, plan, truth},
    script::{block_on, text},
};

/// How an answer arrives.
enum Pace<'p> {
    /// It is there at once, and nobody is asked to look.
    Whole,
    /// It is looked at whenever so many bytes have come, however few.
    Eager(&'p [usize]),
    /// It comes in pieces of so many bytes.
    Pieces(usize),
}

/// Answers everything with one body, except for entities.
struct Pacer<'p> {
    body: Bytes,
    pace: Pace<'p>,
}

impl Pacer<'_> {
    fn arrive(&self, ahead: StreamScan<'_>) -> Bytes {
        let mut came = BytesMut::new();
        let (ends, ahead) = match &self.pace {
            Pace::Whole => return self.body.clone(),
            Pace::Eager(ends) => (ends.to_vec(), ahead.eagerly()),
            Pace::Pieces(size) => {
                let ends = (0..self.body.len()).step_by(*size);
                (ends.collect(), ahead)
            }
        };
        let mut arriving = ahead.begin();
        for end in ends {
            came.extend_from_slice(&self.body[came.len()..end]);
            arriving.look(&came);
        }
        came.extend_from_slice(&self.body[came.len()..]);
        let whole = came.freeze();
        arriving.whole(&whole);
        whole
    }
}

impl Transport for Pacer<'_> {
    fn send(&self, request: SubgraphRequest) -> TransportFuture<'_> {
        let asked: Value = serde_json::from_slice(&request.body).unwrap();
        let body = match asked["variables"]["representations"].as_array() {
            None => self.body.clone(),
            Some(asked) => {
                let open: Vec<Value> = asked.iter().map(|_| json!({"open": true})).collect();
                let body = json!({"data": {"_entities": open}});
                serde_json::to_vec(&body).unwrap().into()
            }
        };
        Box::pin(async move { Ok(SubgraphResponse { status: 200, body }) })
    }
    fn send_scanned<'a>(
        &'a self,
        _: SubgraphRequest,
        ahead: StreamScan<'a>,
    ) -> TransportFuture<'a> {
        Box::pin(async move {
            let body = self.arrive(ahead);
            Ok(SubgraphResponse { status: 200, body })
        })
    }
}

fn answer(plan: &Plan, body: &Bytes, pace: Pace<'_>) -> ExecuteOutput {
    let input = ExecuteInput {
        costs: None,
        operation_names: None,
        error_extensions: &[],
        variables: &[Some("true".into())],
        granted: &Granted::default(),
        locals: &[],
        limits: ExecuteLimits::default(),
        options: ExecuteOptions::default(),
    };
    let pacer = Pacer {
        body: body.clone(),
        pace,
    };
    block_on(execute(plan, input, &pacer))
}

/// Records and text: both must be the same.
fn seen(plan: &Plan, body: &Bytes, pace: Pace<'_>) -> (u32, String) {
    let output = answer(plan, body, pace);
    (output.stats.records, text(output))
}

#[test]
fn every_cut_in_two_and_three_pieces_gives_the_same() {
    let plan = plan();
    let body = Bytes::from(serde_json::to_vec(&truth()).unwrap());
    let expected = seen(&plan, &body, Pace::Whole);
    assert!(!expected.1.contains("errors"), "{}", expected.1);
    let mut known = 0;
    for first in 0..body.len() {
        let output = answer(&plan, &body, Pace::Eager(&[first]));
        known += output.stats.streamed_bytes;
        assert_eq!((output.stats.records, text(output)), expected, "{first}");
        for second in (first..body.len()).step_by(37) {
            let cuts = [first, second];
            assert_eq!(seen(&plan, &body, Pace::Eager(&cuts)), expected, "{cuts:?}");
        }
    }
    assert!(known as usize > body.len() * body.len() / 4, "{known}");
    let all: Vec<usize> = (0..body.len()).collect();
    assert_eq!(seen(&plan, &body, Pace::Eager(&all)), expected);
}

#[test]
fn damaged_answers_are_refused_wherever_they_are_cut() {
    let plan = plan();
    let pieces = piece_by_piece(&plan);
    let mut refused = 0;
    let mut known = 0;
    for seed in 0..4_000 {
        let mut random = Rng::new(seed);
        let mut truth = truth();
        for _ in 0..random.below(3) {
            change(&mut random, &mut truth["data"]);
        }
        let mut body = match random.below(12) {
            0 => serde_json::to_vec_pretty(&truth).unwrap(),
            _ => serde_json::to_vec(&truth).unwrap(),
        };
        if random.below(2) == 0 {
            let at = random.below(body.len());
            let bytes = b"\"{}[],:0\\ \n\xc3e";
            match random.below(3) {
                0 => body.truncate(at),
                1 => body[at] = bytes[random.below(bytes.len())],
                _ => body.insert(at, bytes[random.below(bytes.len())]),
            }
        }
        let body = Bytes::from(body);
        let mut cuts: Vec<usize> = (0..1 + random.below(6))
            .map(|_| random.below(body.len() + 1))
            .collect();
        cuts.sort_unstable();
        for plan in [&plan, &pieces] {
            let expected = seen(plan, &body, Pace::Whole);
            refused += u32::from(expected.1.contains("not a GraphQL response"));
            let ours = answer(plan, &body, Pace::Eager(&cuts));
            known += u32::from(ours.stats.streamed_bytes > 0);
            assert_eq!(
                (ours.stats.records, text(ours)),
                expected,
                "seed {seed}, {cuts:?}\n{}",
                body.escape_ascii()
            );
        }
    }
    assert!(refused > 1_000 && known > 1_000, "{refused}, {known}");
}

/// A large list beside a second one, and a name behind both.
fn large_plan() -> Plan {
    let mut b = Builder::new(&["a"], &["Query", "Row"]);
    let rows = b.object(Plan::ROOT, "rows", "[Row!]", &["Row"]);
    b.leaf(rows, "n", "Int!");
    b.leaf(rows, "text", "String");
    let more = b.object(Plan::ROOT, "more", "[Row!]", &["Row"]);
    b.leaf(more, "n", "Int!");
    b.leaf(Plan::ROOT, "name", "String");
    let row = b.shape(rows, &[("n", None), ("text", None)]);
    let other = b.shape(more, &[("n", None)]);
    b.root(
        0,
        "{}",
        &[("rows", Some(row)), ("more", Some(other)), ("name", None)],
    );
    b.build()
}

fn large_body(rows: usize) -> Vec<u8> {
    let text = "long enough that a few thousand of them are large \\u00e9 \"quoted\"";
    let rows: Vec<Value> = (0..rows).map(|n| json!({"n": n, "text": text})).collect();
    let more: Vec<Value> = (0..rows.len() * 4).map(|n| json!({"n": n})).collect();
    let body = json!({"data": {"rows": rows, "more": more, "name": "x"}});
    serde_json::to_vec(&body).unwrap()
}

#[test]
fn large_answers_are_looked_at_as_they_come() {
    let plan = large_plan();
    let body = Bytes::from(large_body(12_000));
    assert!(body.len() > 1 << 20);
    let expected = seen(&plan, &body, Pace::Whole);
    assert_eq!(expected.0, 1, "everything passes");
    for size in [1 << 10, 10_007, 64 << 10, 256 << 10] {
        let output = answer(&plan, &body, Pace::Pieces(size));
        // All but the last piece, what is not worth a look, and what a look leaves.
        let known = output.stats.streamed_bytes as usize;
        assert!(known + size + (72 << 10) > body.len(), "{size}: {known}");
        assert_eq!((output.stats.records, text(output)), expected, "{size}");
    }
    // What is wrong near the end is found although everything before was known.
    for at in [body.len() - 30, body.len() / 2, 400_000] {
        let mut damaged = body.to_vec();
        damaged[at] = b'\\';
        damaged[at + 1] = b'\x01';
        let damaged = Bytes::from(damaged);
        let expected = seen(&plan, &damaged, Pace::Whole);
        assert!(expected.1.contains("not a GraphQL response"));
        assert_eq!(seen(&plan, &damaged, Pace::Pieces(64 << 10)), expected);
    }
    // White space is taken out first, so nothing is where it was.
    let spaced: Value = serde_json::from_slice(&body).unwrap();
    let spaced = Bytes::from(serde_json::to_vec_pretty(&spaced).unwrap());
    let expected = seen(&plan, &spaced, Pace::Whole);
    assert_eq!(seen(&plan, &spaced, Pace::Pieces(64 << 10)), expected);
}

#[test]
fn what_was_looked_at_holds_for_its_own_buffer_only() {
    /// Looks at one body and brings another.
    struct Swapped(Bytes, Bytes);
    impl Transport for Swapped {
        fn send(&self, _: SubgraphRequest) -> TransportFuture<'_> {
            panic!("there are root fields only")
        }
        fn send_scanned<'a>(
            &'a self,
            _: SubgraphRequest,
            ahead: StreamScan<'a>,
        ) -> TransportFuture<'a> {
            let mut arriving = ahead.begin();
            arriving.look(&self.0[..self.0.len() - 1]);
            arriving.whole(&self.0);
            let body = self.1.clone();
            Box::pin(async move { Ok(SubgraphResponse { status: 200, body }) })
        }
    }
    let plan = large_plan();
    let good = large_body(5_000);
    let mut bad = good.clone();
    bad[100] = b'\x01';
    let (good, bad) = (Bytes::from(good), Bytes::from(bad));
    let input = ExecuteInput {
        costs: None,
        operation_names: None,
        error_extensions: &[],
        variables: &[],
        granted: &Granted::default(),
        locals: &[],
        limits: ExecuteLimits::default(),
        options: ExecuteOptions::default(),
    };
    let output = block_on(execute(&plan, input, &Swapped(good, bad)));
    assert!(text(output).contains("not a GraphQL response"));
}
