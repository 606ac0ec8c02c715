//! The table `tests/cases/requests.txt`, and that no value can leave its place in a URL or a header.
//!
//! Lines: `base`, `base-path`, `base-query` of a source; `url`, `path`, `query` of a connector; `header`; variables; then
//! `= ` the result, `! ` why it is refused, or `E line:column | message` of the template.

use std::fmt::Write as _;

use ogive_base::{SourceId, diagnostic::line_column};
use ogive_mapping::{
    Environment, Inputs, Located, Origin, ParseLimits, Program, RequestError, RunLimits, Shapes,
    UrlLayer, UrlTemplate, Variable, Version, build_url, compile, parse, parse_header_template,
    parse_url_template,
};
use ogive_testbase::Rng;

/// Fewer mean that some were not found.
const CASES: usize = 60;

#[test]
fn requests_are_built_as_the_table_says() {
    let mut found = 0;
    let mut wrong = String::new();
    for text in include_str!("../cases/requests.txt").split("\n== ").skip(1) {
        let (name, lines) = text.split_once('\n').unwrap();
        let case = Case::read(lines);
        let got = case.run();
        if got != case.expected {
            let _ = writeln!(wrong, "{name}\nexpected: {}\ngot: {got}", case.expected);
        }
        found += 1;
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(found >= CASES, "cases are gone: {found}");
}

#[derive(Default)]
struct Case<'t> {
    base: Option<&'t str>,
    base_path: Option<&'t str>,
    base_query: Option<&'t str>,
    url: Option<String>,
    path: Option<&'t str>,
    query: Option<&'t str>,
    header: Option<&'t str>,
    variables: Vec<(Variable, &'t str)>,
    expected: &'t str,
}

impl<'t> Case<'t> {
    fn read(lines: &'t str) -> Self {
        let mut case = Case::default();
        for line in lines.lines().filter(|line| !line.is_empty()) {
            let (word, rest) = line.split_once(' ').unwrap();
            match word {
                "base" => case.base = Some(rest),
                "base-path" => case.base_path = Some(rest),
                "base-query" => case.base_query = Some(rest),
                "url" => match &mut case.url {
                    Some(url) => {
                        url.push('\n');
                        url.push_str(rest);
                    }
                    None => case.url = Some(rest.to_owned()),
                },
                "path" => case.path = Some(rest),
                "query" => case.query = Some(rest),
                "header" => case.header = Some(rest),
                "=" | "!" | "E" => case.expected = line,
                _ => {
                    let name = word.strip_prefix('$').unwrap();
                    let variable = Variable::from_name(name).unwrap();
                    case.variables.push((variable, rest));
                }
            }
        }
        case
    }

    fn run(&self) -> String {
        let inputs = self
            .variables
            .iter()
            .fold(Inputs::new(), |inputs, (variable, json)| {
                inputs.variable(*variable, json.as_bytes())
            });
        let limits = RunLimits::default();
        let text = self.header.or(self.url.as_deref()).unwrap();
        let built = match self.header {
            Some(text) => header(text).map(|template| template.render(&inputs, &limits)),
            None => url(text).map(|template| {
                let base = self.base.map(|base| url(base).unwrap());
                let programs = [self.base_path, self.base_query, self.path, self.query];
                let programs = programs.map(|text| text.map(program));
                let [base_path, base_query, path, query] = &programs;
                let layers = [
                    UrlLayer {
                        template: base.as_ref(),
                        path: base_path.as_ref(),
                        parameters: base_query.as_ref(),
                    },
                    UrlLayer {
                        template: Some(&template),
                        path: path.as_ref(),
                        parameters: query.as_ref(),
                    },
                ];
                build_url(&layers, &inputs, &limits)
            }),
        };
        match built {
            Ok(Ok(text)) => format!("= {text}"),
            Ok(Err(error)) => format!("! {error}"),
            Err(diagnostic) => {
                let (line, column) = line_column(text, diagnostic.labels[0].span.start);
                format!("E {line}:{column} | {}", diagnostic.message)
            }
        }
    }
}

fn environment(place: &'static str) -> Environment {
    let mut environment = Environment::request(place, Shapes::new());
    environment.set(Variable::Args, Shapes::UNKNOWN);
    environment
}

fn located(text: &str) -> Located {
    Located {
        text: text.to_owned(),
        origin: Origin::whole(SourceId(0)),
    }
}

fn url(text: &str) -> Result<UrlTemplate, ogive_base::Diagnostic> {
    let read = parse_url_template(
        &located(text),
        Version::V0_4,
        &environment("the URL"),
        &ParseLimits::default(),
    );
    read.template.ok_or_else(|| read.diagnostics[0].clone())
}

fn header(text: &str) -> Result<ogive_mapping::HeaderTemplate, ogive_base::Diagnostic> {
    let read = parse_header_template(
        &located(text),
        Version::V0_4,
        &environment("a header"),
        &ParseLimits::default(),
    );
    read.template.ok_or_else(|| read.diagnostics[0].clone())
}

fn program(text: &str) -> Program {
    let origin = Origin::whole(SourceId(0));
    let parsed = parse(text, &origin, Version::V0_4, &ParseLimits::default());
    assert!(parsed.diagnostics.is_empty(), "{:?}", parsed.diagnostics);
    let compiled = compile(&parsed.mapping, &origin, &environment("the request"));
    compiled.program.unwrap()
}

/// Parts of values that try to leave their place.
const HOSTILE: [&str; 24] = [
    "/", "..", ".", "//", "\\", "?", "#", "&", "=", "@", ":", "%", "%2e", "%2F", ";", " ", "\r\n",
    "\0", "evil.com", "é", "{", "}", "a", "\u{202e}",
];

fn hostile(rng: &mut Rng) -> String {
    (0..rng.below(6)).map(|_| *rng.pick(&HOSTILE)).collect()
}

/// A parameter of a query, which may have no value.
type Parameter = (String, Option<String>);

/// The parts of a URL as a receiver takes it apart: host, segments, parameters.
fn taken_apart(url: &str) -> (String, Vec<String>, Vec<Parameter>) {
    let rest = url.strip_prefix("https://").unwrap();
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (host, rest) = rest.split_at(end);
    assert!(!rest.contains('#'), "{url}");
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let segments = path.split('/').skip(1).map(str::to_owned).collect();
    let parameters = query
        .split('&')
        .filter(|parameter| !parameter.is_empty())
        .map(|parameter| match parameter.split_once('=') {
            Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
            None => (parameter.to_owned(), None),
        })
        .collect();
    (host.to_owned(), segments, parameters)
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        if *first == b'%' {
            let digits = std::str::from_utf8(&rest[..2]).unwrap();
            bytes.push(u8::from_str_radix(digits, 16).unwrap());
            rest = &rest[2..];
        } else {
            assert!(
                first.is_ascii_alphanumeric() || b"-._~".contains(first),
                "{text}"
            );
            bytes.push(*first);
        }
    }
    String::from_utf8(bytes).unwrap()
}

#[test]
fn no_value_leaves_its_place_in_a_url() {
    let base = url("https://example.com/v1").unwrap();
    let template = url("/x/{$args.a}/pre-{$args.b}/y?n={$args.c}&{$args.d}=1").unwrap();
    let (path, query) = (program("$args.path"), program("$args.query"));
    let layers = [
        UrlLayer {
            template: Some(&base),
            ..UrlLayer::default()
        },
        UrlLayer {
            template: Some(&template),
            path: Some(&path),
            parameters: Some(&query),
        },
    ];
    let (mut built, mut refused) = (0, 0);
    for seed in 0..5_000 {
        let mut rng = Rng::new(seed);
        let values: Vec<String> = (0..8).map(|_| hostile(&mut rng)).collect();
        let [a, b, c, d, e, f, name, value] = values.as_slice() else {
            unreachable!("there are eight")
        };
        let args = serde_json::json!({
            "a": a, "b": b, "c": c, "d": d, "path": [e, f], "query": { name: [value, value] },
        });
        let args = args.to_string();
        let inputs = Inputs::new().variable(Variable::Args, args.as_bytes());
        let url = match build_url(&layers, &inputs, &RunLimits::default()) {
            Ok(url) => url,
            Err(error) => {
                let dots = [a, e, f]
                    .iter()
                    .any(|text| matches!(text.as_str(), "." | ".."));
                assert!(dots, "{error}: {args}");
                assert_eq!(error, RequestError::DotSegment);
                refused += 1;
                continue;
            }
        };
        let (host, segments, parameters) = taken_apart(&url);
        assert_eq!(host, "example.com", "{url}");
        let segments: Vec<String> = segments.iter().map(|text| decoded(text)).collect();
        let second = format!("pre-{b}");
        assert_eq!(segments, ["v1", "x", a, &second, "y", e, f], "{url}");
        let parameters: Vec<(String, String)> = parameters
            .iter()
            .map(|(name, value)| (decoded(name), decoded(value.as_deref().unwrap())))
            .collect();
        let expected = [
            ("n", c.as_str()),
            (d.as_str(), "1"),
            (name.as_str(), value.as_str()),
            (name.as_str(), value.as_str()),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(parameters, expected, "{url}");
        built += 1;
    }
    assert!(built > 2_500 && refused > 25, "{built} and {refused}");
}

#[test]
fn no_value_begins_another_line_of_a_header() {
    let template = header("a {$args.a} b").unwrap();
    let (mut built, mut refused) = (0, 0);
    for seed in 0..5_000 {
        let mut rng = Rng::new(seed);
        let value = hostile(&mut rng);
        let args = serde_json::json!({ "a": value }).to_string();
        let inputs = Inputs::new().variable(Variable::Args, args.as_bytes());
        match template.render(&inputs, &RunLimits::default()) {
            Ok(header) => {
                assert!(!header.contains(['\r', '\n', '\0']), "{header:?}");
                assert_eq!(header, format!("a {value} b"));
                built += 1;
            }
            Err(error) => {
                assert_eq!(error, RequestError::ControlCharacter);
                assert!(value.contains(['\r', '\0']), "{value:?}");
                refused += 1;
            }
        }
    }
    assert!(built > 1_000 && refused > 500, "{built} and {refused}");
}

#[test]
fn a_url_and_a_header_have_a_length() {
    let limits = RunLimits {
        url_bytes_max: 100,
        header_bytes_max: 100,
        ..RunLimits::default()
    };
    let args = serde_json::json!({ "a": "x".repeat(200) }).to_string();
    let inputs = Inputs::new().variable(Variable::Args, args.as_bytes());
    let template = url("https://example.com/{$args.a}").unwrap();
    let layers = [UrlLayer {
        template: Some(&template),
        ..UrlLayer::default()
    }];
    assert_eq!(
        build_url(&layers, &inputs, &limits),
        Err(RequestError::TooLong)
    );
    let template = header("{$args.a}").unwrap();
    assert_eq!(
        template.render(&inputs, &limits),
        Err(RequestError::TooLong)
    );
}

#[test]
fn what_follows_a_value_that_is_too_long_is_not_evaluated() {
    let limits = RunLimits {
        url_bytes_max: 100,
        header_bytes_max: 100,
        ..RunLimits::default()
    };
    let args = serde_json::json!({ "a": "x".repeat(200), "list": [] }).to_string();
    let inputs = Inputs::new().variable(Variable::Args, args.as_bytes());
    let path = url("https://example.com/{$args.a}{$args.list}").unwrap();
    let query = url("https://example.com?a={$args.a}&b={$args.list}").unwrap();
    for template in [path, query] {
        let layers = [UrlLayer {
            template: Some(&template),
            ..UrlLayer::default()
        }];
        let built = build_url(&layers, &inputs, &limits);
        assert_eq!(built, Err(RequestError::TooLong));
    }
    let template = header("{$args.a}{$args.list}").unwrap();
    let rendered = template.render(&inputs, &limits);
    assert_eq!(rendered, Err(RequestError::TooLong));
}
