//! The ordinary case: a root fetch and a look-up.

use bytes::Bytes;
use ogive_execute::{ExecuteOptions, ExecuteStats};
use ogive_plan::{OutSource, Plan, Segment, VariableUse, Wrapping};

use crate::{
    fixture::{Builder, me},
    script::{Script, Setup, ok, run, run_with, text},
};

#[test]
fn a_root_fetch_and_a_lookup_are_joined() {
    let plan = me(["User", "String", "[Review!]!", "String!"]);
    let script = Script::new(vec![
        vec![ok(r#"{"data":{"me":{"__k0":"1","name":"Ada"}}}"#)],
        vec![ok(
            r#"{"data":{"_entities":[{"reviews":[{"body":"a"},{"body":"b"}]}]}}"#,
        )],
    ]);
    let setup = Setup {
        options: ExecuteOptions {
            trace: true,
            ..ExecuteOptions::default()
        },
        ..Setup::default()
    };
    let output = run_with(&plan, &setup, &script);
    assert_eq!(
        script.sent(),
        [
            (0, r#"{"query":"{me{__k0:id name}}"}"#.to_owned()),
            (
                1,
                concat!(
                    r#"{"query":"query($representations:[_Any!]!){_entities(representations:$representations){...on User{reviews{body}}}}","#,
                    r#""variables":{"representations":[{"__typename":"User","id":"1"}]}}"#
                )
                .to_owned()
            ),
        ]
    );
    let sent = script.sent();
    assert_eq!(
        output.stats,
        ExecuteStats {
            prefetched: 0,
            prefetch_sufficed: 0,
            fetches_sent: 2,
            fetches_skipped: 0,
            representations: 1,
            reused: 0,
            request_bytes: (sent[0].1.len() + sent[1].1.len()) as u64,
            answer_bytes: 42 + 63,
            streamed_bytes: 0,
            records: 2,
            looked_at: 0,
        }
    );
    let trace = output.trace.clone().unwrap();
    assert_eq!(trace.len(), 2);
    assert_eq!(trace[1].request.as_deref(), Some(sent[1].1.as_bytes()));
    assert_eq!(trace[0].response.as_ref().unwrap().as_ref().unwrap().0, 200);
    assert_eq!(
        output.body.segments().map(|s| s.len()).sum::<usize>(),
        output.body.len()
    );
    assert_eq!(
        text(output),
        r#"{"data":{"me":{"name":"Ada","reviews":[{"body":"a"},{"body":"b"}]}}}"#
    );
}

#[test]
fn client_order_and_aliases_win_over_the_subgraphs_order() {
    let mut b = Builder::new(&["s"], &["Query"]);
    b.leaf(Plan::ROOT, "b", "Int");
    b.leaf(Plan::ROOT, "a", "Int");
    b.root(0, "{a b}", &[("x=a", None), ("y=b", None)]);
    let answers = || {
        vec![ok(
            r#"{ "data" : { "extra": [1, {"x": 9}], "x" : 1 ,"y":2, "z":{} } , "extensions": {"a": 1} } "#,
        )]
    };
    let plan = b.build();
    assert_eq!(run(&plan, vec![answers()]), r#"{"data":{"b":2,"a":1}}"#);
    // Any order, pretty-printed, escaped keys, unknown keys before and after.
    assert_eq!(
        run(
            &plan,
            vec![vec![ok("{\"data\":{\"\\u0079\":2,\n\"x\":1}}")]]
        ),
        r#"{"data":{"b":2,"a":1}}"#
    );
    // Of duplicate keys the first value wins.
    assert_eq!(
        run(
            &plan,
            vec![vec![ok(r#"{"data":{"x":1,"x":5,"y":null,"y":2}}"#)]]
        ),
        r#"{"data":{"b":2,"a":1}}"#
    );
}

#[test]
fn variables_go_along_if_they_have_a_value() {
    let mut b = Builder::new(&["s"], &["Query"]);
    b.leaf(Plan::ROOT, "a", "Int");
    let fetch = b.root(0, "query($x:Int,$y:Int){a(x:$x,y:$y)}", &[("a", None)]);
    b.plan.variables = vec!["x".into(), "y".into(), "z".into()];
    b.plan.fetches[fetch].variables = [1, 0]
        .map(|variable| VariableUse {
            variable,
            gates: Vec::new(),
        })
        .to_vec();
    b.plan.fetches[fetch].segments.push(Segment {
        text: " #\\\"".into(),
        gates: Vec::new(),
    });
    let plan = b.build();
    let query = r#"{"query":"query($x:Int,$y:Int){a(x:$x,y:$y)} #\"""#;
    for (variables, expected) in [
        ([None, None, Some("1".into())], "}"),
        ([Some("1".into()), None, None], r#","variables":{"x":1}}"#),
        (
            [Some("1".into()), Some("null".into()), None],
            r#","variables":{"y":null,"x":1}}"#,
        ),
    ] {
        let script = Script::new(vec![vec![ok(r#"{"data":{"a":1}}"#)]]);
        let setup = Setup {
            variables: variables.to_vec(),
            ..Setup::default()
        };
        run_with(&plan, &setup, &script);
        assert_eq!(script.sent()[0].1, format!("{query}{expected}"));
    }
}

#[test]
fn typenames_and_introspection_cost_no_request() {
    let mut b = Builder::new(&[], &["Query"]);
    b.typename(Plan::ROOT, "__typename");
    b.output(
        Plan::ROOT,
        "__schema",
        OutSource::Local(0),
        Wrapping::NON_NULL,
    );
    b.output(
        Plan::ROOT,
        "__type",
        OutSource::Local(1),
        Wrapping::NULLABLE,
    );
    b.plan.locals = 2;
    let setup = Setup {
        locals: vec![
            Bytes::from_static(br#"{"types":[]}"#),
            Bytes::from_static(b"null"),
        ],
        ..Setup::default()
    };
    let output = run_with(&b.build(), &setup, &Script::new(Vec::new()));
    assert_eq!(
        text(output),
        r#"{"data":{"__typename":"Query","__schema":{"types":[]},"__type":null}}"#
    );
}
