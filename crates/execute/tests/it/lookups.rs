//! Many look-ups in one answer, read by one reader: what it remembers of one must not change what the others get.

use std::cell::Cell;

use bytes::Bytes;
use ogive_execute::{
    ExecuteInput, ExecuteLimits, ExecuteOptions, ExecuteOutput, Reuse, SubgraphRequest,
    SubgraphResponse, Transport, TransportFuture, execute,
};
use ogive_plan::{Granted, Plan};
use ogive_testbase::Rng;
use serde_json::{Value, json};

use crate::{
    fixture::{Builder, lookup, lookup_as},
    passing::{piece_by_piece, spaced_later},
    script::{Script, Setup, block_on, ok, run_with, text},
};

const TYPES: [&str; 3] = ["A", "B", "C"];

/// Things of three types, each looked up under a key of its own and read by the same shapes: all in one place, or each
/// type in a place of its own, where it goes without saying. The first subgraph brings a part of some of their objects.
fn plan(in_places: bool) -> Plan {
    let mut b = Builder::new(&["a", "b"], &["Query", "A", "B", "C", "Part"]);
    let (mut roots, mut targets) = (Vec::new(), Vec::new());
    let places: Vec<(String, &[&str])> = if in_places {
        (0..3)
            .map(|at| (format!("things{at}"), &TYPES[at..=at]))
            .collect()
    } else {
        vec![("things".to_owned(), &TYPES)]
    };
    for (place, types) in &places {
        let things = b.object(Plan::ROOT, place, "[Thing]", types);
        b.hidden(things, "id");
        let part = b.object(things, "part", "Part", &["Part"]);
        b.leaf(part, "x", "Int");
        b.leaf(part, "y", "String");
        let parts = b.object(things, "parts", "[Part]", &["Part"]);
        b.leaf(parts, "p", "Int!");
        b.leaf(parts, "q", "String");
        let deep = b.object(parts, "deep", "Part", &["Part"]);
        b.leaf(deep, "w", "String!");
        let known = [
            b.shape(part, &[("x", None)]),
            b.shape(parts, &[("q", None)]),
        ];
        let keys = [
            ("id", None),
            ("part", Some(known[0])),
            ("parts", Some(known[1])),
        ];
        let keys = if in_places {
            b.shape(things, &keys)
        } else {
            b.typed_shape(things, &keys)
        };
        roots.push((place.as_str(), Some(keys)));
        let deep = b.shape(deep, &[("w", None)]);
        let more = [
            ("part", Some(b.shape(part, &[("x", None), ("y", None)]))),
            (
                "parts",
                Some(b.shape(parts, &[("p", None), ("q", None), ("deep", Some(deep))])),
            ),
        ];
        let more = b.shape(things, &more);
        for ty in *types {
            let mut target = b.target(things, &["id"], more);
            target.types = Some(b.types(&[*ty]));
            targets.push(target);
        }
    }
    let first = b.root(0, "{}", &roots);
    let lookups = targets.into_iter().enumerate();
    let lookups = lookups
        .map(|(at, target)| lookup_as(&format!("_{at}"), &format!("r{at}"), vec![target]))
        .collect();
    b.fetch(1, "{}", &[first], lookups);
    piece_by_piece(&b.build())
}

/// One of a few objects, so that most are repeated.
fn part(random: &mut Rng) -> Value {
    let long = "a value that makes it worth it to look for it";
    let deep = [
        json!({"w": "w"}),
        json!({"w": long}),
        json!({"w": null}),
        json!(null),
        json!([]),
    ];
    let deep = &deep[[0, 1, 1, 0, 1, 1, 2, 3, 4][random.below(9)]];
    match random.below(12) {
        0 => json!(null),
        1 => json!({"p": 1.5, "q": long, "deep": deep}),
        2 => json!({"q": long, "p": 2, "deep": deep}),
        3 | 4 => json!({"p": 3, "q": "short", "deep": deep}),
        _ => json!({"p": 4, "q": long, "deep": deep}),
    }
}

/// The first answer, what must be asked then, by type, and the second answer.
fn answers(random: &mut Rng, in_places: bool) -> (String, [Vec<usize>; 3], String) {
    let mut asked = [const { Vec::new() }; 3];
    let things: Vec<(usize, String)> = (0..1 + random.below(8))
        .map(|_| {
            let (ty, id) = (random.below(3), random.below(6));
            if !asked[ty].contains(&id) {
                asked[ty].push(id);
            }
            // Mostly nothing is there: what is there keeps the reader from remembering.
            let part = ["null", r#"{"x":1}"#, r#"{"x":null}"#][random.below(16).saturating_sub(13)];
            let parts = ["null", "[]", r#"[{"q":"x"}]"#][random.below(16).saturating_sub(13)];
            let typename = if in_places {
                String::new()
            } else {
                format!(r#""__typename":"{}","#, TYPES[ty])
            };
            let thing = format!(r#"{{{typename}"id":{id},"part":{part},"parts":{parts}}}"#);
            (ty, thing)
        })
        .collect();
    let list = |place: Option<usize>| {
        let there = things
            .iter()
            .filter(|(ty, _)| place.is_none_or(|place| *ty == place));
        let there: Vec<&str> = there.map(|(_, thing)| &**thing).collect();
        there.join(",")
    };
    let first = if in_places {
        (0..3)
            .map(|at| format!("\"things{at}\":[{}]", list(Some(at))))
            .collect()
    } else {
        vec![format!("\"things\":[{}]", list(None))]
    };
    let mut members = Vec::new();
    for (at, count) in asked.iter().map(Vec::len).enumerate() {
        for _ in 0..[1, 1, 1, 1, 1, 1, 0, 2][random.below(8)] {
            let n = match random.below(6) {
                0 => count + 1,
                1 => count.max(1) - 1,
                _ => count,
            };
            let items = (0..n).map(|_| {
                let n_parts = [1, 2, 3, 4, 5, 0][random.below(6)];
                let parts: Vec<Value> = (0..n_parts).map(|_| part(random)).collect();
                let one = [
                    json!(null),
                    json!({"x": 2, "y": "a"}),
                    json!({"y": "a", "x": 2}),
                ];
                let one = &one[random.below(3)];
                let twice = [one.clone(), json!({"x": 7, "y": "again"}), json!(3)];
                let parts = json!(parts);
                match random.below(12) {
                    0 => "null".to_owned(),
                    1 => format!(
                        r#"{{"part":{one},"part":{},"parts":{parts}}}"#,
                        twice[random.below(3)]
                    ),
                    2 => format!(r#"{{"parts":{parts},"parts":{parts},"part":{one}}}"#),
                    _ => format!(r#"{{"part":{one},"parts":{parts}}}"#),
                }
            });
            let items: Vec<String> = items.collect();
            members.push(format!("\"_{at}\":[{}]", items.join(",")));
        }
    }
    if random.below(4) == 0 {
        members.reverse();
    }
    (
        format!(r#"{{"data":{{{}}}}}"#, first.join(",")),
        asked,
        format!(r#"{{"data":{{{}}}}}"#, members.join(",")),
    )
}

/// What becomes of two answers, and the second request.
fn run_both(plan: &Plan, first: &str, second: &[u8]) -> (String, String) {
    let second = String::from_utf8(second.to_vec()).unwrap();
    let script = Script::new(vec![vec![ok(first)], vec![ok(&second)]]);
    let output = text(run_with(plan, &Setup::default(), &script));
    let sent: [(u32, String); 2] = script.sent().try_into().unwrap();
    let [_, (_, request)] = sent;
    (output, request)
}
fn data(text: &str) -> Value {
    serde_json::from_str::<Value>(text).unwrap()["data"].take()
}

#[test]
fn the_fast_lane_reads_look_ups_as_reading_step_by_step_does() {
    for in_places in [false, true] {
        look_ups_are_read_alike(in_places);
    }
}

fn look_ups_are_read_alike(in_places: bool) {
    let plan = plan(in_places);
    let (mut clean, mut refused) = (0, 0);
    for seed in 0..1_000 {
        let mut random = Rng::new(seed);
        let (first, asked, second) = answers(&mut random, in_places);
        let (ours, request) = run_both(&plan, &first, second.as_bytes());
        let (theirs, _) = run_both(&plan, &first, &spaced_later(second.as_bytes()));
        assert_eq!(ours, theirs, "seed {seed}\n{first}\n{second}");
        let mut expected = serde_json::Map::new();
        for ((at, ty), ids) in TYPES.iter().enumerate().zip(&asked) {
            let of = |id: &usize| json!({"__typename": ty, "id": id});
            if !ids.is_empty() {
                expected.insert(format!("r{at}"), ids.iter().map(of).collect());
            }
        }
        let request: Value = serde_json::from_str(&request).unwrap();
        assert_eq!(request["variables"], Value::Object(expected), "{first}");
        clean += usize::from(!ours.contains("errors"));
        refused += usize::from(ours.contains("another length"));
        // Of what is no JSON in the end, nothing stays.
        if seed % 4 == 0 {
            let torn = second.len() - 1 - random.below(second.len() / 2);
            let (ours, _) = run_both(&plan, &first, &second.as_bytes()[..torn]);
            let (nothing, _) = run_both(&plan, &first, b"{");
            assert_eq!(
                data(&ours),
                data(&nothing),
                "seed {seed}\n{first}\n{second}"
            );
        }
    }
    assert!(clean > 40 && refused > 300, "{clean} {refused}");
}

/// Answers what it is asked, the same of an entity each time.
struct Honest<'a> {
    keys: &'a str,
    /// By id.
    entities: &'a [Value],
    requests: Cell<u32>,
}
impl Transport for Honest<'_> {
    fn send(&self, request: SubgraphRequest) -> TransportFuture<'_> {
        self.requests.set(self.requests.get() + 1);
        let asked: Value = serde_json::from_slice(&request.body).unwrap();
        let body = match asked["variables"]["representations"].as_array() {
            None => self.keys.to_owned(),
            Some(asked) => {
                let entity = |asked: &Value| &self.entities[asked["id"].as_u64().unwrap() as usize];
                let entities: Vec<&Value> = asked.iter().map(entity).collect();
                json!({"data": {"_entities": entities}}).to_string()
            }
        };
        let body = Bytes::from(body);
        Box::pin(async move { Ok(SubgraphResponse { status: 200, body }) })
    }
}

/// Three lists of users whose pets are looked up by a request each; all three ask the same.
fn users() -> Plan {
    let mut b = Builder::new(&["a", "b"], &["Query", "User", "Pet"]);
    let (mut targets, mut keys) = (Vec::new(), Vec::new());
    for name in ["a", "b", "c"] {
        let user = b.object(Plan::ROOT, name, "[User]", &["User"]);
        b.hidden(user, "id");
        let best = b.object(user, "best", "Pet", &["Pet"]);
        b.leaf(best, "age", "Int");
        b.leaf(best, "name", "String!");
        let pets = b.object(user, "pets", "[Pet]", &["Pet"]);
        b.leaf(pets, "age", "Int");
        b.leaf(pets, "name", "String!");
        let known = b.shape(best, &[("age", None)]);
        keys.push((
            name,
            Some(b.shape(user, &[("id", None), ("best", Some(known))])),
        ));
        let best = b.shape(best, &[("age", None), ("name", None)]);
        let pets = b.shape(pets, &[("age", None), ("name", None)]);
        let more = b.shape(user, &[("best", Some(best)), ("pets", Some(pets))]);
        let mut target = b.target(user, &["id"], more);
        target.selection = 7;
        targets.push(target);
    }
    let first = b.root(0, "{}", &keys);
    let mut before = vec![first];
    for target in targets {
        let id = b.fetch(1, "{}", &before, vec![lookup(vec![target])]);
        before = vec![first, id];
    }
    piece_by_piece(&b.build())
}

#[test]
fn reused_entities_are_what_asking_again_would_have_brought() {
    let plan = users();
    let mut reused = 0;
    for seed in 0..600 {
        let mut random = Rng::new(seed);
        let pet = |random: &mut Rng| match random.below(12) {
            0 => json!(null),
            1 if random.below(4) == 0 => json!({"age": 1, "name": null}),
            2 => json!({"name": "the other way round", "age": 2}),
            // As long as others, and different only where it ends.
            n => {
                let name = "a pet of the same name ".repeat(10);
                json!({"age": n % 2, "name": format!("{name}{}", random.below(3))})
            }
        };
        let entities: Vec<Value> = (0..4)
            .map(|_| {
                let pets: Vec<Value> = (0..3 + random.below(4)).map(|_| pet(&mut random)).collect();
                json!({"best": pet(&mut random), "pets": pets})
            })
            .collect();
        let mut list = || {
            let users = (0..random.below(6)).map(|_| {
                let best = [json!(null), json!({"age": 9})];
                let best = &best[random.below(8) / 7];
                json!({"id": random.below(4), "best": best})
            });
            users.collect::<Vec<_>>()
        };
        let keys = json!({"data": {"a": list(), "b": list(), "c": list()}}).to_string();
        let ask = |reuse: Reuse| -> (ExecuteOutput, u32) {
            let transport = Honest {
                keys: &keys,
                entities: &entities,
                requests: Cell::new(0),
            };
            let input = ExecuteInput {
                costs: None,
                operation_names: None,
                error_extensions: &[],
                variables: &[],
                granted: &Granted::default(),
                locals: &[],
                limits: ExecuteLimits::default(),
                options: ExecuteOptions {
                    reuse,
                    ..ExecuteOptions::default()
                },
            };
            let output = block_on(execute(&plan, input, &transport));
            (output, transport.requests.get())
        };
        let (ours, sent) = ask(Reuse::Entities);
        let (theirs, sent_by_all) = ask(Reuse::Off);
        reused += ours.stats.reused;
        assert!(sent <= sent_by_all);
        assert_eq!(
            text(ours),
            text(theirs),
            "seed {seed}\n{keys}\n{}",
            json!(entities)
        );
    }
    assert!(reused > 1_000, "{reused}");
}
