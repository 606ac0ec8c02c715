//! What cannot be used is refused when it is loaded, with a word that says why.

use ogive_hooks::components::Component;
use ogive_hooks::{CallMode, Stage};

use super::guest::{FIRST, component, component_of, exchange, options};
use crate::pass;

/// Why a component in text format is refused.
fn refused(text: &str) -> String {
    let bytes = wat::parse_str(text).unwrap();
    Component::of(options(""), &bytes).unwrap_err().to_string()
}

#[test]
fn what_reaches_for_more_than_is_offered_is_refused() {
    for (import, named) in [
        (
            "wasi:http/outgoing-handler@0.2.0",
            "wasi:http/outgoing-handler",
        ),
        ("wasi:sockets/tcp@0.2.0", "wasi:sockets/tcp"),
        ("wasi:filesystem/preopens@0.2.0", "wasi:filesystem/preopens"),
        ("ogive:hooks/secrets@1.0.0", "ogive:hooks/secrets"),
        ("ogive:hooks/exchange@2.0.0", "ogive:hooks/exchange"),
    ] {
        let text = format!("(component (import \"{import}\" (instance (export \"f\" (func)))))");
        let error = refused(&text);
        assert!(
            error.contains("imports what is not offered") && error.contains(named),
            "{error}"
        );
    }
}

#[test]
fn what_is_no_component_or_has_no_hook_is_refused() {
    let error = refused("(module)");
    assert!(error.contains("no component"), "{error}");
    let error = refused("(component)");
    assert!(error.contains("would never be called"), "{error}");
    let error = Component::of(options(""), b"function () {}").unwrap_err();
    assert!(error.to_string().contains("no WebAssembly"), "{error}");
    let error = Component::of(options(""), b"\0asm\x0d\0\x01\0\xff").unwrap_err();
    assert!(
        error.to_string().contains("cannot be compiled")
            || error.to_string().contains("can be compiled"),
        "{error}"
    );
    let wrong = "(component (core module $m (func (export \"f\") (param i32)))
        (core instance $i (instantiate $m)) (func $f (param \"a\" u32) (canon lift (core func $i \"f\")))
        (instance $r (export \"handle\" (func $f))) (export \"ogive:hooks/receive@1.0.0\" (instance $r)))";
    let error = refused(wrong);
    assert!(error.contains("type"), "{error}");
    let mut missing = options("");
    missing.stages = vec![Stage::RouterResponse];
    let bytes = component(&[("receive", "(i32.const 0)")], "");
    let error = Component::of(missing, &bytes).unwrap_err().to_string();
    assert!(error.contains("ogive:hooks/respond@1.1.0"), "{error}");
    let mut unlent = options("body=respond");
    unlent.name = "guest".to_owned();
    assert!(Component::of(unlent, &bytes).is_err());
}

#[test]
fn what_never_ends_or_is_too_large_at_its_start_is_refused() {
    let bytes = component(
        &[("receive", "(i32.const 0)")],
        "(func $start (loop $again (br $again))) (start $start)",
    );
    let error = Component::of(options(""), &bytes).unwrap_err().to_string();
    assert!(error.contains("more than it may have"), "{error}");
    let bytes = component(&[("receive", "(i32.const 0)")], "");
    let mut small = options("");
    small.limits.memory = 65_536;
    let error = Component::of(small, &bytes).unwrap_err().to_string();
    assert!(error.contains("bytes of memory"), "{error}");
}

#[test]
fn another_file_than_the_one_that_is_named_is_refused() {
    let bytes = component(&[("receive", "(i32.const 0)")], "");
    let mut pinned = options("");
    pinned.sha256 = Some("00".repeat(32));
    let error = Component::of(pinned.clone(), &bytes)
        .unwrap_err()
        .to_string();
    let found = error.rsplit(' ').next().unwrap().to_owned();
    pinned.sha256 = Some(found.to_uppercase());
    assert!(Component::of(pinned, &bytes).is_ok());
}

#[test]
fn a_component_is_called_at_what_it_exports_unless_the_configuration_says_less() {
    let both = [("receive", "(i32.const 0)"), ("respond", "(unreachable)")];
    let bytes = component(&both, "");
    let plugin = Component::of(options(""), &bytes).unwrap();
    assert!(plugin.is_at(Stage::RouterRequest) && plugin.is_at(Stage::RouterResponse));
    let mut less = options("");
    less.stages = vec![Stage::RouterRequest];
    let plugin = Component::of(less, &bytes).unwrap();
    assert!(!plugin.is_at(Stage::RouterResponse));
    let (_, outcome) = pass(
        &plugin,
        exchange(Stage::RouterResponse, "", ""),
        CallMode::Whole,
    );
    assert_eq!(outcome, Ok(()));
    assert_ne!(plugin, Component::of(options(""), &bytes).unwrap());
    assert_eq!(
        Component::of(options(""), &bytes).unwrap(),
        Component::of(options(""), &bytes).unwrap()
    );
}

/// What was made for the first version of the package goes on running, whatever it imports and wherever it is called.
#[test]
fn a_component_of_the_first_version_runs() {
    let names = Stage::ALL.map(ogive_hooks::components::hook_name);
    let hooks = names.map(|name| {
        (
            name,
            "(call $set_header @\"x-tenant\" @\"gold\" ) (i32.const 0)",
        )
    });
    let plugin =
        Component::of(options("write=x-tenant"), &component_of(FIRST, &hooks, "")).unwrap();
    for stage in Stage::ALL {
        assert!(plugin.is_at(stage), "{stage:?}");
        let (after, outcome) = pass(&plugin, exchange(stage, "a=1", ""), CallMode::Whole);
        assert_eq!(outcome, Ok(()), "{stage:?}");
        assert_eq!(after.headers["x-tenant"], "gold", "{stage:?}");
    }
}

/// Written by hand as a whole, without a compiler's frame: what stands in the documentation.
#[test]
fn a_component_in_text_format_runs() {
    let text = include_str!("../../../examples/tenant.wat");
    let mut permitted = options("read=x-api-version write=x-tenant");
    permitted.name = "tenant".to_owned();
    let plugin = Component::of(permitted, &wat::parse_str(text).unwrap()).unwrap();
    for _ in 0..3 {
        let (after, outcome) = pass(
            &plugin,
            exchange(Stage::SubgraphRequest, "a=1", ""),
            CallMode::Whole,
        );
        assert_eq!(outcome, Ok(()));
        assert_eq!(after.headers["x-tenant"], "gold");
    }
}
