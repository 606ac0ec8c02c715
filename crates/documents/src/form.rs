//! When two documents ask for the same: the canonical text of a document, and the hashes by which documents are known.

use ogive_syntax::{Limits, SourceId, ast::Definition, parse, print_definition};
use sha2::{Digest, Sha256};

/// The canonical text of a document: what is left of it if how it is written does not count. White space, commas,
/// comments, descriptions, the order of definitions and `query` before an anonymous query do not. `None` for a text that
/// is no document of operations and fragments.
pub fn form(text: &str) -> Option<String> {
    let parsed = parse(text, SourceId(0), &Limits::default());
    if !parsed.errors.is_empty() || parsed.document.definitions.is_empty() {
        return None;
    }
    let document = &parsed.document;
    let definitions = document.definitions.iter().map(|definition| {
        let definition = undescribed(definition)?;
        Some(print_definition(document, &definition))
    });
    let mut definitions = definitions.collect::<Option<Vec<String>>>()?;
    definitions.sort_unstable();
    Some(definitions.join("\n\n"))
}

/// The name of the only operation of a document; `None` for several, for one without a name, and for what is no document.
pub fn operation_name(text: &str) -> Option<String> {
    let parsed = parse(text, SourceId(0), &Limits::default());
    if !parsed.errors.is_empty() {
        return None;
    }
    let document = &parsed.document;
    let mut operations = document.definitions.iter().filter_map(|one| match one {
        Definition::Operation(operation) => Some(operation),
        _ => None,
    });
    let only = operations.next().filter(|_| operations.next().is_none())?;
    only.name.map(|name| document.name(name).to_owned())
}

/// A definition without its description; `None` for one that belongs to a schema.
pub(crate) fn undescribed(definition: &Definition) -> Option<Definition> {
    let mut definition = *definition;
    match &mut definition {
        Definition::Operation(operation) => operation.description = None,
        Definition::Fragment(fragment) => fragment.description = None,
        _ => return None,
    }
    Some(definition)
}

/// SHA-256 of a text.
pub fn sha256(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use ogive_base::encode::hex;

    use super::*;

    #[test]
    fn hashes_are_hexadecimal() {
        let hash = sha256("{__typename}");
        assert_eq!(
            hex(&hash),
            "ecf4edb46db40b5132295c0291d62fb65d6759a9eedfa4d5d612dd5ec54a6b38"
        );
    }

    #[test]
    fn how_a_document_is_written_is_not_part_of_its_form() {
        let short = form("query{me{name}}");
        assert_eq!(short, form("\"\"\"d\"\"\" query { me, { name } } # !"));
        assert_ne!(short, form("query A{me{name}}"));
        assert_eq!(form("type A { a: Int }"), None);
        assert_eq!(form("{me"), None);
        assert_eq!(form(""), None);
    }
}
