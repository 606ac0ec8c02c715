//! Descriptions that other package managers fetch archives by: a Homebrew formula and a nix flake.

use super::{
    content::base64,
    product::{DOWNLOADS, LICENCE, NAME, REPOSITORY, SUMMARY, Target, VERSION},
};

/// An archive of this release.
pub(crate) struct Archive {
    pub(crate) target: &'static Target,
    /// In hexadecimal.
    pub(crate) sha256: String,
}

impl Archive {
    fn url(&self) -> String {
        format!("{DOWNLOADS}/{}.tar.gz", self.target.stem())
    }
}

/// The Homebrew formula of the archives that Homebrew can use: macOS, and Linux with glibc.
pub(crate) fn formula(archives: &[Archive]) -> String {
    let mut out = format!(
        "class Ogive < Formula\n  desc \"{SUMMARY}\"\n  homepage \"{REPOSITORY}\"\n  version \"{VERSION}\"\n  \
         license any_of: [{}]\n",
        LICENCE
            .split(" OR ")
            .map(|id| format!("\"{id}\""))
            .collect::<Vec<_>>()
            .join(", ")
    );
    for (os, npm) in [("macos", "darwin"), ("linux", "linux")] {
        let of_os = |archive: &&Archive| {
            archive.target.npm.0 == npm && archive.target.npm.2 != Some("musl")
        };
        let mut found = archives.iter().filter(of_os).peekable();
        if found.peek().is_none() {
            continue;
        }
        out.push_str(&format!("\n  on_{os} do\n"));
        for archive in found {
            let cpu = if archive.target.npm.1 == "arm64" {
                "arm"
            } else {
                "intel"
            };
            out.push_str(&format!(
                "    on_{cpu} do\n      url \"{}\"\n      sha256 \"{}\"\n    end\n",
                archive.url(),
                archive.sha256
            ));
        }
        out.push_str("  end\n");
    }
    out.push_str(
        "\n  def install\n    bin.install \"ogive\"\n    man1.install Dir[\"man/man1/*\"]\n    \
         bash_completion.install \"completions/ogive.bash\" => \"ogive\"\n    \
         zsh_completion.install \"completions/_ogive\"\n    fish_completion.install \"completions/ogive.fish\"\n  \
         end\n\n  test do\n    system bin/\"ogive\", \"demo\", \"--once\"\n  end\nend\n",
    );
    out
}

/// The nix flake of the archives that nix can use.
pub(crate) fn flake(archives: &[Archive]) -> String {
    let usable = archives
        .iter()
        .filter(|archive| archive.target.npm.2 != Some("musl"));
    let rows: String = usable
        .map(|archive| {
            format!(
                "        {} = {{\n          url = \"{}\";\n          hash = \"sha256-{}\";\n        }};\n",
                archive.target.nix,
                archive.url(),
                base64(&from_hex(&archive.sha256), false)
            )
        })
        .collect();
    let text = r#"{
  description = "SUMMARY";
  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-25.11";
  outputs =
    { nixpkgs, ... }:
    let
      archives = {
ROWS      };
      package =
        system: archive:
        let
          pkgs = nixpkgs.legacyPackages.${system};
        in
        pkgs.stdenv.mkDerivation {
          pname = "NAME";
          version = "VERSION";
          src = pkgs.fetchurl archive;
          nativeBuildInputs = [
            pkgs.installShellFiles
          ]
          ++ pkgs.lib.optional pkgs.stdenv.isLinux pkgs.autoPatchelfHook;
          buildInputs = pkgs.lib.optional pkgs.stdenv.isLinux pkgs.stdenv.cc.cc.lib;
          installPhase = ''
            install -D -m 755 ogive $out/bin/ogive
            installManPage man/man1/*
            installShellCompletion --bash completions/ogive.bash
            installShellCompletion --zsh completions/_ogive
            installShellCompletion --fish completions/ogive.fish
          '';
          meta.mainProgram = "NAME";
        };
    in
    {
      packages = builtins.mapAttrs (system: archive: { default = package system archive; }) archives;
    };
}
"#;
    let text = text.replace("SUMMARY", SUMMARY).replace("VERSION", VERSION);
    text.replace("NAME", NAME).replace("ROWS", &rows)
}

fn from_hex(text: &str) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).unwrap_or(0) as u8;
    text.as_bytes()
        .chunks(2)
        .map(|pair| pair.iter().fold(0, |sum, byte| sum << 4 | digit(*byte)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_archives_that_exist_are_named() {
        let archive = |triple: &str| Archive {
            target: Target::find(triple).unwrap(),
            sha256: "00ff".to_owned(),
        };
        let archives = [
            archive("x86_64-unknown-linux-gnu"),
            archive("aarch64-unknown-linux-musl"),
        ];
        let (formula, flake) = (formula(&archives), flake(&archives));
        assert!(
            formula.contains("on_linux")
                && !formula.contains("on_macos")
                && !formula.contains("musl")
        );
        assert_eq!(formula.matches("sha256 \"00ff\"").count(), 1);
        assert!(flake.contains("x86_64-linux = {") && !flake.contains("aarch64-linux"));
        assert!(flake.contains("hash = \"sha256-AP8=\""));
        assert_eq!(
            formula.matches(" do\n").count() + 2,
            formula.matches("end\n").count()
        );
    }
}
