//! Reuse inside one operation: what is not asked again, and everything that must be.

use ogive_execute::{ExecuteLimits, ExecuteOptions, ExecuteOutput, Reuse};
use ogive_plan::{OperationKind, Plan};

use crate::{
    fixture::{Builder, lookup},
    script::{Answer, Script, Setup, ok, run_with, status, text, unreachable},
};

/// `{ a { name } b { name } c { name } }`: three users whose names are looked up in three requests. The second waits
/// for nothing but the keys, the third for the second.
fn plan(selections: [u32; 3]) -> Plan {
    let mut b = Builder::new(&["keys", "names"], &["Query", "User"]);
    let mut users = Vec::new();
    let mut keys = Vec::new();
    for name in ["a", "b", "c"] {
        let user = b.object(Plan::ROOT, name, "[User]", &["User"]);
        b.hidden(user, "id");
        b.leaf(user, "name", "String");
        users.push(user);
        keys.push((name, Some(b.shape(user, &[("id", None)]))));
    }
    let first = b.root(0, "{}", &keys);
    let mut last = first;
    for (at, (user, selection)) in users.into_iter().zip(selections).enumerate() {
        let shape = b.shape(user, &[("name", None)]);
        let mut target = b.target(user, &["id"], shape);
        target.selection = selection;
        let dependencies: &[_] = if at == 2 { &[first, last] } else { &[first] };
        last = b.fetch(1, "{}", dependencies, vec![lookup(vec![target])]);
    }
    b.build()
}

fn ask(plan: &Plan, reuse: Reuse, keys: &str, names: Vec<Answer>) -> (ExecuteOutput, Vec<String>) {
    let setup = Setup {
        options: ExecuteOptions {
            reuse,
            ..ExecuteOptions::default()
        },
        ..Setup::default()
    };
    let script = Script::new(vec![vec![ok(&format!(r#"{{"data":{keys}}}"#))], names]);
    let output = run_with(plan, &setup, &script);
    let sent = script.sent().into_iter().skip(1);
    let ids = sent.map(|(_, body)| {
        let body: serde_json::Value = serde_json::from_str(&body).unwrap();
        let sent = body["variables"]["representations"].as_array().unwrap();
        sent.iter().map(|r| r["id"].to_string()).collect()
    });
    let ids = ids.collect();
    (output, ids)
}
fn names(names: &[&str]) -> Answer {
    let items: Vec<String> = names
        .iter()
        .map(|name| match *name {
            "" => "null".to_owned(),
            name => format!(r#"{{"name":"{name}"}}"#),
        })
        .collect();
    ok(&format!(
        r#"{{"data":{{"_entities":[{}]}}}}"#,
        items.join(",")
    ))
}
fn data(output: ExecuteOutput) -> String {
    let json: serde_json::Value = serde_json::from_str(&text(output)).unwrap();
    json["data"].to_string()
}

const ONE: &str = r#"{"a":[{"id":1}],"b":[{"id":1}],"c":[{"id":1}]}"#;

#[test]
fn the_same_question_is_asked_once() {
    let (output, sent) = ask(&plan([7, 7, 7]), Reuse::Entities, ONE, vec![names(&["x"])]);
    assert_eq!(sent, ["1"]);
    assert_eq!(output.stats.reused, 2);
    assert_eq!(output.stats.fetches_skipped, 2);
    assert_eq!(
        data(output),
        r#"{"a":[{"name":"x"}],"b":[{"name":"x"}],"c":[{"name":"x"}]}"#
    );
}

#[test]
fn off_means_off() {
    let answers = vec![names(&["x"]), names(&["y"]), names(&["z"])];
    let (output, sent) = ask(&plan([7, 7, 7]), Reuse::Off, ONE, answers);
    assert_eq!(sent, ["1", "1", "1"]);
    assert_eq!(
        data(output),
        r#"{"a":[{"name":"x"}],"b":[{"name":"y"}],"c":[{"name":"z"}]}"#
    );
}

#[test]
fn other_arguments_or_fields_are_another_question() {
    let answers = vec![names(&["x"]), names(&["y"])];
    let (output, sent) = ask(&plan([7, 8, 7]), Reuse::Entities, ONE, answers);
    assert_eq!(sent, ["1", "1"]);
    assert_eq!(
        data(output),
        r#"{"a":[{"name":"x"}],"b":[{"name":"y"}],"c":[{"name":"x"}]}"#
    );
}

#[test]
fn keys_are_compared_as_written() {
    let keys = r#"{"a":[{"id":1}],"b":[{"id":"1"}],"c":[{"id":1.0}]}"#;
    let answers = vec![names(&["x"]), names(&["y"]), names(&["z"])];
    let (output, sent) = ask(&plan([7, 7, 7]), Reuse::Entities, keys, answers);
    assert_eq!(sent, ["1", r#""1""#, "1.0"]);
    assert_eq!(output.stats.reused, 0);
}

#[test]
fn only_what_is_new_is_asked_and_a_part_under_way_is_not_waited_for() {
    let keys =
        r#"{"a":[{"id":1},{"id":2}],"b":[{"id":2},{"id":3}],"c":[{"id":3},{"id":4},{"id":1}]}"#;
    let answers = vec![
        names(&["one", "two"]).after(3),
        names(&["zwei", "drei"]),
        names(&["four", "eins"]),
    ];
    let (output, sent) = ask(&plan([7, 7, 7]), Reuse::Entities, keys, answers);
    // The third waits for the second, which is quicker than the first: 1 is still under way then, and asked again.
    assert_eq!(sent, ["12", "23", "41"]);
    assert_eq!(output.stats.reused, 1);
}

#[test]
fn only_what_is_new_is_asked() {
    let keys = r#"{"a":[{"id":1},{"id":2}],"b":[],"c":[{"id":2},{"id":3}]}"#;
    let mut plan = plan([7, 7, 7]);
    // The third waits for the first as well.
    let third = plan.fetches.ids().nth(3).unwrap();
    let first = plan.fetches.ids().nth(1).unwrap();
    plan.fetches[third].dependencies.push(first);
    plan.fetches[first].successors.push(third);
    let answers = vec![names(&["one", "two"]), names(&["three"])];
    let (output, sent) = ask(&plan, Reuse::Entities, keys, answers);
    assert_eq!(sent, ["12", "3"]);
    assert_eq!(output.stats.reused, 1);
    assert_eq!(
        data(output),
        r#"{"a":[{"name":"one"},{"name":"two"}],"b":[],"c":[{"name":"two"},{"name":"three"}]}"#
    );
}

#[test]
fn nulls_and_answers_with_errors_are_asked_again() {
    for bad in [
        names(&[""]),
        ok(r#"{"data":{"_entities":[{"name":"bad"}]},"errors":[{"message":"m"}]}"#),
        ok(r#"{"data":{"_entities":[{"name":"bad"}]"#),
        ok(r#"{"data":{"_entities":[{"name":"bad"},{"name":"bad"}]}}"#),
        ok(r#"{"data":null}"#),
        status(500, r#"{"data":{"_entities":[{"name":"bad"}]}}"#),
        unreachable(),
    ] {
        let plan = plan([7, 7, 7]);
        let (output, sent) = ask(&plan, Reuse::Entities, ONE, vec![bad, names(&["good"])]);
        assert_eq!(sent, ["1", "1"]);
        let data = data(output);
        assert!(
            data.ends_with(r#""b":[{"name":"good"}],"c":[{"name":"good"}]}"#),
            "{data}"
        );
    }
}

#[test]
fn mutations_never_reuse() {
    let mut plan = plan([7, 7, 7]);
    plan.kind = OperationKind::Mutation;
    let answers = vec![names(&["x"]), names(&["y"]), names(&["z"])];
    let (output, sent) = ask(&plan, Reuse::Entities, ONE, answers);
    assert_eq!(sent, ["1", "1", "1"]);
    assert_eq!(output.stats.reused, 0);
}

#[test]
fn other_subgraphs_are_never_spoken_for() {
    let mut plan = plan([7, 7, 7]);
    let second = plan.fetches.ids().nth(2).unwrap();
    plan.fetches[second].subgraph = 0;
    let setup = Setup::default();
    let script = Script::new(vec![
        vec![ok(&format!(r#"{{"data":{ONE}}}"#)), names(&["other"])],
        vec![names(&["x"])],
    ]);
    assert_eq!(
        data(run_with(&plan, &setup, &script)),
        r#"{"a":[{"name":"x"}],"b":[{"name":"other"}],"c":[{"name":"x"}]}"#
    );
}

#[test]
fn what_is_too_much_to_remember_is_asked_again() {
    let setup = Setup {
        limits: ExecuteLimits {
            reuse_bytes_max: 30,
            ..ExecuteLimits::default()
        },
        ..Setup::default()
    };
    let answers = vec![names(&["x"]), names(&["y"]), names(&["z"])];
    let script = Script::new(vec![vec![ok(&format!(r#"{{"data":{ONE}}}"#))], answers]);
    let output = run_with(&plan([7, 7, 7]), &setup, &script);
    assert_eq!(output.stats.reused, 0);
    assert_eq!(
        data(output),
        r#"{"a":[{"name":"x"}],"b":[{"name":"y"}],"c":[{"name":"z"}]}"#
    );
}

/// `{ a { name } c { b { name } } d { name } }`: names of `a` can be asked sooner than those of `b`, with which they
/// share a fetch; those of `d` come last, and `a` and `b` may have them.
fn prefetching() -> Plan {
    let mut b = Builder::new(&["keys", "names"], &["Query", "User", "Club"]);
    let user = |b: &mut Builder, parent, name| {
        let user = b.object(parent, name, "User", &["User"]);
        b.hidden(user, "id");
        b.leaf(user, "name", "String");
        for (slot, value) in b.plan.layouts[user].slots.iter_mut().zip([1, 2]) {
            slot.value = value;
        }
        (user, b.shape(user, &[("id", None)]))
    };
    let (of_a, key_of_a) = user(&mut b, Plan::ROOT, "a");
    let club = b.object(Plan::ROOT, "c", "Club", &["Club"]);
    b.hidden(club, "id");
    let (of_b, key_of_b) = user(&mut b, club, "b");
    let (of_d, key_of_d) = user(&mut b, Plan::ROOT, "d");
    let key_of_club = b.shape(club, &[("id", None)]);
    let first = b.root(
        0,
        "{}",
        &[
            ("a", Some(key_of_a)),
            ("c", Some(key_of_club)),
            ("d", Some(key_of_d)),
        ],
    );
    let member = b.shape(club, &[("b", Some(key_of_b))]);
    let members = b.target(club, &["id"], member);
    let second = b.fetch(0, "{}", &[first], vec![lookup(vec![members])]);
    let mut name = |layout, selection| {
        let shape = b.shape(layout, &[("name", None)]);
        let mut target = b.target(layout, &["id"], shape);
        target.selection = selection;
        target
    };
    let (a, of_club, d) = (name(of_a, 7), name(of_b, 7), name(of_d, 8));
    let third = b.fetch(1, "{}", &[first, second], vec![lookup(vec![a, of_club])]);
    b.fetch(1, "{}", &[first, third], vec![lookup(vec![d])]);
    b.build()
}

#[test]
fn of_a_fetch_in_two_parts_both_must_have_come_without_errors() {
    let setup = Setup {
        options: ExecuteOptions {
            reuse: Reuse::All,
            prefetch: true,
            ..ExecuteOptions::default()
        },
        ..Setup::default()
    };
    let bad = |name| {
        let errors = r#""errors":[{"message":"m"}]"#;
        ok(&format!(
            r#"{{"data":{{"_entities":[{{"name":"{name}"}}]}},{errors}}}"#
        ))
    };
    let one = || names(&["one"]);
    let two = || names(&["two"]);
    for (parts, asked_again) in [
        ([one(), two()], false),
        ([bad("one"), two()], true),
        ([one(), bad("two")], true),
    ] {
        let keys = ok(r#"{"data":{"a":{"id":1},"c":{"id":9},"d":{"id":1}}}"#);
        let members = ok(r#"{"data":{"_entities":[{"b":{"id":2}}]}}"#);
        let mut answers: Vec<Answer> = parts.into_iter().collect();
        answers.extend(asked_again.then(|| names(&["one, asked again"])));
        let script = Script::new(vec![vec![keys, members], answers]);
        let output = run_with(&prefetching(), &setup, &script);
        assert_eq!(output.stats.prefetched, 1);
        let last = if asked_again {
            "one, asked again"
        } else {
            "one"
        };
        assert_eq!(
            data(output),
            format!(
                r#"{{"a":{{"name":"one"}},"c":{{"b":{{"name":"two"}}}},"d":{{"name":"{last}"}}}}"#
            )
        );
    }
}
