//! Abstract types: concrete types decide which fields there are, where keys land and what is looked up.

use ogive_plan::{LayoutId, OutSource, Plan, ShapeField, Wrapping};

use crate::{
    fixture::{Builder, ENTITIES, lookup},
    script::{Script, Setup, ok, run, run_with, text},
};

/// `{ media { __typename ... on Book { title pages } ... on Film { title: name } } }`
fn media() -> (Builder, LayoutId) {
    let mut b = Builder::new(&["s", "t"], &["Query", "Book", "Film", "Secret"]);
    let media = b.object(Plan::ROOT, "media", "[Media]", &["Book", "Film"]);
    b.typename(media, "__typename");
    let title = b.leaf(media, "title", "String");
    b.last_output(media).types = Some(b.types(&["Book"]));
    b.leaf(media, "pages", "Int!");
    b.last_output(media).types = Some(b.types(&["Book"]));
    // The same key for another type comes from another slot.
    let name = b.leaf(media, "title", "String!");
    b.last_output(media).types = Some(b.types(&["Film"]));
    let shape = b.typed_shape(media, &[("pages", None)]);
    b.only_for(shape, "pages", &["Book"]);
    for (slot, ty) in [(title, "Book"), (name, "Film")] {
        let types = Some(b.types(&[ty]));
        b.plan.shapes[shape].fields.push(ShapeField {
            key: "title".into(),
            slot,
            types,
            untyped: false,
            shape: None,
        });
    }
    b.root(0, "{}", &[("media", Some(shape))]);
    (b, media)
}

fn run_media(items: &str) -> String {
    run(
        &media().0.build(),
        vec![
            vec![ok(&format!(r#"{{"data":{{"media":{items}}}}}"#))],
            vec![],
        ],
    )
}

#[test]
fn concrete_types_select_fields_wherever_the_name_stands() {
    for film in [
        r#"{"__typename":"Film","title":"f"}"#,
        r#"{"title":"f","x":{"__typename":"Book"},"__typename":"Film"}"#,
        r#"{"pages":1,"title":"f","\u005f_typename":"Fil\u006d"}"#,
    ] {
        assert_eq!(
            run_media(&format!(
                r#"[{{"__typename":"Book","pages":3,"title":"b"}},{film}]"#
            )),
            concat!(
                r#"{"data":{"media":[{"__typename":"Book","title":"b","pages":3},"#,
                r#"{"__typename":"Film","title":"f"}]}}"#
            )
        );
    }
    // Null rules are those of the concrete type.
    assert_eq!(
        run_media(
            r#"[{"__typename":"Book","pages":3,"title":null},{"__typename":"Film","title":null}]"#
        ),
        concat!(
            r#"{"data":{"media":[{"__typename":"Book","title":null,"pages":3},null]},"errors":[{"#,
            r#""message":"Cannot return null for non-nullable field Abstract.title.","path":["media",1,"title"],"#,
            r#""extensions":{"code":"NON_NULL_VIOLATION"}}]}"#
        )
    );
}

#[test]
fn objects_of_impossible_types_are_null_and_an_error_that_names_no_type() {
    for item in [
        r#"{"__typename":"Secret","title":"s"}"#,
        r#"{"__typename":"","title":"s"}"#,
        r#"{"__typename":null,"title":"s"}"#,
        r#"{"__typename":["Book"],"title":"s"}"#,
        r#"{"title":"s"}"#,
        "{}",
    ] {
        assert_eq!(
            run_media(&format!(r#"[{{"__typename":"Film","title":"f"}},{item}]"#)),
            concat!(
                r#"{"data":{"media":[{"__typename":"Film","title":"f"},null]},"errors":[{"#,
                r#""message":"The subgraph answered an object of an unexpected type.","path":["media",1],"#,
                r#""extensions":{"code":"SUBREQUEST_UNEXPECTED_TYPE"}}]}"#
            ),
            "{item}"
        );
    }
}

#[test]
fn lookups_carry_only_objects_of_their_types() {
    let (mut b, media) = media();
    b.hidden(media, "id");
    let slot = b.slot(media, "id");
    b.plan.shapes[ogive_plan::ShapeId(0)]
        .fields
        .push(ShapeField {
            key: "id".into(),
            slot,
            types: None,
            untyped: false,
            shape: None,
        });
    b.leaf(media, "stars", "Int");
    b.last_output(media).types = Some(b.types(&["Film"]));
    let shape = b.typed_shape(media, &[("stars", None)]);
    let mut target = b.target(media, &["id"], shape);
    target.types = Some(b.types(&["Film"]));
    b.fetch(
        1,
        ENTITIES,
        &[ogive_plan::FetchId(0)],
        vec![lookup(vec![target])],
    );
    let plan = b.build();
    let items = concat!(
        r#"{"data":{"media":[{"__typename":"Book","id":1,"title":"b","pages":1},{"__typename":"Film","id":2,"title":"f"},"#,
        r#"{"__typename":"Film","id":3,"title":"g"}]}}"#
    );
    let script = Script::new(vec![
        vec![ok(items)],
        vec![ok(
            r#"{"data":{"_entities":[{"__typename":"Film","stars":5},{"stars":4,"__typename":"Book"}]}}"#,
        )],
    ]);
    let output = run_with(&plan, &Setup::default(), &script);
    assert!(
        script.sent()[1]
            .1
            .ends_with(r#"[{"__typename":"Film","id":2},{"__typename":"Film","id":3}]}}"#)
    );
    // The second answer is of the wrong type and therefore refused.
    assert_eq!(
        text(output),
        concat!(
            r#"{"data":{"media":[{"__typename":"Book","title":"b","pages":1},{"__typename":"Film","title":"f","stars":5},"#,
            r#"{"__typename":"Film","title":"g","stars":null}]},"errors":[{"#,
            r#""message":"The subgraph answered an object of an unexpected type.","path":["media",2,"stars"],"#,
            r#""extensions":{"code":"SUBREQUEST_UNEXPECTED_TYPE"}}]}"#
        )
    );
}

/// `{ media { n ... on Book { title } } }` where the first subgraph knows `media` as an interface object: ids only.
fn interface_object(with_types: bool) -> Plan {
    let mut b = Builder::new(&["s", "t"], &["Query", "Book", "Film"]);
    let media = b.object(Plan::ROOT, "media", "[Media]", &["Book", "Film"]);
    b.hidden(media, "id");
    b.leaf(media, "n", "Int");
    if with_types {
        b.leaf(media, "title", "String");
        b.last_output(media).types = Some(b.types(&["Book"]));
    }
    let shape = b.shape(media, &[("id", None), ("n", None)]);
    let first = b.root(0, "{}", &[("media", Some(shape))]);
    let keys: &[_] = if with_types { &[("title", None)] } else { &[] };
    let shape = b.typed_shape(media, keys);
    let mut target = b.target(media, &["id"], shape);
    target.representations[0].typename = Some("Media".into());
    b.fetch(1, ENTITIES, &[first], vec![lookup(vec![target])]);
    b.build()
}

#[test]
fn interface_objects_learn_their_type_later() {
    let first = || {
        ok(r#"{"data":{"media":[{"id":1,"n":1},{"id":2,"n":2},{"id":3,"n":3},{"id":4,"n":4}]}}"#)
    };
    let second = || {
        ok(concat!(
            r#"{"data":{"_entities":[{"__typename":"Book","title":"b"},{"__typename":"Film"},"#,
            r#"{"__typename":"Secret","title":"s"},null]}}"#
        ))
    };
    let script = Script::new(vec![vec![first()], vec![second()]]);
    let output = run_with(&interface_object(true), &Setup::default(), &script);
    assert!(
        script.sent()[1]
            .1
            .contains(r#"[{"__typename":"Media","id":1},"#)
    );
    assert_eq!(
        text(output),
        concat!(
            r#"{"data":{"media":[{"n":1,"title":"b"},{"n":2},null,null]},"errors":["#,
            r#"{"message":"The subgraph answered an object of an unexpected type.","path":["media",2],"#,
            r#""extensions":{"code":"SUBREQUEST_UNEXPECTED_TYPE"}},"#,
            r#"{"message":"The object's concrete type is unknown.","path":["media",3],"#,
            r#""extensions":{"code":"SUBREQUEST_UNEXPECTED_TYPE"}}]}"#
        )
    );
    // Nobody asks for the type: it may stay unknown.
    assert_eq!(
        run(
            &interface_object(false),
            vec![vec![first()], vec![second()]]
        ),
        concat!(
            r#"{"data":{"media":[{"n":1},{"n":2},null,{"n":4}]},"errors":["#,
            r#"{"message":"The subgraph answered an object of an unexpected type.","path":["media",2],"#,
            r#""extensions":{"code":"SUBREQUEST_UNEXPECTED_TYPE"}}]}"#
        )
    );
    // A failed fetch is reason enough for a missing type.
    assert_eq!(
        run(
            &interface_object(true),
            vec![vec![first()], vec![ok(r#"{"errors":[{"message":"m"}]}"#)]]
        ),
        concat!(
            r#"{"data":{"media":[null,null,null,null]},"errors":["#,
            r#"{"message":"m","path":["media",0],"extensions":{"code":"DOWNSTREAM_SERVICE_ERROR"}},"#,
            r#"{"message":"m","path":["media",1],"extensions":{"code":"DOWNSTREAM_SERVICE_ERROR"}},"#,
            r#"{"message":"m","path":["media",2],"extensions":{"code":"DOWNSTREAM_SERVICE_ERROR"}},"#,
            r#"{"message":"m","path":["media",3],"extensions":{"code":"DOWNSTREAM_SERVICE_ERROR"}}]}"#
        )
    );
}

/// `{ listed { __typename ... on Media { n } ... on Person { age } } }`: readers answer media without telling what they
/// are, beside people of whom `n` means another slot; the catalogue tells.
fn listed() -> Plan {
    let mut b = Builder::new(
        &["readers", "catalogue"],
        &["Query", "Book", "Film", "Person"],
    );
    let listed = b.object(Plan::ROOT, "listed", "[Media]", &["Book", "Film", "Person"]);
    b.hidden(listed, "id");
    b.typename(listed, "__typename");
    b.leaf(listed, "n", "Int");
    b.last_output(listed).types = Some(b.types(&["Book", "Film"]));
    b.leaf(listed, "age", "Int");
    b.last_output(listed).types = Some(b.types(&["Person"]));
    let shape = b.typed_shape(listed, &[("id", None), ("n", None), ("n=age", None)]);
    b.only_for(shape, "n", &["Person"]);
    let media = b.types(&["Book", "Film"]);
    let fields = &mut b.plan.shapes[shape].fields;
    (fields[1].types, fields[1].untyped) = (Some(media.clone()), true);
    b.plan.shapes[shape].interface_objects = vec!["Media".into()].into();
    let first = b.root(0, "{}", &[("listed", Some(shape))]);
    let shape = b.typed_shape(listed, &[]);
    let mut target = b.target(listed, &["id"], shape);
    target.types = Some(media);
    target.untyped = true;
    target.representations[0].typename = Some("Media".into());
    b.fetch(1, ENTITIES, &[first], vec![lookup(vec![target])]);
    b.build()
}

#[test]
fn interface_objects_stand_beside_objects_of_known_types() {
    let first = ok(concat!(
        r#"{"data":{"listed":[{"__typename":"Media","id":1,"n":1},{"__typename":"Person","id":2,"n":2},"#,
        r#"{"id":3,"n":3,"__typename":"Media"},{"__typename":"Media","id":null,"n":4},{"__typename":"Listed","id":5}]}}"#
    ));
    let second = ok(r#"{"data":{"_entities":[{"__typename":"Film"},{"__typename":"Book"}]}}"#);
    let script = Script::new(vec![vec![first], vec![second]]);
    let output = run_with(&listed(), &Setup::default(), &script);
    // Only what the interface's name stands for is sent by it.
    assert!(
        script.sent()[1]
            .1
            .ends_with(r#"[{"__typename":"Media","id":1},{"__typename":"Media","id":3}]}}"#)
    );
    // The name of an interface object is never a type, and one that nobody tells is null.
    assert_eq!(
        text(output),
        concat!(
            r#"{"data":{"listed":[{"__typename":"Film","n":1},{"__typename":"Person","age":2},"#,
            r#"{"__typename":"Book","n":3},null,null]},"errors":["#,
            r#"{"message":"The subgraph answered an object of an unexpected type.","path":["listed",4],"#,
            r#""extensions":{"code":"SUBREQUEST_UNEXPECTED_TYPE"}},"#,
            r#"{"message":"The object's concrete type is unknown.","path":["listed",3],"#,
            r#""extensions":{"code":"SUBREQUEST_UNEXPECTED_TYPE"}}]}"#
        )
    );
}

#[test]
fn a_repeated_key_is_emitted_once() {
    let mut b = Builder::new(&["s"], &["Query", "A", "B"]);
    let x = b.object(Plan::ROOT, "x", "X", &["A", "B"]);
    let mut keys = Vec::new();
    for (name, types) in [
        ("k1", &["A"][..]),
        ("k2", &["B"]),
        ("k3", &["A", "B"]),
        ("k4", &["A"]),
    ] {
        let slot = b.hidden(x, name);
        b.plan.layouts[x].slots[usize::from(slot)].client_key = Some("k".into());
        let types = b.types(types);
        let field = b.output(
            x,
            "k",
            OutSource::Leaf(slot, ogive_plan::LeafKind::Int),
            Wrapping::NULLABLE,
        );
        field.repeated = true;
        field.types = Some(types);
        keys.push((name, None));
    }
    let shape = b.typed_shape(x, &keys);
    b.root(0, "{}", &[("x", Some(shape))]);
    let plan = b.build();
    for (ty, expected) in [("A", 1), ("B", 2)] {
        let answer =
            format!(r#"{{"data":{{"x":{{"__typename":"{ty}","k1":1,"k2":2,"k3":3,"k4":4}}}}}}"#);
        assert_eq!(
            run(&plan, vec![vec![ok(&answer)]]),
            format!(r#"{{"data":{{"x":{{"k":{expected}}}}}}}"#)
        );
    }
}

#[test]
fn where_no_type_is_possible_there_is_no_object() {
    let mut b = Builder::new(&["s"], &["Query"]);
    let x = b.object(Plan::ROOT, "x", "X", &[]);
    let shape = b.shape(x, &[]);
    b.root(0, "{}", &[("x", Some(shape))]);
    let plan = b.build();
    assert_eq!(
        run(&plan, vec![vec![ok(r#"{"data":{"x":null}}"#)]]),
        r#"{"data":{"x":null}}"#
    );
    assert_eq!(
        run(&plan, vec![vec![ok(r#"{"data":{"x":{}}}"#)]]),
        concat!(
            r#"{"data":{"x":null},"errors":[{"#,
            r#""message":"The subgraph answered an object of an unexpected type.","path":["x"],"#,
            r#""extensions":{"code":"SUBREQUEST_UNEXPECTED_TYPE"}}]}"#
        )
    );
}
