//! A container image as an OCI image layout (image spec 1.1), written without a builder.
//!
//! It holds the binary, the shared libraries that the binary names, the authorities of TLS, and no shell. Libraries and
//! authorities are those of a root folder, by default of this machine. `docker load` reads the file, too.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::{
    content::{Content, Stream, sha256},
    elf::{self, Linkage},
    entries::{Entry, Stamp, tar, with_folders},
    payload::Payload,
    product::{LICENCE, NAME, REPOSITORY, SUMMARY, Target, VERSION},
};

/// User and group of the process: those that images without a root user have by custom.
const USER: u32 = 65_532;

/// Authorities of TLS, as Debian has them.
const AUTHORITIES: &str = "etc/ssl/certs/ca-certificates.crt";

/// Files that the name look-up of glibc loads by itself. Since 2.34 the C library contains them.
const NAME_LOOKUP: [&str; 3] = ["libnss_files.so.2", "libnss_dns.so.2", "libresolv.so.2"];

/// The image, and the files of the root folder that are in it.
pub(crate) struct Image {
    pub(crate) bytes: Vec<u8>,
    /// The sum of the compressed layers: what a pull moves.
    pub(crate) pulled: usize,
    /// Path and SHA-256.
    pub(crate) materials: Vec<(String, String)>,
}

/// Entries, and the files of the root folder among them: path and SHA-256.
type FromSystem = (Vec<Entry>, Vec<(String, String)>);

/// A layer: the digest of its plain bytes, and the compressed bytes.
struct Layer {
    plain: String,
    blob: Vec<u8>,
}

/// Writes the image for a binary with this linkage.
pub(crate) fn write(
    payload: &Payload,
    target: &Target,
    linkage: &Linkage,
    root: &Path,
    commit: &str,
    stamp: Stamp,
) -> Result<Image> {
    let (system, materials) = system(linkage, root)?;
    let layers = [layer(&system, stamp)?, layer(&own(payload), stamp)?];
    let config = config(target, &layers, commit, stamp);
    let (bytes, pulled) = layout(target, &layers, &config, stamp)?;
    Ok(Image {
        bytes,
        pulled,
        materials,
    })
}

/// What the image has of the system.
fn system(linkage: &Linkage, root: &Path) -> Result<FromSystem> {
    let mut entries = vec![
        Entry::text(
            "etc/passwd",
            format!("{NAME}:x:{USER}:{USER}::/:/nonexistent\n"),
        ),
        Entry::text("etc/group", format!("{NAME}:x:{USER}:\n")),
        Entry::text("etc/nsswitch.conf", "hosts: files dns\n"),
        Entry::folder("tmp", 0o1777),
    ];
    let mut paths: BTreeSet<String> = BTreeSet::from([AUTHORITIES.to_owned()]);
    if let Some(interpreter) = &linkage.interpreter {
        paths.insert(interpreter.trim_start_matches('/').to_owned());
    }
    let mut open = linkage.libraries.clone();
    let mut seen = BTreeSet::new();
    while let Some(name) = open.pop() {
        if name.starts_with("ld-") || !seen.insert(name.clone()) {
            continue;
        }
        let path = find(root, &name)
            .with_context(|| format!("{name} is nowhere below {}", root.display()))?;
        open.extend(elf::read(&fs::read(root.join(&path))?)?.libraries);
        paths.insert(path);
    }
    if !linkage.libraries.is_empty() {
        paths.extend(NAME_LOOKUP.iter().filter_map(|name| find(root, name)));
        let licences = ["libc6", "libgcc-s1", "ca-certificates"]
            .map(|name| format!("usr/share/doc/{name}/copyright"));
        paths.extend(
            licences
                .into_iter()
                .filter(|path| root.join(path).is_file()),
        );
    }
    let mut materials = Vec::new();
    for path in paths {
        let bytes =
            fs::read(root.join(&path)).with_context(|| root.join(&path).display().to_string())?;
        materials.push((format!("/{path}"), sha256(&bytes)));
        entries.push(if path.contains(".so") {
            Entry::program(path, &Content::new(bytes))
        } else {
            Entry::file(path, &Content::new(bytes))
        });
    }
    Ok((entries, materials))
}

/// Where the loader finds a library, relative to the root.
fn find(root: &Path, name: &str) -> Option<String> {
    let folders = [
        "lib/x86_64-linux-gnu",
        "lib/aarch64-linux-gnu",
        "usr/lib/x86_64-linux-gnu",
        "usr/lib/aarch64-linux-gnu",
        "lib64",
        "usr/lib64",
        "lib",
        "usr/lib",
    ];
    let paths = folders.iter().map(|folder| format!("{folder}/{name}"));
    paths.into_iter().find(|path| root.join(path).is_file())
}

/// What the image has of Ogive.
fn own(payload: &Payload) -> Vec<Entry> {
    let mut out = vec![
        Entry::program(format!("usr/local/bin/{NAME}"), &payload.binary),
        // `ogive.yaml` is picked up here, and paths in it are relative to it.
        Entry::folder(format!("etc/{NAME}"), 0o755),
    ];
    let licences = payload.licences.iter();
    out.extend(
        licences.map(|(name, text)| Entry::file(format!("usr/share/doc/{NAME}/{name}"), text)),
    );
    out
}

fn layer(entries: &[Entry], stamp: Stamp) -> Result<Layer> {
    let stream: Stream = tar(&with_folders(entries), "", stamp)?;
    Ok(Layer {
        plain: stream.sha256(),
        blob: stream.gzip(),
    })
}

/// The image's configuration: how it is run.
fn config(target: &Target, layers: &[Layer], commit: &str, stamp: Stamp) -> Value {
    let plain: Vec<String> = layers
        .iter()
        .map(|layer| format!("sha256:{}", layer.plain))
        .collect();
    let time = super::time(stamp.time);
    let program = format!("/usr/local/bin/{NAME}");
    json!({
        "created": time,
        "architecture": target.oci,
        "os": "linux",
        "config": {
            "User": format!("{USER}:{USER}"),
            "ExposedPorts": { "4000/tcp": {} },
            "Env": ["PATH=/usr/local/bin", "OGIVE_LISTEN=0.0.0.0:4000"],
            "Entrypoint": [program],
            "Cmd": ["demo"],
            "WorkingDir": format!("/etc/{NAME}"),
            "StopSignal": "SIGTERM",
            "Labels": {
                "org.opencontainers.image.title": NAME,
                "org.opencontainers.image.description": SUMMARY,
                "org.opencontainers.image.version": VERSION,
                "org.opencontainers.image.revision": commit,
                "org.opencontainers.image.created": time,
                "org.opencontainers.image.source": REPOSITORY,
                "org.opencontainers.image.licenses": LICENCE
            },
            // Not of the image spec: Docker and Podman ask by it. Nanoseconds.
            "Healthcheck": { "Test": ["CMD", program, "health"], "Interval": 10_000_000_000_u64, "Timeout": 2_000_000_000_u64 }
        },
        "rootfs": { "type": "layers", "diff_ids": plain }
    })
}

/// The layout as one tar archive, and the bytes of its compressed layers.
fn layout(
    target: &Target,
    layers: &[Layer],
    config: &Value,
    stamp: Stamp,
) -> Result<(Vec<u8>, usize)> {
    let mut entries = Vec::new();
    let mut blob = |bytes: Vec<u8>, kind: &str| {
        let (digest, size) = (sha256(&bytes), bytes.len());
        entries.push(Entry::file(
            format!("blobs/sha256/{digest}"),
            &Content::new(bytes),
        ));
        json!({ "mediaType": format!("application/vnd.oci.image.{kind}"), "digest": format!("sha256:{digest}"), "size": size })
    };
    let path = |descriptor: &Value| {
        let digest = descriptor["digest"].as_str().unwrap_or_default();
        format!("blobs/{}", digest.replace(':', "/"))
    };
    let config = blob(config.to_string().into_bytes(), "config.v1+json");
    let pulled = layers.iter().map(|layer| layer.blob.len()).sum();
    let layers: Vec<Value> = layers
        .iter()
        .map(|layer| blob(layer.blob.clone(), "layer.v1.tar+gzip"))
        .collect();
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": config,
        "layers": layers
    });
    let mut manifest = blob(manifest.to_string().into_bytes(), "manifest.v1+json");
    manifest["platform"] = json!({ "architecture": target.oci, "os": "linux" });
    manifest["annotations"] = json!({ "org.opencontainers.image.ref.name": VERSION });
    let index = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [manifest]
    });
    // What `docker load` reads where it does not know the layout.
    let docker = json!([{
        "Config": path(&config),
        "RepoTags": [format!("{NAME}:{VERSION}")],
        "Layers": layers.iter().map(path).collect::<Vec<_>>()
    }]);
    entries.extend([
        Entry::text(
            "oci-layout",
            json!({ "imageLayoutVersion": "1.0.0" }).to_string(),
        ),
        Entry::text("index.json", index.to_string()),
        Entry::text("manifest.json", docker.to_string()),
    ]);
    Ok((tar(&with_folders(&entries), "", stamp)?.plain(), pulled))
}

/// The file's name.
pub(crate) fn name(target: &Target) -> PathBuf {
    PathBuf::from(format!("{}.oci.tar", target.stem()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_image_runs_the_demo_without_root_and_without_a_shell() {
        let target = Target::find("x86_64-unknown-linux-musl").unwrap();
        let root = std::env::temp_dir().join(format!("ogive-image-{}", std::process::id()));
        let authorities = root.join(AUTHORITIES);
        fs::create_dir_all(authorities.parent().unwrap()).unwrap();
        fs::write(&authorities, "certificates").unwrap();
        let stamp = Stamp {
            time: 1_764_000_000,
            owner: 0,
        };
        let write = || {
            write(
                &Payload::small(),
                target,
                &Linkage::default(),
                &root,
                "abc",
                stamp,
            )
            .unwrap()
        };
        let image = write();
        assert!(image.bytes == write().bytes);
        assert_eq!(image.materials[0].0, format!("/{AUTHORITIES}"));
        let (entries, _) = system(&Linkage::default(), &root).unwrap();
        let paths: Vec<&str> = entries.iter().map(|entry| entry.path.as_str()).collect();
        assert_eq!(
            paths,
            [
                "etc/passwd",
                "etc/group",
                "etc/nsswitch.conf",
                "tmp",
                AUTHORITIES
            ]
        );
        fs::remove_dir_all(&root).unwrap();
        let config = config(target, &[], "abc", stamp);
        assert_eq!(config["config"]["User"], "65532:65532");
        assert_eq!(config["config"]["Cmd"], json!(["demo"]));
        // Every digest in the layout is that of the blob with this name.
        let (bytes, _) = layout(
            target,
            &[layer(&own(&Payload::small()), stamp).unwrap()],
            &config,
            stamp,
        )
        .unwrap();
        let text = String::from_utf8_lossy(&bytes);
        let digest = sha256(config.to_string().as_bytes());
        assert!(
            text.contains(&format!("blobs/sha256/{digest}"))
                && text.contains(&format!("sha256:{digest}"))
        );
    }

    #[test]
    fn a_library_that_is_not_there_is_named() {
        let linkage = Linkage {
            libraries: vec!["libnowhere.so.1".to_owned()],
            ..Linkage::default()
        };
        let error = system(&linkage, Path::new("/nonexistent")).err().unwrap();
        assert!(error.to_string().contains("libnowhere.so.1"));
    }
}
