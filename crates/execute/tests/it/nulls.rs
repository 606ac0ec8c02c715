//! Null propagation through objects and lists of objects, against the recursive definition.

use ogive_base::id::Id;
use ogive_plan::{LayoutId, Plan};
use ogive_testbase::Rng;
use serde_json::{Map, Value, json};

use crate::{
    fixture::{Builder, wrapping},
    script::{ok, run},
};

/// A tree of fields: name, type, fields below.
struct Field {
    name: String,
    ty: String,
    fields: Vec<Field>,
}

fn fields(random: &mut Rng, depth: u64) -> Vec<Field> {
    (0..1 + random.below(3))
        .map(|i| {
            let composite = depth > 0 && random.below(3) > 0;
            let mut ty = if composite { "Node" } else { "Int" }.to_owned();
            for _ in 0..random.below(3) {
                if random.below(2) == 0 {
                    ty += "!";
                }
                ty = format!("[{ty}]");
            }
            if random.below(2) == 0 {
                ty += "!";
            }
            Field {
                name: format!("f{i}"),
                ty,
                fields: if composite {
                    fields(random, depth - 1)
                } else {
                    Vec::new()
                },
            }
        })
        .collect()
}

fn build(b: &mut Builder, layout: LayoutId, fields: &[Field]) -> ogive_plan::ShapeId {
    let mut keys = Vec::new();
    for field in fields {
        if field.fields.is_empty() {
            b.leaf(layout, &field.name, &field.ty);
            keys.push((field.name.as_str(), None));
        } else {
            let child = b.object(layout, &field.name, &field.ty, &["Node"]);
            keys.push((field.name.as_str(), Some(build(b, child, &field.fields))));
        }
    }
    b.shape(layout, &keys)
}

/// A value that mostly fits its type.
fn value(random: &mut Rng, ty: ogive_plan::Wrapping, field: &Field) -> Value {
    if random.below(12) == 0 {
        return Value::Null;
    }
    match ty.item() {
        Some(item) => (0..random.below(4))
            .map(|_| value(random, item, field))
            .collect(),
        None if field.fields.is_empty() => match random.below(20) {
            0 => json!("no int"),
            n => json!(n),
        },
        None => object(random, &field.fields),
    }
}
fn object(random: &mut Rng, fields: &[Field]) -> Value {
    let mut members = Map::new();
    for field in fields {
        if random.below(25) > 0 {
            members.insert(
                field.name.clone(),
                value(random, wrapping(&field.ty).0, field),
            );
        }
    }
    Value::Object(members)
}

/// `CompleteValue` of the specification.
fn complete(value: &Value, ty: ogive_plan::Wrapping, field: &Field) -> Option<Value> {
    let completed = match (value, ty.item()) {
        (Value::Array(items), Some(item)) => items
            .iter()
            .map(|value| complete(value, item, field))
            .collect::<Option<Vec<_>>>()
            .map(Value::Array),
        (Value::Object(_), None) if !field.fields.is_empty() => {
            complete_object(value, &field.fields)
        }
        (Value::Number(_), None) if field.fields.is_empty() => Some(value.clone()),
        _ => None,
    };
    completed.or((!ty.is_non_null()).then_some(Value::Null))
}
fn complete_object(value: &Value, fields: &[Field]) -> Option<Value> {
    let mut members = Map::new();
    for field in fields {
        let answered = value.get(&field.name).unwrap_or(&Value::Null);
        members.insert(
            field.name.clone(),
            complete(answered, wrapping(&field.ty).0, field)?,
        );
    }
    Some(Value::Object(members))
}

#[test]
fn responses_are_completed_like_the_specification_says() {
    let (mut nulled, mut untouched) = (0, 0);
    for seed in 0..3_000 {
        let mut random = Rng::new(seed);
        let tree = fields(&mut random, 3);
        let mut b = Builder::new(&["s"], &["Query", "Node"]);
        let shape = build(&mut b, Plan::ROOT, &tree);
        let first = b.root(0, "{}", &[]);
        b.plan.fetches[first].root.as_mut().unwrap().shape = shape;
        // The empty shape that `root` made stays unused.
        assert!(shape.index() + 1 < b.plan.shapes.len());
        let data = object(&mut random, &tree);
        let expected = complete_object(&data, &tree).unwrap_or(Value::Null);
        let plan = b.build();
        let response = run(&plan, vec![vec![ok(&json!({ "data": data }).to_string())]]);
        let got: Value = serde_json::from_str(&response).unwrap();
        // Compared as text: key order counts.
        assert_eq!(
            got["data"].to_string(),
            expected.to_string(),
            "seed {seed}: {data}"
        );
        nulled += u32::from(expected.is_null());
        untouched += u32::from(got.get("errors").is_none());
    }
    assert!(nulled > 200 && untouched > 200, "{nulled} {untouched}");
}

#[test]
fn deep_responses_need_no_stack() {
    let mut b = Builder::new(&["s"], &["Query", "Node"]);
    let mut layouts = vec![Plan::ROOT];
    for _ in 0..5_000 {
        let last = *layouts.last().unwrap();
        layouts.push(b.object(last, "n", "Node!", &["Node"]));
    }
    let last = *layouts.last().unwrap();
    b.leaf(last, "x", "Int!");
    let mut shape = b.shape(last, &[("x", None)]);
    for layout in layouts[1..layouts.len() - 1].iter().rev() {
        shape = b.shape(*layout, &[("n", Some(shape))]);
    }
    b.root(0, "{}", &[("n", Some(shape))]);
    let plan = b.build();
    // The scanner's depth limit is below what the plan would allow.
    let text = run(
        &plan,
        vec![vec![ok(&format!(
            r#"{{"data":{}{{"x":1}}{}}}"#,
            r#"{"n":"#.repeat(5_000),
            "}".repeat(5_000)
        ))]],
    );
    assert!(text.contains("nested too deeply"), "{text}");
    let text = run(
        &plan,
        vec![vec![ok(&format!(
            r#"{{"data":{}null{}}}"#,
            r#"{"n":"#.repeat(100),
            "}".repeat(100)
        ))]],
    );
    assert!(text.starts_with(r#"{"data":null,"errors":[{"message":"Cannot return null for non-nullable field Node.n.""#), "{text}");
}
