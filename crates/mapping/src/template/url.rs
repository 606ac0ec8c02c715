//! URLs: a base of the source, templates, dynamic segments and parameters, put together.
//!
//! The origin (scheme and host) is text of the schema and has no expressions. A value in a path is part of one segment,
//! a value in a query part of one name or one value: all characters but the unreserved ones of RFC 3986 are
//! percent-encoded. What encoding cannot express, a segment `.` or `..`, is an error.

use ogive_base::{Span, encode::percent_encode};

use super::{
    INVALID_URL, ReadTemplate, RequestError,
    pieces::{Context, LocatedPart, Part, Pieces},
};
use crate::{
    compile::Environment,
    limits::{ParseLimits, RunLimits},
    origin::Located,
    program::Program,
    run::Inputs,
    version::Version,
};

/// Characters of a template that stand for themselves in a path (RFC 3986, 3.3), beside unreserved ones. `%` begins text
/// that is encoded already.
const KEPT_IN_PATH: &[u8] = b"!$&'()*+,;=:@%";
/// The characters that stand for themselves in a query (RFC 3986, 3.4).
const KEPT_IN_QUERY: &[u8] = b"!$&'()*+,;=:@%/?";

/// A URL, or the end of one.
#[derive(Clone, Debug)]
pub struct UrlTemplate {
    /// Scheme and authority, as in `https://example.com:8080`.
    origin: Option<String>,
    segments: Vec<Pieces>,
    /// The path is `/`, which adds nothing to another path.
    is_root: bool,
    parameters: Vec<Parameter>,
}

/// One parameter of a query.
#[derive(Clone, Debug, Default)]
struct Parameter {
    name: Pieces,
    /// `None` if there is no `=`.
    value: Option<Pieces>,
}

impl Parameter {
    fn is_empty(&self) -> bool {
        self.name.is_empty() && self.value.is_none()
    }
    fn target(&mut self) -> &mut Pieces {
        match &mut self.value {
            Some(value) => value,
            None => &mut self.name,
        }
    }
}

/// What a source or a connector adds to a URL.
#[derive(Clone, Copy, Debug, Default)]
pub struct UrlLayer<'a> {
    /// `baseURL`, or the URL behind the method.
    pub template: Option<&'a UrlTemplate>,
    /// `path`: a list of segments.
    pub path: Option<&'a Program>,
    /// `queryParams`: an object of parameters.
    pub parameters: Option<&'a Program>,
}

/// Reads a URL, absolute or the end of one.
pub fn parse_url_template(
    text: &Located,
    version: Version,
    environment: &Environment,
    limits: &ParseLimits,
) -> ReadTemplate<UrlTemplate> {
    Context::read(text, version, environment, limits, |context, parts| {
        let mut reader = Reader {
            context,
            template: UrlTemplate {
                origin: None,
                segments: Vec::new(),
                is_root: false,
                parameters: Vec::new(),
            },
        };
        let rest = reader.origin(without_blanks(parts));
        reader.path_and_query(rest);
        reader.template
    })
}

/// The parts of a template without spaces and tabs at both ends.
fn without_blanks(parts: &[LocatedPart]) -> &[LocatedPart] {
    let is_blank = |located: &LocatedPart| matches!(located.part, Part::Character(' ' | '\t'));
    let start = parts.iter().take_while(|located| is_blank(located)).count();
    let end = parts
        .iter()
        .rposition(|located| !is_blank(located))
        .map_or(start, |at| at + 1);
    &parts[start..end]
}

struct Reader<'c, 'a> {
    context: &'c mut Context<'a>,
    template: UrlTemplate,
}

impl Reader<'_, '_> {
    /// Reads scheme and authority if there are any; returns what follows.
    fn origin<'p>(&mut self, parts: &'p [LocatedPart]) -> &'p [LocatedPart] {
        let is = |at: usize, wanted: char| matches!(parts.get(at).map(|located| &located.part), Some(Part::Character(found)) if *found == wanted);
        let colon = (0..parts.len()).find(|at| is(*at, ':') && is(at + 1, '/') && is(at + 2, '/'));
        let ends_path =
            |located: &LocatedPart| matches!(located.part, Part::Character('/' | '?' | '#'));
        let first_end = parts.iter().position(ends_path).unwrap_or(parts.len());
        let Some(colon) = colon.filter(|colon| *colon < first_end) else {
            return parts;
        };
        let authority = &parts[colon + 3..];
        let end = authority
            .iter()
            .position(ends_path)
            .unwrap_or(authority.len());
        let (authority, rest) = authority.split_at(end);
        let mut text = String::new();
        for located in parts[..colon].iter().chain(authority) {
            match &located.part {
                Part::Character(character) => text.push(*character),
                Part::Expression(_) => {
                    self.context.report(
                        INVALID_URL,
                        located.span,
                        "an expression can stand in the path and the query of a URL only",
                    );
                    return rest;
                }
            }
        }
        let scheme_len = colon;
        let (scheme, host) = text.split_at(scheme_len.min(text.len()));
        let span = span_of(&parts[..colon + 3 + end]);
        if !matches!(scheme, "http" | "https") {
            let message = "the scheme of a URL has to be `http` or `https`";
            self.context.report(INVALID_URL, span, message);
        }
        let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:[]".contains(&byte);
        if host.is_empty() || !host.bytes().all(is_host) {
            let message = "the host of the URL is missing or has a character that no host has";
            self.context.report(INVALID_URL, span, message);
        }
        self.template.origin = Some(format!("{scheme}://{host}"));
        rest
    }

    fn path_and_query(&mut self, parts: &[LocatedPart]) {
        let is = |located: &LocatedPart, wanted: char| matches!(located.part, Part::Character(found) if found == wanted);
        let question = parts.iter().position(|located| is(located, '?'));
        let (path, query) = match question {
            Some(at) => (&parts[..at], &parts[at + 1..]),
            None => (parts, &parts[parts.len()..]),
        };
        for (index, segment) in path.split(|located| is(located, '/')).enumerate() {
            // What is before the first slash is a segment only if something is there.
            if index == 0 && segment.is_empty() {
                continue;
            }
            let mut pieces = Pieces::default();
            self.push(segment, &mut pieces, KEPT_IN_PATH);
            self.template.segments.push(pieces);
        }
        self.template.is_root = matches!(path, [only] if is(only, '/'));
        for parameter in query.split(|located| is(located, '&')) {
            let mut read = Parameter::default();
            let equals = parameter.iter().position(|located| is(located, '='));
            if let Some(at) = equals {
                self.push(&parameter[..at], &mut read.name, KEPT_IN_QUERY);
                read.value = Some(Pieces::default());
                self.push(&parameter[at + 1..], read.target(), KEPT_IN_QUERY);
            } else {
                self.push(parameter, read.target(), KEPT_IN_QUERY);
            }
            if !read.is_empty() {
                self.template.parameters.push(read);
            }
        }
    }

    /// Adds parts; characters that cannot stand in a URL are encoded.
    fn push(&mut self, parts: &[LocatedPart], to: &mut Pieces, kept: &[u8]) {
        let mut encoded = String::new();
        for located in parts {
            match &located.part {
                Part::Character('#') => {
                    let message = "a fragment is never sent: encode `#` as `%23`";
                    self.context.report(INVALID_URL, located.span, message);
                }
                Part::Character(character) => {
                    let mut buffer = [0; 4];
                    let text = character.encode_utf8(&mut buffer);
                    encoded.clear();
                    percent_encode(&mut encoded, text.as_bytes(), kept);
                    to.push_text(&encoded);
                }
                Part::Expression(program) => to.push_expression(program.clone(), located.span),
            }
        }
    }
}

fn span_of(parts: &[LocatedPart]) -> Span {
    let mut spans = parts.iter().map(|located| located.span);
    let first = spans.next().unwrap_or_default();
    spans.fold(first, Span::to)
}

impl UrlTemplate {
    /// Whether it has scheme and host.
    pub fn is_absolute(&self) -> bool {
        self.origin.is_some()
    }
    /// Whether it has expressions.
    pub fn has_expressions(&self) -> bool {
        self.programs().next().is_some()
    }
    /// The programs of all expressions.
    pub fn programs(&self) -> impl Iterator<Item = &Program> {
        let values = self
            .parameters
            .iter()
            .flat_map(|parameter| std::iter::once(&parameter.name).chain(&parameter.value));
        let all = self.segments.iter().chain(values);
        all.flat_map(Pieces::programs)
    }
}

/// Puts layers together, that of the source first: all segments in order, then all parameters in order.
pub fn build_url(
    layers: &[UrlLayer<'_>],
    inputs: &Inputs<'_>,
    limits: &RunLimits,
) -> Result<String, RequestError> {
    let origin = layers
        .iter()
        .filter_map(|layer| layer.template?.origin.as_deref())
        .next_back()
        .ok_or(RequestError::NoOrigin)?;
    let mut url = UrlBuilder {
        inputs,
        limits,
        url: origin.to_owned(),
        ends_with_slash: false,
        has_segments: false,
        has_parameters: false,
    };
    for layer in layers {
        if let Some(template) = layer.template {
            url.template_path(template)?;
        }
        if let Some(program) = layer.path {
            url.dynamic_path(program)?;
        }
    }
    if url.ends_with_slash || !url.has_segments {
        url.url.push('/');
    }
    for layer in layers {
        if let Some(template) = layer.template {
            url.template_query(template)?;
        }
        if let Some(program) = layer.parameters {
            url.dynamic_query(program)?;
        }
    }
    if url.url.len() > limits.url_bytes_max {
        return Err(RequestError::TooLong);
    }
    Ok(url.url)
}

struct UrlBuilder<'a> {
    inputs: &'a Inputs<'a>,
    limits: &'a RunLimits,
    url: String,
    /// A slash ends the path if no segment follows.
    ends_with_slash: bool,
    has_segments: bool,
    has_parameters: bool,
}

impl UrlBuilder<'_> {
    fn template_path(&mut self, template: &UrlTemplate) -> Result<(), RequestError> {
        if template.is_root {
            return Ok(());
        }
        for segment in &template.segments {
            if segment.is_empty() {
                // Two slashes become one.
                self.ends_with_slash = true;
                continue;
            }
            let start = self.begin_segment();
            self.push_pieces(segment)?;
            if segment.has_expressions() {
                self.end_segment(start)?;
            }
        }
        Ok(())
    }
    fn dynamic_path(&mut self, program: &Program) -> Result<(), RequestError> {
        let segments = program.run_texts(self.inputs, self.limits)?;
        for segment in segments.ok_or(RequestError::NotSegments)? {
            let start = self.begin_segment();
            self.push_value(&segment)?;
            self.end_segment(start)?;
        }
        Ok(())
    }
    fn begin_segment(&mut self) -> usize {
        self.has_segments = true;
        self.ends_with_slash = false;
        self.url.push('/');
        self.url.len()
    }
    /// Refuses a segment that servers and clients would take for a step in the tree of paths.
    fn end_segment(&mut self, start: usize) -> Result<(), RequestError> {
        let segment = self.url[start..].to_ascii_lowercase().replace("%2e", ".");
        match segment.as_str() {
            "." | ".." => Err(RequestError::DotSegment),
            _ => Ok(()),
        }
    }

    fn template_query(&mut self, template: &UrlTemplate) -> Result<(), RequestError> {
        for parameter in &template.parameters {
            self.begin_parameter();
            self.push_pieces(&parameter.name)?;
            if let Some(value) = &parameter.value {
                self.url.push('=');
                self.push_pieces(value)?;
            }
        }
        Ok(())
    }
    fn dynamic_query(&mut self, program: &Program) -> Result<(), RequestError> {
        let members = program.run_members(self.inputs, self.limits)?;
        for member in members.ok_or(RequestError::NotParameters)? {
            for piece in &member.pieces {
                self.begin_parameter();
                self.push_value(&member.name)?;
                self.url.push('=');
                self.push_value(piece)?;
            }
        }
        Ok(())
    }
    /// Adds text and values of a template.
    fn push_pieces(&mut self, pieces: &Pieces) -> Result<(), RequestError> {
        let bytes_max = self.limits.url_bytes_max;
        pieces.render(
            self.inputs,
            self.limits,
            bytes_max,
            &mut self.url,
            encode_value,
        )
    }
    /// Adds a value.
    fn push_value(&mut self, text: &str) -> Result<(), RequestError> {
        encode_value(text, &mut self.url);
        if self.url.len() > self.limits.url_bytes_max {
            return Err(RequestError::TooLong);
        }
        Ok(())
    }
    fn begin_parameter(&mut self) {
        self.url.push(if self.has_parameters { '&' } else { '?' });
        self.has_parameters = true;
    }
}

/// Appends a value: only unreserved characters (RFC 3986, 2.3) stay as they are.
fn encode_value(text: &str, out: &mut String) {
    percent_encode(out, text.as_bytes(), b"");
}
