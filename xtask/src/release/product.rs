//! The manifest of a release: every name, text and target that artefacts contain is written here, once.

/// The version, that of the workspace.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The program, and the name of every package.
pub(crate) const NAME: &str = "ogive";
/// One line without a full stop.
pub(crate) const SUMMARY: &str = "A federated GraphQL gateway in one binary";
/// A paragraph.
pub(crate) const DESCRIPTION: &str = "Ogive composes, plans, serves, explains, mocks and measures federated GraphQL. \
     It uses Apollo Router's configuration keys where both have the same feature.";
/// SPDX expression.
pub(crate) const LICENCE: &str = "MIT OR Apache-2.0";
/// Where sources and releases are.
pub(crate) const REPOSITORY: &str = "https://github.com/ogive/ogive";
/// Packages of Debian and RPM name a maintainer.
pub(crate) const MAINTAINER: &str = "Ogive maintainers <maintainers@ogive.example>";
/// Where the files of this release are downloaded.
pub(crate) const DOWNLOADS: &str = concat!(
    "https://github.com/ogive/ogive/releases/download/v",
    env!("CARGO_PKG_VERSION")
);
/// Features of what is released.
pub(crate) const FEATURES: &str = "shipped";
/// The lowest glibc that a release should start with: that of Debian 10, RHEL 8 and Ubuntu 18.10.
pub(crate) const GLIBC: super::elf::Glibc = super::elf::Glibc(2, 28);

/// A platform that releases are made for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// Rust's name.
    pub(crate) triple: &'static str,
    /// `e_machine` of its programs, `None` for programs that are not ELF.
    pub(crate) machine: Option<u16>,
    pub(crate) oci: &'static str,
    pub(crate) debian: &'static str,
    pub(crate) rpm: &'static str,
    /// `os`, `cpu` and `libc` of npm.
    pub(crate) npm: (&'static str, &'static str, Option<&'static str>),
    /// The platform of a Python wheel, without the version of glibc that is measured.
    pub(crate) wheel: &'static str,
    /// The system of nix.
    pub(crate) nix: &'static str,
    /// The machine of hosted continuous integration that makes it.
    pub(crate) runner: &'static str,
}

/// All platforms. Windows is none of them: sockets, signals and files of the gateway are those of unix.
pub(crate) const TARGETS: [Target; 6] = [
    Target {
        triple: "x86_64-unknown-linux-gnu",
        machine: Some(62),
        oci: "amd64",
        debian: "amd64",
        rpm: "x86_64",
        npm: ("linux", "x64", Some("glibc")),
        wheel: "x86_64",
        nix: "x86_64-linux",
        runner: "ubuntu-24.04",
    },
    Target {
        triple: "aarch64-unknown-linux-gnu",
        machine: Some(183),
        oci: "arm64",
        debian: "arm64",
        rpm: "aarch64",
        npm: ("linux", "arm64", Some("glibc")),
        wheel: "aarch64",
        nix: "aarch64-linux",
        runner: "ubuntu-24.04-arm",
    },
    Target {
        triple: "x86_64-unknown-linux-musl",
        machine: Some(62),
        oci: "amd64",
        debian: "amd64",
        rpm: "x86_64",
        npm: ("linux", "x64", Some("musl")),
        wheel: "musllinux_1_2_x86_64",
        nix: "x86_64-linux",
        runner: "ubuntu-24.04",
    },
    Target {
        triple: "aarch64-unknown-linux-musl",
        machine: Some(183),
        oci: "arm64",
        debian: "arm64",
        rpm: "aarch64",
        npm: ("linux", "arm64", Some("musl")),
        wheel: "musllinux_1_2_aarch64",
        nix: "aarch64-linux",
        runner: "ubuntu-24.04-arm",
    },
    Target {
        triple: "x86_64-apple-darwin",
        machine: None,
        oci: "amd64",
        debian: "",
        rpm: "",
        npm: ("darwin", "x64", None),
        wheel: "macosx_11_0_x86_64",
        nix: "x86_64-darwin",
        runner: "macos-15-intel",
    },
    Target {
        triple: "aarch64-apple-darwin",
        machine: None,
        oci: "arm64",
        debian: "",
        rpm: "",
        npm: ("darwin", "arm64", None),
        wheel: "macosx_11_0_arm64",
        nix: "aarch64-darwin",
        runner: "macos-15",
    },
];

impl Target {
    /// The target with Rust's name `triple`.
    pub(crate) fn find(triple: &str) -> Option<&'static Target> {
        TARGETS.iter().find(|target| target.triple == triple)
    }

    /// Whether its programs are linked with glibc.
    pub(crate) fn is_glibc(&self) -> bool {
        self.triple.ends_with("-gnu")
    }

    /// The name of the archive, which is also its folder inside.
    pub(crate) fn stem(&self) -> String {
        format!("{NAME}-{VERSION}-{}", self.triple)
    }

    /// The name of the npm package with the binary.
    pub(crate) fn npm_name(&self) -> String {
        let (os, cpu, libc) = self.npm;
        let musl = if libc == Some("musl") { "-musl" } else { "" };
        format!("{NAME}-{os}-{cpu}{musl}")
    }
}
