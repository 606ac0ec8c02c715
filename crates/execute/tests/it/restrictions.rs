//! What a caller may not see is null with an error, whatever was fetched for others (planner rule 28).

use ogive_execute::refused_places;
use ogive_plan::{Granted, Plan, Requirement, RestrictedTypes};

use crate::{
    fixture::Builder,
    script::{Script, Setup, ok, run_with, text},
};

fn granted(requirements: &[u32]) -> Setup {
    Setup {
        granted: requirements.iter().copied().collect::<Granted>(),
        ..Setup::default()
    }
}

fn refused(paths: &[&str]) -> String {
    let error = |path: &&str| {
        format!(
            r#"{{"message":"Unauthorized field or type","path":[{path}],"extensions":{{"code":"UNAUTHORIZED_FIELD_OR_TYPE"}}}}"#
        )
    };
    let errors: Vec<String> = paths.iter().map(error).collect();
    if errors.is_empty() {
        String::new()
    } else {
        format!(r#","errors":[{}]"#, errors.join(","))
    }
}

/// `{ name secret me { name } log must! }` under requirements 0 to 2.
fn fields() -> Plan {
    let mut b = Builder::new(&["s"], &["Query", "User"]);
    b.plan.requirements = vec![Requirement::default(); 3];
    let conds: Vec<_> = (0..3).map(|r| b.cond(&[&[(r, true)]])).collect();
    b.leaf(Plan::ROOT, "name", "String");
    b.leaf(Plan::ROOT, "secret", "String");
    b.last_output(Plan::ROOT).granted = conds[0];
    let me = b.object(Plan::ROOT, "me", "User", &["User"]);
    b.last_output(Plan::ROOT).granted = conds[1];
    b.leaf(me, "name", "String");
    b.leaf(me, "must", "String!");
    b.last_output(me).granted = conds[2];
    let shape = b.shape(me, &[("name", None), ("must", None)]);
    b.root(
        0,
        "{}",
        &[("name", None), ("secret", None), ("me", Some(shape))],
    );
    b.build()
}

#[test]
fn values_that_were_fetched_are_not_shown() {
    let plan = fields();
    for (requirements, data, paths) in [
        (
            &[0, 1, 2][..],
            r#"{"name":"a","secret":"b","me":{"name":"c","must":"d"}}"#,
            &[][..],
        ),
        (
            &[1, 2],
            r#"{"name":"a","secret":null,"me":{"name":"c","must":"d"}}"#,
            &[r#""secret""#],
        ),
        (
            &[0, 2],
            r#"{"name":"a","secret":"b","me":null}"#,
            &[r#""me""#],
        ),
        // Null where it may not be goes up, and is explained once.
        (
            &[0, 1],
            r#"{"name":"a","secret":"b","me":null}"#,
            &[r#""me","must""#],
        ),
        (
            &[],
            r#"{"name":"a","secret":null,"me":null}"#,
            &[r#""secret""#, r#""me""#],
        ),
    ] {
        let answer = ok(r#"{"data":{"name":"a","secret":"b","me":{"name":"c","must":"d"}}}"#);
        let script = Script::new(vec![vec![answer]]);
        let output = run_with(&plan, &granted(requirements), &script);
        let expected = format!(r#"{{"data":{data}{}}}"#, refused(paths));
        assert_eq!(text(output), expected, "{requirements:?}");
    }
    let places = |requirements: &[u32], max| {
        let granted = requirements.iter().copied().collect();
        refused_places(&plan, &[], &granted, max, false)
    };
    assert_eq!(places(&[0, 1, 2], 9), [] as [String; 0]);
    assert_eq!(places(&[1], 9), ["me.must", "secret"]);
    assert_eq!(places(&[2], 9), ["me", "secret"]);
    assert_eq!(places(&[1], 1).len(), 1);
}

#[test]
fn a_mask_is_shown_where_nothing_else_is_kept() {
    let mut plan = fields();
    plan.requirements[0].mask = Some("***".into());
    plan.requirements[2].mask = Some("a \"mask\"".into());
    let answer = ok(r#"{"data":{"name":"a","secret":"b","me":{"name":"c","must":"d"}}}"#);
    let script = Script::new(vec![vec![answer]]);
    // Where null may not be, too, and no error says so.
    assert_eq!(
        text(run_with(&plan, &granted(&[1]), &script)),
        r#"{"data":{"name":"a","secret":"***","me":{"name":"c","must":"a \"mask\""}}}"#
    );
    let places = |masked| refused_places(&plan, &[], &[1].into_iter().collect(), 9, masked);
    assert_eq!(places(false), [] as [String; 0]);
    assert_eq!(places(true), ["me.must", "secret"]);
    // Of two requirements that are not met the one without a mask decides.
    let mut b = Builder::new(&["s"], &["Query"]);
    b.plan.requirements = vec![Requirement::default(); 2];
    b.plan.requirements[0].mask = Some("***".into());
    let both = b.cond(&[&[(0, true), (1, true)]]);
    b.leaf(Plan::ROOT, "secret", "String");
    b.last_output(Plan::ROOT).granted = both;
    b.root(0, "{}", &[("secret", None)]);
    let plan = b.build();
    for (requirements, shown) in [
        (&[0, 1][..], r#"{"data":{"secret":"b"}}"#),
        (&[1], r#"{"data":{"secret":"***"}}"#),
    ] {
        let script = Script::new(vec![vec![ok(r#"{"data":{"secret":"b"}}"#)]]);
        assert_eq!(
            text(run_with(&plan, &granted(requirements), &script)),
            shown
        );
    }
    let script = Script::new(vec![vec![ok(r#"{"data":{"secret":"b"}}"#)]]);
    let hidden = text(run_with(&plan, &granted(&[0]), &script));
    assert!(hidden.contains(r#""secret":null"#), "{hidden}");
}

#[test]
fn objects_of_restricted_types_are_null_wherever_they_are() {
    let mut b = Builder::new(&["s"], &["Query", "Letter", "Record"]);
    b.plan.requirements = vec![Requirement::default()];
    let cond = b.cond(&[&[(0, true)]]);
    let items = b.object(Plan::ROOT, "items", "[Item]", &["Letter", "Record"]);
    b.leaf(items, "title", "String");
    let types = b.types(&["Record"]);
    b.plan.layouts[items].restricted = vec![RestrictedTypes {
        types,
        granted: cond,
    }];
    let shape = b.typed_shape(items, &[("title", None)]);
    b.root(0, "{}", &[("items", Some(shape))]);
    let plan = b.build();
    let answer = || {
        ok(
            r#"{"data":{"items":[{"__typename":"Letter","title":"a"},{"__typename":"Record","title":"b"},{"title":"c"}]}}"#,
        )
    };
    let script = Script::new(vec![vec![answer()]]);
    let shown = text(run_with(&plan, &granted(&[0]), &script));
    assert!(
        shown.starts_with(r#"{"data":{"items":[{"title":"a"},{"title":"b"},"#),
        "{shown}"
    );
    let script = Script::new(vec![vec![answer()]]);
    let hidden = text(run_with(&plan, &granted(&[]), &script));
    // What may be a record is none that may be seen.
    assert!(
        hidden.starts_with(r#"{"data":{"items":[{"title":"a"},null,null]}"#),
        "{hidden}"
    );
    assert!(!hidden.contains("\"b\"") && !hidden.contains("\"c\""));
    assert!(hidden.contains(r#""path":["items",1]"#));
}
