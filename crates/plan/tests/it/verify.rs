//! Each invariant, broken one at a time.

use ogive_plan::*;

use crate::fixture::{Builder, lookup, lookup_as, me};

/// Breaks a good plan and expects exactly this complaint among those made.
#[track_caller]
fn broken(plan: &Plan, change: impl FnOnce(&mut Plan), complaint: &str) {
    verify(plan).unwrap();
    let mut plan = plan.clone();
    change(&mut plan);
    let complaints = verify(&plan).expect_err("a broken plan");
    assert!(
        complaints.iter().any(|found| found == complaint),
        "{complaints:#?}"
    );
}

fn good() -> Plan {
    me(["User", "String", "[Review!]!", "String!"])
}
const ME: LayoutId = LayoutId(1);
const REVIEWS: LayoutId = LayoutId(2);

#[test]
fn tables() {
    let plan = &good();
    broken(
        plan,
        |p| p.conditions[Cond::TRUE].clear(),
        "condition 0 is not the one that always holds",
    );
    broken(
        plan,
        |p| {
            p.conditions.push(vec![vec![(3, true)]]);
        },
        "condition 1 names variable 3",
    );
    broken(
        plan,
        |p| {
            p.enums.push(vec!["B".into(), "A".into()]);
        },
        "enum 0 is not sorted",
    );
}

#[test]
fn layouts() {
    let plan = &good();
    broken(
        plan,
        |p| p.layouts[ME].parent = Some((REVIEWS, 0)),
        "layout 1: does not hang below its parent (at )",
    );
    broken(
        plan,
        |p| p.layouts[REVIEWS].parent = None,
        "layout 2: no parent (at )",
    );
    broken(
        plan,
        |p| p.layouts[ME].slots[2].child = Some(ME),
        "layout 1: the child of slot 2 has another parent (at me)",
    );
    broken(
        plan,
        |p| {
            p.layouts[ME].types.insert(9);
        },
        "layout 1: types {1, 9} are not all of {0, 1, 2} (at me)",
    );
}

#[test]
fn outputs() {
    let plan = &good();
    let name = |p: &mut Plan, change: fn(&mut OutField)| change(&mut p.layouts[ME].output[0]);
    let place = "layout 1: output 0 (name)";
    for (change, complaint) in [
        (
            (|f| f.key_json = b"\"name\"".as_slice().into()) as fn(&mut OutField),
            "key and JSON key differ",
        ),
        (|f| f.cond = Cond(7), "no condition 7"),
        (
            |f| f.types = Some([2].into_iter().collect()),
            "types {2} are not all of {1}",
        ),
        (
            |f| f.source = OutSource::Object(1),
            "object and leaf confused",
        ),
        (
            |f| f.source = OutSource::Leaf(9, LeafKind::Int),
            "no slot 9",
        ),
        (
            |f| f.source = OutSource::Leaf(1, LeafKind::Enum(EnumId(0))),
            "no enum 0",
        ),
        (
            |f| f.source = OutSource::Leaf(0, LeafKind::Int),
            "the slot's key is None",
        ),
        (|f| f.source = OutSource::Local(0), "no local 0"),
        (
            |f| f.wrapping = Wrapping::NULLABLE.list_of().unwrap(),
            "0 lists in the slot",
        ),
    ] {
        broken(
            plan,
            |p| name(p, change),
            &format!("{place}: {complaint} (at me)"),
        );
    }
    broken(
        plan,
        |p| p.layouts[ME].output[0].repeated = true,
        "layout 1: output name is wrongly marked as repeated or not (at me)",
    );
    broken(
        plan,
        |p| {
            let field = p.layouts[ME].output[0].clone();
            p.layouts[ME].output.push(field);
        },
        "layout 1: output name is wrongly marked as repeated or not (at me)",
    );
}

#[test]
fn shapes() {
    let plan = &good();
    let user = ShapeId(0);
    broken(
        plan,
        |p| p.shapes[user].layout = LayoutId(9),
        "shape 0: no layout 9",
    );
    broken(
        plan,
        |p| p.shapes[user].fields[0].slot = 9,
        "shape 0: key __k0: no slot 9",
    );
    broken(
        plan,
        |p| p.shapes[user].fields[0].key = "name".into(),
        "shape 0: key name: means several things for one type",
    );
    broken(
        plan,
        |p| p.shapes[user].typename_key = Some("name".into()),
        "shape 0: key name: means several things for one type",
    );
    broken(
        plan,
        |p| p.shapes[user].fields[1].shape = Some(user),
        "shape 0: key name: its shape does not fit its slot",
    );
    broken(
        plan,
        |p| p.shapes[user].fields[1].slot = 2,
        "shape 0: key name: its shape does not fit its slot",
    );
}

#[test]
fn fetches() {
    let plan = &good();
    let (first, second) = (FetchId(0), FetchId(1));
    broken(
        plan,
        |p| p.fetches[first].subgraph = 9,
        "fetch 0: no subgraph 9",
    );
    broken(
        plan,
        |p| p.fetches[first].root = None,
        "fetch 0: asks nothing",
    );
    broken(
        plan,
        |p| p.fetches[second].kind = OperationKind::Mutation,
        "fetch 1: is a Mutation",
    );
    broken(
        plan,
        |p| p.kind = OperationKind::Mutation,
        "fetch 0: is a Query",
    );
    broken(
        plan,
        |p| p.fetches[first].segments[0].text = "\"".into(),
        "fetch 0: text is not escaped: \"",
    );
    broken(
        plan,
        |p| {
            p.fetches[second].segments[0].gates.push(Gate {
                lookup: Some(1),
                cond: Cond(3),
            });
        },
        "fetch 1: no look-up Some(1)",
    );
    broken(
        plan,
        |p| {
            p.fetches[first].segments[0].gates.push(Gate {
                lookup: Some(Gate::ROOT),
                cond: Cond::TRUE,
            });
            p.fetches[first].root = None;
        },
        "fetch 0: no look-up Some(65535)",
    );
    broken(
        plan,
        |p| {
            let mut other = p.fetches[second].lookups[0].targets[0].clone();
            other.contexts.push(ContextValue {
                variable: "v".into(),
                layout: LayoutId(0),
                members: Vec::new(),
                required: true,
                cond: Cond::TRUE,
            });
            p.fetches[second].lookups[0].targets.push(other);
        },
        "fetch 1: look-up 0: its targets need different values from above",
    );
    broken(
        plan,
        |p| {
            p.fetches[first].variables.push(VariableUse {
                variable: 0,
                gates: Vec::new(),
            });
        },
        "fetch 0: no variable 0",
    );
    broken(
        plan,
        |p| p.fetches[first].root.as_mut().unwrap().shape = ShapeId(0),
        "fetch 0: root fields do not land in the root",
    );
    broken(
        plan,
        |p| {
            let again = p.fetches[second].lookups[0].clone();
            p.fetches[second].lookups.push(again);
        },
        "fetch 1: response key _entities is used twice",
    );
    broken(
        plan,
        |p| {
            let again = p.fetches[second].lookups[0].clone();
            p.fetches[second].lookups.push(again);
        },
        "fetch 1: variable $representations is used twice",
    );
}

#[test]
fn targets() {
    let plan = &good();
    let change = |change: fn(&mut Target)| {
        move |p: &mut Plan| change(&mut p.fetches[FetchId(1)].lookups[0].targets[0])
    };
    for (edit, complaint) in [
        (
            (|t| t.layout = LayoutId(9)) as fn(&mut Target),
            "no layout 9",
        ),
        (|t| t.cond = Cond(3), "no condition 3"),
        (
            |t| t.types = Some([0].into_iter().collect()),
            "types {0} are not all of {1}",
        ),
        (|t| t.types = Some(Default::default()), "no type"),
        (
            |t| t.representations = Vec::new().into(),
            "no representation",
        ),
        (
            |t| t.representations[0].members[0].slot = Some(9),
            "member \"id\": no slot 9",
        ),
        (
            |t| t.representations[0].members[0].slot = Some(2),
            "member \"id\": no members",
        ),
        (
            |t| {
                let member = t.representations[0].members[0].clone();
                t.representations[0].members[0].members.push(member);
            },
            "member \"id\": members of a leaf",
        ),
        (
            |t| t.representations[0].members[0].key_json = b"id".as_slice().into(),
            "member id: is no key",
        ),
    ] {
        broken(
            plan,
            change(edit),
            &format!("fetch 1: look-up 0: {complaint}"),
        );
    }
    broken(
        plan,
        |p| p.shapes[ShapeId(3)].layout = LayoutId(0),
        "fetch 1: look-up 0: answers land in another layout",
    );
    broken(
        plan,
        |p| {
            let members =
                &mut p.fetches[FetchId(1)].lookups[0].targets[0].representations[0].members;
            let again = members[0].clone();
            members.push(again);
        },
        "fetch 1: look-up 0: member \"id\" occurs twice for one type",
    );
    broken(
        plan,
        |p| p.fetches[FetchId(1)].lookups[0].targets.clear(),
        "fetch 1: look-up 0: no target",
    );
}

#[test]
fn the_fetch_graph() {
    let plan = &good();
    let (first, second) = (FetchId(0), FetchId(1));
    broken(
        plan,
        |p| p.fetches[first].successors.clear(),
        "fetch 1: fetch 0 does not know of it",
    );
    broken(
        plan,
        |p| p.fetches[second].dependencies.clear(),
        "fetch 0: fetch 1 does not know of it",
    );
    broken(
        plan,
        |p| p.fetches[second].dependencies.push(FetchId(9)),
        "fetch 1: no fetch 9",
    );
    broken(
        plan,
        |p| p.fetches[second].dependencies.push(first),
        "fetch 1: names a fetch twice",
    );
    broken(
        plan,
        |p| p.fetches[second].wave = 1,
        "fetch 1: wave does not grow along the edge to 0",
    );
    broken(plan, |p| p.fetches[first].wave = 3, "fetch 1: out of order");
    broken(plan, |p| p.fetches[first].wave = 0, "fetch 0: wave 0");
}

#[test]
fn whatever_is_read_was_written_before() {
    let plan = &good();
    let (first, second) = (FetchId(0), FetchId(1));
    broken(
        plan,
        |p| drop(p.shapes[ShapeId(0)].fields.edit(|f| f.remove(0))),
        "fetch 1 reads me.id, which no fetch before it writes",
    );
    broken(
        plan,
        |p| {
            p.fetches[first].successors.clear();
            p.fetches[second].dependencies.clear();
        },
        "fetch 1 looks up me, which no fetch before it brings",
    );
    // A fetch beside it writes the key too.
    let mut b = Builder::new(&["a", "b", "c"], &["Query", "User"]);
    let me = b.object(Plan::ROOT, "me", "User", &["User"]);
    b.hidden(me, "id");
    b.leaf(me, "name", "String");
    let key = b.shape(me, &[("id", None)]);
    let first = b.root(0, "{me{id}}", &[("me", Some(key))]);
    b.root(1, "{me{id}}", &[("me", Some(key))]);
    let shape = b.shape(me, &[("name", None)]);
    let target = b.target(me, &["id"], shape);
    b.fetch(2, "{}", &[first], vec![lookup(vec![target])]);
    assert_eq!(
        verify(&b.build_unchecked()).unwrap_err(),
        ["fetch 2 reads me.id but does not wait for fetch 1, which writes it"]
    );
}

#[test]
fn whatever_the_client_sees_is_written() {
    let plan = &good();
    broken(
        plan,
        |p| drop(p.shapes[ShapeId(0)].fields.edit(|f| f.remove(1))),
        "no fetch writes me.name of User",
    );
    let mut b = Builder::new(&["a"], &["Query", "Book", "Film"]);
    let media = b.object(Plan::ROOT, "media", "Media", &["Book", "Film"]);
    b.typename(media, "__typename");
    b.leaf(media, "title", "String");
    let shape = b.typed_shape(media, &[("title", None)]);
    b.root(0, "{media{title}}", &[("media", Some(shape))]);
    let plan = &b.build();
    broken(
        plan,
        |p| p.shapes[shape].fields[0].types = Some([2].into_iter().collect()),
        "no fetch writes media.title of Book",
    );
    broken(
        plan,
        |p| p.shapes[shape].typename_key = None,
        "the response needs the concrete type at media, which no fetch asks for",
    );
}

#[test]
fn representations_fit_every_type_that_is_looked_up() {
    let mut b = Builder::new(&["a", "b"], &["Query", "Book", "Film"]);
    let media = b.object(Plan::ROOT, "media", "Media", &["Book", "Film"]);
    b.hidden(media, "isbn");
    b.leaf(media, "title", "String");
    b.last_output(media).types = Some(b.types(&["Book"]));
    let shape = b.typed_shape(media, &[("isbn", None)]);
    b.only_for(shape, "isbn", &["Book"]);
    let first = b.root(0, "{media{isbn}}", &[("media", Some(shape))]);
    let title = b.shape(media, &[("title", None)]);
    let mut target = b.target(media, &["isbn"], title);
    target.types = Some(b.types(&["Book"]));
    b.fetch(1, "{}", &[first], vec![lookup_as("e", "r", vec![target])]);
    let plan = &b.build();
    broken(
        plan,
        |p| p.fetches[FetchId(1)].lookups[0].targets[0].types = None,
        "fetch 1 has no representation of Film at media",
    );
    broken(
        plan,
        |p| p.shapes[shape].typename_key = None,
        "fetch 1 needs the concrete type at media, which no fetch before it asks for",
    );
}

#[test]
fn mutations_are_serial_with_all_that_follows_from_them() {
    let mut b = Builder::new(&["a", "b"], &["Mutation", "User"]);
    b.plan.kind = OperationKind::Mutation;
    let one = b.object(Plan::ROOT, "one", "User", &["User"]);
    b.hidden(one, "id");
    b.leaf(one, "name", "String");
    b.leaf(Plan::ROOT, "two", "Int");
    let key = b.shape(one, &[("id", None)]);
    let first = b.root(0, "mutation{one{id}}", &[("one", Some(key))]);
    let name = b.shape(one, &[("name", None)]);
    let target = b.target(one, &["id"], name);
    let follow = b.fetch(1, "{}", &[first], vec![lookup(vec![target])]);
    b.plan.fetches[follow].kind = OperationKind::Query;
    let two = b.shape(Plan::ROOT, &[("two", None)]);
    let second = b.fetch(0, "mutation{two}", &[follow], Vec::new());
    b.plan.fetches[second].root = Some(RootPart {
        cond: Cond::TRUE,
        shape: two,
    });
    let plan = &b.build();
    let relink = |p: &mut Plan, dependencies: &[FetchId]| {
        for id in [first, follow] {
            p.fetches[id].successors.retain(|other| *other != second);
        }
        p.fetches[second].dependencies = dependencies.to_vec();
        for id in dependencies {
            p.fetches[*id].successors.push(second);
        }
    };
    broken(
        plan,
        |p| relink(p, &[]),
        "mutation fetch 2 does not wait for 0",
    );
    broken(
        plan,
        |p| relink(p, &[first]),
        "mutation fetch 2 does not wait for 1, which follows from 0",
    );
}
