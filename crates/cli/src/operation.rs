//! An operation from a file, with the arguments `plan` and `explain` share.

use std::path::{Path, PathBuf};

use anyhow::Result;
use ogive_gateway::{GraphqlRequest, JsonObject};

use crate::{load, terminal};

/// Which operation of which supergraph.
#[derive(clap::Args)]
pub(crate) struct OperationArguments {
    /// File with the GraphQL document; - reads it from standard input
    #[arg(value_name = "OPERATION.graphql", required_unless_present = "demo")]
    document: Option<PathBuf>,
    /// Which operation, if the document has several
    #[arg(short, long, value_name = "NAME")]
    operation: Option<String>,
    /// Values of variables: a JSON object, or a file that holds one
    #[arg(long, value_name = "JSON|FILE")]
    variables: Option<String>,
}

impl OperationArguments {
    /// Reads everything into one request; `default` is the document if none is named.
    pub(crate) fn request(&self, default: &str) -> Result<GraphqlRequest> {
        let remedy = "name a file that holds a GraphQL document";
        let query = match &self.document {
            Some(path) => load::read(path, "operation", remedy)?,
            None => default.to_owned(),
        };
        Ok(GraphqlRequest {
            query,
            operation_name: self.operation.clone(),
            variables: match &self.variables {
                Some(text) => variables(text)?,
                None => JsonObject::default(),
            },
            ..GraphqlRequest::default()
        })
    }
    /// Whether a document is named.
    pub(crate) fn is_named(&self) -> bool {
        self.document.is_some()
    }
    /// What is written in place of a file, if it looks like a code and no such file is there.
    pub(crate) fn code(&self) -> Option<String> {
        let path = self.document.as_ref()?;
        let text = path.to_str()?;
        let word = text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        (word && !path.exists()).then(|| text.to_owned())
    }
    /// The name of the document, for diagnostics.
    pub(crate) fn document_name(&self) -> String {
        let path = self.document.as_ref();
        path.map_or_else(
            || "request".into(),
            |path| {
                if path.as_os_str() == "-" {
                    "standard input".into()
                } else {
                    path.display().to_string()
                }
            },
        )
    }
}

fn variables(text: &str) -> Result<JsonObject> {
    let remedy = "write a JSON object, such as --variables '{\"id\": 1}'";
    let path = Path::new(text);
    let text = if !text.trim_start().starts_with('{') && path.is_file() {
        load::read(path, "variables", remedy)?
    } else {
        text.to_owned()
    };
    match JsonObject::read(text.into()) {
        Ok(Some(variables)) => Ok(variables),
        Ok(None) => Err(terminal::error(
            "`--variables` is not a JSON object",
            remedy,
        )),
        Err(error) => Err(terminal::error(
            format_args!("`--variables` is not JSON: {error}"),
            remedy,
        )),
    }
}

/// What a refused request looks like on a terminal: one line per error with its place.
pub(crate) fn refused(error: &ogive_gateway::RequestError, document: &str) -> anyhow::Error {
    let lines: Vec<String> = error
        .errors
        .iter()
        .map(|e| match e.locations.first() {
            Some((line, column)) => {
                format!(
                    "error[{}]: {}\n  --> {document}:{line}:{column}",
                    e.code, e.message
                )
            }
            None => format!("error[{}]: {}\n  --> {document}", e.code, e.message),
        })
        .collect();
    terminal::Rendered(lines.join("\n")).into()
}
