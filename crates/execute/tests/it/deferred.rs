//! Errors of answers in parts: each part tells why something of it is null.

use ogive_execute::{
    ExecuteInput, ExecuteLimits, ExecuteOptions,
    incremental::{IncrementalForm, Payload, execute_incrementally},
};
use ogive_plan::{Cond, Deferral, DeferredGroup, DeferredOutput, Granted, Plan};

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
            cond: Cond::TRUE,
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

/// `{ users { id ... @defer { f0 } ... @defer { f1 } ... } }`: every field comes by a request of its own.
fn wide(groups: u32) -> Plan {
    let mut b = Builder::new(&["accounts", "reviews"], &["Query", "User"]);
    let users = b.object(Plan::ROOT, "users", "[User]", &["User"]);
    b.leaf(users, "id", "String");
    let user = b.shape(users, &[("__k0=id", None)]);
    let first = b.root(0, "{users{__k0:id}}", &[("users", Some(user))]);
    for at in 0..groups {
        let name = format!("f{at}");
        b.leaf(users, &name, "String");
        let more = b.shape(users, &[(&*name, None)]);
        let target = b.target(users, &["id"], more);
        b.fetch(1, ENTITIES, &[first], vec![lookup(vec![target])]);
    }
    let group = DeferredGroup {
        label: None,
        parent: None,
        layout: users,
        variable: None,
        cond: Cond::TRUE,
    };
    let output = |at: u32| DeferredOutput {
        layout: users,
        entry: at + 1,
        part: at + 1,
        group: Some(at),
    };
    let parts = (0..groups).map(|group| vec![group]);
    b.plan.deferral = Some(Box::new(Deferral {
        groups: vec![group; groups as usize],
        parts: std::iter::once(Vec::new()).chain(parts).collect(),
        fetches: (0..=groups).collect(),
        outputs: (0..groups).map(output).collect(),
        streams: Vec::new(),
    }));
    b.build()
}

/// How many steps and slices such an answer takes; `fails`: whether all that is deferred is null and an error.
fn effort(form: IncrementalForm, items: u32, groups: u32, fails: bool) -> (u64, u32) {
    let list = |item: &dyn Fn(u32) -> String| (0..items).map(item).collect::<Vec<_>>().join(",");
    let users = list(&|at| format!(r#"{{"__k0":"{at}"}}"#));
    let mut answers = vec![vec![ok(&format!(r#"{{"data":{{"users":[{users}]}}}}"#))]];
    let looked_up = (0..groups).map(|group| {
        let entities = list(&|at| format!(r#"{{"f{group}":"value {at}"}}"#));
        let nulls = list(&|_| "null".to_owned());
        let errors = list(&|at| format!(r#"{{"message":"m","path":["_entities",{at}]}}"#));
        if fails {
            ok(&format!(
                r#"{{"data":{{"_entities":[{nulls}]}},"errors":[{errors}]}}"#
            ))
        } else {
            ok(&format!(r#"{{"data":{{"_entities":[{entities}]}}}}"#))
        }
    });
    answers.push(looked_up.collect());
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
    let mut sent = 0;
    let send = async |payload: Payload| {
        sent += payload.incremental.len();
        true
    };
    let plan = wide(groups);
    let output = block_on(execute_incrementally(&plan, input, form, &script, send));
    assert!(output.is_complete);
    assert_eq!(sent as u32, items * groups);
    (output.steps, output.slices)
}

/// A client multiplies objects by groups with a few bytes: the work is in proportion to them, and others have their turn
/// meanwhile.
#[test]
fn work_grows_with_the_groups_and_is_done_in_slices() {
    for form in [IncrementalForm::Distinct, IncrementalForm::Repeated] {
        for (items, groups, fails) in [(1_000_u32, 3, false), (1, 500_u32, false), (1_000, 3, true)]
        {
            let (few, fewer) = if items == 1 {
                (1, groups / 2)
            } else {
                (items / 2, groups)
            };
            let (half, _) = effort(form, few, fewer, fails);
            let (whole, slices) = effort(form, items, groups, fails);
            assert!(
                whole * 10 < half * 25,
                "{form:?} {items} × {groups}: {half} steps of half of it, {whole} of all"
            );
            // Of one object every answer of a subgraph is a turn of its own.
            assert!(
                items == 1 || u64::from(slices) * 4_000 > whole,
                "{form:?} {items} × {groups}: {whole} steps in {slices} slices"
            );
            println!(
                "{form:?} {few} × {fewer}: {half} steps; {items} × {groups}: {whole} in {slices} slices"
            );
        }
    }
}
