//! Representations: who is sent, how, and where answers go.

use ogive_plan::{Cond, Gate, LayoutId, Member, Plan, Representation, Segment};

use crate::{
    fixture::{Builder, ENTITIES, lookup, lookup_as},
    script::{Script, Setup, ok, run, run_with, text},
};

/// `{ posts { author { name } } }`, authors looked up by id.
fn posts() -> (Builder, LayoutId) {
    let mut b = Builder::new(&["posts", "users"], &["Query", "Post", "User"]);
    let posts = b.object(Plan::ROOT, "posts", "[Post]", &["Post"]);
    let author = b.object(posts, "author", "User", &["User"]);
    b.hidden(author, "id");
    b.leaf(author, "name", "String");
    let user = b.shape(author, &[("id", None)]);
    let post = b.shape(posts, &[("author", Some(user))]);
    b.root(0, "{posts{author{id}}}", &[("posts", Some(post))]);
    (b, author)
}

fn representations(request: &str) -> String {
    let json: serde_json::Value = serde_json::from_str(request).unwrap();
    json["variables"]["representations"].to_string()
}

#[test]
fn equal_representations_are_sent_once_in_order() {
    let (mut b, author) = posts();
    let shape = b.shape(author, &[("name", None)]);
    let target = b.target(author, &["id"], shape);
    b.fetch(
        1,
        ENTITIES,
        &[ogive_plan::FetchId(0)],
        vec![lookup(vec![target])],
    );
    let plan = b.build();
    let script = Script::new(vec![
        vec![ok(concat!(
            r#"{"data":{"posts":[{"author":{"id":"2"}},{"author":null},null,{"author":{"id":"1"}},"#,
            r#"{"author":{"id":"2"}},{"author":{"id":null}},{"author":{}},{"author":{"id": 1}}]}}"#
        ))],
        vec![ok(
            r#"{"data":{"_entities":[{"name":"two"},{"name":"one"},null]}}"#,
        )],
    ]);
    let output = run_with(&plan, &Setup::default(), &script);
    assert_eq!(
        representations(&script.sent()[1].1),
        r#"[{"__typename":"User","id":"2"},{"__typename":"User","id":"1"},{"__typename":"User","id":1}]"#
    );
    assert_eq!(output.stats.representations, 3);
    assert_eq!(
        text(output),
        concat!(
            r#"{"data":{"posts":[{"author":{"name":"two"}},{"author":null},null,{"author":{"name":"one"}},"#,
            r#"{"author":{"name":"two"}},{"author":{"name":null}},{"author":{"name":null}},{"author":{"name":null}}]}}"#
        )
    );
}

/// Few records are told apart by what was written for them, many by a table.
#[test]
fn equal_representations_are_sent_once_however_many_records_there_are() {
    let (mut b, author) = posts();
    let shape = b.shape(author, &[("name", None)]);
    let target = b.target(author, &["id"], shape);
    b.fetch(
        1,
        ENTITIES,
        &[ogive_plan::FetchId(0)],
        vec![lookup(vec![target])],
    );
    let plan = b.build();
    for n in 1..40_usize {
        let ids = (0..n).map(|at| match at * 7 % 11 {
            3 => "null".to_owned(),
            id if id % 2 == 0 => format!(r#""{id}""#),
            id => format!(r#""quite a long name, so that no block holds it: {id}""#),
        });
        let ids: Vec<String> = ids.collect();
        let mut sent: Vec<&String> = Vec::new();
        for id in ids.iter().filter(|id| *id != "null") {
            if !sent.contains(&id) {
                sent.push(id);
            }
        }
        let list = |item: &dyn Fn(&String) -> String| {
            let items: Vec<String> = ids.iter().map(item).collect();
            items.join(",")
        };
        let posts = list(&|id| format!(r#"{{"author":{{"id":{id}}}}}"#));
        let entities: Vec<String> = sent
            .iter()
            .map(|id| format!(r#"{{"name":{id}}}"#))
            .collect();
        let script = Script::new(vec![
            vec![ok(&format!(r#"{{"data":{{"posts":[{posts}]}}}}"#))],
            vec![ok(&format!(
                r#"{{"data":{{"_entities":[{}]}}}}"#,
                entities.join(",")
            ))],
        ]);
        let output = run_with(&plan, &Setup::default(), &script);
        let asked = sent
            .iter()
            .map(|id| format!(r#"{{"__typename":"User","id":{id}}}"#));
        let asked: Vec<String> = asked.collect();
        assert_eq!(
            representations(&script.sent()[1].1),
            format!("[{}]", asked.join(","))
        );
        let seen = list(&|id| format!(r#"{{"author":{{"name":{id}}}}}"#));
        assert_eq!(text(output), format!(r#"{{"data":{{"posts":[{seen}]}}}}"#));
    }
}

#[test]
fn a_lookup_without_representations_is_not_sent() {
    let (mut b, author) = posts();
    let shape = b.shape(author, &[("name", None)]);
    let target = b.target(author, &["id"], shape);
    let more = b.fetch(
        1,
        ENTITIES,
        &[ogive_plan::FetchId(0)],
        vec![lookup(vec![target])],
    );
    // Whoever waits for it goes on.
    let target = b.target(author, &["name"], shape);
    let mut shape2 = b.plan.shapes[shape].clone();
    shape2.fields = Default::default();
    let empty = b.plan.shapes.push(shape2);
    let target = ogive_plan::Target {
        shape: empty,
        selection: u32::MAX,
        ..target
    };
    b.fetch(0, ENTITIES, &[more], vec![lookup(vec![target])]);
    let plan = b.build();
    let script = Script::new(vec![vec![ok(r#"{"data":{"posts":[]}}"#)], vec![]]);
    let output = run_with(&plan, &Setup::default(), &script);
    assert_eq!(output.stats.fetches_skipped, 2);
    assert_eq!(text(output), r#"{"data":{"posts":[]}}"#);
}

#[test]
fn several_places_share_one_list() {
    let mut b = Builder::new(&["a", "users"], &["Query", "User"]);
    let (me, you) = (
        b.object(Plan::ROOT, "me", "User", &["User"]),
        b.object(Plan::ROOT, "you", "User", &["User"]),
    );
    let mut roots = Vec::new();
    let mut targets = Vec::new();
    for (layout, name) in [(me, "me"), (you, "you")] {
        b.hidden(layout, "id");
        b.leaf(layout, "name", "String");
        roots.push((name, Some(b.shape(layout, &[("id", None)]))));
        let shape = b.shape(layout, &[("name", None)]);
        targets.push(b.target(layout, &["id"], shape));
    }
    let first = b.root(0, "{me{id}you{id}}", &roots);
    b.fetch(1, ENTITIES, &[first], vec![lookup(targets)]);
    let plan = b.build();
    let script = Script::new(vec![
        vec![ok(r#"{"data":{"me":{"id":"7"},"you":{"id":"7"}}}"#)],
        vec![ok(r#"{"data":{"_entities":[{"name":"same"}]}}"#)],
    ]);
    let output = run_with(&plan, &Setup::default(), &script);
    assert_eq!(
        representations(&script.sent()[1].1),
        r#"[{"__typename":"User","id":"7"}]"#
    );
    assert_eq!(
        text(output),
        r#"{"data":{"me":{"name":"same"},"you":{"name":"same"}}}"#
    );
}

#[test]
fn the_first_complete_key_is_used() {
    let (mut b, author) = posts();
    b.hidden(author, "email");
    let slot = b.slot(author, "email");
    b.plan.shapes[ogive_plan::ShapeId(0)]
        .fields
        .push(ogive_plan::ShapeField {
            key: "email".into(),
            slot,
            types: None,
            untyped: false,
            shape: None,
        });
    let shape = b.shape(author, &[("name", None)]);
    let mut target = b.target(author, &["id"], shape);
    target.representations.push(Representation {
        typename: Some("Person".into()),
        members: vec![b.member(author, "email", true, Vec::new())],
    });
    b.fetch(
        1,
        ENTITIES,
        &[ogive_plan::FetchId(0)],
        vec![lookup(vec![target])],
    );
    let plan = b.build();
    let script = Script::new(vec![
        vec![ok(concat!(
            r#"{"data":{"posts":[{"author":{"id":null,"email":"e"}},{"author":{"id":"1","email":"f"}},"#,
            r#"{"author":{"id":null,"email":null}}]}}"#
        ))],
        vec![ok(r#"{"data":{"_entities":[{"name":"e"},{"name":"1"}]}}"#)],
    ]);
    let output = run_with(&plan, &Setup::default(), &script);
    assert_eq!(
        representations(&script.sent()[1].1),
        r#"[{"__typename":"Person","email":"e"},{"__typename":"User","id":"1"}]"#
    );
    assert_eq!(
        text(output),
        r#"{"data":{"posts":[{"author":{"name":"e"}},{"author":{"name":"1"}},{"author":{"name":null}}]}}"#
    );
}

#[test]
fn compound_keys_and_required_values_keep_their_shape() {
    // Product @key(fields: "upc lines { org { id } }"), @requires(fields: "size { unit } price").
    let mut b = Builder::new(&["a", "b"], &["Query", "Product", "Line", "Org", "Size"]);
    let products = b.object(Plan::ROOT, "products", "[Product]", &["Product"]);
    b.hidden(products, "upc");
    b.hidden(products, "price");
    b.leaf(products, "weight", "Float");
    let lines = b.hidden_object(products, "lines", 2, &["Line"]);
    let org = b.hidden_object(lines, "org", 0, &["Org"]);
    b.hidden(org, "id");
    let size = b.hidden_object(products, "size", 0, &["Size"]);
    b.hidden(size, "unit");
    let org_shape = b.shape(org, &[("id", None)]);
    let line_shape = b.shape(lines, &[("org", Some(org_shape))]);
    let size_shape = b.shape(size, &[("unit", None)]);
    let shape = b.shape(
        products,
        &[
            ("upc", None),
            ("p=price", None),
            ("lines", Some(line_shape)),
            ("size", Some(size_shape)),
        ],
    );
    let first = b.root(0, "{products}", &[("products", Some(shape))]);
    let member_org = b.member(org, "id", true, Vec::new());
    let member_line = b.member(lines, "org", true, vec![member_org]);
    let member_unit = b.member(size, "unit", false, Vec::new());
    let members = vec![
        b.member(products, "upc", true, Vec::new()),
        b.member(products, "lines", true, vec![member_line]),
        b.member(products, "size", false, vec![member_unit]),
        b.member(products, "price", false, Vec::new()),
    ];
    let shape = b.shape(products, &[("weight", None)]);
    let mut target = b.target(products, &[], shape);
    target.representations[0].members = members;
    b.fetch(1, ENTITIES, &[first], vec![lookup(vec![target])]);
    let plan = b.build();
    let products = [
        r#"{"upc":1,"p":1.50,"lines":[[{"org":{"id":"a"}},{"org":{"id":"b"}}],[],null],"size":{"unit":"m"}}"#,
        r#"{"upc":2,"p":null,"lines":[],"size":null}"#,
        r#"{"upc":3,"lines":[],"size":{}}"#,
        // A null key member deep inside rules it out.
        r#"{"upc":4,"lines":[[{"org":{"id":null}}]],"size":{"unit":"m"}}"#,
        r#"{"upc":5,"lines":[[{"org":null}]],"size":{"unit":"m"}}"#,
        r#"{"upc":6,"lines":null,"size":{"unit":"m"}}"#,
    ];
    let script = Script::new(vec![
        vec![ok(&format!(
            r#"{{"data":{{"products":[{}]}}}}"#,
            products.join(",")
        ))],
        vec![ok(
            r#"{"data":{"_entities":[{"weight":1},{"weight":2},{"weight":3}]}}"#,
        )],
    ]);
    let output = run_with(&plan, &Setup::default(), &script);
    let sent = script.sent()[1].1.clone();
    assert!(
        sent.ends_with(concat!(
            r#""variables":{"representations":["#,
            r#"{"__typename":"Product","upc":1,"lines":[[{"org":{"id":"a"}},{"org":{"id":"b"}}],[],null],"size":{"unit":"m"},"price":1.50},"#,
            r#"{"__typename":"Product","upc":2,"lines":[],"size":null,"price":null},"#,
            r#"{"__typename":"Product","upc":3,"lines":[],"size":{}}]}}"#
        )),
        "{sent}"
    );
    assert_eq!(
        text(output),
        concat!(
            r#"{"data":{"products":[{"weight":1},{"weight":2},{"weight":3},"#,
            r#"{"weight":null},{"weight":null},{"weight":null}]}}"#
        )
    );
}

#[test]
fn one_request_carries_root_fields_and_several_lookups() {
    let mut b = Builder::new(&["a", "b"], &["Query", "User", "Book"]);
    let me = b.object(Plan::ROOT, "me", "User", &["User"]);
    b.hidden(me, "id");
    b.leaf(me, "name", "String");
    let book = b.object(Plan::ROOT, "book", "Book", &["Book"]);
    b.hidden(book, "isbn");
    b.leaf(book, "title", "String");
    b.leaf(Plan::ROOT, "version", "Int");
    let me_key = b.shape(me, &[("id", None)]);
    let book_key = b.shape(book, &[("isbn", None)]);
    let first = b.root(0, "{}", &[("me", Some(me_key)), ("book", Some(book_key))]);
    let me_shape = b.shape(me, &[("name", None)]);
    let book_shape = b.shape(book, &[("title", None)]);
    let lookups = vec![
        lookup_as("_e0", "r0", vec![b.target(me, &["id"], me_shape)]),
        lookup_as("_e1", "r1", vec![b.target(book, &["isbn"], book_shape)]),
    ];
    let second = b.fetch(1, "", &[first], lookups);
    let root = b.shape(Plan::ROOT, &[("version", None)]);
    b.plan.fetches[second].root = Some(ogive_plan::RootPart {
        cond: Cond::TRUE,
        shape: root,
    });
    let gate = |lookup| Gate {
        lookup: Some(lookup),
        cond: Cond::TRUE,
    };
    let segment = |text: &str, gates: Vec<Gate>| Segment {
        text: text.into(),
        gates,
    };
    b.plan.fetches[second].segments = vec![
        segment("query", vec![]),
        segment("(", vec![gate(0), gate(1)]),
        segment("$r0:[_Any!]!", vec![gate(0)]),
        segment("$r1:[_Any!]!", vec![gate(1)]),
        segment(")", vec![gate(0), gate(1)]),
        segment("{version", vec![]),
        segment(" _e0", vec![gate(0)]),
        segment(" _e1", vec![gate(1)]),
        segment("}", vec![]),
    ];
    let plan = b.build();
    for (first, request, second, expected) in [
        (
            r#"{"data":{"me":{"id":1},"book":{"isbn":2}}}"#,
            concat!(
                r#"{"query":"query($r0:[_Any!]!$r1:[_Any!]!){version _e0 _e1}","variables":"#,
                r#"{"r0":[{"__typename":"User","id":1}],"r1":[{"__typename":"Book","isbn":2}]}}"#
            ),
            r#"{"data":{"_e1":[{"title":"t"}],"version":3,"_e0":[{"name":"n"}]}}"#,
            r#"{"data":{"me":{"name":"n"},"book":{"title":"t"},"version":3}}"#,
        ),
        (
            r#"{"data":{"me":null,"book":{"isbn":2}}}"#,
            concat!(
                r#"{"query":"query($r1:[_Any!]!){version _e1}","variables":"#,
                r#"{"r1":[{"__typename":"Book","isbn":2}]}}"#
            ),
            r#"{"data":{"version":3,"_e1":[{"title":"t"}]}}"#,
            r#"{"data":{"me":null,"book":{"title":"t"},"version":3}}"#,
        ),
        (
            r#"{"data":{"me":null,"book":null}}"#,
            r#"{"query":"query{version}"}"#,
            r#"{"data":{"version":3}}"#,
            r#"{"data":{"me":null,"book":null,"version":3}}"#,
        ),
    ] {
        let script = Script::new(vec![vec![ok(first)], vec![ok(second)]]);
        let output = run_with(&plan, &Setup::default(), &script);
        assert_eq!(script.sent()[1].1, request);
        assert_eq!(text(output), expected);
    }
}

#[test]
fn a_key_of_nothing_but_the_type_is_sent() {
    let (mut b, author) = posts();
    let shape = b.shape(author, &[("name", None)]);
    let mut target = b.target(author, &[], shape);
    target.representations[0].members.push(Member {
        key_json: b"\"kind\":".as_slice().into(),
        slot: None,
        types: None,
        key: true,
        members: Vec::new(),
    });
    b.fetch(
        1,
        ENTITIES,
        &[ogive_plan::FetchId(0)],
        vec![lookup(vec![target])],
    );
    let plan = b.build();
    let script = Script::new(vec![
        vec![ok(r#"{"data":{"posts":[{"author":{}},{"author":{}}]}}"#)],
        vec![ok(r#"{"data":{"_entities":[{"name":"one"}]}}"#)],
    ]);
    let output = run_with(&plan, &Setup::default(), &script);
    assert_eq!(
        representations(&script.sent()[1].1),
        r#"[{"__typename":"User","kind":"User"}]"#
    );
    assert_eq!(
        text(output),
        r#"{"data":{"posts":[{"author":{"name":"one"}},{"author":{"name":"one"}}]}}"#
    );
}

#[test]
fn answers_may_bring_objects_that_are_looked_up_further() {
    // me.friends[][] from b, their names from a.
    let mut b = Builder::new(&["a", "b"], &["Query", "User"]);
    let me = b.object(Plan::ROOT, "me", "User", &["User"]);
    b.hidden(me, "id");
    let friends = b.object(me, "friends", "[[User!]!]", &["User"]);
    b.hidden(friends, "id");
    b.leaf(friends, "name", "String!");
    let key = b.shape(me, &[("id", None)]);
    let first = b.root(0, "{me{id}}", &[("me", Some(key))]);
    let friend = b.shape(friends, &[("id", None)]);
    let shape = b.shape(me, &[("friends", Some(friend))]);
    let target = b.target(me, &["id"], shape);
    let second = b.fetch(1, ENTITIES, &[first], vec![lookup(vec![target])]);
    let shape = b.shape(friends, &[("name", None)]);
    let target = b.target(friends, &["id"], shape);
    b.fetch(0, ENTITIES, &[second], vec![lookup(vec![target])]);
    let plan = b.build();
    let answer = |third: &str| {
        run(
            &plan,
            vec![
                vec![ok(r#"{"data":{"me":{"id":0}}}"#), ok(third)],
                vec![ok(
                    r#"{"data":{"_entities":[{"friends":[[{"id":1},{"id":2}],[],[{"id":1}]]}]}}"#,
                )],
            ],
        )
    };
    assert_eq!(
        answer(r#"{"data":{"_entities":[{"name":"one"},{"name":"two"}]}}"#),
        r#"{"data":{"me":{"friends":[[{"name":"one"},{"name":"two"}],[],[{"name":"one"}]]}}}"#
    );
    // Errors and nulls know their way through nested lists; the same entity twice fails twice.
    assert_eq!(
        answer(concat!(
            r#"{"data":{"_entities":[{"name":null},{"name":"two"}]},"#,
            r#""errors":[{"message":"no","path":["_entities",0,"name"]}]}"#
        )),
        concat!(
            r#"{"data":{"me":{"friends":null}},"errors":["#,
            r#"{"message":"no","path":["me","friends",0,0,"name"],"extensions":{"code":"DOWNSTREAM_SERVICE_ERROR"}},"#,
            r#"{"message":"no","path":["me","friends",2,0,"name"],"extensions":{"code":"DOWNSTREAM_SERVICE_ERROR"}}]}"#
        )
    );
    assert_eq!(
        answer(r#"{"data":{"_entities":[{"name":"one"},{}]}}"#),
        concat!(
            r#"{"data":{"me":{"friends":null}},"errors":["#,
            r#"{"message":"Cannot return null for non-nullable field User.name.","path":["me","friends",0,1,"name"],"#,
            r#""extensions":{"code":"NON_NULL_VIOLATION"}}]}"#
        )
    );
}
