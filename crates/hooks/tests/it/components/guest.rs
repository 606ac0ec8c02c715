//! Components out of a few lines of text: imports, memory and allocation come from `prelude.wat`, the frame of a component from
//! the package in `wit`, as with any compiler. A guest says what its hook does, and leaves a result: 0, or what `$failed`
//! gives. `@"text"` stands for the address and the length of a text.

use std::{fmt::Write, sync::Arc, time::Duration};

use http::Method;
use ogive_hooks::components::{
    Component, ComponentError, ComponentOptions, Permissions, hook_of, options, outgoing::Host,
};
use ogive_hooks::{Body, Exchange, RequestHead, Stage};
use serde_json::value::RawValue;
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

use crate::headers;

const PRELUDE: &str = include_str!("prelude.wat");
const HOOKS: &str = include_str!("../../../wit/hooks.wit");

/// What imports the interface for requests to other hosts.
const SEND: &str = "(import \"ogive:hooks/http@1.1.0\" \"send\" \
    (func $send (param i32 i32 i32 i32 i32 i32 i32 i32 i32)))";

/// The version of the package, and one that components of earlier days were made for.
const NOW: (&str, &str) = ("1.1.0", HOOKS);
pub(crate) const FIRST: (&str, &str) = ("1.0.0", include_str!("hooks-1.0.0.wit"));

/// A component whose hooks of these names do this, with these functions beside.
pub(crate) fn component(hooks: &[(&str, &str)], more: &str) -> Vec<u8> {
    made(NOW, "", hooks, more)
}

/// The same of one that sends requests.
pub(crate) fn asking(hooks: &[(&str, &str)], more: &str) -> Vec<u8> {
    made(NOW, SEND, hooks, more)
}

/// The same of a version of the package.
pub(crate) fn component_of(package: (&str, &str), hooks: &[(&str, &str)], more: &str) -> Vec<u8> {
    made(package, "", hooks, more)
}

fn made(
    (version, package): (&str, &str),
    imports: &str,
    hooks: &[(&str, &str)],
    more: &str,
) -> Vec<u8> {
    // What an earlier version does not have cannot be imported from it.
    let is_known =
        |line: &&str| !line.contains("hooks/parts@") || package.contains("interface parts ");
    let prelude: Vec<&str> = PRELUDE.lines().filter(is_known).collect();
    let prelude = prelude.join("\n").replace("@1.1.0", &format!("@{version}"));
    let mut module = format!("(module\n{imports}\n{prelude}\n{more}\n");
    let mut world =
        format!("package test:guest;\nworld guest {{\n  include ogive:hooks/imports@{version};\n");
    if !imports.is_empty() {
        world.push_str("  import ogive:hooks/http@1.1.0;\n");
    }
    for (name, text) in hooks {
        // What it is asked is allocated before it is called.
        let (params, given, free) = match *name {
            "decide-policies" => (ASKED, GIVEN, ""),
            _ => ("", "", "(global.set $free (i32.const 65536))"),
        };
        let _ = writeln!(
            module,
            "(func $do-{name} {params} (result i32)\n{text}\n)\n\
             (func (export \"ogive:hooks/{name}@{version}#handle\") {params} (result i32)\n\
             {free} (call $do-{name} {given}) (global.set $free (i32.const 65536)))"
        );
        let _ = writeln!(world, "  export ogive:hooks/{name}@{version};");
    }
    module.push(')');
    world.push('}');
    framed(&with_texts(&module), package, &world)
}

/// What the hook is asked that decides policies.
const ASKED: &str = "(param $policies i32) (param $count i32) (param $kind i32) (param $kind_length i32) \
                     (param $scopes i32) (param $scope_count i32) (param $claimed i32) (param $claimed_length i32)";
const GIVEN: &str = "(local.get $policies) (local.get $count) (local.get $kind) (local.get $kind_length) \
                     (local.get $scopes) (local.get $scope_count) (local.get $claimed) (local.get $claimed_length)";

/// A core module as a component of a world.
fn framed(module: &str, package: &str, world: &str) -> Vec<u8> {
    let mut module = wat::parse_str(module).unwrap_or_else(|error| panic!("{error}\n{module}"));
    let mut resolve = Resolve::default();
    resolve.push_str("hooks.wit", package).unwrap();
    let package = resolve.push_str("guest.wit", world).unwrap();
    let world = resolve.select_world(&[package], None).unwrap();
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
    let mut encoder = ComponentEncoder::default().module(&module).unwrap();
    encoder.encode().unwrap()
}

/// Puts the texts of a module where nothing else is.
fn with_texts(module: &str) -> String {
    let (mut out, mut data, mut at) = (String::new(), String::new(), 1024);
    let mut parts = module.split("@\"");
    out.push_str(parts.next().unwrap());
    for part in parts {
        let (text, rest) = part.split_once('"').unwrap();
        let text = text.replace('\'', "\"");
        let _ = write!(out, "(i32.const {at}) (i32.const {}) {rest}", text.len());
        let _ = writeln!(
            data,
            "(data (i32.const {at}) \"{}\")",
            text.replace('"', "\\\"")
        );
        at += text.len();
    }
    let end = out.rfind(')').unwrap();
    out.insert_str(end, &data);
    out
}

/// Everything that a guest of a test may be permitted. A call may have to wait for its turn for a minute; tests that are about
/// time say less.
pub(crate) fn options(permitted: &str) -> ComponentOptions {
    let mut options = ComponentOptions::new("guest", "guest.wasm");
    options.limits.time = Duration::from_secs(60);
    let Permissions {
        read_headers,
        write_headers,
        read_context,
        write_context,
        environment,
        hosts,
    } = &mut options.permissions;
    for word in permitted.split_ascii_whitespace() {
        let (what, name) = word.split_once('=').unwrap();
        let header = || options::Name::read(name).unwrap();
        match what {
            "read" => drop(read_headers.insert(header())),
            "write" => drop(write_headers.insert(header())),
            "get" => drop(read_context.insert(name.to_owned())),
            "set" => drop(write_context.insert(name.to_owned())),
            "environment" => drop(environment.insert(name.to_owned())),
            "host" => drop(hosts.insert(Host {
                https: false,
                name: name.into(),
                port: 80,
            })),
            "body" => options.bodies.push(hook_of(name).unwrap()),
            "configuration" => options.configuration = name.to_owned(),
            _ => panic!("{word}"),
        }
    }
    options
}

/// A component with one hook.
pub(crate) fn plugin(hook: &str, text: &str, permitted: &str) -> Result<Component, ComponentError> {
    Component::of(options(permitted), &component(&[(hook, text)], ""))
}

/// An exchange with something in it.
pub(crate) fn exchange(at: Stage, sent: &str, body: &str) -> Exchange {
    let mut exchange = Exchange::new(at);
    exchange.headers = headers(sent).into();
    exchange.client = Arc::new(RequestHead {
        method: Method::POST,
        ..RequestHead::default()
    });
    exchange.uri = Some("http://products.local:4001/graphql?a=1".into());
    exchange.subgraph = Some("products".into());
    exchange.id = "id-1".into();
    exchange.body = (!body.is_empty()).then(|| Body::Json(body.to_owned().into()));
    let claims = RawValue::from_string("{\"sub\":\"u1\"}".into()).unwrap();
    exchange.context.set("claims", claims).unwrap();
    exchange
}
