//! The list of what the binary is made of, as CycloneDX 1.6: crates, and the C and assembly inside them.

use serde_json::{Value, json};

use super::{
    crates::{Crate, ForeignPart, Id},
    product::{LICENCE, NAME, REPOSITORY, SUMMARY, VERSION},
};

/// The document for a binary with this SHA-256.
pub(crate) fn write(
    crates: &[Crate],
    parts: &[ForeignPart],
    target: &str,
    sha256: &str,
    time: &str,
) -> Value {
    let components: Vec<Value> = crates
        .iter()
        .filter(|krate| krate.name != "ogive-cli")
        .map(component)
        .chain(parts.iter().map(foreign))
        .collect();
    let dependencies: Vec<Value> = crates
        .iter()
        .map(|krate| {
            let mut depends: Vec<String> = krate.depends.iter().map(reference).collect();
            let inside = parts.iter().filter(|part| part.inside == krate.id());
            depends.extend(inside.map(foreign_reference));
            json!({ "ref": reference(&krate.id()), "dependsOn": depends })
        })
        .collect();
    json!({
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": serial_number(sha256),
        "version": 1,
        "metadata": {
            "timestamp": time,
            "tools": { "components": [{ "type": "application", "name": "cargo xtask release", "version": VERSION }] },
            "component": {
                "type": "application",
                "bom-ref": reference(&Id { name: "ogive-cli".to_owned(), version: VERSION.to_owned() }),
                "name": NAME,
                "version": VERSION,
                "description": SUMMARY,
                "hashes": [{ "alg": "SHA-256", "content": sha256 }],
                "licenses": [{ "expression": LICENCE }],
                "purl": format!("pkg:github/ogive/ogive@v{VERSION}"),
                "externalReferences": [{ "type": "vcs", "url": REPOSITORY }],
                "properties": [{ "name": "ogive:target", "value": target }]
            }
        },
        "components": components,
        "dependencies": dependencies
    })
}

fn component(krate: &Crate) -> Value {
    let purl = match &krate.checksum {
        Some(_) => format!(
            "pkg:cargo/{}@{}",
            krate.name,
            krate.version.replace('+', "%2B")
        ),
        None => format!("pkg:github/ogive/ogive@v{VERSION}#{}", krate.name),
    };
    let mut out = json!({
        "type": "library",
        "bom-ref": reference(&krate.id()),
        "name": krate.name,
        "version": krate.version,
        // What only builds the binary is not in it.
        "scope": if krate.is_shipped { "required" } else { "excluded" },
        "licenses": [{ "expression": spdx(&krate.licence) }],
        "purl": purl
    });
    if let Some(checksum) = &krate.checksum {
        out["hashes"] = json!([{ "alg": "SHA-256", "content": checksum }]);
    }
    out
}

fn foreign(part: &ForeignPart) -> Value {
    json!({
        "type": "library",
        "bom-ref": foreign_reference(part),
        "name": part.name,
        "version": part.version,
        "scope": "required",
        "licenses": [{ "expression": part.licence }],
        "purl": format!("{}@{}", part.purl, part.version),
        "description": format!("C or assembly inside the crate {} {}", part.inside.name, part.inside.version)
    })
}

fn reference(id: &Id) -> String {
    format!("cargo:{}@{}", id.name, id.version)
}

fn foreign_reference(part: &ForeignPart) -> String {
    format!("c:{}@{}", part.name, part.version)
}

/// An expression of SPDX; `/` is the older way to write `OR`.
fn spdx(licence: &str) -> String {
    match licence {
        "" => "NOASSERTION".to_owned(),
        _ => licence.replace(" / ", " OR ").replace('/', " OR "),
    }
}

/// A UUID of version 8 made of the binary's hash: equal binaries have equal documents.
fn serial_number(sha256: &str) -> String {
    let part = |from: usize, to: usize| sha256.get(from..to).unwrap_or_default();
    format!(
        "urn:uuid:{}-{}-8{}-a{}-{}",
        part(0, 8),
        part(8, 12),
        part(13, 16),
        part(17, 20),
        part(20, 32)
    )
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, path::PathBuf};

    use super::*;

    #[test]
    fn crates_and_their_c_parts_are_listed_and_linked() {
        let krate = Crate {
            name: "zstd-sys".to_owned(),
            version: "2.0.0+zstd.1.5.7".to_owned(),
            licence: "MIT/Apache-2.0".to_owned(),
            checksum: Some("00ff".to_owned()),
            folder: PathBuf::new(),
            is_shipped: true,
            depends: BTreeSet::new(),
        };
        let part = ForeignPart {
            inside: krate.id(),
            name: "zstd",
            version: "1.5.7".to_owned(),
            licence: "BSD-3-Clause",
            purl: "pkg:github/facebook/zstd",
        };
        let bom = write(
            &[krate],
            &[part],
            "x86_64-unknown-linux-gnu",
            &"ab".repeat(32),
            "2026-01-01T00:00:00Z",
        );
        let text = |pointer: &str| bom.pointer(pointer).and_then(Value::as_str).unwrap();
        assert_eq!(text("/specVersion"), "1.6");
        assert_eq!(
            text("/components/0/purl"),
            "pkg:cargo/zstd-sys@2.0.0%2Bzstd.1.5.7"
        );
        assert_eq!(
            text("/components/0/licenses/0/expression"),
            "MIT OR Apache-2.0"
        );
        assert_eq!(text("/components/1/purl"), "pkg:github/facebook/zstd@1.5.7");
        assert_eq!(
            text("/dependencies/0/dependsOn/0"),
            text("/components/1/bom-ref")
        );
        assert_eq!(
            text("/serialNumber"),
            "urn:uuid:abababab-abab-8bab-abab-abababababab"
        );
    }
}
