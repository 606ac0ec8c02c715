//! Every written form of a few plans, one file each in `tests/views/<plan>.<form>`. `BLESS=1` rewrites the files.

use std::path::Path;

use ogive_plan::*;
use ogive_testbase::Recorded;

use crate::fixture::{Builder, ENTITIES, lookup, lookup_as, me};

/// A written form: the extension of its files, and what writes it.
type Form = (&'static str, fn(&Plan) -> String);

const FORMS: [Form; 7] = [
    ("txt", text),
    ("json", json),
    ("apollo.json", apollo::json),
    ("apollo.txt", apollo::text),
    ("dot", dot),
    ("mmd", mermaid),
    ("svg", svg),
];

#[test]
fn written_forms() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/views");
    let mut recorded = Recorded::new();
    for (name, plan) in [
        ("one-request", one_request()),
        ("two-waves", me(["User"; 4])),
        ("merged-look-ups", merged()),
        ("types-and-conditions", crate::forms::rich()),
        ("serial-mutation", mutation()),
        ("subscription", subscription()),
    ] {
        for (extension, write) in FORMS {
            let path = folder.join(format!("{name}.{extension}"));
            let text = write(&plan).trim_end().to_owned() + "\n";
            recorded.compare(path, &text);
        }
    }
    recorded.finish(6 * FORMS.len());
}

#[test]
fn nothing_in_a_name_breaks_out_of_a_picture() {
    let mut plan = one_request();
    let hostile = "</svg><script>\"\\#&\n";
    plan.subgraphs[0] = hostile.into();
    plan.layouts[LayoutId(1)].slots[0].client_key = Some(hostile.into());
    let picture = svg(&plan);
    assert_eq!(picture.matches("</svg>").count(), 1, "{picture}");
    assert!(!picture.contains("<script"), "{picture}");
    for (form, text) in [("dot", dot(&plan)), ("mermaid", mermaid(&plan))] {
        for line in text.lines() {
            let quotes = line.replace("\\\\", "").replace("\\\"", "");
            assert!(quotes.matches('"').count() % 2 == 0, "{form}: {line}");
        }
    }
}

#[test]
fn a_picture_of_a_large_plan_stays_small() {
    let mut b = Builder::new(&["s"], &["Query", "User"]);
    let mut keys = Vec::new();
    let names: Vec<String> = (0..200).map(|i| format!("field{i}")).collect();
    for name in &names {
        let place = b.object(Plan::ROOT, name, "User", &["User"]);
        b.leaf(place, "name", "String");
        let shape = b.shape(place, &[("name", None)]);
        keys.push((name.as_str(), Some(shape)));
    }
    b.root(0, "{x}", &keys);
    let plan = b.build();
    assert_eq!(graph(&plan).boxes[0].lines.len(), graph::BOX_LINES_MAX);
    assert!(svg(&plan).contains("… and 193 more"));
}

#[test]
fn a_plan_without_requests_has_every_form() {
    let mut b = Builder::new(&["s"], &["Query"]);
    b.typename(Plan::ROOT, "__typename");
    let plan = b.build();
    for (extension, write) in FORMS {
        assert!(!write(&plan).is_empty(), "{extension}");
    }
    assert_eq!(apollo::json_line(&plan), r#"{"kind":"QueryPlan"}"#);
}

fn one_request() -> Plan {
    let mut b = Builder::new(&["accounts"], &["Query", "User"]);
    let me = b.object(Plan::ROOT, "me", "User", &["User"]);
    b.leaf(me, "name", "String");
    let shape = b.shape(me, &[("name", None)]);
    b.root(0, "{me{name}}", &[("me", Some(shape))]);
    b.build()
}

/// Two places of one type in one look-up, another type in a second one, two requests side by side.
fn merged() -> Plan {
    let mut b = Builder::new(
        &["products", "reviews", "stock"],
        &["Query", "Product", "Review", "Shelf"],
    );
    let top = b.object(Plan::ROOT, "topProducts", "[Product!]", &["Product"]);
    b.hidden(top, "upc");
    b.leaf(top, "name", "String");
    let shelf = b.object(Plan::ROOT, "shelf", "Shelf", &["Shelf"]);
    b.hidden(shelf, "id");
    let reviews = b.object(top, "reviews", "[Review]", &["Review"]);
    let product = b.object(reviews, "product", "Product", &["Product"]);
    b.hidden(product, "upc");
    b.leaf(product, "inStock", "Boolean");
    b.leaf(top, "inStock", "Boolean");
    b.leaf(shelf, "free", "Int");
    let top_shape = b.shape(top, &[("upc", None), ("name", None)]);
    let shelf_shape = b.shape(shelf, &[("id", None)]);
    let first = b.root(
        0,
        "{topProducts{upc name}shelf{id}}",
        &[
            ("topProducts", Some(top_shape)),
            ("shelf", Some(shelf_shape)),
        ],
    );
    let product_shape = b.shape(product, &[("upc", None)]);
    let reviews_shape = b.shape(reviews, &[("product", Some(product_shape))]);
    let shape = b.shape(top, &[("reviews", Some(reviews_shape))]);
    let target = b.target(top, &["upc"], shape);
    let second = b.fetch(
        1,
        "query($representations:[_Any!]!){_entities(representations:$representations){...on Product{reviews{product{upc}}}}}",
        &[first],
        vec![lookup(vec![target])],
    );
    let top_stock = b.shape(top, &[("inStock", None)]);
    let product_stock = b.shape(product, &[("inStock", None)]);
    let free = b.shape(shelf, &[("free", None)]);
    let products = vec![
        b.target(top, &["upc"], top_stock),
        b.target(product, &["upc"], product_stock),
    ];
    let shelves = vec![b.target(shelf, &["id"], free)];
    b.fetch(
        2,
        "query($representations:[_Any!]! $representations1:[_Any!]!){_entities(representations:$representations){...on Product{inStock}}_e1:_entities(representations:$representations1){...on Shelf{free}}}",
        &[first, second],
        vec![
            lookup(products),
            lookup_as("_e1", "representations1", shelves),
        ],
    );
    b.build()
}

/// Two root fields of different subgraphs, one after the other.
fn mutation() -> Plan {
    let mut b = Builder::new(&["accounts", "reviews"], &["Mutation"]);
    b.plan.kind = OperationKind::Mutation;
    b.leaf(Plan::ROOT, "rename", "Boolean");
    b.leaf(Plan::ROOT, "review", "Boolean");
    let first = b.root(0, "mutation{rename}", &[("rename", None)]);
    let second = b.root(1, "mutation{review}", &[("review", None)]);
    b.plan.fetches[second].dependencies = vec![first];
    b.plan.fetches[second].wave = 2;
    b.plan.fetches[first].successors = vec![second];
    b.build()
}

fn subscription() -> Plan {
    let mut b = Builder::new(&["reviews", "accounts"], &["Subscription", "User"]);
    b.plan.kind = OperationKind::Subscription;
    let author = b.object(Plan::ROOT, "reviewed", "User", &["User"]);
    b.hidden(author, "id");
    b.leaf(author, "name", "String");
    let shape = b.shape(author, &[("id", None)]);
    let first = b.root(
        0,
        "subscription{reviewed{id}}",
        &[("reviewed", Some(shape))],
    );
    let name = b.shape(author, &[("name", None)]);
    let target = b.target(author, &["id"], name);
    let second = b.fetch(1, ENTITIES, &[first], vec![lookup(vec![target])]);
    b.plan.fetches[second].kind = OperationKind::Query;
    b.build()
}
