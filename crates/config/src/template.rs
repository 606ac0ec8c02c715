//! Templates: a text with what is known of a request in it.
//!
//! ```yaml
//! template: "{client_name}/{client_version} for {jwt_claim: org.tenant}"
//! ```
//!
//! What stands in braces is a [selector](crate::selectors), without or with what it names. `{{` and `}}` are braces.

use ogive_selectors::{Selector, TemplatePart};
use ogive_yaml::{Key, Node, Value};

use crate::{
    decode::{Errors, header_value},
    selectors::{DecodeIn, Place},
};

/// Most selectors in one template.
const SELECTORS_MAX: usize = 16;

/// Reads a template that is filled in at a place.
pub(crate) fn decode(node: &Node, place: Place, errors: &mut Errors) -> Option<Vec<TemplatePart>> {
    let text = header_value(node, errors)?;
    let mut parts: Vec<TemplatePart> = Vec::new();
    let mut known = String::new();
    let mut rest = text.as_str();
    while let Some(at) = rest.find(['{', '}']) {
        let (before, from) = rest.split_at(at);
        known.push_str(before);
        if let Some(behind) = from.strip_prefix("{{").or_else(|| from.strip_prefix("}}")) {
            known.push_str(&from[..1]);
            rest = behind;
            continue;
        }
        let inner = from.strip_prefix('{').and_then(|from| from.split_once('}'));
        let Some((inner, behind)) = inner else {
            let message = "a brace of the template has no other one";
            errors.invalid(node.span, message, "write `{{` or `}}` for a brace itself");
            return None;
        };
        if !known.is_empty() {
            parts.push(TemplatePart::Text(std::mem::take(&mut known)));
        }
        let selector = Selector::decode_at(&selector(inner, node), place, errors)?;
        parts.push(TemplatePart::Selector(selector));
        rest = behind;
    }
    known.push_str(rest);
    if !known.is_empty() {
        parts.push(TemplatePart::Text(known));
    }
    let is_selector = |part: &&TemplatePart| matches!(part, TemplatePart::Selector(_));
    let selectors = parts.iter().filter(is_selector).count();
    if selectors == 0 {
        let help = "write `value` instead, or a selector in braces, such as `{client_name}`";
        errors.invalid(node.span, "the template names nothing of the request", help);
        return None;
    }
    if selectors > SELECTORS_MAX {
        let message = format!("the template names {selectors} values, {SELECTORS_MAX} at the most");
        errors.invalid(node.span, message, "");
        return None;
    }
    Some(parts)
}

/// What a template names.
pub(crate) fn selectors(template: &[TemplatePart]) -> Vec<&Selector> {
    let selectors = template.iter().filter_map(|part| match part {
        TemplatePart::Selector(selector) => Some(selector),
        TemplatePart::Text(_) => None,
    });
    selectors.collect()
}

/// What is written in braces as the mapping that selectors are elsewhere.
fn selector(inner: &str, node: &Node) -> Node {
    let (word, argument) = inner.split_once(':').unwrap_or((inner, "true"));
    let value = |text: &str| Value::Scalar {
        text: text.trim().to_owned(),
        plain: false,
    };
    let key = Key {
        span: node.span,
        text: word.trim().to_owned(),
    };
    let argument = Node {
        span: node.span,
        value: value(argument),
    };
    Node {
        span: node.span,
        value: Value::Map(vec![(key, argument)]),
    }
}

#[cfg(test)]
mod tests {
    use ogive_base::SourceId;

    use super::*;
    use crate::HeaderRule;

    fn parts(template: &str) -> Result<Vec<TemplatePart>, String> {
        let text = format!(
            "headers: {{ all: {{ request: [{{ insert: {{ name: x-a, template: \"{template}\" }} }}] }} }}\n"
        );
        let config = crate::load(SourceId(0), &text, &|_| None);
        let config = config.map_err(|errors| errors[0].message.clone())?;
        let rule = config.request_header_rules("a").next().cloned();
        let Some(HeaderRule::InsertTemplate { template, .. }) = rule else {
            return Err("no template".into());
        };
        Ok(template)
    }

    #[test]
    fn templates_are_texts_with_selectors_in_braces() {
        use TemplatePart::{Selector as Known, Text};
        assert_eq!(
            parts("{client_name}/{client_version}").unwrap(),
            [
                Known(Selector::ClientName),
                Text("/".into()),
                Known(Selector::ClientVersion)
            ]
        );
        assert_eq!(
            parts("a{{b}}: { jwt_claim: org.id }!").unwrap(),
            [
                Text("a{b}: ".into()),
                Known(Selector::JwtClaim("org.id".into())),
                Text("!".into())
            ]
        );
        assert_eq!(
            parts("{request_header: X-Tenant}").unwrap(),
            [Known(Selector::RequestHeader("x-tenant".into()))]
        );
        let many = "{client_name}".repeat(17);
        for bad in [
            "plain",
            "{client_name",
            "client_name}",
            "{}",
            "{name}",
            "{jwt_claim}{",
            "{jwt_claim: }",
            "{client_name: web}",
            "{response_status}",
            "{client_name}\\n",
            &many,
        ] {
            assert!(parts(bad).is_err(), "{bad}");
        }
    }
}
