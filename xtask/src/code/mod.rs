//! The source of every crate, parsed once, for the rules that look at code rather than at text.
//!
//! Only what ships is read: tests, benches and examples are not, and what stands under `#[cfg(test)]` is left out.

pub(crate) mod cycles;
pub(crate) mod functions;
pub(crate) mod names;
pub(crate) mod reading;
pub(crate) mod stages;

use std::{fs, path::Path};

use anyhow::{Context, Result};
use syn::{Attribute, Item};

/// One crate, with its modules that have a file.
pub(crate) struct Crate {
    /// The name of its folder.
    pub(crate) name: String,
    pub(crate) files: Vec<SourceFile>,
}

/// One module that has a file.
pub(crate) struct SourceFile {
    /// Where it is, seen from the root of the repository.
    pub(crate) shown: String,
    /// Names of the modules it is in, its own last; empty for the root of a crate.
    pub(crate) path: Vec<String>,
    pub(crate) items: Vec<Item>,
}

/// Reads every crate below `crates/`.
pub(crate) fn read(root: &Path) -> Result<Vec<Crate>> {
    let mut crates = Vec::new();
    for folder in crate::tidy::sorted(&root.join("crates"))? {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let mut files = Vec::new();
        for start in ["lib.rs", "main.rs"] {
            let file = folder.join("src").join(start);
            if file.is_file() {
                read_module(root, &file, &folder.join("src"), Vec::new(), &mut files)?;
            }
        }
        crates.push(Crate {
            name: name.into_owned(),
            files,
        });
    }
    Ok(crates)
}

/// Reads one file and those of the modules it declares. `below`: where those are.
fn read_module(
    root: &Path,
    file: &Path,
    below: &Path,
    path: Vec<String>,
    into: &mut Vec<SourceFile>,
) -> Result<()> {
    let shown = file
        .strip_prefix(root)
        .unwrap_or(file)
        .display()
        .to_string();
    let text = fs::read_to_string(file).with_context(|| format!("reading {shown}"))?;
    let parsed = syn::parse_file(&text).with_context(|| format!("parsing {shown}"))?;
    let mut declared = Vec::new();
    for item in &parsed.items {
        if let Item::Mod(module) = item
            && module.content.is_none()
            && !is_test(&module.attrs)
        {
            declared.push(module.ident.to_string());
        }
    }
    into.push(SourceFile {
        shown,
        path: path.clone(),
        items: parsed.items,
    });
    for name in declared {
        let folder = below.join(&name);
        let files = [below.join(format!("{name}.rs")), folder.join("mod.rs")];
        let Some(file) = files.iter().find(|file| file.is_file()) else {
            continue;
        };
        let mut path = path.clone();
        path.push(name);
        read_module(root, file, &folder, path, into)?;
    }
    Ok(())
}

/// Whether something is there for tests only.
pub(crate) fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let path = attribute.path();
        let Ok(list) = attribute.meta.require_list() else {
            return path.is_ident("test");
        };
        path.is_ident("cfg")
            && list
                .tokens
                .to_string()
                .split(|c: char| !c.is_alphanumeric())
                .any(|word| word == "test")
    })
}

/// A crate from texts, for planted examples.
#[cfg(test)]
pub(crate) fn planted(files: &[(&str, &str)]) -> Crate {
    let files = files.iter().map(|(path, text)| SourceFile {
        shown: if path.is_empty() {
            "lib.rs".to_owned()
        } else {
            format!("{path}.rs")
        },
        path: path
            .split('/')
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect(),
        items: syn::parse_file(text).unwrap().items,
    });
    Crate {
        name: "planted".to_owned(),
        files: files.collect(),
    }
}

/// Attributes of an item.
pub(crate) fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}
