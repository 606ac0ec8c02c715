//! `@skip` and `@include` on output, root parts, targets, text and variables.

use ogive_plan::{Cond, Gate, Plan, Segment, VariableUse};

use crate::{
    fixture::{Builder, lookup, lookup_as},
    script::{Answer, Script, Setup, ok, run_with, text},
};

fn variables(values: &[Option<&str>]) -> Setup {
    Setup {
        variables: values.iter().map(|v| v.map(Into::into)).collect(),
        ..Setup::default()
    }
}

#[test]
fn fields_appear_if_their_condition_holds() {
    let mut b = Builder::new(&["s"], &["Query"]);
    b.plan.variables = vec!["a".into(), "b".into()];
    let conds = [
        b.cond(&[&[(0, true)]]),
        b.cond(&[&[(0, false)]]),
        b.cond(&[&[(0, true), (1, true)]]),
        b.cond(&[&[(0, true)], &[(1, true)]]),
        b.cond(&[]),
    ];
    let names = ["a", "not_a", "a_and_b", "a_or_b", "never"];
    let mut keys = Vec::new();
    for (name, cond) in names.into_iter().zip(conds) {
        b.leaf(Plan::ROOT, name, "Int");
        b.last_output(Plan::ROOT).cond = cond;
        keys.push((name, None));
    }
    b.root(0, "{}", &keys);
    let plan = b.build();
    for (a, b, expected) in [
        (
            Some("true"),
            Some("true"),
            r#"{"a":1,"a_and_b":3,"a_or_b":4}"#,
        ),
        (Some("true"), Some("false"), r#"{"a":1,"a_or_b":4}"#),
        (Some("false"), Some("true"), r#"{"not_a":2,"a_or_b":4}"#),
        (Some("false"), Some("false"), r#"{"not_a":2}"#),
        // Without a value neither literal holds.
        (None, None, "{}"),
        (Some("1"), Some("null"), "{}"),
    ] {
        let answer = ok(r#"{"data":{"a":1,"not_a":2,"a_and_b":3,"a_or_b":4,"never":5}}"#);
        let script = Script::new(vec![vec![answer]]);
        let output = run_with(&plan, &variables(&[a, b]), &script);
        assert_eq!(text(output), format!(r#"{{"data":{expected}}}"#));
    }
}

/// `{ me @include(if: $a) { name @include(if: $b) rank @skip(if: $b) } }`: rank and name by look-up, two targets and
/// two look-ups under conditions.
fn conditional() -> Plan {
    let mut b = Builder::new(&["s", "t"], &["Query", "User"]);
    b.plan.variables = vec!["a".into(), "b".into(), "x".into()];
    let a = b.cond(&[&[(0, true)]]);
    let yes = b.cond(&[&[(1, true)]]);
    let no = b.cond(&[&[(1, false)]]);
    let me = b.object(Plan::ROOT, "me", "User", &["User"]);
    b.last_output(Plan::ROOT).cond = a;
    b.hidden(me, "id");
    b.leaf(me, "name", "String!");
    b.last_output(me).cond = yes;
    b.leaf(me, "rank", "String!");
    b.last_output(me).cond = no;
    let key = b.shape(me, &[("id", None)]);
    let first = b.root(0, "{me{id}}", &[("me", Some(key))]);
    b.plan.fetches[first].root.as_mut().unwrap().cond = a;
    let mut lookups = Vec::new();
    for (at, (name, cond)) in [("name", yes), ("rank", no)].into_iter().enumerate() {
        let shape = b.shape(me, &[(name, None)]);
        let mut target = b.target(me, &["id"], shape);
        target.cond = cond;
        lookups.push(lookup_as(
            &format!("_e{at}"),
            &format!("r{at}"),
            vec![target],
        ));
    }
    let second = b.fetch(1, "", &[first], lookups);
    let gate = |lookup, cond| Gate { lookup, cond };
    let segment = |text: &str, gates: &[Gate]| Segment {
        text: text.into(),
        gates: gates.to_vec(),
    };
    b.plan.fetches[second].segments = vec![
        segment("{", &[]),
        segment("name", &[gate(Some(0), Cond::TRUE)]),
        segment("rank", &[gate(Some(1), Cond::TRUE)]),
        segment(" yes", &[gate(None, yes)]),
        segment(" any", &[gate(None, yes), gate(None, no)]),
        segment("}", &[]),
    ];
    b.plan.fetches[second].variables = vec![VariableUse {
        variable: 2,
        gates: vec![gate(Some(1), no)],
    }];
    b.build()
}

#[test]
fn requests_contain_what_is_wanted() {
    let plan = conditional();
    let me = || ok(r#"{"data":{"me":{"id":1}}}"#);
    let run = |a, b, answers: Vec<Vec<Answer>>| {
        let script = Script::new(answers);
        let output = run_with(&plan, &variables(&[Some(a), Some(b), Some("9")]), &script);
        let sent = script.sent();
        (sent.get(1).map(|sent| sent.1.clone()), text(output))
    };
    assert_eq!(
        run(
            "true",
            "true",
            vec![vec![me()], vec![ok(r#"{"data":{"_e0":[{"name":"n"}]}}"#)]]
        ),
        (
            Some(
                r#"{"query":"{name yes any}","variables":{"r0":[{"__typename":"User","id":1}]}}"#
                    .to_owned()
            ),
            r#"{"data":{"me":{"name":"n"}}}"#.to_owned()
        )
    );
    assert_eq!(
        run(
            "true",
            "false",
            vec![vec![me()], vec![ok(r#"{"data":{"_e1":[{"rank":"r"}]}}"#)]]
        ),
        (
            Some(
                r#"{"query":"{rank any}","variables":{"x":9,"r1":[{"__typename":"User","id":1}]}}"#
                    .to_owned()
            ),
            r#"{"data":{"me":{"rank":"r"}}}"#.to_owned()
        )
    );
    assert_eq!(
        run("false", "true", vec![vec![], vec![]]),
        (None, r#"{"data":{}}"#.to_owned())
    );
}

#[test]
fn a_failed_fetch_with_a_closed_root_touches_no_root_field() {
    let mut b = Builder::new(&["s", "t"], &["Query", "User"]);
    b.plan.variables = vec!["a".into()];
    let a = b.cond(&[&[(0, true)]]);
    let me = b.object(Plan::ROOT, "me", "User", &["User"]);
    b.hidden(me, "id");
    b.leaf(me, "name", "String");
    b.leaf(Plan::ROOT, "n", "Int!");
    b.last_output(Plan::ROOT).cond = a;
    let key = b.shape(me, &[("id", None)]);
    let first = b.root(0, "{}", &[("me", Some(key))]);
    let shape = b.shape(me, &[("name", None)]);
    let target = b.target(me, &["id"], shape);
    let second = b.fetch(1, "{}", &[first], vec![lookup(vec![target])]);
    let shape = b.shape(Plan::ROOT, &[("n", None)]);
    b.plan.fetches[second].root = Some(ogive_plan::RootPart { cond: a, shape });
    let plan = b.build();
    for (value, expected) in [
        (
            "false",
            r#"{"data":{"me":{"name":null}},"errors":[{"message":"m","path":["me","name"],"extensions":{"code":"DOWNSTREAM_SERVICE_ERROR"}}]}"#,
        ),
        (
            "true",
            r#"{"data":null,"errors":[{"message":"m","path":["n"],"extensions":{"code":"DOWNSTREAM_SERVICE_ERROR"}},{"message":"m","path":["me","name"],"extensions":{"code":"DOWNSTREAM_SERVICE_ERROR"}}]}"#,
        ),
    ] {
        let script = Script::new(vec![
            vec![ok(r#"{"data":{"me":{"id":1}}}"#)],
            vec![ok(r#"{"errors":[{"message":"m"}]}"#)],
        ]);
        let output = run_with(&plan, &variables(&[Some(value)]), &script);
        assert_eq!(text(output), expected);
    }
}
