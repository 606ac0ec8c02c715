//! The schemas of a model, read by the product: supergraph and the monolith's merged schema.

use ogive_base::{Diagnostic, SourceId, Sources};
use ogive_federation::{ReadOptions, Supergraph, read_supergraph};
use ogive_operation::{ValidationLimits, validate};
use ogive_schema::{BuildOptions, Schema, build};
use ogive_syntax::{Document, Limits, parse};

use crate::graph::{Model, print};

/// Everything that was read.
#[derive(Debug)]
pub struct Schemas {
    /// The supergraph.
    pub supergraph: Supergraph,
    /// The merged schema.
    pub merged: Schema,
}

impl Schemas {
    /// Prints and reads a model. The error is ready to be shown.
    pub fn read(model: &Model) -> Result<Schemas, String> {
        let text = print::supergraph_sdl(model);
        let supergraph = supergraph(&text)?;
        let merged = schema("merged", &print::merged_sdl(model))?;
        Ok(Schemas { supergraph, merged })
    }
}

/// Reads a supergraph.
pub fn supergraph(text: &str) -> Result<Supergraph, String> {
    read_supergraph(text, SourceId(0), &ReadOptions::default())
        .map_err(|errors| render("supergraph", text, &errors))
}

/// Builds a schema with all checks.
pub fn schema(name: &str, text: &str) -> Result<Schema, String> {
    let document = document(name, text)?;
    let built = build(&[&document], &BuildOptions::default());
    if built.errors.is_empty() {
        Ok(built.schema)
    } else {
        Err(render(name, text, &built.errors))
    }
}

/// Parses a document.
pub fn document(name: &str, text: &str) -> Result<Document, String> {
    let parsed = parse(text, SourceId(0), &Limits::default());
    if parsed.errors.is_empty() {
        Ok(parsed.document)
    } else {
        Err(render(name, text, &parsed.errors))
    }
}

/// Parses and validates an executable document.
pub fn valid_document(schema: &Schema, name: &str, text: &str) -> Result<Document, String> {
    let document = document(name, text)?;
    let errors = validate(schema, &document, &ValidationLimits::default());
    if errors.is_empty() {
        Ok(document)
    } else {
        Err(render(name, text, &errors))
    }
}

fn render(name: &str, text: &str, errors: &[Diagnostic]) -> String {
    let mut sources = Sources::new();
    sources.add(name, text);
    errors
        .iter()
        .map(|e| e.render(&sources, false))
        .collect::<Vec<_>>()
        .join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        graph::generate::{GraphOptions, generate},
        ops,
    };

    #[test]
    fn generated_schemas_and_operations_are_valid() {
        for seed in 0..100 {
            let model = generate(seed, &GraphOptions::default());
            let schemas = Schemas::read(&model).unwrap_or_else(|e| panic!("seed {seed}:\n{e}"));
            for i in 0..20 {
                let op = ops::generate::generate(
                    &model,
                    seed * 1000 + i,
                    &ops::generate::OpOptions::default(),
                );
                let text = op.document();
                for schema in [&schemas.merged, &schemas.supergraph.api] {
                    valid_document(schema, "operation", &text)
                        .unwrap_or_else(|e| panic!("seed {seed}, operation {i}:\n{e}\n{text}"));
                }
            }
        }
    }
}
