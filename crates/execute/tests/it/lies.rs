//! Whatever subgraphs answer, the response is a GraphQL response that fits the client's types.

use std::cell::RefCell;

use bytes::Bytes;
use ogive_execute::{
    ErrorCode, ExecuteInput, ExecuteLimits, ExecuteOptions, Failure, SubgraphRequest,
    SubgraphResponse, Transport, TransportFuture, execute,
};
use ogive_plan::{Granted, LayoutId, LeafKind, OutField, OutSource, Plan, ShapeField, Wrapping};
use ogive_testbase::Rng;
use serde_json::{Map, Value, json};

use crate::{
    fixture::{Builder, lookup, lookup_as},
    script::block_on,
};

/// A plan with everything in it: abstract types, nested lists, two providers, look-ups of two kinds in one request,
/// nested keys, a chain of three.
fn plan() -> Plan {
    let mut b = Builder::new(&["a", "b", "c"], &["Query", "Book", "Film", "User", "Org"]);
    let media = b.object(Plan::ROOT, "media", "[[Media!]]!", &["Book", "Film"]);
    b.typename(media, "__typename");
    b.hidden(media, "id");
    let pages = b.leaf(media, "length", "Int!");
    b.last_output(media).types = Some(b.types(&["Book"]));
    let minutes = b.leaf(media, "length", "Float");
    b.last_output(media).types = Some(b.types(&["Film"]));
    b.leaf(media, "tags", "[[String!]]");
    let author = b.object(media, "author", "User!", &["User"]);
    b.leaf(media, "stock", "Int!");
    b.hidden(author, "id");
    let org = b.hidden_object(author, "orgs", 1, &["Org"]);
    b.hidden(org, "id");
    b.leaf(author, "name", "String");
    b.leaf(author, "email", "ID!");
    let me = b.object(Plan::ROOT, "me", "User", &["User"]);
    b.hidden(me, "id");
    b.leaf(me, "name", "String!");
    b.leaf(me, "email", "ID");

    let org_shape = b.shape(org, &[("id", None)]);
    let author_shape = b.shape(author, &[("id", None), ("orgs", Some(org_shape))]);
    let media_shape = b.typed_shape(
        media,
        &[("id", None), ("tags", None), ("author", Some(author_shape))],
    );
    for (slot, ty) in [(pages, "Book"), (minutes, "Film")] {
        let types = Some(b.types(&[ty]));
        b.plan.shapes[media_shape].fields.push(ShapeField {
            key: "length".into(),
            slot,
            types,
            untyped: false,
            shape: None,
        });
    }
    let me_shape = b.shape(me, &[("id", None)]);
    let first = b.root(
        0,
        "{}",
        &[("media", Some(media_shape)), ("me", Some(me_shape))],
    );
    // The second provider of the same lists.
    let again = b.typed_shape(media, &[("tags", None)]);
    b.root(1, "{}", &[("media", Some(again))]);
    let stock = b.shape(media, &[("stock", None)]);
    let author_name = b.shape(author, &[("name", None)]);
    let me_name = b.shape(me, &[("name", None)]);
    let org_member = b.member(org, "id", true, Vec::new());
    let mut author_target = b.target(author, &["id"], author_name);
    let orgs = b.member(author, "orgs", true, vec![org_member]);
    author_target.representations[0].members.push(orgs);
    let me_target = b.target(me, &["id"], me_name);
    let stock_target = b.target(media, &["id"], stock);
    let second = b.fetch(
        1,
        "{}",
        &[first],
        vec![
            lookup_as("_e0", "r0", vec![author_target, me_target]),
            lookup_as("_e1", "r1", vec![stock_target]),
        ],
    );
    let author_email = b.typed_shape(author, &[("email", None)]);
    let me_email = b.typed_shape(me, &[("email", None)]);
    let targets = vec![
        b.target(author, &["name"], author_email),
        b.target(me, &["name"], me_email),
    ];
    b.fetch(2, "{}", &[second], vec![lookup(targets)]);
    b.build()
}

/// Chance for what is only read.
struct Random(RefCell<Rng>);
impl Random {
    fn new(seed: u64) -> Random {
        Random(RefCell::new(Rng::new(seed)))
    }
    fn below(&self, n: usize) -> usize {
        self.0.borrow_mut().below(n)
    }
    fn pick<T: Clone>(&self, from: &[T]) -> T {
        self.0.borrow_mut().pick(from).clone()
    }
}

/// Answers truthfully, then changes something.
struct Liar {
    random: Random,
    /// Of ten answers, how many are changed.
    lies: usize,
}

impl Transport for Liar {
    fn send(&self, request: SubgraphRequest) -> TransportFuture<'_> {
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        let truth = self.truth(request.subgraph, &body["variables"]);
        let result = self.lie(truth);
        Box::pin(async move { result })
    }
}

impl Liar {
    fn truth(&self, subgraph: u32, variables: &Value) -> Value {
        let entities = |name: &str, answer: fn(u64) -> Value| -> Value {
            let representations = variables[name].as_array().cloned().unwrap_or_default();
            (0..representations.len() as u64).map(answer).collect()
        };
        let data = match (subgraph, variables.is_null()) {
            (0, _) => json!({
                "media": [
                    [{"__typename": "Book", "id": 1, "tags": [["x"], []], "author": {"id": 1, "orgs": [{"id": 1}]}, "length": 9},
                     {"__typename": "Film", "id": 2, "tags": null, "author": {"id": 2, "orgs": []}, "length": 1.5}],
                    null,
                    [{"__typename": "Film", "id": 1, "tags": [], "author": {"id": 1, "orgs": [{"id": 1}]}, "length": null}],
                ],
                "me": {"id": 1},
            }),
            (1, true) => json!({
                "media": [
                    [{"__typename": "Book", "tags": []}, {"__typename": "Film", "tags": [["y"]]}],
                    null,
                    [{"__typename": "Film", "tags": [null]}],
                ],
            }),
            (1, false) => json!({
                "_e0": entities("r0", |n| json!({"name": format!("n{n}")})),
                "_e1": entities("r1", |n| json!({"stock": n})),
            }),
            _ => json!({
                "_entities": entities("representations", |n| json!({"email": n, "__typename": "User"})),
            }),
        };
        json!({ "data": data })
    }

    fn lie(&self, mut answer: Value) -> Result<SubgraphResponse, Failure> {
        let random = &self.random;
        let lying = random.below(10) < self.lies;
        if lying && random.below(12) == 0 {
            return Err(Failure::new(ErrorCode::GATEWAY_TIMEOUT, "too late", ""));
        }
        let n_changes = if lying { 1 + random.below(3) } else { 0 };
        for _ in 0..n_changes {
            self.change(&mut answer);
        }
        if lying && random.below(3) == 0 && answer.is_object() {
            answer["errors"] = (0..random.below(3)).map(|_| self.error()).collect();
        }
        let mut body = if random.below(2) == 0 {
            serde_json::to_vec(&answer).unwrap()
        } else {
            serde_json::to_vec_pretty(&answer).unwrap()
        };
        if lying && random.below(8) == 0 && !body.is_empty() {
            let at = random.below(body.len());
            match random.below(3) {
                0 => body.truncate(at),
                1 => body[at] = random.below(256) as u8,
                _ => body.insert(at, random.pick(b"\"{}[],:0\\")),
            }
        }
        Ok(SubgraphResponse {
            status: if lying && random.below(15) == 0 {
                500
            } else {
                200
            },
            body: Bytes::from(body),
        })
    }

    fn error(&self) -> Value {
        let steps = [
            json!("media"),
            json!("me"),
            json!("_e0"),
            json!("_e1"),
            json!("_entities"),
            json!("author"),
            json!("name"),
            json!("id"),
            json!("orgs"),
            json!(0),
            json!(1),
            json!(7),
            json!(-1),
            json!(null),
        ];
        let path: Value = (0..self.random.below(6))
            .map(|_| self.random.pick(&steps))
            .collect();
        self.random.pick(&[
            json!({"message": "m", "path": path}),
            json!({"message": 1, "path": path, "extensions": {"code": "C", "more": [1]}}),
            json!("m"),
            json!({}),
        ])
    }

    /// Changes one random value somewhere in the answer.
    fn change(&self, value: &mut Value) {
        let random = &self.random;
        if random.below(6) > 0 {
            match value {
                Value::Object(members) if !members.is_empty() => {
                    let at = random.below(members.len());
                    let key = members.keys().nth(at).unwrap().clone();
                    match random.below(9) {
                        0 => drop(members.shift_remove(&key)),
                        1 => *members = members.clone().into_iter().rev().collect(),
                        2 => drop(members.insert("unknown".to_owned(), self.anything())),
                        _ => self.change(&mut members[&key]),
                    }
                    return;
                }
                Value::Array(items) if !items.is_empty() => {
                    let at = random.below(items.len());
                    match random.below(9) {
                        0 => drop(items.remove(at)),
                        1 => items.push(items[at].clone()),
                        2 => items.reverse(),
                        _ => self.change(&mut items[at]),
                    }
                    return;
                }
                _ => {}
            }
        }
        *value = self.anything();
    }

    fn anything(&self) -> Value {
        self.random.pick(&[
            Value::Null,
            json!(true),
            json!(3),
            json!(-1.5),
            json!(12_345_678_901_u64),
            json!("x"),
            json!("Book"),
            json!("Film"),
            json!("User"),
            json!("Secret"),
            json!([]),
            json!([[]]),
            json!([null]),
            json!({}),
            json!([{}]),
            json!({"id": 1}),
            json!({"__typename": "Film"}),
            json!([[{"__typename": "Book", "id": 5}]]),
            json!({"id": {"id": [1]}}),
            json!([[["z"]], 3]),
        ])
    }
}

/// Checks that a value is one the client may see for this field.
fn conforms(plan: &Plan, value: &Value, field: &OutField, ty: Wrapping) -> Result<(), String> {
    let wrong = || Err(format!("{}: {value}", field.coordinate));
    if value.is_null() {
        return if ty.is_non_null() { wrong() } else { Ok(()) };
    }
    if let Some(item) = ty.item() {
        let Some(items) = value.as_array() else {
            return wrong();
        };
        return items
            .iter()
            .try_for_each(|value| conforms(plan, value, field, item));
    }
    let fits = match field.source {
        OutSource::Leaf(_, LeafKind::Int) => {
            value.as_i64().is_some_and(|n| i32::try_from(n).is_ok())
        }
        OutSource::Leaf(_, LeafKind::Float) => value.is_number(),
        OutSource::Leaf(_, LeafKind::Id) => value.is_string() || value.is_u64() || value.is_i64(),
        OutSource::Leaf(..) | OutSource::Typename => value.is_string(),
        OutSource::Object(slot) => {
            let (_, child) = plan
                .layouts
                .iter()
                .find_map(|(id, layout)| {
                    let field_here = layout.output.iter().any(|f| std::ptr::eq(f, field));
                    field_here.then(|| (id, layout.slots[usize::from(slot)].child.unwrap()))
                })
                .unwrap();
            let Some(members) = value.as_object() else {
                return wrong();
            };
            return object_conforms(plan, members, child);
        }
        OutSource::Local(_) => true,
        OutSource::Null => value.is_null(),
    };
    if fits { Ok(()) } else { wrong() }
}
fn object_conforms(plan: &Plan, members: &Map<String, Value>, id: LayoutId) -> Result<(), String> {
    let layout = &plan.layouts[id];
    let ty = match members.get("__typename") {
        Some(name) => plan
            .types
            .iter()
            .find(|(_, ty)| Some(&***ty) == name.as_str())
            .map(|(id, _)| id),
        None => layout.only_type(),
    };
    let ty = ty
        .filter(|ty| layout.types.contains(ty.0))
        .ok_or("an impossible type")?;
    let fields: Vec<&OutField> = layout
        .output
        .iter()
        .filter(|field| {
            field
                .types
                .as_ref()
                .is_none_or(|types| types.contains(ty.0))
        })
        .collect();
    let expected: Vec<&str> = fields.iter().map(|field| &*field.key).collect();
    let found: Vec<&str> = members.keys().map(String::as_str).collect();
    if expected != found {
        return Err(format!("keys {found:?}"));
    }
    fields
        .into_iter()
        .try_for_each(|field| conforms(plan, &members[&*field.key], field, field.wrapping))
}

#[test]
fn responses_fit_the_clients_types_whatever_subgraphs_answer() {
    let plan = plan();
    let (mut whole, mut nulled) = (0, 0);
    for seed in 0..6_000 {
        let liar = Liar {
            random: Random::new(seed),
            lies: (seed % 7) as usize,
        };
        let mut limits = ExecuteLimits::default();
        match seed % 50 {
            7 => limits.records_max = liar.random.below(20) as u32,
            8 => limits.values_max = liar.random.below(60) as u32,
            9 => limits.errors_max = liar.random.below(3),
            10 => limits.depth_max = liar.random.below(9) as u32,
            _ => {}
        }
        let input = ExecuteInput {
            costs: None,
            operation_names: None,
            error_extensions: &[],
            variables: &[],
            granted: &Granted::default(),
            locals: &[],
            limits,
            options: ExecuteOptions {
                subgraph_error_extensions: seed % 2 == 0,
                ..ExecuteOptions::default()
            },
        };
        let output = block_on(execute(&plan, input, &liar));
        let n_errors = output.errors;
        let text = String::from_utf8(output.body.into_bytes().to_vec()).unwrap();
        let response: Value =
            serde_json::from_str(&text).unwrap_or_else(|e| panic!("seed {seed}: {e}: {text}"));
        let errors = response
            .get("errors")
            .map_or(0, |e| e.as_array().unwrap().len());
        assert_eq!(errors, n_errors, "seed {seed}: {text}");
        assert!(errors <= limits.errors_max + 1, "seed {seed}: {text}");
        match &response["data"] {
            Value::Null => {
                assert!(errors > 0, "seed {seed}: {text}");
                nulled += 1;
            }
            data => {
                object_conforms(&plan, data.as_object().unwrap(), Plan::ROOT)
                    .unwrap_or_else(|e| panic!("seed {seed}: {e}: {text}"));
                whole += u32::from(errors == 0);
            }
        }
    }
    assert!(whole > 1_200 && nulled > 300, "{whole} {nulled}");
}

#[test]
fn without_lies_there_is_no_error() {
    let liar = Liar {
        random: Random::new(1),
        lies: 0,
    };
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
    let output = block_on(execute(&plan(), input, &liar));
    assert_eq!(
        String::from_utf8(output.body.into_bytes().to_vec()).unwrap(),
        concat!(
            r#"{"data":{"media":[[{"__typename":"Book","length":9,"tags":[["x"],[]],"author":{"name":"n0","email":0},"stock":0},"#,
            r#"{"__typename":"Film","length":1.5,"tags":[["y"]],"author":{"name":"n1","email":1},"stock":1}],null,"#,
            r#"[{"__typename":"Film","length":null,"tags":[],"author":{"name":"n0","email":0},"stock":2}]],"#,
            r#""me":{"name":"n2","email":2}}}"#
        )
    );
}
