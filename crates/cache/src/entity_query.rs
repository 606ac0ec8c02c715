//! The text of a request for entities: its `_entities` fields, the selection of each, and the variables that each uses.
//!
//! The text is the one that plans write: no comments, no fragments by name. A text in another form is not taken apart, so a
//! mistake here costs hits and never mixes answers.

/// Most variables that a selection may use. A text with more of them is not taken apart, so looking each up stays cheap.
const VARIABLES_MAX: usize = 64;

/// One `_entities` field.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct EntityField<'q> {
    /// Its key in the answer.
    pub(crate) response_key: &'q str,
    /// The variable with its representations.
    pub(crate) variable: &'q str,
    /// Its selection, with the braces around it.
    pub(crate) selection: &'q str,
    /// The variables that the selection uses, each once.
    pub(crate) used: Vec<&'q str>,
}

/// The fields of an operation of which all are `_entities` fields with one list of representations each; `None` for any
/// other text.
pub(crate) fn entity_fields(query: &str) -> Option<Vec<EntityField<'_>>> {
    let open = query.find('{')?;
    let head = &query[..open];
    // A default value is not among the variables, and a directive may change the whole operation.
    if !head.starts_with("query") || head.contains(['=', '@', '#', '"']) {
        return None;
    }
    let mut text = query[open + 1..].trim_start();
    let mut fields = Vec::new();
    while !text.starts_with('}') {
        let (field, behind) = entity_field(text)?;
        fields.push(field);
        text = behind.trim_start_matches([' ', '\n', ',']);
    }
    let is_whole = text == "}" && !fields.is_empty();
    let is_once = |field: &EntityField<'_>| {
        let is_own = |other: &&EntityField<'_>| other.variable == field.variable;
        fields.iter().filter(is_own).count() == 1
    };
    (is_whole && fields.iter().all(is_once)).then_some(fields)
}

/// The field at the start of a text, and the text behind it.
fn entity_field(text: &str) -> Option<(EntityField<'_>, &str)> {
    let (name, behind) = name_at(text)?;
    let rest = match behind.strip_prefix(':') {
        Some(field) => field.strip_prefix("_entities")?,
        None if name == "_entities" => behind,
        None => return None,
    };
    let rest = rest.strip_prefix("(representations:$")?;
    let (variable, rest) = name_at(rest)?;
    let rest = rest.strip_prefix(')')?;
    if !rest.starts_with('{') {
        return None;
    }
    let (end, used) = selection_at(rest)?;
    let (selection, behind) = rest.split_at(end);
    let field = EntityField {
        response_key: name,
        variable,
        selection,
        used,
    };
    Some((field, behind))
}

/// The name at the start of a text, and the text behind it.
fn name_at(text: &str) -> Option<(&str, &str)> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

/// The length of the selection at the start of a text, and the variables that it uses.
fn selection_at(text: &str) -> Option<(usize, Vec<&str>)> {
    let bytes = text.as_bytes();
    let (mut at, mut open, mut used) = (0, 0usize, Vec::new());
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'{' => open += 1,
            b'}' => open = open.checked_sub(1)?,
            b'#' => return None,
            b'"' => {
                at += string_at(&text[at..])?;
                continue;
            }
            b'$' => {
                let (name, _) = name_at(&text[at + 1..])?;
                if !used.contains(&name) {
                    if used.len() == VARIABLES_MAX {
                        return None;
                    }
                    used.push(name);
                }
            }
            _ => {}
        }
        at += 1;
        if open == 0 {
            return Some((at, used));
        }
    }
    None
}

/// The length of the string at the start of a text, quotation marks included.
fn string_at(text: &str) -> Option<usize> {
    if let Some(block) = text.strip_prefix("\"\"\"") {
        let mut from = 0;
        loop {
            let end = from + block[from..].find("\"\"\"")?;
            if !block[..end].ends_with('\\') {
                return Some(end + 6);
            }
            from = end + 3;
        }
    }
    let mut is_escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return Some(at + 1),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_for_entities_is_taken_apart() {
        let query = "query($representations:[_Any!]!,$representations1:[_Any!]!,$n:Int){_entities(representations:$representations)\
                     {...on A{b(text:\"}$no\",first:$n)c(o:{d:$n})}}_e1:_entities(representations:$representations1){...on B{e}}}";
        let fields = entity_fields(query).unwrap();
        let of = |at: usize| {
            (
                fields[at].response_key,
                fields[at].variable,
                &fields[at].used[..],
            )
        };
        assert_eq!(of(0), ("_entities", "representations", &["n"][..]));
        assert_eq!(of(1), ("_e1", "representations1", &[][..]));
        assert_eq!(fields[1].selection, "{...on B{e}}");
        assert!(fields[0].selection.ends_with("c(o:{d:$n})}}"));
    }

    #[test]
    fn any_other_text_is_left_whole() {
        for query in [
            "{_entities(representations:$r){...on A{b}}}",
            "query($r:[_Any!]!){_entities(representations:$r){...on A{b}}me{name}}",
            "query($r:[_Any!]!){me(representations:$r){name}}",
            "query($r:[_Any!]!){me:me(representations:$r){name}}",
            "query($r:[_Any!]!){_entities(representations:$r)@skip(if:$s){...on A{b}}}",
            "query($r:[_Any!]!,$n:Int=1){_entities(representations:$r){...on A{b(n:$n)}}}",
            "query($r:[_Any!]!)@d{_entities(representations:$r){...on A{b}}}",
            "query($r:[_Any!]!){_entities(representations:$r){...on A{...F}}}fragment F on A{b}",
            "query($r:[_Any!]!){_entities(representations:$r){...on A{b(t:\"}}",
            "query($r:[_Any!]!){_entities(representations:$r){...on A{b}}",
            "query($r:[_Any!]!){_entities(representations:$r){a}_e1:_entities(representations:$r){a}}",
            "query($r:[_Any!]!){}",
            "mutation($r:[_Any!]!){_entities(representations:$r){a}}",
        ] {
            assert_eq!(entity_fields(query), None, "{query}");
        }
    }

    #[test]
    fn a_selection_with_more_variables_than_the_limit_is_left_whole() {
        let with = |count: usize| {
            let used: String = (0..count).map(|n| format!("a{n}:b(c:$v{n})")).collect();
            format!("query($r:[_Any!]!){{_entities(representations:$r){{{used}}}}}")
        };
        assert!(entity_fields(&with(VARIABLES_MAX)).is_some());
        assert_eq!(entity_fields(&with(VARIABLES_MAX + 1)), None);
    }

    #[test]
    fn quotation_marks_within_strings_end_nothing() {
        assert_eq!(string_at(r#""a\"}"b"#), Some(6));
        assert_eq!(string_at(r#""""a"\"""}"""b"#), Some(13));
        assert_eq!(string_at(r#""a\"#), None);
    }
}
