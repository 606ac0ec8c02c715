//! A request as JSON: the body of a POST, or a list of them. Nothing becomes a tree: a scan says where its members are.

use std::ops::Range;

use bytes::Bytes;
use ogive_json::{JsonStr, Kind, ScanError, Scanner};
use ogive_telemetry::codes;

use crate::{
    error::RequestError,
    json_value::{self, JsonObject},
    receive::{
        DOCUMENT_ID, GraphqlRequest, ReceiveLimits, Received, counted, invalid, persisted_query,
    },
};

/// Reads the body of a POST that holds one request.
pub fn from_json(body: &[u8], limits: &ReceiveLimits) -> Result<GraphqlRequest, RequestError> {
    match received(&Bytes::copy_from_slice(body), limits, None)? {
        Received::One(request) => Ok(request),
        Received::Batch(_) => Err(invalid("the request's body is not a JSON object")),
    }
}

/// What a body holds. Makes no more of it than whatever somebody reads.
pub fn received(
    body: &Bytes,
    limits: &ReceiveLimits,
    document_id: Option<&str>,
) -> Result<Received, RequestError> {
    if body.iter().all(u8::is_ascii_whitespace) && document_id.is_none() {
        return Err(invalid(
            "the request's body is empty: send a JSON object with `query`",
        ));
    }
    let most = limits.batch.map_or(0, |batch| batch.ceiling);
    let whole = Whole::read(body, most)
        .map_err(|error| invalid(format!("the request's body is not JSON: {error}")))?;
    match whole {
        Whole::One(members) => members.request(body, document_id).map(Received::One),
        Whole::Batch(_, 0) => Err(invalid("the list of requests is empty")),
        Whole::Batch(..) if limits.batch.is_none() => Err(RequestError::http(
            codes::BATCHING_NOT_ENABLED,
            "batched requests are not served here: send one JSON object",
        )),
        Whole::Batch(_, count) if count > most => Err(RequestError::http(
            codes::BATCH_LIMIT_EXCEEDED,
            format!("the list has {count} requests, more than the {most} allowed"),
        )),
        Whole::Batch(entries, _) => {
            let entries = entries.into_iter();
            let entries = entries.map(|members| members.request(body, document_id));
            Ok(Received::Batch(entries.collect()))
        }
    }
}

/// A body that was scanned.
enum Whole<'b> {
    One(Members<'b>),
    /// As many entries as are allowed, and the number of all.
    Batch(Vec<Members<'b>>, usize),
}

impl<'b> Whole<'b> {
    fn read(body: &'b [u8], most: usize) -> Result<Self, ScanError> {
        let mut scanner = Scanner::with_depth_max(body, json_value::DEPTH_MAX);
        if scanner.peek()? != Kind::Array {
            let members = Members::read(&mut scanner)?;
            scanner.finish()?;
            return Ok(Whole::One(members));
        }
        let (mut entries, mut count) = (Vec::new(), 0);
        let mut more = scanner.begin_array()?;
        while more {
            count += 1;
            if count <= most {
                entries.push(Members::read(&mut scanner)?)
            } else {
                scanner.skip_value()?;
            }
            more = scanner.next_item()?;
        }
        scanner.finish()?;
        Ok(Whole::Batch(entries, count))
    }
}

/// A member of a request, as far as anybody looks at it.
enum Member<'b> {
    Null,
    Text(JsonStr<'b>),
    Object(Range<usize>),
    Other,
}

impl<'b> Member<'b> {
    fn read(scanner: &mut Scanner<'b>) -> Result<Self, ScanError> {
        Ok(match scanner.peek()? {
            Kind::Null => {
                scanner.null()?;
                Member::Null
            }
            Kind::String => Member::Text(scanner.string()?),
            Kind::Object => Member::Object(scanner.skip_value()?),
            _ => {
                scanner.skip_value()?;
                Member::Other
            }
        })
    }
}

/// The members of a request that mean something.
#[derive(Default)]
struct Members<'b> {
    /// Whether it is something else than an object.
    is_other: bool,
    query: Option<Member<'b>>,
    operation_name: Option<Member<'b>>,
    variables: Option<Member<'b>>,
    extensions: Option<Member<'b>>,
    /// By [`DOCUMENT_ID`].
    ids: [Option<Member<'b>>; DOCUMENT_ID.len()],
}

impl<'b> Members<'b> {
    /// Reads a request; of members with the same name the last one counts.
    fn read(scanner: &mut Scanner<'b>) -> Result<Self, ScanError> {
        let mut members = Members::default();
        if scanner.peek()? != Kind::Object {
            scanner.skip_value()?;
            members.is_other = true;
            return Ok(members);
        }
        let mut more = scanner.begin_object()?;
        while more {
            let key = scanner.key()?.unescape();
            match members.place(&key) {
                Some(place) => *place = Some(Member::read(scanner)?),
                None => {
                    scanner.skip_value()?;
                }
            }
            more = scanner.next_member()?;
        }
        Ok(members)
    }

    fn place(&mut self, name: &str) -> Option<&mut Option<Member<'b>>> {
        Some(match name {
            "query" => &mut self.query,
            "operationName" => &mut self.operation_name,
            "variables" => &mut self.variables,
            "extensions" => &mut self.extensions,
            _ => &mut self.ids[DOCUMENT_ID.iter().position(|id| *id == name)?],
        })
    }

    fn request(
        self,
        body: &Bytes,
        document_id: Option<&str>,
    ) -> Result<GraphqlRequest, RequestError> {
        if self.is_other {
            return Err(invalid("the request's body is not a JSON object"));
        }
        let extensions = object("extensions", self.extensions, body)?;
        let persisted_query = persisted_query(&extensions);
        let mut id = document_id.map(str::to_owned);
        for value in self.ids {
            // Other tools use these names for other things.
            if let Some(Member::Text(text)) = value {
                id = id.or_else(|| Some(text.unescape().into_owned()));
            }
        }
        let query = match self.query {
            Some(Member::Text(query)) => query.unescape().into_owned(),
            None | Some(Member::Null) if id.is_some() || persisted_query.is_some() => String::new(),
            None | Some(Member::Null) => return Err(invalid("the request has no `query`")),
            Some(_) => return Err(invalid("`query` is not a string")),
        };
        let operation_name = match self.operation_name {
            Some(Member::Text(name)) => Some(name.unescape().into_owned()),
            None | Some(Member::Null) => None,
            Some(_) => return Err(invalid("`operationName` is not a string")),
        };
        Ok(GraphqlRequest {
            query,
            document_id: id,
            operation_name: operation_name.filter(|name| !name.is_empty()),
            variables: object("variables", self.variables, body)?,
            extensions,
            persisted_query,
            read_only: false,
            may_subscribe: false,
            in_parts: None,
            bytes: counted(body.len()),
            resolved: None,
            original: None,
        })
    }
}

fn object(name: &str, value: Option<Member<'_>>, body: &Bytes) -> Result<JsonObject, RequestError> {
    match value {
        Some(Member::Object(range)) => Ok(JsonObject::scanned(body.slice(range))),
        None | Some(Member::Null) => Ok(JsonObject::default()),
        Some(_) => Err(invalid(format!("`{name}` is not a JSON object"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(result: Result<GraphqlRequest, RequestError>) -> String {
        let error = result.expect_err("must be refused");
        assert_eq!(error.status, 400);
        assert_eq!(error.errors[0].code, codes::INVALID_GRAPHQL_REQUEST);
        error.errors[0].message.clone()
    }

    fn read(body: &[u8]) -> Result<GraphqlRequest, RequestError> {
        from_json(body, &ReceiveLimits::default())
    }

    #[test]
    fn a_body_with_everything() {
        let request = read(
            br#"{"query":"{a}","operationName":"A","variables":{"x":1.0},"extensions":{"x":0,"persistedQuery":{"y":[]}},"more":1}"#,
        )
        .unwrap();
        assert_eq!(request.query, "{a}");
        assert_eq!(request.operation_name.as_deref(), Some("A"));
        assert_eq!(request.variables.text(), br#"{"x":1.0}"#);
        assert_eq!(
            request.persisted_query.as_deref(),
            Some(&br#"{"y":[]}"#[..])
        );
        assert!(!request.read_only);
    }

    #[test]
    fn null_members_count_as_absent() {
        let request =
            read(br#"{"query":"{a}","operationName":null,"variables":null,"extensions":null}"#)
                .unwrap();
        assert_eq!(request.operation_name, None);
        assert!(request.variables.is_empty());
    }

    #[test]
    fn malformed_bodies_say_what_is_wrong() {
        let cases: [(&[u8], &str); 11] = [
            (b"", "is empty"),
            (b" \n", "is empty"),
            (b"{", "is not JSON"),
            (b"\xff", "is not JSON"),
            (b"{\"query\":\"\xff\"}", "is not JSON"),
            (b"3", "is not a JSON object"),
            (b"[]", "list of requests is empty"),
            (b"{}", "no `query`"),
            (b"{\"query\":1}", "`query` is not a string"),
            (
                b"{\"query\":\"{a}\",\"operationName\":1}",
                "`operationName`",
            ),
            (
                b"{\"query\":\"{a}\",\"variables\":[]}",
                "`variables` is not a JSON object",
            ),
        ];
        for (body, wanted) in cases {
            let found = message(read(body));
            assert!(found.contains(wanted), "{found}");
        }
    }

    #[test]
    fn deep_json_is_refused() {
        let body = format!(
            r#"{{"query":"{{a}}","variables":{{"x":{}{}}}}}"#,
            "[".repeat(500_000),
            "]".repeat(500_000)
        );
        assert!(message(read(body.as_bytes())).contains("nested"));
    }
}
