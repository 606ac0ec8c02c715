//! Any bytes as a version, a mapping, and a body behind it: parsing ends and points into the text, a program that compiles
//! ends within its limits, and what it gives is JSON. The mapping as a template of a URL keeps its host.

#![no_main]

use libfuzzer_sys::fuzz_target;
use ogive_base::SourceId;
use ogive_mapping::{
    Environment, Inputs, Located, Origin, ParseLimits, RunLimits, Shapes, UrlLayer, Variable, Version,
    build_url, compile, parse, parse_url_template,
};

/// What stands between a mapping and a body.
const BOUNDARY: u8 = 0;

fuzz_target!(|bytes: &[u8]| {
    let Some((version, rest)) = bytes.split_first() else {
        return;
    };
    let version = Version::ALL[usize::from(version % 4)];
    let end = rest.iter().position(|byte| *byte == BOUNDARY);
    let (mapping, body) = match end {
        Some(end) => (&rest[..end], &rest[end + 1..]),
        None => (rest, &b"{}"[..]),
    };
    let Ok(mapping) = std::str::from_utf8(mapping) else {
        return;
    };
    runs(mapping, body, version);
    keeps_host(mapping, body, version);
});

fn limits() -> RunLimits {
    RunLimits {
        steps_max: 100_000,
        ..RunLimits::default()
    }
}

fn runs(mapping: &str, body: &[u8], version: Version) {
    let origin = Origin::whole(SourceId(0));
    let parsed = parse(mapping, &origin, version, &ParseLimits::default());
    for diagnostic in &parsed.diagnostics {
        let span = diagnostic.labels[0].span;
        assert!(mapping.get(span.range()).is_some(), "{diagnostic:?}");
    }
    let mut environment = Environment::response("the selection", Shapes::new());
    environment.set(Variable::Args, Shapes::UNKNOWN);
    let compiled = compile(&parsed.mapping, &origin, &environment);
    let Some(program) = compiled.program else {
        return;
    };
    let inputs = Inputs::new().body(body).variable(Variable::Args, body);
    let Ok(outcome) = program.run(&inputs, &limits()) else {
        return;
    };
    if let Some(json) = &outcome.json {
        ogive_json::scan::validate(json).expect("the output is JSON");
    }
    for problem in &outcome.problems {
        assert!(mapping.get(problem.span.range()).is_some(), "{problem:?}");
    }
}

fn keeps_host(template: &str, body: &[u8], version: Version) {
    let mut environment = Environment::request("the URL", Shapes::new());
    environment.set(Variable::Args, Shapes::UNKNOWN);
    let read = |text: &str| {
        let text = Located {
            text: text.to_owned(),
            origin: Origin::whole(SourceId(0)),
        };
        parse_url_template(&text, version, &environment, &ParseLimits::default()).template
    };
    let (Some(base), Some(template)) = (read("https://example.com/v1"), read(template)) else {
        return;
    };
    if template.is_absolute() {
        return;
    }
    let layer = |template| UrlLayer {
        template: Some(template),
        ..UrlLayer::default()
    };
    let inputs = Inputs::new().variable(Variable::Args, body);
    if let Ok(url) = build_url(&[layer(&base), layer(&template)], &inputs, &limits()) {
        assert!(url.starts_with("https://example.com/v1"), "{url}");
        let printable = url.bytes().all(|byte| byte.is_ascii_graphic());
        assert!(printable, "{url:?}");
    }
}
