//! The text and JSON forms.

use ogive_plan::*;

use crate::fixture::{Builder, lookup, me};

/// Everything that the forms can show: conditions, types, alternatives, nested members, several targets.
pub(crate) fn rich() -> Plan {
    let mut b = Builder::new(&["catalog", "stock"], &["Query", "Book", "Film", "Size"]);
    b.plan.variables = vec!["a".into(), "b".into()];
    let cond = b.cond(&[&[(0, true), (1, false)], &[(1, true)]]);
    let media = b.object(Plan::ROOT, "media", "[Media!]", &["Book", "Film"]);
    b.hidden(media, "upc");
    b.hidden(media, "isbn");
    let size = b.hidden_object(media, "size", 0, &["Size"]);
    b.hidden(size, "unit");
    b.leaf(media, "stock", "Int");
    b.last_output(media).cond = cond;
    let size_shape = b.shape(size, &[("unit", None)]);
    let shape = b.typed_shape(
        media,
        &[("upc", None), ("isbn", None), ("size", Some(size_shape))],
    );
    b.only_for(shape, "isbn", &["Book"]);
    let text =
        r#"query($b:Boolean!){media(like:\"x\"){__typename upc ...on Book{isbn}size{unit}}}"#;
    let first = b.root(0, text, &[("media", Some(shape))]);
    b.plan.fetches[first].variables = vec![VariableUse {
        variable: 1,
        gates: Vec::new(),
    }];
    let shape = b.shape(media, &[("stock", None)]);
    let unit = b.member(size, "unit", false, Vec::new());
    let mut target = b.target(media, &["upc"], shape);
    target.types = Some(b.types(&["Book", "Film"]));
    target.cond = cond;
    let size_member = b.member(media, "size", false, vec![unit]);
    target.representations[0].members.push(size_member);
    let mut isbn = b.member(media, "isbn", true, Vec::new());
    isbn.key_json = b"\"code\":".as_slice().into();
    isbn.types = Some(b.types(&["Book"]));
    target.representations.push(Representation {
        typename: Some("Media".into()),
        members: vec![isbn],
    });
    b.fetch(
        1,
        "query($representations:[_Any!]!){_entities(representations:$representations){...on Book{stock}...on Film{stock}}}",
        &[first],
        vec![lookup(vec![target])],
    );
    b.build()
}

#[test]
fn text_form() {
    assert_eq!(
        text(&rich()),
        r#"query: 2 fetches in 2 waves

wave 1
  fetch 0 catalog
    | query ($b: Boolean!) {
    |   media(like: "x") {
    |     __typename
    |     upc
    |     ... on Book {
    |       isbn
    |     }
    |     size {
    |       unit
    |     }
    |   }
    | }
    root fields
        -> media[].upc
        -> media[].isbn (Book)
        -> media[].size.unit

wave 2
  fetch 1 stock after 0
    | query ($representations: [_Any!]!) {
    |   _entities(representations: $representations) {
    |     ... on Book {
    |       stock
    |     }
    |     ... on Film {
    |       stock
    |     }
    |   }
    | }
    _entities($representations)
      of media[] (Book|Film) if $a and not $b or $b
        by { upc size? { unit? } }
        or by Media { code=isbn(Book) }
        -> media[].stock
"#
    );
}

#[test]
fn text_that_is_no_graphql_is_shown_as_it_is() {
    let mut plan = me(["User"; 4]);
    plan.fetches[FetchId(0)].segments[0].text = r#"{me {\n"#.into();
    assert!(text(&plan).contains("    | {me {\n"), "{}", text(&plan));
}

#[test]
fn objects_of_which_only_the_type_is_asked_are_shown() {
    let mut b = Builder::new(&["s"], &["Query", "Book", "Film"]);
    let media = b.object(Plan::ROOT, "media", "Media", &["Book", "Film"]);
    b.typename(media, "__typename");
    let shape = b.typed_shape(media, &[]);
    b.root(0, "{media{__typename}}", &[("media", Some(shape))]);
    let text = text(&b.build());
    assert!(
        text.ends_with("    root fields\n        -> media\n"),
        "{text}"
    );
}

#[test]
fn json_form() {
    assert_eq!(
        json(&rich()),
        r#"{
  "kind": "query",
  "waves": 2,
  "fetches": [
    {
      "id": 0,
      "wave": 1,
      "subgraph": "catalog",
      "dependencies": [],
      "query": "query ($b: Boolean!) {\n  media(like: \"x\") {\n    __typename\n    upc\n    ... on Book {\n      isbn\n    }\n    size {\n      unit\n    }\n  }\n}",
      "variables": [
        "b"
      ],
      "root": {
        "fills": [
          "media[].upc",
          "media[].isbn (Book)",
          "media[].size.unit"
        ]
      },
      "lookups": []
    },
    {
      "id": 1,
      "wave": 2,
      "subgraph": "stock",
      "dependencies": [
        0
      ],
      "query": "query ($representations: [_Any!]!) {\n  _entities(representations: $representations) {\n    ... on Book {\n      stock\n    }\n    ... on Film {\n      stock\n    }\n  }\n}",
      "variables": [],
      "lookups": [
        {
          "responseKey": "_entities",
          "variable": "representations",
          "targets": [
            {
              "path": "media[]",
              "types": "Book|Film",
              "if": "$a and not $b or $b",
              "representations": [
                {
                  "members": "{ upc size? { unit? } }"
                },
                {
                  "typename": "Media",
                  "members": "{ code=isbn(Book) }"
                }
              ],
              "fills": [
                "media[].stock"
              ]
            }
          ]
        }
      ]
    }
  ]
}"#
    );
}
