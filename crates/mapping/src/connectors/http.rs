//! `http` of `@source` and `@connect`: URLs, headers, bodies.

use ogive_base::is_of_one_hop;
use ogive_syntax::ast::{Value, ValueKind};

use super::{
    ConnectorHeader, ConnectorHeaderValue, ConnectorHttp, Place, Reader, RequestMethod,
    RequestParts, arguments::Arguments,
};
use crate::{
    kinds::Kinds,
    template::{UrlTemplate, parse_header_template, parse_url_template},
    version::Version,
};

impl<'d> Reader<'d> {
    /// `http` of `@source`.
    pub(super) fn source_http(&mut self, value: &Value) -> Option<(UrlTemplate, RequestParts)> {
        let mut http = Arguments::of_object(self, value, "`http`")?;
        let base = http.take("baseURL");
        let request = self.request_parts(&mut http, None);
        http.finish(self);
        let Some(base) = base else {
            self.report(value.span, "`http` of `@source` needs `baseURL`");
            return None;
        };
        let url = self.url(&base, None)?;
        if !url.is_absolute() {
            self.report(base.span, "`baseURL` needs a scheme and a host");
        }
        if url.has_expressions() {
            self.report(base.span, "`baseURL` cannot have expressions");
        }
        Some((url, request))
    }

    /// `http` of `@connect`.
    pub(super) fn connector_http(
        &mut self,
        value: &Value,
        place: Place<'d>,
        has_base: bool,
    ) -> Option<ConnectorHttp> {
        let mut http = Arguments::of_object(self, value, "`http`")?;
        let methods = RequestMethod::ALL
            .into_iter()
            .filter_map(|(name, method)| Some((method, http.take(name)?)));
        let methods: Vec<(RequestMethod, Value)> = methods.collect();
        let request = self.request_parts(&mut http, Some(place));
        let body = http.take("body");
        http.finish(self);
        let body = body.and_then(|body| {
            let environment = self.request_environment("`body`", Some(place));
            self.mapping(&body, &environment)
        });
        let [(method, url)] = methods.as_slice() else {
            let message = "`http` needs one of `GET`, `POST`, `PUT`, `PATCH`, `DELETE`";
            self.report(value.span, message);
            return None;
        };
        let template = self.url(url, Some(place))?;
        if template.is_absolute() == has_base {
            let message = if has_base {
                "a URL with a scheme and a host cannot follow that of a source"
            } else {
                "a URL without a source needs a scheme and a host"
            };
            self.report(url.span, message);
        }
        Some(ConnectorHttp {
            method: *method,
            url: template,
            request,
            body,
        })
    }

    fn url(&mut self, value: &Value, place: Option<Place<'d>>) -> Option<UrlTemplate> {
        let located = self.text(value, "the URL")?;
        let environment = self.request_environment("the URL", place);
        let read = parse_url_template(&located, self.version, &environment, self.limits);
        self.diagnostics.extend(read.diagnostics);
        read.template
    }

    fn request_parts(
        &mut self,
        http: &mut Arguments<'d>,
        place: Option<Place<'d>>,
    ) -> RequestParts {
        let mut parts = RequestParts::default();
        if let Some(value) = http.take("path") {
            self.needs(Version::V0_2, value.span, "`path`");
            let environment = self.request_environment("`path`", place);
            let kinds = Kinds::LIST.or(Kinds::SCALAR);
            parts.path = self.mapping(&value, &environment.expecting(kinds));
        }
        if let Some(value) = http.take("queryParams") {
            self.needs(Version::V0_2, value.span, "`queryParams`");
            let environment = self.request_environment("`queryParams`", place);
            let kinds = Kinds::OBJECT.or(Kinds::NULL);
            parts.parameters = self.mapping(&value, &environment.expecting(kinds));
        }
        if let Some(value) = http.take("headers") {
            parts.headers = self.headers(&value, place);
        }
        parts
    }

    /// A list of headers; one alone needs no brackets.
    fn headers(&mut self, value: &Value, place: Option<Place<'d>>) -> Vec<ConnectorHeader> {
        let items = match value.kind {
            ValueKind::List(items) => &self.document[items],
            _ => std::slice::from_ref(value),
        };
        let headers = items.iter().filter_map(|item| self.header(item, place));
        headers.collect()
    }
    fn header(&mut self, value: &Value, place: Option<Place<'d>>) -> Option<ConnectorHeader> {
        let mut header = Arguments::of_object(self, value, "a header")?;
        let (name, from, template) = (
            header.take("name"),
            header.take("from"),
            header.take("value"),
        );
        header.finish(self);
        let name_span = name.map_or(value.span, |name| name.span);
        let name = self.required_text(name, value.span, "headers", "name")?;
        if !is_name(&name) {
            self.report(
                name_span,
                "the name of a header has a character that none has",
            );
        }
        if is_of_one_hop(&name.to_ascii_lowercase()) {
            let message = format!("`{name}` is set by the gateway and cannot be set here");
            self.report(name_span, message);
        }
        let value = match (from, template) {
            (Some(from), None) => {
                let from = self.text(&from, "`from`")?.text;
                ConnectorHeaderValue::From(from)
            }
            (None, Some(template)) => {
                let located = self.text(&template, "`value`")?;
                let environment = self.request_environment("a header", place);
                let read = parse_header_template(&located, self.version, &environment, self.limits);
                self.diagnostics.extend(read.diagnostics);
                ConnectorHeaderValue::Template(read.template?)
            }
            _ => {
                self.report(value.span, "a header needs `from` or `value`, not both");
                return None;
            }
        };
        Some(ConnectorHeader { name, value })
    }
}

/// Whether a text is the name of a header: a token of RFC 9110, 5.6.2.
fn is_name(name: &str) -> bool {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(is_token)
}
