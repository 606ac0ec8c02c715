//! Bodies towards a coprocessor and back: requests and responses of GraphQL, as they are written.

use std::borrow::Cow;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use ogive_edge::{json_value::JsonObject, receive::GraphqlRequest};
use ogive_failure::ErrorCode;
use ogive_hooks::{
    Body, Break, CoprocessorError, Members,
    headers::{Peer, kept},
};
use ogive_json::write_string;
use ogive_server::ResponseBody;
use ogive_telemetry::Record;
use serde_json::value::RawValue;

/// A request as JSON.
pub(crate) fn of_request(request: &GraphqlRequest) -> Vec<u8> {
    let mut out = b"{\"query\":".to_vec();
    write_string(&mut out, &request.query);
    if let Some(name) = &request.operation_name {
        out.extend_from_slice(b",\"operationName\":");
        write_string(&mut out, name);
    }
    if !request.variables.text().is_empty() {
        out.extend_from_slice(b",\"variables\":");
        out.extend_from_slice(request.variables.text());
    }
    if !request.extensions.text().is_empty() {
        out.extend_from_slice(b",\"extensions\":");
        out.extend_from_slice(request.extensions.text());
    }
    out.push(b'}');
    out
}

/// A request of a coprocessor; members that it leaves out are not there from now on.
#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct Said<'a> {
    query: Option<String>,
    operation_name: Option<String>,
    #[serde(borrow)]
    variables: Option<&'a RawValue>,
}

/// What a coprocessor makes of a request, read and not taken over yet.
#[derive(Clone, Debug)]
pub(crate) struct ReplyRequest {
    pub(crate) query: String,
    operation_name: Option<String>,
    variables: JsonObject,
}

impl ReplyRequest {
    pub(crate) fn read(body: &Body) -> Result<Self, CoprocessorError> {
        let malformed = || CoprocessorError::Malformed("body", "a GraphQL request");
        let body = body.bytes();
        let said: Said<'_> = serde_json::from_slice(body).map_err(|_| malformed())?;
        let variables = match said.variables {
            Some(text) if text.get() != "null" => {
                let text = body.slice_ref(text.get().as_bytes());
                let object = JsonObject::read(text).map_err(|_| malformed())?;
                object.ok_or_else(malformed)?
            }
            _ => JsonObject::default(),
        };
        Ok(ReplyRequest {
            query: said.query.ok_or_else(malformed)?,
            operation_name: said.operation_name,
            variables,
        })
    }
    /// Whether it asks for the same operation.
    pub(crate) fn asks_as(&self, request: &GraphqlRequest) -> bool {
        self.query == request.query && self.operation_name == request.operation_name
    }
    /// Takes it over.
    pub(crate) fn apply(self, request: &mut GraphqlRequest) {
        request.query = self.query;
        request.operation_name = self.operation_name;
        request.variables = self.variables;
    }
}

/// The body of GraphQL that a hook ends something with.
pub(crate) fn of_break(ending: Break) -> Bytes {
    let body = match ending.body {
        Some(Body::Json(json)) if json.starts_with(b"{") => return json,
        Some(Body::Text(text)) => Body::error(&String::from_utf8_lossy(&text), ending.code),
        _ => Body::of_status(ending.status, ending.code),
    };
    body.into_bytes()
}

/// The response that a hook ends a request with. `is_graphql`: whether the body has to be a response of GraphQL.
pub(crate) fn break_response(mut ending: Break, is_graphql: bool) -> Response<ResponseBody> {
    let (status, code) = (ending.status, ending.code);
    let headers = ending.headers.take().unwrap_or_default();
    let is_text = match &ending.body {
        Some(Body::Text(text)) => !std::str::from_utf8(text).is_ok_and(Body::is_json),
        _ => false,
    };
    let body = match ending.body {
        Some(body) if !is_graphql => body.into_bytes(),
        _ => of_break(ending),
    };
    let media = if is_text && !is_graphql {
        "text/plain; charset=utf-8"
    } else {
        "application/json; charset=utf-8"
    };
    let code = said_code(status, &body, code);
    let mut response = Response::new(ResponseBody::from(body));
    *response.status_mut() = status;
    if let Some(code) = code {
        response.extensions_mut().insert(BreakCode(code));
    }
    let all = response.headers_mut();
    all.insert(header::CONTENT_TYPE, HeaderValue::from_static(media));
    all.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // A length that is not the body's would be taken for it.
    let headers = kept(&HeaderMap::new(), headers, Peer::Client);
    for name in headers.keys() {
        all.remove(name);
    }
    all.extend(headers);
    response
}

/// In the extensions of a response with which a hook has ended a request: the code by which the log tells of it.
#[derive(Clone, Copy, Debug)]
struct BreakCode(&'static str);

/// That of its first error, if it is one of ours, or else `otherwise`; none of an answer that went well.
fn said_code(status: StatusCode, body: &[u8], otherwise: ErrorCode) -> Option<&'static str> {
    #[derive(serde::Deserialize)]
    struct Said<'a> {
        #[serde(borrow, default)]
        extensions: Option<SaidExtensions<'a>>,
    }
    #[derive(serde::Deserialize)]
    struct SaidExtensions<'a> {
        #[serde(borrow, default)]
        code: Option<Cow<'a, str>>,
    }
    #[derive(serde::Deserialize)]
    struct Errors<'a> {
        #[serde(borrow, default)]
        errors: Vec<Said<'a>>,
    }
    let is_failure = status.is_client_error() || status.is_server_error();
    if !is_failure && !has_errors(body) {
        return None;
    }
    let said: Option<Errors<'_>> = serde_json::from_slice(body).ok();
    let first = said.as_ref().and_then(|said| said.errors.first());
    let code = first.and_then(|first| first.extensions.as_ref()?.code.as_deref());
    let own = code.and_then(ErrorCode::find);
    Some(own.unwrap_or(otherwise).as_str())
}

/// Notes that a hook has ended a request, if one has.
pub(crate) fn note_break(record: &Record, response: &Response<ResponseBody>) {
    if let Some(BreakCode(code)) = response.extensions().get() {
        record.refused(code);
    }
}

/// Whether a body is `{}`, with any white space.
pub(super) fn is_empty_object(body: &[u8]) -> bool {
    let inner = body.trim_ascii().strip_prefix(b"{");
    inner
        .and_then(|inner| inner.strip_suffix(b"}"))
        .is_some_and(|inner| inner.trim_ascii().is_empty())
}

/// The same response with a `hasNext` that says what is so: whoever changes a part does not end the answer by it.
pub(crate) fn with_has_next(json: Bytes, has_next: bool) -> Result<Bytes, CoprocessorError> {
    let malformed = || CoprocessorError::Malformed("body", "a GraphQL response");
    let mut members = Members::read(&json).ok_or_else(malformed)?;
    if members.text("hasNext") == Some(if has_next { "true" } else { "false" }) {
        return Ok(json);
    }
    let value = serde_json::value::to_raw_value(&has_next).map_err(|_| malformed())?;
    members.put("hasNext", value);
    Ok(members.changed().unwrap_or(json))
}

/// The response that a stream ends with of which a part was ended: without errors it would say nothing.
pub(crate) fn of_ended_part(ending: Break) -> Bytes {
    let (status, code) = (ending.status, ending.code);
    let said = of_break(ending);
    if has_errors(&said) {
        return said;
    }
    Body::of_status(status, code).into_bytes()
}

/// Whether a response of GraphQL has errors.
pub(crate) fn has_errors(body: &[u8]) -> bool {
    #[derive(serde::Deserialize)]
    struct Errors {
        errors: Option<Vec<serde::de::IgnoredAny>>,
    }
    let errors: Option<Errors> = serde_json::from_slice(body).ok();
    errors.is_some_and(|found| found.errors.is_some_and(|errors| !errors.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_go_and_come_back_as_they_are_written() {
        let mut request = GraphqlRequest {
            query: "query A { a }".into(),
            operation_name: Some("A".into()),
            variables: JsonObject::read(Bytes::from_static(b"{\"b\":1.0e400,\"a\":2}"))
                .unwrap()
                .unwrap(),
            ..GraphqlRequest::default()
        };
        let text = of_request(&request);
        let expected =
            r#"{"query":"query A { a }","operationName":"A","variables":{"b":1.0e400,"a":2}}"#;
        assert_eq!(String::from_utf8(text.clone()).unwrap(), expected);
        let before = request.clone();
        let changed = ReplyRequest::read(&Body::Json(text.into())).unwrap();
        changed.apply(&mut request);
        assert_eq!(request, before);
        let shorter = Bytes::from_static(b"{\"query\":\"{ b }\"}");
        let changed = ReplyRequest::read(&Body::Json(shorter)).unwrap();
        changed.apply(&mut request);
        assert_eq!(
            (request.query.as_str(), request.operation_name),
            ("{ b }", None)
        );
        assert!(request.variables.is_empty());
    }

    #[test]
    fn what_is_no_request_is_refused() {
        for bad in [
            "1",
            "{}",
            "[]",
            r#"{"query":1}"#,
            r#"{"query":"a","variables":[]}"#,
        ] {
            let body = Body::Json(Bytes::from_static(bad.as_bytes()));
            assert!(ReplyRequest::read(&body).is_err(), "{bad}");
        }
    }
}
