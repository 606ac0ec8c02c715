//! Values that pass to the client as they stand: found, shared, and never different from what reading object by object
//! would have given.

use bytes::Bytes;
use ogive_execute::{
    ExecuteInput, ExecuteLimits, ExecuteOptions, ExecuteOutput, SubgraphRequest, SubgraphResponse,
    Transport, TransportFuture, execute,
};
use ogive_plan::{Granted, LeafKind, Plan};
use ogive_testbase::Rng;
use serde_json::{Value, json};

use crate::{
    fixture::{Builder, lookup, wrapping},
    script::{Script, Setup, block_on, ok, run, run_with, text},
};

/// Shops with stock of all kinds, of which the gateway needs nothing but the shops' ids.
pub(crate) fn plan() -> Plan {
    let mut b = Builder::new(&["a", "b"], &["Query", "Shop", "Item", "Maker"]);
    let shops = b.object(Plan::ROOT, "shops", "[Shop!]", &["Shop"]);
    b.hidden(shops, "id");
    let items = b.object(shops, "items", "[[Item]!]", &["Item"]);
    let values = b.plan.enums.push(vec!["BIG".into(), "SMALL".into()]);
    b.leaf(items, "n", "Int!");
    b.leaf(items, "price", "Float");
    b.leaf(items, "name", "String!");
    b.leaf(items, "ok", "Boolean");
    b.leaf(items, "key", "ID!");
    b.leaf(items, "any", "JSON");
    b.leaf_of(items, "size", wrapping("x").0, LeafKind::Enum(values));
    b.leaf(items, "tags", "[[String!]]!");
    let maker = b.object(items, "maker", "Maker!", &["Maker"]);
    b.leaf(maker, "name", "String!");
    b.last_output(maker).cond = ogive_plan::Cond(1);
    b.leaf(maker, "city", "String");
    b.plan.variables.push("long".into());
    b.cond(&[&[(0, true)]]);
    b.leaf(shops, "open", "Boolean!");
    let maker_shape = b.shape(maker, &[("name", None), ("city", None)]);
    let item_shape = b.shape(
        items,
        &[
            ("n", None),
            ("price", None),
            ("name", None),
            ("ok", None),
            ("key", None),
            ("any", None),
            ("size", None),
            ("tags", None),
            ("maker", Some(maker_shape)),
        ],
    );
    let shop_shape = b.shape(shops, &[("id", None), ("items", Some(item_shape))]);
    let first = b.root(0, "{}", &[("shops", Some(shop_shape))]);
    let open = b.shape(shops, &[("open", None)]);
    let target = b.target(shops, &["id"], open);
    b.fetch(1, "{}", &[first], vec![lookup(vec![target])]);
    b.build()
}

/// The same plan, but nothing in it passes: every layout has two shapes.
pub(crate) fn piece_by_piece(plan: &Plan) -> Plan {
    let mut plan = plan.clone();
    for shape in plan.shapes.ids().collect::<Vec<_>>() {
        let copy = plan.shapes[shape].clone();
        plan.shapes.push(copy);
    }
    plan
}

fn item() -> Value {
    json!({
        "n": -12, "price": 1.5e3, "name": "né \"x\"", "ok": null, "key": 17, "any": {"deep": [1, {}]},
        "size": "BIG", "tags": [["a", "b"], null, []], "maker": {"name": "M", "city": null},
    })
}
pub(crate) fn truth() -> Value {
    json!({"data": {"shops": [
        {"id": 1, "items": [[item(), null, item()], []]},
        {"id": 2, "items": null},
        {"id": 1, "items": [[item()]]},
    ]}})
}

/// Changes something somewhere.
pub(crate) fn change(random: &mut Rng, value: &mut Value) {
    if random.below(10) > 0 {
        match value {
            Value::Object(members) if !members.is_empty() => {
                let key = members.keys().nth(random.below(members.len())).unwrap();
                let key = key.clone();
                match random.below(14) {
                    0 => drop(members.shift_remove(&key)),
                    1 => *members = members.clone().into_iter().rev().collect(),
                    2 => drop(members.insert("unknown".to_owned(), json!([{}]))),
                    3 => drop(members.shift_insert(0, "extra".to_owned(), json!(1.0))),
                    _ => change(random, &mut members[&key]),
                }
                return;
            }
            Value::Array(items) if !items.is_empty() => {
                let at = random.below(items.len());
                match random.below(10) {
                    0 => drop(items.remove(at)),
                    1 => items.push(items[at].clone()),
                    _ => change(random, &mut items[at]),
                }
                return;
            }
            _ => {}
        }
    }
    let texts = [
        "null",
        "true",
        "3",
        "3.0",
        "2147483648",
        "1e2",
        "-0",
        "\"x\"",
        "\"SMALL\"",
        "\"HUGE\"",
        "\"\\u0042IG\"",
        "[]",
        "[[]]",
        "[null]",
        "[[null]]",
        "{}",
        "[{}]",
        "\"\"",
        "[[\"t\"]]",
        "[1]",
    ];
    *value = serde_json::from_str(texts[random.below(texts.len())]).unwrap();
}

struct Liar(Bytes);
impl Transport for Liar {
    fn send(&self, request: SubgraphRequest) -> TransportFuture<'_> {
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        let body = match body["variables"]["representations"].as_array() {
            None => self.0.clone(),
            Some(asked) => {
                let open: Vec<Value> = asked.iter().map(|_| json!({"open": true})).collect();
                serde_json::to_vec(&json!({"data": {"_entities": open}}))
                    .unwrap()
                    .into()
            }
        };
        Box::pin(async move { Ok(SubgraphResponse { status: 200, body }) })
    }
}

fn answer(plan: &Plan, body: &Bytes, long: &str) -> ExecuteOutput {
    let input = ExecuteInput {
        costs: None,
        operation_names: None,
        error_extensions: &[],
        variables: &[Some(long.into())],
        granted: &Granted::default(),
        locals: &[],
        limits: ExecuteLimits::default(),
        options: ExecuteOptions::default(),
    };
    block_on(execute(plan, input, &Liar(body.clone())))
}

#[test]
fn what_passes_is_what_reading_piece_by_piece_gives() {
    let plan = plan();
    let pieces = piece_by_piece(&plan);
    let (mut passed, mut not_passed) = (0, 0);
    for seed in 0..6_000 {
        let mut random = Rng::new(seed);
        let mut truth = truth();
        for _ in 0..random.below(3) {
            change(&mut random, &mut truth["data"]);
        }
        let mut body = match random.below(8) {
            0 => serde_json::to_vec_pretty(&truth).unwrap(),
            _ => serde_json::to_vec(&truth).unwrap(),
        };
        if random.below(10) == 0 {
            let at = random.below(body.len());
            let bytes = b"\"{}[],:0\\ \n\xc3e";
            match random.below(3) {
                0 => body.truncate(at),
                1 => body[at] = bytes[random.below(bytes.len())],
                _ => body.insert(at, bytes[random.below(bytes.len())]),
            }
        }
        let body = Bytes::from(body);
        let long = if random.below(3) == 0 {
            "true"
        } else {
            "false"
        };
        let ours = answer(&plan, &body, long);
        let theirs = answer(&pieces, &body, long);
        assert!(ours.stats.records <= theirs.stats.records);
        if ours.stats.records < theirs.stats.records {
            passed += 1;
        } else {
            not_passed += 1;
        }
        assert_eq!(
            text(ours),
            text(theirs),
            "seed {seed}\n{}",
            body.escape_ascii()
        );
    }
    assert!(passed > 1_200 && not_passed > 150, "{passed}, {not_passed}");
}

/// The same text with a space behind every comma and colon, from some way into it on: it begins as if it had none.
pub(crate) fn spaced_later(body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let (mut inside, mut escaped) = (false, false);
    for (at, byte) in body.iter().enumerate() {
        out.push(*byte);
        if *byte == b'"' && !escaped {
            inside = !inside;
        }
        escaped = inside && *byte == b'\\' && !escaped;
        if at > 24 && !inside && matches!(byte, b',' | b':') {
            out.push(b' ');
        }
    }
    out
}

#[test]
fn the_fast_lane_reads_what_reading_step_by_step_gives() {
    let plan = piece_by_piece(&plan());
    let mut differ = 0;
    for seed in 0..600 {
        let mut random = Rng::new(seed);
        let mut truth = truth();
        for _ in 0..random.below(3) {
            change(&mut random, &mut truth["data"]);
        }
        let body = serde_json::to_vec(&truth).unwrap();
        let spaced = spaced_later(&body);
        differ += usize::from(spaced != body);
        let compact = |body: Vec<u8>| {
            let output = answer(&plan, &Bytes::from(body), "true");
            ogive_json::compact(text(output).as_bytes()).unwrap()
        };
        assert_eq!(
            compact(spaced).escape_ascii().to_string(),
            compact(body.clone()).escape_ascii().to_string(),
            "seed {seed}\n{}",
            body.escape_ascii()
        );
        // As people like it.
        let pretty = serde_json::to_vec_pretty(&truth).unwrap();
        assert_eq!(compact(pretty), compact(body));
    }
    assert!(differ > 300, "{differ} of 600");
}

/// With the members of all objects the other way round.
fn reversed(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(reversed).collect(),
        Value::Object(members) => {
            let members = members.iter().rev();
            Value::Object(members.map(|(k, v)| (k.clone(), reversed(v))).collect())
        }
        scalar => scalar.clone(),
    }
}

#[test]
fn another_order_is_learned_once_per_plan_and_changes_nothing() {
    let plan = piece_by_piece(&plan());
    let body = |value: &Value| Bytes::from(serde_json::to_vec(value).unwrap());
    let (straight, other) = (body(&truth()), body(&reversed(&truth())));
    let expected = text(answer(&plan, &straight, "true"));
    let order = &plan.derived().order;
    assert!(order.get().is_none(), "nothing was a surprise");
    // The original, not its copy: the last of equal ones is taken.
    let items = plan.shapes.iter().rev().max_by_key(|(_, s)| s.fields.len());
    let (id, n_fields) = items.map(|(id, shape)| (id, shape.fields.len())).unwrap();
    // By turns, each of them twice.
    for round in 0..3 {
        for _ in 0..2 {
            assert_eq!(text(answer(&plan, &other, "true")), expected, "{round}");
            let known = order.get().unwrap();
            assert_eq!(known.after(id, n_fields), n_fields - 1);
            assert_eq!(known.after(id, n_fields - 1), n_fields - 2);
        }
        for _ in 0..2 {
            assert_eq!(text(answer(&plan, &straight, "true")), expected, "{round}");
            let known = order.get().unwrap();
            assert_eq!(known.after(id, n_fields), 0);
            assert_eq!(known.after(id, n_fields - 2), n_fields - 1);
        }
    }
}

#[test]
fn objects_that_are_repeated_fail_each_where_it_stands() {
    let plan = piece_by_piece(&plan());
    let mut bad = item();
    bad["maker"] = Value::Null;
    let n_shops = 5;
    let shop = |id| json!({"id": id, "items": [[item(), bad, item()]]});
    let shops: Vec<Value> = (0..n_shops).map(|at| shop(at % 2)).collect();
    let body = serde_json::to_vec(&json!({"data": {"shops": shops}})).unwrap();
    let output = text(answer(&plan, &Bytes::from(body), "true"));
    let output: Value = serde_json::from_str(&output).unwrap();
    let errors = output["errors"].as_array().unwrap();
    let paths: Vec<&Value> = errors.iter().map(|error| &error["path"]).collect();
    for at in 0..n_shops {
        let place = json!(["shops", at, "items", 0, 1, "maker"]);
        assert_eq!(paths.iter().filter(|path| ***path == place).count(), 1);
        let items = &output["data"]["shops"][at]["items"][0];
        assert_eq!(items[1], Value::Null);
        assert_eq!(items[0], items[2]);
        assert_eq!(items[0]["maker"]["name"], "M");
    }
}

#[test]
fn the_beginning_of_null_is_no_json() {
    for plan in [plan(), piece_by_piece(&plan())] {
        for torn in ["n", "nu", "nul"] {
            for shops in [
                format!("{torn}[]"),
                format!("[{torn}{{\"id\":1,\"items\":null}}]"),
            ] {
                let body = Bytes::from(format!("{{\"data\":{{\"shops\":{shops}}}}}"));
                let output = text(answer(&plan, &body, "true"));
                assert!(output.contains("not a GraphQL response"), "{output}");
            }
        }
    }
}

#[test]
fn objects_that_are_repeated_are_written_alike_behind_one_that_is_taken_back() {
    let plan = plan();
    let (mut good, mut bad) = (item(), item());
    // Nothing in it is null, and its first bytes are its own.
    good["n"] = json!(7);
    good["ok"] = json!(true);
    good["maker"]["city"] = json!("C");
    bad["name"] = Value::Null;
    let items = json!([[good, good, bad, good, item(), item(), bad, item(), good]]);
    let shop = |id: u32| json!({"id": id, "items": items});
    let shops = json!({"data": {"shops": [shop(1), shop(2), shop(1)]}});
    let body = Bytes::from(serde_json::to_vec(&shops).unwrap());
    for long in ["true", "false"] {
        let pieces = answer(&piece_by_piece(&plan), &body, long);
        assert_eq!(text(pieces), text(answer(&plan, &body, long)));
    }
}

#[test]
fn big_values_are_shared_with_the_answer_they_came_in() {
    let plan = plan();
    let mut truth = truth();
    for shop in [0, 2] {
        for item in truth["data"]["shops"][shop]["items"][0]
            .as_array_mut()
            .unwrap()
        {
            if item.is_object() {
                item["name"] = json!("x".repeat([20_000, 0, 0][shop]));
                item["maker"].as_object_mut().unwrap().shift_remove("name");
            }
        }
    }
    let body = Bytes::from(serde_json::to_vec(&truth).unwrap());
    let output = answer(&plan, &body, "false");
    // The root and its shops; no items, no makers.
    assert_eq!(output.stats.records, 4);
    let inside = |segment: &Bytes| body.as_ptr_range().contains(&segment.as_ptr());
    let segments: Vec<Bytes> = output.body.segments().collect();
    assert_eq!(
        segments.iter().filter(|s| inside(s)).count(),
        1,
        "{segments:?}"
    );
    assert_eq!(
        output.body.len(),
        segments.iter().map(Bytes::len).sum::<usize>()
    );
    let whole = output.body.clone().into_bytes();
    assert_eq!(segments.concat(), whole);
    assert_eq!(
        output.body.into_segments().collect::<Vec<_>>().concat(),
        whole
    );
}

#[test]
fn an_entity_that_many_ask_for_is_read_once() {
    let mut b = Builder::new(&["a", "b"], &["Query", "User", "Pet"]);
    let mut targets = Vec::new();
    let mut keys = Vec::new();
    let mut shapes = Vec::new();
    for name in ["users", "admins"] {
        let users = b.object(Plan::ROOT, name, "[User]", &["User"]);
        b.hidden(users, "id");
        b.leaf(users, "name", "String!");
        let pets = b.object(users, "pets", "[Pet!]", &["Pet"]);
        b.leaf(pets, "name", "String!");
        keys.push((name, Some(b.shape(users, &[("id", None)]))));
        let pet = b.shape(pets, &[("name", None)]);
        let shape = b.shape(users, &[("name", None), ("pets", Some(pet))]);
        shapes.push(shape);
        targets.push(b.target(users, &["id"], shape));
    }
    let first = b.root(0, "{}", &keys);
    b.fetch(1, "{}", &[first], vec![lookup(targets)]);
    let plan = b.build();
    let classes: Vec<u32> = shapes
        .iter()
        .map(|shape| plan.derived().shapes[*shape].class)
        .collect();
    assert_eq!(classes[0], classes[1]);
    let setup = Setup {
        limits: ExecuteLimits {
            // Reading anything twice would exceed it.
            rescanned_bytes_max: 0,
            ..ExecuteLimits::default()
        },
        ..Setup::default()
    };
    let script = Script::new(vec![
        vec![ok(
            r#"{"data":{"users":[{"id":1},{"id":2},{"id":1}],"admins":[{"id":1}]}}"#,
        )],
        vec![ok(
            r#"{"data":{"_entities":[{"name":"n","pets":[{"name":"p"}]},{"name":null,"pets":null}]}}"#,
        )],
    ]);
    assert_eq!(
        text(run_with(&plan, &setup, &script)),
        concat!(
            r#"{"data":{"users":[{"name":"n","pets":[{"name":"p"}]},null,{"name":"n","pets":[{"name":"p"}]}],"#,
            r#""admins":[{"name":"n","pets":[{"name":"p"}]}]},"errors":[{"message":"Cannot return null for non-nullable "#,
            r#"field User.name.","path":["users",1,"name"],"extensions":{"code":"NON_NULL_VIOLATION"}}]}"#
        )
    );
}

#[test]
fn a_broken_answer_leaves_nothing_behind() {
    let mut b = Builder::new(&["a"], &["Query"]);
    b.leaf(Plan::ROOT, "x", "Int");
    b.leaf(Plan::ROOT, "y", "Int");
    b.root(0, "{}", &[("x", None), ("y", None)]);
    let plan = b.build();
    let body = run(
        &plan,
        vec![vec![ok(r#"{"data":{"x":1,"y":2},"errors":[}"#)]],
    );
    assert!(
        body.starts_with(
            r#"{"data":{"x":null,"y":null},"errors":[{"message":"The subgraph's answer is not"#
        ),
        "{body}"
    );
}
