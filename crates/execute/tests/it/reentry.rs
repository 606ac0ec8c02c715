//! Query roots in the middle of a response (planner rule 54).

use ogive_plan::{FetchId, Gate, LayoutId, Plan, Segment};

use crate::{
    fixture::{Builder, lookup, lookup_as},
    script::{Script, Setup, ok, run, run_with, status, text},
};

/// `{ members { club { news { id } motto } } }`: members come from the first subgraph, news and motto from the second.
fn members() -> (Builder, LayoutId) {
    let mut b = Builder::new(&["members", "news"], &["Query", "Member", "News"]);
    let members = b.object(Plan::ROOT, "members", "[Member]", &["Member"]);
    let club = b.object(members, "club", "Query", &["Query"]);
    let news = b.object(club, "news", "[News]", &["News"]);
    b.leaf(news, "id", "ID!");
    b.leaf(club, "motto", "String");
    let root = b.shape(club, &[]);
    let member = b.shape(members, &[("club", Some(root))]);
    let text = "{members{club{__typename}}}";
    b.root(0, text, &[("members", Some(member))]);
    (b, club)
}

fn club_fetch(b: &mut Builder, club: LayoutId) {
    let news = LayoutId(club.0 + 1);
    let item = b.shape(news, &[("id", None)]);
    let shape = b.shape(club, &[("news", Some(item)), ("motto", None)]);
    let target = b.target(club, &[], shape);
    let again = lookup_as("", "", vec![target]);
    b.fetch(1, "{news{id} motto}", &[FetchId(0)], vec![again]);
}

#[test]
fn roots_in_the_middle_are_asked_once_for_all() {
    let (mut b, club) = members();
    club_fetch(&mut b, club);
    let plan = b.build();
    let script = Script::new(vec![
        vec![ok(
            r#"{"data":{"members":[{"club":{}},{"club":null},{"club":{"__typename":"Query"}}]}}"#,
        )],
        vec![ok(
            r#"{"data":{"news":[{"id":"1"},{"id":"2"}],"motto":"play"}}"#,
        )],
    ]);
    let output = run_with(&plan, &Setup::default(), &script);
    assert_eq!(script.sent()[1].1, r#"{"query":"{news{id} motto}"}"#);
    assert_eq!(
        text(output),
        concat!(
            r#"{"data":{"members":[{"club":{"news":[{"id":"1"},{"id":"2"}],"motto":"play"}},{"club":null},"#,
            r#"{"club":{"news":[{"id":"1"},{"id":"2"}],"motto":"play"}}]}}"#
        )
    );
}

#[test]
fn without_such_a_root_nothing_is_asked() {
    let (mut b, club) = members();
    club_fetch(&mut b, club);
    let members = r#"{"data":{"members":[{"club":null},null]}}"#;
    assert_eq!(
        run(&b.build(), vec![vec![ok(members)], vec![]]),
        r#"{"data":{"members":[{"club":null},null]}}"#
    );
}

#[test]
fn errors_go_to_every_place() {
    let (mut b, club) = members();
    club_fetch(&mut b, club);
    let plan = b.build();
    let members = || ok(r#"{"data":{"members":[{"club":{}},{"club":{}}]}}"#);
    let answer = r#"{"data":{"news":[{"id":"1"},null],"motto":null},"errors":[
        {"message":"gone","path":["news",1]},{"message":"mute","path":["motto"]}]}"#;
    let response = run(&plan, vec![vec![members()], vec![ok(answer)]]);
    for path in [
        r#"["members",0,"club","news",1]"#,
        r#"["members",1,"club","news",1]"#,
        r#"["members",0,"club","motto"]"#,
        r#"["members",1,"club","motto"]"#,
    ] {
        assert_eq!(response.matches(path).count(), 1, "{path} in {response}");
    }
    let response = run(&plan, vec![vec![members()], vec![status(500, "")]]);
    for path in [
        r#"["members",0,"club","news"]"#,
        r#"["members",1,"club","motto"]"#,
    ] {
        assert_eq!(response.matches(path).count(), 1, "{path} in {response}");
    }
    assert_eq!(
        response.matches(r#"{"news":null,"motto":null}"#).count(),
        2,
        "{response}"
    );
}

#[test]
fn entities_share_the_request() {
    let (mut b, club) = members();
    let members = LayoutId(1);
    b.hidden(members, "id");
    b.leaf(members, "name", "String");
    // The members' key is asked for, too.
    let slot = b.slot(members, "id");
    let of_member = b.plan.fetches[FetchId(0)].root.as_ref().unwrap().shape;
    let member = b.plan.shapes[of_member].fields[0].shape.unwrap();
    b.plan.shapes[member].fields.push(ogive_plan::ShapeField {
        key: "id".into(),
        slot,
        types: None,
        shape: None,
        untyped: false,
    });
    let name = b.shape(members, &[("name", None)]);
    let motto = b.shape(club, &[("motto", None)]);
    let entity = b.target(members, &["id"], name);
    let again = b.target(club, &[], motto);
    let id = b.fetch(
        1,
        "",
        &[FetchId(0)],
        vec![lookup(vec![entity]), lookup_as("", "", vec![again])],
    );
    // News are not asked for: the layout has them, so somebody must bring them.
    let news = LayoutId(club.0 + 1);
    let item = b.shape(news, &[("id", None)]);
    let shape = b.shape(club, &[("news", Some(item))]);
    let target = b.target(club, &[], shape);
    b.fetch(
        1,
        "{news{id}}",
        &[FetchId(0), id],
        vec![lookup_as("", "", vec![target])],
    );
    let gated = |text: &str, lookup: u16| Segment {
        text: text.into(),
        gates: vec![Gate {
            lookup: Some(lookup),
            cond: ogive_plan::Cond::TRUE,
        }],
    };
    b.plan.fetches[id].segments = vec![
        gated("query($representations:[_Any!]!)", 0),
        Segment {
            text: "{".into(),
            gates: vec![],
        },
        gated(
            "_entities(representations:$representations){...on Member{name}}",
            0,
        ),
        gated("motto", 1),
        Segment {
            text: "}".into(),
            gates: vec![],
        },
    ];
    let plan = b.build();
    let script = Script::new(vec![
        vec![ok(
            r#"{"data":{"members":[{"id":"1","club":{}},{"id":null,"club":{}}]}}"#,
        )],
        vec![
            ok(r#"{"data":{"motto":"play","_entities":[{"name":"Ada"}]}}"#),
            ok(r#"{"data":{"news":[]}}"#),
        ],
    ]);
    let output = run_with(&plan, &Setup::default(), &script);
    assert!(script.sent()[1].1.contains("motto"), "{:?}", script.sent());
    assert_eq!(
        text(output),
        concat!(
            r#"{"data":{"members":[{"club":{"news":[],"motto":"play"},"name":"Ada"},"#,
            r#"{"club":{"news":[],"motto":"play"},"name":null}]}}"#
        )
    );
}
