//! Errors of answers in parts: each part tells why something of it is null.

use ogive_execute::{
    ExecuteInput, ExecuteLimits, ExecuteOptions,
    incremental::{IncrementalForm, Payload, execute_incrementally},
};
use ogive_plan::{Deferral, DeferredGroup, DeferredOutput, Granted, Plan};

use crate::{
    fixture::{Builder, ENTITIES, lookup},
    script::{Answer, Script, block_on, ok, unreachable},
};

/// `{ me { ... @defer { later } now } }`: one request brings both, as where there is no key to ask for them apart.
fn plan(later: &str, now: &str) -> Plan {
    let mut b = Builder::new(&["accounts", "reviews"], &["Query", "User"]);
    let me = b.object(Plan::ROOT, "me", "User", &["User"]);
    b.hidden(me, "id");
    b.leaf(me, "later", later);
    b.leaf(me, "now", now);
    let user = b.shape(me, &[("__k0=id", None)]);
    let first = b.root(0, "{me{__k0:id}}", &[("me", Some(user))]);
    let more = b.shape(me, &[("later", None), ("now", None)]);
    let target = b.target(me, &["id"], more);
    b.fetch(1, ENTITIES, &[first], vec![lookup(vec![target])]);
    b.plan.deferral = Some(Box::new(Deferral {
        groups: vec![DeferredGroup {
            label: None,
            parent: None,
            layout: me,
            variable: None,
        }],
        parts: vec![Vec::new(), vec![0]],
        fetches: vec![0, 0],
        outputs: vec![DeferredOutput {
            layout: me,
            entry: 0,
            part: 1,
            group: Some(0),
        }],
        streams: Vec::new(),
    }));
    b.build()
}

fn payloads(plan: &Plan, form: IncrementalForm, answers: Vec<Vec<Answer>>) -> Vec<Payload> {
    let (script, granted) = (Script::new(answers), Granted::default());
    let input = ExecuteInput {
        costs: None,
        operation_names: None,
        error_extensions: &[],
        variables: &[],
        granted: &granted,
        locals: &[],
        limits: ExecuteLimits::default(),
        options: ExecuteOptions::default(),
    };
    let mut all = Vec::new();
    let send = async |payload: Payload| {
        all.push(payload);
        true
    };
    block_on(execute_incrementally(plan, input, form, &script, send));
    all
}

/// Found by a reviewer: the one place of the error was that of the deferred field, and the first part said nothing.
#[test]
fn the_first_part_tells_why_something_of_it_is_null() {
    for (later, now, data) in [
        ("String!", "String!", r#"{"me":null}"#),
        ("String!", "String", r#"{"me":{"now":null}}"#),
        ("String", "String!", r#"{"me":null}"#),
    ] {
        for form in [IncrementalForm::Distinct, IncrementalForm::Repeated] {
            let me = ok(r#"{"data":{"me":{"__k0":"1"}}}"#);
            let all = payloads(&plan(later, now), form, vec![vec![me], vec![unreachable()]]);
            let first = all[0].initial.as_ref().unwrap();
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            let is = first.data.clone().map(|data| text(&data.into_bytes()));
            assert_eq!(is.as_deref(), Some(data));
            let errors = first.errors.as_deref().map(text).unwrap_or_default();
            assert!(
                errors.contains(r#""path":["me","now"]"#),
                "{later} {now} {form:?}: {errors}"
            );
        }
    }
}
