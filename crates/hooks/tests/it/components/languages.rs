//! The component in Python of `examples/plugins`, built as its page says: it imports what is offered, and nothing of WASI. It is
//! not run here, because an engine that is not optimised takes minutes to compile an interpreter.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use ogive_testbase::{left_out, needs::ORACLE_IS_OFF, oracle};
use wit_component::{DecodedWasm, decode};

fn example(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/plugins");
    path.join(name)
}

/// Runs a command that writes a component, and says what that imports and exports.
fn built(name: &str, command: &mut Command) -> (Vec<String>, Vec<String>) {
    let file = format!("ogive-component-{}-{name}.wasm", std::process::id());
    let file = std::env::temp_dir().join(file);
    let out = command.arg(&file).output().unwrap();
    let told = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{command:?}: {told}");
    let bytes = std::fs::read(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    let DecodedWasm::Component(resolve, world) = decode(&bytes).unwrap() else {
        panic!("{name} is no component");
    };
    let world = &resolve.worlds[world];
    let names = |items: Vec<_>| -> Vec<String> {
        let names = items.into_iter().map(|key| resolve.name_world_key(key));
        names.collect()
    };
    (
        names(world.imports.keys().collect()),
        names(world.exports.keys().collect()),
    )
}

/// Checks that nothing else is imported than what is offered, and that the hooks are exported.
fn assert_offered((imports, exports): (Vec<String>, Vec<String>)) {
    let is_offered = |name: &String| {
        let offered = ["exchange", "context", "parts", "settings", "logging"];
        let mut offered = offered.iter();
        offered.any(|interface| *name == format!("ogive:hooks/{interface}@1.1.0"))
    };
    assert!(imports.iter().all(is_offered), "{imports:?}");
    let hooks = ["receive", "subgraph-request"].map(|hook| format!("ogive:hooks/{hook}@1.1.0"));
    // Python has one of its own beside them.
    assert!(
        hooks.iter().all(|hook| exports.contains(hook)),
        "{exports:?}"
    );
}

#[test]
fn the_example_in_python_imports_nothing_of_wasi() {
    if oracle("../examples/plugins").is_none() {
        return left_out(ORACLE_IS_OFF);
    }
    let python = example("python/venv/bin/python");
    if !python.is_file() {
        return left_out("the Python packages of examples/plugins/python are not installed");
    }
    let build = example("python/build.py");
    assert_offered(built("python", Command::new(python).arg(build)));
}
