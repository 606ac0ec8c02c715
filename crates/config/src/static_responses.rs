//! The answers of `static_responses`: what is answered by path, method and condition without asking anybody.
//!
//! ```yaml
//! static_responses:
//!   - { path: /robots.txt, body: "User-agent: *\nDisallow: /\n" }
//!   - { path: /graphql, methods: [POST], when: { exists: { request_header: x-probe } }, status: 204 }
//! ```

use std::collections::BTreeMap;

use ogive_base::Span;
use ogive_selectors::{Condition, Selector};

use crate::{
    Config, Path,
    decode::{Errors, section},
    selectors::word_of,
};

section! {
    /// `static_responses[]`
    pub struct StaticResponseOptions {
        /// Which path is answered so, without the query string; default every path.
        pub path: Option<Path> = None,
        /// Which methods; default `GET` and `HEAD`.
        pub methods: Vec<String> = Vec::new(),
        /// Only requests of which this holds; default all. There are `request_header`, `client_name`, `client_version` and
        /// `client_address`.
        pub when: Option<Condition> = None,
        /// The status; default 200.
        pub status: u32 = 200,
        /// Headers of the answer.
        pub headers: BTreeMap<String, String> = BTreeMap::new(),
        /// Its body; `content-type` is `text/plain; charset=utf-8` unless `headers` say another.
        pub body: String = String::new(),
    }
}

/// Checks that every answer can be given.
pub(crate) fn check(span: Span, config: &Config, errors: &mut Errors) {
    for answer in &config.static_responses {
        if !(200..=599).contains(&answer.status) {
            let message = format!("`{}` is no status from 200 to 599", answer.status);
            errors.invalid(span, message, "such as 404");
        }
        for method in &answer.methods {
            let is_word = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphabetic());
            if method.is_empty() || !is_word(method) {
                errors.invalid(span, format!("`{method}` is no method"), "such as `GET`");
            }
        }
        for (name, value) in &answer.headers {
            // RFC 9110, sections 5.5 and 5.6.2.
            let is_name =
                |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
            let is_value = |byte: u8| (byte >= 0x20 && byte != 0x7f) || byte == b'\t';
            if ogive_base::is_framing(&name.to_ascii_lowercase()) {
                let message = format!("the header `{name}` is not said by an answer");
                errors.invalid(span, message, "the server frames it");
            }
            if name.is_empty() || !name.bytes().all(is_name) || !value.bytes().all(is_value) {
                errors.invalid(span, format!("the header `{name}` cannot be sent"), "");
            }
        }
        let looks_at = answer.when.as_ref().map(Condition::selectors);
        for selector in looks_at.unwrap_or_default() {
            let is_known = matches!(
                selector,
                Selector::RequestHeader(_)
                    | Selector::ClientName
                    | Selector::ClientVersion
                    | Selector::ClientAddress
            );
            if !is_known {
                let message = format!(
                    "`{}` is not known yet where this is answered",
                    word_of(selector)
                );
                let help = "there are `request_header`, `client_name`, `client_version` and `client_address`";
                errors.invalid(span, message, help);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use ogive_base::SourceId;

    fn load(answer: &str) -> Result<(), String> {
        let text = format!("static_responses: [{{ {answer} }}]\n");
        let config = crate::load(SourceId(0), &text, &|_| None);
        config
            .map(|_| ())
            .map_err(|errors| errors[0].message.clone())
    }

    #[test]
    fn answers_that_cannot_be_given_are_refused() {
        assert_eq!(
            load("path: /a, methods: [post], status: 404, headers: { x-a: b }"),
            Ok(())
        );
        assert_eq!(
            load("when: { exists: { request_header: x-a } }, body: b"),
            Ok(())
        );
        for bad in [
            "path: a",
            "status: 101",
            "status: 600",
            "methods: ['GET /']",
            "headers: { 'a b': c }",
            "headers: { a: \"b\\nc\" }",
            "when: { exists: { jwt_claim: sub } }",
            "when: { eq: [{ operation_kind: true }, query] }",
            "code: 200",
            "headers: { Content-Length: '0' }",
            "headers: { transfer-encoding: chunked }",
            "headers: { connection: close }",
        ] {
            assert!(load(bad).is_err(), "{bad}");
        }
    }
}
