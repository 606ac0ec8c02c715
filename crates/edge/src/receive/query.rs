//! A request in the query string of a GET.

use ogive_base::encode::decode_form;

use crate::{
    error::RequestError,
    json_value::JsonObject,
    receive::{DOCUMENT_ID, GraphqlRequest, counted, invalid, persisted_query},
};

/// Reads the query string of a GET.
pub fn from_query(text: &str) -> Result<GraphqlRequest, RequestError> {
    query_request(text, None)
}

pub(super) fn query_request(
    text: &str,
    document_id: Option<&str>,
) -> Result<GraphqlRequest, RequestError> {
    let mut request = GraphqlRequest {
        read_only: true,
        may_subscribe: false,
        bytes: counted(text.len()),
        document_id: document_id.map(str::to_owned),
        ..GraphqlRequest::default()
    };
    let mut query = None;
    for pair in text.split('&') {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let is_id = DOCUMENT_ID.contains(&key);
        if !is_id && !matches!(key, "query" | "operationName" | "variables" | "extensions") {
            continue;
        }
        let value = decode_form(value)
            .ok_or_else(|| invalid(format!("`{key}` is not UTF-8 in percent-encoding")))?;
        match key {
            "query" => query = Some(value),
            _ if is_id => {
                request.document_id = request
                    .document_id
                    .or(Some(value).filter(|v| !v.is_empty()));
            }
            "operationName" => request.operation_name = Some(value).filter(|v| !v.is_empty()),
            "variables" => request.variables = object_text("variables", value)?,
            _ => {
                request.extensions = object_text("extensions", value)?;
                request.persisted_query = persisted_query(&request.extensions);
            }
        }
    }
    let by_id = request.document_id.is_some() || request.persisted_query.is_some();
    request.query = match query.filter(|query| !query.is_empty()) {
        Some(query) => query,
        None if by_id => String::new(),
        None => return Err(invalid("the request has no `query`")),
    };
    Ok(request)
}

fn object_text(name: &str, text: String) -> Result<JsonObject, RequestError> {
    if text.is_empty() {
        return Ok(JsonObject::default());
    }
    let is_null = text.trim() == "null";
    let object = JsonObject::read(text.into())
        .map_err(|error| invalid(format!("`{name}` is not JSON: {error}")))?;
    match object {
        Some(object) => Ok(object),
        None if is_null => Ok(JsonObject::default()),
        None => Err(invalid(format!("`{name}` is not a JSON object"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ogive_telemetry::codes;

    fn message(result: Result<GraphqlRequest, RequestError>) -> String {
        let error = result.expect_err("must be refused");
        assert_eq!(error.status, 400);
        assert_eq!(error.errors[0].code, codes::INVALID_GRAPHQL_REQUEST);
        error.errors[0].message.clone()
    }

    #[test]
    fn a_query_string_with_everything() {
        let request = from_query(
            "query=query+A(%24x%3AInt)%7Ba%7D&operationName=A&variables=%7B%22x%22%3A1%7D&other=%ff",
        )
        .unwrap();
        assert_eq!(request.query, "query A($x:Int){a}");
        assert_eq!(request.operation_name.as_deref(), Some("A"));
        assert_eq!(request.variables.text(), br#"{"x":1}"#);
        assert!(request.read_only);
    }

    #[test]
    fn deep_variables_are_refused() {
        let query = format!("query={{a}}&variables={}", "[".repeat(500_000));
        assert!(message(from_query(&query)).contains("nested"));
    }

    #[test]
    fn malformed_query_strings_say_what_is_wrong() {
        for (query, wanted) in [
            ("", "no `query`"),
            ("query=", "no `query`"),
            ("query=%ff", "percent-encoding"),
            ("query=%2", "percent-encoding"),
            ("query={a}&variables=nope", "`variables` is not JSON"),
            ("query={a}&variables=3", "`variables` is not a JSON object"),
            (
                "query={a}&extensions=[]",
                "`extensions` is not a JSON object",
            ),
        ] {
            let found = message(from_query(query));
            assert!(found.contains(wanted), "{query}: {found}");
        }
    }
}
