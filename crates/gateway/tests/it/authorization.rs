//! A supergraph that restricts what the gateway would show anyway is refused.

use std::net::IpAddr;

use ogive_base::{Peer, SourceId};
use ogive_federation::{ReadOptions, read_supergraph};
use ogive_gateway::{
    SchemaState,
    authorize::{ClaimsSource, check},
    plan::plan_now,
    prepare::prepare_operation,
    schema::bundle::{BundleBuilder, load},
    schema::plan_cache::PlanSource,
};
use ogive_plan::Claims;

use crate::graph::{self, sdl};

const LINKS: (&str, &str) = (
    "{ query: Query }",
    "@link(url: \"https://specs.apollo.dev/authenticated/v0.1\", for: SECURITY)\n\
     @link(url: \"https://specs.apollo.dev/requiresScopes/v0.1\", as: \"scoped\", for: SECURITY) { query: Query }\n\
     directive @authenticated on FIELD_DEFINITION | OBJECT\n\
     directive @scoped(scopes: [[String!]!]!) on FIELD_DEFINITION | OBJECT\n",
);
const CITY: (&str, &str) = ("city: String", "city: String @authenticated");

fn checked(changes: &[(&str, &str)], yaml: &str) -> Result<(), String> {
    let all: Vec<(&str, &str)> = [LINKS].iter().chain(changes).copied().collect();
    let sdl = sdl(&all);
    let supergraph = read_supergraph(&sdl, SourceId(0), &ReadOptions::default()).unwrap();
    let config = ogive_config::load(SourceId(0), yaml, &|_| None).unwrap();
    check(&supergraph, &config)
}

#[test]
fn restrictions_that_are_not_enforced_are_refused() {
    assert_eq!(
        checked(&[], ""),
        Ok(()),
        "the directives are defined, not used"
    );
    let field = [CITY];
    assert_eq!(
        checked(&field, "").unwrap_err(),
        "the supergraph restricts `Warehouse.city` with `@authenticated`, and the configuration does not say what to \
         do about it"
    );
    // Directives go by the names that the document gives them.
    let both = [
        field[0],
        (
            "type Warehouse @",
            "type Warehouse @scoped(scopes: [[\"read\"]]) @",
        ),
    ];
    assert_eq!(
        checked(&both, "").unwrap_err(),
        "the supergraph restricts `Warehouse` with `@scoped` and one more type or field, and the configuration \
         does not say what to do about it"
    );
    assert_eq!(
        checked(&both, "authorization: { directives: ignore }"),
        Ok(())
    );
    assert_eq!(
        checked(&both, "authorization: { directives: enforce }"),
        Ok(())
    );
}

const QUERY: &str = "{ warehouse { city products { name } } }";

/// The plan's requirements, and where the plan came from.
fn planned(state: &SchemaState) -> (usize, PlanSource) {
    let operation = prepare_operation(state, QUERY, None).unwrap();
    let (planned, source) = plan_now(state, &operation).unwrap();
    (planned.plan.requirements.len(), source)
}

#[test]
fn no_plan_outlives_a_change_of_restrictions() {
    const ENFORCE: &str = "authorization: { directives: enforce }";
    const IGNORE: &str = "authorization: { directives: ignore }";
    let scoped = ("city: String", "city: String @scoped(scopes: [[\"a\"]])");
    let other = ("city: String", "city: String @scoped(scopes: [[\"b\"]])");
    let value = (
        "type Warehouse @",
        "type Warehouse @scoped(scopes: [[\"a\"]]) @",
    );
    let state = |change: Option<(&str, &str)>, yaml| {
        let changes: Vec<_> = [LINKS].into_iter().chain(change).collect();
        graph::state(&changes, yaml)
    };
    let states = || {
        [
            (state(None, ENFORCE), 0),
            (state(Some(CITY), ENFORCE), 1),
            (state(Some(scoped), ENFORCE), 1),
            (state(Some(other), ENFORCE), 1),
            (state(Some(value), ENFORCE), 1),
            (state(Some(CITY), IGNORE), 0),
        ]
    };
    for (from, (before, _)) in states().into_iter().enumerate() {
        assert_eq!(planned(&before).1, PlanSource::Planner);
        let operation = prepare_operation(&before, QUERY, None).unwrap();
        before.operations.insert(None, operation.into());
        for (to, (mut after, n)) in states().into_iter().enumerate() {
            after.warm_up(&before);
            assert_eq!(planned(&after), (n, PlanSource::Cache), "{from} to {to}");
            let mut builder = BundleBuilder::new(&before);
            builder.add("it", QUERY, None).unwrap();
            let mut after = states().into_iter().nth(to).unwrap().0;
            // Restrictions that are ignored are as good as none.
            let same = from == to || [from, to].iter().all(|i| [0, 5].contains(i));
            assert_eq!(load(&mut after, builder.finish()).is_ok(), same);
            let source = if same {
                PlanSource::Bundle
            } else {
                PlanSource::Planner
            };
            assert_eq!(planned(&after), (n, source), "{from} to {to}");
        }
    }
}

#[test]
fn claims_are_those_of_trusted_peers() {
    let yaml = "authorization: { claims: { header: X-Claims, trusted: [10.0.0.0/8, unix] } }";
    let config = ogive_config::load(SourceId(0), yaml, &|_| None).unwrap();
    let source = ClaimsSource::new(&config);
    let take = |peer: &str, values: &[&'static str]| {
        let mut headers = http::HeaderMap::new();
        for value in values {
            headers.append("x-claims", http::HeaderValue::from_static(value));
        }
        let peer = match peer {
            "unix" => Peer::Unix,
            address => Peer::Tcp((address.parse::<IpAddr>().unwrap(), 1).into()),
        };
        let claims = source.take(&mut headers, peer);
        assert!(headers.is_empty(), "it goes no further");
        let claims = claims.map(|caller| caller.granted);
        claims.map_err(|error| error.errors[0].message.clone())
    };
    let all = r#"{"scopes":["a","b"],"policies":["p"]}"#;
    let known = Claims {
        authenticated: true,
        scopes: vec!["a".into(), "b".into()],
        policies: vec!["p".into()],
    };
    assert_eq!(take("10.1.1.1", &[all]), Ok(known.clone()));
    assert_eq!(take("unix", &[all]), Ok(known));
    assert_eq!(take("11.1.1.1", &[all]), Ok(Claims::default()));
    assert_eq!(take("11.1.1.1", &["nonsense", all]), Ok(Claims::default()));
    assert_eq!(take("10.1.1.1", &[]), Ok(Claims::default()));
    assert!(take("10.1.1.1", &["{}"]).unwrap().authenticated);
    let anonymous = take("10.1.1.1", &[r#"{"authenticated":false,"policies":["p"]}"#]);
    assert!(!anonymous.unwrap().authenticated);
    for (wrong, why) in [
        (&["nonsense"][..], "it is no JSON object"),
        (&["[]"], "it is no JSON object"),
        (&[""], "it is no JSON object"),
        (&["{}", "{}"], "it is there more than once"),
        (
            &[r#"{"authenticated":false,"authenticated":true}"#],
            "a member is there more than once",
        ),
        (
            &[r#"{"claims":{"sub":"a","s\u0075b":"b"}}"#],
            "a member is there more than once",
        ),
        (
            &[r#"{"claims":{"sub":"\ud800"}}"#],
            "a text in it has half a character",
        ),
        (
            &[r#"{"scope":"a"}"#],
            "its members are `authenticated`, `scopes`, `policies` and `claims`",
        ),
        (
            &[r#"{"scopes":"a b"}"#],
            "`scopes` and `policies` are lists of texts",
        ),
        (
            &[r#"{"policies":[1]}"#],
            "`scopes` and `policies` are lists of texts",
        ),
        (
            &[r#"{"authenticated":"yes"}"#],
            "`authenticated` is true or false",
        ),
        (&[r#"{"claims":["a"]}"#], "`claims` is a JSON object"),
    ] {
        let message = take("10.1.1.1", wrong).unwrap_err();
        assert!(message.ends_with(why), "{message}");
    }
}
