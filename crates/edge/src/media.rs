//! Media types: what the client sends and what it can read (RFC 9110, section 12.5.1; GraphQL over HTTP, section 4).

use http::{HeaderMap, HeaderValue, header};
use ogive_execute::incremental::IncrementalForm;
use ogive_stream::{multipart, sse};

/// The media type of a response to a GraphQL request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Media {
    /// `application/graphql-response+json`: the HTTP status tells whether the request was executed.
    GraphqlResponse,
    /// `application/json`, not asked for by name (no `accept` header, or a wildcard).
    Json,
    /// `application/json`, asked for by name: a client from before the status told anything, which expects 200 for
    /// every well-formed request.
    LegacyJson,
    /// A stream, asked for by a client that reads nothing else.
    Stream(StreamMedia),
}

/// The media type of a stream of responses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StreamMedia {
    /// `text/event-stream`: GraphQL over server-sent events, in the mode of distinct connections.
    EventStream,
    /// `multipart/mixed`, as subscriptions 1.0 have it.
    Multipart,
}

impl Media {
    /// The `content-type` to answer with.
    pub fn content_type(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Media::GraphqlResponse => "application/graphql-response+json; charset=utf-8",
            Media::Json | Media::LegacyJson => "application/json; charset=utf-8",
            Media::Stream(StreamMedia::EventStream) => "text/event-stream; charset=utf-8",
            Media::Stream(StreamMedia::Multipart) => multipart::SUBSCRIPTION_TYPE,
        })
    }
}

/// What the `accept` header admits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Accept {
    /// A GraphQL response of this media type.
    Graphql(Media),
    /// A page, and no GraphQL response by name: a browser.
    Html,
    /// Nothing the gateway has.
    Nothing,
}

/// Most media ranges of one request that are looked at; what comes later is ignored.
const RANGES_MAX: usize = 64;

/// How specific the range was that admits something, 2 for its own name, and its quality in thousandths.
type Admitted = Option<(u8, u32)>;

fn is_by_name(candidate: Admitted) -> bool {
    candidate.is_some_and(|(specific, quality)| specific == 2 && quality > 0)
}

/// Reads the `accept` header. None at all admits everything.
pub fn accept(headers: &HeaderMap) -> Accept {
    let Some([graphql, json, html]) = admitted(headers) else {
        return Accept::Graphql(Media::Json);
    };
    if is_by_name(html) && !is_by_name(graphql) && !is_by_name(json) {
        return Accept::Html;
    }
    best(graphql, json).map_or(Accept::Nothing, Accept::Graphql)
}

/// The media type for a client that is answered with GraphQL whatever else it would rather have: one that names pages
/// first and everything last, as browsers and Java's `HttpURLConnection` do, gets JSON.
pub fn graphql_media(headers: &HeaderMap) -> Option<Media> {
    match admitted(headers) {
        None => Some(Media::Json),
        Some([graphql, json, _]) => best(graphql, json),
    }
}

/// What a client asks for that is never answered: streams of events, which subscriptions come in, and answers in parts.
/// Only told of clients that admit nothing else.
pub fn stream_asked(headers: &HeaderMap) -> Option<&'static str> {
    let values = headers.get_all(header::ACCEPT).iter();
    let ranges = values
        .filter_map(|v| v.to_str().ok())
        .flat_map(|v| v.split(','));
    let mut names = ranges
        .take(RANGES_MAX)
        .map(|range| range.split(';').next().unwrap_or_default().trim());
    names.find_map(|name| {
        let known = ["text/event-stream", "multipart/mixed"].into_iter();
        known
            .into_iter()
            .find(|known| name.eq_ignore_ascii_case(known))
    })
}

/// The stream that a client reads: the one it likes best, and of those it likes equally the one it names first. One of
/// parts has to say of which kind, because others are for what is deferred.
pub fn stream_media(headers: &HeaderMap) -> Option<StreamMedia> {
    let values = headers.get_all(header::ACCEPT).iter();
    let ranges = values
        .filter_map(|v| v.to_str().ok())
        .flat_map(|v| v.split(','));
    let mut best: Option<(u32, StreamMedia)> = None;
    for range in ranges.take(RANGES_MAX) {
        let mut parts = range.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default();
        let (mut quality, mut is_of_subscriptions) = (1000, false);
        for (key, value) in parts.filter_map(|p| p.split_once('=')) {
            let value = value.trim().trim_matches('"');
            match key.trim() {
                key if key.eq_ignore_ascii_case("q") => {
                    quality = ogive_server::body::thousandths(value);
                }
                key if key.eq_ignore_ascii_case("subscriptionSpec") => {
                    is_of_subscriptions = value == "1.0";
                }
                _ => {}
            }
        }
        let media = if name.eq_ignore_ascii_case("text/event-stream") {
            StreamMedia::EventStream
        } else if name.eq_ignore_ascii_case("multipart/mixed") && is_of_subscriptions {
            StreamMedia::Multipart
        } else {
            continue;
        };
        if quality > 0 && best.is_none_or(|(before, _)| quality > before) {
            best = Some((quality, media));
        }
    }
    best.map(|(_, media)| media)
}

/// An answer in parts that a client reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IncrementalMedia {
    /// The form of its parts.
    pub form: IncrementalForm,
    /// Whether the client reads nothing else.
    pub is_only: bool,
    /// How parts are told apart.
    pub framing: PartFraming,
}

/// The boundary between parts: what Apollo's gateways use, and what clients take where none is named.
const BOUNDARY: &str = "-";

/// How the parts of an answer are told apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PartFraming {
    /// `multipart/mixed`: each is a part of it.
    Multipart,
    /// `text/event-stream`: each is a `next` event.
    EventStream,
    /// Not at all: each is a message of its own.
    Message,
}

impl PartFraming {
    /// One part.
    pub fn framed(self, json: &[u8]) -> Vec<u8> {
        let mut part = Vec::new();
        self.write(&mut part, json);
        part
    }
    /// What begins the body.
    pub fn start(self) -> Vec<u8> {
        let mut out = Vec::new();
        if self == PartFraming::Multipart {
            multipart::write_start(&mut out, BOUNDARY);
        }
        out
    }
    /// Writes one part.
    pub fn write(self, out: &mut Vec<u8>, json: &[u8]) {
        match self {
            PartFraming::Multipart => multipart::write_part(out, BOUNDARY, json),
            PartFraming::EventStream => sse::write_next(out, json),
            PartFraming::Message => out.extend_from_slice(json),
        }
    }
    /// Writes what ends the body.
    pub fn end(self, out: &mut Vec<u8>) {
        match self {
            PartFraming::Multipart => multipart::write_end(out),
            PartFraming::EventStream => out.extend_from_slice(sse::COMPLETE),
            PartFraming::Message => {}
        }
    }
}

/// The form of parts that a client of server-sent events reads; `default` where it names none.
pub fn event_form(headers: &HeaderMap, default: IncrementalForm) -> IncrementalForm {
    form_of(headers, |media| {
        media.eq_ignore_ascii_case("text/event-stream")
    })
    .unwrap_or(default)
}

/// The form of parts that the head of a WebSocket names, in whatever media type.
pub fn message_form(headers: &HeaderMap) -> Option<IncrementalForm> {
    form_of(headers, |_| true)
}

fn form_of(headers: &HeaderMap, is_asked: impl Fn(&str) -> bool) -> Option<IncrementalForm> {
    let values = headers.get_all(header::ACCEPT).iter();
    let ranges = values
        .filter_map(|v| v.to_str().ok())
        .flat_map(|v| v.split(','));
    for range in ranges.take(RANGES_MAX) {
        let mut parts = range.split(';').map(str::trim);
        if !parts.next().is_some_and(&is_asked) {
            continue;
        }
        for (key, value) in parts.filter_map(|p| p.split_once('=')) {
            if let Some(form) = named_form(key.trim(), value.trim().trim_matches('"')).flatten() {
                return Some(form);
            }
        }
    }
    None
}

/// The form that a parameter names; nothing in it if there is no such form.
fn named_form(key: &str, value: &str) -> Option<Option<IncrementalForm>> {
    if key.eq_ignore_ascii_case("deferSpec") {
        Some((value == "20220824").then_some(IncrementalForm::Repeated))
    } else if key.eq_ignore_ascii_case("incrementalSpec") {
        Some(incremental_form(value))
    } else {
        None
    }
}

/// The answer in parts that a client reads, if it likes it no less than a whole one; `default` is the form where it names
/// none.
pub fn incremental_media(
    headers: &HeaderMap,
    default: IncrementalForm,
) -> Option<IncrementalMedia> {
    match headers.get(header::ACCEPT)?.as_bytes() {
        b"*/*" | b"application/json" | b"application/graphql-response+json" => return None,
        _ => {}
    }
    let whole = admitted(headers).map_or(0, |[graphql, json, _]| {
        let quality = |candidate: Admitted| candidate.map_or(0, |(_, quality)| quality);
        quality(graphql).max(quality(json))
    });
    let values = headers.get_all(header::ACCEPT).iter();
    let ranges = values
        .filter_map(|v| v.to_str().ok())
        .flat_map(|v| v.split(','));
    let mut best: Option<(u32, IncrementalForm)> = None;
    for range in ranges.take(RANGES_MAX) {
        let mut parts = range.split(';').map(str::trim);
        if !parts.next()?.eq_ignore_ascii_case("multipart/mixed") {
            continue;
        }
        let (mut quality, mut form) = (1000, Some(default));
        for (key, value) in parts.filter_map(|p| p.split_once('=')) {
            let value = value.trim().trim_matches('"');
            let is = |name: &str| key.trim().eq_ignore_ascii_case(name);
            if is("q") {
                quality = ogive_server::body::thousandths(value);
            } else if let Some(named) = named_form(key.trim(), value) {
                form = named;
            } else if is("subscriptionSpec") {
                form = None;
            }
        }
        if let Some(form) = form.filter(|_| quality > 0)
            && best.is_none_or(|(before, _)| quality > before)
        {
            best = Some((quality, form));
        }
    }
    let (_, form) = best.filter(|(quality, _)| *quality >= whole)?;
    Some(IncrementalMedia {
        form,
        is_only: whole == 0,
        framing: PartFraming::Multipart,
    })
}

/// The form of a version as Apollo counts them.
fn incremental_form(version: &str) -> Option<IncrementalForm> {
    match version {
        "v0.1" => Some(IncrementalForm::Repeated),
        "v0.2" => Some(IncrementalForm::Distinct),
        _ => None,
    }
}

/// Whether a request asks for a WebSocket, which subscriptions come over.
pub fn asks_for_websocket(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(header::UPGRADE).iter();
    values.any(|value| value.as_bytes().eq_ignore_ascii_case(b"websocket"))
}

/// What the header admits of GraphQL responses, JSON and pages; `None` without a header.
fn admitted(headers: &HeaderMap) -> Option<[Admitted; 3]> {
    let mut values = headers.get_all(header::ACCEPT).iter();
    let first = values.next()?;
    let rest = values.next();
    if rest.is_none() {
        // What most programs send, word for word.
        match first.as_bytes() {
            b"*/*" => return Some([Some((0, 1000)); 3]),
            b"application/json" => return Some([None, Some((2, 1000)), None]),
            b"application/graphql-response+json" => return Some([Some((2, 1000)), None, None]),
            _ => {}
        }
    }
    let values = [Some(first), rest].into_iter().flatten().chain(values);
    // Quality of each candidate and how specific the range was that gave it; later ranges win only if more specific.
    let (mut graphql, mut json, mut html) = (None, None, None);
    let ranges = values
        .filter_map(|v| v.to_str().ok())
        .flat_map(|v| v.split(','));
    for range in ranges.take(RANGES_MAX) {
        let mut parts = range.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default().to_ascii_lowercase();
        let quality = parts
            .filter_map(|p| p.split_once('='))
            .find(|(key, _)| key.trim().eq_ignore_ascii_case("q"))
            .map_or(1000, |(_, q)| ogive_server::body::thousandths(q.trim()));
        let (specific, matches): (u8, [bool; 3]) = match name.as_str() {
            "*/*" => (0, [true, true, true]),
            "application/*" => (1, [true, true, false]),
            "text/*" => (1, [false, false, true]),
            "application/graphql-response+json" => (2, [true, false, false]),
            "application/json" => (2, [false, true, false]),
            "text/html" => (2, [false, false, true]),
            _ => continue,
        };
        for (candidate, matches) in [&mut graphql, &mut json, &mut html]
            .into_iter()
            .zip(matches)
        {
            if matches && candidate.is_none_or(|(before, _)| specific > before) {
                *candidate = Some((specific, quality));
            }
        }
    }
    Some([graphql, json, html])
}

/// The better of the two media types.
fn best(graphql: Admitted, json: Admitted) -> Option<Media> {
    let quality = |candidate: Admitted| candidate.map_or(0, |(_, quality)| quality);
    let (graphql_quality, json_quality) = (quality(graphql), quality(json));
    if graphql_quality == 0 && json_quality == 0 {
        return None;
    }
    // A wildcard alone means a client that did not think about it: it gets what every client can read.
    let prefers_graphql =
        graphql_quality > json_quality || (graphql_quality == json_quality && is_by_name(graphql));
    Some(if prefers_graphql {
        Media::GraphqlResponse
    } else if is_by_name(json) {
        Media::LegacyJson
    } else {
        Media::Json
    })
}

/// Why a body cannot be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ContentTypeError {
    /// There is no `content-type`.
    Missing,
    /// It is not `application/json`.
    Unsupported(String),
    /// Not UTF-8.
    Charset(String),
    /// There are several: others on the way may take another one for the one that counts.
    Repeated,
}

/// Checks that a body is JSON in UTF-8.
pub fn content_type_is_json(headers: &HeaderMap) -> Result<(), ContentTypeError> {
    let mut values = headers.get_all(header::CONTENT_TYPE).iter();
    let value = values.next().ok_or(ContentTypeError::Missing)?;
    if values.next().is_some() {
        return Err(ContentTypeError::Repeated);
    }
    if value == "application/json" {
        return Ok(());
    }
    let text = value.to_str().unwrap_or_default();
    let mut parts = text.split(';').map(str::trim);
    let name = parts.next().unwrap_or_default();
    if !name.eq_ignore_ascii_case("application/json") {
        return Err(ContentTypeError::Unsupported(name.to_owned()));
    }
    for (key, charset) in parts.filter_map(|p| p.split_once('=')) {
        let charset = charset.trim().trim_matches('"');
        if key.trim().eq_ignore_ascii_case("charset")
            && !charset.eq_ignore_ascii_case("utf-8")
            && !charset.eq_ignore_ascii_case("utf8")
        {
            return Err(ContentTypeError::Charset(charset.to_owned()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(value: &'static str) -> Accept {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_static(value));
        accept(&headers)
    }

    #[test]
    fn negotiation() {
        use Accept::*;
        use Media::*;
        assert_eq!(accept(&HeaderMap::new()), Graphql(Json));
        let cases = [
            ("*/*", Graphql(Json)),
            ("application/*", Graphql(Json)),
            ("application/json", Graphql(LegacyJson)),
            ("APPLICATION/JSON; charset=utf-8", Graphql(LegacyJson)),
            (
                "application/graphql-response+json",
                Graphql(GraphqlResponse),
            ),
            (
                "application/graphql-response+json, application/json;q=0.9",
                Graphql(GraphqlResponse),
            ),
            (
                "application/json, application/graphql-response+json",
                Graphql(GraphqlResponse),
            ),
            (
                "application/json, application/graphql-response+json;q=0.5",
                Graphql(LegacyJson),
            ),
            ("application/graphql-response+json;q=0, */*", Graphql(Json)),
            ("application/json, multipart/mixed", Graphql(LegacyJson)),
            ("text/html,application/xhtml+xml,*/*;q=0.8", Html),
            ("text/html, application/json", Graphql(LegacyJson)),
            ("text/plain", Nothing),
            ("application/json;q=0", Nothing),
            ("application/json;q=nonsense", Nothing),
            ("", Nothing),
        ];
        for (value, wanted) in cases {
            assert_eq!(of(value), wanted, "{value}");
        }
    }

    #[test]
    fn the_stream_a_client_likes_best_is_chosen() {
        use StreamMedia::*;
        let of = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, HeaderValue::from_static(value));
            stream_media(&headers)
        };
        assert_eq!(stream_media(&HeaderMap::new()), None);
        let apollo = "multipart/mixed;boundary=graphql;subscriptionSpec=1.0,application/json";
        let urql = "application/graphql-response+json, application/json, text/event-stream, multipart/mixed";
        let cases = [
            ("text/event-stream", Some(EventStream)),
            (apollo, Some(Multipart)),
            (urql, Some(EventStream)),
            (
                "multipart/mixed;subscriptionSpec=\"1.0\", text/event-stream",
                Some(Multipart),
            ),
            (
                "multipart/mixed;subscriptionSpec=1.0;q=0.5, text/event-stream",
                Some(EventStream),
            ),
            ("multipart/mixed;deferSpec=20220824", None),
            ("multipart/mixed;subscriptionSpec=2.0", None),
            ("text/event-stream;q=0", None),
            ("*/*", None),
        ];
        for (value, wanted) in cases {
            assert_eq!(of(value), wanted, "{value}");
        }
    }

    #[test]
    fn pages_first_and_everything_last_is_json() {
        let of = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, HeaderValue::from_static(value));
            graphql_media(&headers)
        };
        assert_eq!(graphql_media(&HeaderMap::new()), Some(Media::Json));
        let java = "text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2";
        let cases = [
            (
                "text/html,application/xhtml+xml,*/*;q=0.8",
                Some(Media::Json),
            ),
            (java, Some(Media::Json)),
            ("text/html, application/json", Some(Media::LegacyJson)),
            ("text/html", None),
            ("text/html, */*;q=0", None),
        ];
        for (value, wanted) in cases {
            assert_eq!(of(value), wanted, "{value}");
        }
    }

    #[test]
    fn parts_are_sent_to_those_who_like_them_no_less() {
        use IncrementalForm::*;
        let of = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, HeaderValue::from_static(value));
            incremental_media(&headers, Repeated).map(|media| (media.form, media.is_only))
        };
        assert_eq!(incremental_media(&HeaderMap::new(), Repeated), None);
        let urql = "application/graphql-response+json, application/json, text/event-stream, multipart/mixed";
        let cases = [
            (
                "multipart/mixed;deferSpec=20220824,application/json",
                Some((Repeated, false)),
            ),
            (
                "multipart/mixed;incrementalSpec=v0.2,application/graphql-response+json,application/json;q=0.9",
                Some((Distinct, false)),
            ),
            (
                "Multipart/Mixed; IncrementalSpec=\"v0.2\"",
                Some((Distinct, true)),
            ),
            (urql, Some((Repeated, false))),
            ("multipart/mixed", Some((Repeated, true))),
            ("application/json, multipart/mixed;q=0.5", None),
            ("multipart/mixed;q=0", None),
            ("multipart/mixed;incrementalSpec=v9", None),
            (
                "multipart/mixed;boundary=graphql;subscriptionSpec=1.0,application/json",
                None,
            ),
            ("application/json", None),
            ("*/*", None),
        ];
        for (value, wanted) in cases {
            assert_eq!(of(value), wanted, "{value}");
        }
    }

    #[test]
    fn bodies_are_json_in_utf_8() {
        let check = |value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(value));
            content_type_is_json(&headers)
        };
        assert_eq!(
            content_type_is_json(&HeaderMap::new()),
            Err(ContentTypeError::Missing)
        );
        for second in ["text/plain", "application/json"] {
            let mut headers = HeaderMap::new();
            for value in ["application/json", second] {
                headers.append(header::CONTENT_TYPE, HeaderValue::from_static(value));
            }
            let checked = content_type_is_json(&headers);
            assert_eq!(checked, Err(ContentTypeError::Repeated));
        }
        assert_eq!(check("application/json"), Ok(()));
        assert_eq!(check("Application/JSON;charset=\"UTF-8\""), Ok(()));
        assert!(matches!(
            check("text/plain"),
            Err(ContentTypeError::Unsupported(_))
        ));
        assert!(matches!(
            check("application/json; charset=iso-8859-1"),
            Err(ContentTypeError::Charset(_))
        ));
    }
}
