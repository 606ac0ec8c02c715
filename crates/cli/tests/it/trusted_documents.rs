//! The walk-through of `docs/trusted-documents.md`, block by block, as it is written there.

use std::{fs, path::Path, process::Command};

use ogive_testbase::left_out;

use crate::process::{Running, address, folder, subgraph_urls};

/// Blocks of code: what is behind the three ticks, and the text.
fn blocks(page: &str) -> Vec<(&str, &str)> {
    let mut blocks = Vec::new();
    let mut rest = page;
    while let Some((_, after)) = rest.split_once("\n```") {
        let (kind, after) = after.split_once('\n').unwrap();
        let (text, after) = after.split_once("\n```").unwrap();
        blocks.push((kind, text));
        rest = after;
    }
    blocks
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

#[test]
fn the_walk_through_of_trusted_documents_works() {
    if Command::new("curl").arg("--version").output().is_err() {
        return left_out("curl is not installed");
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(root.join("docs/trusted-documents.md")).unwrap();
    let start = page.find("## A walk through a release").unwrap();
    let end = page.find("## Finding operations").unwrap();
    let here = folder().join("trusted-documents");
    let _ = fs::remove_dir_all(&here);
    for name in ["demo", "shop-app"] {
        copy(
            &root.join("examples").join(name),
            &here.join("examples").join(name),
        );
    }
    let binary = Path::new(env!("CARGO_BIN_EXE_ogive"));
    let path = format!(
        "{}:{}",
        binary.parent().unwrap().display(),
        std::env::var("PATH").unwrap()
    );
    let shell = |text: &str, url: &str| {
        let text = text.replace("127.0.0.1:4000", url);
        let mut command = Command::new("sh");
        command
            .args(["-euc", &text])
            .current_dir(&here)
            .env("PATH", &path);
        command
    };
    let (mut mocks, mut urls) = (Vec::new(), String::new());
    let (mut gateway, mut url) = (None, String::new());
    let (mut run, mut reloads) = (0, 0);
    for (kind, text) in blocks(&page[start..end]) {
        match kind {
            "yaml" => {
                let text = format!("{text}\nlisten: 127.0.0.1:0\n{urls}")
                    .replace("{ enabled: true }", "{ enabled: true, interval: 20ms }");
                fs::write(here.join("ogive.yaml"), text).unwrap();
            }
            "sh mock" => {
                let text = format!("exec {text} --listen 127.0.0.1:0");
                let mut mock = Running::of(shell(&text, &url));
                urls = subgraph_urls(&mut mock);
                mocks.push(mock);
            }
            "sh serve" => {
                let mut running = Running::of(shell(&format!("exec {text}"), &url));
                url = address(&running.logged("serving http"));
                gateway = Some(running);
            }
            kind => {
                let output = shell(text, &url).output().unwrap();
                let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                let all = said(&output.stdout) + &said(&output.stderr);
                assert!(output.status.success(), "{text}\n{all}");
                run += 1;
                if kind == "sh reload" {
                    gateway.as_mut().unwrap().logged("reloaded");
                    reloads += 1;
                }
            }
        }
    }
    assert_eq!((mocks.len(), run, reloads), (1, 9, 2));
}
