//! Generated operations against a naive reference that knows the shop by heart and expands everything: for each object
//! type that may stand somewhere, the fields are collected as execution would, and added up.

use std::collections::BTreeMap;

use ogive_testbase::Rng;

use super::{estimate, shop};

const OPERATIONS: u64 = 2_000;

#[derive(Clone, Debug)]
enum Selection {
    Field(Field),
    Fragment(&'static str, Option<Condition>, Vec<Selection>),
}

/// `@include` if true, else `@skip`; and the variable.
type Condition = (bool, usize);

#[derive(Clone, Debug)]
struct Field {
    key: String,
    name: &'static str,
    arg: Option<(&'static str, Arg)>,
    condition: Option<Condition>,
    below: Vec<Selection>,
}

#[derive(Clone, Debug)]
enum Arg {
    Number(u32),
    Variable(usize),
    List(usize),
    /// Whether it has a text, the size of the page, and the number of tags.
    Search(bool, Option<Box<Arg>>, usize),
}

#[derive(Default)]
struct Values {
    numbers: [Option<u32>; 3],
    booleans: [bool; 3],
}

/// Fields of a type: name, type of what it returns, and its argument.
fn fields(ty: &str) -> Vec<(&'static str, &'static str, Option<&'static str>)> {
    match ty {
        "Query" => vec![
            ("one", "Book", None),
            ("plain", "Book", None),
            ("items", "Item", Some("first")),
            ("items", "Item", Some("ids")),
            ("things", "Thing", Some("count")),
            ("search", "Results", Some("input")),
            ("grid", "Toy", None),
            ("exact", "Money", None),
        ],
        "Thing" | "Book" | "Toy" => {
            let mut all = vec![
                ("id", "ID", None),
                ("label", "String", Some("size")),
                ("parts", "Part", None),
                ("owner", "Owner", None),
            ];
            if ty == "Book" {
                all.push(("author", "Owner", None));
            }
            all
        }
        "Part" => vec![("id", "ID", None), ("thing", "Thing", None)],
        "Owner" => vec![("id", "ID", None), ("things", "Thing", Some("count"))],
        "Results" => vec![
            ("hits", "Thing", None),
            ("pages", "Pages", None),
            ("total", "Int", None),
        ],
        "Pages" => vec![("rows", "Part", None), ("others", "Part", None)],
        _ => Vec::new(),
    }
}

fn objects(ty: &str) -> &[&'static str] {
    match ty {
        "Query" => &["Query"],
        "Thing" => &["Book", "Toy"],
        "Item" => &["Book", "Toy", "Part"],
        "Book" => &["Book"],
        "Toy" => &["Toy"],
        "Part" => &["Part"],
        "Owner" => &["Owner"],
        "Results" => &["Results"],
        "Pages" => &["Pages"],
        _ => &[],
    }
}

fn generate(rng: &mut Rng, ty: &'static str, depth: usize) -> Vec<Selection> {
    let count = rng.between(1, 4);
    let mut out = Vec::new();
    for _ in 0..count {
        let condition = rng.chance(25).then(|| (rng.chance(50), rng.below(3)));
        if depth > 0 && (ty == "Item" || rng.chance(30)) {
            let types: &[&'static str] = match ty {
                "Item" | "Thing" => &["Book", "Toy", "Thing"],
                "Book" => &["Book", "Thing"],
                "Toy" => &["Toy", "Thing"],
                _ => &[],
            };
            if let Some(inner) = rng.try_pick(types) {
                let below = generate(rng, inner, depth - 1);
                out.push(Selection::Fragment(inner, condition, below));
                continue;
            }
        }
        let fields = fields(ty);
        let Some((name, of, arg)) = rng.try_pick(&fields).copied() else {
            continue;
        };
        let is_leaf = objects(of).is_empty();
        if depth == 0 && !is_leaf {
            continue;
        }
        let arg = arg
            .filter(|_| rng.chance(70))
            .map(|arg| (arg, argument(rng, arg)));
        // Equal keys ask for the same, so that all fields of one key can be merged.
        let key = format!("{name}_{}", arg.as_ref().map_or_else(String::new, word));
        out.push(Selection::Field(Field {
            key,
            name,
            arg,
            condition,
            below: if is_leaf {
                Vec::new()
            } else {
                generate(rng, of, depth - 1)
            },
        }));
    }
    out.push(Selection::Field(Field {
        key: "__typename".into(),
        name: "__typename",
        arg: None,
        condition: None,
        below: Vec::new(),
    }));
    out
}

fn argument(rng: &mut Rng, name: &str) -> Arg {
    let number = |rng: &mut Rng| match rng.below(2) {
        0 => Arg::Number(rng.below(6) as u32),
        _ => Arg::Variable(rng.below(3)),
    };
    match name {
        "ids" => Arg::List(rng.below(5)),
        "input" => {
            let page = rng.chance(60).then(|| Box::new(number(rng)));
            Arg::Search(rng.chance(50), page, rng.below(3))
        }
        _ => number(rng),
    }
}

fn word((name, arg): &(&'static str, Arg)) -> String {
    let text = format!("{name}{arg:?}");
    text.chars().filter(char::is_ascii_alphanumeric).collect()
}

fn print_arg(arg: &Arg) -> String {
    match arg {
        Arg::Number(n) => n.to_string(),
        Arg::Variable(v) => format!("$n{v}"),
        Arg::List(n) => format!("[{}]", "\"x\" ".repeat(*n)),
        Arg::Search(text, page, tags) => {
            let text = if *text { "text: \"x\" " } else { "" };
            let page = page.as_ref().map_or_else(String::new, |page| {
                format!("page: {{first: {}}} ", print_arg(page))
            });
            format!("{{{text}{page}tags: [{}]}}", "{name: \"x\"} ".repeat(*tags))
        }
    }
}

fn print(selections: &[Selection], out: &mut String) {
    let condition = |condition: &Option<Condition>| match condition {
        None => String::new(),
        Some((true, v)) => format!(" @include(if: $b{v})"),
        Some((false, v)) => format!(" @skip(if: $b{v})"),
    };
    out.push_str("{ ");
    for selection in selections {
        match selection {
            Selection::Field(field) => {
                let arg = field.arg.as_ref();
                let arg = arg.map(|(name, arg)| format!("({name}: {})", print_arg(arg)));
                let arg = arg.unwrap_or_default();
                let on = condition(&field.condition);
                out.push_str(&format!("{}: {}{arg}{on} ", field.key, field.name));
                if !field.below.is_empty() {
                    print(&field.below, out);
                }
            }
            Selection::Fragment(ty, on, below) => {
                out.push_str(&format!("... on {ty}{} ", condition(on)));
                print(below, out);
            }
        }
    }
    out.push_str("} ");
}

fn holds(condition: &Option<Condition>, values: &Values) -> bool {
    condition.is_none_or(|(wanted, v)| values.booleans[v] == wanted)
}

/// What execution would answer for one object: the fields by key, each with all of its selections.
fn collect(ty: &str, selections: &[Selection], values: &Values, out: &mut BTreeMap<String, Field>) {
    for selection in selections {
        match selection {
            Selection::Field(field) if holds(&field.condition, values) => {
                match out.get_mut(&field.key) {
                    Some(known) => known.below.extend(field.below.iter().cloned()),
                    None => {
                        out.insert(field.key.clone(), field.clone());
                    }
                }
            }
            Selection::Fragment(on, condition, below)
                if holds(condition, values) && objects(on).contains(&ty) =>
            {
                collect(ty, below, values, out);
            }
            _ => {}
        }
    }
}

fn number(arg: &Arg, values: &Values) -> Option<u64> {
    match arg {
        Arg::Number(n) => Some(u64::from(*n)),
        Arg::Variable(v) => values.numbers[*v].map(u64::from),
        Arg::List(n) => Some(*n as u64),
        Arg::Search(_, page, _) => number(page.as_ref()?, values),
    }
}

/// The cost of a place whose objects are of a type; `rows`: the size that somebody above says of `hits` and `rows`.
fn place(ty: &str, selections: &[Selection], values: &Values, rows: Option<u64>) -> u64 {
    let of_object = |ty: &&'static str| {
        let mut fields = BTreeMap::new();
        collect(ty, selections, values, &mut fields);
        let costs = fields.values().map(|field| cost(ty, field, values, rows));
        costs.sum::<u64>()
    };
    objects(ty).iter().map(of_object).max().unwrap_or(0)
}

fn cost(ty: &str, field: &Field, values: &Values, rows: Option<u64>) -> u64 {
    let given = field.arg.as_ref().and_then(|(_, arg)| number(arg, values));
    let of = fields(ty)
        .into_iter()
        .find(|(name, ..)| *name == field.name);
    let of = of.map_or("String", |(_, of, _)| of);
    let weight = match (ty, field.name) {
        ("Book", "author") => 5,
        ("Book", "label") => 2,
        _ => match of {
            "Book" | "Thing" | "Item" => 3,
            "Money" => 8,
            _ => u64::from(!objects(of).is_empty()),
        },
    };
    let size = match (ty, field.name) {
        ("Query", "plain") | ("Pages", "others") => 10,
        ("Query", "grid") => 100,
        ("Query", "items") => given.unwrap_or(7),
        ("Query", "things") => given.unwrap_or(3),
        ("Owner", "things") => given.unwrap_or(10),
        ("Book", "parts") => 5,
        ("Toy", "parts") => 2,
        ("Results", "hits") | ("Pages", "rows") => rows.unwrap_or(10),
        _ => 1,
    };
    let below = match field.name {
        "search" => Some(given.unwrap_or(4)),
        "pages" => rows,
        _ => None,
    };
    let args = match &field.arg {
        Some((_, Arg::Search(text, page, tags))) => {
            1 + 2 * u64::from(*text) + u64::from(page.is_some()) + *tags as u64
        }
        Some(("size", _)) if ty == "Toy" && given.is_some() => 4,
        _ => 0,
    };
    args + size * (weight + place(of, &field.below, values, below))
}

#[test]
fn programs_equal_a_full_expansion() {
    let graph = shop();
    let mut dynamic = 0;
    for seed in 0..OPERATIONS {
        let mut rng = Rng::new(seed);
        let selections = generate(&mut rng, "Query", 5);
        let mut text = String::from(
            "query ($n0: Int, $n1: Int, $n2: Int, $b0: Boolean!, $b1: Boolean!, $b2: Boolean!) ",
        );
        print(&selections, &mut text);
        // The same operation with other variables.
        for _ in 0..2 {
            let values = Values {
                numbers: [(); 3].map(|()| rng.chance(70).then(|| rng.below(9) as u32)),
                booleans: [(); 3].map(|()| rng.chance(50)),
            };
            let mut variables = Vec::new();
            for (i, n) in values.numbers.iter().enumerate() {
                variables.extend(n.map(|n| format!("\"n{i}\": {n}")));
            }
            for (i, b) in values.booleans.iter().enumerate() {
                variables.push(format!("\"b{i}\": {b}"));
            }
            let variables = format!("{{{}}}", variables.join(", "));
            let expected = place("Query", &selections, &values, None);
            let (got, _) = estimate(&graph, &text, &variables);
            assert_eq!(got.unsized_field, None, "seed {seed}");
            assert_eq!(got.cost, expected, "seed {seed}: {text}\n{variables}");
            dynamic += u64::from(got.cost > 0);
        }
    }
    assert!(dynamic > OPERATIONS, "too many operations cost nothing");
}
