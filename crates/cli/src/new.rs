//! `ogive new`: a project that runs at once: subgraphs, a mock that plays them, configuration, checks.

use std::{
    fs, io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use anyhow::Result;

use crate::terminal;

/// Files of a project; `{{name}}` and `{{version}}` are filled in.
const FILES: [(&str, &str); 12] = [
    ("products.graphql", include_str!("new/products.graphql")),
    ("reviews.graphql", include_str!("new/reviews.graphql")),
    ("data.yaml", include_str!("new/data.yaml")),
    ("mock.yaml", include_str!("new/mock.yaml")),
    ("supergraph.yaml", include_str!("new/supergraph.yaml")),
    ("ogive.yaml", include_str!("new/ogive.yaml")),
    ("compose.yaml", include_str!("new/compose.yaml")),
    ("checks.sh", include_str!("new/checks.sh")),
    (
        "operations/products.graphql",
        include_str!("new/operations/products.graphql"),
    ),
    (
        ".github/workflows/graph.yml",
        include_str!("new/workflow.yml"),
    ),
    (".gitignore", ".ogive/\n"),
    ("README.md", include_str!("new/README.md")),
];

/// Arguments of `ogive new`.
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  ogive new shop\n  cd shop\n  ogive mock --config mock.yaml &\n  ogive serve\n\n\
                  The folder must be empty or not there yet; no file is overwritten."
)]
pub(crate) struct Arguments {
    /// The folder to write; its last part is the project's name: letters, digits, `-` and `_`
    #[arg(value_name = "NAME")]
    folder: PathBuf,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let folder = arguments.folder.as_path();
    let name = folder.file_name().and_then(|name| name.to_str());
    let Some(name) = name.filter(|name| is_name(name)) else {
        return Err(terminal::error(
            format_args!("`{}` is not a name for a project", folder.display()),
            "begin with a letter, then use letters, digits, `-` and `_`",
        ));
    };
    if fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(terminal::error(
            format_args!("`{}` is not empty", folder.display()),
            "choose a name that is not taken",
        ));
    }
    for (path, text) in FILES {
        let text = text
            .replace("{{name}}", name)
            .replace("{{version}}", env!("CARGO_PKG_VERSION"));
        write(&folder.join(path), &text)?;
    }
    write(
        &folder.join("ogive.schema.json"),
        &ogive_config::schema::schema(),
    )?;
    terminal::print(&format!(
        "{} is a graph of two subgraphs. In two terminals:\n\n  cd {0} && ogive mock --config mock.yaml\n  \
         cd {0} && ogive serve\n\nREADME.md says what is in it.",
        folder.display()
    ));
    Ok(())
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
}

fn write(path: &Path, text: &str) -> Result<()> {
    let try_write = || -> io::Result<()> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(path, text)?;
        if text.starts_with("#!") {
            fs::set_permissions(path, fs::Permissions::from_mode(0o755))?;
        }
        Ok(())
    };
    try_write().map_err(|why| {
        terminal::error(
            format_args!("cannot write `{}`: {why}", path.display()),
            "check that the folder can be written to",
        )
    })
}
