//! Every kind of lying, broken or absent subgraph. Partial data survives, each fault is told once, nothing panics.

use ogive_execute::ExecuteOptions;
use ogive_plan::{Plan, RootPart};

use crate::{
    fixture::{Builder, lookup, me},
    script::{Answer, Script, Setup, ok, run, run_with, status, text, unreachable},
};

const ME: &str = r#"{"data":{"me":{"__k0":"1","name":"Ada"}}}"#;

/// Runs `{ me { name reviews { body } } }` with everything nullable, if not told otherwise.
fn nullable() -> Plan {
    me(["User", "String", "[Review]", "String"])
}

fn errors(text: &str) -> Vec<String> {
    let json: serde_json::Value = serde_json::from_str(text).unwrap();
    let errors = json["errors"].as_array().cloned().unwrap_or_default();
    errors
        .iter()
        .map(|error| {
            let mut line = error["extensions"]["code"].as_str().unwrap().to_owned();
            if let Some(path) = error.get("path") {
                line += &format!(" {path}");
            }
            line + ": " + error["message"].as_str().unwrap()
        })
        .collect()
}
fn data(text: &str) -> String {
    let json: serde_json::Value = serde_json::from_str(text).unwrap();
    json["data"].to_string()
}

#[track_caller]
fn check(plan: &Plan, answers: Vec<Vec<Answer>>, expected_data: &str, expected_errors: &[&str]) {
    let text = run(plan, answers);
    assert_eq!(data(&text), expected_data);
    assert_eq!(errors(&text), expected_errors);
}

/// The answer to the root fetch is bad; the look-up has nothing to ask.
#[track_caller]
fn bad_root(answer: Answer, expected_data: &str, expected_errors: &[&str]) {
    check(
        &nullable(),
        vec![vec![answer], vec![]],
        expected_data,
        expected_errors,
    );
}
/// The answer to the look-up is bad.
#[track_caller]
fn bad_lookup(answer: Answer, expected_reviews: &str, expected_errors: &[&str]) {
    check(
        &nullable(),
        vec![vec![ok(ME)], vec![answer]],
        &format!(r#"{{"me":{{"name":"Ada","reviews":{expected_reviews}}}}}"#),
        expected_errors,
    );
}

const NULL: &str = r#"{"me":null}"#;

#[test]
fn root_answers_that_are_no_answers() {
    bad_root(
        unreachable(),
        NULL,
        &[r#"SUBREQUEST_HTTP_ERROR ["me"]: The subgraph could not be reached."#],
    );
    bad_root(
        status(500, "<html>oops</html>"),
        NULL,
        &[r#"SUBREQUEST_HTTP_ERROR ["me"]: The subgraph answered with HTTP status 500."#],
    );
    bad_root(
        status(404, r#"{"data":{"me":{"__k0":"1","name":"Ada"}}}"#),
        NULL,
        &[r#"SUBREQUEST_HTTP_ERROR ["me"]: The subgraph answered with HTTP status 404."#],
    );
    bad_root(
        status(
            400,
            r#"{"errors":[{"message":"bad","extensions":{"code":"BAD"}},{"message":"worse"}]}"#,
        ),
        NULL,
        &[
            r#"BAD ["me"]: bad"#,
            r#"DOWNSTREAM_SERVICE_ERROR ["me"]: worse"#,
        ],
    );
    for (body, reason) in [
        ("", "unexpected end at byte 0"),
        ("<html>", "unexpected character at byte 0"),
        ("[]", "unexpected character at byte 0"),
        ("null", "unexpected character at byte 0"),
        (
            r#"{"data":{"me":{"__k0":"1","name":"Ad"#,
            "unexpected end at byte 36",
        ),
        (
            r#"{"data":{"me":null}}}"#,
            "something follows the value at byte 20",
        ),
        (
            "{\"data\":{\"me\":\"\u{1}\"}}",
            "unescaped control character at byte 15",
        ),
        (r#"{"data":{"me":01}}"#, "malformed number at byte 15"),
    ] {
        bad_root(
            ok(body),
            NULL,
            &[&format!(
                r#"SUBREQUEST_MALFORMED_RESPONSE ["me"]: The subgraph's answer is not a GraphQL response: {reason}."#
            )],
        );
    }
    for body in [
        "{}",
        r#"{"data":null}"#,
        r#"{"data":[]}"#,
        r#"{"data":3,"errors":[]}"#,
        r#"{"errors":null}"#,
    ] {
        bad_root(
            ok(body),
            NULL,
            &[r#"SUBREQUEST_MALFORMED_RESPONSE ["me"]: The subgraph's answer has no data."#],
        );
    }
}

#[test]
fn root_answers_with_errors() {
    bad_root(
        ok(r#"{"errors":[{"message":"boom"}],"data":null}"#),
        NULL,
        &[r#"DOWNSTREAM_SERVICE_ERROR ["me"]: boom"#],
    );
    bad_root(
        ok(
            r#"{"errors":[{"message":"boom","path":["me"],"locations":[{"line":1,"column":2}]}],"data":{"me":null}}"#,
        ),
        NULL,
        &[r#"DOWNSTREAM_SERVICE_ERROR ["me"]: boom"#],
    );
    // Of a path that clients do not know, what needs its value is told; if nobody knows it, or if it has a value, what is
    // null without another error.
    for path in [
        r#"["me","__k0"]"#,
        r#"["me","what",3]"#,
        r#"["me",3]"#,
        r#"["me","name"]"#,
    ] {
        bad_root(
            ok(&format!(
                r#"{{"data":{{"me":{{"name":"x"}}}},"errors":[{{"path":{path},"message":"m"}}]}}"#
            )),
            r#"{"me":{"name":"x","reviews":null}}"#,
            &[r#"DOWNSTREAM_SERVICE_ERROR ["me","reviews"]: m"#],
        );
    }
    // Paths that are none.
    for path in [
        "null", "3", "[]", "[3]", "[-1]", "[1.5]", r#"["?"]"#, "[null]", "[[]]",
    ] {
        bad_root(
            ok(&format!(
                r#"{{"data":{{"me":{{"name":"x"}}}},"errors":[{{"path":{path},"message":"m"}}]}}"#
            )),
            r#"{"me":{"name":"x","reviews":null}}"#,
            &[r#"DOWNSTREAM_SERVICE_ERROR ["me","reviews"]: m"#],
        );
    }
    bad_root(
        ok(r#"{"data":{"me":null},"errors":[3,{},{"message":4,"extensions":[],"path":"p"}]}"#),
        NULL,
        &[r#"DOWNSTREAM_SERVICE_ERROR ["me"]: The subgraph reported an error without a message."#;
            3],
    );
    bad_root(
        ok(r#"{"data":{"me":{"name":"x"}},"errors":{"message":"m"}}"#),
        r#"{"me":{"name":"x","reviews":null}}"#,
        &[
            r#"SUBREQUEST_MALFORMED_RESPONSE ["me","reviews"]: The subgraph's answer has a malformed list of errors."#,
        ],
    );
}

#[test]
fn root_values_of_the_wrong_kind() {
    for body in [
        r#"{"data":{"me":3}}"#,
        r#"{"data":{"me":[{"name":"x"}]}}"#,
        r#"{"data":{"me":"x"}}"#,
    ] {
        bad_root(
            ok(body),
            NULL,
            &[r#"SUBREQUEST_INVALID_VALUE ["me"]: The subgraph did not answer an object."#],
        );
    }
    bad_root(
        ok(r#"{"data":{"me":{"name":{"first":"Ada"}}}}"#),
        r#"{"me":{"name":null,"reviews":null}}"#,
        &[r#"SUBREQUEST_INVALID_VALUE ["me","name"]: The subgraph's value is not of type String."#],
    );
}

#[test]
fn lookup_answers_that_are_no_answers() {
    bad_lookup(
        unreachable(),
        "null",
        &[r#"SUBREQUEST_HTTP_ERROR ["me","reviews"]: The subgraph could not be reached."#],
    );
    bad_lookup(
        status(503, r#"{"errors":[{"message":"busy"}]}"#),
        "null",
        &[r#"DOWNSTREAM_SERVICE_ERROR ["me","reviews"]: busy"#],
    );
    bad_lookup(
        ok(r#"{"data":null,"errors":[{"message":"boom","path":["_entities"]}]}"#),
        "null",
        &[r#"DOWNSTREAM_SERVICE_ERROR ["me","reviews"]: boom"#],
    );
    for body in [
        r#"{"data":{}}"#,
        r#"{"data":{"_entities":null}}"#,
        r#"{"data":{"_entities":{}}}"#,
        r#"{"data":{"_entities":"x"}}"#,
    ] {
        bad_lookup(
            ok(body),
            "null",
            &[
                r#"SUBREQUEST_MALFORMED_RESPONSE ["me","reviews"]: The subgraph did not answer a list of entities."#,
            ],
        );
    }
    for list in [
        "[]",
        r#"[{"reviews":[]},{"reviews":[]}]"#,
        "[null,null,null]",
    ] {
        bad_lookup(
            ok(&format!(r#"{{"data":{{"_entities":{list}}}}}"#)),
            "null",
            &[
                r#"SUBREQUEST_MALFORMED_RESPONSE ["me","reviews"]: The subgraph's list of entities has another length than asked."#,
            ],
        );
    }
    for item in ["3", "[]", r#""x""#] {
        bad_lookup(
            ok(&format!(r#"{{"data":{{"_entities":[{item}]}}}}"#)),
            "null",
            &[
                r#"SUBREQUEST_INVALID_VALUE ["me","reviews"]: The subgraph did not answer an object."#,
            ],
        );
    }
    bad_lookup(ok(r#"{"data":{"_entities":[null]}}"#), "null", &[]);
    bad_lookup(ok(r#"{"data":{"_entities":[{}]}}"#), "null", &[]);
}

#[test]
fn lookup_answers_with_errors() {
    bad_lookup(
        ok(r#"{"data":{"_entities":[null]},"errors":[{"message":"gone","path":["_entities",0]}]}"#),
        "null",
        &[r#"DOWNSTREAM_SERVICE_ERROR ["me","reviews"]: gone"#],
    );
    bad_lookup(
        ok(
            r#"{"data":{"_entities":[{"reviews":[{"body":"a"},{"body":null}]}]},"errors":[{"message":"m","path":["_entities",0,"reviews",1,"body"]}]}"#,
        ),
        r#"[{"body":"a"},{"body":null}]"#,
        &[r#"DOWNSTREAM_SERVICE_ERROR ["me","reviews",1,"body"]: m"#],
    );
    // An index beyond the list, or none: somewhere below the look-up.
    for path in [
        r#"["_entities",5,"reviews"]"#,
        r#"["_entities"]"#,
        r#"["_entities","x"]"#,
    ] {
        bad_lookup(
            ok(&format!(
                r#"{{"data":{{"_entities":[{{"reviews":null}}]}},"errors":[{{"message":"m","path":{path}}}]}}"#
            )),
            "null",
            &[r#"DOWNSTREAM_SERVICE_ERROR ["me","reviews"]: m"#],
        );
    }
}

#[test]
fn lookup_values_of_the_wrong_kind() {
    bad_lookup(
        ok(r#"{"data":{"_entities":[{"reviews":{"body":"a"}}]}}"#),
        "null",
        &[r#"SUBREQUEST_INVALID_VALUE ["me","reviews"]: The subgraph did not answer a list."#],
    );
    bad_lookup(
        ok(r#"{"data":{"_entities":[{"reviews":[{"body":"a"},7,[],{"body":7}]}]}}"#),
        r#"[{"body":"a"},null,null,{"body":null}]"#,
        &[
            r#"SUBREQUEST_INVALID_VALUE ["me","reviews",1]: The subgraph did not answer an object."#,
            r#"SUBREQUEST_INVALID_VALUE ["me","reviews",2]: The subgraph did not answer an object."#,
            r#"SUBREQUEST_INVALID_VALUE ["me","reviews",3,"body"]: The subgraph's value is not of type String."#,
        ],
    );
}

#[test]
fn a_failure_is_told_once_and_takes_its_nullable_ancestor() {
    let plan = me(["User", "String", "[Review!]!", "String!"]);
    let failing = |answer| vec![vec![ok(ME)], vec![answer]];
    check(
        &plan,
        failing(unreachable()),
        NULL,
        &[r#"SUBREQUEST_HTTP_ERROR ["me","reviews"]: The subgraph could not be reached."#],
    );
    check(
        &plan,
        failing(ok(
            r#"{"data":{"_entities":[null]},"errors":[{"message":"gone","path":["_entities",0]}]}"#,
        )),
        NULL,
        &[r#"DOWNSTREAM_SERVICE_ERROR ["me","reviews"]: gone"#],
    );
    check(
        &plan,
        failing(ok(
            r#"{"data":{"_entities":[{"reviews":null}]},"errors":[{"message":"m","path":["_entities",0,"reviews",0,"body"]}]}"#,
        )),
        NULL,
        &[r#"DOWNSTREAM_SERVICE_ERROR ["me","reviews",0,"body"]: m"#],
    );
    check(
        &plan,
        failing(ok(r#"{"data":{"_entities":[null]}}"#)),
        NULL,
        &[
            r#"NON_NULL_VIOLATION ["me","reviews"]: Cannot return null for non-nullable field User.reviews."#,
        ],
    );
    let plan = me(["User!", "String!", "[Review!]!", "String!"]);
    check(
        &plan,
        vec![vec![unreachable()], vec![]],
        "null",
        &[r#"SUBREQUEST_HTTP_ERROR ["me"]: The subgraph could not be reached."#],
    );
}

#[test]
fn one_failed_fetch_leaves_the_others_alone() {
    let mut b = Builder::new(&["a", "b", "c"], &["Query"]);
    for (subgraph, name) in ["x", "y", "z"].into_iter().enumerate() {
        b.leaf(Plan::ROOT, name, "Int");
        b.root(subgraph as u32, "{}", &[(name, None)]);
    }
    check(
        &b.build(),
        vec![
            vec![ok(r#"{"data":{"x":1}}"#)],
            vec![unreachable()],
            vec![ok(r#"{"data":{"z":3}}"#)],
        ],
        r#"{"x":1,"y":null,"z":3}"#,
        &[r#"SUBREQUEST_HTTP_ERROR ["y"]: The subgraph could not be reached."#],
    );
}

#[test]
fn what_followed_from_a_failed_fetch_is_skipped() {
    // me from a, rank from b by id, prize from c by rank.
    let mut b = Builder::new(&["a", "b", "c"], &["Query", "User"]);
    let me = b.object(Plan::ROOT, "me", "User", &["User"]);
    b.hidden(me, "id");
    b.hidden(me, "rank");
    b.leaf(me, "prize", "String");
    let key = b.shape(me, &[("id", None)]);
    let first = b.root(0, "{}", &[("me", Some(key))]);
    let shape = b.shape(me, &[("rank", None)]);
    let target = b.target(me, &["id"], shape);
    let second = b.fetch(1, "", &[first], vec![lookup(vec![target])]);
    let shape = b.shape(me, &[("prize", None)]);
    let target = b.target(me, &["rank"], shape);
    b.fetch(2, "", &[second], vec![lookup(vec![target])]);
    check(
        &b.build(),
        vec![
            vec![ok(r#"{"data":{"me":{"id":1}}}"#)],
            vec![unreachable()],
            vec![],
        ],
        r#"{"me":{"prize":null}}"#,
        &[r#"SUBREQUEST_HTTP_ERROR ["me","prize"]: The subgraph could not be reached."#],
    );
}

#[test]
fn an_error_names_no_place_that_has_a_value_in_the_end() {
    // The prize is computed from the rank, which clients do not see. What it is without one is the subgraph's
    // own affair.
    let mut b = Builder::new(&["a", "b"], &["Query", "User"]);
    let me = b.object(Plan::ROOT, "me", "User", &["User"]);
    b.hidden(me, "id");
    b.hidden(me, "rank");
    b.leaf(me, "prize", "String");
    let shape = b.shape(me, &[("id", None), ("rank", None)]);
    let first = b.root(0, "{}", &[("me", Some(shape))]);
    let rank = b.member(me, "rank", false, Vec::new());
    let shape = b.shape(me, &[("prize", None)]);
    let mut target = b.target(me, &["id"], shape);
    let mut representation = target.representations[0].clone();
    representation.members.push(rank);
    target.representations = vec![representation].into();
    b.fetch(1, "", &[first], vec![lookup(vec![target])]);
    let plan = b.build();
    let ranks = r#"{"data":{"me":{"id":1,"rank":null}},
        "errors":[{"message":"no rank","path":["me","rank"]}]}"#;
    let prize = |prize: &str| {
        let prizes = format!(r#"{{"data":{{"_entities":[{{"prize":{prize}}}]}}}}"#);
        vec![vec![ok(ranks)], vec![ok(&prizes)]]
    };
    check(
        &plan,
        prize("null"),
        r#"{"me":{"prize":null}}"#,
        &[r#"DOWNSTREAM_SERVICE_ERROR ["me","prize"]: no rank"#],
    );
    check(
        &plan,
        prize("\"a cup\""),
        r#"{"me":{"prize":"a cup"}}"#,
        &["DOWNSTREAM_SERVICE_ERROR: no rank"],
    );
}

#[test]
fn a_failed_fetch_of_many_places_names_all_of_them() {
    let mut b = Builder::new(&["a", "b"], &["Query", "User"]);
    let users = b.object(Plan::ROOT, "users", "[User]", &["User"]);
    b.hidden(users, "id");
    b.leaf(users, "name", "String!");
    b.leaf(Plan::ROOT, "n", "Int");
    let key = b.shape(users, &[("id", None)]);
    let first = b.root(0, "{}", &[("users", Some(key))]);
    let shape = b.shape(users, &[("name", None)]);
    let target = b.target(users, &["id"], shape);
    let second = b.fetch(1, "", &[first], vec![lookup(vec![target])]);
    let root = b.shape(Plan::ROOT, &[("n", None)]);
    b.plan.fetches[second].root = Some(RootPart {
        cond: ogive_plan::Cond::TRUE,
        shape: root,
    });
    let users = r#"{"data":{"users":[{"id":1},{"id":2}]}}"#;
    let plan = b.build();
    check(
        &plan,
        vec![vec![ok(users)], vec![unreachable()]],
        r#"{"users":[null,null],"n":null}"#,
        &[
            r#"SUBREQUEST_HTTP_ERROR ["n"]: The subgraph could not be reached."#,
            r#"SUBREQUEST_HTTP_ERROR ["users",0,"name"]: The subgraph could not be reached."#,
            r#"SUBREQUEST_HTTP_ERROR ["users",1,"name"]: The subgraph could not be reached."#,
        ],
    );
    check(
        &plan,
        vec![
            vec![ok(users)],
            vec![ok(r#"{"data":{"n":4,"_entities":[]}}"#)],
        ],
        r#"{"users":[null,null],"n":4}"#,
        &[
            r#"SUBREQUEST_MALFORMED_RESPONSE ["users",0,"name"]: The subgraph's list of entities has another length than asked."#,
            r#"SUBREQUEST_MALFORMED_RESPONSE ["users",1,"name"]: The subgraph's list of entities has another length than asked."#,
        ],
    );
    check(
        &plan,
        vec![
            vec![ok(users)],
            vec![ok(
                r#"{"data":{"n":4,"_entities":[{"name":"1"},null]},"errors":[{"message":"m","path":["_entities",1]},{"message":"k","path":["n"]}]}"#,
            )],
        ],
        r#"{"users":[{"name":"1"},null],"n":4}"#,
        &[
            r#"DOWNSTREAM_SERVICE_ERROR ["users",1,"name"]: m"#,
            // It has a value.
            "DOWNSTREAM_SERVICE_ERROR: k",
        ],
    );
}

#[test]
fn extensions_and_service_names_are_told_if_wanted() {
    let body = r#"{"data":{"me":null},"errors":[{"message":"a\"\u0062","path":["me"],"locations":[],"extensions":{"x":{"y": 1},"code":"C","service":"lie","z":null}}]}"#;
    let with = |extensions, services| {
        let setup = Setup {
            options: ExecuteOptions {
                subgraph_error_extensions: extensions,
                error_service_names: services,
                trace: false,
                ..ExecuteOptions::default()
            },
            ..Setup::default()
        };
        let script = Script::new(vec![vec![ok(body)], vec![]]);
        text(run_with(&nullable(), &setup, &script))
    };
    let expected = |extensions: &str| {
        format!(
            r#"{{"data":{{"me":null}},"errors":[{{"message":"a\"b","path":["me"],"extensions":{{{extensions}}}}}]}}"#
        )
    };
    assert_eq!(with(false, false), expected(r#""code":"C""#));
    assert_eq!(
        with(false, true),
        expected(r#""code":"C","service":"accounts""#)
    );
    assert_eq!(
        with(true, false),
        expected(r#""x":{"y": 1},"service":"lie","z":null,"code":"C""#)
    );
    assert_eq!(
        with(true, true),
        expected(r#""x":{"y": 1},"z":null,"code":"C","service":"accounts""#)
    );
}
